/* Undefined values at run time. A slot holds, for each part of a register, a bit for each lane in which
 * that part has no value; the decoder places h_track where such a register is read or set
 * (decode/definedness.c). A branch, an address, a barrier or a store to global memory that depends on
 * an undefined part is a fault. Shared and local memory keep such values by byte, and so does global
 * memory that only kernels read (Alloc.scratch). */
#include "eval/sim/memory/undefined.h"

#include <stdio.h>

#include "eval/sim/machine/values.h"
#include "eval/sim/memory/doubts.h"
#include "eval/sim/memory/undefined_memory.h"
#include "eval/sim/memory/wgmma_reads.h"

enum { LANE_COST = 8, FOLLOW_COST = 32, STORE_COST = 1500 }; /* in thread-instructions */

/* The lanes in which the parts of a value are undefined or doubtful, by one event (doubts.h). */
typedef struct {
    uint32_t part[REG_PARTS], event;
} Mark;

/* ---- marks ---- */

static uint32_t lanes_of(const Mark *v)
{
    return v->part[0] | v->part[1] | v->part[2] | v->part[3];
}

static Mark whole(uint32_t lanes, uint32_t event)
{
    return (Mark){{lanes, lanes, lanes, lanes}, event};
}

static void keep(Mark *v, uint32_t m)
{
    for (int p = 0; p < REG_PARTS; p++) v->part[p] &= m;
}

static uint32_t *event_of(const Frame *f, uint32_t slot)
{
    return &f->preds[f->fn->first_event + (slot - f->fn->first_slot) / REG_PARTS];
}

/* Slot 0 is the predicate that is always true; as a slot it means: defined. */
static Mark mark_in(Exec *x, const Frame *f, uint32_t slot, uint32_t m)
{
    Mark v = {{0}, 0};
    if (!slot) return v;
    for (int p = 0; p < REG_PARTS; p++) v.part[p] = f->preds[slot + (uint32_t)p] & m;
    if (!f->fn->first_event || !lanes_of(&v)) return v;
    v.event = *event_of(f, slot);
    return v.event && doubt_is_settled(x, v.event) ? (Mark){{0}, 0} : v;
}

static Mark mark_of(const Warp *w, uint32_t slot, uint32_t m)
{
    return mark_in(w->x, w->frame, slot, m);
}

/* Of two marks with different events, one that is tentative matters, and counts as a value. */
static void part_events(Exec *x, Mark *a, Mark *b)
{
    Mark *both[2] = {a, b};
    if (!lanes_of(a) || !lanes_of(b) || a->event == b->event) return;
    for (int i = 0; i < 2; i++) {
        if (!doubt_is_tentative(x, both[i]->event)) continue;
        doubt_matters(x, both[i]->event);
        *both[i] = whole(0, 0);
    }
}

/* What depends on both. A tentative value that meets another one counts as one that matters. */
static Mark joined(Exec *x, Mark a, Mark b)
{
    part_events(x, &a, &b);
    Mark v = {{0}, lanes_of(&a) ? a.event : b.event};
    for (int p = 0; p < REG_PARTS; p++) v.part[p] = a.part[p] | b.part[p];
    return v;
}

/* Gives the lanes m of a slot the mark v. */
static void put_in(Warp *w, Frame *f, uint32_t slot, uint32_t m, Mark v)
{
    if (!slot) return;
    keep(&v, m);
    v = joined(w->x, v, mark_in(w->x, f, slot, ~m & w->live));
    for (int p = 0; p < REG_PARTS; p++) f->preds[slot + (uint32_t)p] = v.part[p];
    if (f->fn->first_event) *event_of(f, slot) = v.event;
}

static void put_mark(Warp *w, uint32_t slot, uint32_t m, Mark v)
{
    put_in(w, w->frame, slot, m, v);
}

/* ---- calls ---- */

