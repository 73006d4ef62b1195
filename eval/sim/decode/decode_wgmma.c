/* wgmma, and where the assembler inserts a wait: before another instruction that reads or sets a register
 * of an accumulator, or one to which it may be moved. Moves are no use of it: a front end has them where a
 * loop goes on with its accumulators, and the assembler removes them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/decode/decode_internal.h"

enum { ROWS = 16, COLUMNS_MAX = 256, FACTOR_BYTES = 32 /* of a row or column */ };

/* ---- accumulators ---- */

static int is_move(const PtxInst *in)
{
    return ptx_same(in->op, "mov") && in->n_operands == 2 && in->operands[0].kind == OPND_REG &&
           in->operands[0].cls == REG_32 && in->operands[1].kind == OPND_REG &&
           in->operands[1].cls == REG_32;
}

uint8_t *wgmma_accumulators(const PtxFunction *p)
{
    uint8_t *is = NULL;
    for (int i = 0; i < p->n_insts; i++) {
        const PtxInst *in = &p->insts[i];
        if (in->bad || strcmp(in->op, "wgmma") || !ptx_has_dest(in)) continue;
        if (!is) is = memory_alloc((size_t)p->n_regs[REG_32] + 1);
        const PtxOperand *d = &in->operands[0];
        for (int k = 0; d->kind == OPND_VEC && k < d->n; k++)
            if (d->items[k].kind == OPND_REG && d->items[k].cls == REG_32) is[d->items[k].reg] = 1;
    }
    for (int changed = is != NULL; changed;) {
        changed = 0;
        for (int i = 0; i < p->n_insts; i++) {
            const PtxOperand *o = p->insts[i].operands;
            if (p->insts[i].bad || !is_move(&p->insts[i]) || !is[o[1].reg] || is[o[0].reg])
                continue;
            changed = is[o[0].reg] = 1;
        }
    }
    return is;
}

static int mentions(const PtxOperand *o, const uint8_t *is)
{
    if (o->kind == OPND_REG) return o->cls == REG_32 && is[o->reg];
    int n = o->kind == OPND_ADDR ? 1 : o->kind == OPND_VEC || o->kind == OPND_LIST ? o->n : 0;
    for (int i = 0; i < n; i++)
        if (mentions(&o->items[i], is)) return 1;
    return o->pair && mentions(o->pair, is);
}

void wgmma_before(Decoder *d)
{
    if (!d->accumulators || d->in->bad || !strcmp(d->in->op, "wgmma") || is_move(d->in)) return;
    for (int i = 0; i < d->in->n_operands; i++)
        if (mentions(&d->in->operands[i], d->accumulators)) {
            decode_emit(d, h_wgmma_used);
            return;
        }
}

/* ---- the instruction ---- */

/* Returns N, or 0. */
static int shape_of(Decoder *d, int *k)
{
    for (int i = 0; i < d->in->n_mods; i++) {
        int n, end = 0;
        if (sscanf(d->in->mods[i], "m64n%3dk%2d%n", &n, k, &end) != 2 || d->in->mods[i][end])
            continue;
        d->mods_used |= 1u << i;
        return n >= 8 && n <= COLUMNS_MAX && n % 8 == 0 ? n : 0;
    }
    return 0;
}

/* Elements that fill the bytes of a row; 0: the type is unknown here. */
static int depth_of(const ValueType *t)
{
    if (!t || t->packed) return 0;
    switch (t->type) {
    case T_F16:
    case T_BF16:
    case T_TF32:
    case T_S8:
    case T_U8:
    case T_E4M3:
    case T_E5M2: return FACTOR_BYTES * 8 / t->bits;
    default: return 0;
    }
}

static int are_known(const ValueType *to, const ValueType *a, const ValueType *b)
{
    if (a->bits != b->bits || a->is_float != b->is_float || (a->bits > 8 && a->type != b->type))
        return 0;
    if (!a->is_float) return to->type == T_S32;
    return to->type == T_F32 || (to->type == T_F16 && a->type != T_BF16 && a->type != T_TF32);
}

static int constant_at(const Decoder *d, int operand, int *value)
{
    const PtxOperand *o = decode_operand(d, operand);
    if (!o || o->kind != OPND_INT) return -1;
    *value = (int)o->value;
    return 0;
}

