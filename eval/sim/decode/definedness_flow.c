/* Which parts of its sources each part of a result depends on, for the instructions that move bits or
 * work on parts of a register: compilers leave parts of a register without a value. And which words of
 * parameter variables an instruction touches. */
#include "eval/sim/decode/definedness.h"

/* ---- words of parameter variables ---- */

static int bits_of(const char *mod)
{
    static const struct {
        const char *name;
        int bits;
    } others[] = {{"bf16", 16},  {"f16x2", 32}, {"bf16x2", 32},
                  {"u16x2", 32}, {"s16x2", 32}, {"tf32", 32}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (!strcmp(mod, others[i].name)) return others[i].bits;
    if (!*mod || !strchr("busf", *mod)) return 0;
    return !strcmp(mod + 1, "8")    ? 8
           : !strcmp(mod + 1, "16") ? 16
           : !strcmp(mod + 1, "32") ? 32
           : !strcmp(mod + 1, "64") ? 64
                                    : 0;
}

/* The type modifier that is `back` before the last one, or "". */
static const char *type_of(const PtxInst *in, int back)
{
    for (int i = in->n_mods - 1; i >= 0; i--)
        if (bits_of(in->mods[i]) && !back--) return in->mods[i];
    return "";
}

static int is_entry_param(const PtxFunction *p, const PtxVar *v)
{
    for (int i = 0; i < p->n_params && p->is_entry; i++)
        if (p->params[i] == v) return 1;
    return 0;
}

int definedness_param(const Definedness *k, const PtxInst *in, ParamAccess *out)
{
    int store = definedness_is(in, "st");
    if ((!store && !definedness_is(in, "ld")) || in->n_operands < 2) return 0;
    const PtxOperand *o = &in->operands[store ? 0 : 1];
    if (o->kind != OPND_ADDR || o->items[0].kind != OPND_VAR) return 0;
    const PtxVar *v = o->items[0].var;
    int64_t at = o->value, bytes = bits_of(type_of(in, 0)) / 8;
    if (v->space != SPACE_PARAM || is_entry_param(k->p, v) || !bytes) return 0;
    *out = (ParamAccess){.bytes = (int)bytes, .is_store = store};
    out->items = ptx_has_mod(in, "v2") ? 2 : ptx_has_mod(in, "v4") ? 4 : 1;
    uint64_t size = (uint64_t)(bytes * out->items), word = v->offset - k->p->n_regs[REG_32];
    if (at < 0 || size > v->size || (uint64_t)at > v->size - size) return 0;
    out->at = (int)(at % 4);
    out->n = (int)(((uint64_t)out->at + size + 3) / 4);
    if (word + (uint64_t)at / 4 + (uint64_t)out->n > (uint64_t)k->n_words) return 0;
    out->first = k->first_word + (int)(word + (uint64_t)at / 4);
    return 1;
}

void definedness_words(const Definedness *k, const PtxInst *in, Registers *out)
{
    ParamAccess a;
    if (!definedness_param(k, in, &a)) return;
    for (int i = 0; i < a.n; i++) definedness_add(out, a.first + i);
}

static void add_variable(const Definedness *k, const PtxVar *v, Registers *out)
{
    uint64_t word = v->offset - k->p->n_regs[REG_32], n = (v->size + 3) / 4;
    for (uint64_t i = 0; i < n && word + i < (uint64_t)k->n_words && i < OPERANDS_MAX; i++)
        definedness_add(out, k->first_word + (int)(word + i));
}

void definedness_arguments(const Definedness *k, const PtxInst *in, int results, Registers *out)
{
    int n = in->n_operands, have_results = n && in->operands[0].kind == OPND_LIST;
    if (definedness_is(in, "ret")) {
        for (int i = 0; i < k->p->n_returns && !k->p->is_entry && !results; i++)
            add_variable(k, k->p->returns[i], out);
        return;
    }
    int at = results ? 0 : 1 + have_results;
    if (!definedness_is(in, "call") || at >= n || (results && !have_results)) return;
    const PtxOperand *list = &in->operands[at];
    for (int i = 0; list->kind == OPND_LIST && i < list->n; i++)
        if (list->items[i].kind == OPND_VAR && list->items[i].var->space == SPACE_PARAM)
            add_variable(k, list->items[i].var, out);
}

/* ---- flows ---- */

typedef struct {
    const PtxInst *in;
    const Definedness *k;
    uint8_t *flow;
    const Registers *dests, *values;
} Flow;

static int value_at(const Flow *f, int reg)
{
    for (int j = 0; j < f->values->n; j++)
        if (f->values->reg[j] == reg) return j;
    return -1;
}

/* The value that operand i of the instruction is; -1: a constant. */
static int value_of(const Flow *f, int i)
{
    int reg = i < f->in->n_operands ? definedness_register(f->k, &f->in->operands[i]) : -1;
    return reg < 0 ? -1 : value_at(f, reg);
}

/* A bit of a destination or of a value: its index, which is -1 for a constant, and its width. */
typedef struct {
    int index, width, bit;
} Bit;

/* n_to bits of a destination, from `to` on, depend on n_from bits of a value, all on all. */
static void depend(const Flow *f, Bit to, int n_to, Bit from, int n_from)
{
    int part = to.width / REG_PARTS, value_part = from.width / REG_PARTS, mask = 0;
    if (from.index < 0 || to.width < 16 || from.width < 16) return;
    for (int q = 0; q < REG_PARTS; q++)
        if (from.bit < (q + 1) * value_part && from.bit + n_from > q * value_part) mask |= 1 << q;
    for (int p = 0; p < REG_PARTS; p++)
        if (to.bit < (p + 1) * part && to.bit + n_to > p * part)
            f->flow[(to.index * REG_PARTS + p) * f->values->n + from.index] |= (uint8_t)mask;
}

/* Each of n bits from `to` on depends on the one at the same distance behind `from`. */
static void copy_bits(const Flow *f, Bit to, Bit from, int n)
{
    int part = to.width / REG_PARTS;
    while (n > 0) {
        int now = part - to.bit % part;
        now = now < n ? now : n;
        depend(f, to, now, from, now);
        to.bit += now;
        from.bit += now;
        n -= now;
    }
}

static int mov_flow(const Flow *f)
{
    const PtxOperand *d = &f->in->operands[0], *s = &f->in->operands[1];
    if (s->kind == OPND_VEC && s->n && d->kind == OPND_REG) {
        for (int i = 0; i < s->n; i++) {
            int reg = definedness_register(f->k, &s->items[i]);
            if (reg >= 0)
                copy_bits(f, (Bit){0, d->width, i * d->width / s->n},
                          (Bit){value_at(f, reg), s->items[i].width, 0}, d->width / s->n);
        }
        return 1;
    }
    if (d->kind == OPND_VEC && d->n && s->kind == OPND_REG) {
        for (int i = 0, dest = 0; i < d->n; i++)
            if (definedness_register(f->k, &d->items[i]) >= 0)
                copy_bits(f, (Bit){dest++, d->items[i].width, 0},
                          (Bit){value_of(f, 1), s->width, i * s->width / d->n}, s->width / d->n);
        return 1;
    }
    if (d->kind != OPND_REG || s->kind != OPND_REG || d->width != s->width) return 0;
    copy_bits(f, (Bit){0, d->width, 0}, (Bit){value_of(f, 1), s->width, 0}, d->width);
    return 1;
}

/* Compilers keep constants in registers that are set once. */
static const PtxOperand *constant_of(const Flow *f, int i)
{
    if (i >= f->in->n_operands) return NULL;
    const PtxOperand *o = &f->in->operands[i];
    int reg = definedness_register(f->k, o), set = reg < 0 ? 0 : f->k->set_by[reg];
    if (set > 0) o = &f->k->p->insts[set - 1].operands[1];
    return o->kind == OPND_INT ? o : NULL;
}

/* Bits of a constant decide whether those of the other operand count. */
static int logic_flow(const Flow *f)
{
    const PtxInst *in = f->in;
    int width = in->operands[0].width, part = width / REG_PARTS, is_and = definedness_is(in, "and"),
        is_or = definedness_is(in, "or");
    uint64_t all = part < 16 ? (1ull << part) - 1 : 0xffff;
    for (int i = 1; i < in->n_operands; i++) {
        const PtxOperand *other = is_and || is_or ? constant_of(f, 3 - i) : NULL;
        for (int p = 0; p < REG_PARTS; p++) {
            uint64_t bits = other ? (uint64_t)other->value >> (p * part) & all : 0;
            if (other && bits == (is_or ? all : 0)) continue;
            copy_bits(f, (Bit){0, width, p * part}, (Bit){value_of(f, i), width, p * part}, part);
        }
    }
    return 1;
}

static int constant_at(const Flow *f, int i, int *v)
{
    const PtxOperand *o = constant_of(f, i);
    if (!o || o->value < 0 || o->value > 0xffff) return 0;
    *v = (int)o->value;
    return 1;
}

static int shift_flow(const Flow *f)
{
    const PtxInst *in = f->in;
    int width = in->operands[0].width, s, v = value_of(f, 1), left = definedness_is(in, "shl");
    if (!constant_at(f, 2, &s)) return 0;
    s = s < width ? s : width;
    copy_bits(f, (Bit){0, width, left ? s : 0}, (Bit){v, width, left ? 0 : s}, width - s);
    if (!left && type_of(in, 0)[0] == 's')
        depend(f, (Bit){0, width, width - s}, s, (Bit){v, width, width - 1}, 1);
    return 1;
}

static int funnel_flow(const Flow *f)
{
    int s, lo = value_of(f, 1), hi = value_of(f, 2);
    if (!constant_at(f, 3, &s)) return 0;
    s = ptx_has_mod(f->in, "wrap") ? s & 31 : s < 32 ? s : 32;
    if (ptx_has_mod(f->in, "l")) s = 32 - s;
    copy_bits(f, (Bit){0, 32, 0}, (Bit){lo, 32, s}, 32 - s);
    copy_bits(f, (Bit){0, 32, 32 - s}, (Bit){hi, 32, 0}, s);
    return 1;
}

/* bfe and bfi: a field of n bits at `at`. */
static int field_flow(const Flow *f)
{
    const PtxInst *in = f->in;
    int inserts = definedness_is(in, "bfi"), width = in->operands[0].width, at, n;
    if (!constant_at(f, 2 + inserts, &at) || !constant_at(f, 3 + inserts, &n)) return 0;
    at = at < width ? at : width;
    n = n < width - at ? n : width - at;
    if (inserts) {
        int behind = at + n;
        copy_bits(f, (Bit){0, width, at}, (Bit){value_of(f, 1), width, 0}, n);
        copy_bits(f, (Bit){0, width, 0}, (Bit){value_of(f, 2), width, 0}, at);
        copy_bits(f, (Bit){0, width, behind}, (Bit){value_of(f, 2), width, behind}, width - behind);
        return 1;
    }
    copy_bits(f, (Bit){0, width, 0}, (Bit){value_of(f, 1), width, at}, n);
    int sign = at + n ? at + n - 1 : 0;
    if (type_of(in, 0)[0] == 's')
        depend(f, (Bit){0, width, n}, width - n, (Bit){value_of(f, 1), width, sign}, 1);
    return 1;
}

static int permute_flow(const Flow *f)
{
    int selector;
    if (f->in->n_mods != 1 || !constant_at(f, 3, &selector)) return 0;
    for (int i = 0; i < 4; i++) {
        int byte = selector >> 4 * i & 7;
        copy_bits(f, (Bit){0, 32, 8 * i}, (Bit){value_of(f, byte < 4 ? 1 : 2), 32, byte % 4 * 8},
                  8);
    }
    return 1;
}

static int convert_flow(const Flow *f)
{
    const PtxInst *in = f->in;
    const char *to = type_of(in, 1), *from = type_of(in, 0);
    int width = in->operands[0].width, n = bits_of(from), wide = bits_of(to),
        source = in->operands[1].width, v = value_of(f, 1);
    if (in->operands[0].kind != OPND_REG || !n || !wide) return 0;
    if (in->n_operands == 3 && width == 32 && source == 32 && strstr(to, "16x2")) {
        depend(f, (Bit){0, 32, 16}, 16, (Bit){v, 32, 0}, 32);
        depend(f, (Bit){0, 32, 0}, 16, (Bit){value_of(f, 2), 32, 0}, 32);
        return 1;
    }
    if (in->n_operands != 2) return 0;
    if (!strchr("us", *to) || !strchr("us", *from) || ptx_has_mod(in, "sat")) {
        depend(f, (Bit){0, width, 0}, width, (Bit){v, source, 0}, n);
        return 1;
    }
    int kept = n < wide ? n : wide;
    copy_bits(f, (Bit){0, width, 0}, (Bit){v, source, 0}, kept);
    if ((n < wide ? from : to)[0] == 's')
        depend(f, (Bit){0, width, kept}, width - kept, (Bit){v, source, kept - 1}, 1);
    return 1;
}

/* Two halves that do not depend on each other. */
static int halves_flow(const Flow *f)
{
    static const char *const ops[] = {"add", "sub", "mul", "fma", "min",
                                      "max", "neg", "abs", "ex2", "tanh"};
    int found = 0;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) found |= definedness_is(f->in, ops[i]);
    for (int i = 1; i < f->in->n_operands && found; i++)
        for (int h = 0; h < 32; h += 16)
            depend(f, (Bit){0, 32, h}, 16, (Bit){value_of(f, i), 32, h}, 16);
    return found;
}

