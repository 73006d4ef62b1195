/* Draws the inputs of a case: as the task says, or as one of the variants that reveal skipped work. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "tasks/regimes.h"
#include "tasks/task.h"

/* Elements of one stream of random numbers in a large tensor. Threads take one block at a time. */
enum { BLOCK = TASK_STREAM, CHUNK = 512, TEAM = TASK_LARGE / BLOCK };

/* Elements of such a tensor that are drawn together where an element needs no earlier one. */
enum { GRAIN = 256 };

/* Elements from which on the ends of a range are drawn in any case. */
enum { LEAST_ENDS = 4, MORE_ENDS = 32 };

/* Integers up to exact_limit are exact in float32. One factor of a product gets nearly all of its
 * bits, and at least twelve: more than TF32 and float16 keep. */
static const double exact_limit = 16777215.0, small_factor = 3.0, least_wide = 4095.0;
/* Where factors may be rounded to TF32, it keeps them, and bfloat16 does not. */
static const double most_tf32 = 2047.0, least_tf32 = 1023.0;

static const double needle_noise = 0.0625, needle_tolerance = 4.0;

typedef struct {
    const TaskTensor *x;
    uint64_t seed, stream; /* of random numbers */
    Variant variant;
    double scale;
    unsigned special;
    double limit;          /* VARIANT_INTEGERS: the largest value */
    IntegerBounds integer; /* DRAW_INTEGER */
    int64_t length,
        inner; /* of the dimension of distinct integers, and elements below it; 0: none */
} Recipe;

const char *draw_name(Draw d)
{
    static const char *const names[] = {"normal", "uniform", "positive", "integer", "mixed"};
    return names[d];
}

const char *variant_name(Variant v)
{
    static const char *const names[] = {"as drawn",
                                        "needles",
                                        "special values",
                                        "integers",
                                        "rows of signs",
                                        "rows of large values",
                                        "far from zero",
                                        "far below zero",
                                        "ends of the domain",
                                        "few bits",
                                        "rows of zeros",
                                        "ends of the range",
                                        "near the least number",
                                        "rows that fall"};
    return names[v];
}

/* ---- one element ---- */

static inline uint32_t four_uniforms(uint64_t x)
{
    return (uint32_t)(x & 0xffff) + (uint32_t)(x >> 16 & 0xffff) + (uint32_t)(x >> 32 & 0xffff) +
           (uint32_t)(x >> 48);
}

static inline double centred(uint32_t sum)
{
    return ((double)sum + 6.0) * 0x1p-16 - 6.0;
}

/* A sum of twelve 16-bit uniforms, centred: variance 1, within +-6. It uses no libm, so that a seed
 * gives the same bytes on every machine. */
