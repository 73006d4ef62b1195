/* The way back, after forward_logp on the same batch. */
#include "model/transformer.h"

void grads_reserve(Grads *g, const Model *m, int rows)
{
    if (rows <= g->rows) return;
    grads_release(g, m);
    size_t h = (size_t)m->c.hidden, row = (size_t)head_row(m->shape), ff = (size_t)m->c.ff;
    size_t wide = (size_t)m->c.heads * (size_t)m->c.head_dim, n = ((size_t)rows + 15) & ~(size_t)15;
    g->rows = rows;
    g->arena = m->ops->alloc(n * (2 * h + row + wide + 3 * ff));
    g->dx = g->arena;
    g->dn = g->dx + n * h;
    g->dqkv = g->dn + n * h;
    g->datt = g->dqkv + n * row;
    g->dgate_up = g->datt + n * wide;
    g->dact = g->dgate_up + n * 2 * ff;
}

void grads_release(Grads *g, const Model *m)
{
    m->ops->release(g->arena);
    *g = (Grads){0};
}

/* Rows [first, last) of the head: dn = dlogits W, dW += dlogits^T normed. */
static void head_rows(Model *m, Acts *a, Grads *g, const TokenBatch *b, const float *weight, float *grad, int first,
                      int last, int kept)
{
    const ModelConfig *c = &m->c;
    size_t at = (size_t)first * (size_t)c->hidden;
    int rows = last - first;
    float *logits = a->logits + (kept ? (size_t)first * (size_t)c->vocab : 0);
    if (!kept)
        m->ops->gemm(0, 1, rows, c->vocab, c->hidden, a->normed + at, c->hidden, m->data + m->head, c->hidden, 0, logits,
                     c->vocab);
    m->ops->cross_entropy_grad(logits, a->logit_lse + first, b->target + first, weight + first, rows, c->vocab);
    m->ops->gemm(0, 0, rows, c->hidden, c->vocab, logits, c->vocab, m->data + m->head, c->hidden, 0, g->dn + at, c->hidden);
    m->ops->gemm(1, 0, c->vocab, c->hidden, rows, logits, c->vocab, a->normed + at, c->hidden, 1, grad + m->head, c->hidden);
}

/* Only where weights are: prompts of SFT and RL have none. Gaps under GAP rows are not worth a cut. */
static void head_backward(Model *m, Acts *a, Grads *g, const TokenBatch *b, const float *weight, float *grad)
{
    enum { GAP = 32 };
    int kept = a->logit_rows >= b->rows, most = kept ? b->rows : a->logit_rows;
    m->ops->zero(g->dn, (size_t)b->rows * (size_t)m->c.hidden);
    for (int at = 0; at < b->rows;) {
        if (weight[at] == 0) {
            at++;
            continue;
        }
        int last = at;
        for (int t = at; t < b->rows && t - last <= GAP && t - at < most; t++)
            if (weight[t] != 0) last = t;
        head_rows(m, a, g, b, weight, grad, at, last + 1, kept);
        at = last + 1;
    }
}

static void mlp_backward(Model *m, const LayerActs *l, Grads *g, const LayerAt *at, int rows, float *grad)
{
    const ModelConfig *c = &m->c;
    const Ops *op = m->ops;
    const float *w = m->data;
    int h = c->hidden, ff = c->ff;
    op->gemm(0, 0, rows, ff, h, g->dx, h, w + at->down, ff, 0, g->dact, ff);
    op->gemm(1, 0, h, ff, rows, g->dx, h, l->act, ff, 1, grad + at->down, ff);
    op->swiglu_grad(g->dgate_up, g->dact, l->gate_up, rows, ff);
    op->gemm(0, 0, rows, h, 2 * ff, g->dgate_up, 2 * ff, w + at->gate_up, h, 0, g->dn, h);
    op->gemm(1, 0, 2 * ff, h, rows, g->dgate_up, 2 * ff, l->n2, h, 1, grad + at->gate_up, h);
    op->rmsnorm_grad(g->dx, 1, grad + at->post_norm, g->dn, l->mid, w + at->post_norm, rows, 1, h, h, c->norm_eps);
}

static void attention_backward(Model *m, const LayerActs *l, Grads *g, const LayerAt *at, const TokenBatch *b,
                               float *grad)
{
    const ModelConfig *c = &m->c;
    const Ops *op = m->ops;
    const float *w = m->data;
    int rows = b->rows, h = c->hidden, row = head_row(m->shape), wide = c->heads * c->head_dim, d = c->head_dim;
    op->gemm(0, 0, rows, wide, h, g->dx, h, w + at->o, wide, 0, g->datt, wide);
    op->gemm(1, 0, h, wide, rows, g->dx, h, l->att, wide, 1, grad + at->o, wide);
    op->attention_grad(g->dqkv, g->datt, l->att, l->lse, l->qkv, b->start, b->n, m->shape);
    op->rope(g->dqkv, b->pos, m->cosines, m->sines, rows, m->shape, -1);
    if (c->qk_norm) {
        op->rmsnorm_grad(g->dqkv, 0, grad + at->q_norm, g->dqkv, l->raw, w + at->q_norm, rows, c->heads, d, row, c->norm_eps);
        op->rmsnorm_grad(g->dqkv + wide, 0, grad + at->k_norm, g->dqkv + wide, l->raw + wide, w + at->k_norm, rows,
                         c->kv_heads, d, row, c->norm_eps);
    }
    if (c->qkv_bias) op->bias_grad(grad + at->qkv_bias, g->dqkv, rows, row);
    op->gemm(0, 0, rows, h, row, g->dqkv, row, w + at->qkv, h, 0, g->dn, h);
    op->gemm(1, 0, row, h, rows, g->dqkv, row, l->n1, h, 1, grad + at->qkv, h);
    op->rmsnorm_grad(g->dx, 1, grad + at->in_norm, g->dn, l->x, w + at->in_norm, rows, 1, h, h, c->norm_eps);
}

void backward(Model *m, Acts *a, Grads *g, const TokenBatch *b, const float *weight, float *grad)
{
    const ModelConfig *c = &m->c;
    head_backward(m, a, g, b, weight, grad);
    m->ops->rmsnorm_grad(g->dx, 0, grad + m->norm, g->dn, a->out, m->data + m->norm, b->rows, 1, c->hidden, c->hidden,
                         c->norm_eps);
    for (int i = c->layers - 1; i >= 0; i--) {
        mlp_backward(m, &a->layer[i], g, &m->layer[i], b->rows, grad);
        attention_backward(m, &a->layer[i], g, &m->layer[i], b, grad);
    }
    m->ops->embed_grad(grad + m->embed, g->dx, b->ids, b->rows, c->hidden);
}
