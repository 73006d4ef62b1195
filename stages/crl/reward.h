/* The reward of stage 3 (method, sections 4.4-4.6): the verdict's score (0 for a failure), smoothed
 * by a running z-score clipped at +-k (k = 1.5); stages/train/loss.h makes the group's advantages
 * of it.
 *
 * The running mean and deviation are kept per task: tasks differ in how fast they can get, and with
 * one common scale the slow ones would sit below zero and the fast ones at the clip, both without a
 * signal. They are updated after a round, weighting earlier rounds by `decay`. */
#ifndef STAGES_CRL_REWARD_H
#define STAGES_CRL_REWARD_H

#include "base/error.h"
#include "stages/data/samples.h"

enum { REWARD_MAX_TASKS = 512 };

typedef struct {
    char *task[REWARD_MAX_TASKS];
    double weight[REWARD_MAX_TASKS], mean[REWARD_MAX_TASKS],
        square[REWARD_MAX_TASKS]; /* of raw rewards */
    int n;
} RewardStats;

void reward_stats_init(RewardStats *s);
void reward_stats_release(RewardStats *s);
/* Fold one round's raw rewards in; an evaluator's own failure, or an endpoint's, is no reward. */
int reward_stats_update(RewardStats *s, const SampleSet *set, double decay, Error *err);
/* clip((r - mean)/std, -k, k) by the task's statistics; 0 where its deviation is 0. */
double reward_smooth(const RewardStats *s, const char *task, double raw, double k);

/* What each member adds to the expected best of k members: the mean of max(0, r_i - max of k - 1
 * others) over every choice of the others (k is cut to n). k = 1: the reward itself. */
void reward_best_of(const double *reward, int n, int k, double *out);

#endif
