/* A batch of token sequences laid end to end, without padding. */
#ifndef MODEL_CORE_BATCH_H
#define MODEL_CORE_BATCH_H

#include "model/core/model.h"
#include "model/core/ops.h"

/* The batch in host memory, and as the operations see it. */
typedef struct {
    int rows, n, longest, runs, cap; /* cap: allocated rows */
    /* As in BatchView, one after another in `host`. */
    int32_t *ids, *pos, *target, *start, *order, *run;
    int32_t *host, *device, *scratch;
    BatchView view;
} TokenBatch;

/* Allocate memory for any batch of that many rows. batch_pack allocates what is missing. */
void batch_reserve(TokenBatch *b, const Ops *op, int rows);
size_t batch_bytes(int rows); /* bytes on the device */
void batch_pack(TokenBatch *b, const Ops *op, const Sequence *seqs, int n);
void batch_release(TokenBatch *b, const Ops *op);
int batch_check(const Model *m, const Sequence *seqs, int n, Error *err);
/* Returns how many of seqs[0..n) fit one micro-batch of max_tokens; at least 1. */
int batch_fit(const Sequence *seqs, int n, int max_tokens);

#endif
