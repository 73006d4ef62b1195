/* A copy is checked in pieces, each as one access of the thread that issued it; a copy by a tensor map row by
 * row. */
#include "eval/sim/memory/bulk_copy.h"
#include "eval/sim/memory/landed.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/device/tensor_map.h"
#include "eval/sim/memory/access.h"
#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/proxy.h"
#include "eval/sim/memory/shadow.h"
#include "eval/sim/memory/traffic.h"
#include "eval/sim/memory/undefined.h"
#include "eval/sim/memory/wgmma_reads.h"

/* A box of a tensor, as cp.async.bulk.tensor copies it: which rows of it lie in the tensor, and where
 * each 16 bytes are in shared memory. The swizzle exchanges chunks of 16 bytes: bits of the address
 * from bit 4 on by those from bit 7 on, as many as its span has chunks. Rows that are shorter than the
 * span lie as far apart (an H200, 2026-11-30); what is between them stays as it is, and an mbarrier
 * counts the rows alone. */

typedef struct {
    TensorMap map;
    int32_t at[TENSOR_MAP_RANK]; /* of the box's first element; innermost first */
    uint32_t bytes, row_bytes;   /* of the box, of a row of it */
    uint32_t pitch;              /* from row to row in shared memory: with a swizzle its span */
} TensorBox;

/* What of a row lies in the tensor. */
typedef struct {
    uint64_t global; /* its address */
    uint32_t bytes;  /* 0: nothing */
    uint32_t place;  /* bytes from the start of the box, without a swizzle */
} TensorRow;

enum { CHUNK = 16 };

/* The launch's map at a generic address or one of the parameters; NULL: there is none. */
static const unsigned char *map_at(const Warp *w, const MemOp *mo, uint64_t address)
{
    const DeviceLaunch *l = w->x->launch;
    int is_parameter = mo->space == SPACE_PARAM ||
                       (mo->space == SPACE_GENERIC && access_space(address) == SPACE_PARAM);
    for (int i = 0; is_parameter && i < l->n_maps; i++)
        if (l->map_at[i] == (uint32_t)address) return l->params + l->map_at[i];
    return NULL;
}

static int refuse_map(Warp *w, const Inst *in, int lane, const MemOp *mo, uint64_t address)
{
    PtxSpace space = mo->space == SPACE_GENERIC ? access_space(address) : (PtxSpace)mo->space;
    if (space == SPACE_LOCAL)
        return exec_fail(w, in, lane, OUTCOME_LAUNCH_ERROR,
                         "takes its tensor map from local memory, where a thread has a copy of it: "
                         "declare the parameter as const __grid_constant__ CUtensorMap");
    if (space == SPACE_PARAM)
        return exec_fail(
            w, in, lane, OUTCOME_LAUNCH_ERROR,
            "takes its tensor map from a parameter where the launch has none: pass the "
            "name of a map of the plan");
    return exec_fail(
        w, in, lane, OUTCOME_UNSUPPORTED,
        "takes its tensor map from memory; only a map of the plan in a parameter, const "
        "__grid_constant__ CUtensorMap, is known here");
}

/* The map and the coordinates of a lane's copy. Returns 0, or -1 with a fault: there is no map at the
 * address, or the box is of another rank. */
static int tensor_box_of(Warp *w, const Inst *in, int lane, TensorBox *out)
{
    const BulkOp *op = in->bulk;
    const MemOp *side = op->from.space == SPACE_SHARED ? &op->to : &op->from;
    uint64_t address = access_lane_address(w, side, lane);
    const unsigned char *map = map_at(w, side, address);
    if (!map) return refuse_map(w, in, lane, side, address);
    if (address % TENSOR_MAP_ALIGN)
        return exec_fail(
            w, in, lane, OUTCOME_LAUNCH_ERROR,
            "takes its tensor map from a parameter that is not aligned to %d bytes: declare it as "
            "the CUtensorMap of <cuda.h>",
            TENSOR_MAP_ALIGN);
    memcpy(&out->map, map, sizeof out->map);
    const TensorMap *m = &out->map;
    if (m->rank != op->rank)
        return exec_fail(w, in, lane, OUTCOME_LAUNCH_ERROR,
                         "copies a box of %d dimensions, and its tensor map has %d", op->rank,
                         m->rank);
    for (int i = 0; i < m->rank; i++) out->at[i] = (int32_t)row32(w, op->coordinates[i])[lane];
    out->bytes = tensor_map_box_bytes(m);
    out->row_bytes = m->box[0] * tensor_map_element((TensorMapType)m->type);
    out->pitch = m->swizzle ? m->swizzle : out->row_bytes;
    return 0;
}

