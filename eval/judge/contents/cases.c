/* The cache of cases. The least recently used case is dropped first, but never the last three. */
#include "eval/judge/contents/cases.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "eval/judge/contents/drawn_sizes.h"
#include "eval/judge/contents/own_sizes.h"
#include "eval/judge/contents/shortened.h"
#include "eval/judge/contents/timed_contents.h"
#include "tasks/derive/element_limits.h"
#include "tasks/derive/judged.h"

enum { KEEP_AT_LEAST = 3, MOST_SIZES = 1024, LEAST_THERE = 1 << 22 };
static const size_t max_whole = (size_t)512 << 20; /* of the references of timed workloads */

typedef struct {
    Case *c;
    size_t bytes;
    uint64_t used;
} Slot;

/* The workload stays at its place. It has no positions where the task cannot be made short. */
typedef struct {
    Shortening by;
    int which, is_made;
    uint64_t seed;
    int64_t positions;
    Workload w;
} Shortened;

/* What is kept of a task. It does not move. */
typedef struct {
    const Task *task;
    DrawnSizes *drawn; /* by seed `drawn_by`; NULL: not yet */
    uint64_t drawn_by;
    double *
        loosened; /* by output: factors of the tolerances of drawn contents; NULL: there are none */
    int own_known; /* as are: */
    OwnSizes own;
    int fit;
    char *why; /* they are left for this reason; NULL: they are not */
} TaskKept;

/* Sizes that the plan of some candidate needs. */
typedef struct {
    const Task *task;
    Workload w;
} OtherSizes;

struct Cases {
    Slot *slots;
    int n, capacity;
    size_t bytes, max_bytes;
    uint64_t clock;
    TimedContents **timed; /* one a timed workload */
    int n_timed;
    TimedContents *once;   /* NULL: none yet */
    Shortened **shortened; /* one a task and axis */
    int n_shortened;
    TaskKept **kept; /* one a task */
    int n_kept;
    OtherSizes **others;
    int n_others, next_other;
    Judged *judged;
    const DeviceOps *ops; /* NULL unless the device keeps contents */
    Device *device;
    CasesReference *reference; /* NULL: none */
    void *reference_of;
};

Cases *cases_new(size_t max_bytes, const DeviceOps *ops, Device *device)
{
    Cases *c = memory_alloc(sizeof *c);
    c->max_bytes = max_bytes;
    c->judged = judged_new();
    if (!ops || !ops->golden) return c;
    size_t room = ops->info(device)->contents_bytes;
    c->ops = ops;
    c->device = device;
    if (room && room < c->max_bytes) c->max_bytes = room;
    return c;
}

void cases_store(Cases *c, Cache *cache)
{
    judged_store(c->judged, cache);
}

static void case_free(const Cases *cases, Case *c)
{
    for (int i = 0; i < TASK_MAX_TENSORS; i++) {
        free(c->inputs[i]);
        free(c->expected[i]);
        element_limits_free(c->limits[i]);
        if (c->golden_inputs[i]) cases->ops->golden->free(cases->device, c->golden_inputs[i]);
        if (c->golden_expected[i]) cases->ops->golden->free(cases->device, c->golden_expected[i]);
    }
    free(c->eager);
    free(c);
}

/* Move the contents to the device, and free the host's copies. What has limits for elements is compared on
 * the host. */
static int case_upload(const Cases *cases, Case *c, Error *err)
{
    const Task *t = c->task;
    for (int i = 0; i < t->n_inputs; i++) {
        size_t bytes = case_drawn(c, &t->inputs[i], c->input_bytes[i]);
        if (!c->golden_inputs[i] &&
            cases->ops->golden->keep(cases->device, c->inputs[i], bytes, &c->golden_inputs[i], err))
            return -1;
        free(c->inputs[i]);
        c->inputs[i] = NULL;
    }
    for (int i = 0; i < t->n_outputs; i++) {
        size_t bytes = c->output_bytes[i] / dtype_size(t->outputs[i].dtype) * sizeof(double);
        bytes = case_drawn(c, &t->outputs[i], bytes);
        if (c->limits[i]) continue;
        if (!c->golden_expected[i] && cases->ops->golden->keep(cases->device, c->expected[i], bytes,
                                                               &c->golden_expected[i], err))
            return -1;
        free(c->expected[i]);
        c->expected[i] = NULL;
    }
    return 0;
}

