#include "stages/crl/grpo.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int same_prompt(const Sample *a, const Sample *b)
{
    if (!strcmp(a->group, b->group)) return 1;
    return !strcmp(a->task, b->task) && a->n_prompt == b->n_prompt && a->prompt_ids && b->prompt_ids &&
           !memcmp(a->prompt_ids, b->prompt_ids, (size_t)a->n_prompt * sizeof *a->prompt_ids);
}

/* Samples of one prompt stand together in the artifact: its order is (prompt, copy), a task's plain prompts, which
 * are all the same text, come first and make one group. */
static long group_end(const SampleSet *s, long first)
{
    long i = first + 1;
    while (i < s->n && same_prompt(&s->items[i], &s->items[first])) i++;
    return i;
}

static int add_group(const SampleSet *s, long first, long last, const RewardStats *stats, const GrpoOptions *o,
                     Example *out, long *n, GrpoStats *report, Error *err)
{
    int size = 0, rc = 0, signal = 0;
    size_t cap = (size_t)(last - first);
    double *reward = memory_array(cap, sizeof *reward), *worth = memory_array(cap, sizeof *worth),
           *adv = memory_array(cap, sizeof *adv);
    const Sample **member = memory_array(cap, sizeof *member);
    for (long i = first; i < last; i++) {
        const Sample *x = &s->items[i];
        if (x->outcome == OUTCOME_EVALUATOR_ERROR) continue;
        report->mean_reward += x->score / (double)s->n;
        report->success += (x->outcome == OUTCOME_OK) / (double)s->n;
        if (o->overlong == OVERLONG_DROP && x->truncated) continue;
        reward[size] = reward_smooth(stats, x->task, x->score, o->clip);
        member[size++] = x;
    }
    reward_best_of(reward, size, o->best_of, worth);
    for (int i = 0; i < size; i++) {
        worth[i] += o->success_worth * (member[i]->outcome == OUTCOME_OK);
        if (o->overlong == OVERLONG_PENALTY) worth[i] += loss_overlong(member[i]->n_ids, o->longest, o->margin);
    }
    loss_advantages(o->advantage, worth, size, o->floor_std, adv);
    for (int i = 0; !rc && i < size; i++) {
        const Sample *x = member[i];
        signal |= adv[i] != 0;
        if ((adv[i] == 0 && !o->keep_constant) || x->n_prompt + x->n_ids > o->max_len) continue;
        rc = learn_example(o->policy, x, adv[i], o->with_old, &out[*n], err);
        if (!rc) (*n)++;
    }
    report->constant += !signal;
    free(reward);
    free(worth);
    free(adv);
    free(member);
    return rc;
}

int grpo_examples(const SampleSet *s, const RewardStats *stats, const GrpoOptions *o, Example **out, long *n,
                  GrpoStats *report, Error *err)
{
    *report = (GrpoStats){0};
    *out = memory_array((size_t)s->n, sizeof **out);
    *n = 0;
    for (long first = 0, last; first < s->n; first = last) {
        last = group_end(s, first);
        if (s->items[first].heldout) continue;
        report->groups++;
        if (add_group(s, first, last, stats, o, *out, n, report, err)) return -1;
    }
    report->used = *n;
    return 0;
}
