/* Check that the attention of decoding equals the full pass bit for bit: on the simulator
 * (tests/unit/eval/engine/test_engine_paged.c) and on a GPU (test_attention_cuda.c). Rounding to bf16
 * hides the last bits of a result. Therefore some values are chosen so that results are in the
 * middle between two bf16 numbers, where these bits decide. The including file defines:
 *
 *    void *same_new(const char *label, const void *data, size_t bytes);
 *        device memory; data NULL: undefined
 *    void same_free(void *p);
 *    same_fail(fmt, ...), which reports a failed test */
#ifndef TESTS_ATTENTION_CHECKS_H
#define TESTS_ATTENTION_CHECKS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "model/core/halves.h"
#include "model/cuda/decode/step_kernels.h"
#include "model/cuda/table.h"

enum {
    SAME_SEQUENCES = 12,
    SAME_LAYERS = 2,
    SAME_LAYER = 1,
    SAME_SPARE = 70 /* tokens by which rows could grow */
};

typedef struct {
    int dim, heads, kv;
    int idle; /* rows of the decoding step without a sequence */
    /* Tokens of a sequence after the compared row, which only the full pass has, if it has more. */
    int later;
    /* Size of the numbers of q and k: scores are of size^2 log2(e), as powers of two. */
    double size;
    int trend; /* 1: keys grow along a sequence, -1: they shrink, 0: neither */
    /* Lengths of the sequences, adjacent in the full pass, up to the first 0. */
    int lengths[SAME_SEQUENCES];
} AttentionCase;

typedef struct {
    const AttentionCase *c;
    int n, rows, longest, decoded; /* decoded: rows of the decoding step */
    int32_t start[SAME_SEQUENCES + 1];
    size_t row, wide; /* numbers of a row of q|k|v, and of the output */
    uint16_t *qkv;
    void *d_qkv, *d_q, *d_out, *d_full, *d_pos, *d_table;
    int32_t *table;
    int ld;
    Pages store;
} AttentionWork;

static inline void same_shape(AttentionWork *w, const AttentionCase *c)
{
    *w = (AttentionWork){.c = c,
                         .row = (size_t)((c->heads + 2 * c->kv) * c->dim),
                         .wide = (size_t)(c->heads * c->dim)};
    for (; w->n < SAME_SEQUENCES && c->lengths[w->n]; w->n++) {
        w->start[w->n + 1] = w->start[w->n] + c->lengths[w->n];
        if (c->lengths[w->n] > w->longest) w->longest = c->lengths[w->n];
    }
    w->rows = w->start[w->n];
    w->decoded = w->n + c->idle;
    w->ld = (w->longest + SAME_SPARE + KV_PAGE - 1) / KV_PAGE;
}

/* Tokens of a sequence in the decoding step; the last one is new. */
static inline int same_length(const AttentionWork *w, int sequence)
{
    int len = w->c->lengths[sequence], later = w->c->later;
    return len > later ? len - later : len;
}

/* The row of a sequence in the decoding step; the others are idle. */
static inline int same_row(const AttentionWork *w, int sequence)
{
    return sequence * w->decoded / w->n;
}

static inline void same_numbers(AttentionWork *w)
{
    const AttentionCase *c = w->c;
    Random r;
    random_init(&r, 11, (uint64_t)(c->dim * 100 + c->heads));
    w->qkv = memory_array((size_t)w->rows * w->row, sizeof *w->qkv);
    for (int i = 0; i < w->n; i++)
        for (int t = 0; t < c->lengths[i]; t++)
            for (size_t j = 0; j < w->row; j++) {
                int is_k = j >= w->wide && j < w->wide + (size_t)(c->kv * c->dim),
                    is_v = j >= w->wide && !is_k;
                double along = (t + 1.0) / c->lengths[i], grown = c->trend > 0   ? along
                                                                  : c->trend < 0 ? 1 - along
                                                                                 : 1;
                double v = random_normal(&r) * (is_v ? 1 : c->size) * (is_k ? grown : 1);
                w->qkv[(size_t)(w->start[i] + t) * w->row + j] = float_to_bf16((float)v);
            }
}

/* The rounded weights of a sequence's keys for its new token, in double precision, in p. Returns
 * their sum before the rounding. */
