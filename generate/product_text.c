/* The texts of products' kernels and of their launches. The loops are in product.cu.
 * Over 800 lines: split sums are written in one form, of float32 and of half types. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/memory.h"
#include "base/part.h"
#include "generate/convolve.h"
#include "generate/depthwise.h"
#include "generate/product_text.h"
#include "generate/triangle.h"

EMBED(generate_product, "generate/product.cu")

/* Of product.cu. */
enum { SIDE = 128, THREADS = 256, SHARED = 3 * 4 * SIDE * 64 * 2 + 1024, TERMS = 64, ACROSS = 32 };
enum { DIRECT_SHARED = 4 * SIDE * 128 + 4 * 2 * SIDE * 32 * 4 + 1024 };
enum { FEW_ROWS = 16, FEW_COLUMNS = 64, FEW_SHARED = 5 * (FEW_ROWS + FEW_COLUMNS) * 128 * 4 };

/* Sizes in a kernel, and in its plan. */
typedef struct {
    char rows[32], columns[32], batch[32];
} ProductNames;
typedef struct {
    char rows[SIZE_TEXT], columns[SIZE_TEXT], batch[SIZE_TEXT];
} ProductTexts;

int product_is_along(const MatrixProduct *m, ProductOperand x)
{
    return size_is(m->side[x].step[PRODUCT_DEPTH], 1);
}

const char *product_size(ProductWriter *w, Size s)
{
    const char *name = kernel_size(w->k, s, w->err);
    if (!name) w->failed = 1;
    return name ? name : "0";
}

void product_put_place(ProductWriter *w, const ProductTensor *t, const char *const *index)
{
    if (!size_is(t->offset, 0)) buffer_printf(&w->body, " + %s", product_size(w, t->offset));
    for (int g = 0; g < PRODUCT_GROUPS; g++)
        if (index[g] && !size_is(t->step[g], 0))
            buffer_printf(&w->body, " + %s * %s", index[g], product_size(w, t->step[g]));
}

static void put_factor(ProductWriter *w, const char *name, ProductOperand x, ProductGroup lines)
{
    static const char *const index[PRODUCT_GROUPS] = {[PRODUCT_BATCH] = "batch"};
    const ProductTensor *t = &w->m->side[x];
    buffer_printf(&w->body, "    const Factor %s = {%s", name, kernel_tensor(w->k, t->node, 0));
    product_put_place(w, t, index);
    buffer_printf(&w->body, ", %s, ", product_size(w, w->m->count[lines]));
    buffer_printf(&w->body, "%s, ", product_size(w, w->m->count[PRODUCT_DEPTH]));
    buffer_printf(&w->body, "%s};\n",
                  product_size(w, t->step[product_is_along(w->m, x) ? lines : PRODUCT_DEPTH]));
}

static int is_half_product(const MatrixProduct *m)
{
    return m->dtype != DTYPE_F32 && !m->convolution;
}

/* The addend's two neighbouring columns are one piece where the result's are. */
static int has_pairs(const MatrixProduct *m)
{
    const ProductTensor *d = &m->side[PRODUCT_D];
    const Size columns = m->count[PRODUCT_COLUMNS];
    return is_half_product(m) && size_is(d->offset, 0) && size_is(d->step[PRODUCT_COLUMNS], 1) &&
           (size_is(d->step[PRODUCT_ROWS], 0) || size_divides(columns, d->step[PRODUCT_ROWS])) &&
           (size_is(d->step[PRODUCT_BATCH], 0) || size_divides(columns, d->step[PRODUCT_BATCH]));
}

/* The addend is a number for each column, with which sums of a half type begin, in tiles of whole groups of
 * columns. */
static int begins_with_bias(const ProductJoin *j)
{
    const MatrixProduct *m = &j->m[0];
    const ProductTensor *d = &m->side[PRODUCT_D];
    return j->n == 1 && is_half_product(m) && m->parts == 1 && m->tile % 64 == 0 && d->node >= 0 &&
           m->alpha == 1 && m->beta == 1 && has_pairs(m) && size_is(d->step[PRODUCT_ROWS], 0) &&
           size_is(d->step[PRODUCT_BATCH], 0);
}

/* A sum with its addend. */
static void put_sum(ProductWriter *w, const MatrixProduct *m, const char *suffix)
{
    static const char *const index[PRODUCT_GROUPS] = {
        [PRODUCT_BATCH] = "batch", [PRODUCT_ROWS] = "row", [PRODUCT_COLUMNS] = "column"};
    const ProductTensor *d = &m->side[PRODUCT_D];
    char factor[40] = "";
    if (m->alpha != 1) snprintf(factor, sizeof factor, "(float)%.17g * ", m->alpha);
    buffer_printf(&w->body, "        const float sum%s = %stotal%s", suffix, factor, suffix);
    if (d->node >= 0 && !begins_with_bias(w->join)) {
        buffer_puts(&w->body, " + ");
        if (m->beta != 1) buffer_printf(&w->body, "(float)%.17g * ", m->beta);
        buffer_printf(&w->body, has_pairs(m) ? "half_read(of, %s, 0" : "(float)%s[0",
                      kernel_tensor(w->k, d->node, 0));
        product_put_place(w, d, index);
        buffer_puts(&w->body, has_pairs(m) ? ")" : "]");
    }
    buffer_puts(&w->body, ";\n");
}

/* The kernel's own tensors, behind those of its graph. */
static const char split_parameters[] =
    ", const half *__restrict__ left_parts, const half *__restrict__ right_parts, "
    "const float2 *__restrict__ left_factors, const float2 *__restrict__ right_factors";

static void put_split(ProductWriter *w, const char *name, const char *side, ProductGroup lines)
{
    char n[32];
    snprintf(n, sizeof n, "%s", product_size(w, w->m->count[lines]));
    buffer_printf(&w->body,
                  "    const Split %s = {%s_parts + batch * %s * tiles_of(%s) * (2 * TERMS), "
                  "%s_factors + batch * %s * %d};\n",
                  name, side, n, side, side, n, w->m->parts);
}

