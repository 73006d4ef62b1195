/* One token from a row of logits. */
#ifndef MODEL_CORE_DRAW_H
#define MODEL_CORE_DRAW_H

#include <stdint.h>

/* What is left out one after another: banned ids; all but the top_k likeliest; of these all but the
 * fewest likeliest that hold top_p of their mass; of these what is less than min_p times as likely
 * as the likeliest. Of equally likely ids the smaller one goes before. */
typedef struct {
    float temperature; /* 0: the likeliest token, logp at temperature 1 */
    float top_p;       /* 1: off */
    int vocab;
    const int *banned; /* ids, at least one other is left */
    int n_banned;
    int top_k;   /* 0: off */
    float min_p; /* 0: off */
} DrawLaw;

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
