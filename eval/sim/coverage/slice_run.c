/* All threads of a block run together: those that a branch parts run one group after the other, up to where
 * their paths meet. Barriers need no wait then, since the slice has no memory. */
#include "eval/sim/coverage/slice_run.h"

#include <string.h>

#include "eval/device/tensor_map.h"
#include "eval/sim/ptx/ptx.h"

/* Copies by tensor maps in the slice of a kernel: which bytes a box has in other blocks, too. A box
 * that lies in the tensor moves with the block as long as it does; where a side cuts it, its
 * coordinate is that of the block alone. */

static int map_at(const SliceRun *r, const Lanes *address, int lane, TensorMap *out)
{
    uint64_t at = address->v[address->uniform ? 0 : lane];
    if ((at & WINDOW_MASK) == PARAM_WINDOW) at &= UINT32_MAX;
    for (int i = 0; i < r->launch->n_maps; i++) {
        if (r->launch->map_at[i] != at) continue;
        memcpy(out, r->launch->params + at, sizeof *out);
        return 0;
    }
    return -1;
}

static int32_t value(const Lanes *v, int lane)
{
    return (int32_t)(uint32_t)v->v[v->uniform ? 0 : lane];
}

/* Is the coordinate of each lane that takes part in [0, most]? In all blocks of the box that is left it is
 * as here. */
static int is_within(SliceRun *r, Lanes *c, int64_t most, const LaneMask *m)
{
    SliceInst compare = {.op = OP_COMPARE, .bits = 32, .is_signed = 1, .n_sources = 2, .k = IS_GE};
    for (int i = 0; i < m->n; i++)
        if (m->on[i] && (value(c, i) < 0 || value(c, i) > most)) return 0;
    for (int k = 0; k < 2; k++) {
        uint64_t limit = k ? (uint64_t)most : 0;
        Lanes both[2] = {*c, {.known = 1, .set = 1, .uniform = 1, .v = &limit}};
        if (k) compare.k = IS_LE;
        if (lanes_compute(&compare, both, m, &r->box, &r->result)) return 0;
    }
    return 1;
}

/* The rows of a lane's box, each cut at the sides of the tensor. */
static void add_rows(SliceRun *r, const TensorMap *map, const Lanes *c, int lane)
{
    uint32_t rows = 1, element = tensor_map_element((TensorMapType)map->type);
    int64_t first = value(&c[0], lane), low = first < 0 ? 0 : first, high = first + map->box[0],
            d[BOX_DIMS] = {0};
    if (high > (int64_t)map->size[0]) high = (int64_t)map->size[0];
    for (int i = 1; i < map->rank; i++) rows *= map->box[i];
    for (int k = 0; k < BOX_DIMS; k++)
        for (int i = 0; i < map->rank; i++)
            d[k] += (int32_t)c[i].d[k] * (int64_t)(i ? map->stride[i - 1] : element);
    r->budget -= rows;
    for (uint32_t row = 0; row < rows && low < high; row++) {
        int64_t at = (int64_t)map->base + low * element;
        uint32_t rest = row;
        int inside = 1;
        for (int i = 1; i < map->rank; i++) {
            int64_t y = value(&c[i], lane) + (int64_t)(rest % map->box[i]);
            rest /= map->box[i];
            inside &= y >= 0 && y < (int64_t)map->size[i];
            at += y * (int64_t)map->stride[i - 1];
        }
        if (inside) slice_run_add(r, at, (high - low) * element, d);
    }
}

/* Adds what lies in the tensor of the boxes of the lanes of m: from[0] is the map's address, from[1] and so
 * on are `rank` coordinates. Returns -1 where there is no such map. */
static int slice_boxes_add(SliceRun *r, int rank, const Lanes *from, const LaneMask *m)
{
    TensorMap map = {0};
    Lanes address = from[0], c[TENSOR_MAP_RANK];
    int uniform = address.uniform, first = 0;
    while (first < m->n && !m->on[first]) first++;
    if (first == m->n) return 0;
    if (!uniform || map_at(r, &address, first, &map) || map.rank != rank) return -1;
    memcpy(c, from + 1, sizeof *c * (size_t)rank);
    lanes_pin(&address, &r->box);
    for (int i = 0; i < rank; i++) {
        if (!is_within(r, &c[i], (int64_t)map.size[i] - map.box[i], m)) lanes_pin(&c[i], &r->box);
        uniform &= c[i].uniform;
    }
    for (int i = first; i < m->n; i++) {
        if (m->on[i]) add_rows(r, &map, c, i);
        if (m->on[i] && uniform) break;
    }
    return 0;
}

