/* The device that a model runs on, by name. */
#ifndef MODEL_MODEL_DEVICE_H
#define MODEL_MODEL_DEVICE_H

#include "model/core/ops.h"

/* "cpu", "cuda:N" or "auto", which is cuda:0 where there is a GPU, else cpu. A GPU that cannot be
 * used is an error with "auto" too, so that a long run never falls back to the CPU unnoticed. */
int model_device(const char *name, const Ops **out, Error *err);

#endif