/* Marks of words of a call, from one frame to another one. */
static void copy_words(Warp *w, const CallWords *c, Frame *to, const Frame *from)
{
    const Function *a = from->fn, *b = to->fn;
    for (int i = 0; i < c->n; i++) {
        uint32_t source = a->words ? a->words[c->from[i] / ROW32 - a->first_word] : 0,
                 dest = b->words ? b->words[c->to[i] / ROW32 - b->first_word] : 0;
        put_in(w, to, dest, w->active, mark_in(w->x, from, source, w->active));
    }
}

const Inst *h_undefine(Warp *w, const Inst *in)
{
    Frame *f = w->frame;
    const Function *fn = f->fn;
    memset(w->p + fn->first_slot, 0, (size_t)fn->n_slots * sizeof *w->p);
    if (fn->first_event)
        memset(w->p + fn->first_event, 0, (size_t)fn->n_slots / REG_PARTS * sizeof *w->p);
    for (int i = 0; i < fn->n_undefined; i++)
        for (uint32_t p = 0; p < REG_PARTS; p++) w->p[fn->undefined[i] + p] |= w->active;
    if (fn->words && f->call) copy_words(w, &f->call->in, f, f->parent);
    return in + 1;
}

void undefined_return(Warp *w)
{
    const Frame *f = w->frame;
    copy_words(w, &f->call->out, f->parent, f);
}

/* ---- faults ---- */

/* Reports the variable at its first read: this is the line to mend. Returns -1, or 0 for a value that
 * is tentative. */
static int report(Warp *w, const Inst *in, Mark v, uint32_t origin, const char *use)
{
    if (v.event && doubt_is_tentative(w->x, v.event)) {
        doubt_matters(w->x, v.event);
        return 0;
    }
    if (v.event) return doubt_report(w, in, v.event, use);
    Inst first_read = *in;
    const PtxInst *here = exec_source(w, in);
    first_read.source = origin;
    return exec_fail(w, &first_read, __builtin_ctz(lanes_of(&v)), OUTCOME_UNINITIALISED,
                     "reads a variable that has no value, and line %d %s", here ? here->line : 0,
                     use);
}

/* The value of some bytes in memory matters. Returns 0 or -1. */
static int check_place(Warp *w, const Inst *in, const Place *p, int lane, const char *use)
{
    int kinds;
    if (!undefined_bytes(w, p, lane, &kinds)) return 0;
    if (kinds & IN_MEMORY_DOUBTFUL)
        return doubt_report(w, in, w->x->event_in_memory, "stores a result that depends on it");
    return exec_fail(w, in, lane, OUTCOME_UNINITIALISED,
                     "%s a word of shared memory to which a value was stored that depends on a "
                     "variable without a value",
                     use);
}

static int check_shared(Warp *w, const Access *a, const char *use)
{
    if (!w->x->undefined_shared) return 0;
    exec_charge(w->x, LANE_COST * LANES);
    EACH_LANE(a->mask, lane)
    {
        Place p = {SPACE_SHARED, access_address(a, (int)lane), a->size};
        if (check_place(w, a->in, &p, (int)lane, use)) return -1;
    }
    return 0;
}

int undefined_check_atomic(Warp *w, const Access *a)
{
    return check_shared(w, a, "changes");
}

int undefined_check_copy(Warp *w, const Access *a)
{
    return check_shared(w, a, "copies");
}

int undefined_element(Warp *w, const Inst *in, uint64_t address, int lane)
{
    PtxSpace space = (PtxSpace)in->part->base.space;
    if (space == SPACE_GENERIC) space = access_space(address);
    Place p = {space, address & ~(uint64_t)WINDOW_MASK, in->k0};
    if (space != SPACE_SHARED) return 0;
    if (!in->k1) return check_place(w, in, &p, lane, "loads a matrix from");
    undefined_mark(w, &p, lane, 0, 0);
    return 0;
}

/* ---- loads and stores ---- */

/* The bytes of an element that a register of `width` bits holds: a part of 64 bits has two, one of 16
 * bits has half of one. */
