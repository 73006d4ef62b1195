/* A kind is found by a digest of how often each part of the code runs. */
#include "eval/sim/coverage/census.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/coverage/slice_run.h"

enum { MOST_KINDS = 2000, MARK_COST = 1 };
static const uint64_t most_blocks = 1ull << 26;
static const double golden = 0.6180339887498949;

static uint64_t mix(uint64_t digest, uint64_t v)
{
    digest = (digest ^ v) * 0x9e3779b97f4a7c15u;
    return digest ^ digest >> 29;
}

/* The number of the kind; -1: there are too many. */
static int kind_of(Census *c, const CensusKind *like)
{
    for (int i = 0; i < c->n; i++)
        if (c->kinds[i].digest == like->digest) return i;
    if (c->n == MOST_KINDS) return -1;
    c->kinds = memory_grow(c->kinds, (size_t)c->n + 1, sizeof *c->kinds);
    c->kinds[c->n] = *like;
    return c->n++;
}

/* Notes the kind of the block that has just run: the branches that it took. */
static int note_kind(Census *c, const SliceRun *r)
{
    CensusKind kind = {.digest = 1};
    for (int b = 0, n = r->slice->n_blocks; b < n; b++) {
        kind.digest = mix(mix(kind.digest, r->passes[b]), r->passes[n + b]);
        kind.cost += (double)r->passes[b] * r->slice->blocks[b].n_insts;
        kind.path += (double)r->passes[n + b] * r->slice->blocks[b].n_insts;
        if (r->open[b] && r->passes[b]) kind.opens = mix(kind.opens, (uint64_t)b + 1);
        c->open |= r->open[b];
    }
    return kind_of(c, &kind);
}

/* The blocks of the box that have no kind yet are of this one. */
static void mark_box(Census *c, SliceRun *r, int kind)
{
    const uint32_t *grid = r->launch->grid;
    int64_t from[3], to[3];
    for (int k = 0; k < 3; k++) { /* the first dimension has one part */
        const int dim = k ? X_PARTS + k - 1 : 0;
        from[k] = r->block[k] + r->box.low[dim];
        to[k] = r->block[k] + r->box.high[dim];
    }
    for (int64_t z = from[2]; z <= to[2]; z++)
        for (int64_t y = from[1]; y <= to[1]; y++) {
            uint64_t at = ((uint64_t)z * grid[1] + (uint64_t)y) * grid[0];
            r->budget -= MARK_COST * (to[0] - from[0] + 1);
            for (int64_t x = from[0]; x <= to[0]; x++) {
                uint16_t *of = &c->of[at + (uint64_t)x];
                if (*of) continue;
                *of = (uint16_t)(kind + 1);
                c->kinds[kind].blocks++;
                c->known++;
            }
        }
}

uint64_t census_stride(uint64_t n)
{
    uint64_t step = (uint64_t)((double)n * golden) | 1;
    for (;; step += 2) {
        uint64_t a = step, b = n;
        while (b) {
            uint64_t rest = a % b;
            a = b, b = rest;
        }
        if (a == 1) return step % n;
    }
}

/* Runs the block where it has no kind yet. Returns -1 when the census ends. */
static int visit(Census *c, SliceRun *r, uint64_t b)
{
    const uint32_t *grid = r->launch->grid;
    const uint32_t block[3] = {(uint32_t)(b % grid[0]), (uint32_t)(b / grid[0] % grid[1]),
                               (uint32_t)(b / grid[0] / grid[1])};
    if (c->of[b]) return 0;
    memset(r->passes, 0, 2 * (size_t)r->slice->n_blocks * sizeof *r->passes);
    if (r->budget <= 0 || slice_run_block(r, block)) return -1;
    int kind = note_kind(c, r);
    if (kind < 0) return -1;
    c->kinds[kind].drawn++;
    mark_box(c, r, kind);
    return 0;
}

static void run_blocks(Census *c, SliceRun *r, uint64_t seed)
{
    uint64_t step = c->blocks > 1 ? census_stride(c->blocks) : 0, b = seed % c->blocks;
    for (uint64_t i = 0; i < c->blocks && c->known < c->blocks; i++) {
        if (visit(c, r, b)) return;
        b = b + step < c->blocks ? b + step : b + step - c->blocks;
    }
}

/* Adds a block to a kind of clusters. */
static void join_kind(CensusKind *to, const CensusKind *k)
{
    to->digest = mix(to->digest, k->digest);
    to->opens = mix(to->opens, k->opens);
    to->cost += k->cost;
    if (k->path > to->path) to->path = k->path;
}

/* Makes clusters of blocks: a cluster's kind is that of its blocks together. */
static void join_clusters(Census *c, const uint32_t grid[3], const uint32_t cluster[3])
{
    uint32_t of[3], n[3];
    Census all = {.blocks = 1, .open = c->open, .open_at = c->open_at};
    for (int k = 0; k < 3; k++) {
        of[k] = cluster[k] ? cluster[k] : 1;
        n[k] = grid[k] / of[k];
        all.blocks *= n[k];
    }
    all.of = memory_array(all.blocks + 1, sizeof *all.of);
    for (uint64_t i = 0; i < all.blocks; i++) {
        CensusKind kind = {.digest = 1};
        uint64_t x0 = i % n[0] * of[0], y0 = i / n[0] % n[1] * of[1], z0 = i / n[0] / n[1] * of[2];
        int known = 1;
        for (uint64_t z = z0; z < z0 + of[2]; z++)
            for (uint64_t y = y0; y < y0 + of[1]; y++)
                for (uint64_t x = x0; x < x0 + of[0]; x++) {
                    int of_block = census_kind(c, (z * grid[1] + y) * grid[0] + x);
                    known &= of_block >= 0;
                    if (of_block >= 0) join_kind(&kind, &c->kinds[of_block]);
                }
        int at = known ? kind_of(&all, &kind) : -1;
        if (at < 0) continue;
        all.of[i] = (uint16_t)(at + 1);
        all.kinds[at].blocks++;
        all.kinds[at].drawn++;
        all.known++;
    }
    c->open_at = NULL;
    census_release(c);
    *c = all;
}

void census_take(const PtxModule *m, const PtxFunction *f, const DeviceLaunch *l,
                 CensusLimit *limit, Census *out)
{
    memset(out, 0, sizeof *out);
    out->blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    if (out->blocks > most_blocks) return;
    Slice *s = slice_new(m, f, 0, SLICE_BRANCHES);
    out->of = memory_array(out->blocks + 1, sizeof *out->of);
    if (!s->why) {
        SliceRun r;
        slice_run_open(&r, s, l, limit->budget);
        r.passes = memory_array(2 * (size_t)s->n_blocks + 1, sizeof *r.passes);
        r.open = memory_alloc((size_t)s->n_blocks + 1);
        run_blocks(out, &r, limit->seed);
        limit->budget = r.budget;
        free(r.passes);
        out->open_at = r.open;
        slice_run_close(&r);
    }
    slice_free(s);
    if (f->cluster[0] > 1 || f->cluster[1] > 1 || f->cluster[2] > 1)
        join_clusters(out, l->grid, f->cluster);
}

void census_release(Census *c)
{
    free(c->kinds);
    free(c->of);
    free(c->open_at);
    memset(c, 0, sizeof *c);
}

int census_kind(const Census *c, uint64_t block)
{
    return c->of && block < c->blocks ? c->of[block] - 1 : -1;
}
