/* Positions are chosen in each run of written bytes of the first output. */
#include "eval/judge/contents/timed_contents.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/judge/contents/positions.h"
#include "eval/judge/contents/second_look.h"
#include "eval/judge/contents/shortened.h"
#include "eval/judge/contents/spans.h"
#include "eval/judge/contents/timed_elements.h"
#include "tasks/derive/element_limits.h"
#include "tasks/derive/judged.h"

enum {
    POSITIONS = 4096,
    FEW = 8, /* positions */
    READ = 1 << 14 /* bytes */,
    AHEAD = 1 << 13 /* bytes */,
    MANY = 1 << 20 /* bytes */
};

/* Bytes and flops that the reference of all chosen positions may have, and of a single one. Flops of a
 * costly position, of which two are compared. */
static const double reference_cost = 8e6, reference_max = 2e7, costly_max = 6e8;
/* Flops of a reference that is computed whole, and elements of all its tensors. */
static const double whole_flops = 1e9, whole_elements = 1 << 26;

/* ---- positions ---- */

/* Positions of the outputs can be computed alone. */
static int has_positions(Task *t)
{
    return shortened_has_axis(t) && task_rotates(t, &t->outputs[0]) && positions_independent(t);
}

/* Costly: a single position is worth keeping. */
static int64_t max_positions(Task *t, const Workload *w, int *costly)
{
    double bytes, flops;
    *costly = 0;
    if (t->rotates < 0 || task_cost(t, w, &bytes, &flops, NULL)) return 0;
    double all = (double)w->axis[t->rotates], each = fmax(bytes, flops) / all;
    if (bytes / all > reference_max || flops / all > costly_max || !has_positions(t)) return 0;
    *costly = each > reference_max;
    if (*costly) return 2;
    double n = fmax(2, reference_cost / fmax(each, 1));
    return n < POSITIONS ? (int64_t)n : POSITIONS;
}

/* So few that most tiles of a plane have none: elements of all rows and columns tell more. */
static int has_few_positions(Task *t, const Workload *w)
{
    int costly;
    int64_t n = max_positions(t, w, &costly);
    return n && n <= FEW;
}

/* ---- contents ---- */

static size_t element_size(const TimedContents *c, int input)
{
    return dtype_size(c->test.task->inputs[input].dtype);
}

/* Where the part before is there, a tensor is read from one end to the other: some more are drawn. */
static size_t ahead_of(const TimedContents *c, int input, size_t part, size_t all, size_t most)
{
    size_t end = part;
    if (!part || !c->drawn[input][part - 1]) return part;
    while (end < part + most && end < all && !c->drawn[input][end]) end++;
    return end;
}

/* Much that is drawn at a time is the beginning or the rest of more. */
static void advise_large(TimedContents *c, int input, size_t from, size_t end)
{
    size_t all = c->test.input_bytes[input];
    from = from < MANY ? 0 : from - MANY;
    end = end + MANY < all ? end + MANY : all;
    memory_huge(c->data[input] + from, end - from);
}

/* Neighbouring parts are drawn together. */
static int draw_range(TimedContents *c, int input, size_t from, size_t bytes, Error *err)
{
    size_t elements = task_part(c->test.task, input), part = elements * element_size(c, input);
    const TaskCase of = case_of(&c->test);
    if (!c->drawn[input] || !bytes) return 0;
    size_t all = (c->test.input_bytes[input] + part - 1) / part,
           end = (from + bytes - 1) / part + 1, next;
    for (size_t i = from / part; i < end; i = next + 1) {
        for (next = i; next < end && !c->drawn[input][next];) next++;
        size_t ahead = next > i && next == end ? ahead_of(c, input, i, all, AHEAD / part) : next;
        if (ahead > next) next = end = ahead;
        if ((next - i) * part >= MANY) advise_large(c, input, i * part, next * part);
        if (next > i && task_draw_part(&of, input, i * elements, (next - i) * elements,
                                       c->data[input] + i * part, err))
            return -1;
        memset(c->drawn[input] + i, 1, next - i);
    }
    return 0;
}

static const void *fill(void *of, int input, size_t from, void *dst, size_t bytes)
{
    TimedContents *c = of;
    Error ignored;
    if (draw_range(c, input, from, bytes, &ignored)) return NULL;
    if (dst) memcpy(dst, c->data[input] + from, bytes);
    return c->data[input] + from;
}