/* `n` numbers blocks of each batch and piece. */
static void put_piece(ProductWriter *w, const char *n)
{
    buffer_printf(&w->body,
                  "    const long long batch = blockIdx.x / %s / %d;\n"
                  "    const Piece piece = {(int)(blockIdx.x / %s %% %d), %d};\n",
                  n, w->m->parts, n, w->m->parts, w->m->parts);
}

void product_put_value(ProductWriter *w, const char *rows)
{
    const ProductJoin *j = w->join;
    KernelElement e = {.n_given = j->n,
                       .width = w->m->count[PRODUCT_COLUMNS],
                       .rows = w->m->count[PRODUCT_ROWS],
                       .near = is_half_product(w->m)};
    buffer_printf(&w->body,
                  "    const auto value = [&](%slong long batch, long long row, long long column, "
                  "float total%s) {\n        const long long line = batch * %s + row;\n",
                  e.near ? "auto of, " : "",
                  j->n > 1                   ? ", float total_2"
                  : w->m->dtype != DTYPE_F32 ? ", float = 0"
                                             : "",
                  rows);
    for (int i = 0; i < j->n; i++) {
        put_sum(w, &j->m[i], i ? "_2" : "");
        e.given[i] = j->step[i];
    }
    if (kernel_put_element(w->k, w->t, &e, &w->body, w->err)) w->failed = 1;
    buffer_puts(&w->body, "    };\n");
}

void product_put_result(ProductWriter *w)
{
    buffer_puts(&w->body, "    const auto result = [&](long long batch, long long row, long long "
                          "column, float total) {\n");
    put_sum(w, &w->join->m[0], "");
    buffer_puts(&w->body, "        return sum;\n    };\n");
}

static void put_band(Buffer *to, Band b)
{
    buffer_printf(to, "{%lld, %lld}", (long long)b.least, (long long)b.most);
}

static void put_bands(ProductWriter *w)
{
    const ProductBands b = product_bands(w->k, w->join);
    buffer_puts(&w->body, "    const Bands bands = {");
    put_band(&w->body, b.sums);
    buffer_puts(&w->body, ", ");
    put_band(&w->body, b.left);
    buffer_puts(&w->body, ", ");
    put_band(&w->body, b.right);
    buffer_puts(&w->body, "};\n");
}

/* Two neighbouring sums of a block become parts of sums. */
static void put_pair(ProductWriter *w, const char *columns, const char *first, const char *second)
{
    buffer_printf(&w->body,
                  "            if (%s %% 2 == 0) *(float2 *)at = make_float2(%s, %s);\n"
                  "            else {\n                at[0] = %s;\n"
                  "                if (column + 1 < %s) at[1] = %s;\n            }\n",
                  columns, first, second, first, columns, second);
}

static ProductNames names_of(ProductWriter *w)
{
    ProductNames n;
    snprintf(n.rows, sizeof n.rows, "%s", product_size(w, w->m->count[PRODUCT_ROWS]));
    snprintf(n.columns, sizeof n.columns, "%s", product_size(w, w->m->count[PRODUCT_COLUMNS]));
    snprintf(n.batch, sizeof n.batch, "%s", product_size(w, w->m->count[PRODUCT_BATCH]));
    return n;
}

/* Where a sum's part lies: `piece` has its number in `at`. */
static void put_part(ProductWriter *w, const ProductNames *n, const char *at)
{
    buffer_printf(&w->body,
                  "            float *at = part_sums + (((long long)piece.%s * %s + %sbatch) * %s "
                  "+ row) * %s + column;\n",
                  at, n->batch, strcmp(at, "at") ? "piece." : "", n->rows, n->columns);
}

/* What a column's sum becomes: a part of it, or the kernel's result. */
static void put_one(ProductWriter *w, const char *next, const char *sum)
{
    if (w->m->parts > 1)
        buffer_puts(&w->body, sum);
    else
        buffer_printf(&w->body, "value(batch, row, column%s, %s)", next, sum);
}

/* Stores four neighbouring columns. */
static void put_four(ProductWriter *w, const ProductNames *n)
{
    static const char *const next[] = {"", " + 1", " + 2", " + 3"}, *const sum[] = {
                                                                        "sums.x", "sums.y",
                                                                        "sums.z", "sums.w"};
    const char *type = dtype_ctype(w->k->nodes->node[w->k->root[0].node].dtype);
    if (w->m->parts > 1)
        put_part(w, n, "at");
    else
        buffer_printf(&w->body, "            %s *at = %s + (batch * %s + row) * %s + column;\n",
                      type, w->out, n->rows, n->columns);
    buffer_printf(&w->body,
                  "            if (%s %% 4 == 0) {\n                *(Pack<%s, 4> *)at = {",
                  n->columns, w->m->parts > 1 ? "float" : type);
    for (int i = 0; i < 4; i++) {
        if (i) buffer_puts(&w->body, ",\n                    ");
        put_one(w, next[i], sum[i]);
    }
    buffer_printf(&w->body,
                  "};\n                return;\n            }\n#pragma unroll 1\n"
                  "            for (int c = 0; c < 4 && column + c < %s; c++) {\n"
                  "                const float own = c == 0 ? sums.x : c == 1 ? sums.y : c == 2 ? "
                  "sums.z : sums.w;\n                at[c] = ",
                  n->columns);
    put_one(w, " + c", "own");
    buffer_puts(&w->body, ";\n            }\n");
}

static void put_halves(ProductWriter *w, const ProductNames *n)
{
    const MatrixProduct *m = w->m;
    const int direct = m->copy == COPY_LOAD;
    if (!direct) put_split(w, "left_split", "left", PRODUCT_ROWS);
    if (!direct) put_split(w, "right_split", "right", PRODUCT_COLUMNS);
    put_bands(w);
    buffer_printf(&w->body,
                  "    product%s<%d, %d>(left, right, %sbands, piece, blockIdx.x %% tiles,\n"
                  "        [&](long long row, long long column, float4 sums) {\n"
                  "        if (row >= %s || column >= %s) return;\n",
                  direct ? "_directly" : "", product_is_along(m, PRODUCT_A),
                  product_is_along(m, PRODUCT_B), direct ? "" : "left_split, right_split, ",
                  n->rows, n->columns);
    put_four(w, n);
    buffer_puts(&w->body, "    });\n");
}

