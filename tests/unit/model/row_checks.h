/* Check that the kernels between the products of a decoding step equal those of the full pass bit
 * for bit: on the simulator (tests/unit/eval/engine/test_engine_rows.c) and on a GPU (test_rows_cuda.c).
 * The including file defines:
 *
 *    void *rows_new(const char *label, const void *data, size_t bytes);
 *        device memory; data NULL: undefined
 *    void rows_free(void *p);
 *    rows_fail(fmt, ...), which reports a failed test */
#ifndef TESTS_ROW_CHECKS_H
#define TESTS_ROW_CHECKS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "model/core/halves.h"
#include "model/cuda/decode/step_kernels.h"
#include "model/cuda/table.h"

static Random row_numbers;

static inline float *row_floats(size_t n, double size)
{
    float *v = memory_array(n, sizeof *v);
    for (size_t i = 0; i < n; i++) v[i] = (float)(size * random_normal(&row_numbers));
    return v;
}

static inline uint16_t *row_halves(size_t n, double size)
{
    uint16_t *h = memory_array(n, sizeof *h);
    for (size_t i = 0; i < n; i++)
        h[i] = float_to_bf16((float)(size * random_normal(&row_numbers)));
    return h;
}

static inline float row_round(float v)
{
    return bf16_to_float(float_to_bf16(v));
}

/* Fill the vectors of v, n numbers each, with permutations of the first one, rounded to bf16.
 * Returns an epsilon that leaves a norm 2^-12 of their mean square: bf16 then shows the last bit of
 * a sum, and therefore the order of the sum. */
static inline float row_orders(float *v, size_t vectors, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        /* squares whose sum fp32 does not hold exactly */
        v[i] = row_round(ldexpf(v[i], -(int)random_below(&row_numbers, 8)));
        sum += (double)v[i] * (double)v[i];
    }
    for (size_t r = 1; r < vectors; r++) {
        float *to = v + r * n;
        memcpy(to, to - n, n * sizeof *to);
        for (size_t i = n - 1; i > 0; i--) {
            size_t j = random_below(&row_numbers, i + 1);
            float kept = to[i];
            to[i] = to[j], to[j] = kept;
        }
    }
    return (float)(sum / (double)n * (0x1p-12 - 1));
}

/* Compare `bytes` at two places of the device, or on the device and the host. */
static inline void check_bits(const char *what, const void *got, const void *host, const void *want,
                              size_t bytes, size_t each)
{
    char *a = memory_alloc(bytes), *b = memory_alloc(bytes);
    size_t bad = 0, first = 0;
    cuda_download(a, got, bytes);
    if (host)
        memcpy(b, host, bytes);
    else
        cuda_download(b, want, bytes);
    for (size_t i = bytes / each; i-- > 0;)
        if (memcmp(a + i * each, b + i * each, each)) bad++, first = i;
    if (bad)
        rows_fail("%s: %zu of %zu numbers differ, number %zu the first", what, bad, bytes / each,
                  first);
    free(a), free(b);
}

/* ---- the residual stream and its norm ---- */

static inline void same_norm(int n, int rows, int planes, double size)
{
    size_t all = (size_t)rows * (size_t)n;
    float *x = row_floats(all, size), *parts = row_floats(2 * all, size), eps = 1e-6f;
    uint16_t *w = row_halves((size_t)n, 1), *table = memory_array(all, sizeof *table);
    if (!planes) eps = row_orders(x, (size_t)rows, (size_t)n);
    for (size_t i = 0; i < all; i++) table[i] = float_to_bf16(x[i]);
    int32_t *ids = memory_array((size_t)rows, sizeof *ids);
    for (int i = 0; i < rows; i++) ids[i] = (i * 5 + 1) % rows;
    void *d_x = rows_new("x", planes ? x : NULL, all * 4), *d_y = rows_new("normed", NULL, all * 2);
    void *d_parts = rows_new("parts", parts, (size_t)(planes ? planes : 1) * all * 4),
         *d_w = rows_new("w", w, (size_t)n * 2);
    void *d_table = rows_new("table", table, all * 2),
         *d_ids = rows_new("ids", ids, (size_t)rows * 4);
    void *stream = rows_new("stream", NULL, all * 4),
         *normed = rows_new("full normed", NULL, all * 2);
    Residual r = {.x = d_x,
                  .normed = d_y,
                  .parts = d_parts,
                  .planes = planes,
                  .table = d_table,
                  .ids = d_ids,
                  .w = d_w,
                  .rows = rows,
                  .n = n,
                  .eps = eps};
    cuda_residual_norm(&r);
    char what[100];
    if (planes) {
        for (size_t i = 0; i < all; i++) {
            x[i] += parts[i];
            if (planes > 1) x[i] += parts[all + i];
        }
        cuda_upload(stream, x, all * 4);
    } else
        cuda_embed(stream, d_table, d_ids, rows, n);
    cuda_rmsnorm(normed, &(Norm){stream, d_w, rows, 1, n, n, eps});
    snprintf(what, sizeof what, "stream of %d x %d, %d planes, of size %g", rows, n, planes, size);
    check_bits(what, d_x, NULL, stream, all * 4, 4);
    snprintf(what, sizeof what, "norm of %d x %d, %d planes, of size %g", rows, n, planes, size);
    check_bits(what, d_y, NULL, normed, all * 2, 2);
    rows_free(d_x), rows_free(d_y), rows_free(d_parts), rows_free(d_w), rows_free(d_table),
        rows_free(d_ids), rows_free(stream), rows_free(normed);
    free(x), free(parts), free(w), free(table), free(ids);
}

