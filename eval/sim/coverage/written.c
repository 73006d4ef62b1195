/* Repetitions that join or overlap become longer runs first, so that most kernels write few. */
#include "eval/sim/coverage/written.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void written_release(Written *w)
{
    free(w->bits);
    w->bits = NULL;
}

static uint64_t units(const Written *w)
{
    return w->bytes / w->unit;
}

static void set_bits(Written *w, uint64_t from, uint64_t end)
{
    uint64_t a = from / 64, b = (end - 1) / 64, first = ~0ull << from % 64,
             last = ~0ull >> (63 - (end - 1) % 64);
    w->marked += 1 + (b - a) / 8;
    if (a == b) {
        w->bits[a] |= first & last;
        return;
    }
    w->bits[a] |= first;
    memset(w->bits + a + 1, 0xff, (b - a - 1) * sizeof *w->bits);
    w->bits[b] |= last;
}

static void mark_bytes(Written *w, int64_t from, int64_t end)
{
    int64_t unit = w->unit, all = (int64_t)(units(w) * w->unit);
    if (from < 0) from = 0;
    if (end > all) end = all;
    from = (from + unit - 1) / unit, end = end / unit;
    w->marked++;
    if (from >= end) return;
    if (!from && (uint64_t)end == units(w)) {
        w->all = 1;
        return;
    }
    if (!w->bits) w->bits = memory_array(units(w) / 64 + 1, sizeof *w->bits);
    set_bits(w, (uint64_t)from, (uint64_t)end);
}

/* Sorts the repetitions by stride, each above 0, and joins those whose runs touch. */
static void join_runs(WrittenRun *r)
{
    for (int i = 0; i < 3; i++) {
        if (r->count[i] <= 1 || !r->stride[i]) r->count[i] = 1, r->stride[i] = INT64_MAX;
        if (r->stride[i] >= 0) continue;
        r->at += r->stride[i] * (int64_t)(r->count[i] - 1);
        r->stride[i] = -r->stride[i];
    }
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 2; i++) {
            if (r->stride[i] <= r->stride[i + 1]) continue;
            int64_t s = r->stride[i];
            uint64_t n = r->count[i];
            r->stride[i] = r->stride[i + 1], r->count[i] = r->count[i + 1];
            r->stride[i + 1] = s, r->count[i + 1] = n;
        }
    for (int i = 0; i < 3 && r->stride[i] <= r->bytes; i++) {
        r->bytes += r->stride[i] * (int64_t)(r->count[i] - 1);
        r->count[i] = 1;
    }
}

void written_mark(Written *w, WrittenRun r)
{
    if (w->all) return;
    join_runs(&r);
    for (int i = 0; i < 3; i++)
        if (r.count[i] <= 1) r.stride[i] = 0;
    for (uint64_t k = 0; k < r.count[2]; k++)
        for (uint64_t j = 0; j < r.count[1]; j++)
            for (uint64_t i = 0; i < r.count[0]; i++) {
                int64_t at = r.at + r.stride[0] * (int64_t)i + r.stride[1] * (int64_t)j +
                             r.stride[2] * (int64_t)k;
                mark_bytes(w, at, at + r.bytes);
            }
}

void written_add(Written *w, const Written *other)
{
    if (other->all) w->all = 1;
    if (w->all || !other->bits) return;
    if (!w->bits) w->bits = memory_array(units(w) / 64 + 1, sizeof *w->bits);
    for (uint64_t i = 0; i <= units(w) / 64; i++) w->bits[i] |= other->bits[i];
}

uint64_t written_next(const Written *w, uint64_t from)
{
    uint64_t n = units(w);
    if (w->all) return n;
    if (!w->bits) return from;
    while (from < n) {
        uint64_t word = ~w->bits[from / 64] >> from % 64;
        if (word) {
            from += (uint64_t)__builtin_ctzll(word);
            return from < n ? from : n;
        }
        from = (from / 64 + 1) * 64;
    }
    return n;
}

int written_has(const Written *w, uint64_t from, uint64_t end)
{
    return from >= end || written_next(w, from / w->unit) >= (end + w->unit - 1) / w->unit;
}

static void need_bits(Written *w)
{
    if (!w->bits) w->bits = memory_array(units(w) / 64 + 1, sizeof *w->bits);
    if (w->all) memset(w->bits, 0xff, (units(w) / 64 + 1) * sizeof *w->bits);
    w->all = 0;
}

void written_remove(Written *w, const Written *other)
{
    if (!w->all && !w->bits) return;
    need_bits(w);
    for (uint64_t i = 0; i <= units(w) / 64; i++)
        w->bits[i] &= other->all ? 0 : other->bits ? ~other->bits[i] : ~0ull;
}

/* How many units have a bit that differs from `as`. */
static uint64_t count(const Written *w, uint64_t as, uint64_t *first)
{
    uint64_t n = units(w), sum = 0, whole = w->all ? ~0ull : 0;
    *first = 0;
    for (uint64_t i = 0; i * 64 < n; i++) {
        uint64_t word = (w->all || !w->bits ? whole : w->bits[i]) ^ as;
        if (n - i * 64 < 64) word &= ~0ull >> (64 - (n - i * 64));
        if (!word) continue;
        if (!sum) *first = (i * 64 + (uint64_t)__builtin_ctzll(word)) * w->unit;
        sum += (uint64_t)__builtin_popcountll(word);
    }
    return sum;
}

uint64_t written_holes(const Written *w, uint64_t *first)
{
    *first = 0;
    return w->all ? 0 : count(w, ~0ull, first);
}

uint64_t written_units(const Written *w, uint64_t *first)
{
    return count(w, 0, first);
}
