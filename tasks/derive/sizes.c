/* Sizes of workloads, found by moves of one axis, or of two that are tied, which the graph accepts. */
#include "tasks/derive/sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"
#include "ops/row/op_norm.h"
#include "ops/row/op_softmax.h"
#include "tasks/graph/graph.h"

/* ---- the memory that the baseline's op lines take beside inputs and outputs ---- */

enum { KERNEL_TEXT_MAX = 1 << 20 };

typedef struct {
    double bytes;
    int last; /* node until which it is taken */
} Slot;

typedef struct {
    Slot *items;
    int n;
} Slots;

static void take(Slots *s, int node, double bytes, int last)
{
    Slot *best = NULL;
    for (int i = 0; i < s->n; i++) {
        Slot *x = &s->items[i];
        if (x->last >= node) continue;
        int fits = x->bytes >= bytes, best_fits = best && best->bytes >= bytes;
        if (!best || (fits && (!best_fits || x->bytes < best->bytes)) ||
            (!fits && !best_fits && x->bytes > best->bytes))
            best = x;
    }
    if (!best) {
        s->items = memory_grow(s->items, (size_t)s->n + 1, sizeof *s->items);
        best = &s->items[s->n++];
        best->bytes = 0;
    }
    if (best->bytes < bytes) best->bytes = bytes;
    best->last = last;
}

/* An operator without a plain kernel has no scratch that is known here. */
static void take_scratch(Slots *s, const OpCall *call, int node)
{
    Buffer text;
    Error ignored;
    buffer_init(&text, KERNEL_TEXT_MAX);
    OpPlain plain = {.source = &text};
    if (!op_plain(call, &plain, &ignored))
        for (int i = 0; i < plain.n_scratch; i++)
            take(s, node,
                 (double)plain.scratch[i].elements * (double)dtype_size(plain.scratch[i].dtype),
                 node);
    free(plain.launch);
    buffer_release(&text);
}

static double slots_bytes(const GraphBound *b)
{
    Slots s = {0};
    double total = 0;
    for (int node = 0; node < b->graph->n_nodes; node++) {
        if (!b->calls[node].live) continue;
        for (int i = 0; i < b->graph->n_values; i++) {
            const GraphValue *x = &b->values[i];
            if (x->node != node || x->base != i || x->last >= b->graph->n_nodes) continue;
            take(&s, node, (double)x->extent * (double)dtype_size(x->tensor.dtype), x->last);
        }
        if (!b->calls[node].view) take_scratch(&s, &b->calls[node].call, node);
    }
    for (int i = 0; i < s.n; i++) total += s.items[i].bytes;
    free(s.items);
    return total;
}

enum { MOVES = 4096, NEAR = 96, PASSES = 3 };
enum { SMALL_BATCH = 16, SOME_TERMS = 16 };
/* Where one token of wide layers is dear, four of them are measured as well: attention to one key tells
 * nothing of its errors (2026-11-30: an encoder layer of 1,024 columns in bfloat16). */
static const double DEARER = 5, MOST_DEAR = 3e8;

/* ---- estimates ---- */

int64_t sizes_call_terms(const GraphCall *c)
{
    int64_t in = 0, out = 1;
    OpCost cost;
    for (int i = 0; i < c->call.n_tensors; i++)
        if (op_elements(&c->call.tensor[i]) > in) in = op_elements(&c->call.tensor[i]);
    for (int i = 0; i < c->call.n_results; i++)
        if (op_elements(&c->call.result[i]) > out) out = op_elements(&c->call.result[i]);
    double terms = (double)in / (double)out;
    if (!op_cost(&c->call, &cost, NULL)) terms = fmax(terms, cost.flops / (double)out / 2);
    return terms < 1 ? 1 : (int64_t)terms;
}

static int is_run(const GraphCall *c)
{
    return c->live && !c->view;
}

int64_t sizes_terms(const GraphBound *b)
{
    int64_t largest = (int64_t)sizes_scan(b);
    for (int node = 0; node < b->graph->n_nodes; node++)
        if (is_run(&b->calls[node]) && sizes_call_terms(&b->calls[node]) > largest)
            largest = sizes_call_terms(&b->calls[node]);
    return largest;
}

