/* Finds an expression for a number that a bound graph has: a constant, an axis, a product, a linear
 * form of one axis, or a window's size. It must hold at every size that is tried. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/derive/derivation.h"

enum { MAX_PROBES = 256, EACH = 15, MAX_STEP = 16, MAX_SHIFT = 64, MAX_HALVED = 128 };

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

/* Each axis moved alone from the module's own sizes: far, which tells factors apart, and near, which
 * tells remainders apart; and all of them moved together. */
static void probe(Probes *p, const Sizes *from, BoundNumber *f, const void *what)
{
    static const int64_t near[] = {1, -1, 2, 3, -3, 5, 7, 8, 11, 12, 16, 24, 32, 64};
    static const int64_t parts[] = {2, 3, 5, 8};
    const Sizes own = *from;
    Sizes all = own;
    for (int i = 0; i < p->v->draft.n_axes; i++) {
        int found = 0;
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            for (int up = 0; up < 2; up++) {
                Sizes s = own;
                s.at[i] = up ? own.at[i] * parts[k] : own.at[i] / parts[k];
                if (s.at[i] < 1 || !add(p, &s, f, what)) continue;
                if (!found++) all.at[i] = s.at[i];
            }
        for (size_t k = 0; k < sizeof near / sizeof *near && found < EACH; k++) {
            Sizes s = own;
            s.at[i] += near[k];
            if (s.at[i] < 1 || !add(p, &s, f, what)) continue;
            if (!found++) all.at[i] = s.at[i];
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

static char *shifted(const char *text, int64_t by)
{
    if (!by) return memory_strdup(text);
    return memory_printf("%s %c %lld", text, by < 0 ? '-' : '+', (long long)llabs(by));
}

/* (axis * s + a) / t + b, without what is 1 or 0. */
static char *linear_text(const char *name, int s, int a, int t, int64_t b)
{
    char *scaled = s == 1 ? memory_strdup(name) : memory_printf("%s * %d", name, s),
         *moved = shifted(scaled, t == 1 ? 0 : a),
         *part = t == 1 ? memory_strdup(scaled)
                 : a    ? memory_printf("(%s) / %d", moved, t)
                        : memory_printf("%s / %d", moved, t),
         *text = shifted(part, b);
    free(scaled);
    free(moved);
    free(part);
    return text;
}

/* The form as it is computed, without its text. */
static int64_t linear_value(int64_t x, int s, int a, int t, int64_t b)
{
    int64_t up = x * s + a;
    return up < 0 ? -1 : up / t + b;
}

/* axis / t * s + b: windows that skip a remainder, and others that multiply. */
static char *stepped(const Probes *p, int axis)
{
    int64_t x = p->at[0].at[axis];
    for (int t = 2; t <= MAX_STEP; t++)
        for (int s = 2; s <= MAX_STEP; s++) {
            char *part = memory_printf("%s / %d * %d", p->v->axes[axis].name, t, s),
                 *text = try_text(p, shifted(part, p->value[0] - x / t * s));
            free(part);
            if (text) return text;
        }
    return NULL;
}

static char *linear(const Probes *p, int axis)
{
    int64_t x = p->at[0].at[axis];
    /* Networks halve an axis up to seven times. */
    for (int t = 1; t <= MAX_HALVED; t = t < MAX_STEP ? t + 1 : 2 * t)
        for (int s = 1; s <= (t > MAX_STEP ? 1 : MAX_STEP); s++)
            for (int k = 0; k <= (t == 1 ? 0 : 2 * MAX_SHIFT); k++) {
                int a = k % 2 ? (k + 1) / 2 : -k / 2, same = 1;
                if (x * s + a < 0) continue;
                int64_t b = p->value[0] - (x * s + a) / t;
                for (int i = 0; i < p->n && same; i++)
                    same = linear_value(p->at[i].at[axis], s, a, t, b) == p->value[i];
                if (same) return try_text(p, linear_text(p->v->axes[axis].name, s, a, t, b));
            }
    return stepped(p, axis);
}

/* Does the form hold at the next sizes of the axis, which have all remainders of a stride? The first one
 * at which it does not becomes a probe. */
static int holds_beyond(Probes *p, const char *text, int axis, BoundNumber *f, const void *what)
{
    for (int k = 1; k <= MAX_STEP; k++) {
        Sizes s = p->at[0];
        int64_t x;
        s.at[axis] += k;
        if (!add(p, &s, f, what)) continue;
        if (derivation_value(p->v, &s, text, &x, NULL) || x != p->value[p->n - 1]) return 0;
        p->n--;
    }
    return 1;
}

static char *linear_form(Probes *p, int axis, BoundNumber *f, const void *what)
{
    for (int i = 0; i < EACH; i++) {
        char *text = linear(p, axis);
        if (!text || holds_beyond(p, text, axis, f, what)) return text;
        free(text);
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

/* How much the number grows with one axis, from the first probe that moves it alone. */
static int64_t slope(const Probes *p, int axis)
{
    for (int i = 1; i < p->n; i++) {
        int64_t by = p->at[i].at[axis] - p->at[0].at[axis];
        Sizes s = p->at[0];
        s.at[axis] += by;
        if (by && !memcmp(&s, &p->at[i], sizeof s)) return (p->value[i] - p->value[0]) / by;
    }
    return 0;
}

/* a + 2 * b + c + 3: what a concatenation of several tensors has. */
static char *weighted(const Probes *p, const int *axes, int n)
{
    int64_t rest = p->value[0];
    char *text = memory_strdup("");
    for (int i = 0; i < n; i++) {
        int64_t by = slope(p, axes[i]);
        const char *name = p->v->axes[axes[i]].name, *plus = i ? " + " : "";
        char *more = by == 1 ? memory_printf("%s%s%s", text, plus, name)
                             : memory_printf("%s%s%lld * %s", text, plus, (long long)by, name);
        free(text);
        text = more;
        rest -= by * p->at[0].at[axes[i]];
    }
    char *whole = shifted(text, rest);
    free(text);
    return try_text(p, whole);
}

char *derivation_expression(const Derivation *v, BoundNumber *f, const void *what,
                            const Sizes *more, int n_more)
{
    Probes *p = memory_alloc(sizeof *p);
    int axes[TASK_MAX_AXES], n = 0;
    char *text = NULL;
    p->v = v;
    Sizes own = derivation_own(v);
    add(p, &own, f, what);
    for (int i = 0; i < n_more && p->n; i++) add(p, &more[i], f, what);
    probe(p, &own, f, what);
    for (int i = 0; i < v->draft.n_axes && p->n; i++)
        if (depends(p, i)) axes[n++] = i;
    if (p->n && !n) text = try_text(p, memory_printf("%lld", (long long)p->value[0]));
    if (n) text = product(p, axes, n);
    if (n == 1 && !text) text = linear_form(p, axes[0], f, what);
    if (n > 1 && !text) text = weighted(p, axes, n);
    free(p);
    return text;
}
