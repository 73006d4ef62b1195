/* Sizes are moved one axis at a time from sizes that the task has, to the nearest ones that it allows. Of
 * several draws the one is taken that adds most remainders to those of the task's own checks. */
#include "eval/judge/contents/drawn_sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "tasks/derive/indices.h"
#include "tasks/task_graph.h"

enum {
    NEAR = 96,  /* how far from its target a size may be */
    PASSES = 3, /* over all axes: an axis may wait for another one */
    DRAWS = 24,
    DRAWS_OF_LARGE = 2, /* of a graph of more than LARGE nodes, which is slow to bind */
    LARGE = 12,
    DIRECTIONS = 6,
    DEAR_DIRECTIONS = 3, /* at most: more axes share them */
    MODULUS = 4,
    PRODUCT_WEIGHT = 4, /* of a remainder of rows, planes and groups, in those of pairs of axes */
    POWERS = 6,         /* elements of a tensor are multiples of 2^0 to 2^5 */
    POWER_WEIGHT = 8,
    FEW = 9,      /* the largest target of an axis that is not wide */
    FEW_DEAR = 2, /* and of one of a check that is dear */
    SEEN_BYTES = 4096
};

/* Limits of drawn_sizes_work: for a check, and for one whose module has large fixed sizes. */
static const double most_work = 1e6, most_dear = 4e8;

struct DrawnSizes {
    const Task *task;
    const Workload *timed, *start; /* start: where the moves begin, the largest check of the task */
    uint64_t seed;
    int64_t unit[TASK_MAX_AXES]; /* all checks have multiples of it */
    int64_t least
        [TASK_MAX_AXES]; /* the tolerance of a task without a graph is for the sizes of its checks */
    unsigned char found[DRAWN_DIRECTIONS][DRAWN_LEVELS], has[DRAWN_DIRECTIONS][DRAWN_LEVELS];
    Workload w[DRAWN_DIRECTIONS][DRAWN_LEVELS];
    unsigned char *seen; /* by remainder: a check has it */
    int groups;          /* axis i is wide in direction i modulo groups */
    int plane[2];        /* the axes of direction `groups`; [0] < 0: there is no plane */
    double dear;         /* the most work of a check where the task has no cheap one */
};

/* Whether all that the integers of one input index is there. */
typedef struct {
    const GraphBound *graph;
    int input, fits;
    int64_t high; /* the largest integer */
} Named;

static void note_index(void *ctx, int value, int64_t size)
{
    Named *n = ctx;
    int64_t plus;
    if (indices_of_input(n->graph, value, n->input, &plus)) n->fits &= n->high + plus < size;
}

static int has_word(const Task *t, const char *const *words, int n)
{
    for (int i = 0; t->graph && i < t->graph->n_nodes; i++)
        for (int k = 0; k < n; k++)
            if (strstr(t->graph->text[i], words[k])) return 1;
    return 0;
}

static int has_indices(const Task *t)
{
    static const char *const words[] = {"index",  "embedding", "gather",        "scatter",
                                        "select", "nll",       "cross_entropy", "take"};
    return has_word(t, words, sizeof words / sizeof *words);
}

/* How many results of slices, which end where the sizes do, have no elements. */
static int count_empty(const Task *t, const Workload *w)
{
    GraphBound *b;
    int n = 0;
    if (task_graph_bind(t, w, &b, NULL)) return 0;
    for (int i = 0; i < b->graph->n_nodes; i++)
        n += strstr(b->graph->text[i], "slice") && !op_elements(&b->calls[i].call.result[0]);
    graph_bound_free(b);
    return n;
}

/* A slice has elements at the timed sizes, and none at these: kernels have no tensor for it. */
static int loses_slices(const Task *t, const Workload *w)
{
    static const char *const words[] = {"slice"};
    const Workload *timed = task_largest_timed(t);
    if (!timed || !has_word(t, words, 1)) return 0;
    const int n = count_empty(t, w);
    return n && n > count_empty(t, timed);
}

