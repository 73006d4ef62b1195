/* Runs the reference on variants of each check workload and applies the rules of gate.h. */
#include "tasks/gate.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/cancelled.h"
#include "tasks/task_graph.h"

enum { GATE_SEED = 1, GATE_OTHER_SEEDS = 8, COSTLY_SEEDS = 2, LEAST_PERTURBED = 8 };
enum { WORTH_THREADS = 1 << 22, MANY_INPUTS = 16 }; /* flops of all executions */
static const double scales[] = {1.0, 0.125, 8.0};
/* Flops of one reference of a graph above which it runs with one scale and fewer seeds; of all that run
 * with another input. */
static const double costly_flops = 5e7, perturb_flops = 1e9;
static const double bytes_limit = 4.0 * (1 << 30); /* of what is executed side by side */

static double reference_flops(const Task *t, const Workload *w)
{
    double bytes, flops;
    return t->graph && !task_graph_cost(t, w, &bytes, &flops, NULL) ? flops : 0;
}

/* A case with its inputs and outputs as doubles. The parameters may be another case's. */
typedef struct GateCase {
    const struct GateCase *lender;
    Task *task;
    TaskCase of;
    size_t in_n[TASK_MAX_TENSORS], out_n[TASK_MAX_TENSORS];
    double *in[TASK_MAX_TENSORS], *out[TASK_MAX_TENSORS];
} GateCase;

static void case_release(GateCase *c)
{
    for (int i = 0; i < c->task->n_inputs; i++)
        if (!c->lender || c->in[i] != c->lender->in[i]) free(c->in[i]);
    for (int i = 0; i < c->task->n_outputs; i++) free(c->out[i]);
}

/* Every input, on all cores. */
static int draw_inputs(GateCase *c, Error *err)
{
    int rc = 0;
#pragma omp parallel for schedule(dynamic) if (c->task->n_inputs > MANY_INPUTS)
    for (int i = 0; i < c->task->n_inputs; i++) {
        Error one;
        if (c->lender && c->task->inputs[i].parameter) {
            c->in[i] = c->lender->in[i];
            continue;
        }
        c->in[i] = memory_grow(NULL, c->in_n[i] + 1, sizeof(double)); /* written whole */
        if (!task_draw_wide(&c->of, i, c->in[i], &one)) continue;
#pragma omp critical(gate_found)
        *err = one, rc = -1;
    }
    return rc;
}

static int run_reference(GateCase *c, double *const *out, double poison, Error *err)
{
    const double *in[TASK_MAX_TENSORS];
    for (int i = 0; i < c->task->n_inputs; i++) in[i] = c->in[i];
    for (int i = 0; i < c->task->n_outputs; i++)
        for (size_t j = 0; j < c->out_n[i]; j++) out[i][j] = poison;
    return task_reference(c->task, c->of.workload, in, out, err);
}

/* lender: of the same workload, NULL: none. */
static int case_draw(GateCase *c, const GateCase *lender, Task *t, const TaskCase *of, Error *err)
{
    const Workload *w = of->workload;
    *c = (GateCase){.lender = lender, .task = t, .of = *of};
    for (int i = 0; i < t->n_inputs; i++)
        if (task_elements(t, w, &t->inputs[i], &c->in_n[i], err)) return -1;
    for (int i = 0; i < t->n_outputs; i++) {
        if (task_elements(t, w, &t->outputs[i], &c->out_n[i], err)) return -1;
        c->out[i] = memory_array(c->out_n[i], sizeof(double));
    }
    return draw_inputs(c, err);
}

static int case_init(GateCase *c, const GateCase *lender, Task *t, const TaskCase *of, Error *err)
{
    if (case_draw(c, lender, t, of, err)) return -1;
    return run_reference(c, c->out, NAN, err);
}

static int is_costly(const GateCase *c)
{
    return reference_flops(c->task, c->of.workload) > costly_flops;
}

/* As many threads as n executions of a case can use. A graph's operators then have one thread each: a
 * costly one, whose executions are few, has all of them instead. */