void cases_free(Cases *c)
{
    for (int i = 0; i < c->n; i++) case_free(c, c->slots[i].c);
    for (int i = 0; i < c->n_timed; i++) timed_contents_free(c->timed[i]);
    if (c->once) timed_contents_free(c->once);
    for (int i = 0; i < c->n_shortened; i++) {
        free(c->shortened[i]->w.atol);
        free(c->shortened[i]);
    }
    for (int i = 0; i < c->n_kept; i++) {
        drawn_sizes_free(c->kept[i]->drawn);
        free(c->kept[i]->loosened);
        free(c->kept[i]->why);
        free(c->kept[i]);
    }
    for (int i = 0; i < c->n_others; i++) free(c->others[i]);
    judged_free(c->judged);
    free(c->kept);
    free(c->others);
    free(c->shortened);
    free(c->timed);
    free(c->slots);
    free(c);
}

void *cases_tensor(size_t n, size_t size)
{
    void *p = memory_array(n, size);
    if (n > TASK_LARGE) memory_huge(p, n * size);
    return p;
}

TaskCase case_of(const Case *c)
{
    return (TaskCase){c->task, case_part(c), c->variant, c->seed, c->scale};
}

const Workload *case_part(const Case *c)
{
    return c->part ? c->part : c->workload;
}

size_t case_drawn(const Case *c, const TaskTensor *x, size_t n)
{
    if (!c->part || !own_sizes_repeat(c->task, c->repeats, x)) return n;
    return n / (size_t)c->workload->axis[c->repeats] * (size_t)c->part->axis[c->repeats];
}

TaskComparison case_comparison(const Case *c, int output)
{
    return (TaskComparison){c->task, c->workload, output, c->tolerance[output]};
}

static int measure_inputs(Case *c, size_t *total, Error *err)
{
    const Task *t = c->task;
    for (int i = 0; i < t->n_inputs; i++) {
        size_t n, size = dtype_size(t->inputs[i].dtype);
        if (task_elements(t, c->workload, &t->inputs[i], &n, err)) return -1;
        c->input_bytes[i] = n * size;
        *total += case_drawn(c, &t->inputs[i], n) * size;
    }
    return 0;
}

/* The inputs that neither host nor device has yet, on the host. */
static int draw_inputs(Case *c, Error *err)
{
    const TaskCase of = case_of(c);
    for (int i = 0; i < c->task->n_inputs; i++) {
        size_t size = dtype_size(c->task->inputs[i].dtype);
        if (c->inputs[i] || c->golden_inputs[i]) continue;
        c->inputs[i] =
            cases_tensor(case_drawn(c, &c->task->inputs[i], c->input_bytes[i] / size), size);
        if (task_draw(&of, i, c->inputs[i], err)) return -1;
    }
    return 0;
}

/* A large input on the device, which draws it in a hundredth of the host's time. Returns 1 where it does not
 * draw it: the host does. */
static int draw_there(const Cases *cases, Case *c, int input, Error *err)
{
    const TaskCase of = case_of(c);
    size_t n = case_drawn(c, &c->task->inputs[input], c->input_bytes[input] / sizeof(float));
    TaskStreams streams;
    float *first;
    if (n < LEAST_THERE || !task_draw_streams(&of, input, n, &streams)) return 1;
    first = memory_array(TASK_STREAM, sizeof *first);
    int rc = task_draw_part(&of, input, 0, TASK_STREAM, first, err);
    if (!rc) {
        const DeviceDraw x = {&streams, first, TASK_STREAM};
        rc = cases->ops->golden->draw(cases->device, &x, &c->golden_inputs[input], err);
    }
    if (rc > 0) log_warn("a GPU draws other numbers than the host, which draws all");
    free(first);
    free(streams.state);
    return rc;
}

/* Where the device computes the reference, large inputs are drawn there. */
static int draw_on_device(const Cases *cases, Case *c, Error *err)
{
    if (!cases->ops || !cases->ops->golden->draw || !cases->reference) return 0;
    for (int i = 0; i < c->task->n_inputs; i++)
        if (draw_there(cases, c, i, err) < 0) return -1;
    return 0;
}

/* Draws on the host the inputs that only the device has: the host's reference needs them. */
static int draw_again(const Cases *cases, Case *c, Error *err)
{
    for (int i = 0; i < c->task->n_inputs; i++) {
        if (c->inputs[i] || !c->golden_inputs[i]) continue;
        cases->ops->golden->free(cases->device, c->golden_inputs[i]);
        c->golden_inputs[i] = NULL;
    }
    return draw_inputs(c, err);
}

