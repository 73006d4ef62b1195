/* The plain kernel of a product: 256 threads compute a tile of 16 R x 16 C elements, each thread R x C of
 * them, from slices of 16 terms in shared memory, summed in float (double for double). A product with
 * one row or one column has a block an element. Sizes, steps and offsets are constants of the text. */
#include "ops/op_product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/op_text.h"

EMBED(op_product_cu, "ops/op_product_text.cu")

enum { SIDE = 16, THREADS = SIDE * SIDE, DOT_THREADS = 256, DOT_TERMS = 512 };

/* Elements of a tile along a dimension that one thread computes. */
static int share(int64_t count)
{
    return count > 3 * SIDE ? 4 : count > SIDE ? 2 : 1;
}

/* 1 where a place in the operand may not fit an int. */
static int is_wide(const Product *p, int x)
{
    int64_t last = p->side[x].tensor->offset;
    for (int g = 0; g < PRODUCT_GROUPS; g++)
        for (int d = 0; d < p->rank[g]; d++) last += (p->size[g][d] - 1) * llabs(p->step[x][g][d]);
    return last >= INT32_MAX;
}

static void strided(Buffer *b, const Product *p, int x, int g, const char *i)
{
    const int64_t offset = g == PRODUCT_BATCH ? p->side[x].tensor->offset : 0;
    text_strided(b, &(Strided){offset, p->rank[g], p->size[g], p->step[x][g]}, i);
}

static int64_t inner_step(const Product *p, int x, int g)
{
    return p->rank[g] ? p->step[x][g][p->rank[g] - 1] : 0;
}

/* const TYPE a0 = where the operand's batch begins. */
static void base(Buffer *b, const Product *p, int x, char name)
{
    buffer_printf(b, "    const %s %c0 = ", is_wide(p, x) ? "long long" : "int", name);
    strided(b, p, x, PRODUCT_BATCH, "batch");
    buffer_puts(b, ";\n");
}

/* An operand as matrices [batch, across, along], by groups. */
typedef struct {
    const Product *p;
    ProductOperand x;
    ProductGroup across, along;
} View;

/* Brings a slice of an operand into shared memory, along its dense dimension. */
static void slice(Buffer *b, const View *v, char name, const char *type)
{
    const Product *p = v->p;
    const int x = (int)v->x, across = (int)v->across;
    int dense = inner_step(p, x, across) == 1 || inner_step(p, x, PRODUCT_DEPTH) != 1;
    int rows = across == PRODUCT_ROWS;
    buffer_printf(b,
                  "        for (int e = threadIdx.x; e < 16 * 16 * %s; e += 256) {\n"
                  "            const int in = %s, at = %s, k = k0 + in, i = %s0 + at;\n"
                  "            s%c[in][at] = k < %lld && i < %lld ? (%s)%s[%c0 + ",
                  rows ? "R" : "C", dense ? rows ? "e / (16 * R)" : "e / (16 * C)" : "e % 16",
                  dense ? rows ? "e % (16 * R)" : "e % (16 * C)" : "e / 16",
                  rows ? "row" : "column", name, (long long)p->count[PRODUCT_DEPTH],
                  (long long)p->count[across], type, p->side[x].name, name);
    strided(b, p, x, across, "i");
    buffer_puts(b, " + ");
    strided(b, p, x, PRODUCT_DEPTH, "k");
    buffer_puts(b, "] : 0;\n        }\n");
}

/* c's element at (i, j) of `value`, with alpha, beta and d. */
static void store(Buffer *b, const Product *p, const char *type, const char *value)
{
    const ProductSide *c = &p->side[PRODUCT_C], *d = &p->side[PRODUCT_D];
    buffer_printf(b, "%s[c0 + ", c->name);
    strided(b, p, PRODUCT_C, PRODUCT_ROWS, "i");
    buffer_puts(b, " + ");
    strided(b, p, PRODUCT_C, PRODUCT_COLUMNS, "j");
    buffer_printf(b, "] = (%s)(", dtype_ctype(c->tensor->dtype));
    if (p->alpha != 1) {
        buffer_printf(b, "(%s)", type);
        text_number(b, p->alpha);
        buffer_puts(b, " * ");
    }
    buffer_puts(b, value);
    if (p->beta != 0) {
        buffer_puts(b, " + ");
        if (p->beta != 1) {
            buffer_printf(b, "(%s)", type);
            text_number(b, p->beta);
            buffer_puts(b, " * ");
        }
        buffer_printf(b, "(%s)%s[d0 + ", type, d->name);
        strided(b, p, PRODUCT_D, PRODUCT_ROWS, "i");
        buffer_puts(b, " + ");
        strided(b, p, PRODUCT_D, PRODUCT_COLUMNS, "j");
        buffer_puts(b, "]");
    }
    buffer_puts(b, ");\n");
}

