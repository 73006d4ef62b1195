/* A projection with its adapter: y = x W^T + u B^T, u = scale x A^T. */
#include "model/core/transformer.h"

static Num *lora_at(const Model *m, size_t at)
{
    return num_at(m->ops, m->lora.data, at);
}

static int adapted_parts(const Linear *l)
{
    int n = 0;
    for (int i = 0; i < l->parts; i++) n += l->part[i].u >= 0;
    return n;
}

void linear_inner(const Model *m, const Linear *l, const Num *x, int rows, Num *u)
{
    Gemm g = {.tb = 1,
              .m = rows,
              .n = l->u,
              .k = l->k,
              .a = x,
              .lda = l->k,
              .b = lora_at(m, l->a),
              .ldb = l->k,
              .alpha = m->lora_scale,
              .d = u,
              .ldd = l->u,
              .ordered = 1};
    if (l->u) m->ops->gemm(&g);
}

/* y = u B^T, or c + u B^T, for the parts with an adapter. wide: c and y are float. */
static void outer(const Model *m, const Linear *l, int rows, const Num *u, const void *c, void *y,
                  int wide)
{
    const Ops *op = m->ops;
    int rank = m->lora_options.rank;
    size_t size = wide ? sizeof(float) : (size_t)op->num;
    for (int i = 0; i < l->parts; i++) {
        const LinearPart *p = &l->part[i];
        if (p->u < 0) continue;
        size_t at = (size_t)p->first * size;
        Gemm g = {.tb = 1,
                  .m = rows,
                  .n = p->n,
                  .k = rank,
                  .a = num_at(op, u, (size_t)p->u),
                  .lda = l->u,
                  .b = lora_at(m, p->b),
                  .ldb = rank,
                  .alpha = 1,
                  .beta = c ? 1 : 0,
                  .c = c ? (const char *)c + at : NULL,
                  .d = (char *)y + at,
                  .ldd = l->n,
                  .wide = wide,
                  .ordered = 1};
        op->gemm(&g);
    }
}

/* The products of the adapters come first, and the large product is added to them. Parts without an
 * adapter begin at 0. */
void linear_forward(const Model *m, const Linear *l, const Num *x, int rows, Num *u,
                    const float *residual, void *y)
{
    int wide = residual != NULL, adapted = adapted_parts(l);
    if (adapted) linear_inner(m, l, x, rows, u);
    if (adapted && adapted < l->parts) /* o and down have one part: there is no residual here */
        m->ops->zero(y, (size_t)rows * (size_t)l->n * (size_t)m->ops->num);
    if (adapted) outer(m, l, rows, u, residual, y, wide);
    const void *c = adapted ? y : residual;
    Gemm g = {.tb = 1,
              .m = rows,
              .n = l->n,
              .k = l->k,
              .a = x,
              .lda = l->k,
              .b = weight_at(m, l->weight),
              .ldb = l->k,
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

/* dW += dy^T x, where dy has n columns and rows of ldy numbers. */
static void weight_grad(const Ops *op, float *dw, const Num *dy, int ldy, int n, const Num *x,
                        int ldx, int k, int rows)
{
    Gemm g = {.ta = 1,
              .m = n,
              .n = k,
              .k = rows,
              .a = dy,
              .lda = ldy,
              .b = x,
              .ldb = ldx,
              .alpha = 1,
              .beta = 1,
              .c = dw,
              .d = dw,
              .ldd = k,
              .wide = 1};
    op->gemm(&g);
}

/* du = scale dy B, dB += dy^T u, dA += du^T x, dx = du A. The large product is then added to dx. */
static void adapter_backward(const Model *m, const Linear *l, const Num *dy, const Num *x,
                             const Num *u, Num *du, int rows, Num *dx, float *grad)
{
    const Ops *op = m->ops;
    int rank = m->lora_options.rank;
    for (int i = 0; i < l->parts; i++) {
        const LinearPart *p = &l->part[i];
        if (p->u < 0) continue;
        const Num *mine = num_at(op, dy, (size_t)p->first);
        Gemm g = {.m = rows,
                  .n = rank,
                  .k = p->n,
                  .a = mine,
                  .lda = l->n,
                  .b = lora_at(m, p->b),
                  .ldb = rank,
                  .alpha = m->lora_scale,
                  .d = num_at(op, du, (size_t)p->u),
                  .ldd = l->u};
        op->gemm(&g);
        weight_grad(op, grad + p->b, mine, l->n, p->n, num_at(op, u, (size_t)p->u), l->u, rank,
                    rows);
    }
    weight_grad(op, grad + l->a, du, l->u, l->u, x, l->k, l->k, rows);
    Gemm back = {.m = rows,
                 .n = l->k,
                 .k = l->u,
                 .a = du,
                 .lda = l->u,
                 .b = lora_at(m, l->a),
                 .ldb = l->k,
                 .alpha = 1,
                 .d = dx,
                 .ldd = l->k};
    if (dx) op->gemm(&back);
}

void linear_backward(const Model *m, const Linear *l, const Num *dy, const Num *x, const Num *u,
                     Num *du, int rows, Num *dx, float *grad)
{
    const Ops *op = m->ops;
    if (l->u) adapter_backward(m, l, dy, x, u, du, rows, dx, grad);
    Gemm g = {.m = rows,
              .n = l->k,
              .k = l->n,
              .a = dy,
              .lda = l->n,
              .b = weight_at(m, l->weight),
              .ldb = l->k,
              .alpha = 1,
              .beta = l->u ? 1 : 0,
              .c = l->u ? dx : NULL,
              .d = dx,
              .ldd = l->k};
    if (dx) op->gemm(&g);
    if (m->lora.size) return; /* the base is frozen */
    if (l->has_bias) op->bias_grad(grad + l->bias, dy, rows, l->n);
    weight_grad(op, grad + l->weight, dy, l->n, l->n, x, l->k, l->k, rows);
}