/* What a reference that failed has left. */
static void forget_expected(const Cases *cases, Case *c)
{
    for (int i = 0; i < TASK_MAX_TENSORS; i++) {
        if (c->golden_expected[i]) cases->ops->golden->free(cases->device, c->golden_expected[i]);
        c->golden_expected[i] = NULL;
    }
}

static int find_limits(Case *c, const double *const *in, Error *err)
{
    const TaskCase of = case_of(c);
    if (c->variant == VARIANT_INTEGERS) return 0;
    if (element_limits(&of, in, (const double *const *)c->expected, c->limits, err)) return -1;
    for (int i = 0; i < c->task->n_outputs; i++) c->tolerance[i].elements = c->limits[i];
    return 0;
}

/* The host needs the inputs as doubles, which are widened for it alone. */
static int reference(const Cases *owner, Case *c, Task *t, Error *err)
{
    double *wide[TASK_MAX_TENSORS] = {NULL};
    const double *in[TASK_MAX_TENSORS];
    if (owner->reference && !owner->reference(owner->reference_of, c)) return 0;
    forget_expected(owner, c);
    if (draw_again(owner, c, err)) return -1;
    for (int i = 0; i < t->n_inputs; i++) {
        Dtype dtype = t->inputs[i].dtype;
        size_t n = case_drawn(c, &t->inputs[i], c->input_bytes[i] / dtype_size(dtype));
        in[i] = wide[i] = cases_tensor(n, sizeof **wide);
        dtype_to_double(dtype, c->inputs[i], wide[i], n);
    }
    int rc = task_reference(t, case_part(c), in, c->expected, err);
    if (!rc && !c->part) rc = find_limits(c, in, err);
    for (int i = 0; i < t->n_inputs; i++) free(wide[i]);
    return rc;
}

/* NULL: nothing is kept. */
static TaskKept *find_kept(const Cases *c, const Task *t)
{
    for (int i = 0; i < c->n_kept; i++)
        if (c->kept[i]->task == t) return c->kept[i];
    return NULL;
}

static TaskKept *kept_of(Cases *c, const Task *t)
{
    TaskKept *k = find_kept(c, t);
    if (k) return k;
    c->kept = memory_grow(c->kept, (size_t)++c->n_kept, sizeof(TaskKept *));
    k = c->kept[c->n_kept - 1] = memory_alloc(sizeof *k);
    *k = (TaskKept){.task = t};
    return k;
}

static const double *loosened_by(const Cases *c, const Task *t)
{
    const TaskKept *k = find_kept(c, t);
    return k ? k->loosened : NULL;
}

static void loosen(Case *c, const double *by)
{
    for (int i = 0; i < c->task->n_outputs && by && c->variant == VARIANT_DRAWN; i++) {
        c->tolerance[i].atol *= by[i];
        c->tolerance[i].rtol *= by[i];
        if (by[i] > 1 && c->limits[i] && !c->limits[i]->limit) c->tolerance[i].elements = NULL;
    }
}

int cases_loosened(const Cases *c, const Task *t)
{
    return loosened_by(c, t) != NULL;
}

void cases_loosen(Cases *c, const Task *t, const double *by)
{
    size_t bytes = (size_t)t->n_outputs * sizeof *by;
    TaskKept *k = kept_of(c, t);
    free(k->loosened);
    k->loosened = memcpy(memory_alloc(bytes), by, bytes);
    for (int i = 0; i < c->n; i++)
        if (c->slots[i].c->task == t && !c->slots[i].c->lenient) loosen(c->slots[i].c, by);
}

/* Measure the tolerances of a case, and whether it is usable. */
static int measure(const Cases *owner, Case *c, Error *err)
{
    TaskCase of = case_of(c);
    if (c->grown > 0) of.workload = task_workload(c->task, ROLE_TIME);
    for (int i = 0; i < c->task->n_outputs; i++) {
        int usable;
        if (judged_tolerance(owner->judged, &of, i, &c->tolerance[i], &usable, err)) return -1;
        if (c->grown > 0) c->tolerance[i].atol *= c->grown;
        c->usable &= usable;
        c->tolerance[i].elements = c->limits[i];
    }
    loosen(c, loosened_by(owner, c->task));
    c->lenient = 0;
    return 0;
}

