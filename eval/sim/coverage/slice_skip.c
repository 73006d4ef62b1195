/* Values at the head of a loop are kept for its last visits. What repeats may take several trips, as where
 * buffers alternate: a period. */
#include "eval/sim/coverage/slice_skip.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { PERIODS = 4, VISITS = 2 * PERIODS };
static const int64_t endless = 1ll << 40;

/* The values of a visit. */
typedef struct {
    Lanes *slots;
    uint64_t *storage, *passes;
} Visit;

struct SliceTrips {
    int visits;
    Visit last[VISITS]; /* the last one first */
    const Visit *was;   /* a period ago */
    uint8_t on[LANES_MAX];
};

static void open_visit(const SliceRun *r, Visit *v)
{
    size_t n = (size_t)r->slice->n_slots, lanes = (size_t)r->n_lanes;
    v->slots = memory_array(n + 1, sizeof *v->slots);
    v->storage = memory_sparse(n * lanes + 1, sizeof *v->storage);
    v->passes = memory_array(2 * (size_t)r->slice->n_blocks + 1, sizeof *v->passes);
    for (size_t i = 0; i < n; i++) v->slots[i].v = v->storage + i * lanes;
}

static int lanes_of(const SliceRun *r, const Lanes *v)
{
    return !v->known || !v->set ? 0 : v->uniform ? 1 : r->n_lanes;
}

static void keep(SliceRun *r, struct SliceTrips *t, const uint8_t *on)
{
    Visit oldest = t->last[VISITS - 1];
    if (!oldest.slots) open_visit(r, &oldest);
    memmove(t->last + 1, t->last, sizeof oldest * (VISITS - 1));
    t->last[0] = oldest;
    for (int i = 0; i < r->slice->n_slots; i++) {
        const Lanes *from = &r->slots[i];
        Lanes *to = &oldest.slots[i];
        uint64_t *v = to->v;
        *to = *from;
        to->v = v;
        memcpy(v, from->v, sizeof *v * (size_t)lanes_of(r, from));
        r->budget -= lanes_of(r, from) / 4;
    }
    memcpy(oldest.passes, r->passes, sizeof *r->passes * 2 * (size_t)r->slice->n_blocks);
    memcpy(t->on, on, (size_t)r->n_lanes);
    t->visits++;
}

/* ---- what trips change ---- */

/* By how much lane i of the slot has changed in the last period. */
static int64_t step(const SliceRun *r, const struct SliceTrips *t, int slot, int i)
{
    const Lanes *now = &r->slots[slot], *was = &t->was->slots[slot];
    return (int64_t)(now->v[now->uniform ? 0 : i] - was->v[was->uniform ? 0 : i]);
}

static int same_kind(const Lanes *a, const Lanes *b)
{
    return a->known == b->known && a->set == b->set && a->uniform == b->uniform &&
           !memcmp(a->d, b->d, sizeof a->d);
}

static int is_steady(const SliceRun *r, const struct SliceTrips *t, int period)
{
    const Visit *last = &t->last[period - 1], *first = &t->last[2 * period - 1];
    if (t->visits < 2 * period) return 0;
    for (int s = 0; s < r->slice->n_slots; s++) {
        const Lanes *now = &r->slots[s], *was = &last->slots[s], *before = &first->slots[s];
        if (!same_kind(now, was) || !same_kind(was, before)) return 0;
        for (int i = 0, n = lanes_of(r, now); i < n; i++)
            if (now->v[i] - was->v[i] != was->v[i] - before->v[i]) return 0;
    }
    return 1;
}

static int changes(const SliceRun *r, const struct SliceTrips *t, const SliceSource *s)
{
    if (s->kind != SOURCE_REGISTER) return 0;
    for (int i = 0, n = lanes_of(r, &r->slots[s->slot]); i < n; i++)
        if (step(r, t, s->slot, i)) return 1;
    return 0;
}

/* The value of lane i of a source, and its change; 0: it is not known. */
static int look(SliceRun *r, const struct SliceTrips *t, const SliceSource *s, int i, int64_t of[2])
{
    of[1] = 0;
    if (s->kind == SOURCE_CONSTANT) {
        of[0] = (int64_t)s->value;
        return 1;
    }
    if (s->kind != SOURCE_REGISTER) return 0;
    const Lanes *v = &r->slots[s->slot];
    if (!v->known || !v->set) return 0;
    of[0] = (int64_t)v->v[v->uniform ? 0 : i];
    of[1] = step(r, t, s->slot, i);
    return 1;
}

static int64_t narrow(int64_t v, const SliceInst *in)
{
    int bits = in->from_bits ? in->from_bits : in->bits;
    if (bits != 32) return v;
    return in->is_signed ? (int32_t)v : (int64_t)(uint32_t)v;
}

