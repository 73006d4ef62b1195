/* How many elements are compared follows from what sixteen of them read. */
#include "eval/judge/contents/timed_elements.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/judge/contents/second_look.h"
#include "eval/judge/contents/shortened.h"
#include "eval/judge/contents/spans.h"
#include "tasks/graph/demand.h"
#include "tasks/task_graph.h"

enum { PROBED = 16, FEW = 8, MOST = 1 << 14, READ = 64 /* bytes */ };

/* TELLS: a tolerance below this share of the elements' spread tells right results from wrong ones.
 * FLOAT_ERROR: the largest error of float32 beside TF32, relative to the largest element or to 1. Without it,
 * elements that all lie where a function is nearly zero would have no tolerance (2026-11-30). */
static const double TELLS = 0.01, FLOAT_ERROR = 0x1p-13;

/* Elements that operators may read for all that are compared; for PROBED of them; for two. And those in
 * memory at a time. */
static const double usual_work = 1.6e7, probed_work = 1e8, costly_work = 6e8,
                    most_elements = 1 << 26;

/* The chosen elements of each output, and their expected values. */
typedef struct {
    int n_outputs;
    int64_t n[GRAPH_MAX_OUTPUTS], *at[GRAPH_MAX_OUTPUTS];
    double *value[GRAPH_MAX_OUTPUTS];
} Chosen;

struct TimedElements {
    GraphBound *bound;
    int can;     /* 0: unknown; 1: they can be computed; -1: they cannot */
    Chosen kept; /* costly ones */
};

static void chosen_release(Chosen *k)
{
    for (int i = 0; i < k->n_outputs; i++) free(k->at[i]), free(k->value[i]);
    memset(k, 0, sizeof *k);
}

void timed_elements_forget(TimedContents *c)
{
    struct TimedElements *e = c->elements;
    if (!e) return;
    chosen_release(&e->kept);
    graph_bound_free(e->bound);
    free(e);
    c->elements = NULL;
}

static int fetch(void *of, int input, int64_t from, int64_t n, double *dst, Error *err)
{
    return timed_fetch(of, input, from, n, dst, err);
}

static int hold(void *of, int input, int64_t from, int64_t n, const float **all, Error *err)
{
    return timed_hold(of, input, from, n, all, err);
}

DemandInputs timed_inputs(TimedContents *c)
{
    return (DemandInputs){c, fetch, hold};
}

static int open_elements(TimedContents *c, Error *err)
{
    if (c->elements) return 0;
    c->elements = memory_alloc(sizeof *c->elements);
    memset(c->elements, 0, sizeof *c->elements);
    return task_graph_bind(c->task, c->test.workload, &c->elements->bound, err);
}

/* As graph_demand. dry: what it takes alone. */
static int demand(TimedContents *c, const Chosen *k, int dry, double *work, Error *err)
{
    DemandedOutput output[GRAPH_MAX_OUTPUTS];
    Demand d = {.b = c->elements->bound,
                .inputs = {c, fetch, hold},
                .output = output,
                .dry = dry,
                .max_work = *work,
                .max_elements = most_elements};
    for (int i = 0; i < k->n_outputs; i++)
        output[i] = (DemandedOutput){k->n[i], k->at[i], k->value[i]};
    int rc = graph_demand(&d, err);
    *work = d.work;
    return rc;
}

int timed_elements_can(TimedContents *c)
{
    Chosen last = {.n_outputs = c->task->n_outputs};
    int64_t at[GRAPH_MAX_OUTPUTS];
    double work = costly_work;
    Error ignored;
    if (!c->by_elements || open_elements(c, &ignored)) return 0;
    if (c->elements->can) return c->elements->can > 0;
    for (int i = 0; i < last.n_outputs; i++) {
        size_t size = dtype_size(c->task->outputs[i].dtype);
        at[i] = (int64_t)(c->test.output_bytes[i] / size) - 1;
        last.at[i] = &at[i];
        last.n[i] = at[i] >= 0;
    }
    c->elements->can = demand(c, &last, 1, &work, &ignored) ? -1 : 1;
    return c->elements->can > 0;
}

/* The written spans of each output that can be compared. */
typedef struct {
    Span *spans[GRAPH_MAX_OUTPUTS];
    int64_t n[GRAPH_MAX_OUTPUTS];
    int outputs, used; /* used: with spans */
} Written;

static void find_written(const TimedContents *c, const TimedOutputs *r, Written *w)
{
    memset(w, 0, sizeof *w);
    w->outputs = c->task->n_outputs;
    for (int i = 0; i < w->outputs; i++) {
        if (!r->comparable[i]) continue;
        w->n[i] = spans_find(r, i, dtype_size(c->task->outputs[i].dtype), &w->spans[i]);
        w->used += w->n[i] > 0;
    }
}

