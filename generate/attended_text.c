/* The text of an attention's kernels and of their launches. The loops are in attended.cu. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/memory.h"
#include "base/part.h"
#include "generate/attended.h"
#include "generate/product.h"

EMBED(generate_attended, "generate/attended.cu")

enum { HELP_ATTENTION = 30, PACKERS = 256, SHARED_MOST = 228 * 1024, PIECE = ATTENTION_TILE * 64 };

static const char *const side_names[ATTENDS] = {"queries", "keys", "values"};

typedef struct {
    const Attended *a;
    Kernel *k;
    KernelText *t;
    Error *err;
    AttendedShape shape;
    Dtype dtype;
    const char *halves; /* the type of packed elements */
    int parts, steps, wide;
    Buffer body;
    int failed;
} AttentionWriter;

static const char *size_of(AttentionWriter *w, Size s)
{
    const char *name = kernel_size(w->k, s, w->err);
    if (!name) w->failed = 1;
    return name ? name : "0";
}

static Size lines_of(const Attended *a, AttendedSide x)
{
    return x == ATTENDS_QUERIES ? a->rows : a->keys;
}

static Size length_of(const Attended *a, AttendedSide x)
{
    return x == ATTENDS_VALUES ? a->width : a->depth;
}

static int chunks(int64_t elements)
{
    return (int)((elements + 63) / 64);
}

/* Where the batch's entry begins in memory: "+ batch % 8 * 64 + batch / 8 * 512". */
static void put_entry(AttentionWriter *w, const AttendedTensor *t)
{
    Size inner = size_number(1);
    if (!size_is(t->offset, 0)) buffer_printf(&w->body, " + %s", size_of(w, t->offset));
    for (int d = t->rank - 1; d >= 0; d--) {
        if (!size_is(t->step[d], 0)) {
            buffer_puts(&w->body, " + batch");
            if (d < t->rank - 1) buffer_printf(&w->body, " / %s", size_of(w, inner));
            if (d > 0) buffer_printf(&w->body, " %% %s", size_of(w, t->size[d]));
            buffer_printf(&w->body, " * %s", size_of(w, t->step[d]));
        }
        inner = size_times(inner, t->size[d]);
    }
}

/* "{x + ..., lines, length, apart, along}" */
static void put_side(AttentionWriter *w, AttendedSide x)
{
    const AttendedTensor *t = &w->a->side[x];
    buffer_printf(&w->body, "{%s", kernel_tensor(w->k, t->node, 0));
    put_entry(w, t);
    buffer_printf(&w->body, ", %s, ", size_of(w, lines_of(w->a, x)));
    buffer_printf(&w->body, "%s, ", size_of(w, length_of(w->a, x)));
    buffer_printf(&w->body, "%s, ", size_of(w, t->apart));
    buffer_printf(&w->body, "%s}", size_of(w, t->along));
}

/* Packed elements of a tile, as an expression over the tensor's sizes. */
static void tile_elements(AttentionWriter *w, AttendedSide x, const char *width,
                          char out[SIZE_TEXT + 80])
{
    if (x == ATTENDS_VALUES)
        snprintf(out, SIZE_TEXT + 80, "((%s + %d) / %d * %d)", width, w->wide - 1, w->wide,
                 chunks(w->wide) * w->parts * PIECE);
    else
        snprintf(out, SIZE_TEXT + 80, "%d", chunks(16 * w->steps) * w->parts * PIECE);
}

static int is_wide(const Attended *a, const Kernel *k)
{
    int wide = kernel_is_wide(k);
    for (int x = 0; x < ATTENDS; x++)
        wide |= node_count(&k->nodes->node[a->side[x].node]).at[0] >= 1 << 30;
    return wide;
}

/* ---- packing ---- */

