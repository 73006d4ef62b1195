/* Pools in one to three dimensions: largest value or average of a window, whose place follows from
 * stride and padding, or in adaptive pools from the sizes. One thread an output, in references and in
 * kernels. Averages over the whole plane are means, as in eager PyTorch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_text.h"
#include "ops/op_window.h"

enum { MAX_PLACES = 1 << 27, UNROLLED = 16 }; /* a gibibyte */

typedef struct {
    int dims, average, adaptive, results;
} Kind;

/* The windows w[0] to w[dims - 1] are of the last dimensions. */
typedef struct {
    int dims, average, adaptive;
    const OpTensor *x;
    int lead; /* dimensions before the windows */
    int64_t planes, volume, outputs;
    Window w[WINDOW_DIMS];
    int include_pad, ceil;
    int64_t divisor; /* 0: the number of elements */
} Pool;

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
    if (!op_dtype_is_float(p->x->dtype))
        return error_set(err, ERROR_UNSUPPORTED, "expected a floating-point type, found %s",
                         op_dtype_name(p->x->dtype));
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
    return k->results == 2 ? op_result(c, OP_I64, p.x->rank, size, err) : 0;
}

/* ---- reference ---- */

typedef struct {
    double sum, best;
    int64_t at; /* in the plane */
} State;

