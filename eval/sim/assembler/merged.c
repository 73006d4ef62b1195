/* Atomics that the assembler merges. Where all lanes of a warp add integers to one address, or take
 * their minimum, maximum or a bitwise operation, the lanes combine their values first, and one of
 * them executes the atomic. The assembler does so where it can prove that the address is the same
 * in all lanes, and where nothing reads the result or it is a sum. Shared memory also adds ones of
 * any lanes in one pass.
 *
 * A register is uniform when each of its definitions reads uniform values only. The branches around
 * a definition are not looked at. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/assembler/assembler.h"

typedef struct {
    uint8_t *varies[REG_CLASSES]; /* by register: it may differ between lanes */
    uint8_t *read[REG_CLASSES];   /* by register: an instruction reads it */
    int changed;
} Lanes;

static int varies(const Lanes *l, const PtxOperand *o)
{
    if (o->kind == OPND_REG) return o->cls >= REG_CLASSES || l->varies[o->cls][o->reg];
    if (o->kind == OPND_SPECIAL) return ptx_differs_by_lane((PtxSpecial)o->value);
    if (o->kind == OPND_VAR) return o->var->space == SPACE_LOCAL;
    if (o->kind == OPND_ADDR) return varies(l, &o->items[0]);
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        if (varies(l, &o->items[i])) return 1;
    return 0;
}

static void vary(Lanes *l, const PtxOperand *o)
{
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        vary(l, &o->items[i]);
    if (o->pair) vary(l, o->pair);
    if (o->kind != OPND_REG || o->cls >= REG_CLASSES || l->varies[o->cls][o->reg]) return;
    l->varies[o->cls][o->reg] = 1;
    l->changed = 1;
}

static void note_read(Lanes *l, const PtxOperand *o)
{
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        note_read(l, &o->items[i]);
    if (o->kind == OPND_ADDR) note_read(l, &o->items[0]);
    if (o->kind == OPND_REG && o->cls < REG_CLASSES) l->read[o->cls][o->reg] = 1;
}

/* Does the instruction give each lane a value of its own, whatever it reads? */
static int is_lane_op(const char *op)
{
    static const char *const ops[] = {"atom", "shfl",  "ldmatrix", "movmatrix", "mma",
                                      "wmma", "match", "call",     "elect",     "wgmma"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(op, ops[i])) return 1;
    return 0;
}

static int has_mod(const PtxInst *in, const char *mod)
{
    for (int i = 0; i < in->n_mods; i++)
        if (!strcmp(in->mods[i], mod)) return 1;
    return 0;
}

static void visit(Lanes *l, const PtxInst *in)
{
    if (in->bad || !in->n_operands || !ptx_has_dest(in)) return;
    int differs = is_lane_op(in->op) || has_mod(in, "local") ||
                  (in->guard >= 0 && l->varies[REG_PRED][in->guard]);
    for (int i = 1; i < in->n_operands && !differs; i++) differs = varies(l, &in->operands[i]);
    if (differs) vary(l, &in->operands[0]);
}

/* Does an instruction read the atomic's result? */
static int is_read(const Lanes *l, const PtxInst *in)
{
    const PtxOperand *o = &in->operands[0];
    if (strcmp(in->op, "atom")) return 0;
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        if (o->items[i].kind == OPND_REG && l->read[o->items[i].cls][o->items[i].reg]) return 1;
    return o->kind == OPND_REG && o->cls < REG_CLASSES && l->read[o->cls][o->reg];
}

static int is_merged(const Lanes *l, const PtxInst *in)
{
    static const char *const ops[] = {"add", "min", "max", "and", "or", "xor"};
    int returns = !strcmp(in->op, "atom"), known = 0, add = has_mod(in, "add");
    if (in->n_operands != returns + 2) return 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) known |= has_mod(in, ops[i]);
    if (!known || (!has_mod(in, "u32") && !has_mod(in, "s32") && !has_mod(in, "b32"))) return 0;
    const PtxOperand *to = &in->operands[returns], *value = &in->operands[returns + 1];
    int used = is_read(l, in);
    if (!varies(l, to)) return add || !used;
    int shared = has_mod(in, "shared") || has_mod(in, "shared::cta");
    return shared && add && !used && value->kind == OPND_INT && value->value == 1;
}

static int is_atomic(const PtxInst *in)
{
    return !in->bad && (!strcmp(in->op, "atom") || !strcmp(in->op, "red"));
}

uint8_t *merged_find(const PtxFunction *p)
{
    Lanes l = {.changed = 1};
    uint8_t *merged = memory_alloc((size_t)p->n_insts + 1);
    int atomics = 0;
    for (int i = 0; i < p->n_insts; i++) atomics += is_atomic(&p->insts[i]);
    if (!atomics) return merged;
    for (int k = 0; k < REG_CLASSES; k++) {
        l.varies[k] = memory_alloc((size_t)p->n_regs[k] + 1);
        l.read[k] = memory_alloc((size_t)p->n_regs[k] + 1);
    }
    while (l.changed) {
        l.changed = 0;
        for (int i = 0; i < p->n_insts; i++) visit(&l, &p->insts[i]);
    }
    for (int i = 0; i < p->n_insts; i++)
        for (int k = ptx_has_dest(&p->insts[i]); k < p->insts[i].n_operands; k++)
            note_read(&l, &p->insts[i].operands[k]);
    for (int i = 0; i < p->n_insts; i++)
        if (is_atomic(&p->insts[i]))
            merged[i] = (uint8_t)((is_merged(&l, &p->insts[i]) ? ATOMIC_MERGED : 0) |
                                  (is_read(&l, &p->insts[i]) ? 0 : ATOMIC_UNREAD));
    for (int k = 0; k < REG_CLASSES; k++) {
        free(l.varies[k]);
        free(l.read[k]);
    }
    return merged;
}
