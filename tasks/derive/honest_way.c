/* One honest way: the errors that it puts into each node of an execution. */
#include "tasks/derive/honest_way.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "ops/op_pointwise.h"
#include "tasks/derive/honest.h"

enum { DRIFT_TERMS = 16, WALKS = 16, SAMPLE = 1024, COSTLY = 1 << 16 };
static const double unit = 0x1p-24; /* the error of one rounding to float32 */

/* From the names of a way, a node, a tensor and an element. The halves of the number are converted by
 * themselves, which vectors can do: both are exact, and their sum is rounded once. */
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

/* ---- errors of sums ---- */

double honest_drift(int64_t n)
{
    double worst = 0;
    if (n > HONEST_DRIFT_MAX) n = HONEST_DRIFT_MAX;
    for (int k = 0; k < DRIFT_TERMS; k++) {
        float sum = 0, term = 1 + (float)k / (DRIFT_TERMS + 0.3f);
        for (int64_t i = 0; i < n; i++) sum += term;
        worst = fmax(worst, fabs((double)sum / ((double)n * (double)term) - 1));
    }
    return worst;
}

double honest_walk(int64_t n)
{
    double worst = 0;
    if (n > HONEST_DRIFT_MAX) n = HONEST_DRIFT_MAX;
    for (int k = 0; k < WALKS; k++) {
        float sum = 0;
        double exact = 0;
        for (int64_t i = 0; i < n; i++) {
            float term = (float)(1 + noise((uint64_t)k * 0x9e3779b97f4a7c15u + HONEST_SEED, i) / 2);
            sum += term;
            exact += (double)term;
        }
        worst = fmax(worst, fabs((double)sum / exact - 1));
    }
    return 2 * worst;
}

/* What the error of one term must be, in roundings, for the sum to have the error of its order: the
 * partial sums of n terms of both signs grow with the square root of n. */
static double growth(Order order, int64_t n)
{
    static const int lanes[ORDERS] = {1, 0, 32, 256};
    if (order == RUNNING && n > HONEST_DRIFT_MAX) n = HONEST_DRIFT_MAX;
    double depth = order == HALVES ? log2((double)n + 1) : (double)n / lanes[order];
    double running = order == HALVES ? 0.4 * sqrt(depth) : 0.4 * sqrt(fmax(depth, 1));
    return fmax(1, running);
}

double way_sum_error(int64_t n)
{
    return unit * growth(RUNNING, n);
}

void way_blur(double *x, int64_t from, int64_t n, double by, uint64_t key)
{
    for (int64_t k = 0; k < n; k++) x[k] *= 1 + by * noise(key, from + k);
}

void way_shift(double *x, int64_t from, int64_t n, double by, uint64_t key)
{
    for (int64_t k = 0; k < n; k++) x[k] += by * noise(key, from + k);
}

double way_step_error(const OpCall *c)
{
    double largest = 0;
    int whole = strncmp(c->op->name, "aten.linspace", 13) != 0;
    if (whole && strncmp(c->op->name, "aten.arange", 11)) return 0;
    for (int i = 0; i < c->n_args; i++) {
        if (c->arg[i].kind != OP_INT && c->arg[i].kind != OP_FLOAT) continue;
        largest = fmax(largest, fabs(c->arg[i].number));
        whole &= c->arg[i].number == nearbyint(c->arg[i].number);
    }
    return whole ? 0 : 2 * unit * largest; /* of the step, and of the sum */
}

/* ---- roundings ---- */

void way_round(Dtype d, double *restrict x, int64_t n)
{
    enum { CHUNK = 512 };
    uint16_t half[CHUNK];
    if (d != DTYPE_F16 && d != DTYPE_BF16) {
#pragma omp simd
        for (int64_t k = 0; k < n; k++) x[k] = (double)(float)x[k];
        return;
    }
    Dtype type = d == DTYPE_F16 ? DTYPE_F16 : DTYPE_BF16;
    for (int64_t k = 0; k < n; k += CHUNK) {
        size_t count = n - k < CHUNK ? (size_t)(n - k) : CHUNK;
        dtype_from_double(type, x + k, half, count);
        dtype_to_double(type, half, x + k, count);
    }
}

static uint64_t noise_key(const Way *way, int node, int tensor)
{
    uint64_t name[4] = {HONEST_SEED, way->number, (uint64_t)node, (uint64_t)tensor};
    return random_hash(name, sizeof name);
}

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

/* How many roundings of its arguments' elements an operator's own numbers are worth. Weights of neighbours
 * follow from the coordinate along each dimension, a product of which both the scale and the result are
 * rounded: its error is as large as two roundings of the dimension's size. */
