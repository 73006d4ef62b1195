/* Pools in one to three dimensions: largest value or average of a window, whose place follows from
 * stride and padding, or in adaptive pools from the sizes. One thread an output. */
#include <math.h>
#include <string.h>

#include "ops/nn/op_pool.h"
#include "ops/op_element.h"

typedef struct {
    int dims, average, adaptive, results;
} Kind;

/* The inputs low, low + step, ... of an output, n in all; size: of the window with its padding. */
typedef struct {
    int64_t low, step, n, size;
} Span;

static Span span_of(const Pool *p, int d, int64_t o)
{
    const Window *w = &p->w[d];
    Span s = {.step = w->dilation};
    if (p->adaptive) {
        s.low = o * w->in / w->out;
        s.n = ((o + 1) * w->in + w->out - 1) / w->out - s.low;
        s.size = s.n;
        return s;
    }
    int64_t first = o * w->stride - w->padding, end = first + (w->kernel - 1) * w->dilation + 1;
    s.low = first < 0 ? first + (-first + w->dilation - 1) / w->dilation * w->dilation : first;
    s.size = (end < w->in + w->padding ? end : w->in + w->padding) - first;
    if (end > w->in) end = w->in;
    s.n = end > s.low ? (end - s.low + w->dilation - 1) / w->dilation : 0;
    return s;
}

/* ---- shapes ---- */

static int list_length(const OpCall *c, const char *name, int dims, Error *err)
{
    int at = op_argument(c->op, name), n = at < 0 ? dims : c->arg[at].n;
    if (n == dims || (!n && !strcmp(name, "stride"))) return 0;
    return error_set(err, ERROR_INVALID, "%s: expected %d sizes, found %d", name, dims, n);
}

/* A window's outputs; with ceil_mode the last one may reach beyond the padding, but begins before. */
static int window_outputs(Window *w, int ceil, Error *err)
{
    int64_t span = w->dilation * (w->kernel - 1) + 1, room = w->in + 2 * w->padding - span;
    if (w->padding > span / 2)
        return error_set(err, ERROR_INVALID,
                         "padding: expected at most half of the kernel's %lld, found %lld",
                         (long long)span, (long long)w->padding);
    if (ceil) room += w->stride - 1;
    w->out = room < 0 ? 0 : room / w->stride + 1;
    if (ceil && (w->out - 1) * w->stride >= w->in + w->padding) w->out--;
    if (w->out < 1)
        return error_set(err, ERROR_INVALID,
                         "a window of %lld does not fit an input of %lld with padding %lld",
                         (long long)span, (long long)w->in, (long long)w->padding);
    return 0;
}

static int window(const OpCall *c, const Pool *p, int d, Window *w, Error *err)
{
    int stride = op_argument(c->op, "stride");
    *w = (Window){.in = p->x->size[p->lead + d], .kernel = 1, .stride = 1, .dilation = 1};
    if (w->in < 1 || w->in > INT32_MAX)
        return error_set(err, ERROR_INVALID, "a dimension of a pool has %lld elements",
                         (long long)w->in);
    if (p->adaptive) return window_argument(c, "output_size", d, 0, &w->out, err);
    if (window_argument(c, "kernel_size", d, 1, &w->kernel, err) ||
        window_argument(c, "padding", d, 0, &w->padding, err))
        return -1;
    w->stride = w->kernel;
    if (c->arg[stride].n && window_argument(c, "stride", d, 1, &w->stride, err)) return -1;
    if (!p->average && window_argument(c, "dilation", d, 1, &w->dilation, err)) return -1;
    return window_outputs(w, p->ceil, err);
}

static int64_t flag(const OpCall *c, const char *name)
{
    int at = op_argument(c->op, name);
    return at < 0 ? 0 : c->arg[at].integer[0];
}