static uint32_t bytes_of(const Mark *v, int width, int element, int lane)
{
    uint32_t found = 0;
    for (int b = 0; b < element && 8 * b < width; b++) { /* a constant has no bits */
        uint32_t is = width == 64   ? v->part[b / 2]
                      : width == 32 ? v->part[b]
                                    : v->part[2 * b] | v->part[2 * b + 1];
        found |= (is >> lane & 1) << b;
    }
    return found;
}

/* An element of memory in a register: the bits of the register, the bytes of the element. */
typedef struct {
    int width, bytes, is_signed;
} Element;

/* Marks a lane by the element's bytes without a value. Bytes behind the element are copies of its sign,
 * or 0. */
static void put_bytes(Mark *v, Element e, uint32_t bytes, int lane)
{
    if (e.is_signed && bytes >> (e.bytes - 1) & 1) bytes |= 0xffu << e.bytes;
    for (int b = 0; b < e.width / 8; b++) {
        uint32_t is = (bytes >> b & 1) << lane;
        if (e.width == 64) {
            v->part[b / 2] |= is;
        } else if (e.width == 32) {
            v->part[b] |= is;
        } else {
            v->part[2 * b] |= is;
            v->part[2 * b + 1] |= is;
        }
    }
}

/* A value that nobody uses may be undefined in memory, but not where the caller sees it. */
static int is_seen(const Exec *x, const Place *p)
{
    int at = devmem_find(x->mem, p->at);
    return at >= 0 && !x->mem->allocs[at].scratch;
}

static int track_store(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    Exec *x = w->x;
    for (int k = 0; k < t->n_sources; k++) {
        Mark v = mark_of(w, t->sources[k], m);
        if (lanes_of(&v) && v.event && doubt_is_tentative(x, v.event)) {
            doubt_matters(x, v.event);
            v = whole(0, 0);
        }
        if (!lanes_of(&v) && !undefined_any(x)) continue;
        exec_charge(x, LANE_COST * LANES);
        EACH_LANE(m, lane)
        {
            Place p = undefined_place(w, t->memory, (int)lane, k);
            uint32_t bytes = bytes_of(&v, t->widths[k], p.bytes, (int)lane);
            int is_global = p.space == SPACE_GLOBAL;
            if (bytes && is_global && (is_seen(x, &p) || (v.event && doubt_is_race(x, v.event))))
                return report(w, in, whole(1u << lane, v.event), t->origins[t->n_musts + k],
                              "stores a result that depends on it");
            if (is_global) continue;
            if (bytes && v.event) x->event_in_memory = v.event;
            undefined_mark(w, &p, (int)lane, bytes,
                           v.event ? IN_MEMORY_DOUBTFUL : IN_MEMORY_UNDEFINED);
        }
    }
    return 0;
}

/* A buffer remembers the first store of an undefined value. */
static void note_store(Warp *w, const Inst *in, Mark v, uint32_t origin, uint64_t address)
{
    Exec *x = w->x;
    char use[96];
    int at = devmem_find(x->mem, address);
    if (at < 0 || x->mem->allocs[at].undefined) return;
    exec_charge(x, STORE_COST);
    snprintf(use, sizeof use, "stores it in %s", x->mem->allocs[at].label);
    report(w, in, v, origin, use);
    devmem_begin_undefined(x->mem, &x->mem->allocs[at], x->fault);
    memset(x->fault, 0, sizeof *x->fault);
    x->faulted = 0;
}

/* Behind a store, which counts as written what it touches. */
static void track_stored(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    for (int k = 0; k < t->n_sources; k++) {
        Mark v = mark_of(w, t->sources[k], m);
        if (!lanes_of(&v) || (v.event && doubt_is_race(w->x, v.event))) continue;
        exec_charge(w->x, LANE_COST * LANES);
        EACH_LANE(m & lanes_of(&v), lane)
        {
            Place p = undefined_place(w, t->memory, (int)lane, k);
            if (p.space != SPACE_GLOBAL) continue;
            note_store(w, in, whole(1u << lane, v.event), t->origins[k], p.at);
            undefined_mark(w, &p, (int)lane, bytes_of(&v, t->widths[k], p.bytes, (int)lane),
                           IN_MEMORY_UNDEFINED);
        }
    }
}

