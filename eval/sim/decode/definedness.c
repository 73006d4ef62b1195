/* Which registers of a function may have no value. A register that is read on some path before it is
 * set (a variable without an initialiser) starts undefined; whatever is computed from it may be
 * undefined too. Only such registers get a slot and a h_track at each use, so functions without them
 * cost nothing. Arguments of calls by value count as defined. */
#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/decode/decode_internal.h"
#include "eval/sim/memory/undefined.h"

enum {
    STEPS_MAX = 50000000, /* of the search and of the closure, for hostile code */
    OPERANDS_MAX = 250    /* registers of one instruction */
};

/* A list of places by register: the first one of each, and the next of the same register. */
typedef struct {
    int *head, *next, *block, *inst, n, cap;
} Places;

struct Definedness {
    int n_registers, base[REG_CLASSES];
    uint32_t *slot, *origin; /* by register: 0 when it is always defined; PTX instruction */
    int shared, local;       /* an undefined value may be stored there */
    int64_t steps;
};

typedef struct {
    int n;
    int reg[OPERANDS_MAX];
} Registers;

static int is_op(const PtxInst *in, const char *op)
{
    return !strcmp(in->op, op);
}

static int register_of(const Definedness *k, const PtxOperand *o)
{
    return k->base[o->cls] + (int)o->reg;
}

static void collect(const Definedness *k, const PtxOperand *o, int addresses, Registers *out)
{
    if (o->kind == OPND_REG && o->cls < REG_128 && !addresses && out->n < OPERANDS_MAX)
        out->reg[out->n++] = register_of(k, o);
    if (o->kind == OPND_ADDR && addresses) collect(k, &o->items[0], 0, out);
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        collect(k, &o->items[i], addresses, out);
    if (o->pair) collect(k, o->pair, addresses, out);
}

static void collect_dests(const Definedness *k, const PtxInst *in, Registers *out)
{
    out->n = 0;
    if (costs_has_dest(in)) collect(k, &in->operands[0], 0, out);
}

/* The registers that are read as values, without the guard. */
static void collect_values(const Definedness *k, const PtxInst *in, Registers *out)
{
    out->n = 0;
    for (int i = costs_has_dest(in); i < in->n_operands; i++) collect(k, &in->operands[i], 0, out);
}

static void collect_addresses(const Definedness *k, const PtxInst *in, Registers *out)
{
    out->n = 0;
    for (int i = 0; i < in->n_operands; i++) collect(k, &in->operands[i], 1, out);
}

/* ---- registers that are read before they are set ---- */

static void places_init(Places *p, int n_registers)
{
    memset(p, 0, sizeof *p);
    p->head = memory_array((size_t)n_registers + 1, sizeof(int));
    for (int i = 0; i <= n_registers; i++) p->head[i] = -1;
}

/* Adds a place unless the register's last one is in the same block. */
static void places_add(Places *p, int reg, int block, int inst)
{
    if (p->head[reg] >= 0 && p->block[p->head[reg]] == block) return;
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 256;
        p->next = memory_grow(p->next, (size_t)p->cap, sizeof(int));
        p->block = memory_grow(p->block, (size_t)p->cap, sizeof(int));
        p->inst = memory_grow(p->inst, (size_t)p->cap, sizeof(int));
    }
    p->next[p->n] = p->head[reg];
    p->block[p->n] = block;
    p->inst[p->n] = inst;
    p->head[reg] = p->n++;
}

static void places_release(Places *p)
{
    free(p->head);
    free(p->next);
    free(p->block);
    free(p->inst);
}

static void add_uses(const Registers *r, const Places *sets, Places *reads, int block, int inst)
{
    for (int i = 0; i < r->n; i++) {
        int set = sets->head[r->reg[i]];
        if (set < 0 || sets->block[set] != block) places_add(reads, r->reg[i], block, inst);
    }
}