static int threads_for(const GateCase *c, int n)
{
    double bytes = 0, flops = reference_flops(c->task, c->of.workload);
    int threads = c->task->graph && flops * n > WORTH_THREADS ? omp_get_num_procs() : 1;
    if (threads > n) threads = n < omp_get_num_procs() && flops > costly_flops ? 1 : n;
    for (int i = 0; i < c->task->n_inputs; i++) bytes += 2 * sizeof(double) * (double)c->in_n[i];
    for (int i = 0; i < c->task->n_outputs; i++) bytes += sizeof(double) * (double)c->out_n[i];
    while (threads > 1 && threads * bytes > bytes_limit) threads--;
    return threads < 1 ? 1 : threads;
}

static void outputs_alloc(const GateCase *c, double **out)
{
    for (int i = 0; i < c->task->n_outputs; i++) out[i] = memory_array(c->out_n[i], sizeof(double));
}

static void outputs_free(const GateCase *c, double **out)
{
    for (int i = 0; i < c->task->n_outputs; i++) free(out[i]);
}

static void refuse(const GateCase *c, GateResult *r, const char *what)
{
    char where[512];
    task_workload_text(c->task, c->of.workload, where, sizeof where);
    if (r->refused) return; /* the first reason is kept */
    r->refused = 1;
    if (c->of.variant == VARIANT_DRAWN)
        snprintf(r->reason, sizeof r->reason, "%s (workload %s, input scale %g)", what, where,
                 c->of.scale);
    else
        snprintf(r->reason, sizeof r->reason, "%s (workload %s, %s)", what, where,
                 variant_name(c->of.variant));
}

/* Would an output with these values pass the comparison? */
static int passes(const GateCase *c, int output, const double *values)
{
    Dtype d = c->task->outputs[output].dtype;
    TaskComparison with = {.task = c->task, .workload = c->of.workload, .output = output};
    if (task_tolerance(&c->of, output, &with.by, NULL)) return 0;
    void *raw = memory_array(c->out_n[output], dtype_size(d));
    dtype_from_double(d, values, raw, c->out_n[output]);
    int differs = task_compare(&with, raw, c->out[output], NULL);
    free(raw);
    return !differs;
}

static void try_null(const GateCase *c, int output, const double *values, const char *model,
                     GateResult *r)
{
    char what[256];
    if (!passes(c, output, values)) return;
    snprintf(what, sizeof what, "a kernel that writes %s into %s passes", model,
             c->task->outputs[output].name);
    refuse(c, r, what);
}

/* Adds up in the order of the seeds, on any number of threads. */
static int mean_of_others(const GateCase *c, double *const *mean, Error *err)
{
    int seeds = is_costly(c) ? COSTLY_SEEDS : GATE_OTHER_SEEDS;
    int rc = 0, threads = threads_for(c, seeds);
    const GateCase *lender = is_costly(c) ? c : NULL;
#pragma omp parallel for ordered schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int s = 0; s < seeds; s++) {
        GateCase o;
        Error one;
        TaskCase of = c->of;
        of.seed = GATE_SEED + 1 + (uint64_t)s;
        int failed = case_init(&o, lender, c->task, &of, &one);
#pragma omp ordered
        {
            if (failed && !rc) *err = one;
            rc |= failed;
            for (int i = 0; i < c->task->n_outputs && !rc; i++)
                for (size_t j = 0; j < c->out_n[i]; j++) mean[i][j] += o.out[i][j] / (double)seeds;
        }
        case_release(&o);
    }
    return rc;
}

/* means 0: those that need no execution alone. */
static int null_models(GateCase *c, int means, GateResult *r, Error *err)
{
    double *mean[TASK_MAX_TENSORS], *other[TASK_MAX_TENSORS];
    const Task *t = c->task;
    outputs_alloc(c, mean);
    outputs_alloc(c, other);
    int rc = means ? mean_of_others(c, mean, err) : 0;
    for (int i = 0; i < t->n_outputs && !rc; i++) {
        double sum = 0;
        memset(other[i], 0, c->out_n[i] * sizeof(double));
        try_null(c, i, other[i], "zeros", r);
        for (size_t j = 0; j < c->out_n[i]; j++) other[i][j] = 1.0, sum += mean[i][j];
        try_null(c, i, other[i], "ones", r);
        for (size_t j = 0; j < c->out_n[i]; j++) other[i][j] = sum / (double)c->out_n[i];
        if (!means) continue;
        try_null(c, i, other[i], "the mean of other outputs", r);
        try_null(c, i, mean[i], "the element-wise mean of other outputs", r);
        for (int k = 0; k < t->n_inputs; k++) {
            char model[96];
            if (c->in_n[k] != c->out_n[i]) continue;
            snprintf(model, sizeof model, "a copy of %s", t->inputs[k].name);
            try_null(c, i, c->in[k], model, r);
        }
    }
    outputs_free(c, mean);
    outputs_free(c, other);
    return rc;
}

