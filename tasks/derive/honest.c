/* Executes a graph with the rounding errors of honest kernels, and says what tolerance they need. */
#include "tasks/derive/honest.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sort.h"
#include "ops/op_chain.h"
#include "tasks/derive/derive.h"
#include "tasks/derive/honest_way.h"
#include "tasks/derive/sizes.h"
#include "tasks/task_graph.h"

/* Draws of a case; the first DRAWS have more ways, and a graph of many nodes has no others. */
enum { DRAWS = 3, MAX_DRAWS = 8, MANY_NODES = 512, MAX_SORTED = 4096, MAX_GROWN = 2 };
enum { FEW = 16 };             /* elements */
enum { ONE_OF_CHOICES = 128 }; /* so many elements; as in eval/judge/contents/second_look.c */
enum { MOST_BRIEF = 8, BRIEF_NODE = 4096 }; /* ways of a draw, flops of a node */
/* Of one execution: fewer ways are tried; only one running sum, with its drift. */
static const double COSTLY_FLOPS = 4e6, HUGE_FLOPS = 5e7;
static const double BRIEF_FLOPS = 4e7;     /* of all executions of a brief measurement */
static const double OUTPUTS_FLOPS = 1.6e8; /* of honest_outputs */
static const double WORTH_FLOPS = 4e6;     /* of all executions of a draw: threads share them */

/* Parts of a draw, elements of a part, and parts of all draws that tell the tail of errors; where these are
 * normal, their largest ones spread less. */
enum { PARTS = 8, LEAST_PART = 256, LEAST_PARTS = 4 };
static const double NORMAL_SPREAD = 2;

/* ---- one case ---- */

typedef struct {
    TaskCase of;
    const Task *t;
    const GraphBound *b;
    const HonestPlan *plan;
    double *in[TASK_MAX_TENSORS];
    double *want[GRAPH_MAX_OUTPUTS], *got[GRAPH_MAX_OUTPUTS], *relative;
    double middle[GRAPH_MAX_OUTPUTS]; /* of the wanted elements' sizes */
    int64_t n[GRAPH_MAX_OUTPUTS];
    int draw;
    double need[MAX_GROWN][GRAPH_MAX_OUTPUTS]; /* of atol, by all draws */
    /* The largest error of each part, by the ways that every draw has. */
    double worst[GRAPH_MAX_OUTPUTS][MAX_DRAWS][PARTS];
    int is_common, drifts;
    double middle_error[GRAPH_MAX_OUTPUTS][MAX_DRAWS];       /* relative */
    double sum[GRAPH_MAX_OUTPUTS], count[GRAPH_MAX_OUTPUTS]; /* of errors, by all draws */
    Execution e;
    int64_t *terms;
    double *drift, *walk;
    char *last, *factors;
    HonestKept *keep; /* what is executed is added to it, and rtol is measured; NULL: atol is */
    const HonestKept *drawn; /* its parameters are used; NULL: none are */
} HonestCase;

/* The outputs of one execution with errors, and those without. */
typedef struct {
    double *want, *got; /* output after output */
    int draw, is_common, drifts;
    double middle[GRAPH_MAX_OUTPUTS];
} Kept;

struct HonestKept {
    const Task *t;
    int finite, n, draws;
    Kept *run;
    int64_t size[GRAPH_MAX_OUTPUTS];
    Workload w;
    double *parameter[TASK_MAX_TENSORS]; /* as the first draw gives them; NULL: not kept */
};

static int case_draw(HonestCase *c, Error *err)
{
    const Task *t = c->t;
    int rc = 0;
    for (int i = 0; i < t->n_inputs && !rc; i++) {
        size_t n;
        if (c->drawn && c->drawn->parameter[i]) {
            c->in[i] = c->drawn->parameter[i];
            continue;
        }
        if (task_elements(t, c->of.workload, &t->inputs[i], &n, err)) return -1;
        if (!c->in[i]) c->in[i] = memory_grow(NULL, n + 1, sizeof(double)); /* written whole */
        rc = task_draw_wide(&c->of, i, c->in[i], err);
        way_fill_bits(&t->inputs[i], c->of.variant, i, c->in[i], n);
    }
    return rc;
}