#pragma GCC optimize("O3")
#include "eval/sim/coverage/slice_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/coverage/slice_skip.h"
#include "eval/sim/machine/instruction.h"

/* MANY_THIN: of so many warps each has a thread of a thin run. */
enum { INST_COST = 24, BLOCK_COST = 400, DEEPEST = 400, MOST_SIDES = 8, THIN = 8, MANY_THIN = 12 };

static int threads_of(const DeviceLaunch *l)
{
    return (int)(l->block[0] * l->block[1] * l->block[2]);
}

void slice_run_open(SliceRun *r, const Slice *s, const DeviceLaunch *l, int64_t budget)
{
    memset(r, 0, sizeof *r);
    r->slice = s;
    r->launch = l;
    r->budget = budget;
    r->n_lanes = threads_of(l);
    r->apart = 1;
    r->parts = (GridParts){.n = 1, .stride = {1}};
    size_t n = (size_t)s->n_slots + SLICE_SOURCES + 1, lanes = (size_t)r->n_lanes;
    r->slots = memory_array((size_t)s->n_slots + 1, sizeof *r->slots);
    r->storage = memory_array(n * lanes, sizeof *r->storage);
    r->live = memory_alloc(LANES_MAX);
    for (int i = 0; i < s->n_slots; i++) r->slots[i].v = r->storage + (size_t)i * lanes;
    for (int i = 0; i < SLICE_SOURCES; i++)
        r->scratch[i].v = r->storage + (size_t)(s->n_slots + i) * lanes;
    r->result.v = r->storage + (size_t)(s->n_slots + SLICE_SOURCES) * lanes;
}

void slice_run_thin(SliceRun *r)
{
    const int threads = threads_of(r->launch), warps = threads / LANES;
    if (threads <= THIN) return;
    r->n_lanes = warps > THIN && warps <= MANY_THIN ? warps : THIN;
    r->apart = threads / r->n_lanes;
}

void slice_run_close(SliceRun *r)
{
    slice_skip_release(r);
    free(r->slots);
    free(r->storage);
    free(r->live);
    for (int i = 0; i < THREAD_SPECIALS; i++) free(r->of_threads[i]);
    free(r->runs);
    memset(r, 0, sizeof *r);
}

static int stop(SliceRun *r, const char *why, int inst)
{
    if (!r->why) {
        r->why = why;
        r->why_inst = inst;
    }
    return -1;
}

/* ---- sources ---- */

static void set_uniform(Lanes *v, uint64_t value)
{
    v->known = v->uniform = 1;
    memset(v->d, 0, sizeof v->d);
    v->v[0] = value;
}

static uint64_t thread_value(const SliceRun *r, PtxSpecial which, int lane)
{
    const uint32_t *of = r->launch->block;
    int is_last = lane == r->n_lanes - 1;
    uint32_t i = (uint32_t)(is_last ? threads_of(r->launch) - 1 : lane * r->apart),
             in_warp = i % LANES;
    switch (which) {
    case SPECIAL_TID_X: return i % of[0];
    case SPECIAL_TID_Y: return i / of[0] % of[1];
    case SPECIAL_TID_Z: return i / of[0] / of[1];
    case SPECIAL_LANEID: return in_warp;
    case SPECIAL_WARPID: return i / LANES;
    case SPECIAL_LANEMASK_EQ: return 1u << in_warp;
    case SPECIAL_LANEMASK_LT: return (1u << in_warp) - 1;
    case SPECIAL_LANEMASK_LE: return (2u << in_warp) - 1;
    case SPECIAL_LANEMASK_GE: return 0u - (1u << in_warp);
    default: return (uint32_t)(0u - (2ull << in_warp));
    }
}

