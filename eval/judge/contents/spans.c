/* Positions do not lie at one place of all spans. */
#include "eval/judge/contents/spans.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"

enum { MOST_SPANS = 1 << 20, WITH_ENDS = 4 /* positions of a span */ };

int64_t spans_find(const TimedOutputs *r, int output, size_t bytes, Span **out)
{
    const DevicePrediction *p = r->ops->prediction;
    size_t from = 0, end = 0;
    int64_t n = 0, room = 1024;
    Span *spans = memory_array((size_t)room, sizeof *spans);
    while (n < MOST_SPANS && p->written(r->device, r->outputs[output], SIZE_MAX, &from, &end)) {
        Span s = {from / bytes, (end + bytes - 1) / bytes};
        from = end;
        if (n && s.from < spans[n - 1].end) s.from = spans[n - 1].end;
        if (s.from >= s.end) continue;
        if (n == room) spans = memory_grow(spans, (size_t)(room *= 2), sizeof *spans);
        spans[n++] = s;
    }
    *out = spans;
    return n;
}

static uint64_t drawn_for(uint64_t seed, uint64_t i)
{
    const uint64_t of[2] = {seed, i};
    return random_hash(of, sizeof of);
}

/* One of each of `parts` equal parts of the span, in order. Parts of spans below one another, as the rows of
 * a tile are, have them beside one another: so many rows as a part has positions have one in each column. */
static void choose_parts(const Span *s, int64_t parts, const SpanChoice *c, int64_t *at)
{
    int64_t length = (int64_t)(s->end - s->from), row = (int64_t)s->from / c->row;
    for (int64_t k = 0; k < parts; k++) {
        int64_t first = k * length / parts, n = (k + 1) * length / parts - first;
        uint64_t drawn = drawn_for(c->seed + (uint64_t)k, s->from % (uint64_t)c->row);
        at[k] = (int64_t)s->from + first + (int64_t)((drawn + (uint64_t)row) % (uint64_t)n);
    }
}

/* Adds `share` positions of the span, in order: where they are many, its ends, and others between them. */
static void choose_in(const Span *s, int64_t share, const SpanChoice *c, int64_t *at)
{
    const Span inner = {s->from + 1, s->end - 1};
    if (share < WITH_ENDS && share < (int64_t)(s->end - s->from)) {
        choose_parts(s, share, c, at);
        return;
    }
    at[0] = (int64_t)s->from;
    if (share > 2) choose_parts(&inner, share - 2, c, at + 1);
    if (share > 1) at[share - 1] = (int64_t)s->end - 1;
}

/* The last written position, and one of another span that a source cannot know. */
static int64_t choose_pair(const Span *spans, int64_t n, uint64_t drawn, int64_t *at)
{
    const Span *s = &spans[drawn % (uint64_t)(n > 1 ? n - 1 : 1)];
    at[0] = (int64_t)(s->from + (drawn >> 32) % (s->end - s->from));
    at[1] = (int64_t)spans[n - 1].end - 1;
    return at[0] < at[1] ? 2 : 1;
}

int64_t spans_choose(const Span *spans, int64_t n, const SpanChoice *c, int64_t *at)
{
    const int64_t limit = c->limit;
    SpanChoice own = *c;
    own.seed = random_hash(&c->seed, sizeof c->seed);
    if (limit == 2) return n ? choose_pair(spans, n, own.seed, at) : 0;
    int64_t count = 0, step = n > limit ? (n + limit - 1) / limit : 1, used = (n + step - 1) / step;
    for (int64_t i = 0; i < used && count < limit; i++) {
        uint64_t drawn = drawn_for(own.seed, (uint64_t)i);
        int64_t inner = i && i < used - 1, shift = inner ? (int64_t)(drawn % (uint64_t)step) : 0,
                which = i == used - 1 ? n - 1 : i * step + shift;
        const Span *s = &spans[which < n ? which : n - 1];
        int64_t share = (limit - count) / (used - i), length = (int64_t)(s->end - s->from);
        if (share > length) share = length;
        if (share) choose_in(s, share, &own, at + count);
        count += share;
    }
    if (count) at[count - 1] = (int64_t)spans[n - 1].end - 1;
    return count;
}
