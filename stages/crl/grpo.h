/* From scored samples to GRPO's examples: raw score -> smoothed reward -> what the sample adds to the group's worth
 * -> advantage within the group. A group is all samples of one prompt, the same text under several names included
 * (a task's plain prompts). Groups whose rewards are all the same teach nothing and are dropped, and so is a sample
 * whose evaluator failed: that says nothing of the candidate.
 *
 * The worth is the expected best of best_of samples: a kernel is drawn several times and the best is kept, so an
 * answer counts by how far it beats what the others would have given. The mean (best_of 1) instead sharpens on
 * whatever is safest. What beats nothing would then weigh the same right or wrong: success_worth tells them apart. */
#ifndef STAGES_CRL_GRPO_H
#define STAGES_CRL_GRPO_H

#include "stages/crl/reward.h"
#include "stages/learn.h"

typedef struct {
    double clip;               /* k of the smoothing: 1.5 */
    double floor_std;          /* in the advantage's denominator, in smoothed units */
    int best_of;               /* the group's worth is its expected best of so many; 1: its mean */
    double success_worth;      /* added for a success, in smoothed units */
    int max_len;               /* longer answers are left out: memory */
} GrpoOptions;

typedef struct {
    long groups, constant, used; /* prompts, those without a signal, examples made */
    double mean_reward, success; /* raw, over all samples */
} GrpoStats;

/* stats must hold this round's rewards already. */
int grpo_examples(const SampleSet *s, const RewardStats *stats, const GrpoOptions *o, Example **out, long *n,
                  GrpoStats *report, Error *err);

#endif
