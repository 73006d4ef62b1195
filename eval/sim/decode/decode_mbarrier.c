/* mbarrier, the arrival of cp.async at one, bulk copies, also by tensor maps, and st.async. Copies to several
 * blocks and reductions are refused. */
#include "eval/device/tensor_map.h"
#include "eval/sim/decode/decode_internal.h"

/* Returns the address of the barrier, or NULL when it is refused. */
static MemOp *barrier_address(Decoder *d, int operand)
{
    MemOp *mo = ptx_arena_alloc(d->code->ptx.arena, sizeof *mo);
    mo->kind = MEM_ATOM;
    mo->space = (uint8_t)decode_space(d);
    mo->order = ORDER_VOLATILE;
    mo->element = 8;
    mo->count = 1;
    return decode_address(d, decode_operand(d, operand), mo) ? NULL : mo;
}

static Inst *emit(Decoder *d, int op, MemOp *mo)
{
    Inst *in = decode_emit(d, h_mbarrier);
    in->k0 = (uint8_t)op;
    in->mem = mo;
    in->a = in->d = ROW_NONE;
    return in;
}

static int wait_op(Decoder *d)
{
    int parity = decode_has(d, "parity");
    MemOp *mo = barrier_address(d, 1);
    uint32_t p, of;
    if (!mo || decode_source(d, 2, parity ? 32 : 64, &of) ||
        decode_pred_dest(d, decode_operand(d, 0), &p) || !p)
        return decode_refuse(d, "a form that is not known");
    Inst *in = emit(d, parity ? MBARRIER_WAIT_PARITY : MBARRIER_WAIT, mo);
    in->a = of;
    in->e = p;
    d->inst_class = INST_SHARED_LOAD;
    return 0;
}

static int arrive_op(Decoder *d, int op)
{
    const PtxOperand *token = decode_operand(d, 0);
    MemOp *mo = barrier_address(d, 1);
    uint32_t count = ROW_NONE, row = ROW_NONE;
    decode_has(d, "noComplete");
    if (!mo || (d->in->n_operands > 2 && decode_source(d, 2, 32, &count)) ||
        (token->kind != OPND_SINK && decode_dest(d, 0, 64, &row)))
        return decode_refuse(d, "a form that is not known");
    Inst *in = emit(d, op, mo);
    in->a = count;
    in->d = row;
    d->inst_class = INST_SHARED_STORE;
    return 0;
}

static int bytes_op(Decoder *d, int op)
{
    MemOp *mo = barrier_address(d, 0);
    uint32_t bytes;
    if (!mo || decode_source(d, 1, 32, &bytes)) return decode_refuse(d, "a form that is not known");
    emit(d, op, mo)->a = bytes;
    d->inst_class = INST_SHARED_STORE;
    return 0;
}

/* mbarrier.init, mbarrier.inval and cp.async.mbarrier.arrive. */
static int plain_op(Decoder *d, int op)
{
    MemOp *mo = barrier_address(d, 0);
    uint32_t count = ROW_NONE;
    if (!mo || (op == MBARRIER_INIT && decode_source(d, 1, 32, &count)))
        return decode_refuse(d, "a form that is not known");
    Inst *in = emit(d, op, mo);
    in->a = count;
    in->k1 = (uint8_t)decode_has(d, "noinc");
    d->inst_class = INST_SHARED_STORE;
    return 0;
}

