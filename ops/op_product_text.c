/* The plain kernel of a product: 256 threads compute a tile of 16 R x 16 C elements, each thread R x C of
 * them, from slices of 16 terms in shared memory, summed in float (double for double). A product with
 * one row or one column has a block an element. Sizes, steps and offsets are constants of the text. */
#include "ops/op_product_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op_text.h"

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

static void strided(Buffer *b, const Product *p, int x, int g, int64_t offset, const char *i)
{
    text_strided(b, offset, p->rank[g], p->size[g], p->step[x][g], i);
}

static int64_t inner_step(const Product *p, int x, int g)
{
    return p->rank[g] ? p->step[x][g][p->rank[g] - 1] : 0;
}

/* const TYPE a0 = where the operand's batch begins. */
static void base(Buffer *b, const Product *p, int x, char name)
{
    buffer_printf(b, "    const %s %c0 = ", is_wide(p, x) ? "long long" : "int", name);
    strided(b, p, x, PRODUCT_BATCH, p->side[x].tensor->offset, "batch");
    buffer_puts(b, ";\n");
}

/* Brings a slice of an operand into shared memory, along its dense dimension. */
static void slice(Buffer *b, const Product *p, int x, int across, char name, const char *type)
{
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
    strided(b, p, x, across, 0, "i");
    buffer_puts(b, " + ");
    strided(b, p, x, PRODUCT_DEPTH, 0, "k");
    buffer_puts(b, "] : 0;\n        }\n");
}

/* c's element at (i, j) of `value`, with alpha, beta and d. */
static void store(Buffer *b, const Product *p, const char *type, const char *value)
{
    const ProductSide *c = &p->side[PRODUCT_C], *d = &p->side[PRODUCT_D];
    buffer_printf(b, "%s[c0 + ", c->name);
    strided(b, p, PRODUCT_C, PRODUCT_ROWS, 0, "i");
    buffer_puts(b, " + ");
    strided(b, p, PRODUCT_C, PRODUCT_COLUMNS, 0, "j");
    buffer_printf(b, "] = (%s)(", op_dtype_ctype(c->tensor->dtype));
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
        strided(b, p, PRODUCT_D, PRODUCT_ROWS, 0, "i");
        buffer_puts(b, " + ");
        strided(b, p, PRODUCT_D, PRODUCT_COLUMNS, 0, "j");
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
    buffer_printf(b,
                  "    constexpr int R = %d, C = %d;\n"
                  "    __shared__ %s sa[16][16 * R + 1], sb[16][16 * C + 1];\n"
                  "    const int tx = threadIdx.x %% 16, ty = threadIdx.x / 16;\n"
                  "    const int column0 = blockIdx.x %% %lld * (16 * C);\n"
                  "    const int row0 = blockIdx.x / %lld %% %lld * (16 * R);\n"
                  "    const int batch = blockIdx.x / %lld;\n",
                  r, c, type, (long long)across, (long long)across, (long long)down,
                  (long long)(across * down));
    bases(b, p);
    buffer_printf(b,
                  "    %s acc[R][C] = {};\n"
                  "    for (int k0 = 0; k0 < %lld; k0 += 16) {\n",
                  type, (long long)p->count[PRODUCT_DEPTH]);
    slice(b, p, PRODUCT_A, PRODUCT_ROWS, 'a', type);
    slice(b, p, PRODUCT_B, PRODUCT_COLUMNS, 'b', type);
    buffer_printf(
        b,
        "        __syncthreads();\n"
        "#pragma unroll\n"
        "        for (int k = 0; k < 16; k++)\n"
        "#pragma unroll\n"
        "            for (int i = 0; i < R; i++)\n"
        "#pragma unroll\n"
        "                for (int j = 0; j < C; j++)\n"
        "                    acc[i][j] += sa[k][ty + 16 * i] * sb[k][tx + 16 * j];\n"
        "        __syncthreads();\n"
        "    }\n"
        "#pragma unroll\n"
        "    for (int n = 0; n < R * C; n++) {\n"
        "        const int i = row0 + ty + 16 * (n / C), j = column0 + tx + 16 * (n %% C);\n"
        "        if (i < %lld && j < %lld) ",
        (long long)p->count[PRODUCT_ROWS], (long long)p->count[PRODUCT_COLUMNS]);
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
    strided(b, p, PRODUCT_A, PRODUCT_ROWS, 0, "i");
    buffer_puts(b, " + ");
    strided(b, p, PRODUCT_A, PRODUCT_DEPTH, 0, "k");
    buffer_printf(b, "] * (%s)%s[b0 + ", type, p->side[PRODUCT_B].name);
    strided(b, p, PRODUCT_B, PRODUCT_COLUMNS, 0, "j");
    buffer_puts(b, " + ");
    strided(b, p, PRODUCT_B, PRODUCT_DEPTH, 0, "k");
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

/* Both operands are dense in the depth, and one has a single row. */
static int is_dot(const Product *p)
{
    return (p->count[PRODUCT_ROWS] == 1 || p->count[PRODUCT_COLUMNS] == 1) &&
           p->count[PRODUCT_DEPTH] >= DOT_TERMS && inner_step(p, PRODUCT_A, PRODUCT_DEPTH) == 1 &&
           inner_step(p, PRODUCT_B, PRODUCT_DEPTH) == 1;
}

int product_plain(const Product *p, const OpCall *call, OpPlain *out, Error *err)
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
    if (is_dot(p)) r = c = 0;
    blocks *=
        (double)(r ? (p->count[PRODUCT_ROWS] + 16 * r - 1) / (16 * r) : p->count[PRODUCT_ROWS]);
    blocks *= (double)(c ? (p->count[PRODUCT_COLUMNS] + 16 * c - 1) / (16 * c)
                         : p->count[PRODUCT_COLUMNS]);
    if (blocks >= INT32_MAX) return error_set(err, ERROR_LIMIT, "more than 2^31 blocks");
    operands(p, names, sizeof names);
    if (!r) text_block_reduce(out);
    if (!text_begin(out, call, "product", names, (int64_t)blocks, THREADS, err)) return -1;
    if (r)
        tiled(out->source, p, r, c, type);
    else
        dot(out->source, p, type);
    return text_end(out, err);
}

