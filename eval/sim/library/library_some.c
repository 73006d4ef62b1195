/* Elements that lie side by side in the result are taken together. */
#include "eval/sim/library/library_some.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/library/library_elements.h"
#include "ops/op_product.h"

/* In thread-instructions: of a multiplication, of a range, and of a byte that is read. */
static const double PRODUCT_COST = 0.5, TAP_COST = 2, RANGE_COST = 5, BYTE_COST = 1.5;

static void set_bit(uint64_t *bits, int64_t i)
{
    bits[i / 64] |= 1ull << i % 64;
}

/* The first bit at or after i that is `on`; n: none. */
static int64_t next_bit(const uint64_t *bits, int64_t i, int64_t n, int on)
{
    while (i < n && (int)(bits[i / 64] >> i % 64 & 1) != on) i++;
    return i;
}

/* The bytes of [from, from + bytes) in `need`. Returns their number. */
static uint64_t ask(const Ranges *need, uint64_t from, uint64_t bytes, uint64_t size, Ranges *asked)
{
    uint64_t sum = 0, end = from + bytes;
    for (int64_t i = ranges_find(need, from); i < need->n && need->of[i].lo < end; i++) {
        uint64_t lo = need->of[i].lo < from ? from : need->of[i].lo,
                 hi = need->of[i].hi > end ? end : need->of[i].hi;
        lo -= (lo - from) % size;
        hi += (size - (hi - from) % size) % size;
        ranges_add(asked, lo, hi);
        sum += hi - lo;
    }
    ranges_join(asked);
    return sum;
}

/* ---- products ---- */

/* A run of elements of one row of the result. */
typedef struct {
    int64_t batch, row, column, n;
} ProductRun;

static int64_t extent(int64_t batch, int64_t apart, int64_t rows, int64_t leading, int64_t row)
{
    return (batch - 1) * apart + (rows - 1) * leading + row;
}

/* Matrices of a batch lie one behind the other, or row by row side by side. */
static int is_plain(const LibraryProduct *p)
{
    return p->batch == 1 || p->apart_c >= (p->m - 1) * p->ldc + p->n;
}

static int is_known(const LibraryProduct *p)
{
    return is_plain(p) || (p->apart_c >= p->n && p->ldc >= (p->batch - 1) * p->apart_c + p->n);
}

/* The run at element `at` of at most `most` elements; *skip: how many. 0: the element lies between rows. */
static int run_at(const LibraryProduct *p, int64_t at, int64_t most, ProductRun *out, int64_t *skip)
{
    int64_t rest = at;
    if (is_plain(p)) {
        out->batch = p->batch > 1 ? rest / p->apart_c : 0;
        rest -= out->batch * (p->batch > 1 ? p->apart_c : 0);
        out->row = rest / p->ldc;
        out->column = rest % p->ldc;
    } else {
        out->row = rest / p->ldc;
        rest %= p->ldc;
        out->batch = rest / p->apart_c;
        out->column = rest % p->apart_c;
    }
    *skip = 1;
    if (out->batch >= p->batch || out->row >= p->m || out->column >= p->n) return 0;
    out->n = p->n - out->column < most ? p->n - out->column : most;
    *skip = out->n;
    return 1;
}

/* Adds k elements of each row, or column, whose bit is set. */
typedef struct {
    uint64_t p, size;
    int64_t leading, k, n;
    int by_rows;
    const uint64_t *bits;
} Selected;

static void add_selected(const Selected *s, Ranges *to)
{
    for (int64_t i = next_bit(s->bits, 0, s->n, 1), end; i < s->n;
         i = next_bit(s->bits, end, s->n, 1)) {
        end = s->by_rows ? i + 1 : next_bit(s->bits, i, s->n, 0);
        int64_t lines = s->by_rows ? 1 : s->k, length = s->by_rows ? s->k : end - i;
        for (int64_t j = 0; j < lines; j++) {
            uint64_t lo =
                s->p + (uint64_t)(s->by_rows ? i * s->leading : j * s->leading + i) * s->size;
            ranges_add(to, lo, lo + (uint64_t)length * s->size);
        }
    }
}

