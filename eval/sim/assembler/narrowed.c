/* Arithmetic of 64 bits that leads to addresses of shared memory alone. These have 32 bits, so that the
 * assembler leaves the upper half out: an index is one product, a step one sum (ptxas 13.0 for sm_90,
 * 2026-11-30). */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/assembler/assembler.h"

typedef struct {
    uint8_t *wide; /* by register of 64 bits: something reads its upper half */
    int changed;
} Halves;

/* Does the lower half of the result follow from the lower halves of what the instruction reads? */
static int keeps_halves(const PtxInst *in)
{
    static const char *const ops[] = {"add", "sub", "mov", "mul", "mad", "shl"};
    if (!in->n_mods || in->operands[0].kind != OPND_REG || in->operands[0].cls != REG_64) return 0;
    for (int i = 0; i < in->n_mods; i++)
        if (!strcmp(in->mods[i], "hi") || !strcmp(in->mods[i], "cc") || *in->mods[i] == 'f')
            return 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(in->op, ops[i])) return 1;
    return 0;
}

/* Is the address of the instruction one of shared memory, of a type of access with one address? */
static int is_shared(const PtxInst *in)
{
    static const char *const ops[] = {"ld", "st", "atom", "red"};
    if (!ptx_has_mod(in, "shared") && !ptx_has_mod(in, "shared::cta")) return 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(in->op, ops[i])) return 1;
    return 0;
}

static void read_whole(Halves *h, const PtxOperand *o)
{
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        read_whole(h, &o->items[i]);
    if (o->kind == OPND_ADDR) read_whole(h, &o->items[0]);
    if (o->kind != OPND_REG || o->cls != REG_64 || h->wide[o->reg]) return;
    h->wide[o->reg] = 1;
    h->changed = 1;
}

static void visit(Halves *h, const PtxInst *in)
{
    const int dest = ptx_has_dest(in);
    if (in->bad || !in->n_operands || (keeps_halves(in) && !h->wide[in->operands[0].reg])) return;
    for (int i = dest; i < in->n_operands; i++)
        if (in->operands[i].kind != OPND_ADDR || !is_shared(in)) read_whole(h, &in->operands[i]);
}

void narrowed_find(const PtxFunction *p, uint8_t *cost)
{
    Halves h = {memory_alloc((size_t)p->n_regs[REG_64] + 1), 1};
    while (h.changed) {
        h.changed = 0;
        for (int i = p->n_insts - 1; i >= 0; i--) visit(&h, &p->insts[i]);
    }
    for (int i = 0; i < p->n_insts; i++) {
        const PtxInst *in = &p->insts[i];
        if (!in->bad && in->n_operands && keeps_halves(in) && !h.wide[in->operands[0].reg])
            cost[i] |= COST_NARROW;
    }
    free(h.wide);
}