static double coordinates(const OpCall *c)
{
    double sizes = 0;
    if (strncmp(c->op->name, "aten.upsample_", 14) || strstr(c->op->name, "nearest")) return 1;
    for (int d = 2; d < c->tensor[0].rank; d++) sizes += (double)c->tensor[0].size[d];
    return fmax(1, 2 * sizes);
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

/* Neighbours in a sample of elements that are not zero are often equal. */
static int is_level(const double *x, int64_t n)
{
    int64_t step = 1 + n / SAMPLE, seen = 0, equal = 0;
    for (int64_t i = 0; i + 1 < n; i += step) {
        seen += x[i] != 0;
        equal += x[i] != 0 && x[i] == x[i + 1];
    }
    return 4 * equal >= seen;
}

/* The relative error of one running sum: of terms that may all be equal, or else of a random walk. */
static double drift_of(const Execution *e, const GraphStep *s)
{
    const OpCall *c = &s->b->calls[s->node].call;
    for (int i = 0; i < c->n_tensors; i++)
        if (dtype_is_float(c->tensor[i].dtype) && !is_level(s->in[i], op_elements(&c->tensor[i])))
            return e->walk[s->node];
    return e->drift[s->node];
}

/* Numbers from here on down are what masks fill with: the lowest of the type, in which all that is added is
 * lost, so that a row of them alone has equal weights. */
static double lowest_of(Dtype d)
{
    return d == DTYPE_F16 ? -65500 : -3.38e38;
}

/* Runs the operator again on arguments with errors. drift: of a running sum; 0: none. */
static int with_errors(const Execution *e, const GraphStep *s, double drift, Error *err)
{
    const int node = s->node;
    const double *const *in = s->in;
    const GraphCall *c = &s->b->calls[node];
    const double *changed[OP_MAX_TENSORS] = {0};
    double *own[OP_MAX_TENSORS] = {0};
    double grow = unit * growth(e->way->order, e->terms[node]);
    if (is_steep(c->call.op, e->way)) grow = fmax(2 * grow, 2.5 * unit);
    grow *= coordinates(&c->call);
    for (int i = 0; i < c->call.n_tensors; i++) {
        int64_t n = op_elements(&c->call.tensor[i]);
        changed[i] = in[i];
        if (!dtype_is_float(c->call.tensor[i].dtype)) continue;
        changed[i] = own[i] = memory_grow(NULL, (size_t)n + 1, sizeof(double)); /* written whole */
        uint64_t key = noise_key(e->way, node, i);
        double shift = 0;
        if (drift > 0) {
            shift = sum_of(in[i], n);
            shift = isfinite(shift) ? shift / (double)n * drift / 2 : 0;
        }
        const double *restrict from = in[i];
        const double lowest = lowest_of(c->call.tensor[i].dtype);
        double *restrict to = own[i];
#pragma omp simd
        for (int64_t k = 0; k < n; k++)
            to[k] = from[k] <= lowest
                        ? from[k]
                        : from[k] * (1 + grow * noise(key, k)) + (from[k] != 0 ? shift : 0);
    }
    int rc = c->call.op->reference(&c->call, changed, s->out, err);
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
int way_factors(const OpCall *c)
{
    OpCost cost;
    int factors = op_is_product(c->op) ? 2 : honest_norm(c) ? 1 : 0;
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
        if (!dtype_is_float(c->tensor[i].dtype) || !is_rich(in[i], op_elements(&c->tensor[i])))
            return 0;
    return e->inexact = 1;
}

/* Functions whose usual float32 formulas add a term near 1 to one that may be small: 0.5 * x * (1 + erf(x)),
 * log(1 + exp(x)), exp(x) - 1. Where the result is small it has the error of the large term. */
static int is_cancelling(const Op *op)
{
    static const char *const names[] = {"gelu", "softplus", "mish",  "elu.",        "elu_.",
                                        "celu", "selu",     "log1p", "log_sigmoid", "expm1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(op->name, names[i]) && !strstr(op->name, "relu")) return 1;
    return 0;
}

static void add_cancelled(const Way *way, const GraphStep *s, double *y, int64_t n)
{
    const double *x = s->in[0];
    uint64_t key = noise_key(way, s->node, 128);
    for (int64_t k = 0; k < n; k++)
        y[k] += (y[k] != 0) * 2 * unit * fmax(1, fmin(fabs(x[k]), 16)) * noise(key, k);
}

/* Eager PyTorch's convolution of half types is rounded before its bias is added, and again after it. */
static void round_before_bias(const GraphStep *s, double *y)
{
    const OpCall *c = &s->b->calls[s->node].call;
    const OpTensor *of = &c->result[0];
    if (strncmp(c->op->name, "aten.conv", 9) || c->n_tensors < 3) return;
    int64_t channels = op_elements(&c->tensor[2]), n = op_elements(of), inner = 1;
    int spatial = c->tensor[1].rank - 2;
    for (int d = of->rank - spatial; d < of->rank; d++) inner *= of->size[d];
    for (int64_t k = 0; k < n; k++) y[k] -= s->in[2][k / inner % channels];
    way_round(of->dtype, y, n);
    for (int64_t k = 0; k < n; k++) y[k] += s->in[2][k / inner % channels];
}

static int has_float(const OpCall *c)
{
    for (int i = 0; i < c->n_results; i++)
        if (dtype_is_float(c->result[i].dtype)) return 1;
    return 0;
}

static int results(void *ctx, const GraphStep *s, Error *err)
{
    const Execution *e = ctx;
    const GraphBound *b = s->b;
    const int node = s->node;
    double *const *out = s->out;
    const GraphCall *c = &b->calls[node];
    const Op *op = c->call.op;
    int exact = !e->inexact, summed = 0, point = op->reference == pointwise_reference,
        product = !strncmp(op->name, "aten.mul", 8);
    for (int i = 0; i < c->call.n_results && exact; i++)
        exact = !dtype_is_float(c->call.result[i].dtype) ||
                is_exact(out[i], op_elements(&c->call.result[i]));
    double running = e->way->drift && !exact ? drift_of(e, s) : 0;
    if (!exact && (!point || is_steep(op, e->way)) && has_float(&c->call) &&
        !(summed = honest_sums(c, e->way, s->in, out)) && with_errors(e, s, running, err))
        return -1;
    for (int i = 0; i < c->call.n_results; i++) {
        const OpTensor *y = &c->call.result[i];
        int value = b->graph->first[node] + i;
        int64_t n = op_elements(y);
        if (!dtype_is_float(y->dtype)) continue;
        if (!exact) way_shift(out[i], 0, n, way_step_error(&c->call), noise_key(e->way, node, 32));
        if (!exact && point && e->way->approximate && is_cancelling(op) &&
            n == op_elements(&c->call.tensor[0]))
            add_cancelled(e->way, s, out[i], n);
        int alone = e->way->only == node + 1, stored = e->way->only ? alone : e->way->stored;
        if (stored && (y->dtype == DTYPE_F16 || y->dtype == DTYPE_BF16))
            round_before_bias(s, out[i]);
        if (e->way->fma && product && !stored && !e->last[b->values[value].base]) continue;
        int last = e->last[b->values[value].base];
        Dtype to = last && !alone ? (e->open ? DTYPE_F32 : y->dtype)
                   : stored       ? y->dtype
                                  : DTYPE_F32;
        uint64_t key = noise_key(e->way, node, 64 + i);
        double ulps = e->way->approximate && !summed ? 3 * unit : 0,
               drift = point || summed ? 0 : running / 2;
        for (int64_t k = 0; k < n && !exact && (drift != 0 || ulps != 0); k++)
            if (summed || (double)(float)out[i][k] != out[i][k])
                out[i][k] *= 1 + drift + (ulps != 0 ? ulps * noise(key, k) : 0);
        int rounded = (exact || summed) && drift == 0 && ulps == 0; /* to float32 */
        if (!rounded || to == DTYPE_F16 || to == DTYPE_BF16) way_round(to, out[i], n);
    }
    return 0;
}

int way_run(const GraphBound *b, Execution *e, const double *const *in, double *const *out,
            Error *err)
{
    GraphHook hook = {e, arguments, results};
    return graph_run(b, in, out, e->way ? &hook : NULL, err);
}

/* Small tensors are drawn with few bits, whose sums need no rounding; large ones are not, or have sums that
 * are too large for them. Fills all but the extreme numbers of special contents. */
void way_fill_bits(const TaskTensor *x, Variant variant, int input, double *v, size_t n)
{
    uint64_t name[2] = {HONEST_SEED, (uint64_t)input}, key = random_hash(name, sizeof name);
    int special = variant == VARIANT_SPECIAL;
    if (x->dtype != DTYPE_F32 || x->draw == DRAW_INTEGER || variant > VARIANT_SPECIAL) return;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        int kept = special && (fabs(v[i]) < 0x1p-16 || fabs(v[i]) == 1 || fabs(v[i]) > 6);
        v[i] = kept ? v[i] : (double)(float)(v[i] * (1 + 0x1p-12 * noise(key, (int64_t)i)));
    }
}
