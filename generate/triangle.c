/* What triangles of matrices leave of elements, and masks of scores that hide what is behind the diagonal. */
#include "generate/triangle.h"

#include <math.h>
#include <string.h>

#include "generate/attended.h"

/* DEEP expressions, and those of MANY paths, are taken to need all. */
enum { DEEP = 24, MANY = 4096 };

static const Band all = {-BAND_FAR, BAND_FAR}, none = {BAND_FAR, -BAND_FAR};

int band_is_all(Band b)
{
    return b.least <= -BAND_FAR && b.most >= BAND_FAR;
}

static Band meet(Band a, Band b)
{
    return (Band){a.least > b.least ? a.least : b.least, a.most < b.most ? a.most : b.most};
}

static Band join(Band a, Band b)
{
    if (a.least > a.most) return b;
    if (b.least > b.most) return a;
    return (Band){a.least < b.least ? a.least : b.least, a.most > b.most ? a.most : b.most};
}

/* What is outside of a band with one bound. */
static Band outside(Band b)
{
    if (band_is_all(b)) return none;
    if (b.least > -BAND_FAR) return (Band){-BAND_FAR, b.least - 1};
    return (Band){b.most + 1, BAND_FAR};
}

int triangle_is_point(const Nodes *n, int node, const char *text)
{
    return node >= 0 && n->node[node].kind == NODE_POINT && !strcmp(n->node[node].text, text);
}

int triangle_inside(const Nodes *n, int node)
{
    for (;;) {
        const Node *x = &n->node[node];
        if (triangle_is_point(n, node, "a") && x->arg[0] >= 0) {
            node = x->arg[0];
            continue;
        }
        if (x->kind != NODE_VIEW || x->rank < 2) return node;
        const Node *y = &n->node[x->arg[0]];
        if (y->rank < 2 || !size_is(x->offset, 0) || !size_is(x->step[x->rank - 1], 1) ||
            !size_same(x->step[x->rank - 2], y->size[y->rank - 1]) ||
            !size_same(x->size[x->rank - 1], y->size[y->rank - 1]))
            return -1;
        node = x->arg[0];
    }
}

static int is_coordinate(const Nodes *n, int node, int from_last)
{
    const Node *x = &n->node[node];
    return x->kind == NODE_COORD && x->axis == x->rank - from_last;
}

/* A comparison of a column with its row. */
static int read_comparison(const Nodes *n, int node, Band *out)
{
    const int upper = triangle_is_point(n, node, "b - a >= p0");
    if (!upper && !triangle_is_point(n, node, "b - a <= p0")) return 0;
    const Node *x = &n->node[node];
    const double diagonal = x->p[0];
    if (!is_coordinate(n, x->arg[0], 2) || !is_coordinate(n, x->arg[1], 1) ||
        !(diagonal > -BAND_FAR && diagonal < BAND_FAR))
        return 0;
    *out = all;
    *(upper ? &out->least : &out->most) = (int64_t)diagonal;
    return 1;
}

int triangle_read(const Nodes *n, int node, Band *out, double *value)
{
    node = node < 0 ? -1 : triangle_inside(n, node);
    *value = 1;
    if (node < 0) return 0;
    if (read_comparison(n, node, out)) return 1;
    const Node *x = &n->node[node];
    if ((triangle_is_point(n, node, "a == p0") && x->p[0] == 0) ||
        triangle_is_point(n, node, "a == 0")) {
        if (!triangle_read(n, x->arg[0], out, value) || *value == 0) return 0;
        *out = outside(*out);
        *value = 1;
        return 1;
    }
    if (triangle_is_point(n, node, "a != 0")) {
        const int found = triangle_read(n, x->arg[0], out, value) && *value != 0;
        *value = 1;
        return found;
    }
    if (!triangle_is_point(n, node, "a ? b : 0") || x->arg[1] < 0) return 0;
    const Node *number = &n->node[x->arg[1]];
    if (number->kind != NODE_POINT || number->arg[0] >= 0 || strcmp(number->text, "a")) return 0;
    *value = number->number[0];
    return read_comparison(n, x->arg[0], out);
}

Band triangle_zeros(const Nodes *n, int node)
{
    Band zeros = all, own;
    while (node >= 0 && (node = triangle_inside(n, node)) >= 0 &&
           triangle_is_point(n, node, "a ? b : 0") &&
           read_comparison(n, n->node[node].arg[0], &own)) {
        zeros = meet(zeros, own);
        node = n->node[node].arg[1];
    }
    return zeros;
}

/* ---- what is needed ---- */

typedef struct {
    const Nodes *n;
    int of, seen;
} Needs;

static int has(Needs *s, int node, int depth)
{
    const Node *x = &s->n->node[node];
    int found = node == s->of || ++s->seen > MANY;
    for (int i = 0; i < 3 && !found; i++)
        if (x->arg[i] >= 0) found = depth > DEEP || has(s, x->arg[i], depth + 1);
    return found;
}

/* Rows and columns of a condition are not broadcast. */
static int is_whole(const Node *x, const Node *condition)
{
    return x->rank >= 2 && condition->rank >= 2 &&
           !memcmp(&x->size[x->rank - 2], &condition->size[condition->rank - 2], 2 * sizeof(Size));
}

static int needed(Needs *s, int node, Band *out, int depth);

