/* Kernels of softmax, by the row's length and its place in memory as in eager PyTorch: a warp a row that
 * stays in registers; a block of 1024 threads a row that stays in registers too, up to nine elements of
 * a thread read one by one, and more in vectors; a row that is read three times; and for rows
 * across memory a thread a row, side by side up to 1024, or several threads a row where few are side by
 * side; sizes are known at run time, and a block takes several groups of rows. */
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/op_text.h"
#include "ops/row/op_softmax.h"

EMBED(op_softmax_cu, "ops/row/op_softmax_text.cu")

enum {
    WARP_ELEMENTS = 2048,
    WARP_BYTES = 8192,
    MAX_SINGLE = 9, /* elements of a thread that reads them one by one */
    MAX_THREADS = 1024,
    LEAST_THREADS = 128,
    EACH = 16,       /* elements of a thread that keeps them */
    FEW_BESIDE = 64, /* rows side by side, of which each has several threads */
    MULTIPROCESSORS = 132,
    MAX_RESIDENT = 2048 /* threads of one */
};

static const char *index_type(const Softmax *s)
{
    return s->rows * s->n < 1 << 30 ? "int" : "long long";
}

/* The element of x at the flat index f, an expression in brackets or a name. */
static void element(Buffer *b, const OpCall *c, const char *f)
{
    const OpTensor *x = op_tensor(c, 0);
    buffer_printf(b, "(T)%sx%lld[", text_cast(x->dtype, DTYPE_F32),
                  (long long)c->arg[0].integer[0]);
    text_index(b, x, x->rank, x->size, f);
    buffer_puts(b, "]");
}

/* h without its stem. */
static OpLaunch *begin(OpPlain *out, const Softmax *s, TextHead h, Error *err)
{
    h.stem = s->logarithm ? "log_softmax" : "softmax";
    OpLaunch *l = text_begin(out, &h, err);
    buffer_printf(out->source, "    typedef %s T;\n    typedef %s index;\n",
                  text_type(out->call->result[0].dtype), index_type(s));
    buffer_puts(out->source, "    const T LOW = (T)-__longlong_as_double(0x7ff0000000000000LL);\n");
    return l;
}

/* The value of a result: of v, the row's `most` and `sum`, or its logarithm `shift`. */
static const char *value(const Softmax *s)
{
    return s->logarithm ? "v - most - shift" : "exp(v - most) * scale";
}

static void scale(Buffer *b, const Softmax *s)
{
    buffer_puts(b, s->logarithm ? "    const T shift = log(sum);\n"
                                : "    const T scale = (T)1 / sum;\n");
}

static int warp_launch(const OpCall *c, const Softmax *s, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    int each = (int)((s->n + 31) / 32);
    if (!begin(out, s, (TextHead){NULL, NULL, (s->rows + 3) / 4, 128}, err)) return -1;
    Buffer x;
    buffer_init(&x, PART_VALUE);
    element(&x, c, "f");
    part_fill(b, op_softmax_cu, "warp", "each=%d;rows=%lld;n=%lld;x=%s;kept=%s", each,
              (long long)s->rows, (long long)s->n, x.data, s->logarithm ? "" : "x[k] = ");
    buffer_release(&x);
    scale(b, s);
    part_fill(b, op_softmax_cu, "warp_store", "each=%d;n=%lld;stored=%s;value=%s", each,
              (long long)s->n, dtype_ctype(c->result[0].dtype),
              s->logarithm ? "x[k] - most - shift" : "x[k] * scale");
    return text_end(out, err);
}

/* Elements that a thread loads together: their rows must begin where such vectors do. */
static int vector_of(const OpCall *c, const Softmax *s)
{
    const OpTensor *x = op_tensor(c, 0);
    return op_is_contiguous(x) && !x->offset && s->n % 4 == 0 ? 4 : 1;
}

/* The types in and out: the elements that a thread loads and stores together. */
static void vector_types(Buffer *b, const OpCall *c, int vector)
{
    const OpTensor *x = op_tensor(c, 0);
    part_fill(b, op_softmax_cu, "vectors", "in_bytes=%d;in=%s;vector=%d;out_bytes=%d;out=%s",
              vector * (int)dtype_size(x->dtype), dtype_ctype(x->dtype), vector,
              vector * (int)dtype_size(c->result[0].dtype), dtype_ctype(c->result[0].dtype));
}