static void bases(Buffer *b, const Product *p)
{
    base(b, p, PRODUCT_A, 'a');
    base(b, p, PRODUCT_B, 'b');
    base(b, p, PRODUCT_C, 'c');
    if (p->beta != 0) base(b, p, PRODUCT_D, 'd');
}

static void tiled(Buffer *b, const Product *p, int r, int c, const char *type)
{
    int64_t across = (p->count[PRODUCT_COLUMNS] + 16 * c - 1) / (16 * c),
            down = (p->count[PRODUCT_ROWS] + 16 * r - 1) / (16 * r);
    part_fill(b, op_product_cu, "tiles",
              "rows_share=%d;columns_share=%d;type=%s;across=%lld;down=%lld;blocks=%lld", r, c,
              type, (long long)across, (long long)down, (long long)(across * down));
    bases(b, p);
    buffer_printf(b,
                  "    %s acc[R][C] = {};\n"
                  "    for (int k0 = 0; k0 < %lld; k0 += 16) {\n",
                  type, (long long)p->count[PRODUCT_DEPTH]);
    slice(b, &(View){p, PRODUCT_A, PRODUCT_ROWS, PRODUCT_DEPTH}, 'a', type);
    slice(b, &(View){p, PRODUCT_B, PRODUCT_COLUMNS, PRODUCT_DEPTH}, 'b', type);
    part_fill(b, op_product_cu, "sums", "rows=%lld;columns=%lld", (long long)p->count[PRODUCT_ROWS],
              (long long)p->count[PRODUCT_COLUMNS]);
    store(b, p, type, "acc[n / C][n % C]");
    buffer_puts(b, "    }\n");
}

/* One block an element: rows or columns are one. */
static void dot(Buffer *b, const Product *p, const char *type)
{
    long long rows = p->count[PRODUCT_ROWS], columns = p->count[PRODUCT_COLUMNS];
    buffer_printf(b,
                  "    __shared__ %s shared[32];\n"
                  "    const int j = blockIdx.x %% %lld, i = blockIdx.x / %lld %% %lld;\n"
                  "    const int batch = blockIdx.x / %lld;\n",
                  type, columns, columns, rows, rows * columns);
    bases(b, p);
    buffer_printf(b,
                  "    %s sum = 0;\n"
                  "    for (int k = threadIdx.x; k < %lld; k += blockDim.x)\n"
                  "        sum += (%s)%s[a0 + ",
                  type, (long long)p->count[PRODUCT_DEPTH], type, p->side[PRODUCT_A].name);
    strided(b, p, PRODUCT_A, PRODUCT_ROWS, "i");
    buffer_puts(b, " + ");
    strided(b, p, PRODUCT_A, PRODUCT_DEPTH, "k");
    buffer_printf(b, "] * (%s)%s[b0 + ", type, p->side[PRODUCT_B].name);
    strided(b, p, PRODUCT_B, PRODUCT_COLUMNS, "j");
    buffer_puts(b, " + ");
    strided(b, p, PRODUCT_B, PRODUCT_DEPTH, "k");
    buffer_printf(b,
                  "];\n    sum = op_block_reduce(sum, [](%s u, %s v) { return u + v; }, shared);\n"
                  "    if (!threadIdx.x) ",
                  type, type);
    store(b, p, type, "sum");
}