static int draw_small(TimedContents *c, int i, Error *err)
{
    const TaskCase of = case_of(&c->test);
    return c->drawn[i] ? 0 : task_draw(&of, i, c->data[i], err);
}

TimedContents *timed_contents_new(const TimedOf *whose, uint64_t seed, Error *err)
{
    Task *t = whose->task;
    const Workload *w = whose->workload;
    TimedContents *c = memory_alloc(sizeof *c);
    Case *k = &c->test;
    c->task = t;
    *k = (Case){.task = t, .workload = w, .seed = seed, .variant = VARIANT_DRAWN, .scale = 1.0};
    k->fill = fill;
    k->lazy = c;
    int rc = 0;
    c->by_elements = t->graph || (t->operators && has_few_positions(t, w));
    for (int i = 0; i < t->n_inputs && !rc; i++) {
        size_t n, size = element_size(c, i);
        if ((rc = task_elements(t, w, &t->inputs[i], &n, err))) break;
        k->input_bytes[i] = n * size;
        c->data[i] = memory_array(n, size);
        if (n > TASK_LARGE) c->drawn[i] = memory_alloc(n / task_part(t, i) + 1);
        rc = draw_small(c, i, err);
    }
    for (int i = 0; i < t->n_outputs && !rc; i++) {
        size_t n;
        if ((rc = task_elements(t, w, &t->outputs[i], &n, err))) break;
        k->output_bytes[i] = n * dtype_size(t->outputs[i].dtype);
        const TaskCase of = case_of(k);
        rc = judged_listed(whose->judged, &of, i, &k->tolerance[i], err);
    }
    if (!rc) return c;
    timed_contents_free(c);
    return NULL;
}

int timed_contents_renew(TimedContents *c, uint64_t seed, Error *err)
{
    const Task *t = c->test.task;
    c->test.seed = seed;
    timed_elements_forget(c);
    for (int i = 0; i < t->n_inputs; i++) {
        size_t n = c->test.input_bytes[i] / element_size(c, i);
        if (c->drawn[i]) memset(c->drawn[i], 0, n / task_part(t, i) + 1);
        c->is_wide[i] = 0;
        if (draw_small(c, i, err)) return -1;
    }
    return 0;
}

void timed_contents_free(TimedContents *c)
{
    for (int i = 0; i < TASK_MAX_TENSORS; i++) {
        free(c->data[i]);
        free(c->drawn[i]);
        free(c->wide[i]);
        free(c->kept[i]);
    }
    timed_elements_forget(c);
    free(c);
}

/* ---- what is compared ---- */

/* The task has no positions, and its whole reference is cheap. */
static int is_whole(Task *t, const Workload *w)
{
    double bytes, flops, all = 0;
    if (task_cost(t, w, &bytes, &flops, NULL) || flops > whole_flops) return 0;
    for (int i = 0; i < t->n_inputs + t->n_outputs; i++) {
        size_t n;
        if (task_elements(t, w, i < t->n_inputs ? &t->inputs[i] : &t->outputs[i - t->n_inputs], &n,
                          NULL))
            return 0;
        all += (double)n;
    }
    return all <= whole_elements && !has_positions(t);
}

int timed_is_compared(TimedContents *c)
{
    int costly;
    Task *t = c->task;
    const Workload *w = c->test.workload;
    return timed_elements_can(c) || is_whole(t, w) || max_positions(t, w, &costly) > 0;
}

int64_t timed_costly_of(const TimedContents *c)
{
    int costly;
    const Workload *w = c->test.workload;
    return max_positions(c->task, w, &costly) && costly ? w->axis[c->task->rotates] : 0;
}

const char *timed_unit(TimedContents *c)
{
    const Task *t = c->test.task;
    int elements = timed_elements_can(c) || t->rotates < 0 || is_whole(c->task, c->test.workload);
    return elements ? "elements" : t->axis_name[t->rotates];
}

int timed_fetch(TimedContents *c, int input, int64_t from, int64_t n, double *dst, Error *err)
{
    size_t size = element_size(c, input), first = (size_t)from * size;
    if (draw_range(c, input, first, (size_t)n * size, err)) return -1;
    dtype_to_double(c->test.task->inputs[input].dtype, c->data[input] + first, dst, (size_t)n);
    return 0;
}