/* What the bytes of a place make of a mark's event. Local memory that holds both kinds counts as
 * doubtful. */
static void note_event(Warp *w, const Place *p, int kinds, Mark *found)
{
    int at = kinds && p->space == SPACE_GLOBAL ? devmem_find(w->x->mem, p->at) : -1;
    if (at >= 0) found->event = doubt_of(w->x, w->x->mem->allocs[at].undefined);
    if (kinds & IN_MEMORY_DOUBTFUL || (kinds && p->space == SPACE_LOCAL))
        found->event = w->x->event_in_memory;
}

static void track_load(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    for (int k = 0; k < t->n_dests; k++) {
        Mark found = whole(0, 0);
        int kinds;
        if (!t->dests[k]) continue;
        if (undefined_any(w->x)) {
            exec_charge(w->x, LANE_COST * LANES);
            EACH_LANE(m, lane)
            {
                Place p = undefined_place(w, t->memory, (int)lane, k);
                uint32_t bytes = undefined_bytes(w, &p, (int)lane, &kinds);
                put_bytes(&found, (Element){t->widths[k], p.bytes, t->memory->is_signed}, bytes,
                          (int)lane);
                note_event(w, &p, kinds, &found);
            }
        }
        put_mark(w, t->dests[k], m, found);
    }
}

int undefined_is_loaded(Warp *w, const Inst *load)
{
    const Inst *before = load - 1;
    const PtxInst *p = exec_source(w, load);
    const TrackOp *t = before->fn == h_track && w->x->code->follow ? before->track : NULL;
    if (t && before->source == load->source && t->kind == TRACK_LOAD) {
        int followed = 1;
        for (int k = 0; k < t->n_dests && k < load->mem->count; k++)
            followed &= t->dests[k] || load->mem->data[k] == ROW_NONE;
        if (followed) return 1;
    }
    if (!w->x->code->follow) w->x->doubted |= p && (!strcmp(p->op, "ld") || !strcmp(p->op, "ldu"));
    return 0;
}

/* Of the half in column `column` of the row whose address a lane of an ldmatrix has, the bytes that are
 * doubtful, since nobody wrote them or since they race. */
static uint32_t doubtful_half(const Warp *w, int row, int column)
{
    uint32_t bit = 1u << row;
    if (w->doubtful_load & bit) return 3;
    return w->partial_load & bit ? w->partial_bytes[row] >> 2 * column & 3 : 0;
}

/* Behind a ldmatrix: register i of a lane holds two halves of a row of matrix i, or of a column. */
static void track_matrix(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    const Inst *load = in - 1;
    int doubtful = (w->doubtful_load | w->partial_load) != 0,
        any = doubtful || w->x->undefined_shared;
    for (int i = 0; i < t->n_dests; i++) {
        Mark found = whole(0, 0), doubt = whole(0, w->load_event);
        if (!t->dests[i]) continue;
        exec_charge(w->x, any ? LANE_COST * LANES : 0);
        for (int half = 0; half < 2 * LANES && any; half++) {
            int lane = half / 2, j = half & 1, r = lane >> 2, c = lane & 3, kinds;
            int row = load->k1 ? 2 * c + j : r, column = load->k1 ? r : 2 * c + j;
            Place p = undefined_place(w, load->mem, 8 * i + row, 0);
            p = (Place){SPACE_SHARED, p.at + (uint64_t)(2 * column), 2};
            uint32_t bytes = undefined_bytes(w, &p, lane, &kinds);
            put_bytes(&found, (Element){32, 4, 0}, bytes << 2 * j, lane);
            note_event(w, &p, kinds, &found);
            bytes = doubtful ? doubtful_half(w, 8 * i + row, column) : 0;
            put_bytes(&doubt, (Element){32, 4, 0}, bytes << 2 * j, lane);
        }
        put_mark(w, t->dests[i], m, joined(w->x, found, doubt));
    }
    w->doubtful_load = w->partial_load = 0;
}

