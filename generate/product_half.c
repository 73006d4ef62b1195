/* The text of a product of half types, and of two that share their left factor. The loops are in
 * product_half.cu. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "generate/product_text.h"

EMBED(generate_product_half, "generate/product_half.cu")

/* Of product_half.cu; SMS: blocks, each of which has a multiprocessor for itself. */
enum { ROWS = 128, LINE = 128, THREADS = 256, STAGING = 8 * 16 * 64 * 4, SMS = 132 };
enum { FINISH_THREADS = 256, MOST_ITEMS = 4 };

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
    const int bf16 = w->m->dtype == DTYPE_BF16, bit = HELP_MULTIPLY + w->m->tile / 64 + 4 * bf16;
    if (w->t->helpers >> bit & 1) return;
    w->t->helpers |= 1u << bit;
    product_put_multiply(w->t->source, bf16 ? "bf16" : "f16", w->m->tile);
}

/* ---- the kernel ---- */

static void put_factor(ProductWriter *w, const char *name, const MatrixProduct *m, ProductOperand x)
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

typedef struct {
    char rows[32], columns[32], batch[32];
} Names;

static Names names_of(ProductWriter *w)
{
    Names n;
    snprintf(n.rows, sizeof n.rows, "%s", product_size(w, w->m->count[PRODUCT_ROWS]));
    snprintf(n.columns, sizeof n.columns, "%s", product_size(w, w->m->count[PRODUCT_COLUMNS]));
    snprintf(n.batch, sizeof n.batch, "%s", product_size(w, w->m->count[PRODUCT_BATCH]));
    return n;
}

/* Two neighbours become results. */
static void put_results(ProductWriter *w, const Names *n)
{
    const char *type = dtype_ctype(w->k->nodes->node[w->k->root[0].node].dtype),
               *x = w->join->n > 1 ? "first.x, second.x" : "first.x",
               *y = w->join->n > 1 ? "first.y, second.y" : "first.y";
    buffer_printf(
        &w->body,
        "        %s *at = %s + (piece.batch * %s + row) * %s + column;\n"
        "        if (%s %% 2 == 0) {\n"
        "            *(Pack<%s, 2> *)at = {value(piece.batch, row, column, %s), "
        "value(piece.batch, row, column + 1, %s)};\n"
        "        } else {\n"
        "            at[0] = value(piece.batch, row, column, %s);\n"
        "            if (column + 1 < %s) at[1] = value(piece.batch, row, column + 1, %s);\n"
        "        }\n",
        type, w->out, n->rows, n->columns, n->columns, type, x, y, x, n->columns, y);
}

/* Two neighbours become parts of sums. */
static void put_parts(ProductWriter *w, const Names *n)
{
    buffer_printf(
        &w->body,
        "        float *at = part_sums + ((piece.part * %s + piece.batch) * %s + row) * %s + "
        "column;\n        at[0] = first.x;\n        if (column + 1 < %s) at[1] = first.y;\n",
        n->batch, n->rows, n->columns, n->columns);
    if (w->join->n > 1)
        buffer_printf(&w->body,
                      "        at += (long long)%s * %s * %s * %d;\n        at[0] = second.x;\n"
                      "        if (column + 1 < %s) at[1] = second.y;\n",
                      n->batch, n->rows, n->columns, w->m->parts, n->columns);
}

static void put_body(ProductWriter *w)
{
    const MatrixProduct *m = w->m, *other = &w->join->m[w->join->n - 1];
    const Names n = names_of(w);
    put_factor(w, "left", m, PRODUCT_A);
    put_factor(w, "right", m, PRODUCT_B);
    put_factor(w, "other", other, PRODUCT_B);
    buffer_printf(&w->body, "    const HalfWork work = {%s, %s, %s, %s, %d};\n", n.rows, n.columns,
                  product_size(w, m->count[PRODUCT_DEPTH]), n.batch, m->parts);
    if (m->parts == 1) product_put_value(w, n.rows);
    buffer_printf(
        &w->body,
        "    half_product<%s, %d, %d, %d, %d, %d>(left, right, other, work,\n"
        "        [&](const HalfPlace &piece, long long row, long long column, float2 first, "
        "float2 second) {\n"
        "        if (row >= %s || column >= %s) return;\n",
        type_of(w), product_is_along(m, PRODUCT_A), product_is_along(m, PRODUCT_B), m->tile,
        w->join->n > 1, m->stages, n.rows, n.columns);
    if (m->parts == 1)
        put_results(w, &n);
    else
        put_parts(w, &n);
    buffer_puts(&w->body, "    });\n");
}

