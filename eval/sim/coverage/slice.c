/* The slice grows from a list of registers that are needed. */
#include "eval/sim/coverage/slice.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/coverage/slice_bases.h"
#include "eval/sim/coverage/slice_decode.h"

/* Definitions of registers: a list by class and register. */
typedef struct {
    int *first[REG_CLASSES]; /* an entry of `next` and `inst`; -1: none */
    int *next, *inst, n, cap;
} Definitions;

typedef struct {
    const PtxFunction *f;
    SliceKind kind; /* the accesses that are followed */
    Flow flow;
    Definitions defs;
    uint8_t *stores;             /* by PTX instruction: a store, or load, that is followed */
    uint8_t *taken;              /* by PTX instruction */
    uint8_t *decides;            /* by block: its branch is needed */
    uint8_t *followed;           /* by block: the branches that decide about it are taken */
    int *work, n_work, cap_work; /* PTX instructions whose operands are to be looked at */
} Growth;

static void define(Growth *g, const PtxOperand *o, int inst)
{
    Definitions *d = &g->defs;
    if (o->kind == OPND_VEC)
        for (int i = 0; i < o->n; i++) define(g, &o->items[i], inst);
    if (o->pair) define(g, o->pair, inst);
    if (o->kind != OPND_REG) return;
    if (d->n == d->cap) {
        d->cap = 2 * d->cap + 64;
        d->next = memory_grow(d->next, (size_t)d->cap, sizeof *d->next);
        d->inst = memory_grow(d->inst, (size_t)d->cap, sizeof *d->inst);
    }
    d->next[d->n] = d->first[o->cls][o->reg];
    d->inst[d->n] = inst;
    d->first[o->cls][o->reg] = d->n++;
}

static void find_definitions(Growth *g)
{
    const PtxFunction *f = g->f;
    for (int c = 0; c < REG_CLASSES; c++) {
        g->defs.first[c] = memory_array((size_t)f->n_regs[c] + 1, sizeof(int));
        for (uint32_t i = 0; i <= f->n_regs[c]; i++) g->defs.first[c][i] = -1;
    }
    for (int i = 0; i < f->n_insts; i++)
        if (ptx_has_dest(&f->insts[i])) define(g, &f->insts[i].operands[0], i);
}

static void take_block(Growth *g, int block);

static void take(Growth *g, int inst)
{
    if (g->taken[inst]) return;
    g->taken[inst] = 1;
    memory_room(g->work, g->n_work, g->cap_work, 64);
    g->work[g->n_work++] = inst;
    take_block(g, g->flow.block_of[inst]);
}

/* What decides whether the block runs is needed. */
static void take_block(Growth *g, int block)
{
    if (g->followed[block]) return;
    g->followed[block] = 1;
    for (int i = g->flow.deciding_first[block]; i < g->flow.deciding_first[block + 1]; i++) {
        int by = g->flow.deciding[i];
        g->decides[by] = 1;
        take(g, g->flow.blocks[by].last - 1);
    }
}

static void need(Growth *g, const SliceSource *s, int *const cls, int *const reg)
{
    if (s->kind != SOURCE_REGISTER) return;
    for (int i = g->defs.first[cls[s->slot]][reg[s->slot]]; i >= 0; i = g->defs.next[i])
        take(g, g->defs.inst[i]);
}

/* The registers behind the slots. */
typedef struct {
    SliceSlots slots;
    int *cls, *reg;
} Numbers;

static void number_registers(const PtxFunction *f, Numbers *n)
{
    size_t all = 1;
    for (int c = 0; c < REG_CLASSES; c++) {
        n->slots.of[c] = memory_array((size_t)f->n_regs[c] + 1, sizeof(int));
        for (uint32_t i = 0; i <= f->n_regs[c]; i++) n->slots.of[c][i] = -1;
        all += f->n_regs[c] + 1;
    }
    n->cls = memory_array(all, sizeof(int));
    n->reg = memory_array(all, sizeof(int));
}

/* Notes which registers have the slots from `from` on. */
static void note_registers(const PtxOperand *o, Numbers *n)
{
    for (int i = 0; i < o->n; i++) note_registers(&o->items[i], n);
    if (o->kind == OPND_ADDR) note_registers(&o->items[0], n);
    if (o->pair) note_registers(o->pair, n);
    if (o->kind != OPND_REG || n->slots.of[o->cls][o->reg] < 0) return;
    n->cls[n->slots.of[o->cls][o->reg]] = o->cls;
    n->reg[n->slots.of[o->cls][o->reg]] = (int)o->reg;
}