static int put_pack_plan(AttentionWriter *w, AttendedSide x, int number)
{
    SizeTable *sizes = w->k->nodes->sizes;
    Buffer *p = w->t->plan;
    char lines[SIZE_TEXT], batch[SIZE_TEXT], width[SIZE_TEXT], of_tile[SIZE_TEXT + 80],
        bracket[SIZE_TEXT + 2];
    if (size_text(sizes, lines_of(w->a, x), lines, w->err) ||
        size_text(sizes, w->a->batch, batch, w->err) ||
        size_text(sizes, w->a->width, width, w->err))
        return -1;
    snprintf(bracket, sizeof bracket, "(%s)", width);
    tile_elements(w, x, bracket, of_tile);
    const char *name = side_names[x];
    buffer_printf(p, "//@ buffer %s packed_%s_%d[(%s) * ceil_div(%s, %d) * %s]\n", w->halves, name,
                  w->t->number, batch, lines, ATTENTION_TILE, of_tile);
    buffer_printf(p, "//@ buffer float factors_%s_%d[(%s) * ceil_div(%s, %d)]\n", name,
                  w->t->number, batch, lines, ATTENTION_TILE);
    buffer_printf(p, "//@ launch pack_%s_%d<<<(%s) * ceil_div(%s, %d), %d>>>(", name, number, batch,
                  lines, ATTENTION_TILE, PACKERS);
    if (kernel_put_arguments(w->k, p, w->err)) return -1;
    buffer_printf(p, ", packed_%s_%d, factors_%s_%d)\n", name, w->t->number, name, w->t->number);
    return 0;
}

static int put_pack(const AttentionWriter *main, AttendedSide x)
{
    AttentionWriter w = *main;
    Kernel *k = memory_alloc(sizeof *k);
    Buffer types, source;
    char of_tile[SIZE_TEXT + 80], width[32];
    const AttendedTensor *t = &w.a->side[x];
    *k = (Kernel){.nodes = main->k->nodes};
    w.k = k;
    buffer_init(&w.body, 1 << 16);
    buffer_init(&types, 1 << 16);
    buffer_init(&source, 1 << 17);
    const int turned = x == ATTENDS_VALUES, along = !size_is(t->apart, 1);
    buffer_printf(&w.body,
                  "    const long long tiles = (%s + %d) / %d, batch = blockIdx.x / tiles;\n",
                  size_of(&w, lines_of(w.a, x)), ATTENTION_TILE - 1, ATTENTION_TILE);
    buffer_printf(&w.body, "    const flash::Side<%s> side = ", dtype_ctype(w.dtype));
    put_side(&w, x);
    snprintf(width, sizeof width, "%s", turned ? size_of(&w, w.a->width) : "");
    tile_elements(&w, x, width, of_tile);
    buffer_printf(
        &w.body,
        ";\n    flash::pack<%d, %s, %s, %d>(side, blockIdx.x %% tiles, parts + blockIdx.x "
        "* (long long)%s, factors + blockIdx.x);\n",
        w.parts, turned ? "true" : "false", along ? "true" : "false",
        turned ? w.wide : chunks(16 * w.steps) * 64, of_tile);
    kernel_put_parameters(k, 1, is_wide(w.a, k), &types);
    buffer_printf(
        &source,
        "extern \"C\" __global__ void __launch_bounds__(%d) pack_%s_@(%s, %s *__restrict__ "
        "parts, float *__restrict__ factors)\n{\n%s}\n\n",
        PACKERS, side_names[x], types.data, w.halves, w.body.data);
    const int rc = w.failed ? -1 : put_pack_plan(&w, x, kernel_put_source(w.t, source.data));
    buffer_release(&w.body);
    buffer_release(&types);
    buffer_release(&source);
    free(k);
    return rc;
}

/* ---- the kernel ---- */

static void put_packed(AttentionWriter *w, AttendedSide x, const char *width)
{
    char of_tile[SIZE_TEXT + 80];
    const char *name = side_names[x];
    tile_elements(w, x, width, of_tile);
    buffer_printf(&w->body, "    const long long tiles_%s = (%s + %d) / %d;\n", name,
                  size_of(w, lines_of(w->a, x)), ATTENTION_TILE - 1, ATTENTION_TILE);
    buffer_printf(&w->body, "    const flash::Packed<%s, %s> from_%s = {", dtype_ctype(w->dtype),
                  w->halves, name);
    put_side(w, x);
    buffer_printf(&w->body,
                  ", packed_%s + batch * tiles_%s * %s, factors_%s + batch * tiles_%s};\n", name,
                  name, of_tile, name, name);
}

