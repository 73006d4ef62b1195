/* Atomics that the assembler merges. Where all lanes of a warp add integers to one address, or take
 * their minimum, maximum or a bitwise operation, the lanes combine their values first, and one of
 * them executes the atomic. The assembler does so where it can prove that the address is the same
 * in all lanes, and where nothing reads the result or it is a sum. Shared memory also adds ones of
 * any lanes in one pass.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/assembler/assembler.h"
#include "eval/sim/assembler/varying.h"

typedef struct {
    Varying varying;
    uint8_t *read[REG_CLASSES]; /* by register: an instruction reads it */
} Lanes;

static void note_read(Lanes *l, const PtxOperand *o)
{
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        note_read(l, &o->items[i]);
    if (o->kind == OPND_ADDR) note_read(l, &o->items[0]);
    if (o->kind == OPND_REG && o->cls < REG_CLASSES) l->read[o->cls][o->reg] = 1;
}

/* Does an instruction read the atomic's result? */
static int is_read(const Lanes *l, const PtxInst *in)
{
    const PtxOperand *o = &in->operands[0];
    if (!in->n_operands || strcmp(in->op, "atom")) return 0;
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        if (o->items[i].kind == OPND_REG && l->read[o->items[i].cls][o->items[i].reg]) return 1;
    return o->kind == OPND_REG && o->cls < REG_CLASSES && l->read[o->cls][o->reg];
}

static int is_merged(const Lanes *l, const PtxInst *in)
{
    static const char *const ops[] = {"add", "min", "max", "and", "or", "xor"};
    int returns = !strcmp(in->op, "atom"), known = 0, add = ptx_has_mod(in, "add");
    if (in->n_operands != returns + 2) return 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) known |= ptx_has_mod(in, ops[i]);
    if (!known || (!ptx_has_mod(in, "u32") && !ptx_has_mod(in, "s32") && !ptx_has_mod(in, "b32")))
        return 0;
    const PtxOperand *to = &in->operands[returns], *value = &in->operands[returns + 1];
    int used = is_read(l, in);
    if (!varying_operand(&l->varying, to)) return add || !used;
    int shared = ptx_has_mod(in, "shared") || ptx_has_mod(in, "shared::cta");
    return shared && add && !used && value->kind == OPND_INT && value->value == 1;
}

static int is_atomic(const PtxInst *in)
{
    return !in->bad && (!strcmp(in->op, "atom") || !strcmp(in->op, "red"));
}

uint8_t *merged_find(const PtxFunction *p)
{
    Lanes l;
    uint8_t *merged = memory_alloc((size_t)p->n_insts + 1);
    int atomics = 0;
    for (int i = 0; i < p->n_insts; i++) atomics += is_atomic(&p->insts[i]);
    if (!atomics) return merged;
    varying_find(p, &l.varying);
    for (int k = 0; k < REG_CLASSES; k++) l.read[k] = memory_alloc((size_t)p->n_regs[k] + 1);
    for (int i = 0; i < p->n_insts; i++)
        for (int k = ptx_has_dest(&p->insts[i]); k < p->insts[i].n_operands; k++)
            note_read(&l, &p->insts[i].operands[k]);
    for (int i = 0; i < p->n_insts; i++)
        if (is_atomic(&p->insts[i]))
            merged[i] = (uint8_t)((is_merged(&l, &p->insts[i]) ? ATOMIC_MERGED : 0) |
                                  (is_read(&l, &p->insts[i]) ? 0 : ATOMIC_UNREAD));
    varying_release(&l.varying);
    for (int k = 0; k < REG_CLASSES; k++) free(l.read[k]);
    return merged;
}
