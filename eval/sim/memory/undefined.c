/* Undefined values at run time. A slot holds a bit for each lane in which a register has no value;
 * the decoder places h_track where such a register is read or set (decode/definedness.c). A branch,
 * an address, a barrier or a store to global memory that depends on an undefined value is a fault.
 * Shared and local memory keep such values by word. */
#include "eval/sim/memory/undefined.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/machine/values.h"
#include "eval/sim/memory/access.h"
#include "eval/sim/memory/doubts.h"

enum { ALLOCATION_COST = 500, LANE_COST = 4 };            /* in thread-instructions */
enum { IN_MEMORY_UNDEFINED = 1, IN_MEMORY_DOUBTFUL = 2 }; /* of a word */

/* The lanes in which a value is undefined or doubtful, by one event (doubts.h). */
typedef struct {
    uint32_t lanes, event;
} Mark;

const Inst *h_undefine(Warp *w, const Inst *in)
{
    const Function *f = w->frame->fn;
    for (int i = 0; i < f->n_slots; i++) w->p[f->first_slot + (uint32_t)i] &= ~w->active;
    for (int i = 0; i < f->n_undefined; i++) w->p[f->undefined[i]] |= w->active;
    return in + 1;
}

/* Slot 0 is the predicate that is always true; as a slot it means: defined. */
static Mark mark_of(const Warp *w, const TrackOp *t, uint32_t slot, uint32_t m)
{
    Mark v = {slot ? w->p[slot] & m : 0, 0};
    if (v.lanes && t->events) v.event = w->p[slot + t->events];
    if (v.event && doubt_is_settled(w->x, v.event)) v.lanes = 0;
    return v;
}

/* What depends on both. A tentative value that meets another one counts as one that matters. */
static Mark joined(Exec *x, Mark a, Mark b)
{
    if (!a.lanes || !b.lanes || a.event == b.event)
        return (Mark){a.lanes | b.lanes, a.lanes ? a.event : b.event};
    if (doubt_is_tentative(x, a.event)) {
        doubt_matters(x, a.event);
        a.lanes = 0;
    }
    if (doubt_is_tentative(x, b.event)) {
        doubt_matters(x, b.event);
        b.lanes = 0;
    }
    return (Mark){a.lanes | b.lanes, a.lanes ? a.event : b.event};
}

/* Gives the lanes m of a slot the mark v. */
static void put_mark(Warp *w, const TrackOp *t, uint32_t slot, uint32_t m, Mark v)
{
    if (!slot) return;
    v.lanes &= m;
    Mark old = mark_of(w, t, slot, ~m & w->live);
    v = joined(w->x, v, old);
    w->p[slot] = v.lanes;
    if (t->events) w->p[slot + t->events] = v.event;
}

/* Reports the variable at its first read: this is the line to mend. Returns -1, or 0 for a value that
 * is tentative. */
static int report(Warp *w, const Inst *in, Mark v, uint32_t origin, const char *use)
{
    if (v.event && doubt_is_tentative(w->x, v.event)) {
        doubt_matters(w->x, v.event);
        return 0;
    }
    if (v.event) return doubt_report(w, in, v.event, use);
    Inst first_read = *in;
    const PtxInst *here = exec_source(w, in);
    first_read.source = origin;
    return exec_fail(w, &first_read, __builtin_ctz(v.lanes), OUTCOME_UNINITIALISED,
                     "reads a variable that has no value, and line %d %s", here ? here->line : 0,
                     use);
}

/* ---- memory ---- */

typedef struct {
    PtxSpace space;
    uint64_t word, last; /* words of an element */
} Place;

static Place place_of(const Warp *w, const MemOp *mo, int lane, int item)
{
    uint64_t at = access_lane_address(w, mo, lane) + (uint64_t)(item * mo->element);
    PtxSpace space = (PtxSpace)mo->space;
    if (space == SPACE_GENERIC) {
        space = access_space(at);
        at &= ~(uint64_t)WINDOW_MASK;
    }
    return (Place){space, at >> 2, (at + mo->element - 1) >> 2};
}

