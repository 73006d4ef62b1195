/* The operations of a transformer on one GPU: bf16, cuBLASLt and the kernels of this folder. */
#ifndef MODEL_CUDA_OPS_CUDA_H
#define MODEL_CUDA_OPS_CUDA_H

#include "model/core/ops.h"

/* Return the table of one GPU ("cuda:N"). The first call opens libcuda, cuBLASLt and the kernels,
 * and the error says what is missing. A later call with another N is an error. */
int ops_cuda(const char *name, const Ops **out, Error *err);

#endif
