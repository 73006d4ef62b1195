/* From the results of a kernel back to what lies in memory.
 * Over 800 lines: all that is traced shares the kernel's axes, places and conditions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/convolve.h"
#include "generate/layout.h"

/* A row of more columns is cut in parts where there are fewer rows than keep a GPU busy (2026-11-29: 132
 * multiprocessors, a block of 1,024 threads with 16 elements each; where a row's elements lie apart, 32 rows
 * a block). A part has PART_COLUMNS at least. SPLIT_BLOCKS: three to a multiprocessor, all at once
 * (2026-11-30, H200: a loss of 4 GB takes 967 us, with 512 parts, of which 116 come behind the others, 1,135
 * us). */
enum { LONG_ROW = 16384, FEW_ROWS = 132, SPLIT_BLOCKS = 396, MOST_PARTS = 512 };
enum {
    LONG_STRIP = 1024,
    FEW_STRIPS = 132,
    STRIP_ROWS = 32,
    PART_COLUMNS = 128,
    SPLIT_STRIPS = 528
};

/* A kernel of so many steps computes no padded tensor in a padded one. */
enum { NESTED_STEPS = 24 };
enum { LONG_TEXT = 64 }; /* of a place that is divided again */
/* Folds of so many terms may be looped, where these are at most so many nodes. */
enum { SHORT_FOLD = 8, SHORT_WORK = 64 };

static int trace(Kernel *k, int node, const Index *at, Error *err);

static int is_root(const Kernel *k, int node)
{
    for (int i = 0; i < k->n_roots; i++)
        if (k->root[i].node == node) return 1;
    return 0;
}

static int want(Kernel *k, int node)
{
    k->wanted = node;
    return -1;
}

/* 1: they compute the same from the same steps. */
static int same_work(const Nodes *n, const Step *a, const Step *b)
{
    const Node *x = &n->node[a->node], *y = &n->node[b->node];
    if (a->arg[0] < 0 || memcmp(a->arg, b->arg, sizeof a->arg) || x->kind != y->kind ||
        x->dtype != y->dtype)
        return 0;
    if (x->kind == NODE_FOLD)
        return x->fold == y->fold && a->over == b->over && x->parts == y->parts;
    return x->kind == NODE_POINT && !strcmp(x->text, y->text) && !strcmp(x->type, y->type) &&
           !memcmp(x->number, y->number, sizeof x->number) && !memcmp(x->p, y->p, sizeof x->p) &&
           size_same(x->scale, y->scale);
}

static int add_step(Kernel *k, const Step *s, Error *err)
{
    for (int i = 0; i < k->n; i++) {
        const Step *o = &k->step[i];
        if (o->inside != s->inside || o->place != s->place) continue;
        if ((o->node == s->node || s->place) && index_same(&o->at, &s->at)) return i;
        if (same_work(k->nodes, o, s)) return i;
    }
    if (k->n == KERNEL_STEPS) return want(k, kernel_repeated(k, err));
    k->step[k->n] = *s;
    return k->n++;
}

unsigned kernel_loops(const Kernel *k, const Index *at)
{
    unsigned all = index_axes(at), loops = 0;
    for (int i = 0; i < k->axes.n; i++)
        if (all >> i & 1) loops |= k->bound[i] < 0 ? 1u << i : k->step[k->bound[i]].axes;
    return loops;
}

static int is_bound(const Kernel *k, const Index *at)
{
    unsigned all = index_axes(at);
    for (int i = 0; i < k->axes.n; i++)
        if (all >> i & 1 && k->bound[i] >= 0) return 1;
    return 0;
}

static Step step_of(const Kernel *k, int node, const Index *at)
{
    Step s = {.node = node, .arg = {-1, -1, -1}, .at = *at, .axes = kernel_loops(k, at)};
    unsigned all = index_axes(at);
    s.inside = k->inside;
    for (int i = 0; i < k->axes.n; i++)
        if (all >> i & 1 && k->bound[i] >= 0 && k->step[k->bound[i]].level > s.level)
            s.level = k->step[k->bound[i]].level;
    const Condition *c = &k->condition[k->inside];
    for (int i = 0; i < c->n; i++) {
        const Step *t = &k->step[c->term[i].step];
        s.axes |= t->axes;
        if (t->level > s.level) s.level = t->level;
    }
    return s;
}

/* An axis whose number is a step's. */
static int add_bound(Kernel *k, int step, Size size, Error *err)
{
    int others = 0;
    for (int i = 0; i < k->axes.n; i++) {
        if (k->bound[i] == step && size_same(k->axes.size[i], size)) return i;
        others += k->bound[i] == step;
    }
    if (k->axes.n == INDEX_AXES)
        return error_set(err, ERROR_UNSUPPORTED, "a kernel of more than %d axes", INDEX_AXES);
    k->axes.size[k->axes.n] = size;
    k->bound[k->axes.n] = step;
    if (k->step[step].place && others)
        snprintf(k->axes.name[k->axes.n], sizeof k->axes.name[0], "j%d_%d", step, others);
    else
        snprintf(k->axes.name[k->axes.n], sizeof k->axes.name[0],
                 k->step[step].place ? "j%d" : "t%d", step);
    return k->axes.n++;
}

/* A step that is a coordinate, less `low`. */
static int add_place(Kernel *k, int node, const Index *at, Size low, Error *err)
{
    Index c = *at;
    c.plus = size_plus(c.plus, size_times(low, size_number(-1)));
    Step s = step_of(k, node, &c);
    s.place = 1;
    s.inside = 0;
    return add_step(k, &s, err);
}

/* A place below n whose text is long becomes a step's number, and an axis is bound to it: what is divided
 * again would be written again. */
static int bind_long(Kernel *k, Index *c, Size n, Error *err)
{
    if (strlen(c->text) <= LONG_TEXT) return 0;
    if (!k->nodes->place) {
        const Node x = node_blank(NODE_COORD, DTYPE_I64);
        k->nodes->place = node_add(k->nodes, &x);
    }
    const int place = add_place(k, k->nodes->place, c, size_number(0), err);
    const int axis = place < 0 ? -1 : add_bound(k, place, n, err);
    if (axis < 0) return -1;
    *c = index_axis(axis, size_number(1));
    return 0;
}