static int case_fill(const Cases *owner, Case *c, Task *t, size_t *total, Error *err)
{
    const TaskCase of = case_of(c);
    *total = 0;
    c->usable = 1;
    int rc = measure_inputs(c, total, err);
    for (int i = 0; i < t->n_outputs && !rc; i++) {
        size_t n;
        if ((rc = task_elements(t, c->workload, &t->outputs[i], &n, err))) break;
        c->output_bytes[i] = n * dtype_size(t->outputs[i].dtype);
        n = case_drawn(c, &t->outputs[i], n);
        c->expected[i] = cases_tensor(n, sizeof(double));
        *total += n * sizeof(double);
        if (!c->grown && !drawn_tolerance(owner->judged, &of, i, &c->tolerance[i])) c->lenient = 1;
    }
    return rc || c->lenient ? rc : measure(owner, c, err);
}

/* A bound of the tolerance is enough where it tells right outputs from wrong ones. */
static int settle_tolerance(const Cases *owner, Case *c, Error *err)
{
    if (!c->lenient) return 0;
    for (int i = 0; i < c->task->n_outputs; i++) {
        size_t n = c->output_bytes[i] / dtype_size(c->task->outputs[i].dtype);
        if (c->golden_expected[i] || c->task->outputs[i].dtype != DTYPE_F32 ||
            !task_tolerance_tells(c->tolerance[i].atol, c->expected[i], n))
            return measure(owner, c, err);
    }
    return 0;
}

static void drop(Cases *c, int slot)
{
    c->bytes -= c->slots[slot].bytes;
    case_free(c, c->slots[slot].c);
    c->slots[slot] = c->slots[--c->n];
}

void cases_drop(Cases *c, const Case *drawn)
{
    for (int i = 0; i < c->n; i++)
        if (c->slots[i].c == drawn) {
            drop(c, i);
            return;
        }
}

/* Make room for a case of `bytes`: drop the least recently used ones while over the bound. */
static void make_room(Cases *c, size_t bytes)
{
    while (c->n >= KEEP_AT_LEAST && c->bytes + bytes > c->max_bytes) {
        int oldest = 0;
        for (int i = 1; i < c->n; i++)
            if (c->slots[i].used < c->slots[oldest].used) oldest = i;
        drop(c, oldest);
    }
    if (c->n < c->capacity) return;
    c->capacity = c->capacity ? 2 * c->capacity : 32;
    c->slots = memory_grow(c->slots, (size_t)c->capacity, sizeof *c->slots);
}

static Slot *find(Cases *c, const Task *t, const Workload *w, Variant v, uint64_t seed,
                  double scale)
{
    for (int i = 0; i < c->n; i++) {
        const Case *k = c->slots[i].c;
        if (k->task == t && k->workload == w && k->variant == v && k->seed == seed &&
            k->scale == scale)
            return &c->slots[i];
    }
    return NULL;
}

static TaskKept *own_of(Cases *c, Task *t)
{
    const DeviceInfo *d = c->ops->info(c->device);
    TaskKept *o = kept_of(c, t);
    if (o->own_known) return o;
    o->own_known = 1;
    o->fit = !own_sizes_find(t, &o->own) && own_sizes_fit(&o->own, d);
    if (o->fit && !own_sizes_fit_now(&o->own, d))
        o->why = memory_strdup("too little of the GPU's memory was free");
    return o;
}

static int may_take_own(const Cases *c, const Task *t)
{
    return t->own && t->graph && c->ops;
}

int cases_take_own(Cases *c, Task *t)
{
    return may_take_own(c, t) && own_of(c, t)->fit && !own_of(c, t)->why;
}

void cases_leave_own(Cases *c, Task *t, const char *why)
{
    TaskKept *o = own_of(c, t);
    free(o->why);
    o->why = why ? memory_strdup(why) : NULL;
}

const char *cases_left_own(Cases *c, Task *t)
{
    return may_take_own(c, t) ? own_of(c, t)->why : NULL;
}

static void take_part(Cases *c, Task *t, Case *k)
{
    if (k->workload != t->own || !cases_take_own(c, t)) return;
    const OwnSizes *own = &own_of(c, t)->own;
    k->repeats = own->axis;
    k->grown = own->grown;
    if (own->axis >= 0) k->part = &own->part;
}