static int is_of_thread(PtxSpecial which)
{
    return (which >= SPECIAL_TID_X && which <= SPECIAL_TID_Z) || which == SPECIAL_LANEID ||
           which == SPECIAL_WARPID ||
           (which >= SPECIAL_LANEMASK_EQ && which <= SPECIAL_LANEMASK_GT);
}

static uint32_t cluster_of(const SliceRun *r, int k)
{
    uint32_t n = r->slice->f->cluster[k];
    return n ? n : 1;
}

/* Special registers that follow from the block's place in the grid. */
static int block_value(SliceRun *r, PtxSpecial which, const LaneMask *m, Lanes *out)
{
    const uint32_t *grid = r->launch->grid, *block = r->launch->block;
    int k;
    if (which >= SPECIAL_CTAID_X && which <= SPECIAL_CTAID_Z)
        k = (int)which - SPECIAL_CTAID_X;
    else if (which >= SPECIAL_CLUSTERID_X && which <= SPECIAL_CLUSTERID_Z)
        k = (int)which - SPECIAL_CLUSTERID_X;
    else if (which >= SPECIAL_CLUSTER_CTAID_X && which <= SPECIAL_CLUSTER_CTAID_Z)
        k = (int)which - SPECIAL_CLUSTER_CTAID_X;
    else
        k = -1;
    if (k >= 0) {
        set_uniform(out, r->block[k]);
        for (int i = k ? X_PARTS + k - 1 : 0, end = k ? i + 1 : X_PARTS; i < end; i++)
            if (r->box.low[i] || r->box.high[i]) out->d[i] = k ? 1 : r->parts.stride[i];
        if (which > SPECIAL_CTAID_Z)
            lanes_divide(out, cluster_of(r, k), which >= SPECIAL_CLUSTER_CTAID_X, m, &r->box);
        return 0;
    }
    switch (which) {
    case SPECIAL_NTID_X:
    case SPECIAL_NTID_Y:
    case SPECIAL_NTID_Z: set_uniform(out, block[which - SPECIAL_NTID_X]); return 0;
    case SPECIAL_NCTAID_X:
    case SPECIAL_NCTAID_Y:
    case SPECIAL_NCTAID_Z: set_uniform(out, grid[which - SPECIAL_NCTAID_X]); return 0;
    case SPECIAL_NCLUSTERID_X:
    case SPECIAL_NCLUSTERID_Y:
    case SPECIAL_NCLUSTERID_Z:
        k = (int)which - SPECIAL_NCLUSTERID_X;
        set_uniform(out, grid[k] / cluster_of(r, k));
        return 0;
    case SPECIAL_CLUSTER_NCTAID_X:
    case SPECIAL_CLUSTER_NCTAID_Y:
    case SPECIAL_CLUSTER_NCTAID_Z:
        set_uniform(out, cluster_of(r, (int)which - SPECIAL_CLUSTER_NCTAID_X));
        return 0;
    case SPECIAL_NWARPID:
        set_uniform(out, (uint64_t)(threads_of(r->launch) + LANES - 1) / LANES);
        return 0;
    case SPECIAL_DYNAMIC_SMEM_SIZE: set_uniform(out, r->launch->shared_bytes); return 0;
    case SPECIAL_WARP_SIZE: set_uniform(out, LANES); return 0;
    default: return -1;
    }
}

/* The values of a special register that differ by thread are computed once for all blocks. */
static uint64_t *thread_values(SliceRun *r, PtxSpecial which)
{
    const int k = which <= SPECIAL_TID_Z    ? (int)which - SPECIAL_TID_X
                  : which == SPECIAL_LANEID ? 3
                  : which == SPECIAL_WARPID ? 4
                                            : 5 + (int)which - SPECIAL_LANEMASK_EQ;
    if (!r->of_threads[k]) {
        r->of_threads[k] = memory_array((size_t)r->n_lanes, sizeof *r->of_threads[k]);
        for (int i = 0; i < r->n_lanes; i++) r->of_threads[k][i] = thread_value(r, which, i);
    }
    return r->of_threads[k];
}

static void special(SliceRun *r, PtxSpecial which, const LaneMask *m, Lanes *out)
{
    if (is_of_thread(which)) {
        set_uniform(out, 0);
        out->uniform = 0;
        out->v = thread_values(r, which);
        return;
    }
    if (block_value(r, which, m, out)) out->known = 0;
}

