/* Which registers of a function may have no value. A register that is read on some path before it is
 * set (a variable without an initialiser) starts undefined; whatever is computed from it may be
 * undefined too. Only such registers get a slot and a h_track at each use, so functions without them
 * cost nothing. An argument of a call that may have no value is followed in a module that is loaded to
 * follow doubtful values (memory/doubts.h); else the run stops there, and the module is loaded again. */
#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/decode/definedness.h"
#include "eval/sim/memory/undefined.h"

#define is_op definedness_is

void definedness_add(Registers *r, int reg)
{
    if (reg >= 0 && r->n < OPERANDS_MAX) r->reg[r->n++] = reg;
}

static void collect(const Definedness *k, const PtxOperand *o, int addresses, Registers *out)
{
    if (!addresses) definedness_add(out, definedness_register(k, o));
    if (o->kind == OPND_ADDR && addresses) collect(k, &o->items[0], 0, out);
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        collect(k, &o->items[i], addresses, out);
    if (o->pair) collect(k, o->pair, addresses, out);
}

void definedness_dests(const Definedness *k, const PtxInst *in, Registers *out)
{
    out->n = 0;
    if (ptx_has_dest(in)) collect(k, &in->operands[0], 0, out);
    if (is_op(in, "st")) definedness_words(k, in, out);
    definedness_arguments(k, in, 1, out);
}

void definedness_values(const Definedness *k, const PtxInst *in, Registers *out)
{
    ParamAccess a;
    out->n = 0;
    int first = ptx_has_dest(in) && !is_op(in, "wgmma"); /* that adds to its destination */
    for (int i = first; i < in->n_operands; i++) collect(k, &in->operands[i], 0, out);
    definedness_arguments(k, in, 0, out);
    if (definedness_param(k, in, &a) && (!a.is_store || a.bytes < 4))
        definedness_words(k, in, out); /* a store of bytes keeps the others of the word */
}

void definedness_addresses(const Definedness *k, const PtxInst *in, Registers *out)
{
    out->n = 0;
    for (int i = 0; i < in->n_operands; i++) collect(k, &in->operands[i], 1, out);
}

void definedness_give_slot(Decoder *d, int reg, uint32_t origin)
{
    Definedness *k = d->definedness;
    k->slot[reg] = decode_temp_pred(d);
    k->origin[reg] = origin;
    for (int i = 1; i < REG_PARTS; i++) decode_temp_pred(d);
}

/* ---- what is computed from them ---- */

static int space_of(const PtxInst *in)
{
    static const struct {
        const char *name;
        PtxSpace space;
    } spaces[] = {{"global", SPACE_GLOBAL},      {"shared", SPACE_SHARED},
                  {"shared::cta", SPACE_SHARED}, {"shared::cluster", SPACE_SHARED},
                  {"local", SPACE_LOCAL},        {"const", SPACE_CONST},
                  {"param", SPACE_PARAM},        {"param::entry", SPACE_PARAM},
                  {"param::func", SPACE_PARAM}};
    for (int i = 0; i < in->n_mods; i++)
        for (size_t s = 0; s < sizeof spaces / sizeof spaces[0]; s++)
            if (ptx_same(in->mods[i], spaces[s].name)) return (int)spaces[s].space;
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

static int loads_from(const PtxInst *in, PtxSpace space)
{
    return (is_load(in) && may_be(in, space)) ||
           (space == SPACE_SHARED && (is_op(in, "ldmatrix") || is_op(in, "wgmma")));
}

/* Is the register's first read a load of global memory? That knows by itself who left no value there. */
static int is_loaded(const Definedness *k, int reg)
{
    const PtxInst *in = &k->p->insts[k->origin[reg]];
    return is_load(in) && space_of(in) == SPACE_GLOBAL;
}

/* Returns a register without a value that the result depends on, or -1. */
static int tainted_by(const Definedness *k, const PtxInst *in, const Registers *values)
{
    int guard = in->guard >= 0 ? k->base[REG_PRED] + in->guard : -1;
    if (guard >= 0 && k->slot[guard]) return guard;
    int found = -1;
    for (int i = 0; i < values->n; i++) {
        int reg = values->reg[i];
        if (!k->slot[reg] || (found >= 0 && is_loaded(k, reg))) continue;
        found = reg;
        if (!is_loaded(k, reg)) break;
    }
    return found;
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
        definedness_values(k, in, &values);
        int by = tainted_by(k, in, &values);
        k->steps += 1 + values.n;
        if (is_op(in, "st") && by >= 0) {
            changed |=
                (may_be(in, SPACE_SHARED) && !k->shared) || (may_be(in, SPACE_LOCAL) && !k->local);
            k->shared |= may_be(in, SPACE_SHARED);
            k->local |= may_be(in, SPACE_LOCAL);
            if (*from < 0) *from = by;
        }
        if (is_op(in, "call") || is_op(in, "ret")) continue; /* results: add_doubtful */
        if ((k->shared && loads_from(in, SPACE_SHARED)) ||
            (k->local && loads_from(in, SPACE_LOCAL)))
            by = by >= 0 ? by : *from;
        if (by < 0) continue;
        definedness_dests(k, in, &dests);
        for (int j = 0; j < dests.n; j++) {
            if (k->slot[dests.reg[j]]) continue;
            definedness_give_slot(d, dests.reg[j], k->origin[by]);
            changed = 1;
        }
    }
    return changed;
}

