/* Loads, stores, atomics, asynchronous copies, parameters. */
#include "eval/sim/decode/decode_internal.h"
#include "eval/sim/memory/memory_ops.h"

/* ---- modifiers ---- */

int decode_space(Decoder *d)
{
    static const struct {
        const char *name;
        PtxSpace space;
    } spaces[] = {{"global", SPACE_GLOBAL},         {"shared", SPACE_SHARED},
                  {"shared::cta", SPACE_SHARED},    {"local", SPACE_LOCAL},
                  {"const", SPACE_CONST},           {"param", SPACE_PARAM},
                  {"param::entry", SPACE_PARAM},    {"param::func", SPACE_PARAM},
                  {"shared::cluster", SPACE_SHARED}};
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (decode_has(d, spaces[i].name)) return (int)spaces[i].space;
    return SPACE_GENERIC;
}

static int scope_of(Decoder *d)
{
    decode_has(d, "gpu");
    decode_has(d, "sys");
    return decode_has(d, "cta")       ? SCOPE_BLOCK
           : decode_has(d, "cluster") ? SCOPE_CLUSTER
                                      : SCOPE_DEVICE;
}

/* Uses the modifiers of order. Those of caching do not change results. */
static int order_of(Decoder *d)
{
    static const char *const ignored[] = {"weak", "ca", "cg", "cs", "lu",
                                          "cv",   "wb", "wt", "nc", "noftz"};
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) decode_has(d, ignored[i]);
    for (int i = 0; i < d->in->n_mods; i++)
        if (!strncmp(d->in->mods[i], "L1::", 4) || !strncmp(d->in->mods[i], "L2::", 4))
            d->mods_used |= 1u << i;
    if (decode_has(d, "acquire")) return ORDER_ACQUIRE;
    if (decode_has(d, "release")) return ORDER_RELEASE;
    if (decode_has(d, "acq_rel")) return ORDER_ACQ_REL;
    if (decode_has(d, "relaxed")) return ORDER_RELAXED;
    return decode_has(d, "volatile") ? ORDER_VOLATILE : ORDER_WEAK;
}

int decode_address(Decoder *d, const PtxOperand *o, MemOp *mo)
{
    if (!o || o->kind != OPND_ADDR) return decode_refuse(d, "no address");
    const PtxOperand *base = &o->items[0];
    mo->offset = o->value;
    if (base->kind == OPND_INT) {
        mo->address_kind = ADDRESS_FIXED;
        mo->offset = (int64_t)((uint64_t)mo->offset + (uint64_t)base->value);
        return 0;
    }
    if (base->kind == OPND_REG && base->cls != REG_PRED && !base->negated && base->width >= 32) {
        mo->address_kind = base->cls == REG_64 ? ADDRESS_64 : ADDRESS_32;
        mo->address = base->reg * (base->cls == REG_64 ? ROW64 : ROW32);
        return 0;
    }
    if (base->kind != OPND_VAR) return decode_refuse(d, "an address of another kind");
    if (mo->space == SPACE_GENERIC) mo->space = (uint8_t)base->var->space;
    if (mo->space != base->var->space) return decode_refuse(d, "a variable of another space");
    if (base->var->space == SPACE_LOCAL || base->var->space == SPACE_PARAM) {
        mo->address_kind = ADDRESS_64;
        return decode_source_of(d, base, 64, &mo->address);
    }
    if (base->var->space == SPACE_GLOBAL && base->var->is_extern)
        return decode_refuse(d, "a variable that is defined elsewhere");
    mo->address_kind = ADDRESS_FIXED;
    if (mo->space == SPACE_SHARED && base->var->size && !base->var->is_extern &&
        ((uint64_t)mo->offset >= base->var->size ||
         base->var->size - (uint64_t)mo->offset < (uint64_t)mo->element * mo->count))
        mo->beyond = base->var;
    mo->offset =
        (int64_t)((uint64_t)mo->offset +
                  (base->var->space == SPACE_GLOBAL ? base->var->address : base->var->offset));
    return 0;
}