/* Is there all that indices name, integers of inputs and those that the graph makes? An input may index
 * several tables, whose sizes are axes of their own. */
static int indices_are_there(const Task *t, const Workload *w)
{
    Named n = {.fits = 1};
    IntegerBounds bounds;
    GraphBound *b;
    if (!has_indices(t)) return 1;
    if (task_graph_bind(t, w, &b, NULL)) return 0;
    n.graph = b;
    for (n.input = 0; n.input < t->n_inputs; n.input++) {
        if (t->inputs[n.input].draw != DRAW_INTEGER ||
            task_integers(t, w, &t->inputs[n.input], &bounds, NULL))
            continue;
        n.high = bounds.high;
        indices_each(b, note_index, &n);
    }
    n.fits &= indices_fit(b);
    graph_bound_free(b);
    return n.fits;
}

double drawn_sizes_work(const Task *t, const Workload *w)
{
    double bytes, flops;
    size_t n;
    IntegerBounds bounds;
    if (task_allows(t, w, NULL)) return HUGE_VAL;
    for (int i = 0; i < t->n_inputs; i++)
        if (task_elements(t, w, &t->inputs[i], &n, NULL) ||
            (t->inputs[i].draw == DRAW_INTEGER &&
             task_integers(t, w, &t->inputs[i], &bounds, NULL)))
            return HUGE_VAL;
    for (int i = 0; i < t->n_outputs; i++)
        if (task_elements(t, w, &t->outputs[i], &n, NULL)) return HUGE_VAL;
    if (!indices_are_there(t, w) || loses_slices(t, w)) return HUGE_VAL;
    return task_cost(t, w, &bytes, &flops, NULL) ? HUGE_VAL : bytes / sizeof(float) + flops;
}

static int is_possible(const Task *t, const Workload *w)
{
    return isfinite(drawn_sizes_work(t, w));
}

/* ---- moves ---- */

/* Set the axis, and, where `tied`, those that have its size now and in the timed workload. */
static int move(const Task *t, const Workload *timed, Workload *w, int axis, int64_t to, int tied)
{
    Workload next = *w;
    for (int i = 0; i < t->n_axes; i++)
        if (i == axis ||
            (tied && w->axis[i] == w->axis[axis] && timed->axis[i] == timed->axis[axis]))
            next.axis[i] = to;
    if (to < 1 || !is_possible(t, &next)) return -1;
    *w = next;
    return 0;
}

/* Another axis may be tied to this one. */
static int has_tie(const Task *t, const Workload *timed, const Workload *w, int axis)
{
    for (int i = 0; i < t->n_axes; i++)
        if (i != axis && w->axis[i] == w->axis[axis] && timed->axis[i] == timed->axis[axis])
            return 1;
    return 0;
}

/* The possible size nearest to the target; the larger one of two. */
static void approach(const Task *t, const Workload *timed, Workload *w, int axis, int64_t to)
{
    for (int tied = 0; tied <= has_tie(t, timed, w, axis); tied++)
        for (int64_t k = 0; k < NEAR; k++) {
            if (to + k == w->axis[axis] || to - k == w->axis[axis]) {
                if (k == 0) return;
                if (!tied) break;
            }
            if (to + k <= timed->axis[axis] && !move(t, timed, w, axis, to + k, tied)) return;
            if (k && !move(t, timed, w, axis, to - k, tied)) return;
        }
}

/* The axis `last`, when it is one, is moved after the others: it has its target where it can. */
static void toward(const Task *t, const Workload *timed, const int64_t *to, int last, Workload *w)
{
    for (int pass = 0; pass < PASSES; pass++) {
        Workload before = *w;
        for (int i = 0; i < t->n_axes; i++)
            if (i != last) approach(t, timed, w, i, to[i]);
        if (last < t->n_axes) approach(t, timed, w, last, to[last]);
        if (!memcmp(before.axis, w->axis, sizeof w->axis)) return;
    }
}

/* ---- remainders ---- */

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The remainder of the axis's size, in its units. */
static int remainder_of(const DrawnSizes *d, const Workload *w, int axis)
{
    int64_t n = w->axis[axis], unit = d->unit[axis];
    return (int)((n % unit ? n : n / unit) % MODULUS);
}

