/* Elements: types and their rounding, how inputs are drawn, how outputs are compared. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "tasks/task.h"

size_t dtype_size(Dtype d)
{
    return d == DTYPE_F32 || d == DTYPE_I32 ? 4 : 2;
}

const char *dtype_name(Dtype d)
{
    static const char *const names[] = {"float32", "float16", "bfloat16", "int32"};
    return names[d];
}

const char *dtype_ctype(Dtype d)
{
    static const char *const names[] = {"float", "__half", "__nv_bfloat16", "int"};
    return names[d];
}

const char *draw_name(Draw d)
{
    static const char *const names[] = {"normal", "uniform", "positive", "integer", "mixed"};
    return names[d];
}

static double half_to_double(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double v = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent ? ldexp(1024 + fraction, exponent - 25)
                          : ldexp(fraction, -24);
    return h & 0x8000 ? -v : v;
}

/* One rounding, from double to the nearest multiple of the step that the exponent allows. nearbyint
 * rounds ties to even in the default mode. */
static uint16_t half_from_double(double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double a = fabs(x);
    if (isnan(x)) return sign | 0x7e00;
    if (a >= 65520.0) return sign | 0x7c00;
    int exponent;
    frexp(a, &exponent); /* a = f * 2^exponent, f in [0.5, 1) */
    int step = a < 0x1p-14 ? -24 : exponent - 11;
    double units = nearbyint(ldexp(a, -step));
    if (step == -24) return (uint16_t)(sign | (uint16_t)units);
    if (units >= 2048.0) {
        units = 1024.0;
        step++;
    }
    return (uint16_t)(sign | (uint16_t)((step + 25) << 10) | ((uint16_t)units & 1023));
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
    /* float by truncation with a sticky last bit, so that the second rounding is the only one */
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

void dtype_to_double(Dtype d, const void *src, double *dst, size_t n)
{
    const uint16_t *half = src;
    switch (d) {
    case DTYPE_F32: for (size_t i = 0; i < n; i++) dst[i] = (double)((const float *)src)[i]; break;
    case DTYPE_F16: for (size_t i = 0; i < n; i++) dst[i] = half_to_double(half[i]); break;
    case DTYPE_BF16: for (size_t i = 0; i < n; i++) dst[i] = bfloat_to_double(half[i]); break;
    case DTYPE_I32: for (size_t i = 0; i < n; i++) dst[i] = (double)((const int32_t *)src)[i]; break;
    }
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
    case DTYPE_F32: for (size_t i = 0; i < n; i++) ((float *)dst)[i] = (float)src[i]; break;
    case DTYPE_F16: for (size_t i = 0; i < n; i++) half[i] = half_from_double(src[i]); break;
    case DTYPE_BF16: for (size_t i = 0; i < n; i++) half[i] = bfloat_from_double(src[i]); break;
    case DTYPE_I32: for (size_t i = 0; i < n; i++) ((int32_t *)dst)[i] = int_from_double(src[i]); break;
    }
}

/* The sum of twelve 16-bit uniforms, centred: variance 1, within +-6, and no libm in it, so that the
 * same seed gives the same bytes on every machine. */
static double draw_normal(Random *r)
{
    uint32_t sum = 0;
    for (int i = 0; i < 3; i++) {
        uint64_t x = random_u64(r);
        sum += (uint32_t)(x & 0xffff) + (uint32_t)(x >> 16 & 0xffff) + (uint32_t)(x >> 32 & 0xffff) + (uint32_t)(x >> 48);
    }
    return ((double)sum + 6.0) * 0x1p-16 - 6.0;
}

static double draw_mixed(Random *r)
{
    double x = draw_normal(r);
    switch (random_u64(r) >> 60) {
    case 0: return x * 16.0;
    case 1: return x * 0x1p-12;
    case 2: return 0.0;
    default: return x;
    }
}

static double draw_one(Random *r, const TaskTensor *x, double scale)
{
    switch (x->draw) {
    case DRAW_NORMAL: return draw_normal(r) * scale;
    case DRAW_UNIFORM: return (2.0 * random_uniform(r) - 1.0) * scale;
    case DRAW_POSITIVE: return (0.5 + random_uniform(r)) * scale;
    case DRAW_MIXED: return draw_mixed(r) * scale;
    case DRAW_INTEGER: break;
    }
    return (double)(x->draw_low + (int64_t)random_below(r, (uint64_t)(x->draw_high - x->draw_low) + 1));
}