static int moved(const GateCase *c, double *const *after)
{
    for (int i = 0; i < c->task->n_outputs; i++) {
        Tolerance by;
        if (task_tolerance(&c->of, i, &by, NULL)) return 0;
        for (size_t j = 0; j < c->out_n[i]; j++)
            if (fabs(after[i][j] - c->out[i][j]) > 10 * (by.atol + by.rtol * fabs(c->out[i][j])))
                return 1;
    }
    return 0;
}

/* A vector of parameters that algebra cancels, as a softmax does the bias of its keys: to leave it out saves
 * no work worth a tag. */
static int is_cancelled(const GateCase *c, int input, const double *elements)
{
    const Task *t = c->task;
    const double *in[TASK_MAX_TENSORS];
    if (!t->inputs[input].parameter || t->inputs[input].rank != 1) return 0;
    for (int i = 0; i < t->n_inputs; i++) in[i] = c->in[i];
    return cancelled_input(t, c->of.workload, in, input, elements);
}

/* Of a costly graph with many parameters, some of them, spread evenly over the graph. */
static int is_perturbed(const GateCase *c, int input, int limit)
{
    const Task *t = c->task;
    int64_t n = t->n_inputs;
    if (t->inputs[input].unused) return 0;
    return !t->inputs[input].parameter || limit >= n || (input + 1) * limit / n > input * limit / n;
}

/* Draws one input again and executes: 1, an output moved; 0; -1. c is not changed; kept NULL: the
 * reference runs as a whole. */
static int moves(const GateCase *c, int input, const GraphKept *kept, Error *err)
{
    double *after[TASK_MAX_TENSORS];
    GateCase o = *c;
    outputs_alloc(c, after);
    o.in[input] = memory_grow(NULL, c->in_n[input] + 1, sizeof(double)); /* written whole */
    o.of.seed = GATE_SEED + 100;
    int rc = task_draw_wide(&o.of, input, o.in[input], err) ||
                     (kept ? graph_rerun(kept, input, o.in[input], after, err)
                           : run_reference(&o, after, NAN, err))
                 ? -1
                 : moved(c, after) || is_cancelled(c, input, o.in[input]);
    free(o.in[input]);
    outputs_free(c, after);
    return rc;
}

/* What the gate says of an input that moves no output. */
static void refuse_still(const GateCase *c, int input, GateResult *r)
{
    char what[256];
    snprintf(what, sizeof what,
             "other values of the input %s move no output by more than 10 tolerances",
             c->task->inputs[input].name);
    refuse(c, r, what);
}

/* Refuses the first input that moves no output. input: the state of each is kept there too; NULL: those
 * behind the first one are left out. */
static int perturb_inputs(const GateCase *c, const GraphKept *kept, unsigned char *input,
                          GateResult *r, Error *err)
{
    double flops = reference_flops(c->task, c->of.workload);
    int rc = 0, n = c->task->n_inputs, limit = n, still = n, threads = threads_for(c, n);
    if (flops * limit > perturb_flops) limit = (int)fmax(LEAST_PERTURBED, perturb_flops / flops);
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int i = 0; i < n; i++) {
        Error one;
        int stop;
#pragma omp critical(gate_found)
        stop = rc || (i > still && !input);
        if (stop || !is_perturbed(c, i, limit)) continue;
        int found = moves(c, i, kept, &one);
#pragma omp critical(gate_found)
        {
            if (found < 0 && !rc) *err = one, rc = -1;
            if (!found && i < still) still = i;
            if (input) input[i] = found > 0 ? GATE_MOVES : GATE_STILL;
        }
    }
    if (!rc && still < n) refuse_still(c, still, r);
    return rc;
}

/* Returns the elements of one position of the rotated axis, or 0 if it is not the tensor's first
 * dimension. */
