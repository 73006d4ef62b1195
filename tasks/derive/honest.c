/* Executes a graph with the rounding errors of honest kernels. */
#include "tasks/derive/honest.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "ops/op_pointwise.h"
#include "tasks/derive/derive.h"
#include "tasks/derive/honest_sums.h"
#include "tasks/derive/sizes.h"
#include "tasks/task_graph.h"

enum { SEED = 7, DRAWS = 3, DRIFT_MOST = 1 << 18, DRIFT_TERMS = 16, MOST_SORTED = 4096 };
enum { SAMPLE = 1024, COSTLY = 1 << 16 };
/* Of one execution: fewer ways are tried; only one running sum, with its drift. */
static const double DEAR_FLOPS = 4e6, HUGE_FLOPS = 5e7;
static const double WORTH_FLOPS = 4e6; /* of all executions of a draw: threads share them */
static const double unit = 0x1p-24;    /* the error of one rounding to float32 */

/* ---- errors of sums ---- */

double honest_drift(int64_t n)
{
    double worst = 0;
    if (n > DRIFT_MOST) n = DRIFT_MOST;
    for (int k = 0; k < DRIFT_TERMS; k++) {
        float sum = 0, term = 1 + (float)k / (DRIFT_TERMS + 0.3f);
        for (int64_t i = 0; i < n; i++) sum += term;
        worst = fmax(worst, fabs((double)sum / ((double)n * (double)term) - 1));
    }
    return worst;
}

/* What the error of one term must be, in roundings, for the sum to have the error of its order: the
 * partial sums of n terms of both signs grow with the square root of n. */
static double growth(Order order, int64_t n)
{
    static const int lanes[ORDERS] = {1, 0, 32, 256};
    double depth = order == HALVES ? log2((double)n + 1) : (double)n / lanes[order];
    double running = order == HALVES ? 0.4 * sqrt(depth) : 0.4 * sqrt(fmax(depth, 1));
    return fmax(1, running);
}

/* ---- roundings ---- */

static void round_to(OpDtype d, double *restrict x, int64_t n)
{
    enum { CHUNK = 512 };
    uint16_t half[CHUNK];
    if (d != OP_F16 && d != OP_BF16) {
#pragma omp simd
        for (int64_t k = 0; k < n; k++) x[k] = (double)(float)x[k];
        return;
    }
    Dtype type = d == OP_F16 ? DTYPE_F16 : DTYPE_BF16;
    for (int64_t k = 0; k < n; k += CHUNK) {
        size_t count = n - k < CHUNK ? (size_t)(n - k) : CHUNK;
        dtype_from_double(type, x + k, half, count);
        dtype_to_double(type, half, x + k, count);
    }
}

/* In [-1, 1), from the names of a way, a node, a tensor and an element. The halves of the number are
 * converted by themselves, which vectors can do: both are exact, and their sum is rounded once. */
static inline double noise(uint64_t key, int64_t i)
{
    uint64_t x = key + (uint64_t)i * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    double high = (double)(int32_t)(x >> 32) * 0x1p32,
           low = (double)(int32_t)((uint32_t)x ^ 0x80000000u) + 0x1p31;
    return (high + low) * 0x1p-63;
}

static uint64_t noise_key(const Way *way, int node, int tensor)
{
    uint64_t name[4] = {SEED, way->number, (uint64_t)node, (uint64_t)tensor};
    return random_hash(name, sizeof name);
}

typedef struct {
    const Way *way;
    const int64_t *terms; /* by node */
    const double *drift;
    const char *last; /* by value: an output, which is always stored */
    const char
        *factors; /* by node: the tensors that make it inexact where they are rich; 0: none do */
    int inexact;  /* the node's results need a rounding, and were not computed without errors */
} Execution;

/* Every element is a float32 number: what was computed needed no rounding, or only chose. */
static int is_exact(const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if ((double)(float)x[i] != x[i] && !isnan(x[i])) return 0;
    return 1;
}

/* Functions of an exponential: the exponent is multiplied and rounded, and errors of its argument
 * count as often as it is large. */
