/* Cumulative sums, products and logarithms of sums of exponentials along one dimension. Element i
 * of row r is the flat index (r / inner * n + i) * inner + r % inner. Rows in one piece are scanned
 * as eager PyTorch does it: a block of 512 threads has several rows side by side, brings two
 * elements a thread of each into shared memory, combines them in rounds and carries the last value
 * on; rows, sizes and rounds are known at run time. A tensor that is one row is scanned by several
 * blocks, after a launch that computes their totals. A row across memory belongs to a thread. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/op_element.h"
#include "ops/op_text.h"

EMBED(op_scan_cu, "ops/row/family_scan.cu")

enum {
    ROWS_THREADS = 512,
    LEAST_ALONG = 4, /* of the threads of a row, as a power of two */
    MAX_ALONG = 9,
    THREADS = 256,
    TILE = 1024, /* 128 elements a warp */
    TARGET_BLOCKS = 528,
    LEAST_TILES = 4 /* of a block */
};

typedef enum { SCAN_SUM, SCAN_PRODUCT, SCAN_LOG } ScanKind;

typedef struct {
    ScanKind kind;
    int64_t rows, n, inner;
} Scan;

static int scan_of(const OpCall *c, Scan *s, Error *err)
{
    *s = (Scan){.kind = *(const ScanKind *)c->op->detail};
    return op_rows(op_tensor(c, 0), c->arg[1].integer[0], &s->rows, &s->n, &s->inner, err);
}

static int infer(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    Dtype d = dtype_is_float(x->dtype) ? x->dtype : DTYPE_I64;
    int at = op_argument(c->op, "dtype");
    Scan s;
    if (scan_of(c, &s, err)) return -1;
    if (at >= 0 && c->arg[at].kind == OP_DTYPE) d = (Dtype)c->arg[at].integer[0];
    if (s.kind == SCAN_LOG && !dtype_is_float(d))
        return error_set(err, ERROR_INVALID, "expected a floating dtype, found %s",
                         dtype_name(x->dtype));
    return op_result(c, d, x->rank, x->size, err);
}

static double combine(ScanKind kind, double a, double b)
{
    double largest = a > b || isnan(a) ? a : b, least = a > b || isnan(a) ? b : a;
    if (kind == SCAN_SUM) return a + b;
    if (kind == SCAN_PRODUCT) return a * b;
    return largest == least ? largest + M_LN2 : largest + log1p(exp(least - largest));
}

static double start_of(ScanKind kind)
{
    return kind == SCAN_SUM ? 0 : kind == SCAN_PRODUCT ? 1 : -INFINITY;
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *x = in[c->arg[0].integer[0]];
    Scan s;
    if (scan_of(c, &s, err)) return -1;
    int whole = !dtype_is_float(c->result[0].dtype);
#pragma omp parallel for if (s.rows * s.n >= 1 << 16)
    for (int64_t r = 0; r < s.rows; r++) {
        int64_t at = r / s.inner * s.n * s.inner + r % s.inner;
        double v = start_of(s.kind);
        for (int64_t i = 0; i < s.n; i++, at += s.inner)
            out[0][at] = v = combine(s.kind, v, whole ? trunc(x[at]) : x[at]);
    }
    return 0;
}

/* ---- single elements: all that come before one in its row ---- */

static void element_rows(const OpCall *c, int result, const int64_t *at, int64_t n, int64_t *row)
{
    Error ignored;
    Scan s;
    (void)result;
    if (scan_of(c, &s, &ignored)) return; /* never: the call has been inferred */
    for (int64_t k = 0; k < n; k++) row[k] = at[k] / (s.n * s.inner) * s.inner + at[k] % s.inner;
}

static int64_t row_first(const Scan *s, int64_t i)
{
    return i / (s->n * s->inner) * (s->n * s->inner) + i % s->inner;
}

static void element_needs(const OpCall *c, const OpSome *some, const OpNeeds *out)
{
    Error ignored;
    Scan s;
    if (scan_of(c, &s, &ignored)) return;
    for (int64_t k = 0; k < some->n; k++) {
        int64_t at = some->at[k], first = row_first(&s, at);
        if (k + 1 < some->n && row_first(&s, some->at[k + 1]) == first) continue;
        out->add(out->of, (int)c->arg[0].integer[0], first, s.inner, (at - first) / s.inner + 1);
    }
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *some, double *y)
{
    const double *x = in[c->arg[0].integer[0]];
    int whole = !dtype_is_float(c->result[0].dtype);
    int64_t row = -1, at = 0;
    double v = 0;
    Error ignored;
    Scan s;
    if (scan_of(c, &s, &ignored)) return;
    for (int64_t k = 0; k < some->n; k++) {
        int64_t first = row_first(&s, some->at[k]);
        if (first != row) {
            row = at = first;
            v = start_of(s.kind);
        }
        for (; at <= some->at[k]; at += s.inner)
            v = combine(s.kind, v, whole ? trunc(x[at]) : x[at]);
        y[k] = v;
    }
}

