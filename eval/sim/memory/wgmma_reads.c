/* A race with a write of the same phase is found at the issue or at the write, as for loads. The wait
 * counts as another read: the phase may be a later one. */
#pragma GCC optimize("O3")
#include "eval/sim/memory/wgmma_reads.h"
#include "eval/sim/memory/landed.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/memory/proxy.h"
#include "eval/sim/memory/shadow.h"

enum { READS_MAX = 32 /* products of a warp under way that are followed */, HOLD_COST = 300 };

typedef struct WgmmaRead {
    const Inst *in;
    const Frame *frame;
    uint32_t group, epoch, number; /* number: of the warp's products in this block, from 1 */
    ShadowRange range[2]; /* of the first 32 chunks and of the others: of the two factors */
    WgmmaChunks chunks;
} WgmmaRead;

/* Where a product has read that is done; at: the chunks that matter. */
typedef struct WgmmaPast {
    uint32_t number;
    int n;
    ShadowRange range[2];
    uint32_t at[WGMMA_CHUNKS_MAX];
} WgmmaPast;

WgmmaReads *wgmma_reads(Exec *x)
{
    if (!x->wgmma) x->wgmma = memory_alloc(sizeof *x->wgmma);
    return x->wgmma;
}

void wgmma_start_block(Exec *x)
{
    for (int i = 0; x->wgmma && i < MAX_WARPS; i++) {
        WgmmaWarp *w = &x->wgmma->warps[i];
        w->n = w->issued = w->committed = 0;
        for (int k = 0; w->past && k < WGMMA_PAST; k++) w->past[k].number = 0;
    }
}

void wgmma_release(Exec *x)
{
    for (int i = 0; x->wgmma && i < MAX_WARPS; i++) {
        for (int k = 0; k < x->wgmma->warps[i].cap; k++) free(x->wgmma->warps[i].reads[k]);
        free(x->wgmma->warps[i].reads);
        free(x->wgmma->warps[i].past);
    }
    free(x->wgmma);
    x->wgmma = NULL;
}

int wgmma_read(Warp *w, const Inst *in, WgmmaChunks *c)
{
    const Cta *cta = &w->x->cta;
    for (int i = 0; i < c->n; i++)
        if (c->at[i] > cta->shared_size || cta->shared_size - c->at[i] < WGMMA_CHUNK)
            return exec_fail(w, in, 0, OUTCOME_OUT_OF_BOUNDS,
                             "multiplies %d bytes at offset %u of the block's shared memory, which "
                             "has %u bytes (%u static, %u dynamic)",
                             WGMMA_CHUNK, c->at[i], cta->shared_size, cta->static_shared,
                             cta->shared_size - cta->static_shared);
    memset(c->doubtful, 0, (size_t)c->n);
    c->event = 0;
    if (shared_check_chunks(w, in, c->at, c->n, c->doubtful, &c->event)) return -1;
    for (int i = 0; i < c->n && w->x->proxy; i++)
        if (!c->doubtful[i] && proxy_check_product(w, in, c->at[i], WGMMA_CHUNK)) return -1;
    uint32_t barrier;
    const int missing = landed_missing_chunk(w, c->at, c->n, c->doubtful, &barrier);
    if (missing >= 0)
        return exec_fail(
            w, in, 0, OUTCOME_RACE,
            "multiplies shared memory at offset %u, which a bulk copy brings: the warp "
            "has not waited for its mbarrier, at offset %u",
            c->at[missing], barrier);
    for (int i = 0; i < c->n; i++) memcpy(c->bytes[i], cta->shared + c->at[i], WGMMA_CHUNK);
    return 0;
}

/* The bytes must still be those of the issue, unless nothing depends on them. */
static int end_read(Warp *w, const Inst *in, WgmmaRead *r)
{
    WgmmaChunks *c = &r->chunks;
    const Inst *of = r->frame == w->frame ? r->in : in;
    exec_charge(w->x, HOLD_COST + c->n);
    for (int i = 0; i < c->n; i++)
        if (!c->doubtful[i] && memcmp(c->bytes[i], w->x->cta.shared + c->at[i], WGMMA_CHUNK))
            return exec_fail(
                w, of, 0, OUTCOME_RACE,
                "multiplies shared memory at offset %u, which a thread of warp %u writes "
                "before wgmma.wait_group has waited for the product",
                c->at[i], w->x->cta.shared_writer[c->at[i] / 4] >> TAG_WARP_SHIFT & 31);
    if (r->epoch == w->x->cta.epoch) return 0;
    return shared_check_chunks(w, of, c->at, c->n, c->doubtful, NULL);
}

static void keep_past(WgmmaWarp *own, const WgmmaRead *r)
{
    if (!own->past) own->past = memory_array(WGMMA_PAST, sizeof *own->past);
    WgmmaPast *p = &own->past[r->number % WGMMA_PAST];
    p->number = r->number;
    p->n = 0;
    memcpy(p->range, r->range, sizeof p->range);
    for (int i = 0; i < r->chunks.n; i++)
        if (!r->chunks.doubtful[i]) p->at[p->n++] = r->chunks.at[i];
}

/* Drops the first n reads, whose products are done. */
static int end_reads(Warp *w, const Inst *in, int n)
{
    WgmmaWarp *own = &w->x->wgmma->warps[w->index];
    for (int i = 0; i < n; i++) {
        if (end_read(w, in, own->reads[i])) return -1;
        keep_past(own, own->reads[i]);
    }
    for (int i = 0; i + n < own->n && n; i++) { /* the others move up */
        WgmmaRead *done = own->reads[i];
        own->reads[i] = own->reads[i + n];
        own->reads[i + n] = done;
    }
    own->n -= n;
    return 0;
}

