/* Undefined values at run time. A slot holds a bit for each lane in which a register has no value;
 * the decoder places h_track where such a register is read or set (decode/definedness.c). A branch,
 * an address, a barrier or a store to global memory that depends on an undefined value is a fault.
 * Shared and local memory keep such values by word. */
#include "eval/sim/memory/undefined.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/machine/values.h"
#include "eval/sim/memory/access.h"

enum { ALLOCATION_COST = 500, LANE_COST = 4 }; /* in thread-instructions */

const Inst *h_undefine(Warp *w, const Inst *in)
{
    const Function *f = w->frame->fn;
    for (int i = 0; i < f->n_slots; i++) w->p[f->first_slot + (uint32_t)i] &= ~w->active;
    for (int i = 0; i < f->n_undefined; i++) w->p[f->undefined[i]] |= w->active;
    return in + 1;
}

/* Slot 0 is the predicate that is always true; as a slot it means: defined. */
static uint32_t undefined_in(const Warp *w, uint32_t slot)
{
    return slot ? w->p[slot] : 0;
}

/* Reports the variable at its first read: this is the line to mend. */
static int report(Warp *w, const Inst *in, uint32_t lanes, uint32_t origin, const char *use)
{
    Inst first_read = *in;
    const PtxInst *here = exec_source(w, in);
    first_read.source = origin;
    return exec_fail(w, &first_read, __builtin_ctz(lanes), OUTCOME_UNINITIALISED,
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
        *mask = (*mask & ~(1u << lane)) | (uint32_t)undefined << lane;
    }
}

/* A value that nobody uses may be undefined in shared and local memory, but not in global memory,
 * where the caller sees it. */
static int track_store(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    for (int k = 0; k < t->n_sources; k++) {
        uint32_t undefined = undefined_in(w, t->sources[k]) & m;
        if (!undefined && !w->x->undefined_shared && !w->x->undefined_local) continue;
        exec_charge(w->x, LANE_COST * LANES);
        EACH_LANE(m, lane)
        {
            Place p = place_of(w, t->memory, (int)lane, k);
            int is = (int)(undefined >> lane & 1);
            if (is && p.space == SPACE_GLOBAL)
                return report(w, in, 1u << lane, t->origins[t->n_musts + k],
                              "stores a result that depends on it");
            mark(w, &p, (int)lane, is);
        }
    }
    return 0;
}

static void track_load(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    for (int k = 0; k < t->n_dests; k++) {
        uint32_t found = 0;
        if (!t->dests[k]) continue;
        if (w->x->undefined_shared || w->x->undefined_local) {
            exec_charge(w->x, LANE_COST * LANES);
            EACH_LANE(m, lane)
            {
                Place p = place_of(w, t->memory, (int)lane, k);
                found |= (uint32_t)is_undefined(w, &p, (int)lane) << lane;
            }
        }
        w->p[t->dests[k]] = (w->p[t->dests[k]] & ~m) | found;
    }
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

static uint32_t result_of(const Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    uint32_t all = 0;
    if (t->kind == TRACK_SELECT) {
        uint32_t chosen = w->p[in->a] ^ in->e;
        return ((undefined_in(w, t->sources[0]) & chosen) |
                (undefined_in(w, t->sources[1]) & ~chosen) | undefined_in(w, t->sources[2])) &
               m;
    }
    if ((t->kind == TRACK_AND || t->kind == TRACK_OR) && t->n_sources == 2) {
        uint32_t ua = undefined_in(w, t->sources[0]), ub = undefined_in(w, t->sources[1]);
        uint32_t flip = t->kind == TRACK_OR ? FULL_MASK : 0;
        uint32_t a = w->p[in->a] ^ in->e ^ flip, b = w->p[in->b] ^ in->f ^ flip;
        return (ua | ub) & (ua | a) & (ub | b) & m;
    }
    if (t->kind == TRACK_PACK) {
        all = FULL_MASK;
        for (int i = 0; i < t->n_sources; i++) all &= undefined_in(w, t->sources[i]);
        return all & m;
    }
    for (int i = 0; i < t->n_sources; i++) {
        uint32_t u = undefined_in(w, t->sources[i]);
        all |= t->kind == TRACK_SHUFFLE && !i ? shuffled(w, in, u) : u;
    }
    if (t->kind == TRACK_GATHER) return all & w->live ? m : 0;
    return all & m;
}

const Inst *h_track(Warp *w, const Inst *in)
{
    const TrackOp *t = in->track;
    uint32_t m = exec_mask(w, in), unsure = undefined_in(w, t->guard) & w->active;
    for (int i = 0; i < t->n_musts; i++) {
        /* A must without a mask of its own is the guard of a branch. */
        uint32_t u = undefined_in(w, t->musts[i]) & (t->musts[i] == t->guard ? w->active : m);
        if (u && report(w, in, u, t->origins[i], t->use)) return NULL;
    }
    if (t->kind == TRACK_STORE) return track_store(w, in, m) ? NULL : in + 1;
    if (t->kind == TRACK_LOAD) {
        track_load(w, in, m);
        return in + 1;
    }
    uint32_t u = result_of(w, in, m);
    for (int i = 0; i < t->n_dests; i++)
        if (t->dests[i]) w->p[t->dests[i]] = (w->p[t->dests[i]] & ~m) | u | unsure;
    return in + 1;
}
