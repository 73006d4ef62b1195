/* What is known is a number by warp and mbarrier: the last landing of the mbarrier that the warp knows of.
 * Landings of one mbarrier follow one another, those of two do not. */
#include "eval/sim/memory/landed.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/memory/cluster.h"

/* SLOTS: mbarriers of a block that are followed; what others bring is taken as awaited. */
enum { SLOTS = 64, SLOT_BITS = 6, RENEWED = 1 << 25, GROUPS = (MAX_WARPS + 3) / 4 };

struct Landed {
    uint32_t count, first; /* landings so far; the number of the block's first one */
    int active, n_slots;   /* active: the block has a landing, or a product */
    uint32_t now;       /* landing << SLOT_BITS | slot of what lands now; 0: it is not followed */
    uint32_t at[SLOTS]; /* the mbarriers' offsets */
    /* By slot, the last landing that is known, and behind them by warpgroup the number of products: to a
     * warp, to those that have arrived, behind the phase. */
    uint32_t known[MAX_WARPS][SLOTS + GROUPS], arrived[SLOTS][SLOTS + GROUPS],
        behind[SLOTS][SLOTS + GROUPS];
    uint32_t *brought; /* by word */
    size_t words;
};

static void join(uint32_t to[SLOTS + GROUPS], const uint32_t from[SLOTS + GROUPS])
{
    for (int i = 0; i < SLOTS + GROUPS; i++)
        if (from[i] > to[i]) to[i] = from[i];
}

/* The slot of an mbarrier; -1: it has none. */
static int slot_of(Landed *l, uint32_t barrier)
{
    int i = 0;
    while (i < l->n_slots && l->at[i] != barrier) i++;
    if (i == SLOTS) return -1;
    if (i == l->n_slots) l->at[l->n_slots++] = barrier;
    return i;
}

void landed_start_block(Exec *x)
{
    Landed *l = x->landed;
    if (!l || !l->active) return;
    if (l->count > RENEWED) {
        memset(l->brought, 0, l->words * sizeof *l->brought);
        l->count = 0;
    }
    l->first = l->count + 1;
    l->active = l->n_slots = 0;
    memset(l->known, 0, sizeof l->known);
    memset(l->arrived, 0, sizeof l->arrived);
    memset(l->behind, 0, sizeof l->behind);
}

void landed_release(Exec *x)
{
    if (x->landed) free(x->landed->brought);
    free(x->landed);
    x->landed = NULL;
}

/* Something is to be followed in this block, whose memory may be larger than that of all before it. */
static Landed *activate(Exec *x)
{
    if (!x->landed) x->landed = memory_alloc(sizeof *x->landed);
    Landed *l = x->landed;
    const size_t words = (size_t)x->shared_cap / 4 + 2;
    if (words > l->words) {
        free(l->brought);
        l->brought = memory_array(words, sizeof *l->brought);
        l->words = words;
    }
    if (!l->active) l->active = 1, l->first = l->count + 1;
    return l;
}

void landed_begin(Exec *x, uint32_t barrier)
{
    Landed *l = activate(x);
    const int slot = slot_of(l, barrier);
    l->now = slot < 0 || l->count >= 2 * RENEWED - 1 ? 0 : ++l->count << SLOT_BITS | (uint32_t)slot;
}

void landed_note(Exec *x, uint64_t at, uint64_t bytes)
{
    Landed *l = x->landed;
    if (!l || !l->active) return;
    for (uint64_t word = at >> 2; word <= (at + bytes - 1) >> 2; word++) l->brought[word] = l->now;
}

void landed_overwrite(Exec *x, uint64_t at, uint64_t bytes)
{
    Landed *l = x->landed;
    if (!l || !l->active) return;
    for (uint64_t word = at >> 2; word <= (at + bytes - 1) >> 2; word++) l->brought[word] = 0;
}

/* A warp of another block of the cluster accesses the block's memory. */
static int is_foreign(const Exec *x)
{
    return x->cluster && x->cluster->actor != x->cluster->current;
}

/* Of what lands in a block others know no more than its own warps do, one of which may have told them. */
void landed_arrive(Warp *w, uint32_t barrier)
{
    Landed *l = w->x->landed;
    const int slot = l && l->active ? slot_of(l, barrier) : -1;
    for (int i = 0; slot >= 0 && i < MAX_WARPS; i++)
        if (i == w->index || is_foreign(w->x)) join(l->arrived[slot], l->known[i]);
}

void landed_end_phase(Exec *x, uint32_t barrier)
{
    Landed *l = x->landed;
    const int slot = l && l->active ? slot_of(l, barrier) : -1;
    if (slot < 0) return;
    join(l->behind[slot], l->arrived[slot]);
    if ((l->now & (SLOTS - 1)) == (uint32_t)slot && l->now)
        l->behind[slot][slot] = l->now >> SLOT_BITS;
}

void landed_await(Warp *w, uint32_t barrier)
{
    Landed *l = w->x->landed;
    const int slot = l && l->active ? slot_of(l, barrier) : -1;
    if (slot >= 0) join(l->known[w->index], l->behind[slot]);
}

void landed_join(Exec *x)
{
    Landed *l = x->landed;
    if (!l || !l->active) return;
    for (int i = 1; i < MAX_WARPS; i++) join(l->known[0], l->known[i]);
    for (int i = 1; i < MAX_WARPS; i++) memcpy(l->known[i], l->known[0], sizeof l->known[0]);
}

void landed_meet(Warp *w)
{
    Landed *l = w->x->landed;
    if (!l || !l->active) return;
    for (int i = 0; i < MAX_WARPS; i++)
        if (i != w->index) join(l->known[w->index], l->known[i]);
}

void landed_multiplied(Warp *w, uint32_t products)
{
    if (!is_foreign(w->x)) activate(w->x)->known[w->index][SLOTS + w->index / 4] = products;
}

uint32_t landed_products(const Warp *w, int group)
{
    const Landed *l = w->x->landed;
    if (w->x->cluster) return UINT32_MAX;
    return l && l->active ? l->known[w->index][SLOTS + group] : 0;
}

int landed_missing(const Warp *w, uint64_t at, uint64_t bytes, uint32_t *barrier)
{
    const Landed *l = w->x->landed;
    uint32_t fine = 0; /* of the word before */
    if (!l || !l->active || is_foreign(w->x)) return 0;
    for (uint64_t word = at >> 2; word <= (at + bytes - 1) >> 2; word++) {
        if (l->brought[word] == fine) continue;
        const uint32_t by = fine = l->brought[word], landing = by >> SLOT_BITS,
                       slot = by & (SLOTS - 1);
        if (landing < l->first || l->known[w->index][slot] >= landing) continue;
        *barrier = l->at[slot];
        return -1;
    }
    return 0;
}

/* Most chunks are of the landing of the one before. */
int landed_missing_chunk(const Warp *w, const uint32_t *at, int n, const uint8_t *skip,
                         uint32_t *barrier)
{
    enum { CHUNK = 16 };
    const Landed *l = w->x->landed;
    uint64_t fine[2] = {0, 0}, now[2];
    if (!l || !l->active || is_foreign(w->x)) return -1;
    for (int i = 0; i < n; i++) {
        if (skip[i]) continue;
        memcpy(now, l->brought + at[i] / 4, sizeof now);
        if (now[0] == fine[0] && now[1] == fine[1]) continue;
        if (landed_missing(w, at[i], CHUNK, barrier)) return i;
        memcpy(fine, now, sizeof fine);
    }
    return -1;
}