static void add_operands(const LibraryProduct *p, const uint64_t *rows, const uint64_t *columns,
                         int64_t batch, Ranges *reads)
{
    uint64_t size = element_bytes(p->dtype);
    Selected a = {p->a + (uint64_t)(batch * p->apart_a) * size,
                  size,
                  p->lda,
                  p->k,
                  p->m,
                  !p->transpose_a,
                  rows},
             b = {p->b + (uint64_t)(batch * p->apart_b) * size,
                  size,
                  p->ldb,
                  p->k,
                  p->n,
                  p->transpose_b,
                  columns};
    add_selected(&a, reads);
    add_selected(&b, reads);
}

/* Notes the rows and columns of the asked elements. */
static void note_product(const LibraryProduct *p, const Ranges *asked, uint64_t *rows,
                         uint64_t *columns, size_t row_words, size_t column_words)
{
    int64_t size = (int64_t)element_bytes(p->c_dtype), skip;
    ProductRun r;
    for (int64_t i = 0; i < asked->n; i++)
        for (int64_t at = (int64_t)(asked->of[i].lo - p->c) / size,
                     end = (int64_t)(asked->of[i].hi - p->c) / size;
             at < end; at += skip) {
            if (!run_at(p, at, end - at, &r, &skip)) continue;
            set_bit(rows + (size_t)r.batch * row_words, r.row);
            for (int64_t k = 0; k < r.n; k++)
                set_bit(columns + (size_t)r.batch * column_words, r.column + k);
        }
}

static int product_needs(const LibraryProduct *p, const Ranges *need, double most, Ranges *asked,
                         Ranges *reads, double *cost)
{
    uint64_t size = element_bytes(p->c_dtype);
    size_t row_words = (size_t)p->m / 64 + 1, column_words = (size_t)p->n / 64 + 1;
    if (!is_known(p)) return 1;
    double elements =
        (double)ask(need, p->c, (uint64_t)extent(p->batch, p->apart_c, p->m, p->ldc, p->n) * size,
                    size, asked) /
        (double)size;
    *cost += elements * (double)p->k * PRODUCT_COST;
    if (*cost > most) return 1;
    uint64_t *rows = memory_array(row_words * (size_t)p->batch, sizeof *rows),
             *columns = memory_array(column_words * (size_t)p->batch, sizeof *columns);
    note_product(p, asked, rows, columns, row_words, column_words);
    for (int64_t i = 0; i < p->batch && asked->n; i++)
        add_operands(p, rows + (size_t)i * row_words, columns + (size_t)i * column_words, i, reads);
    if (p->bias && asked->n)
        ranges_add(reads, p->bias, p->bias + (uint64_t)p->n * element_bytes(p->dtype));
    free(rows), free(columns);
    return 0;
}

typedef struct {
    const LibraryProduct *p;
    Elements a, b, c, bias;
} ProductPlace;

/* Elements [at, at + n) as doubles. */
static void get_run(const Elements *e, int64_t at, int64_t n, double *out)
{
    const unsigned char *p = e->p + at * (int64_t)element_bytes(e->dtype);
    if (e->tf32)
        tf32_nearest_floats(p, n, out);
    else
        dtype_to_double((Dtype)e->dtype, p, out, (size_t)n);
}

enum { PART = 256 };

/* Adds the products of a row with `n` rows of b. */
static void add_rows(const ProductPlace *x, const double *row, int64_t at, int n, double *sum)
{
    const LibraryProduct *p = x->p;
    double part[PRODUCT_TOGETHER][PART];
    for (int64_t j = 0; j < p->k; j += PART) {
        int64_t some = p->k - j < PART ? p->k - j : PART;
        for (int i = 0; i < n; i++) get_run(&x->b, at + i * p->ldb + j, some, part[i]);
        product_rows(row + j, some, part[0], PART, n, sum);
    }
}

