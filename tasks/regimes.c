/* Turns rows of drawn numbers into the contents at which faults of operators show. */
#include "tasks/regimes.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "tasks/carried.h"

enum {
    ENOUGH_ROWS = 8,
    FEW_ROWS = 4,
    RUN = 7,
    RANGE_PARTS = 4,
    FALLS = 4,
    CHUNK = 512,
    SPIKES = 61
};

/* Parts of operators' names, and the variants that show their faults, as bits from VARIANT_SIGNS on. */
enum {
    SIGNS = 1,
    LARGE = 2,
    FAR = 4,
    LOW = 8,
    ENDS = 16,
    FEW = 32,
    ZERO = 64,
    LEAST = 256,
    FALL = 512
};
static const struct {
    const char *name;
    unsigned shows;
} families[] = {{"soft", LARGE | LOW | LEAST},
                {"logsumexp", LARGE | LOW | LEAST},
                {"logcumsumexp", LARGE | LOW | LEAST},
                {"logaddexp", LARGE | LOW},
                {"cross_entropy", LARGE | LOW},
                {"attention", LARGE},
                {"sigmoid", LARGE},
                {".silu", LARGE},
                {".tanh", LARGE},
                {".gelu", LARGE},
                {".mish", LARGE},
                {".elu", LARGE},
                {".selu", LARGE},
                {".celu", LARGE},
                {".exp", LARGE},
                {".log1p", LARGE},
                {"layer_norm", FAR | ZERO},
                {"group_norm", FAR | ZERO},
                {"instance_norm", FAR | ZERO},
                {"rms_norm", ZERO},
                {"vector_norm", ZERO},
                {"aten.norm", ZERO},
                {".rsqrt", ZERO},
                {".sqrt", ZERO},
                {".var", FAR | ZERO},
                {".std", FAR | ZERO},
                {".max", SIGNS | LOW | LEAST},
                {".min", SIGNS | LOW | LEAST},
                {".maximum", LARGE},
                {".minimum", LARGE},
                {".round", LARGE | LOW | FEW},
                {".floor.", LARGE | LOW},
                {".ceil", LARGE | LOW},
                {".trunc", LARGE | LOW},
                {".frac", LARGE | LOW},
                {".amax", SIGNS | LOW | LEAST},
                {".amin", SIGNS | LOW | LEAST},
                {".adaptive_max", SIGNS | LOW | LEAST},
                {".argm", SIGNS | LOW | LEAST},
                {".cummax", SIGNS | LOW | LEAST},
                {".cummin", SIGNS | LOW | LEAST},
                {".topk", SIGNS | LOW | LEAST},
                {".sort", SIGNS},
                {".argsort", SIGNS},
                {".relu", SIGNS | LARGE},
                {".leaky_relu", SIGNS | LARGE},
                {".prelu", SIGNS | LARGE},
                {".hard", SIGNS | LARGE},
                {".clamp", SIGNS | LARGE},
                {".abs", SIGNS},
                {".log.", ENDS},
                {".log_.", ENDS},
                {".log2.", ENDS},
                {".log10.", ENDS},
                {".sqrt", ENDS},
                {".rsqrt", ENDS},
                {".reciprocal", ENDS},
                {".div", ENDS},
                {".pow", ENDS},
                {"batch_norm", ENDS},
                {".sum", FALL},
                {".cumsum", FALL},
                {".mean", FALL},
                {"vector_norm", FALL},
                {"rms_norm", FALL},
                {"layer_norm", FALL},
                {".var", FALL},
                {"softmax", FALL},
                {"logsumexp", FALL},
                {".cos.", FEW},
                {".sin.", FEW},
                {".tan.", FEW},
                {"_loss", SIGNS | LARGE}};

/* Tasks without a graph, by "op_type". */
static const struct {
    const char *type;
    unsigned shows;
} types[] = {{"softmax", LARGE | LOW | LEAST},
             {"attention", LARGE},
             {"normalization", FAR | ZERO},
             {"elementwise", LARGE}};

static unsigned bit_of(Variant v)
{
    return v < VARIANT_SIGNS || v >= VARIANTS_OF_REGIMES ? 0 : 1u << (v - VARIANT_SIGNS);
}

static int is_real(const TaskTensor *x)
{
    return dtype_is_float(x->dtype) && x->draw != DRAW_INTEGER;
}

