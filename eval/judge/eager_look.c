/* The errors are counted in classes of powers of two, which rotated contents leave as they are. */
#include "eval/judge/eager_look.h"

#include <math.h>
#include <string.h>

#include "base/log.h"

/* CASE_TAIL's class of one tolerance; by how many classes the baseline's errors may be smaller. */
enum { ONE = 2, NARROWER = 1, NARROWER_FEW = 2, FEW = 64, CROWD = 4 };
static const double SQUARE = 2;

/* The largest difference, by the size of the results: of a baseline that is right, and of a candidate for
 * which the baseline is worth a run. */
static const double share_of_baseline = 0x1p-4, share_of_candidate = 0.5;

static int is_plausible(const TaskDifference *d, double share)
{
    double size = fmax(fabs(d->first_want), fabs(d->worst_want)),
           most = fmax(fabs(d->worst_got - d->worst_want), fabs(d->first_got - d->first_want));
    return isfinite(most) && most <= share * size;
}

static int tail_of(Run *r, int output, CaseTail *out, TaskDifference *one, Error *err)
{
    TaskDifference d = {.bad = 1};
    memset(out, 0, sizeof *out);
    for (int k = 0; k < CASE_TAIL && d.bad; k++) {
        if (run_differences(r, output, ldexp(1, k - ONE), &d, err)) return -1;
        if (k == ONE) *one = d;
        out->above[k] = d.bad;
    }
    return run_square(r, output, &out->square, err);
}

/* Counts the large errors of the baseline's outputs, which the run holds. 1: the baseline is no measure. */
static int take_tails(Run *r, CaseEager *e, Error *err)
{
    for (int i = 0; i < r->n_outputs; i++) {
        TaskDifference one = {0};
        if (tail_of(r, i, &e->of[i].tail, &one, err)) return -1;
        if (one.bad && !is_plausible(&one, share_of_baseline)) return 1;
        e->of[i].by = r->test->tolerance[i];
    }
    return 0;
}

/* The baseline on the case, in memory of its own. */
static int run_baseline(const Run *of, CaseEager *e, Fault *f)
{
    const Loaded *l = of->loaded;
    const Machine m = {l->ops, l->device, l->compiler};
    const char *source = task_baseline(l->task);
    Candidate lines;
    Loaded own;
    Run r = {0};
    loaded_init(&own, &m, l->task, 1);
    int rc = candidate_parse(source, strlen(source), 1, &lines, f);
    if (!rc) rc = loaded_compile(&own, &lines, f);
    if (!rc) rc = run_open(&r, &own, of->test, NULL, f);
    if (!rc) rc = run_launch(&r, f);
    if (!rc) rc = take_tails(&r, e, &f->error);
    run_close(&r);
    loaded_close(&own);
    candidate_release(&lines);
    return rc;
}

static int is_current(const CaseEager *e, const Case *c)
{
    for (int i = 0; i < c->task->n_outputs; i++)
        if (e->of[i].by.atol != c->tolerance[i].atol || e->of[i].by.rtol != c->tolerance[i].rtol)
            return 0;
    return 1;
}

/* 1: the errors of the baseline are known. What it cannot say is not asked again. */
static int is_known(const Run *r, EagerNeed need)
{
    const Case *c = r->test;
    CaseEager *e = c->eager;
    Fault f = {0};
    if (e->state == EAGER_KNOWN && !is_current(e, c)) e->state = EAGER_UNKNOWN;
    if (e->state != EAGER_UNKNOWN || need == EAGER_IF_KNOWN) return e->state == EAGER_KNOWN;
    int rc = run_baseline(r, e, &f);
    e->state = rc ? EAGER_NONE : EAGER_KNOWN;
    if (rc)
        log_debug("the baseline of %s gives no measure of errors: %s", c->task->name,
                  rc < 0 ? f.error.text : f.message);
    return !rc;
}

static int is_below(const CaseTail *got, const CaseTail *eager, int narrower)
{
    for (int k = ONE; k < CASE_TAIL; k++)
        if (got->above[k] > CROWD * eager->above[k - narrower]) return 0;
    return 1;
}

int eager_allows(Run *r, int output, const TaskDifference *d, EagerNeed need, Error *err)
{
    const Case *c = r->test;
    const ElementLimits *limits = c->tolerance[output].elements;
    size_t n = c->output_bytes[output] / dtype_size(c->task->outputs[output].dtype);
    CaseTail got;
    TaskDifference one;
    if (!c->eager || r->loaded->trusted || !r->loaded->compiler ||
        !dtype_is_float(c->task->outputs[output].dtype) ||
        (d->bad && !is_plausible(d, share_of_candidate)) || !is_known(r, need))
        return 0;
    const CaseTail *eager = &c->eager->of[output].tail;
    if (tail_of(r, output, &got, &one, err)) return -1;
    if (!is_below(&got, eager, n < FEW ? NARROWER_FEW : NARROWER)) return 0;
    return !limits || isnan(limits->most) ||
           got.square <= fmax(limits->most, SQUARE * eager->square);
}

int eager_excuses(Run *r, int output, Fault *f)
{
    TaskDifference d;
    if (f->outcome != OUTCOME_WRONG_RESULT || !r->test->eager) return 1;
    if (run_differences(r, output, 1, &d, &f->error)) return -1;
    if (r->loaded->trusted) return !is_plausible(&d, share_of_baseline);
    int rc = eager_allows(r, output, &d, EAGER_RUN, &f->error);
    return rc < 0 ? -1 : !rc;
}
