/* Operands become slots and constants; the types of an instruction are its last modifiers. */
#include "eval/sim/coverage/slice_decode.h"

#include <stdlib.h>
#include <string.h>

int slots_of(SliceSlots *s, const PtxOperand *o)
{
    int *slot = &s->of[o->cls][o->reg];
    if (*slot < 0) *slot = s->n++;
    return *slot;
}

/* ---- operands ---- */

static SliceSource source_of(const PtxOperand *o, SliceSlots *slots)
{
    SliceSource s = {.kind = SOURCE_NONE, .negated = o->negated};
    if (o->kind == OPND_REG && o->cls != REG_128)
        s = (SliceSource){SOURCE_REGISTER, o->negated, slots_of(slots, o), 0};
    else if (o->kind == OPND_INT && !o->negated)
        s = (SliceSource){SOURCE_CONSTANT, 0, 0, (uint64_t)o->value};
    else if (o->kind == OPND_SPECIAL)
        s = (SliceSource){SOURCE_SPECIAL, 0, 0, (uint64_t)o->value};
    else if (o->kind == OPND_VAR && o->var->space == SPACE_GLOBAL)
        s = (SliceSource){SOURCE_CONSTANT, 0, 0, o->var->address + (uint64_t)o->value};
    else if (o->kind == OPND_VAR && o->var->space == SPACE_SHARED)
        s = (SliceSource){SOURCE_CONSTANT, 0, 0, o->var->offset + (uint64_t)o->value};
    else if (o->kind == OPND_VAR && o->var->space == SPACE_LOCAL)
        s = (SliceSource){SOURCE_CONSTANT, 0, 0, o->var->offset + (uint64_t)o->value};
    return s;
}

SliceSource slice_guard(const PtxInst *in, SliceSlots *slots)
{
    if (in->guard < 0) return (SliceSource){0};
    PtxOperand o = {.kind = OPND_REG, .cls = REG_PRED, .reg = (uint32_t)in->guard};
    return (SliceSource){SOURCE_REGISTER, in->guard_negated != 0, slots_of(slots, &o), 0};
}

static void add_dest(const PtxOperand *o, SliceSlots *slots, SliceInst *out)
{
    if (out->n_dests < 4)
        out->dests[out->n_dests++] =
            o->kind == OPND_REG && o->cls != REG_128 ? slots_of(slots, o) : -1;
}

static void find_dests(const PtxInst *in, SliceSlots *slots, SliceInst *out)
{
    const PtxOperand *o = in->n_operands ? &in->operands[0] : NULL;
    if (!o || !ptx_has_dest(in)) return;
    if (o->kind == OPND_VEC)
        for (int i = 0; i < o->n; i++) add_dest(&o->items[i], slots, out);
    else
        add_dest(o, slots, out);
    if (o->pair) add_dest(o->pair, slots, out);
}

/* ---- instructions ---- */

typedef struct {
    int bits, is_signed, is_integer;
} SliceType;

/* By number: the last modifier that is a type is 0. */
static SliceType type_of(const PtxInst *in, int number)
{
    for (int i = in->n_mods - 1; i >= 0; i--) {
        const char *m = in->mods[i];
        char *end;
        int is_pred = !strcmp(m, "pred"), bits = is_pred ? 1 : (int)strtol(m + 1, &end, 10);
        if (!is_pred && (!strchr("usbf", m[0]) || end == m + 1 || *end)) continue;
        if (number--) continue;
        return (SliceType){bits, m[0] == 's', m[0] != 'f'};
    }
    return (SliceType){0, 0, 0};
}

static const struct {
    const char *name;
    uint8_t op, n;
} plain[] = {
    {"add", OP_ADD, 2},    {"sub", OP_SUB, 2}, {"shl", OP_SHL, 2},     {"shr", OP_SHR, 2},
    {"and", OP_AND, 2},    {"or", OP_OR, 2},   {"xor", OP_XOR, 2},     {"not", OP_NOT, 1},
    {"neg", OP_NEG, 1},    {"abs", OP_ABS, 1}, {"min", OP_MIN, 2},     {"max", OP_MAX, 2},
    {"div", OP_DIV, 2},    {"rem", OP_REM, 2}, {"selp", OP_SELECT, 3}, {"bfe", OP_EXTRACT, 3},
    {"bfi", OP_INSERT, 4},
};

static int find_plain(const PtxInst *in, SliceInst *out)
{
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (ptx_same(in->op, plain[i].name)) {
            out->op = plain[i].op;
            out->n_sources = plain[i].n;
            return 1;
        }
    return 0;
}

