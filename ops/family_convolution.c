/* Convolutions. The reference is a blocked product: for a block of outputs that meet the same taps (all
 * of them, or of a transposed convolution those of one remainder by the stride), the inputs are brought
 * into a panel of terms x outputs, which the weights multiply. Each output is one thread's, its terms
 * in the order of channels and taps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_convolution.h"
#include "ops/op_element.h"
#include "ops/op_product.h"

typedef struct {
    int dims, transposed;
} Kind;

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- shapes ---- */

/* A string for the padding: "valid", or "same", which may pad one more at the end. */
static int named_padding(const char *text, Window *w, Error *err)
{
    if (!strcmp(text, "valid")) return 0;
    if (strcmp(text, "same"))
        return error_set(err, ERROR_INVALID,
                         "padding: expected \"same\" or \"valid\", found \"%s\"", text);
    if (w->stride != 1)
        return error_set(err, ERROR_INVALID, "padding \"same\" needs a stride of 1, found %lld",
                         (long long)w->stride);
    w->padding = w->dilation * (w->kernel - 1) / 2;
    w->out = w->in;
    return 0;
}

static int window(const OpCall *c, const Convolution *v, int d, Window *w, Error *err)
{
    const OpValue *padding = &c->arg[op_argument(c->op, "padding")];
    int64_t more = 0;
    *w = (Window){.in = v->x->size[v->x->rank - v->dims + d],
                  .kernel = v->weight->size[2 + d],
                  .transposed = v->transposed};
    if (w->in > INT32_MAX || w->kernel > INT32_MAX)
        return error_set(err, ERROR_LIMIT, "a dimension of a convolution is above 2^31");
    if (window_argument(c, "stride", d, 1, &w->stride, err) ||
        window_argument(c, "dilation", d, 1, &w->dilation, err))
        return -1;
    if (padding->kind == OP_STRING) {
        if (named_padding(padding->text, w, err)) return -1;
    } else if (window_argument(c, "padding", d, 0, &w->padding, err)) {
        return -1;
    }
    if (v->transposed) {
        if (window_argument(c, "output_padding", d, 0, &more, err)) return -1;
        if (more >= greater(w->stride, w->dilation))
            return error_set(
                err, ERROR_INVALID,
                "output_padding: expected less than the stride or dilation, found %lld",
                (long long)more);
    }
    int64_t span = w->dilation * (w->kernel - 1) + 1;
    if (v->transposed)
        w->out = (w->in - 1) * w->stride - 2 * w->padding + span + more;
    else if (padding->kind != OP_STRING || !w->out)
        w->out =
            w->in + 2 * w->padding < span ? 0 : (w->in + 2 * w->padding - span) / w->stride + 1;
    if (w->kernel < 1 || w->out < 1 || w->out > INT32_MAX)
        return error_set(err, ERROR_INVALID,
                         "a kernel of %lld with dilation %lld does not fit an input of %lld with "
                         "padding %lld",
                         (long long)w->kernel, (long long)w->dilation, (long long)w->in,
                         (long long)w->padding);
    return 0;
}

static int channels(Convolution *v, Error *err)
{
    int64_t have = v->x->size[v->x->rank - v->dims - 1], first = v->weight->size[0],
            second = v->weight->size[1], need = v->transposed ? first : second * v->groups;
    if (have != need)
        return error_set(err, ERROR_INVALID, "input: expected %lld channels, found %lld",
                         (long long)need, (long long)have);
    if (!first || !second || first % v->groups)
        return error_set(err, ERROR_INVALID, "weight: %lld channels do not fall into %lld groups",
                         (long long)first, (long long)v->groups);
    v->in = v->transposed ? first / v->groups : second;
    v->out = v->transposed ? second : first / v->groups;
    if (v->bias && (v->bias->rank != 1 || v->bias->size[0] != v->out * v->groups))
        return error_set(err, ERROR_INVALID, "bias: expected %lld elements in one dimension",
                         (long long)(v->out * v->groups));
    return 0;
}

