/* Sums over loop axes. A division of such a sum is one again where the terms part at the divisor. */
#include "generate/index/index.h"

#include <stdio.h>
#include <string.h>

Index index_none(void)
{
    Index a;
    memset(&a, 0, sizeof a);
    return a;
}

Index index_axis(int axis, Size by)
{
    Index a = index_none();
    a.by[axis] = by;
    return a;
}

unsigned index_axes(const Index *a)
{
    unsigned mask = a->through;
    for (int i = 0; i < INDEX_AXES; i++)
        if (!size_is(a->by[i], 0)) mask |= 1u << i;
    return mask;
}

int index_same(const Index *a, const Index *b)
{
    return !memcmp(a->by, b->by, sizeof a->by) && size_same(a->plus, b->plus) &&
           !strcmp(a->text, b->text);
}

static int too_long(Error *err)
{
    return error_set(err, ERROR_UNSUPPORTED, "an index of more than %d characters", INDEX_TEXT);
}

static int add_text(Index *to, const char *text, unsigned through, Error *err)
{
    size_t len = strlen(to->text);
    int n = snprintf(to->text + len, INDEX_TEXT - len, "%s%s", len ? " + " : "", text);
    to->through |= through;
    return n < 0 || (size_t)n >= INDEX_TEXT - len ? too_long(err) : 0;
}

int index_add(Index *to, const Index *a, Error *err)
{
    for (int i = 0; i < INDEX_AXES; i++) to->by[i] = size_plus(to->by[i], a->by[i]);
    to->plus = size_plus(to->plus, a->plus);
    to->most = size_plus(to->most, a->most);
    return *a->text ? add_text(to, a->text, a->through, err) : 0;
}

int index_scale(const IndexScope *s, Index *a, Size by, Error *err)
{
    char text[INDEX_TEXT];
    for (int i = 0; i < INDEX_AXES; i++) a->by[i] = size_times(a->by[i], by);
    a->plus = size_times(a->plus, by);
    a->most = size_times(a->most, by);
    if (!*a->text || size_is(by, 1)) return 0;
    const char *name = s->size(s->of, by, err);
    if (!name) return -1;
    if (strlen(a->text) > 440) return too_long(err);
    int n = snprintf(text, sizeof text, "(%.440s) * %.24s", a->text, name);
    memcpy(a->text, text, sizeof text);
    return n < 0 || (size_t)n >= sizeof text ? too_long(err) : 0;
}

int index_write(const IndexScope *s, const Index *a, Buffer *out, Error *err)
{
    const char *between = "(";
    size_t start = out->len;
    int terms = 0;
    for (int i = 0; i < s->axes->n; i++) {
        if (size_is(a->by[i], 0)) continue;
        buffer_printf(out, "%s%s", terms++ ? " + " : between, s->axes->name[i]);
        if (size_is(a->by[i], 1)) continue;
        const char *name = s->size(s->of, a->by[i], err);
        if (!name) return -1;
        buffer_printf(out, " * %s", name);
    }
    if (!size_is(a->plus, 0)) {
        int minus = size_less(a->plus, size_number(0)) && terms;
        const char *name =
            s->size(s->of, minus ? size_times(a->plus, size_number(-1)) : a->plus, err);
        if (!name) return -1;
        buffer_printf(out, "%s%s", minus ? " - " : terms ? " + " : between, name);
        terms++;
    }
    if (*a->text) buffer_printf(out, "%s%s", terms++ ? " + " : between, a->text);
    buffer_puts(out, out->len == start ? "0" : ")");
    return 0;
}

/* The largest value that the terms of axes in `mask` have together, and the smallest one. */
static Size reach(const IndexScope *s, const Index *a, unsigned mask, int least)
{
    Size most = size_number(0), minus = size_number(-1);
    for (int i = 0; i < s->axes->n; i++)
        if (mask >> i & 1 && size_less(a->by[i], size_number(0)) == least)
            most = size_plus(most, size_times(a->by[i], size_plus(s->axes->size[i], minus)));
    return most;
}

/* The rest that a division leaves, from 0 on. */
static Size whole_rest(Size a, Size d)
{
    Size r = size_rest(a, d);
    for (int k = 0; k < SIZE_BINDINGS; k++)
        if (r.at[k] < 0) r.at[k] += d.at[k];
    return r;
}

static int as_text(const IndexScope *s, const Index *a, Size d, const char *op, Index *out,
                   Error *err)
{
    Buffer b;
    buffer_init(&b, INDEX_TEXT);
    const char *by = s->size(s->of, d, err);
    int rc = !by || index_write(s, a, &b, err) ? -1 : 0;
    if (!rc) buffer_printf(&b, " %s %s", op, by);
    *out = index_none();
    const Size most = size_plus(size_plus(reach(s, a, ~0u, 0), a->plus), a->most);
    for (int k = 0; k < SIZE_BINDINGS; k++)
        out->most.at[k] = *op == '/' ? most.at[k] / d.at[k] : d.at[k] - 1;
    if (!rc && b.full) rc = too_long(err);
    if (!rc) rc = add_text(out, b.data, index_axes(a), err);
    buffer_release(&b);
    return rc;
}

int index_divide(const IndexScope *s, const Index *a, Size d, Index *over, Index *rest, Error *err)
{
    unsigned high = 0, low = 0;
    for (int i = 0; i < s->axes->n; i++)
        if (!size_is(a->by[i], 0)) *(size_divides(d, a->by[i]) ? &high : &low) |= 1u << i;
    Size left = whole_rest(a->plus, d),
         q_plus = size_over(size_plus(a->plus, size_times(left, size_number(-1))), d);
    Size least = size_plus(reach(s, a, low, 1), left);
    while (size_less(least, size_number(0))) { /* the terms begin one divisor earlier */
        left = size_plus(left, d);
        least = size_plus(least, d);
        q_plus = size_plus(q_plus, size_number(-1));
    }
    Index q = index_none(), r = *a, low_over, low_rest;
    int as_texts = !size_less(size_plus(size_plus(reach(s, a, low, 0), left), a->most), d);
    if (size_less(least, size_number(0)) || !size_less(size_number(-1), least)) {
        as_texts = 1; /* of all terms: which are below 0 is not known */
    } else {
        for (int i = 0; i < s->axes->n; i++) {
            if (high >> i & 1) q.by[i] = size_over(a->by[i], d);
            if (high >> i & 1) r.by[i] = size_number(0);
        }
        q.plus = q_plus;
        r.plus = left;
    }
    if (as_texts) {
        if ((over && as_text(s, &r, d, "/", &low_over, err)) ||
            (rest && as_text(s, &r, d, "%", &low_rest, err)) ||
            (over && index_add(&q, &low_over, err)))
            return -1;
        r = low_rest;
    }
    if (over) *over = q;
    if (rest) *rest = r;
    return 0;
}
