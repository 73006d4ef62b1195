/* Inside the model module: the trainer's state, for saving. */
#ifndef MODEL_TRAINER_STATE_H
#define MODEL_TRAINER_STATE_H

#include "model/core/ranks.h"
#include "model/core/transformer.h"
#include "model/trainer.h"

struct Trainer {
    Model *model;
    ParamSet *set; /* what is trained: the adapter, or the base */
    TrainerOptions o;
    MemoryPlan plan;
    size_t available;   /* of the device's memory when it was made */
    int by_memory;      /* max_tokens was left to that */
    float *grad;        /* laid out as the set */
    size_t piece, each; /* numbers of the set in a piece (below), and of this rank in all: the next
                           three are of those */
    size_t summed;      /* gradients at this place and above are summed over the ranks */
    float *master;      /* fp32 weights, or NULL: the set's own numbers are */
    void *m, *v;        /* fp32; Num with o.lean */
    int64_t step;
    float *weight, *logp, *given; /* host memory: of the rows of a micro-batch; of one sequence */
    int weight_cap;               /* rows */
    Acts acts;
    Grads grads;
    TokenBatch batch;
};

/* Bytes of an m or v. */
static inline size_t moment_size(const Trainer *t)
{
    return t->o.lean ? (size_t)t->model->ops->num : sizeof(float);
}

/* Ranks sum gradients, update weights and gather them piece by piece, the last of which may be
 * shorter. A piece has a slice of each rank, side by side. */
typedef struct {
    size_t at, each;  /* where it begins in the set, and the numbers of a slice */
    size_t mine, own; /* where this rank's slice begins: in the set; in master, m and v */
} Piece;

/* The piece that begins at this place, a multiple of t->piece. */
static inline Piece piece_at(const Trainer *t, size_t at)
{
    size_t n = (size_t)ranks_size(), left = t->set->size - at,
           each = (left < t->piece ? left : t->piece) / n;
    return (Piece){.at = at, .each = each, .mine = at + (size_t)ranks_rank() * each, .own = at / n};
}

/* Masters from the weights as they are now. */
void trainer_take_weights(Trainer *t);

#endif