static int is_steep(const Op *op, const Way *way)
{
    static const char *const names[] = {"exp",       "soft", "sigmoid", "tanh",   "gelu",
                                        "silu",      "mish", "elu",     "pow",    "cross",
                                        "attention", "lstm", "gru",     "kl_div", "log"};
    for (size_t i = 0; i < sizeof names / sizeof *names && way->approximate; i++)
        if (strstr(op->name, names[i])) return 1;
    return 0;
}

/* In four parts, whose terms do not wait for each other. */
static double sum_of(const double *x, int64_t n)
{
    double part[4] = {0};
    for (int64_t k = 0; k + 4 <= n; k += 4)
        for (int i = 0; i < 4; i++) part[i] += x[k + i];
    for (int64_t k = n - n % 4; k < n; k++) part[0] += x[k];
    return part[0] + part[1] + (part[2] + part[3]);
}

/* Runs the operator again on arguments with errors. */
static int with_errors(const Execution *e, const GraphBound *b, int node, const double *const *in,
                       double *const *out, Error *err)
{
    const GraphCall *c = &b->calls[node];
    const double *changed[OP_MAX_TENSORS] = {0};
    double *own[OP_MAX_TENSORS] = {0};
    double grow = unit * growth(e->way->order, e->terms[node]);
    if (is_steep(c->call.op, e->way)) grow = fmax(2 * grow, 2.5 * unit);
    for (int i = 0; i < c->call.n_tensors; i++) {
        int64_t n = op_elements(&c->call.tensor[i]);
        changed[i] = in[i];
        if (!op_dtype_is_float(c->call.tensor[i].dtype)) continue;
        changed[i] = own[i] = memory_grow(NULL, (size_t)n + 1, sizeof(double)); /* written whole */
        uint64_t key = noise_key(e->way, node, i);
        double shift = 0;
        if (e->way->drift) {
            shift = sum_of(in[i], n);
            shift = isfinite(shift) ? shift / (double)n * e->drift[node] / 2 : 0;
        }
        const double *restrict from = in[i];
        double *restrict to = own[i];
#pragma omp simd
        for (int64_t k = 0; k < n; k++)
            to[k] = from[k] * (1 + grow * noise(key, k)) + (from[k] != 0 ? shift : 0);
    }
    int rc = c->call.op->reference(&c->call, changed, out, err);
    for (int i = 0; i < c->call.n_tensors; i++) free(own[i]);
    return rc;
}

/* Half of a sample of elements have more than half of float32's bits. */
static int is_rich(const double *x, int64_t n)
{
    int64_t step = 1 + n / SAMPLE, seen = 0, rich = 0;
    for (int64_t i = 0; i < n; i += step, seen++) {
        int exponent;
        double bits = ldexp(frexp(x[i], &exponent), 12);
        rich += isfinite(bits) && bits != nearbyint(bits);
    }
    return 2 * rich >= seen;
}

/* Of a costly sum: those of its tensors whose products or numbers are summed. */
static int factors_of(const OpCall *c)
{
    OpCost cost;
    int factors = honest_products(c->op) ? 2 : honest_norm(c) ? 1 : 0;
    if (c->n_tensors < factors || !factors || op_cost(c, &cost, NULL)) return 0;
    return cost.flops < COSTLY ? 0 : factors;
}

/* Costly sums of such numbers, and their products, are never all exact: they run once, with errors. */
static int arguments(void *ctx, const GraphBound *b, int node, const double **in, Error *err)
{
    Execution *e = ctx;
    const OpCall *c = &b->calls[node].call;
    (void)err;
    e->inexact = 0;
    if (!e->factors[node]) return 0;
    for (int i = 0; i < e->factors[node]; i++)
        if (!op_dtype_is_float(c->tensor[i].dtype) || !is_rich(in[i], op_elements(&c->tensor[i])))
            return 0;
    return e->inexact = 1;
}

static int has_float(const OpCall *c)
{
    for (int i = 0; i < c->n_results; i++)
        if (op_dtype_is_float(c->result[i].dtype)) return 1;
    return 0;
}

