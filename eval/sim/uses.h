/* What a launch does to each buffer, noted after it: the basis of eval/sim/missing.h. */
#ifndef EVAL_SIM_USES_H
#define EVAL_SIM_USES_H

#include "eval/sim/machine/device_memory.h"

/* Sums over all blocks. */
typedef struct {
    char label[64]; /* of Alloc: the same at every workload */
    double size;    /* bytes of the buffer */
    double asked;   /* bytes that the threads load and store, once for each request */
    double touched; /* bytes of the sectors that the launch, or each block, reads and writes */
    int scratch;    /* it is no tensor of the task */
} BufferUse;

typedef struct {
    int n;
    BufferUse *of;
    /* The launch counts as one of the small size, grown: of its buffers only the size is known. */
    int scaled;
} LaunchUses;

/* Of every buffer, by the launch that has just run; a module's variables count as one. scale: what all
 * blocks of the launch ask for, over what the executed ones did. */
void uses_note(LaunchUses *u, const DevMem *mem, double scale);
/* Releases those of n launches, and the list. */
void uses_release(LaunchUses *list, int n);

#endif