/* Of the sources from k on, in any of their parts. */
static Mark any_of(Warp *w, const TrackOp *t, int k, uint32_t m)
{
    Mark all = whole(0, 0);
    for (; k < t->n_sources; k++) all = joined(w->x, all, mark_of(w, t->sources[k], m));
    return whole(lanes_of(&all), all.event);
}

/* A product of mma or wmma: its rows and columns in eights, the registers of its factors, and whether a
 * register of the sums holds two of them, before and after. exec_wmma.c has the layout. */
typedef struct {
    int rows, columns, n_a, n_b, old_halves, halves;
} Tile;

static Tile tile_of(Warp *w, const Inst *in)
{
    const Inst *op = in - 1;
    const PtxInst *p = exec_source(w, in);
    Tile t = {2, 1, 0, 0, 0, 0};
    if (in->k1) {
        const WmmaOp *o = op->wmma;
        t = (Tile){o->m / 8, o->n / 8, 0, 0, o->from == T_F16, o->to == T_F16};
    } else {
        const MmaOp *o = op->mma;
        t.halves = t.old_halves = o->acc_type == T_F16;
        if (o->acc_type == T_F64) t.rows = o->n_c / 2;
    }
    t.n_a = p->operands[1].kind == OPND_VEC ? p->operands[1].n : 1;
    t.n_b = p->operands[2].kind == OPND_VEC ? p->operands[2].n : 1;
    return t;
}

/* The rows of the first factor, or the columns of the second one, that depend on undefined values: those of
 * the sources from `first` on, a bit each. A tentative value that met another one counts as a value. */
static uint32_t lines_of(Warp *w, const TrackOp *t, int first, int n, int eights, uint32_t event)
{
    uint32_t lines = 0;
    for (int i = 0; i < n && first + i < t->n_sources; i++) {
        Mark v = mark_of(w, t->sources[first + i], FULL_MASK);
        if (v.event != event && doubt_is_tentative(w->x, v.event)) continue;
        EACH_LANE(lanes_of(&v), lane) lines |= 1u << ((lane >> 2) + 8u * (uint32_t)(i % eights));
    }
    return lines;
}

/* Of register i of the sums, what depends on these rows and columns. */
static Mark of_lines(Tile tile, int i, uint32_t rows, uint32_t columns, uint32_t event)
{
    Mark v = whole(0, event);
    int pair = tile.halves ? i : i / 2;
    for (int lane = 0; lane < LANES; lane++)
        for (int p = 0; p < REG_PARTS; p++) {
            int odd = tile.halves ? p / 2 : i & 1, row = (lane >> 2) + 8 * (pair % tile.rows),
                column = 2 * (lane & 3) + odd + 8 * (pair / tile.rows);
            v.part[p] |= ((rows >> row | columns >> column) & 1) << lane;
        }
    return v;
}

/* Behind a mma or wmma.mma: an element of the sums depends on its row and its column. */
static void track_tile(Warp *w, const Inst *in)
{
    const TrackOp *t = in->track;
    Tile tile = tile_of(w, in);
    Mark factors = whole(0, 0), old = whole(0, 0);
    int first = tile.n_a + tile.n_b, same = tile.old_halves == tile.halves;
    uint32_t rows = 0, columns = 0;
    for (int i = 0; i < first && i < t->n_sources; i++)
        factors = joined(w->x, factors, mark_of(w, t->sources[i], FULL_MASK));
    if (lanes_of(&factors)) {
        rows = lines_of(w, t, 0, tile.n_a, tile.rows, factors.event);
        columns = lines_of(w, t, tile.n_a, tile.n_b, tile.columns, factors.event);
    }
    exec_charge(w->x, FOLLOW_COST + (rows | columns ? t->n_dests * LANE_COST * LANES : 0));
    if (!same) old = any_of(w, t, first, FULL_MASK);
    for (int i = 0; i < t->n_dests; i++) {
        Mark v = rows | columns ? of_lines(tile, i, rows, columns, factors.event) : whole(0, 0);
        if (same && first + i < t->n_sources) old = mark_of(w, t->sources[first + i], FULL_MASK);
        if (!same && lanes_of(&old)) old = whole(FULL_MASK, old.event);
        put_mark(w, t->dests[i], FULL_MASK, joined(w->x, v, old));
    }
}

