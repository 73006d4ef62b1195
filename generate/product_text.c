/* The text of a product's kernel and of its launch. The loops are in product.cu. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/memory.h"
#include "base/part.h"
#include "generate/convolve.h"
#include "generate/product_text.h"

EMBED(generate_product, "generate/product.cu")

/* Of product.cu. */
enum { SIDE = 128, THREADS = 256, SHARED = 3 * 4 * SIDE * 64 * 2 + 1024, TERMS = 64, ACROSS = 32 };
enum { FEW_ROWS = 16, FEW_COLUMNS = 64, FEW_SHARED = 5 * (FEW_ROWS + FEW_COLUMNS) * 128 * 4 };

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

/* A sum with its addend. */
static void put_sum(ProductWriter *w, const MatrixProduct *m, const char *suffix)
{
    static const char *const index[PRODUCT_GROUPS] = {
        [PRODUCT_BATCH] = "batch", [PRODUCT_ROWS] = "row", [PRODUCT_COLUMNS] = "column"};
    const ProductTensor *d = &m->side[PRODUCT_D];
    char factor[40] = "";
    if (m->alpha != 1) snprintf(factor, sizeof factor, "(float)%.17g * ", m->alpha);
    buffer_printf(&w->body, "        const float sum%s = %stotal%s", suffix, factor, suffix);
    if (d->node >= 0) {
        buffer_puts(&w->body, " + ");
        if (m->beta != 1) buffer_printf(&w->body, "(float)%.17g * ", m->beta);
        buffer_printf(&w->body, "(float)%s[0", kernel_tensor(w->k, d->node, 0));
        product_put_place(w, d, index);
        buffer_puts(&w->body, "]");
    }
    buffer_puts(&w->body, ";\n");
}

/* The kernel's own tensors, behind those of its graph. */
static void put_split_parameters(Buffer *to)
{
    buffer_printf(
        to, ", const half *__restrict__ left_parts, const half *__restrict__ right_parts, "
            "const float2 *__restrict__ left_factors, const float2 *__restrict__ right_factors");
}

static void put_split(ProductWriter *w, const char *name, const char *side, ProductGroup lines)
{
    char n[32];
    snprintf(n, sizeof n, "%s", product_size(w, w->m->count[lines]));
    buffer_printf(&w->body,
                  "    const Split %s = {%s_parts + batch * %s * tiles_of(%s) * (2 * TERMS), "
                  "%s_factors + batch * %s};\n",
                  name, side, n, side, side, n);
}

void product_put_value(ProductWriter *w, const char *rows)
{
    const ProductJoin *j = w->join;
    KernelElement e = {.n_given = j->n, .width = w->m->count[PRODUCT_COLUMNS]};
    buffer_printf(&w->body,
                  "    const auto value = [&](long long batch, long long row, long long column, "
                  "float total%s) {\n        const long long line = batch * %s + row;\n",
                  j->n > 1 ? ", float total_2" : "", rows);
    for (int i = 0; i < j->n; i++) {
        put_sum(w, &j->m[i], i ? "_2" : "");
        e.given[i] = j->step[i];
    }
    if (kernel_put_element(w->k, w->t, &e, &w->body, w->err)) w->failed = 1;
    buffer_puts(&w->body, "    };\n");
}

static void put_halves(ProductWriter *w, const char *rows, const char *columns)
{
    const MatrixProduct *m = w->m;
    const char *type = dtype_ctype(w->k->nodes->node[w->k->root[0].node].dtype);
    put_split(w, "left_split", "left", PRODUCT_ROWS);
    put_split(w, "right_split", "right", PRODUCT_COLUMNS);
    buffer_printf(
        &w->body,
        "    product<%d, %d>(left, right, left_split, right_split, blockIdx.x %% tiles,\n"
        "        [&](long long row, long long column, float first, float second) {\n"
        "        if (row >= %s || column >= %s) return;\n"
        "        %s *at = %s + (batch * %s + row) * %s + column;\n"
        "        if (%s %% 2 == 0) {\n"
        "            *(Pack<%s, 2> *)at = {value(batch, row, column, first), value(batch, row, "
        "column + 1, second)};\n"
        "        } else {\n"
        "            at[0] = value(batch, row, column, first);\n"
        "            if (column + 1 < %s) at[1] = value(batch, row, column + 1, second);\n"
        "        }\n    });\n",
        product_is_along(m, PRODUCT_A), product_is_along(m, PRODUCT_B), rows, columns, type, w->out,
        rows, columns, columns, type, columns);
}

