/* The decoder on the CPU: packed weights, scratch memory per thread, the keys and values of each
 * prompt once, and those of each row's own tokens. The bits of a row do not depend on the number of
 * rows or threads. */

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/cpu/cpu_kernels.h"

/* The keys and values of one prompt, for the rows that continue it. */
typedef struct {
    KvStore kv;
    int users; /* rows, plus 1 while it is the decoder's last prompt */
} Prefix;

typedef struct {
    Prefix *prefix;
    KvStore own;
} Slot;

/* The weights of a projection and its adapter, y += scale x A^T B^T, with B as one matrix for all
 * parts. */
typedef struct {
    Packed w, a, b; /* a, b: data is NULL without an adapter */
} Projection;

typedef struct {
    Projection qkv, o, gate_up, down;
} LayerPacked;

typedef struct {
    Decoder base;
    LayerPacked *layer;
    Packed head;
    size_t scratch, score_at; /* floats of one part, and the offset of its attention scores */
    float *arena;
    Prefix *prompt;       /* the last prompt */
    float *prompt_logits; /* [vocab] */
    Slot *slot;           /* [rows] */
    /* [rows], like the arrays below: indexed by the position of a row in the call */
    KvRow *view;
    int32_t *pos, *ids;
    float *logits, *probs; /* [rows][vocab] */
    DrawCandidate *order;  /* [rows][vocab] if the law sorts, else NULL */
    DecoderRow *rows;      /* rows of the current call */
} CpuDecoder;

/* ---- keys and values ---- */

static void kv_create(KvStore *s, const Model *m, int tokens)
{
    size_t heads = (size_t)m->c.layers * (size_t)m->c.kv_heads, d = (size_t)m->c.head_dim;
    *s = (KvStore){.cap = (tokens + 15) / 16 * 16};
    s->k = m->ops->alloc(heads * (size_t)s->cap * d * sizeof *s->k);
    s->v = m->ops->alloc(heads * (size_t)s->cap * ((d + 15) & ~(size_t)15) * sizeof *s->v);
}

static void kv_release(KvStore *s, const Model *m)
{
    m->ops->release(s->k);
    m->ops->release(s->v);
    *s = (KvStore){0};
}

static void drop_prefix(const Model *m, Prefix *p)
{
    if (!p || --p->users) return;
    kv_release(&p->kv, m);
    free(p);
}

/* ---- weights ---- */

static void pack_projection(Projection *p, const Model *m, const Linear *l)
{
    const Ops *op = m->ops;
    op->pack(&p->w, weight_at(m, l->weight), l->n, l->k);
    if (!l->u) return;
    const float *lora = m->lora.data;
    int rank = m->lora_options.rank;
    float *b = memory_array((size_t)l->n * (size_t)l->u, sizeof *b);
    for (int i = 0; i < l->parts; i++) {
        const LinearPart *part = &l->part[i];
        for (int j = 0; j < part->n && part->u >= 0; j++)
            memcpy(b + (size_t)(part->first + j) * (size_t)l->u + part->u,
                   lora + part->b + (size_t)j * (size_t)rank, (size_t)rank * sizeof *b);
    }
    op->pack(&p->a, lora + l->a, l->u, l->k);
    op->pack(&p->b, b, l->n, l->u);
    free(b);
}

static void release_projection(Projection *p, const Ops *op)
{
    op->release(p->w.data);
    op->release(p->a.data);
    op->release(p->b.data);
}

/* y = x W^T, or with `add` y += x W^T, plus the adapter's part. u is scratch. */
static void project(const Model *m, float *y, const float *x, const Projection *p, int rows,
                    int add, float *u)
{
    m->ops->matmul_packed(y, x, &p->w, rows, add);
    if (!p->a.data) return;
    m->ops->matmul_packed(u, x, &p->a, rows, 0);
    for (int i = 0; i < rows * p->a.n; i++) u[i] *= m->lora_scale;
    m->ops->matmul_packed(y, u, &p->b, rows, 1);
}

/* ---- a step ---- */

typedef struct {
    float *x, *norm, *qkv, *att, *gate_up, *act, *u, *scores;
} Scratch;

static int widest_u(const Model *m)
{
    const LayerAt *l = m->layer;
    int u = l->qkv.u > l->o.u ? l->qkv.u : l->o.u,
        v = l->gate_up.u > l->down.u ? l->gate_up.u : l->down.u;
    return u > v ? u : v;
}

static Scratch scratch_of(const CpuDecoder *d, int part)
{
    const Model *m = d->base.model;
    const ModelConfig *c = &m->c;
    size_t rows = (size_t)d->base.plan.rows, h = (size_t)c->hidden;
    Scratch s = {.x = d->arena + (size_t)part * d->scratch};
    s.norm = s.x + rows * h;
    s.qkv = s.norm + rows * h;
    s.att = s.qkv + rows * (size_t)head_row(m->shape);
    s.gate_up = s.att + rows * (size_t)c->heads * (size_t)c->head_dim;
    s.act = s.gate_up + rows * 2 * (size_t)c->ff;
    s.u = s.act + rows * (size_t)c->ff;
    s.scores = s.x + d->score_at;
    return s;
}