/* Finds for each register the blocks that set it without a guard, and those that read it before. */
static void find_places(const Decoder *d, const Definedness *k, const int *block_of, Places *sets,
                        Places *reads)
{
    Registers r;
    for (int i = 0; i < d->p->n_insts; i++) {
        const PtxInst *in = &d->p->insts[i];
        if (in->bad) continue;
        collect_values(k, in, &r);
        add_uses(&r, sets, reads, block_of[i], i);
        collect_addresses(k, in, &r);
        add_uses(&r, sets, reads, block_of[i], i);
        if (in->guard >= 0) {
            r = (Registers){1, {k->base[REG_PRED] + in->guard}};
            add_uses(&r, sets, reads, block_of[i], i);
            continue;
        }
        collect_dests(k, in, &r);
        for (int j = 0; j < r.n; j++) places_add(sets, r.reg[j], block_of[i], i);
    }
}

typedef struct {
    int n, *first, *preds; /* predecessors of b: preds[first[b]] to preds[first[b + 1] - 1] */
} Flow;

/* Calls `edge` for each edge between blocks. */
static void each_edge(const Decoder *d, const int *block_of, int n_blocks,
                      void (*edge)(Flow *f, int from, int to), Flow *f)
{
    for (int i = 0; i < d->p->n_insts; i++) {
        const PtxInst *in = &d->p->insts[i];
        int b = block_of[i], falls = 1;
        if (block_of[i + 1] == b || in->bad) continue;
        if (is_op(in, "bra") && in->n_operands && in->operands[0].kind == OPND_NAME) {
            int target = decode_label(d, in->operands[0].name, in->scope);
            if (target >= 0) edge(f, b, block_of[target]);
            falls = in->guard >= 0;
        } else if (is_op(in, "brx")) {
            int found = in->n_operands > 1 && in->operands[1].kind == OPND_NAME
                            ? ptx_find_targets(d->p, in->operands[1].name, in->scope)
                            : -1;
            const PtxTargets *table = found < 0 ? NULL : &d->p->targets[found];
            for (int j = 0; table && j < table->n; j++) {
                int target = decode_label(d, table->labels[j], table->scope);
                if (target >= 0) edge(f, b, block_of[target]);
            }
            falls = 0;
        } else if (is_op(in, "ret") || is_op(in, "exit")) {
            falls = in->guard >= 0;
        }
        if (falls && b + 1 < n_blocks) edge(f, b, b + 1);
    }
}

static void count_edge(Flow *f, int from, int to)
{
    (void)from;
    f->first[to + 1]++;
}

static void put_edge(Flow *f, int from, int to)
{
    f->preds[f->first[to]++] = from;
}

static void find_flow(const Decoder *d, const int *block_of, int n_blocks, Flow *f)
{
    f->n = n_blocks;
    f->first = memory_array((size_t)n_blocks + 2, sizeof(int));
    each_edge(d, block_of, n_blocks, count_edge, f);
    for (int b = 0; b <= n_blocks; b++) f->first[b + 1] += f->first[b];
    f->preds = memory_array((size_t)f->first[n_blocks] + 1, sizeof(int));
    each_edge(d, block_of, n_blocks, put_edge, f);
    for (int b = n_blocks; b > 0; b--) f->first[b] = f->first[b - 1];
    f->first[0] = 0;
}

/* Does a path without a setting lead from the entry to a read of the register? stamp: by block,
 * `mark` where it was visited, -mark where it sets the register. */
static int reaches_entry(const Flow *f, const Places *sets, const Places *reads, int reg, int mark,
                         int *stamp, int *stack, int64_t *steps)
{
    int depth = 0;
    for (int i = sets->head[reg]; i >= 0; i = sets->next[i]) stamp[sets->block[i]] = -mark;
    for (int i = reads->head[reg]; i >= 0; i = reads->next[i]) {
        int b = reads->block[i];
        if (b == 0) return 1;
        if (stamp[b] == mark) continue;
        stamp[b] = stamp[b] == -mark ? -mark : mark; /* it may set the register behind the read */
        stack[depth++] = b;
        while (depth) {
            int at = stack[--depth];
            for (int e = f->first[at]; e < f->first[at + 1]; e++) {
                int p = f->preds[e];
                if (++*steps > STEPS_MAX) return 1;
                if (stamp[p] == mark || stamp[p] == -mark) continue;
                if (p == 0) return 1;
                stamp[p] = mark;
                stack[depth++] = p;
            }
        }
    }
    return 0;
}

