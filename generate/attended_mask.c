/* Masks of scores that hide what is behind the diagonal. */
#include <math.h>
#include <string.h>

#include "generate/attended.h"

static int is_point(const Nodes *n, int node, const char *text)
{
    return node >= 0 && n->node[node].kind == NODE_POINT && !strcmp(n->node[node].text, text);
}

/* A part of a node in which coordinates of the last two dimensions are the node's own. */
static int same_coordinates(const Nodes *n, int node)
{
    for (;;) {
        const Node *x = &n->node[node];
        if (is_point(n, node, "a") && x->arg[0] >= 0) {
            node = x->arg[0];
            continue;
        }
        if (x->kind != NODE_VIEW || x->rank < 2) return node;
        const Node *y = &n->node[x->arg[0]];
        if (y->rank < 2 || !size_is(x->offset, 0) || !size_is(x->step[x->rank - 1], 1) ||
            !size_same(x->step[x->rank - 2], y->size[y->rank - 1]))
            return -1;
        node = x->arg[0];
    }
}

/* A triangle of one number: its value, and the numbers of columns beside rows where it lies. */
typedef struct {
    int upper;
    int64_t diagonal;
    double value;
} Triangle;

static int is_coordinate(const Nodes *n, int node, int from_last)
{
    const Node *x = &n->node[node];
    return x->kind == NODE_COORD && x->axis == x->rank - from_last;
}

static int triangle_of(const Nodes *n, int node, Triangle *out)
{
    node = node < 0 ? -1 : same_coordinates(n, node);
    if (!is_point(n, node, "a ? b : 0") || n->node[node].arg[1] < 0) return 0;
    const int keep = n->node[node].arg[0];
    const Node *value = &n->node[n->node[node].arg[1]];
    out->upper = is_point(n, keep, "b - a >= p0");
    if (!out->upper && !is_point(n, keep, "b - a <= p0")) return 0;
    if (!is_coordinate(n, n->node[keep].arg[0], 2) || !is_coordinate(n, n->node[keep].arg[1], 1))
        return 0;
    if (value->kind != NODE_POINT || value->arg[0] >= 0 || strcmp(value->text, "a")) return 0;
    out->value = value->number[0];
    out->diagonal = (int64_t)n->node[keep].p[0];
    return 1;
}

/* 1: the condition holds wherever a column is behind the row's number + *diagonal. */
static int holds_behind(const Nodes *n, int node, int64_t *diagonal)
{
    Triangle t;
    node = same_coordinates(n, node);
    if (node < 0) return 0;
    if ((is_point(n, node, "a == p0") && n->node[node].p[0] == 0) || is_point(n, node, "a == 0")) {
        if (!triangle_of(n, n->node[node].arg[0], &t) || t.upper || t.value == 0) return 0;
        *diagonal = t.diagonal;
        return 1;
    }
    if (!triangle_of(n, node, &t) || !t.upper || t.value == 0) return 0;
    *diagonal = t.diagonal - 1;
    return 1;
}

/* Rows and columns of the mask are not broadcast. */
static int is_whole_mask(const Node *x, const Node *mask)
{
    return x->rank >= 2 && mask->rank >= 2 &&
           !memcmp(&x->size[x->rank - 2], &mask->size[mask->rank - 2], 2 * sizeof(Size));
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
    Triangle t;
    if (x->kind != NODE_POINT || depth > 16) return 0;
    if (is_point(n, node, "a") || is_point(n, node, "a + p0") ||
        (is_point(n, node, "a * b") && x->arg[1] < 0 && x->number[1] > 0))
        return hides(n, x, 0, diagonal, depth);
    if (is_point(n, node, "b != 0 ? p0 : a"))
        return isinf(x->p[0]) && x->p[0] < 0 && x->arg[1] >= 0 &&
               is_whole_mask(x, &n->node[x->arg[1]]) && holds_behind(n, x->arg[1], diagonal);
    if (!is_point(n, node, "a + p0 * b") || !(x->p[0] > 0)) return 0;
    for (int i = 0; i < 2; i++)
        if (x->arg[i] >= 0 && is_whole_mask(x, &n->node[x->arg[i]]) &&
            triangle_of(n, x->arg[i], &t) && t.upper && isinf(t.value) && t.value < 0) {
            *diagonal = t.diagonal - 1;
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
    return a->is_soft ? is_hidden(n, a->scores, diagonal, 0)
                      : is_point(n, a->scores, "a < 0 ? 0 : a") && hides(n, x, 0, diagonal, 0);
}
