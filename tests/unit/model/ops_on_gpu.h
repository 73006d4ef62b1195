/* Support of the CUDA table's tests: arrays on both sides with guards, comparisons, batches, TAP.
 * Outputs begin as NaN, or as the numbers that are added to, so that only written numbers pass. */
#ifndef TESTS_OPS_ON_GPU_H
#define TESTS_OPS_ON_GPU_H

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "gpu/gpus.h"
#include "model/core/halves.h"
#include "model/cpu/ops_cpu.h"
#include "model/model_device.h"

enum { GUARD = 64, ELEMENT = 8 };

static const Ops *cpu, *gpu;
static Random rng;
static int tests, failures;

static struct {
    char name[160];
    double worst, limit; /* the error nearest to its limit, or farthest above it */
    int failed;
    char what[600];
} now;

static inline void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline void fail(const char *fmt, ...)
{
    va_list ap;
    if (now.failed++) return;
    va_start(ap, fmt);
    vsnprintf(now.what, sizeof now.what, fmt, ap);
    va_end(ap);
}

static inline void note(double error, double limit)
{
    if (!(error * now.limit <= now.worst * limit) || now.limit == 0)
        now.worst = error, now.limit = limit;
}

static inline void begin(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline void begin(const char *fmt, ...)
{
    va_list ap;
    memset(&now, 0, sizeof now);
    va_start(ap, fmt);
    vsnprintf(now.name, sizeof now.name, fmt, ap);
    va_end(ap);
    random_init(&rng, 1000 + (uint64_t)tests, 0);
}

static inline void end(void)
{
    Error err;
    if (gpu->status(&err)) fail("%s", err.text);
    tests++;
    failures += now.failed != 0;
    printf("%sok %d - %s (worst error %.2g of %.2g)\n", now.failed ? "not " : "", tests, now.name,
           now.worst, now.limit);
    if (now.failed) printf("# %s (%d in all)\n", now.what, now.failed);
    fflush(stdout);
}

/* ---- arrays on both sides ---- */

typedef struct {
    char name[24];
    size_t n;
    int wide;    /* fp32 on the GPU too */
    float *host; /* the CPU table's */
    char *base;  /* the GPU's allocation, with guards */
    void *gpu;
} Array;

static inline size_t bytes_of(const Array *a, size_t n)
{
    return n * (a->wide ? sizeof(float) : sizeof(uint16_t));
}

static inline void put(Array *a)
{
    if (a->wide)
        gpu->upload(a->gpu, a->host, a->n * sizeof(float));
    else
        gpu->load(a->gpu, a->host, a->n);
}

/* shift: offset of the array from an aligned address, in Nums */
static inline Array array_at(const char *name, size_t n, int wide, size_t shift)
{
    Array a = {.n = n, .wide = wide, .host = memory_array(n + 1, sizeof(float))};
    snprintf(a.name, sizeof a.name, "%s", name);
    size_t guard = bytes_of(&a, GUARD), all = 2 * guard + bytes_of(&a, n + shift) + 64;
    unsigned char *marks = memory_array(all, 1);
    memset(marks, 0xA5, all);
    a.base = gpu->alloc(all);
    gpu->upload(a.base, marks, all);
    a.gpu = a.base + guard + bytes_of(&a, shift);
    free(marks);
    return a;
}

/* Normal numbers that bf16 holds. */
static inline Array given_at(const char *name, size_t n, int wide, double scale, size_t shift)
{
    Array a = array_at(name, n, wide, shift);
    for (size_t i = 0; i < n; i++) {
        float v = (float)(scale * random_normal(&rng));
        a.host[i] = wide ? v : bf16_to_float(float_to_bf16(v));
    }
    put(&a);
    return a;
}

static inline Array given(const char *name, size_t n, int wide, double scale)
{
    return given_at(name, n, wide, scale, 0);
}

/* For an output that is written, not added to: NaN. */
static inline Array blank_at(const char *name, size_t n, int wide, size_t shift)
{
    Array a = array_at(name, n, wide, shift);
    for (size_t i = 0; i < n; i++) a.host[i] = NAN;
    put(&a);
    return a;
}

static inline Array blank(const char *name, size_t n, int wide)
{
    return blank_at(name, n, wide, 0);
}

static inline void drop(Array *a)
{
    free(a->host);
    gpu->release(a->base);
}

static inline float *fetch(const Array *a)
{
    float *got = memory_array(a->n + 1, sizeof *got);
    if (a->wide)
        gpu->download(got, a->gpu, a->n * sizeof *got);
    else
        gpu->store(got, a->gpu, a->n);
    return got;
}

static inline void check_guards(const Array *a)
{
    unsigned char side[2][GUARD * 4];
    size_t guard = bytes_of(a, GUARD);
    gpu->download(side[0], (char *)a->gpu - guard, guard);
    gpu->download(side[1], (char *)a->gpu + bytes_of(a, a->n), guard);
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < guard; i++)
            if (side[s][i] != 0xA5) {
                fail("%s: byte %zu %s it was overwritten", a->name, i, s ? "after" : "before");
                return;
            }
}