/* The condition of a choice, and the arguments where it holds and where it does not; -1: a number. */
static int is_choice(const Nodes *n, int node, int *condition, int *then, int *other)
{
    const Node *x = &n->node[node];
    if (triangle_is_point(n, node, "a ? b : 0") || triangle_is_point(n, node, "a ? b : 0.f"))
        *condition = x->arg[0], *then = x->arg[1], *other = -1;
    else if (triangle_is_point(n, node, "a != 0 ? b : c") ||
             triangle_is_point(n, node, "a ? b : c"))
        *condition = x->arg[0], *then = x->arg[1], *other = x->arg[2];
    else if (triangle_is_point(n, node, "b != 0 ? p0 : a"))
        *condition = x->arg[1], *then = -1, *other = x->arg[0];
    else if (triangle_is_point(n, node, "b != 0 ? c : a"))
        *condition = x->arg[1], *then = x->arg[2], *other = x->arg[0];
    else
        return 0;
    return *condition >= 0;
}

static int needed_of_choice(Needs *s, int node, Band *out, int depth)
{
    int condition, side[2];
    Band band, own;
    double value;
    if (!is_choice(s->n, node, &condition, &side[0], &side[1]) || has(s, condition, depth) ||
        !is_whole(&s->n->node[node], &s->n->node[condition]) ||
        !triangle_read(s->n, condition, &band, &value) || value == 0)
        return 0;
    *out = none;
    for (int i = 0; i < 2; i++) {
        if (side[i] < 0) continue;
        if (!needed(s, side[i], &own, depth + 1)) return 0;
        *out = join(*out, meet(own, i ? outside(band) : band));
    }
    return 1;
}

static int needed(Needs *s, int node, Band *out, int depth)
{
    const Node *x = &s->n->node[node];
    const Node *of = &s->n->node[s->of];
    Band own;
    *out = all;
    if (node == s->of) return 1;
    *out = none;
    if (!has(s, node, depth)) return 1;
    if (depth > DEEP || s->seen > MANY) return 0;
    if (x->kind == NODE_VIEW) {
        const int inside = triangle_inside(s->n, node);
        return inside >= 0 && inside != node && needed(s, inside, out, depth + 1);
    }
    if (x->kind != NODE_POINT || !is_whole(x, of)) return 0;
    if (needed_of_choice(s, node, out, depth)) return 1;
    *out = none;
    for (int i = 0; i < 3; i++) {
        if (x->arg[i] < 0) continue;
        if (!needed(s, x->arg[i], &own, depth + 1)) return 0;
        *out = join(*out, own);
    }
    return 1;
}

int triangle_needed(const Nodes *n, int node, int of, Band *out)
{
    Needs s = {.n = n, .of = of};
    return needed(&s, node, out, 0);
}

/* ---- masks of attention ---- */

/* 1: the condition holds wherever a column is behind the row's number + *diagonal. */
static int holds_behind(const Nodes *n, int node, int64_t *diagonal)
{
    Band b;
    double value;
    if (!triangle_read(n, node, &b, &value) || value == 0 || b.most < BAND_FAR) return 0;
    *diagonal = b.least - 1;
    return 1;
}

static int is_hidden(const Nodes *n, int node, int64_t *diagonal, int depth);

/* An argument with the shape of the result. */
static int hides(const Nodes *n, const Node *x, int arg, int64_t *diagonal, int depth)
{
    const int a = x->arg[arg];
    return a >= 0 && node_same_shape(x, &n->node[a]) && is_hidden(n, a, diagonal, depth + 1);
}

static int is_hidden(const Nodes *n, int node, int64_t *diagonal, int depth)
{
    const Node *x = &n->node[node];
    Band b;
    double value;
    if (x->kind != NODE_POINT || depth > 16) return 0;
    if (triangle_is_point(n, node, "a") || triangle_is_point(n, node, "a + p0") ||
        (triangle_is_point(n, node, "a * b") && x->arg[1] < 0 && x->number[1] > 0))
        return hides(n, x, 0, diagonal, depth);
    if (triangle_is_point(n, node, "b != 0 ? p0 : a"))
        return isinf(x->p[0]) && x->p[0] < 0 && x->arg[1] >= 0 &&
               is_whole(x, &n->node[x->arg[1]]) && holds_behind(n, x->arg[1], diagonal);
    if (!triangle_is_point(n, node, "a + p0 * b") || !(x->p[0] > 0)) return 0;
    for (int i = 0; i < 2; i++)
        if (x->arg[i] >= 0 && is_whole(x, &n->node[x->arg[i]]) &&
            triangle_read(n, x->arg[i], &b, &value) && b.most >= BAND_FAR && isinf(value) &&
            value < 0) {
            *diagonal = b.least - 1;
            return 1;
        }
    return hides(n, x, 0, diagonal, depth) || hides(n, x, 1, diagonal, depth);
}

int attention_is_causal(const Nodes *n, const Attended *a, int64_t *diagonal)
{
    const Node *x = &n->node[a->scores];
    *diagonal = 0;
    if (x->kind != NODE_POINT || x->rank < 2 || !size_same(x->size[x->rank - 1], a->keys) ||
        !size_same(x->size[x->rank - 2], a->rows))
        return 0;
    return a->is_soft
               ? is_hidden(n, a->scores, diagonal, 0)
               : triangle_is_point(n, a->scores, "a < 0 ? 0 : a") && hides(n, x, 0, diagonal, 0);
}
