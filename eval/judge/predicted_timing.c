/* One predicted run, and the runs on unseen inputs after a win. */
#include "eval/judge/predicted_timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/judge/baseline.h"
#include "eval/judge/checks.h"
#include "eval/judge/contents/shortened.h"
#include "eval/judge/contents/timed_contents.h"
#include "eval/judge/loaded_ops.h"
#include "eval/judge/seeds.h"
#include "eval/judge/timed_cone.h"
#include "eval/judge/timed_idle.h"
#include "eval/judge/timed_unread.h"
#include "eval/judge/timing_bounds.h"
#include "tasks/task_graph.h"

enum { SHORT_TRIAL = 3 }; /* of case_seed, in no earlier run */

int predicted_run(Run *r, DeviceTiming *out, Fault *f)
{
    Loaded *l = r->loaded;
    if (run_reset(r, &f->error)) return -1;
    l->runs++;
    int rc = l->ops->prediction->predict(l->device, r->launches, r->n_launches, out, f);
    if (rc > 0) run_fault(r, f);
    return rc || !out ? rc : timing_makes_sense(out, 0, &f->error);
}

/* The small workload is the task's first: no branch of the plan has asked for another. */
static int is_own_size(const Judgement *j)
{
    TimedPair own[TASK_MAX_TIMED];
    task_timed(j->task, own);
    return j->small == own[0].small;
}

/* Launch the small workload once, predict its time, and compare its outputs. */
static int measure_small(Judgement *j)
{
    Run r = {0};
    Fault *f = &j->fault;
    const Case *c = judgement_case(j, j->small);
    if (!c) return -1;
    int rc = run_open(&r, &j->loaded, c, NULL, f);
    if (!rc) rc = predicted_run(&r, j->verdict.timing, f);
    if (!rc) rc = run_inspect(&r, f);
    if (!rc) rc = run_compare(&r, f);
    if (rc == 1) rc = checks_explain_wrong(&r, f);
    if (!rc && !j->errors.known && is_own_size(j)) rc = run_errors(&r, &j->errors, &f->error);
    if (!rc) {
        verdict_pass(&j->verdict, "%s: outputs after timing", r.where);
        run_announce(&r);
        rc = checks_disturbed(j, &r);
    }
    run_close(&r);
    return rc;
}

/* The least growth of a tensor of more than one element. */
static double tensor_growth(const Task *t, const Workload *small, const Workload *timed)
{
    double least = INFINITY;
    for (int i = 0; i < t->n_inputs + t->n_outputs; i++) {
        const TaskTensor *x = i < t->n_inputs ? &t->inputs[i] : &t->outputs[i - t->n_inputs];
        size_t from, to;
        if (task_elements(t, small, x, &from, NULL) || task_elements(t, timed, x, &to, NULL))
            continue;
        if (to > 1) least = fmin(least, (double)to / (double)from);
    }
    return isfinite(least) ? least : 1;
}

/* The work of the timed workload over the small workload's. */
static int work_growth(const Task *t, const Workload *small, const Workload *timed, DeviceSample *s,
                       Error *err)
{
    double b0, f0, b1, f1, bytes, least;
    if (task_cost(t, small, &b0, &f0, err) || task_cost(t, timed, &b1, &f1, err) ||
        task_least_cost(t, timed, &bytes, &least, err))
        return -1;
    s->growth = fmax(b1 / fmax(b0, 1), f1 / fmax(f0, 1));
    s->least_growth = b1 / fmax(b0, 1);
    s->flops_growth = f0 > 0 ? f1 / f0 : s->least_growth;
    s->least_growth = fmin(s->least_growth, s->flops_growth);
    s->tensor_growth = tensor_growth(t, small, timed);
    s->own_flops = t->degenerate ? 0 : least;
    s->own_bytes = t->degenerate ? 0 : b1;
    return 0;
}

/* In a plan with op lines the other kernels may grow as little as any tensor does: what follows a
 * product grows as its result. They have to compute what the op lines leave of the task. Op lines that
 * give constants leave all of it. */
static void allow_op_lines(const Run *r, DeviceSample *s)
{
    int found = 0;
    for (int i = 0; i < r->n_launches; i++)
        found |= (r->launches[i].library_args || r->launches[i].op_line) &&
                 !device_launch_is_constant(&r->launches[i]);
    if (!found) return;
    const PlanOps *ops = r->loaded->context.ops;
    s->own_flops = ops ? fmax(0, s->own_flops - ops->flops) : INFINITY;
    s->least_growth = fmin(s->least_growth, s->tensor_growth);
    s->flops_growth = s->least_growth;
    s->own_bytes = 0;
}

