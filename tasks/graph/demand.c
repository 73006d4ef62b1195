/* Needed elements are bits of an array, in pages of which most are empty; their values lie at their places,
 * in memory of which untouched pages cost nothing. */
#include "tasks/graph/demand.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_element.h"
#include "ops/op_strided.h"
#include "tasks/graph/demand_program.h"

/* Elements of which one in WHOLE_SHARE is needed are computed whole, in arrays from LEAST_WHOLE on. CHUNK:
 * elements that one thread computes at a time. TELLING: elements that tell what the others need, but
 * for this factor: UNLIKE. FAR: elements so far apart cost as many near ones. Where one in DENSE is needed,
 * large pages take less time than many. */
enum {
    WHOLE_SHARE = 3,
    DENSE = 8,
    LEAST_WHOLE = 4096,
    CHUNK = 256,
    TELLING = 1024,
    UNLIKE = 2,
    KNOWN_MOST = 1 << 22,
    FAR = 64,
    FAR_COST = 6,
    PAGE = 64 /* words of bits */
};

typedef struct {
    uint64_t **page; /* NULL: none is needed, or all are; [k] NULL: none of the page is */
    int64_t pages;
    int all;
    int64_t n; /* bits */
    int last;  /* the step after which it is read no more */
    double *value;
    int is_held; /* floats, as the input has them */
    const float *held;
} Array;

typedef struct {
    Demand *d;
    Program p;
    Array *array;
    double **known;  /* by array: of an input of integers, all */
    const Step *now; /* whose needs are named */
    int too_much;
} Run;

static void spend(Run *r, double work)
{
    r->d->work += work;
    if (r->d->work > r->d->max_work) r->too_much = 1;
}

/* ---- backward: what is needed ---- */

static void forget_bits(Array *a)
{
    for (int64_t k = 0; k < a->pages; k++) free(a->page[k]);
    free(a->page);
    a->page = NULL;
    a->pages = 0;
}

static void need_all(Run *r, int array)
{
    forget_bits(&r->array[array]);
    r->array[array].all = 1;
}

static uint64_t *word_of(Array *a, int64_t word)
{
    uint64_t **page = &a->page[word / PAGE];
    if (!*page) *page = memory_array(PAGE, sizeof **page);
    return *page + word % PAGE;
}

static void set_bit(Array *a, int64_t at)
{
    uint64_t *word = word_of(a, at / 64), bit = UINT64_C(1) << at % 64;
    a->n += !(*word & bit);
    *word |= bit;
}

/* Whole words at a time. */
static void set_run(Array *a, int64_t first, int64_t n)
{
    while (n > 0) {
        int64_t from = first % 64, some = 64 - from < n ? 64 - from : n;
        uint64_t mask = (some == 64 ? ~UINT64_C(0) : (UINT64_C(1) << some) - 1) << from,
                 *word = word_of(a, first / 64);
        a->n += __builtin_popcountll(mask & ~*word);
        *word |= mask;
        first += some, n -= some;
    }
}

static void need(Run *r, int array, int64_t first, int64_t step, int64_t n)
{
    Array *a = &r->array[array];
    spend(r, (double)n * (step >= FAR ? FAR_COST : 1));
    if (r->too_much || a->all || n < 1) return;
    if (!a->page) {
        a->pages = r->p.extent[array] / 64 / PAGE + 1;
        a->page = memory_array((size_t)a->pages, sizeof(uint64_t *));
    }
    if (step == 1)
        set_run(a, first, n);
    else
        for (int64_t i = 0; i < (step ? n : 1); i++) set_bit(a, first + i * step);
}

static void add_need(void *of, int tensor, int64_t first, int64_t step, int64_t n)
{
    Run *r = of;
    need(r, r->now->in[tensor], first, step, n);
}

static void need_again(void *of, int64_t n)
{
    spend(of, (double)n);
}

/* The places of the bits, in order. The caller frees. */
static int64_t *list_of(const Run *r, int array)
{
    const Array *a = &r->array[array];
    int64_t *at = memory_grow(NULL, (size_t)a->n + 1, sizeof *at), n = 0;
    for (int64_t k = 0; k < a->pages; k++)
        for (int64_t w = 0; a->page[k] && w < PAGE; w++)
            for (uint64_t left = a->page[k][w]; left; left &= left - 1)
                at[n++] = (k * PAGE + w) * 64 + __builtin_ctzll(left);
    return at;
}

