/* On a GPU: the products of a decoding step equal those of the full pass bit for bit, for any
 * number of rows, with adapters, gates, and kernels that start while the previous one runs. */
#include "tests/unit/model/ops_on_gpu.h"

#include "model/cuda/decode/step_kernels.h"
#include "model/cuda/table.h"

enum { MANY = 70 }; /* rows, in two blocks of 64 */

static const int counts[] = {1, 2, 8, 9, 16, 17, 32, 33, 64, MANY};
enum { COUNTS = sizeof counts / sizeof *counts };

/* Uniform bf16 numbers in [-size, size), on the device only. */
static void *halves(size_t n, double size)
{
    uint16_t *h = memory_array(n + 1, sizeof *h);
    uint64_t seed = random_u64(&rng);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        h[i] = float_to_bf16((float)(size * ((double)(seed >> 40) / 8388608.0 - 1)));
    }
    void *p = gpu->alloc(n * 2 + 2);
    gpu->upload(p, h, n * 2);
    free(h);
    return p;
}

/* x w^T of `rows` rows by the full pass; fp32 if wide. */
typedef struct {
    int rows, n, k;
} Sides;

static void full(void *d, const void *x, const void *w, Sides s, float alpha, int wide)
{
    Gemm g = {.a = matrix(x, s.rows, s.k),
              .b = transposed(matrix(w, s.n, s.k)),
              .alpha = alpha,
              .d = d,
              .ldd = s.n,
              .wide = wide,
              .ordered = 1};
    gpu->gemm(&g);
}

static void same(const char *what, int rows, const void *a, const void *b, size_t n, size_t size)
{
    unsigned char *x = memory_array(n + 1, size), *y = memory_array(n + 1, size);
    size_t off = 0;
    gpu->download(x, a, n * size);
    gpu->download(y, b, n * size);
    for (size_t i = 0; i < n; i++) off += memcmp(x + i * size, y + i * size, size) != 0;
    note((double)off, 0);
    if (off) fail("%s of %d rows: %zu of %zu numbers have other bits", what, rows, off, n);
    free(x), free(y);
}

typedef struct {
    int n, k, r; /* r: columns of an adapter */
} Shape;

static void sums(Shape s)
{
    begin("%d outputs of %d numbers, adapter of %d", s.n, s.k, s.r);
    size_t n = (size_t)s.n, k = (size_t)s.k, r = (size_t)s.r, plane = MANY * n;
    void *x = halves(MANY * k, 1), *w = halves(n * k, 0.1), *low = halves(MANY * r, 1),
         *up = halves(n * r, 0.1);
    float *out = gpu->alloc(2 * plane * 4), *main = gpu->alloc(plane * 4),
          *adapter = gpu->alloc(plane * 4);
    full(main, x, w, (Sides){MANY, s.n, s.k}, 1, 1);
    if (r) full(adapter, low, up, (Sides){MANY, s.n, s.r}, 1, 1);
    for (int c = 0; c < COUNTS; c++) {
        size_t some = (size_t)counts[c] * n;
        Product p = {.sums = out,
                     .x = x,
                     .w = w,
                     .low = low,
                     .up = up,
                     .rows = counts[c],
                     .n = s.n,
                     .k = s.k,
                     .r = s.r};
        gpu->zero(out, 2 * plane * 4);
        cuda_product(&p);
        if (r) same("the adapter's sums", counts[c], out, adapter, some, 4);
        same("the sums", counts[c], out + (r ? some : 0), main, some, 4);
    }
    void *all[] = {x, w, low, up, out, main, adapter};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu->release(all[i]);
    end();
}

/* silu(gate) up as in the full pass. There is no adapter: `full` covers its sums, and
 * test_rows_cuda its rounding. */