static void allocate_map(Exec *x, PtxSpace space)
{
    if (space == SPACE_SHARED && !x->undefined_shared) {
        exec_charge(x, x->cta.shared_size / 64 + ALLOCATION_COST);
        x->undefined_shared = memory_alloc((size_t)x->cta.shared_size / 4 + 1);
    }
    if (space == SPACE_LOCAL && !x->undefined_local) {
        x->undefined_words = x->local_cap / 4 + 1;
        exec_charge(x, (int64_t)x->undefined_words * MAX_WARPS / 8 + ALLOCATION_COST);
        x->undefined_local = memory_array(x->undefined_words * MAX_WARPS, sizeof(uint32_t));
    }
}

void undefined_clear(Exec *x)
{
    free(x->undefined_shared);
    free(x->undefined_local);
    x->undefined_shared = NULL;
    x->undefined_local = NULL;
}

static int in_map(const Exec *x, const Place *p)
{
    if (p->space == SPACE_SHARED) return x->undefined_shared && p->last <= x->cta.shared_size / 4;
    return p->space == SPACE_LOCAL && x->undefined_local && p->last < x->undefined_words;
}

static int is_undefined(const Warp *w, const Place *p, int lane)
{
    const Exec *x = w->x;
    int found = 0;
    for (uint64_t i = p->word; i <= p->last && in_map(x, p); i++)
        found |=
            p->space == SPACE_SHARED
                ? x->undefined_shared[i]
                : (int)(x->undefined_local[(size_t)w->index * x->undefined_words + i] >> lane & 1);
    return found;
}

/* undefined: 0 or IN_MEMORY_*. Of local memory only the fact is kept. */
static void mark(Warp *w, const Place *p, int lane, int undefined)
{
    Exec *x = w->x;
    if (undefined) allocate_map(x, p->space);
    for (uint64_t i = p->word; i <= p->last && in_map(x, p); i++) {
        if (p->space == SPACE_SHARED) {
            x->undefined_shared[i] = (unsigned char)undefined;
            continue;
        }
        uint32_t *mask = &x->undefined_local[(size_t)w->index * x->undefined_words + i];
        *mask = (*mask & ~(1u << lane)) | (uint32_t) !!undefined << lane;
    }
}

/* A value that nobody uses may be undefined in shared and local memory, but not in global memory,
 * where the caller sees it. Loads of matrices are not followed: a doubtful value must not get there. */
static int track_store(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    Exec *x = w->x;
    for (int k = 0; k < t->n_sources; k++) {
        Mark v = mark_of(w, t, t->sources[k], m);
        if (v.lanes && v.event && doubt_is_tentative(x, v.event)) {
            doubt_matters(x, v.event);
            v.lanes = 0;
        }
        if (!v.lanes && !x->undefined_shared && !x->undefined_local) continue;
        exec_charge(x, LANE_COST * LANES);
        EACH_LANE(m, lane)
        {
            Place p = place_of(w, t->memory, (int)lane, k);
            int is = (int)(v.lanes >> lane & 1);
            int lost = p.space == SPACE_GLOBAL ||
                       (v.event && p.space == SPACE_SHARED && x->code->loads_matrices);
            if (is && lost)
                return report(w, in, (Mark){1u << lane, v.event}, t->origins[t->n_musts + k],
                              "stores a result that depends on it");
            if (is && v.event) x->event_in_memory = v.event;
            mark(w, &p, (int)lane, is ? v.event ? IN_MEMORY_DOUBTFUL : IN_MEMORY_UNDEFINED : 0);
        }
    }
    return 0;
}