static void put_value(AttentionWriter *w, int step, const char *rows)
{
    char between[160], factor[48] = "";
    if (w->a->by_depth)
        snprintf(factor, sizeof factor, " * from_depth");
    else if (w->a->alpha != 1)
        snprintf(factor, sizeof factor, " * (float)%.17g", w->a->alpha);
    if (w->a->by_depth)
        buffer_printf(&w->body, "    const float from_depth = 1 / sqrtf((float)%s);\n",
                      size_of(w, w->a->depth));
    snprintf(between, sizeof between,
             "        return [=](int column, float total) {\n        const float sum = total%s;\n",
             factor);
    buffer_printf(&w->body,
                  "    const auto value = [&](int row) {\n"
                  "        const long long line = batch * %s + row;\n",
                  rows);
    KernelElement e = {.n_given = 1,
                       .given = {step},
                       .width = w->a->keys,
                       .between = between,
                       .is_small = !is_wide(w->a, w->k)};
    if (kernel_put_element(w->k, w->t, &e, &w->body, w->err)) w->failed = 1;
    buffer_puts(&w->body, "        };\n    };\n");
}

/* Stores two neighbouring results. */
static void put_store(AttentionWriter *w, const char *rows, const char *width, const char *out)
{
    const char *type = dtype_ctype(w->dtype);
    buffer_printf(&w->body,
                  "    const auto put = [&](long long row, long long column, float first, float "
                  "second, float sum) {\n"
                  "        if (row >= %s || column >= %s) return;\n"
                  "        const float r = %s%#.9gf / sum;\n"
                  "        %s *at = %s + (batch * %s + row) * %s + column;\n"
                  "        if (%s %% 2 == 0) {\n"
                  "            *(Pack<%s, 2> *)at = {(%s)(first * r), (%s)(second * r)};\n"
                  "        } else {\n"
                  "            at[0] = (%s)(first * r);\n"
                  "            if (column + 1 < %s) at[1] = (%s)(second * r);\n"
                  "        }\n    };\n",
                  rows, width, w->a->zeros ? "sum == 0 ? 0 : " : "", w->a->beta, type, out, rows,
                  width, width, type, type, type, type, width, type);
}

static void put_shape(const AttentionWriter *w, Buffer *to)
{
    buffer_printf(to, "flash::Attend<%d, %d, %d, %d, %d, %s>", w->shape.groups, w->shape.stages,
                  w->steps, w->wide, w->parts, w->a->is_soft ? "true" : "false");
}

static void put_body(AttentionWriter *w, int step)
{
    const Attended *a = w->a;
    const int down = w->shape.groups * ATTENTION_TILE;
    char rows[32], width[32], keys[32];
    snprintf(rows, sizeof rows, "%s", size_of(w, a->rows));
    snprintf(width, sizeof width, "%s", size_of(w, a->width));
    snprintf(keys, sizeof keys, "%s", size_of(w, a->keys));
    buffer_printf(&w->body,
                  "    const long long tiles = (%s + %d) / %d, pieces = (%s + %d) / %d;\n"
                  "    const long long piece = blockIdx.x %% pieces, batch = blockIdx.x / pieces / "
                  "tiles;\n"
                  "    const int tile = (int)(tiles - 1 - blockIdx.x / pieces %% tiles);\n",
                  rows, down - 1, down, width, w->wide - 1, w->wide);
    for (int x = 0; x < ATTENDS; x++) put_packed(w, x, width);
    put_value(w, step, rows);
    put_store(w, rows, width, kernel_tensor(w->k, a->of, 1));
    if (a->causal)
        buffer_printf(&w->body,
                      "    const long long seen = (tile + 1) * %d + %lldLL;\n"
                      "    const int end = seen < 0 ? 0 : seen < %s ? (int)seen : %s;\n",
                      down, (long long)a->diagonal, keys, keys);
    buffer_puts(&w->body, "    ");
    put_shape(w, &w->body);
    buffer_printf(&w->body,
                  "::run(from_queries, from_keys, from_values, tile, piece, %s, value, put);\n",
                  a->causal ? "end" : keys);
}

