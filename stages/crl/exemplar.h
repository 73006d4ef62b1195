/* The draw of the scored kernels that a contrastive prompt shows (method, section 4.3, Eq. 1).
 *
 * bucket: the kernels of the task fall into buckets of log2(score), `width` wide. N distinct
 *   buckets are drawn without replacement with P(B_i) proportional to exp((s_i - mu)/tau), where
 *   s_i is the mean log2 score of bucket i and mu the mean of the s_i. One kernel of each is drawn
 *   uniformly. The paper does not state the width and tau. Log scores give a bucket the same
 *   meaning at 1.1x and at 60x. tau = temperature * std(s_i) keeps the draw from becoming greedy
 *   when scores spread: at temperature 1 the better of two buckets one std apart is e times as
 *   likely.
 * island: the digest of its source puts a kernel on one of 4 islands. An island is drawn, then N
 *   kernels of it with P proportional to exp(log2 score / tau) (FunSearch's rule, simplified).
 * random: N kernels, uniformly. */
#ifndef STAGES_CRL_EXEMPLAR_H
#define STAGES_CRL_EXEMPLAR_H

#include "base/random.h"
#include "stages/data/pool.h"

typedef enum { EXEMPLAR_BUCKET, EXEMPLAR_ISLAND, EXEMPLAR_RANDOM } ExemplarRule;
enum { EXEMPLAR_MAX = 8 };

typedef struct {
    ExemplarRule rule;
    double width;       /* of a bucket, in log2 of the score */
    double temperature; /* of the softmax, in standard deviations */
} ExemplarOptions;

/* Finds a rule by its name, "bucket", "island" or "random". Returns -1 for another name. */
int exemplar_rule(const char *name, ExemplarRule *out);

/* Draws up to n distinct kernels of a task. Returns how many: fewer when the pool or the number of
 * buckets is smaller. The order of the picks is random, so that it does not depend on the score. */
int exemplar_draw(const Pool *p, const char *task, const ExemplarOptions *opt, int n, Random *rng,
                  const PoolItem *picks[EXEMPLAR_MAX]);

#endif
