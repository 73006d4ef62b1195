/* Copies whose source is another place: padding, rolling and repeating, which map each dimension by
 * itself, and selections by index tensors. Kernels compute the flat index f of the source in C order. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_element.h"
#include "ops/op_text.h"

/* ---- maps of dimensions ---- */

typedef enum { MAP_OUTSIDE, MAP_CLAMP, MAP_REFLECT, MAP_WRAP, MAP_EACH } MapKind;

/* Coordinate o of the result is o - low of the source; kind says what is at places that it does not
 * have. MAP_EACH: it is o / times. in[] are the source's sizes, with leading ones. */
typedef struct {
    MapKind kind;
    int rank;
    int64_t in[OP_MAX_RANK], out[OP_MAX_RANK], low[OP_MAX_RANK], times[OP_MAX_RANK];
    double value; /* MAP_OUTSIDE: what is there */
} Map;

typedef int Describe(const OpCall *c, Map *m, Error *err);

static void map_same(const OpTensor *x, Map *m)
{
    *m = (Map){.rank = x->rank};
    memcpy(m->in, x->size, sizeof m->in);
    memcpy(m->out, x->size, sizeof m->out);
}

static int pad_mode(const OpCall *c, MapKind *kind, Error *err)
{
    static const char *const names[] = {"constant", "replicate", "reflect", "circular"};
    int at = op_argument(c->op, "mode");
    *kind = MAP_OUTSIDE;
    if (at < 0) return 0;
    for (int i = 0; i < 4; i++)
        if (!strcmp(c->arg[at].text, names[i])) {
            *kind = (MapKind)i;
            return 0;
        }
    return error_set(err, ERROR_INVALID,
                     "expected the mode \"constant\", \"reflect\", "
                     "\"replicate\" or \"circular\", found \"%s\"",
                     c->arg[at].text);
}

/* Two numbers a dimension, the last one first. */
static int pad(const OpCall *c, Map *m, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    const OpValue *p = &c->arg[1];
    map_same(x, m);
    if (pad_mode(c, &m->kind, err)) return -1;
    if (p->n % 2 || p->n > 2 * x->rank)
        return error_set(err, ERROR_INVALID, "%d sides of %d dimensions are padded", p->n, x->rank);
    for (int i = 0; i < p->n / 2; i++) {
        int d = x->rank - 1 - i;
        int64_t low = p->integer[2 * i], high = p->integer[2 * i + 1], n = x->size[d],
                limit = m->kind == MAP_REFLECT ? n - 1
                        : m->kind == MAP_WRAP  ? n
                                               : INT64_C(1) << 48;
        if (low > limit || high > limit || low < -n || high < -n || n + low + high < 0 ||
            (m->kind != MAP_OUTSIDE && !n && (low || high)))
            return error_set(err, ERROR_INVALID,
                             "a dimension of %lld cannot be padded by %lld, %lld", (long long)n,
                             (long long)low, (long long)high);
        m->low[d] = low;
        m->out[d] = n + low + high;
    }
    m->value = c->arg[op_argument(c->op, "value")].number; /* None is 0 */
    return 0;
}

static int roll(const OpCall *c, Map *m, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    const OpValue *shifts = &c->arg[1], *dims = &c->arg[2];
    int flat = !dims->n;
    map_same(x, m);
    m->kind = MAP_WRAP;
    if (flat) {
        m->rank = 1;
        m->in[0] = m->out[0] = op_elements(x);
    }
    if (shifts->n != (flat ? 1 : dims->n))
        return error_set(err, ERROR_INVALID, "%d shifts for %d dimensions", shifts->n,
                         flat ? 1 : dims->n);
    for (int i = 0; i < shifts->n; i++) {
        int d = 0;
        if (!flat && op_dim(dims->integer[i], x->rank, &d, err)) return -1;
        if (m->in[d]) m->low[d] = (m->low[d] + shifts->integer[i] % m->in[d]) % m->in[d];
    }
    return 0;
}