/* Elements of an output's last dimension. */
static int64_t row_length(const TimedContents *c, int output)
{
    const TaskTensor *y = &c->task->outputs[output];
    int64_t shape[TASK_MAX_RANK];
    if (!y->rank || task_shape(c->task, c->test.workload, y, shape, NULL)) return 1;
    return shape[y->rank - 1];
}

static void choose(const TimedContents *c, const Written *w, int64_t limit, Chosen *k)
{
    chosen_release(k);
    k->n_outputs = w->outputs;
    int64_t each = w->used ? limit / w->used : 0;
    for (int i = 0; i < w->outputs; i++) {
        if (!w->n[i]) continue;
        k->at[i] = memory_array((size_t)(each < 2 ? 2 : each), sizeof **k->at);
        const SpanChoice of = {each < 2 ? 2 : each, row_length(c, i), c->test.seed + (uint64_t)i};
        k->n[i] = spans_choose(w->spans[i], w->n[i], &of, k->at[i]);
        k->value[i] = memory_array((size_t)k->n[i] + 1, sizeof(double));
    }
}

static int is_kept(const Chosen *a, const Chosen *b)
{
    int same = a->n_outputs == b->n_outputs;
    for (int i = 0; i < a->n_outputs && same; i++)
        same = a->n[i] == b->n[i] &&
               (!a->n[i] || !memcmp(a->at[i], b->at[i], (size_t)a->n[i] * sizeof **a->at));
    return same;
}

static void copy_chosen(const Chosen *from, Chosen *to)
{
    to->n_outputs = from->n_outputs;
    for (int i = 0; i < from->n_outputs; i++) {
        if (!from->n[i]) continue;
        to->n[i] = from->n[i];
        to->at[i] = memory_array((size_t)to->n[i], sizeof **to->at);
        to->value[i] = memory_array((size_t)to->n[i] + 1, sizeof(double));
        memcpy(to->at[i], from->at[i], (size_t)to->n[i] * sizeof **to->at);
    }
}

/* Adds to at[n] the written elements of [first, end). Returns how many there are then. */
static int64_t add_written(const Written *w, int output, int64_t first, int64_t end, int64_t *at,
                           int64_t n)
{
    for (int64_t i = 0; i < w->n[output]; i++) {
        const Span *s = &w->spans[output][i];
        int64_t from = (int64_t)s->from > first ? (int64_t)s->from : first,
                to = (int64_t)s->end < end ? (int64_t)s->end : end;
        while (from < to) at[n++] = from++;
    }
    return n;
}

/* Makes of each chosen element what is written of its row, whose elements often share what is dear. Returns 0
 * where the rows have no others. */
static int choose_rows(const TimedContents *c, const Written *w, Chosen *k)
{
    int more = 0;
    for (int i = 0; i < k->n_outputs; i++) {
        int64_t length = row_length(c, i), n = 0, end = 0;
        if (!k->n[i] || length < 2 || k->n[i] * length > MOST) continue;
        int64_t *at = memory_array((size_t)(k->n[i] * length) + 1, sizeof *at);
        for (int64_t e = 0; e < k->n[i]; e++) {
            int64_t first = k->at[i][e] / length * length;
            if (first < end) continue;
            end = first + length;
            n = add_written(w, i, first, end, at, n);
        }
        more |= n > k->n[i];
        free(k->at[i]), free(k->value[i]);
        k->at[i] = at;
        k->n[i] = n;
        k->value[i] = memory_array((size_t)n + 1, sizeof(double));
    }
    return more;
}

/* Computes the chosen elements, or takes the values that are kept. 1: they cost too much. */
static int expect_kept(TimedContents *c, Chosen *k, Error *err)
{
    Chosen *kept = &c->elements->kept;
    double work = costly_work;
    if (!is_kept(k, kept)) {
        int rc = demand(c, k, 0, &work, err);
        if (rc) return rc;
        chosen_release(kept);
        *kept = *k;
        memset(k, 0, sizeof *k);
        copy_chosen(kept, k);
    }
    for (int i = 0; i < k->n_outputs; i++)
        if (k->n[i]) memcpy(k->value[i], kept->value[i], (size_t)k->n[i] * sizeof(double));
    return 0;
}

/* The rows of two elements of an output, or the two alone. 1: they cost too much. */
static int expect_pair(TimedContents *c, const Written *w, Chosen *k, Error *err)
{
    if (!c->shared) return 1;
    choose(c, w, 2 * w->used, k);
    int more = choose_rows(c, w, k), rc = expect_kept(c, k, err);
    if (rc <= 0 || !more) return rc;
    choose(c, w, 2 * w->used, k);
    return expect_kept(c, k, err);
}