static uint64_t mask_of(int bits)
{
    return bits >= 64 ? ~0ull : (1ull << bits) - 1;
}

/* Fills in the source's values, field by field: a copy of all would wait for what was just stored. Those of a
 * register are borrowed unless they are negated, and those of threads always; others are in `room`. */
static void fetch(SliceRun *r, const SliceSource *s, int bits, const LaneMask *m, const Lanes *room,
                  Lanes *out)
{
    out->v = room->v;
    if (s->kind == SOURCE_CONSTANT) {
        set_uniform(out, s->value & mask_of(bits));
        return;
    }
    if (s->kind == SOURCE_SPECIAL) {
        special(r, (PtxSpecial)s->value, m, out);
        return;
    }
    const Lanes *v = &r->slots[s->slot];
    out->known = v->known, out->set = v->set, out->uniform = v->uniform;
    for (int k = 0; k < BOX_DIMS; k++) out->d[k] = r->box.low[k] || r->box.high[k] ? v->d[k] : 0;
    if (!s->negated) {
        out->v = v->v;
        return;
    }
    for (int i = 0, n = v->uniform ? 1 : m->n; i < n; i++) out->v[i] = v->v[i] ^ 1;
}

/* ---- instructions ---- */

static int read_param(const SliceRun *r, const SliceInst *in, Lanes *out)
{
    uint64_t v = 0;
    size_t n = (size_t)in->from_bits / 8;
    if (in->offset < 0 || (uint64_t)in->offset + n > KERNEL_MAX_PARAM_BYTES || n > sizeof v)
        return -1;
    memcpy(&v, r->launch->params + in->offset, n);
    set_uniform(out, v);
    return 0;
}

static void put(SliceRun *r, int slot, const Lanes *v, const LaneMask *m)
{
    if (slot >= 0) lanes_put(&r->slots[slot], v, m, &r->box);
}

static void forget(SliceRun *r, const SliceInst *in, const LaneMask *m)
{
    for (int i = 0; i < in->n_dests; i++) {
        r->result.known = 0;
        r->result.uniform = 1;
        memset(r->result.d, 0, sizeof r->result.d);
        put(r, in->dests[i], &r->result, m);
    }
}

/* The two halves of a register. */
static int unpack(SliceRun *r, const SliceInst *in, const Lanes *from, const LaneMask *m)
{
    SliceInst part = *in;
    if (!from->known || in->n_dests != 2) return -1;
    part.op = OP_CONVERT;
    part.from_bits = (uint8_t)(2 * in->bits);
    part.is_signed = 0;
    Lanes high = *from;
    if (lanes_compute(&part, from, m, &r->box, &r->result)) return -1;
    put(r, in->dests[0], &r->result, m);
    if (in->dests[1] < 0) return 0;
    Lanes by = r->scratch[1];
    set_uniform(&by, in->bits);
    SliceInst shift = part;
    shift.op = OP_SHR;
    shift.bits = part.from_bits;
    const Lanes both[2] = {high, by};
    shift.n_sources = 2;
    if (lanes_compute(&shift, both, m, &r->box, &r->result)) return -1;
    put(r, in->dests[1], &r->result, m);
    return 0;
}

static inline int goes_on(const BlockRun *run, int64_t at, const int64_t d[BOX_DIMS])
{
    return run->at + run->bytes == at && !memcmp(run->d, d, sizeof run->d);
}

/* A store often goes on behind each run of the store before it, one run after the other, as where a thread
 * stores rows in parts. */
static inline void add_run(SliceRun *r, int64_t at, int64_t bytes, const int64_t d[BOX_DIMS])
{
    if (r->n_runs && goes_on(&r->runs[r->last], at, d)) {
        r->runs[r->last].bytes += bytes;
        return;
    }
    r->budget -= 4;
    int next = r->last + 1 < r->n_runs ? r->last + 1 : 0;
    if (r->n_runs && goes_on(&r->runs[next], at, d)) {
        r->runs[next].bytes += bytes;
        r->last = next;
        return;
    }
    memory_room(r->runs, r->n_runs, r->cap_runs, 64);
    r->last = r->n_runs++;
    r->runs[r->last].at = at, r->runs[r->last].bytes = bytes;
    memcpy(r->runs[r->last].d, d, sizeof r->runs->d);
}