/* Padding that is read and never matters is not written either. Where the checks have seen such reads, of
 * which the device warns, a hole in a buffer shows nothing. */
static void forgive_padding(const Run *r, DeviceWritten *w)
{
    const Loaded *l = r->loaded;
    if (w->state != WRITTEN_NOT || w->output >= 0 || !l->ops->prediction->warning(l->device, 0))
        return;
    w->state = WRITTEN_UNKNOWN;
    snprintf(w->why, sizeof w->why, "reads of memory that nothing has written");
}

/* Every element of each output is written, and of each buffer that is read, as far as that is known. */
static int covers_outputs(const Run *r, const DeviceWritten *w, Fault *f)
{
    if (w->state != WRITTEN_NOT) return 0;
    if (w->output < 0)
        return fault_set(f, OUTCOME_WRONG_RESULT, 0,
                         "%s: launch %d reads %.0f bytes of %s that no block of any launch has "
                         "written, from byte %.0f on",
                         r->where, w->launch + 1, (double)w->holes, w->label, (double)w->first);
    const TaskTensor *y = &r->test->task->outputs[w->output];
    size_t element = dtype_size(y->dtype), all = r->test->output_bytes[w->output] / element,
           holes = (w->holes + element - 1) / element;
    return fault_set(f, OUTCOME_WRONG_RESULT, 0,
                     "%s: %zu of %zu elements of output %s are never written, by no block of any "
                     "launch, first %s[%zu] (flat index)",
                     r->where, holes, all, y->name, y->name, (size_t)w->first / element);
}

/* The harness's own launches need no check. */
static int has_own_launches(const Judgement *j)
{
    return !j->trusted && j->candidate.plan.n_kernels > 0;
}

/* What was compared at the timed size. */
typedef struct {
    int64_t n;
    int outputs, all;              /* outputs that were compared; all of them were */
    const char *unit, *why;        /* of n; why nothing was */
    int shortened[SHORTENED_AXES]; /* axes that were made short for a complete run, in its place */
    int n_shortened;
    DeviceWritten written; /* what is known about what the launches write */
    unsigned char comparable[TASK_MAX_TENSORS];
    char hidden[128]; /* not empty: why the cones of other outputs are not known */
    DeviceUnread unread;
    DeviceIdle idle;
    int scaled; /* launches whose time is the small workload's times its growth */
    int again;  /* on other contents: what is written is known */
} Shown;

static const char dear_reference[] = "one element of the reference takes too much work";

static void note_shown(const Task *t, const DeviceSample *s, const char *unit, Shown *shown)
{
    shown->unit = unit;
    shown->scaled = s->scaled;
    shown->all = shown->n > 0 && timed_compares_all(t, s->comparable);
    for (int i = 0; i < s->n_outputs && shown->n; i++) shown->outputs += s->comparable[i] != 0;
    if (!shown->n)
        shown->why = !s->compared       ? dear_reference
                     : shown->hidden[0] ? shown->hidden
                     : s->why           ? s->why
                                        : dear_reference;
}

/* Is the prediction in *out that of a win, as far as it is known? */
static int may_win(const Judgement *j, const DeviceTiming *out)
{
    return j->baseline && out->candidate_us[0] < j->baseline->us;
}

/* Compares the outputs that the sampled blocks have not completed, by their cones. Where more parts than the
 * first ones take long, and may take too long, these are compared before. */
static int compare_cones(Judgement *j, TimedContents *c, Run *r, int wins, Shown *shown)
{
    if (!has_own_launches(j) || !c->shared || !timed_is_compared(c) ||
        timed_compares_all(j->task, shown->comparable))
        return 0;
    TimedCone cone = {.j = j, .r = r, .wins = wins};
    const TimedOutputs left = {r->loaded->ops,    r->loaded->device, j->task,
                               r->memory.outputs, cone.outputs,      r->where};
    int64_t n = 0;
    for (int i = 0; i < j->task->n_outputs; i++) cone.outputs[i] = !shown->comparable[i];
    int rc = timed_cone(&cone), first = !rc && cone.is_known && cone.more == 2;
    if (first) rc = timed_compare(c, &left, &n, &j->fault);
    if (!rc && cone.more > 1) rc = timed_cone_more(&cone, first), first &= !cone.is_known;
    if (!rc && cone.is_known && !first) rc = timed_compare(c, &left, &n, &j->fault);
    memcpy(shown->hidden, cone.why, sizeof cone.why);
    if (rc || shown->hidden[0]) return rc;
    shown->n += n;
    if (!n) snprintf(shown->hidden, sizeof shown->hidden, "%s", dear_reference);
    for (int i = 0; i < j->task->n_outputs && n; i++) shown->comparable[i] |= cone.outputs[i];
    return 0;
}