/* An input of which rows are changed. */
static int has_rows(const TaskTensor *x)
{
    return is_real(x) && x->draw != DRAW_POSITIVE && !x->parameter && x->rank > 0;
}

/* -1: there is none. */
static int first_with_rows(const Task *t)
{
    for (int i = 0; i < t->n_inputs; i++)
        if (has_rows(&t->inputs[i])) return i;
    return -1;
}

static int shows(const char *op, Variant v)
{
    for (size_t k = 0; k < sizeof families / sizeof *families; k++)
        if ((families[k].shows & bit_of(v)) && strstr(op, families[k].name)) return 1;
    return 0;
}

static int any_shows(const Task *t, Variant v)
{
    for (size_t k = 0; k < sizeof types / sizeof *types && !t->graph; k++)
        if (!strcmp(t->op_type, types[k].type) && (types[k].shows & bit_of(v))) return 1;
    for (int node = 0; t->graph && node < t->graph->n_nodes; node++)
        if (shows(t->graph->line[node].op->name, v)) return 1;
    return 0;
}

/* Integers of which rows can be at the ends of their range. */
static int has_range(const TaskTensor *x)
{
    return x->draw == DRAW_INTEGER && x->distinct < 0 && x->rank > 0;
}

static int has_operator(const Task *t, const char *name)
{
    for (int node = 0; t->graph && node < t->graph->n_nodes; node++)
        if (strstr(t->graph->line[node].op->name, name)) return 1;
    return 0;
}

/* Numbers that a shorter integer does not hold show what it loses. */
static int converts_to_integers(const Task *t)
{
    for (int i = 0; i < t->n_outputs; i++)
        if (!dtype_is_float(t->outputs[i].dtype) && has_operator(t, ".to.")) return 1;
    return 0;
}

static int is_half(Dtype d)
{
    return d == DTYPE_F16 || d == DTYPE_BF16;
}

/* Sums as large as a half type has few numbers. */
static int sums_to_half(const Task *t)
{
    for (int i = 0; i < t->n_outputs; i++)
        if (is_half(t->outputs[i].dtype) && has_operator(t, ".sum.")) return 1;
    return 0;
}

/* Numbers near the least one are for operators that choose, or that subtract the largest one first. In sums
 * and products partial results of honest kernels overflow where the result does not. */
static int may_be_least(const Task *t)
{
    static const char *const sums[] = {"sum.",   "mean", "loss",    "entropy", "avg_pool", "norm",
                                       "linear", "mm.",  "matmul",  "conv",    "einsum",   "bmm",
                                       ".var",   ".std", "cumsum.", "prod",    "attention"};
    int first = first_with_rows(t);
    for (size_t k = 0; k < sizeof sums / sizeof *sums; k++)
        if (has_operator(t, sums[k])) return 0;
    return first >= 0 && t->inputs[first].dtype == DTYPE_F32;
}

int regimes_has(const Task *t, Variant v)
{
    for (int i = 0; i < t->n_inputs && v == VARIANT_RANGE; i++)
        if (has_range(&t->inputs[i])) return 1;
    int positive = 0, real = 0;
    for (int i = 0; i < t->n_inputs; i++) {
        real |= is_real(&t->inputs[i]);
        positive |= is_real(&t->inputs[i]) && t->inputs[i].draw == DRAW_POSITIVE;
    }
    if (v == VARIANT_LEAST && !may_be_least(t)) return 0;
    if (v == VARIANT_FALLING &&
        (first_with_rows(t) < 0 || !is_half(t->inputs[first_with_rows(t)].dtype)))
        return 0;
    if (v == VARIANT_LOW && first_with_rows(t) >= 0 && converts_to_integers(t)) return 1;
    if (v == VARIANT_LARGE_ROWS && first_with_rows(t) >= 0 && sums_to_half(t)) return 1;
    int has = v == VARIANT_ENDS ? positive : v == VARIANT_FEW_BITS ? real : first_with_rows(t) >= 0;
    return has && any_shows(t, v);
}

/* The input by whose rows a check is chosen; -1: there is none. */
static int leading(const Task *t)
{
    int input = first_with_rows(t);
    for (int i = 0; i < t->n_inputs && input < 0; i++)
        if (is_real(&t->inputs[i]) && t->inputs[i].rank) input = i;
    for (int i = 0; i < t->n_inputs && input < 0; i++)
        if (has_range(&t->inputs[i])) input = i;
    return input;
}

