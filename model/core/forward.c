/* The forward pass over a batch of whole sequences, and the memory of its activations. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/core/transformer.h"

void *arena_take(Arena *a, size_t rows, size_t width, size_t size)
{
    void *p = a->base ? a->base + a->used : NULL;
    a->used += (rows * width * size + 255) & ~(size_t)255;
    return p;
}

static void layer_place(LayerActs *l, const Model *m, const LayerAt *at, size_t rows, Arena *from)
{
    size_t h = (size_t)m->c.hidden, row = (size_t)head_row(m->shape), ff = (size_t)m->c.ff;
    size_t heads = (size_t)m->c.heads, dim = (size_t)m->c.head_dim, num = (size_t)m->ops->num;
    l->n1 = arena_take(from, rows, h, num);
    l->raw = m->c.qk_norm ? arena_take(from, rows, row, num) : NULL;
    l->qkv = arena_take(from, rows, row, num);
    l->att = arena_take(from, rows, heads * dim, num);
    l->lse = arena_take(from, rows, heads, sizeof *l->lse);
    l->mid = arena_take(from, rows, h, sizeof *l->mid);
    l->n2 = arena_take(from, rows, h, num);
    l->gate_up = arena_take(from, rows, 2 * ff, num);
    l->act = arena_take(from, rows, ff, num);
    l->u_qkv = arena_take(from, rows, (size_t)at->qkv.u, num);
    l->u_o = arena_take(from, rows, (size_t)at->o.u, num);
    l->u_gate_up = arena_take(from, rows, (size_t)at->gate_up.u, num);
    l->u_down = arena_take(from, rows, (size_t)at->down.u, num);
}

static void acts_place(Acts *a, const Model *m, Arena *from)
{
    size_t rows = (size_t)a->rows, h = (size_t)m->c.hidden, num = (size_t)m->ops->num;
    for (int i = 0; i < m->c.layers; i++) {
        LayerActs *l = &a->layer[i];
        if (!i || a->keep == KEEP_ALL)
            layer_place(l, m, &m->layer[i], rows, from);
        else
            *l = a->layer[0];
        if (!i || a->keep != KEEP_ONE) l->x = arena_take(from, rows, h, sizeof *l->x);
    }
    a->out = arena_take(from, rows, h, sizeof *a->out);
    a->normed = arena_take(from, rows, h, num);
    a->logp = arena_take(from, rows, 1, sizeof *a->logp);
    a->logit_lse = arena_take(from, rows, 1, sizeof *a->logit_lse);
}

size_t acts_bytes(const Model *m, int rows, KeepActs keep)
{
    Acts a = {
        .rows = rows, .keep = keep, .layer = memory_array((size_t)m->c.layers, sizeof *a.layer)};
    Arena size = {0};
    acts_place(&a, m, &size);
    free(a.layer);
    return size.used;
}

void acts_reserve(Acts *a, const Model *m, int rows, KeepActs keep)
{
    if (rows <= a->rows && keep == a->keep) return;
    acts_release(a, m);
    a->rows = rows;
    a->keep = keep;
    a->layer = memory_array((size_t)m->c.layers, sizeof *a->layer);
    Arena from = {.base = a->arena = m->ops->alloc(acts_bytes(m, rows, keep))};
    acts_place(a, m, &from);
}

void acts_release(Acts *a, const Model *m)
{
    free(a->layer);
    m->ops->release(a->arena);
    m->ops->release(a->logits);
    *a = (Acts){0};
}

static void layer_attention(Model *m, LayerActs *l, const LayerAt *at, const TokenBatch *b)
{
    const Ops *op = m->ops;
    int rows = b->rows;
    Norm in = norm_of_rows(m, l->x, at->in_norm, rows);
    Rotation angles = model_rotation(m, b->view.pos, rows);
    op->rmsnorm(l->n1, &in);
    linear_forward(m, &(LinearUse){&at->qkv, l->n1, l->u_qkv, rows}, NULL,
                   m->c.qk_norm ? l->raw : l->qkv);
    if (m->c.qk_norm) {
        Norm q = norm_of_heads(m, l->raw, at, 0, rows), k = norm_of_heads(m, l->raw, at, 1, rows);
        op->copy(l->qkv, l->raw, (size_t)rows * (size_t)head_row(m->shape) * (size_t)op->num);
        op->head_norm(l->qkv, &q);
        op->head_norm(num_at(op, l->qkv, (size_t)m->c.heads * (size_t)m->c.head_dim), &k);
    }
    op->rope(l->qkv, &angles, m->shape, 1);
    op->attention(l->att, l->lse, l->qkv, &b->view, m->shape);
    linear_forward(m, &(LinearUse){&at->o, l->att, l->u_o, rows}, l->x, l->mid);
}

/* The MLP up to the input of the down projection. */
static void layer_mlp(Model *m, LayerActs *l, const LayerAt *at, int rows)
{
    Norm mid = norm_of_rows(m, l->mid, at->post_norm, rows);
    m->ops->rmsnorm(l->n2, &mid);
    linear_forward(m, &(LinearUse){&at->gate_up, l->n2, l->u_gate_up, rows}, NULL, l->gate_up);
    m->ops->swiglu(l->act, l->gate_up, rows, m->c.ff);
}

