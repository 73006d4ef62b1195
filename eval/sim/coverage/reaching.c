/* The addresses of a box of blocks are a lattice: its dimensions are searched from the widest stride on, and
 * in each only the places whose window meets the bytes. */
#include "eval/sim/coverage/reaching.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/coverage/slice_decode.h"
#include "eval/sim/coverage/slice_run.h"

enum {
    STEP_COST = 16,
    FULL_SHARE = 8,      /* of the budget: for a search with all threads of all blocks */
    MORE_OF_HULL = 16,   /* threads that lie outside of others */
    LEAST_MORE = 256,    /* bytes, the same */
    FAR_APART = 1 << 30, /* bytes: in another buffer, perhaps */
    MOST_NEAR = 1 << 16  /* blocks */
};

void block_set_release(BlockSet *s)
{
    free(s->id);
    memory_sparse_free(s->has, s->words, sizeof *s->has);
    memset(s, 0, sizeof *s);
}

int block_set_has(const BlockSet *s, uint64_t id)
{
    return s->has && (s->has[id / 64] >> id % 64 & 1);
}

int block_set_add(BlockSet *s, uint64_t id)
{
    if (!s->has) {
        s->words = s->blocks / 64 + 1;
        s->has = memory_sparse(s->words, sizeof *s->has);
    }
    if (block_set_has(s, id)) return 0;
    s->has[id / 64] |= 1ull << id % 64;
    memory_room(s->id, s->n, s->cap, 64);
    s->id[s->n++] = id;
    return 1;
}

/* One run of bytes over the blocks of a box. The dimensions of more than one block have positive strides, the
 * widest first; those without a stride come last. */
typedef struct {
    SliceRun *r;
    const Ranges *bytes;
    BlockSet *to;
    int64_t most;
    int n_dims;
    int64_t stride[BOX_DIMS], count[BOX_DIMS],
        next[BOX_DIMS];           /* next: what a step adds to the block's number, maybe below 0 */
    int64_t window[BOX_DIMS + 1]; /* bytes that the dimensions from this one on reach */
    int too_many;
} Search;

static void search(Search *s, int k, int64_t at, int64_t block)
{
    if (s->too_many || (s->r->budget -= STEP_COST) < 0) {
        s->too_many = 1;
        return;
    }
    if (k == s->n_dims) {
        block_set_add(s->to, (uint64_t)block);
        s->too_many = s->to->n > s->most;
        return;
    }
    if (!s->stride[k]) {
        for (int64_t i = 0; i < s->count[k]; i++) search(s, k + 1, at, block + i * s->next[k]);
        return;
    }
    int64_t inner = s->window[k + 1], done = 0;
    for (int64_t i = ranges_find(s->bytes, (uint64_t)at);
         i < s->bytes->n && (int64_t)s->bytes->of[i].lo < at + s->window[k] && !s->too_many; i++) {
        int64_t lo = (int64_t)s->bytes->of[i].lo - at - inner,
                hi = (int64_t)s->bytes->of[i].hi - 1 - at,
                from = lo < 0 ? 0 : lo / s->stride[k] + 1, last = hi / s->stride[k];
        if (from < done) from = done;
        if (last >= s->count[k]) last = s->count[k] - 1;
        for (int64_t n = from; n <= last; n++)
            search(s, k + 1, at + n * s->stride[k], block + n * s->next[k]);
        if (last >= done) done = last + 1;
    }
}

static void put_dimension(Search *s, int k, const BlockRun *run, int64_t *at, int64_t *block)
{
    int64_t apart = slice_run_apart(s->r, k), d = run->d[k],
            count = s->r->box.high[k] - s->r->box.low[k] + 1;
    if (count == 1) return;
    *at += d * s->r->box.low[k];
    *block += apart * s->r->box.low[k];
    if (d < 0) {
        *at += d * (count - 1);
        *block += apart * (count - 1);
        d = -d, apart = -apart;
    }
    int at_dim = s->n_dims++;
    for (; at_dim && s->stride[at_dim - 1] < d; at_dim--) {
        s->stride[at_dim] = s->stride[at_dim - 1];
        s->count[at_dim] = s->count[at_dim - 1];
        s->next[at_dim] = s->next[at_dim - 1];
    }
    s->stride[at_dim] = d, s->count[at_dim] = count, s->next[at_dim] = apart;
}

static void search_run(Search *s, const BlockRun *run)
{
    int64_t at = run->at, block = slice_run_number(s->r);
    s->n_dims = 0;
    for (int k = 0; k < BOX_DIMS; k++) put_dimension(s, k, run, &at, &block);
    s->window[s->n_dims] = run->bytes;
    for (int k = s->n_dims - 1; k >= 0; k--)
        s->window[k] = s->window[k + 1] + s->stride[k] * (s->count[k] - 1);
    if (ranges_meet(s->bytes, (uint64_t)at, (uint64_t)(at + s->window[0]))) search(s, 0, at, block);
}

static int see_box(void *to, SliceRun *r)
{
    Search *s = to;
    s->r = r;
    for (int i = 0; i < r->n_runs && !s->too_many; i++) search_run(s, &r->runs[i]);
    return s->too_many;
}

static void say_too_many(Coverage *out)
{
    out->too_many = 1;
    snprintf(out->why, sizeof out->why, "too many blocks that reach the bytes");
}

