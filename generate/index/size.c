/* Bindings of a graph, and the expressions of its sizes. */
#include "generate/index/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MOST_DIVISOR = 512, MOST_SHIFT = 8 };

Size size_number(int64_t n)
{
    Size s;
    for (int i = 0; i < SIZE_BINDINGS; i++) s.at[i] = n;
    return s;
}

Size size_times(Size a, Size b)
{
    for (int i = 0; i < SIZE_BINDINGS; i++) a.at[i] *= b.at[i];
    return a;
}

Size size_plus(Size a, Size b)
{
    for (int i = 0; i < SIZE_BINDINGS; i++) a.at[i] += b.at[i];
    return a;
}

Size size_over(Size a, Size b)
{
    for (int i = 0; i < SIZE_BINDINGS; i++) a.at[i] = b.at[i] ? a.at[i] / b.at[i] : 0;
    return a;
}

Size size_rest(Size a, Size b)
{
    for (int i = 0; i < SIZE_BINDINGS; i++) a.at[i] = b.at[i] ? a.at[i] % b.at[i] : 0;
    return a;
}

int size_same(Size a, Size b)
{
    return !memcmp(&a, &b, sizeof a);
}

int size_is(Size a, int64_t n)
{
    return size_same(a, size_number(n));
}

int size_divides(Size d, Size a)
{
    for (int i = 0; i < SIZE_BINDINGS; i++)
        if (d.at[i] <= 0 || a.at[i] % d.at[i]) return 0;
    return 1;
}

int size_less(Size a, Size b)
{
    for (int i = 0; i < SIZE_BINDINGS; i++)
        if (a.at[i] >= b.at[i]) return 0;
    return 1;
}

int size_constant(Size a)
{
    return size_is(a, a.at[0]);
}

/* ---- bindings ---- */

static void fill_tensors(DraftTensor *to, const TaskTensor *from, int n)
{
    for (int i = 0; i < n; i++) {
        to[i] = (DraftTensor){.name = from[i].name, .dtype = from[i].dtype, .rank = from[i].rank};
        for (int d = 0; d < from[i].rank; d++) to[i].shape[d] = from[i].shape[d];
    }
}

int size_derivation(const Task *t, int64_t least, Derivation *out, Error *err)
{
    const Workload *w = task_workload(t, ROLE_TIME);
    DraftAxis axes[TASK_MAX_AXES] = {{0}};
    Draft d = {.name = t->name,
               .level = t->level,
               .axes = axes,
               .n_axes = t->n_axes,
               .constraints = (const char *const *)t->constraints,
               .n_constraints = t->n_constraints,
               .n_inputs = t->n_inputs,
               .n_outputs = t->n_outputs,
               .lines = (const char *const *)size_graph(t)->text,
               .n_lines = size_graph(t)->n_nodes};
    if (!w) return error_set(err, ERROR_UNSUPPORTED, "task %s has no timed workload", t->name);
    for (int i = 0; i < t->n_axes; i++) {
        axes[i].name = t->axis_name[i];
        axes[i].size = w->axis[i] < least ? least : w->axis[i];
    }
    DraftTensor *inputs = memory_array((size_t)t->n_inputs, sizeof *inputs),
                *outputs = memory_array((size_t)t->n_outputs, sizeof *outputs);
    fill_tensors(inputs, t->inputs, t->n_inputs);
    fill_tensors(outputs, t->outputs, t->n_outputs);
    d.inputs = inputs, d.outputs = outputs;
    int rc = derivation_open(out, &d, err);
    free(inputs);
    free(outputs);
    return rc;
}

/* Another axis has the prime for a factor: a part of it, such as a group's channels, may be the prime. */
static int is_taken(const Derivation *v, const Sizes *s, int axis, int64_t prime)
{
    int taken = 0;
    for (int o = 0; o < v->draft.n_axes; o++) taken |= o != axis && s->at[o] % prime == 0;
    return taken;
}