/* Signs of the factors, and which of them are transposed. */
static int constants(Decoder *d, WgmmaOp *op)
{
    int sign_a = 1, sign_b = 1, a = 0, b = 0, halves = op->a_type == T_F16 || op->a_type == T_BF16,
        at = 4, failed = 0;
    if (op->acc_type != T_S32)
        failed |= constant_at(d, at, &sign_a) | constant_at(d, at + 1, &sign_b), at += 2;
    if (halves && !op->a_in_registers) failed |= constant_at(d, at++, &a);
    if (halves) failed |= constant_at(d, at++, &b);
    if (failed || at != d->in->n_operands || abs(sign_a) != 1 || abs(sign_b) != 1 || (a | b) & ~1)
        return decode_refuse(d, "a form that is not known");
    op->negated = sign_a != sign_b;
    op->a_transposed = (uint8_t)a;
    op->b_transposed = (uint8_t)b;
    return 0;
}

static int operands(Decoder *d, WgmmaOp *op)
{
    const PtxOperand *a = decode_operand(d, 1);
    op->a_in_registers = a && a->kind == OPND_VEC;
    op->c = ptx_arena_alloc(d->code->ptx.arena, sizeof *op->c * op->n_c);
    if (decode_fragment_dest(d, 0, op->n_c, 32, op->c) ||
        (op->a_in_registers ? decode_fragment(d, 1, 4, 32, op->a)
                            : decode_source(d, 1, 64, &op->a[0])) ||
        decode_source(d, 2, 64, &op->b) || decode_pred(d, 3, &op->adds, &op->adds_flip))
        return decode_refuse(d, "fragments of other lengths");
    return constants(d, op);
}

static int multiply(Decoder *d)
{
    int k = 0, n = shape_of(d, &k), saturate = decode_has(d, "satfinite");
    const ValueType *b = decode_type(d), *a = decode_type(d), *to = decode_type(d);
    if (!n || !to || depth_of(a) != k || depth_of(b) != k || !are_known(to, a, b) ||
        (saturate && a->is_float))
        return decode_refuse(d, "a shape or types that are not known");
    WgmmaOp *op = ptx_arena_alloc(d->code->ptx.arena, sizeof *op);
    memset(op, 0, sizeof *op);
    op->n = n;
    op->k = k;
    op->n_c = (uint8_t)(to->type == T_F16 ? n / 4 : n / 2);
    op->a_type = a->type;
    op->b_type = b->type;
    op->acc_type = to->type;
    op->saturate = (uint8_t)saturate;
    op->traffic = &d->f->traffic[d->in - d->p->insts];
    if (operands(d, op)) return -1;
    /* A quarter of the second factor, which the warps of the group read together. */
    int bytes = n * FACTOR_BYTES / 4 + (op->a_in_registers ? 0 : ROWS * FACTOR_BYTES);
    op->wavefronts = (uint32_t)(bytes + 127) / 128;
    decode_emit(d, h_wgmma)->wgmma = op;
    d->code->uses_proxy = 1;
    d->inst_class = INST_TENSOR;
    d->flops = 2 * ROWS * n * (FACTOR_BYTES / 2); /* as of halves: each type takes as long */
    return 0;
}

static int group_op(Decoder *d, int waits)
{
    int pending = 0;
    if (d->in->n_operands != waits || (waits && constant_at(d, 0, &pending)))
        return decode_refuse(d, "a form that is not known");
    decode_put(d, h_wgmma_group, (Inst){.k0 = (uint8_t)waits, .imm = (uint64_t)pending});
    d->inst_class = INST_BARRIER;
    return 0;
}

int decode_wgmma(Decoder *d)
{
    if (strcmp(d->in->op, "wgmma")) return 1;
    if (strcmp(d->code->ptx.target, "sm_90a"))
        return decode_refuse(d, "no meaning on GPUs other than those of compute capability 9.0");
    int sync = decode_has(d, "sync"), aligned = decode_has(d, "aligned");
    if (!sync || !aligned) return decode_refuse(d, "a form that is not known");
    if (decode_has(d, "mma_async")) return multiply(d);
    int waits = decode_has(d, "wait_group");
    if (waits || decode_has(d, "commit_group")) return group_op(d, waits);
    if (!decode_has(d, "fence")) return decode_refuse(d, "a form that is not known");
    decode_emit(d, h_nop); /* the assembler inserts a missing one */
    d->inst_class = INST_BARRIER;
    return 0;
}