int decode_memory_class(int space, int kind)
{
    if (kind >= MEM_ATOM) return INST_ATOMIC;
    switch (space) {
    case SPACE_SHARED: return kind == MEM_LOAD ? INST_SHARED_LOAD : INST_SHARED_STORE;
    case SPACE_LOCAL: return kind == MEM_LOAD ? INST_LOCAL_LOAD : INST_LOCAL_STORE;
    case SPACE_CONST: return INST_CONST_LOAD;
    case SPACE_PARAM: return INST_OTHER;
    default: return kind == MEM_LOAD ? INST_GLOBAL_LOAD : INST_GLOBAL_STORE;
    }
}

static int vector_of(Decoder *d)
{
    return decode_has(d, "v2") ? 2 : decode_has(d, "v4") ? 4 : 1;
}

/* What an access stores or loads: a register, or a vector of `count` of them. */
typedef struct {
    const PtxOperand *operand;
    int count;
    const ValueType *type;
} Data;

/* Fills in data and width of *mo. */
static int data_rows(Decoder *d, const Data *data, MemOp *mo, int is_store)
{
    const PtxOperand *o = data->operand;
    int least = data->type->bits;
    if (!o || (data->count > 1 && (o->kind != OPND_VEC || o->n != data->count)))
        return decode_refuse(d, "a vector of another length");
    for (int i = 0; i < data->count; i++) {
        const PtxOperand *item = data->count > 1 ? &o->items[i] : o;
        int bits = least < 16 ? 16 : least;
        if (item->kind == OPND_REG) {
            if (item->cls == REG_PRED || item->cls == REG_128 || item->width < least)
                return decode_refuse(d, "a register of another size");
            bits = item->width;
        } else if (item->kind == OPND_SINK && !is_store) {
            mo->data[i] = ROW_NONE;
            mo->width[i] = (uint8_t)bits;
            continue;
        } else if (!is_store) {
            return decode_refuse(d, "no destination register");
        }
        mo->width[i] = (uint8_t)bits;
        if (decode_source_of(d, item, bits, &mo->data[i])) return -1;
    }
    return 0;
}

/* ---- parameters ---- */

/* A load of a kernel's parameter at a fixed offset. */
static int entry_param(Decoder *d, const PtxOperand *address, const Data *data)
{
    MemOp rows = {0};
    const ValueType *t = data->type;
    if (data_rows(d, data, &rows, 0)) return -1;
    uint64_t at = address->items[0].var->offset + (uint64_t)address->value;
    uint64_t bytes = (uint64_t)(data->count * t->bits / 8);
    if (at > KERNEL_MAX_PARAM_BYTES || bytes > KERNEL_MAX_PARAM_BYTES - at) /* the sum may wrap */
        return decode_refuse(d, "an offset beyond the parameters");
    for (int i = 0; i < data->count; i++, at += t->bits / 8) {
        if (rows.data[i] == ROW_NONE) continue;
        decode_put(d, h_ldparam,
                   (Inst){.d = rows.data[i],
                          .imm = at,
                          .k0 = t->bits / 8,
                          .k1 = t->is_signed && !t->is_float,
                          .k2 = rows.width[i]});
    }
    return 0;
}

/* A parameter of a function, or of a call, is copied word by word between rows. */
static int frame_param(Decoder *d, const PtxOperand *address, const Data *data, int is_store)
{
    MemOp rows = {0};
    const PtxVar *v = address->items[0].var;
    const ValueType *t = data->type;
    int64_t at = address->value;
    if (data_rows(d, data, &rows, is_store)) return -1;
    int bytes = t->bits / 8;
    if (at < 0 || (uint64_t)at + (uint64_t)(data->count * bytes) > v->size ||
        at % (bytes > 4 ? 4 : bytes))
        return decode_refuse(d, "an offset outside the parameter");
    for (int i = 0; i < data->count; i++, at += bytes) {
        uint32_t word = (uint32_t)(v->offset + (uint64_t)at / 4) * ROW32;
        if (rows.data[i] == ROW_NONE) continue;
        Inst param = {.d = is_store ? word : rows.data[i],
                      .a = is_store ? rows.data[i] : word,
                      .k0 = (uint8_t)(at % 4 * 8),
                      .k1 = t->bits,
                      .k2 = t->is_signed && !t->is_float,
                      .e = rows.width[i]};
        if (bytes == 8 && !is_store)
            decode_put(d, h_pack64, (Inst){.d = rows.data[i], .a = word, .b = word + ROW32});
        else if (bytes == 8)
            decode_put(
                d, h_unpack64,
                (Inst){
                    .a = rows.data[i], .d = word, .e = word + ROW32, .b = ROW_NONE, .c = ROW_NONE});
        else
            decode_put(d, is_store ? h_param_put : h_param_get, param);
    }
    return 0;
}