void slice_run_add(SliceRun *r, int64_t at, int64_t bytes, const int64_t d[BOX_DIMS])
{
    add_run(r, at, bytes, d);
}

/* wmma.store: the first lane of each warp stands for all of them. */
static int store_tile(SliceRun *r, const SliceInst *in, const Lanes *from, const LaneMask *m)
{
    Lanes at = from[0], stride = from[1];
    int64_t between = in->bytes;
    if (in->n_sources > 1) lanes_pin(&stride, &r->box);
    for (int i = 0; i<m->n; i += r->apart> 1 ? 1 : LANES) {
        if (!m->on[i]) continue;
        if (in->n_sources > 1)
            between = (int64_t)(uint32_t)stride.v[stride.uniform ? 0 : i] * in->k;
        for (int64_t k = 0; k < in->rows; k++)
            slice_run_add(r, (int64_t)at.v[at.uniform ? 0 : i] + in->offset + k * between,
                          in->bytes, at.d);
    }
    return 0;
}

static int store(SliceRun *r, const SliceInst *in, const Lanes *from, const LaneMask *m)
{
    const Lanes *at = &from[0], *count = in->op == OP_STORE_RUN ? &from[1] : NULL;
    int known = in->n_sources > 0;
    for (int i = 0; i < in->n_sources; i++) known &= from[i].known;
    if (known && in->op == OP_STORE_BOX) known = !slice_boxes_add(r, in->n_sources - 1, from, m);
    if (!known) return stop(r, "an address that is not known before it runs", in->inst);
    if (in->op == OP_STORE_BOX) return 0;
    if (in->op == OP_STORE_TILE) return store_tile(r, in, from, m);
    for (int i = 0; i < m->n; i++) {
        if (!m->on[i]) continue;
        int64_t bytes = count ? (int64_t)(uint32_t)count->v[count->uniform ? 0 : i] : in->bytes;
        add_run(r, (int64_t)at->v[at->uniform ? 0 : i] + in->offset, bytes, at->d);
        if (at->uniform && !count) break;
    }
    return 0;
}

/* The lanes of m for which the guard holds. Returns 0 where it holds for none, -1 where it is unknown. */
static int guarded(SliceRun *r, const SliceSource *guard, const LaneMask *m, uint8_t *on,
                   LaneMask *out)
{
    int n = 0, some = 0;
    *out = *m;
    if (!guard->kind) return 1;
    Lanes p;
    fetch(r, guard, 1, m, &r->scratch[3], &p);
    if (!p.known) return -1;
    if (p.uniform) return p.v[0] & 1;
    for (int i = 0; i < m->n; i++) {
        on[i] = m->on[i] & (uint8_t)(p.v[i] & 1);
        n += on[i];
        some += m->on[i];
    }
    out->on = on;
    out->all = m->all && n == some;
    return n > 0;
}

/* Notes how often the predicate holds at a place of the kernel: never, for some lanes, for all. */
static void note_outcome(SliceRun *r, uint64_t place, const Lanes *p, const LaneMask *m)
{
    int some = 0, all = 1;
    if (!r->ways) return;
    if (p->uniform)
        some = all = p->v[0] & 1;
    else
        for (int i = 0; i < m->n; i++)
            if (m->on[i]) some |= p->v[i] & 1, all &= p->v[i] & 1;
    const uint64_t now = 4 * place + (uint64_t)(some + all) + 1,
                   way = (r->way * 0x9e3779b97f4a7c15u ^ now) * 0xbf58476d1ce4e5b9u;
    const uint64_t bit = (way ^ way >> 31) % r->n_ways;
    r->ways[bit / 64] |= 1ull << bit % 64;
    r->way = now;
}

