/* Moves, conversions, comparisons, selections and address spaces. */
#include "eval/sim/decode/decode_internal.h"

/* ---- mov ---- */

static int item_source(Decoder *d, const PtxOperand *o, int i, int bits, uint32_t *row)
{
    return decode_source_of(d, &o->items[i], bits, row);
}

static int mov_pack(Decoder *d, const PtxOperand *from, int bits)
{
    uint32_t rows[4] = {0}, dest;
    int part = bits / from->n;
    if (!((bits == 32 && from->n == 2) || (bits == 64 && (from->n == 2 || from->n == 4))))
        return decode_refuse(d, "a vector of another length");
    for (int i = 0; i < from->n; i++)
        if (item_source(d, from, i, part, &rows[i])) return -1;
    if (decode_dest(d, 0, bits, &dest)) return -1;
    if (part == 16) { /* a permutation of bytes for each word, unless fused.c finds none */
        d->inst_class = INST_INT;
        d->repeats = bits / 32 - 1;
    }
    decode_put(d,
               bits == 32     ? h_pack32
               : from->n == 2 ? h_pack64
                              : h_pack64_16,
               (Inst){.d = dest, .a = rows[0], .b = rows[1], .c = rows[2], .e = rows[3]});
    return 0;
}

static int mov_unpack(Decoder *d, const PtxOperand *to, int bits)
{
    uint32_t rows[4] = {ROW_NONE, ROW_NONE, ROW_NONE, ROW_NONE}, source;
    if (!((bits == 32 && to->n == 2) || (bits == 64 && (to->n == 2 || to->n == 4))))
        return decode_refuse(d, "a vector of another length");
    for (int i = 0; i < to->n; i++) {
        const PtxOperand *o = &to->items[i];
        if (o->kind == OPND_SINK) continue;
        if (o->kind != OPND_REG || o->cls != REG_32)
            return decode_refuse(d, "a vector of other registers");
        rows[i] = o->reg * ROW32;
    }
    if (decode_source(d, 1, bits, &source)) return -1;
    decode_put(d,
               bits == 32   ? h_unpack32
               : to->n == 2 ? h_unpack64
                            : h_unpack64_16,
               (Inst){.a = source, .d = rows[0], .e = rows[1], .b = rows[2], .c = rows[3]});
    return 0;
}

/* A special register that is a truth value. */
static int mov_truth(Decoder *d, const PtxOperand *to, const PtxOperand *from)
{
    uint32_t dest, row;
    if (decode_source_of(d, from, 32, &row) || decode_pred_dest(d, to, &dest)) return -1;
    decode_put(d, setp_handler(32, 0),
               (Inst){.d = dest,
                      .a = row,
                      .b = decode_const32(d->code, 0),
                      .k0 = CMP_NE,
                      .k1 = COMBINE_NONE});
    return 0;
}

static int mov_op(Decoder *d)
{
    const ValueType *t = decode_type(d);
    const PtxOperand *to = decode_operand(d, 0), *from = decode_operand(d, 1);
    uint32_t dest, source, flip;
    if (!t || !to || !from || t->bits == 8) return decode_refuse(d, "no type");
    if (t->bits == 1 && from->kind == OPND_SPECIAL && from->value == SPECIAL_IS_EXPLICIT_CLUSTER)
        return mov_truth(d, to, from);
    if (t->bits == 1) {
        if (decode_pred(d, 1, &source, &flip) || decode_pred_dest(d, to, &dest)) return -1;
        Inst *in = decode_emit(d, h_mov_pred);
        in->d = dest;
        in->a = source;
        in->f = flip;
        return 0;
    }
    if (from->kind == OPND_VEC) return mov_pack(d, from, t->bits);
    if (to->kind == OPND_VEC) return mov_unpack(d, to, t->bits);
    if (decode_source_of(d, from, t->bits, &source) || decode_dest(d, 0, t->bits, &dest)) return -1;
    decode_put(d, t->bits == 64 ? h_mov64 : h_mov32, (Inst){.d = dest, .a = source});
    return 0;
}

/* ---- cvt ---- */