static int repeat(const OpCall *c, Map *m, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    const OpValue *times = &c->arg[1];
    int lead = times->n - x->rank;
    *m = (Map){.kind = MAP_WRAP, .rank = times->n};
    if (lead < 0 || times->n > OP_MAX_RANK)
        return error_set(err, ERROR_INVALID, "%d numbers repeat %d dimensions", times->n, x->rank);
    for (int d = 0; d < times->n; d++) {
        m->in[d] = d < lead ? 1 : x->size[d - lead];
        if (times->integer[d] < 0 || times->integer[d] >= INT64_C(1) << 48 ||
            (m->in[d] && times->integer[d] > (INT64_C(1) << 48) / m->in[d]))
            return error_set(err, ERROR_INVALID, "dimension %d cannot be repeated %lld times", d,
                             (long long)times->integer[d]);
        m->out[d] = m->in[d] * times->integer[d];
    }
    return 0;
}

/* Fewer numbers than dimensions are those of the last ones. */
static int tile(const OpCall *c, Map *m, Error *err)
{
    OpCall *padded = memory_alloc(sizeof *padded);
    OpValue *times = &padded->arg[1];
    int rank = op_tensor(c, 0)->rank, lead = rank - c->arg[1].n;
    *padded = *c;
    if (lead > 0 && rank <= OP_MAX_RANK) {
        memmove(times->integer + lead, times->integer, (size_t)times->n * sizeof *times->integer);
        for (int d = 0; d < lead; d++) times->integer[d] = 1;
        times->n = rank;
    }
    int rc = repeat(padded, m, err);
    free(padded);
    return rc;
}

/* Each element along one dimension several times; without a dimension, of the flat tensor. */
static int interleave(const OpCall *c, Map *m, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    int64_t times = c->arg[1].integer[0];
    int dim = 0;
    map_same(x, m);
    m->kind = MAP_EACH;
    if (c->arg[2].kind == OP_NONE) {
        m->rank = 1;
        m->in[0] = m->out[0] = op_elements(x);
    } else if (op_dim(c->arg[2].integer[0], x->rank, &dim, err)) {
        return -1;
    }
    if (!m->rank) m->rank = 1, m->in[0] = m->out[0] = 1;
    if (times < 0 || times >= INT64_C(1) << 24)
        return error_set(err, ERROR_INVALID, "elements cannot be repeated %lld times",
                         (long long)times);
    for (int d = 0; d < m->rank; d++) m->times[d] = d == dim && times ? times : 1;
    m->out[dim] *= times;
    return 0;
}

static int map_of(const OpCall *c, Map *m, Error *err)
{
    return ((Describe *const *)c->op->detail)[0](c, m, err);
}

static int infer_map(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    Map m;
    if (map_of(c, &m, err)) return -1;
    if (m.kind == MAP_WRAP && m.rank == 1 && x->rank != 1 && m.in[0] == op_elements(x) &&
        m.out[0] == m.in[0])
        return op_result(c, x->dtype, x->rank, x->size, err); /* rolled as one dimension */
    return op_result(c, x->dtype, m.rank, m.out, err);
}

/* The source's coordinate, or -1. */
static int64_t mapped(const Map *m, int d, int64_t o)
{
    int64_t n = m->in[d], i = o - m->low[d];
    switch (m->kind) {
    case MAP_OUTSIDE: return i < 0 || i >= n ? -1 : i;
    case MAP_CLAMP: return i < 0 ? 0 : i >= n ? n - 1 : i;
    case MAP_EACH: return o / m->times[d];
    case MAP_REFLECT: return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    default: i %= n; return i < 0 ? i + n : i;
    }
}

/* The source's flat index, or -1. */
static int64_t mapped_flat(const Map *m, int64_t flat)
{
    int64_t f = 0, step = 1;
    for (int d = m->rank - 1; d >= 0; flat /= m->out[d--]) {
        int64_t i = mapped(m, d, flat % m->out[d]);
        f = f < 0 || i < 0 ? -1 : f + i * step;
        step *= m->in[d];
    }
    return f;
}

