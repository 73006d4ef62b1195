/* Walks a bound graph from the operators back to the inputs. */
#include "tasks/carried.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/task_graph.h"

/* How far from zero contents are, by the deviation of what they are added to; below zero; and how large the
 * elements are of which rows of large values are multiples. */
static const double FAR_BY = 1000, LOW_BY = -1e5, LOW_BY_HALF = -3e4, LARGE_SIZE = 4,
                    MOST_FACTOR = 4096;

typedef struct {
    const Task *t;
    const GraphBound *b;
    Variant v;
    Carried *in;
    signed char *reached; /* by value: 0: unknown; -1: no input of rows reaches it; 1: one does */
    unsigned char rows;   /* as Carried has it */
    int bounded;          /* also through operators with bounded results */
    int spikes;           /* parameters that are enlarged have them */
    double *size;         /* by value; 0: unknown */
} Walk;

static int is_real(const TaskTensor *x)
{
    return dtype_is_float(x->dtype) && x->draw != DRAW_INTEGER;
}

static int is_one_of(const Op *op, const char *const *parts)
{
    for (int i = 0; parts[i]; i++)
        if (strstr(op->name, parts[i])) return 1;
    return 0;
}

static int is_pair(const Op *op)
{
    return is_one_of(op, (const char *const[]){"aten.mul.Tensor", "aten.mul_.Tensor",
                                               "aten.div.Tensor", "aten.div_.Tensor", NULL});
}

static int is_sum(const Op *op)
{
    return is_one_of(op, (const char *const[]){"aten.add.Tensor", "aten.add_.Tensor",
                                               "aten.sub.Tensor", "aten.sub_.Tensor", NULL});
}

/* The value of a named argument; -1: it has none. */
static int named(const GraphCall *c, const char *name)
{
    int arg = op_argument(c->call.op, name);
    if (arg < 0 || c->call.arg[arg].kind != OP_TENSOR) return -1;
    return c->in[c->call.arg[arg].integer[0]];
}

/* Factor 0 or 1 of a product: those of addmm stand behind what is added. */
static int factor_of(const GraphCall *c, int which)
{
    int first = strstr(c->call.op->name, "addmm") || strstr(c->call.op->name, "baddbmm");
    return first + which < c->call.n_tensors ? c->in[first + which] : -1;
}

static int bias_of(const GraphCall *c)
{
    int first = strstr(c->call.op->name, "addmm") || strstr(c->call.op->name, "baddbmm");
    return first ? c->in[0] : named(c, "bias");
}

/* The call that gives a value; NULL: it is an input. */
static const GraphCall *call_of(const Walk *k, int value)
{
    int node = k->b->values[value].node;
    return node < 0 ? NULL : &k->b->calls[node];
}

/* ---- rows ---- */

/* An input of which the value is a view, or -1. */
static int input_of(const Walk *k, int value)
{
    const GraphCall *c;
    while (value >= 0 && (c = call_of(k, value)))
        value = c->view && c->call.n_tensors ? c->in[0] : -1;
    return value;
}

static void make_positive(const Walk *k, int value)
{
    int input = input_of(k, value);
    if (input >= 0 && is_real(&k->t->inputs[input])) k->in[input].positive = 1;
}

/* Makes all elements of an input equal. */
static void level(const Walk *k, int value, double to)
{
    int input = input_of(k, value);
    if (input >= 0 && is_real(&k->t->inputs[input]))
        k->in[input].factor = 0, k->in[input].shift = to;
}

/* The other factor of what rows are multiplied by. A mean that is far from zero stays so with ones alone, and
 * a row that falls. */
static void even(const Walk *k, int value, int product)
{
    if ((k->v != VARIANT_FAR && k->v != VARIANT_FALLING) || product)
        make_positive(k, value);
    else
        level(k, value, 1);
}

