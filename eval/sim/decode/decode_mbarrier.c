/* mbarrier, and the arrival of cp.async at one. Clusters and counted bytes (bulk copies) are
 * refused. */
#include "eval/sim/decode/decode_internal.h"
#include "eval/sim/memory/memory_ops.h"

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
    static const char *const ignored[] = {"b64", "release", "acquire", "relaxed", "cta"};
    int copies = !strcmp(d->in->op, "cp") && decode_has(d, "mbarrier");
    if (!copies && strcmp(d->in->op, "mbarrier")) return 1;
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) decode_has(d, ignored[i]);
    if (copies)
        return decode_has(d, "async") && decode_has(d, "arrive") ? plain_op(d, MBARRIER_COPIES)
                                                                 : -1;
    if (decode_has(d, "init")) return plain_op(d, MBARRIER_INIT);
    if (decode_has(d, "inval")) return plain_op(d, MBARRIER_INVAL);
    if (decode_has(d, "try_wait") || decode_has(d, "test_wait")) return wait_op(d);
    int drop = decode_has(d, "arrive_drop");
    if (drop || decode_has(d, "arrive"))
        return arrive_op(d, drop ? MBARRIER_DROP : MBARRIER_ARRIVE);
    return decode_refuse(d, "a form that is not known");
}
