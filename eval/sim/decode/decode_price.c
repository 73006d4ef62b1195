/* The prices of instructions of which the assembler makes several, or one of another pipe than their kind
 * suggests: counted in machine code for sm_90 (ptxas 13.0, 2026-11-30), one kernel for each type. */
#include <fnmatch.h>
#include <stdio.h>

#include "eval/sim/decode/decode_internal.h"

enum { DEPENDENT = 4 /* cycles of each further instruction of a price's chain */ };

typedef struct {
    const char *op, *form; /* form: a glob of the modifiers and the operands, as "lo.u32:rri" */
    uint8_t inst_class;
    uint8_t pipe;  /* instructions of that class */
    uint8_t more;  /* of others, which need an issue slot */
    uint8_t depth; /* instructions that wait for one another */
} Price;

/* The first that matches. */
static const Price prices[] = {
    {"neg", "s32:*", INST_INT_ADD, 1, 0, 1},
    {"neg", "s64:*", INST_INT_ADD, 2, 0, 2},
    {"abs", "s64:*", INST_INT, 4, 2, 3},
    {"abs", "s16:*", INST_INT, 2, 0, 2},
    {"min", "[su]64:*", INST_INT, 4, 0, 3},
    {"max", "[su]64:*", INST_INT, 4, 0, 3},
    {"min", "*f32:*", INST_INT, 1, 0, 1},
    {"max", "*f32:*", INST_INT, 1, 0, 1},
    {"copysign", "f32:*", INST_INT, 1, 0, 1},
    {"cnot", "b64:*", INST_INT, 4, 0, 3},
    {"cnot", "*", INST_INT, 2, 0, 2},
    {"shl", "b16:??r", INST_INT, 4, 0, 3},
    {"shr", "?16:??r", INST_INT, 4, 0, 3},
    {"mul24", "*", INST_INT, 2, 1, 2},
    {"addc", "*64:*", INST_INT, 2, 0, 2},
    {"subc", "*64:*", INST_INT, 2, 0, 2},
    {"add", "cc.*64:*", INST_INT, 2, 0, 2},
    {"sub", "cc.*64:*", INST_INT, 2, 0, 2},
    {"addc", "*", INST_INT_ADD, 1, 0, 1},
    {"subc", "*", INST_INT_ADD, 1, 0, 1},
    {"add", "cc.*", INST_INT_ADD, 1, 0, 1},
    {"sub", "cc.*", INST_INT_ADD, 1, 0, 1},
    {"bfe", "s64:??ii", INST_INT, 7, 0, 4},
    {"bfe", "s64:*", INST_INT, 15, 0, 8},
    {"bfe", "u64:??rr", INST_INT, 8, 0, 4},
    {"bfe", "?32:??ir", INST_INT, 5, 0, 3},
    {"bfe", "?32:??rr", INST_INT, 5, 0, 3},
    {"bfe", "?32:??ri", INST_INT, 4, 0, 3},
    {"bfi", "b64:???ii", INST_INT, 4, 1, 2},
    {"bfi", "b64:*", INST_INT, 12, 0, 4},
    {"bfi", "b32:???ii", INST_INT, 1, 1, 2},
    {"bfi", "b32:*", INST_INT, 5, 0, 3},
    {"bfind", "*s64:*", INST_SFU, 3, 6, 4},
    {"clz", "b64:*", INST_SFU, 1, 4, 4},
    {"ex2", "*x2:*", INST_SFU, 2, 1, 2},
    {"tanh", "*x2:*", INST_SFU, 2, 1, 2},
    {"rcp", "approx*f64:*", INST_SFU, 1, 1, 1},
    {"rsqrt", "approx.ftz.f64:*", INST_SFU, 1, 1, 1},
    {"setp", "*f32:*", INST_INT, 1, 0, 1},
    {"slct", "*64.?32:*", INST_INT, 3, 0, 2},
    {"slct", "*", INST_INT, 2, 0, 2},
    {"set", "*.f32.f32:*", INST_INT, 1, 0, 1},
    {"set", "*.?32.f32:*", INST_INT, 2, 0, 2},
    {"set", "*.?32.[bsu]64:*", INST_INT, 3, 0, 3},
    {"set", "*.f32.[bsu]*:*", INST_INT, 4, 0, 3},
    {"set", "*.?32.[bsu]16:*", INST_INT, 3, 0, 3},
    {"set", "*.?32.[bsu]32:*", INST_INT, 2, 0, 2},
    {"testp", "normal.f32:*", INST_INT, 4, 0, 3},
    {"testp", "subnormal.f32:*", INST_INT, 3, 0, 2},
    {"testp", "normal.f64:*", INST_INT, 7, 0, 4},
    {"testp", "subnormal.f64:*", INST_INT, 5, 0, 3},
    {"testp", "*.f64:*", INST_INT, 3, 0, 3},
    {"testp", "*", INST_INT, 2, 0, 2},
    {"cvt", "*sat.?8.s64:*", INST_INT, 8, 0, 5},
    {"cvt", "*sat.?8.u64:*", INST_INT, 6, 0, 4},
    {"cvt", "*sat.?16.s64:*", INST_INT, 6, 0, 4},
    {"cvt", "*sat.u32.u64:*", INST_INT, 3, 0, 3},
    {"cvt", "*sat.[su]*.?64:*", INST_INT, 5, 0, 4},
    {"cvt", "*sat.?8.u32:*", INST_INT, 3, 0, 2},
    {"cvt", "*sat.[su]16.s32:*", INST_INT, 1, 0, 1},
    {"cvt", "*sat.[su]*.[su]32:*", INST_INT, 2, 0, 2},
    {"cvt", "*sat.?8.s16:*", INST_INT, 5, 0, 4},
    {"cvt", "*sat.?8.u16:*", INST_INT, 3, 0, 3},
    {"cvt", "*sat.u*.s16:*", INST_INT, 3, 0, 3},
    {"cvt", "*sat.[su]*.[su]16:*", INST_INT, 2, 0, 2},
    {"cvt", "[su]64.s16:*", INST_INT, 2, 0, 2},
    {"cvt", "[su]64.s8:*", INST_INT, 2, 0, 2},
    {"cvt", "*.f32.s16:*", INST_SFU, 1, 0, 1},
    {"cvt", "*.f32.s8:*", INST_SFU, 1, 0, 1},
    {"cvt", "*.f32.u8:*", INST_INT, 2, 0, 2},
    {"cvt", "*f16.[su]*:*", INST_SFU, 1, 0, 1},
    {"cvt", "*f16.bf16:*", INST_SFU, 1, 0, 1},
    {"cvt", "*.tf32.f32:*", INST_INT, 2, 1, 3},
    {"cvt", "*.f16.f32:*", INST_INT, 1, 0, 1},
    {"vadd", "s32.s32.s32.sat*:*", INST_INT, 10, 0, 5},
    {"vsub", "s32.s32.s32.sat*:*", INST_INT, 10, 0, 5},
    {"vadd", "*.sat*:*", INST_INT, 5, 1, 4},
    {"vsub", "*.sat*:*", INST_INT, 5, 1, 4},
    {"vadd", "*", INST_INT, 2, 1, 2},
    {"vsub", "*", INST_INT, 2, 1, 2},
    {"vmin", "s32.s32.s32.sat*:*", INST_INT, 13, 0, 6},
    {"vmax", "s32.s32.s32.sat*:*", INST_INT, 13, 0, 6},
    {"vmin", "*s32*:*", INST_INT, 7, 0, 4},
    {"vmax", "*s32*:*", INST_INT, 7, 0, 4},
    {"vmin", "*", INST_INT, 5, 0, 4},
    {"vmax", "*", INST_INT, 5, 0, 4},
    {"vabsdiff", "s32.s32.s32.sat*:*", INST_INT, 13, 1, 6},
    {"vabsdiff", "*.sat*:*", INST_INT, 8, 2, 5},
    {"vabsdiff", "*s32*:*", INST_INT, 6, 1, 4},
    {"vabsdiff", "*", INST_INT, 4, 2, 4},
    {"vabsdiff4", "*s32*:*", INST_INT, 24, 11, 6},
    {"isspacep", "const:*", INST_INT, 4, 0, 3},
    {"isspacep", "global:*", INST_INT, 6, 0, 3},
};

