/* Element types, their rounding, and the comparison of outputs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tasks/task.h"

double dtype_overflow(Dtype d)
{
    switch (d) {
    case DTYPE_F32: return 0x1.ffffffp127;
    case DTYPE_F16: return 65520;
    case DTYPE_BF16: return 0x1.ffp127;
    default: return INFINITY;
    }
}

size_t dtype_size(Dtype d)
{
    static const size_t sizes[DTYPES] = {4, 2, 2, 4, 8, 1, 8};
    return sizes[d];
}

const char *dtype_name(Dtype d)
{
    static const char *const names[] = {"float32", "float16", "bfloat16", "int32",
                                        "int64",   "bool",    "float64"};
    return names[d];
}

const char *dtype_ctype(Dtype d)
{
    static const char *const names[] = {"float",     "__half", "__nv_bfloat16", "int",
                                        "long long", "bool",   "double"};
    return names[d];
}

static double half_to_double(uint16_t h)
{
    uint64_t exponent = h >> 10 & 31, fraction = h & 1023;
    uint64_t bits = (exponent + 1023 - 15) << 52 | fraction << 42;
    double v;
    memcpy(&v, &bits, sizeof v);
    if (exponent == 31) v = fraction ? NAN : INFINITY;
    if (exponent == 0) v = (double)fraction * 0x1p-24;
    return h & 0x8000 ? -v : v;
}

/* Rounds once, ties to even: by a sum whose last bit is the step of a subnormal number, else by
 * bits, where a carry goes into the exponent. */
static uint16_t half_from_double(double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double a = fabs(x), steps = a * 0x1p24 + 0x1p52;
    uint64_t bits;
    if (isnan(x)) return sign | 0x7e00;
    if (a >= 65520.0) return sign | 0x7c00;
    memcpy(&bits, a < 0x1p-14 ? &steps : &a, sizeof bits);
    if (a < 0x1p-14) return (uint16_t)(sign | (bits & 0x7ff));
    bits += ((uint64_t)1 << 41) - 1 + (bits >> 42 & 1);
    return (uint16_t)(sign | ((bits >> 42) - ((1023 - 15) << 10)));
}