static inline void same_norms(void)
{
    static const int sizes[] = {8,    64,   200,  256,  264,  896,  1024,
                                1032, 2048, 3584, 4096, 8192, 16384};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int planes = 0; planes < 3; planes++)
            same_norm(sizes[i], 3, planes, planes == 0 ? 0.02 : planes == 1 ? 40 : 1);
}

/* ---- fresh heads ---- */

typedef struct {
    int dim, heads, kv, bias, norm, planes, rows;
    double size;
} FreshCase;

enum { ROW_POSITIONS = 70, ROW_LAYERS = 2, ROW_LAYER = 1, ROW_PAGES = 3 }; /* ROW_PAGES: per row */

static const int32_t row_positions[] = {37, 0, -1, 65, 31, 32, -1, 69, 8};

static inline int row_pos(int row)
{
    return row_positions[row % 9];
}

/* q|k|v of the full pass: [rows][heads + 2 kv][dim], rounded as by its product. */
static inline uint16_t *full_qkv(const FreshCase *c, const float *parts, const uint16_t *bias)
{
    size_t row = (size_t)((c->heads + 2 * c->kv) * c->dim), all = row * (size_t)c->rows;
    uint16_t *qkv = memory_array(all, sizeof *qkv);
    for (size_t i = 0; i < all; i++) {
        float b = c->bias ? bf16_to_float(bias[i % row]) : 0;
        float added = c->planes == 1 ? b
                      : c->bias      ? row_round(row_round(parts[i]) + b)
                                     : row_round(parts[i]);
        qkv[i] = float_to_bf16(row_round(parts[(size_t)(c->planes - 1) * all + i]) + added);
    }
    return qkv;
}

/* The offset of the keys or values of a row's newest token, in a store of ROW_PAGES pages per row,
 * the last one first. */
static inline size_t page_slot(const FreshCase *c, int row, int values, int head)
{
    int pos = row_pos(row), page = row * ROW_PAGES + ROW_PAGES - 1 - pos / KV_PAGE;
    size_t at = (((size_t)page * ROW_LAYERS + ROW_LAYER) * 2 + (size_t)values) * (size_t)c->kv +
                (size_t)head;
    return (at * KV_PAGE + (size_t)(pos % KV_PAGE)) * (size_t)c->dim;
}

/* The expected q and pages: the full pass's numbers for the rows, and unchanged numbers
 * elsewhere. */
static inline void expect_heads(const FreshCase *c, const uint16_t *qkv, uint16_t *q,
                                uint16_t *pages)
{
    size_t d = (size_t)c->dim, row = (size_t)(c->heads + 2 * c->kv) * d,
           wide = (size_t)c->heads * d;
    for (int r = 0; r < c->rows; r++) {
        if (row_pos(r) < 0) continue;
        memcpy(q + (size_t)r * wide, qkv + (size_t)r * row, wide * 2);
        for (int v = 0; v < 2; v++)
            for (int h = 0; h < c->kv; h++)
                memcpy(pages + page_slot(c, r, v, h),
                       qkv + (size_t)r * row + wide + (size_t)(v * c->kv + h) * d, d * 2);
    }
}

