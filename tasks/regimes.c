/* Turns rows of drawn numbers into the contents at which faults of operators show. */
#include "tasks/regimes.h"

#include <math.h>
#include <string.h>

enum { ENOUGH_ROWS = 8, FEW_ROWS = 4, RUN = 7, CHUNK = 512 };

/* Parts of operators' names, and the variants that show their faults, as bits from VARIANT_SIGNS on. */
enum { SIGNS = 1, LARGE = 2, FAR = 4, LOW = 8 };
static const struct {
    const char *name;
    unsigned shows;
} families[] = {{"soft", LARGE | LOW},
                {"logsumexp", LARGE | LOW},
                {"cross_entropy", LARGE | LOW},
                {"attention", LARGE},
                {"sigmoid", LARGE},
                {".silu", LARGE},
                {".tanh", LARGE},
                {".gelu", LARGE},
                {".mish", LARGE},
                {".elu", LARGE},
                {".selu", LARGE},
                {".exp", LARGE},
                {"layer_norm", FAR},
                {"group_norm", FAR},
                {"instance_norm", FAR},
                {".var", FAR},
                {".std", FAR},
                {".max", SIGNS | LOW},
                {".min", SIGNS | LOW},
                {".amax", SIGNS | LOW},
                {".amin", SIGNS | LOW},
                {".argm", SIGNS | LOW},
                {".relu", SIGNS | LARGE},
                {".leaky_relu", SIGNS | LARGE},
                {".hard", SIGNS | LARGE},
                {".clamp", SIGNS | LARGE},
                {"_loss", SIGNS | LARGE}};

/* Tasks without a graph, by "op_type". */
static const struct {
    const char *type;
    unsigned shows;
} types[] = {
    {"softmax", LARGE | LOW}, {"attention", LARGE}, {"normalization", FAR}, {"elementwise", LARGE}};

static unsigned bit_of(Variant v)
{
    return v < VARIANT_SIGNS || v >= VARIANTS_OF_REGIMES ? 0 : 1u << (v - VARIANT_SIGNS);
}

static int is_real(const TaskTensor *x)
{
    return dtype_is_float(x->dtype) && x->draw != DRAW_INTEGER && x->draw != DRAW_POSITIVE &&
           !x->parameter && x->rank > 0;
}

/* -1: there is none. */
static int first_real(const Task *t)
{
    for (int i = 0; i < t->n_inputs; i++)
        if (is_real(&t->inputs[i])) return i;
    return -1;
}

static unsigned shown_by(const Task *t)
{
    unsigned shows = 0;
    for (size_t k = 0; k < sizeof types / sizeof *types && !t->graph; k++)
        if (!strcmp(t->op_type, types[k].type)) shows |= types[k].shows;
    for (int node = 0; t->graph && node < t->graph->n_nodes; node++)
        for (size_t k = 0; k < sizeof families / sizeof *families; k++)
            if (strstr(t->graph->line[node].op->name, families[k].name)) shows |= families[k].shows;
    return shows;
}

int regimes_has(const Task *t, Variant v)
{
    return first_real(t) >= 0 && (shown_by(t) & bit_of(v)) != 0;
}

const Workload *regimes_workload(const Task *t)
{
    const Workload *best = NULL;
    int input = first_real(t);
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
    return v == VARIANT_SIGNS ? 1.0 : v == VARIANT_LARGE_ROWS ? 64.0 : 1000.0;
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

static double with_sign(double x, size_t row, size_t at)
{
    switch (row % 4) {
    case 0: return -fabs(x) - 0x1p-6;
    case 1: return fabs(x) + 0x1p-6;
    case 2: return nearbyint(x);
    default: return at % 2 ? x : -8 * fabs(x);
    }
}

static double made_large(double x, size_t row, size_t at)
{
    switch (row % 5) {
    case 0: return 64 * x;
    case 1: return x - 150;
    case 2: return x + 150;
    case 3: return at % 31 == 3 ? x + 300 : x;
    default: return 8 * x;
    }
}

/* One element of a row: number `at`. Float16 ends at 65504. */
static double changed(Variant v, Dtype type, double x, size_t row, size_t at)
{
    int odd = row % 2 != 0;
    switch (v) {
    case VARIANT_SIGNS: return with_sign(x, row, at);
    case VARIANT_LARGE_ROWS: return made_large(x, row, at);
    case VARIANT_FAR: return x + (odd ? -1000 : 1000);
    default: return x - (type == DTYPE_F16 ? 3e4 : odd ? 1e6 : 1e5);
    }
}

int regimes_change(const TaskCase *c, int input, size_t from, void *x, size_t n, Error *err)
{
    const TaskTensor *of = &c->task->inputs[input];
    int64_t shape[TASK_MAX_RANK];
    double chunk[CHUNK];
    if (input != first_real(c->task)) return 0;
    if (task_shape(c->task, c->workload, of, shape, err)) return -1;
    size_t size = dtype_size(of->dtype), length = row_length(of, shape);
    int whole = of->draw != DRAW_UNIFORM || of->low < 0; /* else it may not be negative */
    for (size_t done = 0; done < n; done += CHUNK) {
        size_t count = n - done < CHUNK ? n - done : CHUNK;
        char *raw = (char *)x + done * size;
        dtype_to_double(of->dtype, raw, chunk, count);
        for (size_t k = 0; k < count; k++) {
            size_t i = from + done + k;
            chunk[k] = changed(c->variant, of->dtype, chunk[k], i / length, i % length);
            if (!whole) chunk[k] = fabs(chunk[k]);
        }
        dtype_from_double(of->dtype, chunk, raw, count);
    }
    return 0;
}
