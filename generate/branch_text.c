/* A branch pays where it saves work: a warp whose vectors all lie in one part skips the others. */
#include "generate/branch_text.h"

#include <stdio.h>
#include <string.h>

enum { ONCE = 255 };     /* in place of a condition: known once for the vector */
enum { LEAST_WORK = 2 }; /* operations; with one the select was as fast by the model (2026-11-30) */

static int is_padded(const Writer *w, int step)
{
    return writer_is_guarded(w, step);
}

/* 1: the place is the same for all elements of a vector. */
static int is_of_row(const Writer *w, const Step *place)
{
    const unsigned axes = index_axes(&place->at);
    for (int i = 0; i < w->k->axes.n; i++)
        if (axes >> i & 1 && (i == w->last || w->k->bound[i] >= 0)) return 0;
    return 1;
}

/* The axis whose place decides whether a vector lies in the part; -1: that may differ within a vector. */
static int deciding_axis(const Writer *w, const Condition *c)
{
    int found = -1;
    for (int t = 0; t < c->n; t++) {
        const int step = c->term[t].step;
        int axis = 0;
        if (is_of_row(w, &w->k->step[step])) continue;
        while (axis < w->k->axes.n && w->k->bound[axis] != step) axis++;
        if (found >= 0 || axis == w->k->axes.n) return -1;
        found = axis;
    }
    return found;
}

static int is_member(const Writer *w, const unsigned char *set, int step, int c)
{
    const Step *s = &w->k->step[step];
    return set[step] && s->inside == c && !s->place && in_columns(w, step);
}

/* 1: all that a member needs is known before the branch, or is computed in it. */
static int has_arguments(const Writer *w, const unsigned char *set, int step, int c)
{
    for (int i = 0; i < 3; i++) {
        const int a = w->k->step[step].arg[i];
        if (a < 0 || !in_columns(w, a) || w->k->step[a].place) continue;
        if (!is_member(w, set, a, c) || is_padded(w, a)) return 0;
    }
    return 1;
}

/* 1: a step outside of the branch needs the member. */
static int is_used_outside(const Writer *w, const unsigned char *set, int step, int c)
{
    for (int i = 0; i < w->k->n; i++) {
        if (!set[i] || is_member(w, set, i, c)) continue;
        for (int a = 0; a < 3; a++)
            if (w->k->step[i].arg[a] == step) return 1;
    }
    for (int r = 0; r < w->k->n_roots; r++)
        if (w->k->root[r].step == step) return 1;
    return 0;
}

/* 1: the branch of a condition is worth it, and can be written. */
static int is_branch(const Writer *w, const unsigned char *set, int c)
{
    const int axis = deciding_axis(w, &w->k->condition[c]);
    int work = 0, whole = 0, padded = 0;
    if (axis < 0) return 0;
    for (int i = 0; i < w->k->n; i++) {
        if (!is_member(w, set, i, c)) continue;
        if (is_fold(w, i) || writer_is_scan(w, i) || !has_arguments(w, set, i, c)) return 0;
        if (is_padded(w, i)) {
            padded++;
            continue;
        }
        if (is_used_outside(w, set, i, c)) return 0;
        if (!is_load(w, i))
            work++;
        else if (writer_shifted(w, i) == axis && !writer_beside(w, i))
            whole++;
    }
    return padded && whole && work >= LEAST_WORK;
}

/* 1: a branch's part begins or ends at the size along an axis: vectors do not go across it. */
static int is_border(const Writer *w, const unsigned char *in, Size at)
{
    for (int i = 0; i < w->k->n; i++) {
        if (!in[i] || in[i] == ONCE || !is_padded(w, i)) continue;
        const Condition *c = &w->k->condition[in[i]];
        for (int t = 0; t < c->n; t++) {
            const Index *place = &w->k->step[c->term[t].step].at;
            if (size_is(place->by[w->last], 1) &&
                (size_is(size_plus(at, place->plus), 0) ||
                 (size_is(place->plus, 0) && size_same(at, c->term[t].below))))
                return 1;
        }
    }
    return 0;
}

/* 1: the step says on which side of such a border the vector lies. */
static int is_side(const Writer *w, const unsigned char *in, int step)
{
    const Node *x = node_of(w, step);
    const int arg = w->k->step[step].arg[0];
    if (x->kind != NODE_POINT || !x->text || strcmp(x->text, "a < n") || arg < 0) return 0;
    const Index *at = &w->k->step[arg].at;
    return node_of(w, arg)->kind == NODE_COORD && index_axes(at) == 1u << w->last &&
           size_is(at->by[w->last], 1) && size_is(at->plus, 0) && is_border(w, in, x->scale);
}