/* Local memory that holds both kinds counts as doubtful. */
static void track_load(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    Exec *x = w->x;
    for (int k = 0; k < t->n_dests; k++) {
        Mark found = {0, 0};
        if (!t->dests[k]) continue;
        if (x->undefined_shared || x->undefined_local) {
            exec_charge(x, LANE_COST * LANES);
            EACH_LANE(m, lane)
            {
                Place p = place_of(w, t->memory, (int)lane, k);
                int is = is_undefined(w, &p, (int)lane);
                found.lanes |= (uint32_t) !!is << lane;
                if (is && (is & IN_MEMORY_DOUBTFUL || p.space == SPACE_LOCAL))
                    found.event = x->event_in_memory;
            }
        }
        put_mark(w, t, t->dests[k], m, found);
    }
}

/* Behind a load: what it found. */
static void track_loaded(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    Mark tentative = {w->load_value ? m : 0, w->load_value},
         doubtful = {w->doubtful_load & m, w->load_event};
    for (int k = 0; k < t->n_dests && (tentative.lanes || doubtful.lanes); k++) {
        Mark v = mark_of(w, t, t->dests[k], m);
        if (t->dests[k])
            put_mark(w, t, t->dests[k], m, joined(w->x, joined(w->x, tentative, doubtful), v));
    }
    w->load_value = w->doubtful_load = 0;
}

static int check_shared(Warp *w, const Access *a, const char *use)
{
    const Exec *x = w->x;
    if (!x->undefined_shared) return 0;
    EACH_LANE(a->mask, lane)
    {
        uint64_t at = access_address(a, (int)lane);
        Place p = {SPACE_SHARED, at >> 2, (at + (uint64_t)a->size - 1) >> 2};
        int is = is_undefined(w, &p, (int)lane);
        if (is & IN_MEMORY_DOUBTFUL)
            return doubt_report(w, a->in, x->event_in_memory, "stores a result that depends on it");
        if (is)
            return exec_fail(w, a->in, (int)lane, OUTCOME_UNINITIALISED,
                             "%s a word of shared memory to which a value was stored that "
                             "depends on a variable without a value",
                             use);
    }
    return 0;
}

int undefined_check_atomic(Warp *w, const Access *a)
{
    return check_shared(w, a, "changes");
}

int undefined_check_copy(Warp *w, const Access *a)
{
    return check_shared(w, a, "copies");
}

void undefined_overwrite(Exec *x, uint64_t at, uint32_t bytes)
{
    if (x->undefined_shared) memset(x->undefined_shared + at / 4, 0, bytes / 4);
}

/* ---- registers ---- */

/* The lanes whose shuffled value comes from a lane in which the source is undefined. */
static uint32_t shuffled(const Warp *w, const Inst *in, uint32_t source)
{
    const Inst *shfl = in - 1;
    const uint32_t *b = row32(w, shfl->b), *c = row32(w, shfl->c);
    uint32_t out = 0;
    for (int i = 0; i < LANES; i++) {
        int segment = (int)(c[i] >> 8 & 31), by = (int)(b[i] & 31), j = i;
        int max_lane = (i & segment) | ((int)(c[i] & 31) & ~segment), ok;
        switch (shfl->k0) {
        case SHFL_UP: j = i - by, ok = j >= max_lane; break;
        case SHFL_DOWN: j = i + by, ok = j <= max_lane; break;
        case SHFL_BFLY: j = i ^ by, ok = j <= max_lane; break;
        default: j = (i & segment) | (by & ~segment), ok = j <= max_lane; break;
        }
        if (!ok || j < 0 || j > 31) j = i;
        out |= (source >> j & 1) << i;
    }
    return out;
}

/* Of the sources from k on. */
static Mark any_of(Warp *w, const TrackOp *t, int k, uint32_t m)
{
    Mark all = {0, 0};
    for (; k < t->n_sources; k++) all = joined(w->x, all, mark_of(w, t, t->sources[k], m));
    return all;
}

static Mark of_select(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    uint32_t chosen = w->p[in->a] ^ in->e;
    Mark a = mark_of(w, t, t->sources[0], m & chosen),
         b = mark_of(w, t, t->sources[1], m & ~chosen);
    return joined(w->x, joined(w->x, a, b), mark_of(w, t, t->sources[2], m));
}