static void decode(const Growth *g, int inst, Numbers *n, SliceInst *out)
{
    const PtxInst *in = &g->f->insts[inst];
    if (g->stores[inst])
        slice_decode_access(in, g->kind, &n->slots, out);
    else
        slice_decode(g->f, in, &n->slots, out);
    out->inst = inst;
    for (int i = 0; i < in->n_operands; i++) note_registers(&in->operands[i], n);
    if (in->guard < 0) return;
    n->cls[out->guard.slot] = REG_PRED;
    n->reg[out->guard.slot] = in->guard;
}

/* The kind asks which way a block goes, not where it accesses memory. */
static int is_of_ways(SliceKind kind)
{
    return kind == SLICE_BRANCHES || kind == SLICE_CHOICES;
}

static void need_predicate(Growth *g, Numbers *n, const PtxOperand *o)
{
    SliceSource s = {.kind = SOURCE_REGISTER};
    if (o->kind != OPND_REG || o->cls != REG_PRED) return;
    s.slot = slots_of(&n->slots, o);
    note_registers(o, n);
    need(g, &s, n->cls, n->reg);
}

static void need_choices(Growth *g, Numbers *n)
{
    for (int i = 0; i < g->f->n_insts; i++) {
        const PtxInst *in = &g->f->insts[i];
        if (ptx_same(in->op, "selp") && in->n_operands > 3) need_predicate(g, n, &in->operands[3]);
    }
}

static void grow(Growth *g, Numbers *n)
{
    SliceInst s;
    for (int i = 0; i < g->f->n_insts; i++)
        if (g->stores[i]) take(g, i);
    for (int b = 0; b < g->flow.n && is_of_ways(g->kind); b++)
        if (g->flow.blocks[b].end == ENDS_BRANCH) {
            g->decides[b] = 1;
            take(g, g->flow.blocks[b].last - 1);
        }
    if (g->kind == SLICE_CHOICES) need_choices(g, n);
    while (g->n_work) {
        decode(g, g->work[--g->n_work], n, &s);
        need(g, &s.guard, n->cls, n->reg);
        for (int i = 0; i < s.n_sources; i++) need(g, &s.sources[i], n->cls, n->reg);
    }
}

static int is_branch(const PtxInst *in)
{
    return ptx_same(in->op, "bra") || ptx_same(in->op, "ret") || ptx_same(in->op, "exit");
}

/* Does a comparison look at the sign of its first source alone? */
static int is_of_sign(const SliceInst *in)
{
    const SliceSource *with = &in->sources[1];
    if (in->op != OP_COMPARE || with->kind != SOURCE_CONSTANT || in->bits > 32 || !in->is_signed)
        return 0;
    int is_zero = !(uint32_t)with->value;
    return is_zero ? in->k == IS_LT || in->k == IS_GE
                   : (uint32_t)with->value == UINT32_MAX && (in->k == IS_GT || in->k == IS_LE);
}

/* Does it take the high half alone of source i? The compiler divides numbers of 64 bits that way by 32. */
static int is_of_high_half(const SliceInst *in, int i)
{
    const SliceSource *with = &in->sources[!i];
    return in->op == OP_AND && in->bits == 64 && with->kind == SOURCE_CONSTANT &&
           with->value == ~(uint64_t)UINT32_MAX;
}

/* Does anything but the sign of a value matter to the instruction that uses it, or, of 64 bits, but the high
 * half? */
static int needs_more(const SliceInst *in, int slot, int bits)
{
    for (int i = 0; i < in->n_sources; i++)
        if (in->sources[i].kind == SOURCE_REGISTER && in->sources[i].slot == slot &&
            !(bits == 64 ? is_of_high_half(in, i) : i == 0 && is_of_sign(in)) &&
            !(in->op == OP_OR && in->k && in->bits == bits))
            return 1;
    return 0;
}

