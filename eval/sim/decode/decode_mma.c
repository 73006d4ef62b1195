/* mma, ldmatrix, stmatrix and movmatrix. */
#include "eval/sim/decode/decode_internal.h"

static int fragment_rows(Decoder *d, const PtxOperand *o, int n, int bits, uint32_t *rows)
{
    if (!o || o->kind != OPND_VEC || o->n != n)
        return decode_refuse(d, "a fragment of another length");
    for (int i = 0; i < n; i++)
        if (decode_source_of(d, &o->items[i], bits, &rows[i])) return -1;
    return 0;
}

int decode_fragment(Decoder *d, int operand, int n, int bits, uint32_t *rows)
{
    const PtxOperand *o = decode_operand(d, operand);
    return o && n == 1 && o->kind == OPND_REG ? decode_source(d, operand, bits, rows)
                                              : fragment_rows(d, o, n, bits, rows);
}

int decode_fragment_dest(Decoder *d, int operand, int n, int bits, uint32_t *rows)
{
    const PtxOperand *o = decode_operand(d, operand);
    if (o && n == 1 && o->kind == OPND_REG) return decode_dest(d, operand, bits, rows);
    for (int i = 0; i < n && o && o->kind == OPND_VEC && o->n == n; i++)
        if (o->items[i].kind != OPND_REG) return decode_refuse(d, "a fragment of other registers");
    return fragment_rows(d, o, n, bits, rows);
}

static int element_bits(int type)
{
    int bytes = type == T_S8 || type == T_U8 || type == T_E4M3 || type == T_E5M2;
    return type == T_TF32 ? 32 : type == T_F16 || type == T_BF16 ? 16 : bytes ? 8 : 0;
}

int decode_mma_slots(int flops, int type)
{
    return flops / 16 * element_bits(type);
}

/* Doubles have a sixteenth of the rate of halves, and those of 8 rows, which fill half of the unit, two
 * thirds of that: 133 and 160 flops a cycle of an SM on an H200 (2026-11-29, tests/bench/rates). */
static int doubles_slots(int flops, int rows)
{
    return flops * (rows < 16 ? 24 : 16);
}

enum { HALF_STEP_CYCLES = 24 /* of factors of 16 bytes a row; those of 32 take 32 */ };

static int shape_k(Decoder *d)
{
    static const struct {
        const char *name;
        int k;
    } shapes[] = {{"m16n8k4", 4}, {"m16n8k8", 8}, {"m16n8k16", 16}, {"m16n8k32", 32}};
    for (int i = 0; i < 4; i++)
        if (decode_has(d, shapes[i].name)) return shapes[i].k;
    return 0;
}

int decode_mma_doubles(Decoder *d, int rows, int k)
{
    MmaOp *op = ptx_arena_alloc(d->code->ptx.arena, sizeof *op);
    op->k = (uint8_t)k;
    op->n_a = (uint8_t)(rows * k / 32);
    op->n_b = (uint8_t)(k / 4);
    op->n_c = (uint8_t)(rows / 4);
    op->a_type = op->b_type = op->acc_type = T_F64;
    if (d->in->n_operands != 4 || decode_fragment_dest(d, 0, op->n_c, 64, op->d) ||
        decode_fragment(d, 1, op->n_a, 64, op->a) || decode_fragment(d, 2, op->n_b, 64, op->b) ||
        decode_fragment(d, 3, op->n_c, 64, op->c))
        return decode_refuse(d, "fragments of other lengths");
    decode_emit(d, h_mma_doubles)->mma = op;
    d->inst_class = INST_TENSOR;
    d->flops = 2 * rows * 8 * k;
    d->mma_slots = doubles_slots(d->flops, rows);
    return 0;
}

