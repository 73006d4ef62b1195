/* cp.async: copies from global to shared memory without registers. The bytes are read at once and
 * land when the thread waits for them, which is the latest moment that a device may choose: a read
 * before the wait finds the old bytes. Copies that are under way at the same time are not ordered, also
 * those of one thread: where they leave different bytes, there is no value. */
#pragma GCC optimize("O3")
#include "eval/sim/memory/async_copy.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/memory/memory_ops.h"
#include "eval/sim/memory/proxy.h"
#include "eval/sim/memory/shadow.h"
#include "eval/sim/memory/traffic.h"
#include "eval/sim/memory/undefined.h"
#include "eval/sim/memory/wgmma_reads.h"

enum {
    ASYNC_MAX = 1024, /* copies of a warp under way, which take a MiB */
    ASYNC_LANE_BYTES = 16,
    COPY_COST = 400 /* of an instruction, in thread-instructions */
};

/* The copies of one instruction that have not landed. */
typedef struct {
    int line, words; /* words: per lane */
    uint64_t issued; /* when, by AsyncCopies.clock */
    uint32_t mask;
    uint32_t group[LANES];   /* of the lane's copy */
    uint32_t barrier[LANES]; /* 1 + offset of the mbarrier that waits for it; 0: none */
    uint64_t to[LANES];      /* offsets in shared memory, in the form of a register row */
    unsigned char data[LANES][ASYNC_LANE_BYTES];
} AsyncCopy;

typedef struct {
    AsyncCopy *copies;      /* in the order of issue */
    int n, cap, old;        /* old: the first ones, which a wait for others has left under way */
    uint32_t groups[LANES]; /* groups that each lane has committed */
} WarpCopies;

struct AsyncCopies {
    WarpCopies warps[MAX_WARPS];
    uint64_t clock; /* counts copies that are issued, and landings */
    uint64_t began; /* the block, by the clock */
    struct Landed {
        uint64_t at : 40;    /* when the last copy to the word landed */
        uint64_t clash : 24; /* 1 + its line, where another one left other bytes; 0: none did */
    } * landed;              /* by word of shared memory */
    uint32_t words;
};

void async_start_block(Exec *x)
{
    if (!x->async) return;
    x->async->began = x->async->clock;
    for (int i = 0; i < MAX_WARPS; i++) {
        WarpCopies *own = &x->async->warps[i];
        own->n = own->old = 0;
        memset(own->groups, 0, sizeof own->groups);
    }
}

void async_release(Exec *x)
{
    for (int i = 0; x->async && i < MAX_WARPS; i++) free(x->async->warps[i].copies);
    if (x->async) free(x->async->landed);
    free(x->async);
    x->async = NULL;
}

/* All of shared memory has a time of its last landing. */
static void cover_shared(Exec *x)
{
    AsyncCopies *all = x->async;
    uint32_t words = x->cta.shared_size / 4 + 1;
    if (words <= all->words) return;
    all->landed = memory_grow(all->landed, words, sizeof *all->landed);
    memset(all->landed + all->words, 0, (words - all->words) * sizeof *all->landed);
    all->words = words;
}

static WarpCopies *copies_of(Warp *w)
{
    if (!w->x->async) w->x->async = memory_alloc(sizeof *w->x->async);
    return &w->x->async->warps[w->index];
}

/* An access of shared memory whose 64-bit addresses are in an array and not in a register. */
typedef struct {
    Access access;
    Inst side; /* with `mem`, what the access points to */
    MemOp mem;
} Landing;

/* Begins the access to c->to by the lanes m. Returns 0, or -1 with a fault. */
static int landing_begin(Warp *w, const Inst *in, const AsyncCopy *c, uint32_t m, Landing *l)
{
    unsigned char *bank = w->bank64[0];
    l->mem = (MemOp){.kind = MEM_STORE,
                     .space = SPACE_SHARED,
                     .element = 4,
                     .count = (uint8_t)c->words,
                     .address_kind = ADDRESS_64};
    l->side = *in;
    l->side.mem = &l->mem;
    w->bank64[0] = (unsigned char *)(uintptr_t)c->to;
    int near = access_begin(w, &l->side, m, &l->access);
    w->bank64[0] = bank;
    if (!near)
        return exec_fail(w, in, __builtin_ctz(m), OUTCOME_OUT_OF_BOUNDS,
                         "copies to addresses outside shared memory");
    return access_shared_bounds(w, &l->access, 1);
}

/* Notes that a word of a lane's copy lands. Where a copy that was under way at the same time has left other
 * bytes, the word has no value. */
