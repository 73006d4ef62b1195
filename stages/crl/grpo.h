/* From scored samples to GRPO's examples: raw score -> smoothed reward -> advantage within the group of
 * samples of one prompt. Groups whose rewards are all the same teach nothing and are dropped, and so is a
 * sample whose evaluator failed: that says nothing of the candidate. */
#ifndef STAGES_CRL_GRPO_H
#define STAGES_CRL_GRPO_H

#include "stages/crl/reward.h"
#include "stages/learn.h"

typedef struct {
    double clip;               /* k of the smoothing: 1.5 */
    double floor_std;          /* in the advantage's denominator, in smoothed units */
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