static double bfloat_to_double(uint16_t b)
{
    uint32_t bits = (uint32_t)b << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static uint16_t bfloat_from_double(double x)
{
    /* truncated to float with a sticky last bit, so that only the second step rounds */
    float f = (float)x;
    if (isnan(x)) return 0x7fc0;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (!isinf(x) && fabs((double)f) > fabs(x)) bits--;
    if (!isinf(x)) {
        float low;
        memcpy(&low, &bits, sizeof low);
        if ((double)low != x) bits |= 1;
    }
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (uint16_t)(rounded >> 16);
}

/* Elements of one block of a conversion. Large tensors use all cores. */
enum { BLOCK = 1 << 16 };

static void widen(Dtype d, const void *src, double *dst, size_t n)
{
    const uint16_t *half = src;
    switch (d) {
    case DTYPE_F32:
#pragma omp simd
        for (size_t i = 0; i < n; i++) dst[i] = (double)((const float *)src)[i];
        break;
    case DTYPE_F16:
        for (size_t i = 0; i < n; i++) dst[i] = half_to_double(half[i]);
        break;
    case DTYPE_BF16:
        for (size_t i = 0; i < n; i++) dst[i] = bfloat_to_double(half[i]);
        break;
    case DTYPE_I32:
        for (size_t i = 0; i < n; i++) dst[i] = (double)((const int32_t *)src)[i];
        break;
    case DTYPE_I64:
        for (size_t i = 0; i < n; i++) dst[i] = (double)((const int64_t *)src)[i];
        break;
    case DTYPE_B8:
        for (size_t i = 0; i < n; i++) dst[i] = ((const uint8_t *)src)[i] != 0;
        break;
    case DTYPE_F64: memcpy(dst, src, n * sizeof *dst); break;
    case DTYPES: break;
    }
}

void dtype_to_double(Dtype d, const void *src, double *dst, size_t n)
{
    if (n <= BLOCK) {
        widen(d, src, dst, n);
        return;
    }
#pragma omp parallel for if (n >= TASK_LARGE)
    for (size_t at = 0; at < n; at += BLOCK)
        widen(d, (const char *)src + at * dtype_size(d), dst + at, n - at < BLOCK ? n - at : BLOCK);
}

static int32_t int_from_double(double x)
{
    if (isnan(x)) return 0;
    if (x <= -2147483648.0) return INT32_MIN;
    if (x >= 2147483647.0) return INT32_MAX;
    return (int32_t)nearbyint(x);
}

void dtype_from_double(Dtype d, const double *src, void *dst, size_t n)
{
    uint16_t *half = dst;
    switch (d) {
    case DTYPE_F32:
#pragma omp simd
        for (size_t i = 0; i < n; i++) ((float *)dst)[i] = (float)src[i];
        break;
    case DTYPE_F16:
        for (size_t i = 0; i < n; i++) half[i] = half_from_double(src[i]);
        break;
    case DTYPE_BF16:
        for (size_t i = 0; i < n; i++) half[i] = bfloat_from_double(src[i]);
        break;
    case DTYPE_I32:
        for (size_t i = 0; i < n; i++) ((int32_t *)dst)[i] = int_from_double(src[i]);
        break;
    case DTYPE_I64:
        for (size_t i = 0; i < n; i++) ((int64_t *)dst)[i] = int_from_double(src[i]);
        break;
    case DTYPE_B8:
        for (size_t i = 0; i < n; i++) ((uint8_t *)dst)[i] = src[i] != 0;
        break;
    case DTYPE_F64: memcpy(dst, src, n * sizeof *src); break;
    case DTYPES: break;
    }
}

/* Infinity stands for an expected value that is too large for the type, or that is within its
 * tolerance of such a value. */
static int same(Dtype type, double got, double want, double atol, double rtol)
{
    if (isnan(want)) return isnan(got);
    if (isinf(want) || isnan(got)) return got == want;
    double limit = atol + rtol * fabs(want);
    if (isinf(got)) return (got > 0) == (want > 0) && fabs(want) + limit >= dtype_overflow(type);
    return fabs(got - want) <= limit;
}

/* The error in tolerances, which decides the worst element. */
static double excess(double got, double want, double atol, double rtol)
{
    double d = fabs(got - want), limit = atol + rtol * fabs(want);
    return isnan(d) || isinf(d) ? INFINITY : d / (limit > 0 ? limit : 0x1p-149);
}

static void index_text(const int64_t *shape, int rank, size_t flat, char *out, size_t size)
{
    int64_t index[TASK_MAX_RANK];
    for (int i = rank - 1; i >= 0; i--) {
        index[i] = (int64_t)(flat % (size_t)shape[i]);
        flat /= (size_t)shape[i];
    }
    size_t len = 0;
    out[0] = 0;
    for (int i = 0; i < rank && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "[%lld]", (long long)index[i]);
}

void task_difference_text(const Task *t, const Workload *w, int output, double atol, double rtol,
                          const TaskDifference *d, Error *message)
{
    const TaskTensor *y = &t->outputs[output];
    int64_t shape[TASK_MAX_RANK];
    size_t n;
    char first_at[160], worst_at[160];
    if (task_shape(t, w, y, shape, message) || task_elements(t, w, y, &n, message)) return;
    index_text(shape, y->rank, d->first, first_at, sizeof first_at);
    index_text(shape, y->rank, d->worst, worst_at, sizeof worst_at);
    error_set(message, ERROR_LIMIT,
              "%zu of %zu elements of %s differ by more than %.3g + %.3g*|expected|: first %s%s is "
              "%.9g, expected %.9g; "
              "worst %s%s is %.9g, expected %.9g",
              d->bad, n, y->name, atol, rtol, y->name, first_at, d->first_got, d->first_want,
              y->name, worst_at, d->worst_got, d->worst_want);
}

static void note_difference(TaskDifference *d, size_t at, double got, double want, double by,
                            double *worst_by)
{
    if (!d->bad++) d->first = at, d->first_got = got, d->first_want = want;
    if (by <= *worst_by) return;
    d->worst = at, d->worst_got = got, d->worst_want = want;
    *worst_by = by;
}

void task_differences(Dtype type, const void *got, const double *want, size_t from, size_t n,
                      double atol, double rtol, TaskDifference *d)
{
    size_t size = dtype_size(type);
    double worst_by = d->bad ? excess(d->worst_got, d->worst_want, atol, rtol) : -1;
    for (size_t done = 0; done < n; done += 512) {
        double chunk[512];
        size_t count = n - done < 512 ? n - done : 512;
        dtype_to_double(type, (const char *)got + done * size, chunk, count);
        for (size_t i = 0; i < count; i++) {
            double expected = want[done + i];
            if (same(type, chunk[i], expected, atol, rtol)) continue;
            note_difference(d, from + done + i, chunk[i], expected,
                            excess(chunk[i], expected, atol, rtol), &worst_by);
        }
    }
}

int task_compare(const Task *t, const Workload *w, int output, const void *got, const double *want,
                 double atol, double rtol, Error *message)
{
    TaskDifference d = {0};
    size_t n;
    /* Loading has checked this for the task's own workloads, but not for another one. */
    if (task_elements(t, w, &t->outputs[output], &n, message)) return 1;
    task_differences(t->outputs[output].dtype, got, want, 0, n, atol, rtol, &d);
    if (!d.bad) return 0;
    task_difference_text(t, w, output, atol, rtol, &d, message);
    return 1;
}