static void case_prepare(HonestCase *c)
{
    const GraphBound *b = c->b;
    int64_t largest = 1;
    c->terms = memory_array((size_t)b->graph->n_nodes, sizeof *c->terms);
    c->drift = memory_array((size_t)b->graph->n_nodes, sizeof *c->drift);
    c->walk = memory_array((size_t)b->graph->n_nodes, sizeof *c->walk);
    c->last = memory_array((size_t)b->graph->n_values + 1, 1);
    c->factors = memory_array((size_t)b->graph->n_nodes, 1);
    for (int node = 0; node < b->graph->n_nodes; node++) {
        c->terms[node] = sizes_call_terms(&b->calls[node]);
        c->factors[node] = (char)way_factors(&b->calls[node].call);
        int known = -1;
        for (int k = 0; k < node && known < 0; k++)
            if (c->terms[k] == c->terms[node]) known = k;
        c->drift[node] = known < 0 ? honest_drift(c->terms[node]) : c->drift[known];
        c->walk[node] = known < 0 ? honest_walk(c->terms[node]) : c->walk[known];
    }
    for (int i = 0; i < c->t->n_outputs; i++) {
        int value = b->graph->output[i];
        c->last[b->values[value].base] = 1;
        c->n[i] = op_elements(&b->values[value].tensor);
        c->want[i] = memory_array((size_t)c->n[i] + 1, sizeof(double));
        if (c->n[i] > largest) largest = c->n[i];
    }
    c->relative = memory_array((size_t)largest, sizeof(double));
    c->e = (Execution){NULL, c->terms, c->drift, c->walk, c->last, c->factors, 0, 0};
}

/* Keeps the parameters for the cases that follow. */
static void keep_parameters(HonestCase *c)
{
    for (int i = 0; i < c->t->n_inputs; i++)
        if (c->t->inputs[i].parameter) {
            c->keep->parameter[i] = c->in[i];
            c->in[i] = NULL;
        }
}

static void case_release(HonestCase *c)
{
    for (int i = 0; i < c->t->n_inputs; i++)
        if (!c->drawn || c->in[i] != c->drawn->parameter[i]) free(c->in[i]);
    for (int i = 0; i < c->t->n_outputs; i++) free(c->want[i]);
    free(c->relative);
    free(c->terms);
    free(c->drift);
    free(c->walk);
    free(c->last);
    free(c->factors);
    free(c);
}

static int is_half(Dtype d)
{
    return d == DTYPE_F16 || d == DTYPE_BF16;
}

/* The middle one of f over a sample of an output's elements, without zeros. */
typedef double Size(double want, double got);
static double middle(HonestCase *c, int i, Size *f)
{
    size_t n = 0;
    int64_t step = 1 + c->n[i] / MAX_SORTED;
    for (int64_t k = 0; k < c->n[i]; k += step)
        if (c->want[i][k] != 0 && isfinite(c->want[i][k]))
            c->relative[n++] = f(c->want[i][k], c->got[i][k]);
    if (!n) return 0;
    sort_doubles(c->relative, n);
    return c->relative[n / 2];
}

static double relative_error(double want, double got)
{
    return fabs(got / want - 1);
}

static double magnitude(double want, double got)
{
    (void)got;
    return fabs(want);
}

static int margin_of(const HonestCase *c, int i)
{
    return is_half(c->t->outputs[i].dtype) ? HONEST_MARGIN_HALF : HONEST_MARGIN;
}

/* The largest of few errors says nothing of more. */
static int parts_of(const HonestCase *c, int i)
{
    int64_t n = c->n[i] / LEAST_PART;
    return n < 1 ? 1 : n < PARTS ? (int)n : PARTS;
}

