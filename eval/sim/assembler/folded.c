/* Instructions that the assembler computes itself. It unrolls a loop whose trip count is a small
 * constant, and the index arithmetic in it becomes constants. PTX still has that arithmetic, where
 * the front end left the loop. Such an instruction runs here, and costs nothing.
 *
 * A register is constant when each of its definitions reads constants only. That includes the
 * counter of a loop, which is defined by a constant and by itself. A counter that is compared with
 * a large constant belongs to a loop that stays, and so does what is defined in a loop that is not to be
 * unrolled and elsewhere, too.
 *
 * A product of 64 bits that is only added, as an index to a pointer, is one instruction with the one
 * addition that reads it, which costs nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/assembler/assembler.h"

enum { MAX_TRIPS = 64 };

typedef struct {
    const PtxFunction *p;
    uint8_t *varies[REG_CLASSES]; /* by register: it is no constant */
    int changed;
} Folding;

static int constant(const Folding *f, const PtxOperand *o)
{
    switch (o->kind) {
    case OPND_REG: return o->cls < REG_CLASSES && !f->varies[o->cls][o->reg];
    case OPND_INT:
    case OPND_F32:
    case OPND_F64: return 1;
    default: return 0;
    }
}

static void vary(Folding *f, const PtxOperand *o)
{
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        vary(f, &o->items[i]);
    if (o->pair) vary(f, o->pair);
    if (o->kind != OPND_REG || o->cls >= REG_CLASSES || f->varies[o->cls][o->reg]) return;
    f->varies[o->cls][o->reg] = 1;
    f->changed = 1;
}

static int is_arithmetic(const PtxInst *in)
{
    static const char *const ops[] = {"mov", "add", "sub", "mul", "mad",  "and", "or",
                                      "xor", "not", "shl", "shr", "setp", "cvt", "selp",
                                      "min", "max", "neg", "div", "rem",  "abs", "bfe"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(in->op, ops[i])) return 1;
    return 0;
}

/* Does the instruction read constants only? */
static int reads_constants(const Folding *f, const PtxInst *in)
{
    if (in->guard >= 0 && f->varies[REG_PRED][in->guard]) return 0;
    for (int i = 1; i < in->n_operands; i++)
        if (!constant(f, &in->operands[i])) return 0;
    return in->n_operands > 1;
}

/* Does it compare a register with a large constant? */
static int is_long_loop(const PtxInst *in)
{
    if (strcmp(in->op, "setp")) return 0;
    for (int i = 1; i < in->n_operands; i++)
        if (in->operands[i].kind == OPND_INT &&
            (in->operands[i].value > MAX_TRIPS || in->operands[i].value < -MAX_TRIPS))
            return 1;
    return 0;
}

static void visit(Folding *f, const PtxInst *in)
{
    if (in->bad || !in->n_operands) return;
    if (is_long_loop(in))
        for (int i = 1; i < in->n_operands; i++) vary(f, &in->operands[i]);
    if (ptx_has_dest(in) && (!is_arithmetic(in) || !reads_constants(f, in)))
        vary(f, &in->operands[0]);
}

static int is_product(const PtxInst *in)
{
    return !strcmp(in->op, "mul") && in->n_mods == 2 && !strcmp(in->mods[0], "wide") &&
           in->n_operands == 3 && in->operands[0].kind == OPND_REG && in->operands[0].cls == REG_64;
}

static int is_addition(const PtxInst *in)
{
    return !strcmp(in->op, "add") && in->n_mods == 1 && !strcmp(in->mods[0] + 1, "64");
}

/* Counts the reads of 64-bit registers: all of them, and those by additions. */
static void count_reads(const PtxOperand *o, uint32_t *reads)
{
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        count_reads(&o->items[i], reads);
    if (o->kind == OPND_ADDR) count_reads(&o->items[0], reads);
    if (o->kind == OPND_REG && o->cls == REG_64) reads[o->reg]++;
}

/* Does control pass from one instruction to the other with nothing that joins or leaves between them? */
static int same_block(const PtxFunction *p, int from, int to)
{
    if (to <= from) return 0;
    for (int i = 0; i < p->n_labels; i++)
        if (p->labels[i].inst > from && p->labels[i].inst <= to) return 0;
    for (int i = from; i < to; i++)
        if (!strcmp(p->insts[i].op, "bra") || !strcmp(p->insts[i].op, "call")) return 0;
    return 1;
}

static void fold_products(const PtxFunction *p, uint8_t *cost)
{
    size_t n = (size_t)p->n_regs[REG_64] + 1;
    uint32_t *reads = memory_array(n, sizeof *reads), *added = memory_array(n, sizeof *added);
    int *reader = memory_array(n, sizeof *reader);
    for (int i = 0; i < p->n_insts; i++)
        for (int k = ptx_has_dest(&p->insts[i]); k < p->insts[i].n_operands; k++) {
            count_reads(&p->insts[i].operands[k], reads);
            if (!is_addition(&p->insts[i])) continue;
            count_reads(&p->insts[i].operands[k], added);
            if (p->insts[i].operands[k].kind == OPND_REG) reader[p->insts[i].operands[k].reg] = i;
        }
    for (int i = 0; i < p->n_insts; i++) {
        const PtxInst *in = &p->insts[i];
        if (in->bad || !is_product(in)) continue;
        uint32_t r = in->operands[0].reg;
        if (!reads[r] || reads[r] != added[r]) continue;
        if (reads[r] == 1 && same_block(p, i, reader[r]))
            cost[reader[r]] = cost[i] ? 0 : cost[reader[r]];
    }
    free(reader);
    free(reads);
    free(added);
}

/* What a loop that stays changes from trip to trip has several definitions. */
static void vary_carried(Folding *f)
{
    uint8_t *rolled = rolled_find(f->p), *set[REG_CLASSES];
    for (int k = 0; k < REG_CLASSES; k++) set[k] = memory_alloc((size_t)f->p->n_regs[k] + 1);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < f->p->n_insts; i++) {
            const PtxInst *in = &f->p->insts[i];
            if (in->bad || !ptx_has_dest(in) || !in->n_operands) continue;
            const PtxOperand *o = &in->operands[0];
            if (o->kind != OPND_REG || o->cls >= REG_CLASSES) continue;
            if (!pass && set[o->cls][o->reg] < 2) set[o->cls][o->reg]++;
            if (pass && rolled[i] && set[o->cls][o->reg] > 1) vary(f, o);
        }
    for (int k = 0; k < REG_CLASSES; k++) free(set[k]);
    free(rolled);
}

uint8_t *folded_find(const PtxFunction *p)
{
    Folding f = {.p = p, .changed = 1};
    uint8_t *cost = memory_alloc((size_t)p->n_insts + 1);
    for (int k = 0; k < REG_CLASSES; k++) f.varies[k] = memory_alloc((size_t)p->n_regs[k] + 1);
    vary_carried(&f);
    while (f.changed) {
        f.changed = 0;
        for (int i = 0; i < p->n_insts; i++) visit(&f, &p->insts[i]);
    }
    for (int i = 0; i < p->n_insts; i++) {
        const PtxInst *in = &p->insts[i];
        cost[i] = !in->bad && is_arithmetic(in) && reads_constants(&f, in) ? 0 : COST_WHOLE;
    }
    fold_products(p, cost);
    for (int k = 0; k < REG_CLASSES; k++) free(f.varies[k]);
    return cost;
}
