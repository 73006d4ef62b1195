/* Decoding one token at a time for some rows. A row continues a prompt: its keys and values are
 * computed once and shared by the rows that continue it. The scheduling (model/sampler.c) is the
 * same for all devices; this is what a device does.
 *
 * What a row gives depends on its prompt, its tokens and the law alone, not on the rows beside it.
 */
#ifndef MODEL_CORE_DECODER_H
#define MODEL_CORE_DECODER_H

#include "model/core/draw_law.h"
#include "model/core/transformer.h"

typedef struct {
    int rows;             /* in work at a time, at most */
    int prompt, max_new;  /* tokens of a prompt, and after it, at most */
    int64_t cache_tokens; /* for which keys and values are kept, at most; 0: what memory allows. Not
                             on the CPU */
    DrawLaw law;          /* its banned ids stay the caller's */
} DecoderPlan;

/* One row of a call. */
typedef struct {
    int slot;   /* 0..rows-1: where decoder_attach put it */
    int32_t id; /* in: the token to append (decoder_step); out: the one drawn */
    double u;   /* in: that it is drawn with, in [0, 1) */
    float logp; /* out: as draw_token says */
} DecoderRow;

typedef struct Decoder Decoder;

void decoder_free(Decoder *d);

/* What a decoder takes of the device beside the model, and what it then has for keys and values, in
 * bytes. Of the CPU, whose memory is taken as it is touched, keys and values alone are told. */
typedef struct {
    size_t own;        /* activations of a prompt, the buffers of a step */
    size_t spare;      /* left to the products' workspaces */
    size_t room, held; /* what there is for keys and values, and what is taken of it: what rows may
                          come to need */
    size_t token;      /* of one token's keys and values */
    int64_t tokens;    /* that are held */
    int together; /* all rows have room at a time, each after a prompt of its own, however long */
} DecoderMemory;

/* These two return 1; or 0: there is no room until a row is detached; or -1 with an error. */
/* ids[0..len) becomes the prompt that the next `copies` rows are attached to. */
int decoder_prefill(Decoder *d, const int32_t *ids, int len, int copies, Error *err);
/* A free slot becomes a row that continues it. */
int decoder_attach(Decoder *d, int slot, Error *err);
void decoder_detach(Decoder *d, int slot);

/* And these two 0, or -1 with an error. */
/* The first token after the prompt of the last decoder_prefill, for each of n rows that continue
 * it. */
int decoder_first(Decoder *d, DecoderRow *rows, int n, Error *err);
/* Append a token to each row, and draw the next. */
int decoder_step(Decoder *d, DecoderRow *rows, int n, Error *err);

/* ---- for the implementations ---- */

typedef struct {
    void (*free)(Decoder *d);
    int (*prefill)(Decoder *d, const int32_t *ids, int len, int copies, Error *err);
    int (*attach)(Decoder *d, int slot, Error *err);
    void (*detach)(Decoder *d, int slot);
    int (*first)(Decoder *d, DecoderRow *rows, int n, Error *err);
    int (*step)(Decoder *d, DecoderRow *rows, int n, Error *err);
} DecoderType;

struct Decoder { /* begins the implementation's own */
    const DecoderType *type;
    Model *model;
    DecoderPlan plan;
    Acts acts; /* of a prompt */
    TokenBatch tokens;
};

size_t decoder_token_bytes(const Model *m); /* keys and values */

/* One prompt at a time, whose products' shapes, and so its bits, are its own. Returns its last
 * hidden state, normed: on the device, until the next call. */
const Num *decoder_forward(Decoder *d, const int32_t *ids, int len, LayerDone *then, void *ctx);
void decoder_release(Decoder *d); /* what the struct above holds */

#endif
