/* Stage 2's examples: REINFORCE with reward 1 for a success, 0 for all else, no baseline (method,
 * section 3), on the model's own kernels of this round and of the stage's earlier ones.
 *
 * Three choices that the paper leaves open:
 * - Once each, as in stage 1: a kernel that an earlier round or sample wrote does not count again.
 * Samples follow the model's habits, so the common ones would drown the rare, round by round; what
 * stage 3 starts from is how many different kernels the model can write.
 * - Every task weighs the same: a success of a task with n of them weighs 1/n (times the mean of n,
 * so that the average weight stays 1). Else the easy tasks, which need it least, make up most of
 * the gradient.
 * - Stage 1's examples are rehearsed beside them: what is hard to write right succeeds seldom, so
 * the successes alone would teach the model away from it. */
#ifndef STAGES_SELFSUP_SELFSUP_H
#define STAGES_SELFSUP_SELFSUP_H

#include "stages/data/pool.h"
#include "stages/train/learn.h"

typedef struct {
    Example *items;
    char **task;          /* of each */
    long own, n;          /* the model's own, and with those rehearsed */
    const Policy *policy; /* encodes answers that came without ids; NULL: they are an error */
} Successes;

/* Add the successes of one round that are not in `known`, and enter them there. */
int successes_add(Successes *s, const SampleSet *round, Pool *known, Error *err);
/* Set the weights by task; call once, after the last round. */
void successes_balance(Successes *s);
/* Add stage 1's examples, weight 1 each; call after successes_balance. */
int successes_rehearse(Successes *s, const char *model_dir, const char *dataset, int max_len,
                       Error *err);
/* Hands over the *n examples, which the caller frees with examples_free, and releases *s. */
Example *successes_take(Successes *s, long *n);
void successes_release(Successes *s);

#endif