/* Of each power of two from 2 to 64 some primes have an odd quotient, and others an even one. */
static const int primes[] = {97,  113, 139, 167, 193, 227, 257, 283, 311, 337, 367, 397, 431,
                             461, 491, 521, 29,  53,  101, 107, 131, 149, 151, 163, 173, 179,
                             181, 191, 199, 211, 223, 233, 239, 241, 251, 263, 271, 293};
enum { PRIMES = sizeof primes / sizeof *primes };

/* Gives an axis a multiple of the first prime of an order that no other axis has for a factor, far from
 * theirs, because windows make a size a little smaller or larger. Its own stays where none can be bound. */
static void choose_of(const Derivation *v, Sizes *s, int axis, const int *order)
{
    static const int times[] = {1, 2, 4, 8, 16, 32, 64, 3, 5, 6, 10, 12, 7, 128, 256, 512};
    static const int small[] = {29, 53, 13, 11, 17}; /* where another axis is the limit */
    static const int least[] = {7, 5, 3};            /* where a number is, as a head's size */
    int64_t own = s->at[axis];
    int i = 0;
    while (i < PRIMES - 1 && is_taken(v, s, axis, order[i])) i++; /* another prime rarely does */
    for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
        s->at[axis] = (int64_t)order[i] * times[k];
        if (!derivation_fits(v, s)) return;
    }
    for (size_t k = 0; k < sizeof small / sizeof *small; k++) {
        s->at[axis] = small[(k + (size_t)order[0]) % (sizeof small / sizeof *small)];
        if (!is_taken(v, s, axis, s->at[axis]) && !derivation_fits(v, s)) return;
    }
    for (size_t k = 0; k < sizeof least / sizeof *least; k++) {
        s->at[axis] = least[(k + (size_t)order[0]) % (sizeof least / sizeof *least)];
        if (s->at[axis] != own && !derivation_fits(v, s)) return;
    }
    s->at[axis] = own;
}

/* In how many places a number differs from all sizes that an axis has in the first k bindings: whether its
 * quotient by a power of two, rounded up, is odd. Where all were even, (n + 7) / 8 would be taken for
 * 2 * ((n + 15) / 16). */
static int news(const Sizes *s, int k, int axis, int64_t n)
{
    enum { POWERS = 6 };
    int found = 0;
    for (int bit = 1; bit <= POWERS; bit++) {
        int fresh = 1;
        for (int i = 0; i < k; i++) fresh &= ((s[i].at[axis] - 1) ^ (n - 1)) >> bit & 1;
        found += fresh;
    }
    return found;
}

/* The size of an axis in the k-th binding, by a prime that tells most from those before it. */
static void choose_binding(const Derivation *v, Sizes *s, int k, int axis)
{
    int order[PRIMES], rank[PRIMES];
    for (int i = 0; i < PRIMES; i++) {
        int prime = primes[(i + 5 * k) % PRIMES], own = news(s, k, axis, prime), at = i;
        for (; at > 0 && rank[at - 1] < own; at--)
            order[at] = order[at - 1], rank[at] = rank[at - 1];
        order[at] = prime, rank[at] = own;
    }
    choose_of(v, &s[k], axis, order);
}

static int factors(SizeTable *t, Size s, int from, int depth, char *out);

static void know(SizeTable *t, Size s, const char *text)
{
    for (int i = 0; i < t->n_known; i++)
        if (size_same(t->known[i].size, s)) return;
    if (t->n_known == SIZE_KNOWN || strlen(text) >= SIZE_TEXT) return;
    t->known[t->n_known].size = s;
    snprintf(t->known[t->n_known++].text, SIZE_TEXT, "%s", text);
}

void size_know(SizeTable *t, Size s, const char *text)
{
    char other[SIZE_TEXT];
    Error unused;
    if (size_text(t, s, other, &unused)) know(t, s, text);
}