static void note_mean(HonestCase *c, int i)
{
    const double *want = c->want[i], *got = c->got[i];
    double sum = c->sum[i];
    int64_t count = 0;
    for (int64_t e = 0; e < c->n[i]; e++) {
        double error = fabs(got[e] - want[e]);
        if (!isfinite(error)) continue;
        sum += error;
        count++;
    }
    c->sum[i] = sum;
    c->count[i] += count;
}

/* Few elements of an integer output are others: a choice between two that lie near each other. The judge
 * looks at one by one (own_choice). A tolerance for it would hide every choice that is wrong. */
static int is_rare_choice(const HonestCase *c, int i)
{
    int64_t others = 0;
    if (dtype_is_float(c->t->outputs[i].dtype)) return 0;
    for (int64_t e = 0; e < c->n[i]; e++) others += c->got[i][e] != c->want[i][e];
    return others <= 1 + c->n[i] / ONE_OF_CHOICES;
}

/* The largest absolute tolerance that an element needs when its error is `more` times as large. 1 in
 * *overflow: a finite result came out as none. */
static double largest_need(const HonestCase *c, int i, double more, double least, int *overflow)
{
    const double *want = c->want[i], *got = c->got[i], middle = c->middle[i],
                 rtol = c->plan->rtol[i];
    for (int64_t e = 0; e < c->n[i]; e++) {
        double size = fabs(want[e]), error = fabs(got[e] - want[e]);
        double given = size > middle ? rtol * size : 0, needed = more * error - given;
        if (isfinite(error))
            least = needed > least ? needed : least;
        else if (isfinite(size))
            *overflow = 1;
    }
    return least;
}

/* The largest error of each part of the elements. */
static void note_worst(HonestCase *c, int i)
{
    const double *want = c->want[i], *got = c->got[i];
    int64_t parts = parts_of(c, i), n = c->n[i];
    for (int64_t p = 0; p < parts; p++) {
        double worst = c->worst[i][c->draw][p];
        for (int64_t e = (p * n + parts - 1) / parts; e < ((p + 1) * n + parts - 1) / parts; e++) {
            double error = fabs(got[e] - want[e]);
            if (isfinite(error) && error > worst) worst = error;
        }
        c->worst[i][c->draw][p] = worst;
    }
}

/* The error of a sum does not shrink with the sum: what the smaller half of the elements needs, any
 * element near zero needs, and atol gives all of it. Beyond, rtol helps. */
static void note_errors(HonestCase *c, int i, HonestError *out)
{
    if (is_rare_choice(c, i)) return;
    note_mean(c, i);
    if (c->is_common) note_worst(c, i);
    for (int k = 0; k < c->plan->n; k++) {
        const HonestGrowth *g = &c->plan->grown[k];
        double more = margin_of(c, i) * (c->drifts ? g->by : fmax(g->by, g->chain));
        c->need[k][i] = largest_need(c, i, more, c->need[k][i], &out[k].overflow);
    }
}

/* The largest of n numbers by their middle one, without zeros; 1: all are zero. Sorts them. */
static double spread(double *of, int n)
{
    int kept = 0;
    for (int k = 0; k < n; k++)
        if (of[k] > 0) of[kept++] = of[k];
    if (!kept) return 1;
    sort_doubles(of, (size_t)kept);
    return of[kept - 1] / of[(kept - 1) / 2];
}

/* How much wider the margin is than by the worst draw. */
static double widening(const HonestCase *c, int i, int draws)
{
    double worst[MAX_DRAWS] = {0};
    if (draws == 1) return HONEST_SINGLE;
    for (int k = 0; k < draws; k++)
        for (int part = 0; part < PARTS; part++) worst[k] = fmax(worst[k], c->worst[i][k][part]);
    return fmax(1, fmin(HONEST_WIDEST, spread(worst, draws)) / margin_of(c, i));
}

/* The largest of `elements` times as many errors by the largest one here, as of the parts of all draws. */
static double tail(const HonestCase *c, int i, int draws, double elements)
{
    double worst[MAX_DRAWS * PARTS];
    int n = 0, parts = parts_of(c, i);
    for (int k = 0; k < draws * parts; k++) worst[n++] = c->worst[i][k / parts][k % parts];
    double ratio = spread(worst, n);
    if (n < LEAST_PARTS || c->n[i] < LEAST_PART || ratio < NORMAL_SPREAD) return 1;
    return fmin(HONEST_WIDEST, pow(fmax(1, elements / draws), log(ratio) / log(n)));
}

