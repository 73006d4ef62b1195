/* Chooses a size for each direction, then runs and compares. */
#include "eval/judge/wide_checks.h"

#include <string.h>

#include "eval/judge/branches.h"
#include "eval/judge/checks.h"
#include "eval/judge/contents/drawn_sizes.h"
#include "eval/judge/loaded_ops.h"
#include "eval/judge/predicted_timing.h"
#include "tasks/regimes.h"

enum {
    BLOCKS = 3,      /* in each direction of a grid */
    TRIPS = 2,       /* complete ones of a loop over a row, before the last */
    FEW_AXES = 4,    /* along which a branch is checked at long sizes */
    VECTOR = 4,      /* elements that a thread takes at once */
    ENOUGH = 32,     /* elements of an output, whose errors tell a precision */
    FEATURES = 8,    /* the least of each axis there */
    MANY_ROWS = 12,  /* of one draw, each with a largest element of its own */
    TRIALS = 4,      /* draws of fewer rows */
    LAYERS = 4,      /* after which signals may have faded */
    FEW_OPS = 64,    /* the kernels of more op lines take too long to compile for each direction */
    THREADS = 300000 /* of a check at most, where a wider one is only better */
};

/* Of drawn_sizes_work: trips of vectors are wanted up to it. */
static const double cheap = 6e4;
/* The same: sizes at which the precision of factors shows. */
static const double precise_work = 4e8;
/* Of their inputs: signals that fade from layer to layer beside biases are as large as these behind eight
 * layers, and with them the errors of factors (k3_5, 2026-11-30: 65536 shows bfloat16 barely). */
static const double loud = 0x1p20;
/* The same: a branch that begins above it is checked on one kind of contents beside the first. */
static const double dear = 4e6;

/* ---- the choice ---- */

typedef struct {
    Judgement *j;
    DrawnSizes *sizes;
    int direction;
    const Workload *narrow, *widest; /* of the direction */
    int turns; /* the chosen sizes: a block of a capped grid goes on to another place */
} Choice;

static const PlanContext *context_of(const Choice *c)
{
    return &c->j->loaded.context;
}

/* How wide a block's loop over the direction has to be. */
static int64_t wanted_width(const Choice *c, const PlanShape *s, const Workload *w)
{
    uint32_t most = 1;
    for (int i = 0; i < 3; i++) most = s->block[i] > most ? s->block[i] : most;
    int64_t trip = most * (drawn_sizes_work(c->j->task, w) <= cheap ? VECTOR : 1);
    return TRIPS * trip + 1;
}

/* The grid along i where the axes of the direction are half as long. */
static uint32_t grid_of_half(const Choice *c, const PlanStep *step, const Workload *w, int i)
{
    Workload half = *w;
    PlanShape at;
    for (int k = 0; k < c->j->task->n_axes; k++)
        if (c->narrow->axis[k] < c->widest->axis[k]) half.axis[k] = (w->axis[k] + 1) / 2;
    return plan_shape(context_of(c), &half, step, &at) ? 0 : at.grid[i];
}

/* A grid that is as large at half of the timed size is capped: its blocks loop over places, and what one
 * leaves for the next shows where a block has two of them or more. Returns 1 where w has no such block. */
static int lacks_turns(Choice *c, const PlanStep *step, const Workload *w, int i)
{
    PlanShape at, timed;
    if (plan_shape(context_of(c), c->j->timed, step, &timed) || timed.grid[i] < BLOCKS ||
        grid_of_half(c, step, c->j->timed, i) != timed.grid[i])
        return 0;
    c->turns = !plan_shape(context_of(c), w, step, &at) && at.grid[i] == timed.grid[i] &&
               grid_of_half(c, step, w, i) == timed.grid[i];
    return !c->turns;
}

/* Does w have three blocks where the grid grows with the direction, and turns of these where it is capped,
 * else three trips? */
static int suits_step(Choice *c, const PlanStep *step, const Workload *w)
{
    PlanShape at, narrow, widest;
    int grows = 0;
    if (step->kernel < 0 || plan_shape(context_of(c), w, step, &at) ||
        plan_shape(context_of(c), c->narrow, step, &narrow) ||
        plan_shape(context_of(c), c->widest, step, &widest))
        return 1;
    for (int i = 0; i < 3; i++) {
        if (narrow.grid[i] == widest.grid[i]) continue;
        grows = 1;
        if (at.grid[i] < BLOCKS || lacks_turns(c, step, w, i)) return 0;
    }
    return grows || drawn_sizes_width(c->sizes, c->direction, w) >= wanted_width(c, &at, w);
}