typedef struct {
    int64_t row, at;
} InRow;

static int by_row(const void *a, const void *b)
{
    const InRow *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int are_in_order(const int64_t *rows, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (rows[i] < rows[i - 1]) return 0;
    return 1;
}

/* The needed elements of a call's result, by row. rows: of each; NULL where there are none. */
static int64_t *elements_of(const Run *r, const Step *s, int result, int64_t **rows)
{
    const OpElements *e = s->call->op->elements;
    int64_t *at = list_of(r, s->out + result), n = r->array[s->out + result].n;
    *rows = NULL;
    if (!e->rows) return at;
    *rows = memory_array((size_t)n + 1, sizeof **rows);
    e->rows(s->call, result, at, n, *rows);
    if (are_in_order(*rows, n)) return at;
    InRow *sorted = memory_grow(NULL, (size_t)n + 1, sizeof *sorted);
    for (int64_t i = 0; i < n; i++) sorted[i] = (InRow){(*rows)[i], at[i]};
    qsort(sorted, (size_t)n, sizeof *sorted, by_row);
    for (int64_t i = 0; i < n; i++) at[i] = sorted[i].at, (*rows)[i] = sorted[i].row;
    free(sorted);
    return at;
}

static int is_needed(const Array *a)
{
    return a->all || a->n;
}

/* Makes the results of a call whole where single elements will not do. */
static int is_whole(Run *r, const Step *s)
{
    int whole = !s->call->op->elements, needed = 0;
    for (int i = 0; i < s->call->n_results; i++) {
        const Array *a = &r->array[s->out + i];
        int64_t extent = r->p.extent[s->out + i];
        needed |= is_needed(a);
        whole |= a->all || (extent >= LEAST_WHOLE && a->n > extent / WHOLE_SHARE);
    }
    for (int i = 0; whole && needed && i < s->call->n_results; i++) need_all(r, s->out + i);
    return whole && needed;
}

/* Are the call's arguments inputs, of which nothing else is needed? */
static int reads_inputs(const Run *r, const Step *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] >= r->d->b->graph->n_inputs) return 0;
    return 1;
}

/* The needs of listed elements of a result, which have no rows to share. What the first ones need tells
 * early that all need too much, and, where nothing is computed, how much. */
static void needs_of_list(Run *r, const Step *s, const OpSome *of, const OpNeeds *to)
{
    const OpElements *e = s->call->op->elements;
    int64_t first = !e->rows && of->n > TELLING ? TELLING : of->n;
    double before = r->d->work, all;
    e->needs(s->call, &(OpSome){of->result, first, of->at}, to);
    if (first == of->n || r->too_much) return;
    all = (r->d->work - before) / (double)first * (double)of->n;
    if (all > UNLIKE * (r->d->max_work - before))
        r->too_much = 1;
    else if (r->d->dry && reads_inputs(r, s))
        spend(r, all - (r->d->work - before));
    else
        e->needs(s->call, &(OpSome){of->result, of->n - first, of->at + first}, to);
}

static void needs_of_call(Run *r, const Step *s)
{
    const double *known[OP_MAX_TENSORS];
    if (is_whole(r, s)) {
        OpCost cost = {0};
        Error ignored;
        cost.flops_alone = 1;
        if (op_flops(s->call, &cost.flops, &ignored)) cost.flops = 0;
        spend(r, cost.flops / 2);
        for (int i = 0; i < s->n_in; i++) {
            need_all(r, s->in[i]);
            spend(r, (double)r->p.extent[s->in[i]]);
        }
        return;
    }
    for (int i = 0; i < s->n_in; i++) known[i] = r->known[s->in[i]];
    r->now = s;
    for (int i = 0; i < s->call->n_results && !r->too_much; i++) {
        int64_t *rows;
        if (!r->array[s->out + i].n) continue;
        int64_t *at = elements_of(r, s, i, &rows);
        needs_of_list(r, s, &(OpSome){i, r->array[s->out + i].n, at},
                      &(OpNeeds){r, add_need, need_again, known});
        free(at), free(rows);
    }
}