/* Visits a window's elements in C order. */
static void visit(const Pool *p, const double *x, const Span *s, State *t)
{
    int64_t n[WINDOW_DIMS] = {1, 1, 1}, step[WINDOW_DIMS] = {0}, first = 0, inner = 1;
    for (int d = p->dims - 1; d >= 0; inner *= p->w[d--].in) {
        int to = WINDOW_DIMS - p->dims + d;
        n[to] = s[d].n;
        step[to] = s[d].step * inner;
        first += s[d].low * inner;
    }
    *t = (State){.best = -INFINITY, .at = first};
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            for (int64_t k = 0; k < n[2]; k++) {
                int64_t at = first + i * step[0] + j * step[1] + k * step[2];
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

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *x = in[c->arg[0].integer[0]];
    Pool p;
    if (pool_of(c, &p, err)) return -1;
#pragma omp parallel for if (p.planes * p.volume >= 1 << 14)
    for (int64_t i = 0; i < p.planes * p.outputs; i++) {
        Span s[WINDOW_DIMS];
        State t;
        int64_t rest = i % p.outputs;
        for (int d = p.dims - 1; d >= 0; rest /= p.w[d--].out)
            s[d] = span_of(&p, d, rest % p.w[d].out);
        visit(&p, x + i / p.outputs * p.volume, s, &t);
        out[0][i] = p.average ? average(&p, s, t.sum) : t.best;
        if (c->n_results > 1) out[1][i] = (double)t.at;
    }
    return 0;
}

/* ---- kernels ---- */

/* const int low0, high0, size0 of the output o0. */
static void span_text(Buffer *b, const Pool *p, int d)
{
    const Window *w = &p->w[d];
    long long in = w->in, out = w->out;
    if (p->adaptive) {
        const char *cast = w->in * (w->out + 1) >= INT32_MAX ? "(long long)" : "";
        buffer_printf(b,
                      "    const int low%d = %so%d * %lld / %lld;\n"
                      "    const int high%d = (%s(o%d + 1) * %lld + %lld) / %lld;\n"
                      "    const int size%d = high%d - low%d;\n",
                      d, cast, d, in, out, d, cast, d, in, out - 1, out, d, d, d);
        return;
    }
    buffer_printf(b,
                  "    const int first%d = o%d * %lld - %lld;\n"
                  "    const int low%d = first%d < 0 ? first%d + (-first%d + %lld) / %lld * %lld : "
                  "first%d;\n"
                  "    const int high%d = min(first%d + %lld, %lld);\n",
                  d, d, (long long)w->stride, (long long)w->padding, d, d, d, d,
                  (long long)w->dilation - 1, (long long)w->dilation, (long long)w->dilation, d, d,
                  d, (long long)((w->kernel - 1) * w->dilation + 1), in);
    if (!p->average) return;
    if (p->include_pad && !p->divisor)
        buffer_printf(b, "    const int size%d = min(first%d + %lld, %lld) - first%d;\n", d, d,
                      (long long)w->kernel, (long long)(w->in + w->padding), d);
    else
        buffer_printf(b, "    const int size%d = high%d - low%d;\n", d, d, d);
}

/* The loops over the window, the last one of an average unrolled so that its loads overlap, which end in
 * `step` over the element v at `at` of the plane. */
static void loops(Buffer *b, const Pool *p, const char *type, const char *x, const char *step)
{
    int64_t inner = 1, last = p->x->offset;
    for (int d = 0; d < p->x->rank; d++) last += (p->x->size[d] - 1) * p->x->stride[d];
    const char *index = last >= INT32_MAX ? "long long" : "int";
    buffer_printf(b, "    const %s base = ", index);
    text_strided(b, p->x->offset, p->lead, p->x->size, p->x->stride, "plane");
    buffer_puts(b, ";\n");
    for (int d = 0; d < p->dims; d++) {
        const Window *w = &p->w[d];
        if (p->average && !p->adaptive && d == p->dims - 1 && w->kernel <= UNROLLED)
            buffer_printf(b,
                          "#pragma unroll\n    for (int k = 0; k < %lld; k++)\n"
                          "    if (const int a%d = first%d + k; a%d >= 0 && a%d < %lld)\n",
                          (long long)w->kernel, d, d, d, d, (long long)w->in);
        else
            buffer_printf(b, "    for (int a%d = low%d; a%d < high%d; a%d += %lld)\n", d, d, d, d,
                          d, (long long)w->dilation);
    }
    buffer_printf(b, "    {\n        const %s v = (%s)%s[base", type, type, x);
    for (int d = 0; d < p->dims; d++)
        buffer_printf(b, " + (%s)a%d * %lld", index, d, (long long)p->x->stride[p->lead + d]);
    buffer_puts(b, "];\n");
    if (!p->average) {
        buffer_printf(b, "        const long long at = 0");
        for (int d = p->dims - 1; d >= 0; inner *= p->w[d--].in)
            buffer_printf(b, " + a%d * %lldLL", d, (long long)inner);
        buffer_puts(b, ";\n");
    }
    buffer_printf(b, "        %s\n    }\n", step);
}

static void average_text(Buffer *b, const Pool *p, const char *type, const char *x, const char *y)
{
    buffer_printf(b, "    %s sum = 0;\n", type);
    loops(b, p, type, x, "sum += v;");
    buffer_printf(b, "    y0[i] = (%s)(sum / (%s)", y, type);
    if (p->divisor) {
        buffer_printf(b, "%lld);\n", (long long)p->divisor);
        return;
    }
    for (int d = 0; d < p->dims; d++) buffer_printf(b, "%ssize%d", d ? " * " : "(", d);
    buffer_puts(b, "));\n");
}

static void largest_text(Buffer *b, const Pool *p, const char *type, const char *x, const char *y,
                         const char *indices)
{
    int64_t inner = 1;
    buffer_printf(b, "    %s best = (%s)-__longlong_as_double(0x7ff0000000000000LL);\n", type,
                  type);
    buffer_puts(b, "    long long best_at = 0");
    for (int d = p->dims - 1; d >= 0; inner *= p->w[d--].in)
        buffer_printf(b, " + low%d * %lldLL", d, (long long)inner);
    buffer_puts(b, ";\n");
    loops(b, p, type, x, "if (v > best || v != v) best = v, best_at = at;");
    buffer_printf(b, "    y0[i] = (%s)best;\n", y);
    if (*indices) buffer_printf(b, "    %s[i] = best_at;\n", indices);
}

/* The mean over the windows' dimensions, which eager launches for an output of one element. */
static int mean(const OpCall *c, const Pool *p, OpPlain *out, Error *err)
{
    const Op *op = op_find("aten.mean.dim", err);
    OpCall m;
    OpValue v[] = {c->arg[0], {.kind = OP_INTS, .n = p->dims}, {.kind = OP_BOOL, .integer = {1}}};
    if (!op) return -1;
    op_call_init(&m, op);
    memcpy(m.tensor, c->tensor, sizeof m.tensor);
    m.n_tensors = c->n_tensors;
    for (int d = 0; d < p->dims; d++) v[1].integer[d] = p->lead + d;
    return op_bind(&m, NULL, v, 3, err) || op_infer(&m, err) ? -1 : op_plain(&m, out, err);
}

/* The largest value's place is stored, as in eager PyTorch, also where it is no result; but not where a
 * device may lack the memory. */
static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    Pool p;
    char x[8], indices[8] = "", names[32];
    int64_t inner = 1;
    int t = 0;
    if (pool_of(c, &p, err)) return -1;
    if (p.average && p.adaptive && p.outputs == 1) return mean(c, &p, out, err);
    const OpTensor *y = &c->result[0];
    const char *type = text_type(y->dtype), *stored = op_dtype_ctype(y->dtype);
    if (c->n_results == 2) {
        strcpy(indices, "y1");
    } else if (!p.average && op_elements(y) <= MAX_PLACES) {
        if ((t = text_scratch(out, OP_I64, op_elements(y), err)) < 0) return -1;
        snprintf(indices, sizeof indices, "t%d", t);
    }
    snprintf(x, sizeof x, "x%d", (int)c->arg[0].integer[0]);
    snprintf(names, sizeof names, "%s y0 %s", x, indices);
    if (!text_each(out, c, "pool", names, op_elements(y), err)) return -1;
    Buffer *b = out->source;
    for (int d = p.dims - 1; d >= 0; inner *= p.w[d--].out)
        buffer_printf(b, "    const int o%d = i / %lld %% %lld;\n", d, (long long)inner,
                      (long long)p.w[d].out);
    buffer_printf(b, "    const int plane = i / %lld;\n", (long long)inner);
    for (int d = 0; d < p.dims; d++) span_text(b, &p, d);
    if (p.average)
        average_text(b, &p, type, x, stored);
    else
        largest_text(b, &p, type, x, stored, indices);
    return text_each_end(out, err);
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
    double read = inputs * (double)op_dtype_size(p.x->dtype), x = op_bytes(p.x);
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
#define ROW(aten, text, n, is_average, is_adaptive, results)                          \
    {                                                                                 \
        .name = "aten." aten, .schema = text, .infer = infer, .reference = reference, \
        .plain = plain, .cost = cost,                                                 \
        .detail = &(const Kind){n, is_average, is_adaptive, results},                 \
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

OpFamily pooling_family(void)
{
    return (OpFamily){"pooling", table, (int)(sizeof table / sizeof *table)};
}
