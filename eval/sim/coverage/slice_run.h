/* Runs the slice of a kernel for one block of a launch, and tells where the block writes and in which other
 * blocks of the grid the same happens, moved. */
#ifndef EVAL_SIM_COVERAGE_SLICE_RUN_H
#define EVAL_SIM_COVERAGE_SLICE_RUN_H

#include "eval/device/device.h"
#include "eval/sim/coverage/lanes.h"

/* Bytes that a block writes. */
typedef struct {
    int64_t at, bytes;   /* at: a device address */
    int64_t d[BOX_DIMS]; /* what is added to `at` in the next block of each dimension */
} BlockRun;

/* Special registers whose values differ by thread. */
enum { THREAD_SPECIALS = 10 };

typedef struct SliceRun {
    const Slice *slice;
    const DeviceLaunch *launch;
    uint32_t block[3]; /* the coordinates of the block */
    GridParts parts;
    Box box;
    BlockRun *runs;
    int n_runs, cap_runs;
    int last;       /* the run that what was added last is part of */
    int64_t budget; /* lanes of instructions that are left, about */
    /* By block of a slice of branches: how often warps run it, behind these how often it runs for any of
     * them, and whether a branch within it was not known. NULL: such a branch stops the run. */
    uint64_t *passes;
    uint8_t *open;
    uint64_t *ways;            /* of ways.h: n_ways bits; NULL: they are not asked for */
    uint64_t n_ways, way;      /* way: the last outcome */
    struct SliceTrips **trips; /* by block that begins a loop (slice_skip.h) */
    int either;                /* unknown conditions: accesses of both sides are found */
    int sides;                 /* such branches within each other */
    const char *why;           /* why the block cannot be run */
    int why_inst;              /* the PTX instruction */
    /* the block's state */
    int n_lanes, exited;
    int apart; /* threads from one lane to the next; the last lane is the last thread */
    uint8_t *live;
    Lanes *slots, scratch[SLICE_SOURCES], result;
    uint64_t *storage;
    uint64_t *of_threads[THREAD_SPECIALS]; /* NULL: not asked for yet */
} SliceRun;

/* The launch and the slice are borrowed. */
void slice_run_open(SliceRun *r, const Slice *s, const DeviceLaunch *l, int64_t budget);
/* From now on a block has few lanes, which stand for threads that lie between them. */
void slice_run_thin(SliceRun *r);
/* Divides the grid's first dimension where quotients of a block's number repeat. */
void slice_run_split(SliceRun *r);
void slice_run_close(SliceRun *r);
/* What a step of dimension k of the box adds to the number of the block; and that number. */
int64_t slice_run_apart(const SliceRun *r, int k);
int64_t slice_run_number(const SliceRun *r);
/* Bytes that the block accesses. They are joined to the last ones, or to a run that they go on behind. */
void slice_run_add(SliceRun *r, int64_t at, int64_t bytes, const int64_t d[BOX_DIMS]);
/* Returns 0; or -1 with `why`. */
int slice_run_block(SliceRun *r, const uint32_t block[3]);

#endif