static int is_entry_param(const Decoder *d, const PtxVar *v)
{
    for (int i = 0; i < d->p->n_params && d->p->is_entry; i++)
        if (d->p->params[i] == v) return 1;
    return 0;
}

/* ---- ld, st ---- */

static int load_store(Decoder *d, int kind)
{
    int space = decode_space(d), order = order_of(d), scope = scope_of(d), count = vector_of(d),
        store = kind == MEM_STORE;
    int hint = 0, read_only = decode_has(d, "nc"),
        bypass = decode_has(d, "cg") | decode_has(d, "lu"),
        strong = decode_has(d, "cv") || order != ORDER_WEAK,
        past_l1 = strong   ? PAST_L1_STRONG
                  : bypass ? PAST_L1
                           : 0;
    for (int i = 0; i < d->in->n_mods; i++) hint |= !strcmp(d->in->mods[i], "L2::cache_hint");
    const ValueType *t = decode_type(d);
    const PtxOperand *address = decode_operand(d, store ? 0 : 1),
                     *operand = decode_operand(d, store ? 1 : 0);
    Data data = {operand, count, t};
    if (!t || t->bits < 8 || !address || !operand || d->in->n_operands != 2 + hint)
        return decode_refuse(d, "another number of operands");
    if (t->bits * count > 128) return decode_refuse(d, "more than 16 bytes a thread");
    if (space == SPACE_PARAM && address->kind == OPND_ADDR && address->items[0].kind == OPND_VAR) {
        const PtxVar *v = address->items[0].var;
        d->inst_class = INST_OTHER;
        if (v->space != SPACE_PARAM) return decode_refuse(d, "a variable of another space");
        if (is_entry_param(d, v))
            return store ? decode_refuse(d, "a store to a kernel's parameter")
                         : entry_param(d, address, &data);
        return frame_param(d, address, &data, store);
    }
    MemOp *mo = decode_mem(d);
    mo->kind = (uint8_t)kind;
    mo->space = (uint8_t)space;
    mo->order = (uint8_t)order;
    mo->scope = (uint8_t)scope;
    mo->read_only = (uint8_t)read_only;
    mo->past_l1 = (uint8_t)past_l1;
    mo->element = t->bits / 8;
    mo->count = (uint8_t)count;
    mo->is_signed = t->is_signed && !t->is_float;
    if (decode_address(d, address, mo) || data_rows(d, &data, mo, store)) return -1;
    d->inst_class = decode_memory_class(mo->space, kind);
    decode_emit(d, h_mem)->mem = mo;
    return 0;
}

/* ---- atomics ---- */

static int atomic_type_fits(int op, const ValueType *t)
{
    if (t->type == T_E4M3 || t->type == T_E5M2) return 0;
    if (t->is_float)
        return op == ATOM_ADD ||
               ((op == ATOM_MIN || op == ATOM_MAX) && t->bits <= 32 && t->type != T_F32);
    if (t->bits == 16) return op == ATOM_CAS;
    return t->bits == 32 || (t->bits == 64 && op != ATOM_INC && op != ATOM_DEC);
}

/* The rows of a vector's results, and those of its sources behind them. */
static int vector_atomic(Decoder *d, MemOp *mo, const ValueType *t, int returns)
{
    MemOp rows = {0};
    Data results = {decode_operand(d, 0), mo->count, t},
         sources = {decode_operand(d, returns + 1), mo->count, t};
    if (returns && results.operand->kind != OPND_SINK) {
        if (data_rows(d, &results, &rows, 0)) return -1;
        memcpy(mo->data, rows.data, sizeof(uint32_t) * mo->count);
    }
    if (data_rows(d, &sources, &rows, 1)) return -1;
    memcpy(mo->data + mo->count, rows.data, sizeof(uint32_t) * mo->count);
    return 0;
}

