/* The operations on the CPU. Products go to OpenBLAS with one thread per call: OpenMP divides them
 * by shape and runs the pieces. The two thread pools therefore do not compete, and small products
 * scale too. */
#include "model/cpu/cpu_kernels.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "model/cpu/blas.h"
#include "model/cpu/simd.h"

enum { PARTS = 16 }; /* partial sums over rows: the same for any number of threads */

int cpu_threads(void)
{
    static int threads;
    int n = __atomic_load_n(&threads, __ATOMIC_RELAXED);
    if (n) return n;
    n = (int)cpu_setting().threads;
    if (!n) n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    n = n < 1 ? 1 : n;
    __atomic_store_n(&threads, n, __ATOMIC_RELAXED);
    return n;
}

/* The address of the allocation is stored in front of the aligned address. */
static void *alloc(size_t bytes)
{
    char *block = memory_array(bytes + 128, 1);
    char *p = block + 128 - (uintptr_t)block % 64;
    memcpy(p - sizeof block, &block, sizeof block);
    return p;
}

static void release(void *p)
{
    char *block = NULL;
    if (p) memcpy(&block, (char *)p - sizeof block, sizeof block);
    free(block);
}

static void copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}
static void zero(void *p, size_t bytes)
{
    memset(p, 0, bytes);
}
static void load(Num *to, const float *host, size_t n)
{
    memcpy(to, host, n * sizeof *host);
}
static void store(float *host, const Num *from, size_t n)
{
    memcpy(host, from, n * sizeof *host);
}

static int status(Error *err) /* out of memory ends the program, and nothing else can fail */
{
    (void)err;
    return 0;
}

/* Memory available without swapping: MemAvailable, in KiB. */
static int memory(size_t *free_bytes, size_t *total_bytes, Error *err)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[256];
    unsigned long long left = 0, total = 0;
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "MemAvailable: %llu", &left);
        sscanf(line, "MemTotal: %llu", &total);
    }
    if (f) fclose(f);
    if (!total)
        return error_set(err, ERROR_IO, "/proc/meminfo: expected MemTotal and MemAvailable");
    *free_bytes = (size_t)left << 10;
    *total_bytes = (size_t)total << 10;
    return 0;
}

static void parallel(int rows, void (*body)(void *ctx, int part, int first, int rows), void *ctx)
{
    int parts = cpu_threads() < rows ? cpu_threads() : rows;
#pragma omp parallel for num_threads(parts) schedule(static)
    for (int p = 0; p < parts; p++) {
        int first = (int)((int64_t)rows * p / parts), last = (int)((int64_t)rows * (p + 1) / parts);
        body(ctx, p, first, last - first);
    }
}

/* Pieces of a product: along the longer side of c, at least 64, a few per core. */
static int piece(int side)
{
    int want = side / 8 < 64 ? 64 : side / 8 > 256 ? 256 : side / 8;
    return (want + 31) / 32 * 32;
}

/* Copy a piece of c before it is written, since beta times it is added. */
static void copy_piece(const Gemm *g, size_t at, int rows, int columns)
{
    for (int r = 0; r < rows; r++, at += (size_t)g->ldd)
        memcpy((float *)g->d + at, (const float *)g->c + at, (size_t)columns * sizeof(float));
}

static void add_bias(float *y, int ld, const float *bias, int rows, int n)
{
    for (int r = 0; r < rows; r++) {
        float *row = y + (size_t)r * (size_t)ld;
        for (int i = 0; i < n; i++) row[i] += bias[i];
    }
}

/* n rows of a matrix, or columns, from the first on. */
static Matrix some_rows(Matrix a, int first, int n)
{
    const float *at = (const float *)a.at + (size_t)first * (size_t)(a.turned ? 1 : a.ld);
    return (Matrix){at, n, a.columns, a.ld, a.turned};
}

static Matrix some_columns(Matrix a, int first, int n)
{
    return transposed(some_rows(transposed(a), first, n));
}