static Mark of_logic(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    Mark a = mark_of(w, t, t->sources[0], m), b = mark_of(w, t, t->sources[1], m);
    uint32_t flip = t->kind == TRACK_OR ? FULL_MASK : 0, ua = a.lanes, ub = b.lanes;
    uint32_t va = w->p[in->a] ^ in->e ^ flip, vb = w->p[in->b] ^ in->f ^ flip;
    a.lanes = ua & (ub | vb);
    b.lanes = ub & (ua | va);
    return joined(w->x, a, b);
}

/* Compilers leave parts of a vector without a value. What an event made doubtful counts at once. */
static Mark of_pack(Warp *w, const TrackOp *t, uint32_t m)
{
    Mark all = {t->n_sources ? m : 0, 0}, doubtful = {0, 0};
    for (int i = 0; i < t->n_sources; i++) {
        Mark v = mark_of(w, t, t->sources[i], m);
        all.lanes &= v.lanes;
        if (v.event) doubtful = joined(w->x, doubtful, v);
    }
    return doubtful.lanes ? joined(w->x, doubtful, all) : all;
}

/* Value and predicate of a shuffle: the predicate does not depend on what is shuffled. */
static void track_shuffle(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    Mark lane = any_of(w, t, 1, m), v = {0, 0},
         doubtful = {w->doubtful_shuffle & m, w->shuffle_event};
    if (t->n_sources) v = mark_of(w, t, t->sources[0], FULL_MASK);
    v.lanes = shuffled(w, in, v.lanes) & m;
    v = joined(w->x, joined(w->x, v, doubtful), lane);
    w->doubtful_shuffle &= ~m;
    for (int i = 0; i < t->n_dests; i++) put_mark(w, t, t->dests[i], m, i ? lane : v);
}

static Mark result_of(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    Mark all;
    switch (t->kind) {
    case TRACK_SELECT: return of_select(w, in, m);
    case TRACK_AND:
    case TRACK_OR:
        if (t->n_sources == 2) return of_logic(w, in, m);
        break;
    case TRACK_PACK: return of_pack(w, t, m);
    case TRACK_GATHER:
        all = any_of(w, t, 0, FULL_MASK);
        if (all.lanes & w->live)
            all.lanes = m;
        else
            all.lanes = 0;
        return all;
    default: break;
    }
    return any_of(w, t, 0, m);
}

static const Inst *follow(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    Mark unsure = mark_of(w, t, t->guard, w->active), v = result_of(w, in, m);
    for (int i = 0; i < t->n_dests; i++) {
        put_mark(w, t, t->dests[i], m, v);
        if (unsure.lanes && t->dests[i]) {
            Mark now = mark_of(w, t, t->dests[i], FULL_MASK);
            put_mark(w, t, t->dests[i], FULL_MASK, joined(w->x, unsure, now));
        }
    }
    return in + 1;
}

const Inst *h_track(Warp *w, const Inst *in)
{
    const TrackOp *t = in->track;
    uint32_t m = exec_mask(w, in);
    for (int i = 0; i < t->n_musts; i++) {
        /* A must without a mask of its own is the guard of a branch. */
        Mark v = mark_of(w, t, t->musts[i], t->musts[i] == t->guard ? w->active : m);
        if (v.lanes && (v.event || !t->events_only) && report(w, in, v, t->origins[i], t->use))
            return NULL;
    }
    switch (t->kind) {
    case TRACK_STORE: return track_store(w, in, m) ? NULL : in + 1;
    case TRACK_LOAD: track_load(w, in, m); return in + 1;
    case TRACK_LOADED: track_loaded(w, in, m); return in + 1;
    case TRACK_SHUFFLE: track_shuffle(w, in, m); return in + 1;
    default: return follow(w, in, m);
    }
}
