/* cp.async: global to shared memory without registers. The bytes are read at once and land when the thread waits for them,
 * the latest moment that a device may choose: who reads before the wait finds what lay there. */
#pragma GCC optimize("O3")
#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/exec_memory.h"

enum { ASYNC_MAX = 4096, ASYNC_LANE_BYTES = 16 };

/* One instruction's copies that have not landed. */
typedef struct {
    int warp, words;          /* a lane */
    uint32_t mask;
    uint32_t group[LANES];    /* that the lane's copy belongs to */
    uint64_t to[LANES];       /* offsets in shared memory: a register row of addresses */
    unsigned char data[LANES][ASYNC_LANE_BYTES];
} AsyncCopy;

struct AsyncCopies {
    AsyncCopy *copies;        /* in the order of issue */
    int n, cap;
    uint32_t groups[MAX_WARPS][LANES]; /* committed so far */
};

void async_start_block(Exec *x)
{
    if (!x->async)
        return;
    x->async->n = 0;
    memset(x->async->groups, 0, sizeof(x->async->groups));
}

void async_release(Exec *x)
{
    if (x->async)
        free(x->async->copies);
    free(x->async);
    x->async = NULL;
}

static AsyncCopies *copies_of(Exec *x)
{
    if (!x->async)
        x->async = memory_alloc(sizeof(*x->async));
    return x->async;
}

/* An access to shared memory at a row of 64-bit addresses that is no register. */
static int begin_at_row(Warp *w, const Inst *in, const uint64_t *row, int words, uint32_t m, Access *a, Inst *side, MemOp *mo)
{
    unsigned char *bank = w->bank64[0];
    *mo = (MemOp){.kind = MEM_STORE, .space = SPACE_SHARED, .element = 4, .count = (uint8_t)words, .address64 = 1};
    *side = *in;
    side->mem = mo;
    w->bank64[0] = (unsigned char *)(uintptr_t)row;
    int near = access_begin(w, side, m, a);
    w->bank64[0] = bank;
    if (!near)
        return exec_fault(w, in, __builtin_ctz(m), OUTCOME_OUT_OF_BOUNDS, "copies to addresses outside shared memory") ? 0 : -1;
    return access_shared_bounds(w, a, 1);
}

static int always_changes(const Access *a, const Warp *w, int lane, const unsigned char *now)
{
    (void)a, (void)w, (void)lane, (void)now;
    return 1;
}

static int land(Warp *w, const Inst *in, AsyncCopy *c, uint32_t m)
{
    Access to;
    Inst side;
    MemOp mo;
    if (begin_at_row(w, in, c->to, c->words, m, &to, &side, &mo) || shared_check_store(w, &to, always_changes))
        return -1;
    for (uint32_t rest = m; rest; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        memcpy(w->x->cta.shared + c->to[i], c->data[i], (size_t)c->words * 4);
    }
    return 0;
}

/* All but the last `pending` groups of the lanes; pending < 0: also what is in no group yet. */
static int land_groups(Warp *w, const Inst *in, uint32_t m, int64_t pending)
{
    AsyncCopies *all = w->x->async;
    int kept = 0;
    for (int k = 0; all && k < all->n; k++) {
        AsyncCopy *c = &all->copies[k];
        uint32_t now = 0;
        for (uint32_t rest = c->warp == w->index ? c->mask & m : 0; rest; rest &= rest - 1) {
            int i = __builtin_ctz(rest);
            if (pending < 0 || (int64_t)c->group[i] + pending < (int64_t)all->groups[w->index][i])
                now |= 1u << i;
        }
        if (now && land(w, in, c, now))
            return -1;
        c->mask &= ~now;
        if (!c->mask)
            continue;
        if (kept != k)
            all->copies[kept] = *c;
        kept++;
    }
    if (all)
        all->n = kept;
    return 0;
}

/* k0: is it a wait; imm: the groups that may stay, -1 none at all */
const Inst *h_cp_async_group(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    if (in->k0)
        return m && land_groups(w, in, m, (int64_t)in->imm) ? NULL : in + 1;
    AsyncCopies *all = w->x->async;
    for (int i = 0; all && i < LANES; i++)
        all->groups[w->index][i] += m >> i & 1;
    return in + 1;
}

static AsyncCopy *issue(Warp *w, uint32_t m, int words)
{
    AsyncCopies *all = copies_of(w->x);
    if (all->n == all->cap) {
        all->cap = all->cap ? 2 * all->cap : 64;
        all->copies = memory_grow(all->copies, (size_t)all->cap, sizeof(*all->copies));
    }
    AsyncCopy *c = &all->copies[all->n++];
    c->warp = w->index;
    c->words = words;
    c->mask = m;
    memcpy(c->group, all->groups[w->index], sizeof(c->group));
    return c;
}

/* in->mem describes the global side; in->a is the row of shared addresses, in->e their offset, in->b of source sizes. */
static int copy_async(Warp *w, const Inst *in, uint32_t m)
{
    Access from, to;
    Inst side;
    MemOp mo;
    SimCounts *n = &w->x->counts;
    const uint32_t *sizes = in->b == ROW_NONE ? NULL : row32(w, in->b);
    int words = in->mem->count;
    uint32_t read = m;
    for (int i = 0; i < LANES && sizes; i++)
        if (!sizes[i])
            read &= ~(1u << i); /* all zero fill: the source is not touched */
    if (read) {
        int r = access_begin(w, in, read, &from) ? access_global_bounds(w, &from, 0) : 1;
        if (r)
            return r;
        if (global_check_load(w, &from))
            return -1;
        global_count(w, &from, MEM_LOAD);
    }
    if (copies_of(w->x)->n == ASYNC_MAX && land_groups(w, in, FULL_MASK, -1)) /* nobody ever waits */
        return -1;
    AsyncCopy *c = issue(w, m, words);
    for (uint32_t rest = m; rest; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        uint32_t size = sizes && sizes[i] < (uint32_t)words * 4 ? sizes[i] : (uint32_t)words * 4;
        uint64_t at = in->k0 ? row64(w, in->a)[i] & 0xffffffffu : row32(w, in->a)[i];
        c->to[i] = (at + (uint64_t)(int64_t)(int32_t)in->e) & 0xffffffffu;
        memset(c->data[i], 0, sizeof(c->data[i]));
        if (size)
            memcpy(c->data[i], devmem_host(w->x->mem, access_lane_address(w, in->mem, i)), size);
    }
    if (begin_at_row(w, in, c->to, words, m, &to, &side, &mo))
        return -1;
    n->shared_store_requests++;
    n->shared_store_wavefronts += to.p->wavefronts;
    n->async_copies++;
    return 0;
}

const Inst *h_cp_async(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    if (!m)
        return in + 1;
    int r = copy_async(w, in, m);
    if (r > 0)
        for (uint32_t rest = m; rest; rest &= rest - 1) {
            r = copy_async(w, in, rest & -rest);
            if (r)
                return NULL;
        }
    return r < 0 ? NULL : in + 1;
}