static inline double draw_normal(Random *r)
{
    uint32_t sum = 0;
    for (int i = 0; i < 3; i++) sum += four_uniforms(random_u64(r));
    return centred(sum);
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

static inline double draw_plain(Random *r, const Recipe *m, double scale)
{
    const TaskTensor *x = m->x;
    switch (x->draw) {
    case DRAW_NORMAL: return (x->mean + x->std * draw_normal(r)) * scale;
    case DRAW_UNIFORM: return (x->low + (x->high - x->low) * random_uniform(r)) * scale;
    case DRAW_POSITIVE: return (0.5 + random_uniform(r)) * scale;
    case DRAW_MIXED: return (x->mean + x->std * draw_mixed(r)) * scale;
    case DRAW_INTEGER: break;
    }
    return (double)(m->integer.low +
                    (int64_t)random_below(r, (uint64_t)(m->integer.high - m->integer.low) + 1));
}

static inline double draw_needle(Random *r, const Recipe *m)
{
    uint64_t bits = random_u64(r);
    double large = 4.0 + 4.0 * random_uniform(r);
    if (m->x->draw == DRAW_POSITIVE) return bits >> 57 ? draw_plain(r, m, 1.0) : large;
    if (bits >> 57) return draw_normal(r) * needle_noise;
    return bits & 1 ? large : -large;
}

/* Draws one of the extreme numbers of a type. */
static inline double draw_special(Random *r, const Recipe *m)
{
    static const double ends[DTYPES][5] = {
        /* smallest subnormal, largest power of two that is one, smallest normal, tiny, largest */
        [DTYPE_F32] = {0x1p-149, 0x1p-127, 0x1p-126, 0x1p-100, 0x1.fffffep127},
        [DTYPE_F16] = {0x1p-24, 0x1p-15, 0x1p-14, 0x1p-12, 65504.0},
        [DTYPE_BF16] = {0x1p-133, 0x1p-127, 0x1p-126, 0x1p-100, 0x1.fep127},
        [DTYPE_E4M3] = {0x1p-9, 0x1p-7, 0x1p-6, 0x1p-5, 448},
        [DTYPE_E5M2] = {0x1p-16, 0x1p-15, 0x1p-14, 0x1p-12, 57344}};
    const double *end = ends[m->x->dtype];
    double list[12] = {0.0, end[0], end[1], end[2], end[3], 1.0};
    uint64_t n = 6, bits = random_u64(r);
    if (bits >> 63) return draw_normal(r);
    if (m->special & SPECIAL_LARGE) list[n++] = end[4], list[n++] = end[4] / 2;
    if (m->special & SPECIAL_INF) list[n++] = INFINITY;
    if (m->special & SPECIAL_NAN) list[n++] = NAN;
    double value = list[(bits >> 8) % n];
    return bits & 1 ? value : -value;
}

/* One loop a variant, with the generator's state in registers. */
static void draw_each(Random *r, const Recipe *m, double *out, size_t n)
{
    Random own = *r;
    switch (m->variant) {
    case VARIANT_NEEDLES:
        for (size_t i = 0; i < n; i++) out[i] = draw_needle(&own, m);
        break;
    case VARIANT_SPECIAL:
        for (size_t i = 0; i < n; i++) out[i] = draw_special(&own, m);
        break;
    case VARIANT_INTEGERS:
        for (size_t i = 0; i < n; i++)
            out[i] = (double)random_below(&own, (uint64_t)(2 * m->limit) + 1) - m->limit;
        break;
    default:
        for (size_t i = 0; i < n; i++) out[i] = draw_plain(&own, m, m->scale);
    }
    *r = own;
}

/* ---- a tensor ---- */

/* As draw_plain of each element, for what takes equally many random numbers for each. 0: it does not. */
static int draw_chunk(Random *r, const Recipe *m, double *out, size_t n)
{
    const TaskTensor *x = m->x;
    uint64_t bits[3 * CHUNK];
    if (m->variant != VARIANT_DRAWN || x->draw > DRAW_POSITIVE) return 0;
    double low = x->low, wide = x->high - low, mean = x->mean, std = x->std, scale = m->scale;
    random_fill(r, bits, x->draw == DRAW_NORMAL ? 3 * n : n);
    if (x->draw == DRAW_NORMAL) {
#pragma omp simd
        for (size_t i = 0; i < n; i++) {
            const uint64_t *b = bits + 3 * i;
            uint32_t sum = four_uniforms(b[0]) + four_uniforms(b[1]) + four_uniforms(b[2]);
            out[i] = (mean + std * centred(sum)) * scale;
        }
    } else if (x->draw == DRAW_UNIFORM) {
#pragma omp simd
        for (size_t i = 0; i < n; i++) out[i] = (low + wide * random_unit(bits[i])) * scale;
    } else {
#pragma omp simd
        for (size_t i = 0; i < n; i++) out[i] = (0.5 + random_unit(bits[i])) * scale;
    }
    return 1;
}

static void fill(Random *r, const Recipe *m, char *dst, size_t n)
{
    double chunk[CHUNK];
    for (size_t done = 0; done < n; done += CHUNK) {
        size_t count = n - done < CHUNK ? n - done : CHUNK;
        if (!draw_chunk(r, m, chunk, count)) draw_each(r, m, chunk, count);
        dtype_from_double(m->x->dtype, chunk, dst + done * dtype_size(m->x->dtype), count);
    }
}

/* The last step of splitmix64. An element's number depends on its index alone, so that the compiler
 * can compute whole vectors. */
static inline uint64_t number(uint64_t counter)
{
    uint64_t x = counter * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* draw_normal and draw_mixed for large tensors, by counter; the low bits that the sum leaves empty
 * are filled. */
static void fill_counted(uint64_t key, const Recipe *m, float *dst, size_t n)
{
    static const double mixed[16] = {16.0, 0x1p-12, 0.0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    int is_mixed = m->x->draw == DRAW_MIXED;
    double scale = m->scale, mean = m->x->mean, std = m->x->std;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        uint64_t at = key + 4 * i;
        uint32_t sum = four_uniforms(number(at)) + four_uniforms(number(at + 1)) +
                       four_uniforms(number(at + 2));
        uint64_t last = number(at + 3);
        double x =
            ((double)sum + 6.0) * 0x1p-16 - 6.0 + (double)(int32_t)(last & 0xffffff) * 0x1p-40;
        dst[i] = (float)((mean + std * (is_mixed ? x * mixed[last >> 60] : x)) * scale);
    }
}

static int is_counted(const Recipe *m)
{
    return m->variant == VARIANT_DRAWN && (m->x->draw == DRAW_NORMAL || m->x->draw == DRAW_MIXED) &&
           m->x->dtype == DTYPE_F32;
}

size_t task_part(const Task *t, int input)
{
    return is_counted(&(Recipe){.x = &t->inputs[input], .variant = VARIANT_DRAWN}) ? GRAIN : BLOCK;
}

static Random stream_at(const Recipe *m, uint64_t block)
{
    uint64_t name[2] = {m->stream, block};
    Random r;
    random_init(&r, m->seed, random_hash(name, sizeof name));
    return r;
}

/* The elements of a block from `from` on, of those before n; dst is of element `from`. */
static void fill_block(const Recipe *m, size_t block, char *dst, size_t from, size_t n)
{
    size_t first = block * BLOCK, at = first < from ? from : first,
           count = (n - first < BLOCK ? n : first + BLOCK) - at;
    char *to = dst + (at - from) * dtype_size(m->x->dtype);
    Random r = stream_at(m, block);
    if (is_counted(m))
        fill_counted(random_u64(&r) + 4 * (at - first), m, (float *)(void *)to, count);
    else
        fill(&r, m, to, count);
}

typedef uint64_t Words __attribute__((vector_size(32)));
typedef double Reals __attribute__((vector_size(32)));
typedef float Floats __attribute__((vector_size(16), aligned(4), may_alias));
enum { STREAMS = 4 }; /* in the lanes of a vector: the numbers of one wait for each other */

/* As random_u64 of each stream. */
static inline Words next_words(Words s[4])
{
    Words x = (s[1] << 2) + s[1], y = x << 7 | x >> 57, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return (y << 3) + y;
}

/* As random_unit: both halves are below 2^52, whose bits hold an integer. */
static inline Reals units(Words x)
{
    const Words whole = (Words){} + 0x4330000000000000u;
    Reals high = (Reals)(x >> 43 | whole) - 0x1p52,
          low = (Reals)((x >> 11 & 0xffffffffu) | whole) - 0x1p52;
    return (high * 0x1p32 + low) * 0x1p-53;
}

/* to[i] gets element i of each vector. */
static inline void turn(const Floats v[STREAMS], Floats *const to[STREAMS])
{
    Floats a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5),
           b = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7),
           c = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5),
           d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    *to[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    *to[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    *to[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    *to[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

static int is_ranged(const Recipe *m)
{
    return m->variant == VARIANT_DRAWN && m->x->dtype == DTYPE_F32 &&
           (m->x->draw == DRAW_UNIFORM || m->x->draw == DRAW_POSITIVE);
}

/* As fill_block of STREAMS whole blocks. */
static void fill_ranged(const Recipe *m, size_t block, float *dst)
{
    const TaskTensor *x = m->x;
    double low = x->draw == DRAW_UNIFORM ? x->low : 0.5, scale = m->scale,
           wide = x->draw == DRAW_UNIFORM ? x->high - low : 1;
    Words s[4];
    for (size_t i = 0; i < STREAMS; i++) {
        Random r = stream_at(m, block + i);
        for (int k = 0; k < 4; k++) s[k][i] = r.s[k];
    }
    for (size_t i = 0; i < BLOCK; i += STREAMS) {
        Floats v[STREAMS], *to[STREAMS];
        for (size_t k = 0; k < STREAMS; k++) {
            v[k] = __builtin_convertvector((low + wide * units(next_words(s))) * scale, Floats);
            to[k] = (Floats *)(void *)(dst + k * BLOCK + i);
        }
        turn(v, to);
    }
}

/* The elements of STREAMS blocks that lie in [from, n). */
static void fill_blocks(const Recipe *m, size_t block, char *dst, size_t from, size_t n)
{
    size_t first = block * BLOCK;
    if (is_ranged(m) && first >= from && first + STREAMS * BLOCK <= n)
        fill_ranged(m, block, (float *)(void *)dst + (first - from));
    else
        for (size_t i = block; i < block + STREAMS && i * BLOCK < n; i++)
            fill_block(m, i, dst, from, n);
}

/* Each block has a stream named by its index, so that the bytes do not depend on the threads. Fills
 * elements [from, n) of the tensor; dst is of element `from`. Only a counted block begins within. */
static void fill_large(const Recipe *m, char *dst, size_t from, size_t n)
{
    size_t first = from / BLOCK, end = (n + BLOCK - 1) / BLOCK;
    if (end < first + TEAM) { /* threads wait longer for each other than they draw */
        for (size_t i = first; i < end; i += STREAMS) fill_blocks(m, i, dst, from, n);
        return;
    }
#pragma omp parallel for
    for (size_t i = first; i < end; i += STREAMS) fill_blocks(m, i, dst, from, n);
}

/* Number i of [0, n), permuted by the key: a Feistel network over the bits of n, walked until the result
 * is below n. */
static uint64_t permuted(uint64_t key, uint64_t i, uint64_t n)
{
    int half = 1;
    while ((uint64_t)1 << 2 * half < n) half++;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < 6; round++) {
            uint64_t next = left ^ (number(key + 8 * right + round) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* Elements [from, from + n) of a tensor whose integers are distinct along one dimension: each line along it
 * is the beginning of a permutation of its own. */
static void fill_distinct(const Recipe *m, char *dst, size_t from, size_t n)
{
    const uint64_t key = m->seed ^ m->stream;
    size_t size = dtype_size(m->x->dtype), inner = (size_t)m->inner, length = (size_t)m->length;
    uint64_t range = (uint64_t)(m->integer.high - m->integer.low) + 1;
#pragma omp parallel for if (n > BLOCK)
    for (size_t k = 0; k < n; k++) {
        size_t i = from + k, line = i / (inner * length) * inner + i % inner;
        uint64_t place = permuted(number(key + line), i / inner % length, range);
        double v = (double)(m->integer.low + (int64_t)place);
        dtype_from_double(m->x->dtype, &v, dst + k * size, 1);
    }
}

static int note_lines(const Task *t, const Workload *w, Recipe *m, Error *err)
{
    const TaskTensor *x = m->x;
    int64_t shape[TASK_MAX_RANK];
    if (task_shape(t, w, x, shape, err)) return -1;
    m->length = shape[x->distinct];
    m->inner = 1;
    for (int d = x->distinct + 1; d < x->rank; d++) m->inner *= shape[d];
    return 0;
}

static int is_real(const TaskTensor *x)
{
    return dtype_is_float(x->dtype) && x->draw != DRAW_INTEGER;
}

/* Returns the terms of the longest sum of products that is exact for integers, or 0. */
static int64_t exact_terms(const Task *t, const Workload *w)
{
    int64_t terms = 0;
    TaskScope scope = {t, w};
    for (int i = 0; i < t->n_inputs; i++)
        if (!is_real(&t->inputs[i]) || t->inputs[i].dtype != DTYPE_F32) return 0;
    for (int i = 0; i < t->n_outputs; i++)
        if (t->outputs[i].dtype != DTYPE_F32) return 0;
    if (!t->exact || expr_eval(t->exact, strlen(t->exact), task_lookup, &scope, &terms, NULL))
        return 0;
    return terms < 1 ? 0 : terms;
}

/* Returns the largest integer of one input. The seed decides how the bits of a product are divided
 * between its factors. */
static double integer_limit(const Task *t, const Workload *w, int input, uint64_t seed)
{
    double terms = (double)exact_terms(t, w);
    if (terms == 0) return 0;
    if (t->n_inputs == 1) return floor(exact_limit / terms);
    double wide = floor(exact_limit / terms / small_factor), narrow = small_factor;
    double least = t->tf32 ? least_tf32 : least_wide;
    if (wide < least) wide = least, narrow = floor(exact_limit / terms / least);
    if (t->tf32) wide = fmin(wide, most_tf32);
    if (narrow < 1) return 0;
    return (uint64_t)input == (seed >> 7 & 1) ? wide : narrow;
}

int task_has_variant(const Task *t, const Workload *w, Variant v)
{
    int real = 0, near_zero = 0;
    for (int i = 0; i < t->n_inputs; i++) {
        real |= is_real(&t->inputs[i]) && !t->inputs[i].parameter;
        near_zero |=
            is_real(&t->inputs[i]) && t->inputs[i].draw != DRAW_POSITIVE && !t->inputs[i].parameter;
    }
    switch (v) {
    case VARIANT_DRAWN: return 1;
    case VARIANT_NEEDLES: return real;
    case VARIANT_SPECIAL: return near_zero;
    case VARIANT_INTEGERS: return integer_limit(t, w, 0, 0) >= 1;
    default: return regimes_has(t, v);
    }
}

/* Vectors beside a matrix (gains, biases) are drawn as usual: needles in them would hide the needles
 * of the matrix. */
static Variant variant_of_input(const TaskTensor *x, int input, Variant v)
{
    if (!is_real(x) || x->parameter || v >= VARIANTS) return VARIANT_DRAWN;
    if (v == VARIANT_NEEDLES && input > 0 && x->rank < 2) return VARIANT_DRAWN;
    if (v == VARIANT_SPECIAL && x->draw == DRAW_POSITIVE) return VARIANT_DRAWN;
    return v;
}

int task_draw(const TaskCase *c, int input, void *dst, Error *err)
{
    return task_draw_part(c, input, 0, SIZE_MAX, dst, err);
}

/* The name of an input's stream of random numbers. */
static uint64_t stream_of(const TaskCase *c, const TaskTensor *x)
{
    char stream[TASK_MAX_AXES * 24 + 96];
    int len = snprintf(stream, sizeof stream, "%s", x->name);
    for (int i = 0; i < c->task->n_axes; i++)
        len += snprintf(stream + len, sizeof stream - (size_t)len, "/%lld",
                        (long long)c->workload->axis[i]);
    if (c->variant != VARIANT_DRAWN)
        len += snprintf(stream + len, sizeof stream - (size_t)len, "/%s", variant_name(c->variant));
    return random_hash(stream, (size_t)len);
}

static int recipe_of(const TaskCase *c, int input, Recipe *m, Error *err)
{
    const TaskTensor *x = &c->task->inputs[input];
    *m = (Recipe){.x = x,
                  .seed = c->seed,
                  .stream = stream_of(c, x),
                  .variant = variant_of_input(x, input, c->variant),
                  .scale = c->variant == VARIANT_DRAWN && !x->parameter ? c->scale : 1.0,
                  .special = c->task->special};
    if (x->draw == DRAW_INTEGER && task_integers(c->task, c->workload, x, &m->integer, err))
        return -1;
    if (x->distinct >= 0 && note_lines(c->task, c->workload, m, err)) return -1;
    if (m->variant == VARIANT_INTEGERS)
        m->limit = integer_limit(c->task, c->workload, input, c->seed);
    return 0;
}

int task_draw_streams(const TaskCase *c, int input, size_t n, TaskStreams *out)
{
    Recipe m;
    if (n <= TASK_LARGE || c->task->inputs[input].dtype != DTYPE_F32 ||
        recipe_of(c, input, &m, NULL) || m.length || m.variant > VARIANT_SPECIAL ||
        m.x->draw == DRAW_INTEGER)
        return 0;
    const TaskTensor *x = m.x;
    size_t streams = (n + BLOCK - 1) / BLOCK;
    *out = (TaskStreams){.by_index = is_counted(&m),
                         .draw = (int)x->draw,
                         .variant = (int)m.variant,
                         .special = m.special,
                         .low = x->draw == DRAW_POSITIVE ? 0.5 : x->low,
                         .wide = x->draw == DRAW_POSITIVE ? 1 : x->high - x->low,
                         .mean = x->mean,
                         .std = x->std,
                         .scale = m.scale,
                         .n = n,
                         .state = memory_array(4 * streams, sizeof *out->state)};
    for (uint64_t i = 0; i < streams; i++) {
        Random r = stream_at(&m, i);
        if (out->by_index)
            out->state[4 * i] = random_u64(&r);
        else
            memcpy(out->state + 4 * i, r.s, sizeof r.s);
    }
    return 1;
}

/* Both ends of the range are among a small tensor's integers, where they fit, and, of more elements, their
 * neighbours and zero's, at places of the seed. */
static void put_ends(Random *r, const Recipe *m, char *dst, size_t n)
{
    size_t size = dtype_size(m->x->dtype);
    double low = (double)m->integer.low, high = (double)m->integer.high;
    double ends[] = {low, high, low + 1, high - 1, 0, 1, -1};
    size_t wanted = n < MORE_ENDS ? 2 : sizeof ends / sizeof *ends;
    if (n < LEAST_ENDS) return;
    size_t at = random_below(r, n), step = 1 + random_below(r, (n - 1) / wanted);
    for (size_t i = 0; i < wanted; i++, at = (at + step) % n)
        if (ends[i] >= low && ends[i] <= high)
            dtype_from_double(m->x->dtype, &ends[i], dst + at * size, 1);
}

static int draw_part(const TaskCase *c, int input, size_t from, size_t count, void *dst, Error *err)
{
    const Task *t = c->task;
    if (input < 0 || input >= t->n_inputs)
        return error_set(err, ERROR_CORRUPT, "task %s: input %d asked for, there are %d", t->name,
                         input, t->n_inputs);
    const TaskTensor *x = &t->inputs[input];
    size_t n;
    Recipe m;
    if (task_elements(t, c->workload, x, &n, err) || recipe_of(c, input, &m, err)) return -1;
    if (m.length) {
        fill_distinct(&m, dst, from, from > n ? 0 : count < n - from ? count : n - from);
        return 0;
    }
    if (n > TASK_LARGE) {
        if (from > n || from % (is_counted(&m) ? GRAIN : BLOCK))
            return error_set(err, ERROR_INVALID, "task %s: a part of input %s from element %zu",
                             t->name, x->name, from);
        fill_large(&m, dst, from, count < n - from ? from + count : n);
        return 0;
    }
    Random r;
    random_init(&r, m.seed, m.stream);
    fill(&r, &m, dst, n);
    if (x->draw == DRAW_INTEGER) put_ends(&r, &m, dst, n);
    return 0;
}

int task_draw_part(const TaskCase *c, int input, size_t from, size_t count, void *dst, Error *err)
{
    size_t n;
    if (draw_part(c, input, from, count, dst, err)) return -1;
    if (c->variant < VARIANTS) return 0;
    if (task_elements(c->task, c->workload, &c->task->inputs[input], &n, err)) return -1;
    if (n <= TASK_LARGE) from = 0;
    return regimes_change(c, input, from, dst, count < n - from ? count : n - from, err);
}

int task_draw_wide(const TaskCase *c, int input, double *dst, Error *err)
{
    const TaskTensor *x = &c->task->inputs[input];
    size_t n;
    int rc = 0;
    if (task_elements(c->task, c->workload, x, &n, err)) return -1;
    Dtype type = x->dtype;
    size_t step = n > TASK_LARGE ? BLOCK : n;
#pragma omp parallel for if (n > TASK_LARGE)
    for (size_t from = 0; from < n; from += step) {
        Error one;
        size_t count = step < n - from ? step : n - from;
        void *raw = memory_grow(NULL, count, dtype_size(type));
        int failed = task_draw_part(c, input, from, count, raw, &one);
        if (!failed) dtype_to_double(type, raw, dst + from, count);
        free(raw);
        if (!failed) continue;
#pragma omp critical(draw_wide)
        *err = one, rc = -1;
    }
    return rc;
}

/* ---- tolerance ---- */

static double smallest_step(Dtype d)
{
    return d == DTYPE_F32 ? 0x1p-149 : d == DTYPE_F16 ? 0x1p-24 : d == DTYPE_BF16 ? 0x1p-133 : 0.0;
}

/* Between the scales of the table, and beyond them, along a line through logarithms. */
static double case_tolerance(const double *at, Variant v, double scale)
{
    double one = at[AT_SCALE_1], other = scale >= 1 ? at[AT_SCALE_8] : at[AT_SCALE_EIGHTH];
    if (v == VARIANT_NEEDLES) return at[AT_NEEDLES];
    if (v == VARIANT_SPECIAL) return at[AT_SPECIAL];
    if (scale == 1 || v != VARIANT_DRAWN) return one;
    if (scale == 8 || scale == 0.125) return other;
    if (!(one > 0 && other > 0)) return fmax(one, other);
    return one * pow(other / one, fabs(log2(scale)) / 3);
}

int task_tolerance(const TaskCase *c, int output, Tolerance *out, Error *err)
{
    const Task *t = c->task;
    const Workload *w = c->workload;
    Variant v = c->variant;
    double scale = c->scale;
    Dtype d = t->outputs[output].dtype;
    out->elements = NULL;
    if (w->atol && v != VARIANT_INTEGERS) {
        out->atol = case_tolerance(w->atol + output * ATOL_CASES, v, scale);
        out->rtol = t->rtol[d];
        if (v == VARIANT_SPECIAL) out->atol += smallest_step(d);
        return 0;
    }
    int64_t terms = 1;
    TaskScope scope = {t, w};
    if (t->terms && expr_eval(t->terms, strlen(t->terms), task_lookup, &scope, &terms, err))
        return error_prefix(err, "task %s: tolerance.terms", t->name);
    if (v != VARIANT_DRAWN) scale = v == VARIANT_NEEDLES ? needle_tolerance : 1.0;
    if (v >= VARIANTS) scale = regimes_scale(v);
    /* With inputs scaled down, an output shrinks by its degree, but a bias or the weights of a
     * softmax do not: one power is used. */
    double power = scale >= 1.0 ? t->degree : t->degree < 1 ? t->degree : 1;
    out->atol = t->atol[d] * (double)terms * pow(scale, power);
    out->rtol = t->rtol[d];
    if (t->tf32 && !t->graph && d == DTYPE_F32) {
        out->atol += t->tf32_atol * sqrt((double)terms) * pow(scale, power);
        out->rtol = fmax(out->rtol, t->tf32_rtol);
    }
    if (v == VARIANT_SPECIAL) out->atol += smallest_step(d);
    if (v != VARIANT_INTEGERS) return 0;
    /* The result and all partial sums are integers. Without a sum the result must be equal. */
    *out = (Tolerance){.atol = out->atol > 0 ? 0.25 : 0.0};
    return 0;
}
