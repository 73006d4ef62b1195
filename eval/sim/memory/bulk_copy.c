/* A copy is checked in pieces, each as one access of the thread that issued it. */
#include "eval/sim/memory/bulk_copy.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/proxy.h"
#include "eval/sim/memory/shadow.h"
#include "eval/sim/memory/traffic.h"
#include "eval/sim/memory/undefined.h"
#include "eval/sim/memory/wgmma_reads.h"

enum {
    COPIES_MAX = 1024,    /* under way in a block, of each direction */
    BARRIERS_MAX = 1024,  /* that expect bytes */
    BYTES_MAX = 16 << 20, /* read and not landed yet */
    TX_MAX = (1 << 20) - 1,
    UNIT = 16,       /* of sizes and addresses */
    PIECE = 128,     /* units that are checked together */
    COPY_COST = 600, /* in thread-instructions; a piece costs a quarter of it */
};

typedef struct {
    const Inst *in;
    int warp, lane, line;
    uint32_t barrier, group;
    uint64_t to, from;
    uint32_t bytes;
    unsigned char *data; /* of a load */
} Copy;

typedef struct {
    uint32_t barrier;
    int64_t bytes; /* expected in this phase */
} Expected;

struct BulkCopies {
    Copy loads[COPIES_MAX], stores[COPIES_MAX];
    int n_loads, n_stores, n_expected;
    size_t held; /* bytes of all data */
    Expected expected[BARRIERS_MAX];
    uint32_t groups[MAX_WARPS][LANES]; /* committed */
};

static BulkCopies *copies_of(Exec *x)
{
    if (!x->bulk) x->bulk = memory_alloc(sizeof *x->bulk);
    return x->bulk;
}

static void drop_load(BulkCopies *b, int i)
{
    free(b->loads[i].data);
    b->held -= b->loads[i].bytes;
    b->loads[i] = b->loads[--b->n_loads];
}

void bulk_start_block(Exec *x)
{
    BulkCopies *b = x->bulk;
    if (!b) return;
    while (b->n_loads) drop_load(b, b->n_loads - 1);
    b->n_stores = b->n_expected = 0;
    memset(b->groups, 0, sizeof b->groups);
}

void bulk_release(Exec *x)
{
    bulk_start_block(x);
    free(x->bulk);
    x->bulk = NULL;
}

/* ---- the bytes that a barrier expects ---- */

static Expected *find_expected(const BulkCopies *b, uint32_t barrier)
{
    for (int i = 0; b && i < b->n_expected; i++)
        if (b->expected[i].barrier == barrier) return (Expected *)(uintptr_t)&b->expected[i];
    return NULL;
}

/* Adds to the bytes that the barrier expects. They are fewer than 0 when more have arrived. */
static int add_expected(Warp *w, const Inst *in, int lane, uint32_t barrier, int64_t bytes)
{
    BulkCopies *b = copies_of(w->x);
    Expected *e = find_expected(b, barrier);
    exec_charge(w->x, b->n_expected);
    if (!e && b->n_expected == BARRIERS_MAX)
        return exec_fail(w, in, lane, OUTCOME_UNSUPPORTED,
                         "has bytes expected at more than %d mbarriers", BARRIERS_MAX);
    if (!e) {
        e = &b->expected[b->n_expected++];
        *e = (Expected){barrier, 0};
    }
    e->bytes += bytes;
    if (llabs(bytes) > TX_MAX || llabs(e->bytes) > TX_MAX)
        return exec_fail(w, in, lane, OUTCOME_LAUNCH_ERROR,
                         "expects %lld bytes at an mbarrier; %d are allowed", (long long)e->bytes,
                         TX_MAX);
    return 0;
}

int bulk_expect(Warp *w, const Inst *in, int lane, uint32_t barrier, uint32_t bytes)
{
    return add_expected(w, in, lane, barrier, bytes);
}

int bulk_complete(Warp *w, const Inst *in, int lane, uint32_t barrier, uint32_t bytes)
{
    return add_expected(w, in, lane, barrier, -(int64_t)bytes);
}

void bulk_forget(Exec *x, uint32_t barrier)
{
    Expected *e = find_expected(x->bulk, barrier);
    if (e) *e = x->bulk->expected[--x->bulk->n_expected];
}

int64_t bulk_missing(const Exec *x, uint32_t barrier)
{
    const BulkCopies *b = x->bulk;
    if (!b) return 0;
    const Expected *e = find_expected(b, barrier);
    int64_t missing = e ? e->bytes : 0;
    for (int i = 0; i < b->n_loads; i++)
        if (b->loads[i].barrier == barrier) missing -= b->loads[i].bytes;
    return missing;
}

/* ---- pieces ---- */

/* The bytes that a lane's instruction reads or writes. */
typedef struct {
    const Inst *in;
    int lane;
    uint64_t at;
    uint32_t bytes;
} Span;

/* A part of a span as one lane's access. */
typedef struct {
    Inst side;
    MemOp mo;
    Access a;
    uint32_t bytes;
} Piece;