/* Periods for which the two sources of a comparison keep their order. */
static int64_t steady_order(SliceRun *r, const struct SliceTrips *t, const SliceInst *in)
{
    int64_t least = endless;
    if (in->n_sources < 2) return 0;
    if (!changes(r, t, &in->sources[0]) && !changes(r, t, &in->sources[1])) return endless;
    for (int i = 0; i < r->n_lanes; i++) {
        int64_t a[2], b[2];
        if (!t->on[i]) continue;
        if (!look(r, t, &in->sources[0], i, a) || !look(r, t, &in->sources[1], i, b)) return 0;
        int64_t apart = narrow(a[0], in) - narrow(b[0], in), by = a[1] - b[1];
        if (!by) continue;
        if (!apart) return 0;
        if ((apart > 0) == (by > 0)) continue;
        int64_t trips = llabs(apart) / llabs(by) - 2;
        if (trips < least) least = trips;
    }
    return least;
}

static int is_piecewise(const SliceInst *in)
{
    switch (in->op) {
    case OP_SHR:
    case OP_AND:
    case OP_OR:
    case OP_XOR:
    case OP_NOT:
    case OP_ABS:
    case OP_DIV:
    case OP_REM:
    case OP_MUL_HIGH:
    case OP_EXTRACT: return 1;
    default: return 0;
    }
}

/* Periods in which each instruction of the loop does what it did. */
static int64_t steady_trips(SliceRun *r, const struct SliceTrips *t, int head, int end)
{
    const Slice *s = r->slice;
    int64_t least = endless;
    for (int i = s->blocks[head].first; i < s->blocks[end].last; i++) {
        const SliceInst *in = &s->insts[i];
        int64_t trips = endless;
        r->budget -= 8;
        if (in->op == OP_COMPARE || in->op == OP_MIN || in->op == OP_MAX)
            trips = steady_order(r, t, in);
        for (int k = 0; k < in->n_sources && is_piecewise(in); k++)
            if (changes(r, t, &in->sources[k])) return 0;
        if (trips < least) least = trips;
    }
    return least < endless ? least : 0;
}

/* Values of 32 bits keep their sign. */
static int stays(uint64_t v, int64_t by, int64_t trips)
{
    uint64_t end = v + (uint64_t)by * (uint64_t)trips;
    int64_t far;
    if (__builtin_mul_overflow(by, trips, &far)) return 0;
    return v >> 32 || end >> 32 ? v >> 32 && end >> 32 && v >> 62 == end >> 62
                                : v >> 31 == end >> 31;
}

static int64_t bounded(const SliceRun *r, const struct SliceTrips *t, int64_t trips)
{
    for (int s = 0; s < r->slice->n_slots; s++)
        for (int i = 0, n = lanes_of(r, &r->slots[s]); i < n; i++)
            while (trips > 0 && !stays(r->slots[s].v[i], step(r, t, s, i), trips)) trips /= 2;
    return trips;
}

static void go_on(SliceRun *r, const struct SliceTrips *t, int64_t trips)
{
    for (int b = 0; b < 2 * r->slice->n_blocks; b++)
        r->passes[b] += (r->passes[b] - t->was->passes[b]) * (uint64_t)trips;
    for (int s = 0; s < r->slice->n_slots; s++)
        for (int i = 0, n = lanes_of(r, &r->slots[s]); i < n; i++)
            r->slots[s].v[i] += (uint64_t)step(r, t, s, i) * (uint64_t)trips;
}

void slice_skip(SliceRun *r, int head, int end, const uint8_t *on)
{
    if (!r->trips)
        r->trips = memory_array((size_t)r->slice->n_blocks + 1, sizeof(struct SliceTrips *));
    struct SliceTrips *t = r->trips[head];
    if (!t) t = r->trips[head] = memory_alloc(sizeof *t);
    if (t->visits && memcmp(t->on, on, (size_t)r->n_lanes) != 0) t->visits = 0;
    for (int period = 1; period <= PERIODS; period++) {
        t->was = &t->last[period - 1];
        if (!is_steady(r, t, period)) continue;
        int64_t periods = bounded(r, t, steady_trips(r, t, head, end));
        if (periods <= 0) break;
        go_on(r, t, periods);
        t->visits = 0;
        break;
    }
    keep(r, t, on);
}

void slice_skip_begin(SliceRun *r, int head)
{
    if (r->trips && r->trips[head]) r->trips[head]->visits = 0;
}

void slice_skip_release(SliceRun *r)
{
    size_t room = (size_t)r->slice->n_slots * (size_t)r->n_lanes + 1;
    for (int b = 0; r->trips && b < r->slice->n_blocks; b++) {
        struct SliceTrips *t = r->trips[b];
        for (int k = 0; t && k < VISITS; k++) {
            free(t->last[k].slots);
            memory_sparse_free(t->last[k].storage, room, sizeof *t->last[k].storage);
            free(t->last[k].passes);
        }
        free(t);
    }
    free(r->trips);
    r->trips = NULL;
}
