#include "model/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void kv_create(KvStore *s, const Model *m, int tokens)
{
    size_t heads = (size_t)m->c.layers * (size_t)m->c.kv_heads, d = (size_t)m->c.head_dim;
    *s = (KvStore){.cap = (tokens + 15) / 16 * 16};
    s->k = m->ops->alloc(heads * (size_t)s->cap * d);
    s->v = m->ops->alloc(heads * (size_t)s->cap * ((d + 15) & ~(size_t)15));
}

void kv_release(KvStore *s, const Model *m)
{
    m->ops->release(s->k);
    m->ops->release(s->v);
    *s = (KvStore){0};
}

void decoder_create(Decoder *d, Model *m, int rows, int tokens)
{
    const ModelConfig *c = &m->c;
    const Ops *op = m->ops;
    size_t h = (size_t)c->hidden, row = (size_t)head_row(m->shape), wide = (size_t)c->heads * (size_t)c->head_dim;
    *d = (Decoder){.model = m, .rows = rows, .parts = op->parts()};
    d->layer = memory_array((size_t)c->layers, sizeof *d->layer);
    for (int i = 0; i < c->layers; i++) {
        op->pack(&d->layer[i].qkv, m->data + m->layer[i].qkv, (int)row, c->hidden);
        op->pack(&d->layer[i].o, m->data + m->layer[i].o, c->hidden, (int)wide);
        op->pack(&d->layer[i].gate_up, m->data + m->layer[i].gate_up, 2 * c->ff, c->hidden);
        op->pack(&d->layer[i].down, m->data + m->layer[i].down, c->hidden, c->ff);
    }
    op->pack(&d->head, m->data + m->head, c->vocab, c->hidden);
    d->score_at = (size_t)rows * (2 * h + row + wide + 3 * (size_t)c->ff);
    d->score_at = (d->score_at + 15) & ~(size_t)15;
    d->scratch = d->score_at + (size_t)(c->heads / c->kv_heads) * ((size_t)tokens + 64);
    d->scratch = (d->scratch + 15) & ~(size_t)15;
    d->arena = op->alloc(d->scratch * (size_t)d->parts);
    d->pos = memory_array((size_t)rows, sizeof *d->pos);
    d->logits = op->alloc((size_t)rows * (size_t)c->vocab);
    model_reserve_positions(m, tokens);
}

void decoder_release(Decoder *d)
{
    const Ops *op = d->model->ops;
    for (int i = 0; i < d->model->c.layers; i++) {
        op->release(d->layer[i].qkv.data);
        op->release(d->layer[i].o.data);
        op->release(d->layer[i].gate_up.data);
        op->release(d->layer[i].down.data);
    }
    free(d->layer);
    free(d->pos);
    op->release(d->head.data);
    op->release(d->arena);
    op->release(d->logits);
}

typedef struct {
    Decoder *d;
    const int32_t *ids;
    const KvRow *row;
    void (*then)(void *ctx, int first, int rows);
    void *ctx;
} Step;

typedef struct {
    float *x, *norm, *qkv, *att, *gate_up, *act, *scores;
} Scratch;

static Scratch scratch_of(const Decoder *d, int part)
{
    const ModelConfig *c = &d->model->c;
    size_t rows = (size_t)d->rows, h = (size_t)c->hidden;
    Scratch s = {.x = d->arena + (size_t)part * d->scratch};
    s.norm = s.x + rows * h;
    s.qkv = s.norm + rows * h;
    s.att = s.qkv + rows * (size_t)head_row(d->model->shape);
    s.gate_up = s.att + rows * (size_t)c->heads * (size_t)c->head_dim;
    s.act = s.gate_up + rows * 2 * (size_t)c->ff;
    s.scores = s.x + d->score_at;
    return s;
}

static void step_attention(const Decoder *d, int i, const Scratch *s, const KvRow *row, const int32_t *pos, int rows)
{
    const Model *m = d->model;
    const ModelConfig *c = &m->c;
    const Ops *op = m->ops;
    const LayerAt *at = &m->layer[i];
    int ld = head_row(m->shape), wide = c->heads * c->head_dim;
    op->rmsnorm(s->norm, s->x, m->data + at->in_norm, rows, 1, c->hidden, c->hidden, c->norm_eps);
    op->matmul_packed(s->qkv, s->norm, &d->layer[i].qkv, rows, 0);
    if (c->qkv_bias) op->add_bias(s->qkv, m->data + at->qkv_bias, rows, ld);
    if (c->qk_norm) {
        op->rmsnorm(s->qkv, s->qkv, m->data + at->q_norm, rows, c->heads, c->head_dim, ld, c->norm_eps);
        op->rmsnorm(s->qkv + wide, s->qkv + wide, m->data + at->k_norm, rows, c->kv_heads, c->head_dim, ld, c->norm_eps);
    }
    op->rope(s->qkv, pos, m->cosines, m->sines, rows, m->shape, 1);
    for (int r = 0; r < rows; r++)
        op->kv_put(row[r].own, i, row[r].own->len - 1, s->qkv + (size_t)r * (size_t)ld, 1, m->shape);
    op->attention_cached(s->att, s->qkv, row, rows, i, m->shape, s->scores);
    op->matmul_packed(s->x, s->att, &d->layer[i].o, rows, 1);
}

static void step_rows(void *ctx, int part, int first, int rows)
{
    Step *step = ctx;
    const Decoder *d = step->d;
    const Model *m = d->model;
    const ModelConfig *c = &m->c;
    const Ops *op = m->ops;
    Scratch s = scratch_of(d, part);
    int32_t *pos = d->pos + first;
    for (int r = 0; r < rows; r++) {
        const KvRow *k = &step->row[first + r];
        pos[r] = k->prefix->len + k->own->len++;
    }
    op->embed(s.x, m->data + m->embed, step->ids + first, rows, c->hidden);
    for (int i = 0; i < c->layers; i++) {
        step_attention(d, i, &s, step->row + first, pos, rows);
        op->rmsnorm(s.norm, s.x, m->data + m->layer[i].post_norm, rows, 1, c->hidden, c->hidden, c->norm_eps);
        op->matmul_packed(s.gate_up, s.norm, &d->layer[i].gate_up, rows, 0);
        op->swiglu(s.act, s.gate_up, rows, c->ff);
        op->matmul_packed(s.x, s.act, &d->layer[i].down, rows, 1);
    }
    op->rmsnorm(s.norm, s.x, m->data + m->norm, rows, 1, c->hidden, c->hidden, c->norm_eps);
    op->matmul_packed(d->logits + (size_t)first * (size_t)c->vocab, s.norm, &d->head, rows, 0);
    step->then(step->ctx, first, rows);
}

void decoder_step(Decoder *d, const int32_t *ids, const KvRow *row, int rows,
                  void (*then)(void *ctx, int first, int rows), void *ctx)
{
    Step step = {.d = d, .ids = ids, .row = row, .then = then, .ctx = ctx};
    d->model->ops->parallel(rows, step_rows, &step);
}

void decoder_logits(Decoder *d, const float *normed, int rows)
{
    d->model->ops->matmul_packed(d->logits, normed, &d->head, rows, 0);
}