/* seed: of the contents, and of the blocks that are sampled. */
static int predict_timed(Judgement *j, TimedContents *c, uint64_t seed, DeviceTiming *out,
                         Shown *shown)
{
    Run r = {0};
    Loaded *l = &j->loaded;
    Fault *f = &j->fault;
    DeviceSample s = {.n_outputs = j->task->n_outputs,
                      .seed = seed,
                      .comparable = shown->comparable,
                      .written = has_own_launches(j) && !shown->again ? &shown->written : NULL,
                      .win_us = j->baseline ? j->baseline->us : 0};
    *shown = (Shown){.again = shown->again};
    if (work_growth(j->task, j->small, j->timed, &s, &f->error)) return -1;
    int rc = run_open(&r, l, &c->test, NULL, f);
    if (!rc) rc = run_reset(&r, &f->error);
    l->runs++;
    if (!rc) {
        s.outputs = r.memory.outputs;
        s.compared = timed_is_compared(c);
        s.position = timed_costly_of(c);
        allow_op_lines(&r, &s);
        rc = l->ops->prediction->sample(l->device, r.launches, r.n_launches, &s, out, f);
        if (rc > 0) run_fault(&r, f);
    }
    if (!rc) rc = timing_makes_sense(out, 0, &f->error);
    if (!rc) forgive_padding(&r, &shown->written);
    if (!rc) rc = covers_outputs(&r, &shown->written, f);
    if (!rc) {
        const TimedOutputs left = {l->ops,           l->device,         j->task,
                                   r.memory.outputs, shown->comparable, r.where};
        rc = timed_compare(c, &left, &shown->n, f);
    }
    if (!rc) rc = compare_cones(j, c, &r, may_win(j, out), shown);
    if (!rc)
        verdict_pass(&j->verdict, "%s: %llu of %llu blocks, outputs of %lld %s%s", r.where,
                     (unsigned long long)s.sampled, (unsigned long long)s.blocks,
                     (long long)shown->n, timed_unit(c),
                     s.scaled || s.held ? "; scaled from the small workload" : "");
    if (!rc) note_shown(j->task, &s, timed_unit(c), shown);
    if (!rc && !shown->all && !shown->again && has_own_launches(j) && may_win(j, out))
        timed_unread(j, &r, &shown->unread);
    if (!rc && !shown->all && !shown->again && has_own_launches(j))
        timed_idle(j, &r, may_win(j, out), &shown->idle);
    run_close(&r);
    return rc;
}

/* ---- the timed sizes, made short ---- */

static uint64_t shortened_seed(const Judgement *j)
{
    return case_seed(j->evaluator->seed, j->task, j->timed, SHORT_TRIAL);
}

/* Along number `which` of the axes that can be made short. */
static const Workload *shortened(Judgement *j, int which)
{
    if (!j->evaluator->machine.ops->prediction || !has_own_launches(j)) return NULL;
    return cases_shortened(j->evaluator->cases, j->task, j->timed, which, shortened_seed(j));
}

const Workload *predicted_shortened(Judgement *j)
{
    return shortened(j, 0);
}

/* The plan has launches for the workload, and their work is not too much. */
static int fits(Loaded *l, const Workload *w)
{
    Fault unused;
    DeviceLaunch *launches = NULL;
    int n, ok = 0;
    if (loaded_ops_at(l, w, &unused)) return 0;
    if (!plan_resolve(&l->context, w, NULL, &launches, &n, &unused))
        ok = l->ops->prediction->fits(l->device, launches, n);
    free(launches);
    return ok;
}

const Workload *predicted_fitting(Judgement *j)
{
    const Workload *w = predicted_shortened(j);
    return w && fits(&j->loaded, w) ? w : NULL;
}

int predicted_attempt(Run *r, int *too_long, Fault *f)
{
    Loaded *l = r->loaded;
    if (run_reset(r, &f->error)) return -1;
    l->runs++;
    int rc = l->ops->prediction->attempt(l->device, r->launches, r->n_launches, f);
    *too_long = rc > 0 && f->outcome == OUTCOME_TIMEOUT;
    if (*too_long) return 0;
    if (rc > 0) run_fault(r, f);
    if (!rc) rc = run_inspect(r, f);
    if (!rc) rc = run_compare(r, f);
    return rc == 1 ? checks_explain_wrong(r, f) : rc;
}

