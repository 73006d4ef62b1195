/* Arithmetic and bit operations. */
#include <stdio.h>

#include "eval/sim/decode/decode_internal.h"

static int rounding(Decoder *d)
{
    if (decode_has(d, "rn")) return FP_RN;
    if (decode_has(d, "rz")) return FP_RZ;
    if (decode_has(d, "rm")) return FP_RM;
    return decode_has(d, "rp") ? FP_RP : FP_RN;
}

/* Emits a handler with n_sources sources and the flags in k0. bits: of the destination and of each
 * source. */
static int emit_row(Decoder *d, Handler *fn, const int *bits, int n_sources, int flags)
{
    uint32_t rows[4] = {0}, dest;
    if (!fn) return decode_refuse(d, "a type that it does not exist for");
    if (d->in->n_operands != n_sources + 1) return decode_refuse(d, "another number of operands");
    for (int i = 0; i < n_sources; i++)
        if (decode_source(d, i + 1, bits[i + 1], &rows[i])) return -1;
    if (decode_dest(d, 0, bits[0], &dest)) return -1;
    decode_put(d, fn,
               (Inst){.d = dest,
                      .a = rows[0],
                      .b = rows[1],
                      .c = rows[2],
                      .e = rows[3],
                      .k0 = (uint8_t)flags});
    return 0;
}

/* ---- floating point ---- */

static int is_approximate(Decoder *d)
{
    int approx = decode_has(d, "approx"), full = decode_has(d, "full");
    return approx || full;
}

static int is_constant(const Decoder *d, int operand)
{
    const PtxOperand *o = decode_operand(d, operand);
    return o && (o->kind == OPND_INT || o->kind == OPND_F32);
}

static int float_op(Decoder *d, const char *op, const ValueType *t, int n)
{
    char name[24];
    int approx = is_approximate(d), mode = approx ? 0 : rounding(d);
    mode |= decode_has(d, "ftz") ? FP_FTZ : 0;
    mode |= decode_has(d, "sat") ? FP_SAT : 0;
    int is_limit = !strcmp(op, "min") || !strcmp(op, "max");
    snprintf(name, sizeof name, "%s%s", !strcmp(op, "mad") ? "fma" : op,
             is_limit && decode_has(d, "NaN") ? ".NaN" : "");
    int divides = !strcmp(op, "div"),
        special = divides || !strcmp(op, "rcp") || !strcmp(op, "sqrt") || !strcmp(op, "rsqrt");
    d->inst_class = t->bits == 64 ? INST_FP64 : special ? INST_SFU : INST_FP32;
    d->flops = !strcmp(name, "fma")                                                  ? 2
               : !strcmp(op, "neg") || !strcmp(op, "abs") || !strcmp(op, "copysign") ? 0
                                                                                     : 1;
    if (special && !approx)
        d->expansion = t->bits == 64 ? 24 : divides ? 8 : 7;
    else if (divides)
        d->expansion = 2;
    /* Refined by products; a float that may be subnormal is scaled, as its root (an H200, 2026-11-29). */
    if (!strcmp(op, "rsqrt") && approx && t->bits == 64) d->repeats = 7;
    if (!strcmp(op, "rsqrt") && t->bits == 32 && !(mode & FP_FTZ)) d->expansion = 3;
    /* The least and the greatest double: a comparison, selections of both halves, and what a NaN asks. */
    if (is_limit && t->bits == 64) d->expansion = 8;
    /* A subroutine of the assembler, which a warp waits for (an H200, 2026-11-29). */
    if (!strcmp(op, "sqrt") && !approx && t->bits == 32) d->cycles = 200;
    /* The test of the operands; the reciprocal of a constant is one, too. */
    if (divides && !approx && t->bits == 32) d->repeats = !is_constant(d, 2);
    int bits[] = {t->bits, t->bits, t->bits, t->bits};
    return emit_row(d, float_handler(name, t->bits, mode), bits, n, mode);
}

