/* Between the files of memory instructions. */
#ifndef EVAL_SIM_MEMORY_MEMORY_OPS_H
#define EVAL_SIM_MEMORY_MEMORY_OPS_H

#include "eval/sim/memory/access.h"

Handler h_mem, h_ldparam, h_atom;
Handler h_cp_async, h_cp_async_group;
Handler h_param_get, h_param_put; /* part of a parameter's word: k0 shift, k1 bits, k2 signed (get),
                                     e bits of the register */

PtxSpace access_space(uint64_t address);
/* access_begin, and the space; a generic address becomes relative to its window. -1: take the lanes
 * one by one. */
int access_resolve(Warp *w, const Inst *in, uint32_t m, Access *a);

/* exec_local.c: 0 or -1 with a fault */
int local_load(Warp *w, Access *a);
int local_store(Warp *w, Access *a);

/* exec_mbarrier.c: mem: the barrier's address; k0: MbarrierOp */
Handler h_mbarrier;
enum {
    MBARRIER_INIT,
    MBARRIER_INVAL,
    MBARRIER_ARRIVE,
    MBARRIER_DROP,
    MBARRIER_COPIES,
    MBARRIER_WAIT,
    MBARRIER_WAIT_PARITY
};

/* exec_async.c */
void async_tie(
    Warp *w, int lane,
    uint32_t barrier); /* the lane's copies land when that barrier's phase ends, at the latest */
int async_land_tied(Warp *w, const Inst *in, uint32_t barrier); /* 0, or -1 with a fault */
void async_start_block(Exec *x);
void async_release(Exec *x);

#endif