static void take_sources(const PtxInst *in, SliceSlots *slots, SliceInst *out)
{
    for (int i = 0; i < out->n_sources; i++) {
        if (i + 1 < in->n_operands && !out->sources[i].kind)
            out->sources[i] = source_of(&in->operands[i + 1], slots);
        if (!out->sources[i].kind) out->op = OP_UNKNOWN;
    }
}

static void decode_product(const PtxInst *in, SliceInst *out)
{
    int wide = ptx_has_mod(in, "wide"), is_mad = in->op[1] == 'a';
    out->n_sources = is_mad ? 3 : 2;
    out->op = ptx_has_mod(in, "lo") ? (is_mad ? OP_MAD : OP_MUL)
              : wide                ? (is_mad ? OP_MAD_WIDE : OP_MUL_WIDE)
              : is_mad              ? OP_UNKNOWN
                                    : OP_MUL_HIGH;
    out->from_bits = out->bits;
    if (wide) out->bits *= 2;
    if (ptx_has_mod(in, "sat")) out->op = OP_UNKNOWN;
}

static void decode_compare(const PtxInst *in, SliceInst *out)
{
    static const struct {
        const char *name;
        int k, is_unsigned;
    } kinds[] = {{"eq", IS_EQ, 0}, {"ne", IS_NE, 0}, {"lt", IS_LT, 0}, {"le", IS_LE, 0},
                 {"gt", IS_GT, 0}, {"ge", IS_GE, 0}, {"lo", IS_LT, 1}, {"ls", IS_LE, 1},
                 {"hi", IS_GT, 1}, {"hs", IS_GE, 1}};
    out->op = OP_UNKNOWN;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (in->n_mods < 2 || strcmp(in->mods[0], kinds[i].name)) continue;
        out->op = OP_COMPARE;
        out->k = (uint8_t)kinds[i].k;
        if (kinds[i].is_unsigned) out->is_signed = 0;
    }
    out->combine = ptx_has_mod(in, "and")   ? COMBINE_WITH_AND
                   : ptx_has_mod(in, "or")  ? COMBINE_WITH_OR
                   : ptx_has_mod(in, "xor") ? COMBINE_WITH_XOR
                                            : COMBINE_NOT;
    out->n_sources = out->combine ? 3 : 2;
}

/* The address of one of the kernel's parameters, as a tensor map has it. */
static int decode_own_address(const PtxFunction *f, const PtxInst *in, SliceInst *out)
{
    const PtxOperand *from = &in->operands[1];
    int is_own = 0;
    for (int i = 0; i < f->n_params && from->kind == OPND_VAR; i++)
        is_own |= from->var == f->params[i];
    if (!is_own || !f->is_entry || in->operands[0].kind != OPND_REG) return 0;
    out->op = OP_MOVE;
    out->n_sources = 1;
    out->from_bits = out->bits;
    out->sources[0] =
        (SliceSource){SOURCE_CONSTANT, 0, 0, from->var->offset + (uint64_t)from->value};
    return 1;
}

/* A move, of which one side may be a vector of two halves. */
static void decode_move(const PtxInst *in, SliceSlots *slots, SliceInst *out)
{
    const PtxOperand *to = &in->operands[0], *from = &in->operands[1];
    out->op = OP_MOVE;
    out->n_sources = 1;
    out->from_bits = out->bits;
    if (to->kind == OPND_VEC && to->n == 2) {
        out->op = OP_UNPACK;
        out->bits /= 2;
    } else if (from->kind == OPND_VEC && from->n == 2) {
        out->op = OP_PACK;
        out->n_sources = 2;
        out->from_bits /= 2;
        for (int i = 0; i < 2; i++)
            if (!(out->sources[i] = source_of(&from->items[i], slots)).kind) out->op = OP_UNKNOWN;
        return;
    } else if (to->kind == OPND_VEC || from->kind == OPND_VEC) {
        out->op = OP_UNKNOWN;
    }
    take_sources(in, slots, out);
}

static void decode_param(const PtxFunction *f, const PtxInst *in, SliceInst *out)
{
    const PtxOperand *base = in->operands[1].kind == OPND_ADDR ? &in->operands[1].items[0] : NULL;
    int is_own = 0;
    out->op = OP_UNKNOWN;
    if (!base || base->kind != OPND_VAR) return;
    for (int i = 0; i < f->n_params; i++) is_own |= base->var == f->params[i];
    if (!is_own || in->operands[0].kind != OPND_REG) return;
    out->op = OP_PARAM;
    out->from_bits = out->bits;
    out->offset = (int64_t)base->var->offset + base->value + in->operands[1].value;
    out->sources[0] =
        (SliceSource){.kind = SOURCE_CONSTANT, .value = (uint64_t)(uintptr_t)base->var};
}