static void put_rows(ProductWriter *w, const ProductNames *n)
{
    buffer_printf(&w->body,
                  "    const long long tile = blockIdx.x %% tiles, across = (%s + %d) / %d;\n"
                  "    few_rows(left, right, piece, tile / across * %d, tile %% across * %d,\n"
                  "        [&](long long row, long long column, float total) {\n"
                  "        if (row >= %s || column >= %s) return;\n",
                  n->columns, FEW_COLUMNS - 1, FEW_COLUMNS, FEW_ROWS, FEW_COLUMNS, n->rows,
                  n->columns);
    if (w->m->parts > 1) {
        put_part(w, n, "at");
        buffer_puts(&w->body, "            *at = total;\n");
    } else {
        buffer_printf(&w->body,
                      "        %s[(batch * %s + row) * %s + column] = value(batch, row, column, "
                      "total);\n",
                      w->out, n->rows, n->columns);
    }
    buffer_puts(&w->body, "    });\n");
}

static void put_body(ProductWriter *w)
{
    const MatrixProduct *m = w->m;
    const int few = m->route == ROUTE_ROWS, down = few ? FEW_ROWS : SIDE,
              across = few ? FEW_COLUMNS : SIDE;
    const ProductNames n = names_of(w);
    buffer_printf(&w->body,
                  "    const long long tiles = ((%s + %d) / %d) * (long long)((%s + %d) / %d);\n",
                  n.rows, down - 1, down, n.columns, across - 1, across);
    put_piece(w, "tiles");
    put_factor(w, "left", PRODUCT_A, PRODUCT_ROWS);
    put_factor(w, "right", PRODUCT_B, PRODUCT_COLUMNS);
    if (m->parts == 1) product_put_value(w, n.rows);
    if (few)
        put_rows(w, &n);
    else
        put_halves(w, &n);
}

/* ---- factors as halves ---- */

/* Threads of a piece of a line whose elements lie side by side. */
static int line_threads(const MatrixProduct *m)
{
    return m->count[PRODUCT_DEPTH].at[0] / m->parts > 1024 ? THREADS : 32;
}

/* The number of the buffer's size, which is new or not; -1. */
static int find_size(ProductWriter *w, int buffer, const char *size)
{
    KernelText *t = w->t;
    int at = 0;
    while (at < t->shared[buffer].n && strcmp(t->shared[buffer].size[at], size)) at++;
    if (at < t->shared[buffer].n) return at;
    if (at == TEXT_SIZES || strlen(size) >= SIZE_TEXT)
        return error_set(w->err, ERROR_UNSUPPORTED, "products of more than %d sizes", TEXT_SIZES);
    snprintf(t->shared[buffer].size[t->shared[buffer].n++], SIZE_TEXT, "%s", size);
    return at;
}

int product_share(ProductWriter *w, int buffer, const char *size)
{
    return find_size(w, buffer, size) < 0 ? -1 : 0;
}

static const struct {
    const char *type, *name;
} buffers[TEXT_BUFFERS] = {[LEFT_PARTS] = {"half", "left_parts"},
                           [LEFT_FACTORS] = {"float2", "left_factors"},
                           [RIGHT_PARTS] = {"half", "right_parts"},
                           [RIGHT_FACTORS] = {"float2", "right_factors"},
                           [PART_SUMS] = {"float", "part_sums"},
                           [PACKED_INPUT] = {"float", "packed_input"},
                           [PACKED_FILTERS] = {"float", "packed_filters"},
                           {"float", "packed_filters_2"},
                           {"float", "packed_filters_3"},
                           {"float", "packed_filters_4"},
                           {"float", "packed_filters_5"},
                           {"float", "packed_filters_6"},
                           {"float", "packed_filters_7"},
                           {"float", "packed_filters_8"}};
enum { NAME = 24 };

/* The name of the buffer's size number `at`, where each size has a buffer of its own. */
static void buffer_name(int buffer, int at, char name[NAME])
{
    int n = snprintf(name, NAME, "%s", buffers[buffer].name);
    if (at) snprintf(name + n, (size_t)(NAME - n), "_%d", at + 1);
}

/* A product reads halves and factors unless its data make it compute exactly, so that a judge knows no more
 * than that all of them may be read: each is as large as what is written to it. */
static void put_each_size(KernelText *t, int buffer)
{
    char name[NAME];
    for (int k = 0; k < t->shared[buffer].n; k++) {
        buffer_name(buffer, k, name);
        buffer_printf(t->plan, "//@ buffer %s %s[%s]\n", buffers[buffer].type, name,
                      t->shared[buffer].size[k]);
    }
}

static void put_largest_size(KernelText *t, int buffer)
{
    int n = t->shared[buffer].n;
    if (n) buffer_printf(t->plan, "//@ buffer %s %s[", buffers[buffer].type, buffers[buffer].name);
    for (int k = 1; k < n; k++) buffer_puts(t->plan, "max(");
    for (int k = 0; k < n; k++)
        buffer_printf(t->plan, "%s%s%s", k ? ", " : "", t->shared[buffer].size[k], k ? ")" : "");
    if (n) buffer_puts(t->plan, "]\n");
}

const char *product_buffer(int buffer)
{
    return buffers[buffer].name;
}

void product_buffers(KernelText *t)
{
    for (int i = 0; i < TEXT_BUFFERS; i++)
        if (i < PART_SUMS)
            put_each_size(t, i);
        else
            put_largest_size(t, i);
}

/* Pieces of lines of at most SHORT_LINE terms are split by a warp each, and most blocks have none: at a size
 * that is far from the timed one a block for each is too much work. */