static int half_op(Decoder *d, const char *op, const ValueType *t, int n)
{
    int flags = decode_has(d, "ftz") ? HALF_FTZ : 0;
    flags |= decode_has(d, "sat") ? HALF_SAT : 0;
    flags |= decode_has(d, "relu") ? HALF_RELU : 0;
    flags |= decode_has(d, "NaN") ? HALF_NAN : 0;
    if (decode_has(d, "xorsign")) flags |= decode_has(d, "abs") ? HALF_XORSIGN : 0;
    decode_has(d, "rn");
    /* The least and the greatest have half the rate of sums (an H200, 2026-11-29: hmax2 of
     * tests/bench/rates). */
    d->inst_class = !strcmp(op, "min") || !strcmp(op, "max") ? INST_INT : INST_FP16;
    d->flops = (!strcmp(op, "fma") ? 2 : 1) * (t->packed ? 2 : 1);
    int bits[] = {t->bits, t->bits, t->bits, t->bits};
    return emit_row(d, half_handler(op, t->type == T_BF16, t->packed), bits, n, flags);
}

static int approximation(Decoder *d)
{
    char name[24];
    const ValueType *t = decode_type(d);
    if (!t || !decode_has(d, "approx")) return decode_refuse(d, "no .approx");
    snprintf(name, sizeof name, "%s.%s", d->in->op,
             t->type == T_F16    ? "f16"
             : t->type == T_BF16 ? "bf16"
                                 : "f32");
    if (t->bits == 64) return decode_refuse(d, "a type that it does not exist for");
    int flags = decode_has(d, "ftz") ? FP_FTZ : 0, bits[] = {t->bits, t->bits};
    d->inst_class = INST_SFU;
    d->flops = 1;
    d->repeats = t->packed && !strcmp(d->in->op, "tanh");
    if (emit_row(d, math_handler(name), bits, 1, flags)) return -1;
    d->out[d->n - 1].k1 = t->packed;
    return 0;
}

/* ---- integers ---- */

static int carry_op(Decoder *d, const char *op)
{
    int sets = decode_has(d, "cc"),
        takes = !strcmp(op, "addc") || !strcmp(op, "subc") || !strcmp(op, "madc");
    int high = decode_has(d, "hi"), product = !strncmp(op, "mad", 3);
    if (product && !high) decode_has(d, "lo");
    const ValueType *t = decode_type(d);
    if (!t || t->bits < 32 || (product && t->bits != 32) || (product && high && t->is_signed))
        return decode_refuse(d, "a type that it does not exist for");
    int bits[] = {t->bits, t->bits, t->bits, t->bits};
    int flags = (takes ? CARRY_IN : 0) | (sets ? CARRY_OUT : 0) |
                (strncmp(op, "sub", 3) ? 0 : CARRY_SUBTRACT) | (high ? CARRY_HIGH : 0);
    d->inst_class = product ? INST_INT_MUL : INST_INT;
    Handler *fn = product ? h_mad_carry32 : t->bits == 64 ? h_add_carry64 : h_add_carry32;
    return emit_row(d, fn, bits, product ? 3 : 2, flags);
}

/* add, min and max of two halves in a register. */
static int pair_op(Decoder *d, const char *op, int is_signed, int n)
{
    char name[24];
    int relu = decode_has(d, "relu"), bits[] = {32, 32, 32, 32};
    if (relu && (!is_signed || !strcmp(op, "add")))
        return decode_refuse(d, "a type that it does not exist for");
    snprintf(name, sizeof name, "%s.x2", op);
    d->inst_class = INST_INT;
    return emit_row(d, int_handler(name, 32, is_signed), bits, n, relu);
}

static int is_sum(const Decoder *d, const char *op)
{
    return !strcmp(op, "add") || !strcmp(op, "sub") || (!strcmp(op, "shl") && is_constant(d, 2));
}

static int int_op(Decoder *d, const char *op, const ValueType *t, int n)
{
    char name[24];
    int product = !strcmp(op, "mul") || !strcmp(op, "mad") || !strcmp(op, "mul24");
    const char *part = !product                ? decode_has(d, "relu") ? ".relu" : ""
                       : decode_has(d, "wide") ? ".wide"
                       : decode_has(d, "hi")   ? ".hi"
                       : decode_has(d, "lo")   ? ".lo"
                                               : "";
    int wide = !strcmp(part, ".wide"), bits[] = {t->bits, t->bits, t->bits, t->bits};
    snprintf(name, sizeof name, "%s%s", op, part);
    if (wide) {
        bits[0] *= 2;
        bits[3] *= 2;
    }
    if (!strcmp(op, "shl") || !strcmp(op, "shr")) bits[2] = 32;
    if (t->bits == 8 || (product && !*part))
        return decode_refuse(d, "a type that it does not exist for");
    d->inst_class = product ? INST_INT_MUL : is_sum(d, op) ? INST_INT_ADD : INST_INT;
    if (!strcmp(op, "div") || !strcmp(op, "rem"))
        d->expansion = t->bits == 64 ? 120 : is_constant(d, 2) ? 4 : 24;
    else if (product)
        d->repeats = t->bits == 64 ? part[1] == 'h' ? 13 : 3 : *part == '.' && part[1] != 'l';
    else if (t->bits == 64)
        d->repeats = 1; /* two 32-bit halves */
    return emit_row(d, int_handler(name, t->bits, t->is_signed), bits, n, 0);
}

