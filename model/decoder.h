/* Decoding one token for each of some rows: packed weights, scratch for each thread. */
#ifndef MODEL_DECODER_H
#define MODEL_DECODER_H

#include "model/transformer.h"

/* ---- keys and values ---- */
void kv_create(KvStore *s, const Model *m, int tokens);
void kv_release(KvStore *s, const Model *m);

typedef struct {
    Packed qkv, o, gate_up, down;
} LayerPacked;

typedef struct {
    Model *model;
    LayerPacked *layer;
    Packed head;
    int rows, parts;               /* rows and scores of one part of the work */
    size_t scratch, score_at;      /* floats of one part; where its attention scores begin */
    float *arena;
    int32_t *pos;
    float *logits;                 /* [rows][vocab], by the row's place in the call */
} Decoder;

/* rows: most rows of a call; tokens: most of one row, prefix included. */
void decoder_create(Decoder *d, Model *m, int rows, int tokens);
void decoder_release(Decoder *d);

/* Append ids[r] to row r (its position is the length so far) and leave its logits in d->logits;
 * then `then` runs for the same rows on the same thread. */
void decoder_step(Decoder *d, const int32_t *ids, const KvRow *row, int rows,
                  void (*then)(void *ctx, int first, int rows), void *ctx);
/* Logits of n rows of the last hidden states, into d->logits. */
void decoder_logits(Decoder *d, const float *normed, int rows);

#endif
