/* Decode some rows one token at a time. A row continues a prompt. The keys and values of a prompt
 * are computed once, and the rows that continue it share them. model/sampler.c schedules the rows
 * in the same way for all devices. This header is what a device implements.
 *
 * The output of a row depends only on its prompt, its tokens and the law. It does not depend on the
 * other rows. */
#ifndef MODEL_CORE_DECODER_H
#define MODEL_CORE_DECODER_H

#include "model/core/transformer.h"

/* The law by which a token is drawn from a row of logits.
 *
 * Ids are left out in this order: the banned ids; all but the top_k most probable; of these, all
 * but the smallest set of the most probable that holds top_p of their mass; of these, ids less than
 * min_p times as probable as the most probable one. Equal probabilities are ordered by id, the
 * smaller id first. */
typedef struct {
    float temperature; /* 0: the most probable token, with logp at temperature 1 */
    float top_p;       /* 1: off */
    int vocab;
    const int *banned; /* ids; at least one other id is left */
    int n_banned;
    int top_k;   /* 0: off */
    float min_p; /* 0: off */
} DrawLaw;

typedef struct {
    int rows;            /* rows in flight, at most */
    int prompt, max_new; /* tokens of a prompt, and generated tokens of a row, at most */
    /* The tokens whose keys and values are kept, at most. 0: as many as memory allows. The CPU
     * ignores it. */
    int64_t cache_tokens;
    DrawLaw law; /* the caller keeps the banned ids */
} DecoderPlan;

/* A row of one call. */
typedef struct {
    int slot;   /* 0..rows-1: the slot that was given to decoder_attach */
    int32_t id; /* in: the token to append (decoder_step); out: the drawn token */
    double u;   /* in: the uniform number in [0, 1) of the draw */
    float logp; /* out: the log-probability, as draw_token defines it */
} DecoderRow;

typedef struct Decoder Decoder;

void decoder_free(Decoder *d);

/* The memory of a decoder on its device, without the model, in bytes. The CPU allocates memory when
 * it is first used, so it reports keys and values only. */
typedef struct {
    size_t own;   /* activations of a prompt and buffers of a step */
    size_t spare; /* left free for the workspaces of the products */
    /* room: memory available for keys and values. held: the part of it that rows may come to need. */
    size_t room, held;
    size_t token;   /* keys and values of one token */
    int64_t tokens; /* tokens that fit `held` */
    int all_fit;    /* all rows fit at the same time, each after its own prompt of any length */
} DecoderMemory;

/* Compute the prompt ids[0..len), which the next `copies` rows continue. decoder_prefill and
 * decoder_attach return 1, or 0 when there is no room until a row is detached, or -1 with an
 * error. */
int decoder_prefill(Decoder *d, const int32_t *ids, int len, int copies, Error *err);
/* Make a free slot a row that continues the prompt. */
int decoder_attach(Decoder *d, int slot, Error *err);
void decoder_detach(Decoder *d, int slot);

/* Draw the first token after the prompt of the last decoder_prefill, for each of n rows that
 * continue it. decoder_first and decoder_step return 0, or -1 with an error. */
int decoder_first(Decoder *d, DecoderRow *rows, int n, Error *err);
/* Append a token to each row, and draw the next one. */
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

struct Decoder { /* the first member of each implementation */
    const DecoderType *type;
    Model *model;
    DecoderPlan plan;
    Acts acts; /* activations of a prompt */
    TokenBatch tokens;
};

size_t decoder_token_bytes(const Model *m); /* bytes of the keys and values of one token */

/* Run the forward pass over one prompt. One prompt is computed at a time, so that the shapes of its
 * products, and therefore its bits, do not depend on other prompts. Returns its last hidden state
 * after the norm, in device memory; it is valid until the next call. */
const Num *decoder_forward(Decoder *d, const int32_t *ids, int len, LayerDone *then, void *ctx);
void decoder_release(Decoder *d); /* releases the members of Decoder */

#endif
