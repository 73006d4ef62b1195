/* The collective operations of several ranks (model/core/ranks.h), by NCCL, on the GPU that ops_cuda
 * opened. They run in the second stream of cuda_state.h. */
#ifndef MODEL_CUDA_COLLECTIVES_H
#define MODEL_CUDA_COLLECTIVES_H

#include "model/core/ops.h"

extern const Collectives cuda_collectives;

#endif