static void step_attention(const CpuDecoder *d, int i, const Scratch *s, const KvRow *row,
                           const Rotation *angles)
{
    const Model *m = d->base.model;
    const Ops *op = m->ops;
    const LayerAt *at = &m->layer[i];
    const CachedLayer cached = {i, m->shape, s->scores};
    int ld = head_row(m->shape), rows = angles->rows;
    Norm in = norm_of_rows(m, s->x, at->in_norm, rows);
    op->rmsnorm(s->norm, &in);
    project(m, s->qkv, s->norm, &d->layer[i].qkv, rows, 0, s->u);
    if (m->c.qkv_bias) cpu_add_bias(s->qkv, weight_at(m, at->qkv.bias), rows, ld);
    if (m->c.qk_norm) {
        Norm q = norm_of_heads(m, s->qkv, at, 0, rows), k = norm_of_heads(m, s->qkv, at, 1, rows);
        op->head_norm(s->qkv, &q);
        op->head_norm(s->qkv + m->c.heads * m->c.head_dim, &k);
    }
    op->rope(s->qkv, angles, m->shape, 1);
    for (int r = 0; r < rows; r++)
        cpu_kv_put(row[r].own, &cached, row[r].own->len - 1, s->qkv + (size_t)r * (size_t)ld, 1);
    cpu_attention_cached(s->att, s->qkv, row, rows, &cached);
    project(m, s->x, s->att, &d->layer[i].o, rows, 1, s->u);
}

static void draw_row(CpuDecoder *d, int at, DecoderRow *row, const float *logits)
{
    size_t vocab = (size_t)d->base.model->c.vocab;
    row->id = draw_token(&d->base.plan.law, logits, row->u, d->probs + (size_t)at * vocab,
                         d->order ? d->order + (size_t)at * vocab : NULL, &row->logp);
}

static void step_rows(void *ctx, int part, int first, int rows)
{
    CpuDecoder *d = ctx;
    const Model *m = d->base.model;
    const ModelConfig *c = &m->c;
    const Ops *op = m->ops;
    Scratch s = scratch_of(d, part);
    int32_t *pos = d->pos + first;
    float *logits = d->logits + (size_t)first * (size_t)c->vocab;
    for (int r = 0; r < rows; r++) {
        const KvRow *k = &d->view[first + r];
        pos[r] = k->prefix->len + k->own->len++;
    }
    Rotation angles = model_rotation(m, pos, rows);
    op->embed(s.x, weight_at(m, m->embed), d->ids + first, rows, c->hidden);
    for (int i = 0; i < c->layers; i++) {
        step_attention(d, i, &s, d->view + first, &angles);
        Norm mid = norm_of_rows(m, s.x, m->layer[i].post_norm, rows);
        op->rmsnorm(s.norm, &mid);
        project(m, s.gate_up, s.norm, &d->layer[i].gate_up, rows, 0, s.u);
        op->swiglu(s.act, s.gate_up, rows, c->ff);
        project(m, s.x, s.act, &d->layer[i].down, rows, 1, s.u);
    }
    Norm out = norm_of_rows(m, s.x, m->norm, rows);
    op->rmsnorm(s.norm, &out);
    op->matmul_packed(logits, s.norm, &d->head, rows, 0);
    for (int r = 0; r < rows; r++)
        draw_row(d, first + r, &d->rows[first + r], logits + (size_t)r * (size_t)c->vocab);
}

/* ---- the members of DecoderType ---- */

static int step(Decoder *base, DecoderRow *rows, int n, Error *err)
{
    CpuDecoder *d = (CpuDecoder *)base;
    (void)err;
    d->rows = rows;
    for (int i = 0; i < n; i++) {
        d->ids[i] = rows[i].id;
        d->view[i] = (KvRow){&d->slot[rows[i].slot].prefix->kv, &d->slot[rows[i].slot].own};
    }
    base->model->ops->parallel(n, step_rows, d);
    return 0;
}

static int first(Decoder *base, DecoderRow *rows, int n, Error *err)
{
    CpuDecoder *d = (CpuDecoder *)base;
    (void)err;
    for (int i = 0; i < n; i++) draw_row(d, i, &rows[i], d->prompt_logits);
    return 0;
}

typedef struct {
    KvStore *kv;
    HeadShape shape;
} KeepKv;

static void keep_layer(void *ctx, int layer, const Num *qkv, int rows)
{
    const KeepKv *k = ctx;
    cpu_kv_put(k->kv, &(CachedLayer){layer, k->shape, NULL}, 0, qkv, rows);
}

