#include "eval/cases.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

enum { KEEP_AT_LEAST = 3 };

typedef struct {
    Case *c;
    size_t bytes;
    uint64_t used;
} Slot;

struct Cases {
    Slot *slots;
    int n, capacity;
    size_t bytes, max_bytes;
    uint64_t clock;
};

Cases *cases_new(size_t max_bytes)
{
    Cases *c = memory_alloc(sizeof *c);
    c->max_bytes = max_bytes;
    return c;
}

static void case_free(Case *c)
{
    for (int i = 0; i < TASK_MAX_TENSORS; i++) {
        free(c->inputs[i]);
        free(c->expected[i]);
    }
    free(c);
}

void cases_free(Cases *c)
{
    for (int i = 0; i < c->n; i++) case_free(c->slots[i].c);
    free(c->slots);
    free(c);
}

static int draw_inputs(Case *c, double **wide, size_t *total, Error *err)
{
    const Task *t = c->task;
    for (int i = 0; i < t->n_inputs; i++) {
        size_t n, size = dtype_size(t->inputs[i].dtype);
        if (task_elements(t, c->workload, &t->inputs[i], &n, err)) return -1;
        c->input_bytes[i] = n * size;
        c->inputs[i] = memory_array(n, size);
        wide[i] = memory_array(n, sizeof **wide);
        if (task_draw(t, c->workload, i, c->seed, c->scale, c->inputs[i], err)) return -1;
        dtype_to_double(t->inputs[i].dtype, c->inputs[i], wide[i], n);
        *total += n * size;
    }
    return 0;
}

static int case_fill(Case *c, Task *t, size_t *total, Error *err)
{
    double *wide[TASK_MAX_TENSORS] = {NULL};
    const double *in[TASK_MAX_TENSORS];
    *total = 0;
    int rc = draw_inputs(c, wide, total, err);
    for (int i = 0; i < t->n_outputs && !rc; i++) {
        size_t n;
        if ((rc = task_elements(t, c->workload, &t->outputs[i], &n, err))) break;
        c->expected[i] = memory_array(n, sizeof(double));
        c->output_bytes[i] = n * dtype_size(t->outputs[i].dtype);
        *total += n * sizeof(double);
    }
    for (int i = 0; i < t->n_inputs; i++) in[i] = wide[i];
    if (!rc) rc = task_reference(t, c->workload, in, c->expected, err);
    for (int i = 0; i < t->n_inputs; i++) free(wide[i]);
    return rc;
}

/* Room for one more: drop the longest unused beyond the bound. */
static void make_room(Cases *c, size_t bytes)
{
    while (c->n >= KEEP_AT_LEAST && c->bytes + bytes > c->max_bytes) {
        int oldest = 0;
        for (int i = 1; i < c->n; i++)
            if (c->slots[i].used < c->slots[oldest].used) oldest = i;
        c->bytes -= c->slots[oldest].bytes;
        case_free(c->slots[oldest].c);
        c->slots[oldest] = c->slots[--c->n];
    }
    if (c->n < c->capacity) return;
    c->capacity = c->capacity ? 2 * c->capacity : 32;
    c->slots = memory_grow(c->slots, (size_t)c->capacity, sizeof *c->slots);
}

const Case *cases_get(Cases *c, Task *t, const Workload *w, uint64_t seed, double scale, Error *err)
{
    for (int i = 0; i < c->n; i++) {
        Case *k = c->slots[i].c;
        if (k->task != t || k->workload != w || k->seed != seed || k->scale != scale) continue;
        c->slots[i].used = ++c->clock;
        return k;
    }
    Case *k = memory_alloc(sizeof *k);
    *k = (Case){.task = t, .workload = w, .seed = seed, .scale = scale};
    size_t bytes;
    if (case_fill(k, t, &bytes, err)) {
        case_free(k);
        return NULL;
    }
    make_room(c, bytes);
    c->slots[c->n++] = (Slot){k, bytes, ++c->clock};
    c->bytes += bytes;
    return k;
}

uint64_t case_seed(uint64_t evaluator_seed, const Task *t, const Workload *w, int trial)
{
    struct {
        uint64_t seed;
        int64_t workload, trial;
        char task[DIGEST_HEX];
    } name;
    memset(&name, 0, sizeof name);
    name.seed = evaluator_seed;
    name.workload = w - t->workloads;
    name.trial = trial;
    memcpy(name.task, t->digest, DIGEST_HEX);
    return random_hash(&name, sizeof name);
}