static void find_ranges(WgmmaRead *r)
{
    for (int k = 0; k < 2; k++) {
        int i = k ? 2 * WGMMA_ROWS : 0, end = k ? r->chunks.n : 2 * WGMMA_ROWS;
        ShadowRange v = {UINT32_MAX, 0};
        for (; i < end && i < r->chunks.n; i++) {
            uint32_t at = r->chunks.at[i];
            if (at < v.lo) v.lo = at;
            if (at + WGMMA_CHUNK > v.hi) v.hi = at + WGMMA_CHUNK;
        }
        r->range[k] = v;
    }
}

static int is_apart(const ShadowRange range[2], uint64_t at, uint64_t end)
{
    return (at >= range[0].hi || end <= range[0].lo) && (at >= range[1].hi || end <= range[1].lo);
}

static int overlaps(const WgmmaRead *r, uint64_t at, uint64_t end)
{
    const WgmmaChunks *c = &r->chunks;
    if (is_apart(r->range, at, end)) return 0;
    for (int i = 0; i < c->n; i++)
        if (at < c->at[i] + WGMMA_CHUNK && end > c->at[i] && !c->doubtful[i]) return 1;
    return 0;
}

/* 1: a product that is done has read there, and the warp has not been told so. */
static int is_untold(const Warp *w, int reader, uint64_t at, uint64_t end)
{
    const WgmmaWarp *own = &w->x->wgmma->warps[reader];
    const uint32_t known = landed_products(w, reader / WGMMA_WARPS);
    const uint32_t done = own->issued - (uint32_t)own->n;
    for (uint32_t number = done; own->past && number > known && done - number < WGMMA_PAST;
         number--) {
        const WgmmaPast *p = &own->past[number % WGMMA_PAST];
        if (p->number != number || is_apart(p->range, at, end)) continue;
        for (int i = 0; i < p->n; i++)
            if (at < p->at[i] + WGMMA_CHUNK && end > p->at[i]) return 1;
    }
    return 0;
}

int wgmma_check_copy(Warp *w, const Inst *in, int lane, uint64_t at, uint32_t bytes)
{
    const WgmmaReads *all = w->x->wgmma;
    for (int i = 0; all && i < w->x->cta.n_warps; i++) {
        exec_charge(w->x, all->warps[i].n);
        for (int k = 0; k < all->warps[i].n; k++)
            if (overlaps(all->warps[i].reads[k], at, at + bytes))
                return exec_fail(
                    w, in, lane, OUTCOME_RACE,
                    "copies to offset %llu of shared memory, which a product of warp %d "
                    "reads until wgmma.wait_group has waited for it",
                    (unsigned long long)at, i);
    }
    for (int i = 0; all && i < w->x->cta.n_warps; i++)
        if (is_untold(w, i, at, at + bytes))
            return exec_fail(w, in, lane, OUTCOME_RACE,
                             "copies to offset %llu of shared memory, which a product of warp %d "
                             "may still read: it arrives before wgmma.wait_group has waited for it",
                             (unsigned long long)at, i);
    return 0;
}

int wgmma_hold(Warp *w, const Inst *in, const WgmmaChunks *c)
{
    WgmmaWarp *own = &wgmma_reads(w->x)->warps[w->index];
    own->issued++;
    if (own->n == READS_MAX && end_reads(w, in, 1)) return -1; /* it may be done */
    if (own->n == own->cap) {
        int cap = own->cap ? 2 * own->cap : 4;
        own->reads = memory_grow(own->reads, (size_t)cap, sizeof *own->reads);
        for (; own->cap < cap; own->cap++) own->reads[own->cap] = memory_alloc(sizeof(WgmmaRead));
    }
    WgmmaRead *r = own->reads[own->n++];
    r->in = in;
    r->frame = w->frame;
    r->group = own->committed;
    r->number = own->issued;
    r->epoch = w->x->cta.epoch;
    r->chunks.n = c->n;
    memcpy(r->chunks.at, c->at, (size_t)c->n * sizeof *c->at);
    memcpy(r->chunks.bytes, c->bytes, (size_t)c->n * WGMMA_CHUNK);
    memcpy(r->chunks.doubtful, c->doubtful, (size_t)c->n);
    find_ranges(r);
    return 0;
}

void wgmma_commit(Warp *w)
{
    wgmma_reads(w->x)->warps[w->index].committed++;
}

int wgmma_wait(Warp *w, const Inst *in, int64_t pending)
{
    const WgmmaWarp *own = w->x->wgmma ? &w->x->wgmma->warps[w->index] : NULL;
    int n = 0;
    if (!own || !own->n) return 0;
    while (n < own->n &&
           (pending < 0 || (int64_t)own->reads[n]->group + pending < (int64_t)own->committed))
        n++;
    if (n) landed_multiplied(w, own->reads[n - 1]->number);
    return end_reads(w, in, n);
}

int wgmma_end_block(Exec *x)
{
    if (!x->wgmma || x->faulted) return 0;
    for (int i = 0; i < x->cta.n_warps; i++) {
        const WgmmaWarp *all = x->wgmma->warps, *first = &all[i - i % WGMMA_WARPS];
        Warp *w = &x->warps[all[i].issued > first->issued ? i : i - i % WGMMA_WARPS];
        if (all[i].issued == first->issued) continue;
        w->frame = &w->entry_frame;
        return exec_fail(w, w->frame->fn->insts, 0, OUTCOME_RACE,
                         "issues %u times a wgmma, and another warp of its warpgroup %u times",
                         x->wgmma->warps[w->index].issued,
                         w->index == i ? first->issued : all[i].issued);
    }
    return 0;
}
