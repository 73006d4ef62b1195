/* The time of each part of a decoding step. The launches of a part for all layers are one graph, so
 * that the host's launches are not measured. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "model/core/transformer.h"
#include "model/cuda/decode/step_kernels.h"
#include "model/cuda/table.h"
#include "tests/bench/model/bench_decode.h"

enum { ROUNDS = 5, REPEATS = 4 };

typedef struct {
    const Model *m;
    int rows, tokens;
    Num *x, *y, *act;
    float *stream, *parts; /* stream: the residual stream */
    int32_t *pos, *table, *ids;
    double *u;
    uint32_t *banned;
    Pages pages;
    double bandwidth;
} Bench;

typedef void Part(const Bench *b, int layer);

static void linear(const Bench *b, const Linear *l, int gated)
{
    Product p = {.sums = b->parts,
                 .out = gated ? b->act : NULL,
                 .x = b->x,
                 .w = weight_at(b->m, l->weight),
                 .rows = b->rows,
                 .n = gated ? l->n / 2 : l->n,
                 .k = l->k,
                 .gated = gated};
    cuda_product(&p);
}

static void part_qkv(const Bench *b, int i)
{
    linear(b, &b->m->layer[i].qkv, 0);
}
static void part_o(const Bench *b, int i)
{
    linear(b, &b->m->layer[i].o, 0);
}
static void part_gate_up(const Bench *b, int i)
{
    linear(b, &b->m->layer[i].gate_up, 1);
}
static void part_down(const Bench *b, int i)
{
    linear(b, &b->m->layer[i].down, 0);
}

static KvRows kv_rows(const Bench *b)
{
    return (KvRows){b->pos, b->table, (b->tokens + KV_PAGE - 1) / KV_PAGE};
}

static void part_fresh(const Bench *b, int i)
{
    const Linear *l = &b->m->layer[i].qkv;
    Fresh f = {.q = b->y,
               .parts = b->parts,
               .bias = l->has_bias ? weight_at(b->m, l->bias) : NULL,
               .cosines = b->m->cosines,
               .sines = b->m->sines,
               .planes = 1,
               .rows = b->rows,
               .heads = b->m->c.heads,
               .layer = i,
               .eps = 1e-6f};
    KvRows rows = kv_rows(b);
    cuda_fresh_heads(&f, &rows, &b->pages);
}

static void part_attend(const Bench *b, int i)
{
    KvRows rows = kv_rows(b);
    cuda_attend(b->x, b->y, b->parts, &rows, &b->pages, b->rows, b->m->c.heads, i, b->tokens);
}

static void part_residual(const Bench *b, int i)
{
    Residual r = {.x = b->stream,
                  .normed = b->y,
                  .parts = b->parts,
                  .planes = 1,
                  .w = weight_at(b->m, b->m->layer[i].post_norm),
                  .rows = b->rows,
                  .n = b->m->c.hidden,
                  .eps = 1e-6f};
    cuda_residual_norm(&r);
}

static void part_head(const Bench *b, int i)
{
    Product p = {.sums = b->parts,
                 .x = b->x,
                 .w = weight_at(b->m, b->m->head),
                 .rows = b->rows,
                 .n = b->m->c.vocab,
                 .k = b->m->c.hidden};
    (void)i;
    cuda_product(&p);
}

static void part_draw(const Bench *b, int i)
{
    DrawRows law = {.logits = b->parts,
                    .ld = (size_t)b->m->c.vocab,
                    .banned = b->banned,
                    .vocab = b->m->c.vocab,
                    .inverse = 1,
                    .top_p = 1};
    (void)i;
    cuda_draw(b->ids, (float *)b->ids + b->rows, &law, b->u, b->act, b->rows);
}