double sizes_scan(const GraphBound *b)
{
    int64_t longest = 1;
    int dim;
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const OpCall *c = &b->calls[node].call;
        const OpTensor *x = &c->tensor[0];
        if (strcmp(c->op->name, "aten.cumsum.default") != 0 || !x->rank) continue;
        if (op_dim(c->arg[1].integer[0], x->rank, &dim, NULL)) continue;
        if (x->size[dim] > longest) longest = x->size[dim];
    }
    return (double)longest;
}

double sizes_flops(const GraphBound *b)
{
    double flops = 0;
    OpCost cost;
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const GraphCall *c = &b->calls[node];
        if (!is_run(c)) continue;
        for (int i = 0; i < c->call.n_results; i++)
            flops += 4 * (double)op_elements(&c->call.result[i]);
        for (int i = 0; i < c->call.n_tensors; i++)
            flops += (double)op_elements(&c->call.tensor[i]);
        if (!op_cost(&c->call, &cost, NULL)) flops += cost.flops;
    }
    return flops;
}

/* An estimate: thread instructions of the plain kernels of a bound graph. */
static double work_of(const GraphBound *b)
{
    double work = 0;
    OpCost cost;
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const GraphCall *c = &b->calls[node];
        if (!is_run(c)) continue;
        for (int i = 0; i < c->call.n_results; i++)
            work += 16 * (double)op_elements(&c->call.result[i]);
        if (!op_cost(&c->call, &cost, NULL)) work += 2 * cost.flops;
    }
    return work;
}

double sizes_bytes(const GraphBound *b)
{
    double bytes = 0;
    for (int i = 0; i < b->graph->n_values; i++) {
        const GraphValue *x = &b->values[i];
        if (x->base == i && (x->live || i < b->graph->n_inputs))
            bytes += (double)x->extent * (double)dtype_size(x->tensor.dtype);
    }
    return bytes;
}

/* A measure of sizes; -1: they do not fit. */
typedef double Measure(const GraphBound *b);

static double measure(const Derivation *v, const Sizes *s, Measure *m)
{
    GraphBound *b;
    if (derivation_bind(v, s, &b, NULL)) return -1;
    double x = m(b);
    graph_bound_free(b);
    return x;
}

double sizes_bytes_at(const Derivation *v, const Sizes *s)
{
    return measure(v, s, sizes_bytes);
}

static double terms(const GraphBound *b)
{
    return (double)sizes_terms(b);
}

/* Every tensor has at most 2^31 - 1 elements. */
static double largest_tensor(const GraphBound *b)
{
    double largest = 0;
    for (int i = 0; i < b->graph->n_values; i++)
        largest = fmax(largest, (double)op_elements(&b->values[i].tensor));
    return largest;
}

int sizes_affordable(const Derivation *v, const Sizes *s, double max_flops, Error *err)
{
    double flops = measure(v, s, sizes_flops);
    if (flops <= max_flops) return 0;
    return error_set(
        err, ERROR_LIMIT,
        "one execution takes %.1f Gflop at the smallest sizes that the graph allows, at "
        "most %.0f expected",
        flops / 1e9, max_flops / 1e9);
}

/* ---- halving ---- */

/* A smaller size that fits, nearest to half of it. */
static int halve(const Derivation *v, Sizes *s, int axis)
{
    int64_t half = s->at[axis] / 2, whole = s->at[axis];
    for (int64_t k = 0; k < NEAR; k++) {
        for (int side = 0; side < 2; side++) {
            Sizes t = *s;
            t.at[axis] = side ? half + k : half - k;
            if (t.at[axis] < 1 || t.at[axis] >= whole || (side && !k)) continue;
            if (derivation_fits(v, &t)) continue;
            *s = t;
            return 0;
        }
    }
    return -1;
}

/* Halves two axes at once, for sizes that are tied. */
static int halve_two(const Derivation *v, Sizes *s, int axis)
{
    for (int other = 0; other < v->draft.n_axes; other++) {
        Sizes t = *s;
        if (other == axis || t.at[axis] < 2 || t.at[other] < 2) continue;
        t.at[axis] /= 2;
        t.at[other] /= 2;
        if (derivation_fits(v, &t)) continue;
        *s = t;
        return 0;
    }
    return -1;
}