static int index_of(const OpCall *c, int arg)
{
    return op_tensor(c, arg) ? (int)c->arg[arg].integer[0] : -1;
}

static int convolution_of(const OpCall *c, Convolution *v, Error *err)
{
    const Kind *kind = c->op->detail;
    int groups = op_argument(c->op, "groups");
    *v = (Convolution){.dims = kind->dims, .transposed = kind->transposed, .batch = 1};
    v->x = op_tensor(c, 0), v->weight = op_tensor(c, 1), v->bias = op_tensor(c, 2);
    v->x_index = index_of(c, 0), v->weight_index = index_of(c, 1), v->bias_index = index_of(c, 2);
    v->groups = c->arg[groups].integer[0];
    v->batched = v->x->rank == v->dims + 2;
    if (v->groups < 1 || v->groups > INT32_MAX)
        return error_set(err, ERROR_INVALID, "groups: expected at least 1, found %lld",
                         (long long)v->groups);
    if (!v->batched && v->x->rank != v->dims + 1)
        return error_set(err, ERROR_INVALID, "input: expected %d or %d dimensions, found %d",
                         v->dims + 1, v->dims + 2, v->x->rank);
    if (v->weight->rank != v->dims + 2)
        return error_set(err, ERROR_INVALID, "weight: expected %d dimensions, found %d",
                         v->dims + 2, v->weight->rank);
    if (v->batched) v->batch = v->x->size[0];
    if (channels(v, err)) return -1;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        int own = d - (WINDOW_DIMS - v->dims);
        if (own < 0)
            window_none(&v->w[d]);
        else if (window(c, v, own, &v->w[d], err))
            return -1;
    }
    return 0;
}

static int infer(OpCall *c, Error *err)
{
    Convolution v;
    int64_t size[OP_MAX_RANK];
    int rank = 0;
    if (convolution_of(c, &v, err)) return -1;
    for (int i = 0; i < c->n_tensors; i++)
        if (!dtype_is_float(c->tensor[i].dtype) || c->tensor[i].dtype != v.x->dtype)
            return error_set(err, ERROR_INVALID,
                             "expected one floating-point type, found %s and %s",
                             dtype_name(v.x->dtype), dtype_name(c->tensor[i].dtype));
    if (v.batched) size[rank++] = v.batch;
    size[rank++] = v.out * v.groups;
    for (int d = WINDOW_DIMS - v.dims; d < WINDOW_DIMS; d++) size[rank++] = v.w[d].out;
    return op_result(c, v.x->dtype, rank, size, err);
}

/* ---- what an output meets ---- */

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

WindowClass window_class(const Window *w, int64_t r)
{
    if (!w->transposed)
        return (WindowClass){1, w->out, 0, 1, w->kernel, w->stride, -w->padding, w->dilation};
    int64_t common = common_divisor(w->stride, w->dilation), first = 0;
    WindowClass k = {.apart = w->stride, .step = w->stride / common, .walk = 1};
    k.outputs = r < w->out ? (w->out - r + w->stride - 1) / w->stride : 0;
    while (first < k.step && (r + w->padding - first * w->dilation) % w->stride) first++;
    k.first = first;
    if (first < k.step && first < w->kernel) k.taps = (w->kernel - first + k.step - 1) / k.step;
    if (k.taps) k.shift = (r + w->padding - first * w->dilation) / w->stride;
    k.delta = -w->dilation / common;
    return k;
}

int64_t window_max(const Window *w)
{
    return window_class(w, 0).outputs;
}

int64_t window_classes(const Window *w)
{
    return !w->transposed ? 1 : w->stride < w->out ? w->stride : w->out;
}

/* ---- the reference ---- */

/* The outputs of one class, over the batch, and its taps. */
typedef struct {
    const Convolution *v;
    const double *x, *weight, *bias;
    double *y;
    int64_t r[WINDOW_DIMS];
    WindowClass k[WINDOW_DIMS];
    int64_t outputs, taps; /* of one batch entry */
} Part;

