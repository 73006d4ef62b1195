/* Plain kernels of pools, built as eager PyTorch's: one thread an output, and sizes, strides and
 * windows that the kernel learns at run time, so that no loop over a window is unrolled and no
 * division is by a constant. In one and two dimensions outputs are counted flat, 256 or 1024 a
 * block, and divided by 64-bit sizes; in three a block is 32 columns x 8 rows of one frame, and
 * averages step through memory by 64-bit strides. The input is copied first where it is not dense.
 * Adaptive pools know their sizes. */
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/nn/op_pool.h"
#include "ops/op_text.h"

EMBED(op_pool_cu, "ops/nn/op_pool_text.cu")

enum {
    MAX_PLACES = 1 << 28, /* two gibibytes */
    LARGEST_THREADS = 256,
    AVERAGE_THREADS = 1024,
    COLUMNS = 32,
    ROWS = 8,
    FRAMES = 65535, /* of a grid */
    KNOWN_COLUMNS = 7,
    MAX_OPERANDS = 720
};

typedef struct {
    const Pool *p;
    const OpCall *c;
    OpPlain *out;
    Buffer *b;
    char x[24], indices[8]; /* where the dense input is; "": places are not stored */
    const char *type, *stored;
} Writer;

/* The windows as height and width, or depth, height and width. */
static Window window_at(const Pool *p, int of, int d)
{
    Window one;
    int own = d - (of - p->dims);
    if (own >= 0) return p->w[own];
    window_none(&one);
    return one;
}

/* 1: the text has the size of a window as a constant: the columns of small averages of frames. */
static int is_known(const Writer *t, int of, int d)
{
    return t->p->average && of == 3 && d == 2 && t->p->w[d].kernel <= KNOWN_COLUMNS;
}

/* A size as an operand: long long of averages, else an int. */
static char width_of(const Writer *t)
{
    return t->p->average ? ':' : '=';
}

/* The windows of the last `of` dimensions as operands. */
static size_t window_operands(const Writer *t, int of, char *text, size_t size)
{
    const char wide_out = width_of(t), wide = of == 2 ? ':' : wide_out;
    size_t n = 0;
    for (int d = 0; d < of; d++) {
        const Window w = window_at(t->p, of, d);
        n +=
            (size_t)snprintf(text + n, size - n, " in%d%c%lld out%d%c%lld stride%d=%lld pad%d=%lld",
                             d, wide, (long long)w.in, d, d ? '=' : wide_out, (long long)w.out, d,
                             (long long)w.stride, d, (long long)w.padding);
        if (!is_known(t, of, d))
            n += (size_t)snprintf(text + n, size - n, " kernel%d=%lld", d, (long long)w.kernel);
        if (!t->p->average)
            n += (size_t)snprintf(text + n, size - n, " dilation%d=%lld", d, (long long)w.dilation);
    }
    if (t->p->average)
        n += (size_t)snprintf(text + n, size - n, " divisor=%lld include_pad=%d",
                              (long long)t->p->divisor, t->p->include_pad);
    return n;
}

/* The window of output o0, o1, ...: int a0 to b0. */
static void bounds(const Writer *t, int of)
{
    for (int d = 0; d < of; d++)
        buffer_printf(t->b, "        int a%d = o%d * stride%d - pad%d;\n", d, d, d, d);
    if (t->p->average) {
        for (int d = 0; d < of; d++)
            buffer_printf(t->b, "        int b%d = min(a%d + kernel%d, (int)in%d + pad%d);\n", d, d,
                          d, d, d);
        buffer_puts(t->b, "        const int whole = ");
        for (int d = 0; d < of; d++) buffer_printf(t->b, "%s(b%d - a%d)", d ? " * " : "", d, d);
        buffer_puts(t->b, ";\n");
        for (int d = 0; d < of; d++)
            buffer_printf(t->b, "        a%d = max(a%d, 0), b%d = min(b%d, (int)in%d);\n", d, d, d,
                          d, d);
        return;
    }
    for (int d = 0; d < of; d++)
        buffer_printf(t->b,
                      "        const int b%d = min(a%d + (kernel%d - 1) * dilation%d + 1, "
                      "(int)in%d);\n"
                      "        while (a%d < 0) a%d += dilation%d;\n",
                      d, d, d, d, d, d, d, d);
}