/* Variables have their first values, since a sample leaves them in between. A plan that cannot be
 * opened for the workload, such as one whose op lines take too much text, need not be. */
static int run_shortened(Judgement *j, const Case *c, int *too_long)
{
    Run r = {0};
    Fault *f = &j->fault;
    int rc = checks_has_variables(&j->loaded) ? loaded_again(&j->loaded, f) : 0;
    int opened = rc ? rc : run_open(&r, &j->loaded, c, NULL, f);
    if (!rc && opened < 0) rc = -1;
    if (!opened) rc = predicted_attempt(&r, too_long, f);
    if (!rc && !*too_long) verdict_pass(&j->verdict, "%s: all blocks", r.where);
    run_close(&r);
    return rc;
}

/* A comparison that would take too long is left out. */
static int compare_shortened(Judgement *j, Shown *shown)
{
    Shortening axis[SHORTENED_AXES];
    int rc = 0, n = shortened_axes(j->task, j->timed, axis);
    for (int i = 0; i < n && !rc; i++) {
        const Workload *w = shortened(j, i);
        int too_long = 1;
        /* A block of shorter rows does less than the sample tells. */
        if (!w || (!i && !fits(&j->loaded, w))) continue;
        const Case *c = cases_get(j->evaluator->cases, j->task, w, VARIANT_DRAWN, shortened_seed(j),
                                  1.0, &j->fault.error);
        rc = c ? run_shortened(j, c, &too_long) : -1;
        if (!rc && !too_long) shown->shortened[shown->n_shortened++] = axis[i].axis;
    }
    return rc;
}

/* The line of the verdict, and whether a ratio above 1 counts. */
static void say_shown(Judgement *j, const Shown *s)
{
    const Task *t = j->task;
    int n = s->n_shortened;
    int is_written = s->written.state == WRITTEN_ALL;
    j->unshown = has_own_launches(j) && ((!(s->all && is_written) && !n) || s->scaled);
    if (has_own_launches(j) && s->scaled)
        verdict_pass(&j->verdict, VERDICT_UNSHOWN "%d launch%s could not be run in part", s->scaled,
                     s->scaled > 1 ? "es" : "");
    if (j->unshown && !is_written)
        verdict_pass(&j->verdict,
                     VERDICT_UNSHOWN "it is not shown that all of %s is written: a kernel has %s",
                     s->written.label, s->written.why);
    if (s->all || (s->n && !n))
        verdict_pass(&j->verdict, VERDICT_SHOWN "%lld %s%s of %d output%s compared%s",
                     (long long)s->n, strcmp(s->unit, "elements") ? "places along " : "", s->unit,
                     s->outputs, s->outputs > 1 ? "s" : "", s->all ? "" : ", not the others");
    else if (n)
        verdict_pass(&j->verdict, VERDICT_SHOWN "outputs compared with less %s%s%s in its place",
                     t->axis_name[s->shortened[0]], n > 1 ? " and less " : "",
                     n > 1 ? t->axis_name[s->shortened[1]] : "");
    else
        verdict_pass(&j->verdict, VERDICT_SHOWN "outputs not compared: %s", s->why);
}

static int measure_timed(Judgement *j)
{
    Evaluator *e = j->evaluator;
    Shown shown = {0};
    uint64_t seed = case_seed(e->seed, j->task, j->timed, 0);
    TimedContents *c = cases_timed(e->cases, j->task, j->timed, seed, &j->fault.error);
    int rc = c ? predict_timed(j, c, seed, j->verdict.timing, &shown) : -1;
    int is_known = shown.all && shown.written.state == WRITTEN_ALL;
    if (!rc) rc = timed_unread_check(j, &shown.unread);
    if (!rc) rc = timed_idle_check(j, &shown.idle);
    if (!rc && !is_known && has_own_launches(j)) rc = compare_shortened(j, &shown);
    if (!rc) say_shown(j, &shown);
    return rc;
}

/* The small workload, whose counts a sample needs. */
static int run_small(Judgement *j)
{
    Run r = {0};
    const Case *c = judgement_case(j, j->small);
    DeviceTiming *out = memory_alloc(sizeof *out);
    int rc = c ? run_open(&r, &j->loaded, c, NULL, &j->fault) : -1;
    if (!rc) rc = predicted_run(&r, out, &j->fault);
    run_close(&r);
    free(out);
    return rc;
}