static int prefill(Decoder *base, const int32_t *ids, int len, int copies, Error *err)
{
    CpuDecoder *d = (CpuDecoder *)base;
    Model *m = base->model;
    (void)err, (void)copies;
    drop_prefix(m, d->prompt);
    d->prompt = memory_array(1, sizeof *d->prompt);
    d->prompt->users = 1;
    kv_create(&d->prompt->kv, m, len);
    KeepKv keep = {&d->prompt->kv, m->shape};
    const Num *last = decoder_forward(base, ids, len, keep_layer, &keep);
    d->prompt->kv.len = len;
    m->ops->matmul_packed(d->prompt_logits, last, &d->head, 1, 0);
    return 1;
}

static int attach(Decoder *base, int slot, Error *err)
{
    CpuDecoder *d = (CpuDecoder *)base;
    Slot *s = &d->slot[slot];
    (void)err;
    s->prefix = d->prompt;
    s->prefix->users++;
    if (!s->own.k) kv_create(&s->own, base->model, base->plan.max_new); /* kept for the next row */
    s->own.len = 0;
    return 1;
}

static void detach(Decoder *base, int slot)
{
    Slot *s = &((CpuDecoder *)base)->slot[slot];
    drop_prefix(base->model, s->prefix);
    s->prefix = NULL;
}

static void cpu_free(Decoder *base)
{
    CpuDecoder *d = (CpuDecoder *)base;
    const Model *m = base->model;
    const Ops *op = m->ops;
    for (int i = 0; i < m->c.layers; i++) {
        release_projection(&d->layer[i].qkv, op);
        release_projection(&d->layer[i].o, op);
        release_projection(&d->layer[i].gate_up, op);
        release_projection(&d->layer[i].down, op);
    }
    for (int i = 0; i < base->plan.rows; i++) {
        detach(base, i);
        kv_release(&d->slot[i].own, m);
    }
    drop_prefix(m, d->prompt);
    op->release(d->head.data);
    op->release(d->arena);
    op->release(d->logits);
    op->release(d->prompt_logits);
    decoder_release(base);
    free(d->layer);
    free(d->slot);
    free(d->view);
    free(d->pos);
    free(d->ids);
    free(d->probs);
    free(d->order);
    free(d);
}

static const DecoderType cpu_type = {cpu_free, prefill, attach, detach, first, step};

int decoder_create_cpu(Model *m, const DecoderPlan *plan, Decoder **out, Error *err)
{
    const ModelConfig *c = &m->c;
    const Ops *op = m->ops;
    size_t rows = (size_t)plan->rows, h = (size_t)c->hidden, row = (size_t)head_row(m->shape),
           vocab = (size_t)c->vocab;
    size_t wide = (size_t)c->heads * (size_t)c->head_dim,
           tokens = (size_t)plan->prompt + (size_t)plan->max_new;
    CpuDecoder *d = memory_array(1, sizeof *d);
    (void)err;
    d->base = (Decoder){.type = &cpu_type, .model = m, .plan = *plan};
    d->layer = memory_array((size_t)c->layers, sizeof *d->layer);
    for (int i = 0; i < c->layers; i++) {
        pack_projection(&d->layer[i].qkv, m, &m->layer[i].qkv);
        pack_projection(&d->layer[i].o, m, &m->layer[i].o);
        pack_projection(&d->layer[i].gate_up, m, &m->layer[i].gate_up);
        pack_projection(&d->layer[i].down, m, &m->layer[i].down);
    }
    op->pack(&d->head, weight_at(m, m->head), c->vocab, c->hidden);
    d->score_at = rows * (2 * h + row + wide + 3 * (size_t)c->ff + (size_t)widest_u(m));
    d->score_at = (d->score_at + 15) & ~(size_t)15;
    d->scratch = d->score_at + (size_t)(c->heads / c->kv_heads) * (tokens + 64);
    d->scratch = (d->scratch + 15) & ~(size_t)15;
    d->arena = op->alloc(d->scratch * (size_t)op->parts() * sizeof *d->arena);
    d->logits = op->alloc(rows * vocab * sizeof *d->logits);
    d->prompt_logits = op->alloc(vocab * sizeof *d->prompt_logits);
    d->slot = memory_array(rows, sizeof *d->slot);
    d->view = memory_array(rows, sizeof *d->view);
    d->pos = memory_array(rows, sizeof *d->pos);
    d->ids = memory_array(rows, sizeof *d->ids);
    d->probs = memory_array(rows * vocab, sizeof *d->probs);
    if (draw_sorts(&plan->law)) d->order = memory_array(rows * vocab, sizeof *d->order);
    model_reserve_positions(m, (int)tokens);
    *out = &d->base;
    return 0;
}

void decoder_memory_cpu(const Model *m, const DecoderPlan *plan, size_t available,
                        DecoderMemory *out)
{
    *out = (DecoderMemory){.room = available, .held = available, .token = decoder_token_bytes(m)};
    out->tokens = (int64_t)(available / out->token);
    out->all_fit = (int64_t)plan->rows * ((int64_t)plan->prompt + plan->max_new) <= out->tokens;
}
