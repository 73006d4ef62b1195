/* Products of the CUDA table against the CPU's. Each number has its own limit, from the size of its
 * terms, since terms may cancel. */
#include "tests/unit/model/ops_on_gpu.h"

/* Check rows of sums of k terms, ld apart. sizes: the sums of the terms' absolute values. A number
 * may be off by its rounding (2^-8 of it in bf16) and by the fp32 error of both sides,
 * statistically (4 + sqrt(k)) 2^-23 of the size. Some algorithms of the library round the product
 * before they add to it; then `product` is not NULL. */
static void check_sums(const Array *a, const float *sizes, const float *product, int k, size_t cols,
                       size_t ld)
{
    float *got = fetch(a);
    double rounding = a->wide ? 0 : ldexp(1, -8), lost = ldexp(4 + sqrt(k), -23);
    for (size_t i = 0; i < a->n; i++) {
        if (i % ld >= cols) continue;
        double d = fabs((double)got[i] - (double)a->host[i]),
               limit = rounding * fabs((double)a->host[i]) + lost * (double)sizes[i];
        if (product) limit += rounding * fabs((double)product[i]);
        note(d, limit);
        if (!(d <= limit))
            fail("%s: row %zu, number %zu is %.9g, expected %.9g; the limit is %.3g", a->name,
                 i / ld, i % ld, (double)got[i], (double)a->host[i], limit);
    }
    check_between(a, got, cols, ld);
    free(got);
    check_guards(a);
}

typedef struct {
    int m, n, k, pad, shift;
} Size;

static float *absolute(const float *x, size_t n)
{
    float *y = memory_array(n + 1, sizeof *y);
    for (size_t i = 0; i < n; i++) y[i] = fabsf(x[i]);
    return y;
}

/* The sums of the absolute values of g's terms. */
static float *term_sizes(const Gemm *g, const Array *a, const Array *b, const Array *c,
                         const Array *bias)
{
    Gemm s = *g;
    float *x = absolute(a->host, a->n), *y = absolute(b->host, b->n), *z = absolute(c->host, c->n),
          *v = absolute(bias->host, bias->n);
    s.a.at = x, s.b.at = y, s.bias = g->bias ? v : NULL;
    s.c = s.d = z;
    s.alpha = fabsf(g->alpha), s.beta = fabsf(g->beta);
    cpu->gemm(&s);
    free(x), free(y), free(v);
    return z;
}

/* alpha op(a) op(b) without the sum, where something is added to it in bf16. */
static float *product_alone(const Gemm *g, size_t n)
{
    if (g->wide || (g->beta == 0 && !g->bias)) return NULL;
    Gemm p = *g;
    p.d = memory_array(n + 1, sizeof(float));
    p.c = p.d, p.beta = 0, p.bias = NULL;
    cpu->gemm(&p);
    return p.d;
}

/* Round beta c + bias to bf16 on the CPU too, before the product is added. */
static void round_first(Gemm *g)
{
    float *c = (float *)(uintptr_t)g->c;
    const float *bias = g->bias;
    for (int i = 0; i < g->a.rows; i++)
        for (int j = 0; j < g->b.columns; j++) {
            float *x = c + (size_t)i * (size_t)g->ldd + j;
            *x = bf16_to_float(float_to_bf16(g->beta * *x + bias[j]));
        }
    g->beta = 1;
    g->bias = NULL;
}

typedef struct {
    Size s;
    int ta, tb, wide, bias; /* ta, tb: transposed */
    float alpha, beta;
    int apart; /* c is not d */
} GemmCase;

