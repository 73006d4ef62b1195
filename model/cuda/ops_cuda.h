/* The operations of a transformer on one GPU: bf16, cuBLASLt and the kernels of this folder. */
#ifndef MODEL_CUDA_OPS_CUDA_H
#define MODEL_CUDA_OPS_CUDA_H

#include "model/core/ops.h"

/* The table of one GPU ("cuda:N"), opened once a process: libcuda, cuBLASLt and the kernels. The
 * error says what is missing; another N later is one too. */
int ops_cuda(const char *name, const Ops **out, Error *err);

#endif