static void put_short_lines(ProductWriter *w, const char *side, const char *n)
{
    enum { SHORT_LINE = 128 };
    buffer_printf(
        &w->body,
        "    if (%s.depth <= %d) {\n"
        "        const long long own = blockIdx.x %% blocks * %d + threadIdx.x / 32;\n"
        "        if (own < %s)\n"
        "            split_along<32, 1>(%s, piece, own, parts + batch * %s * tiles_of(%s) * (2 * "
        "TERMS), factors + batch * %s * %d);\n"
        "        return;\n    }\n",
        side, SHORT_LINE * w->m->parts, THREADS / 32, n, side, n, side, n, w->m->parts);
}

/* The names of a factor's halves and of what these are multiplied by, in the plan. */
typedef struct {
    char parts[NAME], factors[NAME];
} SplitNames;

static int name_split(ProductWriter *w, int buffer, const char *size, char name[NAME])
{
    const int at = find_size(w, buffer, size);
    if (at < 0) return -1;
    buffer_name(buffer, at, name);
    return 0;
}

/* The buffers of a factor's halves, and the kernel that fills them. */
static int put_split_kernel(ProductWriter *w, ProductOperand x, SplitNames *names)
{
    const MatrixProduct *m = w->m;
    const char *side = x == PRODUCT_A ? "left" : "right";
    const ProductGroup group = x == PRODUCT_A ? PRODUCT_ROWS : PRODUCT_COLUMNS;
    const int along = product_is_along(m, x), threads = line_threads(m);
    SizeTable *sizes = w->k->nodes->sizes;
    char lines[SIZE_TEXT], batch[SIZE_TEXT], depth[SIZE_TEXT], grid[2 * SIZE_TEXT];
    const int alone = size_is(m->count[PRODUCT_BATCH], 1);
    if (size_text(sizes, m->count[group], lines, w->err) ||
        size_text(sizes, m->count[PRODUCT_BATCH], batch, w->err) ||
        size_text(sizes, m->count[PRODUCT_DEPTH], depth, w->err))
        return -1;
    Kernel *k = memory_alloc(sizeof *k);
    *k = (Kernel){.nodes = w->k->nodes};
    ProductWriter own = {.m = m, .k = k, .t = w->t, .err = w->err};
    const int a_block = along ? THREADS / threads : ACROSS;
    Buffer types;
    buffer_init(&own.body, 1 << 16);
    buffer_init(&types, 1 << 16);
    const char *n = product_size(&own, m->count[group]);
    buffer_printf(&own.body, "    const long long blocks = (%s + %d) / %d;\n", n, a_block - 1,
                  a_block);
    put_piece(&own, "blocks");
    put_factor(&own, side, x, group);
    if (along && threads == THREADS) put_short_lines(&own, side, n);
    buffer_printf(&own.body, "    const long long line = blockIdx.x %% blocks * %d%s;\n", a_block,
                  along && threads < THREADS ? " + threadIdx.x / 32" : "");
    char call[64];
    snprintf(call, sizeof call, along ? "split_along<%d, %d>" : "split_across", threads, 8);
    buffer_printf(&own.body,
                  "    %s(%s, piece, line, parts + batch * %s * tiles_of(%s) * (2 * TERMS), "
                  "factors + batch * %s * %d);\n",
                  call, side, n, side, n, m->parts);
    kernel_put_parameters(k, 1, node_count(&k->nodes->node[m->side[x].node]).at[0] >= 1 << 30,
                          &types);
    Buffer source;
    buffer_init(&source, 1 << 18);
    buffer_printf(&source,
                  "extern \"C\" __global__ void __launch_bounds__(%d) split_%s_@(%s, half "
                  "*__restrict__ parts, "
                  "float2 *__restrict__ factors)\n{\n%s}\n\n",
                  along ? THREADS : 1024, side, types.data, own.body.data);
    const int number = kernel_put_source(w->t, source.data);
    buffer_release(&source);
    char times[SIZE_TEXT + 8] = "", pieces[24] = "", size[4 * SIZE_TEXT];
    if (!alone) snprintf(times, sizeof times, " * (%s)", batch);
    if (m->parts > 1) snprintf(pieces, sizeof pieces, " * %d", m->parts);
    snprintf(grid, sizeof grid, "ceil_div(%s, %d)%s%s", lines, a_block, times, pieces);
    snprintf(size, sizeof size, "(%s)%s * ceil_div(%s, %d) * %d", lines, times, depth, TERMS,
             2 * TERMS);
    int rc = name_split(w, x == PRODUCT_A ? LEFT_PARTS : RIGHT_PARTS, size, names->parts);
    snprintf(size, sizeof size, "(%s)%s%s", lines, times, pieces);
    rc |= name_split(w, x == PRODUCT_A ? LEFT_FACTORS : RIGHT_FACTORS, size, names->factors);
    buffer_printf(w->t->plan, "//@ launch split_%s_%d<<<%s, %d>>>(", side, number, grid,
                  along ? THREADS : 1024);
    rc |= kernel_put_arguments(k, w->t->plan, w->err);
    buffer_printf(w->t->plan, ", %s, %s)\n", names->parts, names->factors);
    buffer_release(&own.body);
    buffer_release(&types);
    free(k);
    return rc || own.failed ? -1 : 0;
}

static int read_texts(ProductWriter *w, ProductTexts *t)
{
    SizeTable *sizes = w->k->nodes->sizes;
    return size_text(sizes, w->m->count[PRODUCT_ROWS], t->rows, w->err) ||
                   size_text(sizes, w->m->count[PRODUCT_COLUMNS], t->columns, w->err) ||
                   size_text(sizes, w->m->count[PRODUCT_BATCH], t->batch, w->err)
               ? -1
               : 0;
}

