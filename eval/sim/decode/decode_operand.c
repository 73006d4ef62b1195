/* Operands and modifiers of the current instruction, constants, and the output. Constants are
 * replicated over the lanes in the module's pools. */

#include "base/memory.h"
#include "eval/sim/decode/decode_internal.h"

/* ---- constants ---- */

static uint32_t pool_add(unsigned char **pool, int *n, int *cap, const void *row, size_t bytes)
{
    /* Search the recent rows: most constants repeat nearby. */
    for (int i = *n - 1; i >= 0 && i > *n - 64; i--)
        if (!memcmp(*pool + (size_t)i * bytes, row, bytes))
            return ROW_CONST | (uint32_t)((size_t)i * bytes);
    if (*n == *cap) {
        *cap = *cap ? *cap * 2 : 64;
        *pool = memory_grow(*pool, (size_t)*cap, bytes);
    }
    memcpy(*pool + (size_t)*n * bytes, row, bytes);
    return ROW_CONST | (uint32_t)((size_t)(*n)++ * bytes);
}

uint32_t decode_const32(Code *c, uint32_t v)
{
    uint32_t row[LANES];
    for (int i = 0; i < LANES; i++) row[i] = v;
    return pool_add(&c->pool32, &c->n_pool32, &c->cap_pool32, row, sizeof row);
}

uint32_t decode_const64(Code *c, uint64_t v)
{
    uint64_t row[LANES];
    for (int i = 0; i < LANES; i++) row[i] = v;
    return pool_add(&c->pool64, &c->n_pool64, &c->cap_pool64, row, sizeof row);
}

/* ---- output ---- */

MemOp *decode_mem(Decoder *d)
{
    MemOp *mo = ptx_arena_alloc(d->code->ptx.arena, sizeof *mo);
    mo->traffic = &d->f->traffic[d->in - d->p->insts];
    return mo;
}

Inst *decode_emit(Decoder *d, Handler *fn)
{
    d->out = ptx_push(d->out, &d->n, &d->cap, sizeof(Inst));
    Inst *i = &d->out[d->n - 1];
    i->fn = fn;
    i->source = d->in ? (uint32_t)(d->in - d->p->insts) : 0;
    if (d->in && d->in->guard >= 0) {
        i->g = (uint32_t)d->in->guard + 1;
        i->gneg = d->in->guard_negated ? FULL_MASK : 0;
    }
    return i;
}

void decode_put(Decoder *d, Handler *fn, Inst with)
{
    Inst *i = decode_emit(d, fn);
    with.fn = i->fn;
    with.source = i->source;
    with.g = i->g;
    with.gneg = i->gneg;
    *i = with;
}

int decode_refuse(Decoder *d, const char *why)
{
    if (!d->why) d->why = why;
    return -1;
}

uint32_t decode_temp32(Decoder *d)
{
    return d->next32++ * ROW32;
}

uint32_t decode_temp64(Decoder *d)
{
    return d->next64++ * ROW64;
}

uint32_t decode_temp_pred(Decoder *d)
{
    return d->next_pred++;
}

/* ---- modifiers ---- */

int decode_has(Decoder *d, const char *mod)
{
    for (int i = 0; i < d->in->n_mods; i++)
        if (!strcmp(d->in->mods[i], mod)) {
            d->mods_used |= 1u << i;
            return 1;
        }
    return 0;
}

static const ValueType value_types[] = {
    {"u8", T_U8, 8, 0, 0, 0},        {"s8", T_S8, 8, 0, 1, 0},
    {"b8", T_U8, 8, 0, 0, 0},        {"u16", T_U16, 16, 0, 0, 0},
    {"s16", T_S16, 16, 0, 1, 0},     {"b16", T_U16, 16, 0, 0, 0},
    {"u32", T_U32, 32, 0, 0, 0},     {"s32", T_S32, 32, 0, 1, 0},
    {"b32", T_U32, 32, 0, 0, 0},     {"u64", T_U64, 64, 0, 0, 0},
    {"s64", T_S64, 64, 0, 1, 0},     {"b64", T_U64, 64, 0, 0, 0},
    {"f16", T_F16, 16, 1, 1, 0},     {"bf16", T_BF16, 16, 1, 1, 0},
    {"f16x2", T_F16, 32, 1, 1, 1},   {"bf16x2", T_BF16, 32, 1, 1, 1},
    {"f32", T_F32, 32, 1, 1, 0},     {"f64", T_F64, 64, 1, 1, 0},
    {"tf32", T_TF32, 32, 1, 1, 0},   {"e4m3x2", T_E4M3, 16, 1, 1, 1},
    {"e5m2x2", T_E5M2, 16, 1, 1, 1}, {"e4m3", T_E4M3, 8, 1, 1, 0},
    {"e5m2", T_E5M2, 8, 1, 1, 0},    {"pred", T_U8, 1, 0, 0, 0},
};

const ValueType *decode_type(Decoder *d)
{
    for (int i = d->in->n_mods - 1; i >= 0; i--)
        for (size_t k = 0;
             k < sizeof value_types / sizeof value_types[0] && !(d->mods_used >> i & 1); k++)
            if (!strcmp(d->in->mods[i], value_types[k].name)) {
                d->mods_used |= 1u << i;
                return &value_types[k];
            }
    return NULL;
}

/* ---- operands ---- */