void forward_hidden(Model *m, Acts *a, const TokenBatch *b, LayerDone *then, void *ctx)
{
    const ModelConfig *c = &m->c;
    model_reserve_positions(m, b->longest);
    m->ops->embed(a->layer[0].x, weight_at(m, m->embed), b->view.ids, b->rows, c->hidden);
    for (int i = 0; i < c->layers; i++) {
        LayerActs *l = &a->layer[i];
        layer_attention(m, l, &m->layer[i], b);
        if (then) then(ctx, i, l->qkv, b->rows);
        layer_mlp(m, l, &m->layer[i], b->rows);
        linear_forward(m, &(LinearUse){&m->layer[i].down, l->act, l->u_down, b->rows}, l->mid,
                       i + 1 == c->layers ? a->out : a->layer[i + 1].x);
    }
    Norm out = norm_of_rows(m, a->out, m->norm, b->rows);
    m->ops->rmsnorm(a->normed, &out);
}

void recompute_layer(Model *m, Acts *a, int layer, const TokenBatch *b)
{
    LayerActs *l = &a->layer[layer];
    layer_attention(m, l, &m->layer[layer], b);
    layer_mlp(m, l, &m->layer[layer], b->rows);
    linear_inner(m, &(LinearUse){&m->layer[layer].down, l->act, l->u_down, b->rows});
}

void forward_logp(Model *m, Acts *a, const TokenBatch *b)
{
    forward_hidden(m, a, b, NULL, NULL);
    head_logp(m, a, b);
}

int model_logprobs(Model *m, const Sequence *seqs, int n, float *const *logp, Error *err)
{
    enum { MAX_TOKENS = 4096 };
    if (batch_check(m, seqs, n, err)) return -1;
    Acts acts = {0};
    TokenBatch batch = {0};
    int64_t total = 0;
    for (int i = 0; i < n; i++) total += seqs[i].len;
    int usual = total < MAX_TOKENS ? (int)total : MAX_TOKENS, rc = 0;
    float *host = NULL;
    for (int i = 0; i < n && !rc;) {
        int k = batch_fit(seqs + i, n - i, MAX_TOKENS);
        batch_pack(&batch, m->ops, seqs + i, k);
        int rows = batch.rows > usual ? batch.rows : usual;
        acts_reserve(&acts, m, rows, KEEP_ONE);
        head_reserve(&acts, m, head_rows(m, rows, HEAD_FORWARD));
        forward_logp(m, &acts, &batch);
        host = memory_grow(host, (size_t)batch.rows, sizeof *host);
        m->ops->download(host, acts.logp, (size_t)batch.rows * sizeof *host);
        for (int s = 0; s < k; s++, i++) {
            logp[i][0] = 0;
            memcpy(logp[i] + 1, host + batch.start[s], (size_t)(seqs[i].len - 1) * sizeof **logp);
        }
        rc = m->ops->status(err);
    }
    free(host);
    acts_release(&acts, m);
    batch_release(&batch, m->ops);
    return rc;
}