/* The coordinates of an element of a shape. */
static int coordinates(Kernel *k, const Node *x, const Index *at, Index out[OP_MAX_RANK],
                       Error *err)
{
    Index rest = *at;
    Size before = node_count(x);
    for (int d = x->rank - 1; d >= 0; d--) {
        out[d] = index_none();
        if (size_is(x->size[d], 1)) continue;
        if (bind_long(k, &rest, before, err)) return -1;
        before = size_number(1);
        for (int e = 0; e < d; e++) before = size_times(before, x->size[e]);
        if (size_is(before, 1)) {
            out[d] = rest;
            rest = index_none();
            continue;
        }
        Index over, own = rest;
        if (index_divide(&k->scope, &own, x->size[d], &over, &out[d], err)) return -1;
        rest = over;
    }
    return 0;
}

static int add_scaled(Kernel *k, Index *to, const Index *coordinate, Size by, Error *err)
{
    Index c = *coordinate;
    if (size_is(by, 0)) return 0;
    return index_scale(&k->scope, &c, by, err) || index_add(to, &c, err) ? -1 : 0;
}

static int trace_view(Kernel *k, const Node *x, const Index *at, Error *err)
{
    Index c[OP_MAX_RANK], to = index_none();
    Size step = size_number(1);
    int whole = size_is(x->offset, 0);
    for (int d = x->rank - 1; d >= 0; d--) {
        whole &= size_is(x->size[d], 1) || size_same(x->step[d], step);
        step = size_times(step, x->size[d]);
    }
    if (whole) return trace(k, x->arg[0], at, err);
    if (coordinates(k, x, at, c, err)) return -1;
    to.plus = x->offset;
    for (int d = 0; d < x->rank; d++)
        if (add_scaled(k, &to, &c[d], x->step[d], err)) return -1;
    return trace(k, x->arg[0], &to, err);
}

/* The place of an operand that is broadcast to x. */
static int operand_place(Kernel *k, const Node *x, int operand, const Index *at, Index *to,
                         Error *err)
{
    Index c[OP_MAX_RANK];
    const Node copy = k->nodes->node[operand], *a = &copy;
    *to = *at;
    if (node_same_shape(x, a)) return 0;
    if (coordinates(k, x, at, c, err)) return -1;
    *to = index_none();
    Size step = size_number(1);
    for (int d = a->rank - 1; d >= 0; d--) {
        int own = x->rank - a->rank + d;
        if (!size_is(a->size[d], 1) && add_scaled(k, to, &c[own], step, err)) return -1;
        step = size_times(step, a->size[d]);
    }
    return 0;
}

/* The least and the largest number that a place has. 1: they are known. */
static int place_range(const Kernel *k, const Index *at, Size *least, Size *most)
{
    *least = *most = at->plus;
    if (*at->text) return 0;
    for (int i = 0; i < k->axes.n; i++) {
        const Size span = size_times(at->by[i], size_plus(k->axes.size[i], size_number(-1)));
        if (size_is(at->by[i], 0)) continue;
        if (k->bound[i] >= 0 || size_less(at->by[i], size_number(0))) return 0;
        *most = size_plus(*most, span);
    }
    return 1;
}

/* Of a choice by a coordinate, as joined tensors have, the operand that all elements here are; -1: some are
 * one's and some the other one's, or it is no such choice. */
static int chosen_part(Kernel *k, const Node *x, const Index *at, Error *err)
{
    Index c[OP_MAX_RANK], to;
    Size least, most;
    if (strcmp(x->text, "a ? b : c") != 0 || x->arg[0] < 0) return -1;
    const Node before = k->nodes->node[x->arg[0]];
    if (before.kind != NODE_POINT || before.stored || before.arg[0] < 0 ||
        strcmp(before.text, "a < n") != 0)
        return -1;
    const Node of = k->nodes->node[before.arg[0]];
    if (of.kind != NODE_COORD || of.stored || !node_same_shape(&of, &before)) return -1;
    if (operand_place(k, x, x->arg[0], at, &to, err) || coordinates(k, &of, &to, c, err) ||
        !place_range(k, &c[of.axis], &least, &most))
        return -1;
    if (size_less(most, before.scale)) return 1;
    return size_less(before.scale, size_plus(least, size_number(1))) ? 2 : -1;
}

static int compute_point(Kernel *k, int node, const Index *at, Error *err)
{
    const Node choice = k->nodes->node[node];
    const int part = chosen_part(k, &choice, at, err);
    Index of_part;
    if (part > 0 && choice.arg[part] >= 0 && k->nodes->node[choice.arg[part]].dtype == choice.dtype)
        return operand_place(k, &choice, choice.arg[part], at, &of_part, err)
                   ? -1
                   : trace(k, choice.arg[part], &of_part, err);
    Step s = {.node = node, .arg = {-1, -1, -1}, .at = *at, .inside = k->inside};
    const Node x = k->nodes->node[node];
    int inside = 0, any = 0;
    for (int i = 0; i < 3; i++) {
        Index to;
        if (x.arg[i] < 0) continue;
        if (i && x.arg[i] == x.arg[i - 1]) {
            s.arg[i] = s.arg[i - 1];
            continue;
        }
        if (operand_place(k, &x, x.arg[i], at, &to, err)) return -1;
        s.arg[i] = trace(k, x.arg[i], &to, err);
        if (s.arg[i] < 0) return -1;
        const Step *a = &k->step[s.arg[i]];
        s.axes |= a->axes;
        if (a->level > s.level) s.level = a->level;
        if (a->scanned > s.scanned) s.scanned = a->scanned;
        inside |= a->inside;
        any = 1;
    }
    if (any && !inside) s.inside = 0; /* nothing that it needs asks for the condition */
    return add_step(k, &s, err);
}

static int trace_point(Kernel *k, int node, const Index *at, Error *err)
{
    const int inside = k->inside;
    for (int i = 0; i < k->n_traced; i++)
        if (k->traced[i].node == node && k->traced[i].inside == inside &&
            index_same(&k->traced[i].at, at))
            return k->traced[i].step;
    const int step = compute_point(k, node, at, err);
    if (step >= 0 && k->n_traced < KERNEL_STEPS) {
        k->traced[k->n_traced].node = node;
        k->traced[k->n_traced].inside = inside;
        k->traced[k->n_traced].step = step;
        k->traced[k->n_traced++].at = *at;
    }
    return step;
}

static Size product(const Axes *a, unsigned mask)
{
    Size n = size_number(1);
    for (int i = 0; i < a->n; i++)
        if (mask >> i & 1) n = size_times(n, a->size[i]);
    return n;
}

/* ---- where shapes part ---- */

enum { MOST_STEPS = 24 };