static void gemm(const Gemm *g)
{
    int m = g->a.rows, n = g->b.columns;
    int by_rows = m >= n, side = by_rows ? m : n, step = piece(side),
        pieces = (side + step - 1) / step;
    const float *bias = g->bias;
#pragma omp parallel for num_threads(cpu_threads()) schedule(dynamic) if (pieces > 1)
    for (int p = 0; p < pieces; p++) {
        int first = p * step, size = side - first < step ? side - first : step;
        Matrix a = by_rows ? some_rows(g->a, first, size) : g->a,
               b = by_rows ? g->b : some_columns(g->b, first, size);
        size_t at = by_rows ? (size_t)first * (size_t)g->ldd : (size_t)first;
        float *d = (float *)g->d + at;
        if (g->beta != 0 && g->c != g->d) copy_piece(g, at, a.rows, b.columns);
        blas_sgemm(g->alpha, a, b, g->beta, d, g->ldd);
        if (bias) add_bias(d, g->ldd, bias + (by_rows ? 0 : first), a.rows, b.columns);
    }
}

void cpu_add_bias(float *y, const float *bias, int rows, int n)
{
    add_bias(y, n, bias, rows, n);
}

static void add(Num *y_, const Num *x_, size_t n)
{
    float *y = y_;
    const float *x = x_;
#pragma omp parallel for num_threads(cpu_threads()) schedule(static) if (n > 4096)
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

static void bias_grad(float *db, const Num *dy_, int rows, int n)
{
    const float *dy = dy_;
#pragma omp parallel for num_threads(cpu_threads()) schedule(dynamic)
    for (int i = 0; i < n; i += LANES) {
        Vec sum = {0};
        for (int r = 0; r < rows; r++) sum += v_get(dy + (size_t)r * (size_t)n + i, n - i);
        v_put(db + i, v_get(db + i, n - i) + sum, n - i);
    }
}

static float inverse_rms(const float *x, int n, float eps)
{
    Vec sum = {0};
    for (int i = 0; i < n; i += LANES) {
        Vec v = v_get(x + i, n - i);
        sum += v * v;
    }
    return 1.0f / sqrtf(v_sum(sum) / (float)n + eps);
}

static void head_norm(Num *y_, const Norm *s)
{
    float *y = y_;
    const float *x = s->x, *w = s->w;
    int n = s->n;
#pragma omp parallel for num_threads(cpu_threads()) schedule(static) if (s->rows > 16)
    for (int r = 0; r < s->rows; r++)
        for (int g = 0; g < s->groups; g++) {
            size_t at = (size_t)r * (size_t)s->ld + (size_t)g * (size_t)n;
            float inv = inverse_rms(x + at, n, s->eps);
            for (int i = 0; i < n; i += LANES)
                v_put(y + at + i, v_get(x + at + i, n - i) * inv * v_get(w + i, n - i), n - i);
        }
}

/* The vector at `at`: with g = dy w, dx = inv g - x inv^3 mean(g x); dw += dy x inv. */
static void vector_grad(float *dx, int more, float *dw, const float *dy, const Norm *s, size_t at)
{
    const float *x = (const float *)s->x + at, *w = s->w;
    int n = s->n;
    float inv = inverse_rms(x, n, s->eps);
    Vec dot = {0};
    for (int i = 0; i < n; i += LANES) {
        Vec d = v_get(dy + at + i, n - i), v = v_get(x + i, n - i);
        dot += d * v_get(w + i, n - i) * v;
        v_put(dw + i, v_get(dw + i, n - i) + d * v * inv, n - i);
    }
    float back = v_sum(dot) / (float)n * inv * inv * inv;
    for (int i = 0; i < n; i += LANES) {
        Vec out =
            v_get(dy + at + i, n - i) * v_get(w + i, n - i) * inv - v_get(x + i, n - i) * back;
        v_put(dx + at + i, more ? v_get(dx + at + i, n - i) + out : out, n - i);
    }
}

static void rmsnorm_grad(Num *dx, int more, float *dw, const Num *dy, const Norm *s)
{
    size_t n = (size_t)s->n;
    float *sums = memory_array(PARTS * n, sizeof *sums);
#pragma omp parallel for num_threads(cpu_threads()) schedule(dynamic)
    for (int p = 0; p < PARTS; p++) {
        int first = (int)((int64_t)s->rows * p / PARTS),
            last = (int)((int64_t)s->rows * (p + 1) / PARTS);
        for (int r = first; r < last; r++)
            for (int g = 0; g < s->groups; g++)
                vector_grad(dx, more, sums + (size_t)p * n, dy, s,
                            (size_t)r * (size_t)s->ld + (size_t)g * n);
    }
    for (int p = 0; p < PARTS && dw; p++)
        for (int i = 0; i < s->n; i++) dw[i] += sums[(size_t)p * n + (size_t)i];
    free(sums);
}

static void head_norm_grad(Num *dx, float *dw, const Num *dy, const Norm *s)
{
    rmsnorm_grad(dx, 0, dw, dy, s);
}

static void rope(Num *qkv_, const Rotation *angle, HeadShape s, float sign)
{
    float *qkv = qkv_;
    int half = s.dim / 2, ld = head_row(s);
#pragma omp parallel for num_threads(cpu_threads()) schedule(static) if (angle->rows > 16)
    for (int r = 0; r < angle->rows; r++) {
        size_t at = (size_t)angle->pos[r] * (size_t)half;
        const float *cs = angle->cosines + at, *sn = angle->sines + at;
        for (int h = 0; h < s.heads + s.kv_heads; h++) {
            float *a = qkv + (size_t)r * (size_t)ld + (size_t)h * (size_t)s.dim, *b = a + half;
            for (int i = 0; i < half; i += LANES) {
                Vec x = v_get(a + i, half - i), y = v_get(b + i, half - i);
                Vec c = v_get(cs + i, half - i), t = v_get(sn + i, half - i) * sign;
                v_put(a + i, x * c - y * t, half - i);
                v_put(b + i, y * c + x * t, half - i);
            }
        }
    }
}

static void swiglu(Num *act_, const Num *gate_up_, int rows, int ff)
{
    float *act = act_;
    const float *gate_up = gate_up_;
#pragma omp parallel for num_threads(cpu_threads()) schedule(static) if (rows > 16)
    for (int r = 0; r < rows; r++) {
        const float *g = gate_up + (size_t)r * 2 * (size_t)ff, *u = g + ff;
        float *out = act + (size_t)r * (size_t)ff;
        for (int i = 0; i < ff; i += LANES) {
            Vec z = v_get(g + i, ff - i);
            v_put(out + i, z / (1.0f + v_exp(-z)) * v_get(u + i, ff - i), ff - i);
        }
    }
}

static void swiglu_grad(Num *dgate_up_, const Num *dact_, const Num *gate_up_, int rows, int ff)
{
    float *dgate_up = dgate_up_;
    const float *dact = dact_, *gate_up = gate_up_;
#pragma omp parallel for num_threads(cpu_threads()) schedule(static) if (rows > 16)
    for (int r = 0; r < rows; r++) {
        size_t at = (size_t)r * 2 * (size_t)ff;
        const float *g = gate_up + at, *u = g + ff, *dy = dact + (size_t)r * (size_t)ff;
        float *dg = dgate_up + at, *du = dg + ff;
        for (int i = 0; i < ff; i += LANES) {
            Vec z = v_get(g + i, ff - i), d = v_get(dy + i, ff - i);
            Vec sig = 1.0f / (1.0f + v_exp(-z)), silu = z * sig;
            v_put(dg + i, d * v_get(u + i, ff - i) * (sig + silu * (1.0f - sig)), ff - i);
            v_put(du + i, d * silu, ff - i);
        }
    }
}

static void embed(float *x, const Num *rows_of_ids, const int32_t *ids, int rows, int n)
{
    for (int r = 0; r < rows; r++)
        memcpy(x + (size_t)r * (size_t)n, (const float *)rows_of_ids + (size_t)ids[r] * (size_t)n,
               (size_t)n * sizeof(float));
}

/* Threads divide the columns, and rows are added in order, so that two threads never add to the
 * same numbers. */
static void embed_grad(float *dtable, const Num *dx_, const BatchView *b, int n)
{
    const float *dx = dx_;
#pragma omp parallel for num_threads(cpu_threads()) schedule(dynamic)
    for (int i = 0; i < n; i += 32)
        for (int r = 0; r < b->rows; r++)
            for (int j = i; j < n && j < i + 32; j += LANES) {
                float *to = dtable + (size_t)b->ids[r] * (size_t)n + j;
                v_put(to, v_get(to, n - j) + v_get(dx + (size_t)r * (size_t)n + j, n - j), n - j);
            }
}

static float row_lse(const float *z, int vocab)
{
    Vec top = v_splat(-INFINITY), sum = {0};
    int whole = vocab & -LANES;
    for (int i = 0; i < whole; i += LANES) top = v_max(v_load(z + i), top);
    float m = v_top(top);
    for (int i = whole; i < vocab; i++) m = z[i] > m ? z[i] : m;
    for (int i = 0; i < whole; i += LANES) sum += v_exp(v_load(z + i) - m);
    double s = v_sum(sum);
    for (int i = whole; i < vocab; i++) s += exp((double)z[i] - (double)m);
    return (float)((double)m + log(s));
}

static void cross_entropy(float *logp, float *lse, const Logits *l)
{
#pragma omp parallel for num_threads(cpu_threads()) schedule(static)
    for (int r = 0; r < l->rows; r++) {
        const float *z = l->z + (size_t)r * (size_t)l->vocab;
        int target = l->target[r];
        lse[r] = row_lse(z, l->vocab);
        logp[r] = target < 0 ? 0 : z[target] - lse[r];
    }
}

static void cross_entropy_grad(Num *dlogits, const float *lse, const float *weight, const Logits *l)
{
    int vocab = l->vocab;
#pragma omp parallel for num_threads(cpu_threads()) schedule(static)
    for (int r = 0; r < l->rows; r++) {
        const float *z = l->z + (size_t)r * (size_t)vocab;
        int target = l->target[r];
        float *dz = (float *)dlogits + (size_t)r * (size_t)vocab, w = target < 0 ? 0 : weight[r];
        for (int i = 0; i < vocab; i += LANES)
            v_put(dz + i, v_exp(v_get(z + i, vocab - i) - lse[r]) * -w, vocab - i);
        if (target >= 0) dz[target] += w;
    }
}

static double sum_squares(const float *x, size_t n)
{
    double part[PARTS];
#pragma omp parallel for num_threads(cpu_threads()) schedule(static) if (n > 4096)
    for (int p = 0; p < PARTS; p++) {
        double lanes[16] = {0};
        size_t i = n * (size_t)p / PARTS, end = n * (size_t)(p + 1) / PARTS;
        for (; i + 16 <= end; i += 16)
            for (int j = 0; j < 16; j++)
                lanes[j] += (double)x[i + (size_t)j] * (double)x[i + (size_t)j];
        for (; i < end; i++) lanes[0] += (double)x[i] * (double)x[i];
        part[p] = 0;
        for (int j = 0; j < 16; j++) part[p] += lanes[j];
    }
    double sum = 0;
    for (int p = 0; p < PARTS; p++) sum += part[p];
    return sum;
}

/* p is fp32 here and is its own master. */
static void adamw(const AdamSlice *a, const AdamStep *s)
{
    float *p = a->p, *g = a->g, *m = a->m, *v = a->v;
    size_t n = a->n;
    const float b1 = (float)s->beta1, b2 = (float)s->beta2, a1 = (float)(1 - s->beta1),
                a2 = (float)(1 - s->beta2);
    const float scale = (float)s->scale, keep = (float)(1 - s->lr * s->decay), eps = (float)s->eps;
    const float rate = (float)(s->lr / s->correct1), root = (float)(1 / sqrt(s->correct2));
#pragma omp parallel for simd num_threads(cpu_threads()) schedule(static) if (parallel : n > 4096)
    for (size_t i = 0; i < n; i++) {
        float d = g[i] * scale;
        float mi = m[i] = b1 * m[i] + a1 * d, vi = v[i] = b2 * v[i] + a2 * d * d;
        p[i] = p[i] * keep - rate * mi / (sqrtf(vi) * root + eps);
        g[i] = 0;
    }
}

static const Ops table = {
    .name = "cpu",
    .is_cpu = 1,
    .num = sizeof(float),
    .align = 16,
    .alloc = alloc,
    .release = release,
    .copy = copy,
    .zero = zero,
    .upload = copy,
    .download = copy,
    .load = load,
    .store = store,
    .status = status,
    .memory = memory,
    .gemm = gemm,
    .bias_grad = bias_grad,
    .add = add,
    .rmsnorm = head_norm,
    .rmsnorm_grad = rmsnorm_grad,
    .head_norm = head_norm,
    .head_norm_grad = head_norm_grad,
    .rope = rope,
    .attention = cpu_attention,
    .attention_grad = cpu_attention_grad,
    .swiglu = swiglu,
    .swiglu_grad = swiglu_grad,
    .embed = embed,
    .embed_grad = embed_grad,
    .cross_entropy = cross_entropy,
    .cross_entropy_grad = cross_entropy_grad,
    .sum_squares = sum_squares,
    .adamw = adamw,
    .pack = cpu_pack,
    .matmul_packed = cpu_matmul_packed,
    .parallel = parallel,
    .parts = cpu_threads,
};

const Ops *ops_cpu(void)
{
    cpu_threads(); /* sets OpenBLAS to one thread before its first call */
    return &table;
}