void size_know_sum(SizeTable *t, Size a, Size b)
{
    char one[SIZE_TEXT], two[SIZE_TEXT], sum[2 * SIZE_TEXT + 8];
    Error unused;
    if (size_constant(size_plus(a, b)) || size_text(t, a, one, &unused) ||
        size_text(t, b, two, &unused))
        return;
    snprintf(sum, sizeof sum, "%s + %s", one, two);
    know(t, size_plus(a, b), sum);
}

typedef struct {
    int value, dim;
} Place;

static int64_t size_at(const Derivation *v, const GraphBound *b, const void *what)
{
    const Place *p = what;
    (void)v;
    return b->values[p->value].tensor.size[p->dim];
}

static Size place_size(const SizeTable *t, Place p)
{
    Size s;
    for (int i = 0; i < SIZE_BINDINGS; i++)
        s.at[i] = t->bound[i]->values[p.value].tensor.size[p.dim];
    return s;
}

/* Is the expression right at all bindings? One that was found where no axis of two that are tied can vary
 * alone may be a number. */
static int is_right(const SizeTable *t, const Sizes *s, const char *text, Size want)
{
    int64_t n;
    for (int k = 0; k < SIZE_BINDINGS; k++)
        if (derivation_value(&t->derived, &s[k], text, &n, NULL) || n != want.at[k]) return 0;
    return 1;
}

static int is_known(const SizeTable *t, Size s)
{
    for (int i = 0; i < t->n_known; i++)
        if (size_same(t->known[i].size, s)) return 1;
    return size_constant(s);
}

/* Sizes whose expression was sought: finding one binds the graph many times. */
typedef struct {
    int n;
    Size at[SIZE_KNOWN];
} Sought;

static int note_sought(Sought *sought, Size s)
{
    for (int i = 0; i < sought->n; i++)
        if (size_same(sought->at[i], s)) return 1;
    if (sought->n < SIZE_KNOWN) sought->at[sought->n++] = s;
    return 0;
}

static void know_place(SizeTable *t, const Sizes *sizes, Place p, Size s)
{
    char product[SIZE_TEXT] = "", other[SIZE_TEXT];
    Error unused;
    if (factors(t, s, 0, 8, product)) return;
    char *text = derivation_expression(&t->derived, size_at, &p, sizes, SIZE_BINDINGS);
    if (text && is_right(t, sizes, text, s))
        know(t, s, text);
    else if (!size_text(t, s, other, &unused))
        know(t, s, other);
    free(text);
}

/* The sizes of values that are no axis: those of windows, concatenations and the like. */
static void know_places(SizeTable *t, const Sizes *sizes)
{
    const GraphBound *b = t->bound[0];
    Sought *sought = memory_alloc(sizeof *sought);
    sought->n = 0;
    for (int v = 0; v < b->graph->n_values; v++)
        for (int d = 0; d < b->values[v].tensor.rank && b->values[v].live; d++) {
            Place p = {v, d};
            Size s = place_size(t, p);
            if (!is_known(t, s) && !note_sought(sought, s)) know_place(t, sizes, p, s);
        }
    free(sought);
}

/* Other dimensions of inputs have an expression in the task. */
static void know_inputs(SizeTable *t)
{
    for (int i = 0; i < t->derived.draft.n_inputs; i++)
        for (int d = 0; d < t->derived.inputs[i].rank; d++) {
            Size s = place_size(t, (Place){i, d});
            size_know(t, s, t->derived.inputs[i].shape[d]);
        }
}

/* Gives two axes sizes of their own ratio: the smallest such times `by`. 1: the graph can be bound so. */
static int choose_both(const Derivation *v, Sizes *s, const int axis[2], int64_t by)
{
    Sizes trial = *s;
    int64_t a = s->at[axis[0]], b = s->at[axis[1]], common = a, rest = b;
    while (rest) {
        int64_t left = common % rest;
        common = rest, rest = left;
    }
    trial.at[axis[0]] = a / common * by, trial.at[axis[1]] = b / common * by;
    if (derivation_fits(v, &trial)) return 0;
    *s = trial;
    return 1;
}

/* Axes that no other size fits while the rest stay, such as two of which one is twice the other, get other
 * sizes in pairs: multiples of primes, where these fit. */