static int pool_of(const OpCall *c, Pool *p, Error *err)
{
    static const char *const lists[] = {"output_size", "kernel_size", "stride", "padding",
                                        "dilation"};
    const Kind *k = c->op->detail;
    *p = (Pool){.dims = k->dims, .average = k->average, .adaptive = k->adaptive};
    p->x = op_tensor(c, 0);
    p->lead = p->x->rank - k->dims;
    p->planes = p->volume = p->outputs = 1;
    p->ceil = (int)flag(c, "ceil_mode");
    p->include_pad = (int)flag(c, "count_include_pad");
    p->divisor = flag(c, "divisor_override");
    int divisor = op_argument(c->op, "divisor_override");
    if (divisor >= 0 && c->arg[divisor].kind != OP_NONE && !p->divisor)
        return error_set(err, ERROR_INVALID, "divisor_override: expected a number other than 0");
    if (p->lead != 1 && p->lead != 2)
        return error_set(err, ERROR_INVALID, "self: expected %d or %d dimensions, found %d",
                         k->dims + 1, k->dims + 2, p->x->rank);
    if (!dtype_is_float(p->x->dtype))
        return error_set(err, ERROR_UNSUPPORTED, "expected a floating-point type, found %s",
                         dtype_name(p->x->dtype));
    for (int i = 0; i < 5; i++)
        if (list_length(c, lists[i], k->dims, err)) return -1;
    for (int d = 0; d < p->lead; d++) p->planes *= p->x->size[d];
    for (int d = 0; d < k->dims; d++) {
        if (window(c, p, d, &p->w[d], err)) return -1;
        if (p->w[d].out && p->outputs >= (INT64_C(1) << 48) / p->w[d].out)
            return error_set(err, ERROR_LIMIT, "a plane has 2^48 outputs or more");
        p->volume *= p->w[d].in;
        p->outputs *= p->w[d].out;
    }
    return 0;
}

static int infer(OpCall *c, Error *err)
{
    const Kind *k = c->op->detail;
    Pool p;
    int64_t size[OP_MAX_RANK];
    if (pool_of(c, &p, err)) return -1;
    memcpy(size, p.x->size, sizeof size);
    for (int d = 0; d < p.dims; d++) size[p.lead + d] = p.w[d].out;
    if (op_result(c, p.x->dtype, p.x->rank, size, err)) return -1;
    return k->results == 2 ? op_result(c, DTYPE_I64, p.x->rank, size, err) : 0;
}

/* ---- reference ---- */

typedef struct {
    double sum, best;
    int64_t at; /* in the plane */
} State;

/* A window's elements in its plane. */
typedef struct {
    int64_t n[WINDOW_DIMS], step[WINDOW_DIMS], first;
} Box;

static void box_of(const Pool *p, const Span *s, Box *b)
{
    int64_t inner = 1;
    *b = (Box){.n = {1, 1, 1}};
    for (int d = p->dims - 1; d >= 0; inner *= p->w[d--].in) {
        int to = WINDOW_DIMS - p->dims + d;
        b->n[to] = s[d].n;
        b->step[to] = s[d].step * inner;
        b->first += s[d].low * inner;
    }
}

/* Visits a window's elements in C order. */
static void visit(const Pool *p, const double *x, const Span *s, State *t)
{
    Box b;
    box_of(p, s, &b);
    *t = (State){.best = -INFINITY, .at = b.first};
    for (int64_t i = 0; i < b.n[0]; i++)
        for (int64_t j = 0; j < b.n[1]; j++)
            for (int64_t k = 0; k < b.n[2]; k++) {
                int64_t at = b.first + i * b.step[0] + j * b.step[1] + k * b.step[2];
                t->sum += x[at];
                if (x[at] > t->best || isnan(x[at])) t->best = x[at], t->at = at;
            }
}

/* No window of an average lies in the padding alone. */
static double average(const Pool *p, const Span *s, double sum)
{
    double n = 1, size = 1;
    for (int d = 0; d < p->dims; d++) n *= (double)s[d].n, size *= (double)s[d].size;
    return sum / (p->divisor ? (double)p->divisor : p->include_pad ? size : n);
}

static void spans_of(const Pool *p, int64_t output, Span *s)
{
    int64_t rest = output % p->outputs;
    for (int d = p->dims - 1; d >= 0; rest /= p->w[d--].out)
        s[d] = span_of(p, d, rest % p->w[d].out);
}

/* An output, and the place of the largest element. */
static double pooled(const Pool *p, const double *x, int64_t output, double *at)
{
    Span s[WINDOW_DIMS];
    State t;
    spans_of(p, output, s);
    visit(p, x + output / p->outputs * p->volume, s, &t);
    *at = (double)t.at;
    return p->average ? average(p, s, t.sum) : t.best;
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *x = in[c->arg[0].integer[0]];
    Pool p;
    if (pool_of(c, &p, err)) return -1;
#pragma omp parallel for if (p.planes * p.volume >= 1 << 14)
    for (int64_t i = 0; i < p.planes * p.outputs; i++) {
        double at;
        out[0][i] = pooled(&p, x, i, &at);
        if (c->n_results > 1) out[1][i] = at;
    }
    return 0;
}

