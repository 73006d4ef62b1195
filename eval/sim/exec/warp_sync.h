/* Warp-level operations name the lanes that take part. These functions hold a split until all of
 * its members have come; members that have exited are not waited for. */
#ifndef EVAL_SIM_EXEC_WARP_SYNC_H
#define EVAL_SIM_EXEC_WARP_SYNC_H

#include "eval/sim/machine/exec.h"

typedef struct {
    uint32_t lanes;   /* that run the operation now: whole groups */
    uint32_t members; /* the lanes that the operation names: of the lowest lane */
    const Inst *next; /* what the handler returns when the operation does not run */
} WarpSync;

/* Returns 1 when the operation runs now. Otherwise the handler returns s->next: no lane is active,
 * the lanes wait and the handler is called again once all members are here, or a lane's mask does not
 * name the lane itself, which is a fault. Lanes with different masks are groups of their own
 * (warp_group): whole ones run, the others wait apart. */
int warp_sync(Warp *w, const Inst *in, WarpSync *s); /* in->f: row of the member mask */
/* The same for operations of all 32 lanes. A warp of fewer lanes is a fault: "thread ... `what` in
 * a warp of fewer than 32 threads". */
int warp_sync_full(Warp *w, const Inst *in, const char *what, WarpSync *s);

/* Nothing is ready, or a split spins: runs one operation whose members are all here, or releases
 * one warp barrier. Returns 1 when it did. */
int warp_sync_resolve(Warp *w);
/* Nothing can run: reports a split that waits for other lanes. */
void warp_sync_report(Warp *w, int split);

#endif