int task_draw(const Task *t, const Workload *w, int input, uint64_t seed, double scale, void *dst, Error *err)
{
    if (input < 0 || input >= t->n_inputs)
        return error_set(err, "task %s: input %d asked for, there are %d", t->name, input, t->n_inputs);
    const TaskTensor *x = &t->inputs[input];
    size_t n, done = 0;
    if (task_elements(t, w, x, &n, err)) return -1;
    char stream[TASK_MAX_AXES * 24 + 64];
    int len = snprintf(stream, sizeof stream, "%s", x->name);
    for (int i = 0; i < t->n_axes; i++)
        len += snprintf(stream + len, sizeof stream - (size_t)len, "/%lld", (long long)w->axis[i]);
    Random r;
    random_init(&r, seed, random_hash(stream, (size_t)len));
    double chunk[512];
    size_t size = dtype_size(x->dtype);
    while (done < n) {
        size_t count = n - done < 512 ? n - done : 512;
        for (size_t i = 0; i < count; i++) chunk[i] = draw_one(&r, x, scale);
        dtype_from_double(x->dtype, chunk, (char *)dst + done * size, count);
        done += count;
    }
    return 0;
}

int task_tolerance(const Task *t, const Workload *w, int output, double scale, double *atol, double *rtol, Error *err)
{
    Dtype d = t->outputs[output].dtype;
    int64_t terms = 1;
    TaskScope scope = {t, w};
    if (t->terms && expr_eval(t->terms, strlen(t->terms), task_lookup, &scope, &terms, err))
        return error_prefix(err, "task %s: tolerance.terms", t->name);
    /* Scaled down, an output shrinks by its degree but a bias or a softmax's weights do not: one power. */
    double power = scale >= 1.0 ? t->degree : t->degree < 1 ? t->degree : 1;
    *atol = t->atol[d] * (double)terms * pow(scale, power);
    *rtol = t->rtol[d];
    return 0;
}

static int same(double got, double want, double atol, double rtol)
{
    if (isnan(want)) return isnan(got);
    if (isinf(want) || isinf(got) || isnan(got)) return got == want;
    return fabs(got - want) <= atol + rtol * fabs(want);
}

/* How far out, in tolerances: what makes an element "the worst". */
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
    for (int i = 0; i < rank && len < size; i++) len += (size_t)snprintf(out + len, size - len, "[%lld]", (long long)index[i]);
}

int task_compare(const Task *t, const Workload *w, int output, const void *got, const double *want, double scale,
                 Error *message)
{
    const TaskTensor *y = &t->outputs[output];
    int64_t shape[TASK_MAX_RANK];
    size_t n, first = 0, worst = 0, bad = 0;
    double atol, rtol, worst_by = -1, first_got = 0, worst_got = 0;
    /* A task that was loaded has passed these for all its workloads; another workload may not. */
    if (task_shape(t, w, y, shape, message) || task_elements(t, w, y, &n, message)) return 1;
    if (task_tolerance(t, w, output, scale, &atol, &rtol, message)) return 1;
    size_t size = dtype_size(y->dtype);
    for (size_t done = 0; done < n; done += 512) {
        double chunk[512];
        size_t count = n - done < 512 ? n - done : 512;
        dtype_to_double(y->dtype, (const char *)got + done * size, chunk, count);
        for (size_t i = 0; i < count; i++) {
            double expected = want[done + i];
            if (same(chunk[i], expected, atol, rtol)) continue;
            double by = excess(chunk[i], expected, atol, rtol);
            if (!bad++) first = done + i, first_got = chunk[i];
            if (by > worst_by) worst = done + i, worst_by = by, worst_got = chunk[i];
        }
    }
    if (!bad) return 0;
    char first_at[160], worst_at[160];
    index_text(shape, y->rank, first, first_at, sizeof first_at);
    index_text(shape, y->rank, worst, worst_at, sizeof worst_at);
    error_set(message,
              "%zu of %zu elements of %s differ by more than %.3g + %.3g*|expected|: first %s%s is %.9g, expected %.9g; "
              "worst %s%s is %.9g, expected %.9g",
              bad, n, y->name, atol, rtol, y->name, first_at, first_got, want[first], y->name, worst_at, worst_got,
              want[worst]);
    return 1;
}