/* Gives slots to what a load of shared memory or a shuffle may leave doubtful (memory/doubts.h), to
 * what another kernel may have left undefined in global memory, and to the results of calls. */
static void add_doubtful(Decoder *d, Definedness *k)
{
    Registers dests;
    for (int i = 0; i < d->p->n_insts; i++) {
        const PtxInst *in = &d->p->insts[i];
        if (in->bad || !(loads_from(in, SPACE_SHARED) || loads_from(in, SPACE_GLOBAL) ||
                         loads_from(in, SPACE_LOCAL) || is_op(in, "shfl") || is_op(in, "call")))
            continue;
        definedness_dests(k, in, &dests);
        for (int j = 0; j < dests.n; j++)
            if (!k->slot[dests.reg[j]]) definedness_give_slot(d, dests.reg[j], (uint32_t)i);
    }
    for (int i = 0; i < k->n_parameters; i++)
        if (!k->slot[k->first_word + i]) definedness_give_slot(d, k->first_word + i, 0);
}

/* What memory keeps without a value was read by the register that was stored there. */
static void trace_origins(Decoder *d, Definedness *k, int from)
{
    for (int r = 0; r < k->n_registers && from >= 0; r++) {
        const PtxInst *in = &d->p->insts[k->origin[r]];
        if (k->slot[r] && ((k->shared && loads_from(in, SPACE_SHARED)) ||
                           (k->local && loads_from(in, SPACE_LOCAL))))
            k->origin[r] = k->origin[from];
    }
}

static void number_registers(Decoder *d, Definedness *k)
{
    k->p = d->p;
    for (int c = 0; c < REG_128; c++) {
        k->base[c] = k->n_registers;
        k->n_registers += (int)d->p->n_regs[c] + 1;
    }
    k->first_word = k->n_registers;
    k->n_words = d->f->unsupported ? 0 : (int)(d->f->rows32 - d->p->n_regs[REG_32]);
    k->n_registers += k->n_words;
    for (int i = 0; i < d->p->n_params && !d->p->is_entry; i++)
        k->n_parameters += (int)((d->p->params[i]->size + 3) / 4);
    if (k->n_parameters > k->n_words) k->n_parameters = k->n_words;
    k->slot = memory_array((size_t)k->n_registers + 1, sizeof(uint32_t));
    k->origin = memory_array((size_t)k->n_registers + 1, sizeof(uint32_t));
}

static void find_constants(Definedness *k)
{
    Registers dests;
    k->set_by = memory_array((size_t)k->n_registers + 1, sizeof(int));
    for (int i = 0; i < k->p->n_insts; i++) {
        const PtxInst *in = &k->p->insts[i];
        if (in->bad) continue;
        definedness_dests(k, in, &dests);
        int once = is_op(in, "mov") && in->guard < 0 && in->n_operands == 2;
        for (int j = 0; j < dests.n; j++)
            k->set_by[dests.reg[j]] = k->set_by[dests.reg[j]] || !once ? -1 : i + 1;
    }
}