static int first_read(const Places *reads, int reg)
{
    int first = 0;
    for (int i = reads->head[reg]; i >= 0; i = reads->next[i]) first = reads->inst[i];
    return first;
}

/* Gives slots to the registers that may be read before they are set. */
static void find_seeds(Decoder *d, Definedness *k, const unsigned char *leader)
{
    Places sets, reads;
    Flow flow;
    int n_blocks = 0, *block_of = memory_array((size_t)d->p->n_insts + 1, sizeof(int));
    for (int i = 0; i <= d->p->n_insts; i++)
        block_of[i] = leader[i] || !i ? n_blocks++ : n_blocks - 1;
    places_init(&sets, k->n_registers);
    places_init(&reads, k->n_registers);
    find_places(d, k, block_of, &sets, &reads);
    find_flow(d, block_of, n_blocks, &flow);
    int *stamp = memory_array((size_t)n_blocks + 1, sizeof(int)),
        *stack = memory_array((size_t)n_blocks + 1, sizeof(int));
    for (int r = 0; r < k->n_registers; r++) {
        if (reads.head[r] < 0 ||
            !reaches_entry(&flow, &sets, &reads, r, r + 1, stamp, stack, &k->steps))
            continue;
        k->slot[r] = decode_temp_pred(d);
        k->origin[r] = (uint32_t)first_read(&reads, r);
        d->f->n_undefined++;
    }
    places_release(&sets);
    places_release(&reads);
    free(flow.first);
    free(flow.preds);
    free(block_of);
    free(stamp);
    free(stack);
}

/* ---- what is computed from them ---- */

static int space_of(const PtxInst *in)
{
    static const struct {
        const char *name;
        PtxSpace space;
    } spaces[] = {{"global", SPACE_GLOBAL},      {"shared", SPACE_SHARED},
                  {"shared::cta", SPACE_SHARED}, {"local", SPACE_LOCAL},
                  {"const", SPACE_CONST},        {"param", SPACE_PARAM},
                  {"param::entry", SPACE_PARAM}, {"param::func", SPACE_PARAM}};
    for (int i = 0; i < in->n_mods; i++)
        for (size_t s = 0; s < sizeof spaces / sizeof spaces[0]; s++)
            if (!strcmp(in->mods[i], spaces[s].name)) return (int)spaces[s].space;
    return SPACE_GENERIC;
}

static int may_be(const PtxInst *in, PtxSpace space)
{
    int s = space_of(in);
    return s == (int)space || s == SPACE_GENERIC;
}

static int is_load(const PtxInst *in)
{
    return is_op(in, "ld") || is_op(in, "ldu");
}

/* Returns a register without a value that the result depends on, or -1. */
static int tainted_by(const Definedness *k, const PtxInst *in, const Registers *values)
{
    int guard = in->guard >= 0 ? k->base[REG_PRED] + in->guard : -1;
    if (guard >= 0 && k->slot[guard]) return guard;
    for (int i = 0; i < values->n; i++)
        if (k->slot[values->reg[i]]) return values->reg[i];
    return -1;
}

/* One pass. Returns 1 when a register or a space became tainted. *from: the register that taints
 * the memory. */
