/* The first element and the worst speak for the others, which exceed the tolerance by less. */
#include "eval/judge/contents/second_look.h"

#include <math.h>
#include <string.h>

#include "tasks/derive/own_error.h"
#include "tasks/derive/tf32.h"

enum { LOOKED_AT = 2, SMALL_OUTPUT = 1 << 16 };
/* One element of so many may differ. In TF32, one_of_rounded: where a clamp or a maximum hides the errors of
 * nearly all elements, the few draws that give a tolerance show those of none (k2_82 at its own sizes on an
 * H200, input scale 8: 1 of 3,270 differs, the worst by 10 tolerances; 2026-11-30). */
static const size_t one_of_few = 128, one_of_rounded = 1 << 10, one_of_many = 1 << 16;

static int is_within(Tolerance by, double error, double got, double want)
{
    return fabs(got - want) <= by.atol + by.rtol * fabs(want) + error;
}

/* Errors of TF32 choose another of two near maxima in one row of some hundreds; where numbers are large, two
 * scores of a softmax that lie near each other make a whole row err. */
static size_t excused(const SecondLook *l)
{
    int choice = !dtype_is_float(l->of.task->outputs[l->output].dtype),
        regime = l->of.variant > VARIANT_INTEGERS;
    if (choice || regime || l->n < SMALL_OUTPUT) return 1 + l->n / one_of_few;
    return 1 + l->n / (l->of.task->tf32 ? one_of_rounded : one_of_many);
}

/* Elements have limits of their own, which are those of their own errors. */
static int is_limited(const SecondLook *l)
{
    return l->by.elements && l->by.elements->limit;
}

static int is_worth_it(const SecondLook *l, const TaskDifference *d)
{
    return l->of.variant != VARIANT_INTEGERS && !is_limited(l) && isfinite(d->worst_want) &&
           isfinite(d->worst_got) && d->bad <= excused(l);
}

/* The elements of the last look and its result: each pair of a timing asks for the same elements. */
typedef struct {
    char task[DIGEST_HEX];
    int64_t axis[TASK_MAX_AXES];
    uint64_t seed;
    double scale, atol, got[LOOKED_AT];
    size_t at[LOOKED_AT];
    int variant, output, known, within;
} Seen;

static int is_same(const Seen *a, const Seen *b)
{
    return !strcmp(a->task, b->task) && !memcmp(a->axis, b->axis, sizeof a->axis) &&
           a->seed == b->seed && a->scale == b->scale && a->atol == b->atol &&
           !memcmp(a->at, b->at, sizeof a->at) && !memcmp(a->got, b->got, sizeof a->got) &&
           a->variant == b->variant && a->output == b->output;
}

static Seen seen_of(const SecondLook *l, const TaskDifference *d)
{
    Seen s = {.seed = l->of.seed,
              .scale = l->of.scale,
              .atol = l->by.atol,
              .got = {d->first_got, d->worst_got},
              .at = {(d->first + l->from) % l->all, (d->worst + l->from) % l->all},
              .variant = l->of.variant,
              .output = l->output};
    memcpy(s.task, l->of.task->digest, sizeof s.task);
    memcpy(s.axis, l->of.workload->axis, sizeof s.axis);
    return s;
}

/* Looks at the first element and the worst. *known: their own errors are; *within: they are as good. */
static int look(const SecondLook *l, const TaskDifference *d, int *known, int *within, Error *err)
{
    static _Thread_local Seen last;
    const double want[LOOKED_AT] = {d->first_want, d->worst_want};
    double error[LOOKED_AT];
    Seen now = seen_of(l, d);
    if (!is_same(&now, &last)) {
        const OwnElements of = {&l->of, l->inputs, l->output, LOOKED_AT, now.at};
        int same[LOOKED_AT], choice = !dtype_is_float(l->of.task->outputs[l->output].dtype);
        int rc = choice ? own_choice(&of, now.got, same, err) : own_error(&of, error, err);
        if (rc < 0) return -1;
        now.known = now.within = !rc;
        for (int k = 0; k < LOOKED_AT && now.within; k++)
            now.within = choice ? same[k] : is_within(l->by, error[k], now.got[k], want[k]);
        last = now;
    }
    *known = last.known;
    *within = last.within;
    return 0;
}

/* 1: the first and the worst of few elements are within their own errors. */
static int few_are_within(const SecondLook *l, const TaskDifference *d, Error *err)
{
    int known, within;
    if (!is_worth_it(l, d)) return 0;
    return look(l, d, &known, &within, err) ? -1 : within;
}

int second_look_narrow(const SecondLook *l, const TaskDifference *d, Error *err)
{
    int known, within;
    if (!isfinite(d->worst_want) || !isfinite(d->worst_got)) return 1;
    return look(l, d, &known, &within, err) ? -1 : within || !known;
}

/* Factors in TF32 may give all elements errors that no other contents show. The worst element's error, as a
 * multiple of its tolerance, bounds those of all elements. */
static int is_within_tf32(const SecondLook *l, const TaskDifference *d, Error *err)
{
    Tf32Own own;
    if (!l->of.task->tf32 || l->of.variant == VARIANT_INTEGERS || l->inputs || is_limited(l) ||
        !isfinite(d->worst_want) || !isfinite(d->worst_got))
        return 0;
    int rc = tf32_own(&l->of, &own, err);
    if (rc) return rc < 0 ? -1 : 0;
    double by = l->by.atol + l->by.rtol * fabs(d->worst_want),
           most = l->by.atol + l->by.rtol * own.size[l->output];
    return fabs(d->worst_got - d->worst_want) * most <= by * own.error[l->output];
}

int second_look(const SecondLook *l, const TaskDifference *d, Error *err)
{
    int rc = few_are_within(l, d, err);
    return rc ? rc : is_within_tf32(l, d, err);
}
