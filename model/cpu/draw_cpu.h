/* Draw one token from a row of logits, on the CPU. */
#ifndef MODEL_CPU_DRAW_CPU_H
#define MODEL_CPU_DRAW_CPU_H

#include <stdint.h>

#include "model/core/draw_law.h"

typedef struct {
    float weight;
    int32_t id;
} DrawCandidate;

/* Returns whether draw_token needs `order`. */
int draw_sorts(const DrawLaw *law);

/* u is in [0, 1). probs and order are scratch of vocab entries. *logp is the log-probability under
 * the full softmax at the temperature, including ids that the law leaves out, as the trainer
 * computes it. */
int32_t draw_token(const DrawLaw *law, const float *logits, double u, float *probs,
                   DrawCandidate *order, float *logp);

#endif