/* The names of the operands, each once. */
static void operands(const Product *p, char *out, size_t size)
{
    static const int order[] = {PRODUCT_A, PRODUCT_B, PRODUCT_D, PRODUCT_C};
    size_t n = 0;
    for (int i = 0; i < 4; i++) {
        const ProductSide *s = &p->side[order[i]];
        int again = !s->tensor || (order[i] == PRODUCT_D && p->beta == 0);
        for (int k = 0; k < i && !again; k++) again = !strcmp(p->side[order[k]].name, s->name);
        if (!again) n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : "", s->name);
    }
}

/* Elements multiplied one by one, in c's order, as eager PyTorch multiplies where an einsum sums nothing. */
static int each(const Product *p, const char *names, const char *type, OpPlain *out, Error *err)
{
    int64_t n = 1, size[PRODUCT_DIMS], step[PRODUCT_OPERANDS][PRODUCT_DIMS];
    int rank = 0;
    for (int g = PRODUCT_BATCH; g <= PRODUCT_COLUMNS; n *= p->count[g++])
        for (int d = 0; d < p->rank[g]; d++, rank++) {
            int at = rank; /* c's outer dimensions first */
            for (; at && step[PRODUCT_C][at - 1] < p->step[PRODUCT_C][g][d]; at--) {
                size[at] = size[at - 1];
                for (int x = 0; x < PRODUCT_OPERANDS; x++) step[x][at] = step[x][at - 1];
            }
            size[at] = p->size[g][d];
            for (int x = 0; x < PRODUCT_OPERANDS; x++) step[x][at] = p->step[x][g][d];
        }
    if (!text_walk(out, "product", names, n, err)) return -1;
    Buffer *b = out->source;
    buffer_printf(b, "    %s[i] = (%s)((%s)%s[", p->side[PRODUCT_C].name,
                  dtype_ctype(p->side[PRODUCT_C].tensor->dtype), type, p->side[PRODUCT_A].name);
    text_strided(b, &(Strided){p->side[PRODUCT_A].tensor->offset, rank, size, step[PRODUCT_A]},
                 "i");
    buffer_printf(b, "] * (%s)%s[", type, p->side[PRODUCT_B].name);
    text_strided(b, &(Strided){p->side[PRODUCT_B].tensor->offset, rank, size, step[PRODUCT_B]},
                 "i");
    buffer_puts(b, "]);\n");
    return text_each_end(out, err);
}

/* Both operands are dense in the depth, and one has a single row. */
static int is_dot(const Product *p)
{
    return (p->count[PRODUCT_ROWS] == 1 || p->count[PRODUCT_COLUMNS] == 1) &&
           p->count[PRODUCT_DEPTH] >= DOT_TERMS && inner_step(p, PRODUCT_A, PRODUCT_DEPTH) == 1 &&
           inner_step(p, PRODUCT_B, PRODUCT_DEPTH) == 1;
}

int product_plain(const Product *p, OpPlain *out, Error *err)
{
    int r = share(p->count[PRODUCT_ROWS]), c = share(p->count[PRODUCT_COLUMNS]);
    const char *type = text_type(p->side[PRODUCT_C].tensor->dtype);
    char names[64];
    double blocks = (double)p->count[PRODUCT_BATCH];
    for (int g = 0; g < PRODUCT_GROUPS; g++)
        if (p->rank[g] > OP_MAX_RANK || p->count[g] >= INT32_MAX - 64)
            return error_set(err, ERROR_LIMIT,
                             "a kernel takes at most %d dimensions and 2^31 elements in a group",
                             OP_MAX_RANK);
    if (product_is_each(p)) {
        operands(p, names, sizeof names);
        return each(p, names, type, out, err);
    }
    if (is_dot(p)) r = c = 0;
    blocks *=
        (double)(r ? (p->count[PRODUCT_ROWS] + 16 * r - 1) / (16 * r) : p->count[PRODUCT_ROWS]);
    blocks *= (double)(c ? (p->count[PRODUCT_COLUMNS] + 16 * c - 1) / (16 * c)
                         : p->count[PRODUCT_COLUMNS]);
    if (blocks >= INT32_MAX) return error_set(err, ERROR_LIMIT, "more than 2^31 blocks");
    operands(p, names, sizeof names);
    if (!r) text_block_reduce(out);
    if (!text_begin(out, &(TextHead){"product", names, (int64_t)blocks, THREADS}, err)) return -1;
    if (r)
        tiled(out->source, p, r, c, type);
    else
        dot(out->source, p, type);
    return text_end(out, err);
}

