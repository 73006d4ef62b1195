/* The backward pass through the layers, from the gradient of the last hidden states. Gradients are
 * added in the order of the layers from last to first. */
#include "model/core/transformer.h"

static int widest_u(const Model *m)
{
    int widest = 0;
    for (int i = 0; i < m->c.layers; i++) {
        const LayerAt *at = &m->layer[i];
        const int u[] = {at->qkv.u, at->o.u, at->gate_up.u, at->down.u};
        for (int k = 0; k < 4; k++)
            if (u[k] > widest) widest = u[k];
    }
    return widest;
}

static void grads_place(Grads *g, const Model *m, Arena *from)
{
    size_t rows = (size_t)g->rows, h = (size_t)m->c.hidden, row = (size_t)head_row(m->shape),
           ff = (size_t)m->c.ff;
    size_t wide = (size_t)m->c.heads * (size_t)m->c.head_dim, num = (size_t)m->ops->num;
    g->dx = arena_take(from, rows, h, num);
    g->dn = arena_take(from, rows, h, num);
    g->dqkv = arena_take(from, rows, row, num);
    g->datt = arena_take(from, rows, wide, num);
    g->dgate_up = arena_take(from, rows, 2 * ff, num);
    g->dact = arena_take(from, rows, ff, num);
    g->du = arena_take(from, rows, (size_t)widest_u(m), num);
    g->weight = arena_take(from, rows, 1, sizeof *g->weight);
}

size_t grads_bytes(const Model *m, int rows)
{
    Grads g = {.rows = rows};
    Arena size = {0};
    grads_place(&g, m, &size);
    return size.used;
}

void grads_reserve(Grads *g, const Model *m, int rows)
{
    if (rows <= g->rows) return;
    grads_release(g, m);
    g->rows = rows;
    Arena from = {.base = g->arena = m->ops->alloc(grads_bytes(m, rows))};
    grads_place(g, m, &from);
}

void grads_release(Grads *g, const Model *m)
{
    m->ops->release(g->arena);
    *g = (Grads){0};
}

static void mlp_backward(Model *m, const LayerActs *l, Grads *g, const LayerAt *at, int rows,
                         float *grad)
{
    int h = m->c.hidden;
    linear_backward(m, &at->down, g->dx, l->act, l->u_down, g->du, rows, g->dact, grad);
    m->ops->swiglu_grad(g->dgate_up, g->dact, l->gate_up, rows, m->c.ff);
    linear_backward(m, &at->gate_up, g->dgate_up, l->n2, l->u_gate_up, g->du, rows, g->dn, grad);
    m->ops->rmsnorm_grad(g->dx, 1, base_grad(m, grad, at->post_norm), g->dn, l->mid,
                         weight_at(m, at->post_norm), rows, h, m->c.norm_eps);
}

/* `last`: dx is not needed below, since the base is frozen and this is the first layer. */
static void attention_backward(Model *m, const LayerActs *l, Grads *g, const LayerAt *at,
                               const TokenBatch *b, int last, float *grad)
{
    const ModelConfig *c = &m->c;
    const Ops *op = m->ops;
    int rows = b->rows, h = c->hidden, row = head_row(m->shape), d = c->head_dim;
    size_t wide = (size_t)c->heads * (size_t)d;
    linear_backward(m, &at->o, g->dx, l->att, l->u_o, g->du, rows, g->datt, grad);
    op->attention_grad(g->dqkv, g->datt, l->att, l->lse, l->qkv, &b->view, m->shape);
    op->rope(g->dqkv, b->view.pos, m->cosines, m->sines, rows, m->shape, -1);
    if (c->qk_norm) {
        Num *dk = num_at(op, g->dqkv, wide);
        op->head_norm_grad(g->dqkv, base_grad(m, grad, at->q_norm), g->dqkv, l->raw,
                           weight_at(m, at->q_norm), rows, c->heads, d, row, c->norm_eps);
        op->head_norm_grad(dk, base_grad(m, grad, at->k_norm), dk, num_at(op, l->raw, wide),
                           weight_at(m, at->k_norm), rows, c->kv_heads, d, row, c->norm_eps);
    }
    linear_backward(m, &at->qkv, g->dqkv, l->n1, l->u_qkv, g->du, rows, last ? NULL : g->dn, grad);
    if (last) return;
    op->rmsnorm_grad(g->dx, 1, base_grad(m, grad, at->in_norm), g->dn, l->x,
                     weight_at(m, at->in_norm), rows, h, c->norm_eps);
}

/* Returns the position of the layer in the trained set. Positions after it belong to later layers
 * or to the head. */
static size_t layer_begin(const Model *m, const LayerAt *at)
{
    const Linear *adapted[] = {&at->qkv, &at->o, &at->gate_up, &at->down};
    int i = 0;
    if (!m->lora.size) return at->in_norm;
    while (!adapted[i]->u) i++;
    return adapted[i]->a;
}

void backward(Model *m, Acts *a, Grads *g, const TokenBatch *b, float *grad, GradsDone *done,
              void *ctx)
{
    const ModelConfig *c = &m->c;
    int frozen = m->lora.size > 0;
    m->ops->rmsnorm_grad(g->dx, 0, base_grad(m, grad, m->norm), g->dn, a->out,
                         weight_at(m, m->norm), b->rows, c->hidden, c->norm_eps);
    for (int i = c->layers - 1; i >= 0; i--) {
        if (a->keep == KEEP_INPUTS && i + 1 < c->layers)
            recompute_layer(m, a, i, b); /* the last layer's are still there */
        mlp_backward(m, &a->layer[i], g, &m->layer[i], b->rows, grad);
        attention_backward(m, &a->layer[i], g, &m->layer[i], b, frozen && !i, grad);
        if (done) done(ctx, layer_begin(m, &m->layer[i]));
    }
    if (!frozen) m->ops->embed_grad(grad + m->embed, g->dx, &b->view, c->hidden);
    if (done) done(ctx, 0);
}