static inline void same_heads(FreshCase c)
{
    int all = c.heads + 2 * c.kv, half = c.dim / 2, ld = all * c.dim;
    Pages store = {.layers = ROW_LAYERS, .kv_heads = c.kv, .dim = c.dim};
    size_t n = (size_t)(c.rows * ld), wide = (size_t)(c.rows * c.heads * c.dim),
           angles = (size_t)(ROW_POSITIONS * half);
    size_t stored = (size_t)(c.rows * ROW_PAGES) * page_nums(&store);
    float *parts = row_floats(n * (size_t)c.planes, c.size), *turns = memory_array(2 * angles, 4),
          eps = 1e-6f;
    if (c.norm && !c.bias && c.planes == 1)
        eps = row_orders(parts, (size_t)(c.rows * all), (size_t)c.dim);
    uint16_t *bias = row_halves((size_t)ld, c.size), *weights = row_halves((size_t)(2 * c.dim), 1),
             *q = row_halves(wide, 1);
    uint16_t *pages = row_halves(stored, 1), *qkv = full_qkv(&c, parts, bias);
    int32_t *pos = memory_array((size_t)c.rows * (2 + ROW_PAGES), 4), *at = pos + c.rows,
            *table = at + c.rows;
    for (size_t i = 0; i < angles; i++) {
        double angle = (double)(i / (size_t)half) * pow(10000, -(double)(i % (size_t)half) / half);
        turns[i] = (float)cos(angle), turns[angles + i] = (float)sin(angle);
    }
    for (int r = 0; r < c.rows; r++) {
        pos[r] = row_pos(r), at[r] = pos[r] < 0 ? 0 : pos[r];
        for (int p = 0; p < ROW_PAGES; p++)
            table[r * ROW_PAGES + p] = r * ROW_PAGES + ROW_PAGES - 1 - p;
    }
    char *d_parts = rows_new("parts", parts, n * (size_t)c.planes * 4),
         *d_turns = rows_new("angles", turns, 2 * angles * 4);
    char *d_bias = rows_new("bias", bias, (size_t)ld * 2),
         *d_weights = rows_new("norms", weights, (size_t)(2 * c.dim) * 2);
    char *d_q = rows_new("q", q, wide * 2), *d_pages = rows_new("pages", pages, stored * 2),
         *d_qkv = rows_new("qkv", qkv, n * 2);
    char *d_pos = rows_new("pos", pos, (size_t)c.rows * 4),
         *d_at = rows_new("full pos", at, (size_t)c.rows * 4);
    char *d_table = rows_new("page table", table, (size_t)(c.rows * ROW_PAGES) * 4),
         *k_weights = d_weights + 2 * c.dim;
    const float *cosines = (float *)d_turns, *sines = cosines + angles;
    KvRows who = {(int32_t *)d_pos, (int32_t *)d_table, ROW_PAGES};
    store.data = d_pages;
    Fresh f = {d_q,
               (float *)d_parts,
               c.bias ? d_bias : NULL,
               c.norm ? d_weights : NULL,
               c.norm ? k_weights : NULL,
               cosines,
               sines,
               c.planes,
               c.rows,
               c.heads,
               ROW_LAYER,
               eps};
    cuda_fresh_heads(&f, &who, &store);
    if (c.norm) {
        char *k = d_qkv + (size_t)(c.heads * c.dim) * 2;
        cuda_head_norm(d_qkv, &(Norm){d_qkv, d_weights, c.rows, c.heads, c.dim, ld, eps});
        cuda_head_norm(k, &(Norm){k, k_weights, c.rows, c.kv, c.dim, ld, eps});
    }
    Rotation turn = {(int32_t *)d_at, cosines, sines, c.rows};
    cuda_rope(d_qkv, &turn, (HeadShape){c.heads, c.kv, c.dim}, 1);
    cuda_download(qkv, d_qkv, n * 2);
    expect_heads(&c, qkv, q, pages);
    char what[120];
    snprintf(what, sizeof what, "%d + %d heads of %d, bias %d, norm %d, %d planes: q", c.heads,
             c.kv, c.dim, c.bias, c.norm, c.planes);
    check_bits(what, d_q, q, NULL, wide * 2, 2);
    snprintf(strrchr(what, ':'), 9, ": pages");
    check_bits(what, d_pages, pages, NULL, stored * 2, 2);
    rows_free(d_parts), rows_free(d_turns), rows_free(d_bias), rows_free(d_weights), rows_free(d_q),
        rows_free(d_pages), rows_free(d_qkv), rows_free(d_pos), rows_free(d_at), rows_free(d_table);
    free(parts), free(turns), free(bias), free(weights), free(q), free(pages), free(qkv), free(pos);
}