static void kept_loads(Buffer *b, const OpCall *c, const Softmax *s, int threads, int vector)
{
    const OpTensor *x = op_tensor(c, 0);
    int loads = (int)((s->n + threads * vector - 1) / (threads * vector));
    buffer_printf(b, "    const int V = %d, N = %lld, LOADS = %d, STEP = %d;\n", vector,
                  (long long)s->n, loads, threads * vector);
    vector_types(b, c, vector);
    part_put(b, op_softmax_cu, "kept_loads");
    if (vector > 1) {
        part_fill(b, op_softmax_cu, "kept_vector", "x=%lld;cast=%s",
                  (long long)c->arg[0].integer[0], text_cast(x->dtype, DTYPE_F32));
    } else {
        buffer_puts(b, "            v[k] = ");
        element(b, c, "(base + i)");
        buffer_puts(b, ";\n");
    }
    buffer_puts(b, "        }\n    }\n");
}

/* A block a row, whose threads keep their elements. */
static int kept_launch(const OpCall *c, const Softmax *s, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    int threads = MAX_THREADS, vector = s->n <= MAX_SINGLE * MAX_THREADS ? 1 : vector_of(c, s);
    text_block_reduce(out);
    if (!begin(out, s, (TextHead){NULL, NULL, s->rows, threads}, err)) return -1;
    buffer_puts(b, "    __shared__ T shared[32];\n");
    kept_loads(b, c, s, threads, vector);
    part_put(b, op_softmax_cu, "kept_most");
    part_put(b, op_softmax_cu, s->logarithm ? "kept_log_sum" : "kept_sum");
    scale(b, s);
    part_fill(b, op_softmax_cu, "kept_store", "stored=%s;value=%s", dtype_ctype(c->result[0].dtype),
              s->logarithm ? "v[k * V + j] - most - shift" : "v[k * V + j] * scale");
    return text_end(out, err);
}

/* The threads of a row's block, and the elements that each takes at a time. */
typedef struct {
    int64_t n; /* of the row */
    int threads, vector;
} Block;

/* One pass of a block over its row: `body` with each element in v. stored: what v becomes, or NULL. */
static void block_pass(OpPlain *out, const Block *k, const char *body, const char *stored)
{
    const OpCall *c = out->call;
    const int threads = k->threads, vector = k->vector;
    Buffer *b = out->source;
    buffer_printf(b,
                  "#pragma unroll 4\n    for (index i = threadIdx.x * %d; i < %lld; i += %d) {\n",
                  vector, (long long)k->n, threads * vector);
    if (vector > 1)
        buffer_printf(b, "        const in w = *(const in *)(x%lld + base + i);\n%s",
                      (long long)c->arg[0].integer[0], stored ? "        out o;\n" : "");
    buffer_printf(
        b,
        "#pragma unroll\n        for (int j = 0; j < %d; j++) {\n            const T v = ", vector);
    if (vector > 1)
        buffer_printf(b, "(T)%sw.v[j]", text_cast(op_tensor(c, 0)->dtype, DTYPE_F32));
    else
        element(b, c, "(base + i)");
    buffer_printf(b, ";\n            %s", body);
    if (stored)
        buffer_printf(b, "%s = (%s)(%s);", vector > 1 ? "o.v[j]" : "y0[base + i]",
                      dtype_ctype(c->result[0].dtype), stored);
    buffer_printf(b, "\n        }\n%s    }\n",
                  stored && vector > 1 ? "        *(out *)(y0 + base + i) = o;\n" : "");
}

/* A block a row that is read three times. */
static int block_launch(const OpCall *c, const Softmax *s, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    int threads = MAX_THREADS, vector = c->result[0].dtype == DTYPE_F64 ? 1 : vector_of(c, s);
    while (threads > 2 * LEAST_THREADS && threads * 2 > s->n) threads /= 2;
    text_block_reduce(out);
    if (!begin(out, s, (TextHead){NULL, NULL, s->rows, threads}, err)) return -1;
    if (vector > 1) vector_types(b, c, vector);
    part_fill(b, op_softmax_cu, "block", "n=%lld", (long long)s->n);
    const Block k = {s->n, threads, vector};
    block_pass(out, &k, "most = v > most ? v : most;", NULL);
    buffer_puts(b, "    most = op_block_reduce(most, [](T p, T q) { return p > q ? p : q; }, "
                   "shared);\n");
    block_pass(out, &k, "sum += exp(v - most);", NULL);
    buffer_puts(b, "    sum = op_block_reduce(sum, [](T p, T q) { return p + q; }, shared);\n");
    scale(b, s);
    block_pass(out, &k, "", value(s));
    return text_end(out, err);
}