static void one_gemm(GemmCase x)
{
    const Size s = x.s;
    const int ta = x.ta, tb = x.tb, wide = x.wide, bias = x.bias, apart = x.apart;
    const float alpha = x.alpha, beta = x.beta;
    int lda = (ta ? s.m : s.k) + s.pad, ldb = (tb ? s.k : s.n) + s.pad, ldd = s.n + s.pad;
    begin("gemm %d x %d x %d%s%s%s%s, alpha %g, beta %g%s, rows +%d, shifted by %d", s.m, s.n, s.k,
          ta ? " a'" : "", tb ? " b'" : "", wide ? " fp32" : "", bias ? " bias" : "", (double)alpha,
          (double)beta, apart ? ", c apart" : "", s.pad, s.shift);
    size_t shift = (size_t)s.shift;
    Array a = given_at("a", (size_t)lda * (size_t)(ta ? s.k : s.m), 0, 1, shift);
    Array b = given_at("b", (size_t)ldb * (size_t)(tb ? s.n : s.k), 0, 1 / sqrt(s.k), shift);
    Array d = beta != 0 && !apart ? given_at("d", (size_t)ldd * (size_t)s.m, wide, 1, shift)
                                  : blank_at("d", (size_t)ldd * (size_t)s.m, wide, shift);
    Array c = given_at("c", (size_t)ldd * (size_t)s.m, wide, 1, shift),
          v = given_at("bias", (size_t)s.n, 0, 1, shift);
    Matrix left = {a.host, ta ? s.k : s.m, ta ? s.m : s.k, lda, 0},
           right = {b.host, tb ? s.n : s.k, tb ? s.k : s.n, ldb, 0};
    Gemm g = {.a = ta ? transposed(left) : left,
              .b = tb ? transposed(right) : right,
              .alpha = alpha,
              .beta = beta,
              .c = apart ? c.host : d.host,
              .d = d.host,
              .ldd = ldd,
              .wide = wide,
              .bias = bias ? v.host : NULL};
    Gemm h = g;
    h.a.at = a.gpu, h.b.at = b.gpu, h.c = apart ? c.gpu : d.gpu, h.d = d.gpu;
    if (bias) h.bias = v.gpu;
    float *sizes = term_sizes(&g, &a, &b, beta != 0 && !apart ? &d : &c, &v);
    float *product = product_alone(&g, d.n);
    if (bias && beta != 0 && !wide) round_first(&g);
    cpu->gemm(&g);
    gpu->gemm(&h);
    check_sums(&d, sizes, product, s.k, (size_t)s.n, (size_t)ldd);
    free(sizes);
    free(product);
    drop(&a), drop(&b), drop(&c), drop(&d), drop(&v);
    end();
}

static void test_gemm(void)
{
    static const Size sizes[] = {
        {1, 1, 1, 0, 0},       {3, 5, 7, 0, 0},      {17, 33, 9, 1, 1},   {64, 64, 64, 0, 0},
        {1, 896, 896, 0, 0},   {130, 136, 72, 8, 0}, {33, 8, 896, 0, 0},  {257, 1152, 896, 0, 0},
        {200, 16, 3584, 0, 0}, {64, 151, 128, 3, 2}, {5, 1024, 16, 0, 4}, {300, 4608, 3584, 0, 0},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int t = 0; t < 4; t++) {
            one_gemm((GemmCase){sizes[i], t & 1, t >> 1, 0, 0, 1, 0, 0});
            one_gemm((GemmCase){sizes[i], t & 1, t >> 1, 1, 0, 1, 1, 0});
            if (i % 3 == 0) one_gemm((GemmCase){sizes[i], t & 1, t >> 1, 0, 1, 1, 0, 0});
            if (i % 3 == 1) one_gemm((GemmCase){sizes[i], t & 1, t >> 1, 0, 0, 2.5f, 1, 1});
            if (i % 3 == 2) one_gemm((GemmCase){sizes[i], t & 1, t >> 1, 1, 1, 0.5f, 0, 0});
        }
    one_gemm((GemmCase){{70, 48, 100, 0, 0}, 0, 1, 0, 1, 1, 0.5f, 1});
    one_gemm((GemmCase){{70, 48, 100, 4, 0}, 0, 1, 1, 1, 1, 0.5f, 1});
}

int main(void)
{
    return on_gpu(test_gemm);
}