/* Where errors grow to more elements, these have a wider margin than by the worst draw. */
static double margin_at(const HonestCase *c, int i, int k, int draws)
{
    double wide = widening(c, i, draws);
    const HonestGrowth *g = &c->plan->grown[k];
    if (g->by <= 1 && g->elements <= 1) return wide;
    return fmax(draws > 1 ? 1 : wide, tail(c, i, draws, g->elements) / g->by);
}

static double mean_size(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t e = 0; e < n; e++) sum += isfinite(x[e]) ? fabs(x[e]) : 0;
    return n ? sum / (double)n : 0;
}

static void settle(const HonestCase *c, int draws, HonestError *out)
{
    for (int i = 0; i < c->t->n_outputs; i++)
        for (int k = 0; k < c->plan->n; k++) {
            out[k].atol[i] = c->need[k][i] * margin_at(c, i, k, draws);
            out[k].mean[i] = c->count[i] > 0 ? c->sum[i] / c->count[i] : 0;
            out[k].few[i] = c->n[i] < FEW ? mean_size(c->want[i], c->n[i]) : 0;
        }
}

static void keep_run(HonestCase *c)
{
    HonestKept *all = c->keep;
    Kept r;
    size_t n = 0, at = 0;
    for (int i = 0; i < c->t->n_outputs; i++) n += (size_t)c->n[i];
    r.draw = c->draw, r.is_common = c->is_common, r.drifts = c->drifts;
    r.want = memory_grow(NULL, n + 1, sizeof(double));
    r.got = memory_grow(NULL, n + 1, sizeof(double));
    memcpy(r.middle, c->middle, sizeof r.middle);
    for (int i = 0; i < c->t->n_outputs; at += (size_t)c->n[i++]) {
        memcpy(r.want + at, c->want[i], (size_t)c->n[i] * sizeof(double));
        memcpy(r.got + at, c->got[i], (size_t)c->n[i] * sizeof(double));
        all->size[i] = c->n[i];
    }
    all->run = memory_grow(all->run, (size_t)all->n + 1, sizeof *all->run);
    all->run[all->n++] = r;
}

typedef enum { WAYS_ALL, WAYS_FOUR, WAYS_COMMON, WAYS_TWO, WAYS_DRIFT } Ways;
enum { MAX_WAYS = 4 * ORDERS + 1 };

/* Those of a case; the last one drifts. */
static int ways_of(const HonestCase *c, Ways ways, Way *out)
{
    int n = 0, half = 0;
    for (int i = 0; i < c->b->graph->n_values; i++)
        half |=
            c->b->values[i].tensor.dtype == DTYPE_F16 || c->b->values[i].tensor.dtype == DTYPE_BF16;
    for (int k = 0; k < 2 * ORDERS && ways != WAYS_DRIFT; k++)
        for (int stored = 0; stored < 2; stored++) {
            if (ways == WAYS_FOUR && k % 3 != 0) continue;
            if (ways == WAYS_COMMON && (k || !stored)) continue;
            if (ways == WAYS_TWO && (k != 1 || stored)) continue; /* approximate */
            if (stored && !half && k % 2) continue; /* without half types it is the same */
            out[n++] = (Way){.order = (Order)(k / 2),
                             .fma = k % 2,
                             .stored = stored,
                             .approximate = (k + stored) % 2,
                             .number = (uint64_t)(2 * k + stored)};
        }
    out[n++] = (Way){.order = RUNNING, .drift = 1, .stored = 1, .number = 99};
    for (int k = 0; k < n; k++) out[k].two_passes = c->of.variant == VARIANT_FAR;
    return n;
}

