/* Sequences laid end to end, without padding: attention stays within each. */
#include <stdlib.h>

#include "base/memory.h"
#include "model/transformer.h"

int batch_check(const Model *m, const Sequence *seqs, int n, Error *err)
{
    for (int i = 0; i < n; i++) {
        if (seqs[i].len < 1 || seqs[i].len > m->c.max_position)
            return error_set(err, "sequence %d holds %d tokens, 1 to %d are expected", i, seqs[i].len, m->c.max_position);
        for (int t = 0; t < seqs[i].len; t++)
            if (seqs[i].ids[t] < 0 || seqs[i].ids[t] >= m->c.vocab)
                return error_set(err, "sequence %d, token %d: the id %d is not in 0..%d", i, t, (int)seqs[i].ids[t],
                                 m->c.vocab - 1);
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

void batch_pack(TokenBatch *b, const Sequence *seqs, int n)
{
    b->rows = b->longest = 0;
    for (int i = 0; i < n; i++) {
        b->rows += seqs[i].len;
        if (seqs[i].len > b->longest) b->longest = seqs[i].len;
    }
    if (b->rows > b->row_cap) {
        b->row_cap = b->rows;
        b->ids = memory_grow(b->ids, (size_t)b->rows, sizeof *b->ids);
        b->pos = memory_grow(b->pos, (size_t)b->rows, sizeof *b->pos);
        b->target = memory_grow(b->target, (size_t)b->rows, sizeof *b->target);
    }
    if (n > b->seq_cap) {
        b->seq_cap = n;
        b->start = memory_grow(b->start, (size_t)n + 1, sizeof *b->start);
    }
    b->n = n;
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
}

void batch_release(TokenBatch *b)
{
    free(b->ids);
    free(b->pos);
    free(b->target);
    free(b->start);
    *b = (TokenBatch){0};
}