static int put_finish_launch(ProductWriter *w, const ProductTexts *t)
{
    char size[4 * SIZE_TEXT];
    if (w->m->parts == 1) return 0;
    snprintf(size, sizeof size, "(%s) * (%s) * (%s)", t->batch, t->rows, t->columns);
    buffer_printf(w->t->plan, "//@ launch finish_%d<<<ceil_div(%s, %d), %d>>>(", w->number, size,
                  THREADS, THREADS);
    if (kernel_put_arguments(w->k, w->t->plan, w->err)) return -1;
    buffer_puts(w->t->plan, ", part_sums)\n");
    snprintf(size, sizeof size, "(%s) * (%s) * (%s) * %d", t->batch, t->rows, t->columns,
             w->m->parts * w->join->n);
    return product_share(w, PART_SUMS, size);
}

/* Its factors are split before. */
static int is_packed(const MatrixProduct *m)
{
    return m->route == ROUTE_TENSOR && m->copy != COPY_LOAD;
}

static int put_launch(ProductWriter *w)
{
    const MatrixProduct *m = w->m;
    const int few = m->route == ROUTE_ROWS, packed = is_packed(m);
    ProductTexts t;
    SplitNames left, right;
    Buffer *p = w->t->plan;
    if (read_texts(w, &t) || (packed && (put_split_kernel(w, PRODUCT_A, &left) ||
                                         put_split_kernel(w, PRODUCT_B, &right))))
        return -1;
    buffer_printf(p, "//@ launch kernel_%d<<<ceil_div(%s, %d) * ceil_div(%s, %d)", w->number,
                  t.rows, few ? FEW_ROWS : SIDE, t.columns, few ? FEW_COLUMNS : SIDE);
    if (!size_is(m->count[PRODUCT_BATCH], 1)) buffer_printf(p, " * (%s)", t.batch);
    if (m->parts > 1) buffer_printf(p, " * %d", m->parts);
    buffer_printf(p, ", %d, %d>>>(", THREADS, few ? FEW_SHARED : packed ? SHARED : DIRECT_SHARED);
    if (kernel_put_arguments(w->k, p, w->err)) return -1;
    if (m->parts > 1) buffer_puts(p, ", part_sums");
    if (packed)
        buffer_printf(p, ", %s, %s, %s, %s", left.parts, right.parts, left.factors, right.factors);
    buffer_puts(p, ")\n");
    return put_finish_launch(w, &t);
}

void product_help(KernelText *t, int bit, const char *file, const char *part)
{
    if (!(t->helpers >> bit & 1)) part_put(t->source, file, part);
    t->helpers |= 1u << bit;
}

void product_put_halves(KernelText *t)
{
    product_help(t, HELP_HALVES, generate_product, "halves");
}

void product_put_stages(KernelText *t)
{
    product_help(t, HELP_STAGES, generate_product, "stages");
}

int product_is_wide(const ProductWriter *w)
{
    int wide = kernel_is_wide(w->k);
    for (int i = 0; i < w->join->n; i++)
        for (int x = 0; x < PRODUCT_OPERANDS; x++)
            if (x != PRODUCT_C && w->join->m[i].side[x].node >= 0)
                wide |= node_count(&w->k->nodes->node[w->join->m[i].side[x].node]).at[0] >= 1 << 30;
    return wide;
}

/* Adds up the parts of a sum. */
static void put_finish(ProductWriter *w)
{
    const ProductNames n = names_of(w);
    const int pair = w->join->n > 1;
    product_put_value(w, n.rows);
    buffer_printf(&w->body,
                  "    const long long plane = (long long)%s * %s * %s,\n"
                  "                    at = blockIdx.x * %dll + threadIdx.x;\n"
                  "    if (at >= plane) return;\n    float first = 0%s;\n#pragma unroll\n"
                  "    for (int i = 0; i < %d; i++) first += part_sums[i * plane + at];\n",
                  n.batch, n.rows, n.columns, THREADS, pair ? ", second = 0" : "", w->m->parts);
    if (pair)
        buffer_printf(
            &w->body,
            "#pragma unroll\n    for (int i = 0; i < %d; i++) second += part_sums[(i + %d) * "
            "plane + at];\n",
            w->m->parts, w->m->parts);
    buffer_printf(&w->body,
                  "    const long long line = at / %s;\n"
                  "    %s[at] = value(%sline / %s, line %% %s, at - line * %s, first%s);\n",
                  n.columns, w->out, is_half_product(w->m) ? "HalfOf<-1>(), " : "", n.rows, n.rows,
                  n.columns, pair ? ", second" : "");
}

/* How a kernel is written. more: its own parameters, behind those of its graph. */
typedef struct {
    const char *bounds, *more;
    void (*body)(ProductWriter *w);
    int (*launch)(ProductWriter *w);
} ProductForm;

static void put_form(Buffer *to, const char *bounds, const char *name, const char *parameters,
                     const char *body)
{
    buffer_printf(to, "extern \"C\" __global__ void __launch_bounds__(%s) %s_@(%s)\n{\n%s}\n\n",
                  bounds, name, parameters, body);
}

/* The kernel, and the one that adds up its parts. In deep networks many are equal. */
static int write_form(ProductWriter *w, const ProductForm *form)
{
    const int parts = w->m->parts > 1;
    ProductWriter finish = *w;
    Buffer types, own, source;
    buffer_init(&types, 1 << 16);
    buffer_init(&own, 1 << 17);
    buffer_init(&source, 1 << 21);
    buffer_init(&finish.body, 1 << 20);
    form->body(w);
    if (parts) put_finish(&finish);
    kernel_put_parameters(w->k, 1, product_is_wide(w), &types);
    buffer_printf(&own, "%s%s%s", types.data, parts ? ", float *__restrict__ part_sums" : "",
                  form->more);
    put_form(&source, form->bounds, "kernel", own.data, w->body.data);
    if (parts) {
        buffer_puts(&types, ", const float *__restrict__ part_sums");
        put_form(&source, "256", "finish", types.data, finish.body.data);
    }
    w->failed |= finish.failed;
    if (!w->failed) {
        w->number = kernel_put_source(w->t, source.data);
        if (form->launch(w)) w->failed = 1;
    }
    buffer_release(&finish.body);
    buffer_release(&source);
    buffer_release(&own);
    buffer_release(&types);
    return w->failed ? -1 : 0;
}