/* The lanes whose accumulators of row g + 8 half depend on undefined values of the first factor. */
static Mark of_rows(Warp *w, const TrackOp *t, const WgmmaUndefined *u, int half)
{
    Mark v = whole(0, 0);
    uint32_t lanes = 0;
    for (int k = t->n_dests + half; k < t->n_sources; k += 2) /* registers of the factor */
        v = joined(w->x, v, mark_of(w, t->sources[k], FULL_MASK));
    for (int i = 0; i < LANES; i++) {
        uint32_t row = lanes_of(&v) >> (i & ~3) & 15;
        lanes |= (uint32_t)(row != 0) << i;
    }
    v = whole(lanes, v.event);
    for (int i = lanes = 0; i < LANES; i++) lanes |= (u->rows >> (8 * half + i / 4) & 1) << i;
    return joined(w->x, v, whole(lanes, u->event));
}

/* Behind a wgmma: register i of a lane is an element of the product, or two halves. */
static void track_product(Warp *w, const Inst *in)
{
    const TrackOp *t = in->track;
    const WgmmaOp *op = in[-1].wgmma;
    const WgmmaUndefined *u = &w->x->wgmma->undefined;
    int adds = (w->p[op->adds] ^ op->adds_flip) & 1, is_half = op->acc_type == T_F16;
    Mark rows[2] = {of_rows(w, t, u, 0), of_rows(w, t, u, 1)};
    uint32_t columns = 0;
    for (size_t i = 0; i < sizeof u->columns / sizeof *u->columns; i++) columns |= u->columns[i];
    exec_charge(w->x, FOLLOW_COST + t->n_dests * (columns ? 16 : 4) * LANE_COST);
    for (int i = 0; i < t->n_dests; i++) {
        Mark v = whole(0, u->event), old = whole(0, 0);
        int column = is_half ? 8 * (i / 2) : 8 * (i / 4) + (i & 1);
        for (int lane = 0; lane < LANES && columns; lane++)
            for (int p = 0; p < REG_PARTS; p++) {
                int c = column + 2 * (lane & 3) + (is_half ? p / 2 : 0);
                v.part[p] |= (u->columns[c / 32] >> c % 32 & 1) << lane;
            }
        if (adds) old = mark_of(w, t->dests[i], FULL_MASK);
        v = joined(w->x, joined(w->x, v, old), rows[is_half ? i & 1 : i >> 1 & 1]);
        if (!is_half) v = whole(lanes_of(&v), v.event);
        put_mark(w, t->dests[i], FULL_MASK, v);
    }
}

/* What a load found of item k where some bytes have no value. */
static Mark partly(const Warp *w, const Inst *in, int k, uint32_t m)
{
    const MemOp *mo = in[-1].mem;
    Mark found = whole(0, w->load_event);
    Element e = {in->track->widths[k], mo->element, mo->is_signed};
    EACH_LANE(w->partial_load & m, lane)
    {
        uint32_t bytes = w->partial_bytes[lane] >> (k * mo->element) & ((1u << mo->element) - 1);
        put_bytes(&found, e, bytes, (int)lane);
    }
    return found;
}