/* The number of rows, and row i of them. */
static uint32_t tensor_box_rows(const TensorBox *b)
{
    return b->bytes / b->row_bytes;
}

static TensorRow tensor_box_row(const TensorBox *b, uint32_t i)
{
    const TensorMap *m = &b->map;
    TensorRow row = {.global = m->base, .place = i * b->pitch};
    for (int d = 1; d < m->rank; d++) {
        int64_t at = b->at[d] + (int64_t)(i % m->box[d]);
        i /= m->box[d];
        if (at < 0 || (uint64_t)at >= m->size[d]) return row;
        row.global += (uint64_t)at * m->stride[d - 1];
    }
    uint32_t element = b->row_bytes / m->box[0];
    int64_t low = b->at[0] < 0 ? 0 : b->at[0], high = (int64_t)b->at[0] + m->box[0];
    if ((uint64_t)(high < 0 ? 0 : high) > m->size[0]) high = (int64_t)m->size[0];
    if (low >= high) return row;
    row.global += (uint64_t)low * element;
    row.bytes = (uint32_t)(high - low) * element;
    row.place += (uint32_t)(low - b->at[0]) * element;
    return row;
}

/* Where a byte of the box is in shared memory: `place` bytes behind its start at `shared`. */
static uint64_t tensor_box_shared(const TensorBox *b, uint64_t shared, uint32_t place)
{
    uint64_t at = shared + place;
    return b->map.swizzle ? at ^ (at >> 3 & (uint64_t)(b->map.swizzle - CHUNK)) : at;
}

enum {
    COPIES_MAX = 1024,    /* under way in a block, of each direction */
    BARRIERS_MAX = 1024,  /* that expect bytes */
    BYTES_MAX = 16 << 20, /* read and not landed yet */
    TX_MAX = (1 << 20) - 1,
    UNIT = 16,       /* of sizes and addresses */
    PIECE = 128,     /* units that are checked together */
    BOX_UNIT = 128,  /* of the place of a box */
    COPY_COST = 600, /* in thread-instructions; a piece costs a quarter of it */
};