typedef struct {
    int n;
    Size step[MOST_STEPS]; /* each divides the next one */
} Chain;

static void add_to_chain(Chain *c, Size s)
{
    int at = 0;
    while (at < c->n && size_divides(c->step[at], s) && !size_same(c->step[at], s)) at++;
    if (at < c->n && (size_same(c->step[at], s) || !size_divides(s, c->step[at]))) return;
    if (c->n == MOST_STEPS) return;
    memmove(&c->step[at + 1], &c->step[at], (size_t)(c->n - at) * sizeof(Size));
    c->step[at] = s;
    c->n++;
}

static void add_shape(Chain *c, const Node *x)
{
    Size step = size_number(1);
    for (int d = x->rank - 1; d >= 0; d--) {
        add_to_chain(c, step);
        step = size_times(step, x->size[d]);
    }
}

static void find_shapes_of(const Kernel *k, int node, Size count, Chain *c, unsigned char *seen)
{
    const Node *x = &k->nodes->node[node];
    if (!size_same(node_count(x), count) || seen[node]) return;
    seen[node] = 1;
    if (x->kind == NODE_VIEW) {
        Node y = *x;
        Size step = size_number(1);
        add_shape(c, x);
        for (int d = y.rank - 1; d >= 0; d--) {
            if (!size_is(y.size[d], 1) && !size_same(y.step[d], step)) return;
            step = size_times(step, y.size[d]);
        }
    }
    add_shape(c, x);
    if (x->kind != NODE_POINT && x->kind != NODE_VIEW) return;
    for (int i = 0; i < 3; i++)
        if (x->arg[i] >= 0) find_shapes_of(k, x->arg[i], count, c, seen);
}

/* The other shapes in which the same elements are read: where they part, the axes have to part. */
static void find_shapes(const Kernel *k, int node, Size count, Chain *c)
{
    unsigned char *seen = memory_array((size_t)k->nodes->n, 1);
    find_shapes_of(k, node, count, c, seen);
    free(seen);
}

/* The place along a folded dimension: over axes that the kernel has and that are no rows, or over a new
 * one. */
static int column_place(Kernel *k, Size n, unsigned *used, Index *out, Error *err)
{
    *out = index_none();
    for (int first = 0; first < k->axes.n && !k->has_own; first++) {
        Size all = size_number(1);
        unsigned mask = 0;
        for (int i = first;
             i < k->axes.n && k->bound[i] < 0 && !((k->rows | k->looped | *used) >> i & 1); i++) {
            all = size_times(all, k->axes.size[i]);
            mask |= 1u << i;
            if (!size_same(all, n)) continue;
            Size by = size_number(1);
            for (int e = i; e >= first; e--) {
                out->by[e] = by;
                by = size_times(by, k->axes.size[e]);
            }
            *used |= mask;
            return 0;
        }
    }
    if (k->axes.n == INDEX_AXES)
        return error_set(err, ERROR_UNSUPPORTED, "a kernel of more than %d axes", INDEX_AXES);
    k->axes.size[k->axes.n] = n;
    *used |= 1u << k->axes.n;
    *out = index_axis(k->axes.n++, size_number(1));
    return 0;
}

/* 1: a row's elements lie apart, and neighbouring threads take neighbouring rows. */
static int lies_apart(const Nodes *n, const Node *f)
{
    const int nearest = layout_nearest(n, f->arg[0]);
    return nearest >= 0 && !(f->dims >> nearest & 1);
}

/* 1: so few rows and so many columns that several blocks have to share a row. */
static int is_long(Size rows, Size columns, int apart)
{
    return apart ? rows.at[0] < FEW_STRIPS * STRIP_ROWS && columns.at[0] > LONG_STRIP
                 : rows.at[0] < FEW_ROWS && columns.at[0] > LONG_ROW;
}

/* Of how many parts a row is folded; 1: one block folds it. */
static int choose_parts(Nodes *n, int node, Size rows, Size columns)
{
    const Node *f = &n->node[node];
    int apart = lies_apart(n, f);
    char key[GRAPH_NAME];
    int64_t most = columns.at[0] / PART_COLUMNS, units = rows.at[0], parts = 1;
    if (apart) units = (units + STRIP_ROWS - 1) / STRIP_ROWS;
    if (most > MOST_PARTS) most = MOST_PARTS;
    if (n->plain) return 1;
    if (is_long(rows, columns, apart))
        parts = (apart ? SPLIT_STRIPS : SPLIT_BLOCKS) / (units ? units : 1);
    if (parts < 2 && is_long(rows, columns, apart)) parts = 2;
    if (f->parts || n->node[f->arg[0]].parts || most < 2) return 1;
    node_key(n, node, key);
    return genes_choose(n->genes, key,
                        &(GenePoint){.gene = GENE_SPLIT,
                                     .by_default = (int)(parts > most ? most : parts),
                                     .least = 1,
                                     .most = (int)most});
}

/* The node of a fold's parts. */
static int add_parts(Nodes *n, int fold, int parts)
{
    Node part = n->node[fold];
    part.parts = parts;
    part.whole = fold;
    part.size[part.rank++] = size_number(parts);
    part.stored = 1;
    part.name[0] = 0;
    part.value = part.pair = -1;
    return node_add(n, &part);
}

/* A fold becomes a fold of parts, which lies in memory, and one of the parts. Returns the parts. */
static int split(Nodes *n, int node, int parts)
{
    int at = add_parts(n, node, parts);
    n->node[node].arg[0] = at;
    n->node[node].dims = 1u << (n->node[at].rank - 1);
    return at;
}

/* How many elements a part has: a point over the shape of the parts. */
static int part_counts(Nodes *n, int part, Size columns)
{
    int at = node_coordinate(n, part, n->node[part].rank - 1);
    int y = node_point(n, "min(max(n - a * ((n + p0 - 1) / p0 * p1), 0LL), (n + p0 - 1) / p0 * p1)",
                       DTYPE_I64, at, -1);
    n->node[y].scale = columns;
    n->node[y].p[0] = n->node[part].parts * PART_UNIT;
    n->node[y].p[1] = PART_UNIT;
    return y;
}

static int over_parts(Nodes *n, int part)
{
    return node_fold(n, FOLD_SUM, part, 1u << (n->node[part].rank - 1));
}

static int as_column(Nodes *n, int a)
{
    Size size[OP_MAX_RANK];
    int rank = n->node[a].rank;
    memcpy(size, n->node[a].size, sizeof size);
    size[rank] = size_number(1);
    return node_reshape(n, a, rank + 1, size);
}