/* Behind a load: what it found. */
static void track_loaded(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    Mark tentative = whole(w->load_value ? m : 0, w->load_value),
         doubtful = whole(w->doubtful_load & m, w->load_event);
    int any = lanes_of(&tentative) || lanes_of(&doubtful) || w->partial_load;
    for (int k = 0; k < t->n_dests && any; k++) {
        Mark v = mark_of(w, t->dests[k], m);
        if (t->dests[k])
            put_mark(w, t->dests[k], m,
                     joined(w->x, joined(w->x, joined(w->x, tentative, doubtful), v),
                            partly(w, in, k, m)));
    }
    w->load_value = w->doubtful_load = w->partial_load = 0;
}

/* ---- registers ---- */

/* The lanes whose shuffled value comes from a lane in which the source is undefined. */
static uint32_t shuffled(const Warp *w, const Inst *in, uint32_t source)
{
    const Inst *shfl = in - 1;
    const uint32_t *b = row32(w, shfl->b), *c = row32(w, shfl->c);
    uint32_t out = 0;
    for (int i = 0; i < LANES; i++) {
        int segment = (int)(c[i] >> 8 & 31), by = (int)(b[i] & 31), j = i;
        int max_lane = (i & segment) | ((int)(c[i] & 31) & ~segment), ok;
        switch (shfl->k0) {
        case SHFL_UP: j = i - by, ok = j >= max_lane; break;
        case SHFL_DOWN: j = i + by, ok = j <= max_lane; break;
        case SHFL_BFLY: j = i ^ by, ok = j <= max_lane; break;
        default: j = (i & segment) | (by & ~segment), ok = j <= max_lane; break;
        }
        if (!ok || j < 0 || j > 31) j = i;
        out |= (source >> j & 1) << i;
    }
    return out;
}

/* Destination i, whose parts depend on some parts of the sources. */
static Mark of_flow(Warp *w, const TrackOp *t, int i, uint32_t m)
{
    Mark all = whole(0, 0);
    for (int j = 0; j < t->n_sources; j++) {
        Mark v = mark_of(w, t->sources[j], m), out = whole(0, v.event);
        if (!lanes_of(&v)) continue;
        for (int p = 0; p < REG_PARTS; p++) {
            int from = t->flow[(i * REG_PARTS + p) * t->n_sources + j];
            for (int q = 0; q < REG_PARTS; q++)
                if (from >> q & 1) out.part[p] |= v.part[q];
        }
        all = joined(w->x, all, out);
    }
    return all;
}

static Mark of_select(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    uint32_t chosen = w->p[in->a] ^ in->e;
    Mark a = mark_of(w, t->sources[0], m & chosen), b = mark_of(w, t->sources[1], m & ~chosen);
    return joined(w->x, joined(w->x, a, b), mark_of(w, t->sources[2], m));
}

static Mark of_logic(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    Mark a = mark_of(w, t->sources[0], m), b = mark_of(w, t->sources[1], m);
    part_events(w->x, &a, &b);
    uint32_t flip = t->kind == TRACK_OR ? FULL_MASK : 0, ua = lanes_of(&a), ub = lanes_of(&b);
    uint32_t va = w->p[in->a] ^ in->e ^ flip, vb = w->p[in->b] ^ in->f ^ flip;
    return joined(w->x, whole(ua & (ub | vb), a.event), whole(ub & (ua | va), b.event));
}

/* Value and predicate of a shuffle: the predicate does not depend on what is shuffled. */
static void track_shuffle(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    Mark lane = any_of(w, t, 1, m), v = whole(0, 0),
         doubtful = whole(w->doubtful_shuffle & m, w->shuffle_event);
    if (t->n_sources) v = mark_of(w, t->sources[0], FULL_MASK);
    for (int p = 0; p < REG_PARTS && lanes_of(&v); p++) v.part[p] = shuffled(w, in, v.part[p]) & m;
    v = joined(w->x, joined(w->x, v, doubtful), lane);
    w->doubtful_shuffle &= ~m;
    for (int i = 0; i < t->n_dests; i++) put_mark(w, t->dests[i], m, i ? lane : v);
}