/* Check that the numbers between rows of `cols`, ld apart, equal the host's. */
static inline void check_between(const Array *a, const float *got, size_t cols, size_t ld)
{
    for (size_t i = 0; i < a->n; i++)
        if (i % ld >= cols && memcmp(&got[i], &a->host[i], sizeof *got) &&
            !(isnan(got[i]) && isnan(a->host[i])))
            fail("%s: row %zu, number %zu lies between rows and was changed to %.7g", a->name,
                 i / ld, i % ld, (double)got[i]);
}

/* Check rows of `cols` numbers, ld apart. */
static inline void check_rows(const Array *a, size_t cols, size_t ld, double limit)
{
    float *got = fetch(a);
    for (size_t at = 0; at < a->n; at += ld) {
        double diff = 0, norm = 0;
        size_t n = a->n - at < cols ? a->n - at : cols;
        for (size_t i = 0; i < n; i++) {
            double d = (double)got[at + i] - (double)a->host[at + i];
            diff += d * d;
            norm += (double)a->host[at + i] * (double)a->host[at + i];
        }
        double error = norm > 0 ? sqrt(diff / norm) : sqrt(diff), rms = sqrt(norm / (double)n);
        note(error, limit);
        if (!(error <= limit))
            fail("%s: row %zu of %zu numbers is off by %.3g of its norm; the limit is %.3g",
                 a->name, at / ld, n, error, limit);
        for (size_t i = 0; i < n; i++) {
            double d = fabs((double)got[at + i] - (double)a->host[at + i]);
            if (!(d <= ELEMENT * limit * (rms + fabs((double)a->host[at + i])) + FLT_MIN))
                fail("%s: row %zu, number %zu is %.7g, expected %.7g (the row's rms is %.3g)",
                     a->name, at / ld, i, (double)got[at + i], (double)a->host[at + i], rms);
        }
    }
    check_between(a, got, cols, ld);
    free(got);
    check_guards(a);
}

static inline void check(const Array *a, size_t row, double limit)
{
    check_rows(a, row, row, limit);
}

/* Check statistics of any size: each number by itself. */
static inline void check_each(const Array *a, double limit)
{
    float *got = fetch(a);
    for (size_t i = 0; i < a->n; i++) {
        double d = fabs((double)got[i] - (double)a->host[i]) / (1 + fabs((double)a->host[i]));
        note(d, limit);
        if (!(d <= limit))
            fail("%s: number %zu is %.9g, expected %.9g", a->name, i, (double)got[i],
                 (double)a->host[i]);
    }
    free(got);
    check_guards(a);
}

/* The same work gives the same bits again: keep the result, and compare after the second run. */
static inline void *kept(const Array *a)
{
    void *bits = memory_array(bytes_of(a, a->n) + 1, 1);
    gpu->download(bits, a->gpu, bytes_of(a, a->n));
    return bits;
}