static int point3(Nodes *n, const char *text, int a, int b, int c)
{
    int y = node_point(n, text, n->node[a].dtype, a, b);
    n->node[y].arg[2] = c;
    return y;
}

/* A node gets another one's contents, in memory if it is there. */
static void become(Nodes *n, int node, int other)
{
    const Node own = n->node[node];
    n->node[node] = n->node[other];
    n->node[node].value = own.value, n->node[node].stored = own.stored;
    memcpy(n->node[node].name, own.name, sizeof own.name);
}

/* The first of the parts, with a last dimension of 1. */
static int first_part(Nodes *n, int part)
{
    Node x = node_blank(NODE_VIEW, n->node[part].dtype);
    Size step = size_number(1);
    x.arg[0] = part, x.rank = n->node[part].rank;
    memcpy(x.size, n->node[part].size, sizeof x.size);
    for (int d = x.rank - 1; d >= 0; d--) {
        x.step[d] = step;
        step = size_times(step, x.size[d]);
    }
    x.size[x.rank - 1] = size_number(1);
    return node_add(n, &x);
}

/* The mean is the first part's and what the others are away from it: equal means, far from zero, give that
 * number. */
void kernel_join_spread(Nodes *n, int spread, const int part[3], Size columns)
{
    const int with = n->node[spread].pair, dtype = n->node[spread].dtype,
              first = first_part(n, part[1]), away = node_point(n, "a - b", dtype, part[1], first),
              sum = over_parts(n, node_point(n, "a * b", dtype, away, part[2])),
              from = node_reshape(n, first, n->node[sum].rank, n->node[sum].size);
    become(n, with, node_point(n, "b + a / n", dtype, sum, from));
    n->node[with].scale = columns;
    int less = node_point(n, "a - b", dtype, part[1], as_column(n, with));
    become(n, spread, over_parts(n, point3(n, "a + b * c * c", part[0], part[2], less)));
    n->node[with].pair = -1;
}

/* The same of two folds that one pass computes together: their parts are the results of one kernel. */
static int split_pair(Nodes *n, int node, int parts, Size columns)
{
    if (n->node[node].fold == FOLD_MEAN || n->node[node].fold == FOLD_MAX)
        node = n->node[node].pair;
    int with = n->node[node].pair, a = add_parts(n, node, parts), b = add_parts(n, with, parts);
    n->node[a].pair = b, n->node[b].pair = a;
    if (n->node[node].fold == FOLD_EXPSUM) {
        n->node[with].arg[0] = b, n->node[with].dims = 1u << (n->node[b].rank - 1);
        int sum = point3(n, "b == -INFINITY ? 0 : a * exp(b - c)", a, b, as_column(n, with));
        become(n, node, over_parts(n, sum));
        n->node[with].pair = -1;
    } else {
        kernel_join_spread(n, node, (int[]){a, b, part_counts(n, b, columns)}, columns);
    }
    return a;
}

/* A dimension that is folded: its elements are `step` apart. */
typedef struct {
    Size size, step;
} Folded;

/* The columns of a folded dimension: an axis each between the places where shapes part. */
static int columns_place(Kernel *k, const Chain *c, const Folded *f, unsigned *over, Index *out,
                         Error *err)
{
    Size to = size_times(f->step, f->size);
    *out = index_none();
    for (int i = c->n - 1; i >= 0; i--) {
        Index part;
        Size from = c->step[i];
        if (size_same(from, to) || !size_divides(from, to) || !size_divides(f->step, from))
            continue;
        if (column_place(k, size_over(to, from), over, &part, err) ||
            add_scaled(k, out, &part, size_over(from, f->step), err))
            return -1;
        to = from;
    }
    return 0;
}

static int fold_place(Kernel *k, const Node *f, const Index *at, Index *to, unsigned *over,
                      Error *err)
{
    Chain shapes = {0};
    Size steps[OP_MAX_RANK];
    const Node x = k->nodes->node[f->arg[0]];
    Index c[OP_MAX_RANK];
    Node kept = *f;
    kept.rank -= f->parts > 0;
    if (coordinates(k, &kept, at, c, err)) return -1;
    *to = index_none();
    *over = 0;
    Index of[OP_MAX_RANK];
    add_shape(&shapes, &x);
    find_shapes(k, f->arg[0], node_count(&x), &shapes);
    add_to_chain(&shapes, node_count(&x));
    Size next = size_number(1);
    for (int d = x.rank - 1; d >= 0; d--) {
        steps[d] = next;
        next = size_times(next, x.size[d]);
    }
    for (int d = 0, own = 0; d < x.rank; d++) {
        if (!(f->dims >> d & 1)) {
            of[d] = c[own++];
            continue;
        }
        of[d] = index_none();
        if (size_is(x.size[d], 1)) continue;
        if (columns_place(k, &shapes, &(Folded){x.size[d], steps[d]}, over, &of[d], err)) return -1;
    }
    for (int d = x.rank - 1; d >= 0; d--)
        if (add_scaled(k, to, &of[d], steps[d], err)) return -1;
    return 0;
}

/* ---- folds of few terms ---- */

/* The nodes that an element is computed from, counted once a use and to `most` at most. */
static int64_t work_of(const Nodes *n, int node, int64_t most)
{
    const Node *x = &n->node[node];
    int64_t work = 1;
    if (x->stored || x->kind == NODE_INPUT || x->kind == NODE_KEPT) return 1;
    for (int i = 0; i < 3 && work < most; i++)
        if (x->arg[i] >= 0) work += work_of(n, x->arg[i], most - work);
    return work;
}

/* 1: a fold of so few terms at the timed sizes that each element may add them up by itself. */
static int is_short(const Nodes *n, int node)
{
    const Node *f = &n->node[node], *a = f->arg[0] < 0 ? f : &n->node[f->arg[0]];
    int64_t terms = 1;
    if (f->kind != NODE_FOLD || n->plain || f->stored || f->fold > FOLD_PROD || f->pair >= 0 ||
        f->parts || a->parts)
        return 0;
    for (int d = 0; d < a->rank; d++)
        if (f->dims >> d & 1) terms *= a->size[d].at[0];
    return terms <= SHORT_FOLD && terms * work_of(n, f->arg[0], SHORT_WORK) < SHORT_WORK;
}