int decode_mbarrier(Decoder *d)
{
    static const char *const ignored[] = {"b64", "release", "acquire", "relaxed", "cta", "cluster"};
    int copies = !strcmp(d->in->op, "cp") && decode_has(d, "mbarrier");
    if (!copies && strcmp(d->in->op, "mbarrier")) return 1;
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) decode_has(d, ignored[i]);
    if (copies)
        return decode_has(d, "async") && decode_has(d, "arrive") ? plain_op(d, MBARRIER_COPIES)
                                                                 : -1;
    if (decode_has(d, "init")) return plain_op(d, MBARRIER_INIT);
    if (decode_has(d, "inval")) return plain_op(d, MBARRIER_INVAL);
    if (decode_has(d, "try_wait") || decode_has(d, "test_wait")) return wait_op(d);
    int drop = decode_has(d, "arrive_drop"), expect = decode_has(d, "expect_tx");
    if (drop && expect) return decode_refuse(d, "a form that is not known");
    if (drop || decode_has(d, "arrive"))
        return arrive_op(d, drop     ? MBARRIER_DROP
                            : expect ? MBARRIER_ARRIVE_EXPECT
                                     : MBARRIER_ARRIVE);
    if (expect) return bytes_op(d, MBARRIER_EXPECT);
    if (decode_has(d, "complete_tx")) return bytes_op(d, MBARRIER_COMPLETE);
    return decode_refuse(d, "a form that is not known");
}

/* ---- bulk copies ---- */

static int bulk_group(Decoder *d, int waits)
{
    const PtxOperand *o = decode_operand(d, 0);
    decode_has(d, "read");
    if (waits && (!o || o->kind != OPND_INT)) return decode_refuse(d, "a form that is not known");
    decode_put(d, h_bulk_group,
               (Inst){.k0 = (uint8_t)waits, .imm = waits ? (uint64_t)o->value : 0});
    d->inst_class = INST_BARRIER;
    return 0;
}

/* The number of dimensions of a copy by a tensor map; 0: it has none. */
static int rank_of(Decoder *d)
{
    static const char *const names[] = {"1d", "2d", "3d", "4d", "5d"};
    if (!decode_has(d, "tensor")) return 0;
    decode_has(d, "tile");
    for (int i = 0; i < TENSOR_MAP_RANK; i++)
        if (decode_has(d, names[i])) return i + 1;
    return -1;
}

static int bulk_prefetch(Decoder *d)
{
    rank_of(d);
    if (!decode_has(d, "L2") || !decode_has(d, "global"))
        return decode_refuse(d, "an unknown form");
    for (int i = 0; i < d->in->n_mods; i++)
        if (!strncmp(d->in->mods[i], "L2::", 4)) d->mods_used |= 1u << i;
    decode_emit(d, h_nop);
    return 0;
}

const char *decode_unknown_copy(const PtxInst *in)
{
    if (strcmp(in->op, "cp")) return NULL;
    if (in->n_mods && ptx_same(in->mods[0], "reduce"))
        return "a bulk copy that reduces: use atomics, or add before the copy";
    for (int i = 0; i < in->n_mods; i++) {
        if (!strncmp(in->mods[i], "im2col", 6))
            return "a tensor map for im2col; maps of plans are of tiles";
        if (!strncmp(in->mods[i], "tile::", 6))
            return "rows that are gathered or scattered, which this GPU does not have";
        if (!strncmp(in->mods[i], "multicast", 9))
            return "a copy to several blocks of a cluster (multicast): copy in each block";
    }
    return NULL;
}

static const MemOp barrier_of_copy = {
    .kind = MEM_ATOM, .space = SPACE_SHARED, .order = ORDER_VOLATILE, .element = 8, .count = 1};

/* st.async: a store that an mbarrier in the same block as the address counts. */
static int store_async(Decoder *d)
{
    static const char *const ignored[] = {"async", "weak", "shared::cluster"};
    int count = decode_has(d, "v2") ? 2 : decode_has(d, "v4") ? 4 : 1;
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) decode_has(d, ignored[i]);
    int counts = decode_has(d, "mbarrier::complete_tx::bytes");
    const ValueType *t = decode_type(d);
    const PtxOperand *data = decode_operand(d, 1);
    if (!counts || !t || t->bits < 32 || t->bits * count > 128 || d->in->n_operands != 3 ||
        (count > 1 && (data->kind != OPND_VEC || data->n != count)))
        return decode_refuse(d, "a form that is not known");
    BulkOp *op = ptx_arena_alloc(d->code->ptx.arena, sizeof *op);
    memset(op, 0, sizeof *op);
    op->traffic = &d->f->traffic[d->in - d->p->insts];
    op->to.space = SPACE_SHARED;
    op->to.element = t->bits / 8;
    op->to.count = (uint8_t)count;
    op->barrier = barrier_of_copy;
    if (decode_address(d, decode_operand(d, 0), &op->to) ||
        decode_address(d, decode_operand(d, 2), &op->barrier))
        return -1;
    for (int i = 0; i < count; i++) {
        op->to.width[i] = t->bits;
        if (decode_source_of(d, count > 1 ? &data->items[i] : data, t->bits, &op->to.data[i]))
            return -1;
    }
    decode_emit(d, h_store_async)->bulk = op;
    d->inst_class = INST_SHARED_STORE;
    return 0;
}