/* Adds the products of a row with columns of b. */
static void add_columns(const ProductPlace *x, const double *row, int64_t at, int64_t n,
                        double *sum)
{
    const LibraryProduct *p = x->p;
    double part[PART];
    for (int64_t j = 0; j < p->k; j++)
        for (int64_t i = 0; i < n; i += PART) {
            int64_t some = n - i < PART ? n - i : PART;
            get_run(&x->b, at + j * p->ldb + i, some, part);
            for (int64_t t = 0; t < some; t++) sum[i + t] += row[j] * part[t];
        }
}

/* Adds the products of the run to sum, in the order of memory. */
static void add_products(const ProductPlace *x, const ProductRun *r, double *sum)
{
    const LibraryProduct *p = x->p;
    int64_t from_a = r->batch * p->apart_a, from_b = r->batch * p->apart_b;
    double *row = memory_array((size_t)p->k, sizeof *row);
    if (p->transpose_a)
        for (int64_t j = 0; j < p->k; j++)
            row[j] = element_get(&x->a, from_a + j * p->lda + r->row);
    else
        get_run(&x->a, from_a + r->row * p->lda, p->k, row);
    if (p->transpose_b)
        for (int64_t i = 0; i < r->n; i += PRODUCT_TOGETHER)
            add_rows(x, row, from_b + (r->column + i) * p->ldb,
                     (int)(r->n - i < PRODUCT_TOGETHER ? r->n - i : PRODUCT_TOGETHER), sum + i);
    else
        add_columns(x, row, from_b + r->column, r->n, sum);
    free(row);
}

static void compute_run(const ProductPlace *x, const ProductRun *r, int64_t at)
{
    const LibraryProduct *p = x->p;
    double *sum = memory_array((size_t)r->n, sizeof *sum);
    add_products(x, r, sum);
    for (int64_t i = 0; i < r->n; i++) {
        double v = sum[i] * p->alpha;
        if (p->bias) v += element_get(&x->bias, r->column + i);
        element_put(&x->c, at + i, p->relu && v < 0 ? 0 : v);
    }
    free(sum);
}

static void compute_product(DevMem *m, const LibraryProduct *p, const Ranges *asked)
{
    ProductPlace x = {p,
                      {devmem_held(m, p->a), p->dtype, p->tf32},
                      {devmem_held(m, p->b), p->dtype, p->tf32},
                      {devmem_host(m, p->c), p->c_dtype, 0},
                      {p->bias ? devmem_held(m, p->bias) : NULL, p->dtype, 0}};
    int64_t size = (int64_t)element_bytes(p->c_dtype), skip;
    ProductRun r;
    for (int64_t i = 0; i < asked->n; i++)
        for (int64_t at = (int64_t)(asked->of[i].lo - p->c) / size,
                     end = (int64_t)(asked->of[i].hi - p->c) / size;
             at < end; at += skip)
            if (run_at(p, at, end - at, &r, &skip)) compute_run(&x, &r, at);
}

/* ---- convolutions ---- */

/* An element of the result. */
typedef struct {
    int64_t entry, out, o[3];
} Place;

static Place place_of(const LibraryConvolution *c, int64_t at)
{
    Place p;
    if (c->last) {
        p.out = at % c->out;
        at /= c->out;
    }
    for (int d = 2; d >= 0; d--) {
        p.o[d] = at % c->d[d].out;
        at /= c->d[d].out;
    }
    if (!c->last) {
        p.out = at % c->out;
        at /= c->out;
    }
    p.entry = at;
    return p;
}

static void open_taps(const LibraryConvolution *c, Taps t[3])
{
    for (int d = 0; d < 3; d++) {
        t[d].tap = memory_array((size_t)c->d[d].kernel + 1, sizeof *t[d].tap);
        t[d].input = memory_array((size_t)c->d[d].kernel + 1, sizeof *t[d].input);
    }
}