static inline void same_fresh(void)
{
    static const FreshCase shapes[] = {{.dim = 64, .heads = 14, .kv = 2, .rows = 4, .size = 3},
                                       {.dim = 128, .heads = 7, .kv = 1, .rows = 3, .size = 0.1},
                                       {.dim = 96, .heads = 3, .kv = 3, .rows = 5, .size = 1},
                                       {.dim = 256, .heads = 2, .kv = 1, .rows = 2, .size = 20},
                                       {.dim = 80, .heads = 4, .kv = 2, .rows = 9, .size = 1},
                                       {.dim = 72, .heads = 2, .kv = 1, .rows = 3, .size = 1},
                                       {.dim = 24, .heads = 5, .kv = 1, .rows = 3, .size = 1},
                                       {.dim = 8, .heads = 3, .kv = 1, .rows = 9, .size = 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int how = 0; how < 8; how++) {
            FreshCase c = shapes[i];
            c.bias = how & 1, c.norm = how >> 1 & 1, c.planes = 1 + (how >> 2);
            same_heads(c);
        }
}

/* ---- SwiGLU ---- */

typedef struct {
    int ff, k, r, rows; /* r: of an adapter, or 0 */
    double size;
} GateCase;

/* Gates and ups of [rows][2 ff], from the planes of their product. */
static inline uint16_t *gates_of(const GateCase *c, const float *sums)
{
    size_t all = (size_t)c->rows * (size_t)(2 * c->ff);
    uint16_t *h = memory_array(all, sizeof *h);
    for (size_t i = 0; i < all; i++)
        h[i] = float_to_bf16(c->r ? row_round(sums[all + i]) + row_round(sums[i]) : sums[i]);
    return h;
}

/* A gated product is the swiglu of the same product. */
static inline void same_swiglu(GateCase c)
{
    size_t rows = (size_t)c.rows, n = 2 * (size_t)c.ff, k = (size_t)c.k, r = (size_t)c.r,
           planes = r ? 2 : 1;
    uint16_t *x = row_halves(rows * k, c.size), *w = row_halves(n * k, 1 / sqrt(c.k)),
             *a = row_halves(r * k + 8, 1 / sqrt(c.k));
    uint16_t *up = row_halves(n * r + 8, 0.1);
    float *sums = memory_array(planes * rows * n, sizeof *sums);
    char *d_x = rows_new("x", x, rows * k * 2), *d_w = rows_new("w", w, n * k * 2),
         *d_a = rows_new("a", a, (r * k + 8) * 2);
    char *d_up = rows_new("up", up, (n * r + 8) * 2),
         *d_low = rows_new("low", NULL, (rows * r + 8) * 2);
    void *d_sums = rows_new("sums", NULL, planes * rows * n * 4),
         *scratch = rows_new("scratch", NULL, rows * n * 4);
    void *d_act = rows_new("act", NULL, rows * n), *full = rows_new("full act", NULL, rows * n);
    Product low = {
        .out = d_low, .x = d_x, .w = d_a, .rows = c.rows, .n = c.r, .k = c.k, .scale = 2};
    Product apart = {.sums = d_sums,
                     .x = d_x,
                     .w = d_w,
                     .low = d_low,
                     .up = d_up,
                     .rows = c.rows,
                     .n = 2 * c.ff,
                     .k = c.k,
                     .r = c.r};
    Product gated = apart;
    gated.sums = scratch, gated.out = d_act, gated.n = c.ff, gated.gated = 1;
    if (r) cuda_product(&low);
    cuda_product(&apart);
    if (r) cuda_product(&low);
    cuda_product(&gated);
    cuda_download(sums, d_sums, planes * rows * n * 4);
    uint16_t *gates = gates_of(&c, sums);
    void *d_gates = rows_new("gates", gates, rows * n * 2);
    cuda_swiglu(full, d_gates, c.rows, c.ff);
    char what[100];
    snprintf(what, sizeof what, "%d x %d gates from %d numbers, adapter of %d", c.rows, c.ff, c.k,
             c.r);
    check_bits(what, d_act, NULL, full, rows * n, 2);
    rows_free(d_x), rows_free(d_w), rows_free(d_a), rows_free(d_up), rows_free(d_low),
        rows_free(d_sums), rows_free(scratch), rows_free(d_act), rows_free(full),
        rows_free(d_gates);
    free(x), free(w), free(a), free(up), free(sums), free(gates);
}

static inline void same_gates(void)
{
    static const GateCase cases[] = {
        {40, 72, 0, 1, 1}, {200, 64, 0, 3, 30}, {72, 136, 64, 9, 4}, {136, 64, 8, 20, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) same_swiglu(cases[i]);
}

#endif