static int spread_once(Decoder *d, Definedness *k, int *from)
{
    Registers values, dests;
    int changed = 0;
    for (int i = 0; i < d->p->n_insts; i++) {
        const PtxInst *in = &d->p->insts[i];
        if (in->bad) continue;
        collect_values(k, in, &values);
        int by = tainted_by(k, in, &values);
        k->steps += 1 + values.n;
        if (is_op(in, "st") && by >= 0) {
            changed |=
                (may_be(in, SPACE_SHARED) && !k->shared) || (may_be(in, SPACE_LOCAL) && !k->local);
            k->shared |= may_be(in, SPACE_SHARED);
            k->local |= may_be(in, SPACE_LOCAL);
            if (*from < 0) *from = by;
        }
        if (is_load(in) &&
            ((k->shared && may_be(in, SPACE_SHARED)) || (k->local && may_be(in, SPACE_LOCAL))))
            by = by >= 0 ? by : *from;
        if (by < 0) continue;
        collect_dests(k, in, &dests);
        for (int j = 0; j < dests.n; j++) {
            if (k->slot[dests.reg[j]]) continue;
            k->slot[dests.reg[j]] = decode_temp_pred(d);
            k->origin[dests.reg[j]] = k->origin[by];
            changed = 1;
        }
    }
    return changed;
}

/* Gives slots to what a load of shared memory or a shuffle may leave doubtful (memory/doubts.h). */
static int add_doubtful(Decoder *d, Definedness *k)
{
    Registers dests;
    int found = 0;
    for (int i = 0; i < d->p->n_insts; i++) {
        const PtxInst *in = &d->p->insts[i];
        int loads = is_load(in) && may_be(in, SPACE_SHARED), shuffles = is_op(in, "shfl");
        if (in->bad || !(loads || shuffles)) continue;
        collect_dests(k, in, &dests);
        for (int j = 0; j < dests.n; j++) {
            if (k->slot[dests.reg[j]]) continue;
            k->slot[dests.reg[j]] = decode_temp_pred(d);
            k->origin[dests.reg[j]] = (uint32_t)i;
        }
        found |= dests.n > 0;
    }
    return found;
}

/* Another slot for each one: the event that made its value doubtful. */
static void add_events(Decoder *d)
{
    for (int i = 0; i < d->f->n_slots; i++) decode_temp_pred(d);
}

void definedness_find(Decoder *d, const unsigned char *leader)
{
    Definedness *k = memory_alloc(sizeof *k);
    Function *f = d->f;
    int from = -1, follow = d->code->follow;
    for (int c = 0; c < REG_128; c++) {
        k->base[c] = k->n_registers;
        k->n_registers += (int)d->p->n_regs[c] + 1;
    }
    k->slot = memory_array((size_t)k->n_registers + 1, sizeof(uint32_t));
    k->origin = memory_array((size_t)k->n_registers + 1, sizeof(uint32_t));
    d->definedness = k;
    f->first_slot = d->next_pred;
    find_seeds(d, k, leader);
    f->undefined =
        ptx_arena_alloc(d->code->ptx.arena, sizeof(uint32_t) * (size_t)f->n_undefined + 1);
    for (int i = 0; i < f->n_undefined; i++) f->undefined[i] = f->first_slot + (uint32_t)i;
    while (f->n_undefined && spread_once(d, k, &from) && k->steps < STEPS_MAX) {
    }
    int doubtful = follow && add_doubtful(d, k);
    if (!f->n_undefined && !doubtful) {
        definedness_release(d);
        return;
    }
    while (doubtful && spread_once(d, k, &from) && k->steps < STEPS_MAX) {
    }
    if (k->steps >= STEPS_MAX) f->unsupported = "it has too many variables without a value";
    f->n_slots = (int)(d->next_pred - f->first_slot);
    if (follow) add_events(d);
    decode_emit(d, h_undefine);
}

void definedness_release(Decoder *d)
{
    if (!d->definedness) return;
    free(d->definedness->slot);
    free(d->definedness->origin);
    free(d->definedness);
    d->definedness = NULL;
}

/* ---- the instructions that follow them ---- */

static const char *use_of(const PtxInst *in)
{
    if (is_op(in, "bra") || is_op(in, "brx") || is_op(in, "ret") || is_op(in, "exit"))
        return "branches by it";
    if (is_op(in, "bar") || is_op(in, "barrier")) return "waits at a barrier by it";
    if (is_op(in, "call")) return "calls a function by it";
    if (is_op(in, "st") && space_of(in) == SPACE_PARAM) return "calls a function with it";
    return "uses it for an access to memory";
}

