/* One token from a row of logits. */
#ifndef MODEL_DRAW_H
#define MODEL_DRAW_H

#include <stdint.h>

typedef struct {
    float temperature, top_p;      /* temperature 0: the likeliest token, logp at temperature 1 */
    int vocab;
    const int *banned;             /* ids, at least one other is left */
    int n_banned;
} DrawLaw;

typedef struct {
    float weight;
    int32_t id;
} DrawCandidate;

/* u in [0, 1). probs and order: scratch of vocab entries (order only for top_p < 1). *logp is of the
 * full softmax at the temperature, banned tokens and what top_p cuts off included: what a trainer
 * computes for the token. */
int32_t draw_token(const DrawLaw *law, const float *logits, double u, float *probs, DrawCandidate *order, float *logp);

#endif
