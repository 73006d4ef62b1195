/* Inside the model module: the trainer's state, for saving. */
#ifndef MODEL_TRAINER_H
#define MODEL_TRAINER_H

#include "model/transformer.h"

struct Trainer {
    Model *model;
    int max_tokens;
    float *grad, *m, *v;           /* laid out as the parameters */
    float *weight;                 /* of the rows of a micro-batch, then scratch */
    int64_t step;
    Acts acts;
    Grads grads;
    TokenBatch batch;
};

#endif