static int run_sample(Judgement *j, const TimedContents *c, DeviceSample *s)
{
    Run r = {0};
    Loaded *l = &j->loaded;
    DeviceTiming *out = memory_alloc(sizeof *out);
    int rc = run_open(&r, l, &c->test, NULL, &j->fault);
    if (!rc) rc = run_reset(&r, &j->fault.error);
    s->outputs = r.memory.outputs;
    if (!rc)
        rc = l->ops->prediction->sample(l->device, r.launches, r.n_launches, s, out, &j->fault);
    if (rc > 0) run_fault(&r, &j->fault);
    run_close(&r);
    free(out);
    return rc;
}

int predicted_sample(Judgement *j, int *scaled)
{
    unsigned char comparable[TASK_MAX_TENSORS];
    DeviceSample s = {.n_outputs = j->task->n_outputs, .comparable = comparable};
    s.seed = case_seed(j->evaluator->seed, j->task, j->timed, 0);
    if (work_growth(j->task, j->small, j->timed, &s, &j->fault.error)) return -1;
    int rc = run_small(j);
    if (rc) return rc;
    const TimedContents *c =
        cases_timed_once(j->evaluator->cases, j->task, j->timed, s.seed, &j->fault.error);
    if (!c) return -1;
    rc = run_sample(j, c, &s);
    *scaled = s.scaled;
    return rc;
}

int predicted_measure(Judgement *j)
{
    j->verdict.timing = memory_alloc(sizeof *j->verdict.timing);
    int rc = measure_small(j);
    return rc ? rc : measure_timed(j);
}

int step_predict(Judgement *j)
{
    /* A device variable must not keep the results of the checks for the timed runs. */
    int rc = loaded_again(&j->loaded, &j->fault);
    if (!rc) rc = baseline_need(j);
    if (!rc) rc = predicted_measure(j);
    if (rc) return rc;
    DeviceTiming *t = j->verdict.timing;
    t->baseline_us[0] = j->baseline->us;
    t->n_baseline_counters = j->baseline->n_counters;
    memcpy(t->baseline_counters, j->baseline->counters, sizeof t->baseline_counters);
    rc = timing_within_limit(t, j->candidate.plan.n_ops > 0, &j->fault);
    return rc ? rc : judgement_score(j);
}

/* ---- unseen inputs ---- */

/* Run on case c under the limits of the timed run. The time is not needed. */
static int run_on(Judgement *j, Run *r, const Case *c)
{
    Fault *f = &j->fault;
    int rc = run_refill(r, c, 0, &f->error);
    if (!rc) rc = predicted_run(r, NULL, f);
    if (!rc) rc = run_inspect(r, f);
    if (!rc) rc = run_compare(r, f);
    if (!rc) verdict_pass(&j->verdict, "%s", r->where);
    return rc;
}

/* The inputs are for one candidate: each gives its memory to the next. */
static int run_unseen(Judgement *j)
{
    Run r = {0};
    const Case *c;
    int rc = 0;
    for (int i = 0; i < CHECKS_UNSEEN && !rc; i++) {
        rc = checks_unseen(j, j->small, j->verdict.second_seed, i, &c);
        if (rc || !c) continue;
        if (!r.loaded) rc = run_open(&r, &j->loaded, c, NULL, &j->fault);
        if (!rc) rc = run_on(j, &r, c);
        cases_drop(j->evaluator->cases, c);
    }
    run_close(&r);
    return rc;
}

/* Predicts on other contents of the timed workload, which are for one candidate. */
static int predict_other(Judgement *j)
{
    DeviceTiming *out = j->verdict.timing;
    uint64_t seed = case_seed(j->verdict.second_seed, j->task, j->timed, 0);
    TimedContents *c =
        cases_timed_once(j->evaluator->cases, j->task, j->timed, seed, &j->fault.error);
    if (!c) return -1;
    DeviceTiming *other = memory_alloc(sizeof *other);
    Shown unused = {.again = 1};
    *other = *out;
    int rc = predict_timed(j, c, seed, other, &unused);
    if (!rc && other->candidate_us[0] > out->candidate_us[0]) *out = *other;
    free(other);
    return rc;
}

/* The second seed follows from the source, so that a source cannot hold what it gives: a source
 * that held it would have another seed. The code is loaded again, since a sample of blocks may
 * leave device variables in between. */
int predicted_unseen(Judgement *j)
{
    Verdict *v = &j->verdict;
    v->second_seed = seed_derive(j->evaluator->seed, "second", v->source_digest);
    int rc = loaded_again(&j->loaded, &j->fault);
    if (!rc) rc = run_unseen(j);
    if (!rc) rc = loaded_again(&j->loaded, &j->fault);
    if (!rc) rc = predict_other(j);
    return rc ? rc : judgement_score(j);
}