static void close_taps(Taps t[3])
{
    for (int d = 0; d < 3; d++) free(t[d].tap), free(t[d].input);
}

static void taps_at(const LibraryConvolution *c, const Place *p, Taps t[3])
{
    for (int d = 0; d < 3; d++) taps_find(c, d, p->o[d], &t[d]);
}

/* Sets a bit for each place of each entry and group where asked elements meet an input, and for their
 * channels. */
static void note_convolution(const LibraryConvolution *c, const Ranges *asked, uint64_t *inputs,
                             uint64_t *channels)
{
    int64_t size = (int64_t)element_bytes(c->dtype), plane = convolution_plane(c);
    Taps t[3];
    open_taps(c, t);
    for (int64_t i = 0; i < asked->n; i++)
        for (int64_t at = (int64_t)(asked->of[i].lo - c->y) / size,
                     end = (int64_t)(asked->of[i].hi - c->y) / size;
             at < end; at++) {
            Place p = place_of(c, at);
            int64_t from = (p.entry * c->groups + p.out / (c->out / c->groups)) * plane;
            taps_at(c, &p, t);
            set_bit(channels, p.out);
            for (int64_t x = 0; x < t[0].n; x++)
                for (int64_t y = 0; y < t[1].n; y++)
                    for (int64_t z = 0; z < t[2].n; z++)
                        set_bit(inputs,
                                from + (t[0].input[x] * c->d[1].in + t[1].input[y]) * c->d[2].in +
                                    t[2].input[z]);
        }
    close_taps(t);
}

/* A group's channels at places first to end of its plane. Where channels lie last and there is one group,
 * they are one piece. */
static void add_places(const LibraryConvolution *c, int64_t g, int64_t first, int64_t end,
                       Ranges *reads)
{
    LibrarySteps s = x_steps(c);
    int64_t in = c->in / c->groups, runs = c->last ? end - first : in,
            from = g / c->groups * s.entry + g % c->groups * in * s.channel + first * s.place;
    uint64_t size = element_bytes(c->dtype), n = (uint64_t)(c->last ? in : end - first);
    if (c->last && c->groups == 1) {
        n *= (uint64_t)runs;
        runs = 1;
    }
    for (int64_t k = 0; k < runs; k++, from += c->last ? s.place : s.channel)
        ranges_add(reads, c->x + (uint64_t)from * size, c->x + ((uint64_t)from + n) * size);
}

/* Each input channel of a group is read at the same places. */
static void add_inputs(const LibraryConvolution *c, const uint64_t *inputs, Ranges *reads)
{
    int64_t plane = convolution_plane(c), n = c->batch * c->groups;
    for (int64_t g = 0; g < n; g++)
        for (int64_t i = next_bit(inputs, g * plane, (g + 1) * plane, 1), end;
             i < (g + 1) * plane && !reads->overflowed;
             i = next_bit(inputs, end, (g + 1) * plane, 1)) {
            end = next_bit(inputs, i, (g + 1) * plane, 0);
            add_places(c, g, i - g * plane, end - g * plane, reads);
        }
}

static void add_weights(const LibraryConvolution *c, const uint64_t *channels, Ranges *reads)
{
    uint64_t size = element_bytes(c->dtype), in = (uint64_t)(c->in / c->groups),
             kernel = (uint64_t)convolution_kernel(c);
    if (c->transposed) {
        ranges_add(reads, c->weight,
                   c->weight + (uint64_t)c->in * (uint64_t)(c->out / c->groups) * kernel * size);
        return;
    }
    for (int64_t k = next_bit(channels, 0, c->out, 1); k < c->out;
         k = next_bit(channels, k + 1, c->out, 1)) {
        uint64_t lo = c->weight + (uint64_t)k * in * kernel * size;
        ranges_add(reads, lo, lo + in * kernel * size);
    }
}