const Workload *regimes_workload(const Task *t)
{
    const Workload *best = NULL;
    int input = leading(t);
    int64_t most_rows = 0, shape[TASK_MAX_RANK];
    size_t most = 0, n;
    for (int i = 0; i < t->n_workloads && input >= 0; i++) {
        const Workload *w = &t->workloads[i];
        if (w->role != ROLE_CHECK || task_shape(t, w, &t->inputs[input], shape, NULL) ||
            task_elements(t, w, &t->inputs[input], &n, NULL))
            continue;
        int64_t rows = shape[0] < ENOUGH_ROWS ? shape[0] : ENOUGH_ROWS;
        if (best && (rows < most_rows || (rows == most_rows && n <= most))) continue;
        best = w, most_rows = rows, most = n;
    }
    return best;
}

double regimes_scale(Variant v)
{
    switch (v) {
    case VARIANT_SIGNS:
    case VARIANT_FEW_BITS:
    case VARIANT_ZERO_ROWS:
    case VARIANT_FALLING:
    case VARIANT_RANGE: return 1.0;
    case VARIANT_LARGE_ROWS: return 64.0;
    default: return 1000.0;
    }
}

/* Elements of a row. */
static size_t row_length(const TaskTensor *x, const int64_t *shape)
{
    if (x->rank == 1) return RUN;
    size_t length = 1;
    for (int d = x->rank > 2 && shape[0] < FEW_ROWS ? 2 : 1; d < x->rank; d++)
        length *= (size_t)shape[d];
    return length ? length : 1;
}

/* What an element is made of its part of the sum, so that the operators give such a part. */
typedef enum { BY_ROOTS = 1, BY_LOGARITHMS = 2, BY_ODDS = 4, AS_IT_IS = 8 } Fall;

int regimes_on_long_rows(const Task *t, Variant v)
{
    if (v == VARIANT_LARGE_ROWS && !has_operator(t, "softmax") && !has_operator(t, "logsumexp"))
        return 0;
    return (v == VARIANT_LARGE_ROWS || v == VARIANT_FALLING) && regimes_has(t, v);
}

size_t regimes_row(const Task *t, const Workload *w, int of_output)
{
    int input = leading(t);
    const TaskTensor *x = of_output ? &t->outputs[0] : &t->inputs[input < 0 ? 0 : input];
    int64_t shape[TASK_MAX_RANK];
    return x->rank && !task_shape(t, w, x, shape, NULL) ? row_length(x, shape) : 0;
}

typedef struct {
    const TaskTensor *x;
    const Carried *by;
    Variant variant;
    size_t length;  /* of a row */
    size_t rows;    /* of a vector */
    uint64_t seed;  /* of the case */
    int spiked;     /* an input has spikes */
    unsigned falls; /* VARIANT_FALLING: of Fall */
    int whole;      /* else it may not be negative */
    IntegerBounds range;
} Change;

/* Sums and counts of a row reach their largest and least values, or nearly: equal terms hide a lost bit. */
static double at_ends(const IntegerBounds *range, double x, size_t row, size_t at)
{
    int64_t inward = at % 3 == 0 && range->high > range->low;
    switch (row % RANGE_PARTS) {
    case 0: return (double)(range->high - inward);
    case 1: return (double)(range->low + inward);
    case 2: return (double)(at % 2 ? range->high : range->low);
    default: return x;
    }
}

/* The distance of 1 from its neighbour above. */
static double unit_of(Dtype d)
{
    return d == DTYPE_BF16 ? 0x1p-7 : d == DTYPE_F16 ? 0x1p-10 : 0x1p-23;
}

/* Rows of ties have neighbours of them, too: a place or a maximum is found by the last bit. */
static double with_sign(const Change *c, double x, size_t row, size_t at)
{
    switch (row % 4) {
    case 0: return -fabs(x) - 0x1p-6;
    case 1: return fabs(x) + 0x1p-6;
    case 2: return nearbyint(x) * (at % 5 == 2 ? 1 + unit_of(c->x->dtype) : 1);
    default: return at % 2 ? x : -8 * fabs(x);
    }
}

/* One element of a row, or of a vector, is far above the others: a part of a maximum misses it. */
static int is_dominant(const Change *c, size_t row, size_t at)
{
    const uint64_t of[2] = {c->seed, row};
    if (c->x->rank > 1) return at == random_hash(of, sizeof of) % c->length;
    return at == 3 && row / 5 == c->rows / 5 * 3 / 4;
}