/* Returns FP_* and CVT_* flags. */
static int cvt_flags(Decoder *d, int *round_int)
{
    static const struct {
        const char *name;
        int round_int;
    } whole[] = {{"rni", INT_NEAREST}, {"rzi", INT_ZERO}, {"rmi", INT_DOWN}, {"rpi", INT_UP}};
    int mode = decode_has(d, "rz")   ? FP_RZ
               : decode_has(d, "rm") ? FP_RM
               : decode_has(d, "rp") ? FP_RP
                                     : FP_RN;
    decode_has(d, "rn");
    mode |= decode_has(d, "rna") ? CVT_RNA : 0;
    mode |= decode_has(d, "ftz") ? FP_FTZ : 0;
    mode |= decode_has(d, "sat") ? FP_SAT : 0;
    mode |= decode_has(d, "relu") ? CVT_RELU : 0;
    mode |= decode_has(d, "satfinite") ? CVT_SATFINITE : 0;
    *round_int = INT_NONE;
    for (int i = 0; i < 4; i++)
        if (decode_has(d, whole[i].name)) *round_int = whole[i].round_int;
    return mode;
}

static int cvt_packed(Decoder *d, const ValueType *to, int mode)
{
    uint32_t a, b, dest;
    if (d->in->n_operands != 3) return decode_refuse(d, "another number of operands");
    if (decode_source(d, 1, 32, &a) || decode_source(d, 2, 32, &b) || decode_dest(d, 0, 32, &dest))
        return -1;
    decode_put(d, h_cvt_pack,
               (Inst){.d = dest, .a = a, .b = b, .k0 = to->type, .k3 = (uint8_t)mode});
    d->inst_class = INST_INT;
    return 0;
}

static int is_fp8(const ValueType *t)
{
    return t->type == T_E4M3 || t->type == T_E5M2;
}

/* Pairs of 8-bit floats from two floats or two halves, and to two halves. */
static int cvt_fp8(Decoder *d, const ValueType *to, const ValueType *from, int mode)
{
    int narrow = is_fp8(to), floats = from->type == T_F32, halves = from->type == T_F16;
    uint32_t a, b = 0, dest;
    if (narrow ? !to->packed || !(mode & CVT_SATFINITE) || !(floats || (halves && from->packed))
               : to->type != T_F16 || !to->packed || !is_fp8(from) || !from->packed)
        return decode_refuse(d, "types that are not known");
    if (d->in->n_operands != 2 + floats || (mode & FP_ROUNDING) ||
        decode_source(d, 1, narrow ? 32 : 16, &a) || (floats && decode_source(d, 2, 32, &b)) ||
        decode_dest(d, 0, narrow ? 16 : 32, &dest))
        return decode_refuse(d, "another number of operands");
    decode_put(d, narrow ? h_fp8_narrow : h_fp8_widen,
               (Inst){.d = dest,
                      .a = a,
                      .b = b,
                      .k0 = narrow ? to->type : from->type,
                      .k1 = from->type,
                      .k3 = (uint8_t)mode});
    d->inst_class = INST_INT;
    return 0;
}

static int register_bits(const PtxOperand *o, int type_bits)
{
    if (o->kind == OPND_REG) return o->width;
    return type_bits < 16 ? 16 : type_bits;
}

/* The rates of an H200 (2026-11-29, tests/bench/rates): integers become floats of 32 bits, and floats become
 * halves, at the rate of integer instructions; the other conversions of floats have a quarter of it. */
static int conversion_class(const ValueType *to, const ValueType *from, int round_int)
{
    if (!from->is_float)
        return to->is_float && (to->bits == 64 || from->bits == 64) ? INST_SFU : INST_INT;
    if (!to->is_float || round_int || from->bits == 64 || to->bits == 64) return INST_SFU;
    return to->type == T_BF16 ? INST_SFU : INST_FP32;
}

static int cvt_op(Decoder *d)
{
    int round_int, mode = cvt_flags(d, &round_int);
    const ValueType *from = decode_type(d), *to = decode_type(d);
    const PtxOperand *dst = decode_operand(d, 0), *src = decode_operand(d, 1);
    if (!from || !to || !dst || !src) return decode_refuse(d, "fewer than two types");
    if (is_fp8(to) || is_fp8(from)) return cvt_fp8(d, to, from, mode);
    if (to->packed) return cvt_packed(d, to, mode);
    int to_bits = register_bits(dst, to->bits), from_bits = register_bits(src, from->bits);
    if (from->packed || to_bits < 16 || from_bits < 16 ||
        to_bits < (to->bits < 16 ? 16 : to->bits) || from_bits < from->bits ||
        (d->in->n_operands != 2))
        return decode_refuse(d, "registers of other sizes");
    if (from->is_float && !to->is_float && !round_int) round_int = INT_ZERO;
    if (from->is_float && to->is_float && from->type == to->type && !round_int &&
        (mode & FP_ROUNDING))
        return decode_refuse(d, "a rounding mode that changes nothing");
    uint32_t a, dest;
    if (decode_source(d, 1, from_bits, &a) || decode_dest(d, 0, to_bits, &dest)) return -1;
    decode_put(d, cvt_handler(to->type, from->type, round_int, mode, to_bits, from_bits),
               (Inst){.d = dest,
                      .a = a,
                      .k0 = to->type,
                      .k1 = from->type,
                      .k2 = (uint8_t)round_int,
                      .k3 = (uint8_t)mode,
                      .e = (uint32_t)to_bits,
                      .f = (uint32_t)from_bits});
    d->inst_class = conversion_class(to, from, round_int);
    return 0;
}

