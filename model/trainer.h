/* Inside the model module: the trainer's state, for saving. */
#ifndef MODEL_TRAINER_H
#define MODEL_TRAINER_H

#include "model/plan.h"
#include "model/transformer.h"

struct Trainer {
    Model *model;
    ParamSet *set;                 /* what is trained: the adapter, or the base */
    TrainerOptions o;
    MemoryPlan plan;
    float *grad;                   /* laid out as the set */
    size_t first, each;            /* this rank's slice of the set: the next three are of it */
    float *master;                 /* fp32 weights, or NULL: the set's own numbers are */
    void *m, *v;                   /* fp32; Num with o.lean */
    int64_t step;
    float *weight, *logp, *given;  /* host memory: of the rows of a micro-batch; of one sequence */
    int weight_cap;                /* rows */
    Acts acts;
    Grads grads;
    TokenBatch batch;
};

/* Bytes of an m or v. */
static inline size_t moment_size(const Trainer *t) { return t->o.lean ? (size_t)t->model->ops->num : sizeof(float); }

/* Masters from the weights as they are now. */
void trainer_take_weights(Trainer *t);

#endif