/* Sums and products of integers: a bit depends on the bits of its place and on lower ones. */
static int integer_flow(const Flow *f)
{
    const PtxInst *in = f->in;
    int width = in->operands[0].width;
    int low = definedness_is(in, "add") || definedness_is(in, "sub") || definedness_is(in, "neg") ||
              ((definedness_is(in, "mul") || definedness_is(in, "mad")) && ptx_has_mod(in, "lo"));
    if (!low || ptx_has_mod(in, "sat") || !strchr("us", type_of(in, 0)[0]) ||
        !bits_of(type_of(in, 0)))
        return 0;
    for (int i = 1; i < in->n_operands; i++)
        for (int p = 0, part = width / REG_PARTS; p < REG_PARTS; p++)
            depend(f, (Bit){0, width, p * part}, part, (Bit){value_of(f, i), width, 0},
                   (p + 1) * part);
    return 1;
}

/* Of items in words of parameters, and of the bytes of a word that a store leaves as they are. */
static int param_flow(const Flow *f)
{
    ParamAccess a;
    if (!definedness_param(f->k, f->in, &a)) return 0;
    const PtxOperand *o = &f->in->operands[a.is_store ? 1 : 0];
    int is_signed = type_of(f->in, 0)[0] == 's', dest = 0;
    uint64_t stored = 0;
    for (int i = 0; i < a.items; i++) {
        const PtxOperand *item = o->kind == OPND_VEC && i < o->n ? &o->items[i] : o;
        int reg = definedness_register(f->k, item);
        for (int b = 0; b < a.bytes; b++) {
            int at = a.at + i * a.bytes + b, word = at / 4, bit = at % 4 * 8;
            stored |= 1ull << at;
            if (reg < 0) continue;
            if (a.is_store) {
                copy_bits(f, (Bit){word, 32, bit}, (Bit){value_at(f, reg), item->width, 8 * b}, 8);
                continue;
            }
            Bit to = {dest, item->width, 8 * b}, from = {value_at(f, a.first + word), 32, bit};
            copy_bits(f, to, from, 8);
            if (!is_signed || b < a.bytes - 1) continue;
            to.bit += 8, from.bit += 7;
            depend(f, to, item->width - to.bit, from, 1);
        }
        dest += reg >= 0;
    }
    for (int at = 0; at < 4 * a.n && a.is_store; at++)
        if (!(stored >> at & 1))
            copy_bits(f, (Bit){at / 4, 32, at % 4 * 8},
                      (Bit){value_at(f, a.first + at / 4), 32, at % 4 * 8}, 8);
    return 1;
}

