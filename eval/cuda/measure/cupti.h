/* What explains a kernel's time: hardware counters by CUPTI's range profiler, opened at run time.
 * Called in the process that owns the context. Counting needs a driver that lets users profile
 * (NVreg_RestrictProfilingToAdminUsers=0) or CAP_SYS_ADMIN; without it the counters are those of
 * CUPTI's activity records, which need no right: each kernel's duration, registers and memory. */
#ifndef EVAL_CUDA_MEASURE_CUPTI_H
#define EVAL_CUDA_MEASURE_CUPTI_H

#include "eval/device/device.h"

/* The launches to be counted. They run once for every pass that the hardware needs, each time with
 * the same work. */
typedef struct {
    void *context; /* the CUcontext that they run in, current in the calling thread */
    int ordinal;   /* of its device in this process */
    int (*prepare)(
        void *of,
        Error *err); /* before each pass and not counted (a flush of the L2); NULL: nothing */
    int (*run)(void *of, Error *err); /* all launches, and waits for their end */
    void *of;
} CuptiWork;

/* 0, with out[0..*n) filled (at most DEVICE_MAX_COUNTERS); -1: neither way of counting works here,
 * and why, or the work failed. One caller at a time in a process. The library stays open; a
 * profiled process should not be timed in after. */
int cupti_counters(const CuptiWork *work, DeviceCounter *out, int *n, Error *err);

#endif