/* An execution by one way; NULL: the reference. */
static int run_way(const HonestCase *c, const Way *way, double *const *out, Error *err)
{
    Execution e = c->e;
    e.way = way;
    return way_run(c->b, &e, (const double *const *)c->in, out, err);
}

/* As many as there are, as long as their tensors fit DERIVE_MEMORY. */
static int way_threads(const HonestCase *c, int n)
{
    double threads = fmin(omp_get_num_procs(), n);
    if (sizes_flops(c->b) * n < WORTH_FLOPS) return 1;
    threads = fmin(threads, DERIVE_MEMORY / (c->b->peak + 1));
    return threads < 1 ? 1 : (int)threads;
}

/* Outputs of n executions, each after the other. */
static double **outputs_of(const HonestCase *c, int n)
{
    int outputs = c->t->n_outputs;
    double **out = memory_array((size_t)(n * outputs), sizeof *out);
    for (int k = 0; k < n * outputs; k++)
        out[k] = memory_array((size_t)c->n[k % outputs] + 1, sizeof(double));
    return out;
}

/* The reference, and the ways side by side: with one way, beside the reference. */
static int run_ways(HonestCase *c, const Way *way, int n, double **out, Error *err)
{
    Error errors[MAX_WAYS + 1];
    int failed[MAX_WAYS + 1] = {0}, rc = 0, threads = way_threads(c, n + 1);
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int k = 0; k <= n; k++)
        failed[k] = k ? run_way(c, &way[k - 1], out + (k - 1) * c->t->n_outputs, &errors[k])
                      : run_way(c, NULL, c->want, &errors[0]);
    for (int k = 0; k <= n && !rc; k++)
        if ((rc = failed[k])) *err = errors[k];
    return rc;
}

/* Every output is a finite number of its type. */
static int is_within(const HonestCase *c)
{
    for (int i = 0; i < c->t->n_outputs; i++) {
        Dtype to = c->b->values[c->b->graph->output[i]].tensor.dtype;
        for (int64_t k = 0; k < c->n[i]; k++) {
            double x = c->want[i][k];
            way_round(to, &x, 1);
            if (!isfinite(x)) return 0;
        }
    }
    return 1;
}

/* One draw of the inputs. */
static int run_draw(HonestCase *c, Ways ways, HonestError *out, Error *err)
{
    Way way[MAX_WAYS];
    int n = ways_of(c, ways, way), outputs = c->t->n_outputs;
    double **got = outputs_of(c, n);
    int rc = run_ways(c, way, n, got, err);
    if (!rc) out->finite &= is_within(c);
    for (int i = 0; i < outputs && !rc; i++) {
        c->got[i] = c->want[i];
        c->middle[i] = middle(c, i, magnitude);
    }
    for (int w = 0; w < n && !rc && out->finite; w++) {
        c->is_common = way[w].order == RUNNING && !way[w].fma && way[w].stored;
        c->drifts = way[w].drift;
        for (int i = 0; i < outputs; i++) {
            c->got[i] = got[w * outputs + i];
            if (!c->keep) note_errors(c, i, out);
            if (!c->keep) continue;
            double *error = &c->middle_error[i][c->draw];
            *error = fmax(*error, middle(c, i, relative_error));
        }
        if (c->keep) keep_run(c);
    }
    for (int k = 0; k < n * outputs; k++) free(got[k]);
    free(got);
    return rc;
}

/* By the worst draw; of an output of few elements, which may be near zero in one draw, by the middle one. */
static void settle_relative(HonestCase *c, int draws, HonestError *out)
{
    for (int i = 0; i < c->t->n_outputs; i++) {
        double *error = c->middle_error[i];
        sort_doubles(error, (size_t)draws);
        out->rtol[i] = error[c->n[i] < FEW ? draws / 2 : draws - 1];
    }
}

static int draws_of(const GraphBound *b, const HonestPlan *plan)
{
    double flops = sizes_flops(b);
    if (flops > COSTLY_FLOPS) return 1;
    if (!plan->brief) return b->graph->n_nodes > MANY_NODES ? DRAWS : MAX_DRAWS;
    double draws = BRIEF_FLOPS / (MOST_BRIEF * (flops + BRIEF_NODE * b->graph->n_nodes));
    return draws < 1 ? 1 : draws > DRAWS ? DRAWS : (int)draws;
}