/* What is added to rows that fall is zero. */
static void add_nothing(const Walk *k, const GraphCall *c)
{
    for (int i = 0; i < c->call.n_tensors && k->v == VARIANT_FALLING && is_sum(c->call.op); i++)
        if (k->reached[c->in[i]] <= 0) level(k, c->in[i], 0);
}

static int is_bounded(const Op *op)
{
    return is_one_of(op, (const char *const[]){"clamp", "hardtanh", "relu6", "sigmoid", "tanh",
                                               "softmax", NULL});
}

/* Marks the input of rows that reaches the value: 1, or 0 where there is none. */
static int reach(Walk *k, int value)
{
    const GraphCall *c = call_of(k, value);
    if (k->reached[value]) return k->reached[value] > 0;
    k->reached[value] = -1;
    if (!c) {
        const TaskTensor *x = &k->t->inputs[value];
        if (!is_real(x) || x->draw == DRAW_POSITIVE || x->parameter || !x->rank) return 0;
        if (k->rows > k->in[value].rows) k->in[value].rows = k->rows;
        k->reached[value] = 1;
        return 1;
    }
    int product = op_is_product(c->call.op), found = 0;
    if (!k->bounded && is_bounded(c->call.op)) return 0;
    if ((product || is_pair(c->call.op)) && c->call.n_tensors > 1) {
        int a = product ? factor_of(c, 0) : c->in[0], w = product ? factor_of(c, 1) : c->in[1];
        found = reach(k, a);
        if (found)
            even(k, w, product);
        else if ((found = reach(k, w)))
            even(k, a, product);
    }
    for (int i = 0; i < c->call.n_tensors && !found; i++) found = reach(k, c->in[i]);
    if (found) add_nothing(k, c);
    if (found) k->reached[value] = 1;
    return found;
}

/* ---- sizes ---- */

static double drawn_size(const TaskTensor *x)
{
    switch (x->draw) {
    case DRAW_NORMAL: return hypot(x->mean, x->std);
    case DRAW_MIXED: return hypot(x->mean, 4 * x->std);
    case DRAW_UNIFORM: return sqrt((x->low * x->low + x->low * x->high + x->high * x->high) / 3);
    default: return 1;
    }
}

static double scalar_of(const GraphCall *c)
{
    int arg = op_argument(c->call.op, "other");
    return arg < 0 || c->call.arg[arg].kind == OP_TENSOR ? 1 : fabs(c->call.arg[arg].number);
}

static double size_at(Walk *k, int value);

static double result_size(Walk *k, const GraphCall *c)
{
    const Op *op = c->call.op;
    OpCost cost;
    double n = (double)op_elements(&c->call.result[0]), x = size_at(k, c->in[0]);
    int weight = named(c, "weight"), bias = bias_of(c);
    if (op_is_product(op) && c->call.n_tensors > 1 && !op_cost(&c->call, &cost, NULL)) {
        double terms = fmax(1, cost.flops / fmax(1, n) / 2);
        double y = size_at(k, factor_of(c, 0)) * size_at(k, factor_of(c, 1)) * sqrt(terms);
        return bias < 0 ? y : hypot(y, size_at(k, bias));
    }
    if (strstr(op->name, "_norm.") && !strstr(op->name, "vector"))
        return weight < 0 ? 1 : size_at(k, weight);
    if (is_one_of(op, (const char *const[]){"sigmoid", "tanh", NULL})) return 0.5;
    if (strstr(op->name, "softmax")) return strstr(op->name, "log") ? 1 : 1 / fmax(1, n);
    if (is_pair(op) && c->call.n_tensors > 1)
        return strstr(op->name, "div") ? x / size_at(k, c->in[1]) : x * size_at(k, c->in[1]);
    if (is_sum(op) && c->call.n_tensors > 1) return hypot(x, size_at(k, c->in[1]));
    double terms = (double)op_elements(&c->call.tensor[0]) / fmax(1, n);
    if (!strncmp(op->name, "aten.sum", 8)) return x * sqrt(fmax(1, terms));
    if (!strncmp(op->name, "aten.mean", 9)) return x / sqrt(fmax(1, terms));
    if (!strncmp(op->name, "aten.mul", 8)) return x * scalar_of(c);
    if (!strncmp(op->name, "aten.div", 8)) return x / fmax(scalar_of(c), 1e-30);
    return x;
}