static int pred_logic(Decoder *d)
{
    static const char *const names[LOGIC_COUNT] = {"and", "or", "xor", "not"};
    int which = 0, n = d->in->n_operands;
    while (which < LOGIC_COUNT && strcmp(d->in->op, names[which])) which++;
    uint32_t dest, a, b = 0, flip_a, flip_b = 0;
    if (which == LOGIC_COUNT || n != (which == LOGIC_NOT ? 2 : 3))
        return decode_refuse(d, "predicates");
    if (decode_pred_dest(d, decode_operand(d, 0), &dest) || decode_pred(d, 1, &a, &flip_a) ||
        (which != LOGIC_NOT && decode_pred(d, 2, &b, &flip_b)))
        return -1;
    decode_put(d, h_pred_logic,
               (Inst){.d = dest, .a = a, .b = b, .e = flip_a, .f = flip_b, .k0 = (uint8_t)which});
    d->inst_class = INST_INT;
    return 0;
}

static const struct {
    const char *name;
    int sources;
} arithmetic[] = {
    {"add", 2}, {"sub", 2},   {"mul", 2}, {"mad", 3},  {"fma", 3},   {"div", 2},
    {"rem", 2}, {"min", 2},   {"max", 2}, {"abs", 1},  {"neg", 1},   {"and", 2},
    {"or", 2},  {"xor", 2},   {"not", 1}, {"cnot", 1}, {"shl", 2},   {"shr", 2},
    {"sad", 3}, {"mul24", 2}, {"rcp", 1}, {"sqrt", 1}, {"rsqrt", 1}, {"copysign", 2},
};

static int arithmetic_op(Decoder *d, int index)
{
    const char *op = arithmetic[index].name;
    int n = arithmetic[index].sources;
    if (n >= 2 && !strcmp(d->in->mods[d->in->n_mods > 1 ? d->in->n_mods - 2 : 0], "cc"))
        return carry_op(d, op);
    int is_signed = decode_has(d, "s16x2");
    if (is_signed || decode_has(d, "u16x2")) return pair_op(d, op, is_signed, n);
    const ValueType *t = decode_type(d);
    if (!t) return decode_refuse(d, "no type");
    if (t->bits == 1) return pred_logic(d);
    if (t->type == T_F16 || t->type == T_BF16) return half_op(d, op, t, n);
    if (t->is_float) return float_op(d, op, t, n);
    return int_op(d, op, t, n);
}

/* ---- bit fields, permutations, shifts ---- */

static int bits_op(Decoder *d)
{
    const char *op = d->in->op;
    const ValueType *t;
    d->inst_class = INST_INT;
    if (!strcmp(op, "popc") || !strcmp(op, "clz") || !strcmp(op, "bfind") || !strcmp(op, "brev")) {
        int shift = !strcmp(op, "bfind") && decode_has(d, "shiftamt");
        if (!(t = decode_type(d)) || t->bits < 32)
            return decode_refuse(d, "no type of 32 or 64 bits");
        int wide = t->bits == 64, same = !strcmp(op, "brev"),
            bits[] = {same ? t->bits : 32, t->bits};
        Handler *fn = !strcmp(op, "popc")  ? (wide ? h_popc64 : h_popc32)
                      : !strcmp(op, "clz") ? (wide ? h_clz64 : h_clz32)
                      : same               ? (wide ? h_brev64 : h_brev32)
                      : wide               ? h_bfind64
                                           : h_bfind32;
        d->inst_class = INST_SFU; /* at their rate */
        d->repeats = wide;
        if (emit_row(d, fn, bits, 1, t->is_signed)) return -1;
        d->out[d->n - 1].k1 = (uint8_t)shift;
        return 0;
    }
    if (!strcmp(op, "bfe") || !strcmp(op, "bfi")) {
        int take = op[2] == 'e';
        if (!(t = decode_type(d)) || t->bits < 32)
            return decode_refuse(d, "no type of 32 or 64 bits");
        int shift = take ? 2 : 3; /* the operand that says where */
        d->repeats = is_constant(d, shift) && is_constant(d, shift + 1) ? 1 : take ? 2 : 3;
        int wide = t->bits == 64, bits[] = {t->bits, t->bits, take ? 32 : t->bits, 32, 32};
        return emit_row(d,
                        take   ? (wide ? h_bfe64 : h_bfe32)
                        : wide ? h_bfi64
                               : h_bfi32,
                        bits, take ? 3 : 4, t->is_signed);
    }
    return 1;
}