static void part_init(Part *p, const Convolution *v, int64_t which)
{
    p->outputs = p->taps = 1;
    for (int d = WINDOW_DIMS - 1; d >= 0; d--) {
        int64_t classes = window_classes(&v->w[d]);
        p->r[d] = which % classes;
        which /= classes;
        p->k[d] = window_class(&v->w[d], p->r[d]);
        p->outputs *= p->k[d].outputs;
        p->taps *= p->k[d].taps;
    }
}

enum { RUNS = TILE_N + 1 };

/* Places that are evenly apart; step 0: padding, which reads as 0. */
typedef struct {
    int64_t first, step;
    int n;
} Run;

/* Those of n places, where -1 is padding, in order; at most n. A last one of no places ends them. */
static void runs_of(const int64_t *place, int n, Run *out)
{
    int j = 0;
    while (j < n) {
        int from = j++;
        int64_t step = place[from] < 0                   ? 0
                       : j < n && place[j] > place[from] ? place[j] - place[from]
                                                         : 1;
        while (j < n && (step ? place[j] == place[j - 1] + step : place[j] < 0)) j++;
        *out++ = (Run){place[from], step, j - from};
    }
    *out = (Run){0};
}

/* Brings the elements of a channel into a row of the panel. */
static void runs_read(const Run *r, const double *x, double *to)
{
    for (; r->n; to += r++->n) {
        const double *from = x + r->first;
        if (r->step == 1)
            memcpy(to, from, (size_t)r->n * sizeof *to);
        else
            for (int i = 0; i < r->n; i++) to[i] = r->step ? from[i * r->step] : 0;
    }
}

/* For each tap the runs of the block's inputs, in channel 0 of the group 0; `to`: the outputs' places. */
static void part_table(const Part *p, int64_t first, int n, Run *table, Run *to)
{
    const Convolution *v = p->v;
    const Window *w = v->w;
    int64_t volume = w[0].in * w[1].in * w[2].in, all = v->in * v->groups * volume,
            out_volume = w[0].out * w[1].out * w[2].out, from[WINDOW_DIMS][TILE_N], begin[TILE_N],
            place[TILE_N];
    for (int j = 0; j < n; j++) {
        int64_t rest = (first + j) % p->outputs, q[WINDOW_DIMS], o = 0,
                entry = (first + j) / p->outputs;
        for (int d = WINDOW_DIMS - 1; d >= 0; rest /= p->k[d--].outputs) {
            q[d] = rest % p->k[d].outputs;
            from[d][j] = q[d] * p->k[d].walk + p->k[d].shift;
        }
        for (int d = 0; d < WINDOW_DIMS; d++) o = o * w[d].out + p->r[d] + q[d] * p->k[d].apart;
        place[j] = entry * v->out * v->groups * out_volume + o;
        begin[j] = entry * all + (from[0][j] * w[1].in + from[1][j]) * w[2].in + from[2][j];
    }
    runs_of(place, n, to);
    for (int64_t t = 0; t < p->taps; t++) {
        int64_t tap = t, by[WINDOW_DIMS];
        for (int d = WINDOW_DIMS - 1; d >= 0; tap /= p->k[d--].taps)
            by[d] = tap % p->k[d].taps * p->k[d].delta;
        const int64_t in[WINDOW_DIMS] = {w[0].in, w[1].in, w[2].in},
                      delta = (by[0] * in[1] + by[1]) * in[2] + by[2];
#pragma omp simd
        for (int j = 0; j < n; j++) {
            int64_t a = from[0][j] + by[0], b = from[1][j] + by[1], c = from[2][j] + by[2],
                    inside =
                        (a >= 0) & (a < in[0]) & (b >= 0) & (b < in[1]) & (c >= 0) & (c < in[2]);
            place[j] = inside ? begin[j] + delta : -1;
        }
        runs_of(place, n, table + t * RUNS);
    }
}