static double threads_at(const Choice *c, const Workload *w)
{
    const Plan *p = &c->j->candidate.plan;
    double all = 0;
    PlanShape s;
    for (int i = 0; i < p->n_steps; i++) {
        if (p->steps[i].kernel < 0 || plan_shape(context_of(c), w, &p->steps[i], &s)) continue;
        all += (double)s.grid[0] * s.grid[1] * s.grid[2] * s.block[0] * s.block[1] * s.block[2];
    }
    return all;
}

static int suits(Choice *c, const Workload *w)
{
    const Plan *p = &c->j->candidate.plan;
    for (int i = 0; i < p->n_steps; i++)
        if (!suits_step(c, &p->steps[i], w)) return 0;
    return 1;
}

/* A branch of the plan that no check of the task takes is checked at sizes of its own. */
static int takes_other_branch(const Judgement *j, const Workload *w)
{
    const Plan *p = &j->candidate.plan;
    for (int i = 0; i < p->n_steps; i++)
        if (plan_trips(&j->loaded.context, w, &p->steps[i]) > 0 &&
            !branches_checked(j, &p->steps[i]))
            return 1;
    return 0;
}

/* The narrowest sizes that suit, else the widest; NULL: the direction has none. */
static const Workload *choose(Choice *c)
{
    const Workload *best = c->narrow = drawn_sizes_at(c->sizes, c->direction, 0), *w;
    c->turns = 0;
    if (!best || takes_other_branch(c->j, best)) return NULL;
    if (!c->j->candidate.plan.n_kernels || c->direction == drawn_sizes_directions(c->sizes) - 1)
        return best;
    for (int level = 0;
         (w = level < DRAWN_LEVELS ? drawn_sizes_at(c->sizes, c->direction, level) : NULL); level++)
        c->widest = w;
    for (int level = 1; level < DRAWN_LEVELS && !suits(c, best); level++) {
        w = drawn_sizes_at(c->sizes, c->direction, level);
        if (!w || takes_other_branch(c->j, w) || threads_at(c, w) > THREADS) break;
        best = w;
    }
    return best;
}

/* ---- the checks ---- */

/* The sizes of the plan's op lines, in one compilation. Returns 1 when they cannot be had. */
static int compile_ops(Judgement *j, const Workload *const *w, int n)
{
    Fault unused;
    Loaded *l = &j->loaded;
    OpPartSize total = l->op_total;
    size_t own = l->op_own;
    int rc = loaded_ops_compile(l, w, n, &unused);
    if (!rc) return 0;
    l->op_total = total;
    l->op_own = own;
    if (rc < 0) j->fault.error = unused.error;
    return rc;
}

/* Inputs at which honest kernels are finite, of another scale where need be. *out NULL: there are none. */
static int usable_case(Judgement *j, const Contents *of, const Case **out)
{
    Contents now = *of;
    for (int i = 0; i < 2; i++, now.scale = 1.0) {
        *out = judgement_draw(j, &now);
        if (!*out) return -1;
        if ((*out)->usable) return 0;
    }
    *out = NULL;
    return 0;
}

/* A fault at contents at which honest kernels are not finite blames nobody. A wrong result is compared again
 * with the tolerance that was measured. */
static int doubt(Judgement *j, Run *r, const Case *c)
{
    if (cases_measure(j->evaluator->cases, c, &j->fault.error)) return -1;
    if (!c->usable) return 0;
    return j->fault.outcome == OUTCOME_WRONG_RESULT && !run_compare(r, &j->fault) ? 0 : 1;
}

static int run_case(Judgement *j, const Case *c)
{
    Run r = {0};
    Fault *f = &j->fault;
    int too_long = 0;
    int rc = run_open(&r, &j->loaded, c, NULL, f);
    if (!rc)
        rc = judgement_is_predicted(j) ? predicted_attempt(&r, &too_long, f) : checks_once(&r, f);
    if (!rc && !too_long) verdict_pass(&j->verdict, "%s", r.where);
    if (rc == 1 && c->lenient) rc = doubt(j, &r, c);
    run_close(&r);
    return rc;
}