static void gated(Shape s)
{
    begin("%d gates of %d numbers", s.n, s.k);
    size_t n = (size_t)s.n, k = (size_t)s.k;
    void *x = halves(MANY * k, 1), *w = halves(2 * n * k, 0.1),
         *both = gpu->alloc(MANY * 2 * n * 2);
    void *want = gpu->alloc(MANY * n * 2), *out = gpu->alloc(MANY * n * 2);
    full(both, x, w, (Sides){MANY, 2 * s.n, s.k}, 1, 0);
    gpu->swiglu(want, both, MANY, s.n);
    for (int c = 0; c < COUNTS; c++) {
        Product p = {.out = out, .x = x, .w = w, .rows = counts[c], .n = s.n, .k = s.k, .gated = 1};
        gpu->zero(out, MANY * n * 2);
        cuda_product(&p);
        same("the activations", counts[c], out, want, (size_t)counts[c] * n, 2);
    }
    void *all[] = {x, w, both, want, out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu->release(all[i]);
    end();
}

/* As in a step: the kernel that writes x, the product low, then a product that starts before low is
 * complete, all overlapping. The bits equal those of the full pass, with another x each time. */
static void overlapping(Shape s)
{
    begin("%d outputs of %d numbers, adapter of %d: kernels overlap", s.n, s.k, s.r);
    size_t n = (size_t)s.n, k = (size_t)s.k, r = (size_t)s.r, plane = MANY * n;
    enum { TIMES = 6, BEFORE = 1024 };
    void *first[TIMES], *wide = halves(k * BEFORE, 0.1), *w = halves(n * k, 0.1),
                        *a = halves(r * k, 0.1), *up = halves(n * r, 0.1);
    void *x = gpu->alloc(MANY * k * 2), *low = gpu->alloc(MANY * r * 2),
         *want_x = gpu->alloc(MANY * k * 2), *want_low = gpu->alloc(MANY * r * 2);
    float *out[TIMES], *want = gpu->alloc(2 * plane * 4);
    for (int t = 0; t < TIMES; t++)
        first[t] = halves(MANY * BEFORE, 1), out[t] = gpu->alloc(2 * plane * 4);
    for (int t = 0; t < TIMES; t++) {
        int rows = counts[(t + 1) * 3 % COUNTS];
        Product before = {
            .out = x, .x = first[t], .w = wide, .rows = rows, .n = s.k, .k = BEFORE, .scale = 1};
        Product inner = {
            .out = low, .x = x, .w = a, .rows = rows, .n = s.r, .k = s.k, .scale = 0.5f};
        Product p = {.sums = out[t],
                     .x = x,
                     .w = w,
                     .low = low,
                     .up = up,
                     .rows = rows,
                     .n = s.n,
                     .k = s.k,
                     .r = s.r};
        cuda_product(&before);
        cuda_overlap(1);
        cuda_product(&inner);
        cuda_product(&p);
    }
    cuda_overlap(0);
    for (int t = 0; t < TIMES; t++) {
        int rows = counts[(t + 1) * 3 % COUNTS];
        full(want_x, first[t], wide, (Sides){rows, s.k, BEFORE}, 1, 0);
        full(want_low, want_x, a, (Sides){rows, s.r, s.k}, 0.5f, 0);
        full(want, want_low, up, (Sides){rows, s.n, s.r}, 1, 1);
        full(want + (size_t)rows * n, want_x, w, (Sides){rows, s.n, s.k}, 1, 1);
        same("both planes", rows, out[t], want, 2 * (size_t)rows * n, 4);
    }
    void *all[] = {wide, w, a, up, x, low, want_x, want_low, want};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu->release(all[i]);
    for (int t = 0; t < TIMES; t++) gpu->release(first[t]), gpu->release(out[t]);
    end();
}

static void all(void)
{
    static const Shape shapes[] = {
        {4608, 3584, 48}, {3584, 3584, 16}, {512, 18944, 16}, {1152, 896, 48}, {896, 896, 16},
        {896, 4864, 64},  {70, 72, 24},     {8, 2056, 8},     {20000, 896, 0}, {40, 64, 144}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) sums(shapes[i]);
    gated((Shape){4864, 896, 0}), gated((Shape){72, 136, 0}), gated((Shape){9472, 3584, 0});
    overlapping((Shape){4608, 3584, 48}), overlapping((Shape){896, 4864, 16}),
        overlapping((Shape){512, 18944, 16});
}

int main(void)
{
    return on_gpu(all);
}