/* A batch axis is the first dimension of some input that is no parameter, and stands nowhere else. */
static int is_batch(const Derivation *v, int axis)
{
    int first = 0;
    for (int i = 0; i < v->draft.n_inputs; i++)
        for (int d = 0; d < v->inputs[i].rank; d++) {
            if (!word_in(v->inputs[i].shape[d], v->axes[axis].name)) continue;
            if (d || v->inputs[i].parameter || strcmp(v->inputs[i].shape[d], v->axes[axis].name))
                return 0;
            first = 1;
        }
    return first && v->draft.n_axes > 1;
}

/* Halves the best axis of those that are not stuck. batch: a batch axis first, while it is long. */
static int shrink(const Derivation *v, Sizes *s, int *stuck, int batch, Measure *m)
{
    for (;;) {
        int best = -1;
        double now = measure(v, s, m);
        for (int i = 0; i < v->draft.n_axes; i++) {
            if (stuck[i] || s->at[i] < 2) continue;
            if (batch && is_batch(v, i) && s->at[i] >= 2 * SMALL_BATCH) {
                best = i;
                break;
            }
            if (best < 0 || s->at[i] > s->at[best]) best = i;
        }
        if (best < 0) return -1;
        Sizes t = *s;
        int rc = halve(v, &t, best);
        if (rc) rc = halve_two(v, &t, best);
        if (!rc && measure(v, &t, m) < now) {
            *s = t;
            return 0;
        }
        stuck[best] = 1;
    }
}

int sizes_time(const Derivation *v, const Sizes *from, double max_bytes, Sizes *out, Error *err)
{
    int stuck[TASK_MAX_AXES] = {0};
    *out = *from;
    for (int moves = 0; moves < MOVES; moves++) {
        if (measure(v, out, sizes_bytes) <= max_bytes &&
            measure(v, out, slots_bytes) <= DERIVE_SLOT_BYTES &&
            measure(v, out, largest_tensor) < (double)INT32_MAX)
            return 0;
        if (shrink(v, out, stuck, 1, sizes_bytes)) break;
    }
    return error_set(err, ERROR_LIMIT,
                     "the tensors take %.1f GiB at the smallest sizes, at most %.1f are given",
                     measure(v, out, sizes_bytes) / (1 << 30), max_bytes / (1 << 30));
}

int sizes_small(const Derivation *v, const Sizes *from, double max_work, Sizes *out, Error *err)
{
    int stuck[TASK_MAX_AXES] = {0};
    *out = *from;
    if (derivation_fits(v, from))
        return error_set(err, ERROR_INVALID, "the timed sizes cannot be bound");
    for (int moves = 0; moves < MOVES && measure(v, out, work_of) > max_work; moves++)
        if (shrink(v, out, stuck, 0, work_of)) break;
    return 0;
}

/* ---- sums as long as those of the timed sizes ---- */

int64_t sizes_reduced(const GraphCall *c)
{
    Norm norm;
    Softmax softmax;
    const Op *op = c->call.op;
    if (!is_run(c)) return 1;
    if (op->plain == norm_plain && !norm_of(&c->call, &norm, NULL)) return norm.own ? norm.n : 1;
    if (op->plain == softmax_plain && !softmax_of(&c->call, &softmax, NULL)) return softmax.n;
    return sizes_call_terms(c);
}

/* What each node reduces at some sizes, and what one execution costs. */
typedef struct {
    Sizes at;
    int fits;
    double flops;
    int64_t length[GRAPH_MAX_NODES];
} Lengths;

static void lengths_of(const Derivation *v, const Sizes *s, Lengths *out)
{
    GraphBound *b;
    out->at = *s;
    out->fits = !derivation_bind(v, s, &b, NULL);
    if (!out->fits) return;
    for (int k = 0; k < b->graph->n_nodes; k++) out->length[k] = sizes_reduced(&b->calls[k]);
    out->flops = sizes_flops(b);
    graph_bound_free(b);
}

/* By axis: with the axis doubled, up to its size in `from`. */
static void lengths_doubled(const Derivation *v, const Sizes *from, const Lengths *now,
                            Lengths *wider)
{
    for (int i = 0; i < v->draft.n_axes; i++) {
        Sizes t = now->at;
        t.at[i] = 2 * t.at[i] < from->at[i] ? 2 * t.at[i] : from->at[i];
        wider[i].fits = 0;
        if (t.at[i] != now->at.at[i]) lengths_of(v, &t, &wider[i]);
    }
}

