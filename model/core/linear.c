/* A projection with its adapter: y = x W^T + u B^T, u = scale x A^T. */
#include "model/core/transformer.h"

/* W [n][k] and A [u][k]. */
static Matrix weight_of(const Model *m, const Linear *l)
{
    return matrix(weight_at(m, l->weight), l->n, l->k);
}

static Matrix a_of(const Model *m, const Linear *l)
{
    return matrix(num_at(m->ops, m->lora.data, l->a), l->u, l->k);
}

/* B [n][rank] of a part. */
static Matrix b_of(const Model *m, const LinearPart *p)
{
    return matrix(num_at(m->ops, m->lora.data, p->b), p->n, m->lora_options.rank);
}

/* The columns of u that belong to a part. */
static Matrix u_of(const Model *m, const LinearUse *use, const LinearPart *p)
{
    const Num *at = num_at(m->ops, use->u, (size_t)p->u);
    return (Matrix){at, use->rows, m->lora_options.rank, use->l->u, 0};
}

static int adapted_parts(const Linear *l)
{
    int n = 0;
    for (int i = 0; i < l->parts; i++) n += l->part[i].u >= 0;
    return n;
}

void linear_inner(const Model *m, const LinearUse *use)
{
    const Linear *l = use->l;
    Gemm g = {.a = matrix(use->x, use->rows, l->k),
              .b = transposed(a_of(m, l)),
              .alpha = m->lora_scale,
              .d = use->u,
              .ldd = l->u,
              .ordered = 1};
    if (l->u) m->ops->gemm(&g);
}

/* y = u B^T, or c + u B^T, for the parts with an adapter. wide: c and y are float. */
static void outer(const Model *m, const LinearUse *use, const void *c, void *y, int wide)
{
    const Linear *l = use->l;
    for (int i = 0; i < l->parts; i++) {
        const LinearPart *p = &l->part[i];
        if (p->u < 0) continue;
        size_t at = (size_t)p->first * (wide ? sizeof(float) : (size_t)m->ops->num);
        Gemm g = {.a = u_of(m, use, p),
                  .b = transposed(b_of(m, p)),
                  .alpha = 1,
                  .beta = c ? 1 : 0,
                  .c = c ? (const char *)c + at : NULL,
                  .d = (char *)y + at,
                  .ldd = l->n,
                  .wide = wide,
                  .ordered = 1};
        m->ops->gemm(&g);
    }
}

/* The products of the adapters come first, and the large product is added to them. Parts without an
 * adapter begin at 0. */
void linear_forward(const Model *m, const LinearUse *use, const float *residual, void *y)
{
    const Linear *l = use->l;
    int wide = residual != NULL, adapted = adapted_parts(l);
    if (adapted) linear_inner(m, use);
    if (adapted && adapted < l->parts) /* o and down have one part: there is no residual here */
        m->ops->zero(y, (size_t)use->rows * (size_t)l->n * (size_t)m->ops->num);
    if (adapted) outer(m, use, residual, y, wide);
    const void *c = adapted ? y : residual;
    Gemm g = {.a = matrix(use->x, use->rows, l->k),
              .b = transposed(weight_of(m, l)),
              .alpha = 1,
              .beta = c ? 1 : 0,
              .c = c,
              .d = y,
              .ldd = l->n,
              .wide = wide,
              .bias = l->has_bias ? weight_at(m, l->bias) : NULL,
              .ordered = 1};
    m->ops->gemm(&g);
}

/* dW += dy^T x. */
static void weight_grad(const Ops *op, float *dw, Matrix dy, Matrix x)
{
    Gemm g = {.a = transposed(dy),
              .b = x,
              .alpha = 1,
              .beta = 1,
              .c = dw,
              .d = dw,
              .ldd = x.columns,
              .wide = 1};
    op->gemm(&g);
}

/* du = scale dy B, dB += dy^T u, dA += du^T x, dx = du A. The large product is then added to dx. */
static void adapter_backward(const BackwardPass *p, const LinearUse *use, const Num *dy, Num *dx)
{
    const Model *m = p->m;
    const Ops *op = m->ops;
    const Linear *l = use->l;
    for (int i = 0; i < l->parts; i++) {
        const LinearPart *part = &l->part[i];
        if (part->u < 0) continue;
        Matrix mine = {num_at(op, dy, (size_t)part->first), use->rows, part->n, l->n, 0};
        Gemm g = {.a = mine,
                  .b = b_of(m, part),
                  .alpha = m->lora_scale,
                  .d = num_at(op, p->g->du, (size_t)part->u),
                  .ldd = l->u};
        op->gemm(&g);
        weight_grad(op, p->grad + part->b, mine, u_of(m, use, part));
    }
    Matrix du = matrix(p->g->du, use->rows, l->u);
    weight_grad(op, p->grad + l->a, du, matrix(use->x, use->rows, l->k));
    Gemm back = {.a = du, .b = a_of(m, l), .alpha = 1, .d = dx, .ldd = l->k};
    if (dx) op->gemm(&back);
}

void linear_backward(const BackwardPass *p, const LinearUse *use, const Num *dy, Num *dx)
{
    const Ops *op = p->m->ops;
    const Linear *l = use->l;
    if (l->u) adapter_backward(p, use, dy, dx);
    Matrix out = matrix(dy, use->rows, l->n);
    Gemm g = {.a = out,
              .b = weight_of(p->m, l),
              .alpha = 1,
              .beta = l->u ? 1 : 0,
              .c = l->u ? dx : NULL,
              .d = dx,
              .ldd = l->k};
    if (dx) op->gemm(&g);
    if (p->m->lora.size) return; /* the base is frozen */
    if (l->has_bias) op->bias_grad(p->grad + l->bias, dy, use->rows, l->n);
    weight_grad(op, p->grad + l->weight, out, matrix(use->x, use->rows, l->k));
}
