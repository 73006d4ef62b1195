/* Counters that explain a kernel's time, from CUPTI, in the process that owns the context. Hardware
 * counters need a driver that lets users profile (NVreg_RestrictProfilingToAdminUsers=0) or
 * CAP_SYS_ADMIN. Without that right the counters come from CUPTI's activity records: each kernel's
 * duration, registers and memory. */
#ifndef EVAL_CUDA_MEASURE_CUPTI_H
#define EVAL_CUDA_MEASURE_CUPTI_H

#include "base/error.h"
#include "eval/device/device.h"

/* Launches whose counters are read: they run once for every pass that the hardware needs, each time with the
 * same work. */
typedef struct {
    void *context; /* their CUcontext, current in the calling thread */
    int ordinal;   /* of its device in this process */
    /* Runs before each pass and is not counted (a flush of the L2); NULL: nothing. */
    int (*prepare)(void *arg, Error *err);
    /* Runs all launches and waits for their end. */
    int (*run)(void *arg, Error *err);
    void *arg;
} CuptiWork;

/* Returns 0 with out[0..*n) filled (at most DEVICE_MAX_COUNTERS), or -1 when neither way of
 * counting works here, or the work failed. One caller at a time in a process. CUPTI stays open: do
 * not time in a process that has called this. */
int cupti_counters(const CuptiWork *work, DeviceCounter *out, int *n, Error *err);

#endif