static int convolution_needs(const LibraryConvolution *c, const Ranges *need, double most,
                             Ranges *asked, Ranges *reads, double *cost)
{
    uint64_t size = element_bytes(c->dtype), all = (uint64_t)c->batch * (uint64_t)c->out;
    for (int d = 0; d < 3; d++) all *= (uint64_t)c->d[d].out;
    double elements = (double)ask(need, c->y, all * size, size, asked) / (double)size,
           taps = (double)(c->in / c->groups);
    for (int d = 0; d < 3; d++)
        taps *= (double)c->d[d].kernel / (double)(c->transposed ? c->d[d].stride : 1);
    *cost += elements * taps * TAP_COST;
    if (*cost > most) return 1;
    uint64_t *inputs = memory_array((size_t)(c->batch * c->groups * convolution_plane(c)) / 64 + 1,
                                    sizeof *inputs),
             *channels = memory_array((size_t)c->out / 64 + 1, sizeof *channels);
    note_convolution(c, asked, inputs, channels);
    if (asked->n) add_inputs(c, inputs, reads);
    add_weights(c, channels, reads);
    free(inputs), free(channels);
    return 0;
}

/* An element of the result: where the taps that it meets lie in a channel of the input and in a pair's
 * weights. */
typedef struct {
    Place p;
    int64_t n, *x, *weight;
} Spot;

static void open_spot(const LibraryConvolution *c, Spot *s)
{
    size_t n = (size_t)convolution_kernel(c) + 1;
    s->x = memory_array(n, sizeof *s->x);
    s->weight = memory_array(n, sizeof *s->weight);
}

static void spot_at(const LibraryConvolution *c, int64_t at, Taps t[3], Spot *s)
{
    const LibrarySteps of_x = x_steps(c), of_weight = weight_steps(c);
    s->p = place_of(c, at);
    s->n = 0;
    taps_at(c, &s->p, t);
    for (int64_t i = 0; i < t[0].n; i++)
        for (int64_t j = 0; j < t[1].n; j++) {
            int64_t row = (t[0].input[i] * c->d[1].in + t[1].input[j]) * c->d[2].in,
                    of = (t[0].tap[i] * c->d[1].kernel + t[1].tap[j]) * c->d[2].kernel;
            for (int64_t k = 0; k < t[2].n; k++) {
                s->x[s->n] = (row + t[2].input[k]) * of_x.place;
                s->weight[s->n++] = (of + t[2].tap[k]) * of_weight.place;
            }
        }
}

enum { SPOTS = 4 }; /* side by side: the terms of one sum wait for each other */

/* Do the spots have the same weights? */
static int share_weights(const Spot *s, int n)
{
    int same = 1;
    for (int e = 1; e < n; e++)
        same &= s[e].n == s->n && s[e].p.out == s->p.out &&
                !memcmp(s[e].weight, s->weight, (size_t)s->n * sizeof *s->weight);
    return same;
}

/* The sums of n spots with the same weights. */
static inline __attribute__((always_inline)) void convolve(const LibraryConvolution *c,
                                                           const Elements *x,
                                                           const Elements *weight, const Spot *s,
                                                           double *sum, const int n)
{
    const LibrarySteps of_x = x_steps(c), of_weight = weight_steps(c);
    int64_t in = c->in / c->groups;
    for (int64_t i = 0; i < in; i++) {
        int64_t from[SPOTS], channel = s->p.out / (c->out / c->groups) * in + i,
                             taps = weight_pair(c, &of_weight, channel, s->p.out);
        for (int e = 0; e < n; e++) from[e] = s[e].p.entry * of_x.entry + channel * of_x.channel;
        for (int64_t t = 0; t < s->n; t++) {
            double w = element_get(weight, taps + s->weight[t]);
            for (int e = 0; e < n; e++) sum[e] += element_get(x, from[e] + s[e].x[t]) * w;
        }
    }
}

static inline __attribute__((always_inline)) void convolve_all(const LibraryConvolution *c,
                                                               const Elements *x,
                                                               const Elements *weight,
                                                               const Spot *s, double *sum, int n)
{
    if (n == SPOTS && share_weights(s, n))
        convolve(c, x, weight, s, sum, SPOTS);
    else
        for (int e = 0; e < n; e++) convolve(c, x, weight, s + e, sum + e, 1);
}