int timed_hold(TimedContents *c, int input, int64_t from, int64_t n, const float **all, Error *err)
{
    size_t size = element_size(c, input);
    *all = (const float *)(const void *)c->data[input];
    return draw_range(c, input, (size_t)from * size, (size_t)n * size, err);
}

/* ---- comparison ---- */

typedef struct {
    Workload w;
    int64_t n, *at; /* NULL: all of a whole reference */
    double *in[TASK_MAX_TENSORS], *out[TASK_MAX_TENSORS];
    ElementLimits *limits[TASK_MAX_TENSORS];
} Gathered;

static int gather_input(TimedContents *c, Gathered *g, int i, Error *err)
{
    const Task *t = c->test.task;
    size_t all = c->test.input_bytes[i], size = element_size(c, i);
    Dtype dtype = t->inputs[i].dtype;
    if (!g->at || !task_rotates(t, &t->inputs[i])) {
        if (c->is_wide[i]) return 0;
        if (draw_range(c, i, 0, all, err)) return -1;
        if (!c->wide[i]) c->wide[i] = cases_tensor(all / size, sizeof(double));
        c->is_wide[i] = 1;
        dtype_to_double(dtype, c->data[i], c->wide[i], all / size);
        return 0;
    }
    size_t each = all / (size_t)c->test.workload->axis[t->rotates];
    g->in[i] = memory_array((size_t)g->n * (each / size), sizeof(double));
    for (int64_t k = 0; k < g->n; k++) {
        if (draw_range(c, i, (size_t)g->at[k] * each, each, err)) return -1;
        dtype_to_double(dtype, c->data[i] + (size_t)g->at[k] * each,
                        g->in[i] + (size_t)k * (each / size), each / size);
    }
    return 0;
}

/* Gives the elements of position k that were not written the expected value. */
static void take_unwritten(const TimedOutputs *r, const Gathered *g, int i, int64_t k, size_t each,
                           unsigned char *got)
{
    Dtype dtype = r->task->outputs[i].dtype;
    size_t size = dtype_size(dtype), first = (size_t)g->at[k] * each, at = first, from, end;
    while (at < first + each) {
        from = at;
        if (!r->ops->prediction->written(r->device, r->outputs[i], first + each, &from, &end))
            from = end = first + each;
        from -= from % size;
        size_t n = (from - at) / size, skip = (at - first) / size;
        dtype_from_double(dtype, g->out[i] + (size_t)k * (each / size) + skip, got + skip * size,
                          n);
        at = (end + size - 1) / size * size;
    }
}

/* 1: integers that differ are choices between numbers that lie as near each other as honest errors are. */
static int are_choices(TimedContents *c, const Gathered *g, const TaskComparison *with,
                       const void *got, Error *err)
{
    const Task *t = with->task;
    const int i = with->output;
    const size_t all = c->test.output_bytes[i] / dtype_size(t->outputs[i].dtype),
                 each = all / (size_t)c->test.workload->axis[t->rotates], n = (size_t)g->n * each;
    const DemandInputs inputs = timed_inputs(c);
    const SecondLook look = {case_of(&c->test), i, with->by, n, 0, all, &inputs};
    TaskDifference d = {0};
    if (!t->graph || dtype_is_float(t->outputs[i].dtype)) return 0;
    task_differences(with, got, g->out[i], 0, n, &d);
    d.first = (size_t)g->at[d.first / each] * each + d.first % each;
    d.worst = (size_t)g->at[d.worst / each] * each + d.worst % each;
    return second_look(&look, &d, err);
}

