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

static void mlp_backward(const BackwardPass *p, int layer)
{
    Model *m = p->m;
    Grads *g = p->g;
    const LayerActs *l = &p->a->layer[layer];
    const LayerAt *at = &m->layer[layer];
    int rows = p->b->rows;
    Norm mid = norm_of_rows(m, l->mid, at->post_norm, rows);
    linear_backward(p, &(LinearUse){&at->down, l->act, l->u_down, rows}, g->dx, g->dact);
    m->ops->swiglu_grad(g->dgate_up, g->dact, l->gate_up, rows, m->c.ff);
    linear_backward(p, &(LinearUse){&at->gate_up, l->n2, l->u_gate_up, rows}, g->dgate_up, g->dn);
    m->ops->rmsnorm_grad(g->dx, 1, base_grad(p, at->post_norm), g->dn, &mid);
}

/* `last`: dx is not needed below, since the base is frozen and this is the first layer. */
static void attention_backward(const BackwardPass *p, int layer, int last)
{
    Model *m = p->m;
    Grads *g = p->g;
    const Ops *op = m->ops;
    const LayerActs *l = &p->a->layer[layer];
    const LayerAt *at = &m->layer[layer];
    const Attended kept = {l->qkv, l->att, l->lse};
    int rows = p->b->rows;
    Rotation angles = model_rotation(m, p->b->view.pos, rows);
    linear_backward(p, &(LinearUse){&at->o, l->att, l->u_o, rows}, g->dx, g->datt);
    op->attention_grad(g->dqkv, g->datt, &kept, &p->b->view, m->shape);
    op->rope(g->dqkv, &angles, m->shape, -1);
    if (m->c.qk_norm) {
        Norm q = norm_of_heads(m, l->raw, at, 0, rows), k = norm_of_heads(m, l->raw, at, 1, rows);
        Num *dk = num_at(op, g->dqkv, (size_t)m->c.heads * (size_t)m->c.head_dim);
        op->head_norm_grad(g->dqkv, base_grad(p, at->q_norm), g->dqkv, &q);
        op->head_norm_grad(dk, base_grad(p, at->k_norm), dk, &k);
    }
    linear_backward(p, &(LinearUse){&at->qkv, l->n1, l->u_qkv, rows}, g->dqkv, last ? NULL : g->dn);
    if (last) return;
    Norm in = norm_of_rows(m, l->x, at->in_norm, rows);
    op->rmsnorm_grad(g->dx, 1, base_grad(p, at->in_norm), g->dn, &in);
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

void backward(const BackwardPass *p, GradsDone *done, void *ctx)
{
    Model *m = p->m;
    Acts *a = p->a;
    Grads *g = p->g;
    int layers = m->c.layers, frozen = m->lora.size > 0;
    Norm out = norm_of_rows(m, a->out, m->norm, p->b->rows);
    m->ops->rmsnorm_grad(g->dx, 0, base_grad(p, m->norm), g->dn, &out);
    for (int i = layers - 1; i >= 0; i--) {
        if (a->keep == KEEP_INPUTS && i + 1 < layers)
            recompute_layer(m, a, i, p->b); /* the last layer's are still there */
        mlp_backward(p, i);
        attention_backward(p, i, frozen && !i);
        if (done) done(ctx, layer_begin(m, &m->layer[i]));
    }
    if (!frozen) m->ops->embed_grad(p->grad + m->embed, g->dx, &p->b->view, m->c.hidden);
    if (done) done(ctx, 0);
}