/* ---- the vendor's library ---- */

/* The matrices of a view in memory: dense along `along`, or transposed. */
typedef struct {
    char name[24]; /* with its offset */
    Dtype dtype;
    int transposed;
    int64_t leading, apart; /* elements from one row, and from one matrix, to the next */
} Matrix;

static void name_of(const ProductSide *s, char *out, size_t size)
{
    if (s->tensor->offset)
        snprintf(out, size, "%s + %lld", s->name, (long long)s->tensor->offset);
    else
        snprintf(out, size, "%s", s->name);
}

/* The one step with which an operand moves through a group, or -1; 0 where the group has one element. */
static int64_t step_through(const Product *p, int x, int g)
{
    int64_t n[PRODUCT_DIMS], s[PRODUCT_DIMS];
    int rank = op_merge(p->rank[g], p->size[g], p->step[x][g], n, s);
    return !rank ? 0 : rank == 1 && s[0] <= INT32_MAX ? s[0] : -1;
}

/* 1: the operand is such matrices as it lies in memory. */
static int matrix_of(const View *v, Matrix *m)
{
    const Product *p = v->p;
    const int x = (int)v->x, across = (int)v->across, along = (int)v->along;
    const int64_t n = p->count[across], k = p->count[along];
    int64_t down = n > 1 ? step_through(p, x, across) : k,
            right = k > 1 ? step_through(p, x, along) : 1;
    if (n == 1 && k > 1 && right > 1) down = 1; /* a column of a matrix */
    m->transposed = !(right == 1 && down >= k);
    m->leading = m->transposed ? right : down;
    if (m->transposed && k == 1) m->leading = n;
    if (m->transposed && (down != 1 || m->leading < n)) return 0;
    m->apart = step_through(p, x, PRODUCT_BATCH);
    m->dtype = p->side[x].tensor->dtype;
    name_of(&p->side[x], m->name, sizeof m->name);
    return m->apart >= 0;
}

/* Copies an operand to dense matrices, as eager PyTorch does where a library cannot read it. */
static int copy_matrix(const View *v, OpPlain *out, Matrix *m, Error *err)
{
    const Product *p = v->p;
    const int x = (int)v->x, across = (int)v->across, along = (int)v->along;
    const ProductSide *s = &p->side[x];
    long long n = p->count[across], k = p->count[along];
    char names[24];
    int64_t all = p->count[PRODUCT_BATCH] * n * k;
    int t = text_scratch(out, s->tensor->dtype, all, err);
    if (t < 0) return -1;
    snprintf(names, sizeof names, "%s t%d", s->name, t);
    if (!text_walk(out, "copy", names, all, err)) return -1;
    buffer_printf(out->source,
                  "    const int batch = i / %lldLL, row = i %% %lldLL / %lld, at = i %% %lld;\n"
                  "    t%d[i] = %s[",
                  n * k, n * k, k, k, t, s->name);
    strided(out->source, p, x, PRODUCT_BATCH, "batch");
    buffer_puts(out->source, " + ");
    strided(out->source, p, x, across, "row");
    buffer_puts(out->source, " + ");
    strided(out->source, p, x, along, "at");
    buffer_puts(out->source, "];\n");
    *m = (Matrix){.dtype = s->tensor->dtype, .leading = k};
    if (p->count[PRODUCT_BATCH] > 1) m->apart = n * k;
    snprintf(m->name, sizeof m->name, "t%d", t);
    return text_each_end(out, err) ? -1 : 1;
}

static int operand_of(const View *v, OpPlain *out, Matrix *m, Error *err)
{
    return matrix_of(v, m) ? 1 : copy_matrix(v, out, m, err);
}

