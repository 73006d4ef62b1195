/* Tensor maps of launches for the driver. */
#ifndef EVAL_CUDA_MAPS_H
#define EVAL_CUDA_MAPS_H

#include "eval/device/device.h"
#include "gpu/driver.h"

/* Puts the driver's CUtensorMap in the place of each map among the launch's parameters. ERROR_UNSUPPORTED:
 * the driver or its GPU takes no such map. */
int maps_encode(const CudaDriver *cu, DeviceLaunch *l, Error *err);

#endif
