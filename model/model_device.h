/* The device that a model runs on, by name. */
#ifndef MODEL_MODEL_DEVICE_H
#define MODEL_MODEL_DEVICE_H

#include "model/core/ops.h"

/* "cpu", "cuda:N", or "auto": cuda:0 where there is a GPU, else cpu. A GPU that is there and cannot
 * be used is an error with "auto" too: training for days on the CPU instead is nobody's wish. */
int model_device(const char *name, const Ops **out, Error *err);

#endif