static void put_kernel_parameters(const AttentionWriter *w, Buffer *to)
{
    for (int x = 0; x < ATTENDS; x++)
        buffer_printf(to,
                      ", const %s *__restrict__ packed_%s, const float *__restrict__ factors_%s",
                      w->halves, side_names[x], side_names[x]);
}

static int shared_of(const AttentionWriter *w)
{
    const int piece = w->parts * PIECE * 2, deep = chunks(16 * w->steps) * piece,
              across = chunks(w->wide) * piece;
    return w->shape.groups * deep + w->shape.stages * (deep + across) + 1024;
}

/* Blocks that a multiprocessor has to hold: so many as fit, where a thread's results leave registers. */
static int blocks_of(const AttentionWriter *w)
{
    const int fit = SHARED_MOST / (shared_of(w) + 1024), warps = 4 * w->shape.groups,
              most = (w->wide <= 64    ? 16
                      : w->wide <= 128 ? 12
                                       : 8) /
                     warps;
    return most < 1 || fit < 1 ? 1 : most < fit ? most : fit;
}

static int put_launch(AttentionWriter *w, int number)
{
    const Attended *a = w->a;
    SizeTable *sizes = w->k->nodes->sizes;
    Buffer *p = w->t->plan;
    char rows[SIZE_TEXT], batch[SIZE_TEXT], width[SIZE_TEXT];
    if (size_text(sizes, a->rows, rows, w->err) || size_text(sizes, a->batch, batch, w->err) ||
        size_text(sizes, a->width, width, w->err))
        return -1;
    const int piece = w->parts * PIECE * 2, deep = chunks(16 * w->steps) * piece,
              across = chunks(w->wide) * piece;
    buffer_printf(
        p, "//@ launch kernel_%d<<<(%s) * ceil_div(%s, %d) * ceil_div(%s, %d), %d, %d>>>(", number,
        batch, rows, w->shape.groups * ATTENTION_TILE, width, w->wide, 128 * w->shape.groups,
        w->shape.groups * deep + w->shape.stages * (deep + across) + 1024);
    if (kernel_put_arguments(w->k, p, w->err)) return -1;
    for (int x = 0; x < ATTENDS; x++)
        buffer_printf(p, ", packed_%s_%d, factors_%s_%d", side_names[x], w->t->number,
                      side_names[x], w->t->number);
    buffer_puts(p, ")\n");
    return 0;
}

int attention_write(const Attended *a, Kernel *k, int step, KernelText *t, Error *err)
{
    const Dtype dtype = k->nodes->node[a->of].dtype;
    AttentionWriter w = {.a = a, .k = k, .t = t, .err = err, .dtype = dtype};
    Buffer types, source;
    w.shape = attention_shape(k->nodes, a);
    w.parts = attention_parts(dtype);
    w.halves = dtype == DTYPE_F32 ? "half" : dtype_ctype(dtype);
    w.steps = (int)((a->depth.at[0] + 15) / 16);
    w.wide = (int)((a->width.at[0] + 31) / 32 * 32);
    buffer_init(&w.body, 1 << 20);
    buffer_init(&types, 1 << 16);
    buffer_init(&source, 1 << 20);
    product_put_halves(t);
    if (!(t->helpers >> HELP_ATTENTION & 1)) part_put(t->source, generate_attended, "attention");
    t->helpers |= 1u << HELP_ATTENTION;
    put_body(&w, step);
    kernel_put_parameters(k, 1, is_wide(a, k), &types);
    put_kernel_parameters(&w, &types);
    for (int x = 0; x < ATTENDS && !w.failed; x++)
        if (put_pack(&w, x)) w.failed = 1;
    buffer_printf(&source,
                  "extern \"C\" __global__ void __launch_bounds__(%d, %d) kernel_@(%s)\n{\n%s}\n\n",
                  128 * w.shape.groups, blocks_of(&w), types.data, w.body.data);
    if (!w.failed && put_launch(&w, kernel_put_source(t, source.data))) w.failed = 1;
    buffer_release(&w.body);
    buffer_release(&types);
    buffer_release(&source);
    return w.failed ? -1 : 0;
}