/* Hands the slots to the function. */
static void set_slots(Decoder *d, const Definedness *k)
{
    Function *f = d->f;
    f->n_slots = (int)(d->next_pred - f->first_slot);
    if (!d->code->follow) return;
    f->first_event = d->next_pred;
    for (int i = 0; i < f->n_slots / REG_PARTS; i++) decode_temp_pred(d);
    f->first_word = d->p->n_regs[REG_32];
    f->words = ptx_arena_alloc(d->code->ptx.arena, sizeof(uint32_t) * ((size_t)k->n_words + 1));
    for (int i = 0; i < k->n_words; i++) f->words[i] = k->slot[k->first_word + i];
}

/* The registers that have slots by now; words of parameter variables are none. */
static void note_unset(Decoder *d, const Definedness *k)
{
    Function *f = d->f;
    int n = 0;
    f->undefined =
        ptx_arena_alloc(d->code->ptx.arena, sizeof(uint32_t) * (size_t)f->n_undefined + 1);
    f->unset = ptx_arena_alloc(d->code->ptx.arena, sizeof *f->unset * (size_t)f->n_undefined + 1);
    for (int i = 0; i < f->n_undefined; i++)
        f->undefined[i] = f->first_slot + (uint32_t)(i * REG_PARTS);
    for (int r = 0; r < k->n_registers && n < f->n_undefined; r++) {
        if (!k->slot[r]) continue;
        int cls = REG_PRED;
        while (cls + 1 < REG_128 && k->base[cls + 1] <= r) cls++;
        f->unset[n++] = (struct UnsetRegister){r < k->first_word ? (RegClass)cls : REG_PRED,
                                               (uint32_t)(r - k->base[cls])};
    }
}

void definedness_find(Decoder *d, const unsigned char *leader)
{
    Definedness *k = memory_alloc(sizeof *k);
    Function *f = d->f;
    int from = -1;
    d->definedness = k;
    number_registers(d, k);
    f->first_slot = d->next_pred;
    definedness_seeds(d, leader);
    note_unset(d, k);
    if (d->code->follow) add_doubtful(d, k);
    if (d->next_pred == f->first_slot) {
        definedness_release(d);
        return;
    }
    while (spread_once(d, k, &from) && k->steps < STEPS_MAX) {
    }
    if (d->code->follow) trace_origins(d, k, from);
    find_constants(k);
    if (k->steps >= STEPS_MAX) f->unsupported = "it has too many variables without a value";
    set_slots(d, k);
    decode_emit(d, h_undefine);
}