/* The place of a tap's weight among those of a pair of channels. */
static int64_t tap_place(const Part *p, int64_t t)
{
    int64_t at[WINDOW_DIMS], place = 0;
    for (int d = WINDOW_DIMS - 1; d >= 0; t /= p->k[d--].taps)
        at[d] = p->k[d].first + t % p->k[d].taps * p->k[d].step;
    for (int d = 0; d < WINDOW_DIMS; d++) place = place * p->v->w[d].kernel + at[d];
    return place;
}

static int64_t weight_place(const Convolution *v, int64_t group, int64_t o, int64_t i)
{
    int64_t kernel = v->w[0].kernel * v->w[1].kernel * v->w[2].kernel;
    return (v->transposed ? (group * v->in + i) * v->out + o : (group * v->out + o) * v->in + i) *
           kernel;
}

/* A block of outputs: its inputs and places, the taps' weights, and memory to work in. */
typedef struct {
    const Part *p;
    int n;
    Run *table, to[RUNS]; /* by tap; of the outputs */
    int64_t *taps;
    Panel panel;
    double *acc, *a, *b;
} Block;

static void put_row(const Block *k, int64_t channel, const double *from)
{
    const Part *p = k->p;
    const Window *w = p->v->w;
    double bias = p->bias ? p->bias[channel] : 0,
           *y = p->y + channel * (w[0].out * w[1].out * w[2].out);
    for (const Run *r = k->to; r->n; from += r++->n) {
        double *at = y + r->first;
        int64_t step = r->step;
        for (int j = 0; j < r->n && step != 1; j++) at[j * step] = from[j] + bias;
#pragma omp simd
        for (int j = 0; j < (step == 1 ? r->n : 0); j++) at[j] = from[j] + bias;
    }
}

/* to += weight * from, over the runs of a tap. */
static void add_runs(const Run *r, const double *from, double weight, double *restrict to)
{
    for (; r->n; to += r++->n) {
        const double *restrict x = from + r->first;
        int64_t step = r->step;
        for (int i = 0; i < r->n && step > 1; i++) to[i] = fma(weight, x[i * step], to[i]);
        for (int i = 0; i < r->n && !step; i++) to[i] = fma(weight, 0, to[i]);
#pragma omp simd
        for (int i = 0; i < (step == 1 ? r->n : 0); i++) to[i] = fma(weight, x[i], to[i]);
    }
}

/* One channel of a group that has no other: a panel would be used once. */
static void block_row(const Block *k, int64_t group)
{
    const Part *p = k->p;
    const Convolution *v = p->v;
    int64_t volume = v->w[0].in * v->w[1].in * v->w[2].in;
    product_clear(1, k->n, k->acc);
    for (int64_t channel = 0; channel < v->in; channel++)
        for (int64_t t = 0; t < p->taps; t++)
            add_runs(k->table + t * RUNS, p->x + (group * v->in + channel) * volume,
                     p->weight[weight_place(v, group, 0, channel) + k->taps[t]], k->acc);
    put_row(k, group, k->acc);
}

/* TILE_M channels of a group from channel `row`. */
static void block_rows(const Block *k, int64_t group, int64_t row)
{
    const Part *p = k->p;
    const Convolution *v = p->v;
    int m = (int)(v->out - row < TILE_M ? v->out - row : TILE_M), step = k->panel.step,
        terms = k->panel.terms;
    int64_t volume = v->w[0].in * v->w[1].in * v->w[2].in, depth = v->in * p->taps;
    product_clear(m, k->n, k->acc);
    for (int64_t first = 0; first < depth; first += terms) {
        int part = (int)(depth - first < terms ? depth - first : terms);
        for (int e = 0; e < part; e++) {
            int64_t channel = (first + e) / p->taps, tap = (first + e) % p->taps;
            runs_read(k->table + tap * RUNS, p->x + (group * v->in + channel) * volume,
                      k->b + e * step);
            for (int i = 0; i < m && v->transposed; i++)
                k->a[i * terms + e] =
                    p->weight[weight_place(v, group, row + i, channel) + k->taps[tap]];
        }
        Tile t = {k->a, terms, m, part, k->n, step};
        if (!v->transposed) /* a row's weights lie in the order of the terms */
            t.a = p->weight + weight_place(v, group, row, 0) + first, t.a_step = depth;
        product_tile(&t, k->b, k->acc);
    }
    for (int i = 0; i < m; i++) put_row(k, group * v->out + row + i, k->acc + i * TILE_N);
}