/* Blocks that reach the bytes where a condition holds that memory decides are among them. */
static void search_all(const CoverageOf *of, Search *s, int64_t *budget, Coverage *out)
{
    CoverageOf all = *of;
    all.either = 1;
    memset(out, 0, sizeof *out);
    coverage_visit(&all, budget, see_box, s, out);
    if (s->too_many) say_too_many(out);
}

/* ---- by few threads ---- */

/* Runs that move alike reach from the first to the last, and somewhat farther: other threads lie between. */
static int see_hull(void *to, SliceRun *r)
{
    Search *s = to;
    s->r = r;
    for (int i = 0, end; i < r->n_runs && !s->too_many; i = end) {
        BlockRun hull = r->runs[i];
        int64_t hi = hull.at + hull.bytes;
        for (end = i + 1; end < r->n_runs && !memcmp(r->runs[end].d, hull.d, sizeof hull.d) &&
                          r->runs[end].at - hi < FAR_APART;
             end++)
            hi = r->runs[end].at + r->runs[end].bytes > hi ? r->runs[end].at + r->runs[end].bytes
                                                           : hi;
        int64_t more = (hi - hull.at) / MORE_OF_HULL + LEAST_MORE;
        hull.at -= more;
        hull.bytes = hi - hull.at + more;
        search_run(s, &hull);
    }
    return s->too_many;
}

typedef struct {
    Search s;
    Ranges wanted, found; /* bytes of wanted allocations; what blocks store of them */
    int may;              /* what they may store: others may store it, too */
} Exact;

static int has_all(Exact *e)
{
    ranges_join(&e->found);
    return !e->wanted.overflowed && !e->found.overflowed && ranges_have(&e->found, &e->wanted);
}

static int see_block(void *to, SliceRun *r)
{
    Exact *e = to;
    int more = 0;
    for (int i = 0; i < r->n_runs; i++) {
        uint64_t lo = (uint64_t)r->runs[i].at, hi = lo + (uint64_t)r->runs[i].bytes;
        if (!ranges_meet(&e->wanted, lo, hi)) continue;
        ranges_add(&e->found, lo, hi);
        more = 1;
    }
    return see_box(&e->s, r) || (more && !e->may && has_all(e));
}

/* No other block changes what a block has stored. */
static int only_stores(const PtxFunction *f)
{
    for (int i = 0; i < f->n_insts; i++)
        if (slice_is(&f->insts[i], SLICE_CHANGES) && !slice_is(&f->insts[i], SLICE_STORES))
            return 0;
    return 1;
}

/* The bytes that are in wanted allocations. */
static void find_wanted(const CoverageOf *of, const Ranges *bytes, Ranges *wanted)
{
    const Alloc *m = of->mem->allocs;
    int at = -1;
    for (int64_t i = 0; i < bytes->n; i++) {
        uint64_t lo = bytes->of[i].lo;
        if (at < 0 || lo - m[at].base >= m[at].room) at = devmem_find(of->mem, lo);
        if (at >= 0 && of->wanted[at]) ranges_add(wanted, lo, bytes->of[i].hi);
    }
    ranges_join(wanted);
}

/* Looks at all threads of the near blocks, with both sides of conditions that memory decides where it has to.
 * 1: the blocks that may store the bytes have all of them. One that does not store them then, and stands for
 * another, leaves them unwritten. */
static int search_near(const CoverageOf *of, const BlockSet *near, Exact *e, int64_t *budget,
                       Coverage *out)
{
    CoverageOf each = *of;
    coverage_visit_some(&each, near->id, near->n, budget, see_block, e, out);
    if (out->why[0] && !e->s.too_many) {
        memset(out, 0, sizeof *out);
        ranges_clear(&e->found);
        each.either = e->may = 1;
        coverage_visit_some(&each, near->id, near->n, budget, see_block, e, out);
    }
    return !e->s.too_many && !out->why[0] && has_all(e);
}

/* Looks for blocks by few of their threads, then at all threads of those that may reach the bytes. 1: they
 * have all of them. */
static int search_thin(const CoverageOf *of, Search *s, int64_t *budget, Coverage *out)
{
    BlockSet near = {.blocks = s->to->blocks};
    CoverageOf thin = *of;
    Search hull = {.bytes = s->bytes, .to = &near, .most = MOST_NEAR};
    Exact exact = {.s = *s};
    thin.thin = thin.either = 1;
    find_wanted(of, s->bytes, &exact.wanted);
    memset(out, 0, sizeof *out);
    coverage_visit(&thin, budget, see_hull, &hull, out);
    int rc = !hull.too_many && !out->why[0];
    if (rc) rc = search_near(of, &near, &exact, budget, out);
    block_set_release(&near);
    ranges_release(&exact.wanted);
    ranges_release(&exact.found);
    return rc;
}

int coverage_reaching(const CoverageOf *of, const Ranges *bytes, int64_t most, int64_t *budget,
                      BlockSet *to, Coverage *out)
{
    Search s = {.bytes = bytes, .to = to, .most = most};
    int64_t part = *budget / FULL_SHARE, left = *budget - part;
    if (!only_stores(of->kernel)) part = *budget, left = 0;
    search_all(of, &s, &part, out);
    *budget = part + left;
    if (!out->why[0] || s.too_many || !left) return out->why[0] ? -1 : 0;
    if (search_thin(of, &s, budget, out)) return 0;
    if (s.to->n > most)
        say_too_many(out);
    else if (!out->why[0])
        snprintf(out->why, sizeof out->why, "blocks that are not found by few threads");
    return -1;
}