static int is_looped(const Kernel *k, int node)
{
    for (int i = 0; i < k->n_looped; i++)
        if (k->looped_node[i] == node) return 1;
    return 0;
}

static int without_views(const Nodes *n, int node)
{
    while (n->node[node].kind == NODE_VIEW && !n->node[node].stored) node = n->node[node].arg[0];
    return node;
}

/* A fold that an element needs at more places, such as the parts of a stack, lies in memory. */
enum { MOST_PLACES = 4 };

static int trace_looped(Kernel *k, int node, const Index *at, Error *err)
{
    const Node f = k->nodes->node[node];
    Index to;
    unsigned over;
    int places = 0;
    for (int i = 0; i < k->n; i++) {
        if (k->step[i].node != node) continue;
        if (k->step[i].inside == k->inside && index_same(&k->step[i].at, at)) return i;
        places++;
    }
    if (places == MOST_PLACES && !is_root(k, node)) return want(k, node);
    k->has_own = 1;
    const int rc = fold_place(k, &f, at, &to, &over, err);
    k->has_own = 0;
    if (rc) return -1;
    k->looped |= over;
    const int body = trace(k, f.arg[0], &to, err);
    if (body < 0) return -1;
    if (k->step[body].scanned) return want(k, without_views(k->nodes, f.arg[0]));
    Step s = step_of(k, node, at);
    s.arg[0] = body, s.over = over, s.looped = 1;
    s.axes |= k->step[body].axes & ~over;
    s.scanned = k->step[body].scanned;
    if (k->step[body].level > s.level) s.level = k->step[body].level;
    return add_step(k, &s, err);
}

/* Of the folds of rows that the kernel has: a short one, or, where its rows are fewer than `rows` and in
 * these, and nothing that is folded now needs them, one that can lie in memory; -1. */
static int find_other(const Kernel *k, unsigned rows, int want_short)
{
    if (!want_short && (k->n_open || k->scan >= 0 || k->rows == rows || k->rows & ~rows)) return -1;
    for (int i = 0; i < k->n && k->has_folds; i++) {
        const int node = k->step[i].node;
        if (k->nodes->node[node].kind != NODE_FOLD || k->step[i].arg[0] < 0 || k->step[i].looped)
            continue;
        if (want_short ? is_short(k->nodes, node) : !is_root(k, node)) return node;
    }
    return -1;
}

/* A fold that has no place in the kernel as it is: a short one is looped, another one lies in memory. */
static int trace_misplaced(Kernel *k, int node, const Index *at, unsigned rows, Error *err)
{
    const int other = is_short(k->nodes, node) ? node : find_other(k, rows, 1);
    if (other >= 0 && k->n_looped < KERNEL_LOOPED) {
        k->looped_node[k->n_looped++] = other;
        if (other == node) return trace_looped(k, node, at, err);
        k->again = 1;
        return -1;
    }
    const int less = find_other(k, rows, 0);
    if (less < 0 && is_root(k, node))
        return error_set(err, ERROR_UNSUPPORTED, "folds of different rows");
    return want(k, less >= 0 ? less : node);
}

/* 1: a node is computed from another one, in few steps. */
static int reads(const Nodes *n, int node, int source, int depth)
{
    const Node *x = &n->node[node];
    if (node == source) return 1;
    for (int i = 0; i < 3 && depth < SHORT_FOLD && !x->stored; i++)
        if (x->arg[i] >= 0 && reads(n, x->arg[i], source, depth + 1)) return 1;
    return 0;
}

/* The folds in an expression: the first one that has other rows, -1; whether there are more of these; and
 * the last one of the same rows, -1. */
typedef struct {
    int other, more, same;
    unsigned char *seen; /* by node */
} FoldsWithin;

static void folds_within(const Nodes *n, int node, Size n_rows, FoldsWithin *f)
{
    const Node *x = &n->node[node];
    if (f->seen[node] || x->stored) return;
    f->seen[node] = 1;
    if (x->kind == NODE_FOLD && !is_short(n, node)) {
        const int same = size_same(node_count(x), n_rows);
        if (same) f->same = node;
        f->more |= !same && f->other >= 0 && f->other != node;
        if (!same && f->other < 0) f->other = node;
        return;
    }
    for (int i = 0; i < 3; i++)
        if (x->arg[i] >= 0) folds_within(n, x->arg[i], n_rows, f);
}

/* What alone a node is computed from, if that is no larger and has as many elements: others may need it,
 * too. */
static int made_of_one(const Nodes *n, int node)
{
    for (const Node *x = &n->node[node]; x->kind == NODE_POINT && !x->stored; x = &n->node[node]) {
        const int a = x->arg[0];
        for (int i = 1; i < 3; i++)
            if (x->arg[i] >= 0 && x->arg[i] != a) return node;
        if (a < 0 || (n->node[a].kind != NODE_POINT && n->node[a].kind != NODE_FOLD) ||
            n->node[a].stored || !node_same_shape(x, &n->node[a]) ||
            dtype_size(n->node[a].dtype) > dtype_size(x->dtype))
            return node;
        node = a;
    }
    return node;
}

/* What a fold is over lies in memory first where folds of other rows are in it and it is hardly larger than
 * their results. Returns -1 where it does not. */
static int body_to_store(const Nodes *n, int body, Size n_rows)
{
    enum { HARDLY = 4 };
    body = without_views(n, body);
    const Node *x = &n->node[body];
    if (x->kind != NODE_POINT || x->stored) return -1;
    FoldsWithin f = {.other = -1, .same = -1, .seen = memory_array((size_t)n->n, 1)};
    folds_within(n, body, n_rows, &f);
    free(f.seen);
    if (f.other < 0 || node_count(x).at[0] > HARDLY * node_count(&n->node[f.other]).at[0])
        return -1;
    /* What folds of these rows are over, too, is no result of the other fold's kernel. */
    const int joined = f.same >= 0 && !f.more && n->node[f.other].pair < 0 &&
                       reads(n, n->node[f.same].arg[0], f.other, 0);
    return joined ? f.other : made_of_one(n, body);
}

/* 1: the rows are at most half of a fold's, whose others a kernel of its own would compute, too. */
static int is_selection(const Kernel *k, const Node *f, unsigned rows)
{
    const Size all = node_count(f), own = product(&k->axes, rows);
    for (int i = 0; i < SIZE_BINDINGS; i++)
        if (2 * own.at[i] > all.at[i]) return 0;
    return !f->parts && f->pair < 0;
}

