/* Operations between the lanes of a warp. */
#include "eval/sim/decode/decode_internal.h"

static int shfl_op(Decoder *d)
{
    static const char *const modes[SHFL_COUNT] = {"up", "down", "bfly", "idx"};
    const PtxOperand *o = decode_operand(d, 0);
    int mode = -1;
    uint32_t rows[4], dest, p = 0;
    for (int i = 0; i < SHFL_COUNT; i++)
        if (decode_has(d, modes[i])) mode = i;
    if (!decode_has(d, "sync") || !decode_has(d, "b32") || mode < 0 || d->in->n_operands != 5)
        return decode_refuse(d, "a form that is not known");
    for (int i = 0; i < 4; i++)
        if (decode_source(d, i + 1, 32, &rows[i])) return -1;
    if (decode_dest(d, 0, 32, &dest) || (o->pair && decode_pred_dest(d, o->pair, &p))) return -1;
    decode_put(d, h_shfl,
               (Inst){.d = dest,
                      .e = p,
                      .a = rows[0],
                      .b = rows[1],
                      .c = rows[2],
                      .f = rows[3],
                      .k0 = (uint8_t)mode});
    d->inst_class = INST_SHUFFLE;
    return 0;
}

static int vote_op(Decoder *d)
{
    static const char *const modes[VOTE_COUNT] = {"all", "any", "uni", "ballot"};
    int mode = -1;
    uint32_t p, flip, mask, dest;
    for (int i = 0; i < VOTE_COUNT; i++)
        if (decode_has(d, modes[i])) mode = i;
    decode_has(d, "pred");
    decode_has(d, "b32");
    if (!decode_has(d, "sync") || mode < 0 || decode_pred(d, 1, &p, &flip) ||
        decode_source(d, 2, 32, &mask))
        return decode_refuse(d, "a form that is not known");
    if (mode == VOTE_BALLOT ? decode_dest(d, 0, 32, &dest)
                            : decode_pred_dest(d, decode_operand(d, 0), &dest))
        return -1;
    decode_put(d, h_vote, (Inst){.d = dest, .a = p, .e = flip, .f = mask, .k0 = (uint8_t)mode});
    d->inst_class = INST_SHUFFLE;
    d->cycles = 10;
    return 0;
}

static int match_op(Decoder *d)
{
    int all = decode_has(d, "all");
    decode_has(d, "any");
    decode_has(d, "sync");
    const ValueType *t = decode_type(d);
    const PtxOperand *o = decode_operand(d, 0);
    uint32_t a, mask, dest, p = 0;
    if (!t || t->bits < 32 || decode_source(d, 1, t->bits, &a) || decode_source(d, 2, 32, &mask) ||
        decode_dest(d, 0, 32, &dest) || (o->pair && decode_pred_dest(d, o->pair, &p)))
        return decode_refuse(d, "a form that is not known");
    decode_put(
        d, h_match,
        (Inst){.d = dest, .e = p, .a = a, .f = mask, .k0 = (uint8_t)all, .k1 = t->bits == 64});
    d->inst_class = INST_SHUFFLE;
    d->repeats = all ? 2 : 1; /* further values of match.any count as they run */
    return 0;
}

static int redux_op(Decoder *d)
{
    static const struct {
        const char *name;
        int for_signed, for_unsigned;
    } ops[] = {{"add", REDUX_ADD, REDUX_ADD},
               {"min", REDUX_MIN_S32, REDUX_MIN_U32},
               {"max", REDUX_MAX_S32, REDUX_MAX_U32},
               {"and", REDUX_AND, REDUX_AND},
               {"or", REDUX_OR, REDUX_OR},
               {"xor", REDUX_XOR, REDUX_XOR}};
    const ValueType *t = decode_type(d);
    int op = -1;
    uint32_t a, mask, dest;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (decode_has(d, ops[i].name))
            op = t && t->is_signed ? ops[i].for_signed : ops[i].for_unsigned;
    if (!decode_has(d, "sync") || op < 0 || !t || t->is_float || t->bits != 32)
        return decode_refuse(d, "a form that is not known");
    if (decode_source(d, 1, 32, &a) || decode_source(d, 2, 32, &mask) ||
        decode_dest(d, 0, 32, &dest))
        return -1;
    decode_put(d, h_redux, (Inst){.d = dest, .a = a, .f = mask, .k0 = (uint8_t)op});
    d->inst_class = INST_SFU; /* as often as these */
    d->cycles = 44;
    return 0;
}

static int activemask_op(Decoder *d)
{
    uint32_t dest;
    decode_has(d, "b32");
    if (decode_dest(d, 0, 32, &dest)) return -1;
    decode_emit(d, h_activemask)->d = dest;
    d->inst_class = INST_OTHER; /* a vote that the assembler moves out of the way */
    return 0;
}

static int elect_op(Decoder *d)
{
    const PtxOperand *o = decode_operand(d, 0);
    uint32_t dest, p = 0, mask;
    decode_has(d, "sync");
    if (decode_dest(d, 0, 32, &dest) || (o->pair && decode_pred_dest(d, o->pair, &p)) ||
        decode_source(d, 1, 32, &mask))
        return -1;
    decode_put(d, h_elect, (Inst){.d = dest, .e = p, .f = mask});
    d->inst_class = INST_OTHER; /* it runs beside the lanes' pipes */
    return 0;
}

int decode_warp(Decoder *d)
{
    static const DecodeOp table[] = {{"shfl", shfl_op},   {"vote", vote_op},
                                     {"match", match_op}, {"redux", redux_op},
                                     {"elect", elect_op}, {"activemask", activemask_op}};
    return decode_among(d, table, sizeof table / sizeof *table);
}