/* The first of the axes with which a node that reduces too few reduces more; NULL: there is none. */
static const Lengths *wider_of(const Derivation *v, const Lengths *whole, double max_flops,
                               const Lengths *now, const Lengths *wider)
{
    for (int node = 0; node < v->graph->n_nodes; node++) {
        if (now->length[node] >= SOME_TERMS || now->length[node] >= whole->length[node]) continue;
        for (int i = 0; i < v->draft.n_axes; i++)
            if (wider[i].fits && wider[i].length[node] > now->length[node] &&
                wider[i].flops <= max_flops)
                return &wider[i];
    }
    return NULL;
}

void sizes_widen(const Derivation *v, const Sizes *from, double max_flops, Sizes *s)
{
    Lengths *whole = memory_array(2 + TASK_MAX_AXES, sizeof *whole), *now = whole + 1,
            *wider = whole + 2;
    const Lengths *next = now;
    lengths_of(v, from, whole);
    lengths_of(v, s, now);
    if (now->fits) max_flops = fmax(max_flops, fmin(DEARER * now->flops, MOST_DEAR));
    for (int moves = 0; moves < MOVES && next && whole->fits && now->fits; moves++) {
        *s = now->at;
        lengths_doubled(v, from, now, wider);
        next = wider_of(v, whole, max_flops, now, wider);
        if (next) *now = *next;
    }
    free(whole);
}

int sizes_reduce_alike(const Derivation *v, const Sizes *a, const Sizes *b)
{
    Lengths *of = memory_array(2, sizeof *of);
    size_t bytes = sizeof *of->length * (size_t)v->graph->n_nodes;
    lengths_of(v, a, &of[0]);
    lengths_of(v, b, &of[1]);
    int alike = of[0].fits && of[1].fits && !memcmp(of[0].length, of[1].length, bytes);
    free(of);
    return alike;
}

int sizes_whole_sums(const Derivation *v, const Sizes *from, double max_flops, Sizes *out)
{
    Lengths *whole = memory_array(2, sizeof *whole), *now = whole + 1;
    size_t bytes = sizeof *whole->length * (size_t)v->graph->n_nodes;
    lengths_of(v, from, whole);
    double flops = whole->flops;
    *out = *from;
    for (int i = 0; i < v->draft.n_axes && whole->fits; i++)
        for (int moves = 0; moves < 64 && flops > max_flops; moves++) {
            Sizes t = *out;
            if (halve(v, &t, i)) break;
            lengths_of(v, &t, now);
            if (!now->fits || memcmp(now->length, whole->length, bytes) != 0) break;
            *out = t;
            flops = now->flops;
        }
    int fits = whole->fits && flops <= max_flops;
    free(whole);
    return fits ? 0 : -1;
}

void sizes_long(const Derivation *v, const Sizes *from, double max_flops, Sizes *out)
{
    double longest = measure(v, from, sizes_scan);
    *out = *from;
    for (int i = 0; i < v->draft.n_axes; i++)
        for (int moves = 0; moves < 64 && measure(v, out, sizes_flops) > max_flops; moves++) {
            Sizes t = *out;
            if (halve(v, &t, i) || measure(v, &t, sizes_scan) < longest) break;
            *out = t;
        }
}

int sizes_deep(const Derivation *v, const Sizes *from, double max_flops, Sizes *out, Error *err)
{
    int stuck[TASK_MAX_AXES] = {0};
    *out = *from;
    double largest = measure(v, from, terms);
    if (largest < 0) return error_set(err, ERROR_INVALID, "the timed sizes cannot be bound");
    /* First the axes along which no long sum runs, each as far as it can be halved. */
    for (int i = 0; i < v->draft.n_axes; i++)
        for (int moves = 0; moves < 64 && measure(v, out, sizes_flops) > max_flops; moves++) {
            Sizes t = *out;
            if (halve(v, &t, i) || measure(v, &t, terms) < largest) break;
            *out = t;
        }
    for (int moves = 0; moves < MOVES && measure(v, out, sizes_flops) > max_flops; moves++)
        if (shrink(v, out, stuck, 0, sizes_flops)) break;
    return 0;
}

/* ---- check workloads ---- */