/* Notes the or of values of which the sign alone matters, or the high half. */
static void find_signs(Slice *s)
{
    for (int i = s->n_insts - 1; i >= 0; i--) {
        SliceInst *in = &s->insts[i];
        if (in->op != OP_OR || (in->bits != 32 && in->bits != 64) || in->n_dests != 1 ||
            in->dests[0] < 0)
            continue;
        in->k = 1;
        for (int k = 0; k < s->n_insts && in->k; k++)
            if (k != i && needs_more(&s->insts[k], in->dests[0], in->bits)) in->k = 0;
    }
}

static void write_slice(const Growth *g, Numbers *n, Slice *s)
{
    s->n_blocks = g->flow.n;
    s->blocks = memory_array((size_t)s->n_blocks + 1, sizeof *s->blocks);
    s->insts = memory_array((size_t)g->f->n_insts + 1, sizeof *s->insts);
    for (int b = 0; b < s->n_blocks; b++) {
        const FlowBlock *from = &g->flow.blocks[b];
        SliceBlock *to = &s->blocks[b];
        *to = (SliceBlock){.first = s->n_insts,
                           .end = from->end,
                           .target = from->target,
                           .join = from->join,
                           .is_needed = g->decides[b],
                           .n_insts = from->last - from->first};
        for (int i = from->first; i < from->last; i++) {
            if (!g->taken[i] || is_branch(&g->f->insts[i])) continue;
            SliceInst *in = &s->insts[s->n_insts++];
            decode(g, i, n, in);
        }
        to->last = s->n_insts;
        if (to->is_needed) to->when = slice_guard(&g->f->insts[from->last - 1], &n->slots);
    }
    s->n_slots = n->slots.n;
    find_signs(s);
}

/* The stores, or loads, that may reach what `where` says. */
static void find_stores(Growth *g, uint64_t where)
{
    Bases bases;
    g->stores = memory_alloc((size_t)g->f->n_insts + 1);
    if (is_of_ways(g->kind)) return;
    bases_find(g->f, &bases);
    for (int i = 0; i < g->f->n_insts; i++) {
        const PtxInst *in = &g->f->insts[i];
        int at = slice_address(in, g->kind);
        if (!slice_is(in, g->kind)) continue;
        uint64_t from = in->n_operands > at ? bases_of(&bases, &in->operands[at]) : BASE_OTHER;
        g->stores[i] = !from || (from & (where | BASE_OTHER)) != 0;
    }
    bases_release(&bases);
}

/* Does the module have a function, other than kernels, with such an access of global memory? */
static int has_functions_with_accesses(const PtxModule *m, SliceKind kind)
{
    for (int i = 0; i < m->n_functions; i++) {
        const PtxFunction *f = &m->functions[i];
        for (int k = 0; !f->is_entry && k < f->n_insts; k++)
            if (slice_is(&f->insts[k], kind)) return 1;
    }
    return 0;
}

static const char *refusal(const PtxModule *m, const PtxFunction *f, SliceKind kind)
{
    for (int i = 0; i < f->n_insts; i++)
        if (ptx_same(f->insts[i].op, "call") && has_functions_with_accesses(m, kind))
            return "a call of a function that reaches global memory";
    return NULL;
}

Slice *slice_new(const PtxModule *m, const PtxFunction *f, uint64_t where, SliceKind kind)
{
    Slice *s = memory_alloc(sizeof *s);
    Growth g = {.f = f, .kind = kind};
    Numbers n = {0};
    s->f = f;
    if (!is_of_ways(kind) && (s->why = refusal(m, f, kind))) return s;
    if (!f->n_insts || flow_find(f, &g.flow)) {
        s->why = "branches that are not followed";
        flow_release(&g.flow);
        return s;
    }
    find_stores(&g, where);
    find_definitions(&g);
    number_registers(f, &n);
    g.taken = memory_alloc((size_t)f->n_insts + 1);
    g.decides = memory_alloc((size_t)g.flow.n + 1);
    g.followed = memory_alloc((size_t)g.flow.n + 1);
    grow(&g, &n);
    write_slice(&g, &n, s);
    flow_release(&g.flow);
    for (int c = 0; c < REG_CLASSES; c++) {
        free(g.defs.first[c]);
        free(n.slots.of[c]);
    }
    free(g.defs.next);
    free(g.defs.inst);
    free(g.stores);
    free(g.taken);
    free(g.decides);
    free(g.followed);
    free(g.work);
    free(n.cls);
    free(n.reg);
    return s;
}

void slice_free(Slice *s)
{
    if (!s) return;
    free(s->blocks);
    free(s->insts);
    free(s);
}