static int axis_named(const Task *t, const char *name)
{
    for (int i = 0; i < t->n_axes; i++)
        if (!strcmp(t->axis_name[i], name)) return i;
    return -1;
}

/* Count the remainder numbers that `seen` lacks, and note them where `note`. */
static int see(unsigned char *seen, size_t at, int note)
{
    if (at >= SEEN_BYTES || seen[at]) return 0;
    seen[at] = (unsigned char)note;
    return 1;
}

/* Rows, planes and groups have as many elements as the products of the first input's last dimensions. */
static int see_products(const DrawnSizes *d, const Workload *w, size_t *at, int note)
{
    const TaskTensor *x = &d->task->inputs[0];
    int64_t shape[TASK_MAX_RANK], product = 1;
    int found = 0;
    if (task_shape(d->task, w, x, shape, NULL)) return 0;
    for (int k = x->rank - 1; k >= 0; k--, *at += MODULUS) {
        int axis = axis_named(d->task, x->shape[k]);
        product = product * (axis < 0 ? shape[k] : remainder_of(d, w, axis)) % MODULUS;
        found += PRODUCT_WEIGHT * see(d->seen, *at + (size_t)product, note);
    }
    return found;
}

/* How many remainders of axes, of pairs of axes and of products the sizes add. */
static int new_remainders(const DrawnSizes *d, const Workload *w, int note)
{
    int n = d->task->n_axes, found = 0;
    size_t at = 0;
    for (int i = 0; i < n; i++, at += MODULUS)
        found += see(d->seen, at + (size_t)remainder_of(d, w, i), note);
    found += see_products(d, w, &at, note);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++, at += (size_t)MODULUS * MODULUS)
            found +=
                see(d->seen, at + (size_t)(remainder_of(d, w, i) * MODULUS + remainder_of(d, w, k)),
                    note);
    return found;
}

/* Kernels whose accesses are vectors ask for as many elements as are a multiple of the vector: of each
 * tensor, the largest power of two that divides its elements. */
static int new_powers(const DrawnSizes *d, const Workload *w, int note)
{
    const Task *t = d->task;
    size_t n, at = SEEN_BYTES;
    int found = 0;
    for (int i = 0; i <= t->n_outputs; i++, at += POWERS) {
        size_t power = 0;
        if (task_elements(t, w, i < t->n_outputs ? &t->outputs[i] : &t->inputs[0], &n, NULL) || !n)
            continue;
        while (power < POWERS - 1 && n % ((size_t)2 << power) == 0) power++;
        found += POWER_WEIGHT * !d->seen[at + power];
        if (note) d->seen[at + power] = 1;
    }
    return found;
}

/* ---- draws ---- */

/* The least size of the axis in the task's own checks. */
static int64_t least_checked(const Task *t, int axis)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role == ROLE_CHECK && t->workloads[i].axis[axis] < least)
            least = t->workloads[i].axis[axis];
    return least;
}

/* The direction of all axes. */
static int all_axes(const DrawnSizes *d)
{
    return d->groups + (d->plane[0] >= 0);
}

/* Is it the direction of a plane? */
static int is_plane(const DrawnSizes *d, int direction)
{
    return direction == d->groups && d->plane[0] >= 0;
}

static void find_plane(DrawnSizes *d)
{
    const TaskTensor *x = &d->task->inputs[0];
    d->plane[0] = -1;
    if (!d->timed || x->rank < 3) return;
    int high = axis_named(d->task, x->shape[x->rank - 2]),
        wide = axis_named(d->task, x->shape[x->rank - 1]);
    if (high < 0 || wide < 0 || high == wide || d->timed->axis[high] < DRAWN_NARROW ||
        d->timed->axis[wide] < DRAWN_NARROW)
        return;
    d->plane[0] = high;
    d->plane[1] = wide;
}