/* Moves one axis to the value nearest to `to` that fits; smaller ones first. */
static void approach(const Derivation *v, Sizes *s, int axis, int64_t to)
{
    for (int64_t k = 0; k < NEAR; k++)
        for (int side = 0; side < 2; side++) {
            Sizes t = *s;
            t.at[axis] = side ? to - k : to + k;
            if (t.at[axis] < 1 || (side && !k)) continue;
            if (t.at[axis] == s->at[axis]) return;
            if (derivation_fits(v, &t)) continue;
            *s = t;
            return;
        }
}

/* Sets all axes that have the size of this one; they may be tied. */
static int approach_tied(const Derivation *v, Sizes *s, int axis, int64_t to)
{
    for (int64_t k = 0; k < NEAR; k++) {
        Sizes t = *s;
        for (int i = 0; i < v->draft.n_axes; i++)
            if (s->at[i] == s->at[axis]) t.at[i] = to + k;
        if (to + k >= s->at[axis]) return -1;
        if (derivation_fits(v, &t)) continue;
        *s = t;
        return 0;
    }
    return -1;
}

/* The sizes nearest to the targets, from sizes that fit. */
static Sizes toward(const Derivation *v, Sizes s, const int64_t *to)
{
    for (int pass = 0; pass < PASSES; pass++) {
        Sizes before = s;
        for (int i = 0; i < v->draft.n_axes; i++) {
            int64_t was = s.at[i];
            approach(v, &s, i, to[i]);
            if (s.at[i] == was && was != to[i]) approach_tied(v, &s, i, to[i]);
        }
        if (!memcmp(&before, &s, sizeof s)) break;
    }
    return s;
}

static int known(const Sizes *list, int n, const Sizes *s)
{
    for (int i = 0; i < n; i++)
        if (!memcmp(&list[i], s, sizeof *s)) return 1;
    return 0;
}

/* Targets by the number of axes: one, few, odd, prime, and what vectors and tiles like. */
static const int64_t *targets(int n_axes, int kind)
{
    static const int64_t kinds[3][SIZES_CHECKS][6] = {
        {{1}, {7}, {257}, {1021}, {4096}},
        {{1, 1}, {3, 5}, {7, 33}, {37, 127}, {64, 128}},
        {{1, 1, 1, 1, 1, 1},
         {2, 3, 4, 5, 6, 7},
         {7, 33, 5, 9, 11, 15},
         {3, 17, 37, 13, 7, 11},
         {16, 32, 32, 16, 16, 16}}};
    return kinds[n_axes < 3 ? (n_axes > 1) : 2][kind];
}

int sizes_checks(const Derivation *v, double max_work, int times, Sizes out[SIZES_CHECKS])
{
    Sizes own = derivation_own(v), least;
    int64_t to[TASK_MAX_AXES];
    int n = 0;
    for (int i = 0; i < TASK_MAX_AXES; i++) to[i] = 1;
    least = toward(v, own, to);
    for (int k = 0; k < SIZES_CHECKS; k++) {
        const int64_t *kind = targets(v->draft.n_axes, k);
        for (int i = 0; i < v->draft.n_axes; i++)
            to[i] = times * kind[i % 6] < v->axes[i].size ? times * kind[i % 6] : v->axes[i].size;
        Sizes s = k ? toward(v, least, to) : least;
        if (measure(v, &s, work_of) > max_work && sizes_small(v, &s, max_work, &s, NULL)) continue;
        if (measure(v, &s, work_of) < 0 || known(out, n, &s)) continue;
        out[n++] = s;
    }
    return n;
}

/* With each axis of at least twice its least size: groups of one channel have two. */
static void leave_least(const Derivation *v, const Sizes *from, double max_flops, Sizes *s)
{
    int64_t to[TASK_MAX_AXES];
    for (int i = 0; i < TASK_MAX_AXES; i++) to[i] = 1;
    Sizes least = toward(v, *s, to);
    for (int i = 0; i < v->draft.n_axes; i++) {
        int64_t twice = 2 * least.at[i] < from->at[i] ? 2 * least.at[i] : from->at[i];
        to[i] = s->at[i] > twice ? s->at[i] : twice;
    }
    Sizes t = toward(v, *s, to);
    if (measure(v, &t, sizes_flops) <= max_flops) *s = t;
}

int sizes_widen_all(const Derivation *v, const Sizes *from, double max_flops, Sizes *list, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        Sizes s = list[i];
        sizes_widen(v, from, max_flops, &s);
        leave_least(v, from, max_flops, &s);
        if (!known(list, kept, &s)) list[kept++] = s;
    }
    return kept;
}