const PtxOperand *decode_operand(const Decoder *d, int i)
{
    return i < d->in->n_operands ? &d->in->operands[i] : NULL;
}

/* A row with the address of a variable. */
static int variable_address(Decoder *d, const PtxOperand *o, int bits, uint32_t *row)
{
    const PtxVar *v = o->var;
    uint64_t at = v->offset + (uint64_t)o->value;
    if (v->space == SPACE_GLOBAL) at = v->address + (uint64_t)o->value;
    if (v->space == SPACE_GLOBAL && v->is_extern)
        return decode_refuse(d, "a variable that is defined elsewhere");
    if (v->space == SPACE_PARAM && !d->p->is_entry)
        return decode_refuse(d, "the address of a function's parameter");
    if (v->space == SPACE_LOCAL) {
        *row = bits == 64 ? decode_temp64(d) : decode_temp32(d);
        decode_put(d, h_local_address, (Inst){.d = *row, .imm = at, .k1 = bits == 64});
    } else {
        *row = bits == 64 ? decode_const64(d->code, at) : decode_const32(d->code, (uint32_t)at);
    }
    return 0;
}

static uint64_t literal_bits(const PtxOperand *o, int bits)
{
    if (o->kind == OPND_F64 && bits == 32) { /* a decimal literal of a 32-bit operand */
        double v;
        memcpy(&v, &o->value, 8);
        float f = (float)v;
        uint32_t b;
        memcpy(&b, &f, 4);
        return b;
    }
    if (o->kind == OPND_F32 && bits == 64) {
        uint32_t b = (uint32_t)o->value;
        float f;
        memcpy(&f, &b, 4);
        double v = f;
        uint64_t r;
        memcpy(&r, &v, 8);
        return r;
    }
    return (uint64_t)o->value & (bits == 64 ? ~0ull : (1ull << bits) - 1);
}

int decode_source_of(Decoder *d, const PtxOperand *o, int bits, uint32_t *row)
{
    if (!o) return decode_refuse(d, "fewer operands than expected");
    switch (o->kind) {
    case OPND_REG:
        if (o->negated || o->cls != (bits == 64 ? REG_64 : REG_32))
            return decode_refuse(d, "a register of another size");
        *row = o->reg * (bits == 64 ? ROW64 : ROW32);
        return 0;
    case OPND_INT:
    case OPND_F32:
    case OPND_F64:
        *row = bits == 64 ? decode_const64(d->code, literal_bits(o, 64))
                          : decode_const32(d->code, (uint32_t)literal_bits(o, bits));
        return 0;
    case OPND_VAR: return variable_address(d, o, bits, row);
    case OPND_SPECIAL: {
        *row = bits == 64 ? decode_temp64(d) : decode_temp32(d);
        Inst *i = decode_emit(d, h_special);
        i->d = *row;
        i->k0 = (uint8_t)o->value;
        i->k1 = bits == 64;
        d->code->uses_reserved |=
            o->value >= SPECIAL_RESERVED_BEGIN && o->value <= SPECIAL_RESERVED_CAP;
        d->code->uses_grid |= o->value == SPECIAL_ENVREG1 || o->value == SPECIAL_ENVREG2;
        i->f = bits == 16 ? 0xffff : FULL_MASK;
        return 0;
    }
    case OPND_NAME: {
        uint64_t at = bits == 64 ? ptx_take_address(&d->code->ptx, o->name) : 0;
        if (at) {
            *row = decode_const64(d->code, at);
            return 0;
        }
        return decode_refuse(d, "an operand of another kind");
    }
    default: return decode_refuse(d, "an operand of another kind");
    }
}

int decode_source(Decoder *d, int operand, int bits, uint32_t *row)
{
    return decode_source_of(d, decode_operand(d, operand), bits, row);
}

int decode_dest(Decoder *d, int operand, int bits, uint32_t *row)
{
    const PtxOperand *o = decode_operand(d, operand);
    if (o && o->kind == OPND_SINK) {
        *row = bits == 64 ? decode_temp64(d) : decode_temp32(d);
        return 0;
    }
    if (!o || o->kind != OPND_REG || o->cls != (bits == 64 ? REG_64 : REG_32))
        return decode_refuse(d, "a destination register of another size");
    *row = o->reg * (bits == 64 ? ROW64 : ROW32);
    return 0;
}

int decode_pred(Decoder *d, int operand, uint32_t *pred, uint32_t *flip)
{
    const PtxOperand *o = decode_operand(d, operand);
    *flip = 0;
    if (o && o->kind == OPND_INT) { /* a constant truth value */
        *pred = 0;
        *flip = o->value ? 0 : FULL_MASK;
        return 0;
    }
    if (!o || o->kind != OPND_REG || o->cls != REG_PRED) return decode_refuse(d, "a predicate");
    *pred = o->reg + 1;
    *flip = o->negated ? FULL_MASK : 0;
    return 0;
}

int decode_pred_dest(Decoder *d, const PtxOperand *o, uint32_t *pred)
{
    *pred = 0;
    if (o && o->kind == OPND_SINK) return 0;
    if (!o || o->kind != OPND_REG || o->cls != REG_PRED)
        return decode_refuse(d, "a predicate as destination");
    *pred = o->reg + 1;
    return 0;
}

int decode_among(Decoder *d, const DecodeOp *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(d->in->op, ops[i].name)) return ops[i].fn(d);
    return 1;
}