static int execute(SliceRun *r, const SliceInst *in, const LaneMask *all)
{
    uint8_t on[LANES_MAX];
    LaneMask m;
    Lanes from[SLICE_SOURCES];
    int uniform = 1, some = guarded(r, &in->guard, all, on, &m), is_store = in->op >= OP_STORE;
    if (!some) return 0;
    if (some < 0) {
        if (is_store && !r->either)
            return stop(r, "a condition that is not known before it runs", in->inst);
        if (!is_store) {
            forget(r, in, all);
            return 0;
        }
        m = *all;
    }
    for (int i = 0; i < in->n_sources; i++) {
        int bits = in->from_bits ? in->from_bits : in->bits ? in->bits : 64;
        fetch(r, &in->sources[i], bits, &m, &r->scratch[i], &from[i]);
        uniform &= from[i].uniform;
    }
    r->budget -= INST_COST + (uniform && m.all ? 0 : r->n_lanes);
    if (is_store) {
        int rc = store(r, in, from, &m);
        if (!rc) forget(r, in, &m);
        return rc;
    }
    if (in->op == OP_UNPACK) {
        if (unpack(r, in, from, &m)) forget(r, in, &m);
        return 0;
    }
    int rc = in->op == OP_PARAM ? read_param(r, in, &r->result)
                                : lanes_compute(in, from, &m, &r->box, &r->result);
    if (rc || in->n_dests != 1)
        forget(r, in, &m);
    else
        put(r, in->dests[0], &r->result, &m);
    if (!rc && in->op == OP_COMPARE && in->n_dests == 1)
        note_outcome(r, 2 * (uint64_t)in->inst, &r->result, &m);
    return 0;
}

/* ---- control flow ---- */

static int run_from(SliceRun *r, int block, int until, const uint8_t *on, int depth);

/* Each byte is 0 or 1. */
static int count_on(const uint8_t *on, int n)
{
    int sum = 0, i = 0;
    for (uint64_t eight; i + 8 <= n; i += 8) {
        memcpy(&eight, on + i, sizeof eight);
        sum += __builtin_popcountll(eight);
    }
    for (; i < n; i++) sum += on[i];
    return sum;
}

static void leave(SliceRun *r, const uint8_t *on)
{
    for (int i = 0; i < r->n_lanes; i++) {
        r->exited += r->live[i] & on[i];
        r->live[i] &= !on[i];
    }
}

/* What the blocks between a branch and its join may set is no longer known. */
static void forget_from(SliceRun *r, int block, int join, const LaneMask *m, uint8_t *seen)
{
    const Slice *s = r->slice;
    for (; block != join && block < s->n_blocks && !seen[block]; block++) {
        const SliceBlock *k = &s->blocks[block];
        seen[block] = 1;
        r->budget -= INST_COST;
        for (int i = k->first; i < k->last; i++) forget(r, &s->insts[i], m);
        if (k->end == ENDS_EXIT) return;
        if (k->end != ENDS_FALL) forget_from(r, k->target, join, m, seen);
        if (k->end == ENDS_JUMP) return;
    }
}

/* A branch that memory decides: lanes go on where both of its paths meet, or behind a return. */
static void pass_over(SliceRun *r, int b, const uint8_t *on, int *next)
{
    const SliceBlock *k = &r->slice->blocks[b];
    LaneMask m = {r->n_lanes, 0, on};
    r->open[b] = 1;
    *next = k->join;
    if (k->join == r->slice->n_blocks) {
        *next = k->target == k->join ? b + 1 : k->target > b ? k->target : b + 1;
        return;
    }
    uint8_t *seen = memory_alloc((size_t)r->slice->n_blocks + 1);
    forget_from(r, k->target, k->join, &m, seen);
    forget_from(r, b + 1, k->join, &m, seen);
    free(seen);
}

/* The values and the live lanes at a branch. */
typedef struct {
    Lanes *slots;
    uint64_t *storage;
    uint8_t live[LANES_MAX];
    size_t n, words;
} Saved;

static void save(const SliceRun *r, Saved *s)
{
    s->n = (size_t)r->slice->n_slots;
    s->words = s->n * (size_t)r->n_lanes;
    s->slots = memory_array(s->n + 1, sizeof *s->slots);
    s->storage = memory_array(s->words + 1, sizeof *s->storage);
    memcpy(s->slots, r->slots, s->n * sizeof *s->slots);
    memcpy(s->storage, r->storage, s->words * sizeof *s->storage);
    memcpy(s->live, r->live, (size_t)r->n_lanes);
}

static void restore(SliceRun *r, const Saved *s)
{
    memcpy(r->slots, s->slots, s->n * sizeof *s->slots);
    memcpy(r->storage, s->storage, s->words * sizeof *s->storage);
    memcpy(r->live, s->live, (size_t)r->n_lanes);
}