static inline void note_landing(Exec *x, const AsyncCopy *c, int lane, int word)
{
    enum { LAST_LINE = (1 << 24) - 2 };
    uint64_t at = c->to[lane] + (uint64_t)word * 4;
    struct Landed *l = &x->async->landed[at / 4];
    int clashes = l->at > c->issued &&
                  (l->clash || memcmp(x->cta.shared + at, c->data[lane] + (size_t)word * 4, 4));
    const uint64_t line = (uint64_t)(c->line < LAST_LINE ? c->line : LAST_LINE) + 1;
    *l = (struct Landed){x->async->clock & ((1ull << 40) - 1), (clashes ? line : 0) & 0xffffff};
    if (clashes) shared_forget(&x->cta, at / 4);
}

static int land(Warp *w, const Inst *in, AsyncCopy *c, uint32_t m)
{
    Landing to;
    if (landing_begin(w, in, c, m, &to) || shared_check_store(w, &to.access, always_changes))
        return -1;
    w->x->async->clock++;
    for (uint32_t rest = m; rest; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        for (int k = 0; k < c->words; k++) note_landing(w->x, c, i, k);
        memcpy(w->x->cta.shared + c->to[i], c->data[i], (size_t)c->words * 4);
        undefined_overwrite(w->x, c->to[i], (uint32_t)c->words * 4);
        proxy_note_landed(w->x, c->to[i], (uint64_t)c->words * 4);
    }
    return 0;
}

/* Lands all but the last `pending` groups of the lanes; pending < 0: everything, also copies that
 * are in no group yet. Copies that no other wait has come before are a wait; where none may stay under way,
 * the instruction is one already (decode/costs.c). */
static int land_groups(Warp *w, const Inst *in, uint32_t m, int64_t pending)
{
    WarpCopies *own = copies_of(w);
    int kept = 0, landed = 0, fresh = 0;
    w->x->budget -= own->n; /* waits that look at many copies cost their time */
    for (int k = 0; k < own->n; k++) {
        AsyncCopy *c = &own->copies[k];
        uint32_t now = 0;
        for (uint32_t rest = c->mask & m; rest; rest &= rest - 1) {
            int i = __builtin_ctz(rest);
            if (pending < 0 || (int64_t)c->group[i] + pending < (int64_t)own->groups[i])
                now |= 1u << i;
        }
        if (now && land(w, in, c, now)) return -1;
        landed |= now != 0, fresh |= now && k >= own->old;
        c->mask &= ~now;
        if (!c->mask) continue;
        if (kept != k) own->copies[kept] = *c;
        kept++;
    }
    own->n = kept;
    own->old = landed ? kept : own->old;
    if (fresh && pending > 0) w->global_waits++, w->open_waits++;
    return 0;
}

const Inst *h_cp_async_group(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    if (in->k0) return m && land_groups(w, in, m, (int64_t)in->imm) ? NULL : in + 1;
    WarpCopies *own = copies_of(w);
    for (int i = 0; i < LANES; i++) own->groups[i] += m >> i & 1;
    return in + 1;
}

/* Adds an entry for the copies of an instruction. When too many are under way, all of them land
 * first, as on a device they may at any time. Returns NULL with a fault. */
static AsyncCopy *issue(Warp *w, const Inst *in, uint32_t m, int words)
{
    WarpCopies *own = copies_of(w);
    if (own->n == ASYNC_MAX && land_groups(w, in, FULL_MASK, -1)) return NULL;
    memory_room(own->copies, own->n, own->cap, 16);
    cover_shared(w->x);
    AsyncCopy *c = &own->copies[own->n++];
    c->issued = ++w->x->async->clock;
    const PtxInst *source = exec_source(w, in);
    c->line = source ? source->line : 0;
    c->words = words;
    c->mask = m;
    memcpy(c->group, own->groups, sizeof c->group);
    memset(c->barrier, 0, sizeof c->barrier);
    return c;
}

void async_tie(Warp *w, int lane, uint32_t barrier)
{
    WarpCopies *own = copies_of(w);
    w->x->budget -= own->n;
    for (int k = 0; k < own->n; k++)
        if (own->copies[k].mask >> lane & 1 && !own->copies[k].barrier[lane])
            own->copies[k].barrier[lane] = barrier + 1;
}

int async_land_tied(Warp *w, const Inst *in, uint32_t barrier)
{
    AsyncCopies *all = w->x->async;
    int me = w->index;
    for (int i = 0; all && i < MAX_WARPS; i++) {
        w->x->budget -= all->warps[i].n;
        for (int k = 0; k < all->warps[i].n; k++) {
            AsyncCopy *c = &all->warps[i].copies[k];
            uint32_t now = 0;
            for (uint32_t rest = c->mask; rest; rest &= rest - 1)
                now |= (uint32_t)(c->barrier[__builtin_ctz(rest)] == barrier + 1)
                       << __builtin_ctz(rest);
            w->index = i; /* the warp that issued the copy is the writer */
            int r = now ? land(w, in, c, now) : 0;
            w->index = me;
            if (r) return -1;
            c->mask &= ~now; /* its warp's next wait drops an empty entry */
        }
    }
    return 0;
}