/* About how large the elements of a value are. */
static double size_at(Walk *k, int value)
{
    const GraphCall *c = value < 0 ? NULL : call_of(k, value);
    if (value < 0) return 1;
    if (!c) return drawn_size(&k->t->inputs[value]);
    if (k->size[value] > 0) return k->size[value];
    k->size[value] = 1; /* an operator in place names itself */
    if (c->call.n_tensors) k->size[value] = fmax(result_size(k, c), 1e-30);
    return k->size[value];
}

/* ---- factors and shifts ---- */

/* Operators whose results grow as their argument. */
static int is_homogeneous(const GraphCall *c)
{
    return c->view || is_one_of(c->call.op, (const char *const[]){
                                                "relu.", "relu_.", "pool", "aten.sum", "aten.mean",
                                                "aten.max", "aten.min", "aten.amax", "aten.amin",
                                                "aten.neg", "aten.abs", "dropout", "clone",
                                                "contiguous", "aten.to.", "aten._to_copy", NULL});
}

/* Operators whose results grow as their argument where it is large. */
static int grows(const Op *op)
{
    return is_one_of(op, (const char *const[]){"aten.mul", "aten.div", "aten.add", "aten.sub",
                                               "aten.rsub", "elu", "silu", "softplus", "hardswish",
                                               "mish", NULL});
}

/* Multiplies what gives the value by a factor. */
static void enlarge(Walk *k, int value, double by)
{
    const GraphCall *c = value < 0 ? NULL : call_of(k, value);
    if (value < 0) return;
    if (!c) {
        if (!is_real(&k->t->inputs[value])) return;
        k->in[value].factor = by;
        k->in[value].spikes |= k->spikes && k->t->inputs[value].parameter;
        return;
    }
    const Op *op = c->call.op;
    int weight = input_of(k, factor_of(c, 1));
    if (op_is_product(op) && c->call.n_tensors > 1) {
        int is_parameter = weight >= 0 && k->t->inputs[weight].parameter;
        enlarge(k, is_parameter ? weight : factor_of(c, 0), by);
        if (bias_of(c) >= 0) enlarge(k, bias_of(c), by);
    } else if (strstr(op->name, "_norm.") && named(c, "weight") >= 0) {
        int gain = input_of(k, named(c, "weight"));
        if (gain >= 0) k->in[gain].flips = 1; /* what follows may have a bound on either side */
        enlarge(k, named(c, "weight"), by);
        enlarge(k, named(c, "bias"), by);
    } else if (is_sum(op) && c->call.n_tensors > 1) {
        enlarge(k, c->in[0], by);
        enlarge(k, c->in[1], by);
    } else if (is_homogeneous(c) || grows(op)) {
        enlarge(k, c->in[0], by);
    }
}

/* Adds to a parameter that is added to all of the value: 1, or 0 where there is none. */
static int move(const Walk *k, int value, double by)
{
    const GraphCall *c = value < 0 ? NULL : call_of(k, value);
    if (value < 0) return 0;
    if (!c) {
        const TaskTensor *x = &k->t->inputs[value];
        if (!x->parameter || !is_real(x)) return 0;
        k->in[value].shift = by;
        return 1;
    }
    const Op *op = c->call.op;
    if (op_is_product(op) || strstr(op->name, "_norm.")) return move(k, bias_of(c), by);
    if (is_sum(op) && c->call.n_tensors > 1)
        return move(k, c->in[1], strstr(op->name, "sub") ? -by : by) || move(k, c->in[0], by);
    int clips = strstr(op->name, "relu") != NULL && by < 0;
    if (clips || !is_homogeneous(c) ||
        is_one_of(op, (const char *const[]){"aten.sum", "aten.neg", "aten.abs", NULL}))
        return 0;
    return move(k, c->in[0], by);
}