DrawnSizes *drawn_sizes_new(const Task *t, uint64_t seed)
{
    DrawnSizes *d = memory_alloc(sizeof *d);
    d->task = t;
    d->timed = task_largest_timed(t);
    d->seed = seed;
    d->seen = memory_alloc(SEEN_BYTES + ((size_t)t->n_outputs + 1) * POWERS);
    d->start = task_largest_check(t);
    double least = HUGE_VAL;
    for (int i = 0; i < t->n_workloads; i++)
        least = fmin(least, drawn_sizes_work(t, &t->workloads[i]));
    d->dear = fmax(most_dear, 2 * least);
    int most = least > most_work ? DEAR_DIRECTIONS : DIRECTIONS;
    d->groups = t->n_axes < most ? t->n_axes : most;
    find_plane(d);
    for (int i = 0; i < t->n_workloads; i++)
        for (int k = 0; k < t->n_axes; k++) d->unit[k] = gcd(t->workloads[i].axis[k], d->unit[k]);
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role == ROLE_CHECK) {
            new_remainders(d, &t->workloads[i], 1);
            new_powers(d, &t->workloads[i], 1);
        }
    for (int k = 0; k < t->n_axes; k++) d->least[k] = t->graph ? 1 : least_checked(t, k);
    return d;
}

void drawn_sizes_free(DrawnSizes *d)
{
    if (d) free(d->seen);
    free(d);
}

static int is_prime(int64_t n)
{
    for (int64_t i = 2; i * i <= n; i++)
        if (n % i == 0) return 0;
    return n > 1;
}

/* The elements of the plane, and of those behind and before it that a mean of three dimensions takes, too. */
static double volume_of(const DrawnSizes *d, const Workload *w)
{
    const TaskTensor *x = &d->task->inputs[0];
    int64_t shape[TASK_MAX_RANK];
    double n = (double)w->axis[d->plane[0]] * (double)w->axis[d->plane[1]];
    if (task_shape(d->task, w, x, shape, NULL)) return n;
    for (int k = 2; k < x->rank - 2; k++) n *= (double)shape[k];
    return n;
}

/* From the width of the level up to half more, where the timed size has room; every other one a prime. */
static int64_t draw_width(Random *r, int64_t least, int64_t timed)
{
    int64_t from = least < timed ? least : timed - timed / 4;
    int64_t to = from + from / 2 < timed ? from + from / 2 : timed;
    int64_t n = from + (int64_t)random_below(r, (uint64_t)(to - from) + 1);
    if (random_below(r, 2))
        for (int64_t k = n; k <= timed && k < n + NEAR; k++)
            if (is_prime(k)) return k;
    return n;
}

/* Is the axis wide in the direction? */
static int is_wide(const DrawnSizes *d, int direction, int axis)
{
    if (d->timed->axis[axis] < DRAWN_NARROW) return 0;
    if (is_plane(d, direction)) return axis == d->plane[0] || axis == d->plane[1];
    return direction == all_axes(d) || direction == axis % d->groups;
}

/* Targets of a direction, `least` wide. */
static void draw_targets(const DrawnSizes *d, Random *r, int direction, int64_t least, uint64_t few,
                         int64_t *to)
{
    for (int i = 0; i < d->task->n_axes; i++) {
        int64_t timed = d->timed->axis[i];
        to[i] = is_wide(d, direction, i) ? draw_width(r, least, timed)
                                         : 1 + (int64_t)random_below(r, few);
        if (to[i] < d->least[i]) to[i] = d->least[i];
        if (to[i] > timed) to[i] = timed;
    }
}

/* All moves of a draw. A direction of one axis is moved last: it has its target if it can. */
static void draw_toward(const DrawnSizes *d, int direction, const int64_t *to, Workload *w)
{
    int is_axis = d->groups == d->task->n_axes && direction < d->groups;
    toward(d->task, d->timed, to, is_axis ? direction : d->task->n_axes, w);
}

/* Halve the largest of the axes that are not wide until the work is within the bound; in the direction of
 * all axes any. */