static void put_rows(ProductWriter *w, const char *rows, const char *columns)
{
    buffer_printf(
        &w->body,
        "    const long long tile = blockIdx.x %% tiles, across = (%s + %d) / %d;\n"
        "    few_rows(left, right, tile / across * %d, tile %% across * %d,\n"
        "        [&](long long row, long long column, float total) {\n"
        "        if (row < %s && column < %s)\n"
        "            %s[(batch * %s + row) * %s + column] = value(batch, row, column, total);\n"
        "    });\n",
        columns, FEW_COLUMNS - 1, FEW_COLUMNS, FEW_ROWS, FEW_COLUMNS, rows, columns, w->out, rows,
        columns);
}

static void put_body(ProductWriter *w)
{
    const MatrixProduct *m = w->m;
    const int few = m->route == ROUTE_ROWS, down = few ? FEW_ROWS : SIDE,
              across = few ? FEW_COLUMNS : SIDE;
    char rows[32], columns[32];
    snprintf(rows, sizeof rows, "%s", product_size(w, m->count[PRODUCT_ROWS]));
    snprintf(columns, sizeof columns, "%s", product_size(w, m->count[PRODUCT_COLUMNS]));
    buffer_printf(&w->body,
                  "    const long long tiles = ((%s + %d) / %d) * (long long)((%s + %d) / %d);\n"
                  "    const long long batch = blockIdx.x / tiles;\n",
                  rows, down - 1, down, columns, across - 1, across);
    put_factor(w, "left", PRODUCT_A, PRODUCT_ROWS);
    put_factor(w, "right", PRODUCT_B, PRODUCT_COLUMNS);
    product_put_value(w, rows);
    if (few)
        put_rows(w, rows, columns);
    else
        put_halves(w, rows, columns);
}

/* ---- factors as halves ---- */

/* Threads of a line whose elements lie in one piece. */
static int line_threads(const MatrixProduct *m)
{
    return m->count[PRODUCT_DEPTH].at[0] > 1024 ? THREADS : 32;
}

int product_share(ProductWriter *w, int buffer, const char *size)
{
    KernelText *t = w->t;
    int at = 0;
    while (at < t->shared[buffer].n && strcmp(t->shared[buffer].size[at], size)) at++;
    if (at < t->shared[buffer].n) return 0;
    if (at == TEXT_SIZES || strlen(size) >= SIZE_TEXT)
        return error_set(w->err, ERROR_UNSUPPORTED, "products of more than %d sizes", TEXT_SIZES);
    snprintf(t->shared[buffer].size[t->shared[buffer].n++], SIZE_TEXT, "%s", size);
    return 0;
}

void product_buffers(KernelText *t)
{
    static const char *const names[TEXT_BUFFERS] = {
        [LEFT_PARTS] = "half left_parts",         [LEFT_FACTORS] = "float2 left_factors",
        [RIGHT_PARTS] = "half right_parts",       [RIGHT_FACTORS] = "float2 right_factors",
        [PART_SUMS] = "float part_sums",          [PACKED_INPUT] = "float packed_input",
        [PACKED_FILTERS] = "float packed_filters"};
    for (int i = 0; i < TEXT_BUFFERS; i++) {
        int n = t->shared[i].n;
        if (n) buffer_printf(t->plan, "//@ buffer %s[", names[i]);
        for (int k = 1; k < n; k++) buffer_puts(t->plan, "max(");
        for (int k = 0; k < n; k++)
            buffer_printf(t->plan, "%s%s%s", k ? ", " : "", t->shared[i].size[k], k ? ")" : "");
        if (n) buffer_puts(t->plan, "]\n");
    }
}

/* The buffers of a factor's halves, and the kernel that fills them. */
static int put_split_kernel(ProductWriter *w, ProductOperand x)
{
    const MatrixProduct *m = w->m;
    const char *side = x == PRODUCT_A ? "left" : "right";
    const ProductGroup group = x == PRODUCT_A ? PRODUCT_ROWS : PRODUCT_COLUMNS;
    const int along = product_is_along(m, x), threads = line_threads(m), number = w->t->number;
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
    buffer_printf(&own.body,
                  "    const long long blocks = (%s + %d) / %d, batch = blockIdx.x / blocks;\n", n,
                  a_block - 1, a_block);
    put_factor(&own, side, x, group);
    buffer_printf(&own.body, "    const long long line = blockIdx.x %% blocks * %d%s;\n", a_block,
                  along && threads < THREADS ? " + threadIdx.x / 32" : "");
    char call[64];
    snprintf(call, sizeof call, along ? "split_along<%d, %d>" : "split_across", threads, 8);
    buffer_printf(&own.body,
                  "    %s(%s, line, parts + batch * %s * tiles_of(%s) * (2 * TERMS), factors + "
                  "batch * %s);\n",
                  call, side, n, side, n);
    kernel_put_parameters(k, 1, node_count(&k->nodes->node[m->side[x].node]).at[0] >= 1 << 30,
                          &types);
    buffer_printf(w->t->source,
                  "extern \"C\" __global__ void __launch_bounds__(%d) split_%s_%d(%s, half "
                  "*__restrict__ parts, "
                  "float2 *__restrict__ factors)\n{\n%s}\n\n",
                  along ? THREADS : 1024, side, number, types.data, own.body.data);
    char times[SIZE_TEXT + 8] = "", size[4 * SIZE_TEXT];
    if (!alone) snprintf(times, sizeof times, " * (%s)", batch);
    snprintf(grid, sizeof grid, "ceil_div(%s, %d)%s", lines, a_block, times);
    snprintf(size, sizeof size, "(%s)%s * ceil_div(%s, %d) * %d", lines, times, depth, TERMS,
             2 * TERMS);
    int rc = product_share(w, x == PRODUCT_A ? LEFT_PARTS : RIGHT_PARTS, size);
    snprintf(size, sizeof size, "(%s)%s", lines, times);
    rc |= product_share(w, x == PRODUCT_A ? LEFT_FACTORS : RIGHT_FACTORS, size);
    buffer_printf(w->t->plan, "//@ launch split_%s_%d<<<%s, %d>>>(", side, number, grid,
                  along ? THREADS : 1024);
    rc |= kernel_put_arguments(k, w->t->plan, w->err);
    buffer_printf(w->t->plan, ", %s_parts, %s_factors)\n", side, side);
    buffer_release(&own.body);
    buffer_release(&types);
    free(k);
    return rc || own.failed ? -1 : 0;
}

