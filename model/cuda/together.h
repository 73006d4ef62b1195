/* The collective operations of several ranks (model/ranks.h), on the GPU that ops_cuda opened, in
 * the second stream of state.h. */
#ifndef MODEL_CUDA_TOGETHER_H
#define MODEL_CUDA_TOGETHER_H

#include "gpu/nccl.h"

/* All ranks at once, after ops_cuda. */
int cuda_join(const NcclId *id, int rank, int n, Error *err);
void cuda_part(void);

/* As in model/ranks.h; what fails is kept for `status`. */
void cuda_all_reduce(float *x, size_t n);
void cuda_broadcast(void *p, size_t bytes);
void cuda_reduce_scatter(float *x, size_t each);
void cuda_all_gather(void *p, size_t bytes);

#endif
