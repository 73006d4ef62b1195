/* The part of a kernel by which the contents of memory decide how long its blocks run, as a kernel of its
 * own: branches that follow from loads and that decide about loops, or about much code, and what these need.
 * It stores nothing to global memory, so that it can run for every block of a launch beforehand.
 *
 * Contents are known where the launch stores nothing. A branch that follows from others, from global atomics
 * that repeat or from asynchronous copies is not known: its lanes go on where both of its sides meet. */
#ifndef EVAL_SIM_COVERAGE_CONTROL_H
#define EVAL_SIM_COVERAGE_CONTROL_H

#include "eval/sim/ptx/ptx.h"

typedef struct {
    PtxModule module; /* the kernel comes first; variables, operands and functions are borrowed */
    double dilution;  /* instructions of the kernel for one of the part, about */
    int is_settled;   /* other open branches have one turn, and no loop behind them */
    int left_out;     /* instructions that these decide about */
} Control;

/* steady: bits of the parameters through which the launch stores nothing, and of those that are no pointers.
 * open: by block of code, where a branch is not known beforehand (census.h). Returns 0, or -1: memory decides
 * no such branch, or one that is not known, and *out says is_settled alone. */
int control_cut(const PtxModule *m, const PtxFunction *f, uint64_t steady, const uint8_t *open,
                Control *out);
/* *m is out->module, wherever it lies: nothing that is borrowed is freed behind this. */
void control_return(PtxModule *m);

#endif
