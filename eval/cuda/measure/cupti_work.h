/* The launches whose hardware counters are read. */
#ifndef EVAL_CUDA_MEASURE_CUPTI_WORK_H
#define EVAL_CUDA_MEASURE_CUPTI_WORK_H

#include "base/error.h"

/* The launches run once for every pass that the hardware needs, each time with the same work. */
typedef struct {
    void *context; /* their CUcontext, current in the calling thread */
    int ordinal;   /* of its device in this process */
    /* Runs before each pass and is not counted (a flush of the L2); NULL: nothing. */
    int (*prepare)(void *arg, Error *err);
    /* Runs all launches and waits for their end. */
    int (*run)(void *arg, Error *err);
    void *arg;
} CuptiWork;

#endif