static void map_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    Error ignored;
    Map m;
    if (map_of(c, &m, &ignored)) return;
    for (int64_t k = 0; k < s->n; k++) {
        int64_t f = mapped_flat(&m, s->at[k]);
        if (f >= 0) out->add(out->of, (int)c->arg[0].integer[0], f, 1, 1);
    }
}

static void map_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    Error ignored;
    Map m;
    if (map_of(c, &m, &ignored)) return;
    for (int64_t k = 0; k < s->n; k++) {
        int64_t f = mapped_flat(&m, s->at[k]);
        y[k] = f < 0 ? m.value : in[c->arg[0].integer[0]][f];
    }
}

static const OpElements map_elements = {map_needs, map_compute, NULL, NULL};

static int reference_map(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *x = in[c->arg[0].integer[0]];
    int64_t n = op_elements(&c->result[0]);
    Map m;
    if (map_of(c, &m, err)) return -1;
#pragma omp parallel for if (n >= 1 << 16)
    for (int64_t flat = 0; flat < n; flat++) {
        int64_t f = mapped_flat(&m, flat);
        out[0][flat] = f < 0 ? m.value : x[f];
    }
    return 0;
}

/* The element of x at f, as the statement's end. */
static void source_text(Buffer *b, const OpCall *c)
{
    const OpTensor *x = op_tensor(c, 0);
    buffer_printf(b, "x%lld[", (long long)c->arg[0].integer[0]);
    text_index(b, x, x->rank, x->size, "f");
    buffer_puts(b, "];\n");
}

static int plain_map(const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *y = &c->result[0];
    Buffer *b = out->source;
    TextOperands o = {""};
    int64_t inner = 1, step = 1;
    Map m;
    if (map_of(c, &m, err)) return -1;
    text_operand(&o, 'x', (int)c->arg[0].integer[0]);
    text_operand(&o, 'y', 0);
    if (!text_each(out, "map", o.text, op_elements(y), err)) return -1;
    buffer_puts(b, "    long long f = 0;\n    bool inside = true;\n");
    for (int d = m.rank - 1; d >= 0; inner *= m.out[d], step *= m.in[d--]) {
        long long n = m.in[d], low = m.low[d];
        buffer_printf(b, "    {\n        long long k = i / %lld %% %lld - %lld;\n",
                      (long long)inner, (long long)m.out[d], low);
        if (m.kind == MAP_OUTSIDE)
            buffer_printf(b, "        inside = inside && k >= 0 && k < %lld;\n", n);
        else if (m.kind == MAP_CLAMP)
            buffer_printf(b, "        k = k < 0 ? 0 : k >= %lld ? %lld : k;\n", n, n - 1);
        else if (m.kind == MAP_REFLECT)
            buffer_printf(b, "        k = k < 0 ? -k : k >= %lld ? %lld - k : k;\n", n,
                          2 * (n - 1));
        else if (m.kind == MAP_EACH)
            buffer_printf(b, "        k /= %lld;\n", (long long)m.times[d]);
        else
            buffer_printf(b, "        k %%= %lld;\n        k = k < 0 ? k + %lld : k;\n", n, n);
        buffer_printf(b, "        f += k * %lld;\n    }\n", (long long)step);
    }
    buffer_printf(b, "    y0[i] = !inside ? (%s)", dtype_ctype(y->dtype));
    text_number(b, m.value);
    buffer_puts(b, " : ");
    source_text(b, c);
    return text_each_end(out, err);
}

/* ---- selections ---- */

/* indexed: dimensions from `dim` on that index tensors stand for. */
typedef enum { SELECT_INDEX, SELECT_DIM, SELECT_GATHER } SelectKind;