static int results(void *ctx, const GraphBound *b, int node, const double *const *in,
                   double *const *out, Error *err)
{
    const Execution *e = ctx;
    const GraphCall *c = &b->calls[node];
    const Op *op = c->call.op;
    int exact = !e->inexact, summed = 0, point = op->reference == pointwise_reference,
        product = !strncmp(op->name, "aten.mul", 8);
    for (int i = 0; i < c->call.n_results && exact; i++)
        exact = !op_dtype_is_float(c->call.result[i].dtype) ||
                is_exact(out[i], op_elements(&c->call.result[i]));
    if (!exact && (!point || is_steep(op, e->way)) && has_float(&c->call) &&
        !(summed = honest_sums(c, e->way, in, out)) && with_errors(e, b, node, in, out, err))
        return -1;
    for (int i = 0; i < c->call.n_results; i++) {
        const OpTensor *y = &c->call.result[i];
        int value = b->graph->first[node] + i;
        int64_t n = op_elements(y);
        if (!op_dtype_is_float(y->dtype)) continue;
        if (e->way->fma && product && !e->way->stored && !e->last[b->values[value].base]) continue;
        OpDtype to = e->way->stored || e->last[b->values[value].base] ? y->dtype : OP_F32;
        uint64_t key = noise_key(e->way, node, 64 + i);
        double ulps = e->way->approximate && !summed ? 3 * unit : 0, drift = 0;
        if (e->way->drift && !point) drift = e->drift[node] / (summed ? 1 : 2);
        for (int64_t k = 0; k < n && !exact && (drift != 0 || ulps != 0); k++)
            if (summed || (double)(float)out[i][k] != out[i][k])
                out[i][k] *= 1 + drift + (ulps != 0 ? ulps * noise(key, k) : 0);
        int rounded = (exact || summed) && drift == 0 && ulps == 0; /* to float32 */
        if (!rounded || to == OP_F16 || to == OP_BF16) round_to(to, out[i], n);
    }
    return 0;
}

/* ---- one case ---- */

typedef struct {
    const Task *t;
    const GraphBound *b;
    const double *grown;
    int n_grown;
    double *in[TASK_MAX_TENSORS];
    double *want[GRAPH_MAX_OUTPUTS], *got[GRAPH_MAX_OUTPUTS], *relative;
    double middle[GRAPH_MAX_OUTPUTS]; /* of the wanted elements' sizes */
    int64_t n[GRAPH_MAX_OUTPUTS];
    Execution e;
    int64_t *terms;
    double *drift;
    char *last, *factors;
    HonestRuns *runs; /* what is executed is added to them, and rtol is measured; NULL: atol is */
    const HonestRuns *drawn; /* their parameters are used; NULL: none are */
} Case;

/* The outputs of one execution with errors, and those without. */
typedef struct {
    double *want, *got; /* output after output */
    double middle[GRAPH_MAX_OUTPUTS];
} Run;

struct HonestRuns {
    const Task *t;
    int finite, n;
    Run *run;
    int64_t size[GRAPH_MAX_OUTPUTS];
    Workload w;
    double *parameter[TASK_MAX_TENSORS]; /* as the first draw gives them; NULL: not kept */
};

/* Small tensors are drawn with few bits, whose sums need no rounding; large ones are not. Fills all. */
static void fill_bits(const TaskTensor *x, Variant variant, int input, double *v, size_t n)
{
    uint64_t name[2] = {SEED, (uint64_t)input}, key = random_hash(name, sizeof name);
    if (x->dtype != DTYPE_F32 || x->draw == DRAW_INTEGER || variant == VARIANT_SPECIAL) return;
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        v[i] = (double)(float)(v[i] * (1 + 0x1p-12 * noise(key, (int64_t)i)));
}

static int case_draw(Case *c, const Workload *w, Variant variant, double scale, uint64_t seed,
                     Error *err)
{
    const Task *t = c->t;
    int rc = 0;
    for (int i = 0; i < t->n_inputs && !rc; i++) {
        size_t n;
        if (c->drawn && c->drawn->parameter[i]) {
            c->in[i] = c->drawn->parameter[i];
            continue;
        }
        if (task_elements(t, w, &t->inputs[i], &n, err)) return -1;
        if (!c->in[i]) c->in[i] = memory_grow(NULL, n + 1, sizeof(double)); /* written whole */
        rc = task_draw_wide(t, w, i, variant, seed, scale, c->in[i], err);
        fill_bits(&t->inputs[i], variant, i, c->in[i], n);
    }
    return rc;
}

