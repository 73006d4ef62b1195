/* The table of element types, and their rounding. */
#include "base/dtype.h"

#include <math.h>
#include <string.h>

enum { LARGE = 1 << 20 }; /* elements from which on all cores share a conversion */

const char *const dtype_names[DTYPES] = {
#define X(dtype, name, ...) name,
    DTYPE_TABLE(X)
#undef X
};

static const struct {
    const char *ctype, *file_name;
    int exported;
    size_t size;
    DtypeKind kind;
} types[DTYPES] = {
#define X(dtype, name, ctype, file_name, exported, size, kind) \
    {ctype, file_name, exported, size, kind},
    DTYPE_TABLE(X)
#undef X
};

const char *dtype_name(Dtype d)
{
    return dtype_names[d];
}

const char *dtype_ctype(Dtype d)
{
    return types[d].ctype;
}

const char *dtype_file_name(Dtype d)
{
    return types[d].file_name;
}

size_t dtype_size(Dtype d)
{
    return types[d].size;
}

DtypeKind dtype_kind(Dtype d)
{
    return types[d].kind;
}

int dtype_is_float(Dtype d)
{
    return types[d].kind == KIND_FLOAT;
}

int dtype_is_float8(Dtype d)
{
    return d == DTYPE_E4M3 || d == DTYPE_E5M2;
}

int dtype_is_small(Dtype d)
{
    return types[d].kind == KIND_INTEGER && types[d].size < sizeof(int32_t);
}

double dtype_overflow(Dtype d)
{
    switch (d) {
    case DTYPE_F32: return 0x1.ffffffp127;
    case DTYPE_F16: return 65520;
    case DTYPE_BF16: return 0x1.ffp127;
    case DTYPE_E4M3: return nextafter(464, 465); /* halfway, which is even in 448 */
    case DTYPE_E5M2: return 61440;
    default: return INFINITY;
    }
}

Dtype dtype_named(const char *name, size_t len)
{
    int d = 0;
    while (d < DTYPES && (strlen(dtype_names[d]) != len || memcmp(dtype_names[d], name, len))) d++;
    return (Dtype)d;
}

Dtype dtype_of_ctype(const char *ctype)
{
    int d = 0;
    while (d < DTYPES && strcmp(types[d].ctype, ctype)) d++;
    return (Dtype)d;
}

Dtype dtype_of_file_name(const char *name)
{
    int d = 0;
    while (d < DTYPES && strcmp(types[d].file_name, name)) d++;
    return (Dtype)d;
}

Dtype dtype_exported(int64_t number)
{
    int d = 0;
    while (d < DTYPES && types[d].exported != number) d++;
    return (Dtype)d;
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

/* ---- types of one byte: a sign, four or five bits of exponent ---- */

typedef struct {
    int fraction, bias; /* bits of the fraction */
    uint8_t over;       /* what overflows: NaN where there is no infinity */
    uint8_t nan;
} Float8;

static const Float8 e4m3 = {3, 7, 0x7f, 0x7f}, e5m2 = {2, 15, 0x7c, 0x7f};

static double float8_to_double(const Float8 *f, uint8_t b)
{
    int exponent = (b & 0x7f) >> f->fraction, part = b & ((1 << f->fraction) - 1);
    double v = exponent ? ldexp(part + (1 << f->fraction), exponent - f->bias - f->fraction)
                        : ldexp(part, 1 - f->bias - f->fraction);
    if ((b & 0x7f) >= f->over) v = (b & 0x7f) == f->over && f->over != f->nan ? INFINITY : NAN;
    return b & 0x80 ? -v : v;
}

static uint8_t float8_from_double(const Float8 *f, Dtype d, double x)
{
    uint8_t sign = signbit(x) ? 0x80 : 0;
    double a = fabs(x);
    int exponent;
    if (isnan(x)) return sign | f->nan;
    if (a == 0) return sign;
    if (a >= dtype_overflow(d)) return sign | f->over;
    frexp(a, &exponent); /* a is below 2^exponent */
    exponent = exponent - 1 + f->bias > 1 ? exponent - 1 + f->bias : 1;
    /* steps of the exponent; a carry goes into it */
    int steps = (int)nearbyint(ldexp(a, f->bias + f->fraction - exponent));
    return (uint8_t)(sign | (((exponent - 1) << f->fraction) + steps));
}

/* Elements of one block of a conversion. Large tensors use all cores. */
enum { BLOCK = 1 << 16 };

static void widen_small(Dtype d, const void *src, double *dst, size_t n)
{
    switch (d) {
    case DTYPE_I8:
        for (size_t i = 0; i < n; i++) dst[i] = ((const int8_t *)src)[i];
        break;
    case DTYPE_U8:
        for (size_t i = 0; i < n; i++) dst[i] = ((const uint8_t *)src)[i];
        break;
    case DTYPE_I16:
        for (size_t i = 0; i < n; i++) dst[i] = ((const int16_t *)src)[i];
        break;
    case DTYPE_E4M3:
        for (size_t i = 0; i < n; i++) dst[i] = float8_to_double(&e4m3, ((const uint8_t *)src)[i]);
        break;
    case DTYPE_E5M2:
        for (size_t i = 0; i < n; i++) dst[i] = float8_to_double(&e5m2, ((const uint8_t *)src)[i]);
        break;
    default: break;
    }
}

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
    default: widen_small(d, src, dst, n);
    }
}

void dtype_to_double(Dtype d, const void *src, double *dst, size_t n)
{
    if (n <= BLOCK) {
        widen(d, src, dst, n);
        return;
    }
#pragma omp parallel for if (n >= LARGE)
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

/* The low bits of the number's integer, as a conversion on a GPU leaves them. */
static uint64_t low_bits(double x)
{
    return isnan(x) || fabs(x) >= 0x1p63 ? 0 : (uint64_t)llrint(x);
}

static void narrow_small(Dtype d, const double *src, void *dst, size_t n)
{
    uint8_t *bytes = dst;
    uint16_t *shorts = dst;
    for (size_t i = 0; i < n; i++) switch (d) {
        case DTYPE_I8:
        case DTYPE_U8: bytes[i] = (uint8_t)low_bits(src[i]); break;
        case DTYPE_I16: shorts[i] = (uint16_t)low_bits(src[i]); break;
        case DTYPE_E4M3: bytes[i] = float8_from_double(&e4m3, d, src[i]); break;
        case DTYPE_E5M2: bytes[i] = float8_from_double(&e5m2, d, src[i]); break;
        default: break;
        }
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
    default: narrow_small(d, src, dst, n);
    }
}

double dtype_rounded(Dtype d, double x)
{
    uint64_t element = 0;
    dtype_from_double(d, &x, &element, 1);
    dtype_to_double(d, &element, &x, 1);
    return x;
}