static int prmt_op(Decoder *d)
{
    static const char *const modes[PRMT_COUNT] = {
        [PRMT_F4E] = "f4e", [PRMT_B4E] = "b4e", [PRMT_RC8] = "rc8",
        [PRMT_ECL] = "ecl", [PRMT_ECR] = "ecr", [PRMT_RC16] = "rc16"};
    int mode = PRMT_INDEX, bits[] = {32, 32, 32, 32};
    for (int i = PRMT_F4E; i < PRMT_COUNT; i++)
        if (decode_has(d, modes[i])) mode = i;
    decode_has(d, "b32");
    d->inst_class = INST_INT;
    return emit_row(d, h_prmt, bits, 3, mode);
}

/* lop3.or and lop3.and: a second destination is the result's being other than 0, combined with q. */
static int lop3_test(Decoder *d, uint32_t result, int combine)
{
    const PtxOperand *p = decode_operand(d, 0)->pair;
    uint32_t c, flip, to;
    if (!p || decode_pred_dest(d, p, &to) || decode_pred(d, 5, &c, &flip))
        return decode_refuse(d, "no predicate");
    decode_put(d, setp_handler(32, 0),
               (Inst){.d = to,
                      .a = result,
                      .b = decode_const32(d->code, 0),
                      .c = c,
                      .f = flip,
                      .k0 = CMP_NE,
                      .k1 = (uint8_t)combine});
    return 0;
}

static int lop3_op(Decoder *d)
{
    const PtxOperand *lut = decode_operand(d, 4);
    int bits[] = {32, 32, 32, 32}, combine = decode_has(d, "or")    ? COMBINE_OR
                                             : decode_has(d, "and") ? COMBINE_AND
                                                                    : COMBINE_NONE;
    if (!lut || lut->kind != OPND_INT || d->in->n_operands != (combine ? 6 : 5))
        return decode_refuse(d, "no table of 8 bits");
    uint32_t rows[3], dest;
    for (int i = 0; i < 3; i++)
        if (decode_source(d, i + 1, bits[i], &rows[i])) return -1;
    if (decode_dest(d, 0, 32, &dest)) return -1;
    decode_has(d, "b32");
    decode_put(
        d, h_lop3,
        (Inst){.d = dest, .a = rows[0], .b = rows[1], .c = rows[2], .k0 = (uint8_t)lut->value});
    d->inst_class = INST_INT;
    return combine ? lop3_test(d, dest, combine) : 0;
}

/* bmsk: a mask of b bits from bit a. szext: the low b bits of a, extended. */
static int mask_op(Decoder *d)
{
    int extends = *d->in->op == 's', wrap = decode_has(d, "wrap"), bits[] = {32, 32, 32};
    const ValueType *t = NULL;
    decode_has(d, "clamp");
    if (extends ? !(t = decode_type(d)) || t->bits != 32 || t->is_float : !decode_has(d, "b32"))
        return decode_refuse(d, "a type that it does not exist for");
    d->inst_class = INST_INT;
    if (emit_row(d, extends ? h_szext : h_bmsk, bits, 2, wrap)) return -1;
    d->out[d->n - 1].k1 = t && t->is_signed;
    return 0;
}

/* Of four bytes each: the absolute differences, or with .add their sum and c. */
static int absolute_differences(Decoder *d)
{
    int sums = decode_has(d, "add"), saturates = decode_has(d, "sat"), bits[] = {32, 32, 32, 32};
    const ValueType *b = decode_type(d), *a = decode_type(d), *to = decode_type(d);
    if (!to || a->bits != 32 || b->bits != 32 || to->bits != 32 || a->is_float || b->is_float)
        return decode_refuse(d, "a type that it does not exist for");
    d->inst_class = INST_INT;
    if (emit_row(d, h_absdiff4, bits, 3, sums)) return -1;
    d->out[d->n - 1].k1 = (uint8_t)(a->is_signed | b->is_signed << 1);
    d->out[d->n - 1].k2 = (uint8_t)(saturates ? to->is_signed ? 127 : 255 : 0);
    return 0;
}