static inline void check_kept(const Array *a, void *bits)
{
    void *again = kept(a);
    if (memcmp(bits, again, bytes_of(a, a->n)))
        fail("%s: the same work again gave other bits", a->name);
    free(again);
    free(bits);
}

static inline int32_t *device_ints(const int32_t *host, size_t n)
{
    int32_t *p = gpu->alloc((n + 1) * sizeof *p);
    gpu->upload(p, host, n * sizeof *p);
    return p;
}

/* ---- batches ---- */

typedef struct {
    BatchView cpu, gpu;
} Batch;

static inline void sort_ids(const int32_t *ids, int rows, int32_t *order, int32_t *run, int *runs)
{
    for (int i = 0; i < rows; i++) { /* insertion sort, stable */
        int j = i;
        for (; j > 0 && ids[order[j - 1]] > ids[i]; j--) order[j] = order[j - 1];
        order[j] = i;
    }
    *runs = 0;
    for (int i = 0; i < rows; i++)
        if (!i || ids[order[i]] != ids[order[i - 1]]) run[(*runs)++] = i;
    run[*runs] = rows;
}

/* lengths end with 0 */
static inline Batch batch_of(const int *lengths, int vocab)
{
    Batch b = {{0}, {0}};
    int rows = 0, n = 0, longest = 0, runs;
    for (; lengths[n]; n++) rows += lengths[n];
    int32_t *ids = memory_array((size_t)rows, 4), *pos = memory_array((size_t)rows, 4),
            *target = memory_array((size_t)rows, 4);
    int32_t *start = memory_array((size_t)n + 1, 4), *order = memory_array((size_t)rows, 4),
            *run = memory_array((size_t)rows + 1, 4);
    for (int i = 0, at = 0; i < n; at += lengths[i++]) {
        if (lengths[i] > longest) longest = lengths[i];
        for (int t = 0; t < lengths[i]; t++) {
            ids[at + t] = (int32_t)(random_u64(&rng) % (uint64_t)vocab);
            if (random_u64(&rng) % 3 == 0)
                ids[at + t] = (int32_t)(random_u64(&rng) % 3) % vocab; /* some ids are frequent */
            pos[at + t] = t;
        }
        for (int t = 0; t < lengths[i]; t++)
            target[at + t] = t + 1 < lengths[i] ? ids[at + t + 1] : -1;
        start[i + 1] = start[i] + lengths[i];
    }
    sort_ids(ids, rows, order, run, &runs);
    b.cpu = (BatchView){rows, n, longest, ids, pos, target, start, order, run, runs};
    b.gpu = (BatchView){rows,
                        n,
                        longest,
                        device_ints(ids, (size_t)rows),
                        device_ints(pos, (size_t)rows),
                        device_ints(target, (size_t)rows),
                        device_ints(start, (size_t)n + 1),
                        device_ints(order, (size_t)rows),
                        device_ints(run, (size_t)runs + 1),
                        runs};
    return b;
}

static inline void batch_drop(Batch *b)
{
    const int32_t *host[] = {b->cpu.ids,   b->cpu.pos,   b->cpu.target,
                             b->cpu.start, b->cpu.order, b->cpu.run};
    const int32_t *device[] = {b->gpu.ids,   b->gpu.pos,   b->gpu.target,
                               b->gpu.start, b->gpu.order, b->gpu.run};
    for (int i = 0; i < 6; i++) {
        free((void *)(uintptr_t)host[i]);
        gpu->release((void *)(uintptr_t)device[i]);
    }
}

/* Run `all` on the GPU of QUERN_TEST_DEVICE, cuda:0 by default, and skip it where there is none.
 * Returns the exit status. */
static inline int on_gpu(void (*all)(void))
{
    const char *device = getenv("QUERN_TEST_DEVICE");
    Gpu one;
    Error err;
    int n = gpus_list(&one, 1, &err);
    if (!n) {
        printf("1..0 # SKIP no GPU\n");
        return 0;
    }
    if (n < 0 || model_device(device && *device ? device : "cuda:0", &gpu, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    cpu = ops_cpu();
    all();
    printf("1..%d\n", tests);
    return failures != 0;
}

#endif