typedef struct {
    const Inst *in;
    int warp, lane, line;
    uint32_t barrier, group;
    uint64_t to, from;
    uint32_t bytes;
    unsigned char *data; /* of a load */
    TensorBox box;       /* of a copy by a tensor map */
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

/* The largest unit of both address and size: st.async and rows of boxes have smaller ones than copies. */
static uint32_t unit_of(const Span *s)
{
    uint64_t bits = (s->at | s->bytes) & (UNIT - 1);
    return bits ? (uint32_t)(bits & (0 - bits)) : UNIT;
}

/* Describes what is left of a span behind its first `done` bytes, or as much as one access has. */
static void describe(Warp *w, const Span *s, PtxSpace space, uint32_t done, Piece *p)
{
    uint32_t unit = s->in->bulk->rank ? unit_of(s) : s->bytes < UNIT ? s->bytes : UNIT;
    memset(p, 0, sizeof *p);
    p->bytes = s->bytes - done < PIECE * unit ? s->bytes - done : PIECE * unit;
    p->mo.space = (uint8_t)space;
    p->mo.element = (uint8_t)unit;
    p->mo.count = (uint8_t)(p->bytes / unit);
    p->mo.address_kind = ADDRESS_FIXED;
    p->mo.offset = (int64_t)(s->at + done);
    p->mo.traffic = s->in->bulk->traffic;
    p->side = *s->in;
    p->side.mem = &p->mo;
    access_begin(w, &p->side, 1u << s->lane, &p->a);
    p->a.align = (int)unit;
}

static int check_global(Warp *w, Span s, int writes)
{
    Piece p;
    for (uint32_t done = 0; done < s.bytes; done += p.bytes) {
        exec_charge(w->x, COPY_COST / 4);
        describe(w, &s, SPACE_GLOBAL, done, &p);
        if (access_global_bounds(w, &p.a, writes)) return -1;
        if (writes ? global_check_store(w, &p.a, always_changes)
                   : global_check_load(w, &p.a) || proxy_check_global(w, &p.a))
            return -1;
        traffic_count_copy(w, &p.a, writes ? MEM_STORE : MEM_LOAD);
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
                : use == WRITES ? shared_check_store(w, &p.a, always_changes)
                                : shared_check_overwrite(w, &p.a, always_changes);
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

/* An H200 refuses these as illegal instructions (probe of 2026-11-30). */
static int check_place(Warp *w, const Copy *c, int loads)
{
    const TensorBox *b = &c->box;
    const int64_t at = (int64_t)b->at[0] * (int64_t)(b->row_bytes / b->map.box[0]);
    if (at % UNIT)
        return exec_fail(w, c->in, c->lane, OUTCOME_LAUNCH_ERROR,
                         "copies a box that begins at column %d, %lld bytes into its row, which is "
                         "not a multiple of %d",
                         b->at[0], (long long)at, UNIT);
    if (at < 0 && !loads)
        return exec_fail(w, c->in, c->lane, OUTCOME_LAUNCH_ERROR,
                         "stores a box that begins at column %d, before its row; only loads may",
                         b->at[0]);
    return 0;
}

/* Fills in the box of *c, whose size is that of the copy. */
static int begin_box(Warp *w, Copy *c)
{
    int loads = c->in->bulk->to.space == SPACE_SHARED;
    uint64_t shared = loads ? c->to : c->from;
    if (tensor_box_of(w, c->in, c->lane, &c->box) || check_place(w, c, loads)) return -1;
    c->bytes = c->box.bytes;
    if (shared % BOX_UNIT == 0) return 0;
    return exec_fail(w, c->in, c->lane, OUTCOME_OUT_OF_BOUNDS,
                     "copies a box %s offset %llu of shared memory, which is not a multiple of %d",
                     loads ? "to" : "from", (unsigned long long)(shared & UINT32_MAX), BOX_UNIT);
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
                .from = access_lane_address(w, &op->from, lane)};
    exec_charge(w->x, COPY_COST + count);
    if (op->rank && begin_box(w, c)) return -1;
    if (!op->rank) c->bytes = row32(w, op->size)[lane];
    if (!c->bytes || c->bytes % UNIT || c->bytes > BYTES_MAX)
        return exec_fail(w, in, lane, OUTCOME_OUT_OF_BOUNDS,
                         "copies %u bytes, which is not a positive multiple of %d", c->bytes, UNIT);
    if (count == COPIES_MAX)
        return exec_fail(w, in, lane, OUTCOME_UNSUPPORTED,
                         "has more than %d bulk copies under way in a block", COPIES_MAX);
    w->x->counts.async_copies++;
    return 0;
}

/* A part of a copy in shared memory. Returns 0, or -1 with a fault. */
typedef int Part(Warp *w, const Copy *c, Span s);

/* A copy has one part, but where rows of its box lie apart: there each chunk is one. */
static int each_part(Warp *w, const Copy *c, uint64_t at, Part *part)
{
    const TensorBox *b = &c->box;
    if (!c->in->bulk->rank || b->pitch == b->row_bytes)
        return part(w, c, (Span){c->in, c->lane, at, c->bytes});
    for (uint32_t i = 0, n = tensor_box_rows(b); i < n; i++)
        for (uint32_t done = 0; done < b->row_bytes; done += UNIT) {
            uint64_t to = tensor_box_shared(b, at, i * b->pitch + done);
            if (part(w, c, (Span){c->in, c->lane, to, UNIT})) return -1;
        }
    return 0;
}

static int part_read(Warp *w, const Copy *c, Span s)
{
    return check_shared(w, s, READS) || proxy_check_copy(w, c->in, c->lane, s.at, s.bytes);
}

static int part_read_again(Warp *w, const Copy *c, Span s)
{
    (void)c;
    return check_shared(w, s, READS);
}

static int part_issue(Warp *w, const Copy *c, Span s)
{
    return check_shared(w, s, OVERWRITES) || wgmma_check_copy(w, c->in, c->lane, s.at, s.bytes);
}

static int part_land(Warp *w, const Copy *c, Span s)
{
    if (check_shared(w, s, WRITES)) return -1;
    memcpy(w->x->cta.shared + s.at, c->data + (s.at - c->to), s.bytes);
    landed_note(w->x, s.at, s.bytes);
    return 0;
}

/* Copies a row between its place in the box and where the row lies, chunk by chunk. */
static void move_row(const Copy *c, const TensorRow *row, uint64_t shared, unsigned char *box,
                     unsigned char *global)
{
    for (uint32_t done = 0, n; done < row->bytes; done += n) {
        uint32_t place = row->place + done;
        n = UNIT - place % UNIT < row->bytes - done ? UNIT - place % UNIT : row->bytes - done;
        unsigned char *at = box + (tensor_box_shared(&c->box, shared, place) - shared);
        memcpy(c->in->bulk->to.space == SPACE_SHARED ? at : global + done,
               c->in->bulk->to.space == SPACE_SHARED ? global + done : at, n);
    }
}

/* What a copy puts into shared memory of zeros, or of its own block's. */
static void count_filled(Exec *x, uint64_t bytes)
{
    x->counts.filled_bytes += bytes;
}

/* Fills in c->data by the map: zeros where the box is outside of the tensor. */
static int take_box(Warp *w, Copy *c)
{
    c->data = memory_alloc((size_t)tensor_box_rows(&c->box) * c->box.pitch);
    uint64_t zeros = c->bytes;
    for (uint32_t i = 0, n = tensor_box_rows(&c->box); i < n; i++) {
        TensorRow row = tensor_box_row(&c->box, i);
        if (!row.bytes) continue;
        if (check_global(w, (Span){c->in, c->lane, row.global, row.bytes}, 0)) return -1;
        move_row(c, &row, c->to, c->data, devmem_host(w->x->mem, row.global));
        zeros -= row.bytes;
    }
    count_filled(w->x, zeros);
    return 0;
}

/* Checks what a load reads, from global memory or the block's own shared memory, and fills in c->data. */
static int take_source(Warp *w, Copy *c)
{
    const unsigned char *from = NULL;
    if (c->in->bulk->rank) {
        if (!take_box(w, c)) return 0;
    } else if (c->in->bulk->from.space == SPACE_GLOBAL) {
        if (!check_global(w, from_of(c), 0)) from = devmem_host(w->x->mem, c->from);
    } else {
        c->from &= UINT32_MAX;
        if (!each_part(w, c, c->from, part_read)) from = w->x->cta.shared + c->from;
    }
    if (from) {
        c->data = memory_alloc(c->bytes);
        memcpy(c->data, from, c->bytes);
        return 0;
    }
    free(c->data);
    return -1;
}

int bulk_load(Warp *w, const Inst *in, int lane, uint32_t barrier)
{
    BulkCopies *b = copies_of(w->x);
    Copy c;
    if (begin(w, in, lane, b->n_loads, &c)) return -1;
    c.to &= w->x->cluster ? CLUSTER_OFFSET : UINT32_MAX;
    c.barrier = barrier;
    if (each_part(w, &c, c.to, part_issue)) return -1;
    if (b->held + c.bytes > BYTES_MAX)
        return exec_fail(w, in, lane, OUTCOME_UNSUPPORTED,
                         "has more than %d bytes of bulk copies under way in a block", BYTES_MAX);
    if (take_source(w, &c)) return -1;
    if (in->bulk->from.space == SPACE_SHARED) count_filled(w->x, c.bytes);
    b->held += c.bytes;
    b->loads[b->n_loads++] = c;
    return 0;
}

unsigned char *bulk_take(Warp *w, const Inst *in, int lane, int rank, uint32_t *bytes)
{
    Copy c;
    if (begin(w, in, lane, 0, &c)) return NULL;
    c.to &= CLUSTER_OFFSET;
    if (in->bulk->rank && c.box.pitch != c.box.row_bytes) {
        exec_fault(w, in, lane, OUTCOME_UNSUPPORTED,
                   "copies rows that are shorter than their swizzle to another block");
        return NULL;
    }
    if (take_source(w, &c)) return NULL;
    if (in->bulk->from.space == SPACE_SHARED) cluster_lend(w->x, c.from, c.bytes, rank);
    *bytes = c.bytes;
    return c.data;
}

int bulk_put(Warp *w, const Inst *in, int lane, const unsigned char *data, uint32_t bytes)
{
    uint64_t at =
        access_lane_address(w, &in->bulk->to, lane) & (w->x->cluster ? CLUSTER_OFFSET : UINT32_MAX);
    if (check_shared(w, (Span){in, lane, at, bytes}, WRITES) ||
        wgmma_check_copy(w, in, lane, at, bytes))
        return -1;
    memcpy(w->x->cta.shared + at, data, bytes);
    landed_overwrite(w->x, at, bytes);
    return 0;
}

int bulk_land(Warp *w, const Inst *in, uint32_t barrier)
{
    BulkCopies *b = w->x->bulk;
    int me = w->index;
    if (!b) return 0;
    bulk_forget(w->x, barrier);
    exec_charge(w->x, b->n_loads);
    landed_begin(w->x, barrier);
    for (int i = 0; i < b->n_loads; i++) {
        Copy *c = &b->loads[i];
        if (c->barrier != barrier) continue;
        w->index = c->warp; /* the warp that issued the copy is the writer */
        int r = each_part(w, c, c->to, part_land);
        w->index = me;
        if (r) return -1;
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
    if (each_part(w, &c, c.from, part_read)) return -1;
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

/* The hardware stores whole units: it writes what the box has behind a row that ends within one, to the
 * unit's end (an H200, 2026-11-30). Adds that to the row. Returns 0, or -1: it is outside of the buffer. */
static int add_tail(Warp *w, const Copy *c, TensorRow *row)
{
    const DevMem *mem = w->x->mem;
    const uint64_t end = row->global + row->bytes;
    const uint32_t tail = (uint32_t)((0 - end) & (UNIT - 1));
    if (!tail) return 0;
    const int i = devmem_find(mem, row->global);
    if (i >= 0 && end + tail > mem->allocs[i].base + mem->allocs[i].bytes)
        return exec_fail(
            w, c->in, c->lane, OUTCOME_OUT_OF_BOUNDS,
            "stores a row by a tensor map that ends %u bytes before a multiple of %d, at the end "
            "of %s: the hardware writes whole units of %d bytes; store the last elements by st",
            tail, UNIT, mem->allocs[i].label, UNIT);
    row->bytes += tail;
    return 0;
}

/* What of the box lies outside of the tensor is not written, but for the tails of rows. */
static int store_box(Warp *w, const Copy *c)
{
    for (uint32_t i = 0, n = tensor_box_rows(&c->box); i < n; i++) {
        TensorRow row = tensor_box_row(&c->box, i);
        if (!row.bytes) continue;
        if (add_tail(w, c, &row)) return -1;
        if (check_global(w, (Span){c->in, c->lane, row.global, row.bytes}, 1)) return -1;
        move_row(c, &row, c->from, w->x->cta.shared + c->from, devmem_host(w->x->mem, row.global));
    }
    return 0;
}

static int store_now(Warp *w, const Copy *c)
{
    if (each_part(w, c, c->from, part_read_again)) return -1;
    if (c->in->bulk->rank) return store_box(w, c);
    if (check_global(w, to_of(c), 1)) return -1;
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