enum { MERGE_SLOTS = 6 }; /* a vote, the elected lane, and the combined value */

static int atomic(Decoder *d, int returns)
{
    static const char *const ops[] = {"add", "min",  "max", "and", "or",
                                      "xor", "exch", "cas", "inc", "dec"};
    int space = decode_space(d), order = order_of(d), scope = scope_of(d), op = -1, n = returns;
    for (int i = 0; i < 10; i++)
        if (decode_has(d, ops[i])) op = i;
    int count = vector_of(d), sources = op == ATOM_CAS ? 2 : 1;
    const ValueType *t = decode_type(d);
    if (op < 0 || !t || t->bits < 16 || !atomic_type_fits(op, t) ||
        (count > 1 && (!t->is_float || t->bits * count > 128 || space != SPACE_GLOBAL)) ||
        d->in->n_operands != n + 1 + sources)
        return decode_refuse(d, "an operation that its type does not have");
    MemOp *mo = decode_mem(d);
    mo->kind = returns ? MEM_ATOM : MEM_RED;
    mo->space = (uint8_t)space;
    mo->order = (uint8_t)(order == ORDER_WEAK ? ORDER_VOLATILE : order);
    mo->scope = (uint8_t)scope;
    mo->element = t->bits / 8;
    mo->count = (uint8_t)count;
    mo->atom = (uint8_t)op;
    mo->type = t->type;
    mo->packed = t->packed;
    for (int i = 0; i < count; i++) mo->data[i] = ROW_NONE, mo->width[i] = t->bits;
    if (decode_address(d, decode_operand(d, n), mo)) return -1;
    if (count > 1) {
        if (vector_atomic(d, mo, t, returns)) return -1;
    } else {
        if (returns && decode_operand(d, 0)->kind != OPND_SINK &&
            decode_dest(d, 0, t->bits, &mo->data[0]))
            return -1;
        for (int i = 0; i < sources; i++)
            if (decode_source(d, n + 1 + i, t->bits, &mo->data[1 + i])) return -1;
    }
    d->inst_class = INST_ATOMIC;
    mo->merged = (d->merged[d->in - d->p->insts] & ATOMIC_MERGED) != 0;
    mo->unread = (d->merged[d->in - d->p->insts] & ATOMIC_UNREAD) != 0;
    for (int i = 0; i < count && mo->unread; i++) mo->data[i] = ROW_NONE; /* it is a reduction */
    mo->waits = (d->merged[d->in - d->p->insts] & ATOMIC_WAITS) != 0;
    mo->decides = (d->merged[d->in - d->p->insts] & ATOMIC_DECIDES) != 0;
    mo->ends = (d->merged[d->in - d->p->insts] & ATOMIC_ENDS) != 0;
    if (mo->merged) d->expansion = MERGE_SLOTS;
    decode_emit(d, h_atom)->mem = mo;
    return 0;
}

/* ---- cp.async ---- */

static int copy_async_group(Decoder *d, int waits, int all)
{
    const PtxOperand *o = decode_operand(d, 0);
    if (waits && !all && (!o || o->kind != OPND_INT || o->value < 0))
        return decode_refuse(d, "no number of groups");
    decode_put(d, h_cp_async_group,
               (Inst){.k0 = (uint8_t)waits,
                      .imm = all ? UINT64_MAX
                             : o ? (uint64_t)o->value
                                 : 0});
    d->inst_class = INST_BARRIER;
    return 0;
}

/* How many bytes are copied: the operand, or none where the source is ignored. */
static int copied_bytes(Decoder *d, int whole, uint32_t *row)
{
    const PtxOperand *size = decode_operand(d, 3);
    uint32_t p, flip;
    if (size->kind != OPND_REG || size->cls != REG_PRED) return decode_source(d, 3, 32, row);
    if (decode_pred(d, 3, &p, &flip)) return -1;
    *row = decode_temp32(d);
    decode_put(d, h_selp32,
               (Inst){.d = *row,
                      .a = decode_const32(d->code, 0),
                      .b = decode_const32(d->code, (uint32_t)whole),
                      .c = p,
                      .f = flip});
    return 0;
}