static void choose_pairs(const Derivation *v, const Sizes *own, Sizes *s, int k)
{
    static const int other_primes[] = {37, 41, 43, 47, 59, 61, 67, 71},
                     times[] = {1, 2, 4, 8, 16, 32, 3, 6};
    const int n = sizeof other_primes / sizeof *primes, m = sizeof times / sizeof *times;
    int pairs = 0;
    for (int a = 0; a < v->draft.n_axes; a++)
        for (int b = a + 1; b < v->draft.n_axes && s->at[a] == own->at[a]; b++) {
            if (s->at[b] != own->at[b]) continue;
            for (int i = 0, done = 0; i < m && !done; i++)
                done = choose_both(v, s, (const int[]){a, b},
                                   (int64_t)other_primes[(3 * k + pairs) % n] * times[i]);
            pairs += s->at[a] != own->at[a];
        }
}

/* Axes that can only vary together, such as the features of queries, keys and values, and have one size. */
static void choose_equal(const Derivation *v, const Sizes *own, Sizes *s, int k)
{
    static const int other_primes[] = {37, 41, 43, 47, 59, 61, 67, 71},
                     times[] = {1, 2, 4, 8, 16, 32};
    const int n = sizeof other_primes / sizeof *other_primes, m = sizeof times / sizeof *times;
    for (int a = 0, groups = 0; a < v->draft.n_axes; a++) {
        if (s->at[a] != own->at[a]) continue;
        for (int i = 0, done = 0; i < m && !done; i++) {
            Sizes trial = *s;
            for (int b = a; b < v->draft.n_axes; b++)
                if (own->at[b] == own->at[a] && s->at[b] == own->at[b])
                    trial.at[b] = (int64_t)other_primes[(3 * k + groups) % n] * times[i];
            done = !derivation_fits(v, &trial);
            if (done) *s = trial, groups++;
        }
    }
}

static int bind_all(SizeTable *t, Error *err)
{
    Sizes s[SIZE_BINDINGS];
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        s[k] = derivation_own(&t->derived);
        for (int i = 0; i < t->derived.draft.n_axes && k; i++) choose_binding(&t->derived, s, k, i);
        if (k) choose_pairs(&t->derived, &s[0], &s[k], k);
        if (k) choose_equal(&t->derived, &s[0], &s[k], k);
        if (derivation_bind(&t->derived, &s[k], &t->bound[k], err)) return -1;
    }
    for (int i = 0; i < t->derived.draft.n_axes; i++) {
        Size axis;
        for (int k = 0; k < SIZE_BINDINGS; k++) axis.at[k] = s[k].at[i];
        know(t, axis, t->derived.axes[i].name);
    }
    know_places(t, s);
    know_inputs(t);
    return 0;
}

/* ---- the expressions at other workloads ---- */

/* The sizes of values, each once, with what their expressions are at the workload that is looked at. */
typedef struct {
    int n, room;
    struct {
        Size size;
        int64_t at; /* -1: it has no expression */
        char text[SIZE_TEXT];
    } * of;
} Seen;

static int add_seen(Seen *seen, SizeTable *t, Size s)
{
    Error unused;
    for (int i = 0; i < seen->n; i++)
        if (size_same(seen->of[i].size, s)) return i;
    memory_room(seen->of, seen->n, seen->room, 32);
    seen->of[seen->n].size = s;
    if (size_text(t, s, seen->of[seen->n].text, &unused)) seen->of[seen->n].text[0] = 0;
    return seen->n++;
}

static void evaluate(Seen *seen, const SizeTable *t, const Sizes *s)
{
    for (int i = 0; i < seen->n; i++)
        if (!seen->of[i].text[0] ||
            derivation_value(&t->derived, s, seen->of[i].text, &seen->of[i].at, NULL))
            seen->of[i].at = -1;
}

