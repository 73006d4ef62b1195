/* The collective operations of several ranks (model/ranks.h), on the GPU that ops_cuda opened. NCCL has a stream of its own,
 * which goes before the engine's where both have blocks to place: each operation comes after the work in the engine's
 * stream so far, and runs beside what is put there later until that is told to wait. */
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
/* The engine's stream waits for the operations so far; every wait for it begins so. */
void cuda_settle(void);

#endif
