/* One group at a time; a sample that is an example moves out of its group. */
#include "stages/crl/grpo.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Compares ids, or the text when an endpoint did not return the ids. */
static int same_prompt(const Sample *a, const Sample *b)
{
    if (!strcmp(a->group, b->group)) return 1;
    if (strcmp(a->task, b->task)) return 0;
    if (!a->prompt_ids || !b->prompt_ids) return !strcmp(a->prompt, b->prompt);
    return a->n_prompt == b->n_prompt &&
           !memcmp(a->prompt_ids, b->prompt_ids, (size_t)a->n_prompt * sizeof *a->prompt_ids);
}

/* Returns the end of the group that begins at `first`. The samples of a group are adjacent: the
 * order is (prompt, copy), and the plain prompts of a task, which have one text, come first. */
static long group_end(const SampleSet *s, long first)
{
    long i = first + 1;
    while (i < s->n && same_prompt(&s->items[i], &s->items[first])) i++;
    return i;
}

typedef struct {
    const Sample **member;
    Example *example; /* of each member; zeroed once it is handed over */
    double *reward, *shaped, *advantage;
    int n;
} Group;

static void group_release(Group *g)
{
    examples_free(g->example, g->n);
    free(g->member);
    free(g->reward);
    free(g->shaped);
    free(g->advantage);
}

/* Reads the interval of a score: measured, or of the width that the options give a prediction. */
static int read_interval(const Sample *s, double tie, double *low, double *high, Error *err)
{
    int predicted = 1;
    *low = s->reward * (1 - tie / 2);
    *high = s->reward * (1 + tie / 2);
    if (s->score <= 0 || s->reward != s->score || !s->verdict.map) return 0;
    if (view_bool(&s->verdict, "predicted", &predicted, err)) return -1;
    return predicted ? 0
           : view_float(&s->verdict, "low", low, err) || view_float(&s->verdict, "high", high, err)
               ? -1
               : 0;
}

/* Makes the smoothed rewards of the members, with ties. */
static int smooth_rewards(Group *g, const RewardStats *stats, const GrpoOptions *o, Error *err)
{
    double *low = memory_array((size_t)g->n, sizeof *low),
           *high = memory_array((size_t)g->n, sizeof *high);
    int rc = 0;
    for (int i = 0; !rc && i < g->n; i++) {
        g->reward[i] = g->member[i]->reward;
        rc = read_interval(g->member[i], o->tie, &low[i], &high[i], err);
    }
    if (!rc) reward_ties(g->reward, low, high, g->n);
    for (int i = 0; i < g->n; i++)
        g->reward[i] = reward_smooth(stats, g->member[i]->task, g->reward[i], o->clip);
    free(low);
    free(high);
    return rc;
}

/* The round that examples are made of. */
typedef struct {
    const SampleSet *s;
    const RewardStats *stats;
    const GrpoOptions *o;
    GrpoExamples *out;
} Round;

/* Fills a group with its judged samples as examples, whose lengths the penalty needs. */
static int group_fill(Group *g, const Round *r, long first, long last, Error *err)
{
    const GrpoOptions *o = r->o;
    GrpoStats *report = &r->out->stats;
    size_t cap = (size_t)(last - first);
    *g = (Group){memory_array(cap, sizeof *g->member),    memory_array(cap, sizeof *g->example),
                 memory_array(cap, sizeof *g->reward),    memory_array(cap, sizeof *g->shaped),
                 memory_array(cap, sizeof *g->advantage), 0};
    for (long i = first; i < last; i++) {
        const Sample *x = &r->s->items[i];
        if (x->outcome == OUTCOME_EVALUATOR_ERROR) continue;
        report->judged++;
        report->mean_reward += x->score;
        report->success += x->outcome == OUTCOME_OK;
        if (o->overlong == OVERLONG_DROP && x->truncated) continue;
        g->member[g->n] = x;
        if (learn_example(o->policy, x, o->with_old, &g->example[g->n++], err)) return -1;
    }
    return smooth_rewards(g, r->stats, o, err);
}

static void group_advantages(Group *g, const GrpoOptions *o)
{
    reward_best_of(g->reward, g->n, o->best_of, g->shaped);
    for (int i = 0; i < g->n; i++) {
        const Example *e = &g->example[i];
        g->shaped[i] += o->success_worth * (g->member[i]->outcome == OUTCOME_OK);
        if (o->overlong == OVERLONG_PENALTY)
            g->shaped[i] += loss_overlong(e->len - e->prompt, o->longest, o->margin);
    }
    loss_advantages(o->advantage, g->shaped, g->n, o->floor_std, g->advantage);
}

static int add_group(const Round *r, long first, long last, Error *err)
{
    Group g;
    GrpoExamples *out = r->out;
    int signal = 0, rc = group_fill(&g, r, first, last, err);
    if (!rc) group_advantages(&g, r->o);
    for (int i = 0; !rc && i < g.n; i++) {
        signal |= g.advantage[i] != 0;
        if (g.advantage[i] == 0 && !r->o->keep_constant) continue;
        if (g.example[i].len > r->o->max_len) {
            out->stats.dropped++;
            continue;
        }
        out->items[out->n] = g.example[i];
        out->items[out->n++].advantage = g.advantage[i];
        g.example[i] = (Example){0};
    }
    out->stats.constant += !rc && !signal;
    group_release(&g);
    return rc;
}

int grpo_examples(const SampleSet *s, const RewardStats *stats, const GrpoOptions *o,
                  GrpoExamples *out, Error *err)
{
    const Round r = {s, stats, o, out};
    *out = (GrpoExamples){.items = memory_array((size_t)s->n, sizeof *out->items)};
    GrpoStats *report = &out->stats;
    for (long first = 0, last; first < s->n; first = last) {
        last = group_end(s, first);
        if (s->items[first].heldout) continue;
        report->groups++;
        if (add_group(&r, first, last, err)) return -1;
    }
    report->used = out->n;
    if (report->judged) {
        report->mean_reward /= (double)report->judged;
        report->success /= (double)report->judged;
    }
    return 0;
}