/* An element that was not written is not compared. */
static int compare_output(TimedContents *c, const TimedOutputs *r, const Gathered *g, int i,
                          Fault *f)
{
    const Task *t = r->task;
    Dtype dtype = t->outputs[i].dtype;
    size_t size = dtype_size(dtype),
           each = c->test.output_bytes[i] / (size_t)c->test.workload->axis[t->rotates],
           elements = (size_t)g->n * (each / size);
    unsigned char *got = memory_array(elements, size);
    double share = shortened_share((double)elements, (double)(c->test.output_bytes[i] / size));
    Error message;
    int rc = 0;
    for (int64_t k = 0; k < g->n && !rc; k++) {
        rc = r->ops->read(r->device, r->outputs[i] + (size_t)g->at[k] * each,
                          got + (size_t)k * each, each, &f->error);
        if (!rc) take_unwritten(r, g, i, k, each, got + (size_t)k * each);
    }
    TaskComparison with = {t, &g->w, i, c->test.tolerance[i]};
    with.by.atol *= share;
    with.by.elements = g->limits[i];
    int wrong = !rc && task_compare(&with, got, g->out[i], &message);
    if (wrong) {
        const int choices = are_choices(c, g, &with, got, &f->error);
        wrong = !choices;
        if (choices < 0) rc = -1;
    }
    if (wrong) {
        fault_set(f, OUTCOME_WRONG_RESULT, 0, "%s, %lld of %s from %lld to %lld gathered: %s",
                  r->where, (long long)g->n, t->axis_name[t->rotates], (long long)g->at[0],
                  (long long)g->at[g->n - 1], message.text);
        rc = 1;
    }
    free(got);
    return rc;
}

static int limit_gathered(const TimedContents *c, Gathered *g, const double *const *in, Error *err)
{
    TaskCase of = case_of(&c->test);
    of.workload = &g->w;
    return element_limits(&of, in, (const double *const *)g->out, g->limits, err);
}

/* Computes g->out. */
static int expect_gathered(TimedContents *c, Task *t, Gathered *g, Error *err)
{
    const double *in[TASK_MAX_TENSORS];
    int rc = 0;
    for (int i = 0; i < t->n_inputs && !rc; i++) {
        rc = gather_input(c, g, i, err);
        in[i] = g->in[i] ? g->in[i] : c->wide[i];
    }
    for (int i = 0; i < t->n_outputs && !rc; i++) {
        size_t n;
        if ((rc = task_elements(t, &g->w, &t->outputs[i], &n, err))) break;
        g->out[i] = cases_tensor(n, sizeof(double));
    }
    if (!rc) rc = task_reference(t, &g->w, in, g->out, err);
    if (!rc && g->at) rc = limit_gathered(c, g, in, err);
    for (int i = 0; i < t->n_inputs; i++) free(g->in[i]);
    return rc;
}

/* Frees the inputs that the reference alone needs in doubles. */
static void forget_wide(TimedContents *c)
{
    for (int i = 0; i < c->test.task->n_inputs; i++) {
        free(c->wide[i]);
        c->wide[i] = NULL;
        c->is_wide[i] = 0;
    }
}

/* The expected outputs of costly positions are swapped with those that c keeps. */
static void swap_kept(TimedContents *c, Gathered *g)
{
    for (int i = 0; i < c->test.task->n_outputs; i++) {
        double *kept = c->kept[i];
        c->kept[i] = g->out[i];
        g->out[i] = kept;
    }
}

static int compare_gathered(TimedContents *c, const TimedOutputs *r, Gathered *g, int costly,
                            Fault *f)
{
    Task *t = r->task;
    int rc = 0;
    int is_kept =
        costly && c->n_kept == g->n && !memcmp(c->kept_at, g->at, (size_t)g->n * sizeof *g->at);
    if (is_kept)
        swap_kept(c, g);
    else
        rc = expect_gathered(c, t, g, &f->error);
    if (costly) forget_wide(c);
    for (int i = 0; i < t->n_outputs && !rc; i++)
        if (r->comparable[i] && task_rotates(t, &t->outputs[i])) rc = compare_output(c, r, g, i, f);
    if (costly) {
        swap_kept(c, g);
        c->n_kept = rc < 0 ? 0 : g->n;
        memcpy(c->kept_at, g->at, (size_t)g->n * sizeof *g->at);
    }
    for (int i = 0; i < t->n_outputs; i++) {
        element_limits_free(g->limits[i]);
        free(g->out[i]);
    }
    return rc;
}

/* The next run of written elements at or after *from: 1, or 0 when there is none. */
static int next_written(const TimedOutputs *r, int output, size_t *from, size_t *end)
{
    size_t size = dtype_size(r->task->outputs[output].dtype), first = *from * size, last;
    if (!r->ops->prediction->written(r->device, r->outputs[output], SIZE_MAX, &first, &last))
        return 0;
    *from = (first + size - 1) / size;
    *end = last / size > *from ? last / size : *from;
    return 1;
}