/* Adds up the parts of a sum. */
static void put_finish(ProductWriter *w)
{
    const Names n = names_of(w);
    const int pair = w->join->n > 1;
    product_put_value(w, n.rows);
    buffer_printf(&w->body,
                  "    const long long plane = (long long)%s * %s * %s,\n"
                  "                    at = blockIdx.x * %dll + threadIdx.x;\n"
                  "    if (at >= plane) return;\n    float first = 0%s;\n#pragma unroll\n"
                  "    for (int i = 0; i < %d; i++) first += part_sums[i * plane + at];\n",
                  n.batch, n.rows, n.columns, FINISH_THREADS, pair ? ", second = 0" : "",
                  w->m->parts);
    if (pair)
        buffer_printf(
            &w->body,
            "#pragma unroll\n    for (int i = 0; i < %d; i++) second += part_sums[(i + %d) * "
            "plane + at];\n",
            w->m->parts, w->m->parts);
    buffer_printf(&w->body,
                  "    const long long line = at / %s;\n"
                  "    %s[at] = value(line / %s, line %% %s, at - line * %s, first%s);\n",
                  n.columns, w->out, n.rows, n.rows, n.columns, pair ? ", second" : "");
}

/* ---- launches ---- */

void product_put_launch(ProductWriter *w, const char *items, int shared)
{
    buffer_printf(w->t->plan,
                  "//@ launch kernel_%d<<<min(%s, max(%d, ceil_div(%s, %d))), %d, %d>>>(",
                  w->t->number, items, SMS, items, MOST_ITEMS, THREADS, shared);
}

static void put_source(ProductWriter *w, const char *name, const char *parameters, const char *more)
{
    buffer_printf(w->t->source,
                  "extern \"C\" __global__ void __launch_bounds__(%d) %s_%d(%s%s)\n{\n%s}\n\n",
                  THREADS, name, w->t->number, parameters, more, w->body.data);
}

typedef struct {
    char rows[SIZE_TEXT], columns[SIZE_TEXT], batch[SIZE_TEXT];
} Texts;

static int put_launches(ProductWriter *w)
{
    SizeTable *sizes = w->k->nodes->sizes;
    const MatrixProduct *m = w->m;
    const int shared = m->stages * LINE * (ROWS + m->tile) + STAGING + 1024;
    Texts t;
    char size[4 * SIZE_TEXT];
    if (size_text(sizes, m->count[PRODUCT_ROWS], t.rows, w->err) ||
        size_text(sizes, m->count[PRODUCT_COLUMNS], t.columns, w->err) ||
        size_text(sizes, m->count[PRODUCT_BATCH], t.batch, w->err))
        return -1;
    snprintf(size, sizeof size, "ceil_div(%s, %d) * ceil_div(%s, %d) * (%s) * %d", t.rows, ROWS,
             t.columns, tile_columns(w), t.batch, m->parts);
    product_put_launch(w, size, shared);
    if (kernel_put_arguments(w->k, w->t->plan, w->err)) return -1;
    buffer_puts(w->t->plan, m->parts > 1 ? ", part_sums)\n" : ")\n");
    if (m->parts == 1) return 0;
    snprintf(size, sizeof size, "(%s) * (%s) * (%s)", t.batch, t.rows, t.columns);
    buffer_printf(w->t->plan, "//@ launch finish_%d<<<ceil_div(%s, %d), %d>>>(", w->t->number, size,
                  FINISH_THREADS, FINISH_THREADS);
    if (kernel_put_arguments(w->k, w->t->plan, w->err)) return -1;
    buffer_puts(w->t->plan, ", part_sums)\n");
    snprintf(size, sizeof size, "(%s) * (%s) * (%s) * %d", t.batch, t.rows, t.columns,
             m->parts * w->join->n);
    return product_share(w, PART_SUMS, size);
}

int product_half_write(ProductWriter *w)
{
    const int parts = w->m->parts > 1;
    ProductWriter finish = *w;
    Buffer types;
    buffer_init(&types, 1 << 16);
    buffer_init(&finish.body, 1 << 20);
    put_multiply(w); /* its name is known before the part that uses it */
    product_help(w->t, HELP_HALF, generate_product_half, "half");
    put_body(w);
    if (parts) put_finish(&finish);
    kernel_put_parameters(w->k, 1, product_is_wide(w), &types);
    if (put_launches(w) || finish.failed) w->failed = 1;
    if (!w->failed) {
        put_source(w, "kernel", types.data, parts ? ", float *__restrict__ part_sums" : "");
        buffer_release(&w->body);
        w->body = finish.body;
        if (parts) put_source(w, "finish", types.data, ", const float *__restrict__ part_sums");
    } else {
        buffer_release(&finish.body);
    }
    buffer_release(&types);
    return w->failed ? -1 : 0;
}