static size_t position(const GateCase *c, const TaskTensor *x, size_t n)
{
    const Task *t = c->task;
    return task_rotates(t, x) ? n / (size_t)c->of.workload->axis[t->rotates] : 0;
}

/* A GPU evaluator rotates the timed contents along the axis "turns", and the expected outputs with
 * them. Checks that the reference agrees with that. */
static int rotates(const GateCase *c, GateResult *r, Error *err)
{
    const Task *t = c->task;
    double *after[TASK_MAX_TENSORS];
    int rc = 0;
    if (t->rotates < 0 || c->of.workload->axis[t->rotates] < 2) return 0;
    outputs_alloc(c, after);
    GateCase o = *c;
    for (int i = 0; i < t->n_inputs; i++) {
        size_t n = c->in_n[i], one = position(c, &t->inputs[i], n), rest = n - one;
        if (!one) continue;
        o.in[i] = memory_grow(NULL, n + 1, sizeof(double)); /* written whole */
        memcpy(o.in[i], c->in[i] + one, rest * sizeof(double));
        memcpy(o.in[i] + rest, c->in[i], one * sizeof(double));
    }
    rc = run_reference(&o, after, NAN, err);
    for (int i = 0; i < t->n_inputs; i++)
        if (o.in[i] != c->in[i]) free(o.in[i]);
    for (int i = 0; i < t->n_outputs && !rc; i++) {
        Tolerance by = {0};
        size_t one = position(c, &t->outputs[i], c->out_n[i]), bad = 0;
        rc = task_tolerance(&c->of, i, &by, err);
        for (size_t j = 0; j < c->out_n[i] && !rc; j++) {
            double want = c->out[i][(j + one) % c->out_n[i]];
            bad += !(fabs(after[i][j] - want) <= by.atol + by.rtol * fabs(want));
        }
        char what[256];
        snprintf(what, sizeof what,
                 "\"turns\" says %s, but with the inputs turned by one %zu of %zu elements of %s "
                 "are not the turned ones",
                 t->axis_name[t->rotates], bad, c->out_n[i], t->outputs[i].name);
        if (bad) refuse(c, r, what), r->rotated = 1;
    }
    outputs_free(c, after);
    return rc;
}

/* Runs the reference again on outputs with another poison, or takes the second execution, whose values
 * are kept. An unwritten element or another result shows. */
static int repeatable(GateCase *c, const GraphKept *kept, GateResult *r, Error *err)
{
    double *again[TASK_MAX_TENSORS];
    outputs_alloc(c, again);
    int rc =
        kept ? graph_rerun(kept, -1, NULL, again, err) : run_reference(c, again, -12345.5, err);
    for (int i = 0; i < c->task->n_outputs && !rc; i++) {
        char what[256];
        size_t bad = 0;
        for (size_t j = 0; j < c->out_n[i]; j++) bad += !isfinite(c->out[i][j]);
        if (bad) {
            snprintf(what, sizeof what,
                     "the reference leaves %zu of %zu elements of %s unwritten or not finite", bad,
                     c->out_n[i], c->task->outputs[i].name);
            refuse(c, r, what);
        } else if (memcmp(again[i], c->out[i], c->out_n[i] * sizeof(double))) {
            snprintf(what, sizeof what, "the reference gives other bits for %s when it runs again",
                     c->task->outputs[i].name);
            refuse(c, r, what);
        }
    }
    outputs_free(c, again);
    return rc;
}

/* Checks the reference on another variant, and that "exact" holds. */
static int gate_variant(const GateCase *like, Variant v, GateResult *r, Error *err)
{
    GateCase c;
    Task *t = like->task;
    const GateCase *lender = is_costly(like) ? like : NULL;
    TaskCase of = {t, like->of.workload, v, GATE_SEED, 1.0};
    int rc = case_init(&c, lender, t, &of, err),
        open = v == VARIANT_SPECIAL && t->special & (SPECIAL_INF | SPECIAL_NAN);
    for (int i = 0; i < t->n_outputs && !rc; i++) {
        size_t endless = 0, broken = 0;
        for (size_t j = 0; j < c.out_n[i]; j++) {
            endless += !isfinite(c.out[i][j]);
            broken += v == VARIANT_INTEGERS &&
                      !(c.out[i][j] == nearbyint(c.out[i][j]) && fabs(c.out[i][j]) < 0x1p24);
        }
        char what[256];
        snprintf(what, sizeof what, "%zu of %zu elements of %s are %s", broken ? broken : endless,
                 c.out_n[i], t->outputs[i].name,
                 broken ? "no integers below 2^24 although the task says \"exact\""
                        : "not finite although the inputs are");
        if (broken || (endless && !open)) refuse(&c, r, what);
    }
    case_release(&c);
    return rc;
}