static const OpElements elements = {element_needs, element_compute, element_rows, NULL};

/* ---- kernels ---- */

static void combine_text(Buffer *b)
{
    part_put(b, op_scan_cu, "functions");
}

/* Begins a kernel with the types and the combining function. */
static OpLaunch *begin(OpPlain *out, const Scan *s, const TextHead *h, Error *err)
{
    static const char *const names[] = {"sum", "product", "log"};
    Buffer *b = out->source;
    combine_text(b);
    OpLaunch *l = text_begin(out, h, err);
    buffer_printf(
        b, "    typedef %s T;\n    typedef %s index;\n    op_scan_%s f;\n    const T NONE = ",
        text_type(out->call->result[0].dtype), s->rows * s->n < 1 << 30 ? "int" : "long long",
        names[s->kind]);
    text_number(b, start_of(s->kind));
    buffer_puts(b, ";\n");
    return l;
}

/* The element of x at the flat index in the variable i. */
static void element(Buffer *b, const OpCall *c)
{
    const OpTensor *x = op_tensor(c, 0);
    buffer_printf(b, "(T)%sx%lld[", text_cast(x->dtype, DTYPE_F32),
                  (long long)c->arg[0].integer[0]);
    text_index(b, x, x->rank, x->size, "i");
    buffer_puts(b, "]");
}

static int across_launch(const OpCall *c, const Scan *s, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    if (!begin(out, s, &(TextHead){"scan", NULL, (s->rows + 127) / 128, 128}, err)) return -1;
    Buffer x;
    buffer_init(&x, PART_VALUE);
    element(&x, c);
    part_fill(b, op_scan_cu, "across", "rows=%lld;inner=%lld;row_step=%lld;n=%lld;x=%s;stored=%s",
              (long long)s->rows, (long long)s->inner, (long long)(s->n * s->inner),
              (long long)s->n, x.data, dtype_ctype(c->result[0].dtype));
    buffer_release(&x);
    return text_end(out, err);
}

/* The parts of each row, and scratch memory for their totals: t[r * n + part]. */
typedef struct {
    int64_t n, each;
    int t;
} Parts;

static int totals_launch(const Scan *s, const Parts *p, OpPlain *out, Error *err)
{
    const OpCall *c = out->call;
    const int64_t parts = p->n, part = p->each;
    const int t = p->t;
    Buffer *b = out->source;
    TextOperands o = {""};
    text_operand(&o, 'x', (int)c->arg[0].integer[0]);
    text_operand(&o, 't', t);
    text_block_reduce(out);
    OpLaunch *l = begin(out, s, &(TextHead){"totals", o.text, s->rows, THREADS}, err);
    if (!l) return -1;
    l->grid[1] = parts;
    Buffer x;
    buffer_init(&x, PART_VALUE);
    element(&x, c);
    part_fill(b, op_scan_cu, "totals", "n=%lld;part=%lld;threads=%d;x=%s;t=%d;parts=%lld",
              (long long)s->n, (long long)part, THREADS, x.data, t, (long long)parts);
    buffer_release(&x);
    return text_end(out, err);
}

static void carry_text(Buffer *b, int64_t parts, int t)
{
    part_fill(b, op_scan_cu, "carry", "threads=%d;t=%d;parts=%lld", THREADS, t, (long long)parts);
}

/* A warp scans 128 elements, four rows of lanes; the warps' totals are scanned by every thread. */
static void tile_text(Buffer *b, const OpCall *c, const Scan *s)
{
    int unroll = s->kind == SCAN_LOG ? 1 : 32; /* log and exp are long */
    Buffer x;
    buffer_init(&x, PART_VALUE);
    element(&x, c);
    part_fill(b, op_scan_cu, "tile", "tile=%d;x=%s;unroll=%d;warps=%d;stored=%s", TILE, x.data,
              unroll, THREADS / 32, dtype_ctype(c->result[0].dtype));
    buffer_release(&x);
}