static void saved_release(Saved *s)
{
    free(s->slots);
    free(s->storage);
}

static int is_same(const SliceRun *r, const Lanes *a, const Lanes *b)
{
    size_t n = a->uniform ? 1 : (size_t)r->n_lanes;
    return a->known == b->known && a->uniform == b->uniform && !memcmp(a->d, b->d, sizeof a->d) &&
           !memcmp(a->v, b->v, n * sizeof *a->v);
}

/* Where two sides meet: what one of them alone has set is used by none that takes the other one. */
static void join_sides(SliceRun *r, const Saved *first)
{
    for (size_t i = 0; i < first->n; i++) {
        Lanes *to = &r->slots[i], was = first->slots[i];
        was.v = first->storage + i * (size_t)r->n_lanes;
        if (!was.set || (to->set && is_same(r, &was, to))) continue;
        if (to->set) {
            to->known = 0;
            continue;
        }
        memcpy(to->v, was.v, (was.uniform ? 1 : (size_t)r->n_lanes) * sizeof *to->v);
        was.v = to->v;
        *to = was;
    }
}

/* A forward branch that memory decides: all lanes take both sides, from the same values, up to where they
 * meet. Lanes that one side leaves alive go on. */
static int both_sides(SliceRun *r, int b, uint8_t *on, int depth)
{
    const SliceBlock *k = &r->slice->blocks[b];
    Saved before, first;
    save(r, &before);
    r->sides++;
    r->budget -= (int64_t)before.words / 2;
    int is_exit = k->target == r->slice->n_blocks,
        rc = is_exit ? 0 : run_from(r, k->target, k->join, on, depth + 1);
    save(r, &first);
    restore(r, &before);
    if (!rc) rc = run_from(r, b + 1, k->join, on, depth + 1);
    r->sides--;
    if (!is_exit) join_sides(r, &first);
    memcpy(r->live, before.live, (size_t)r->n_lanes);
    saved_release(&before);
    saved_release(&first);
    return rc;
}

/* A needed branch at the end of block b. *next: where the lanes that are left in `on` go. */
static int branch(SliceRun *r, int b, uint8_t *on, int *next, int depth)
{
    const SliceBlock *k = &r->slice->blocks[b];
    int exit = r->slice->n_blocks, n = 0;
    uint8_t taken[LANES_MAX], other[LANES_MAX];
    LaneMask m = {r->n_lanes, 0, on};
    Lanes p;
    fetch(r, &k->when, 1, &m, &r->scratch[3], &p);
    if (!p.known && r->passes) {
        pass_over(r, b, on, next);
        return 0;
    }
    if (!p.known && r->either && k->target > b && r->sides < MOST_SIDES) {
        *next = k->join;
        return both_sides(r, b, on, depth);
    }
    if (!p.known)
        return stop(r, "a condition that is not known before it runs",
                    r->slice->insts[k->last > k->first ? k->last - 1 : 0].inst);
    r->budget -= INST_COST + (p.uniform ? 0 : r->n_lanes);
    note_outcome(r, 2 * (uint64_t)b + 1, &p, &m);
    if (p.uniform) {
        *next = p.v[0] & 1 ? k->target : b + 1;
        return 0;
    }
    for (int i = 0; i < r->n_lanes; i++) {
        taken[i] = on[i] & (uint8_t)(p.v[i] & 1);
        other[i] = on[i] ^ taken[i];
        n += taken[i];
    }
    if (!n || n == count_on(on, r->n_lanes)) {
        *next = n ? k->target : b + 1;
        return 0;
    }
    if (k->target == exit) {
        leave(r, taken);
        memcpy(on, other, sizeof taken);
        *next = b + 1;
        return 0;
    }
    if (run_from(r, k->target, k->join, taken, depth + 1) ||
        run_from(r, b + 1, k->join, other, depth + 1))
        return -1;
    for (int i = 0; i < r->n_lanes; i++) on[i] &= r->live[i];
    *next = k->join;
    return 0;
}

