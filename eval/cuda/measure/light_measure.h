/* The measurement of a GPU's speed of light. */
#ifndef EVAL_CUDA_MEASURE_LIGHT_MEASURE_H
#define EVAL_CUDA_MEASURE_LIGHT_MEASURE_H

#include "eval/compile/compile_client.h"
#include "eval/cuda/measure/light.h"

/* Measure in the current context. The caller holds the GPU's lock exclusively (gpu/lock.h). It
 * takes some seconds and up to 4 GiB of the GPU's memory. The figures of tensor cores are 0 where
 * the GPU has none. */
int light_measure(const CudaDriver *cu, const Gpu *gpu, Compiler *compiler, Light *out, Error *err);

#endif