static int64_t view_place(const OpWalk *w, const OpTensor *view, int64_t at)
{
    int64_t place[WALK_OPERANDS];
    walk_place(w, at, place);
    return view->offset + place[0];
}

static void open_view(OpWalk *w, const OpTensor *view)
{
    walk_open(w, view->rank, view->size, (const int64_t(*)[OP_MAX_RANK]) & view->stride, 1);
}

static void needs_of_move(Run *r, const Step *s)
{
    const Array *y = &r->array[s->out];
    OpWalk w;
    if (y->all ||
        (r->p.extent[s->out] >= LEAST_WHOLE && y->n > r->p.extent[s->out] / WHOLE_SHARE)) {
        need_all(r, s->out);
        for (int i = 0; i < s->n_in; i++) need_all(r, s->in[i]);
        spend(r, (double)r->p.extent[s->out]);
        return;
    }
    int64_t *at = list_of(r, s->out);
    if (s->kind == STEP_COPY) open_view(&w, &s->view);
    for (int64_t k = 0; k < y->n; k++) {
        int64_t part = s->kind == STEP_OVERLAY ? program_shows(&s->view, at[k]) : -1;
        if (s->kind == STEP_COPY)
            need(r, s->in[0], view_place(&w, &s->view, at[k]), 1, 1);
        else
            need(r, s->in[part >= 0], part >= 0 ? part : at[k], 1, 1);
    }
    free(at);
}

/* Indices that are inputs of the graph are looked up. */
static int load_known(Run *r, Error *err)
{
    const GraphBound *b = r->d->b;
    for (int i = 0; i < b->graph->n_inputs; i++) {
        Dtype d = b->values[i].tensor.dtype;
        int64_t n = r->p.extent[i];
        if ((d != DTYPE_I32 && d != DTYPE_I64) || n > KNOWN_MOST) continue;
        r->known[i] = memory_grow(NULL, (size_t)n + 1, sizeof(double));
        if (r->d->inputs.fetch(r->d->inputs.of, i, 0, n, r->known[i], err)) return -1;
    }
    return 0;
}

/* Can the step read floats? */
static int takes_held(const Run *r, const Step *s)
{
    int takes =
        s->kind == STEP_CALL && s->call->op->elements && s->call->op->elements->compute_mixed;
    for (int i = 0; takes && i < s->call->n_results; i++) takes = !r->array[s->out + i].all;
    return takes;
}

/* Inputs of floats that only such steps read are held. */
static void find_held(Run *r)
{
    const GraphBound *b = r->d->b;
    for (int i = 0; i < b->graph->n_inputs; i++)
        r->array[i].is_held = r->d->inputs.hold && b->values[i].tensor.dtype == DTYPE_F32;
    for (int i = 0; i < r->p.n_steps; i++)
        for (int k = 0; k < r->p.step[i].n_in; k++)
            r->array[r->p.step[i].in[k]].is_held &= takes_held(r, &r->p.step[i]);
    for (int i = 0; i < b->graph->n_outputs; i++) r->array[r->p.output[i]].is_held = 0;
}

static void find_needs(Run *r)
{
    const Demand *d = r->d;
    for (int i = 0; i < d->b->graph->n_outputs; i++)
        for (int64_t k = 0; k < d->output[i].n; k++)
            need(r, r->p.output[i], d->output[i].at[k], 1, 1);
    for (int i = r->p.n_steps - 1; i >= 0 && !r->too_much; i--) {
        const Step *s = &r->p.step[i];
        int needed = 0, results = s->kind == STEP_CALL ? s->call->n_results : 1;
        for (int k = 0; k < results; k++) needed |= is_needed(&r->array[s->out + k]);
        if (needed && s->kind == STEP_CALL)
            needs_of_call(r, s);
        else if (needed)
            needs_of_move(r, s);
    }
    find_held(r);
    double elements = 0;
    for (int i = 0; i < r->p.n_arrays; i++)
        if (!r->array[i].is_held)
            elements += (double)(r->array[i].all ? r->p.extent[i] : r->array[i].n);
    if (elements > d->max_elements) r->too_much = 1;
}

