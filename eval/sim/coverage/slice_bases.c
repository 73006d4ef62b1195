/* A value comes from where the operands of its instruction come from, in whatever order they run. */
#include "eval/sim/coverage/slice_bases.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

uint64_t bases_of(const Bases *b, const PtxOperand *o)
{
    uint64_t bits = 0;
    if (o->kind == OPND_REG) return b->of[o->cls][o->reg];
    if (o->kind == OPND_VAR)
        return o->var->space == SPACE_SHARED || o->var->space == SPACE_LOCAL ? BASE_OWN
                                                                             : BASE_OTHER;
    if (o->kind == OPND_ADDR) return bases_of(b, &o->items[0]);
    for (int i = 0; i < o->n; i++) bits |= bases_of(b, &o->items[i]);
    return bits;
}

/* What is loaded: a parameter, or what may be an address. */
static uint64_t loaded(const PtxFunction *f, const PtxInst *in)
{
    const PtxOperand *from = in->n_operands > 1 ? &in->operands[1] : NULL, *to = &in->operands[0];
    int is_wide = to->kind == OPND_VEC ? to->n && to->items[0].width >= 64 : to->width >= 64;
    if (from && from->kind == OPND_ADDR && from->items[0].kind == OPND_VAR)
        for (int i = 0; i < f->n_params; i++)
            if (from->items[0].var == f->params[i]) return i < BASE_PARAMS ? 1ull << i : BASE_OTHER;
    return is_wide ? BASE_OTHER : 0;
}

/* An index that was loaded becomes a distance so. */
static int is_scaled(const PtxInst *in)
{
    return ptx_same(in->op, "shl") || ptx_same(in->op, "mul");
}

static uint64_t computed(const PtxFunction *f, const Bases *b, const PtxInst *in)
{
    uint64_t bits = 0;
    if (ptx_same(in->op, "ld") || ptx_same(in->op, "atom") || ptx_same(in->op, "ldu"))
        return loaded(f, in);
    for (int i = 1; i < in->n_operands; i++) bits |= bases_of(b, &in->operands[i]);
    return is_scaled(in) ? bits & ~BASE_OTHER : bits;
}

/* Adds the bits to the destination. Returns 1 where there are new ones. */
static int add(Bases *b, const PtxOperand *to, uint64_t bits)
{
    int changed = 0;
    for (int i = 0; to->kind == OPND_VEC && i < to->n; i++) changed |= add(b, &to->items[i], bits);
    if (to->kind != OPND_REG || !(bits & ~b->of[to->cls][to->reg])) return changed;
    b->of[to->cls][to->reg] |= bits;
    return 1;
}

void bases_find(const PtxFunction *f, Bases *out)
{
    for (int c = 0; c < REG_CLASSES; c++)
        out->of[c] = memory_array((size_t)f->n_regs[c] + 1, sizeof **out->of);
    for (int changed = 1; changed;) {
        changed = 0;
        for (int i = 0; i < f->n_insts; i++)
            if (ptx_has_dest(&f->insts[i]))
                changed |= add(out, &f->insts[i].operands[0], computed(f, out, &f->insts[i]));
    }
}

void bases_release(Bases *b)
{
    for (int c = 0; c < REG_CLASSES; c++) free(b->of[c]);
    memset(b, 0, sizeof *b);
}
