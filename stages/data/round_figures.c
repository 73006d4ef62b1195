/* Counts in one pass; shares are made of them at the end. */
#include "stages/data/round_figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stages/data/ablation.h"
#include "stages/data/comparison.h"

static const double least_score = 0.01;

/* What a correct kernel uses, by a text in its source. */
static const struct {
    const char *name, *texts[4];
} techniques[ROUND_TECHNIQUES] = {{"vectors", {"float4", "float2", "half2", "uint4"}},
                                  {"shared", {"__shared__"}},
                                  {"shuffles", {"__shfl"}},
                                  {"unrolling", {"#pragma unroll", "template <int"}},
                                  {"strides", {"gridDim"}},
                                  {"atomics", {"atomicAdd", "atomicMax"}},
                                  {"async", {"cp.async", "__pipeline", "memcpy_async"}},
                                  {"tensor_cores", {"wmma", "mma.sync"}},
                                  {"launches", {NULL}}}; /* more than one */

static void add(RoundPart *p, const Sample *s)
{
    p->samples++;
    p->succeeded += s->outcome == OUTCOME_OK;
    p->score += s->score;
    p->with_ids += s->ids != NULL;
    p->tokens += s->ids ? s->n_ids : 0;
    if (!s->logprobs) return;
    for (int i = 0; i < s->n_ids; i++) p->surprise -= s->logprobs[i];
    p->sampled += s->n_ids;
}

static void compare(RoundFigures *f, const Sample *s)
{
    Comparison c = comparison_judge(s->prompt, s->text);
    f->compared += c != COMPARISON_NONE;
    f->right += c == COMPARISON_RIGHT;
    f->wrong += c == COMPARISON_WRONG;
    f->tied += c == COMPARISON_TIE;
    f->silent += c == COMPARISON_SILENT;
}

static int launches(const char *source)
{
    int n = 0;
    for (const char *p = source; (p = strstr(p, "//@ launch")); p++) n++;
    return n;
}

static void count_techniques(RoundFigures *f, const Sample *s)
{
    f->correct++;
    for (int i = 0; i < ROUND_TECHNIQUES; i++) {
        int found = !techniques[i].texts[0] && launches(s->source) > 1;
        for (int k = 0; k < 4 && techniques[i].texts[k]; k++)
            found |= strstr(s->source, techniques[i].texts[k]) != NULL;
        f->technique[i] += found;
    }
}

/* The expected best of 8 of a task's scores among the samples that `of` puts into the part; -1: it has
 * none there. */
static double best_of_8(const SampleSet *s, RoundPart *const *of, const RoundPart *part,
                        const char *task)
{
    double *score = memory_array((size_t)s->n, sizeof *score);
    int n = 0;
    for (long i = 0; i < s->n; i++)
        if (of[i] == part && !strcmp(s->items[i].task, task)) score[n++] = s->items[i].score;
    double best = n ? ablation_best_of(score, n, 8) : -1;
    free(score);
    return best;
}

static void add_best(const SampleSet *s, RoundPart *const *of, RoundPart *part)
{
    for (long i = 0; i < s->n; i++) {
        int first = of[i] == part;
        for (long k = 0; k < i && first; k++)
            first = of[k] != part || strcmp(s->items[k].task, s->items[i].task) != 0;
        if (!first) continue;
        part->best += log2(fmax(best_of_8(s, of, part, s->items[i].task), least_score));
        part->tasks++;
    }
}

/* The part of a heldout sample beside `heldout`, or NULL. */
static RoundPart *kind_of(const TaskSet *tasks, const Sample *s, RoundFigures *f)
{
    const Task *t = tasks ? taskset_find(tasks, s->task, strlen(s->task)) : NULL;
    return !t ? NULL : t->by_family ? &f->family : t->by_composition ? &f->composition : NULL;
}

void round_figures(const SampleSet *s, const TaskSet *tasks, RoundFigures *out)
{
    double score[COMPARISON_MAX];
    *out = (RoundFigures){0};
    RoundPart **of = memory_array((size_t)s->n, sizeof *of), *kind,
              **by_kind = memory_array((size_t)s->n, sizeof *by_kind);
    out->turns = turns_figures(s, out->turn);
    for (long i = 0; i < s->n; i++) {
        const Sample *x = &s->items[i];
        if (!x->unanswered && !x->heldout) compare(out, x);
        if (x->outcome == OUTCOME_EVALUATOR_ERROR) continue;
        int shown = comparison_scores(x->prompt, score);
        if (x->turn > 1) continue; /* they have figures of their own */
        of[i] = x->heldout ? &out->heldout : shown ? &out->contrastive : &out->plain;
        add(of[i], x);
        if (x->heldout && (kind = kind_of(tasks, x, out))) add(by_kind[i] = kind, x);
        if (x->outcome == OUTCOME_OK && !x->heldout) count_techniques(out, x);
    }
    RoundPart *const parts[] = {&out->plain, &out->contrastive, &out->heldout};
    for (int i = 0; i < 3; i++) add_best(s, of, parts[i]);
    add_best(s, by_kind, &out->composition);
    add_best(s, by_kind, &out->family);
    free(of);
    free(by_kind);
}