static void compare(SizeTable *t, Seen *seen, const GraphBound *b)
{
    for (int v = 0; v < b->graph->n_values; v++) {
        const OpTensor *own = &b->values[v].tensor;
        int rank = t->bound[0]->values[v].tensor.rank;
        if (!b->values[v].live) continue;
        if (own->rank != rank) t->odd[v] = 1;
        for (int d = 0; d < rank && !t->odd[v]; d++)
            t->odd[v] =
                seen->of[add_seen(seen, t, place_size(t, (Place){v, d}))].at != own->size[d];
    }
}

static void look_at(SizeTable *t, Seen *seen, const Sizes *s)
{
    GraphBound *b;
    Error unused;
    if (derivation_bind(&t->derived, s, &b, &unused)) return;
    evaluate(seen, t, s);
    compare(t, seen, b);
    graph_bound_free(b);
}

/* Small sizes of each axis, where a slice may have no more elements than there are. One of 1 would be another
 * graph, as it broadcasts. */
static void look_at_small(SizeTable *t, Seen *seen, const Sizes *s)
{
    static const int small[] = {5, 16};
    for (int a = 0; a < t->task->n_axes; a++)
        for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
            Sizes other = *s;
            other.at[a] = small[i];
            look_at(t, seen, &other);
        }
}

/* A size of min(32, cols), or one whose axes could not be told apart, has another number at some of the
 * task's workloads, or at small sizes. */
static void find_odd(SizeTable *t)
{
    const GraphBound *b = t->bound[0];
    int checks = 0;
    Seen seen = {0};
    t->odd = memory_array((size_t)b->graph->n_values + 1, 1);
    for (int v = 0; v < b->graph->n_values; v++)
        for (int d = 0; d < b->values[v].tensor.rank && b->values[v].live; d++)
            add_seen(&seen, t, place_size(t, (Place){v, d}));
    for (int i = 0; i < t->task->n_workloads; i++) {
        Sizes s = derivation_own(&t->derived);
        for (int a = 0; a < t->task->n_axes; a++) s.at[a] = t->task->workloads[i].axis[a];
        look_at(t, &seen, &s);
        if (t->task->workloads[i].role == ROLE_CHECK && !checks++) look_at_small(t, &seen, &s);
    }
    for (int v = 0; v < b->graph->n_values; v++) t->odd[v] |= t->odd[b->values[v].base];
    free(seen.of);
}

Task *size_own(const Task *t)
{
    if (!t->own || size_is_own(t)) return NULL;
    Task *own = memory_alloc(sizeof *own);
    *own = *t;
    for (int i = 0; i < own->n_workloads; i++) {
        Workload *w = &own->workloads[i];
        if (w->role != ROLE_TIME) continue;
        if (own->n_workloads < TASK_MAX_WORKLOADS) own->workloads[own->n_workloads++] = *w;
        memcpy(w->axis, t->own->axis, sizeof w->axis);
        break;
    }
    return own;
}

int size_is_own(const Task *t)
{
    return t->own && !memcmp(task_workload(t, ROLE_TIME)->axis, t->own->axis, sizeof t->own->axis);
}

int size_open(SizeTable *t, const Task *task, Error *err)
{
    memset(t, 0, sizeof *t);
    t->task = task;
    if (!size_graph(task))
        return error_set(err, ERROR_UNSUPPORTED, "task %s has no graph", task->name);
    if (size_derivation(task, 2, &t->derived, err) && size_derivation(task, 1, &t->derived, err))
        return error_prefix(err, "task %s: its sizes are not free", task->name);
    if (bind_all(t, err)) {
        size_close(t);
        return -1;
    }
    find_odd(t);
    return 0;
}

void size_close(SizeTable *t)
{
    for (int i = 0; i < SIZE_BINDINGS; i++) graph_bound_free(t->bound[i]);
    derivation_release(&t->derived);
    free(t->odd);
}

/* ---- expressions ---- */

static int is_word(const char *text)
{
    return !text[strcspn(text, " ")];
}

