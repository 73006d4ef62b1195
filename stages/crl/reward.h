/* The reward of stage 3 (method, sections 4.4 to 4.6): the verdict's score, 0 for a failure,
 * smoothed by a running z-score that is clipped to +-k (k = 1.5). stages/train/loss.h makes
 * advantages of it.
 *
 * The running mean and deviation are kept per task, since tasks differ in the speedup that is
 * possible. On one common scale the rewards of a slow task would be below zero and those of a fast
 * one at the clip, and neither would give a signal. The statistics are updated after a round, with
 * the weight of earlier rounds multiplied by `decay`. */
#ifndef STAGES_CRL_REWARD_H
#define STAGES_CRL_REWARD_H

#include "base/error.h"
#include "stages/data/samples.h"

enum { REWARD_MAX_TASKS = 4096 };

typedef struct {
    char *task[REWARD_MAX_TASKS];
    double weight[REWARD_MAX_TASKS]; /* how many raw rewards, decayed */
    double mean[REWARD_MAX_TASKS];   /* of the raw rewards */
    double square[REWARD_MAX_TASKS]; /* mean of their squares */
    int n;
} RewardStats;

void reward_stats_init(RewardStats *s);
void reward_stats_release(RewardStats *s);
/* Adds the raw rewards of a round (Sample.reward). A failure of the evaluator or the endpoint is no
 * reward. */
int reward_stats_update(RewardStats *s, const SampleSet *set, double decay, Error *err);
/* Returns clip((raw - mean)/std, -k, k) with the statistics of the task; 0 when std is 0. */
double reward_smooth(const RewardStats *s, const char *task, double raw, double k);

/* Gives equal rewards to those that cannot be told apart: from the lowest score on, the scores whose
 * interval [low, high] meets the interval of the first of them are ties, and each becomes their
 * mean. A score of 0, a failure, ties with nothing. */
void reward_ties(double *score, const double *low, const double *high, int n);

/* Writes to out[i] what member i adds to the expected best of k members: the mean of
 * max(0, r_i - max of k - 1 others) over all choices of the others. k is at most n. k = 1 gives the
 * reward itself. */
void reward_best_of(const double *reward, int n, int k, double *out);

#endif