/* All of them side by side; the first refusal counts. */
static int gate_variants(const GateCase *c, GateResult *r, Error *err)
{
    GateResult found[VARIANTS] = {{0}};
    Error errors[VARIANTS];
    int failed[VARIANTS] = {0}, rc = 0, threads = threads_for(c, VARIANTS);
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int v = VARIANT_NEEDLES; v < VARIANTS; v++)
        if (task_has_variant(c->task, c->of.workload, (Variant)v))
            failed[v] = gate_variant(c, (Variant)v, &found[v], &errors[v]);
    for (int v = VARIANT_NEEDLES; v < VARIANTS && !rc && !r->refused; v++) {
        if (failed[v]) *err = errors[v], rc = -1;
        if (found[v].refused) *r = found[v];
    }
    return rc;
}

static TaskCase at_scale(const Task *t, const Workload *w, double scale)
{
    return (TaskCase){t, w, VARIANT_DRAWN, GATE_SEED, scale};
}

/* A case at one input scale, and of a graph an execution whose values are kept. */
typedef struct {
    GateCase c;
    GraphBound *b;
    GraphKept *kept;
} Gated;

/* Of a graph, the execution and the one that is kept run side by side, or with `once` only the latter. */
static int gated_open(Gated *g, Task *t, const TaskCase *of, int once, Error *err)
{
    Error errors[2];
    int failed[2] = {0}, threads;
    g->b = NULL, g->kept = NULL;
    if (case_draw(&g->c, NULL, t, of, err)) return -1;
    if (!t->graph) return run_reference(&g->c, g->c.out, NAN, err);
    if (task_graph_bind(t, of->workload, &g->b, err)) return -1;
    threads = once ? 1 : threads_for(&g->c, 2);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int i = once; i < 2; i++)
        failed[i] = i ? graph_keep(g->b, (const double *const *)g->c.in, &g->kept, &errors[1])
                      : run_reference(&g->c, g->c.out, NAN, &errors[0]);
    for (int i = 0; i < 2; i++)
        if (failed[i]) return *err = errors[i], -1;
    return once ? graph_rerun(g->kept, -1, NULL, g->c.out, err) : 0;
}

static void gated_close(Gated *g)
{
    graph_kept_free(g->kept);
    graph_bound_free(g->b);
    case_release(&g->c);
}

/* What one input scale shows. last: the other variants too. At other scales than 1, which come later, null
 * models and inputs are tried while all is well. */
static int judge_scale(Gated *g, int last, GateFound *f, Error *err)
{
    GateCase *c = &g->c;
    int first = c->of.scale == scales[0];
    if (repeatable(c, g->kept, &f->hard, err)) return -1;
    if (f->hard.refused) return 0;
    if (rotates(c, &f->hard, err)) return -1;
    if (f->hard.refused) return 0;
    if (!f->soft.refused && null_models(c, 1, &f->soft, err)) return -1;
    if (first) f->null = f->soft;
    if (!f->soft.refused && perturb_inputs(c, g->kept, first ? f->input : NULL, &f->soft, err))
        return -1;
    return last ? gate_variants(c, &f->hard, err) : 0;
}

static int gate_scale(Task *t, const TaskCase *of, int last, GateFound *f, Error *err)
{
    Gated g;
    int rc = gated_open(&g, t, of, 0, err) || judge_scale(&g, last, f, err) ? -1 : 0;
    gated_close(&g);
    return rc;
}

int task_gate_workload(Task *t, const Workload *w, GateFound *out, Error *err)
{
    int costly = reference_flops(t, w) > costly_flops, rc = 0, threads = omp_get_max_threads();
    size_t n = costly ? 1 : sizeof scales / sizeof *scales;
    memset(out, 0, sizeof *out);
    if (t->graph && !costly)
        omp_set_num_threads(1); /* of one execution, where threads would wait */
    for (size_t s = 0; s < n && !rc; s++) {
        const TaskCase of = at_scale(t, w, scales[s]);
        rc = gate_scale(t, &of, s + 1 == n, out, err);
    }
    omp_set_num_threads(threads);
    return rc;
}

