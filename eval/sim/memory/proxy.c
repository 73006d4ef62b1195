/* Each word of shared memory has the moment of its last ordinary write, and the warp. Moments count the
 * fences and barriers that had writes before them; those of earlier blocks are below `floor`. */
#include "eval/sim/memory/proxy.h"
#include "eval/sim/memory/landed.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/fences.h"
#include "eval/sim/memory/order.h"

enum { WARP_BITS = 5, MOMENT_RENEWED = 1 << 26 };

struct ProxyFences {
    uint32_t moment, floor, passed; /* passed: the last moment before the last barrier */
    int touched;                    /* there are writes of this moment */
    uint32_t *written;              /* moment << WARP_BITS | warp, by word; 0: by the proxy */
    size_t words;
    uint64_t lo, hi;       /* bytes among which this block's writes are */
    Fences shared, global; /* positions: moments, and those of order.h */
};

static void fit(Exec *x, ProxyFences *p)
{
    size_t words = (size_t)x->shared_cap / 4 + 2;
    if (words > p->words) {
        free(p->written);
        p->written = memory_array(words, sizeof *p->written);
        p->words = words;
        p->moment = 1;
    } else if (p->moment > MOMENT_RENEWED) {
        memset(p->written, 0, words * sizeof *p->written);
        p->moment = 1;
    }
}

void proxy_start_block(Exec *x)
{
    if (!x->code->uses_proxy) {
        proxy_release_block(x);
        return;
    }
    if (!x->proxy) x->proxy = memory_alloc(sizeof *x->proxy);
    ProxyFences *p = x->proxy;
    fit(x, p);
    p->floor = ++p->moment;
    p->passed = p->touched = 0;
    p->lo = UINT64_MAX;
    p->hi = 0;
    memset(&p->shared, 0, sizeof p->shared);
    memset(&p->global, 0, sizeof p->global);
}

void proxy_release_block(Exec *x)
{
    if (x->proxy) free(x->proxy->written);
    free(x->proxy);
    x->proxy = NULL;
}

/* Returns the moment of the last writes, and begins another one. */
static uint32_t end_moment(ProxyFences *p)
{
    if (!p->touched) return p->moment - 1;
    p->touched = 0;
    return p->moment++;
}

void proxy_fence(Warp *w, int kind)
{
    ProxyFences *p = w->x->proxy;
    uint64_t shared[MAX_WARPS], global[MAX_WARPS];
    w->x->counts.block_fences++;
    if (!p) return;
    for (int i = 0; i < MAX_WARPS; i++) shared[i] = p->passed, global[i] = w->x->cta.passed;
    if (kind & FENCE_PROXY_SHARED) fences_add(&p->shared, w->index, end_moment(p), shared);
    if (kind & FENCE_PROXY_GLOBAL)
        fences_add(&p->global, w->index, order_position(&w->x->cta), global);
}

void proxy_barrier(Exec *x)
{
    ProxyFences *p = x->proxy;
    p->passed = end_moment(p);
    fences_barrier(&p->shared);
    fences_barrier(&p->global);
}

void proxy_note_landed(Exec *x, uint64_t at, uint64_t bytes)
{
    ProxyFences *p = x->proxy;
    if (!p || at >= p->hi || at + bytes <= p->lo) return;
    for (uint64_t word = at >> 2; word <= (at + bytes - 1) >> 2; word++) p->written[word] = 0;
}

void proxy_note_write(Warp *w, const Access *a)
{
    ProxyFences *p = w->x->proxy;
    const Cluster *k = w->x->cluster;
    uint32_t mine = p->moment << WARP_BITS | (uint32_t)w->index;
    for (int i = 0; i < a->p->n_ranges; i++) {
        ShadowRange r = shadow_range(a, i, 0);
        if (k && k->actor != k->current) { /* another block's warps are not followed */
            proxy_note_landed(w->x, r.lo, r.hi - r.lo);
            continue;
        }
        if (r.lo < p->lo) p->lo = r.lo;
        if (r.hi > p->hi) p->hi = r.hi;
        for (uint64_t word = r.lo >> 2; word <= (r.hi - 1) >> 2; word++) p->written[word] = mine;
        landed_overwrite(w->x, r.lo, r.hi - r.lo);
        p->touched = 1;
    }
}

static int is_zero(const Cta *c, uint64_t word)
{
    uint32_t v;
    memcpy(&v, c->shared + word * 4, sizeof v);
    return !v;
}

static int check_shared(Warp *w, const Inst *in, int lane, ShadowRange r, int is_product)
{
    const ProxyFences *p = w->x->proxy;
    if (!p || r.lo >= p->hi || r.hi <= p->lo) return 0;
    const uint64_t *covered = fences_of(&p->shared, w->index);
    for (uint64_t word = r.lo >> 2; word <= (r.hi - 1) >> 2; word++) {
        uint32_t t = p->written[word], moment = t >> WARP_BITS, warp = t & (MAX_WARPS - 1);
        if (moment < p->floor || covered[warp] >= moment) continue;
        if (is_product && is_zero(&w->x->cta, word)) continue;
        return exec_fail(
            w, in, lane, OUTCOME_RACE,
            "%s shared memory at offset %llu, which a thread of warp %u has stored with no "
            "fence.proxy.async behind the store: the writers need one before the barrier",
            is_product ? "multiplies" : "copies", (unsigned long long)word * 4, warp);
    }
    return 0;
}

int proxy_check_copy(Warp *w, const Inst *in, int lane, uint64_t at, uint64_t bytes)
{
    return check_shared(w, in, lane, (ShadowRange){at, at + bytes}, 0);
}

int proxy_check_product(Warp *w, const Inst *in, uint64_t at, uint64_t bytes)
{
    return check_shared(w, in, __builtin_ctz(w->active), (ShadowRange){at, at + bytes}, 1);
}

int proxy_check_global(Warp *w, const Access *a)
{
    const ProxyFences *p = w->x->proxy;
    const DevMem *mem = w->x->mem;
    const Alloc *al = &mem->allocs[a->mo->last_alloc];
    if (!p || al->read_only) return 0;
    const uint64_t *covered = fences_of(&p->global, w->index);
    uint64_t any = 0;
    for (int i = 0; i < MAX_WARPS; i++) any |= covered[i];
    for (int i = 0; i < a->p->n_ranges; i++) {
        ShadowRange r = shadow_range(a, i, ARENA_BASE);
        for (uint64_t word = r.lo >> 2; word <= (r.hi - 1) >> 2; word++) {
            uint64_t t = mem->writer[word];
            uint32_t tag = (uint32_t)(t >> 32);
            if (tag <= mem->tag_floor) continue;
            int own = mem->tag_block[tag - mem->tag_floor] == (uint32_t)w->x->cta.linear;
            int warp = (int)(t >> TAG_WARP_SHIFT) & (MAX_WARPS - 1);
            if (own ? covered[warp] >= t >> TAG_PHASE_SHIFT : any != 0) continue;
            return exec_fail(
                w, a->in, a->first, OUTCOME_RACE,
                "copies %s at offset %llu, where a thread has stored in the same launch, "
                "with no fence.proxy.async between",
                al->label, (unsigned long long)(word * 4 + ARENA_BASE - al->base));
        }
    }
    return 0;
}