/* Block `block` of a class: `share` of `shares` of its rows. */
static void part_block(const Part *p, int64_t block, int share, int shares)
{
    const Convolution *v = p->v;
    int64_t first = block * TILE_N, left = v->batch * p->outputs - first,
            down = (v->out + TILE_M - 1) / TILE_M, m = v->out < TILE_M ? v->out : TILE_M;
    if (left <= 0 || share >= v->groups * down) return;
    Block k = {.p = p, .n = (int)(left < TILE_N ? left : TILE_N)};
    k.panel = product_panel(k.n, v->in * p->taps);
    k.table = memory_grow(NULL, (size_t)(p->taps + 1) * RUNS, sizeof *k.table);
    k.taps = memory_array((size_t)p->taps, sizeof *k.taps);
    size_t panel = (size_t)k.panel.terms * (size_t)k.panel.step, a = (size_t)(m * k.panel.terms);
    k.acc = memory_grow(NULL, (size_t)m * TILE_N + panel + a, sizeof *k.acc);
    k.b = k.acc + m * TILE_N, k.a = k.b + panel;
    part_table(p, first, k.n, k.table, k.to);
    product_pad(&k.panel, k.n, k.b);
    for (int64_t t = 0; t < p->taps; t++) k.taps[t] = tap_place(p, t);
    for (int64_t i = share; i < v->groups * down; i += shares)
        if (v->out == 1)
            block_row(&k, i);
        else
            block_rows(&k, i / down, i % down * TILE_M);
    free(k.table), free(k.taps), free(k.acc);
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    Convolution v;
    if (convolution_of(c, &v, err)) return -1;
    enum { SHARES = 4 };
    int64_t classes = 1, largest = v.batch, weights = op_elements(op_tensor(c, v.weight_index));
    for (int d = 0; d < WINDOW_DIMS; d++) {
        largest *= window_max(&v.w[d]);
        classes *= window_classes(&v.w[d]);
    }
    int64_t blocks = (largest + TILE_N - 1) / TILE_N, n = classes * blocks * SHARES;
#pragma omp parallel for schedule(dynamic) if (largest * classes * weights >= PRODUCT_WORTH_THREADS)
    for (int64_t i = 0; i < n; i++) {
        Part p = {.v = &v, .x = in[v.x_index], .weight = in[v.weight_index], .y = out[0]};
        if (v.bias) p.bias = in[v.bias_index];
        part_init(&p, &v, i / SHARES / blocks);
        part_block(&p, i / SHARES % blocks, (int)(i % SHARES), SHARES);
    }
    return 0;
}

/* ---- single outputs ---- */

enum { TOGETHER = 4 }; /* outputs: the terms of one sum wait for each other */

/* The taps that one output meets: the place in a channel of the input and among the weights of a pair
 * of channels; and where its channels begin. */
typedef struct {
    int64_t n, *input, *tap;
    int64_t entry, group, channel; /* of the batch; channel: in its group */
    int64_t at[WINDOW_DIMS],
        *inputs[WINDOW_DIMS]; /* of each tap of a dimension, at this place there */
} Meets;

static void meets_open(const Convolution *v, Meets *m)
{
    size_t n = (size_t)(v->w[0].kernel * v->w[1].kernel * v->w[2].kernel);
    *m = (Meets){.input = memory_array(n + 1, sizeof *m->input),
                 .tap = memory_array(n + 1, sizeof *m->tap)};
    for (int d = 0; d < WINDOW_DIMS; d++) {
        m->inputs[d] = memory_array((size_t)v->w[d].kernel + 1, sizeof **m->inputs);
        m->at[d] = -1;
    }
}