/* Threads along a row and side by side, and the blocks of rows side by side and of groups of them: as
 * many as a device of 132 full multiprocessors runs at a time, so that a block takes several. */
typedef struct {
    int along, beside;
    int64_t inner, outer;
} Spread;

static Spread spread_of(const Softmax *s)
{
    Spread p = {.along = 1};
    int64_t active, groups = s->rows / s->inner;
    p.beside = (int)(s->inner < MAX_THREADS ? s->inner : MAX_THREADS);
    while (p.beside <= FEW_BESIDE && s->n >= FEW_BESIDE && 2 * p.along <= s->n &&
           2 * p.along * p.beside <= MAX_THREADS)
        p.along *= 2;
    active = MULTIPROCESSORS * (MAX_RESIDENT / (p.along * p.beside));
    if (active > MULTIPROCESSORS * 32) active = MULTIPROCESSORS * 32;
    p.inner = (s->inner + p.beside - 1) / p.beside;
    if (p.inner > active) p.inner = active;
    p.outer = (active + p.inner - 1) / p.inner;
    if (p.outer > groups) p.outer = groups;
    if (p.outer < 1) p.outer = 1;
    return p;
}

/* Merges `name` of the threads along a row, a power of two, for all of them. */
static void along_merge(Buffer *b, const char *name, const char *with)
{
    part_fill(b, op_softmax_cu, "along_merge", "name=%s;with=%s", name, with);
}

/* Rows across memory. */
static int across_launch(const OpCall *c, const Softmax *s, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    const Spread p = spread_of(s);
    const OpTensor *x = op_tensor(c, 0);
    const char *loop = "            for (index i = threadIdx.x; i < n; i += blockDim.x) {\n";
    char name[8], place[24], operands[160], load[64];
    snprintf(name, sizeof name, "x%lld", (long long)c->arg[0].integer[0]);
    if (text_dense(out, name, x, place, sizeof place, err)) return -1;
    snprintf(operands, sizeof operands, "%.*s y0 outer:%lld n:%lld inner:%lld",
             (int)strcspn(place, " "), place, (long long)(s->rows / s->inner), (long long)s->n,
             (long long)s->inner);
    snprintf(load, sizeof load, "(T)%s(%s)[base + i * side]", text_cast(x->dtype, DTYPE_F32),
             place);
    OpLaunch *l = begin(out, s, (TextHead){NULL, operands, p.outer, p.along}, err);
    if (!l) return -1;
    l->grid[1] = p.inner;
    l->block[1] = p.beside;
    if (p.along > 1)
        buffer_printf(b,
                      "    __shared__ T shared[%d];\n"
                      "    T *own = shared + threadIdx.y * blockDim.x;\n",
                      MAX_THREADS);
    buffer_printf(b,
                  "    const index side = (index)inner;\n"
                  "    for (index o = blockIdx.x; o < (index)outer; o += gridDim.x) {\n"
                  "        index r = blockIdx.y * blockDim.y + threadIdx.y;\n"
                  "        for (; r < side; r += blockDim.y * gridDim.y) {\n"
                  "            const index base = o * (index)n * side + r;\n"
                  "            T most = LOW, sum = 0;\n"
                  "%s"
                  "                const T v = %s;\n"
                  "                most = v > most ? v : most;\n            }\n",
                  loop, load);
    if (p.along > 1) along_merge(b, "most", "most = o > most ? o : most");
    buffer_printf(b, "%s                sum += exp(%s - most);\n            }\n", loop, load);
    if (p.along > 1) along_merge(b, "sum", "sum += o");
    if (s->logarithm) scale(b, s);
    buffer_printf(b,
                  "%s                const T v = %s;\n"
                  "                y0[base + i * side] = (%s)(%s);\n            }\n"
                  "        }\n    }\n",
                  loop, load, dtype_ctype(c->result[0].dtype),
                  s->logarithm ? value(s) : "exp(v - most) / sum");
    return text_end(out, err);
}

int softmax_plain(const OpCall *c, OpPlain *out, Error *err)
{
    Softmax s;
    if (softmax_of(c, &s, err)) return -1;
    if (s.inner > 1) return across_launch(c, &s, out, err);
    int64_t bytes = s.n * (int64_t)dtype_size(op_tensor(c, 0)->dtype);
    if (s.n <= WARP_ELEMENTS && bytes <= WARP_BYTES) return warp_launch(c, &s, out, err);
    int keeps = s.n <= EACH * MAX_THREADS && c->result[0].dtype != DTYPE_F64;
    return keeps ? kept_launch(c, &s, out, err) : block_launch(c, &s, out, err);
}