int round_gap(const SampleSet *s, const Pool *teacher, const Pool *full, double *gap)
{
    RoundPart part, **of = memory_array((size_t)s->n, sizeof *of);
    int n = 0;
    *gap = 0;
    for (long i = 0; i < s->n; i++)
        if (s->items[i].outcome != OUTCOME_EVALUATOR_ERROR && !s->items[i].heldout) of[i] = &part;
    for (long i = 0; i < s->n; i++) {
        const char *task = s->items[i].task;
        const PoolItem *low = pool_best(teacher, task), *high = pool_best(full, task);
        int first = of[i] == &part && low && high && high->score > 1.02 * low->score;
        for (long k = 0; k < i && first; k++)
            first = of[k] != &part || strcmp(s->items[k].task, task) != 0;
        if (!first || low->score <= 0) continue;
        double best = fmax(best_of_8(s, of, &part, task), least_score);
        *gap += log(best / low->score) / log(high->score / low->score);
        n++;
    }
    if (n) *gap /= n;
    free(of);
    return n;
}

typedef struct {
    void (*put)(void *ctx, const char *name, double v);
    void *ctx;
} Put;

static void put_turn(const Put *p, int turn, const TurnFigures *t)
{
    char name[64];
    const struct {
        const char *name;
        double value;
    } shares[] = {{"success", (double)t->succeeded},
                  {"mean", t->score},
                  {"best", t->best},
                  {"mended", (double)t->mended},
                  {"faster", (double)t->faster},
                  {"broken", (double)t->broken}};
    snprintf(name, sizeof name, "turn.%d.samples", turn);
    p->put(p->ctx, name, (double)t->samples);
    for (size_t i = 0; t->samples && i < sizeof shares / sizeof *shares; i++) {
        if (turn == 1 && i > 2) break;
        snprintf(name, sizeof name, "turn.%d.%s", turn, shares[i].name);
        p->put(p->ctx, name, shares[i].value / (double)t->samples);
    }
}

static void put_part(const Put *p, const char *part, const RoundPart *r)
{
    char name[64];
    const struct {
        const char *name;
        double value;
        long of;
    } shares[] = {{"success", (double)r->succeeded, r->samples},
                  {"mean", r->score, r->samples},
                  {"tokens", r->tokens, r->with_ids},
                  {"entropy", r->surprise, (long)r->sampled}};
    snprintf(name, sizeof name, "%s.samples", part);
    p->put(p->ctx, name, (double)r->samples);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        if (!shares[i].of) continue;
        snprintf(name, sizeof name, "%s.%s", part, shares[i].name);
        p->put(p->ctx, name, shares[i].value / (double)shares[i].of);
    }
    if (!r->tasks) return;
    snprintf(name, sizeof name, "%s.best8", part);
    p->put(p->ctx, name, exp2(r->best / r->tasks));
}

void round_figures_each(const RoundFigures *f, void (*put)(void *ctx, const char *name, double v),
                        void *ctx)
{
    const Put p = {put, ctx};
    put_part(&p, "plain", &f->plain);
    put_part(&p, "contrastive", &f->contrastive);
    put_part(&p, "heldout", &f->heldout);
    if (f->composition.samples) put_part(&p, "composition", &f->composition);
    if (f->family.samples) put_part(&p, "family", &f->family);
    put(ctx, "comparison.asked", (double)f->compared);
    if (f->compared) put(ctx, "comparison.said", 1 - (double)f->silent / (double)f->compared);
    if (f->right + f->wrong)
        put(ctx, "comparison.right", (double)f->right / (double)(f->right + f->wrong));
    for (int t = 0; f->turns > 1 && t < f->turns; t++) put_turn(&p, t + 1, &f->turn[t]);
    for (int i = 0; f->correct && i < ROUND_TECHNIQUES; i++) {
        char name[64];
        snprintf(name, sizeof name, "technique.%s", techniques[i].name);
        put(ctx, name, (double)f->technique[i] / (double)f->correct);
    }
}