/* Warps with one of these lanes, of which there are n. */
static uint64_t warps_on(const uint8_t *on, int n, int lanes)
{
    uint64_t sum = 0;
    if (n == lanes) return (uint64_t)(lanes + LANES - 1) / LANES;
    for (int i = 0; i < lanes; i += LANES)
        sum += count_on(on + i, lanes - i < LANES ? lanes - i : LANES) > 0;
    return sum;
}

static int run_from(SliceRun *r, int block, int until, const uint8_t *with, int depth)
{
    const Slice *s = r->slice;
    uint8_t on[LANES_MAX];
    if (depth > DEEPEST) return stop(r, "branches within branches", 0);
    memcpy(on, with, (size_t)r->n_lanes);
    int before = -1; /* the block that ran last */
    while (block != until && block < s->n_blocks) {
        const SliceBlock *b = &s->blocks[block];
        int n = count_on(on, r->n_lanes);
        LaneMask m = {r->n_lanes, n + r->exited == r->n_lanes, on};
        if (!n) return 0;
        if (r->budget <= 0) return stop(r, "too much work", 0);
        if (r->passes && before >= block)
            slice_skip(r, block, before, on);
        else if (r->passes)
            slice_skip_begin(r, block);
        before = block;
        r->budget -= INST_COST;
        if (r->passes) {
            r->passes[block] += warps_on(on, n, r->n_lanes);
            r->passes[s->n_blocks + block]++;
        }
        for (int i = b->first; i < b->last; i++)
            if (execute(r, &s->insts[i], &m)) return -1;
        switch (b->end) {
        case ENDS_FALL: block++; break;
        case ENDS_JUMP: block = b->target; break;
        case ENDS_EXIT: block = s->n_blocks; break;
        default:
            if (!b->is_needed)
                block = b->join;
            else if (branch(r, block, on, &block, depth))
                return -1;
        }
    }
    if (block == s->n_blocks) leave(r, on);
    return 0;
}

int64_t slice_run_apart(const SliceRun *r, int k)
{
    const uint32_t *grid = r->launch->grid;
    if (k < X_PARTS) return r->parts.stride[k];
    return k == X_PARTS ? grid[0] : (int64_t)grid[0] * grid[1];
}

int64_t slice_run_number(const SliceRun *r)
{
    const uint32_t *grid = r->launch->grid;
    return r->block[0] + (int64_t)grid[0] * (r->block[1] + (int64_t)grid[1] * r->block[2]);
}

/* Returns 0 where no part has a period, or the box is whole. */
static int split(SliceRun *r)
{
    GridParts *p = &r->parts;
    const uint32_t *grid = r->launch->grid, block[3] = {grid[0] / 2, grid[1] / 2, grid[2] / 2};
    BoxPeriods periods = {.largest = 0};
    memcpy(periods.stride, p->stride, sizeof p->stride);
    memcpy(r->block, block, sizeof block);
    box_open(&r->box, &r->parts, r->launch->grid, r->block);
    for (int k = 0; k < p->n; k++) periods.size[k] = r->box.high[k] - r->box.low[k] + 1;
    r->box.periods = &periods;
    const int rc = slice_run_block(r, block);
    r->box.periods = NULL;
    if (rc || !periods.largest) return 0;
    int at = p->n++;
    for (; p->stride[at - 1] > periods.largest; at--) p->stride[at] = p->stride[at - 1];
    p->stride[at] = periods.largest;
    return 1;
}

void slice_run_split(SliceRun *r)
{
    const int64_t budget = r->budget;
    while (r->parts.n < X_PARTS && split(r)) {
    }
    r->budget = budget;
    r->why = NULL, r->why_inst = 0;
}

int slice_run_block(SliceRun *r, const uint32_t block[3])
{
    memcpy(r->block, block, sizeof r->block);
    box_open(&r->box, &r->parts, r->launch->grid, r->block);
    for (int i = 0; i < r->slice->n_slots; i++) {
        r->slots[i].set = r->slots[i].known = 0;
        r->slots[i].uniform = 1;
        memset(r->slots[i].d, 0, sizeof r->slots[i].d);
    }
    r->n_runs = r->last = r->exited = 0;
    r->budget -= BLOCK_COST;
    memset(r->live, 1, (size_t)r->n_lanes);
    return run_from(r, 0, r->slice->n_blocks, r->live, 0);
}