/* Addresses of the block's and of the thread's memory are in windows of generic ones. */
static void decode_address_space(const PtxInst *in, SliceInst *out)
{
    int shared = ptx_has_mod(in, "shared"), local = ptx_has_mod(in, "local"),
        param = ptx_has_mod(in, "param");
    uint64_t window = shared ? SHARED_WINDOW : param ? PARAM_WINDOW : LOCAL_WINDOW;
    out->n_sources = 1;
    out->op = ptx_has_mod(in, "global") ? OP_MOVE : OP_UNKNOWN;
    if (!shared && !local && !param) return;
    out->op = OP_ADD;
    out->n_sources = 2;
    out->sources[1].kind = SOURCE_CONSTANT;
    out->sources[1].value = ptx_has_mod(in, "to") ? 0 - window : window;
}

static void decode_by_name(const PtxFunction *f, const PtxInst *in, SliceSlots *slots,
                           SliceInst *out)
{
    SliceType t = type_of(in, 0);
    out->bits = (uint8_t)t.bits;
    out->is_signed = (uint8_t)t.is_signed;
    if (!t.bits || in->bad || in->n_operands < 2 || ptx_has_mod(in, "cc")) return;
    if (ptx_same(in->op, "mov")) {
        if (!decode_own_address(f, in, out)) decode_move(in, slots, out);
        return;
    }
    if (ptx_same(in->op, "ld")) {
        if (ptx_has_mod(in, "param")) decode_param(f, in, out);
        return;
    }
    if (!t.is_integer) return;
    if (ptx_same(in->op, "cvta")) {
        decode_address_space(in, out);
    } else if (ptx_same(in->op, "cvt")) {
        SliceType to = type_of(in, 1);
        out->op =
            to.is_integer && to.bits >= 16 && !ptx_has_mod(in, "sat") ? OP_CONVERT : OP_UNKNOWN;
        out->from_bits = out->bits;
        out->bits = (uint8_t)to.bits;
        out->n_sources = 1;
    } else if (ptx_same(in->op, "mul") || ptx_same(in->op, "mad")) {
        decode_product(in, out);
    } else if (ptx_same(in->op, "setp")) {
        decode_compare(in, out);
    } else if (!find_plain(in, out)) {
        return;
    }
    if (ptx_has_mod(in, "sat")) out->op = OP_UNKNOWN;
    take_sources(in, slots, out);
}

void slice_decode(const PtxFunction *f, const PtxInst *in, SliceSlots *slots, SliceInst *out)
{
    memset(out, 0, sizeof *out);
    find_dests(in, slots, out);
    out->guard = slice_guard(in, slots);
    decode_by_name(f, in, slots, out);
    if (out->op == OP_UNKNOWN) out->n_sources = 0;
}

/* ---- stores ---- */

static int is_elsewhere(const PtxInst *in)
{
    static const char *const spaces[] = {"shared",          "local", "shared::cta",
                                         "shared::cluster", "param", "const"};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (ptx_has_mod(in, spaces[i])) return 1;
    return 0;
}

static int is_store(const PtxInst *in)
{
    if (ptx_same(in->op, "cp"))
        return ptx_has_mod(in, "bulk") && ptx_has_mod(in, "global") &&
               ptx_has_mod(in, "bulk_group") && !ptx_has_mod(in, "reduce");
    if (is_elsewhere(in)) return 0;
    return ptx_same(in->op, "st") || (ptx_same(in->op, "atom") && ptx_has_mod(in, "exch")) ||
           (ptx_same(in->op, "wmma") && ptx_has_mod(in, "store"));
}

static int is_load(const PtxInst *in)
{
    if (ptx_same(in->op, "cp"))
        return ptx_has_mod(in, "global") && in->n_operands > 2 && !ptx_has_mod(in, "bulk_group");
    if (is_elsewhere(in)) return 0;
    return ptx_same(in->op, "ld") || ptx_same(in->op, "atom") || ptx_same(in->op, "red") ||
           (ptx_same(in->op, "wmma") && ptx_has_mod(in, "load"));
}

static int is_atomic(const PtxInst *in)
{
    return !is_elsewhere(in) && (ptx_same(in->op, "atom") || ptx_same(in->op, "red"));
}

int slice_is(const PtxInst *in, SliceKind kind)
{
    if (kind == SLICE_LOADS) return is_load(in);
    return is_store(in) || (kind == SLICE_CHANGES && is_atomic(in));
}