/* Fills in what differs between copies by a map and plain ones: coordinates, or a size. */
static int extent_of(Decoder *d, int operand, BulkOp *op)
{
    const PtxOperand *list = decode_operand(d, operand);
    if (!op->rank) return decode_source(d, operand, 32, &op->size);
    if (!list || list->kind != OPND_VEC || list->n != op->rank)
        return decode_refuse(d, "coordinates that are not as many as the map has dimensions");
    for (int i = 0; i < op->rank; i++)
        if (decode_source_of(d, &list->items[i], 32, &op->coordinates[i])) return -1;
    return 0;
}

static int bulk_sides(Decoder *d, int loads, int from_global, int rank, BulkOp *op)
{
    PtxSpace map = rank ? SPACE_GENERIC : SPACE_GLOBAL;
    int tensor_store = rank && !loads; /* [map, {x, y}], [shared] */
    op->rank = (uint8_t)rank;
    op->to.space = (uint8_t)(loads ? SPACE_SHARED : map);
    op->from.space = (uint8_t)(loads && from_global ? map : SPACE_SHARED);
    return decode_address(d, decode_operand(d, 0), &op->to) ||
           decode_address(d, decode_operand(d, 1 + tensor_store), &op->from) ||
           extent_of(d, 2 - tensor_store, op);
}

int decode_bulk(Decoder *d)
{
    const char *unknown = decode_unknown_copy(d->in);
    if (unknown) return decode_refuse(d, unknown);
    if (!strcmp(d->in->op, "st") && decode_has(d, "async")) return store_async(d);
    if (strcmp(d->in->op, "cp") || !decode_has(d, "async") || !decode_has(d, "bulk")) return 1;
    int waits = decode_has(d, "wait_group");
    if (waits || decode_has(d, "commit_group")) return bulk_group(d, waits);
    if (decode_has(d, "prefetch")) return bulk_prefetch(d);
    int rank = rank_of(d), cta = decode_has(d, "shared::cta"),
        cluster = decode_has(d, "shared::cluster"),
        loads = decode_has(d, "mbarrier::complete_tx::bytes"), stores = decode_has(d, "bulk_group"),
        hint = decode_has(d, "L2::cache_hint");
    int global = decode_has(d, "global");
    if (rank < 0 || (rank && !global) || loads == stores ||
        (global ? cta == cluster : !cta || !cluster || stores) || (stores && cluster) ||
        d->in->n_operands != 3 + loads + hint)
        return decode_refuse(d, "a form that is not known");
    BulkOp *op = ptx_arena_alloc(d->code->ptx.arena, sizeof *op);
    memset(op, 0, sizeof *op);
    op->traffic = &d->f->traffic[d->in - d->p->insts];
    if (bulk_sides(d, loads, global, rank, op)) return -1;
    if (loads) {
        op->barrier = barrier_of_copy;
        if (decode_address(d, decode_operand(d, 3), &op->barrier)) return -1;
    }
    decode_emit(d, loads ? h_bulk_load : h_bulk_store)->bulk = op;
    d->code->uses_proxy = 1;
    d->inst_class = loads ? INST_GLOBAL_LOAD : INST_GLOBAL_STORE;
    return 0;
}