static int fill(const Flow *f)
{
    static const struct {
        const char *op;
        int operands;
        int (*flow)(const Flow *f);
    } known[] = {{"mov", 2, mov_flow},     {"and", 3, logic_flow},  {"or", 3, logic_flow},
                 {"xor", 3, logic_flow},   {"not", 2, logic_flow},  {"lop3", 5, logic_flow},
                 {"shl", 3, shift_flow},   {"shr", 3, shift_flow},  {"shf", 4, funnel_flow},
                 {"bfe", 4, field_flow},   {"bfi", 5, field_flow},  {"prmt", 4, permute_flow},
                 {"cvt", 2, convert_flow}, {"cvt", 3, convert_flow}};
    const PtxInst *in = f->in;
    if (definedness_is(in, "ld") || definedness_is(in, "st")) return param_flow(f);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (definedness_is(in, known[i].op) && in->n_operands == known[i].operands)
            return known[i].flow(f);
    if (in->n_operands < 2 || in->operands[0].kind != OPND_REG) return 0;
    if (ptx_has_mod(in, "f16x2") || ptx_has_mod(in, "bf16x2") || ptx_has_mod(in, "u16x2") ||
        ptx_has_mod(in, "s16x2"))
        return halves_flow(f);
    return integer_flow(f);
}

uint8_t *definedness_flow(Decoder *d, const Registers *dests, const Registers *values)
{
    Flow f = {d->in, d->definedness, NULL, dests, values};
    size_t n = (size_t)dests->n * REG_PARTS * (size_t)values->n;
    if (!n || dests->n > FLOW_DESTS) return NULL;
    for (int i = 0; i < dests->n; i++)
        if (dests->reg[i] < d->definedness->base[REG_32]) return NULL; /* a predicate */
    f.flow = ptx_arena_alloc(d->code->ptx.arena, n);
    return fill(&f) ? f.flow : NULL;
}