static int write_floats(ProductWriter *w)
{
    const int few = w->m->route == ROUTE_ROWS;
    product_help(w->t, HELP_FACTOR, generate_product, "factor");
    if (!few) product_put_halves(w->t);
    product_help(w->t, few ? HELP_FEW : HELP_PRODUCT, generate_product, few ? "few" : "product");
    if (!few && !is_packed(w->m)) product_help(w->t, HELP_DIRECT, generate_product, "direct");
    return write_form(
        w, &(ProductForm){"256", is_packed(w->m) ? split_parameters : "", put_body, put_launch});
}

/* ---- half types ---- */

/* Of product.cu. HALF_BLOCKS: each has a multiprocessor for itself; twice as many where each of them has
 * MANY_ITEMS tiles even so. */
enum {
    HALF_THREADS = 384,
    HALF_ROWS = 128,
    HALF_LINE = 128,
    HALF_STAGING = 8 * 16 * 64 * 2,
    HALF_ONES = 8 * HALF_LINE,
    HALF_BIAS = 2 * 16 * 2, /* of a column, for both warp groups */
    HALF_BLOCKS = 132,
    MANY_ITEMS = 16
};

static int is_half(Dtype d)
{
    return d == DTYPE_F16 || d == DTYPE_BF16;
}

static const char *type_of(const ProductWriter *w)
{
    return dtype_ctype(w->m->dtype);
}

/* Columns of the result in a tile. */
static int tile_columns(const ProductWriter *w)
{
    return w->m->tile / w->join->n;
}

/* ---- the instruction ---- */

static void put_numbers(Buffer *to, const char *form, int n)
{
    for (int i = 0; i < n; i++) {
        if (i && i % 16 == 0) buffer_puts(to, strstr(form, "%%") ? "\"\n        \"" : "\n        ");
        buffer_printf(to, form, i);
        if (i + 1 < n) buffer_puts(to, ", ");
    }
}

void product_put_multiply(Buffer *to, const char *type, int n)
{
    const int sums = n / 2, halves = strcmp(type, "tf32") != 0;
    if (halves)
        buffer_printf(to,
                      "template <bool AK, bool BK>\n__device__ __forceinline__ void "
                      "half_multiply(%s, ",
                      strcmp(type, "f16") ? "__nv_bfloat16" : "__half");
    else
        buffer_puts(to, "__device__ __forceinline__ void convolve_multiply(");
    buffer_printf(to,
                  "float (&d)[%d], unsigned long long a, unsigned long long b, int add)\n{\n"
                  "    asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, %%%d, 0;\\n\"\n"
                  "        \"wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s {\"\n        \"",
                  sums, sums + 2, n, halves ? 16 : 8, type, type);
    put_numbers(to, "%%%d", sums);
    buffer_printf(to, "}, \"\n        \"%%%d, %%%d, p, 1, 1", sums, sums + 1);
    if (halves) buffer_printf(to, ", %%%d, %%%d", sums + 3, sums + 4);
    buffer_puts(to, ";\\n}\"\n        : ");
    put_numbers(to, "\"+f\"(d[%d])", sums);
    buffer_printf(to, "\n        : \"l\"(a), \"l\"(b), \"r\"(add)%s);\n}\n\n",
                  halves ? ", \"n\"(!AK), \"n\"(!BK)" : "");
}

static void put_multiply(ProductWriter *w)
{
    const int bf16 = w->m->dtype == DTYPE_BF16, bit = w->m->tile / 16 - 1 + 16 * bf16;
    if (w->t->multiply >> bit & 1) return;
    w->t->multiply |= 1u << bit;
    product_put_multiply(w->t->source, bf16 ? "bf16" : "f16", w->m->tile);
}

/* ---- the kernel ---- */

static void put_half_factor(ProductWriter *w, const char *name, const MatrixProduct *m,
                            ProductOperand x)
{
    static const char *const none[PRODUCT_GROUPS] = {0};
    const ProductGroup lines = x == PRODUCT_A ? PRODUCT_ROWS : PRODUCT_COLUMNS;
    const ProductTensor *t = &m->side[x];
    buffer_printf(&w->body, "    const HalfFactor<%s> %s = {%s", type_of(w), name,
                  kernel_tensor(w->k, t->node, 0));
    product_put_place(w, t, none);
    buffer_printf(&w->body, ", %s", product_size(w, m->count[lines]));
    buffer_printf(&w->body, ", %s", product_size(w, m->count[PRODUCT_DEPTH]));
    buffer_printf(&w->body, ", %s",
                  product_size(w, t->step[product_is_along(m, x) ? lines : PRODUCT_DEPTH]));
    buffer_printf(&w->body, ", %s};\n", product_size(w, t->step[PRODUCT_BATCH]));
}

/* ---- tensor maps ---- */

static const char *const map_names[] = {"left", "right", "other"};

static int map_count(const ProductWriter *w)
{
    return w->m->copy != COPY_TENSOR ? 0 : w->join->n > 1 ? 3 : 2;
}

/* Each of a batch has a factor of its own. */
static int has_own(const MatrixProduct *m, ProductOperand x)
{
    return !size_is(m->count[PRODUCT_BATCH], 1) && !size_is(m->side[x].step[PRODUCT_BATCH], 0);
}

/* A plan's text. */
typedef struct {
    char text[SIZE_TEXT];
} Text;

static int put_plan_size(ProductWriter *w, Size s, Text *out)
{
    return size_text(w->k->nodes->sizes, s, out->text, w->err);
}

/* How many lines there are, in a map whose lines are `step` apart. A map's steps are multiples of 8 elements;
 * where a step is not, the kernel does not use its maps, which only have to be valid: their step is less, but
 * for the 1 line of a step below 8. */
