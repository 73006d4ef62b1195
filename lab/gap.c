/* Tasks are in the order of the pool of the whole range. */
#include "lab/gap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stages/data/round_figures.h"

static const double least_score = 0.01, least_gap = 1.02;

static double best_of(const GapTask *t, double *score)
{
    memcpy(score, t->score, (size_t)t->n * sizeof *score);
    return fmax(figures_best_of(score, t->n, 8), least_score);
}

/* One resample of the tasks, and of the scores of each. */
static void draw(void *ctx, Random *r, double *out)
{
    const Gap *g = ctx;
    double closed = 0, gap = 0;
    for (int i = 0; i < g->n; i++) {
        const GapTask *t = &g->task[random_below(r, (uint64_t)g->n)];
        double best = t->best;
        if (t->n) {
            GapTask again = *t;
            double *score = memory_array((size_t)t->n, sizeof *score),
                   *sorted = memory_array((size_t)t->n, sizeof *sorted);
            for (int k = 0; k < t->n; k++) score[k] = t->score[random_below(r, (uint64_t)t->n)];
            again.score = score;
            best = best_of(&again, sorted);
            free(score);
            free(sorted);
        }
        closed += log(best / t->teacher);
        gap += log(t->full / t->teacher);
    }
    *out = closed / gap;
}

static void sum_up(Gap *g)
{
    double closed = 0, gap = 0;
    for (int i = 0; i < g->n; i++) {
        GapTask *t = &g->task[i];
        t->closed = log(t->best / t->teacher) / log(t->full / t->teacher);
        closed += log(t->best / t->teacher);
        gap += log(t->full / t->teacher);
    }
    g->closed = (Interval){NAN, NAN, NAN};
    if (g->n > 1) {
        g->closed.middle = closed / gap;
        statistics_centred(draw, g, 1, &g->closed);
        statistics_widen(&g->closed, g->n, -INFINITY, INFINITY);
    }
    g->closed.middle = g->n ? closed / gap : NAN;
}

/* Begins the next task of the pool of the whole range if it has a gap. Returns NULL if not. */
static GapTask *next_task(Gap *g, const Pool *teacher, const Pool *full, long at)
{
    const char *task = full->items[at].task;
    const PoolItem *low = pool_best(teacher, task), *high = &full->items[at];
    if (pool_best(full, task) != high || !low || low->score <= 0 ||
        high->score < least_gap * low->score)
        return NULL;
    g->task = memory_grow(g->task, (size_t)g->n + 1, sizeof *g->task);
    g->task[g->n] = (GapTask){.task = task, .teacher = low->score, .full = high->score};
    return &g->task[g->n];
}

void gap_of_samples(const SampleSet *s, const Pool *teacher, const Pool *full, Gap *out)
{
    *out = (Gap){0};
    double *sorted = memory_array((size_t)s->n, sizeof *sorted);
    for (long at = 0; at < full->n; at++) {
        GapTask *t = next_task(out, teacher, full, at);
        if (!t) continue;
        t->score = memory_array((size_t)s->n, sizeof *t->score);
        for (long i = 0; i < s->n; i++) {
            const Sample *x = &s->items[i];
            if (x->outcome != OUTCOME_EVALUATOR_ERROR && !x->heldout && x->turn <= 1 &&
                !strcmp(x->task, t->task))
                t->score[t->n++] = x->score;
        }
        if (t->n) {
            t->best = best_of(t, sorted);
            out->n++;
        } else {
            free(t->score);
        }
    }
    free(sorted);
    sum_up(out);
}

void gap_of_pool(const Pool *p, const Pool *teacher, const Pool *full, Gap *out)
{
    *out = (Gap){0};
    for (long at = 0; at < full->n; at++) {
        GapTask *t = next_task(out, teacher, full, at);
        const PoolItem *best = t ? pool_best(p, t->task) : NULL;
        if (!best) continue;
        t->best = fmax(best->score, least_score);
        out->n++;
    }
    sum_up(out);
}

void gap_release(Gap *g)
{
    for (int i = 0; i < g->n; i++) free(g->task[i].score);
    free(g->task);
    *g = (Gap){0};
}
