/* Measures cases that task.json does not describe, once each. */
#include "tasks/derive/judged.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/process.h"
#include "tasks/derive/honest.h"
#include "tasks/derive/measured_sizes.h"
#include "tasks/derive/tf32.h"

enum { MOST_KEPT = 4096, FEW = 16, FEW_MARGIN = 4 };

/* At most, of numbers of few bits: what a function takes of them is exact, and only its own error is left.
 * And the least absolute tolerance there. */
static const double FEW_BITS_RTOL = 0x1p-20, FEW_BITS_ATOL = 0x1p-21;

/* Flops of one execution; costlier cases are measured with fewer rows. */
static const double MOST_FLOPS = 4e7;

/* What is measured of a case: the error of honest kernels, and what TF32 adds. */
typedef enum { HONEST, ROUNDED, KINDS } Kind;
static const char *const kind_names[KINDS] = {"honest error", "tf32 error"};

typedef struct {
    char task[DIGEST_HEX];
    int64_t axis[TASK_MAX_AXES];
    Variant variant;
    double scale;
    union {
        HonestError honest;
        Tf32Error rounded;
    } error;
} Measured;

/* The oldest one is forgotten first. */
struct Judged {
    struct {
        Measured **of;
        int n, next;
    } kept[KINDS];
    Cache *stored;          /* NULL: none */
    int n_stored;           /* measurements that it had */
    char stamp[DIGEST_HEX]; /* of the program, which decides what it measures */
};

Judged *judged_new(void)
{
    return memory_alloc(sizeof(Judged));
}

void judged_free(Judged *j)
{
    if (!j) return;
    for (int k = 0; k < KINDS; k++) {
        for (int i = 0; i < j->kept[k].n; i++) free(j->kept[k].of[i]);
        free(j->kept[k].of);
    }
    free(j);
}

/* ---- kept from one process to the next ---- */

void judged_store(Judged *j, Cache *cache)
{
    j->stored = process_self_stamp(j->stamp) ? NULL : cache;
}

int judged_stored(const Judged *j)
{
    return j->n_stored;
}

/* The digest of all that decides a measurement. The digest of a task holds its precision and tolerances. */
static void stored_key(const Judged *j, const char *what, const TaskCase *c, char key[DIGEST_HEX])
{
    Digester d;
    Digest digest;
    const int64_t variant = c->variant;
    digester_init(&d);
    digester_add_field(&d, what, strlen(what));
    digester_add_field(&d, j->stamp, strlen(j->stamp));
    digester_add_field(&d, c->task->digest, strlen(c->task->digest));
    digester_add_field(&d, c->workload->axis, sizeof c->workload->axis);
    digester_add_field(&d, &variant, sizeof variant);
    digester_add_field(&d, &c->scale, sizeof c->scale);
    digester_finish(&d, &digest);
    digest_hex(&digest, key);
}

/* Returns 1 where the cache has what was measured. */
static int take_stored(Judged *j, const char *what, const TaskCase *c, void *out, size_t size)
{
    char key[DIGEST_HEX];
    Buffer b;
    if (!j->stored) return 0;
    stored_key(j, what, c, key);
    buffer_init(&b, size + DIGEST_HEX);
    int found = cache_get(j->stored, key, size, &b) && b.len == size;
    if (found) memcpy(out, b.data, size), j->n_stored++;
    buffer_release(&b);
    return found;
}

static void store(const Judged *j, const char *what, const TaskCase *c, const void *in, size_t size)
{
    char key[DIGEST_HEX];
    if (!j->stored) return;
    stored_key(j, what, c, key);
    cache_put(j->stored, key, in, size);
}

/* The workload whose "atol" counts for sizes that have none. NULL: no check has any. */
static const Workload *described(const Task *t)
{
    const Workload *w = task_largest_check(t);
    return w && w->atol ? w : NULL;
}

int judged_is_measured(const TaskCase *c)
{
    if (c->variant == VARIANT_INTEGERS || !c->task->graph || !described(c->task)) return 0;
    return !c->workload->atol || c->variant > VARIANT_INTEGERS;
}

static Measured *find(const Judged *j, Kind kind, const TaskCase *c)
{
    for (int i = 0; i < j->kept[kind].n; i++) {
        Measured *m = j->kept[kind].of[i];
        if (m->variant == c->variant && m->scale == c->scale &&
            !memcmp(m->axis, c->workload->axis, sizeof m->axis) &&
            !strcmp(m->task, c->task->digest))
            return m;
    }
    return NULL;
}

static void keep(Judged *j, Kind kind, Measured *m)
{
    int at = j->kept[kind].n;
    if (at < MOST_KEPT) {
        j->kept[kind].of = memory_grow(j->kept[kind].of, (size_t)at + 1, sizeof m);
        j->kept[kind].n++;
    } else {
        at = j->kept[kind].next++ % MOST_KEPT;
        free(j->kept[kind].of[at]);
    }
    j->kept[kind].of[at] = m;
}

