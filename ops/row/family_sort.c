/* Orders of the elements along one dimension: sorted, their indices, and the first k. Equal elements stay in
 * the order of their indices, and NaN is the largest. Kernels sort by a bitonic network over a power of two
 * places: a row in shared memory where it fits, else all rows in scratch memory, a launch a step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/memory.h"
#include "base/part.h"
#include "ops/op_text.h"

EMBED(op_sort_cu, "ops/row/family_sort.cu")

enum { SHARED_PLACES = 2048, MAX_PLACES = 1 << 24 };

typedef struct {
    int64_t rows, n, inner, k; /* k: elements of a row that are results */
    int descending, places, steps;
    int value, index; /* results; -1: it has none */
} Sort;

static int argument_is(const OpCall *c, const char *name)
{
    int at = op_argument(c->op, name);
    return at >= 0 && c->arg[at].integer[0];
}

static int sort_of(const OpCall *c, Sort *s, Error *err)
{
    int k = op_argument(c->op, "k"), alone = !strncmp(c->op->name, "aten.argsort", 12);
    *s = (Sort){.value = alone ? -1 : 0, .index = !alone};
    if (op_rows(op_tensor(c, 0), c->arg[op_argument(c->op, "dim")].integer[0], &s->rows, &s->n,
                &s->inner, err))
        return -1;
    s->descending = argument_is(c, k >= 0 ? "largest" : "descending");
    s->k = k >= 0 ? c->arg[k].integer[0] : s->n;
    if (s->k < 0 || s->k > s->n)
        return error_set(err, ERROR_INVALID, "k: expected 0 to %lld, found %lld", (long long)s->n,
                         (long long)s->k);
    if (s->n > MAX_PLACES)
        return error_set(err, ERROR_LIMIT, "a row of more than %d elements", MAX_PLACES);
    for (s->places = 2; s->places < s->n; s->places *= 2) s->steps++;
    s->steps = (s->steps + 1) * (s->steps + 2) / 2;
    return 0;
}

static int infer(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    int64_t size[OP_MAX_RANK];
    int dim;
    Sort s;
    if (sort_of(c, &s, err) ||
        op_dim(c->arg[op_argument(c->op, "dim")].integer[0], x->rank, &dim, err))
        return -1;
    memcpy(size, x->size, sizeof size);
    if (x->rank) size[dim] = s.k;
    if (s.value >= 0 && op_result(c, x->dtype, x->rank, size, err)) return -1;
    return op_result(c, DTYPE_I64, x->rank, size, err);
}

/* ---- reference ---- */

typedef struct {
    double v;
    int64_t i;
} Element;

static int ascending(const void *a, const void *b)
{
    const Element *x = a, *y = b;
    int nx = isnan(x->v), ny = isnan(y->v), by_index = x->i < y->i ? -1 : 1;
    if (nx || ny) return nx != ny ? nx - ny : by_index;
    return x->v != y->v ? (x->v < y->v ? -1 : 1) : by_index;
}

static int descending(const void *a, const void *b)
{
    Element x = *(const Element *)a, y = *(const Element *)b;
    int64_t i = x.i;
    x.i = y.i, y.i = i;
    return ascending(&y, &x);
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *x = in[c->arg[0].integer[0]];
    Sort s;
    if (sort_of(c, &s, err)) return -1;
#pragma omp parallel for if (s.rows * s.n >= 1 << 16)
    for (int64_t r = 0; r < s.rows; r++) {
        Element *e = memory_array((size_t)s.n + 1, sizeof *e);
        const double *from = x + r / s.inner * s.n * s.inner + r % s.inner;
        int64_t to = r / s.inner * s.k * s.inner + r % s.inner;
        for (int64_t i = 0; i < s.n; i++) e[i] = (Element){from[i * s.inner], i};
        qsort(e, (size_t)s.n, sizeof *e, s.descending ? descending : ascending);
        for (int64_t i = 0; i < s.k; i++, to += s.inner) {
            if (s.value >= 0) out[s.value][to] = e[i].v;
            out[s.index][to] = (double)e[i].i;
        }
        free(e);
    }
    return 0;
}

static void cost(const OpCall *c, OpCost *out)
{
    Sort s;
    if (!sort_of(c, &s, NULL)) out->flops = (double)(s.rows * s.n) * log2((double)s.n + 1);
}

/* ---- kernels ---- */

/* Whether one element comes before another. A place beyond the row's end has an index of n or more. */
static void before_text(Buffer *b, const Sort *s)
{
    part_fill(b, op_sort_cu, "before", "n=%lld;nan=%s;sign=%c", (long long)s->n,
              s->descending ? "a != a" : "b != b", s->descending ? '>' : '<');
}

