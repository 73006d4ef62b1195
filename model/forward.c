/* The forward pass over a batch of whole sequences. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/transformer.h"

/* Logits of a whole micro-batch are kept up to this many floats (64 MiB); above, they are made again
 * in pieces on the way back. */
enum { LOGITS_KEPT = 16 << 20, LOGIT_ROWS = 256 };

/* With no base the sizes are only counted. */
typedef struct {
    float *base;
    size_t used;
} Arena;

static float *take(Arena *a, size_t rows, size_t width)
{
    float *p = a->base ? a->base + a->used : NULL;
    a->used += (rows * width + 15) & ~(size_t)15;
    return p;
}

static void acts_place(Acts *a, const Model *m, Arena *from)
{
    size_t rows = (size_t)a->rows, h = (size_t)m->c.hidden, row = (size_t)head_row(m->shape), ff = (size_t)m->c.ff;
    size_t heads = (size_t)m->c.heads, dim = (size_t)m->c.head_dim;
    for (int i = 0; i < a->kept; i++) {
        LayerActs *l = &a->layer[i];
        l->x = take(from, rows, h);
        l->n1 = take(from, rows, h);
        l->raw = m->c.qk_norm ? take(from, rows, row) : NULL;
        l->qkv = take(from, rows, row);
        l->att = take(from, rows, heads * dim);
        l->lse = take(from, rows, heads);
        l->mid = take(from, rows, h);
        l->n2 = take(from, rows, h);
        l->gate_up = take(from, rows, 2 * ff);
        l->act = take(from, rows, ff);
    }
    a->out = take(from, rows, h);
    a->normed = take(from, rows, h);
    a->logp = take(from, rows, 1);
    a->logit_lse = take(from, rows, 1);
    a->logits = take(from, (size_t)a->logit_rows, (size_t)m->c.vocab);
}

void acts_reserve(Acts *a, const Model *m, int rows, int keep_all)
{
    int kept = keep_all ? m->c.layers : 1;
    if (rows <= a->rows && kept == a->kept) return;
    acts_release(a, m);
    a->rows = rows;
    a->kept = kept;
    int whole = (size_t)rows * (size_t)m->c.vocab <= LOGITS_KEPT;
    a->logit_rows = whole || rows < LOGIT_ROWS ? rows : LOGIT_ROWS;
    a->layer = memory_array((size_t)kept, sizeof *a->layer);
    Arena size = {0};
    acts_place(a, m, &size);
    Arena real = {.base = a->arena = m->ops->alloc(size.used)};
    acts_place(a, m, &real);
}

void acts_release(Acts *a, const Model *m)
{
    free(a->layer);
    m->ops->release(a->arena);
    *a = (Acts){0};
}

static void layer_attention(Model *m, LayerActs *l, const LayerAt *at, const TokenBatch *b)
{
    const ModelConfig *c = &m->c;
    const Ops *op = m->ops;
    const float *w = m->data;
    int rows = b->rows, row = head_row(m->shape), wide = c->heads * c->head_dim, d = c->head_dim;
    op->rmsnorm(l->n1, l->x, w + at->in_norm, rows, 1, c->hidden, c->hidden, c->norm_eps);
    op->gemm(0, 1, rows, row, c->hidden, l->n1, c->hidden, w + at->qkv, c->hidden, 0, l->qkv, row);
    if (c->qkv_bias) op->add_bias(l->qkv, w + at->qkv_bias, rows, row);
    if (c->qk_norm) {
        op->copy(l->raw, l->qkv, (size_t)rows * (size_t)row);
        op->rmsnorm(l->qkv, l->raw, w + at->q_norm, rows, c->heads, d, row, c->norm_eps);
        op->rmsnorm(l->qkv + wide, l->raw + wide, w + at->k_norm, rows, c->kv_heads, d, row, c->norm_eps);
    }
    op->rope(l->qkv, b->pos, m->cosines, m->sines, rows, m->shape, 1);
    op->attention(l->att, l->lse, l->qkv, b->start, b->n, m->shape);
    op->copy(l->mid, l->x, (size_t)rows * (size_t)c->hidden);
    op->gemm(0, 1, rows, c->hidden, wide, l->att, wide, w + at->o, wide, 1, l->mid, c->hidden);
}