/* ---- forward: values ---- */

static void make_room(Run *r, int array)
{
    Array *a = &r->array[array];
    if (a->value) return;
    a->value = memory_sparse((size_t)r->p.extent[array] + 1, sizeof(double));
    if (a->all || DENSE * a->n >= r->p.extent[array])
        memory_huge(a->value, (size_t)r->p.extent[array] * sizeof(double));
}

static void drop_room(Run *r, int array)
{
    Array *a = &r->array[array];
    memory_sparse_free(a->value, (size_t)r->p.extent[array] + 1, sizeof(double));
    a->value = NULL;
}

static int fetch_run(Run *r, int i, int64_t first, int64_t n, Error *err)
{
    const DemandInputs *from = &r->d->inputs;
    Array *a = &r->array[i];
    if (a->is_held) return from->hold(from->of, i, first, n, &a->held, err);
    return from->fetch(from->of, i, first, n, a->value + first, err);
}

static int fetch_input(Run *r, int i, Error *err)
{
    Array *a = &r->array[i];
    if (!is_needed(a)) return 0;
    if (!a->is_held) make_room(r, i);
    if (a->all) return fetch_run(r, i, 0, r->p.extent[i], err);
    for (int64_t k = 0; k < a->pages; k++)
        for (int w = 0, end; a->page[k] && w < PAGE; w = end) {
            const uint64_t *word = a->page[k];
            for (end = w + 1; word[w] && end < PAGE && word[end];) end++;
            if (!word[w]) continue;
            int64_t first = (k * PAGE + w) * 64, last = (k * PAGE + end) * 64;
            if (last > r->p.extent[i]) last = r->p.extent[i];
            if (fetch_run(r, i, first, last - first, err)) return -1;
        }
    return 0;
}

/* The elements [from, to) of a list. */
typedef struct {
    const Step *s;
    const double *const *in;
    const OpNumbers *mixed; /* NULL: no argument is of floats */
    const int64_t *at;
    int result;
    double *value; /* the array */
} Part;

static void compute_part(const Part *p, int64_t from, int64_t to)
{
    double y[CHUNK], *values = to - from > CHUNK ? NULL : y;
    if (!values) values = memory_grow(NULL, (size_t)(to - from), sizeof *values);
    const OpElements *e = p->s->call->op->elements;
    const OpSome some = {p->result, to - from, p->at + from};
    if (p->mixed)
        e->compute_mixed(p->s->call, p->mixed, &some, values);
    else
        e->compute(p->s->call, p->in, &some, values);
    for (int64_t k = from; k < to; k++) p->value[p->at[k]] = values[k - from];
    if (values != y) free(values);
}

/* Parts end where a row does. */
static int64_t *parts_of(const int64_t *rows, int64_t n, int64_t size, int64_t *parts)
{
    int64_t *from = memory_grow(NULL, (size_t)(n / size) + 2, sizeof *from), k = 0;
    *parts = 0;
    while (k < n) {
        from[(*parts)++] = k;
        k = k + size < n ? k + size : n;
        while (rows && k < n && rows[k] == rows[k - 1]) k++;
    }
    from[*parts] = n;
    return from;
}

static void compute_elements(Run *r, const Step *s, int result, const double *const *in)
{
    int64_t *rows, *at, n = r->array[s->out + result].n, parts;
    OpNumbers mixed[OP_MAX_TENSORS];
    int is_mixed = 0;
    for (int i = 0; i < s->n_in; i++) {
        mixed[i] = (OpNumbers){in[i], r->array[s->in[i]].held};
        is_mixed |= r->array[s->in[i]].is_held;
    }
    at = elements_of(r, s, result, &rows);
    int64_t size = n / 64 < 1 ? 1 : n / 64 > CHUNK ? CHUNK : n / 64;
    int64_t *from = parts_of(rows, n, size, &parts);
    const Part part = {s, in, is_mixed ? mixed : NULL, at, result, r->array[s->out + result].value};
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < parts; i++) compute_part(&part, from[i], from[i + 1]);
    free(from), free(at), free(rows);
}