/* The one tensor in memory that a node is computed from, by few points; -1. */
static int only_source(const Nodes *n, int node)
{
    for (int depth = 0; depth < SHORT_FOLD; depth++) {
        const Node *x = &n->node[node];
        if (x->stored) return node;
        if ((x->kind != NODE_POINT && x->kind != NODE_VIEW) || x->arg[1] >= 0 || x->arg[2] >= 0 ||
            x->arg[0] < 0)
            return -1;
        node = x->arg[0];
    }
    return -1;
}

/* 1: a fold of some of the kernel's rows, or of more than these, is over as many columns as its folds are,
 * and the fold of fewer rows adds up what the other one reads: each row does so anew, in the same pass. */
static int is_beside(const Kernel *k, int node, unsigned rows, Size columns)
{
    const unsigned all = rows | k->rows;
    if (k->n_open || k->scan >= 0 || (all != rows && all != k->rows) || k->nodes->plain) return 0;
    for (int i = 0; i < k->n; i++) {
        const Step *s = &k->step[i];
        if (k->nodes->node[s->node].kind != NODE_FOLD || s->arg[0] < 0 || s->looped) continue;
        const int less = all == rows ? s->node : node, more = less == node ? s->node : node,
                  source = only_source(k->nodes, k->nodes->node[less].arg[0]);
        if (s->over & all || !size_same(product(&k->axes, s->over), columns) || source < 0 ||
            is_root(k, less) || k->nodes->node[less].pair >= 0 ||
            !reads(k->nodes, k->nodes->node[more].arg[0], source, 0))
            return 0;
    }
    return 1;
}

static int trace_fold(Kernel *k, int node, const Index *at, Error *err)
{
    if (convolve_pools(k->nodes, node)) return want(k, node);
    if (is_looped(k, node)) return trace_looped(k, node, at, err);
    Node f = k->nodes->node[node];
    unsigned rows = index_axes(at), over;
    Index place = *at, to, part;
    Size n_rows = node_count(&f), all = node_count(&k->nodes->node[f.arg[0]]);
    if (f.parts) n_rows = size_over(n_rows, size_number(f.parts));
    const int some = is_selection(k, &f, rows), outer = k->inside;
    if (*at->text || is_bound(k, at) ||
        (k->has_folds && rows != k->rows && !is_beside(k, node, rows, size_over(all, n_rows))) ||
        (!some && !size_same(product(&k->axes, rows), node_count(&f))))
        return trace_misplaced(k, node, at, rows, err);
    int inner = body_to_store(k->nodes, f.arg[0], n_rows);
    if (inner >= 0) return want(k, inner);
    int apart = lies_apart(k->nodes, &f);
    const Size columns = size_over(all, n_rows);
    if (some) n_rows = product(&k->axes, rows);
    const int own = convolve_parts(k->nodes, node),
              parts = own ? own : choose_parts(k->nodes, node, n_rows, columns);
    if (own || parts > 1)
        return want(k, f.pair < 0 ? split(k->nodes, node, parts)
                                  : split_pair(k->nodes, node, parts, columns));
    Size root = node_count(&k->nodes->node[k->root[0].node]);
    if (!is_root(k, node) && is_long(n_rows, size_over(root, n_rows), apart)) return want(k, node);
    k->has_folds = 1;
    k->rows |= rows;
    if (f.parts && index_divide(&k->scope, at, size_number(f.parts), &place, &part, err))
        return -1; /* the last axis of the place is the part */
    if (fold_place(k, &f, &place, &to, &over, err)) return -1;
    k->inside = 0; /* a row is there whatever an element is chosen for */
    k->n_open++;
    int body = trace(k, f.arg[0], &to, err);
    k->n_open--;
    if (body < 0) return -1;
    if (k->step[body].scanned) return want(k, without_views(k->nodes, f.arg[0]));
    Step s = step_of(k, node, at);
    s.arg[0] = body;
    s.level = k->step[body].level + 1;
    s.over = over;
    k->inside = outer;
    return add_step(k, &s, err);
}

static int trace_coordinate(Kernel *k, int node, const Index *at, Error *err)
{
    Index c[OP_MAX_RANK];
    const Node x = k->nodes->node[node];
    if (coordinates(k, &x, at, c, err)) return -1;
    Step s = step_of(k, node, &c[x.axis]);
    return add_step(k, &s, err);
}

/* The condition that holds inside, with one more term. */
static int add_term(Kernel *k, int step, Size below, Error *err)
{
    Condition c = k->condition[k->inside];
    if (c.n == KERNEL_TERMS)
        return error_set(err, ERROR_UNSUPPORTED, "a condition of more than %d terms", KERNEL_TERMS);
    c.term[c.n].step = step;
    c.term[c.n++].below = below;
    for (int i = 1; i < k->n_conditions; i++)
        if (!memcmp(&k->condition[i], &c, sizeof c)) return k->inside = i, 0;
    if (k->n_conditions == KERNEL_CONDITIONS)
        return error_set(err, ERROR_UNSUPPORTED, "more than %d conditions", KERNEL_CONDITIONS);
    k->inside = k->n_conditions++;
    k->condition[k->inside] = c;
    return 0;
}

/* 1: the elements of a node are one number. */
static int is_number(const Node *x)
{
    return x->kind == NODE_POINT && x->arg[0] < 0 && x->arg[1] < 0 && x->arg[2] < 0;
}

/* 1: a coordinate of a padded tensor is one of its argument, too, wherever the loops are. */
static int is_within(const Kernel *k, const Index *at, Size low, Size own, Size whole)
{
    Size least, most;
    if (size_is(low, 0) && size_same(own, whole)) return 1;
    return place_range(k, at, &least, &most) && size_less(low, size_plus(least, size_number(1))) &&
           size_less(most, size_plus(low, own));
}

