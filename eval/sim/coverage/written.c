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
    for (int i = 0; i < WRITTEN_DIMS; i++) {
        if (r->count[i] <= 1 || !r->stride[i]) r->count[i] = 1, r->stride[i] = INT64_MAX;
        if (r->stride[i] >= 0) continue;
        r->at += r->stride[i] * (int64_t)(r->count[i] - 1);
        r->stride[i] = -r->stride[i];
    }
    for (int pass = 0; pass < WRITTEN_DIMS - 1; pass++)
        for (int i = 0; i < WRITTEN_DIMS - 1; i++) {
            if (r->stride[i] <= r->stride[i + 1]) continue;
            int64_t s = r->stride[i];
            uint64_t n = r->count[i];
            r->stride[i] = r->stride[i + 1], r->count[i] = r->count[i + 1];
            r->stride[i + 1] = s, r->count[i + 1] = n;
        }
    for (int i = 0; i < WRITTEN_DIMS && r->stride[i] <= r->bytes; i++) {
        r->bytes += r->stride[i] * (int64_t)(r->count[i] - 1);
        r->count[i] = 1;
    }
}

/* A run with its repetitions at the nearest stride, as bits: some of every few units. */
enum { PATTERN = 1024 };
typedef struct {
    int n; /* words; 0: there is none */
    uint64_t bits[PATTERN / 64 + 1];
    uint64_t units, count;
    int64_t bytes, stride; /* of the run; from one to the next */
} Pattern;

/* Takes the first dimension of the run, where that has a pattern. */
static void find_pattern(const Written *w, WrittenRun *r, Pattern *p)
{
    int k = 0;
    while (k < WRITTEN_DIMS && r->count[k] <= 1) k++;
    if (k == WRITTEN_DIMS) return;
    const int64_t unit = w->unit, step = r->stride[k] / unit, n = r->bytes / unit;
    if (r->stride[k] % unit || r->bytes % unit || step > PATTERN || r->count[k] > PATTERN ||
        (int64_t)(r->count[k] - 1) * step + n > PATTERN)
        return;
    p->units = (uint64_t)((int64_t)(r->count[k] - 1) * step + n);
    p->n = (int)((p->units + 63) / 64);
    p->count = r->count[k], p->bytes = r->bytes, p->stride = r->stride[k];
    for (uint64_t i = 0; i < r->count[k]; i++)
        for (int64_t j = (int64_t)i * step; j < (int64_t)i * step + n; j++)
            p->bits[j / 64] |= UINT64_C(1) << j % 64;
    r->count[k] = 1;
}

static void mark_pattern(Written *w, const Pattern *p, int64_t at)
{
    const int64_t from = at / w->unit;
    if (at < 0 || at % w->unit || (uint64_t)from + p->units > units(w)) {
        for (uint64_t i = 0; i < p->count && !w->all; i++, at += p->stride)
            mark_bytes(w, at, at + p->bytes);
        return;
    }
    if (!w->bits) w->bits = memory_array(units(w) / 64 + 1, sizeof *w->bits);
    uint64_t *to = w->bits + from / 64, rest = 0;
    const int shift = (int)(from % 64);
    for (int i = 0; i < p->n; i++) {
        to[i] |= p->bits[i] << shift | rest;
        rest = shift ? p->bits[i] >> (64 - shift) : 0;
    }
    if (rest) to[p->n] |= rest;
    w->marked += 2 + (uint64_t)p->n / 8;
}

void written_mark(Written *w, WrittenRun r)
{
    if (w->all) return;
    Pattern p = {.n = 0};
    join_runs(&r);
    find_pattern(w, &r, &p);
    uint64_t place[WRITTEN_DIMS] = {0};
    for (int k = 0; k < WRITTEN_DIMS && !w->all;) {
        if (p.n)
            mark_pattern(w, &p, r.at);
        else
            mark_bytes(w, r.at, r.at + r.bytes);
        for (k = 0; k < WRITTEN_DIMS; k++) {
            if (r.count[k] <= 1) continue;
            r.at += r.stride[k];
            if (++place[k] < r.count[k]) break;
            r.at -= r.stride[k] * (int64_t)place[k];
            place[k] = 0;
        }
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