static int lessen(const DrawnSizes *d, int direction, double bound, int64_t *to, Workload *w)
{
    const Task *t = d->task;
    for (int moves = 0; moves < 64 && drawn_sizes_work(t, w) > bound; moves++) {
        int best = -1;
        for (int i = 0; i < t->n_axes; i++)
            if ((direction == all_axes(d) || !is_wide(d, direction, i)) && to[i] > 1 &&
                (best < 0 || to[i] > to[best]))
                best = i;
        if (best < 0) return -1;
        to[best] = (to[best] + 1) / 2;
        draw_toward(d, direction, to, w);
    }
    return drawn_sizes_work(t, w) > bound ? -1 : 0;
}

/* Some of the direction's axes are far from their targets. */
static int falls_short(const DrawnSizes *d, int direction, const int64_t *to, const Workload *w)
{
    for (int i = 0; i < d->task->n_axes; i++)
        if (is_wide(d, direction, i) && w->axis[i] < to[i] / 2) return 1;
    return 0;
}

/* The moves begin at small sizes, which are soon bound, or at the timed ones, from which an axis that another
 * one bounds is moved first. */
static void begin(const DrawnSizes *d, int direction, const int64_t *to, Workload *w)
{
    *w = *d->start;
    draw_toward(d, direction, to, w);
    if (falls_short(d, direction, to, w)) {
        *w = *d->timed;
        draw_toward(d, direction, to, w);
    }
    w->role = ROLE_CHECK;
    w->note = NULL;
    w->atol = NULL;
}

static int draws_of(const DrawnSizes *d, int dear)
{
    if (dear) return 1;
    return d->task->graph && d->task->graph->n_nodes > LARGE ? DRAWS_OF_LARGE : DRAWS;
}

/* The best of some draws that are at least so wide and within the bound. */
static int draw_best(const DrawnSizes *d, int direction, int64_t least, double bound, Workload *out)
{
    int64_t to[TASK_MAX_AXES] = {0};
    int best = -1, dear = bound > most_work;
    Random r;
    random_init(&r, d->seed, (uint64_t)direction);
    for (int i = 0; i < draws_of(d, dear); i++) {
        Workload w;
        draw_targets(d, &r, direction, least, dear ? FEW_DEAR : FEW, to);
        begin(d, direction, to, &w);
        if (lessen(d, direction, bound, to, &w)) continue;
        int found = new_remainders(d, &w, 0);
        /* A plane is as large as it can be. */
        found += is_plane(d, direction) ? (int)fmin(1e6, volume_of(d, &w)) : new_powers(d, &w, 0);
        if (found <= best) continue;
        best = found;
        *out = w;
    }
    return best < 0 ? -1 : 0;
}

/* A plane is as large as the bound of a check lets it be. */
static int draw_plane(const DrawnSizes *d, int direction, Workload *out)
{
    static const int widths[] = {43, 29, 19, 13};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (!draw_best(d, direction, widths[i], most_work, out)) return 0;
    return -1;
}

/* Level 0. Where the module's fixed sizes make it dear, it is dear, and less wide when it must be. */
static int draw_first(const DrawnSizes *d, int direction, Workload *out)
{
    static const int64_t widths[] = {DRAWN_LEAST, 43, 43, 23, 11, 5};
    static const int times[] = {1, 1, 8, 1, 1, 1};
    if (!draw_best(d, direction, DRAWN_LEAST, most_work, out)) return 0;
    if (direction == all_axes(d)) return draw_best(d, direction, 11, most_work, out);
    if (is_plane(d, direction)) return draw_plane(d, direction, out);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (!draw_best(d, direction, widths[i], times[i] * d->dear, out)) return 0;
    return -1;
}

/* A width near n that has the remainder of `as` by all powers of two that are looked at: those of level 0
 * count as seen, whatever level is run. A graph has more checks, whose rows of large values want other
 * widths, such as two columns (maximum_of_even_columns, 2026-11-30). */
static int64_t with_remainder(const Task *t, int64_t n, int64_t as, int64_t timed)
{
    const int64_t step = (int64_t)1 << (POWERS - 1),
                  more = n + (as % step - n % step + step) % step;
    if (t->graph) return n;
    return more <= timed ? more : more - step;
}