static inline double same_weights(const AttentionWork *w, int sequence, int head, double *p)
{
    const AttentionCase *c = w->c;
    int len = same_length(w, sequence), kv = head / (c->heads / c->kv);
    const uint16_t *first = w->qkv + (size_t)w->start[sequence] * w->row,
                   *q = first + (size_t)(len - 1) * w->row + head * c->dim;
    double top = -INFINITY, sum = 0;
    for (int t = 0; t < len; t++) {
        const uint16_t *k = first + (size_t)t * w->row + (size_t)((c->heads + kv) * c->dim);
        p[t] = 0;
        for (int j = 0; j < c->dim; j++)
            p[t] += (double)bf16_to_float(q[j]) * (double)bf16_to_float(k[j]);
        p[t] = nearbyint(p[t] * 1.4426950408889634 / sqrt(c->dim) * 0x1p14) * 0x1p-14;
        top = fmax(top, p[t]);
    }
    for (int t = 0; t < len; t++) {
        p[t] = exp2(p[t] - ceil(top));
        sum += p[t];
        p[t] = (double)bf16_to_float(float_to_bf16((float)p[t]));
    }
    return sum;
}

/* Choose columns of values, each for one of the query heads: the three keys of the largest weights
 * get values that move the result to the middle between two bf16 numbers, each by the remainder of
 * the previous one. */
static inline void same_sharpen(AttentionWork *w, int sequence, int head)
{
    const AttentionCase *c = w->c;
    int len = same_length(w, sequence), group = c->heads / c->kv, key[3] = {-1, -1, -1};
    double *p = memory_array((size_t)len, sizeof *p), sum = same_weights(w, sequence, head, p);
    for (int i = 0; i < 3; i++)
        for (int t = 0; t < len; t++)
            if (t != key[0] && t != key[1] && (key[i] < 0 || p[t] > p[key[i]])) key[i] = t;
    uint16_t *first = w->qkv + (size_t)w->start[sequence] * w->row +
                      (size_t)((c->heads + c->kv + head / group) * c->dim);
    for (int column = head % group; column < c->dim; column += group) {
        uint16_t *v = first + column;
        double o = 0;
        v[(size_t)key[1] * w->row] = v[(size_t)key[2] * w->row] = 0;
        for (int t = 0; t < len; t++) o += p[t] * (double)bf16_to_float(v[(size_t)t * w->row]);
        uint16_t below = float_to_bf16((float)(o / sum)), above = (uint16_t)(below + 1);
        double middle = ((double)bf16_to_float(below) + (double)bf16_to_float(above)) / 2 * sum;
        for (int i = 0; i < 3; i++) {
            uint16_t *to = v + (size_t)key[i] * w->row;
            o -= p[key[i]] * (double)bf16_to_float(*to);
            *to = float_to_bf16((float)((middle - o) / p[key[i]]));
            o += p[key[i]] * (double)bf16_to_float(*to);
        }
    }
    free(p);
}

static inline void same_full_pass(AttentionWork *w)
{
    const AttentionCase *c = w->c;
    w->d_qkv = same_new("qkv", w->qkv, (size_t)w->rows * w->row * 2);
    void *start = same_new("start", w->start, (size_t)(w->n + 1) * sizeof *w->start);
    float *lse = same_new("lse", NULL, (size_t)(w->rows * c->heads) * sizeof *lse);
    BatchView view = {.rows = w->rows, .n = w->n, .longest = w->longest, .start = start};
    w->d_full = same_new("full out", NULL, (size_t)w->rows * w->wide * 2);
    cuda_attention(w->d_full, lse, w->d_qkv, &view, (HeadShape){c->heads, c->kv, c->dim});
    same_free(start), same_free(lse);
}

/* Pages are in descending order. Places without a token are NaN. */
static inline void same_pages(AttentionWork *w)
{
    const AttentionCase *c = w->c;
    int pages = 0;
    w->table = memory_array((size_t)(w->decoded * w->ld), sizeof *w->table);
    int32_t *pos = memory_array((size_t)w->decoded, sizeof *pos);
    for (int r = 0; r < w->decoded; r++) pos[r] = -1;
    for (int i = 0; i < w->n; i++) pages += (same_length(w, i) + KV_PAGE - 1) / KV_PAGE;
    for (int i = 0, page = pages; i < w->n; i++) {
        pos[same_row(w, i)] = same_length(w, i) - 1;
        for (int j = 0; j * KV_PAGE < same_length(w, i); j++)
            w->table[same_row(w, i) * w->ld + j] = --page;
    }
    w->store = (Pages){.layers = SAME_LAYERS, .kv_heads = c->kv, .dim = c->dim};
    size_t bytes = page_nums(&w->store) * (size_t)pages * 2;
    void *nan = memory_alloc(bytes);
    memset(nan, 0xff, bytes);
    w->store.data = same_new("pages", nan, bytes);
    w->d_table = same_new("table", w->table, (size_t)(w->decoded * w->ld) * sizeof *w->table);
    w->d_pos = same_new("pos", pos, (size_t)w->decoded * sizeof *pos);
    for (int i = 0; i < w->n; i++)
        cuda_store_prompt(&w->store, (uint16_t *)w->d_qkv + (size_t)w->start[i] * w->row,
                          (int32_t *)w->d_table + same_row(w, i) * w->ld, same_length(w, i),
                          c->heads, SAME_LAYER);
    free(pos), free(nan);
}