void definedness_release(Decoder *d)
{
    if (!d->definedness) return;
    free(d->definedness->slot);
    free(d->definedness->origin);
    free(d->definedness->set_by);
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

static int is_async_store(const PtxInst *in)
{
    return is_op(in, "st") && in->n_mods && ptx_same(in->mods[0], "async");
}

/* Operations whose values, not only addresses, must be defined. */
static int needs_values(const PtxInst *in)
{
    if (is_op(in, "wmma") && in->n_mods && ptx_same(in->mods[0], "store")) return 1;
    if (is_async_store(in)) return 1;
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

/* Does it look at the lanes that a mask names? */
static int is_by_mask(const PtxInst *in)
{
    return is_op(in, "vote") || is_op(in, "match") || is_op(in, "redux");
}

static int kind_of(const PtxInst *in)
{
    int of_predicates = in->n_mods == 1 && ptx_same(in->mods[0], "pred") && in->n_operands == 3;
    if (is_op(in, "selp")) return TRACK_SELECT;
    if (of_predicates && is_op(in, "and")) return TRACK_AND;
    if (of_predicates && is_op(in, "or")) return TRACK_OR;
    if (is_op(in, "shfl")) return TRACK_SHUFFLE;
    if (is_by_mask(in) || is_op(in, "movmatrix")) return TRACK_GATHER;
    if (is_op(in, "mma") || (is_op(in, "wmma") && in->n_mods && ptx_same(in->mods[0], "mma")))
        return TRACK_TILE;
    if (is_op(in, "ldmatrix")) return TRACK_MATRIX;
    if (is_op(in, "wgmma") && ptx_has_dest(in)) return TRACK_PRODUCT;
    if (in->n_operands < 2) return TRACK_JOIN; /* refused, if it is an access */
    if (is_load(in) &&
        (may_be(in, SPACE_SHARED) || may_be(in, SPACE_LOCAL) || may_be(in, SPACE_GLOBAL)))
        return TRACK_LOAD;
    if (is_op(in, "st") && space_of(in) != SPACE_PARAM && !is_async_store(in)) return TRACK_STORE;
    return TRACK_JOIN;
}

/* The items of a load or store, one register each, and their bits; 0, which is no register of the text,
 * for a constant or no destination. */
static uint8_t *collect_items(Decoder *d, const PtxOperand *o, Registers *out)
{
    int n = o->kind == OPND_VEC ? o->n : 1;
    uint8_t *widths = ptx_arena_alloc(d->code->ptx.arena, (size_t)n + 1);
    out->n = 0;
    for (int i = 0; i < n && i < OPERANDS_MAX; i++) {
        const PtxOperand *item = o->kind == OPND_VEC ? &o->items[i] : o;
        int reg = definedness_register(d->definedness, item);
        widths[out->n] = item->width;
        definedness_add(out, reg < 0 ? 0 : reg);
    }
    return widths;
}

/* The registers of the factors and of the old sums, in their order; 0 for a constant. */
static void collect_fragments(const Definedness *k, const PtxInst *in, Registers *out)
{
    out->n = 0;
    for (int o = 1; o < in->n_operands; o++) {
        const PtxOperand *of = &in->operands[o];
        int is_vector = of->kind == OPND_VEC;
        for (int i = 0; i < (is_vector ? of->n : 1); i++) {
            int reg = definedness_register(k, is_vector ? &of->items[i] : of);
            definedness_add(out, reg < 0 ? 0 : reg);
        }
    }
}

static MemOp *memory_of(Decoder *d, const PtxOperand *address)
{
    MemOp *mo = ptx_arena_alloc(d->code->ptx.arena, sizeof *mo);
    mo->space = (uint8_t)decode_space(d);
    const ValueType *t = decode_type(d);
    mo->element = (uint8_t)(t && t->bits >= 8 ? t->bits / 8 : 1);
    mo->is_signed = t && t->is_signed && !t->is_float;
    return decode_address(d, address, mo) ? NULL : mo;
}

/* Both values of a selp and its predicate, each in its place; a constant has slot 0. */
static void select_sources(Decoder *d, TrackOp *t)
{
    const Definedness *k = d->definedness;
    uint32_t *slots = ptx_arena_alloc(d->code->ptx.arena, sizeof(uint32_t) * 3);
    for (int i = 0; i < 3; i++) {
        int reg = definedness_register(k, &d->in->operands[i + 1]);
        slots[i] = reg < 0 ? 0 : k->slot[reg];
    }
    t->sources = slots;
    t->n_sources = 3;
}

/* The registers of an instruction: `musts` must have a value. */
typedef struct {
    Registers dests, values, musts;
} Uses;

/* Of a wgmma, the descriptors and the predicate must be defined before it. The accumulators and registers of
 * the first factor are followed after it, in this order. */
static void divide_product(const Definedness *k, TrackOp *t, int after, Uses *u)
{
    int n = u->values.n;
    u->values.n = u->musts.n = 0;
    for (int i = 0; i < n; i++) {
        int reg = u->values.reg[i], is_32 = reg >= k->base[REG_32] && reg < k->base[REG_64];
        if (is_32 == after) definedness_add(after ? &u->values : &u->musts, reg);
    }
    if (after) return;
    t->kind = TRACK_JOIN;
    u->dests.n = 0;
}

/* Fills in the slots. Returns 0 when the instruction touches none. */
static int fill_in(Decoder *d, TrackOp *t, int after)
{
    const Definedness *k = d->definedness;
    const PtxInst *in = d->in;
    Uses u;
    t->kind = (uint8_t)kind_of(in);
    t->use = use_of(in);
    t->guard = in->guard >= 0 ? k->slot[k->base[REG_PRED] + in->guard] : 0;
    definedness_dests(k, in, &u.dests);
    definedness_values(k, in, &u.values);
    definedness_addresses(k, in, &u.musts);
    if (t->kind == TRACK_PRODUCT) divide_product(k, t, after, &u);
    if (t->kind == TRACK_TILE) collect_fragments(k, in, &u.values);
    if (t->kind == TRACK_LOAD && after) t->kind = TRACK_LOADED;
    if (t->kind == TRACK_STORE && after) t->kind = TRACK_STORED;
    if (is_load(in) && t->kind != TRACK_JOIN)
        t->widths = collect_items(d, &in->operands[0], &u.dests);
    if (t->kind == TRACK_STORE || t->kind == TRACK_STORED)
        t->widths = collect_items(d, &in->operands[1], &u.values);
    int leaves = is_op(in, "call") || is_op(in, "ret"),
        argument = leaves || (is_op(in, "st") && space_of(in) == SPACE_PARAM);
    t->doubts = argument && !d->code->follow;
    for (int i = 0; i < u.values.n && (needs_values(in) || t->doubts); i++)
        if (u.values.reg[i] < k->first_word || (leaves && t->doubts))
            definedness_add(&u.musts, u.values.reg[i]);
    if (in->guard >= 0 && (needs_values(in) || t->kind == TRACK_STORE))
        definedness_add(&u.musts, k->base[REG_PRED] + in->guard);
    if (leaves) u.values.n = u.dests.n = 0; /* they are followed from frame to frame */
    if (t->kind == TRACK_LOADED) u.values.n = 0;
    if (t->kind == TRACK_LOADED || t->kind == TRACK_STORED)
        u.musts.n = 0; /* they have been looked at before it */
    t->dests = slots_of(d, &u.dests);
    t->sources = slots_of(d, &u.values);
    t->musts = slots_of(d, &u.musts);
    t->n_dests = (uint8_t)u.dests.n;
    t->n_sources = (uint8_t)u.values.n;
    t->n_musts = (uint8_t)u.musts.n;
    if (t->kind == TRACK_SELECT) select_sources(d, t);
    t->origins = ptx_arena_alloc(d->code->ptx.arena,
                                 sizeof(uint32_t) * ((size_t)u.musts.n + (size_t)u.values.n + 1));
    for (int i = 0; i < u.musts.n; i++) t->origins[i] = k->origin[u.musts.reg[i]];
    for (int i = 0; i < u.values.n; i++) t->origins[u.musts.n + i] = k->origin[u.values.reg[i]];
    int stores = t->kind == TRACK_STORE &&
                 ((k->shared && may_be(in, SPACE_SHARED)) || (k->local && may_be(in, SPACE_LOCAL)));
    int touches = t->guard || stores || any(t->dests, u.dests.n) || any(t->sources, t->n_sources) ||
                  any(t->musts, u.musts.n);
    if (touches && t->kind == TRACK_JOIN) t->flow = definedness_flow(d, &u.dests, &u.values);
    return touches;
}

static void emit(Decoder *d, int after)
{
    TrackOp found = {0};
    if (!d->definedness || d->in->bad) return;
    int kind = kind_of(d->in),
        is_late = kind == TRACK_SHUFFLE || kind == TRACK_GATHER || kind == TRACK_MATRIX ||
                  kind == TRACK_TILE,
        is_both = (d->code->follow && kind == TRACK_LOAD) || kind == TRACK_PRODUCT ||
                  (kind == TRACK_STORE && may_be(d->in, SPACE_GLOBAL));
    if ((is_late != after && !is_both) || !fill_in(d, &found, after)) return;
    TrackOp *t = ptx_arena_alloc(d->code->ptx.arena, sizeof *t);
    *t = found;
    if (t->kind == TRACK_LOAD || t->kind == TRACK_STORE || t->kind == TRACK_STORED) {
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
    i->k0 = kind == TRACK_GATHER && is_by_mask(d->in);
    i->k1 = kind == TRACK_TILE && d->out[d->n - 2].fn == h_wmma;
    i->track = t;
}

void definedness_before(Decoder *d)
{
    d->mods_used = 0;
    emit(d, 0);
}

void definedness_after(Decoder *d)
{
    d->mods_used = 0;
    emit(d, 1);
}