/* The sizes of level 0 with the direction's axes wider. */
static int widen(const DrawnSizes *d, int direction, int level, Workload *out)
{
    Random r;
    const Workload *last = &d->w[direction][level - 1];
    random_init(&r, d->seed, (uint64_t)(direction + level * DRAWN_DIRECTIONS));
    *out = *last;
    for (int i = 0; i < d->task->n_axes; i++) {
        int64_t timed = d->timed->axis[i];
        if (is_wide(d, direction, i) && last->axis[i] < timed)
            approach(d->task, d->timed, out, i,
                     with_remainder(d->task, draw_width(&r, (int64_t)DRAWN_LEAST << level, timed),
                                    last->axis[i], timed));
    }
    return drawn_sizes_width(d, direction, out) <= drawn_sizes_width(d, direction, last) ||
                   drawn_sizes_work(d->task, out) > most_work
               ? -1
               : 0;
}

static int draw(DrawnSizes *d, int direction, int level, Workload *out)
{
    int any = 0;
    for (int i = 0; i < d->task->n_axes; i++) any |= is_wide(d, direction, i);
    if (!any || (direction == all_axes(d) && (level || d->task->n_axes < 2))) return -1;
    if (level)
        return drawn_sizes_at(d, direction, level - 1) ? widen(d, direction, level, out) : -1;
    /* The remainders of the directions before this one count. */
    if (direction) drawn_sizes_at(d, direction - 1, 0);
    if (draw_first(d, direction, out)) return -1;
    new_remainders(d, out, 1);
    new_powers(d, out, 1);
    return 0;
}

int drawn_sizes_directions(const DrawnSizes *d)
{
    return all_axes(d) + 1;
}

int64_t drawn_sizes_width(const DrawnSizes *d, int direction, const Workload *w)
{
    int64_t most = 0;
    if (is_plane(d, direction)) return w->axis[d->plane[0]] * w->axis[d->plane[1]];
    for (int i = 0; i < d->task->n_axes; i++)
        if (is_wide(d, direction, i) && w->axis[i] > most) most = w->axis[i];
    return most;
}

const Workload *drawn_sizes_at(DrawnSizes *d, int direction, int level)
{
    Workload *w = &d->w[direction][level];
    unsigned char *found = &d->found[direction][level], *has = &d->has[direction][level];
    if (!*found) *has = !draw(d, direction, level, w);
    *found = 1;
    return *has ? w : NULL;
}

int drawn_sizes_has(const DrawnSizes *d, const Workload *w)
{
    for (int i = 0; i < DRAWN_DIRECTIONS; i++)
        for (int k = 0; k < DRAWN_LEVELS; k++)
            if (w == &d->w[i][k]) return 1;
    return 0;
}

/* ---- sizes of a condition ---- */

enum { TRIES = 2000, SCANNED = 4096, LARGEST_UNIT = 16 };

typedef struct {
    const Task *task;
    const Workload *timed;
    const DrawnCondition *condition;
    int64_t unit[TASK_MAX_AXES];
    Random random;
} Search;

static int holds(const Search *s, const Workload *w)
{
    for (int i = 0; i < s->task->n_axes; i++)
        if (w->axis[i] < 1 || w->axis[i] % s->unit[i]) return 0;
    return !task_allows(s->task, w, NULL) && s->condition->holds(s->condition->of, w) &&
           is_possible(s->task, w);
}

/* Sizes near w with one axis changed. */
static int scan(const Search *s, const Workload *from, Workload *w)
{
    for (int i = 0; i < s->task->n_axes; i++) {
        *w = *from;
        for (int64_t k = 1; k <= SCANNED && k * s->unit[i] <= s->timed->axis[i]; k++) {
            w->axis[i] = k * s->unit[i];
            if (holds(s, w)) return 0;
        }
    }
    return -1;
}