static int check_contents(Judgement *j, const Contents *of)
{
    Fault unused;
    const Case *c;
    if (loaded_ops_at(&j->loaded, of->w, &unused)) return 0;
    int rc = usable_case(j, of, &c);
    return rc || !c ? rc : run_case(j, c);
}

static int check_variant(Judgement *j, const Workload *w, Variant v, double scale)
{
    return check_contents(j, &(Contents){w, v, scale, 0});
}

static int check_sizes(Judgement *j, const Workload *w, double scale)
{
    return check_variant(j, w, VARIANT_DRAWN, scale);
}

/* By which elements of a row a direction is chosen: the most of an input or an output, or the largest power
 * of two that divides those of an input. */
typedef enum { BY_INPUT, BY_OUTPUT, BY_POWER, ROW_CHOICES } RowChoice;

static const Workload *with_rows(const Judgement *j, const Workload *const *w, int n, RowChoice by)
{
    const Workload *best = NULL;
    size_t most = 0;
    for (int i = 0; i < n; i++) {
        size_t row = regimes_row(j->task, w[i], by == BY_OUTPUT);
        if (by == BY_POWER) row &= 0 - row;
        if (row > most) best = w[i], most = row;
    }
    return best;
}

/* Each row shows whether a maximum leaves out the part that one element lies in: few rows are drawn again. */
static int check_large_rows(Judgement *j, const Workload *w)
{
    size_t row = regimes_row(j->task, w, 1), n = 0;
    if (task_elements(j->task, w, &j->task->outputs[0], &n, &j->fault.error)) return -1;
    size_t rows = row ? n / row : MANY_ROWS;
    int rc = 0;
    for (int i = 0; i < TRIALS && !rc && (size_t)i * rows < MANY_ROWS; i++)
        rc = check_contents(j, &(Contents){w, VARIANT_LARGE_ROWS, 1.0, i});
    return rc;
}

/* Sums of a half type lose most where rows are long, and maxima may leave out a part of them. */
static int check_long_rows(Judgement *j, const Workload *const *w, int n)
{
    static const Variant kinds[] = {VARIANT_FALLING, VARIANT_LARGE_ROWS};
    const Workload *of[ROW_CHOICES];
    int rc = 0;
    for (int i = 0; i < ROW_CHOICES; i++) {
        int is_new = (of[i] = with_rows(j, w, n, (RowChoice)i)) != NULL;
        for (int k = 0; k < i; k++) is_new &= of[i] != of[k];
        for (int k = 0; k < 2 && is_new && !rc; k++)
            if (regimes_on_long_rows(j->task, kinds[k]))
                rc = kinds[k] == VARIANT_LARGE_ROWS ? check_large_rows(j, of[i])
                                                    : check_variant(j, of[i], kinds[k], 1.0);
    }
    return rc;
}

static int check_directions(Judgement *j)
{
    const Workload *list[DRAWN_DIRECTIONS];
    double scales[DRAWN_DIRECTIONS];
    int turns[DRAWN_DIRECTIONS];
    const Task *t = j->task;
    Choice c = {.j = j, .sizes = cases_drawn_sizes(j->evaluator->cases, t, j->evaluator->seed)};
    int n = 0, all = drawn_sizes_directions(c.sizes);
    for (c.direction = j->candidate.plan.n_ops > FEW_OPS ? all - 1 : 0; c.direction < all;
         c.direction++) {
        scales[n] = checks_scales[c.direction % CHECKS_SCALES];
        list[n] = choose(&c);
        turns[n] = c.turns && list[n] && task_has_variant(t, list[n], VARIANT_LARGE_ROWS);
        n += list[n] != NULL;
    }
    int rc = compile_ops(j, list, n);
    if (rc) return rc < 0 ? -1 : 0;
    for (int i = 0; i < n && !rc; i++) {
        rc = check_sizes(j, list[i], scales[i]);
        if (!rc && turns[i]) rc = check_variant(j, list[i], VARIANT_LARGE_ROWS, 1.0);
    }
    return rc ? rc : check_long_rows(j, list, n);
}

