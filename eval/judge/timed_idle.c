/* The tensors: inputs of float32, float buffers of the plan, and what op lines give. */
#include "eval/judge/timed_idle.h"

#include <math.h>
#include <string.h>

#include "eval/judge/contents/cases.h"

enum {
    TRIAL = 5, /* of case_seed, in no other run */
    FEW = 2,   /* fewer idle elements may be an accident */
    LOOKS = 4, /* at each workload where one look finds so many, each at four blocks of a launch */
    TIMES = 5  /* the share of idle elements is so many times that at the small workload, */
};
static const double least_share = 0.3; /* and at least this: dead channels are idle, too */

/* Thread-instructions, for each workload: half a second where the plan would win. */
static const double usual_budget = 6e7, win_budget = 4e8;

/* Do all op lines give float32? */
static int is_float32(const PlanOps *o)
{
    for (int i = 0; o && i < o->n_tensors; i++)
        if (o->storages[o->tensors[i].storage].held == HELD_SLOT &&
            o->tensors[i].tensor.dtype != DTYPE_F32)
            return 0;
    return 1;
}

static const char *name_of(const Judgement *j, int i)
{
    const Task *t = j->task;
    const Plan *plan = j->loaded.plan;
    return i < t->n_inputs                     ? t->inputs[i].name
           : i < t->n_inputs + plan->n_buffers ? plan->buffers[i - t->n_inputs].name
                                               : "what an op line gives";
}

/* Number i of the tensors of the run; 0: its elements are not looked at. */
static DevicePtr tensor_of(const Judgement *j, const Run *r, int i)
{
    const Task *t = j->task;
    const Loaded *l = r->loaded;
    if (i < t->n_inputs) {
        const TaskTensor *x = &t->inputs[i];
        return x->dtype == DTYPE_F32 ? r->memory.inputs[i] : 0;
    }
    int b = i - t->n_inputs;
    int is_float = b < l->plan->n_buffers ? !strcmp(l->plan->buffers[b].type, "float")
                                          : is_float32(l->context.ops);
    return is_float ? r->memory.buffers[b] : 0;
}

static double share_of(const DeviceIdle *d, int i)
{
    return (double)d->of[i].idle / fmax(1, d->of[i].tried);
}

static void begin(const Judgement *j, const Run *r, int wins, DeviceIdle *out)
{
    const int all = j->task->n_inputs + r->all_buffers;
    *out = (DeviceIdle){.seed = case_seed(j->evaluator->seed, j->task, j->timed, TRIAL),
                        .budget = wins ? win_budget : usual_budget,
                        .n = all < DEVICE_MAX_IDLE ? all : DEVICE_MAX_IDLE};
    for (int i = 0; i < out->n; i++) out->of[i].p = tensor_of(j, r, i);
}

/* Looks at other blocks than before. */
static void look(const Run *r, DeviceIdle *d)
{
    r->loaded->ops->prediction->idle(r->loaded->device, r->launches, r->n_launches, d);
    d->seed++;
}

/* May a tensor be one of which a part is left out? */
static int is_suspect(const DeviceIdle *timed)
{
    for (int i = 0; i < timed->n; i++)
        if (timed->of[i].idle >= FEW && share_of(timed, i) >= least_share) return 1;
    return 0;
}

void timed_idle(const Judgement *j, const Run *r, int wins, DeviceIdle *out)
{
    *out = (DeviceIdle){0};
    if (!task_is_scalar(j->task))
        return; /* the elements of others are compared, and their sums are short */
    begin(j, r, wins, out);
    for (int i = 0; i < LOOKS && (!i || is_suspect(out)); i++) look(r, out);
}

/* Some elements never matter, such as those that a target of zero multiplies. The small workload may have one
 * that was not found. */
static int is_left_out(const DeviceIdle *timed, const DeviceIdle *small, int i)
{
    const double share = share_of(timed, i),
                 usual = (small->of[i].idle + 1.0) / (small->of[i].tried + 2.0);
    return timed->of[i].idle >= FEW && share >= fmax(least_share, TIMES * usual);
}

static int refuse(Judgement *j, const DeviceIdle *d, int i)
{
    char where[160];
    task_workload_text(j->task, j->timed, where, sizeof where);
    return fault_set(
        &j->fault, OUTCOME_WRONG_RESULT, 0,
        "%s: of %d elements of %s that blocks read %d change nothing of what these blocks "
        "write, whatever their values, and at smaller sizes they do: is a part of a long sum "
        "read and not added?",
        where, d->of[i].tried, name_of(j, i), d->of[i].idle);
}

/* The first tensor of which a part is left out; -1: there is none. */
static int find_left_out(const DeviceIdle *timed, const DeviceIdle *small)
{
    for (int i = 0; i < small->n && i < timed->n; i++)
        if (is_left_out(timed, small, i)) return i;
    return -1;
}

/* Elements of a block are often idle together, as those of a row whose hinge is closed: where a fifth of the
 * blocks are, four of each workload look like a part that is left out once in 13 times, and sixteen of each
 * once in 300. Variables have their first values. */
static int compare_small(Judgement *j, const DeviceIdle *timed)
{
    Run r = {0};
    DeviceIdle small;
    Loaded *l = &j->loaded;
    const Case *c = judgement_case(j, j->small);
    if (!c) return -1;
    int rc = loaded_again(l, &j->fault);
    if (!rc) rc = run_open(&r, l, c, NULL, &j->fault);
    if (!rc) {
        int found = 0;
        begin(j, &r, 1, &small);
        for (int i = 0; i < LOOKS && found >= 0; i++) {
            look(&r, &small);
            found = find_left_out(timed, &small);
        }
        if (found >= 0) rc = refuse(j, timed, found);
    }
    run_close(&r);
    return rc;
}

int timed_idle_check(Judgement *j, const DeviceIdle *timed)
{
    return is_suspect(timed) ? compare_small(j, timed) : 0;
}