static double rtol_of(const TaskCase *c, int output)
{
    Dtype type = c->task->outputs[output].dtype;
    double rtol = c->task->rtol[type];
    return c->variant == VARIANT_FEW_BITS && type == DTYPE_F32 ? fmin(rtol, FEW_BITS_RTOL) : rtol;
}

/* The largest of more errors is larger; sums have as many terms as before. */
static HonestGrowth growth(const MeasuredExtent *to, const MeasuredExtent *at)
{
    return (HonestGrowth){.by = fmax(1, sqrt(log(2 + to->elements) / log(2 + at->elements))),
                          .elements = fmax(1, to->elements / at->elements)};
}

static int measure_case(const TaskCase *c, HonestError *out, Error *err)
{
    const Task *t = c->task;
    double rtol[GRAPH_MAX_OUTPUTS] = {0};
    MeasuredExtent own, at;
    Workload w = *c->workload;
    TaskCase small = *c;
    small.workload = &w;
    for (int i = 0; i < t->n_outputs; i++) rtol[i] = rtol_of(c, i);
    (void)measured_sizes(&(MeasuredSizes){t, MOST_FLOPS, 0, 0}, &w, &own, &at);
    HonestGrowth grown = growth(&own, &at);
    const HonestPlan plan = {.rtol = rtol, .grown = &grown, .n = 1, .brief = 1};
    memset(out, 0, sizeof *out); /* what is kept of it has no bytes by chance */
    return honest_measure(&small, &plan, out, err)
               ? error_prefix(err, "task %s: tolerance", t->name)
               : 0;
}

/* Of the case, once. NULL: *err. */
static const Measured *measured(Judged *j, Kind kind, const TaskCase *c, Error *err)
{
    Measured *m = find(j, kind, c);
    if (m) return m;
    m = memory_alloc(sizeof *m);
    size_t size = kind == HONEST ? sizeof m->error.honest : sizeof m->error.rounded;
    m->variant = c->variant, m->scale = c->scale;
    memcpy(m->axis, c->workload->axis, sizeof m->axis);
    memcpy(m->task, c->task->digest, sizeof m->task);
    if (!take_stored(j, kind_names[kind], c, &m->error, size)) {
        if (kind == HONEST ? measure_case(c, &m->error.honest, err)
                           : tf32_measure(c, &m->error.rounded, err)) {
            free(m);
            return NULL;
        }
        store(j, kind_names[kind], c, &m->error, size);
    }
    keep(j, kind, m);
    return m;
}

/* Few errors of one draw may be small by chance. */
static double least(const TaskCase *c, int output)
{
    const Workload *w = described(c->task);
    const double *at = w->atol + (size_t)output * ATOL_CASES;
    TaskCase same = *c;
    Tolerance by;
    double low = at[0];
    same.workload = w;
    if (c->variant < VARIANT_INTEGERS && !task_tolerance(&same, output, &by, NULL)) return by.atol;
    for (int k = 1; k < ATOL_CASES; k++) low = fmin(low, at[k]);
    return low;
}

/* The errors of a few elements may all be small by chance. */
static double margin(const TaskCase *c, int output)
{
    size_t n;
    if (c->variant < VARIANTS ||
        task_elements(c->task, c->workload, &c->task->outputs[output], &n, NULL))
        return 1;
    return n < FEW ? FEW_MARGIN : 1;
}

/* Adds what eager PyTorch may err more where the task's precision lets it use TF32. Integers are exact. */
static int add_tf32(Judged *j, const TaskCase *c, int output, Tolerance *out, Error *err)
{
    if (!c->task->tf32 || !c->task->graph || c->variant == VARIANT_INTEGERS) return 0;
    const Measured *m = measured(j, ROUNDED, c, err);
    if (!m) return -1;
    out->atol += m->error.rounded.atol[output];
    out->rtol = fmax(out->rtol, m->error.rounded.rtol[output]);
    return 0;
}

int judged_listed(Judged *j, const TaskCase *c, int output, Tolerance *out, Error *err)
{
    return task_tolerance(c, output, out, err) || add_tf32(j, c, output, out, err) ? -1 : 0;
}

int judged_tolerance(Judged *j, const TaskCase *c, int output, Tolerance *out, int *usable,
                     Error *err)
{
    if (usable) *usable = 1;
    if (!judged_is_measured(c)) return judged_listed(j, c, output, out, err);
    const Measured *m = measured(j, HONEST, c, err);
    if (!m) return -1;
    out->rtol = rtol_of(c, output);
    out->atol = margin(c, output) * m->error.honest.atol[output];
    out->atol = fmax(out->atol, c->variant == VARIANT_FEW_BITS ? FEW_BITS_ATOL : least(c, output));
    if (usable) *usable = m->error.honest.finite && !m->error.honest.overflow;
    return add_tf32(j, c, output, out, err);
}