static SelectKind select_kind(const OpCall *c)
{
    return *(const SelectKind *)c->op->detail;
}

static const OpValue *list_of(const OpCall *c, int *first)
{
    *first = select_kind(c) == SELECT_INDEX ? 1 : 2;
    return &c->arg[*first];
}

static int check_index(const OpTensor *t, Error *err)
{
    if (t->dtype == DTYPE_I64 || t->dtype == DTYPE_I32) return 0;
    return error_set(err, t->dtype == DTYPE_B8 ? ERROR_UNSUPPORTED : ERROR_INVALID,
                     t->dtype == DTYPE_B8
                         ? "a mask as index gives a shape that depends on data (%s)"
                         : "index: expected integers, found %s",
                     dtype_name(t->dtype));
}

/* The result has the broadcast shape of the indices, then the other dimensions. */
static int infer_index(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0), *t[OP_MAX_RANK];
    const OpValue *v = &c->arg[1];
    int64_t size[2 * OP_MAX_RANK];
    int rank;
    if (v->n < 1 || v->n > x->rank)
        return error_set(err, ERROR_INVALID, "%d indices for %d dimensions", v->n, x->rank);
    for (int i = 0; i < v->n; i++) {
        t[i] = &c->tensor[v->integer[i]];
        if (check_index(t[i], err)) return -1;
    }
    if (op_broadcast(t, v->n, size, &rank, err)) return -1;
    for (int d = v->n; d < x->rank; d++) size[rank++] = x->size[d];
    return op_result(c, x->dtype, rank, size, err);
}

static int infer_select(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0), *t = op_tensor(c, 2);
    int64_t size[OP_MAX_RANK];
    int dim;
    if (op_dim(c->arg[1].integer[0], x->rank, &dim, err) || check_index(t, err)) return -1;
    if (x->rank < 1) return error_set(err, ERROR_UNSUPPORTED, "self has no dimensions");
    memcpy(size, x->size, sizeof size);
    if (select_kind(c) == SELECT_DIM) {
        if (t->rank > 1) return error_set(err, ERROR_INVALID, "index has more than one dimension");
        size[dim] = op_elements(t);
        return op_result(c, x->dtype, x->rank, size, err);
    }
    if (t->rank != x->rank)
        return error_set(err, ERROR_INVALID, "expected an index of %d dimensions, found %d",
                         x->rank, t->rank);
    for (int d = 0; d < x->rank; d++)
        if (d != dim && t->size[d] > x->size[d])
            return error_set(err, ERROR_INVALID, "index is larger than self at dimension %d", d);
    return op_result(c, x->dtype, x->rank, t->size, err);
}

/* An index tensor's role: the source's coordinate along `dim` is its element at the result's
 * coordinates, by steps through the result's dimensions. */
typedef struct {
    int tensor, dim;
    int64_t step[OP_MAX_RANK];
} Selector;

/* Fills selectors, and the steps in the source of the result's coordinates. The count of selectors. */
static int selectors(const OpCall *c, int logical, Selector *s, int64_t *direct)
{
    const OpTensor *y = &c->result[0];
    OpTensor x = *op_tensor(c, 0);
    int first, dim = 0;
    const OpValue *v = list_of(c, &first);
    SelectKind kind = select_kind(c);
    int n = kind == SELECT_INDEX ? v->n : 1, shared = y->rank - (x.rank - n);
    op_contiguous(&x); /* f is in C order */
    if (kind != SELECT_INDEX) op_dim(c->arg[1].integer[0], x.rank, &dim, NULL);
    for (int i = 0; i < n; i++) {
        s[i] = (Selector){.tensor = (int)v->integer[i], .dim = dim + i};
        OpTensor t = c->tensor[v->integer[i]];
        if (logical) op_contiguous(&t);
        if (kind == SELECT_INDEX)
            op_steps(&t, shared, s[i].step);
        else if (kind == SELECT_DIM)
            s[i].step[dim] = t.rank && t.size[0] != 1 ? t.stride[0] : 0;
        else
            op_steps(&t, y->rank, s[i].step);
    }
    for (int d = 0; d < y->rank; d++) {
        int of = kind == SELECT_INDEX ? d - shared + n : d;
        direct[d] =
            kind == SELECT_INDEX ? (d < shared ? 0 : x.stride[of]) : (d == dim ? 0 : x.stride[d]);
    }
    return n;
}

