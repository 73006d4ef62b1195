/* What all blocks of a launch write, without running them: the slice of the kernel that decides where it
 * stores runs for a block, and tells in which other blocks the same happens, moved by a constant; then for a
 * block that is left, and so on. Most kernels take two to eight blocks. */
#ifndef EVAL_SIM_COVERAGE_COVERAGE_H
#define EVAL_SIM_COVERAGE_COVERAGE_H

#include "eval/sim/coverage/slice.h"
#include "eval/sim/coverage/written.h"
#include "eval/sim/machine/device_memory.h"

/* The bytes that a launch writes, by allocation. */
typedef struct {
    int n;
    Written *of;
    const char *why; /* not NULL: what it writes is not known; why, behind "the kernel has ..." */
    int line;        /* of the source */
    uint64_t ran;    /* blocks */
} Coverage;

/* The bytes of the smallest element that the kernel stores; 16 where it stores none. */
uint32_t coverage_unit(const PtxFunction *kernel);
/* Of the launch of a kernel: fills in *out, which the caller releases. *budget: what it may take, in lanes of
 * instructions; what it took is subtracted. unit: of all that is marked. */
void coverage_find(const DevMem *mem, const PtxFunction *kernel, const DeviceLaunch *launch,
                   uint32_t unit, int64_t *budget, Coverage *out);
void coverage_release(Coverage *c);

#endif