static int put_map_count(ProductWriter *w, Size count, Size step)
{
    Text n, by;
    if (put_plan_size(w, count, &n) || put_plan_size(w, step, &by)) return -1;
    if (size_divides(size_number(8), step) && size_constant(step))
        buffer_printf(w->t->plan, "%s", n.text);
    else
        buffer_printf(w->t->plan, "max(1, min(%s, (%s) / 8 * (%s)))", n.text, by.text, n.text);
    return 0;
}

static int put_map_step(ProductWriter *w, Size step)
{
    Text by;
    if (put_plan_size(w, step, &by)) return -1;
    if (size_divides(size_number(8), step) && size_constant(step))
        buffer_printf(w->t->plan, "%s", by.text);
    else
        buffer_printf(w->t->plan, "max(8, (%s) / 8 * 8)", by.text);
    return 0;
}

/* A factor as half_boxes copies it: [batch,] lines, terms, or [batch,] terms, lines. */
static int put_map(ProductWriter *w, const char *name, const MatrixProduct *m, ProductOperand x)
{
    const int along = product_is_along(m, x), each = has_own(m, x);
    const ProductGroup lines = x == PRODUCT_A ? PRODUCT_ROWS : PRODUCT_COLUMNS,
                       outer = along ? lines : PRODUCT_DEPTH, inner = along ? PRODUCT_DEPTH : lines;
    const ProductTensor *t = &m->side[x];
    Buffer *to = w->t->plan;
    Text n;
    int rc = 0;
    buffer_printf(to, "//@ map %s_map_%d = tensor(%s", name, w->t->number,
                  w->k->nodes->node[t->node].name);
    if (!size_is(t->offset, 0)) {
        rc |= put_plan_size(w, t->offset, &n);
        buffer_printf(to, " + (%s) / 8 * 8", n.text);
    }
    buffer_puts(to, ", size=[");
    if (each) rc |= put_map_count(w, m->count[PRODUCT_BATCH], t->step[PRODUCT_BATCH]);
    if (each) buffer_puts(to, ", ");
    rc |= put_map_count(w, m->count[outer], t->step[outer]);
    rc |= put_plan_size(w, m->count[inner], &n);
    buffer_printf(to, ", %s], stride=[", n.text);
    if (each) rc |= put_map_step(w, t->step[PRODUCT_BATCH]);
    if (each) buffer_puts(to, ", ");
    rc |= put_map_step(w, t->step[outer]);
    buffer_printf(to, ", 1], box=[%s%d, 64], swizzle=128)\n", each ? "1, " : "",
                  !along           ? 64
                  : x == PRODUCT_A ? HALF_ROWS
                                   : tile_columns(w));
    return rc ? -1 : 0;
}

static int put_maps(ProductWriter *w)
{
    const int n = map_count(w);
    int rc = 0;
    for (int i = 0; i < n; i++)
        rc |= put_map(w, map_names[i], &w->join->m[i == 2], i ? PRODUCT_B : PRODUCT_A);
    return rc ? -1 : 0;
}

/* What joins the sums and is as large as the result comes to L2 before it is read. */
static void put_ahead(ProductWriter *w)
{
    for (int i = 0; i < w->k->n && w->m->parts == 1; i++)
        if (i != w->join->step[0] && (w->join->n == 1 || i != w->join->step[1]) &&
            kernel_reads_pairs(w->k, i) == PAIRS_OF_ALL)
            buffer_printf(&w->body, "            half_ahead<%d>(%s, work, place, k);\n",
                          tile_columns(w), kernel_tensor(w->k, w->k->step[i].node, 0));
}

static void put_half_bring(ProductWriter *w)
{
    const MatrixProduct *m = w->m;
    const int n = map_count(w), a = has_own(m, PRODUCT_A), b = has_own(m, PRODUCT_B);
    if (!n) {
        buffer_puts(&w->body, "    const bool mapped = false;\n"
                              "    const auto bring = [](const HalfRoom &) {};\n");
        return;
    }
    buffer_puts(&w->body, "    const bool mapped = ");
    for (int i = 0; i < n; i++)
        buffer_printf(&w->body, "%shalf_mapped<%s, %d>(%s)", i ? " && " : "", dtype_ctype(m->dtype),
                      i ? b : a, map_names[i]);
    buffer_printf(&w->body,
                  ";\n    const auto bring = [&](const HalfRoom &room) {\n"
                  "        half_bring_boxes<%d, %d, %d, %d, %d, %d, %d>(left_map, right_map, "
                  "%s_map, work, room,\n"
                  "            [&](const HalfPlace &place, long long k) {\n",
                  product_is_along(m, PRODUCT_A), product_is_along(m, PRODUCT_B), a, b, m->tile,
                  w->join->n > 1, m->stages, map_names[n - 1]);
    put_ahead(w);
    buffer_puts(&w->body, "        });\n    };\n");
}

/* ---- what becomes of sums ---- */

/* Two neighbours of other types than half ones become results. */
static void put_half_pairs(ProductWriter *w, const ProductNames *n)
{
    const char *type = dtype_ctype(w->k->nodes->node[w->k->root[0].node].dtype),
               *x = w->join->n > 1 ? "first[i], second[i]" : "first[i]";
    buffer_printf(&w->body,
                  "            %s *at = %s + (piece.batch * %s + row) * %s + column;\n"
                  "#pragma unroll\n            for (int i = 0; i < 2; i++)\n"
                  "                if (column + i < %s) at[i] = value(HalfOf<-1>(), piece.batch, "
                  "row, column + "
                  "i, %s);\n",
                  type, w->out, n->rows, n->columns, n->columns, x);
}

/* Two neighbours become parts of sums. */
static void put_half_parts(ProductWriter *w, const ProductNames *n)
{
    put_part(w, n, "part");
    put_pair(w, n->columns, "first[0]", "first[1]");
    if (w->join->n == 1) return;
    buffer_printf(&w->body, "            at += (long long)%s * %s * %s * %d;\n", n->batch, n->rows,
                  n->columns, w->m->parts);
    put_pair(w, n->columns, "second[0]", "second[1]");
}

