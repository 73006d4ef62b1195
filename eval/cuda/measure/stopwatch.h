/* The timing of a launch sequence in a context: events around it in the executor's one stream,
 * after a flush that overwrites shared memory and fills the L2 with other, clean lines. Everything
 * is enqueued before the first launch starts, since the host enqueues while the flush runs. */
#ifndef EVAL_CUDA_MEASURE_STOPWATCH_H
#define EVAL_CUDA_MEASURE_STOPWATCH_H

#include "base/random.h"
#include "eval/cuda/context/executor.h"

enum {
    STOPWATCH_GRAPHS = 64 /* one for each copy of a module on each set of buffers */
};

typedef struct {
    unsigned char *records; /* the captured launches; NULL: the slot is free */
    size_t bytes;
    CuGraphExec graph;
    uint64_t last_use;
} StopwatchGraph;

typedef struct {
    Executor *executor;
    CuEvent before, start, end; /* before the flush, and around the launches */
    CuPtr scratch;              /* what the flush reads; 0 before stopwatch_load */
    size_t scratch_bytes;
    int persisting;         /* the device has persisting L2 lines */
    uint32_t module;        /* of the two kernels */
    CuFunction flush, wait; /* harness_flush and harness_wait; NULL before stopwatch_load */
    unsigned sms;           /* blocks of the flush */
    unsigned flush_shared;  /* dynamic shared memory of a block of the flush, in bytes */
    Random idle;            /* draws the number of empty launches before a timing */
    StopwatchGraph graphs[STOPWATCH_GRAPHS];
    uint64_t graph_uses;
    /* The last cold sequence: its launches and their bytes, and how long the host took to enqueue them the
     * last two times. */
    int enqueued;
    size_t enqueued_bytes;
    double enqueue_us[2], pass_us; /* pass_us: of one pass of the flush; 0: not known */
} Stopwatch;

/* The executor must outlive the stopwatch. */
int stopwatch_open(Stopwatch *w, Executor *e, Error *err);
/* Load the kernels of the flush and of the wait from the harness's cubin, in place of those that are there.
 * Cold timings need them. */
int stopwatch_load(Stopwatch *w, const void *cubin, Error *err);
/* Destroy the captured graphs. To be called before a module is unloaded. */
void stopwatch_drop_graphs(Stopwatch *w);
/* Overwrite the memory that the flush reads, drop the graphs and reset persisting L2 lines: another candidate
 * comes. Does not wait. */
CuResult stopwatch_reset(Stopwatch *w);

/* When a cold launch sequence begins: at `phase` nanoseconds of a period of the GPU's clock. period
 * 0: at any time. */
typedef struct {
    uint32_t period, phase;
} StallWait;

/* Time the sequence. Returns 0, or 1 with *end when it failed. */
int stopwatch_clock(Stopwatch *w, const LaunchList *l, ClockMode mode, StallWait wait,
                    DeviceClock *out, LaunchEnd *end);
/* Hardware counters of the sequence, from a cold L2. Returns 0, 1 with *end when the sequence
 * failed, or -1 when nothing can be counted here. */
int stopwatch_counters(Stopwatch *w, const LaunchList *l, DeviceCounter *out, int *n,
                       LaunchEnd *end, Error *err);

#endif