/* Operations whose values, not only addresses, must be defined. */
static int needs_values(const PtxInst *in)
{
    static const char *const ops[] = {"bra",      "brx",     "ret",     "exit", "call",
                                      "bar",      "red",     "atom",    "cp",   "trap",
                                      "mbarrier", "barrier", "stmatrix"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (is_op(in, ops[i])) return 1;
    return 0;
}

static uint32_t *slots_of(Decoder *d, const Registers *r)
{
    uint32_t *slots = ptx_arena_alloc(d->code->ptx.arena, sizeof(uint32_t) * ((size_t)r->n + 1));
    for (int i = 0; i < r->n; i++) slots[i] = d->definedness->slot[r->reg[i]];
    return slots;
}

static int any(const uint32_t *slots, int n)
{
    for (int i = 0; i < n; i++)
        if (slots[i]) return 1;
    return 0;
}

static int kind_of(const PtxInst *in)
{
    int of_predicates = in->n_mods == 1 && !strcmp(in->mods[0], "pred") && in->n_operands == 3;
    if (is_op(in, "mov") && in->n_operands == 2 && in->operands[1].kind == OPND_VEC)
        return TRACK_PACK;
    if (is_op(in, "selp")) return TRACK_SELECT;
    if (of_predicates && is_op(in, "and")) return TRACK_AND;
    if (of_predicates && is_op(in, "or")) return TRACK_OR;
    if (is_op(in, "shfl")) return TRACK_SHUFFLE;
    if (is_op(in, "vote") || is_op(in, "match") || is_op(in, "redux") || is_op(in, "mma") ||
        is_op(in, "movmatrix") || (is_op(in, "wmma") && in->n_mods && !strcmp(in->mods[0], "mma")))
        return TRACK_GATHER;
    if (in->n_operands < 2) return TRACK_JOIN; /* refused, if it is an access */
    if (is_load(in) && (may_be(in, SPACE_SHARED) || may_be(in, SPACE_LOCAL))) return TRACK_LOAD;
    if (is_op(in, "st") && space_of(in) != SPACE_PARAM) return TRACK_STORE;
    return TRACK_JOIN;
}

/* The items of a load or store, one register each; -1 for a constant or no destination. */
static void collect_items(const Definedness *k, const PtxOperand *o, Registers *out)
{
    out->n = 0;
    int n = o->kind == OPND_VEC ? o->n : 1;
    for (int i = 0; i < n && i < OPERANDS_MAX; i++) {
        const PtxOperand *item = o->kind == OPND_VEC ? &o->items[i] : o;
        int known = item->kind == OPND_REG && item->cls < REG_128;
        out->reg[out->n++] = known ? register_of(k, item) : 0; /* 0 is no register of the text */
    }
}

static MemOp *memory_of(Decoder *d, const PtxOperand *address)
{
    MemOp *mo = ptx_arena_alloc(d->code->ptx.arena, sizeof *mo);
    mo->space = (uint8_t)decode_space(d);
    const ValueType *t = decode_type(d);
    mo->element = (uint8_t)(t && t->bits >= 8 ? t->bits / 8 : 1);
    return decode_address(d, address, mo) ? NULL : mo;
}

/* Both values of a selp and its predicate, each in its place; a constant has slot 0. */
static void select_sources(Decoder *d, TrackOp *t)
{
    const Definedness *k = d->definedness;
    uint32_t *slots = ptx_arena_alloc(d->code->ptx.arena, sizeof(uint32_t) * 3);
    for (int i = 0; i < 3; i++) {
        Registers one = {.n = 0};
        collect(k, &d->in->operands[i + 1], 0, &one);
        slots[i] = one.n ? k->slot[one.reg[0]] : 0;
    }
    t->sources = slots;
    t->n_sources = 3;
}

/* Fills in the slots. Returns 0 when the instruction touches none. */
static int fill_in(Decoder *d, TrackOp *t, int after)
{
    const Definedness *k = d->definedness;
    const PtxInst *in = d->in;
    Registers dests, values, musts;
    t->kind = (uint8_t)kind_of(in);
    t->use = use_of(in);
    t->events = d->code->follow ? (uint32_t)d->f->n_slots : 0;
    t->guard = in->guard >= 0 ? k->slot[k->base[REG_PRED] + in->guard] : 0;
    collect_dests(k, in, &dests);
    collect_values(k, in, &values);
    collect_addresses(k, in, &musts);
    if (t->kind == TRACK_LOAD && after) t->kind = TRACK_LOADED;
    if (is_load(in) && t->kind != TRACK_JOIN) collect_items(k, &in->operands[0], &dests);
    if (t->kind == TRACK_STORE || t->kind == TRACK_PACK)
        collect_items(k, &in->operands[1], &values);
    /* An argument of a call is not followed: a doubtful value must not get there. */
    t->events_only = d->code->follow && is_op(in, "st") && space_of(in) == SPACE_PARAM;
    if (needs_values(in) || t->events_only)
        for (int i = 0; i < values.n && musts.n < OPERANDS_MAX; i++)
            musts.reg[musts.n++] = values.reg[i];
    if (in->guard >= 0 && musts.n < OPERANDS_MAX && (needs_values(in) || t->kind == TRACK_STORE))
        musts.reg[musts.n++] = k->base[REG_PRED] + in->guard;
    if (t->kind == TRACK_LOADED) values.n = musts.n = 0; /* they have been looked at before it */
    t->dests = slots_of(d, &dests);
    t->sources = slots_of(d, &values);
    t->musts = slots_of(d, &musts);
    t->n_dests = (uint8_t)dests.n;
    t->n_sources = (uint8_t)values.n;
    t->n_musts = (uint8_t)musts.n;
    if (t->kind == TRACK_SELECT) select_sources(d, t);
    t->origins = ptx_arena_alloc(d->code->ptx.arena,
                                 sizeof(uint32_t) * ((size_t)musts.n + (size_t)values.n + 1));
    for (int i = 0; i < musts.n; i++) t->origins[i] = k->origin[musts.reg[i]];
    for (int i = 0; i < values.n; i++) t->origins[musts.n + i] = k->origin[values.reg[i]];
    int stores = t->kind == TRACK_STORE &&
                 ((k->shared && may_be(in, SPACE_SHARED)) || (k->local && may_be(in, SPACE_LOCAL)));
    return t->guard || stores || any(t->dests, dests.n) || any(t->sources, t->n_sources) ||
           any(t->musts, musts.n);
}

static void emit(Decoder *d, int after)
{
    TrackOp found = {0};
    if (!d->definedness || d->in->bad) return;
    int kind = kind_of(d->in), is_late = kind == TRACK_SHUFFLE || kind == TRACK_GATHER,
        is_both = d->code->follow && kind == TRACK_LOAD && may_be(d->in, SPACE_SHARED);
    if ((is_late != after && !is_both) || !fill_in(d, &found, after)) return;
    TrackOp *t = ptx_arena_alloc(d->code->ptx.arena, sizeof *t);
    *t = found;
    if (t->kind == TRACK_LOAD || t->kind == TRACK_STORE) {
        int address = kind == TRACK_LOAD ? 1 : 0;
        t->memory = memory_of(d, &d->in->operands[address]);
        if (!t->memory) return; /* the instruction itself is refused */
    }
    uint32_t pred[2] = {0}, flip[2] = {0};
    int logic = kind == TRACK_AND || kind == TRACK_OR;
    if (kind == TRACK_SELECT && decode_pred(d, 3, &pred[0], &flip[0])) return;
    for (int k = 0; k < 2 && logic; k++)
        if (decode_pred(d, k + 1, &pred[k], &flip[k])) return;
    Inst *i = decode_emit(d, h_track);
    i->a = pred[0];
    i->b = pred[1];
    i->e = flip[0];
    i->f = flip[1];
    i->track = t;
}

void definedness_before(Decoder *d)
{
    d->mods_used = 0;
    emit(d, 0);
}

void definedness_after(Decoder *d)
{
    emit(d, 1);
}