/* ---- setp, set, selp, slct, testp ---- */

/* Returns CMP_*, or -1 when the type does not have the comparison. */
static int comparison(Decoder *d, const ValueType *t)
{
    static const char *const names[CMP_COUNT] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                                 "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
    static const char *const unsigned_names[] = {"lo", "ls", "hi", "hs"};
    static const int unsigned_ops[] = {CMP_LT, CMP_LE, CMP_GT, CMP_GE};
    for (int i = 0; i < CMP_COUNT; i++)
        if (decode_has(d, names[i])) return i > CMP_GE && !t->is_float ? -1 : i;
    for (int i = 0; i < 4; i++)
        if (decode_has(d, unsigned_names[i]))
            return t->is_float || t->is_signed ? -1 : unsigned_ops[i];
    return -1;
}

/* Emits a setp into predicates p and q. Returns NULL when it is refused. */
static Inst *compare_into(Decoder *d, const ValueType *t, uint32_t p, uint32_t q)
{
    int op = comparison(d, t), bits = t->bits,
        combine = decode_has(d, "and")   ? COMBINE_AND
                  : decode_has(d, "or")  ? COMBINE_OR
                  : decode_has(d, "xor") ? COMBINE_XOR
                                         : COMBINE_NONE;
    uint32_t a, b, c = 0, flip = 0;
    if (op < 0 || bits == 8) {
        decode_refuse(d, "a comparison that its type does not have");
        return NULL;
    }
    if (decode_source(d, 1, bits, &a) || decode_source(d, 2, bits, &b) ||
        (combine && decode_pred(d, 3, &c, &flip)))
        return NULL;
    if (d->in->n_operands != (combine ? 4 : 3)) {
        decode_refuse(d, "another number of operands");
        return NULL;
    }
    int half = t->type == T_F16 || t->type == T_BF16;
    Inst *in = decode_emit(d, half           ? h_setp_f16
                              : !t->is_float ? setp_handler(bits, t->is_signed)
                              : bits == 64   ? h_setp_f64
                                             : h_setp_f32);
    in->d = p;
    in->e = q;
    in->a = a;
    in->b = b;
    in->c = c;
    in->f = flip;
    in->k0 = (uint8_t)op;
    in->k1 = (uint8_t)combine;
    in->k2 = (uint8_t)decode_has(d, "ftz");
    in->k3 = (uint8_t)((t->type == T_BF16 ? HALF_BF16 : 0) | (t->packed ? HALF_PACKED : 0));
    d->inst_class = half ? INST_FP16 : !t->is_float ? INST_INT : bits == 64 ? INST_FP64 : INST_FP32;
    d->repeats = !t->is_float && bits == 64; /* each half */
    return in;
}

static int setp_op(Decoder *d)
{
    const ValueType *t = decode_type(d);
    const PtxOperand *o = decode_operand(d, 0);
    uint32_t p, q = 0;
    if (!t || decode_pred_dest(d, o, &p) || (o->pair && decode_pred_dest(d, o->pair, &q)))
        return decode_refuse(d, "no type");
    return compare_into(d, t, p, q) ? 0 : -1;
}

/* set of halves: the result is a mask or 1.0. */
static int set_halves(Decoder *d, const ValueType *from, const ValueType *to)
{
    uint32_t dest;
    if (to->bits == 64 || to->type == T_F32 || (from->packed && to->bits != 32) ||
        decode_dest(d, 0, to->bits, &dest))
        return decode_refuse(d, "a type that it does not exist for");
    Inst *in = compare_into(d, from, dest, 0);
    if (!in || in->k1) return decode_refuse(d, "a predicate to combine with");
    in->fn = h_set_f16;
    in->f = to->type == T_F16                ? 0x3c00
            : to->type == T_BF16             ? 0x3f80
            : from->packed || to->bits == 16 ? 0xffff
                                             : FULL_MASK;
    return 0;
}