static void meets_close(Meets *m)
{
    free(m->input), free(m->tap);
    for (int d = 0; d < WINDOW_DIMS; d++) free(m->inputs[d]);
}

static void place_dimension(const Window *w, int64_t o, int64_t *at, int64_t *inputs)
{
    if (o == *at) return;
    *at = o;
    for (int64_t k = 0; k < w->kernel; k++) inputs[k] = window_input(w, o, k);
}

static void meets_of(const Convolution *v, int64_t output, Meets *m)
{
    const Window *w = v->w;
    for (int d = WINDOW_DIMS - 1; d >= 0; output /= w[d--].out)
        place_dimension(&w[d], output % w[d].out, &m->at[d], m->inputs[d]);
    m->channel = output % v->out, output /= v->out;
    m->group = output % v->groups, m->entry = output / v->groups;
    m->n = 0;
    for (int64_t i = 0; i < w[0].kernel; i++)
        for (int64_t j = 0; j < w[1].kernel; j++) {
            int64_t a = m->inputs[0][i], b = m->inputs[1][j];
            for (int64_t k = 0; k < w[2].kernel && a >= 0 && b >= 0; k++) {
                int64_t c = m->inputs[2][k];
                if (c < 0) continue;
                m->input[m->n] = (a * w[1].in + b) * w[2].in + c;
                m->tap[m->n++] = (i * w[1].kernel + j) * w[2].kernel + k;
            }
        }
}

static int64_t input_place(const Convolution *v, const Meets *m, int64_t channel)
{
    return ((m->entry * v->groups + m->group) * v->in + channel) *
           (v->w[0].in * v->w[1].in * v->w[2].in);
}

/* The places of a channel that outputs of one entry and group meet, a bit each: words from `first` to `end`
 * have any. */
typedef struct {
    uint64_t *bits;
    int64_t first, end, n, met; /* n: bits; met: what the outputs meet, together */
} Plane;

static void plane_add(Plane *p, const Meets *m)
{
    for (int64_t t = 0; t < m->n; t++) {
        int64_t word = m->input[t] / 64;
        uint64_t bit = UINT64_C(1) << m->input[t] % 64;
        if (word < p->first) p->first = word;
        if (word >= p->end) p->end = word + 1;
        p->n += !(p->bits[word] & bit);
        p->bits[word] |= bit;
    }
    p->met += m->n;
}

/* Names the places in all channels, and forgets them. */
static void plane_name(Plane *p, const Convolution *v, const Meets *m, const OpNeeds *out)
{
    int64_t from = p->first * 64, end = p->end * 64, n;
    for (int64_t at = from; at < end; at += n + 1) {
        for (n = 0; at + n < end && p->bits[(at + n) / 64] >> (at + n) % 64 & 1;) n++;
        for (int64_t i = 0; i < v->in && n; i++)
            out->add(out->of, v->x_index, input_place(v, m, i) + at, 1, n);
    }
    out->again(out->of, v->in * (p->met - p->n));
    for (int64_t w = p->first; w < p->end; w++) p->bits[w] = 0;
    *p = (Plane){.bits = p->bits, .first = INT64_MAX};
}

/* The weights of a channel of the result, which lie in one piece unless they are transposed. */
static void name_weights(const Convolution *v, const Meets *m, const OpNeeds *out)
{
    int64_t n = v->w[0].kernel * v->w[1].kernel * v->w[2].kernel,
            pieces = v->transposed ? v->in : 1;
    for (int64_t i = 0; i < pieces; i++)
        out->add(out->of, v->weight_index, weight_place(v, m->group, m->channel, i), 1,
                 n * v->in / pieces);
}