/* A launch line that no check of the task reaches. */
static int check_branch(Judgement *j, const PlanStep *s)
{
    const Workload *w;
    int rc = branches_sizes(j, s, &w);
    if (rc || !w) return rc;
    rc = compile_ops(j, &w, 1);
    return rc ? (rc < 0 ? -1 : 0) : check_sizes(j, w, 1.0);
}

/* Sizes that are longest along each axis in turn. */
static int check_long_branch(Judgement *j, const PlanStep *s)
{
    const Workload *list[FEW_AXES];
    const Task *t = j->task;
    int n = 0;
    for (int i = 0; i < t->n_axes && n < FEW_AXES; i++)
        if (j->timed->axis[i] >= DRAWN_LONG) list[n++] = branches_wide(j, s, i);
    int rc = compile_ops(j, list, n);
    if (rc) return rc < 0 ? -1 : 0;
    for (int i = 0; i < n && !rc; i++) rc = check_sizes(j, list[i], 1.0);
    return rc;
}

/* The contents of a check that stands for the largest one, where that one does not take the branch. */
static int check_wide_branch(Judgement *j, const PlanStep *s)
{
    const Workload *w = branches_wide(j, s, -1);
    int rc = w ? compile_ops(j, &w, 1) : 0;
    if (!w || rc) return rc < 0 ? -1 : 0;
    if (drawn_sizes_work(j->task, w) > dear)
        return task_has_variant(j->task, w, VARIANT_NEEDLES)
                   ? check_variant(j, w, VARIANT_NEEDLES, 1.0)
                   : check_sizes(j, w, checks_scales[1]);
    for (int i = 0; i < CHECKS_SCALES && !rc; i++) rc = check_sizes(j, w, checks_scales[i]);
    for (Variant v = VARIANT_NEEDLES; v < VARIANTS && !rc; v++)
        if (task_has_variant(j->task, w, v)) rc = check_variant(j, w, v, 1.0);
    return rc ? rc : check_long_branch(j, s);
}

static int check_branches(Judgement *j)
{
    const Plan *p = &j->candidate.plan;
    int rc = 0;
    for (int i = 0; i < p->n_steps && !rc; i++) {
        rc = check_branch(j, &p->steps[i]);
        if (!rc) rc = check_wide_branch(j, &p->steps[i]);
    }
    return rc;
}

/* All errors of an output in float32 tell TF32 from coarser types. */
static int has_elements(const Task *t, const Workload *w)
{
    size_t n;
    for (int i = 0; i < t->n_outputs; i++)
        if (t->outputs[i].dtype == DTYPE_F32 && !task_elements(t, w, &t->outputs[i], &n, NULL) &&
            n >= ENOUGH)
            return 1;
    return 0;
}

/* Behind layers of one or two features no error may be left. */
static int has_signals(void *judgement, const Workload *w)
{
    const Judgement *j = judgement;
    for (int i = 0; i < j->task->n_axes; i++)
        if (w->axis[i] < FEATURES && w->axis[i] < j->timed->axis[i]) return 0;
    return has_elements(j->task, w);
}

/* Signals become smaller from layer to layer, beside biases: there are several, and no norm between them. */
static int fades(const Task *t)
{
    int layers = 0;
    for (int node = 0; t->graph && node < t->graph->n_nodes; node++) {
        const char *name = t->graph->line[node].op->name;
        if (strstr(name, "norm")) return 0;
        layers += strstr(name, "conv") || strstr(name, "linear");
    }
    return layers >= LAYERS;
}

/* Sizes with enough elements, where no check of the task has them. */
static int check_precision(Judgement *j)
{
    Task *t = j->task;
    const DrawnCondition enough = {has_signals, j, 0, -1};
    Workload w;
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role == ROLE_CHECK && has_elements(t, &t->workloads[i])) return 0;
    if (!t->tf32 || drawn_sizes_where(t, j->evaluator->seed, &enough, precise_work, &w)) return 0;
    const Workload *own = cases_sizes(j->evaluator->cases, t, &w);
    int rc = compile_ops(j, &own, 1);
    if (rc) return rc < 0 ? -1 : 0;
    rc = check_sizes(j, own, 1.0);
    return rc || !fades(t) ? rc : check_sizes(j, own, loud);
}

int step_wide(Judgement *j)
{
    if (j->trusted) return 0;
    int rc = check_directions(j);
    if (!rc) rc = check_precision(j);
    return rc ? rc : check_branches(j);
}