/* Returns the seconds of one part of one layer, or -1 after a failure. */
static double time_part(const Bench *b, Part *part, int layers)
{
    const CudaState *s = cuda_state();
    CuGraph graph = NULL;
    CuGraphExec exec = NULL;
    double best = INFINITY;
    if (cuda_begin()) return -1;
    CUDA_TRY(s->cu->capture_begin(s->stream, CU_CAPTURE_THREAD_LOCAL),
             "a part of a step is not recorded");
    if (cuda_failed()) return -1;
    for (int r = 0; r < REPEATS; r++)
        for (int i = 0; i < layers; i++) {
            part(b, i);
            cuda_overlap(1);
        }
    cuda_overlap(0);
    CuResult end = s->cu->capture_end(s->stream, &graph);
    if (end) cuda_fail(end, "a part of a step is not recorded");
    CUDA_TRY(s->cu->graph_instantiate(&exec, graph, 0), "the graph of a part is not made");
    for (int r = 0; r < ROUNDS && !cuda_failed(); r++) {
        cuda_wait();
        double begin = clock_seconds();
        if (cuda_begin()) break;
        CUDA_TRY(s->cu->graph_launch(exec, s->stream), "the graph of a part did not start");
        cuda_wait();
        double t = clock_seconds() - begin;
        best = t < best ? t : best;
    }
    if (graph) s->cu->graph_destroy(graph);
    if (exec) s->cu->graph_exec_destroy(exec);
    return cuda_failed() ? -1 : best / (REPEATS * layers);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void make_bench(Bench *b)
{
    const Model *m = b->m;
    const ModelConfig *c = &m->c;
    /* The widest sums of a layer. */
    int widest = m->layer[0].qkv.n > c->hidden ? m->layer[0].qkv.n : c->hidden;
    size_t rows = (size_t)b->rows, parts = larger(cuda_attend_scratch(b->rows, c->heads, b->tokens),
                                                  rows * (size_t)c->vocab);
    size_t wide = larger((size_t)c->hidden, (size_t)(c->heads * c->head_dim)),
           ld = (size_t)(b->tokens + KV_PAGE - 1) / KV_PAGE;
    parts = larger(parts, rows * (size_t)widest);
    b->x = cuda_alloc(rows * larger(wide, (size_t)c->ff) * 2);
    b->y = cuda_alloc(rows * wide * 2);
    b->stream = cuda_alloc(rows * (size_t)c->hidden * sizeof *b->stream);
    b->act = cuda_alloc(larger(rows * (size_t)c->ff * 2, cuda_draw_scratch(b->rows, c->vocab)));
    b->parts = cuda_alloc(parts * sizeof(float));
    b->banned = cuda_alloc((size_t)c->vocab / 8 + 8);
    b->u = cuda_alloc(rows * sizeof *b->u);
    b->ids = cuda_alloc(rows * 8);
    b->pos = cuda_alloc(rows * sizeof *b->pos);
    b->table = cuda_alloc(rows * ld * sizeof *b->table);
    b->pages = (Pages){.layers = c->layers, .kv_heads = c->kv_heads, .dim = c->head_dim};
    b->pages.data = cuda_alloc(rows * ld * page_nums(&b->pages) * 2);
    for (size_t r = 0; r < rows && !cuda_failed(); r++) {
        int32_t pos = b->tokens - 1;
        cuda_upload(b->pos + r, &pos, sizeof pos);
        for (size_t i = 0; i < ld; i++) {
            int32_t page = (int32_t)(r * ld + i);
            cuda_upload(b->table + r * ld + i, &page, sizeof page);
        }
    }
}

static void free_bench(Bench *b)
{
    void *all[] = {b->x, b->y,   b->act, b->stream, b->parts,     b->banned,
                   b->u, b->ids, b->pos, b->table,  b->pages.data};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) cuda_release(all[i]);
}

static double linear_bytes(const Linear *l)
{
    return 2.0 * l->n * l->k;
}

int bench_step_parts(Model *m, int rows, int tokens, double bandwidth, Error *err)
{
    const ModelConfig *c = &m->c;
    const LayerAt *l = &m->layer[0];
    Bench b = {.m = m, .rows = rows, .tokens = tokens, .bandwidth = bandwidth};
    model_reserve_positions(m, tokens);
    make_bench(&b);
    const struct {
        const char *name;
        Part *part;
        double bytes;
        int layers;
    } parts[] = {
        {"q|k|v", part_qkv, linear_bytes(&l->qkv), c->layers},
        {"new heads", part_fresh, 0, c->layers},
        {"attention", part_attend, 4.0 * rows * tokens * c->kv_heads * c->head_dim, c->layers},
        {"o", part_o, linear_bytes(&l->o), c->layers},
        {"residual and norm", part_residual, 0, c->layers},
        {"gate|up, SwiGLU", part_gate_up, linear_bytes(&l->gate_up), c->layers},
        {"down", part_down, linear_bytes(&l->down), c->layers},
        {"head", part_head, 2.0 * c->vocab * c->hidden, 1},
        {"drawing", part_draw, 4.0 * rows * c->vocab, 1}};
    double step = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !cuda_failed(); i++) {
        double t = time_part(&b, parts[i].part, parts[i].layers),
               all = t * parts[i].layers * (parts[i].part == part_residual ? 2 : 1);
        step += all;
        printf("  %-18s %9.2f us a layer, %8.3f ms a step", parts[i].name, 1e6 * t, 1e3 * all);
        if (parts[i].bytes > 0) printf(", %.2f TB/s", parts[i].bytes / t / 1e12);
        if (parts[i].bytes > 0 && bandwidth > 0)
            printf(" (%.0f%%)", 100 * parts[i].bytes / t / bandwidth);
        putchar('\n');
    }
    printf("  their sum, %d rows at %d tokens: %.3f ms\n", rows, tokens, 1e3 * step);
    free_bench(&b);
    return m->ops->status(err);
}
