#include "model/cuda/together.h"

#include "model/cuda/state.h"

static Nccl *nccl;

int cuda_join(const NcclId *id, int rank, int n, Error *err)
{
    if (cuda_begin()) return error_set(err, "the GPU failed before the ranks met");
    return nccl_open(id, rank, n, &nccl, err);
}

void cuda_part(void)
{
    cuda_wait();
    nccl_close(nccl);
    nccl = NULL;
}

#define COLLECTIVE(...)                                        \
    do {                                                       \
        Error err_;                                            \
        if (!cuda_begin() && (__VA_ARGS__)) cuda_fail_with(&err_); \
    } while (0)

void cuda_all_reduce(float *x, size_t n) { COLLECTIVE(nccl_all_reduce(nccl, x, n, cuda_state()->stream, &err_)); }
void cuda_reduce_scatter(float *x, size_t each) { COLLECTIVE(nccl_reduce_scatter(nccl, x, each, cuda_state()->stream, &err_)); }
void cuda_all_gather(void *p, size_t bytes) { COLLECTIVE(nccl_all_gather(nccl, p, bytes, cuda_state()->stream, &err_)); }
void cuda_broadcast(void *p, size_t bytes) { COLLECTIVE(nccl_broadcast(nccl, p, bytes, cuda_state()->stream, &err_)); }