/* The place of a0, a1, ... (or of the loops' i0, i1, ...) in its plane. */
static void place(Buffer *b, int of, char name)
{
    if (of == 2)
        buffer_printf(b, "%c0 * in1 + %c1", name, name);
    else
        buffer_printf(b, "%c0 * in1 * in2 + %c1 * in2 + %c2", name, name, name);
}

/* The loops over the window and the store at `to`. */
static void largest(const Writer *t, int of, const char *to)
{
    Buffer *b = t->b;
    buffer_printf(b,
                  "        T best = (T)-__longlong_as_double(0x7ff0000000000000LL);\n"
                  "        %s best_at = ",
                  t->p->volume < INT32_MAX && of == 2 ? "int" : "long long");
    place(b, of, 'a');
    buffer_puts(b, ";\n");
    for (int d = 0; d < of; d++)
        buffer_printf(b, "        for (int i%d = a%d; i%d < b%d; i%d += dilation%d)\n", d, d, d, d,
                      d, d);
    buffer_printf(b, "        {\n            const %s at = ",
                  of == 2                    ? "long long"
                  : t->p->volume < INT32_MAX ? "int"
                                             : "long long");
    place(b, of, 'i');
    buffer_printf(b,
                  ";\n            const T v = (T)plane[at];\n"
                  "            if (v > best || v != v) best = v, best_at = at;\n        }\n"
                  "        y0[%s] = (%s)best;\n",
                  to, t->stored);
    if (*t->indices) buffer_printf(b, "        %s[%s] = best_at;\n", t->indices, to);
}

static void average(const Writer *t, int of, const char *load, const char *to)
{
    Buffer *b = t->b;
    buffer_puts(b, "        if (");
    for (int d = 0; d < of; d++) buffer_printf(b, "%sa%d >= b%d", d ? " || " : "", d, d);
    buffer_printf(b, ") {\n            y0[%s] = (%s)0.0f;\n            %s;\n        }\n", to,
                  t->stored, of == 2 ? "continue" : "return");
    buffer_puts(b, "        T sum = 0;\n        const int inside = ");
    for (int d = 0; d < of; d++) buffer_printf(b, "%s(b%d - a%d)", d ? " * " : "", d, d);
    buffer_puts(b, ";\n");
    for (int d = 0; d < of; d++)
        buffer_printf(b, "        for (int i%d = a%d; i%d < b%d; i%d++)\n", d, d, d, d, d);
    buffer_printf(b,
                  "            sum += (T)%s;\n"
                  "        const int n = divisor ? divisor : include_pad ? whole : inside;\n"
                  "        y0[%s] = (%s)(sum / n);\n",
                  load, to, t->stored);
}

static int64_t frames_of(const Writer *t)
{
    return t->p->planes * t->p->w[0].out;
}

/* 1: a grid does not hold the frames. */
static int is_repeated(const Writer *t)
{
    return frames_of(t) > FRAMES;
}

/* The start of a kernel: sizes as operands, and the type of the arithmetic. h: blocks and threads. */
static OpLaunch *begin(const Writer *t, int of, const char *more, TextHead h, Error *err)
{
    char text[MAX_OPERANDS];
    size_t n = (size_t)snprintf(text, sizeof text, "%.*s y0%s%s%s", (int)strcspn(t->x, " "), t->x,
                                *t->indices ? " " : "", t->indices, more);
    n += window_operands(t, of, text + n, sizeof text - n);
    if (of == 3 && is_repeated(t)) snprintf(text + n, sizeof text - n, " t");
    h.stem = "pool", h.operands = text;
    OpLaunch *l = text_begin(t->out, &h, err);
    if (!l) return NULL;
    buffer_printf(t->b, "    typedef %s T;\n", t->type);
    if (is_known(t, of, 2))
        buffer_printf(t->b, "    constexpr int kernel2 = %d;\n", (int)t->p->w[2].kernel);
    return l;
}

