/* The kernels of a step in the stream, captured once per bucket of rows. */
#include "model/cuda/decode/stepgraph.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/cuda/table.h"

/* ---- buckets: 1, 2, 4, 8, then four per doubling ---- */

static int bucket_rows(int i)
{
    if (i < 4) return 1 << i;
    int octave = (i - 4) / 4, quarter = (i - 4) % 4 + 1;
    return (8 << octave) + quarter * (2 << octave);
}

static int bucket_of(int rows)
{
    int i = 0;
    while (bucket_rows(i) < rows) i++;
    return i;
}

/* ---- the kernels of a step ---- */

static size_t max_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Returns the columns of low for the rank of one part. They begin at a link of the sum, as in the
 * full pass. */
static int rank_columns(const Model *m)
{
    return (m->lora_options.rank + 15) / 16 * 16;
}
static int low_columns(const Model *m, const Linear *l)
{
    return l->u ? l->u / m->lora_options.rank * rank_columns(m) : 0;
}

/* y = x W^T and the adapter's product, to the planes g->parts. Returns the number of planes. gated:
 * the activations, to `out`. */
static int project(const StepGraphs *g, const Linear *l, const Adapter *a, const Num *x, int rows,
                   Num *gated)
{
    const Model *m = g->model;
    int r = a ? a->r : 0;
    if (r) {
        Product low = {.out = g->low,
                       .x = x,
                       .w = a->a,
                       .rows = rows,
                       .n = r,
                       .k = l->k,
                       .scale = m->lora_scale};
        cuda_product(&low);
    }
    Product p = {.sums = g->parts,
                 .out = gated,
                 .x = x,
                 .w = weight_at(m, l->weight),
                 .low = g->low,
                 .up = r ? a->b : NULL,
                 .rows = rows,
                 .n = gated ? l->n / 2 : l->n,
                 .k = l->k,
                 .r = r,
                 .gated = gated != NULL};
    cuda_product(&p);
    return r ? 2 : 1;
}

static StepInput input_at(const StepGraphs *g, char *base)
{
    StepInput in = {.u = (double *)base};
    in.ids = (int32_t *)(in.u + g->rows);
    in.pos = in.ids + g->rows;
    in.table = in.pos + g->rows;
    return in;
}

StepInput stepgraph_input(const StepGraphs *g)
{
    return input_at(g, g->host_input);
}

static size_t input_bytes(const StepGraphs *g, int rows)
{
    return (size_t)g->rows * 16 + (size_t)rows * (size_t)g->ld * sizeof(int32_t);
}

static void layer(const StepGraphs *g, int i, int rows, const KvRows *who)
{
    const Model *m = g->model;
    const ModelConfig *c = &m->c;
    const LayerAt *at = &m->layer[i];
    const LayerAdapters *a = g->adapter ? &g->adapter[i] : NULL;
    const Num *after = weight_at(m, i + 1 == c->layers ? m->norm : m->layer[i + 1].in_norm);
    Fresh f = {.q = g->q,
               .parts = g->parts,
               .bias = at->qkv.has_bias ? weight_at(m, at->qkv.bias) : NULL,
               .cosines = m->cosines,
               .sines = m->sines,
               .rows = rows,
               .heads = c->heads,
               .layer = i,
               .eps = c->norm_eps};
    if (c->qk_norm) f.q_norm = weight_at(m, at->q_norm), f.k_norm = weight_at(m, at->k_norm);
    Residual r = {.x = g->x,
                  .normed = g->normed,
                  .parts = g->parts,
                  .rows = rows,
                  .n = c->hidden,
                  .eps = c->norm_eps};
    f.planes = project(g, &at->qkv, a ? &a->qkv : NULL, g->normed, rows, NULL);
    cuda_fresh_heads(&f, who, &g->pages);
    cuda_attend(g->att, g->q, g->attend, who, &g->pages, rows, c->heads, i, g->longest);
    r.planes = project(g, &at->o, a ? &a->o : NULL, g->att, rows, NULL);
    r.w = weight_at(m, at->post_norm);
    cuda_residual_norm(&r);
    project(g, &at->gate_up, a ? &a->gate_up : NULL, g->normed, rows, g->act);
    r.planes = project(g, &at->down, a ? &a->down : NULL, g->act, rows, NULL);
    r.w = after;
    cuda_residual_norm(&r);
}

static void head(const StepGraphs *g, const Num *normed, int rows, float *logits)
{
    const Model *m = g->model;
    Product p = {.sums = logits,
                 .x = normed,
                 .w = weight_at(m, m->head),
                 .rows = rows,
                 .n = m->c.vocab,
                 .k = m->c.hidden};
    cuda_product(&p);
}

static void draw(const StepGraphs *g, const float *logits, size_t ld, int rows)
{
    DrawRows law = g->law;
    law.logits = logits;
    law.ld = ld;
    cuda_draw(g->out_ids, (float *)(g->out_ids + g->rows), &law, input_at(g, g->input).u, g->draw,
              rows);
}

