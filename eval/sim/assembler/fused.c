/* Pairs of instructions that the assembler makes one of: one is counted, and the other costs nothing.
 *
 * An instruction fuses into the only reader of its result, in the same block: a logic operation into
 * another one (three inputs), a sum into a sum or a minimum, a shift by a constant into a sum, and a
 * product with the sum that reads it. Signs and magnitudes of floats are parts of the operands of
 * arithmetic, and saturation is a part of the result. Copies, halves of 64-bit registers and the address
 * of a shared variable in an access to it need no instruction. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/assembler/assembler.h"

/* The state of a register. A register that is defined once has a producer. */
typedef struct {
    int defs, def, reads, reader;
    int other_reads; /* that are not by arithmetic of floats */
    int addresses;   /* reads as an address of shared memory */
} Value;

typedef struct {
    const PtxFunction *p;
    uint8_t *cost;
    Value *values[REG_CLASSES];
    int *block;
    uint8_t *fused; /* of each instruction: it is a part of a pair */
} Fusing;

/* ---- kinds of instructions ---- */

static int is_one_of(const PtxInst *in, const char *const *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(in->op, ops[i])) return 1;
    return 0;
}
#define IS_ONE_OF(in, ...)                              \
    is_one_of((in), (const char *const[]){__VA_ARGS__}, \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static const char *type_of(const PtxInst *in)
{
    return in->n_mods ? in->mods[in->n_mods - 1] : "";
}

static int is_float(const PtxInst *in)
{
    return *type_of(in) == 'f';
}

static int is_integer(const PtxInst *in, const char *bits)
{
    const char *t = type_of(in);
    return (*t == 's' || *t == 'u' || *t == 'b') && !strcmp(t + 1, bits);
}

static int is_sum(const PtxInst *in, const char *bits)
{
    return in->n_mods == 1 && is_integer(in, bits) && IS_ONE_OF(in, "add", "sub");
}

static int is_logic(const PtxInst *in)
{
    return is_integer(in, "32") && IS_ONE_OF(in, "and", "or", "xor", "not");
}

static int is_shift(const PtxInst *in, const char *bits)
{
    return is_integer(in, bits) && !strcmp(in->op, "shl") && in->operands[2].kind == OPND_INT;
}

static int is_product(const PtxInst *in)
{
    return is_integer(in, "32") && !strcmp(in->op, "mul") && !strcmp(in->mods[0], "lo");
}

static int is_float_arithmetic(const PtxInst *in)
{
    return is_float(in) && IS_ONE_OF(in, "add", "sub", "mul", "fma", "min", "max", "setp");
}

/* ---- the uses of registers ---- */

static void note_reads(Fusing *f, const PtxOperand *o, int i, int address)
{
    const PtxInst *in = &f->p->insts[i];
    for (int k = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && k < o->n; k++)
        note_reads(f, &o->items[k], i, address);
    if (o->kind == OPND_ADDR) note_reads(f, &o->items[0], i, 1);
    if (o->kind != OPND_REG || o->cls >= REG_CLASSES) return;
    Value *v = &f->values[o->cls][o->reg];
    v->reads++;
    v->reader = i;
    v->other_reads += !is_float_arithmetic(in);
    v->addresses += address && in->n_mods && !strcmp(in->mods[0], "shared");
}

static void note_def(Fusing *f, const PtxOperand *o, int i)
{
    for (int k = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && k < o->n; k++)
        note_def(f, &o->items[k], i);
    if (o->pair) note_def(f, o->pair, i);
    if (o->kind != OPND_REG || o->cls >= REG_CLASSES) return;
    f->values[o->cls][o->reg].defs++;
    f->values[o->cls][o->reg].def = i;
}

static void note(Fusing *f, int i)
{
    const PtxInst *in = &f->p->insts[i];
    int dest = ptx_has_dest(in);
    if (in->bad || !in->n_operands) return;
    if (dest) note_def(f, &in->operands[0], i);
    for (int k = dest; k < in->n_operands; k++) note_reads(f, &in->operands[k], i, 0);
}

static void find_blocks(Fusing *f)
{
    int block = 0;
    for (int i = 0; i < f->p->n_labels; i++)
        if (f->p->labels[i].inst < f->p->n_insts) f->block[f->p->labels[i].inst] = 1;
    for (int i = 0; i < f->p->n_insts; i++) {
        block += f->block[i];
        f->block[i] = block;
        block += IS_ONE_OF(&f->p->insts[i], "bra", "brx", "ret", "exit", "call");
    }
}

/* ---- pairs ---- */

/* The value of a register that the instruction alone reads and another one alone defines; or NULL. */
static const Value *only_read_by(const Fusing *f, const PtxOperand *o, int i)
{
    if (o->kind != OPND_REG || o->cls >= REG_CLASSES) return NULL;
    const Value *v = &f->values[o->cls][o->reg];
    return v->defs == 1 && v->reads == 1 && v->reader == i && v->def < i &&
                   f->block[v->def] == f->block[i] && f->p->insts[v->def].guard < 0
               ? v
               : NULL;
}

static int goes_into(const PtxInst *from, const PtxInst *to)
{
    if (is_logic(from)) return is_logic(to);
    if (is_sum(from, "32"))
        return is_sum(to, "32") || (is_integer(to, "32") && IS_ONE_OF(to, "min", "max"));
    return (is_shift(from, "32") || is_product(from)) && is_sum(to, "32");
}

/* Fuses the instruction with one that defines an operand of it. */
static void fuse_operand(Fusing *f, int i)
{
    const PtxInst *to = &f->p->insts[i];
    for (int k = 1; k < to->n_operands && !f->fused[i]; k++) {
        const Value *v = only_read_by(f, &to->operands[k], i);
        if (!v || f->fused[v->def] || !goes_into(&f->p->insts[v->def], to)) continue;
        f->fused[i] = f->fused[v->def] = 1;
        f->cost[is_product(&f->p->insts[v->def]) ? i : v->def] = 0;
    }
}

static const Value *result(const Fusing *f, const PtxInst *in)
{
    const PtxOperand *o = &in->operands[0];
    return o->kind == OPND_REG && o->cls < REG_CLASSES ? &f->values[o->cls][o->reg] : NULL;
}

static int is_variable(const Fusing *f, const PtxOperand *o)
{
    if (o->kind == OPND_VAR) return 1;
    if (o->kind != OPND_REG || o->cls >= REG_CLASSES) return 0;
    const Value *v = &f->values[o->cls][o->reg];
    const PtxInst *def = v->defs == 1 ? &f->p->insts[v->def] : NULL;
    return def && !strcmp(def->op, "mov") && def->n_operands == 2 &&
           def->operands[1].kind == OPND_VAR;
}

/* Is the instruction a part of those that read its result, or of the one whose result it reads? */
static int is_operand(const Fusing *f, const PtxInst *in)
{
    const Value *v = result(f, in);
    if (!v || in->n_operands < 2) return 0;
    if (IS_ONE_OF(in, "neg", "abs") && is_float(in)) return v->reads && !v->other_reads;
    if ((is_sum(in, "32") || is_sum(in, "64")) && v->reads && v->addresses == v->reads)
        return is_variable(f, &in->operands[1]) || is_variable(f, &in->operands[2]);
    return 0;
}

/* Does the instruction make a half that the assembler makes together with another one? */
static int makes_half(const PtxInst *in)
{
    return !strcmp(in->op, "cvt")
               ? is_float(in)
               : strstr(type_of(in), "f16") && IS_ONE_OF(in, "add", "sub", "mul", "fma");
}

/* Do the parts of a pack lie in one register already? Those that were one register's in the same order do,
 * results of the same arithmetic of halves, and one part for all that arithmetic alone reads. */
static int lie_together(const Fusing *f, const PtxInst *in)
{
    const PtxOperand *parts = in->operands[1].items;
    const Value *v = result(f, in);
    int n = in->operands[1].n, same = 1, taken = 1, made = 1;
    const PtxInst *first = NULL;
    for (int i = 0; i < n; i++) {
        if (parts[i].kind != OPND_REG || parts[i].cls >= REG_CLASSES) return 0;
        const Value *part = &f->values[parts[i].cls][parts[i].reg];
        const PtxInst *def = &f->p->insts[part->def];
        const PtxOperand *to = &def->operands[0];
        if (part->defs != 1 || !def->n_operands) return 0;
        if (!first) first = def;
        same &= parts[i].reg == parts[0].reg;
        taken &=
            def == first && to->kind == OPND_VEC && to->n == n && to->items[i].reg == parts[i].reg;
        made &= makes_half(def) && !strcmp(def->op, first->op);
    }
    return same ? v && v->reads && !v->other_reads : taken || made;
}

/* Is an integer of the first type the lower part of one of the other, or that with zeros above it? */
static int is_part(const char *to, const char *from)
{
    int to_bits = atoi(to + 1), from_bits = atoi(from + 1);
    if (!strchr("su", *to) || !strchr("su", *from)) return 0;
    return (to_bits >= 16 && to_bits <= from_bits) || (to_bits == 64 && !strcmp(from, "u32"));
}

/* Copies of registers and halves of 64 bits, and the saturation of a float. */
static int is_copy(const Fusing *f, const PtxInst *in)
{
    if (in->n_operands < 2) return 0;
    int kind = in->operands[1].kind;
    if (kind == OPND_VEC && in->operands[1].n && in->operands[0].kind == OPND_REG &&
        in->operands[0].width == 16 * in->operands[1].n)
        return lie_together(f, in);
    if (!strcmp(in->op, "mov")) return kind == OPND_REG || kind == OPND_VAR || kind == OPND_VEC;
    if (!strcmp(in->op, "cvt") && in->n_mods == 2) return is_part(in->mods[0], in->mods[1]);
    if (!strcmp(in->op, "cvt"))
        return in->n_mods == 3 && !strcmp(in->mods[0], "sat") && !strcmp(in->mods[1], "f32") &&
               !strcmp(in->mods[2], "f32");
    return is_integer(in, "64") && IS_ONE_OF(in, "shl", "shr") &&
           in->operands[2].kind == OPND_INT && in->operands[2].value == 32 && *type_of(in) != 's';
}

void fused_find(const PtxFunction *p, uint8_t *cost)
{
    size_t n = (size_t)p->n_insts + 1;
    Fusing f = {
        .p = p, .cost = cost, .block = memory_array(n, sizeof(int)), .fused = memory_alloc(n)};
    for (int k = 0; k < REG_CLASSES; k++)
        f.values[k] = memory_array((size_t)p->n_regs[k] + 1, sizeof(Value));
    find_blocks(&f);
    for (int i = 0; i < p->n_insts; i++) note(&f, i);
    for (int i = 0; i < p->n_insts; i++) {
        const PtxInst *in = &p->insts[i];
        if (in->bad || in->guard >= 0 || !ptx_has_dest(in)) continue;
        if (is_copy(&f, in) || is_operand(&f, in))
            cost[i] = 0;
        else if (cost[i])
            fuse_operand(&f, i);
    }
    for (int k = 0; k < REG_CLASSES; k++) free(f.values[k]);
    free(f.block);
    free(f.fused);
}