/* Operations of 33 bits on whole registers, with a second one on the result and c. */
static int video_op(Decoder *d)
{
    static const char *const ops[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax"};
    int bits[] = {32, 32, 32, 32}, saturates = decode_has(d, "sat"), op = 0,
        second = decode_has(d, "add")   ? VIDEO_ADD + 1
                 : decode_has(d, "min") ? VIDEO_MIN + 1
                 : decode_has(d, "max") ? VIDEO_MAX + 1
                                        : 0;
    const ValueType *b = decode_type(d), *a = decode_type(d), *to = decode_type(d);
    if (!to || a->bits != 32 || b->bits != 32 || to->bits != 32 || a->is_float || b->is_float ||
        to->is_float)
        return decode_refuse(d, "a type that it does not exist for");
    while (strcmp(d->in->op, ops[op])) op++;
    d->inst_class = INST_INT;
    d->expansion = second ? 2 : 1;
    if (emit_row(d, h_video, bits, second ? 3 : 2, op)) return -1;
    d->out[d->n - 1].k1 = (uint8_t)(a->is_signed | b->is_signed << 1 | to->is_signed << 2);
    d->out[d->n - 1].k2 = (uint8_t)saturates;
    d->out[d->n - 1].k3 = (uint8_t)second;
    return 0;
}

static int shf_op(Decoder *d)
{
    int right = decode_has(d, "r"), wrap = decode_has(d, "wrap"), bits[] = {32, 32, 32, 32};
    decode_has(d, "l");
    decode_has(d, "clamp");
    decode_has(d, "b32");
    d->inst_class = INST_INT;
    if (emit_row(d, h_shf, bits, 3, right)) return -1;
    d->out[d->n - 1].k1 = (uint8_t)wrap;
    return 0;
}

static int dot_op(Decoder *d)
{
    int two = d->in->op[2] == '2', hi = two && decode_has(d, "hi"), bits[] = {32, 32, 32, 32};
    if (two && !hi) decode_has(d, "lo");
    const ValueType *b = decode_type(d), *a = decode_type(d);
    if (!a || !b) return decode_refuse(d, "fewer than two types");
    d->inst_class = INST_INT;
    int flags = (a->is_signed ? DOT_A_SIGNED : 0) | (b->is_signed ? DOT_B_SIGNED : 0);
    if (emit_row(d, two ? h_dp2a : h_dp4a, bits, 3, flags)) return -1;
    d->out[d->n - 1].k1 = (uint8_t)hi;
    return 0;
}

static int fns_op(Decoder *d)
{
    int bits[] = {32, 32, 32, 32};
    decode_has(d, "b32");
    d->inst_class = INST_INT;
    d->expansion = 42;
    return emit_row(d, h_fns, bits, 3, 0);
}

int decode_alu(Decoder *d)
{
    static const DecodeOp others[] = {
        {"popc", bits_op},       {"clz", bits_op},
        {"bfind", bits_op},      {"brev", bits_op},
        {"bfe", bits_op},        {"bfi", bits_op},
        {"prmt", prmt_op},       {"lop3", lop3_op},
        {"shf", shf_op},         {"dp4a", dot_op},
        {"dp2a", dot_op},        {"fns", fns_op},
        {"bmsk", mask_op},       {"szext", mask_op},
        {"ex2", approximation},  {"lg2", approximation},
        {"sin", approximation},  {"cos", approximation},
        {"tanh", approximation}, {"vabsdiff4", absolute_differences},
        {"vadd", video_op},      {"vsub", video_op},
        {"vabsdiff", video_op},  {"vmin", video_op},
        {"vmax", video_op},
    };
    const char *op = d->in->op;
    if (!strcmp(op, "addc") || !strcmp(op, "subc") || !strcmp(op, "madc")) return carry_op(d, op);
    for (size_t i = 0; i < sizeof arithmetic / sizeof arithmetic[0]; i++)
        if (!strcmp(op, arithmetic[i].name))
            return d->in->n_mods ? arithmetic_op(d, (int)i) : decode_refuse(d, "no type");
    return decode_among(d, others, sizeof others / sizeof *others);
}