static void copy_in(const StepGraphs *g, size_t bytes)
{
    if (cuda_begin()) return;
    CUDA_TRY(cuda_state()->cu->copy_to_device_async((CuPtr)(uintptr_t)g->input, g->host_input,
                                                    bytes, cuda_state()->stream),
             "a step's rows are not copied to the GPU");
}

static void copy_out(const StepGraphs *g)
{
    if (cuda_begin()) return;
    CUDA_TRY(cuda_state()->cu->copy_to_host_async(g->drawn_ids, (CuPtr)(uintptr_t)g->out_ids,
                                                  (size_t)g->rows * 8, cuda_state()->stream),
             "the drawn tokens are not copied from the GPU");
}

/* Launch all kernels of a step. */
static void launch_step(const StepGraphs *g, int rows)
{
    const Model *m = g->model;
    StepInput in = input_at(g, g->input);
    KvRows who = {.pos = in.pos, .table = in.table, .ld = g->ld};
    Residual first = {.x = g->x,
                      .normed = g->normed,
                      .table = weight_at(m, m->embed),
                      .ids = in.ids,
                      .w = weight_at(m, m->layer[0].in_norm),
                      .rows = rows,
                      .n = m->c.hidden,
                      .eps = m->c.norm_eps};
    copy_in(g, input_bytes(g, rows));
    cuda_residual_norm(&first);
    cuda_overlap(1);
    for (int i = 0; i < m->c.layers; i++) layer(g, i, rows, &who);
    head(g, g->normed, rows, g->logits);
    draw(g, g->logits, (size_t)m->c.vocab, rows);
    cuda_overlap(0);
    copy_out(g);
}

static void record(StepGraphs *g, int bucket)
{
    const CudaState *s = cuda_state();
    CuGraph graph = NULL;
    CUDA_TRY(s->cu->capture_begin(s->stream, CU_CAPTURE_THREAD_LOCAL),
             "a step of decoding is not recorded");
    if (cuda_failed()) return;
    launch_step(g, bucket_rows(bucket));
    CuResult r = s->cu->capture_end(s->stream, &graph);
    if (r) cuda_fail(r, "a step of decoding is not recorded");
    CUDA_TRY(s->cu->graph_instantiate(&g->graph[bucket], graph, 0),
             "the graph of a step of decoding is not made");
    if (graph) s->cu->graph_destroy(graph);
}

void stepgraph_run(StepGraphs *g, int n)
{
    int bucket = bucket_of(n);
    StepInput in = stepgraph_input(g);
    for (int i = n; i < bucket_rows(bucket); i++) {
        in.u[i] = 0;
        in.ids[i] = 0;
        in.pos[i] = -1;
    }
    if (cuda_begin()) return;
    if (!g->graph[bucket]) record(g, bucket);
    CUDA_TRY(cuda_state()->cu->graph_launch(g->graph[bucket], cuda_state()->stream),
             "a step of decoding did not start");
}

void stepgraph_prompt(StepGraphs *g, const Num *last)
{
    head(g, last, 1, g->prompt_logits);
}

void stepgraph_first(StepGraphs *g, int n)
{
    copy_in(g, (size_t)n * sizeof(double));
    draw(g, g->prompt_logits, 0, n);
    copy_out(g);
}

/* ---- creation ---- */

static void place(StepGraphs *g, Arena *a)
{
    const Model *m = g->model;
    const ModelConfig *c = &m->c;
    const LayerAt *l = &m->layer[0];
    size_t rows = (size_t)g->rows, wide = (size_t)c->heads * (size_t)c->head_dim,
           num = (size_t)m->ops->num;
    const Linear *linear[] = {&l->qkv, &l->o, &l->gate_up, &l->down};
    size_t parts = 0, low = 0;
    for (int i = 0; i < 4; i++) {
        int gated = linear[i] == &l->gate_up, planes = linear[i]->u ? 1 + !gated : !gated;
        parts = max_of(parts, (size_t)planes * (size_t)linear[i]->n);
        low = max_of(low, (size_t)low_columns(m, linear[i]));
    }
    g->x = arena_take(a, rows, (size_t)c->hidden, sizeof *g->x);
    g->normed = arena_take(a, rows, (size_t)c->hidden, num);
    g->q = arena_take(a, rows, wide, num);
    g->att = arena_take(a, rows, wide, num);
    g->act = arena_take(a, rows, (size_t)c->ff, num);
    g->low = arena_take(a, rows, low, num);
    g->parts = arena_take(a, rows, parts, sizeof(float));
    g->attend = arena_take(a, cuda_attend_scratch(g->rows, c->heads, g->longest), 1, sizeof(float));
    g->logits = arena_take(a, rows, (size_t)c->vocab, sizeof(float));
    g->prompt_logits = arena_take(a, 1, (size_t)c->vocab, sizeof(float));
    g->draw = arena_take(a, cuda_draw_scratch(g->rows, c->vocab), 1, 1);
    g->law.cut = arena_take(a, rows, 2, sizeof(uint32_t));
    g->law.banned = arena_take(a, ((size_t)c->vocab + 31) / 32, 1, sizeof(uint32_t));
    g->prompt_table = arena_take(a, (size_t)g->ld, 1, sizeof(int32_t));
    g->input = arena_take(a, input_bytes(g, g->rows), 1, 1);
    g->out_ids = arena_take(a, rows, 2, sizeof(int32_t));
}

