/* Blocks are looked at in boxes that do the same (slice_run.h). */
#include "eval/sim/coverage/ways.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "eval/sim/coverage/census.h"
#include "eval/sim/coverage/slice_run.h"

enum { MOST_BOXES = 4096, WAYS = 64 * WAYS_WORDS };

static uint64_t linear(const uint32_t grid[3], const uint32_t at[3])
{
    return ((uint64_t)at[2] * grid[1] + at[1]) * grid[0] + at[0];
}

static void place_of(const uint32_t grid[3], uint64_t block, uint32_t at[3])
{
    at[0] = (uint32_t)(block % grid[0]);
    at[1] = (uint32_t)(block / grid[0] % grid[1]);
    at[2] = (uint32_t)(block / grid[0] / grid[1]);
}

/* The box of a block; NULL: it is not known. */
static const WayBox *box_of(const Ways *w, const uint32_t at[3])
{
    for (int i = 0; i < w->n_boxes; i++) {
        const WayBox *b = &w->boxes[i];
        if (at[0] >= b->from[0] && at[0] <= b->to[0] && at[1] >= b->from[1] && at[1] <= b->to[1] &&
            at[2] >= b->from[2] && at[2] <= b->to[2])
            return b;
    }
    return NULL;
}

static int set_number(Ways *w, const WaySet *set)
{
    for (int i = 0; i < w->n_sets; i++)
        if (!memcmp(&w->sets[i], set, sizeof *set)) return i;
    w->sets = memory_grow(w->sets, (size_t)w->n_sets + 1, sizeof *w->sets);
    w->sets[w->n_sets] = *set;
    return w->n_sets++;
}

/* Returns -1 where the search ends. */
static int look(Ways *w, SliceRun *r, WaySet *set, uint64_t block)
{
    uint32_t at[3];
    place_of(w->grid, block, at);
    r->budget -= w->n_boxes / 4;
    if (box_of(w, at)) return 0;
    memset(set, 0, sizeof *set);
    memset(r->passes, 0, 2 * (size_t)r->slice->n_blocks * sizeof *r->passes);
    r->way = 0;
    if (r->budget <= 0 || slice_run_block(r, at) || w->n_boxes == MOST_BOXES) return -1;
    w->boxes = memory_grow(w->boxes, (size_t)w->n_boxes + 1, sizeof *w->boxes);
    WayBox *b = &w->boxes[w->n_boxes];
    b->set = set_number(w, set);
    for (int k = 0; k < 3; k++) {
        b->from[k] = (uint32_t)(at[k] + r->box.low[k]);
        b->to[k] = (uint32_t)(at[k] + r->box.high[k]);
    }
    w->n_boxes++;
    return 0;
}

/* Looks at blocks from number *i of the drawn order on, until less than `until` of the budget is left. */
static void look_on(Ways *w, const SliceRun *as, uint64_t seed, uint64_t *i, int64_t until)
{
    const uint64_t blocks = (uint64_t)w->grid[0] * w->grid[1] * w->grid[2],
                   step = blocks > 1 ? census_stride(blocks) : 0;
    SliceRun r = *as;
    WaySet set;
    r.passes = memory_array(2 * (size_t)r.slice->n_blocks + 1, sizeof *r.passes);
    r.open = memory_alloc((size_t)r.slice->n_blocks + 1);
    r.ways = set.of;
    r.n_ways = WAYS;
    for (; *i < blocks && r.budget > until; (*i)++)
        if (look(w, &r, &set, (seed % blocks + *i % blocks * step) % blocks)) break;
    free(r.passes);
    free(r.open);
    slice_run_close(&r);
}

void ways_find(const PtxModule *m, const PtxFunction *f, const DeviceLaunch *l, int64_t budget,
               uint64_t seed, Ways *out)
{
    Slice *s = slice_new(m, f, 0, SLICE_CHOICES);
    memset(out, 0, sizeof *out);
    memcpy(out->grid, l->grid, sizeof out->grid);
    uint64_t i = 0;
    for (int thin = 0; thin < 2 && !s->why; thin++) {
        SliceRun r;
        slice_run_open(&r, s, l, thin ? budget / 2 : budget);
        if (thin) slice_run_thin(&r);
        look_on(out, &r, seed, &i, thin ? 0 : budget / 2);
    }
    slice_free(s);
}

void ways_release(Ways *w)
{
    free(w->sets);
    free(w->boxes);
    memset(w, 0, sizeof *w);
}

/* ---- which blocks ---- */

static void cover(WaySet *covered, const WaySet *by)
{
    for (int i = 0; i < WAYS_WORDS; i++) covered->of[i] |= by->of[i];
}

static int new_ways(const WaySet *covered, const WaySet *of)
{
    int n = 0;
    for (int i = 0; i < WAYS_WORDS; i++) n += __builtin_popcountll(of->of[i] & ~covered->of[i]);
    return n;
}

/* A block of a box: drawn, or the last one. */
static uint64_t block_in(const Ways *w, const WayBox *b, int last, uint64_t seed)
{
    uint32_t at[3];
    for (int k = 0; k < 3; k++) {
        const uint64_t of[2] = {seed, (uint64_t)k};
        uint64_t way = random_hash(of, sizeof of) % (b->to[k] - b->from[k] + 1);
        at[k] = last ? b->to[k] : b->from[k] + (uint32_t)way;
    }
    return linear(w->grid, at);
}

static void cover_ran(const Ways *w, const WaysOf *of, WaySet *covered)
{
    const uint64_t blocks = (uint64_t)w->grid[0] * w->grid[1] * w->grid[2],
                   from = of->parts ? blocks - (blocks + of->parts - 1) / of->parts : 0;
    uint32_t at[3];
    for (int i = 0; i < of->n; i++) {
        place_of(w->grid, of->ran[i], at);
        const WayBox *b = of->ran[i] >= from ? box_of(w, at) : NULL;
        if (b) cover(covered, &w->sets[b->set]);
    }
}

static int has_run(const WaysOf *of, uint64_t block)
{
    for (int i = 0; i < of->n; i++)
        if (of->ran[i] == block) return 1;
    return 0;
}

int ways_choose(const Ways *w, const WaysOf *of, uint64_t *blocks, int most)
{
    WaySet covered = {{0}};
    int found = 0;
    cover_ran(w, of, &covered);
    for (int turn = 0; turn < most; turn++) {
        const WayBox *best = NULL;
        int ways = 0, from = w->n_boxes ? (int)(of->seed % (uint64_t)w->n_boxes) : 0;
        for (int i = 0; i < w->n_boxes; i++) {
            const WayBox *b = &w->boxes[(i + from) % w->n_boxes];
            int k = new_ways(&covered, &w->sets[b->set]);
            if (k > ways) best = b, ways = k;
        }
        if (!best) break;
        cover(&covered, &w->sets[best->set]);
        uint64_t block = block_in(w, best, of->parts > 0, of->seed + (uint64_t)turn);
        if (!has_run(of, block)) blocks[found++] = block;
    }
    return found;
}
