/* One token from a row of logits, on the CPU. */
#ifndef MODEL_CPU_DRAW_CPU_H
#define MODEL_CPU_DRAW_CPU_H

#include <stdint.h>

#include "model/core/draw_law.h"

typedef struct {
    float weight;
    int32_t id;
} DrawCandidate;

/* Whether drawing needs `order`. */
int draw_sorts(const DrawLaw *law);

/* u in [0, 1). probs and order: scratch of vocab entries. *logp is of the full softmax at the
 * temperature, whatever was left out included: what a trainer computes for the token. */
int32_t draw_token(const DrawLaw *law, const float *logits, double u, float *probs,
                   DrawCandidate *order, float *logp);

#endif