/* The executions of one case. keep: as HonestCase has it. */
static int execute(const TaskCase *of, const HonestPlan *plan, HonestKept *keep, HonestError *out,
                   Error *err)
{
    GraphBound *b;
    if (task_graph_bind(of->task, of->workload, &b, err)) return -1;
    HonestCase *c = memory_alloc(sizeof *c);
    c->of = *of;
    c->t = of->task;
    c->b = b;
    c->plan = plan;
    c->keep = keep;
    c->drawn = plan->kept;
    case_prepare(c);
    int rc = 0, costly = sizes_flops(b) > COSTLY_FLOPS, huge = sizes_flops(b) > HUGE_FLOPS;
    if (!costly || of->variant != VARIANT_DRAWN ||
        (c->drawn && memcmp(c->drawn->w.axis, of->workload->axis, sizeof of->workload->axis)))
        c->drawn = NULL;
    int draws = draws_of(b, plan);
    for (; c->draw < draws && !rc; c->draw++) {
        c->of.seed = HONEST_SEED + (uint64_t)c->draw;
        rc = case_draw(c, err);
        Ways ways = huge && plan->brief                ? WAYS_TWO
                    : huge                             ? WAYS_DRIFT
                    : c->draw >= DRAWS                 ? WAYS_COMMON
                    : plan->all && !c->draw && !costly ? WAYS_ALL
                                                       : WAYS_FOUR;
        if (!rc) rc = run_draw(c, ways, out, err);
    }
    if (c->keep) c->keep->draws = draws;
    if (c->keep) settle_relative(c, draws, out);
    settle(c, draws, out);
    if (c->keep && costly) keep_parameters(c);
    case_release(c);
    graph_bound_free(b);
    return rc;
}

static int rounds_within(const GraphBound *b)
{
    static const char *const names[] = {"attention", "lstm", "gru", "rnn"};
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const Op *op = b->calls[node].call.op;
        if (op->reference == chain_reference) return 1;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strstr(op->name, names[i])) return 1;
    }
    return 0;
}

static int has_half_output(const Task *t)
{
    for (int i = 0; i < t->n_outputs; i++)
        if (is_half(t->outputs[i].dtype)) return 1;
    return 0;
}

/* 1: another operator reads the memory that the node's result lies in. */
static int is_read(const HonestCase *c, int node)
{
    const GraphBound *b = c->b;
    const int base = b->values[b->graph->first[node]].base;
    for (int k = node + 1; k < b->graph->n_nodes; k++)
        for (int i = 0; i < b->calls[k].call.n_tensors && b->calls[k].live; i++)
            if (b->values[b->calls[k].in[i]].base == base) return 1;
    return 0;
}

/* Is a result of the node rounded to a half type where others read it? */
static int stores_half(const HonestCase *c, int node)
{
    const GraphCall *g = &c->b->calls[node];
    int value = c->b->graph->first[node];
    if (!g->live || g->view || (c->last[c->b->values[value].base] && !is_read(c, node))) return 0;
    for (int i = 0; i < g->call.n_results; i++)
        if (is_half(g->call.result[i].dtype)) return 1;
    return 0;
}

/* The ways of honest_outputs. */
static int judged_ways(const HonestCase *c, Way *way)
{
    int n = ways_of(c, WAYS_FOUR, way);
    for (int node = 0; node < c->b->graph->n_nodes && n < HONEST_OUTPUTS; node++)
        if (stores_half(c, node))
            way[n++] = (Way){.order = LANES_32, .only = node + 1, .number = 100 + (uint64_t)node};
    return n;
}

/* An output that an operator alone has rounded for those that read it is taken as the first way has it. */
static void take_open(const HonestCase *c, const Way *way, double **got)
{
    const GraphBound *b = c->b;
    const int n = c->t->n_outputs;
    for (int i = 0; i < n && way->only; i++)
        if (b->values[b->graph->output[i]].base == b->values[b->graph->first[way->only - 1]].base)
            memcpy(got[n + i], got[i], (size_t)c->n[i] * sizeof(double));
}

