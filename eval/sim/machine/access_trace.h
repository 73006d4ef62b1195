/* What the threads of a launch read and write in memory that is not read-only; with `given`, in all memory.
 * By threads or warps, the accesses are kept one by one, so that those of a few can be told apart; by blocks,
 * as two sets. */
#ifndef EVAL_SIM_MACHINE_ACCESS_TRACE_H
#define EVAL_SIM_MACHINE_ACCESS_TRACE_H

#include "eval/sim/machine/ranges.h"

typedef enum { TRACE_BLOCKS, TRACE_WARPS, TRACE_THREADS } TraceBy;
typedef enum { TRACE_READ = 1, TRACE_WRITE = 2, TRACE_ATOMIC = 3 } TraceKind;

enum { TRACE_UNITS = 1024 /* of a block */ };

typedef struct {
    uint64_t unit; /* TRACE_UNITS times the block, and the warp or thread */
    uint64_t lo;
    uint32_t bytes, kind;
} TraceEntry;

typedef struct {
    TraceBy by;
    int given;            /* read-only memory, too */
    Ranges reads, writes; /* by blocks; an atomic reads */
    TraceEntry *of;       /* by others */
    int64_t n, cap;
    int overflowed;
} AccessTrace;

void trace_release(AccessTrace *t);
/* Of a unit, by warps or threads. */
void trace_add(AccessTrace *t, TraceEntry e);

#endif