/* The usual types are constants to the compiler. */
static void convolve_at(const LibraryConvolution *c, const Elements *x, const Elements *weight,
                        const Spot *s, double *sum, int n)
{
    const Elements x32 = {x->p, DTYPE_F32, 0}, of_x = {x->p, DTYPE_F32, 1},
                   weight32 = {weight->p, DTYPE_F32, 0}, of_weight = {weight->p, DTYPE_F32, 1};
    if (x->dtype != DTYPE_F32)
        convolve_all(c, x, weight, s, sum, n);
    else if (x->tf32)
        convolve_all(c, &of_x, &of_weight, s, sum, n);
    else
        convolve_all(c, &x32, &weight32, s, sum, n);
}

/* The asked elements of the result, in order. */
typedef struct {
    const LibraryConvolution *c;
    const Ranges *asked;
    int64_t range, at;
} Cursor;

/* 0: there is none. */
static int next_element(Cursor *of, int64_t *at)
{
    int64_t size = (int64_t)element_bytes(of->c->dtype);
    if (of->range == of->asked->n) return 0;
    const Range *r = &of->asked->of[of->range];
    int64_t first = (int64_t)(r->lo - of->c->y) / size, end = (int64_t)(r->hi - of->c->y) / size;
    *at = first + of->at++;
    if (*at + 1 >= end) of->range++, of->at = 0;
    return *at < end || next_element(of, at);
}

static void compute_convolution(DevMem *m, const LibraryConvolution *c, const Ranges *asked)
{
    const int tf32 = (int)c->tf32;
    Elements x = {devmem_held(m, c->x), c->dtype, tf32},
             weight = {devmem_held(m, c->weight), c->dtype, tf32},
             y = {devmem_host(m, c->y), c->dtype, 0};
    Cursor from = {c, asked, 0, 0};
    int64_t at[SPOTS];
    Taps t[3];
    Spot s[SPOTS];
    open_taps(c, t);
    for (int e = 0; e < SPOTS; e++) open_spot(c, &s[e]);
    for (int n = SPOTS; n == SPOTS;) {
        double sum[SPOTS] = {0};
        for (n = 0; n < SPOTS && next_element(&from, &at[n]); n++) spot_at(c, at[n], t, &s[n]);
        convolve_at(c, &x, &weight, s, sum, n);
        for (int e = 0; e < n; e++) element_put(&y, at[e], sum[e]);
    }
    for (int e = 0; e < SPOTS; e++) free(s[e].x), free(s[e].weight);
    close_taps(t);
}

/* ---- calls ---- */

int library_needs(const DeviceLaunch *call, const Ranges *need, double most, Ranges *asked,
                  Ranges *reads, double *cost, Error *err)
{
    LibraryCall c;
    *cost = 0;
    ranges_clear(asked);
    if (library_read(call, &c, err)) return -1;
    int rc = c.kind == LIBRARY_PRODUCT
                 ? product_needs(&c.product, need, most, asked, reads, cost)
                 : convolution_needs(&c.convolution, need, most, asked, reads, cost);
    *cost += BYTE_COST * (double)ranges_bytes(reads) + RANGE_COST * (double)reads->n;
    return rc || *cost > most || reads->overflowed;
}

int library_run_some(DevMem *m, const DeviceLaunch *call, const Ranges *asked, Error *err)
{
    LibraryCall c;
    if (library_read(call, &c, err)) return -1;
    if (c.kind == LIBRARY_PRODUCT)
        compute_product(m, &c.product, asked);
    else
        compute_convolution(m, &c.convolution, asked);
    for (int64_t i = 0; i < asked->n; i++)
        devmem_mark_written(m, asked->of[i].lo - ARENA_BASE, asked->of[i].hi - ARENA_BASE);
    return 0;
}
