/* The barrier of a cluster and the addresses of its blocks. Where no kernel of the module has clusters of
 * several blocks, the barrier is one of the block, passed at the wait. */
#include "eval/sim/decode/decode_internal.h"

/* Is every block of the module's kernels a cluster of its own? */
static int is_alone(const Decoder *d)
{
    const PtxModule *m = &d->code->ptx;
    for (int i = 0; i < m->n_functions; i++)
        for (int k = 0; k < 3; k++)
            if (m->functions[i].cluster[k] > 1) return 0;
    return 1;
}

static int barrier_op(Decoder *d)
{
    static const char *const ignored[] = {"aligned", "release", "acquire"};
    int alone = is_alone(d), relaxed = decode_has(d, "relaxed");
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) decode_has(d, ignored[i]);
    d->inst_class = INST_BARRIER;
    if (decode_has(d, "arrive")) {
        decode_emit(d, alone ? h_nop : h_cluster_arrive)->k0 = (uint8_t)relaxed;
        return 0;
    }
    if (!decode_has(d, "wait")) return decode_refuse(d, "a form that is not known");
    decode_put(
        d, alone ? h_bar : h_cluster_wait,
        (Inst){
            .a = decode_const32(d->code, CLUSTER_BARRIER), .b = ROW_NONE, .k0 = BAR_SYNC, .k2 = 1});
    return 0;
}

/* The address that another block of the cluster has for what lies at an address of this one. */
static int map_op(Decoder *d)
{
    uint32_t a, rank, dest;
    decode_has(d, "shared::cluster");
    const ValueType *t = decode_type(d);
    if (!t || t->is_float || t->bits < 32 || decode_source(d, 1, t->bits, &a) ||
        decode_source(d, 2, 32, &rank) || decode_dest(d, 0, t->bits, &dest))
        return decode_refuse(d, "a form that is not known");
    decode_put(d, is_alone(d) ? h_mapa : h_cluster_map,
               (Inst){.d = dest, .a = a, .b = rank, .k1 = t->bits == 64});
    d->inst_class = INST_INT;
    return 0;
}

static int rank_op(Decoder *d)
{
    uint32_t a, dest;
    decode_has(d, "shared::cluster");
    const ValueType *t = decode_type(d);
    if (!t || t->is_float || t->bits < 32 || decode_source(d, 1, t->bits, &a) ||
        decode_dest(d, 0, 32, &dest))
        return decode_refuse(d, "a form that is not known");
    decode_put(d, h_cluster_rank, (Inst){.d = dest, .a = a, .k1 = t->bits == 64});
    d->inst_class = INST_INT;
    return 0;
}

int decode_cluster(Decoder *d)
{
    if (!strcmp(d->in->op, "mapa")) return map_op(d);
    if (!strcmp(d->in->op, "getctarank")) return rank_op(d);
    return !strcmp(d->in->op, "barrier") && decode_has(d, "cluster") ? barrier_op(d) : 1;
}