/* Describes what is left of a span behind its first `done` bytes, or as much as one access has. */
static void describe(Warp *w, const Span *s, PtxSpace space, uint32_t done, Piece *p)
{
    memset(p, 0, sizeof *p);
    p->bytes = s->bytes - done < PIECE * UNIT ? s->bytes - done : PIECE * UNIT;
    p->mo.space = (uint8_t)space;
    int unit = p->bytes < UNIT ? (int)p->bytes : UNIT; /* st.async has smaller ones */
    p->mo.element = (uint8_t)unit;
    p->mo.count = (uint8_t)(p->bytes / (uint32_t)unit);
    p->mo.address_kind = ADDRESS_FIXED;
    p->mo.offset = (int64_t)(s->at + done);
    p->mo.traffic = s->in->bulk->traffic;
    p->side = *s->in;
    p->side.mem = &p->mo;
    access_begin(w, &p->side, 1u << s->lane, &p->a);
    p->a.align = unit;
}

static int changes(const Access *a, const Warp *w, int lane, const unsigned char *now)
{
    (void)a, (void)w, (void)lane, (void)now;
    return 1;
}

static int check_global(Warp *w, Span s, int writes)
{
    Piece p;
    for (uint32_t done = 0; done < s.bytes; done += p.bytes) {
        exec_charge(w->x, COPY_COST / 4);
        describe(w, &s, SPACE_GLOBAL, done, &p);
        if (access_global_bounds(w, &p.a, writes)) return -1;
        if (writes ? global_check_store(w, &p.a, changes)
                   : global_check_load(w, &p.a) || proxy_check_global(w, &p.a))
            return -1;
        traffic_count(w, &p.a, writes ? MEM_STORE : MEM_LOAD);
    }
    return 0;
}

typedef enum { READS, WRITES, OVERWRITES } Use; /* OVERWRITES: later, at the latest moment */

static int check_shared(Warp *w, Span s, Use use)
{
    Piece p;
    for (uint32_t done = 0; done < s.bytes; done += p.bytes) {
        exec_charge(w->x, COPY_COST / 4);
        describe(w, &s, SPACE_SHARED, done, &p);
        if (access_shared_bounds(w, &p.a, use != READS)) return -1;
        int r = use == READS    ? shared_check_load(w, &p.a) || undefined_check_copy(w, &p.a)
                : use == WRITES ? shared_check_store(w, &p.a, changes)
                                : shared_check_overwrite(w, &p.a, changes);
        if (r) return -1;
        if (use != WRITES) continue;
        undefined_overwrite(w->x, p.a.base, p.bytes);
        proxy_note_landed(w->x, p.a.base, p.bytes);
    }
    return 0;
}

/* ---- copies ---- */

static Span from_of(const Copy *c)
{
    return (Span){c->in, c->lane, c->from, c->bytes};
}

static Span to_of(const Copy *c)
{
    return (Span){c->in, c->lane, c->to, c->bytes};
}

/* Fills in *c. Addresses of shared memory may come from a generic one. */
static int begin(Warp *w, const Inst *in, int lane, int count, Copy *c)
{
    const BulkOp *op = in->bulk;
    const PtxInst *source = exec_source(w, in);
    *c = (Copy){.in = in,
                .line = source ? source->line : 0,
                .warp = w->index,
                .lane = lane,
                .to = access_lane_address(w, &op->to, lane),
                .from = access_lane_address(w, &op->from, lane),
                .bytes = row32(w, op->size)[lane]};
    exec_charge(w->x, COPY_COST + count);
    if (!c->bytes || c->bytes % UNIT || c->bytes > BYTES_MAX)
        return exec_fail(w, in, lane, OUTCOME_OUT_OF_BOUNDS,
                         "copies %u bytes, which is not a positive multiple of %d", c->bytes, UNIT);
    if (count == COPIES_MAX)
        return exec_fail(w, in, lane, OUTCOME_UNSUPPORTED,
                         "has more than %d bulk copies under way in a block", COPIES_MAX);
    w->x->counts.async_copies++;
    return 0;
}

/* What a copy reads of the block's shared memory when it is issued. */
static int read_shared(Warp *w, const Copy *c)
{
    return check_shared(w, from_of(c), READS) ||
           proxy_check_copy(w, c->in, c->lane, c->from, c->bytes);
}

/* Checks what a load reads, from global memory or the block's own shared memory. Returns where it lies,
 * or NULL with a fault. */
static const unsigned char *source_of(Warp *w, Copy *c)
{
    if (c->in->bulk->from.space == SPACE_GLOBAL)
        return check_global(w, from_of(c), 0) ? NULL : devmem_host(w->x->mem, c->from);
    c->from &= UINT32_MAX;
    return read_shared(w, c) ? NULL : w->x->cta.shared + c->from;
}