/* A call's selectors; x is the source, contiguous. */
typedef struct {
    const OpCall *c;
    OpTensor x;
    int n;
    Selector s[OP_MAX_RANK];
    int64_t direct[OP_MAX_RANK];
} Selection;

static void selection_of(const OpCall *c, Selection *s)
{
    s->c = c;
    s->x = *op_tensor(c, 0);
    s->n = selectors(c, 1, s->s, s->direct);
    op_contiguous(&s->x);
}

/* What a result's coordinates give of the source's place, and where each selector's index is. */
static int64_t selected_at(const Selection *s, int64_t flat, int64_t *at)
{
    const OpTensor *y = &s->c->result[0];
    int64_t f = 0;
    memset(at, 0, OP_MAX_RANK * sizeof *at);
    for (int d = y->rank - 1; d >= 0; flat /= y->size[d--]) {
        int64_t o = flat % y->size[d];
        f += o * s->direct[d];
        for (int i = 0; i < s->n; i++) at[i] += o * s->s[i].step[d];
    }
    return f;
}

/* The place that an index adds, or -1. */
static int64_t selected_by(const Selection *s, int i, double index)
{
    int64_t k = (int64_t)index, size = s->x.size[s->s[i].dim];
    if (k < 0 && select_kind(s->c) == SELECT_INDEX) k += size;
    return k < 0 || k >= size ? -1 : k * s->x.stride[s->s[i].dim];
}

static int reference_select(const OpCall *c, const double *const *in, double *const *out,
                            Error *err)
{
    int64_t at[OP_MAX_RANK];
    Selection s;
    selection_of(c, &s);
    for (int64_t flat = 0; flat < op_elements(&c->result[0]); flat++) {
        int64_t f = selected_at(&s, flat, at);
        for (int i = 0; i < s.n; i++) {
            double index = in[s.s[i].tensor][at[i]];
            int64_t by = selected_by(&s, i, index);
            if (by < 0)
                return error_set(err, ERROR_INVALID, "index %g of %lld", index,
                                 (long long)s.x.size[s.s[i].dim]);
            f += by;
        }
        out[0][flat] = in[c->arg[0].integer[0]][f];
    }
    return 0;
}

/* Of one selector whose indices are not known, any may be; of several, all of the source is needed. */
static void select_needs(const OpCall *c, const OpSome *some, const OpNeeds *out)
{
    const int source = (int)c->arg[0].integer[0];
    int64_t at[OP_MAX_RANK];
    int all = 0;
    Selection s;
    selection_of(c, &s);
    for (int64_t k = 0; k < some->n; k++) {
        int64_t f = selected_at(&s, some->at[k], at), unknown = 0;
        for (int i = 0; i < s.n; i++) {
            const double *known = out->known[s.s[i].tensor];
            int64_t by = known ? selected_by(&s, i, known[at[i]]) : 0;
            out->add(out->of, s.s[i].tensor, at[i], 1, 1);
            f += by > 0 ? by : 0;
            unknown += !known;
        }
        if (!unknown)
            out->add(out->of, source, f, 1, 1);
        else if (s.n == 1)
            out->add(out->of, source, f, s.x.stride[s.s[0].dim], s.x.size[s.s[0].dim]);
        else if (!all++)
            out->add(out->of, source, 0, 1, op_elements(&s.x));
    }
}