static int judge_once(Gated *g, GateFound *f, Error *err)
{
    if (null_models(&g->c, 0, &f->null, err)) return -1;
    if (!f->null.refused && null_models(&g->c, 1, &f->null, err)) return -1;
    f->soft = f->null;
    return f->null.refused ? 0 : perturb_inputs(&g->c, g->kept, f->input, &f->soft, err);
}

int task_gate_once(Task *t, const Workload *w, GateFound *out, Error *err)
{
    Gated g;
    const TaskCase of = at_scale(t, w, 1);
    memset(out, 0, sizeof *out);
    int rc = gated_open(&g, t, &of, 1, err) || judge_once(&g, out, err) ? -1 : 0;
    gated_close(&g);
    return rc;
}

/* after: memory for the outputs. */
static int zero_input(const Gated *g, int input, double *const *after, GateResult *r, Error *err)
{
    const Task *t = g->c.task;
    double *zeros = memory_array(g->c.in_n[input] + 1, sizeof *zeros);
    int rc = graph_rerun(g->kept, input, zeros, after, err), same = !rc;
    char what[256];
    for (int k = 0; k < t->n_outputs && same; k++) same = passes(&g->c, k, after[k]);
    if (same && is_cancelled(&g->c, input, zeros)) same = 0;
    free(zeros);
    if (!same) return rc;
    snprintf(what, sizeof what, "a kernel that takes the input %s for zeros passes",
             t->inputs[input].name);
    refuse(&g->c, r, what);
    return 0;
}

static int zero_inputs(const Gated *g, GateResult *r, Error *err)
{
    double *after[TASK_MAX_TENSORS];
    int rc = 0;
    outputs_alloc(&g->c, after);
    for (int i = 0; i < g->c.task->n_inputs && !rc && !r->refused; i++)
        rc = zero_input(g, i, after, r, err);
    outputs_free(&g->c, after);
    return rc;
}

int task_gate_zeroed(Task *t, const Workload *w, GateResult *out, Error *err)
{
    Gated g;
    const TaskCase of = at_scale(t, w, 1);
    memset(out, 0, sizeof *out);
    int rc = gated_open(&g, t, &of, 1, err) || zero_inputs(&g, out, err) ? -1 : 0;
    gated_close(&g);
    return rc;
}

void gate_inputs_add(const Task *t, const GateFound *f, unsigned char *input)
{
    for (int i = 0; i < t->n_inputs && !f->null.refused; i++)
        if (f->input[i] > input[i]) input[i] = f->input[i];
}

int gate_inputs_still(const Task *t, const unsigned char *input)
{
    int i = 0;
    while (i < t->n_inputs && input[i] != GATE_STILL) i++;
    return i < t->n_inputs ? i : -1;
}

/* Of the check workloads that the gate has seen: the first that a null model passes, and for each input
 * whether it matters at any. */
static void judge(const Task *t, const GateResult *null, const unsigned char *input,
                  GateResult *out)
{
    int still = gate_inputs_still(t, input);
    *out = *null;
    if (out->refused || still < 0) return;
    out->refused = 1;
    snprintf(out->reason, sizeof out->reason,
             "other values of the input %s move no output by more than 10 tolerances at any check "
             "workload (input scale 1)",
             t->inputs[still].name);
}

int task_gate(Task *t, GateResult *out, Error *err)
{
    GateResult null = {0};
    GateFound f;
    unsigned char input[TASK_MAX_TENSORS] = {0};
    for (int i = 0; i < t->n_workloads; i++) {
        if (t->workloads[i].role != ROLE_CHECK) continue;
        if (task_gate_workload(t, &t->workloads[i], &f, err)) return -1;
        if (f.hard.refused) return *out = f.hard, 0;
        if (!null.refused) null = f.null;
        gate_inputs_add(t, &f, input);
    }
    judge(t, &null, input, out);
    if (t->degenerate) out->refused = 0; /* the reason says what it is excused from */
    return 0;
}