static int scan_launches(const OpCall *c, const Scan *s, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    int64_t tiles = (s->n + TILE - 1) / TILE, parts = 1, part;
    int t = 0;
    Dtype y = c->result[0].dtype;
    if (s->rows < TARGET_BLOCKS / 2) parts = TARGET_BLOCKS / (s->rows ? s->rows : 1);
    if (parts > tiles / LEAST_TILES) parts = tiles / LEAST_TILES;
    if (parts < 2) parts = 1;
    part = (tiles + parts - 1) / parts * TILE;
    if (parts > 1) {
        Dtype d = y == DTYPE_F64 ? DTYPE_F64 : dtype_is_float(y) ? DTYPE_F32 : DTYPE_I64;
        if ((t = text_scratch(out, d, s->rows * parts, err)) < 0 ||
            totals_launch(s, &(Parts){parts, part, t}, out, err))
            return -1;
    }
    text_operand(&o, 'x', (int)c->arg[0].integer[0]);
    if (parts > 1) text_operand(&o, 't', t);
    text_operand(&o, 'y', 0);
    OpLaunch *l = begin(out, s, &(TextHead){"scan", o.text, s->rows, THREADS}, err);
    if (!l) return -1;
    l->grid[1] = parts;
    part_fill(b, op_scan_cu, "parts", "n=%lld;part=%lld", (long long)s->n, (long long)part);
    if (parts > 1) carry_text(b, parts, t);
    tile_text(b, c, s);
    return text_end(out, err);
}

static int power_above(int64_t n)
{
    int power = 0;
    while (INT64_C(1) << power < n) power++;
    return power;
}

/* The powers of two: threads of a row, so that a block is as wide to high as all rows are. */
static int along_of(const Scan *s)
{
    int power = (MAX_ALONG + power_above(s->n) - power_above(s->rows)) / 2;
    return power < LEAST_ALONG ? LEAST_ALONG : power > MAX_ALONG ? MAX_ALONG : power;
}

static int rows_launch(const OpCall *c, const Scan *s, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    const OpTensor *x = op_tensor(c, 0);
    const char *stored = dtype_ctype(c->result[0].dtype), *cast = text_cast(x->dtype, DTYPE_F32);
    int power = along_of(s), high = ROWS_THREADS >> power;
    char name[8], place[24], operands[160];
    snprintf(name, sizeof name, "x%lld", (long long)c->arg[0].integer[0]);
    if (s->rows * s->n > UINT32_MAX)
        return error_set(err, ERROR_LIMIT, "a scan of more than 2^32 elements");
    if (text_dense(out, name, x, place, sizeof place, err)) return -1;
    snprintf(operands, sizeof operands, "%.*s y0 rows=%lld n=%lld power=%d",
             (int)strcspn(place, " "), place, (long long)s->rows, (long long)s->n, power);
    OpLaunch *l =
        begin(out, s, &(TextHead){"scan", operands, (s->rows + high - 1) / high, 1 << power}, err);
    if (!l) return -1;
    l->block[1] = high;
    part_fill(b, op_scan_cu, "rows", "shared=%d;type=%s;place=%s;stored=%s;cast=%s",
              2 * ROWS_THREADS, dtype_ctype(x->dtype), place, stored, cast);
    part_put(b, op_scan_cu, "rounds");
    part_fill(b, op_scan_cu, "rows_end", "stored=%s", stored);
    return text_end(out, err);
}

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    Scan s;
    if (scan_of(c, &s, err)) return -1;
    if (s.inner == 1 && s.rows > 1) return rows_launch(c, &s, out, err);
    return s.inner > 1 ? across_launch(c, &s, out, err) : scan_launches(c, &s, out, err);
}

#define ROW(aten, schema, kind)                                                                    \
    {                                                                                              \
        "aten." aten, "Tensor self, int dim" schema, infer, reference, plain, op_cost_elements, 0, \
            &(const ScanKind){kind}, NULL, &elements                                               \
    }
#define DTYPE ", *, ScalarType? dtype=None"

static const Op table[] = {
    ROW("cumsum.default", DTYPE, SCAN_SUM),
    ROW("cumprod.default", DTYPE, SCAN_PRODUCT),
    ROW("logcumsumexp.default", "", SCAN_LOG),
};

const OpFamily scan_family = {"scan", table, sizeof table / sizeof *table};
