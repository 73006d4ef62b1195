/* Finds an expression for a number that a bound graph has: a constant, an axis, a product, a linear
 * form of one axis, or a window's size. It must hold at every size that is tried. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/derive/derivation.h"

enum { MAX_PROBES = 64, TRIES = 12 };

typedef struct {
    const Derivation *v;
    int n;
    Sizes at[MAX_PROBES];
    int64_t value[MAX_PROBES];
} Probes;

static int add(Probes *p, const Sizes *s, BoundNumber *f, const void *what)
{
    GraphBound *b;
    if (p->n == MAX_PROBES || derivation_bind(p->v, s, &b, NULL)) return 0;
    p->at[p->n] = *s;
    p->value[p->n++] = f(p->v, b, what);
    graph_bound_free(b);
    return 1;
}

/* The module's own sizes, then each axis moved alone, by two different steps where it can be. */
static void probe(Probes *p, BoundNumber *f, const void *what)
{
    Sizes own = derivation_own(p->v), all = own;
    add(p, &own, f, what);
    for (int i = 0; i < p->v->draft.n_axes; i++) {
        int found = 0;
        for (int k = 1; k <= TRIES && found < 2; k++) {
            Sizes s = own;
            s.at[i] = own.at[i] + k;
            if (!add(p, &s, f, what)) continue;
            if (!found++) all.at[i] = s.at[i];
        }
        for (int k = 2; k <= 4 && !found; k++) {
            Sizes s = own;
            s.at[i] = own.at[i] * k;
            if (add(p, &s, f, what)) all.at[i] = s.at[i], found++;
            s.at[i] = own.at[i] / k;
            if (!found && s.at[i] >= 1 && add(p, &s, f, what)) found++;
        }
    }
    add(p, &all, f, what);
}

static int holds(const Probes *p, const char *text)
{
    int64_t x;
    for (int i = 0; i < p->n; i++)
        if (derivation_value(p->v, &p->at[i], text, &x, NULL) || x != p->value[i]) return 0;
    return 1;
}

static char *try_text(const Probes *p, char *text)
{
    if (holds(p, text)) return text;
    free(text);
    return NULL;
}

static int depends(const Probes *p, int axis)
{
    for (int i = 1; i < p->n; i++) {
        int only = 1;
        for (int k = 0; k < p->v->draft.n_axes; k++)
            only &= k == axis || p->at[i].at[k] == p->at[0].at[k];
        if (only && p->at[i].at[axis] != p->at[0].at[axis] && p->value[i] != p->value[0]) return 1;
    }
    return 0;
}

/* (axis + a) / s + b and axis * s + b */
static char *linear(const Probes *p, int axis)
{
    const char *name = p->v->axes[axis].name;
    char *text;
    int64_t x = p->at[0].at[axis], y = p->value[0];
    for (int s = 1; s <= 8; s++) {
        int64_t b = y - x * s;
        if ((text = try_text(p, memory_printf(b < 0 ? "%s * %d - %lld" : "%s * %d + %lld", name, s,
                                              (long long)llabs(b)))))
            return text;
        for (int a = -32; a <= 32 && s > 1; a++) {
            if (x + a < 0) continue;
            b = y - (x + a) / s;
            if ((text = try_text(
                     p, memory_printf(b < 0 ? "(%s %c %d) / %d - %lld" : "(%s %c %d) / %d + %lld",
                                      name, a < 0 ? '-' : '+', abs(a), s, (long long)llabs(b)))))
                return text;
        }
    }
    return NULL;
}

static char *product(const Probes *p, const int *axes, int n)
{
    int64_t rest = p->value[0];
    char *text = memory_strdup("");
    for (int i = 0; i < n; i++) {
        int64_t x = p->at[0].at[axes[i]];
        char *more = memory_printf("%s%s%s", text, i ? " * " : "", p->v->axes[axes[i]].name);
        free(text);
        text = more;
        if (rest % x) rest = 0;
        if (rest) rest /= x;
    }
    if (rest > 1) {
        char *more = memory_printf("%lld * %s", (long long)rest, text);
        free(text);
        text = more;
    }
    return try_text(p, text);
}

char *derivation_expression(const Derivation *v, BoundNumber *f, const void *what)
{
    Probes *p = memory_alloc(sizeof *p);
    int axes[TASK_MAX_AXES], n = 0;
    char *text = NULL;
    p->v = v;
    probe(p, f, what);
    for (int i = 0; i < v->draft.n_axes && p->n; i++)
        if (depends(p, i)) axes[n++] = i;
    if (p->n && !n) text = try_text(p, memory_printf("%lld", (long long)p->value[0]));
    if (n) text = product(p, axes, n);
    if (n == 1 && !text) text = linear(p, axes[0]);
    if (n == 2 && !text)
        text = try_text(p, memory_printf("%s + %s", v->axes[axes[0]].name, v->axes[axes[1]].name));
    free(p);
    return text;
}