/* A product or a norm is between the value and the inputs that reach it. */
static int is_behind(const Walk *k, int value)
{
    const GraphCall *c = call_of(k, value);
    if (!c) return 0;
    if (op_is_product(c->call.op) || strstr(c->call.op->name, "_norm.")) return 1;
    for (int i = 0; i < c->call.n_tensors; i++)
        if (c->in[i] < value && is_behind(k, c->in[i])) return 1;
    return 0;
}

/* ---- one operator ---- */

/* Both arguments are alike: where one alone is far from zero, it decides the result or does not matter. */
static int is_twin(const Op *op)
{
    return is_one_of(op, (const char *const[]){".maximum", ".minimum", "logaddexp", ".max.other",
                                               ".min.other", NULL});
}

/* A maximum that leaves out a part of a row shows where the exponentials of that part overflow. */
static int subtracts_maximum(const Op *op)
{
    return is_one_of(op, (const char *const[]){"softmax", "logsumexp", NULL});
}

static void carry(Walk *k, const GraphCall *c, int value, int *found)
{
    k->rows =
        is_one_of(c->call.op, (const char *const[]){".min", ".amin", ".argmin", ".cummin", NULL})
            ? 2
            : 1;
    Dtype type = c->call.tensor[0].dtype;
    if (k->v == VARIANT_LEAST && input_of(k, value) < 0) return;
    if (k->v == VARIANT_FALLING && is_behind(k, value)) return;
    if (is_behind(k, value)) {
        double by = k->v == VARIANT_FAR ? FAR_BY * size_at(k, value) : 0;
        if (k->v == VARIANT_LOW) by = type == DTYPE_F16 ? LOW_BY_HALF : LOW_BY;
        if (by != 0 && move(k, value, by)) {
            *found = 1;
            return;
        }
        double size = size_at(k, value), factor = exp2(ceil(log2(LARGE_SIZE / size)));
        k->spikes = subtracts_maximum(c->call.op);
        if (k->v == VARIANT_LARGE_ROWS && (size < LARGE_SIZE / 2 || k->spikes))
            enlarge(k, value, fmax(1, fmin(factor, MOST_FACTOR)));
    }
    for (k->bounded = 0; k->bounded < 2; k->bounded++) {
        memset(k->reached, 0, (size_t)k->b->graph->n_values);
        if (!reach(k, value)) continue;
        *found = 1;
        return;
    }
}

int carried_find(const Task *t, const Workload *w, Variant v, CarriedShows *shows, Carried *out)
{
    GraphBound *b;
    int found = 0;
    for (int i = 0; i < t->n_inputs; i++) out[i] = (Carried){.factor = 1};
    if (task_graph_bind(t, w, &b, NULL)) return 0;
    Walk k = {.t = t, .b = b, .v = v, .in = out};
    k.reached = memory_array((size_t)b->graph->n_values, sizeof *k.reached);
    k.size = memory_array((size_t)b->graph->n_values, sizeof *k.size);
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const GraphCall *c = &b->calls[node];
        int twin = c->call.n_tensors > 1 && is_twin(c->call.op);
        if (!c->live || !c->call.n_tensors || !shows(c->call.op->name, v)) continue;
        for (int i = 0; i <= twin; i++) carry(&k, c, c->in[i], &found);
    }
    for (int i = 0; i < t->n_inputs; i++) {
        if (out[i].rows || (v != VARIANT_SIGNS && v != VARIANT_LOW)) out[i].positive = 0;
        if (out[i].rows && out[i].factor == 0) out[i].factor = 1, out[i].shift = 0;
    }
    free(k.reached);
    free(k.size);
    graph_bound_free(b);
    return found;
}