/* Whether tensors begin at vectors. */
static void put_half_even(ProductWriter *w)
{
    buffer_puts(&w->body, "        const bool even = ((0");
    for (int i = 0; i < w->k->n_tensors; i++)
        buffer_printf(&w->body, " | (size_t)%s", w->k->tensor[i].name);
    buffer_puts(&w->body, ") & 15) == 0;\n");
}

static void put_half_results(ProductWriter *w, const ProductNames *n)
{
    const int pair = w->join->n > 1;
    if (w->m->parts == 1 && is_half(w->k->nodes->node[w->k->root[0].node].dtype)) {
        put_half_even(w);
        buffer_printf(&w->body,
                      "        half_results<%d, %d>(d, own, place, work, %s, even, value);\n",
                      w->m->tile, pair, w->out);
        return;
    }
    buffer_printf(&w->body,
                  "        half_each<%d, %d>(d, place, [&](const HalfPlace &piece, long long row, "
                  "long long column,\n            const float *first, const float *second) {\n"
                  "            if (row >= %s || column >= %s) return;\n",
                  w->m->tile, pair, n->rows, n->columns);
    if (w->m->parts == 1)
        put_half_pairs(w, n);
    else
        put_half_parts(w, n);
    buffer_puts(&w->body, "        });\n");
}

static void put_half_body(ProductWriter *w)
{
    const MatrixProduct *m = w->m, *other = &w->join->m[w->join->n - 1];
    const ProductNames n = names_of(w);
    const int bias = begins_with_bias(w->join);
    put_half_factor(w, "left", m, PRODUCT_A);
    put_half_factor(w, "right", m, PRODUCT_B);
    put_half_factor(w, "other", other, PRODUCT_B);
    const Band sums = product_bands(w->k, w->join).sums;
    buffer_printf(&w->body, "    const HalfWork work = {%s, %s, %s, %s, %d, %lld, %lld};\n", n.rows,
                  n.columns, product_size(w, m->count[PRODUCT_DEPTH]), n.batch, m->parts,
                  (long long)sums.least, (long long)sums.most);
    if (w->m->parts == 1) product_put_value(w, n.rows);
    put_half_bring(w);
    buffer_printf(
        &w->body,
        "    half_product<%s, %d, %d, %d, %d, %d, %d, %d>(left, right, other, work, mapped, "
        "bring, %s,\n        [&](const float (&d)[%d], const HalfPlace &place, unsigned "
        "own) {\n",
        type_of(w), product_is_along(m, PRODUCT_A), product_is_along(m, PRODUCT_B), m->tile,
        w->join->n > 1, m->stages, bias, product_turns(m, w->join->n),
        bias ? kernel_tensor(w->k, m->side[PRODUCT_D].node, 0) : "nullptr", m->tile / 2);
    put_half_results(w, &n);
    buffer_puts(&w->body, "    });\n");
}

/* ---- launches ---- */

void product_put_launch(ProductWriter *w, const char *items, int threads, int shared)
{
    buffer_printf(w->t->plan, "//@ launch kernel_%d<<<min(%s, %d * max(1, (%s) / %d)), %d, %d>>>(",
                  w->number, items, HALF_BLOCKS, items, HALF_BLOCKS * MANY_ITEMS, threads, shared);
}

static int put_half_launch(ProductWriter *w)
{
    const MatrixProduct *m = w->m;
    const int shared = m->stages * HALF_LINE * (HALF_ROWS + m->tile) + HALF_STAGING + 1024 +
                       (begins_with_bias(w->join) ? HALF_ONES + HALF_BIAS * m->tile : 0);
    ProductTexts t;
    char size[4 * SIZE_TEXT];
    if (read_texts(w, &t)) return -1;
    snprintf(size, sizeof size, "ceil_div(%s, %d) * ceil_div(%s, %d) * (%s) * %d", t.rows,
             HALF_ROWS, t.columns, tile_columns(w), t.batch, m->parts);
    if (put_maps(w)) return -1;
    product_put_launch(w, size, HALF_THREADS, shared);
    if (kernel_put_arguments(w->k, w->t->plan, w->err)) return -1;
    if (w->m->parts > 1) buffer_puts(w->t->plan, ", part_sums");
    for (int i = 0; i < map_count(w); i++)
        buffer_printf(w->t->plan, ", %s_map_%d", map_names[i], w->t->number);
    buffer_puts(w->t->plan, ")\n");
    return put_finish_launch(w, &t);
}

static int write_halves(ProductWriter *w)
{
    char more[256] = "";
    for (int i = 0; i < map_count(w); i++)
        snprintf(more + strlen(more), sizeof more - strlen(more),
                 ", const __grid_constant__ CUtensorMap %s_map", map_names[i]);
    put_multiply(w); /* its name is known before the part that uses it */
    product_put_stages(w->t);
    product_help(w->t, HELP_HALF, generate_product, "half");
    if (map_count(w)) product_help(w->t, HELP_HALF_MAPS, generate_product, "half_maps");
    return write_form(w, &(ProductForm){"384, 1", more, put_half_body, put_half_launch});
}

/* ---- any product ---- */

int product_write(const ProductJoin *j, Kernel *k, KernelText *t, Error *err)
{
    ProductWriter w = {.join = j, .m = &j->m[0], .k = k, .t = t, .err = err};
    buffer_init(&w.body, 1 << 20);
    w.out = kernel_tensor(k, (j->after ? j->after : k)->root[0].node, 1);
    for (int i = 0; i < k->axes.n; i++)
        k->rows |= (unsigned)size_divides(j->m[0].count[PRODUCT_COLUMNS], k->root[0].at.by[i]) << i;
    kernel_merge(k); /* rows and columns apart */
    int rc = j->m[0].convolution == DEPTHWISE ? depthwise_write(&w)
             : j->m[0].convolution            ? convolve_write(&w)
             : j->m[0].dtype == DTYPE_F32     ? write_floats(&w)
                                              : write_halves(&w);
    buffer_release(&w.body);
    return rc;
}