static void case_prepare(Case *c)
{
    const GraphBound *b = c->b;
    int64_t largest = 1;
    c->terms = memory_array((size_t)b->graph->n_nodes, sizeof *c->terms);
    c->drift = memory_array((size_t)b->graph->n_nodes, sizeof *c->drift);
    c->last = memory_array((size_t)b->graph->n_values + 1, 1);
    c->factors = memory_array((size_t)b->graph->n_nodes, 1);
    for (int node = 0; node < b->graph->n_nodes; node++) {
        c->terms[node] = sizes_call_terms(&b->calls[node]);
        c->factors[node] = (char)factors_of(&b->calls[node].call);
        int known = -1;
        for (int k = 0; k < node && known < 0; k++)
            if (c->terms[k] == c->terms[node]) known = k;
        c->drift[node] = known < 0 ? honest_drift(c->terms[node]) : c->drift[known];
    }
    for (int i = 0; i < c->t->n_outputs; i++) {
        int value = b->graph->output[i];
        c->last[b->values[value].base] = 1;
        c->n[i] = op_elements(&b->values[value].tensor);
        c->want[i] = memory_array((size_t)c->n[i] + 1, sizeof(double));
        if (c->n[i] > largest) largest = c->n[i];
    }
    c->relative = memory_array((size_t)largest, sizeof(double));
    c->e = (Execution){NULL, c->terms, c->drift, c->last, c->factors, 0};
}

/* Keeps the parameters for the cases that follow. */
static void keep_parameters(Case *c)
{
    for (int i = 0; i < c->t->n_inputs; i++)
        if (c->t->inputs[i].parameter) {
            c->runs->parameter[i] = c->in[i];
            c->in[i] = NULL;
        }
}

static void case_release(Case *c)
{
    for (int i = 0; i < c->t->n_inputs; i++)
        if (!c->drawn || c->in[i] != c->drawn->parameter[i]) free(c->in[i]);
    for (int i = 0; i < c->t->n_outputs; i++) free(c->want[i]);
    free(c->relative);
    free(c->terms);
    free(c->drift);
    free(c->last);
    free(c->factors);
    free(c);
}

