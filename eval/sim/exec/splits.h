/* Splits and joins: how the lanes of a warp part and meet again. */
#ifndef EVAL_SIM_EXEC_SPLITS_H
#define EVAL_SIM_EXEC_SPLITS_H

#include "eval/sim/machine/exec.h"

enum { SLICE = 20000 /* instructions of a split before others run */ };

/* Makes the frame's registers the current ones. */
static inline void frame_enter(Warp *w, Frame *f)
{
    w->frame = f;
    w->bank32[0] = f->rows32;
    w->bank64[0] = f->rows64;
    w->p = f->preds;
}

void split_select(Warp *w, int split); /* makes it the running one, with a new slice */
/* The running split stops here, to continue at pc. */
void split_park(Warp *w, const Inst *pc, SplitState state);
void split_add(Warp *w, uint32_t mask, const Inst *pc, Frame *frame, Join *join);
void split_remove_current(Warp *w);

/* Opens the join of a branch for the running split. pc NULL: where the function returns to. */
void join_open(Warp *w, const Inst *pc);
/* Sends lanes to pc. Lanes that are at the join already wait there. */
void join_send(Warp *w, uint32_t mask, const Inst *pc);
/* The running split reached its join. Returns 1 when it goes on, merged with the others, and 0 when
 * it waits for them. */
int join_arrive(Warp *w, const Inst *in);
/* Lanes of a join exited or left: releases the lanes that waited for them only. */
void join_settle(Warp *w, Join *j);
/* The running split waits for other lanes: releases the lanes that wait for it at joins that opened
 * at least `age` instructions ago. They may be what it waits for (they hold a lock). */
void join_release_waiting(Warp *w, uint64_t age);
/* Lets lanes exit that wait at an exit for the parked splits. Returns 1 when there are such lanes. */
int join_release_exits(Warp *w);

/* ---- the scheduler of a warp ---- */

void warp_start(Warp *w); /* all lanes at the kernel's first instruction */
/* Runs the warp until no split is ready or all have used a slice. Returns 1 when something ran. */
int warp_run(Warp *w);

#endif
