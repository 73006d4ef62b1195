/* Pack sequences into six host arrays, which are uploaded together. */
#include "model/core/transformer.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/core/parameters.h"

int batch_check(const Model *m, const Sequence *seqs, int n, Error *err)
{
    for (int i = 0; i < n; i++) {
        if (seqs[i].len < 1 || seqs[i].len > m->c.max_position)
            return error_set(err, ERROR_INVALID,
                             "sequence %d holds %d tokens, 1 to %d are expected", i, seqs[i].len,
                             m->c.max_position);
        for (int t = 0; t < seqs[i].len; t++)
            if (seqs[i].ids[t] < 0 || seqs[i].ids[t] >= m->c.vocab)
                return error_set(err, ERROR_INVALID,
                                 "sequence %d, token %d: the id %d is not in 0..%d", i, t,
                                 (int)seqs[i].ids[t], m->c.vocab - 1);
    }
    return 0;
}

int batch_fit(const Sequence *seqs, int n, int max_tokens)
{
    int64_t rows = seqs[0].len;
    int k = 1;
    while (k < n && rows + seqs[k].len <= max_tokens) rows += seqs[k++].len;
    return k;
}

/* ids, pos, target, order, run (one more) and start (one more): six arrays with a multiple of 4
 * numbers each, so that all are aligned and any number of sequences fits. */
static size_t stride_of(int rows)
{
    return ((size_t)rows + 4) & ~(size_t)3;
}

size_t batch_bytes(int rows)
{
    return 6 * stride_of(rows) * sizeof(int32_t);
}

void batch_reserve(TokenBatch *b, const Ops *op, int rows)
{
    if (rows <= b->cap) return;
    batch_release(b, op);
    b->cap = rows;
    b->host = memory_array(1, batch_bytes(rows));
    b->scratch = memory_array((size_t)rows, sizeof *b->scratch);
    b->device = op->alloc(batch_bytes(rows));
}

static void place(TokenBatch *b)
{
    size_t stride = stride_of(b->rows);
    b->ids = b->host;
    b->pos = b->ids + stride;
    b->target = b->pos + stride;
    b->order = b->target + stride;
    b->run = b->order + stride;
    b->start = b->run + stride;
}

/* Sort the rows by id with two stable counting sorts of 11 bits each (ids are below 2^20). */
static void sort_rows(TokenBatch *b)
{
    enum { BITS = 11, SIZE = 1 << BITS };
    for (int r = 0; r < b->rows; r++) b->order[r] = r;
    int32_t *from = b->order, *to = b->scratch;
    for (int shift = 0; shift <= BITS; shift += BITS) {
        int count[SIZE] = {0}, at = 0;
        for (int r = 0; r < b->rows; r++) count[b->ids[r] >> shift & (SIZE - 1)]++;
        for (int i = 0; i < SIZE; i++) {
            int n = count[i];
            count[i] = at;
            at += n;
        }
        for (int r = 0; r < b->rows; r++)
            to[count[b->ids[from[r]] >> shift & (SIZE - 1)]++] = from[r];
        int32_t *t = from;
        from = to;
        to = t;
    }
    b->runs = 0;
    for (int r = 0; r < b->rows; r++)
        if (!r || b->ids[b->order[r]] != b->ids[b->order[r - 1]]) b->run[b->runs++] = r;
    b->run[b->runs] = b->rows;
}

static void upload(TokenBatch *b, const Ops *op)
{
    op->upload(b->device, b->host, (size_t)(b->start + b->n + 1 - b->host) * sizeof *b->host);
    b->view = (BatchView){.rows = b->rows,
                          .n = b->n,
                          .longest = b->longest,
                          .runs = b->runs,
                          .ids = b->device + (b->ids - b->host),
                          .pos = b->device + (b->pos - b->host),
                          .target = b->device + (b->target - b->host),
                          .start = b->device + (b->start - b->host),
                          .order = b->device + (b->order - b->host),
                          .run = b->device + (b->run - b->host)};
}

void batch_pack(TokenBatch *b, const Ops *op, const Sequence *seqs, int n)
{
    int rows = 0, longest = 0;
    for (int i = 0; i < n; i++) {
        rows += seqs[i].len;
        if (seqs[i].len > longest) longest = seqs[i].len;
    }
    batch_reserve(b, op, rows);
    b->rows = rows;
    b->longest = longest;
    b->n = n;
    place(b);
    int row = 0;
    for (int i = 0; i < n; i++) {
        b->start[i] = row;
        for (int t = 0; t < seqs[i].len; t++, row++) {
            b->ids[row] = seqs[i].ids[t];
            b->pos[row] = t;
            b->target[row] = t + 1 < seqs[i].len ? seqs[i].ids[t + 1] : -1;
        }
    }
    b->start[n] = row;
    sort_rows(b);
    upload(b, op);
}

void batch_release(TokenBatch *b, const Ops *op)
{
    free(b->host);
    free(b->scratch);
    op->release(b->device);
    *b = (TokenBatch){0};
}