static void select_compute(const OpCall *c, const double *const *in, const OpSome *some, double *y)
{
    int64_t at[OP_MAX_RANK];
    Selection s;
    selection_of(c, &s);
    for (int64_t k = 0; k < some->n; k++) {
        int64_t f = selected_at(&s, some->at[k], at);
        for (int i = 0; i < s.n; i++) {
            int64_t by = selected_by(&s, i, in[s.s[i].tensor][at[i]]);
            f += by > 0 ? by : 0;
        }
        y[k] = in[c->arg[0].integer[0]][f];
    }
}

static const OpElements select_elements = {select_needs, select_compute, NULL, NULL};

static int plain_select(const OpCall *c, OpPlain *out, Error *err)
{
    OpTensor x = *op_tensor(c, 0);
    const OpTensor *y = &c->result[0];
    Buffer *b = out->source;
    TextOperands o = {""};
    Selector s[OP_MAX_RANK];
    int64_t direct[OP_MAX_RANK];
    int n = selectors(c, 0, s, direct);
    op_contiguous(&x);
    text_operand(&o, 'x', (int)c->arg[0].integer[0]);
    for (int i = 0; i < n; i++) text_operand(&o, 'x', s[i].tensor);
    text_operand(&o, 'y', 0);
    if (!text_each(out, "select", o.text, op_elements(y), err)) return -1;
    buffer_puts(b, "    long long f = ");
    text_strided(b, &(Strided){0, y->rank, y->size, direct}, "i");
    buffer_puts(b, ";\n");
    for (int i = 0; i < n; i++) {
        buffer_printf(b, "    {\n        long long k = x%d[", s[i].tensor);
        text_strided(b, &(Strided){c->tensor[s[i].tensor].offset, y->rank, y->size, s[i].step},
                     "i");
        buffer_puts(b, "];\n");
        if (select_kind(c) == SELECT_INDEX)
            buffer_printf(b, "        if (k < 0) k += %lld;\n", (long long)x.size[s[i].dim]);
        buffer_printf(b, "        f += k * %lld;\n    }\n", (long long)x.stride[s[i].dim]);
    }
    buffer_puts(b, "    y0[i] = ");
    source_text(b, c);
    return text_each_end(out, err);
}

/* Only the elements that are selected are read, and no more than there are. */
static void cost(const OpCall *c, OpCost *out)
{
    double x = op_bytes(op_tensor(c, 0)), y = op_bytes(&c->result[0]);
    if (y < x) out->bytes += y - x;
}

#define MAPPED(aten, schema, function)                                                        \
    {                                                                                         \
        "aten." aten ".default", "Tensor self, " schema, infer_map, reference_map, plain_map, \
            cost, 0, &(Describe *const){function}, NULL, &map_elements                        \
    }
#define SELECT(aten, schema, infer, kind)                                                     \
    {                                                                                         \
        "aten." aten, "Tensor self, " schema, infer, reference_select, plain_select, cost, 0, \
            &(const SelectKind){kind}, NULL, &select_elements                                 \
    }

static const Op table[] = {
    MAPPED("pad", "int[] pad, str mode=constant, float? value=None", pad),
    MAPPED("constant_pad_nd", "int[] pad, Scalar value=0", pad),
    MAPPED("roll", "int[1] shifts, int[1] dims=[]", roll),
    MAPPED("repeat", "int[] repeats", repeat),
    MAPPED("tile", "int[] dims", tile),
    {"aten.repeat_interleave.self_int",
     "Tensor self, int repeats, int? dim=None, *, int? output_size=None", infer_map, reference_map,
     plain_map, cost, 0, &(Describe *const){interleave}, NULL, &map_elements},
    SELECT("index.Tensor", "Tensor[] indices", infer_index, SELECT_INDEX),
    SELECT("index_select.default", "int dim, Tensor index", infer_select, SELECT_DIM),
    SELECT("gather.default", "int dim, Tensor index, *, bool sparse_grad=False", infer_select,
           SELECT_GATHER),
};

const OpFamily indexing_family = {"indexing", table, sizeof table / sizeof *table};
