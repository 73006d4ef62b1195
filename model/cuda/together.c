#include "model/cuda/together.h"

#include "model/cuda/cuda_state.h"

static struct {
    Nccl *nccl;
    size_t rank, n;
} together;

int cuda_join(const NcclId *id, int rank, int n, Error *err)
{
    together.rank = (size_t)rank;
    together.n = (size_t)n;
    return cuda_beside_open(err) || nccl_open(id, rank, n, &together.nccl, err) ? -1 : 0;
}

void cuda_part(void)
{
    cuda_wait();
    nccl_close(together.nccl);
    cuda_beside_close();
    together.nccl = NULL;
}

/* `s` is the stream. */
#define COLLECTIVE(call)                        \
    do {                                        \
        Error err_;                             \
        CuStream s = cuda_beside();             \
        if (s && (call)) cuda_fail_with(&err_); \
    } while (0)

void cuda_all_reduce(float *x, size_t n)
{
    COLLECTIVE(nccl_all_reduce(together.nccl, x, n, s, &err_));
    cuda_settle();
}

void cuda_broadcast(void *p, size_t bytes)
{
    COLLECTIVE(nccl_broadcast(together.nccl, p, bytes, s, &err_));
    cuda_settle();
}

static void clear(CuStream s, float *x, size_t n)
{
    if (n)
        CUDA_TRY(cuda_state()->cu->set_bytes((CuPtr)(uintptr_t)x, 0, n * sizeof *x, s),
                 "memory of the GPU is not set to zero");
}

void cuda_reduce_scatter(float *x, size_t each)
{
    Error err;
    CuStream s = cuda_beside();
    size_t mine = together.rank * each;
    if (!s) return;
    if (nccl_reduce_scatter(together.nccl, x, each, s, &err)) cuda_fail_with(&err);
    clear(s, x, mine);
    clear(s, x + mine + each, (together.n - 1) * each - mine);
}

void cuda_all_gather(void *p, size_t bytes)
{
    COLLECTIVE(nccl_all_gather(together.nccl, p, bytes, s, &err_));
}
