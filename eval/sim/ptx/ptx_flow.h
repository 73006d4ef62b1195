/* The control flow of a PTX function: basic blocks, where paths meet, and which branches decide whether a
 * block runs. */
#ifndef EVAL_SIM_PTX_PTX_FLOW_H
#define EVAL_SIM_PTX_PTX_FLOW_H

#include "eval/sim/ptx/ptx.h"

/* How a basic block ends. */
typedef enum { ENDS_FALL, ENDS_JUMP, ENDS_BRANCH, ENDS_EXIT, ENDS_TABLE } FlowEnd;

typedef struct {
    int first, last; /* PTX instructions; last: one behind the end */
    FlowEnd end;
    int target, join; /* blocks; n: the exit */
} FlowBlock;

typedef struct {
    int n;
    FlowBlock *blocks;
    int *block_of;                  /* PTX instruction -> block */
    int *deciding_first, *deciding; /* the blocks whose branch decides whether block b runs */
} Flow;

/* Returns 0, or -1: the function has jumps that are not followed. */
int flow_find(const PtxFunction *f, Flow *out);
void flow_release(Flow *f);
/* The successors of block b, of which there are one or two; n: the exit. Returns how many. */
int flow_successors(const Flow *f, int b, int out[2]);

#endif