static void layer_mlp(Model *m, LayerActs *l, const LayerAt *at, int rows, float *out)
{
    const ModelConfig *c = &m->c;
    const Ops *op = m->ops;
    const float *w = m->data;
    op->rmsnorm(l->n2, l->mid, w + at->post_norm, rows, 1, c->hidden, c->hidden, c->norm_eps);
    op->gemm(0, 1, rows, 2 * c->ff, c->hidden, l->n2, c->hidden, w + at->gate_up, c->hidden, 0, l->gate_up, 2 * c->ff);
    op->swiglu(l->act, l->gate_up, rows, c->ff);
    op->copy(out, l->mid, (size_t)rows * (size_t)c->hidden);
    op->gemm(0, 1, rows, c->hidden, c->ff, l->act, c->ff, w + at->down, c->ff, 1, out, c->hidden);
}

void forward_hidden(Model *m, Acts *a, const TokenBatch *b, KvStore *store)
{
    const ModelConfig *c = &m->c;
    model_reserve_positions(m, b->longest);
    m->ops->embed(a->layer[0].x, m->data + m->embed, b->ids, b->rows, c->hidden);
    for (int i = 0; i < c->layers; i++) {
        LayerActs *l = &a->layer[a->kept > 1 ? i : 0];
        layer_attention(m, l, &m->layer[i], b);
        if (store) m->ops->kv_put(store, i, 0, l->qkv, b->rows, m->shape);
        int last = i + 1 == c->layers;
        layer_mlp(m, l, &m->layer[i], b->rows, last ? a->out : a->kept > 1 ? a->layer[i + 1].x : l->x);
    }
    m->ops->rmsnorm(a->normed, a->out, m->data + m->norm, b->rows, 1, c->hidden, c->hidden, c->norm_eps);
}

void forward_logp(Model *m, Acts *a, const TokenBatch *b)
{
    const ModelConfig *c = &m->c;
    forward_hidden(m, a, b, NULL);
    for (int at = 0; at < b->rows; at += a->logit_rows) {
        int rows = b->rows - at < a->logit_rows ? b->rows - at : a->logit_rows;
        m->ops->gemm(0, 1, rows, c->vocab, c->hidden, a->normed + (size_t)at * (size_t)c->hidden, c->hidden, m->data + m->head,
                     c->hidden, 0, a->logits, c->vocab);
        m->ops->cross_entropy(a->logp + at, a->logit_lse + at, a->logits, b->target + at, rows, c->vocab);
    }
}

int model_logprobs(Model *m, const Sequence *seqs, int n, float *const *logp, Error *err)
{
    enum { MAX_TOKENS = 4096 };
    if (batch_check(m, seqs, n, err)) return -1;
    Acts acts = {0};
    TokenBatch batch = {0};
    int64_t total = 0;
    for (int i = 0; i < n; i++) total += seqs[i].len;
    int usual = total < MAX_TOKENS ? (int)total : MAX_TOKENS;
    for (int i = 0; i < n;) {
        int k = batch_fit(seqs + i, n - i, MAX_TOKENS);
        batch_pack(&batch, seqs + i, k);
        acts_reserve(&acts, m, batch.rows > usual ? batch.rows : usual, 0);
        forward_logp(m, &acts, &batch);
        for (int s = 0; s < k; s++, i++) {
            logp[i][0] = 0;
            memcpy(logp[i] + 1, acts.logp + batch.start[s], (size_t)(seqs[i].len - 1) * sizeof **logp);
        }
    }
    acts_release(&acts, m);
    batch_release(&batch);
    return 0;
}