/* Inputs, results and tolerances. at: clock_seconds when the first are there. */
static int fill_contents(Cases *c, Case *k, Task *t, double *at, Error *err)
{
    if (draw_on_device(c, k, err) || draw_inputs(k, err)) return -1;
    *at = clock_seconds();
    return reference(c, k, t, err) || settle_tolerance(c, k, err) ||
                   (c->ops && case_upload(c, k, err))
               ? -1
               : 0;
}

/* The slot is valid until the next draw. */
static Slot *draw(Cases *c, Task *t, const Workload *w, Variant v, uint64_t seed, double scale,
                  Error *err)
{
    Case *k = memory_alloc(sizeof *k);
    *k = (Case){.task = t, .workload = w, .variant = v, .seed = seed, .scale = scale};
    if (v != VARIANT_INTEGERS)
        k->eager = memory_alloc(sizeof *k->eager + (size_t)t->n_outputs * sizeof *k->eager->of);
    take_part(c, t, k);
    size_t bytes;
    double start = clock_seconds(), filled, drawn;
    int rc = case_fill(c, k, t, &bytes, err);
    filled = clock_seconds();
    if (!rc) make_room(c, bytes); /* the reference may take it */
    if (rc || fill_contents(c, k, t, &drawn, err)) {
        case_free(c, k);
        return NULL;
    }
    log_debug("contents of %zu KiB: bounds %.1f ms, inputs %.1f ms, results %.1f ms", bytes >> 10,
              (filled - start) * 1e3, (drawn - filled) * 1e3, (clock_seconds() - drawn) * 1e3);
    Slot *s = &c->slots[c->n++];
    *s = (Slot){k, bytes, ++c->clock};
    c->bytes += bytes;
    return s;
}

void cases_reference(Cases *c, CasesReference *f, void *of)
{
    c->reference = f;
    c->reference_of = of;
}

const Case *cases_get(Cases *c, Task *t, const Workload *w, Variant v, uint64_t seed, double scale,
                      Error *err)
{
    Slot *s = find(c, t, w, v, seed, scale);
    if (!s) s = draw(c, t, w, v, seed, scale, err);
    if (!s) return NULL;
    s->used = ++c->clock;
    return s->c;
}

int cases_measure(Cases *c, const Case *drawn, Error *err)
{
    for (int i = 0; i < c->n; i++)
        if (c->slots[i].c == drawn) return drawn->lenient ? measure(c, c->slots[i].c, err) : 0;
    return 0;
}

/* Few tasks have a whole reference: when they are too many, all but that of contents i. */
static void bound_whole(Cases *c, int i)
{
    size_t bytes = 0;
    for (int k = 0; k < c->n_timed; k++) bytes += timed_whole_bytes(c->timed[k]);
    for (int k = 0; k < c->n_timed && bytes > max_whole; k++)
        if (k != i) timed_forget_whole(c->timed[k]);
}

TimedContents *cases_timed(Cases *c, Task *t, const Workload *w, uint64_t seed, Error *err)
{
    int i = 0;
    while (i < c->n_timed && (c->timed[i]->test.task != t || c->timed[i]->test.workload != w)) i++;
    bound_whole(c, i);
    if (i < c->n_timed && c->timed[i]->test.seed == seed) return c->timed[i];
    TimedContents *x = timed_contents_new(&(TimedOf){t, w, c->judged}, seed, err);
    if (!x) return NULL;
    x->shared = 1;
    loosen(&x->test, loosened_by(c, t));
    if (i < c->n_timed)
        timed_contents_free(c->timed[i]);
    else
        c->timed = memory_grow(c->timed, (size_t)++c->n_timed, sizeof(TimedContents *));
    return c->timed[i] = x;
}

TimedContents *cases_timed_once(Cases *c, Task *t, const Workload *w, uint64_t seed, Error *err)
{
    if (c->once && c->once->test.task == t && c->once->test.workload == w)
        return timed_contents_renew(c->once, seed, err) ? NULL : c->once;
    if (c->once) timed_contents_free(c->once);
    c->once = timed_contents_new(&(TimedOf){t, w, c->judged}, seed, err);
    if (c->once) loosen(&c->once->test, loosened_by(c, t));
    return c->once;
}

/* The cases of the workload that it was go with it. */
static void forget_workload(Cases *c, const Workload *w)
{
    for (int i = c->n - 1; i >= 0; i--)
        if (c->slots[i].c->workload == w) drop(c, i);
}