/* Each size is as likely to be in one octave as in another. */
static int try_draws(Search *s, Workload *w)
{
    for (int n = 0; n < TRIES; n++) {
        *w = *s->timed;
        for (int i = 0; i < s->task->n_axes; i++) {
            double all = (double)(s->timed->axis[i] / s->unit[i]);
            w->axis[i] = s->unit[i] * (int64_t)exp(random_uniform(&s->random) * log(all + 0.99));
        }
        if (holds(s, w)) return 0;
    }
    return -1;
}

/* Any sizes of the condition. */
static int find_any(Search *s, Workload *w)
{
    const Task *t = s->task;
    *w = *s->timed;
    if (holds(s, w)) return 0;
    for (int i = 0; i < t->n_workloads; i++) {
        *w = t->workloads[i];
        if (holds(s, w)) return 0;
    }
    if (!scan(s, s->timed, w) || !try_draws(s, w)) return 0;
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role == ROLE_CHECK && !scan(s, &t->workloads[i], w)) return 0;
    return -1;
}

/* The least size of the axis with which the condition holds, as if it held from there on. */
static void shrink(const Search *s, int axis, Workload *w)
{
    int64_t low = 1, high = w->axis[axis] / s->unit[axis];
    while (low < high) {
        Workload next = *w;
        next.axis[axis] = s->unit[axis] * (low + (high - low) / 2);
        if (holds(s, &next)) {
            *w = next;
            high = low + (high - low) / 2;
        } else {
            low = low + (high - low) / 2 + 1;
        }
    }
}

/* Up to a quarter more, so that the sizes are not the condition's bound alone. */
static void lift(Search *s, int axis, double max_work, Workload *w)
{
    Workload next = *w;
    int64_t unit = s->unit[axis], n = w->axis[axis] / unit;
    next.axis[axis] = unit * (n + (int64_t)random_below(&s->random, (uint64_t)(n / 4) + 1));
    if (next.axis[axis] <= s->timed->axis[axis] && holds(s, &next) &&
        drawn_sizes_work(s->task, &next) <= max_work)
        *w = next;
}

/* Sets an axis to DRAWN_LEAST or DRAWN_LONG or somewhat more, where the timed size has it. */
static void broaden(Search *s, int axis, double max_work, Workload *w)
{
    Workload next = *w;
    int64_t unit = s->unit[axis], to = (axis == s->condition->long_one ? DRAWN_LONG : DRAWN_LEAST) +
                                       (int64_t)random_below(&s->random, 32);
    next.axis[axis] = (to + unit - 1) / unit * unit;
    if (next.axis[axis] > s->timed->axis[axis]) next.axis[axis] = s->timed->axis[axis];
    if (next.axis[axis] > w->axis[axis] && holds(s, &next) &&
        drawn_sizes_work(s->task, &next) <= max_work)
        *w = next;
}

static int search(Search *s, double max_work, Workload *out)
{
    int n = s->task->n_axes, first = (int)random_below(&s->random, (uint64_t)n);
    if (find_any(s, out)) return -1;
    for (int i = 0; i < 2 * n; i++) shrink(s, (first + i) % n, out);
    if (drawn_sizes_work(s->task, out) > max_work) return -1;
    for (int i = 0; i < n && s->condition->wide; i++) broaden(s, (first + i) % n, max_work, out);
    lift(s, first, max_work, out);
    out->role = ROLE_CHECK;
    out->note = NULL;
    out->atol = NULL;
    return 0;
}

int drawn_sizes_where(const Task *t, uint64_t seed, const DrawnCondition *c, double max_work,
                      Workload *out)
{
    Search s = {.task = t, .timed = task_largest_timed(t), .condition = c};
    for (int turn = 0; turn < 2; turn++)
        for (int order = 0; order < t->n_axes; order++) {
            random_init(&s.random, seed, (uint64_t)order);
            for (int i = 0; i < t->n_axes; i++)
                s.unit[i] = turn == c->wide ? gcd(s.timed->axis[i], LARGEST_UNIT) : 1;
            if (!search(&s, max_work, out)) return 0;
        }
    return -1;
}