static void element_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    int64_t before = -1;
    Error ignored;
    Convolution v;
    Meets m, last;
    if (convolution_of(c, &v, &ignored)) return;
    meets_open(&v, &m);
    Plane p = {memory_array((size_t)(input_place(&v, &(Meets){0}, 1) / 64) + 1, sizeof *p.bits),
               INT64_MAX, 0, 0, 0};
    for (int64_t k = 0; k < s->n; k++) {
        last = m;
        meets_of(&v, s->at[k], &m);
        int64_t channel = m.group * v.out + m.channel;
        if (k && (m.entry != last.entry || m.group != last.group)) plane_name(&p, &v, &last, out);
        plane_add(&p, &m);
        if (channel != before) name_weights(&v, &m, out);
        if (v.bias) out->add(out->of, v.bias_index, channel, 1, 1);
        before = channel;
    }
    if (s->n) plane_name(&p, &v, &m, out);
    free(p.bits);
    meets_close(&m);
}

/* The sums of outputs that meet as many taps. */
static inline __attribute__((always_inline)) void sum_taps(const Convolution *v, const Meets *m,
                                                           const double *const *in, double *sum,
                                                           const int n)
{
    for (int64_t i = 0; i < v->in; i++) {
        const double *x[TOGETHER], *weight[TOGETHER];
        for (int e = 0; e < n; e++) {
            x[e] = in[v->x_index] + input_place(v, &m[e], i);
            weight[e] = in[v->weight_index] + weight_place(v, m[e].group, m[e].channel, i);
        }
        for (int64_t t = 0; t < m->n; t++)
            for (int e = 0; e < n; e++)
                sum[e] = fma(weight[e][m[e].tap[t]], x[e][m[e].input[t]], sum[e]);
    }
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    Error ignored;
    Convolution v;
    Meets m[TOGETHER];
    if (convolution_of(c, &v, &ignored)) return;
    for (int e = 0; e < TOGETHER; e++) meets_open(&v, &m[e]);
    for (int64_t k = 0, n; k < s->n; k += n) {
        double sum[TOGETHER] = {0};
        meets_of(&v, s->at[k], &m[0]);
        for (n = 1; n < TOGETHER && k + n < s->n; n++) {
            meets_of(&v, s->at[k + n], &m[n]);
            if (m[n].n != m[0].n) break;
        }
        if (n == TOGETHER)
            sum_taps(&v, m, in, sum, TOGETHER);
        else
            for (int64_t e = 0; e < n; e++) sum_taps(&v, &m[e], in, &sum[e], 1);
        for (int64_t e = 0; e < n; e++)
            y[k + e] = sum[e] + (v.bias ? in[v.bias_index][m[e].group * v.out + m[e].channel] : 0);
    }
    for (int e = 0; e < TOGETHER; e++) meets_close(&m[e]);
}

static const OpElements elements = {element_needs, element_compute, NULL, NULL};

/* ---- the rest ---- */

/* PyTorch's test, of which strides of single elements are a part: channels vary fastest, then the last
 * dimension, the batch slowest. One dimension is the last of two. */
static int lies_last(const OpTensor *t, int dims)
{
    int64_t size[5], stride[5], least = 0;
    int n = 0, missing = dims + 2 - t->rank, order[5] = {1};
    for (int d = 0; d < dims + 2; d++) {
        if (dims == 1 && d == 2) {
            size[n] = 1;
            stride[n++] = t->size[d - missing] * t->stride[d - missing];
        }
        size[n] = d < missing ? 1 : t->size[d - missing];
        stride[n++] = d < missing ? t->size[0] * t->stride[0] : t->stride[d - missing];
    }
    for (int i = 1; i < n - 1; i++) order[i] = n - i;
    order[n - 1] = 0;
    for (int i = 0; i < n; i++) {
        int d = order[i];
        if (!size[d] || !stride[1] || stride[d] < least || (!d && least == stride[1])) return 0;
        least = stride[d] * size[d];
    }
    return 1;
}

int convolution_last(const Convolution *v)
{
    return v->x->dtype <= DTYPE_BF16 && (lies_last(v->x, v->dims) || lies_last(v->weight, v->dims));
}