/* Of what looks at all lanes of a group: of the warp, or of those that a mask names. */
static Mark gathered(Warp *w, const Inst *in, uint32_t m)
{
    const Inst *op = in - 1;
    Mark all = any_of(w, in->track, 0, FULL_MASK);
    uint32_t undefined = lanes_of(&all) & w->live, out = 0;
    if (!undefined || !in->k0) return whole(undefined ? m : 0, all.event);
    for (uint32_t rest = m; rest;) {
        uint32_t group = warp_group(w, op->f, &rest);
        if (undefined & group) out |= group;
    }
    return whole(out, all.event);
}

static Mark result_of(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    switch (t->kind) {
    case TRACK_SELECT: return of_select(w, in, m);
    case TRACK_AND:
    case TRACK_OR:
        if (t->n_sources == 2) return of_logic(w, in, m);
        break;
    case TRACK_GATHER: return gathered(w, in, m);
    default: break;
    }
    return any_of(w, t, 0, m);
}

/* The lanes in which a slot has a mark, of any event. */
static uint32_t marks_at(const uint32_t *preds, uint32_t slot)
{
    const uint32_t *part = preds + slot;
    return slot ? part[0] | part[1] | part[2] | part[3] : 0;
}

/* Has no register a mark that the instruction reads or sets? Mostly none has. */
static int is_unmarked(const Warp *w, const TrackOp *t)
{
    const uint32_t *preds = w->frame->preds;
    uint32_t marks = marks_at(preds, t->guard);
    for (int i = 0; i < t->n_sources; i++) marks |= marks_at(preds, t->sources[i]);
    for (int i = 0; i < t->n_dests; i++) marks |= marks_at(preds, t->dests[i]);
    return !marks;
}

static const Inst *follow(Warp *w, const Inst *in, uint32_t m)
{
    const TrackOp *t = in->track;
    if (is_unmarked(w, t)) {
        exec_charge(w->x, FOLLOW_COST);
        return in + 1;
    }
    Mark unsure = mark_of(w, t->guard, w->active), all = whole(0, 0);
    Mark out[FLOW_DESTS];
    if (!t->flow) all = result_of(w, in, m);
    for (int i = 0; i < t->n_dests && t->flow; i++) out[i] = of_flow(w, t, i, m);
    unsure = whole(lanes_of(&unsure), unsure.event);
    exec_charge(w->x, FOLLOW_COST);
    for (int i = 0; i < t->n_dests; i++) {
        put_mark(w, t->dests[i], m, t->flow ? out[i] : all);
        if (lanes_of(&unsure) && t->dests[i]) {
            Mark now = mark_of(w, t->dests[i], FULL_MASK);
            put_mark(w, t->dests[i], FULL_MASK, joined(w->x, unsure, now));
        }
    }
    return in + 1;
}

const Inst *h_track(Warp *w, const Inst *in)
{
    const TrackOp *t = in->track;
    uint32_t m = exec_mask(w, in);
    for (int i = 0; i < t->n_musts; i++) {
        /* A must without a mask of its own is the guard of a branch. */
        Mark v = mark_of(w, t->musts[i], t->musts[i] == t->guard ? w->active : m);
        if (!lanes_of(&v)) continue;
        w->x->doubted |= t->doubts;
        if (report(w, in, v, t->origins[i], t->use)) return NULL;
    }
    switch (t->kind) {
    case TRACK_STORE: return track_store(w, in, m) ? NULL : in + 1;
    case TRACK_STORED: track_stored(w, in, m); return in + 1;
    case TRACK_LOAD: track_load(w, in, m); return in + 1;
    case TRACK_MATRIX: track_matrix(w, in, m); return in + 1;
    case TRACK_PRODUCT:
    case TRACK_TILE:
        if (m && t->kind == TRACK_TILE) track_tile(w, in);
        if (m && t->kind == TRACK_PRODUCT) track_product(w, in);
        return in + 1;
    case TRACK_LOADED: track_loaded(w, in, m); return in + 1;
    case TRACK_SHUFFLE: track_shuffle(w, in, m); return in + 1;
    default: return follow(w, in, m);
    }
}