static int compute_call(Run *r, const Step *s, Error *err)
{
    const double *in[OP_MAX_TENSORS];
    double *out[OP_MAX_RESULTS];
    int whole = 0, rc = 0;
    for (int i = 0; i < s->call->n_results; i++) whole |= r->array[s->out + i].all;
    for (int i = 0; i < s->n_in; i++) in[i] = r->array[s->in[i]].value;
    for (int i = 0; i < s->call->n_results; i++)
        if (whole || r->array[s->out + i].n) make_room(r, s->out + i);
    for (int i = 0; i < s->call->n_results; i++) out[i] = r->array[s->out + i].value;
    if (whole) rc = s->call->op->reference(s->call, in, out, err);
    for (int i = 0; i < s->call->n_results && !whole; i++)
        if (r->array[s->out + i].n) compute_elements(r, s, i, in);
    return rc;
}

static void compute_move(Run *r, const Step *s)
{
    Array *y = &r->array[s->out];
    const double *from = r->array[s->in[0]].value;
    OpWalk w;
    make_room(r, s->out);
    if (y->all && s->kind == STEP_COPY) {
        walk_gather(&s->view, from, y->value);
        return;
    }
    if (y->all) {
        memcpy(y->value, from, (size_t)r->p.extent[s->out] * sizeof(double));
        walk_scatter(&s->view, r->array[s->in[1]].value, y->value);
        return;
    }
    int64_t *at = list_of(r, s->out);
    if (s->kind == STEP_COPY) open_view(&w, &s->view);
    for (int64_t k = 0; k < y->n; k++) {
        int64_t part = s->kind == STEP_OVERLAY ? program_shows(&s->view, at[k]) : -1;
        y->value[at[k]] = s->kind == STEP_COPY ? from[view_place(&w, &s->view, at[k])]
                          : part >= 0          ? r->array[s->in[1]].value[part]
                                               : from[at[k]];
    }
    free(at);
}

static void find_last(Run *r)
{
    for (int i = 0; i < r->p.n_steps; i++)
        for (int k = 0; k < r->p.step[i].n_in; k++) r->array[r->p.step[i].in[k]].last = i;
    for (int i = 0; i < r->d->b->graph->n_outputs; i++)
        r->array[r->p.output[i]].last = r->p.n_steps;
}

static void release_after(Run *r, int step)
{
    const Step *s = &r->p.step[step];
    for (int k = 0; k < s->n_in; k++) {
        if (r->array[s->in[k]].last == step) drop_room(r, s->in[k]);
    }
}

static int compute(Run *r, Error *err)
{
    int rc = 0;
    for (int i = 0; i < r->d->b->graph->n_inputs && !rc; i++) rc = fetch_input(r, i, err);
    for (int i = 0; i < r->p.n_steps && !rc; i++) {
        const Step *s = &r->p.step[i];
        int needed = 0, results = s->kind == STEP_CALL ? s->call->n_results : 1;
        for (int k = 0; k < results; k++) needed |= is_needed(&r->array[s->out + k]);
        if (!needed) continue;
        if (s->kind == STEP_CALL)
            rc = compute_call(r, s, err);
        else
            compute_move(r, s);
        release_after(r, i);
    }
    for (int i = 0; i < r->d->b->graph->n_outputs && !rc; i++) {
        const DemandedOutput *y = &r->d->output[i];
        for (int64_t k = 0; k < y->n; k++) y->value[k] = r->array[r->p.output[i]].value[y->at[k]];
    }
    return rc;
}

int graph_demand(Demand *d, Error *err)
{
    Run r = {.d = d};
    d->work = 0;
    if (program_of(d->b, &r.p, err)) return -1;
    r.array = memory_array((size_t)r.p.n_arrays + 1, sizeof *r.array);
    r.known = memory_array((size_t)r.p.n_arrays + 1, sizeof *r.known);
    find_last(&r);
    int rc = load_known(&r, err);
    if (!rc) {
        find_needs(&r);
        rc = r.too_much ? 1 : d->dry ? 0 : compute(&r, err);
    }
    for (int i = 0; i < r.p.n_arrays; i++) {
        forget_bits(&r.array[i]);
        drop_room(&r, i);
        free(r.known[i]);
    }
    free(r.array), free(r.known);
    program_free(&r.p);
    return rc;
}