static int trace_pad(Kernel *k, int node, const Index *at, Error *err)
{
    Index c[OP_MAX_RANK], to = index_none();
    const Node x = k->nodes->node[node], a = k->nodes->node[x.arg[0]];
    const int outer = k->inside;
    Size step = size_number(1);
    if (k->condition[outer].n && k->n > NESTED_STEPS && !a.stored && a.kind != NODE_VIEW &&
        !is_number(&a))
        return want(k, x.arg[0]);
    if (coordinates(k, &x, at, c, err)) return -1;
    for (int d = x.rank - 1; d >= 0; d--) {
        Index own = c[d];
        if (is_within(k, &c[d], x.step[d], a.size[d], x.size[d])) {
            own.plus = size_plus(own.plus, size_times(x.step[d], size_number(-1)));
        } else {
            int place = add_place(k, node, &c[d], x.step[d], err);
            int axis = place < 0 ? -1 : add_bound(k, place, a.size[d], err);
            if (axis < 0 || add_term(k, place, a.size[d], err)) return -1;
            own = index_axis(axis, size_number(1));
        }
        if (add_scaled(k, &to, &own, step, err)) return -1;
        step = size_times(step, a.size[d]);
    }
    const int body = trace(k, x.arg[0], &to, err);
    if (body < 0 || k->inside == outer) return body; /* all elements are the argument's */
    Step s = step_of(k, node, at);
    s.axes |= k->step[body].axes;
    if (k->step[body].level > s.level) s.level = k->step[body].level;
    s.arg[0] = body;
    s.scanned = k->step[body].scanned;
    k->inside = outer;
    return add_step(k, &s, err);
}

/* The axis along which a scan's coordinate walks, in steps of 1 or, backward, of -1; -1: none. */
static int scan_axis(const Kernel *k, const Node *x, const Index *c, int *backward)
{
    const Index *own = &c[x->axis];
    const Size n = x->size[x->axis];
    unsigned axes = index_axes(own);
    for (int i = 0; i < k->axes.n; i++) {
        if (axes != 1u << i || *own->text || k->bound[i] >= 0 || !size_same(k->axes.size[i], n))
            continue;
        *backward = size_is(own->by[i], -1);
        if (*backward ? size_same(own->plus, size_plus(n, size_number(-1)))
                      : size_is(own->by[i], 1) && size_is(own->plus, 0))
            return i;
    }
    return -1;
}

/* A scan is computed where every loop is one over its elements. */
static int trace_scan(Kernel *k, int node, const Index *at, Error *err)
{
    Index c[OP_MAX_RANK];
    const Node x = k->nodes->node[node];
    int backward = 0, axis;
    if (coordinates(k, &x, at, c, err)) return -1;
    axis = scan_axis(k, &x, c, &backward);
    unsigned all = index_axes(at), rows = axis < 0 ? 0 : all & ~(1u << axis), loops = 0;
    for (int i = 0; i < k->axes.n; i++)
        if (k->bound[i] < 0 && !size_is(k->axes.size[i], 1)) loops |= 1u << i;
    loops &= ~k->looped;
    if (axis < 0 || k->inside || *at->text || is_bound(k, at) || loops & ~all ||
        !size_same(product(&k->axes, all), node_count(&x)) || (k->has_folds && k->rows != rows) ||
        (k->scan >= 0 && (k->scan != axis || k->backward != backward)))
        return is_root(k, node) ? error_set(err, ERROR_UNSUPPORTED, "a scan along no loop")
                                : want(k, node);
    k->scan = axis;
    k->backward = backward;
    k->has_folds = 1;
    k->rows = rows;
    int body = trace(k, x.arg[0], at, err);
    if (body < 0) return -1;
    Step s = step_of(k, node, at);
    s.arg[0] = body;
    s.level = k->step[body].level;
    s.scanned = k->step[body].scanned + 1;
    return add_step(k, &s, err);
}

static int trace_gather(Kernel *k, int node, const Index *at, Error *err)
{
    Index c[OP_MAX_RANK], by = index_none(), to = index_none();
    const Node x = k->nodes->node[node], a = k->nodes->node[x.arg[0]], n = k->nodes->node[x.arg[1]];
    if (coordinates(k, &x, at, c, err)) return -1;
    Size step = size_number(1);
    for (int e = n.rank - 1; e >= 0; e--) {
        if (add_scaled(k, &by, &c[x.across ? x.axis + e : e], step, err)) return -1;
        step = size_times(step, n.size[e]);
    }
    int number = trace(k, x.arg[1], &by, err);
    int axis = number < 0 ? -1 : add_bound(k, number, a.size[x.axis], err);
    if (axis < 0) return -1;
    const Index place = index_axis(axis, size_number(1));
    step = size_number(1);
    for (int d = a.rank - 1; d >= 0; d--) {
        int own = x.across && d > x.axis ? d + n.rank - 1 : d;
        if (add_scaled(k, &to, d == x.axis ? &place : &c[own], step, err)) return -1;
        step = size_times(step, a.size[d]);
    }
    return trace(k, x.arg[0], &to, err);
}

/* The place of an element by loops alone, where it lies in the tensor wherever they are, also outside of the
 * part that a condition is about: parts of one tensor that are joined again read the same elements then. Each
 * coordinate is looked at: a row beyond the last one is in the tensor only where there is one more image. */
static int by_loops_alone(Kernel *k, int node, const Index *at, Index *out, Error *err)
{
    Index c[OP_MAX_RANK];
    Size least, most;
    *out = *at;
    if (!k->inside || *at->text || k->nodes->plain) return 0;
    for (int i = 0; i < k->axes.n; i++) {
        if (size_is(at->by[i], 0) || k->bound[i] < 0) continue;
        const Step *s = &k->step[k->bound[i]];
        if (!s->place || *s->at.text || is_bound(k, &s->at)) return 0;
        out->by[i] = size_number(0);
        if (add_scaled(k, out, &s->at, at->by[i], err)) return 0;
    }
    const Node x = k->nodes->node[node];
    if (coordinates(k, &x, out, c, err)) return 0;
    for (int d = 0; d < x.rank; d++)
        if (!place_range(k, &c[d], &least, &most) || !size_less(size_number(-1), least) ||
            !size_less(most, x.size[d]))
            return 0;
    return 1;
}

static int trace_stored(Kernel *k, int node, const Index *at, Error *err)
{
    const int outer = k->inside;
    Index place;
    const int anywhere = by_loops_alone(k, node, at, &place, err);
    if (anywhere) k->inside = 0;
    const Step s = step_of(k, node, anywhere ? &place : at);
    k->inside = outer;
    return add_step(k, &s, err);
}

static int trace(Kernel *k, int node, const Index *at, Error *err)
{
    const Node *x = &k->nodes->node[node];
    if (x->stored && !is_root(k, node)) return trace_stored(k, node, at, err);
    switch (x->kind) {
    case NODE_POINT: return trace_point(k, node, at, err);
    case NODE_FOLD: return trace_fold(k, node, at, err);
    case NODE_VIEW: {
        const Node copy = *x;
        return trace_view(k, &copy, at, err);
    }
    case NODE_SCAN: return trace_scan(k, node, at, err);
    case NODE_PAD: return trace_pad(k, node, at, err);
    case NODE_GATHER: return trace_gather(k, node, at, err);
    case NODE_COORD: return trace_coordinate(k, node, at, err);
    default: return want(k, node);
    }
}