/* A product of known sizes and a number: 1 when it is found. The text is appended to. */
static int factors(SizeTable *t, Size s, int from, int depth, char *out)
{
    size_t len = strlen(out);
    if (size_constant(s)) {
        if (s.at[0] == 1 && len) return 1;
        snprintf(out + len, SIZE_TEXT - len, "%s%lld", len ? " * " : "", (long long)s.at[0]);
        return 1;
    }
    for (int i = from; i < t->n_known && depth; i++) {
        const char *text = t->known[i].text;
        if (!size_divides(t->known[i].size, s) || len + strlen(text) + 8 > SIZE_TEXT) continue;
        snprintf(out + len, SIZE_TEXT - len, is_word(text) ? "%s%s" : "%s(%s)", len ? " * " : "",
                 text);
        if (factors(t, size_over(s, t->known[i].size), i, depth - 1, out)) return 1;
        out[len] = 0;
    }
    return 0;
}

/* A product over a number: of channels of a group. */
static int quotient(SizeTable *t, Size s, char *out)
{
    char above[SIZE_TEXT];
    for (int by = 2; by <= MOST_DIVISOR; by++) {
        above[0] = 0;
        if (!factors(t, size_times(s, size_number(by)), 0, 8, above)) continue;
        return snprintf(out, SIZE_TEXT, "(%s) / %d", above, by) < SIZE_TEXT;
    }
    return 0;
}

/* A product less a small number, as the last place is; with the sign '+' and one, as a diagonal's step. */
static int shifted(SizeTable *t, Size s, char sign, char *out)
{
    char product[SIZE_TEXT];
    for (int by = 1; by <= MOST_SHIFT; by++) {
        product[0] = 0;
        if (!factors(t, size_plus(s, size_number(sign == '+' ? -by : by)), 0, 8, product)) continue;
        return snprintf(out, SIZE_TEXT, "(%s %c %d)", product, sign, by) < SIZE_TEXT;
    }
    return 0;
}

/* A product of such a difference: where the last row begins. */
static int last_row(SizeTable *t, Size s, char *out)
{
    char less[SIZE_TEXT];
    int64_t common = 0;
    for (int k = 0; k < SIZE_BINDINGS; k++)
        for (int64_t a = llabs(s.at[k]), rest; a; a = rest) rest = common % a, common = a;
    if (common > 1 && shifted(t, size_over(s, size_number(common)), '-', less))
        return snprintf(out, SIZE_TEXT, "%s * %lld", less, (long long)common) < SIZE_TEXT;
    for (int i = 0; i < t->n_known; i++)
        if (size_divides(t->known[i].size, s) &&
            shifted(t, size_over(s, t->known[i].size), '-', less))
            return snprintf(out, SIZE_TEXT, "%s * (%s)", less, t->known[i].text) < SIZE_TEXT;
    return 0;
}

/* A number and a product: what rotary positions leave of a head, and where they lie in it. */
static int beside_number(const SizeTable *t, Size s, char *out)
{
    for (int i = 0; i < t->n_known; i++)
        for (int by = -MOST_SHIFT; by <= MOST_SHIFT; by++) {
            Size number = size_plus(s, size_times(t->known[i].size, size_number(-by)));
            if (by && size_constant(number))
                return snprintf(out, SIZE_TEXT,
                                is_word(t->known[i].text) ? "(%lld %c %d * %s)"
                                                          : "(%lld %c %d * (%s))",
                                (long long)number.at[0], by < 0 ? '-' : '+', abs(by),
                                t->known[i].text) < SIZE_TEXT;
        }
    return 0;
}

int size_text(SizeTable *t, Size s, char out[SIZE_TEXT], Error *err)
{
    out[0] = 0;
    if (factors(t, s, 0, 8, out)) return 0;
    if (quotient(t, s, out) || shifted(t, s, '-', out) || last_row(t, s, out) ||
        shifted(t, s, '+', out) || beside_number(t, s, out))
        return 0;
    return error_set(err, ERROR_UNSUPPORTED, "no expression is found for a size of %lld",
                     (long long)s.at[0]);
}