static void layout(OpCall *c)
{
    Convolution v;
    OpTensor *y = &c->result[0];
    if (convolution_of(c, &v, NULL) || !convolution_last(&v)) return;
    int channels = y->rank - v.dims - 1;
    int64_t step = y->size[channels];
    y->stride[channels] = 1;
    for (int d = y->rank - 1; d >= 0; d--) {
        if (d == channels) continue;
        y->stride[d] = step;
        step *= y->size[d];
    }
}

int convolution_depthwise(const Convolution *v)
{
    return !v->transposed && v->groups > 1 && v->in == 1 && !convolution_last(v);
}

int convolution_is_depthwise(const OpCall *c)
{
    Convolution v;
    return c->op->infer == infer && !convolution_of(c, &v, NULL) && convolution_depthwise(&v);
}

int convolution_read(const OpCall *c, Convolution *out)
{
    return c->op->infer == infer && !convolution_of(c, out, NULL);
}

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    Convolution v;
    return convolution_of(c, &v, err) ? -1 : convolution_plain(&v, c, out, err);
}

static int route(const OpCall *c, OpRoute *out, Error *err)
{
    Convolution v;
    return convolution_of(c, &v, err) ? -1 : convolution_route(&v, c, out, err);
}

/* Taps on padding cost nothing, and inputs that no tap meets are not read. */
static void cost(const OpCall *c, OpCost *out)
{
    Convolution v;
    if (convolution_of(c, &v, NULL)) return;
    double size = (double)dtype_size(v.x->dtype), y = (double)op_elements(&c->result[0]),
           inputs = (double)(v.batch * v.in * v.groups), taps = (double)(v.in * v.out * v.groups),
           pairs = (double)(v.batch * v.in * v.out * v.groups);
    for (int d = 0; d < WINDOW_DIMS; d++) {
        WindowUse u = window_use(&v.w[d], out->flops_alone);
        inputs *= u.inputs, taps *= u.taps, pairs *= u.pairs;
    }
    double bias = v.bias ? (double)v.bias->size[0] : 0, x = inputs * size;
    if (op_bytes(v.x) < x) x = op_bytes(v.x);
    out->bytes = x + size * (taps + bias + y);
    out->flops = 2 * pairs + (v.bias ? y : 0);
}

#define HEAD "Tensor input, Tensor weight, Tensor? bias=None, "
#define PLAIN(n) \
    HEAD "int[" n "] stride=1, int[" n "] padding=0, int[" n "] dilation=1, int groups=1"
#define NAMED(n) HEAD "int[" n "] stride=1, str padding=valid, int[" n "] dilation=1, int groups=1"
#define TRANSPOSED(n)                                                                   \
    HEAD "int[" n "] stride=1, int[" n "] padding=0, int[" n "] output_padding=0, int " \
         "groups=1, int[" n "] dilation=1"
#define ROW(aten, text, n, is_transposed)                                                        \
    {                                                                                            \
        .name = "aten." aten, .schema = text, .infer = infer, .reference = reference,            \
        .plain = plain, .cost = cost, .route = route, .detail = &(const Kind){n, is_transposed}, \
        .elements = &elements, .layout = layout, .flags = OP_CUDNN,                              \
    }

static const Op table[] = {
    ROW("conv1d.default", PLAIN("1"), 1, 0),
    ROW("conv2d.default", PLAIN("2"), 2, 0),
    ROW("conv3d.default", PLAIN("3"), 3, 0),
    ROW("conv1d.padding", NAMED("1"), 1, 0),
    ROW("conv2d.padding", NAMED("2"), 2, 0),
    ROW("conv3d.padding", NAMED("3"), 3, 0),
    ROW("conv_transpose1d.default", TRANSPOSED("1"), 1, 1),
    ROW("conv_transpose2d.input", TRANSPOSED("2"), 2, 1),
    ROW("conv_transpose3d.input", TRANSPOSED("3"), 3, 1),
};

const OpFamily convolution_family = {"convolution", table, sizeof table / sizeof *table};
