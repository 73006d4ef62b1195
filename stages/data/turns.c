/* A parent is looked up among the samples by id. */
#include "stages/data/turns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Returns the parent of x, NULL when it has none or it is not in the set. */
static Sample *parent_of(const SampleSet *s, Sample **index, const Sample *x)
{
    return x->parent ? samples_find(s, index, x->parent) : NULL;
}

int turns_discount(SampleSet *s, double discount, Error *err)
{
    Sample **index = samples_by_id(s);
    int rc = 0;
    for (long i = 0; i < s->n; i++) s->items[i].reward = s->items[i].score;
    for (long i = s->n - 1; !rc && i >= 0; i--) {
        const Sample *x = &s->items[i];
        Sample *parent = parent_of(s, index, x);
        if (!x->parent) continue;
        if (!parent || parent >= x)
            rc = error_set(err, ERROR_INVALID,
                           "sample %s: expected its parent %s before it, found %s", x->id,
                           x->parent, parent ? "it later" : "no such sample");
        else if (x->outcome != OUTCOME_EVALUATOR_ERROR)
            parent->reward = fmax(parent->reward, discount * x->reward);
    }
    free(index);
    return rc;
}

static void count(TurnFigures *f, const Sample *x, const Sample *parent)
{
    int right = x->outcome == OUTCOME_OK, was = parent && parent->outcome == OUTCOME_OK;
    f->samples++;
    f->succeeded += right;
    f->score += x->score;
    f->mended += parent && right && !was;
    f->faster += right && was && x->score > parent->score;
    f->broken += !right && was;
}

int turns_figures(const SampleSet *s, TurnFigures out[SAMPLES_MAX_TURNS])
{
    Sample **index = samples_by_id(s);
    double *best = memory_array((size_t)s->n, sizeof *best);
    int turns = 0;
    memset(out, 0, SAMPLES_MAX_TURNS * sizeof *out);
    for (long i = 0; i < s->n; i++) {
        const Sample *x = &s->items[i], *parent = parent_of(s, index, x);
        best[i] = x->score;
        if (parent && parent < x) best[i] = fmax(best[i], best[parent - s->items]);
        if (x->outcome == OUTCOME_EVALUATOR_ERROR) continue;
        count(&out[x->turn - 1], x, parent);
        out[x->turn - 1].best += best[i];
        if (x->turn > turns) turns = x->turn;
    }
    free(best);
    free(index);
    return turns;
}