/* Outputs counted flat. */
static int flat(const Writer *t, Error *err)
{
    const Pool *p = t->p;
    const int64_t n = op_elements(&t->c->result[0]);
    const int threads = p->average ? AVERAGE_THREADS : LARGEST_THREADS;
    char more[96];
    snprintf(more, sizeof more, " n:%lld channels:%lld", (long long)n,
             (long long)p->x->size[p->lead - 1]);
    if (!begin(t, 2, more, (TextHead){NULL, NULL, (n + threads - 1) / threads, threads}, err))
        return -1;
    part_fill(t->b, op_pool_cu, "flat", "index=%s", n < INT32_MAX ? "int" : "long long");
    bounds(t, 2);
    buffer_printf(t->b,
                  "        const %s *plane = %s + (entry * channels + channel) * in0 * in1;\n",
                  dtype_ctype(p->x->dtype), t->x);
    if (p->average)
        average(t, 2, "plane[i0 * in1 + i1]", "i");
    else
        largest(t, 2, "i");
    buffer_puts(t->b, "    }\n");
    return text_end(t->out, err);
}

static int64_t divided(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Columns and rows of a frame on x and y, and frames of all planes on z, in several launches where a grid
 * does not hold them. */
static int framed(const Writer *t, Error *err)
{
    const Pool *p = t->p;
    const int64_t *out = &t->c->result[0].size[p->lead], frames = frames_of(t);
    char more[256];
    size_t n = (size_t)snprintf(more, sizeof more, " frames:%lld", (long long)frames);
    if (divided(out[1], ROWS) > FRAMES || frames >= INT32_MAX)
        return error_set(err, ERROR_LIMIT, "a pool has too many rows or frames for a kernel");
    if (p->average) {
        int64_t in = 1, to = 1;
        for (int d = 2; d >= 0; in *= p->w[d].in, to *= p->w[d--].out)
            n += (size_t)snprintf(more + n, sizeof more - n, " step%d:%lld to%d:%lld", d,
                                  (long long)in, d, (long long)to);
        snprintf(more + n, sizeof more - n, " step:%lld to:%lld", (long long)in, (long long)to);
    }
    OpLaunch *l = begin(t, 3, more, (TextHead){NULL, NULL, divided(out[2], COLUMNS), COLUMNS}, err);
    if (!l) return -1;
    l->grid[1] = divided(out[1], ROWS);
    l->grid[2] = frames > FRAMES ? FRAMES : frames > 0 ? frames : 1;
    l->block[1] = ROWS;
    if (is_repeated(t)) l->repeat = divided(frames, FRAMES);
    part_fill(t->b, op_pool_cu, "framed", "round=%s;bound=%s", l->repeat ? " + t * 65535" : "",
              l->repeat ? "z < frames && " : "");
    bounds(t, 3);
    if (p->average) {
        char load[160];
        snprintf(load, sizeof load, "(%s)[slice * step + i0 * step0 + i1 * step1 + i2 * step2]",
                 t->x);
        average(t, 3, load, "slice * to + o0 * to0 + o1 * to1 + o2 * to2");
    } else {
        buffer_printf(t->b,
                      "        const %s *plane = %s + slice * in0 * in1 * in2;\n"
                      "        const long long to = slice * out0 * out1 * out2 + "
                      "o0 * out1 * out2 + o1 * out2 + o2;\n",
                      dtype_ctype(p->x->dtype), t->x);
        largest(t, 3, "to");
    }
    buffer_puts(t->b, "    }\n");
    return text_end(t->out, err);
}

/* ---- adaptive pools ---- */

/* const int low0, high0, size0 of the output o0. */
static void span_text(Buffer *b, const Pool *p, int d)
{
    const Window *w = &p->w[d];
    long long in = w->in, out = w->out;
    const char *cast = w->in * (w->out + 1) >= INT32_MAX ? "(long long)" : "";
    buffer_printf(b,
                  "    const int low%d = %so%d * %lld / %lld;\n"
                  "    const int high%d = (%s(o%d + 1) * %lld + %lld) / %lld;\n"
                  "    const int size%d = high%d - low%d;\n",
                  d, cast, d, in, out, d, cast, d, in, out - 1, out, d, d, d);
}

/* The loops over the window, which end in `step` over the element v at `at` of the plane. */
static void loops(Buffer *b, const Pool *p, const char *type, const char *x, const char *step)
{
    int64_t inner = 1;
    const char *index = text_is_wide(p->x) ? "long long" : "int";
    buffer_printf(b, "    const %s base = ", index);
    text_strided(b, &(Strided){p->x->offset, p->lead, p->x->size, p->x->stride}, "plane");
    buffer_puts(b, ";\n");
    for (int d = 0; d < p->dims; d++)
        buffer_printf(b, "    for (int a%d = low%d; a%d < high%d; a%d++)\n", d, d, d, d, d);
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

static void adaptive_average(Buffer *b, const Pool *p, const char *type, const char *x,
                             const char *y)
{
    buffer_printf(b, "    %s sum = 0;\n", type);
    loops(b, p, type, x, "sum += v;");
    buffer_printf(b, "    y0[i] = (%s)(sum / (%s)(", y, type);
    for (int d = 0; d < p->dims; d++) buffer_printf(b, "%ssize%d", d ? " * " : "", d);
    buffer_puts(b, "));\n");
}

static void adaptive_largest(Buffer *b, const Pool *p, const char *type, const char *x,
                             const char *y, const char *indices)
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

static int adaptive(const Writer *t, Error *err)
{
    const Pool *p = t->p;
    const int64_t n = op_elements(&t->c->result[0]);
    char x[8], names[32];
    int64_t inner = 1;
    Buffer *b = t->b;
    snprintf(x, sizeof x, "x%d", (int)t->c->arg[0].integer[0]);
    snprintf(names, sizeof names, "%s y0 %s", x, t->indices);
    if (!text_each(t->out, "pool", names, n, err)) return -1;
    for (int d = p->dims - 1; d >= 0; inner *= p->w[d--].out)
        buffer_printf(b, "    const int o%d = i / %lld %% %lld;\n", d, (long long)inner,
                      (long long)p->w[d].out);
    buffer_printf(b, "    const int plane = i / %lld;\n", (long long)inner);
    for (int d = 0; d < p->dims; d++) span_text(b, p, d);
    if (p->average)
        adaptive_average(b, p, t->type, x, t->stored);
    else
        adaptive_largest(b, p, t->type, x, t->stored, t->indices);
    return text_each_end(t->out, err);
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

/* 1: all places of a window are ints, also behind its padding. */
static int fits(const Pool *p)
{
    for (int d = 0; d < p->dims; d++) {
        const Window *w = &p->w[d];
        int64_t span = (w->kernel - 1) * w->dilation + 1;
        if (w->out * w->stride + span + w->padding >= INT32_MAX) return 0;
    }
    return 1;
}

/* The largest value's place is stored, as in eager PyTorch, also where it is no result; but not where a
 * device may lack the memory. */
int pool_plain(const Pool *p, const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *y = &c->result[0];
    Writer t = {.p = p,
                .c = c,
                .out = out,
                .b = out->source,
                .type = text_type(y->dtype),
                .stored = dtype_ctype(y->dtype)};
    char name[8];
    int at = 0;
    if (p->average && p->adaptive && p->outputs == 1) return mean(c, p, out, err);
    if (!p->adaptive && !fits(p))
        return error_set(err, ERROR_LIMIT, "a window reaches beyond 2^31 elements");
    snprintf(name, sizeof name, "x%d", (int)c->arg[0].integer[0]);
    if (!p->adaptive && text_dense(out, name, p->x, t.x, sizeof t.x, err)) return -1;
    if (c->n_results == 2) {
        strcpy(t.indices, "y1");
    } else if (!p->average && op_elements(y) <= MAX_PLACES) {
        if ((at = text_scratch(out, DTYPE_I64, op_elements(y), err)) < 0) return -1;
        snprintf(t.indices, sizeof t.indices, "t%d", at);
    }
    return p->adaptive ? adaptive(&t, err) : p->dims == 3 ? framed(&t, err) : flat(&t, err);
}