/* The output of an idle row is NaN before and after, like its q. */
static inline void same_decode(AttentionWork *w)
{
    const AttentionCase *c = w->c;
    size_t bytes = (size_t)w->decoded * w->wide * 2;
    int longest = w->longest + SAME_SPARE;
    uint16_t *q = memory_alloc(bytes);
    memset(q, 0xff, bytes);
    w->d_out = same_new("out", q, bytes);
    for (int i = 0; i < w->n; i++)
        memcpy(q + (size_t)same_row(w, i) * w->wide,
               w->qkv + (size_t)(w->start[i] + same_length(w, i) - 1) * w->row, w->wide * 2);
    w->d_q = same_new("q", q, bytes);
    float *scratch = same_new("scratch", NULL,
                              cuda_attend_scratch(w->decoded, c->heads, longest) * sizeof *scratch);
    KvRows rows = {.pos = w->d_pos, .table = w->d_table, .ld = w->ld};
    cuda_attend(w->d_out, w->d_q, scratch, &rows, &w->store, w->decoded, c->heads, SAME_LAYER,
                longest);
    same_free(scratch);
    free(q);
}

/* Check the new token of each sequence, and that idle rows are unchanged. */
static inline void same_check(const AttentionWork *w)
{
    const AttentionCase *c = w->c;
    size_t n = (size_t)w->decoded * w->wide;
    uint16_t *out = memory_array(n, 2), *full = memory_array((size_t)w->rows * w->wide, 2),
             *want = memory_array(n, 2);
    cuda_download(out, w->d_out, n * 2);
    cuda_download(full, w->d_full, (size_t)w->rows * w->wide * 2);
    memset(want, 0xff, n * 2);
    for (int i = 0; i < w->n; i++)
        memcpy(want + (size_t)same_row(w, i) * w->wide,
               full + (size_t)(w->start[i] + same_length(w, i) - 1) * w->wide, w->wide * 2);
    size_t bad = 0, first = 0;
    for (size_t i = n; i-- > 0;)
        if (out[i] != want[i]) bad++, first = i;
    if (bad)
        same_fail("dim %d, %d/%d heads, size %g, trend %d: %zu of %zu numbers differ, first %zu of "
                  "row %zu: %.9g, not %.9g",
                  c->dim, c->heads, c->kv, c->size, c->trend, bad, n, first % w->wide,
                  first / w->wide, (double)bf16_to_float(out[first]),
                  (double)bf16_to_float(want[first]));
    free(out), free(full), free(want);
}

static inline void same_attention(AttentionCase c)
{
    AttentionWork w;
    same_shape(&w, &c);
    same_numbers(&w);
    for (int i = 0; i < w.n; i++)
        for (int head = 0; head < c.heads && same_length(&w, i) > 3; head++)
            same_sharpen(&w, i, head);
    same_full_pass(&w);
    same_pages(&w);
    same_decode(&w);
    same_check(&w);
    same_free(w.d_qkv), same_free(w.d_q), same_free(w.d_out), same_free(w.d_full),
        same_free(w.d_pos), same_free(w.d_table), same_free(w.store.data);
    free(w.qkv), free(w.table);
}

/* Scores over up to +-40 powers of two, with and without tops that rise along a sequence. */
static inline void same_spreads(AttentionCase c)
{
    static const struct {
        double size;
        int trend;
    } spreads[] = {{1, 0}, {2, 0}, {4, 1}, {4, -1}};
    for (size_t i = 0; i < sizeof spreads / sizeof *spreads; i++) {
        c.size = spreads[i].size, c.trend = spreads[i].trend;
        same_attention(c);
    }
}

#endif