int slice_address(const PtxInst *in, SliceKind kind)
{
    if (ptx_same(in->op, "cp")) return kind == SLICE_LOADS;
    return ptx_same(in->op, "atom") || ptx_same(in->op, "ld") ||
           (ptx_same(in->op, "wmma") && ptx_has_mod(in, "load"));
}

static uint32_t elements_of(const PtxInst *in)
{
    return ptx_has_mod(in, "v8") ? 8 : ptx_has_mod(in, "v4") ? 4 : ptx_has_mod(in, "v2") ? 2 : 1;
}

uint32_t slice_element(const PtxInst *in)
{
    if (ptx_same(in->op, "cp")) return ptx_has_mod(in, "tensor") ? 1 : 4;
    if (ptx_has_mod(in, "f16x2") || ptx_has_mod(in, "bf16x2")) return 4;
    if (ptx_has_mod(in, "f16") || ptx_has_mod(in, "bf16")) return 2;
    return (uint32_t)type_of(in, 0).bits / 8;
}

/* A matrix of a warp in memory. */
static void decode_tile(const PtxInst *in, int at, SliceSlots *slots, SliceInst *out)
{
    uint32_t m = 16, n = 16, k = 16;
    if (ptx_has_mod(in, "m32n8k16")) m = 32, n = 8;
    if (ptx_has_mod(in, "m8n32k16")) m = 8, n = 32;
    if (ptx_has_mod(in, "m8n8k4")) m = 8, n = 8, k = 4;
    if (ptx_has_mod(in, "m16n16k8")) k = 8;
    uint32_t rows = ptx_has_mod(in, "b") ? k : m, cols = ptx_has_mod(in, "a") ? k : n;
    int by_rows = ptx_has_mod(in, "row");
    out->op = OP_STORE_TILE;
    out->rows = by_rows ? rows : cols;
    out->bytes = (by_rows ? cols : rows) * out->k;
    int last = at + (at ? 1 : 2);
    if (in->n_operands <= last) return;
    out->n_sources = 2;
    out->sources[1] = source_of(&in->operands[last], slots);
    if (!out->sources[1].kind) out->n_sources = 0;
}

/* The operand that says how many bytes a copy moves: cp.async reads as many as its fourth one says, and fills
 * the rest with zeros. */
static int size_operand(const PtxInst *in, SliceKind kind)
{
    const PtxOperand *read = in->n_operands > 3 ? &in->operands[3] : NULL;
    if (kind != SLICE_LOADS || !read || ptx_has_mod(in, "bulk")) return 2;
    return read->kind == OPND_INT || (read->kind == OPND_REG && read->cls == REG_32) ? 3 : 2;
}

/* A copy by a tensor map, with the coordinates behind the map. */
static void decode_box(const PtxOperand *coordinates, SliceSlots *slots, SliceInst *out)
{
    out->op = OP_STORE_BOX;
    out->n_sources = 0;
    if (coordinates->kind != OPND_VEC || coordinates->n >= SLICE_SOURCES) return;
    for (int i = 0; i < coordinates->n; i++)
        if (!(out->sources[i + 1] = source_of(&coordinates->items[i], slots)).kind) return;
    out->n_sources = (uint8_t)(coordinates->n + 1);
}

void slice_decode_access(const PtxInst *in, SliceKind kind, SliceSlots *slots, SliceInst *out)
{
    int is_copy = ptx_same(in->op, "cp"), at = slice_address(in, kind);
    memset(out, 0, sizeof *out);
    out->op = OP_STORE;
    out->guard = slice_guard(in, slots);
    find_dests(in, slots, out);
    if (in->bad || in->n_operands <= at + is_copy || in->operands[at].kind != OPND_ADDR) return;
    const PtxOperand *address = &in->operands[at];
    out->sources[0] = source_of(&address->items[0], slots);
    if (!out->sources[0].kind) return;
    out->n_sources = 1;
    out->offset = address->value;
    out->k = (uint8_t)slice_element(in);
    out->bytes = elements_of(in) * out->k;
    if (ptx_same(in->op, "wmma")) decode_tile(in, at, slots, out);
    if (!is_copy) return;
    if (ptx_has_mod(in, "tensor")) {
        decode_box(&in->operands[at + 1], slots, out);
        return;
    }
    out->op = OP_STORE_RUN;
    if (in->n_operands > 2)
        out->sources[1] = source_of(&in->operands[size_operand(in, kind)], slots);
    out->n_sources = out->sources[1].kind ? 2 : 0;
}