void branch_find(const Writer *w, const Pass *p, unsigned char *in)
{
    unsigned char set[KERNEL_STEPS];
    memset(in, 0, KERNEL_STEPS);
    if (w->vec < 2 || w->k->nodes->plain || w->moved) return;
    writer_needed(w, p, set);
    for (int c = 1; c < w->k->n_conditions; c++) {
        if (!is_branch(w, set, c)) continue;
        for (int i = 0; i < w->k->n; i++)
            if (is_member(w, set, i, c)) in[i] = (unsigned char)c;
    }
    for (int i = 0; i < w->k->n; i++)
        if (set[i] && !in[i] && in_columns(w, i) && is_side(w, in, i)) in[i] = ONCE;
}

int branch_hides(const Writer *w, const unsigned char *in, int step)
{
    return in[step] && in[step] != ONCE && !is_padded(w, step);
}

void branch_put_elements_head(Writer *w, const char *indent)
{
    const char *name = w->k->axes.name[w->last];
    buffer_printf(&w->body,
                  "#pragma unroll\n%sfor (int v = 0; v < V; v++) {\n%s    const %s %s = from_%s + "
                  "v;\n%s    (void)%s;\n",
                  indent, indent, w->k->has_folds && !w->wide ? "int" : "long long", name, name,
                  indent, name);
}

static void put_condition(Writer *w, const Condition *c, const char *indent)
{
    const char *type = w->wide ? "unsigned long long" : "unsigned";
    buffer_printf(&w->body, "%sif (", indent);
    for (int t = 0; t < c->n; t++) {
        buffer_printf(&w->body, "%s(%s)(", t ? " && " : "", type);
        writer_index(w, &w->k->step[c->term[t].step].at);
        buffer_printf(&w->body, ") < (%s)%s", type, writer_size(w, c->term[t].below));
    }
    buffer_puts(&w->body, ") {\n");
}

/* The elements of the padded steps of a branch: `inner`, which is what they pad, or the number around it. */
static void put_padded(Writer *w, const unsigned char *in, int c, int inner, const char *indent)
{
    for (int i = 0; i < w->k->n; i++) {
        if (in[i] != c || !is_padded(w, i)) continue;
        buffer_printf(&w->body, "%su%d[v] = ", indent, i);
        if (inner)
            writer_value(w, w->k->step[i].arg[0], writer_type(w, i));
        else
            writer_number(w, node_of(w, i)->number[0], writer_type(w, i));
        buffer_puts(&w->body, ";\n");
    }
}

static void put_branch(Writer *w, const unsigned char *in, int c, const char *indent)
{
    unsigned char set[KERNEL_STEPS] = {0};
    char deeper[48], name[WRITER_NAME];
    for (int i = 0; i < w->k->n; i++) {
        if (in[i] != c || !is_padded(w, i)) continue;
        writer_close(w, i, set);
        buffer_printf(&w->body, "%s%s u%d[V];\n", indent, writer_type(w, i), i);
    }
    put_condition(w, &w->k->condition[c], indent);
    snprintf(deeper, sizeof deeper, "%s    ", indent);
    for (int i = 0; i < w->k->n; i++) {
        if (in[i] != c || !writer_is_packed(w, i)) continue;
        buffer_printf(&w->body, "%sPack<%s, V> p%d;\n", deeper, writer_ctype(w, i), i);
        writer_fetch(w, i, writer_pack(w, i, name), deeper);
    }
    branch_put_elements_head(w, deeper);
    snprintf(deeper, sizeof deeper, "%s        ", indent);
    for (int i = 0; i < w->k->n; i++)
        if (in[i] == c ? branch_hides(w, in, i) : set[i] && w->k->step[i].place && in_columns(w, i))
            writer_step(w, i, deeper);
    put_padded(w, in, c, 1, deeper);
    buffer_printf(&w->body,
                  "%s    }\n%s} else {\n#pragma unroll\n%s    for (int v = 0; v < V; v++) {\n",
                  indent, indent, indent);
    put_padded(w, in, c, 0, deeper);
    buffer_printf(&w->body, "%s    }\n%s}\n", indent, indent);
}

void branch_put(Writer *w, const unsigned char *in, const char *indent)
{
    for (int c = 1; c < w->k->n_conditions; c++)
        if (memchr(in, c, KERNEL_STEPS)) put_branch(w, in, c, indent);
    for (int i = 0; i < w->k->n; i++)
        if (in[i] == ONCE)
            buffer_printf(&w->body, "%sconst bool u%d = from_%s < %s;\n", indent, i,
                          w->k->axes.name[w->last], writer_size(w, node_of(w, i)->scale));
}