int bulk_load(Warp *w, const Inst *in, int lane, uint32_t barrier)
{
    BulkCopies *b = copies_of(w->x);
    Copy c;
    if (begin(w, in, lane, b->n_loads, &c)) return -1;
    c.to &= w->x->cluster ? CLUSTER_OFFSET : UINT32_MAX;
    c.barrier = barrier;
    if (check_shared(w, to_of(&c), OVERWRITES) || wgmma_check_copy(w, in, lane, c.to, c.bytes))
        return -1;
    const unsigned char *from = source_of(w, &c);
    if (!from) return -1;
    if (b->held + c.bytes > BYTES_MAX)
        return exec_fail(w, in, lane, OUTCOME_UNSUPPORTED,
                         "has more than %d bytes of bulk copies under way in a block", BYTES_MAX);
    c.data = memory_alloc(c.bytes);
    memcpy(c.data, from, c.bytes);
    b->held += c.bytes;
    b->loads[b->n_loads++] = c;
    return 0;
}

unsigned char *bulk_take(Warp *w, const Inst *in, int lane, int rank, uint32_t *bytes)
{
    Copy c;
    if (begin(w, in, lane, 0, &c)) return NULL;
    const unsigned char *from = source_of(w, &c);
    if (!from) return NULL;
    if (in->bulk->from.space == SPACE_SHARED) cluster_lend(w->x, c.from, c.bytes, rank);
    unsigned char *data = memory_alloc(c.bytes);
    memcpy(data, from, c.bytes);
    *bytes = c.bytes;
    return data;
}

int bulk_put(Warp *w, const Inst *in, int lane, const unsigned char *data, uint32_t bytes)
{
    uint64_t at =
        access_lane_address(w, &in->bulk->to, lane) & (w->x->cluster ? CLUSTER_OFFSET : UINT32_MAX);
    if (check_shared(w, (Span){in, lane, at, bytes}, WRITES) ||
        wgmma_check_copy(w, in, lane, at, bytes))
        return -1;
    memcpy(w->x->cta.shared + at, data, bytes);
    return 0;
}

int bulk_land(Warp *w, const Inst *in, uint32_t barrier)
{
    BulkCopies *b = w->x->bulk;
    int me = w->index;
    if (!b) return 0;
    bulk_forget(w->x, barrier);
    exec_charge(w->x, b->n_loads);
    for (int i = 0; i < b->n_loads; i++) {
        Copy *c = &b->loads[i];
        if (c->barrier != barrier) continue;
        w->index = c->warp; /* the warp that issued the copy is the writer */
        int r = check_shared(w, to_of(c), WRITES);
        w->index = me;
        if (r) return -1;
        memcpy(w->x->cta.shared + c->to, c->data, c->bytes);
        drop_load(b, i--);
    }
    (void)in;
    return 0;
}

int bulk_store(Warp *w, const Inst *in, int lane)
{
    BulkCopies *b = copies_of(w->x);
    Copy c;
    if (begin(w, in, lane, b->n_stores, &c)) return -1;
    c.from &= 0xffffffffu;
    c.group = b->groups[w->index][lane];
    if (read_shared(w, &c)) return -1;
    b->stores[b->n_stores++] = c;
    return 0;
}

void bulk_commit(Warp *w, uint32_t lanes)
{
    BulkCopies *b = copies_of(w->x);
    EACH_LANE(lanes, i)
    {
        b->groups[w->index][i]++;
    }
}

static int store_now(Warp *w, const Copy *c)
{
    if (check_shared(w, from_of(c), READS) || check_global(w, to_of(c), 1)) return -1;
    memcpy(devmem_host(w->x->mem, c->to), w->x->cta.shared + c->from, c->bytes);
    return 0;
}

int bulk_wait(Warp *w, const Inst *in, uint32_t lanes, uint64_t pending)
{
    BulkCopies *b = copies_of(w->x);
    int kept = 0;
    exec_charge(w->x, b->n_stores);
    for (int i = 0; i < b->n_stores; i++) {
        const Copy c = b->stores[i];
        int ends = c.warp == w->index && lanes >> c.lane & 1 &&
                   c.group + pending < b->groups[c.warp][c.lane];
        if (ends && store_now(w, &c)) return -1;
        if (!ends) b->stores[kept++] = c;
    }
    b->n_stores = kept;
    (void)in;
    return 0;
}

int bulk_line_at(const Exec *x, uint64_t at, uint32_t bytes)
{
    const BulkCopies *b = x->bulk;
    for (int i = 0; b && i < b->n_loads; i++) {
        const Copy *c = &b->loads[i];
        if (at < c->to + c->bytes && at + bytes > c->to) return c->line;
    }
    return -1;
}

int bulk_end_block(Exec *x)
{
    const BulkCopies *b = x->bulk;
    if (!b || x->faulted || !(b->n_stores + b->n_loads)) return 0;
    const Copy *c = b->n_stores ? &b->stores[0] : &b->loads[0];
    Warp *w = &x->warps[c->warp];
    w->frame = &w->entry_frame;
    return exec_fail(w, c->in, c->lane, OUTCOME_RACE,
                     "the block ends while a bulk copy uses its shared memory: wait for it with %s",
                     b->n_stores ? "cp.async.bulk.wait_group" : "mbarrier.try_wait");
}