/* Chooses elements and computes them. 1: none, since they cost too much. */
static int expect(TimedContents *c, const Written *w, Chosen *k, Error *err)
{
    double work = probed_work;
    choose(c, w, PROBED, k);
    int rc = demand(c, k, 1, &work, err);
    if (rc > 0) return expect_pair(c, w, k, err);
    double limit = fmin(MOST, PROBED * usual_work / fmax(work, 1));
    for (int64_t n = (int64_t)fmax(PROBED, limit); !rc; n = n / 2 > PROBED ? n / 2 : PROBED) {
        choose(c, w, n, k);
        work = n > PROBED ? 2 * usual_work : probed_work;
        rc = demand(c, k, 0, &work, err);
        if (rc <= 0 || n <= PROBED) return rc;
        rc = 0;
    }
    return rc;
}

/* Elements side by side are read together. */
static int add_differences(const TimedOutputs *r, const Chosen *k, const TaskComparison *with,
                           TaskDifference *d, Error *err)
{
    int i = with->output;
    int64_t size = (int64_t)dtype_size(r->task->outputs[i].dtype), most = READ / size;
    unsigned char got[READ];
    memset(d, 0, sizeof *d);
    for (int64_t from = 0, end; from < k->n[i]; from = end) {
        int64_t at = k->at[i][from];
        for (end = from + 1;
             end < k->n[i] && end - from < most && k->at[i][end] == at + end - from;)
            end++;
        if (r->ops->read(r->device, r->outputs[i] + (size_t)(at * size), got,
                         (size_t)((end - from) * size), err))
            return -1;
        task_differences(with, got, k->value[i] + from, (size_t)at, (size_t)(end - from), d);
    }
    return 0;
}

/* The least tolerance that tells of these elements. */
static double narrow_of(const double *want, int64_t n)
{
    double most = 1;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(want[i]));
    return fmax(TELLS * task_spread(want, (size_t)n), FLOAT_ERROR * most);
}

/* Where eager PyTorch may use TF32, a tolerance that is wide beside the spread of the elements is what a few
 * need elsewhere, whose sums cancel: elements that differ by a hundredth of the spread may err as much as
 * honest kernels do there. */
static int compare_narrow(const SecondLook *wide, const TimedOutputs *r, const Chosen *k,
                          TaskComparison *with, TaskDifference *d, Error *err)
{
    int i = with->output;
    SecondLook look = *wide;
    double narrow = narrow_of(k->value[i], k->n[i]);
    if (!r->task->tf32 || r->task->outputs[i].dtype != DTYPE_F32 || k->n[i] < FEW ||
        !(narrow < with->by.atol))
        return 0;
    with->by.atol = look.by.atol = narrow;
    if (add_differences(r, k, with, d, err)) return -1;
    if (!d->bad) return 0;
    int within = second_look_narrow(&look, d, err);
    return within < 0 ? -1 : !within;
}

static int compare_output(TimedContents *c, const TimedOutputs *r, const Chosen *k, int i, Fault *f)
{
    double all = (double)(c->test.output_bytes[i] / dtype_size(r->task->outputs[i].dtype));
    TaskComparison with = case_comparison(&c->test, i);
    TaskDifference d;
    Error message;
    with.by.atol *= shortened_share((double)k->n[i], all);
    if (add_differences(r, k, &with, &d, &f->error)) return -1;
    const DemandInputs inputs = timed_inputs(c);
    const SecondLook look = {case_of(&c->test), i,      with.by, (size_t)k->n[i], 0,
                             (size_t)all,       &inputs};
    int wrong = d.bad > 0;
    if (!r->task->graph) {
        /* The errors of honest kernels are known for graphs alone. */
    } else if (d.bad) {
        int within = second_look(&look, &d, &f->error);
        wrong = within < 0 ? -1 : !within;
    } else {
        wrong = compare_narrow(&look, r, k, &with, &d, &f->error);
    }
    if (wrong <= 0) return wrong;
    task_difference_text(&with, &d, &message);
    fault_set(f, OUTCOME_WRONG_RESULT, 0, "%s, %lld elements: %s", r->where, (long long)k->n[i],
              message.text);
    return 1;
}

int timed_elements_compare(TimedContents *c, const TimedOutputs *r, int64_t *compared, Fault *f)
{
    Chosen k = {0};
    Written w;
    *compared = 0;
    if (open_elements(c, &f->error)) return -1;
    find_written(c, r, &w);
    int rc = 0, left_out = w.used ? expect(c, &w, &k, &f->error) : 1;
    for (int i = 0; i < k.n_outputs && !left_out && !rc; i++) {
        if (k.n[i]) rc = compare_output(c, r, &k, i, f);
        *compared += k.n[i];
    }
    if (rc) *compared = 0;
    chosen_release(&k);
    for (int i = 0; i < w.outputs; i++) free(w.spans[i]);
    return left_out < 0 ? -1 : rc;
}
