/* wmma. A load or store of a fragment becomes ordinary loads or stores, each of a register or of one
 * of its elements. exec_wmma.c defines the layout of fragments. */
#include "eval/sim/decode/decode_internal.h"
#include "eval/sim/memory/memory_ops.h"

typedef struct {
    int m, n, k;
} Shape;

static int shape_of(Decoder *d, Shape *s)
{
    static const struct {
        const char *name;
        Shape shape;
    } shapes[] = {{"m16n16k16", {16, 16, 16}},
                  {"m32n8k16", {32, 8, 16}},
                  {"m8n32k16", {8, 32, 16}},
                  {"m16n16k8", {16, 16, 8}},
                  {"m8n8k4", {8, 8, 4}}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (decode_has(d, shapes[i].name)) {
            *s = shapes[i].shape;
            return 0;
        }
    return decode_refuse(d, "a shape that is not known");
}

/* Returns the number of registers of a thread that hold different elements. *all: the number of
 * registers of the fragment. */
static int registers(char which, const Shape *s, int type, int *all)
{
    int e = mma_per_register(type);
    int n = (which == 'a' ? s->m * s->k : which == 'b' ? s->k * s->n : s->m * s->n) / (LANES * e);
    *all = which != 'c' && type == T_F16 ? 8 : n;
    return n;
}

static int is_known(char which, const Shape *s, const ValueType *t)
{
    if (!t || t->packed) return 0;
    if (s->k == 4) return t->type == T_F64;
    if (which == 'c')
        return t->type == T_F32 || t->type == T_F16 || (t->type == T_S32 && s->k == 16);
    if (s->k == 8) return t->type == T_TF32;
    return t->type == T_F16 || t->type == T_BF16 || t->type == T_S8 || t->type == T_U8;
}

/* Emits an access of `bytes` by every lane. data: row of a register of 64 bits for 8 bytes, else of 32. */
static void access_part(Decoder *d, const WmmaPart *part, int bytes, uint32_t data, int is_store)
{
    WmmaPart *p = ptx_arena_alloc(d->code->ptx.arena, sizeof *p);
    MemOp *mo = decode_mem(d);
    *p = *part;
    Inst *in = decode_emit(d, h_wmma_address);
    in->part = p;
    in->d = decode_temp64(d);
    in->k0 = (uint8_t)bytes;
    in->k1 = (uint8_t)is_store;
    mo->kind = is_store ? MEM_STORE : MEM_LOAD;
    mo->space = p->base.space;
    mo->element = (uint8_t)bytes;
    mo->count = 1;
    mo->width[0] = bytes == 8 ? 64 : 32;
    mo->data[0] = data;
    mo->address_kind = ADDRESS_64;
    mo->address = in->d;
    decode_emit(d, h_mem)->mem = mo;
    d->expansion++;
}

/* d = low | high << bits */
static void pack(Decoder *d, uint32_t to, uint32_t low, uint32_t high, int bits)
{
    decode_put(d, h_wmma_pack, (Inst){.d = to, .a = low, .b = high, .k0 = (uint8_t)bits});
}

/* Emits accesses for the elements of a register, of `bits` each, that are not adjacent in memory.
 * Bytes are loaded only. */
static void access_elements(Decoder *d, const WmmaPart *whole, int bits, uint32_t data,
                            int is_store)
{
    WmmaPart element = *whole;
    uint32_t part[4];
    int n = 32 / bits;
    for (int j = 0; j < n; j++) {
        part[j] = decode_temp32(d);
        if (is_store) {
            decode_put(d, h_wmma_unpack, (Inst){.d = part[j], .a = data, .k0 = (uint8_t)j});
        }
        element.element = (uint8_t)j;
        access_part(d, &element, bits / 8, part[j], is_store);
    }
    if (is_store) return;
    for (int j = 0; j < n && n == 4; j += 2) pack(d, part[j], part[j], part[j + 1], 8);
    pack(d, data, part[0], part[n / 2], 16);
}

/* The alignment of rows (of columns, by columns) that a GPU needs. In shared memory ldmatrix loads factors
 * of 16 bits, and those of 8 bits whose rows run along k. Elsewhere a lane loads 32 bits at once. The two
 * neighbours of an accumulator are one access where they lie side by side; by 32-bit elements, those of
 * m8n32 do in columns. */
static void set_units(WmmaPart *p, int bits, int by_columns)
{
    int along_k = by_columns == (p->which == 'b'), pairs = by_columns == (p->m == 8 && p->n == 32),
        bytes = bits / 8;
    int unit = p->which == 'c' ? (bits == 16 || pairs ? 2 * bytes : bytes)
               : bits == 8     ? (along_k ? 4 : 1)
               : bits == 16    ? 4
                               : bytes;
    int by_rows = p->which != 'c' && (bits == 16 || (bits == 8 && along_k));
    p->unit = (uint8_t)unit;
    p->shared_unit = by_rows ? 16 : (uint8_t)unit;
}

static int matrix_access(Decoder *d, int is_store)
{
    char which = decode_has(d, "a")                    ? 'a'
                 : decode_has(d, "b")                  ? 'b'
                 : decode_has(d, is_store ? "d" : "c") ? 'c'
                                                       : 0;
    int rows = decode_has(d, "row"), columns = decode_has(d, "col"), space = decode_space(d), all;
    WmmaPart whole = {
        .which = which, .by_columns = (uint8_t)columns, .base = {.space = (uint8_t)space}};
    Shape s = {0};
    decode_has(d, "aligned");
    if (!decode_has(d, "sync") || !which || rows == columns || shape_of(d, &s))
        return decode_refuse(d, "a form that is not known");
    const ValueType *t = decode_type(d);
    if (!is_known(which, &s, t)) return decode_refuse(d, "a type that is not known");
    int n = registers(which, &s, t->type, &all), address = is_store ? 0 : 1;
    int width = t->bits == 64 ? 64 : 32;
    uint32_t data[8];
    whole.m = (uint8_t)s.m;
    whole.n = (uint8_t)s.n;
    whole.type = t->type;
    set_units(&whole, t->bits, columns);
    int high = which == 'b' ? s.k : s.m, wide = which == 'a' ? s.k : s.n;
    whole.stride = decode_const32(d->code, (uint32_t)(columns ? high : wide));
    if ((d->in->n_operands > 2 && decode_source(d, 2, 32, &whole.stride)) ||
        (is_store ? decode_fragment(d, 1, all, width, data)
                  : decode_fragment_dest(d, 0, all, width, data)) ||
        decode_address(d, decode_operand(d, address), &whole.base))
        return -1;
    decode_emit(d, h_wmma_sync);
    int adjacent = which == 'b' ? columns : rows;
    for (int i = 0; i < n; i++) {
        whole.reg = (uint8_t)i;
        if (t->bits >= 32 || adjacent)
            access_part(d, &whole, t->bits == 64 ? 8 : 4, data[i], is_store);
        else
            access_elements(d, &whole, t->bits, data[i], is_store);
    }
    for (int i = n; i < all && !is_store; i++) {
        decode_put(d, h_mov32, (Inst){.d = data[i], .a = data[i % n]});
    }
    d->expansion--;
    d->inst_class = decode_memory_class(whole.base.space, is_store ? MEM_STORE : MEM_LOAD);
    return 0;
}

/* Are there products of a type with accumulators of these types? */
static int can_add(int type, int from, int to)
{
    if (type == T_S8 || type == T_U8) return from == T_S32 && to == T_S32;
    if (type == T_F64) return from == T_F64 && to == T_F64;
    if (type == T_F16) return from != T_S32 && to != T_S32;
    return from == T_F32 && to == T_F32;
}

static int multiply(Decoder *d)
{
    Shape s = {0};
    int all;
    /* The layouts of the factors do not matter: their fragments are the same. */
    for (int i = 0; i < d->in->n_mods; i++)
        if (!strcmp(d->in->mods[i], "row") || !strcmp(d->in->mods[i], "col"))
            d->mods_used |= 1u << i;
    int saturate = decode_has(d, "satfinite");
    decode_has(d, "aligned");
    if (!decode_has(d, "sync") || shape_of(d, &s) || (decode_has(d, "rn") && s.k != 4))
        return decode_refuse(d, "a form that is not known");
    const ValueType *from = decode_type(d), *b = decode_type(d), *a = decode_type(d),
                    *to = decode_type(d);
    WmmaOp *op = ptx_arena_alloc(d->code->ptx.arena, sizeof *op);
    op->type = a ? a->type : T_F16; /* f16 names the accumulators' types alone */
    if (!a) to = b;
    if ((a && (!to || a != b || !is_known('a', &s, a))) || !is_known('c', &s, from) ||
        !is_known('c', &s, to) || !can_add(op->type, from->type, to->type) ||
        (saturate && to->type != T_S32))
        return decode_refuse(d, "types that are not known");
    if (s.k == 4) return decode_mma_doubles(d, s.m, s.k);
    op->saturate = (uint8_t)saturate;
    op->m = (uint8_t)s.m;
    op->n = (uint8_t)s.n;
    op->k = (uint8_t)s.k;
    op->from = from->type;
    op->to = to->type;
    int n_d = registers('c', &s, op->to, &all), n_c = registers('c', &s, op->from, &all), n_a, n_b;
    registers('a', &s, op->type, &n_a);
    registers('b', &s, op->type, &n_b);
    if (d->in->n_operands != 4 || decode_fragment_dest(d, 0, n_d, 32, op->d) ||
        decode_fragment(d, 1, n_a, 32, op->a) || decode_fragment(d, 2, n_b, 32, op->b) ||
        decode_fragment(d, 3, n_c, 32, op->c))
        return decode_refuse(d, "fragments of other lengths");
    decode_emit(d, h_wmma)->wmma = op;
    d->inst_class = INST_TENSOR;
    d->flops = 2 * s.m * s.n * s.k;
    d->mma_slots = decode_mma_slots(d->flops, op->type);
    return 0;
}

int decode_wmma(Decoder *d)
{
    if (strcmp(d->in->op, "wmma")) return 1;
    if (decode_has(d, "mma")) return multiply(d);
    int is_store = decode_has(d, "store");
    return is_store || decode_has(d, "load") ? matrix_access(d, is_store)
                                             : decode_refuse(d, "a form that is not known");
}
