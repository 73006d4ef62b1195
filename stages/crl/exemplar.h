/* The draw of the scored kernels that a contrastive prompt shows (method, section 4.3, Eq. 1).
 *
 * Kernels far below the others are not drawn: those under `floor` times the baseline, or times the
 * task's best kernel if that is slower, unless too few were left.
 *
 * bucket: the kernels of the task fall into buckets of log2(score), a quarter wide. N distinct
 *   buckets are drawn without replacement with P(B_i) proportional to exp((s_i - mu)/tau), where
 *   s_i is the mean log2 score of bucket i and mu the mean of the s_i. One kernel of each is drawn
 *   uniformly. The paper does not state the width and tau. Log scores give a bucket the same
 *   meaning at 1.1x and at 60x. tau = temperature * std(s_i) keeps the draw from becoming greedy
 *   when scores spread: at temperature 1 the better of two buckets one std apart is e times as
 *   likely.
 * island: N kernels of the prompt's island (below), with P proportional to
 *   exp(log2 score / tau) (FunSearch's rule).
 * random: N kernels, uniformly.
 * shuffled: as bucket, but the prompt shows the kernels' scores in a random order. It is the
 *   placebo: what a run gains beyond it, it gains from the scores.
 * none: no kernels.
 *
 * With bucket, island and shuffled, one of N > 1 kernels beats the baseline where a kernel of the
 * task does: it takes the place of the slowest one. Then, with `apart`, the fastest of them is that
 * many times as fast as the slowest where the task has such kernels, so that the scores tell which
 * of them to follow. */
#ifndef STAGES_CRL_EXEMPLAR_H
#define STAGES_CRL_EXEMPLAR_H

#include "base/random.h"
#include "stages/data/pool.h"

#define EXEMPLAR_RULES "bucket|island|random|shuffled|none"
typedef enum {
    EXEMPLAR_BUCKET,
    EXEMPLAR_ISLAND,
    EXEMPLAR_RANDOM,
    EXEMPLAR_SHUFFLED,
    EXEMPLAR_NONE
} ExemplarRule;
enum { EXEMPLAR_MAX = 8 };

typedef struct {
    ExemplarRule rule;
    double temperature; /* of the softmax, in standard deviations */
    double floor;       /* share of the baseline's speed; 0: every kernel is drawn from */
    int migrate, reset; /* island: so many rounds apart; 0: never */
    double apart;       /* least factor between the fastest and the slowest kernel; 1: any */
} ExemplarOptions;

/* A kernel and the score that the prompt shows. */
typedef struct {
    const PoolItem *item;
    double shown;
} ExemplarPick;

/* Draws up to n distinct kernels of a task for the prompt of this id. Returns how many: fewer when
 * the pool or the number of buckets is smaller. The order of the picks is random, so that it does
 * not depend on the score. */
int exemplar_draw(const Pool *p, const char *task, const char *prompt, const ExemplarOptions *opt,
                  int n, Random *rng, ExemplarPick picks[EXEMPLAR_MAX]);

/* ---- islands: four populations of kernels for a task, which evolve apart (FunSearch). A prompt's id
 * puts it on an island; its kernels come from there, and the answers to it stay there. A kernel from
 * before stage 3 is put on one by the digest of its source.
 *
 * Every `migrate` rounds the best kernel of each island is shown on the next one, too. Every `reset`
 * rounds the two islands whose best kernel is slowest lose their kernels, and each is founded again
 * by the best kernel of one of the others. Both follow from the pool alone. ---- */
enum { ISLANDS = 4 };

int island_of_prompt(const char *id);
/* Writes which of the n kernels are on the island: in[i] becomes 1 or 0. items are of one task. */
void island_members(const PoolItem *const *items, int n, int island, const ExemplarOptions *o,
                    char *in);

#endif