static void place_adapter(Adapter *to, const Model *m, const Linear *l, Arena *a)
{
    int rank = m->lora_options.rank, column = 0;
    size_t row = (size_t)l->k * 2;
    to->r = low_columns(m, l);
    if (!to->r) return;
    to->a = arena_take(a, (size_t)to->r, (size_t)l->k, 2);
    to->b = arena_take(a, (size_t)l->n, (size_t)to->r, 2);
    if (!a->base) return;
    for (int i = 0; i < l->parts; i++) {
        const LinearPart *p = &l->part[i];
        if (p->u < 0) continue;
        cuda_copy((char *)to->a + (size_t)column * row,
                  num_at(m->ops, m->lora.data, l->a + (size_t)p->u * (size_t)l->k),
                  (size_t)rank * row);
        cuda_adapter_up(to->b, num_at(m->ops, m->lora.data, p->b), p->first, p->n, rank, to->r,
                        column);
        column += rank_columns(m);
    }
}

static void place_adapters(StepGraphs *g, Arena *a)
{
    const Model *m = g->model;
    if (!m->lora.size) return;
    g->adapter = memory_array((size_t)m->c.layers, sizeof *g->adapter);
    for (int i = 0; i < m->c.layers; i++) {
        place_adapter(&g->adapter[i].qkv, m, &m->layer[i].qkv, a);
        place_adapter(&g->adapter[i].o, m, &m->layer[i].o, a);
        place_adapter(&g->adapter[i].gate_up, m, &m->layer[i].gate_up, a);
        place_adapter(&g->adapter[i].down, m, &m->layer[i].down, a);
    }
}

static void upload_banned(StepGraphs *g, const DrawLaw *law)
{
    size_t words = ((size_t)law->vocab + 31) / 32;
    uint32_t *bits = memory_array(words, sizeof *bits);
    for (int i = 0; i < law->n_banned; i++)
        bits[law->banned[i] / 32] |= 1u << (law->banned[i] % 32);
    cuda_upload((void *)(uintptr_t)g->law.banned, bits, words * sizeof *bits);
    free(bits);
}

static StepGraphs of_plan(const Model *m, const DecoderPlan *plan, int ld)
{
    return (StepGraphs){.model = m,
                        .rows = bucket_rows(bucket_of(plan->rows)),
                        .ld = ld,
                        .longest = plan->prompt + plan->max_new};
}

size_t stepgraph_bytes(const Model *m, const DecoderPlan *plan, int ld)
{
    StepGraphs g = of_plan(m, plan, ld);
    Arena size = {0};
    place(&g, &size);
    place_adapters(&g, &size);
    free(g.adapter);
    return size.used;
}

int stepgraph_init(StepGraphs *g, const Model *m, const DecoderPlan *plan, int ld, Error *err)
{
    const DrawLaw *law = &plan->law;
    int greedy = law->temperature == 0;
    *g = of_plan(m, plan, ld);
    g->pages = (Pages){.layers = m->c.layers, .kv_heads = m->c.kv_heads, .dim = m->c.head_dim};
    g->law = (DrawRows){.vocab = law->vocab,
                        .inverse = greedy ? 1 : 1 / law->temperature,
                        .greedy = greedy,
                        .top_k = law->top_k,
                        .top_p = law->top_p,
                        .min_p = law->min_p};
    Arena real = {.base = g->arena = m->ops->alloc(stepgraph_bytes(m, plan, ld))};
    void *input = NULL, *output = NULL;
    CUDA_TRY(cuda_state()->cu->host_alloc(&input, input_bytes(g, g->rows), 0),
             "the driver gives no pinned memory");
    CUDA_TRY(cuda_state()->cu->host_alloc(&output, (size_t)g->rows * 8, 0),
             "the driver gives no pinned memory");
    g->host_input = input;
    g->drawn_ids = output;
    if (cuda_failed()) return m->ops->status(err);
    g->drawn_logp = (float *)(g->drawn_ids + g->rows);
    memset(input, 0, input_bytes(g, g->rows));
    place(g, &real);
    place_adapters(g, &real);
    upload_banned(g, law);
    return m->ops->status(err);
}

void stepgraph_release(StepGraphs *g)
{
    const CudaDriver *cu = cuda_state()->cu;
    cuda_wait();
    for (int i = 0; i < BUCKETS_MAX; i++)
        if (g->graph[i]) cu->graph_exec_destroy(g->graph[i]);
    if (g->host_input) cu->host_free(g->host_input);
    if (g->drawn_ids) cu->host_free(g->drawn_ids);
    cuda_release(g->pages.data);
    cuda_release(g->arena);
    free(g->adapter);
}