/* ---- axes of a result ---- */

/* The shapes of the rows that a fold is over, where its columns are the last dimensions: where these part, so
 * do the axes of its result. */
static void find_row_shapes(const Kernel *k, int fold, Chain *c)
{
    const Node *f = &k->nodes->node[fold], *x = &k->nodes->node[f->arg[0]];
    Size columns = size_number(1);
    Chain all = {0};
    int d = x->rank - 1;
    for (; d >= 0 && f->dims >> d & 1; d--) columns = size_times(columns, x->size[d]);
    if (f->dims & ((1u << (d + 1)) - 1) || f->parts) return;
    find_shapes(k, f->arg[0], node_count(x), &all);
    for (int i = 0; i < all.n; i++)
        if (size_divides(columns, all.step[i])) add_to_chain(c, size_over(all.step[i], columns));
}

/* Results of fewer elements than the largest one has are values of its rows. */
static int is_of_rows(const Kernel *k, int r)
{
    return size_less(node_count(&k->nodes->node[k->root[r].node]),
                     node_count(&k->nodes->node[k->root[kernel_largest(k)].node]));
}

/* The axes of the results of as many elements. They part where the shapes do that these are made of. */
static int root_axes(Kernel *k, Error *err)
{
    Chain c = {0};
    Index at = index_none();
    for (int r = 0; r < k->n_roots; r++) {
        const int root = k->root[r].node;
        const Node *x = &k->nodes->node[root];
        const Size count = node_count(x);
        if (is_of_rows(k, r)) continue;
        add_shape(&c, x);
        if (!x->parts) find_shapes(k, root, count, &c);
        if (x->kind == NODE_FOLD) find_row_shapes(k, root, &c);
        add_to_chain(&c, count);
    }
    for (int i = c.n - 1; i > 0; i--) {
        Size n = size_over(c.step[i], c.step[i - 1]);
        if (size_is(n, 1)) continue;
        if (k->axes.n == INDEX_AXES)
            return error_set(err, ERROR_UNSUPPORTED, "a result of more than %d axes", INDEX_AXES);
        k->axes.size[k->axes.n] = n;
        at.by[k->axes.n++] = c.step[i - 1];
    }
    for (int r = 0; r < k->n_roots; r++) k->root[r].at = at;
    return 0;
}

static void begin(Kernel *k, Nodes *nodes)
{
    memset(k, 0, sizeof *k);
    k->nodes = nodes;
    k->wanted = k->scan = -1;
    k->n_conditions = 1;
    memset(k->bound, -1, sizeof k->bound);
    k->scope = (IndexScope){&k->axes, k, kernel_size};
    for (int i = 0; i < INDEX_AXES; i++)
        snprintf(k->axes.name[i], sizeof k->axes.name[i], "i%d", i);
}

/* The place of a row by the first axes of the largest result, where no fold has one yet. */
static int first_axes(const Kernel *k, Size rows, Index *at)
{
    const int largest = kernel_largest(k);
    const Size columns = size_over(node_count(&k->nodes->node[k->root[largest].node]), rows);
    unsigned of = 0;
    *at = index_none();
    for (int i = 0; i < k->axes.n; i++) {
        const Size by = k->root[largest].at.by[i];
        if (size_is(by, 0) || !size_divides(columns, by)) continue;
        at->by[i] = size_over(by, columns);
        of |= 1u << i;
    }
    return size_same(product(&k->axes, of), rows);
}

/* Traces a result of rows, whose place is that of a fold: 1 if nothing else is to lie in memory for it. */
static int trace_of_rows(Kernel *k, int r, Error *err)
{
    const int node = k->root[r].node;
    const Size all = node_count(&k->nodes->node[k->root[kernel_largest(k)].node]),
               own = node_count(&k->nodes->node[node]);
    int found = is_long(own, size_over(all, own), 0)
                    ? 0
                    : !k->has_folds && first_axes(k, own, &k->root[r].at);
    for (int i = 0; i < k->n && k->has_folds && !found; i++) {
        const Step *s = &k->step[i];
        if (k->nodes->node[s->node].kind != NODE_FOLD || s->arg[0] < 0 || s->looped ||
            !size_same(product(&k->axes, index_axes(&s->at)), own) ||
            is_long(own, size_over(all, own), 0))
            continue;
        k->root[r].at = s->at;
        found = 1;
    }
    return found ? trace(k, node, &k->root[r].at, err)
                 : error_set(err, ERROR_UNSUPPORTED, "a result that is none of rows");
}

static int trace_roots(Kernel *k, Error *err)
{
    for (int of_rows = 0; of_rows < 2; of_rows++)
        for (int r = 0; r < k->n_roots; r++) {
            if (is_of_rows(k, r) != of_rows) continue;
            const int step =
                of_rows ? trace_of_rows(k, r, err) : trace(k, k->root[r].node, &k->root[r].at, err);
            if (step < 0) return k->wanted >= 0 || k->again ? 1 : -1;
            k->root[r].step = step;
            k->step[step].axes |= kernel_loops(k, &k->root[r].at);
        }
    return 0;
}

static int trace_all(Kernel *k, Nodes *nodes, const int *root, int n, Error *err)
{
    int looped[KERNEL_LOOPED], n_looped = 0, rc;
    do {
        begin(k, nodes);
        k->n_roots = n, k->n_looped = n_looped;
        memcpy(k->looped_node, looped, (size_t)n_looped * sizeof *looped);
        for (int r = 0; r < n; r++) k->root[r].node = root[r];
        if (root_axes(k, err)) return -1;
        rc = trace_roots(k, err);
        n_looped = k->n_looped;
        memcpy(looped, k->looped_node, (size_t)n_looped * sizeof *looped);
    } while (k->again);
    return rc;
}

int kernel_trace(Kernel *k, Nodes *nodes, int root, Error *err)
{
    const int pair = nodes->node[root].pair;
    const int both = pair >= 0 && (nodes->node[root].parts || nodes->node[pair].stored);
    return trace_all(k, nodes, (int[]){root, pair}, both ? 2 : 1, err);
}

int kernel_trace_together(Kernel *k, Nodes *nodes, const int *root, int n, Error *err)
{
    return trace_all(k, nodes, root, n, err);
}
