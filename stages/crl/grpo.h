/* From scored samples to the examples of a group-relative loss: raw score -> smoothed reward ->
 * what the sample adds to the group's worth -> advantage within the group. A group is all samples
 * of one prompt, the same text under several names included (a task's plain prompts). Groups whose
 * rewards are all the same teach nothing and are dropped (unless keep_constant), and so is a sample
 * that was not judged, because its evaluator or its endpoint failed: that says nothing of a
 * candidate.
 *
 * The worth is the expected best of best_of samples: a kernel is drawn several times and the best
 * is kept, so an answer counts by how far it beats what the others would have given. The mean
 * (best_of 1) instead sharpens on whatever is safest. What beats nothing would then weigh the same
 * right or wrong: success_worth tells them apart. */
#ifndef STAGES_CRL_GRPO_H
#define STAGES_CRL_GRPO_H

#include "stages/crl/reward.h"
#include "stages/train/learn.h"

/* Answers cut by the token limit: examples like others, left out (out of the group too), or
 * punished for their length before the limit already (loss_overlong). */
#define GRPO_OVERLONG "keep|drop|penalty"
typedef enum { OVERLONG_KEEP, OVERLONG_DROP, OVERLONG_PENALTY } Overlong;

typedef struct {
    double clip;          /* k of the smoothing: 1.5 */
    double floor_std;     /* in the advantage's denominator, in smoothed units */
    int best_of;          /* the group's worth is its expected best of so many; 1: its mean */
    double success_worth; /* added for a success, in smoothed units */
    int max_len;          /* longer examples, prompt and answer, are left out: memory */
    const Policy *policy; /* encodes answers that came without ids; NULL: they are an error */
    int with_old;         /* copy the log-probabilities as sampled */
    LossAdvantage advantage;
    int keep_constant; /* examples of advantage 0 too: they count in the normaliser, and a KL term
                          sees them */
    Overlong overlong;
    int longest,
        margin; /* of the penalty: tokens of the longest answer, and how long before it begins */
} GrpoOptions;

typedef struct {
    long groups, constant, used; /* prompts, those without a signal, examples made */
    long judged;                 /* samples that count */
    double mean_reward, success; /* raw, over those */
} GrpoStats;

/* stats must hold this round's rewards already. */
int grpo_examples(const SampleSet *s, const RewardStats *stats, const GrpoOptions *o, Example **out,
                  long *n, GrpoStats *report, Error *err);

#endif