int async_clash_at(const Exec *x, uint64_t at, uint32_t bytes)
{
    const AsyncCopies *all = x->async;
    for (uint64_t word = at / 4; all && word < all->words && word * 4 < at + bytes; word++)
        if (all->landed[word].at > all->began && all->landed[word].clash)
            return (int)all->landed[word].clash - 1;
    return -1;
}

int async_line_at(const Exec *x, uint64_t at, uint32_t bytes)
{
    for (int i = 0; x->async && i < x->cta.n_warps; i++)
        for (int k = 0; k < x->async->warps[i].n; k++) {
            const AsyncCopy *c = &x->async->warps[i].copies[k];
            EACH_LANE(c->mask, lane)
            {
                if (at < c->to[lane] + (uint64_t)c->words * 4 && at + bytes > c->to[lane])
                    return c->line;
            }
        }
    return -1;
}

/* Checks a lane that reads fewer bytes than it writes. The bytes behind are not touched and may lie
 * outside the buffer. */
static int check_tail(Warp *w, const Inst *in, int lane, uint32_t bytes)
{
    Access from;
    MemOp mo = *in->mem;
    Inst side = *in;
    mo.element = 1;
    mo.count = (uint8_t)bytes;
    side.mem = &mo;
    access_begin(w, &side, 1u << lane, &from);
    from.align = in->mem->element * in->mem->count;
    int bad = access_global_bounds(w, &from, 0) || global_check_load(w, &from);
    in->mem->last_alloc = mo.last_alloc; /* which traffic_count reads */
    return bad ? -1 : 0;
}

/* Checks what the lanes read, each by its own size. Returns 0, -1 with a fault, or 1: take the
 * lanes one by one. */
static int check_source(Warp *w, const Inst *in, uint32_t m, const uint32_t *sizes)
{
    Access from = {0};
    uint32_t bytes = (uint32_t)(in->mem->element * in->mem->count), read = m, whole = m;
    for (int i = 0; i < LANES && sizes; i++) {
        read &= ~((uint32_t)!sizes[i] << i); /* zero fill alone */
        whole &= ~((uint32_t)(sizes[i] < bytes) << i);
    }
    if (whole) {
        int r = access_begin(w, in, whole, &from) ? access_global_bounds(w, &from, 0) : 1;
        if (r) return r;
        if (global_check_load(w, &from)) return -1;
    }
    for (uint32_t rest = read & ~whole; rest; rest &= rest - 1)
        if (check_tail(w, in, __builtin_ctz(rest), sizes[__builtin_ctz(rest)])) return -1;
    if (read != whole && !access_begin(w, in, read, &from)) return 1;
    if (read) traffic_count_copy(w, &from, MEM_LOAD); /* a tail counts the sectors of a full copy */
    return 0;
}

static int copy_async(Warp *w, const Inst *in, uint32_t m)
{
    Landing to;
    SimCounts *n = &w->x->counts;
    const uint32_t *sizes = in->b == ROW_NONE ? NULL : row32(w, in->b);
    int words = in->mem->count, r = check_source(w, in, m, sizes);
    if (r) return r;
    AsyncCopy *c = issue(w, in, m, words);
    if (!c) return -1;
    exec_charge(w->x, COPY_COST);
    for (uint32_t rest = m; rest; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        uint32_t size = sizes && sizes[i] < (uint32_t)words * 4 ? sizes[i] : (uint32_t)words * 4;
        uint64_t at = in->k0 == ADDRESS_64 ? row64(w, in->a)[i] & 0xffffffffu : row32(w, in->a)[i];
        c->to[i] = (at + (uint64_t)(int64_t)(int32_t)in->e) & 0xffffffffu;
        memset(c->data[i], 0, sizeof c->data[i]);
        if (size)
            memcpy(c->data[i], devmem_host(w->x->mem, access_lane_address(w, in->mem, i)), size);
    }
    if (landing_begin(w, in, c, m, &to)) return -1;
    for (uint32_t rest = w->x->wgmma ? m : 0; rest; rest &= rest - 1)
        if (wgmma_check_copy(w, in, __builtin_ctz(rest), c->to[__builtin_ctz(rest)],
                             (uint32_t)words * 4))
            return -1;
    /* A device may store the bytes from now on: what others read there without a barrier since is a race. */
    if (shared_check_overwrite(w, &to.access, always_changes)) return -1;
    n->shared_store_requests++;
    n->shared_store_wavefronts += to.access.p->wavefronts;
    traffic_count_shared(n, in->mem->traffic, to.access.p);
    n->async_copies++;
    return 0;
}

const Inst *h_cp_async(Warp *w, const Inst *in)
{
    return access_run(w, in, copy_async);
}
