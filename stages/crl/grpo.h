/* From scored samples to the examples of a group-relative loss: raw score -> smoothed reward ->
 * shaped reward -> advantage within the group (method, sections 4.4 to 4.6). A group is all samples
 * of one prompt; prompts with the same text, such as the plain ones of a task, are one. A group
 * whose rewards are equal teaches nothing and is dropped, unless keep_constant. Scores of a group
 * that cannot be told apart are ties (reward_ties): measured ones whose 95% intervals meet,
 * predicted ones whose intervals of score times 1 +- tie/2 meet. A sample that was not judged,
 * because its evaluator or its endpoint failed, is dropped too.
 *
 * The shaped reward is the sample's part of the expected best of best_of samples (reward_best_of).
 * A kernel is sampled several times and the best is kept, so an answer counts by how far it beats
 * the others. With best_of 1, the mean, the policy would learn what is safest. An answer that beats
 * no other has the same part whether it is right or wrong; success_worth is added for a right
 * one. */
#ifndef STAGES_CRL_GRPO_H
#define STAGES_CRL_GRPO_H

#include "stages/crl/reward.h"
#include "stages/train/learn.h"

/* Answers that the token limit has cut: examples like others; dropped, also from the group; or
 * punished for their length already before the limit (loss_overlong). */
#define GRPO_OVERLONG "keep|drop|penalty"
typedef enum { OVERLONG_KEEP, OVERLONG_DROP, OVERLONG_PENALTY } Overlong;

typedef struct {
    double clip;          /* k of the smoothing: 1.5 */
    double tie;           /* predicted scores nearer than this share are ties; see below */
    double floor_std;     /* in the advantage's denominator, in smoothed units */
    int best_of;          /* k of reward_best_of; 1: the mean counts */
    double success_worth; /* added for a success, in smoothed units */
    int max_len;          /* tokens; longer examples are dropped, since memory is bounded */
    const Policy *policy; /* encodes answers without ids; NULL: they are an error */
    int with_old;         /* copy the log-probabilities as sampled */
    LossAdvantage advantage;
    int keep_constant; /* keep advantage 0, for the normalizer and the KL term */
    Overlong overlong;
    int longest, margin; /* tokens: the longest answer; the penalty begins margin before */
} GrpoOptions;

typedef struct {
    long groups, constant, used; /* groups, groups without a signal, examples */
    long dropped;                /* examples longer than max_len */
    long judged;                 /* judged samples */
    double mean_reward, success; /* raw means over the judged samples */
} GrpoStats;

/* The examples of a round. The caller frees the items with examples_free, also after an error. */
typedef struct {
    Example *items;
    long n;
    GrpoStats stats;
} GrpoExamples;

/* stats must already include the rewards of the samples. */
int grpo_examples(const SampleSet *s, const RewardStats *stats, const GrpoOptions *o,
                  GrpoExamples *out, Error *err);

#endif