/* The ways of `c`, whose inputs are there. */
static int give_outputs(HonestCase *c, HonestOutputs *take, void *ctx, Error *err)
{
    Way way[MAX_WAYS + HONEST_OUTPUTS];
    int n = judged_ways(c, way), outputs = c->t->n_outputs, rc = 0;
    double **got = outputs_of(c, 2); /* of the first way, and of the others */
    c->e.open = 1;
    for (int k = 0; k < n && !rc; k++) {
        double **own = k ? got + outputs : got;
        rc = run_way(c, &way[k], own, err);
        if (!rc) take_open(c, &way[k], got), take(ctx, k, way[k].only > 0, own);
    }
    for (int i = 0; i < 2 * outputs; i++) free(got[i]);
    free(got);
    return rc;
}

int honest_outputs(const TaskCase *of, const double *const *in, HonestOutputs *take, void *ctx,
                   Error *err)
{
    const Task *t = of->task;
    GraphBound *b;
    if (!t->graph) return 1;
    if (task_graph_bind(t, of->workload, &b, err)) return -1;
    if (sizes_flops(b) * MOST_BRIEF > OUTPUTS_FLOPS || (has_half_output(t) && rounds_within(b))) {
        graph_bound_free(b);
        return 1;
    }
    HonestCase *c = memory_alloc(sizeof *c);
    c->of = *of, c->t = t, c->b = b;
    case_prepare(c);
    memcpy(c->in, in, (size_t)t->n_inputs * sizeof *in);
    int rc = give_outputs(c, take, ctx, err);
    memset(c->in, 0, sizeof c->in); /* they are the caller's */
    case_release(c);
    graph_bound_free(b);
    return rc;
}

int honest_measure(const TaskCase *c, const HonestPlan *p, HonestError *out, Error *err)
{
    for (int i = 0; i < p->n; i++) out[i] = (HonestError){.finite = 1};
    int rc = execute(c, p, NULL, out, err);
    for (int i = 1; i < p->n; i++) out[i].finite = out->finite;
    return rc;
}

int honest_keep(const Task *t, const Workload *w, HonestKept **kept, HonestError *out, Error *err)
{
    const HonestPlan plan = {.grown = (HonestGrowth[]){{1, 1}}, .n = 1, .all = 1};
    HonestKept *all = *kept = memory_alloc(sizeof *all);
    all->t = t;
    all->w = *w;
    *out = (HonestError){.finite = 1};
    int rc = execute(&(TaskCase){t, w, VARIANT_DRAWN, 0, 1}, &plan, all, out, err);
    all->finite = out->finite;
    return rc;
}

void honest_replay(const HonestKept *kept, const HonestPlan *p, HonestError *out)
{
    HonestCase *c = memory_alloc(sizeof *c);
    c->t = kept->t;
    c->plan = p;
    for (int k = 0; k < p->n; k++) out[k] = (HonestError){.finite = kept->finite};
    for (int r = 0; r < kept->n; r++) {
        const Kept *run = &kept->run[r];
        size_t at = 0;
        for (int i = 0; i < kept->t->n_outputs; at += (size_t)kept->size[i++]) {
            c->n[i] = kept->size[i];
            c->want[i] = run->want + at, c->got[i] = run->got + at;
            c->middle[i] = run->middle[i];
            c->draw = run->draw, c->is_common = run->is_common, c->drifts = run->drifts;
            note_errors(c, i, out);
        }
    }
    settle(c, kept->draws, out);
    free(c);
}

void honest_kept_free(HonestKept *kept)
{
    if (!kept) return;
    for (int r = 0; r < kept->n; r++) free(kept->run[r].want), free(kept->run[r].got);
    for (int i = 0; i < kept->t->n_inputs; i++) free(kept->parameter[i]);
    free(kept->run);
    free(kept);
}