static int set_op(Decoder *d)
{
    const ValueType *from = decode_type(d), *to = decode_type(d);
    if (from && to && (from->type == T_F16 || from->type == T_BF16)) return set_halves(d, from, to);
    uint32_t dest, p = decode_temp_pred(d);
    if (!from || !to || to->bits != 32 || to->packed || decode_dest(d, 0, 32, &dest))
        return decode_refuse(d, "a type that it does not exist for");
    if (!compare_into(d, from, p, 0)) return -1;
    decode_put(d, h_pred_to32, (Inst){.d = dest, .a = p, .k0 = to->is_float});
    return 0;
}

static int selp_op(Decoder *d)
{
    const ValueType *t = decode_type(d);
    uint32_t a, b, c, flip, dest;
    if (!t || t->bits < 16) return decode_refuse(d, "no type");
    if (decode_source(d, 1, t->bits, &a) || decode_source(d, 2, t->bits, &b) ||
        decode_pred(d, 3, &c, &flip) || decode_dest(d, 0, t->bits, &dest))
        return -1;
    decode_put(d, t->bits == 64 ? h_selp64 : h_selp32,
               (Inst){.d = dest, .a = a, .b = b, .c = c, .f = flip});
    d->inst_class = INST_INT;
    d->repeats = t->bits == 64; /* each half */
    return 0;
}

static int slct_op(Decoder *d)
{
    decode_has(d, "ftz");
    const ValueType *by = decode_type(d), *t = decode_type(d);
    uint32_t a, b, c, dest;
    if (!t || !by || by->bits != 32 || t->bits < 16)
        return decode_refuse(d, "fewer than two types");
    if (decode_source(d, 1, t->bits, &a) || decode_source(d, 2, t->bits, &b) ||
        decode_source(d, 3, 32, &c) || decode_dest(d, 0, t->bits, &dest))
        return -1;
    decode_put(d, t->bits == 64 ? h_slct64 : h_slct32,
               (Inst){.d = dest, .a = a, .b = b, .c = c, .k0 = by->is_float});
    d->inst_class = INST_INT;
    return 0;
}

static int testp_op(Decoder *d)
{
    static const char *const tests[TESTP_COUNT] = {"finite",     "infinite", "number",
                                                   "notanumber", "normal",   "subnormal"};
    const ValueType *t = decode_type(d);
    int which = -1;
    uint32_t a, p;
    for (int i = 0; i < TESTP_COUNT; i++)
        if (decode_has(d, tests[i])) which = i;
    if (!t || !t->is_float || t->bits < 32 || which < 0)
        return decode_refuse(d, "a test or a type that does not exist");
    if (decode_source(d, 1, t->bits, &a) || decode_pred_dest(d, decode_operand(d, 0), &p))
        return -1;
    decode_put(d, t->bits == 64 ? h_testp64 : h_testp32,
               (Inst){.d = p, .a = a, .k0 = (uint8_t)which});
    d->inst_class = INST_FP32;
    return 0;
}

/* ---- address spaces ---- */

static int cvta_op(Decoder *d)
{
    int to = decode_has(d, "to"), space = decode_space(d);
    const ValueType *t = decode_type(d);
    uint32_t a, dest;
    if (space == SPACE_GENERIC || !t || t->bits != 64) return decode_refuse(d, "no space");
    if (decode_source(d, 1, 64, &a) || decode_dest(d, 0, 64, &dest)) return -1;
    decode_put(d, h_cvta, (Inst){.d = dest, .a = a, .k0 = (uint8_t)space, .k1 = (uint8_t)to});
    return 0;
}

static int isspacep_op(Decoder *d)
{
    int own = !decode_has(d, "shared::cluster"), space = own ? decode_space(d) : SPACE_SHARED;
    uint32_t a, p;
    if (space == SPACE_GENERIC || decode_source(d, 1, 64, &a) ||
        decode_pred_dest(d, decode_operand(d, 0), &p))
        return decode_refuse(d, "no space");
    decode_put(
        d, h_isspacep,
        (Inst){
            .d = p, .a = a, .k0 = (uint8_t)space, .k1 = (uint8_t)(own && space == SPACE_SHARED)});
    d->inst_class = INST_INT;
    return 0;
}

int decode_moves(Decoder *d)
{
    static const DecodeOp table[] = {
        {"mov", mov_op},     {"cvt", cvt_op},   {"setp", setp_op},
        {"set", set_op},     {"selp", selp_op}, {"slct", slct_op},
        {"testp", testp_op}, {"cvta", cvta_op}, {"isspacep", isspacep_op}};
    return decode_among(d, table, sizeof table / sizeof *table);
}