/* The few rows of a case begin with another kind in each draw. Behind a product whose parameter has spikes
 * (spike_at) it is these that make one element of a result large. */
static double made_large(const Change *c, double x, size_t row, size_t at)
{
    uint64_t first = c->x->rank > 1 ? random_hash(&c->seed, sizeof c->seed) : 0;
    switch ((row + first % 5) % 5) {
    case 0: return 64 * x;
    case 1: return x - 150;
    case 2: return x + 150;
    default: return c->spiked ? 8 * x : is_dominant(c, row, at) ? x + 300 : x;
    }
}

/* The last of three rows is constant: its variance is zero. */
static double made_far(double x, size_t row)
{
    return row % 3 == 2 ? 3 : x + (row % 3 ? -1000 : 1000);
}

/* Below what a maximum starts from that is not the least number, and so that the largest one of a row is as
 * clear as honest arithmetic needs it. Times log2(e) they are finite. */
static double near_least(const Change *c, double x, size_t row, size_t at)
{
    double size = 1.2e38 + 0.6e38 * (double)((at * 40503 + row) % 65536) / 65536;
    if (row % 2) return c->by->rows > 1 ? size : x;
    return -size;
}

/* A task without one of them has sums of the elements themselves. */
static unsigned falls_of(const Task *t)
{
    unsigned falls = 0;
    if (has_operator(t, "norm") || has_operator(t, ".var")) falls |= BY_ROOTS;
    if (has_operator(t, "softmax") || has_operator(t, "logsumexp")) falls |= BY_LOGARITHMS;
    if (has_operator(t, "sigmoid") || has_operator(t, ".silu")) falls |= BY_ODDS;
    return falls && !has_operator(t, ".sum") && !has_operator(t, ".mean") ? falls
                                                                          : falls | AS_IT_IS;
}

/* A sum of a half type that begins with up to 15 large elements loses each of the others, or makes it larger:
 * it is a third of the sum's last place, or a power of two of that. One of float32 keeps all. */
static double falling(const Change *c, size_t row, size_t at)
{
    int bits = c->x->dtype == DTYPE_F16 ? 10 : 7, large = at < c->length / 4;
    double part = ldexp(0.35, (int)(row % FALLS) - bits);
    unsigned fall = c->falls;
    for (size_t skip = row / FALLS % FALLS; skip && fall & (fall - 1); skip--) fall &= fall - 1;
    switch (fall & -fall) {
    case BY_ROOTS: return large ? 1 : sqrt(part);
    case BY_LOGARITHMS: return large ? -log(part) : 0;
    case BY_ODDS: return large ? 4 : log(part);
    default: return large ? 1 : part;
    }
}

/* One element of a row: number `at`. rows: as Carried has it. Float16 ends at 65504. */
static double changed(const Change *c, double x, size_t row, size_t at)
{
    double far = c->x->dtype == DTYPE_F16 ? 3e4 : row % 2 ? 1e6 : 1e5;

    switch (c->variant) {
    case VARIANT_SIGNS: return with_sign(c, x, row, at);
    case VARIANT_LARGE_ROWS: return made_large(c, x, row, at);
    case VARIANT_FAR: return made_far(x, row);
    case VARIANT_ZERO_ROWS: return row % 3 == 1 ? 0 : x;
    case VARIANT_LEAST: return near_least(c, x, row, at);
    case VARIANT_FALLING: return falling(c, row, at);
    default: return c->by->rows > 1 && row % 2 ? x + far : x - far;
    }
}

/* From 0.5 to 1.5 to numbers of which each octave has as many, from 2^-30 to 2^10; float16: 2^-14 to 2^6. */
static double to_ends(Dtype type, double x)
{
    double octaves = type == DTYPE_F16 ? 20 : 40, at = (x - 0.5) * octaves, whole = floor(at);
    return ldexp(1 + at - whole, (int)whole - (type == DTYPE_F16 ? 14 : 30));
}

/* The nearest number of four bits. */
static double of_few_bits(double x)
{
    int exponent;
    double part = frexp(x, &exponent);
    return ldexp(nearbyint(part * 16), exponent - 4);
}

/* ---- inputs of a case ---- */