static int is_half(Dtype d)
{
    return d == DTYPE_F16 || d == DTYPE_BF16;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The middle one of f over a sample of an output's elements, without zeros. */
typedef double Size(double want, double got);
static double middle(Case *c, int i, Size *f)
{
    size_t n = 0;
    int64_t step = 1 + c->n[i] / MOST_SORTED;
    for (int64_t k = 0; k < c->n[i]; k += step)
        if (c->want[i][k] != 0 && isfinite(c->want[i][k]))
            c->relative[n++] = f(c->want[i][k], c->got[i][k]);
    if (!n) return 0;
    qsort(c->relative, n, sizeof *c->relative, ascending);
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

/* The error of a sum does not shrink with the sum: what the smaller half of the elements needs, any
 * element near zero needs, and atol gives all of it. Beyond, rtol helps. */
static void note_errors(Case *c, int i, double rtol, double grown, HonestError *out)
{
    double margin = grown * (is_half(c->t->outputs[i].dtype) ? HONEST_MARGIN_HALF : HONEST_MARGIN);
    for (int64_t k = 0; k < c->n[i]; k++) {
        double want = c->want[i][k], got = c->got[i][k];
        if (!isfinite(want)) continue;
        double needed = margin * fabs(got - want);
        if (fabs(want) > c->middle[i]) needed -= rtol * fabs(want);
        if (needed > out->atol[i]) out->atol[i] = needed;
    }
}

static void keep_run(Case *c)
{
    HonestRuns *all = c->runs;
    Run r;
    size_t n = 0, at = 0;
    for (int i = 0; i < c->t->n_outputs; i++) n += (size_t)c->n[i];
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

typedef enum { WAYS_ALL, WAYS_FOUR, WAYS_DRIFT } Ways;
enum { MOST_WAYS = 4 * ORDERS + 1 };

/* Those of a case; the last one drifts. */
static int ways_of(const Case *c, Ways ways, Way *out)
{
    int n = 0, half = 0;
    for (int i = 0; i < c->b->graph->n_values; i++)
        half |= c->b->values[i].tensor.dtype == OP_F16 || c->b->values[i].tensor.dtype == OP_BF16;
    for (int k = 0; k < 2 * ORDERS && ways != WAYS_DRIFT; k++)
        for (int stored = 0; stored < 2; stored++) {
            if (ways == WAYS_FOUR && k % 3 != 0) continue;
            if (stored && !half && k % 2) continue; /* without half types it is the same */
            out[n++] = (Way){.order = (Order)(k / 2),
                             .fma = k % 2,
                             .stored = stored,
                             .approximate = (k + stored) % 2,
                             .number = (uint64_t)(2 * k + stored)};
        }
    out[n++] = (Way){.order = RUNNING, .drift = 1, .stored = 1, .number = 99};
    return n;
}

/* An execution by one way; NULL: the reference. */
static int run_way(const Case *c, const Way *way, double *const *out, Error *err)
{
    Execution e = c->e;
    GraphHook hook = {&e, arguments, results};
    e.way = way;
    return graph_run(c->b, (const double *const *)c->in, out, way ? &hook : NULL, err);
}

/* As many as there are, as long as their tensors fit DERIVE_MEMORY. */
static int way_threads(const Case *c, int n)
{
    double threads = fmin(omp_get_num_procs(), n);
    if (sizes_flops(c->b) * n < WORTH_FLOPS) return 1;
    threads = fmin(threads, DERIVE_MEMORY / (c->b->peak + 1));
    return threads < 1 ? 1 : (int)threads;
}

/* Outputs of n executions, each after the other. */
static double **outputs_of(const Case *c, int n)
{
    int outputs = c->t->n_outputs;
    double **out = memory_array((size_t)(n * outputs), sizeof *out);
    for (int k = 0; k < n * outputs; k++)
        out[k] = memory_array((size_t)c->n[k % outputs] + 1, sizeof(double));
    return out;
}

/* The reference, and the ways side by side: with one way, beside the reference. */
static int run_ways(Case *c, const Way *way, int n, double **out, Error *err)
{
    Error errors[MOST_WAYS + 1];
    int failed[MOST_WAYS + 1] = {0}, rc = 0, threads = way_threads(c, n + 1);
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int k = 0; k <= n; k++)
        failed[k] = k ? run_way(c, &way[k - 1], out + (k - 1) * c->t->n_outputs, &errors[k])
                      : run_way(c, NULL, c->want, &errors[0]);
    for (int k = 0; k <= n && !rc; k++)
        if ((rc = failed[k])) *err = errors[k];
    return rc;
}

/* Every output is a finite number of its type. */
static int is_within(const Case *c)
{
    for (int i = 0; i < c->t->n_outputs; i++) {
        OpDtype to = c->b->values[c->b->graph->output[i]].tensor.dtype;
        for (int64_t k = 0; k < c->n[i]; k++) {
            double x = c->want[i][k];
            round_to(to, &x, 1);
            if (!isfinite(x)) return 0;
        }
    }
    return 1;
}

/* One draw of the inputs. */
static int run_draw(Case *c, Ways ways, const double *rtol, HonestError *out, Error *err)
{
    Way way[MOST_WAYS];
    int n = ways_of(c, ways, way), outputs = c->t->n_outputs;
    double **got = outputs_of(c, n);
    int rc = run_ways(c, way, n, got, err);
    if (!rc) out->finite &= is_within(c);
    for (int i = 0; i < outputs && !rc; i++) {
        c->got[i] = c->want[i];
        c->middle[i] = middle(c, i, magnitude);
    }
    for (int w = 0; w < n && !rc && out->finite; w++) {
        for (int i = 0; i < outputs; i++) {
            c->got[i] = got[w * outputs + i];
            for (int k = 0; k < c->n_grown && rtol; k++)
                note_errors(c, i, rtol[i], c->grown[k], &out[k]);
            if (!rtol) out->rtol[i] = fmax(out->rtol[i], middle(c, i, relative_error));
        }
        if (c->runs) keep_run(c);
    }
    for (int k = 0; k < n * outputs; k++) free(got[k]);
    free(got);
    return rc;
}

/* The executions of one case. like: as Case has it. */
static int execute(const Task *t, const Workload *w, Variant variant, double scale,
                   const double *rtol, const Case *like, int all, HonestError *out, Error *err)
{
    GraphBound *b;
    out->finite = 1;
    if (task_graph_bind(t, w, &b, err)) return -1;
    Case *c = memory_alloc(sizeof *c);
    *c = *like;
    c->t = t;
    c->b = b;
    case_prepare(c);
    int rc = 0, dear = sizes_flops(b) > DEAR_FLOPS, huge = sizes_flops(b) > HUGE_FLOPS;
    if (!dear || variant != VARIANT_DRAWN ||
        (c->drawn && memcmp(c->drawn->w.axis, w->axis, sizeof w->axis)))
        c->drawn = NULL;
    for (uint64_t draw = 0; draw < (dear ? 1 : DRAWS) && !rc; draw++) {
        rc = case_draw(c, w, variant, scale, SEED + draw, err);
        Ways ways = huge ? WAYS_DRIFT : all && !draw && !dear ? WAYS_ALL : WAYS_FOUR;
        if (!rc) rc = run_draw(c, ways, rtol, out, err);
    }
    if (c->runs && dear) keep_parameters(c);
    case_release(c);
    graph_bound_free(b);
    return rc;
}

int honest_measure(const Task *t, const Workload *w, Variant variant, double scale,
                   const double *rtol, const double *grown, int n, int all, const HonestRuns *runs,
                   HonestError *out, Error *err)
{
    for (int i = 0; i < n; i++) out[i] = (HonestError){.finite = 1};
    Case *like = memory_alloc(sizeof *like);
    like->grown = grown, like->n_grown = n, like->drawn = runs;
    int rc = execute(t, w, variant, scale, rtol, like, all, out, err);
    free(like);
    for (int i = 1; i < n; i++) out[i].finite = out->finite;
    return rc;
}

int honest_runs(const Task *t, const Workload *w, HonestRuns **runs, HonestError *out, Error *err)
{
    HonestRuns *all = *runs = memory_alloc(sizeof *all);
    all->t = t;
    all->w = *w;
    *out = (HonestError){.finite = 1};
    Case *like = memory_alloc(sizeof *like);
    like->grown = (double[]){1}, like->n_grown = 1, like->runs = all;
    int rc = execute(t, w, VARIANT_DRAWN, 1, NULL, like, 1, out, err);
    free(like);
    all->finite = out->finite;
    return rc;
}

void honest_replay(const HonestRuns *runs, const double *rtol, const double *grown, int n,
                   HonestError *out)
{
    Case *c = memory_alloc(sizeof *c);
    c->t = runs->t;
    for (int k = 0; k < n; k++) out[k] = (HonestError){.finite = runs->finite};
    for (int r = 0; r < runs->n; r++) {
        const Run *run = &runs->run[r];
        size_t at = 0;
        for (int i = 0; i < runs->t->n_outputs; at += (size_t)runs->size[i++]) {
            c->n[i] = runs->size[i];
            c->want[i] = run->want + at, c->got[i] = run->got + at;
            c->middle[i] = run->middle[i];
            for (int k = 0; k < n; k++) note_errors(c, i, rtol[i], grown[k], &out[k]);
        }
    }
    free(c);
}

void honest_runs_free(HonestRuns *runs)
{
    if (!runs) return;
    for (int r = 0; r < runs->n; r++) free(runs->run[r].want), free(runs->run[r].got);
    for (int i = 0; i < runs->t->n_inputs; i++) free(runs->parameter[i]);
    free(runs->run);
    free(runs);
}
