/* Hardware counters by CUPTI's range profiler. */
#ifndef EVAL_CUDA_MEASURE_CUPTI_RANGE_H
#define EVAL_CUDA_MEASURE_CUPTI_RANGE_H

#include "eval/cuda/measure/cupti_api.h"
#include "eval/cuda/measure/cupti_work.h"
#include "eval/device/device.h"

/* Returns 0 with out[0..*n) filled; -1: the driver does not allow it, or the work failed. Counters
 * that the chip does not have are left out. */
int cupti_range_counters(const Cupti *c, const CuptiWork *work, DeviceCounter *out, int *n,
                         Error *err);

#endif
