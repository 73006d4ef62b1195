/* Inside the model module: the state of the trainer, as optimizer_state.c saves it. */
#ifndef MODEL_TRAINER_STATE_H
#define MODEL_TRAINER_STATE_H

#include "model/core/ranks.h"
#include "model/core/transformer.h"
#include "model/trainer.h"

struct Trainer {
    Model *model;
    ParamSet *set; /* the trained parameters: the adapter, or the base */
    TrainerOptions o;
    MemoryPlan plan;
    size_t available; /* free device memory at creation */
    int by_memory;    /* max_tokens was chosen by memory */
    float *grad;      /* has the layout of the set */
    /* piece: numbers of the set in a piece (see Piece). each: numbers of this rank, the size of
     * master, m and v. */
    size_t piece, each;
    size_t summed; /* gradients at this position and above are summed over the ranks */
    float *master; /* fp32 weights, or NULL when the set itself has them */
    void *m, *v;   /* fp32, or Num with o.lean */
    int64_t step;
    /* Host memory, for the rows of a micro-batch; `given` for one sequence. */
    float *weight, *logp, *given;
    int weight_cap; /* allocated rows */
    Acts acts;
    Grads grads;
    TokenBatch batch;
};

/* Bytes of a number of m or v. */
static inline size_t moment_size(const Trainer *t)
{
    return t->o.lean ? (size_t)t->model->ops->num : sizeof(float);
}

/* Ranks sum gradients, update weights and gather them piece by piece. The last piece may be
 * shorter. A piece is the adjacent slices of all ranks. */
typedef struct {
    size_t at, each;  /* position in the set, and the numbers of a slice */
    size_t mine, own; /* this rank's slice: its position in the set, and in master, m and v */
} Piece;

/* Returns the piece that begins at this position, a multiple of t->piece. */
static inline Piece piece_at(const Trainer *t, size_t at)
{
    size_t n = (size_t)ranks_size(), left = t->set->size - at,
           each = (left < t->piece ? left : t->piece) / n;
    return (Piece){.at = at, .each = each, .mine = at + (size_t)ranks_rank() * each, .own = at / n};
}

/* Copy the current weights to the masters. */
void trainer_take_weights(Trainer *t);

#endif
