/* Which scored kernels a contrastive prompt shows (method, section 4.3, Eq. 1).
 *
 * bucket: kernels of the task fall into buckets of log2(score), EXEMPLAR_BUCKET wide; N distinct
 * buckets are drawn without replacement from P(B_i) proportional to exp((s_i - mu)/tau), s_i the
 * bucket's mean log2 score, then one kernel uniformly from each. The paper does not state tau and
 * the width; log scores keep a bucket's meaning at 1.1x and at 60x, and tau = temperature *
 * std(s_i) keeps the draw from becoming greedy when scores spread (the figure 1 makes the best of
 * two buckets one std apart e times as likely). island: kernels live on 4 islands by the digest of
 * their source; an island is drawn, then N kernels of it with P proportional to exp(log2 score /
 * tau) (FunSearch's rule, simplified). random: N uniformly. */
#ifndef STAGES_CRL_EXEMPLAR_H
#define STAGES_CRL_EXEMPLAR_H

#include "base/random.h"
#include "stages/data/pool.h"

typedef enum { EXEMPLAR_BUCKET, EXEMPLAR_ISLAND, EXEMPLAR_RANDOM } ExemplarRule;
enum { EXEMPLAR_MAX = 8 };

typedef struct {
    ExemplarRule rule;
    double width, temperature; /* of buckets in log2 units; of the softmax in standard deviations */
} ExemplarOptions;

int exemplar_rule(const char *name,
                  ExemplarRule *out); /* "bucket", "island", "random"; -1 unknown */

/* Draw up to n distinct kernels of a task; returns how many (fewer when the pool, or the number of
 * buckets, is smaller). The order of picks is random: position says nothing of the score. */
int exemplar_draw(const Pool *p, const char *task, const ExemplarOptions *opt, int n, Random *rng,
                  const PoolItem *picks[EXEMPLAR_MAX]);

#endif