/* ---- the vendor's library ---- */

/* An operand as a dense matrix [batch, across, along]: 0; stored transposed: 1; neither: -1. */
static int layout(const Product *p, int x, int across, int along)
{
    const int64_t n = p->count[across], k = p->count[along];
    if (p->rank[PRODUCT_BATCH] > 1 || p->rank[across] > 1 || p->rank[along] > 1) return -1;
    if (p->rank[PRODUCT_BATCH] && p->step[x][PRODUCT_BATCH][0] != n * k) return -1;
    int64_t down = n > 1 ? p->step[x][across][0] : 0, right = k > 1 ? p->step[x][along][0] : 0;
    if ((n == 1 || down == k) && (k == 1 || right == 1)) return 0;
    return (n == 1 || down == 1) && (k == 1 || right == n) ? 1 : -1;
}

static int pointer(const Product *p, int x, char *out, size_t size)
{
    long long offset = p->side[x].tensor->offset;
    return offset ? snprintf(out, size, "%s + %lld, ", p->side[x].name, offset)
                  : snprintf(out, size, "%s, ", p->side[x].name);
}

static int add_bias(const Product *p, const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *y = &c->result[0], *d = p->side[PRODUCT_D].tensor;
    char names[24];
    snprintf(names, sizeof names, "%s y0", p->side[PRODUCT_D].name);
    if (!text_each(out, c, "add_bias", names, op_elements(y), err)) return -1;
    buffer_printf(out->source, "    y0[i] = y0[i] + %s[", p->side[PRODUCT_D].name);
    text_index(out->source, d, y->rank, y->size, "i");
    buffer_puts(out->source, "];\n");
    return text_each_end(out, err);
}

int product_route(const Product *p, const OpCall *c, OpRoute *out, Error *err)
{
    int a = layout(p, PRODUCT_A, PRODUCT_ROWS, PRODUCT_DEPTH),
        b = layout(p, PRODUCT_B, PRODUCT_DEPTH, PRODUCT_COLUMNS);
    int batched = p->count[PRODUCT_BATCH] > 1 || a || b || p->alpha != 1;
    char *to = out->arguments;
    size_t n = 0, size = sizeof out->arguments;
    if (a < 0 || b < 0 || layout(p, PRODUCT_C, PRODUCT_ROWS, PRODUCT_COLUMNS)) return 0;
    if (c->result[0].dtype != OP_F32 || (p->beta != 0 && p->beta != 1)) return 0;
    for (int g = 0; g < PRODUCT_GROUPS; g++)
        if (p->count[g] < 1 || p->count[g] > INT32_MAX) return 0;
    out->library = batched ? "cublas.sgemm_batched" : "cublas.sgemm";
    for (int x = PRODUCT_A; x <= PRODUCT_C; x++) n += (size_t)pointer(p, x, to + n, size - n);
    if (batched)
        n += (size_t)snprintf(to + n, size - n, "%lld, ", (long long)p->count[PRODUCT_BATCH]);
    n += (size_t)snprintf(to + n, size - n, "%lld, %lld, %lld", (long long)p->count[PRODUCT_ROWS],
                          (long long)p->count[PRODUCT_COLUMNS], (long long)p->count[PRODUCT_DEPTH]);
    if (batched) snprintf(to + n, size - n, ", %d, %d, %.17g", a, b, p->alpha);
    if (p->beta != 0 && add_bias(p, c, out->then, err)) return -1;
    return 1;
}