static int put_launch(ProductWriter *w)
{
    const MatrixProduct *m = w->m;
    const int few = m->route == ROUTE_ROWS;
    char rows[SIZE_TEXT], columns[SIZE_TEXT], batch[SIZE_TEXT];
    SizeTable *sizes = w->k->nodes->sizes;
    Buffer *p = w->t->plan;
    if (size_text(sizes, m->count[PRODUCT_ROWS], rows, w->err) ||
        size_text(sizes, m->count[PRODUCT_COLUMNS], columns, w->err) ||
        size_text(sizes, m->count[PRODUCT_BATCH], batch, w->err))
        return -1;
    buffer_printf(p, "//@ launch kernel_%d<<<ceil_div(%s, %d) * ceil_div(%s, %d)", w->t->number,
                  rows, few ? FEW_ROWS : SIDE, columns, few ? FEW_COLUMNS : SIDE);
    if (!size_is(m->count[PRODUCT_BATCH], 1)) buffer_printf(p, " * (%s)", batch);
    buffer_printf(p, ", %d, %d>>>(", THREADS, few ? FEW_SHARED : SHARED);
    if (kernel_put_arguments(w->k, p, w->err)) return -1;
    buffer_puts(p, few ? ")\n" : ", left_parts, right_parts, left_factors, right_factors)\n");
    return 0;
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

int product_is_wide(const ProductWriter *w)
{
    int wide = kernel_is_wide(w->k);
    for (int i = 0; i < w->join->n; i++)
        for (int x = 0; x < PRODUCT_OPERANDS; x++)
            if (x != PRODUCT_C && w->join->m[i].side[x].node >= 0)
                wide |= node_count(&w->k->nodes->node[w->join->m[i].side[x].node]).at[0] >= 1 << 30;
    return wide;
}

static int write_floats(ProductWriter *w)
{
    const int few = w->m->route == ROUTE_ROWS;
    Buffer types;
    buffer_init(&types, 1 << 16);
    product_help(w->t, HELP_FACTOR, generate_product, "factor");
    if (!few) product_put_halves(w->t);
    product_help(w->t, few ? HELP_FEW : HELP_PRODUCT, generate_product, few ? "few" : "product");
    put_body(w);
    kernel_put_parameters(w->k, 1, product_is_wide(w), &types);
    if (!few) put_split_parameters(&types);
    if ((!few && (put_split_kernel(w, PRODUCT_A) || put_split_kernel(w, PRODUCT_B))) ||
        put_launch(w))
        w->failed = 1;
    if (!w->failed)
        buffer_printf(
            w->t->source,
            "extern \"C\" __global__ void __launch_bounds__(%d) kernel_%d(%s)\n{\n%s}\n\n", THREADS,
            w->t->number, types.data, w->body.data);
    buffer_release(&types);
    return w->failed ? -1 : 0;
}

int product_write(const ProductJoin *j, Kernel *k, KernelText *t, Error *err)
{
    ProductWriter w = {.join = j, .m = &j->m[0], .k = k, .t = t, .err = err};
    buffer_init(&w.body, 1 << 20);
    w.out = kernel_tensor(k, k->root[0].node, 1);
    int rc = j->m[0].convolution          ? convolve_write(&w)
             : j->m[0].dtype == DTYPE_F32 ? write_floats(&w)
                                          : product_half_write(&w);
    buffer_release(&w.body);
    return rc;
}