/* That of a timed workload and axis, made where there is none. */
static Shortened *shortened_of(Cases *c, const Task *t, const Workload *timed, int which)
{
    int i = 0;
    while (i < c->n_shortened &&
           (c->shortened[i]->by.task != t || c->shortened[i]->by.timed != timed ||
            c->shortened[i]->which != which))
        i++;
    if (i < c->n_shortened) return c->shortened[i];
    c->shortened = memory_grow(c->shortened, (size_t)++c->n_shortened, sizeof(Shortened *));
    c->shortened[i] = memory_alloc(sizeof(Shortened));
    *c->shortened[i] = (Shortened){.by.task = t, .by.timed = timed, .which = which};
    return c->shortened[i];
}

const Workload *cases_shortened(Cases *c, const Task *t, const Workload *timed, int which,
                                uint64_t seed)
{
    Shortening axis[SHORTENED_AXES];
    if (which >= shortened_axes(t, timed, axis)) return NULL;
    Shortened *s = shortened_of(c, t, timed, which);
    if (!s->is_made || s->seed != seed) {
        forget_workload(c, &s->w);
        free(s->w.atol);
        *s = (Shortened){axis[which], which, 1, seed, 0, {0}};
        s->positions = shortened_positions(&s->by, seed);
        if (s->positions && shortened_make(&s->by, s->positions, &s->w, NULL)) s->positions = 0;
    }
    return s->positions ? &s->w : NULL;
}

/* All cases of sizes that are drawn by another seed from now on. */
static void forget_sizes(Cases *c, DrawnSizes *d)
{
    for (int i = c->n - 1; d && i >= 0; i--)
        if (drawn_sizes_has(d, c->slots[i].c->workload)) drop(c, i);
    drawn_sizes_free(d);
}

DrawnSizes *cases_drawn_sizes(Cases *c, const Task *t, uint64_t seed)
{
    TaskKept *k = kept_of(c, t);
    if (!k->drawn || k->drawn_by != seed) {
        forget_sizes(c, k->drawn);
        k->drawn = drawn_sizes_new(t, seed);
        k->drawn_by = seed;
    }
    return k->drawn;
}

const Workload *cases_sizes(Cases *c, const Task *t, const Workload *w)
{
    for (int i = 0; i < c->n_others; i++)
        if (c->others[i]->task == t && !memcmp(c->others[i]->w.axis, w->axis, sizeof w->axis))
            return &c->others[i]->w;
    int i = c->next_other++ % MOST_SIZES;
    if (i == c->n_others) {
        c->others = memory_grow(c->others, (size_t)++c->n_others, sizeof *c->others);
        c->others[i] = memory_alloc(sizeof(OtherSizes));
    }
    forget_workload(c, &c->others[i]->w);
    *c->others[i] = (OtherSizes){t, *w};
    return &c->others[i]->w;
}

void case_text(const Case *c, char *out, size_t size)
{
    task_workload_text(c->task, c->workload, out, size);
    size_t len = strlen(out);
    if (c->variant == VARIANT_DRAWN)
        snprintf(out + len, size - len, ", input scale %g", c->scale);
    else
        snprintf(out + len, size - len, ", %s", variant_name(c->variant));
}

/* Sizes that the task does not list are numbered by what they are. */
static int64_t workload_number(const Task *t, const Workload *w)
{
    for (int i = 0; i < t->n_workloads; i++)
        if (w == &t->workloads[i]) return i;
    return (int64_t)random_hash(w->axis, sizeof w->axis);
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
    name.workload = workload_number(t, w);
    name.trial = trial;
    memcpy(name.task, t->digest, DIGEST_HEX);
    return random_hash(&name, sizeof name);
}

int drawn_tolerance(Judged *j, const TaskCase *c, int output, Tolerance *out)
{
    const Task *t = c->task;
    int found = 0;
    if (!t->graph || c->workload->atol || c->variant != VARIANT_DRAWN) return -1;
    for (int i = 0; i < t->n_workloads; i++) {
        TaskCase own = *c;
        Tolerance by = {0};
        own.workload = &t->workloads[i];
        if (!own.workload->atol || judged_listed(j, &own, output, &by, NULL)) continue;
        if (!found++ || by.atol > out->atol) *out = by;
    }
    return found ? 0 : -1;
}