/* The modifiers with points between, a colon, and a letter for each operand: r, i of a constant, or another
 * kind's x. */
static void form_of(const PtxInst *in, char *form, size_t size)
{
    size_t n = 0;
    for (int i = 0; i < in->n_mods && n + 1 < size; i++)
        n += (size_t)snprintf(form + n, size - n, "%s%s", i ? "." : "", in->mods[i]);
    if (n + 1 < size) n += (size_t)snprintf(form + n, size - n, ":");
    for (int i = 0; i < in->n_operands && n + 1 < size; i++) {
        int kind = in->operands[i].kind;
        int constant = kind == OPND_INT || kind == OPND_F32 || kind == OPND_F64;
        form[n++] = kind == OPND_REG ? 'r' : constant ? 'i' : 'x';
    }
    form[n < size ? n : size - 1] = 0;
}

void decode_price(Decoder *d)
{
    char form[128] = "";
    for (size_t i = 0; i < sizeof prices / sizeof *prices; i++) {
        const Price *p = &prices[i];
        if (*p->op != *d->in->op || strcmp(p->op, d->in->op)) continue;
        if (!*form) form_of(d->in, form, sizeof form);
        if (fnmatch(p->form, form, 0)) continue;
        d->inst_class = p->inst_class;
        d->repeats = p->pipe - 1;
        d->expansion = p->more;
        d->cycles = (p->inst_class == INST_SFU ? 18 : DEPENDENT) + DEPENDENT * (p->depth - 1);
        return;
    }
}