/* The written elements of an output. Adds their number to *compared. */
static int compare_written(const TimedContents *c, const TimedOutputs *r, int i, int64_t *compared,
                           Fault *f)
{
    const TaskTensor *y = &r->task->outputs[i];
    size_t size = dtype_size(y->dtype), all = c->test.output_bytes[i] / size, n = 0, end;
    unsigned char got[READ];
    TaskDifference d = {0};
    Error message;
    for (size_t at = 0; next_written(r, i, &at, &end); at = end + !(end - at)) n += end - at;
    TaskComparison with = case_comparison(&c->test, i);
    with.by.atol *= shortened_share((double)n, (double)all);
    for (size_t at = 0; next_written(r, i, &at, &end); at = end + !(end - at))
        for (size_t some; at < end; at += some) {
            some = end - at < READ / size ? end - at : READ / size;
            if (r->ops->read(r->device, r->outputs[i] + at * size, got, some * size, &f->error))
                return -1;
            task_differences(&with, got, c->kept[i] + at, at, some, &d);
        }
    *compared += (int64_t)n;
    if (!d.bad) return 0;
    task_difference_text(&with, &d, &message);
    fault_set(f, OUTCOME_WRONG_RESULT, 0, "%s, %zu elements: %s", r->where, n, message.text);
    return 1;
}

static int compare_whole(TimedContents *c, const TimedOutputs *r, int64_t *compared, Fault *f)
{
    Task *t = r->task;
    Gathered g = {.w = *c->test.workload};
    int rc = 0;
    if (!c->is_whole) {
        rc = expect_gathered(c, t, &g, &f->error);
        forget_wide(c);
        swap_kept(c, &g);
        c->is_whole = !rc;
    }
    for (int i = 0; i < t->n_outputs; i++) free(g.out[i]);
    for (int i = 0; i < t->n_outputs && !rc; i++)
        if (r->comparable[i]) rc = compare_written(c, r, i, compared, f);
    return rc;
}

size_t timed_whole_bytes(const TimedContents *c)
{
    size_t bytes = 0;
    const Task *t = c->test.task;
    for (int i = 0; i < t->n_outputs && c->is_whole; i++)
        bytes += c->test.output_bytes[i] / dtype_size(t->outputs[i].dtype) * sizeof(double);
    return bytes;
}

void timed_forget_whole(TimedContents *c)
{
    for (int i = 0; i < c->test.task->n_outputs && c->is_whole; i++) {
        free(c->kept[i]);
        c->kept[i] = NULL;
    }
    c->is_whole = 0;
}

int timed_compares_all(const Task *t, const unsigned char *comparable)
{
    for (int i = 0; i < t->n_outputs; i++)
        if (!comparable[i] || (!t->graph && t->rotates >= 0 && !task_rotates(t, &t->outputs[i])))
            return 0;
    return 1;
}

/* Whole positions of half types tell more than elements alone, which have no limits of their own. */
static int has_limits(const Task *t)
{
    Dtype d = t->outputs[0].dtype;
    return d == DTYPE_F16 || d == DTYPE_BF16;
}

int timed_compare(TimedContents *c, const TimedOutputs *r, int64_t *positions, Fault *f)
{
    Task *t = r->task;
    const Workload *w = c->test.workload;
    int costly;
    int64_t limit = max_positions(t, w, &costly);
    *positions = 0;
    if (c->by_elements) {
        int rc = timed_elements_compare(c, r, positions, f);
        if (rc || (*positions && (t->graph ? costly || !has_limits(t) : !costly))) return rc;
    }
    if (*positions && !limit) return 0;
    if (c->shared && !*positions && is_whole(t, w)) return compare_whole(c, r, positions, f);
    if (!limit || (costly && !c->shared) || !r->comparable[0]) return 0;
    Span *spans;
    Gathered g = {.w = *w, .at = memory_array((size_t)limit, sizeof *g.at)};
    int64_t n = spans_find(r, 0, c->test.output_bytes[0] / (size_t)w->axis[t->rotates], &spans);
    g.n = spans_choose(spans, n, &(SpanChoice){limit, 1, c->test.seed}, g.at);
    g.w.axis[t->rotates] = g.n;
    int rc = g.n ? compare_gathered(c, r, &g, costly, f) : 0;
    if (!rc && !*positions) *positions = g.n;
    free(spans);
    free(g.at);
    return rc;
}