static int64_t divided(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

static OpLaunch *begin(OpPlain *out, const Sort *s, const TextHead *h, Error *err)
{
    OpLaunch *l = text_begin(out, h, err);
    buffer_printf(out->source, "    typedef %s T;\n", text_type(op_tensor(out->call, 0)->dtype));
    before_text(out->source, s);
    return l;
}

/* The element of the row `row` at the place `at`. */
static void element(Buffer *b, const OpCall *c, const Sort *s)
{
    const OpTensor *x = op_tensor(c, 0);
    buffer_printf(b, "(T)%sx%lld[", text_cast(x->dtype, DTYPE_F32),
                  (long long)c->arg[0].integer[0]);
    char flat[160];
    snprintf(flat, sizeof flat, "(row / %lld * %lldLL + at * %lldLL + row %% %lld)",
             (long long)s->inner, (long long)(s->n * s->inner), (long long)s->inner,
             (long long)s->inner);
    text_index(b, x, x->rank, x->size, flat);
    buffer_puts(b, "]");
}

/* Writes the value v and the index i as the place `at` of the row `row`. */
static void results_text(Buffer *b, const OpCall *c, const Sort *s, const char *v, const char *i)
{
    buffer_printf(b,
                  "        const long long to = row / %lld * %lldLL + at * %lldLL + row %% %lld;\n",
                  (long long)s->inner, (long long)(s->k * s->inner), (long long)s->inner,
                  (long long)s->inner);
    if (s->value >= 0)
        buffer_printf(b, "        y0[to] = (%s)%s;\n", dtype_ctype(c->result[0].dtype), v);
    buffer_printf(b, "        y%d[to] = %s;\n", s->index, i);
}

static void operands_of(const OpCall *c, const Sort *s, int in, TextOperands *o)
{
    if (in) text_operand(o, 'x', (int)c->arg[0].integer[0]);
    if (!in && s->value >= 0) text_operand(o, 'y', 0);
    if (!in) text_operand(o, 'y', s->index);
}

/* A block a row. */
static int shared_launch(const OpCall *c, const Sort *s, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    int threads = s->places / 2;
    operands_of(c, s, 1, &o);
    operands_of(c, s, 0, &o);
    if (!begin(out, s, &(TextHead){"sort", o.text, s->rows, threads}, err)) return -1;
    Buffer x;
    buffer_init(&x, PART_VALUE);
    element(&x, c, s);
    part_fill(b, op_sort_cu, "shared", "places=%d;threads=%d;n=%lld;x=%s;k=%lld", s->places,
              threads, (long long)s->n, x.data, (long long)s->k);
    buffer_release(&x);
    results_text(b, c, s, "v[at]", "index[at]");
    buffer_puts(b, "    }\n");
    return text_end(out, err);
}

/* Elements and indices of all rows in scratch memory. */
static int fill_launch(const OpCall *c, const Sort *s, const int t[2], OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    operands_of(c, s, 1, &o);
    text_operand(&o, 't', t[0]);
    text_operand(&o, 't', t[1]);
    if (!begin(out, s, &(TextHead){"places", o.text, divided(s->rows * s->places, 256), 256}, err))
        return -1;
    Buffer x;
    buffer_init(&x, PART_VALUE);
    element(&x, c, s);
    part_fill(b, op_sort_cu, "places", "count=%lld;places=%d;values=%d;n=%lld;x=%s;indices=%d",
              (long long)(s->rows * s->places), s->places, t[0], (long long)s->n, x.data, t[1]);
    buffer_release(&x);
    return text_end(out, err);
}

/* Step t of the network. */
static int step_launch(const Sort *s, const int t[2], OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    text_operand(&o, 't', t[0]);
    text_operand(&o, 't', t[1]);
    text_operand_named(&o, "t");
    OpLaunch *l = begin(
        out, s, &(TextHead){"exchange", o.text, divided(s->rows * s->places / 2, 256), 256}, err);
    if (!l) return -1;
    l->repeat = s->steps;
    part_fill(b, op_sort_cu, "exchange", "pairs=%lld;v=%d;index=%d;places=%d",
              (long long)(s->rows * s->places / 2), t[0], t[1], s->places);
    return text_end(out, err);
}

static int take_launch(const OpCall *c, const Sort *s, const int t[2], OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    char v[48], i[48];
    text_operand(&o, 't', t[0]);
    text_operand(&o, 't', t[1]);
    operands_of(c, s, 0, &o);
    if (!begin(out, s, &(TextHead){"take", o.text, divided(s->rows * s->k, 256), 256}, err))
        return -1;
    snprintf(v, sizeof v, "t%d[row * %dLL + at]", t[0], s->places);
    snprintf(i, sizeof i, "t%d[row * %dLL + at]", t[1], s->places);
    part_fill(b, op_sort_cu, "take", "count=%lld;k=%lld", (long long)(s->rows * s->k),
              (long long)s->k);
    results_text(b, c, s, v, i);
    buffer_puts(b, "    }\n");
    return text_end(out, err);
}

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    Dtype x = op_tensor(c, 0)->dtype, d = x == DTYPE_F64                     ? DTYPE_F64
                                          : x == DTYPE_I32 || x == DTYPE_I64 ? DTYPE_I64
                                                                             : DTYPE_F32;
    Sort s;
    int t[2];
    if (sort_of(c, &s, err)) return -1;
    if (s.places <= SHARED_PLACES) return shared_launch(c, &s, out, err);
    if ((t[0] = text_scratch(out, d, s.rows * s.places, err)) < 0 ||
        (t[1] = text_scratch(out, DTYPE_I32, s.rows * s.places, err)) < 0)
        return -1;
    return fill_launch(c, &s, t, out, err) || step_launch(&s, t, out, err) ||
                   take_launch(c, &s, t, out, err)
               ? -1
               : 0;
}

#define ROW(aten, text)                                                       \
    {                                                                         \
        .name = "aten." aten, .schema = "Tensor self, " text, .infer = infer, \
        .reference = reference, .plain = plain, .cost = cost                  \
    }

static const Op table[] = {
    ROW("sort.default", "int dim=-1, bool descending=False"),
    ROW("sort.stable", "*, bool? stable=None, int dim=-1, bool descending=False"),
    ROW("argsort.default", "int dim=-1, bool descending=False"),
    ROW("argsort.stable", "*, bool stable=True, int dim=-1, bool descending=False"),
    ROW("topk.default", "int k, int dim=-1, bool largest=True, bool sorted=True"),
};

const OpFamily sort_family = {"sort", table, sizeof table / sizeof *table};