/* d is a dense row that is added to each row of c. */
static int is_bias(const Product *p)
{
    const OpTensor *d = p->side[PRODUCT_D].tensor;
    return p->beta == 1 && p->alpha == 1 && d->rank == 1 && p->count[PRODUCT_BATCH] == 1 &&
           d->size[0] == p->count[PRODUCT_COLUMNS] &&
           step_through(p, PRODUCT_D, PRODUCT_COLUMNS) == 1 &&
           step_through(p, PRODUCT_D, PRODUCT_ROWS) == 0;
}

static int add_d(const Product *p, const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *y = &c->result[0];
    const ProductSide *d = &p->side[PRODUCT_D];
    const char *type = text_type(y->dtype);
    char names[24];
    snprintf(names, sizeof names, "%s y0", d->name);
    if (!text_walk(out, "add_bias", names, op_elements(y), err)) return -1;
    buffer_printf(out->source, "    y0[i] = (%s)((%s)y0[i] + ", dtype_ctype(y->dtype), type);
    if (p->beta != 1) {
        buffer_printf(out->source, "(%s)", type);
        text_number(out->source, p->beta);
        buffer_puts(out->source, " * ");
    }
    buffer_printf(out->source, "(%s)%s[", type, d->name);
    text_index(out->source, d->tensor, y->rank, y->size, "i");
    buffer_puts(out->source, "]);\n");
    return text_each_end(out, err);
}

/* The counts, and the distances between matrices, are ints; no operand is double. */
static int fits(const Product *p)
{
    for (int g = 0; g < PRODUCT_GROUPS; g++)
        if (p->count[g] < 1 || p->count[g] > INT32_MAX) return 0;
    int64_t m = p->count[PRODUCT_ROWS], n = p->count[PRODUCT_COLUMNS], k = p->count[PRODUCT_DEPTH];
    if (p->count[PRODUCT_BATCH] > 1 &&
        (m * k > INT32_MAX || k * n > INT32_MAX || m * n > INT32_MAX))
        return 0;
    for (int x = PRODUCT_A; x <= PRODUCT_C; x++)
        if (p->side[x].tensor->dtype > DTYPE_BF16) return 0;
    return 1;
}

int product_route(const Product *p, const OpCall *c, OpRoute *out, Error *err)
{
    Matrix a, b, y;
    size_t size;
    char d[24];
    const View of_a = {p, PRODUCT_A, PRODUCT_ROWS, PRODUCT_DEPTH},
               of_b = {p, PRODUCT_B, PRODUCT_DEPTH, PRODUCT_COLUMNS},
               of_y = {p, PRODUCT_C, PRODUCT_ROWS, PRODUCT_COLUMNS};
    if (!fits(p) || !matrix_of(&of_y, &y) || y.transposed) return 0;
    if (operand_of(&of_a, out->kernels, &a, err) < 0 ||
        operand_of(&of_b, out->kernels, &b, err) < 0)
        return -1;
    long long batch = p->count[PRODUCT_BATCH], m = p->count[PRODUCT_ROWS],
              n = p->count[PRODUCT_COLUMNS], k = p->count[PRODUCT_DEPTH];
    int fused = p->beta != 0 && is_bias(p) && !a.transposed && a.leading == k &&
                b.leading == (b.transposed ? k : n) && a.dtype == y.dtype && k > 1;
    char *to = text_library(out, fused ? "cublaslt.gemm_bias" : "cublas.gemm", &size, err);
    if (!to) return -1;
    if (fused) {
        name_of(&p->side[PRODUCT_D], d, sizeof d);
        snprintf(to, size, "%s, %s, %s, %s, %d, %lld, %lld, %lld, %d", a.name, b.name, d, y.name,
                 (int)y.dtype, m, n, k, b.transposed);
        return 1;
    }
    snprintf(to, size,
             "%s, %s, %s, %d, %d, %lld, %lld, %lld, %lld, %d, %d, %lld, %lld, %lld, %lld, %lld, "
             "%lld, %.17g",
             a.name, b.name, y.name, (int)a.dtype, (int)y.dtype, batch, m, n, k, a.transposed,
             b.transposed, (long long)a.leading, (long long)b.leading, (long long)y.leading,
             (long long)a.apart, (long long)b.apart, (long long)y.apart, p->alpha);
    return p->beta != 0 && add_d(p, c, out->kernels, err) ? -1 : 1;
}