static int mma_op(Decoder *d)
{
    int small = decode_has(d, "m8n8k4"), k = small ? 4 : shape_k(d), sync = decode_has(d, "sync"),
        row = decode_has(d, "row"), col = decode_has(d, "col");
    int saturate = decode_has(d, "satfinite");
    decode_has(d, "aligned");
    const ValueType *c = decode_type(d), *b = decode_type(d), *a = decode_type(d),
                    *to = decode_type(d);
    if (!k || !sync || !row || !col || !to || c != to)
        return decode_refuse(d, "a shape or types that are not known");
    if (a->type == T_F64 && b == a && c == a && k <= 16 && !saturate)
        return decode_mma_doubles(d, small ? 8 : 16, k);
    if (small) return decode_refuse(d, "a shape or types that are not known");
    int bits = element_bits(a->type), int_sum = a->bits == 8 && !a->is_float,
        fp8 = a->bits == 8 && a->is_float;
    if (!bits || element_bits(b->type) != bits || b->is_float != a->is_float ||
        (bits != 8 && a->type != b->type) ||
        to->type != (int_sum                                          ? T_S32
                     : to->type == T_F16 && (a->type == T_F16 || fp8) ? T_F16
                                                                      : T_F32) ||
        k * bits < 128 || k * bits > 256)
        return decode_refuse(d, "a shape or types that are not known");
    MmaOp *op = ptx_arena_alloc(d->code->ptx.arena, sizeof *op);
    op->k = (uint8_t)k;
    op->n_a = (uint8_t)(k * bits / 64);
    op->n_b = (uint8_t)(k * bits / 128);
    op->n_c = to->type == T_F16 ? 2 : 4;
    op->a_type = a->type;
    op->b_type = b->type;
    op->acc_type = to->type;
    op->saturate = (uint8_t)saturate;
    if (d->in->n_operands != 4 || decode_fragment_dest(d, 0, op->n_c, 32, op->d) ||
        decode_fragment(d, 1, op->n_a, 32, op->a) || decode_fragment(d, 2, op->n_b, 32, op->b) ||
        decode_fragment(d, 3, op->n_c, 32, op->c))
        return decode_refuse(d, "fragments of other lengths");
    decode_emit(d, h_mma)->mma = op;
    d->inst_class = INST_TENSOR;
    d->flops = 2 * 16 * 8 * k;
    d->mma_slots = decode_mma_slots(d->flops, a->type);
    /* Factors of 16 bytes a row take 0.8 of the time of those of 32, and floats of 8 bits, which are made
     * halves before, 1.4 of it (an H200, 2026-11-29: mma_f16_k8 and mma_e4m3_k32 of tests/bench/rates). */
    if (k * bits == 128) d->cycles = HALF_STEP_CYCLES, d->mma_slots += d->mma_slots * 3 / 5;
    if (fp8) d->mma_slots += d->mma_slots * 2 / 5;
    return 0;
}

/* ldmatrix, and stmatrix with its operands in the other order. */
static int matrix_access(Decoder *d)
{
    int stores = *d->in->op == 's',
        n = decode_has(d, "x4")   ? 4
            : decode_has(d, "x2") ? 2
            : decode_has(d, "x1") ? 1
                                  : 0,
        trans = decode_has(d, "trans");
    int known = decode_has(d, "sync") && decode_has(d, "m8n8") && decode_has(d, "b16");
    int shared = decode_has(d, "shared") | decode_has(d, "shared::cta");
    const PtxOperand *o = decode_operand(d, !stores);
    decode_has(d, "aligned");
    if (!known || !n || d->in->n_operands != 2 || !o || o->kind != OPND_ADDR ||
        o->items[0].kind != OPND_REG || o->items[0].cls == REG_PRED || o->items[0].width < 32)
        return decode_refuse(d, "a form that is not known");
    MemOp *mo = decode_mem(d);
    mo->kind = stores ? MEM_STORE : MEM_LOAD;
    mo->space = shared ? SPACE_SHARED : SPACE_GENERIC;
    mo->element = 4;
    mo->count = 4;
    mo->address_kind = o->items[0].cls == REG_64 ? ADDRESS_64 : ADDRESS_32;
    mo->address = o->items[0].reg * (o->items[0].cls == REG_64 ? ROW64 : ROW32);
    mo->offset = o->value;
    if (stores ? decode_fragment(d, 1, n, 32, &mo->data[4])
               : decode_fragment_dest(d, 0, n, 32, &mo->data[4]))
        return -1;
    decode_put(d, stores ? h_stmatrix : h_ldmatrix,
               (Inst){.mem = mo, .k0 = (uint8_t)n, .k1 = (uint8_t)trans});
    d->inst_class = stores ? INST_SHARED_STORE : INST_SHARED_LOAD;
    return 0;
}

static int movmatrix_op(Decoder *d)
{
    uint32_t from, to;
    int known = decode_has(d, "sync") && decode_has(d, "m8n8") && decode_has(d, "trans") &&
                decode_has(d, "b16");
    decode_has(d, "aligned");
    if (!known || decode_source(d, 1, 32, &from) || decode_dest(d, 0, 32, &to))
        return decode_refuse(d, "a form that is not known");
    decode_put(d, h_movmatrix, (Inst){.d = to, .a = from});
    d->inst_class = INST_SHUFFLE;
    return 0;
}

int decode_mma(Decoder *d)
{
    if (!strcmp(d->in->op, "mma")) return mma_op(d);
    if (!strcmp(d->in->op, "ldmatrix") || !strcmp(d->in->op, "stmatrix")) return matrix_access(d);
    if (!strcmp(d->in->op, "movmatrix")) return movmatrix_op(d);
    return 1;
}