/* What a case's inputs become. The last case of a thread is kept: its inputs are drawn one after another, and
 * each is drawn several times. */
typedef struct {
    char digest[DIGEST_HEX];
    int64_t axis[TASK_MAX_AXES];
    Variant variant;
    Carried in[TASK_MAX_TENSORS];
} CarriedCase;

static const Carried *carried_of(const TaskCase *c, int input)
{
    static _Thread_local CarriedCase kept;
    const Task *t = c->task;
    if (kept.variant == c->variant && !strcmp(kept.digest, t->digest) &&
        !memcmp(kept.axis, c->workload->axis, sizeof kept.axis))
        return &kept.in[input];
    kept.variant = c->variant;
    memcpy(kept.digest, t->digest, sizeof kept.digest);
    memcpy(kept.axis, c->workload->axis, sizeof kept.axis);
    if (t->graph && carried_find(t, c->workload, c->variant, shows, kept.in))
        return &kept.in[input];
    int first = first_with_rows(t);
    for (int i = 0; i < t->n_inputs; i++)
        kept.in[i] = (Carried){.factor = 1, .rows = (unsigned char)(i == first)};
    return &kept.in[input];
}

/* By what an element of a parameter is multiplied: one of SPIKES, at no regular distance, is so large that no
 * other one comes near. Float16 ends at 65504. */
static double spike_at(const Change *c, size_t at)
{
    if ((uint32_t)(at * 2654435761u) / 8 % SPIKES) return 1;
    return c->x->dtype == DTYPE_F32 ? 64 : 8;
}

static double change_one(const Change *c, double x, size_t at)
{
    if (c->variant == VARIANT_RANGE) return at_ends(&c->range, x, at / c->length, at % c->length);
    if (c->variant == VARIANT_ENDS) return to_ends(c->x->dtype, x);
    if (c->variant == VARIANT_FEW_BITS) return of_few_bits(x);
    x *= c->by->factor;
    if (c->by->spikes) x *= spike_at(c, at);
    if (c->by->positive) x = fabs(x);
    if (c->by->flips && at % 2) x = -x;
    x += c->by->shift;
    if (c->by->rows) x = changed(c, x, at / c->length, at % c->length);
    return c->whole ? x : fabs(x);
}

/* Is any element of the input another one than was drawn? */
static int changes(const TaskTensor *x, const Carried *by, Variant v)
{
    if (v == VARIANT_RANGE) return has_range(x);
    if (!is_real(x)) return 0;
    if (v == VARIANT_ENDS) return x->draw == DRAW_POSITIVE;
    return v == VARIANT_FEW_BITS || by->rows || by->positive || by->flips || by->factor != 1 ||
           by->shift != 0 || by->spikes;
}

int regimes_change(const TaskCase *c, int input, size_t from, void *x, size_t n, Error *err)
{
    const TaskTensor *of = &c->task->inputs[input];
    const Carried *by = carried_of(c, input);
    int64_t shape[TASK_MAX_RANK];
    double chunk[CHUNK];
    if (!changes(of, by, c->variant)) return 0;
    if (task_shape(c->task, c->workload, of, shape, err)) return -1;
    size_t size = dtype_size(of->dtype);
    int whole = of->parameter || of->draw != DRAW_UNIFORM || of->low < 0;
    Change change = {.x = of, .by = by, .variant = c->variant, .length = row_length(of, shape)};
    change.whole = whole;
    change.seed = c->seed;
    for (int i = 0; i < c->task->n_inputs; i++) change.spiked |= carried_of(c, i)->spikes;
    change.rows = of->rank == 1 ? (size_t)shape[0] / RUN : 0;
    change.falls = c->variant == VARIANT_FALLING ? falls_of(c->task) : 0;
    if (c->variant == VARIANT_RANGE) {
        if (task_integers(c->task, c->workload, of, &change.range, err)) return -1;
        if (of->rank == 1) change.length = 1 + (size_t)shape[0] / RANGE_PARTS;
    }
    for (size_t done = 0; done < n; done += CHUNK) {
        size_t count = n - done < CHUNK ? n - done : CHUNK;
        char *raw = (char *)x + done * size;
        dtype_to_double(of->dtype, raw, chunk, count);
        for (size_t k = 0; k < count; k++)
            chunk[k] = change_one(&change, chunk[k], from + done + k);
        dtype_from_double(of->dtype, chunk, raw, count);
    }
    return 0;
}