static int copy_async(Decoder *d)
{
    int commits = decode_has(d, "commit_group"), all = decode_has(d, "wait_all");
    if (commits || all || decode_has(d, "wait_group")) return copy_async_group(d, !commits, all);
    int shared = decode_has(d, "shared") | decode_has(d, "shared::cta"),
        global = decode_has(d, "global"), hint = decode_has(d, "L2::cache_hint"),
        n = d->in->n_operands - hint; /* the last operand is the hint */
    order_of(d);
    const PtxOperand *to = decode_operand(d, 0), *bytes = decode_operand(d, 2);
    if (!shared || !global || !bytes || bytes->kind != OPND_INT ||
        (bytes->value != 4 && bytes->value != 8 && bytes->value != 16) || n > 4)
        return decode_refuse(d, "a form that is not known");
    MemOp *mo = decode_mem(d), side = {.space = SPACE_SHARED};
    mo->kind = MEM_LOAD;
    mo->space = SPACE_GLOBAL;
    mo->element = 4;
    mo->count = (uint8_t)(bytes->value / 4);
    uint32_t sizes = ROW_NONE;
    if (decode_address(d, decode_operand(d, 1), mo) || decode_address(d, to, &side)) return -1;
    if (side.address_kind == ADDRESS_FIXED) {
        side.address = decode_const32(d->code, (uint32_t)side.offset);
        side.address_kind = ADDRESS_32;
        side.offset = 0;
    }
    if (n > 3 && copied_bytes(d, (int)bytes->value, &sizes)) return -1;
    decode_put(d, h_cp_async,
               (Inst){.mem = mo,
                      .a = side.address,
                      .k0 = side.address_kind,
                      .e = (uint32_t)side.offset,
                      .b = sizes});
    d->inst_class = INST_GLOBAL_LOAD;
    return 0;
}

static int discard(Decoder *d)
{
    const PtxOperand *bytes = decode_operand(d, 1);
    int space = decode_space(d);
    if (!decode_has(d, "L2") || (space != SPACE_GLOBAL && space != SPACE_GENERIC) || !bytes ||
        bytes->kind != OPND_INT || bytes->value != 128 || d->in->n_operands != 2)
        return decode_refuse(d, "a form that is not known");
    MemOp *mo = decode_mem(d);
    mo->kind = MEM_STORE;
    mo->space = (uint8_t)space;
    mo->element = 128;
    mo->count = 1;
    if (decode_address(d, decode_operand(d, 0), mo)) return -1;
    decode_emit(d, h_discard)->mem = mo;
    d->inst_class = INST_GLOBAL_STORE;
    return 0;
}

/* createpolicy: loads and stores ignore the cache hint that it makes. */
static int create_policy(Decoder *d)
{
    uint32_t dest;
    d->mods_used = (1u << d->in->n_mods) - 1;
    if (decode_dest(d, 0, 64, &dest)) return -1;
    decode_put(d, h_mov64, (Inst){.d = dest, .a = decode_const64(d->code, 0)});
    return 0;
}

int decode_memory(Decoder *d)
{
    const char *op = d->in->op;
    if (!strcmp(op, "ld") || !strcmp(op, "ldu")) return load_store(d, MEM_LOAD);
    if (!strcmp(op, "st")) return load_store(d, MEM_STORE);
    if (!strcmp(op, "atom")) return atomic(d, 1);
    if (!strcmp(op, "red") && !decode_has(d, "async")) return atomic(d, 0);
    if (!strcmp(op, "cp") && decode_has(d, "async")) return copy_async(d);
    if (!strcmp(op, "prefetch") || !strcmp(op, "prefetchu") || !strcmp(op, "applypriority"))
        return decode_nothing(d);
    if (!strcmp(op, "discard")) return discard(d);
    if (!strcmp(op, "createpolicy")) return create_policy(d);
    return 1;
}
