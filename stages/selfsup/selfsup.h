/* The examples of stage 2: REINFORCE with reward 1 for a success and 0 otherwise, without a
 * baseline (method, section 3), on the model's own kernels of this round and of the stage's earlier
 * rounds.
 *
 * The paper leaves three choices open:
 * - A kernel counts once, as in stage 1, however many samples and rounds have written it.
 *   Otherwise common kernels would displace rare ones round by round, and stage 3 needs a model
 *   that can write many different kernels.
 * - Every task has the same weight: a success of a task with n successes weighs 1/n, times a factor
 *   that makes the mean weight 1. Otherwise the easy tasks would make most of the gradient.
 * - The examples of stage 1, or a share of them that each round draws by itself, are rehearsed beside
 *   them. Kernels that are hard to write succeed seldom, so the successes alone would teach the model
 *   away from them. */
#ifndef STAGES_SELFSUP_SELFSUP_H
#define STAGES_SELFSUP_SELFSUP_H

#include "stages/data/pool.h"
#include "stages/train/learn.h"

typedef struct {
    Example *items;
    char **task;          /* of each own example */
    long own, n;          /* the model's own examples; all, with the rehearsed ones */
    const Policy *policy; /* encodes answers without ids; NULL: they are an error */
} Successes;

/* Adds the successes of a round that are not in `known`, and adds them to `known`. */
int successes_add(Successes *s, const SampleSet *round, Pool *known, Error *err);
/* Sets the weights by task. It is called once, after the last round. */
void successes_balance(Successes *s);
/* What is rehearsed: each example of stage 1 with a chance of `share`, by the seed and the stream. */
typedef struct {
    int max_len; /* in tokens; longer examples are left out */
    double share;
    uint64_t seed, stream;
} Rehearsal;

/* Adds examples of stage 1 with weight 1. It is called after successes_balance. */
int successes_rehearse(Successes *s, const char *model_dir, const char *dataset, const Rehearsal *r,
                       Error *err);
/* Hands over the *n examples, which the caller frees with examples_free, and releases *s. */
Example *successes_take(Successes *s, long *n);
void successes_release(Successes *s);

#endif