static void element_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    Error ignored;
    Pool p;
    if (pool_of(c, &p, &ignored)) return;
    for (int64_t e = 0; e < s->n; e++) {
        Span span[WINDOW_DIMS];
        Box b;
        spans_of(&p, s->at[e], span);
        box_of(&p, span, &b);
        b.first += s->at[e] / p.outputs * p.volume;
        for (int64_t i = 0; i < b.n[0]; i++)
            for (int64_t j = 0; j < b.n[1]; j++)
                out->add(out->of, (int)c->arg[0].integer[0],
                         b.first + i * b.step[0] + j * b.step[1], b.step[2], b.n[2]);
    }
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    Error ignored;
    Pool p;
    if (pool_of(c, &p, &ignored)) return;
    for (int64_t e = 0; e < s->n; e++) {
        double at, v = pooled(&p, in[c->arg[0].integer[0]], s->at[e], &at);
        y[e] = s->result ? at : v;
    }
}

static const OpElements elements = {element_needs, element_compute, NULL, NULL};

/* ---- the rest ---- */

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    Pool p;
    return pool_of(c, &p, err) ? -1 : pool_plain(&p, c, out, err);
}

/* Inputs between the windows are not read. An adaptive pool reads all. */
static void cost(const OpCall *c, OpCost *out)
{
    Pool p;
    if (pool_of(c, &p, NULL)) return;
    double inputs = (double)p.planes, pairs = (double)p.planes;
    for (int d = 0; d < p.dims; d++) {
        WindowUse u = {.inputs = (double)p.w[d].in, .pairs = (double)p.w[d].in};
        if (!p.adaptive) u = window_use(&p.w[d], out->flops_alone);
        inputs *= u.inputs, pairs *= u.pairs;
    }
    double read = inputs * (double)dtype_size(p.x->dtype), x = op_bytes(p.x);
    if (read < x) out->bytes -= x - read;
    out->flops = pairs;
}

#define MAX_SCHEMA(n)                                                                         \
    "Tensor self, int[" n "] kernel_size, int[" n "] stride=[], int[" n "] padding=0, int[" n \
    "] dilation=1, bool ceil_mode=False"
#define AVERAGE_SCHEMA(n)                                                                    \
    "Tensor self, int[" n "] kernel_size, int[" n "] stride=[], int[" n "] padding=0, bool " \
    "ceil_mode=False, bool count_include_pad=True"
#define ADAPTIVE_SCHEMA(n) "Tensor self, int[" n "] output_size"
#define ROW(aten, text, n, is_average, is_adaptive, results)                                 \
    {                                                                                        \
        .name = "aten." aten, .schema = text, .infer = infer, .reference = reference,        \
        .plain = plain, .cost = cost,                                                        \
        .detail = &(const Kind){n, is_average, is_adaptive, results}, .elements = &elements, \
    }

static const Op table[] = {
    ROW("max_pool1d.default", MAX_SCHEMA("1"), 1, 0, 0, 1),
    ROW("max_pool2d.default", MAX_SCHEMA("2"), 2, 0, 0, 1),
    ROW("max_pool3d.default", MAX_SCHEMA("3"), 3, 0, 0, 1),
    ROW("max_pool1d_with_indices.default", MAX_SCHEMA("1"), 1, 0, 0, 2),
    ROW("max_pool2d_with_indices.default", MAX_SCHEMA("2"), 2, 0, 0, 2),
    ROW("max_pool3d_with_indices.default", MAX_SCHEMA("3"), 3, 0, 0, 2),
    ROW("avg_pool1d.default", AVERAGE_SCHEMA("1"), 1, 1, 0, 1),
    ROW("avg_pool2d.default", AVERAGE_SCHEMA("2") ", int? divisor_override=None", 2, 1, 0, 1),
    ROW("avg_pool3d.default", AVERAGE_SCHEMA("3") ", int? divisor_override=None", 3, 1, 0, 1),
    ROW("adaptive_avg_pool1d.default", ADAPTIVE_SCHEMA("1"), 1, 1, 1, 1),
    ROW("adaptive_avg_pool2d.default", ADAPTIVE_SCHEMA("2"), 2, 1, 1, 1),
    ROW("adaptive_avg_pool3d.default", ADAPTIVE_SCHEMA("3"), 3, 1, 1, 1),
    ROW("_adaptive_avg_pool2d.default", ADAPTIVE_SCHEMA("2"), 2, 1, 1, 1),
    ROW("_adaptive_avg_pool3d.default", ADAPTIVE_SCHEMA("3"), 3, 1, 1, 1),
    ROW("adaptive_max_pool1d.default", ADAPTIVE_SCHEMA("1"), 1, 0, 1, 2),
    ROW("adaptive_max_pool2d.default", ADAPTIVE_SCHEMA("2"), 2, 0, 1, 2),
    ROW("adaptive_max_pool3d.default", ADAPTIVE_SCHEMA("3"), 3, 0, 1, 2),
};

const OpFamily pooling_family = {"pooling", table, sizeof table / sizeof *table};
