#include "model/cuda/together.h"

#include "model/cuda/state.h"

/* The driver takes the nearest priority that it has. NCCL's blocks wait for one another across the GPUs: the sooner all
 * have a place, the sooner they give it back. How many there are is NCCL's choice (NCCL_MAX_CTAS in the environment makes it
 * fewer): a product cut for every SM waits for its last block, whether one or twenty were kept from their places, so that a
 * short sum costs it less than a narrow one. */
enum { FOREMOST = -100 };

static struct {
    Nccl *nccl;
    CuStream stream;
    CuEvent event;                 /* of whichever stream is waited for; a wait keeps what was recorded before it */
    size_t rank, n;
    int apart;                     /* something in `stream` that the engine's does not wait for */
} together;

int cuda_join(const NcclId *id, int rank, int n, Error *err)
{
    const CudaDriver *cu = cuda_state()->cu;
    if (cuda_begin()) return error_set(err, "the GPU failed before the ranks met");
    together.rank = (size_t)rank;
    together.n = (size_t)n;
    CuResult r = cu->stream_create_first(&together.stream, CU_STREAM_NON_BLOCKING, FOREMOST);
    if (cuda_check(r, "the GPU gives no second stream", err)) return -1;
    if (cuda_check(cu->event_create(&together.event, CU_EVENT_NO_TIMING), "the driver gives no event", err)) return -1;
    return nccl_open(id, rank, n, &together.nccl, err);
}

void cuda_part(void)
{
    cuda_wait();
    nccl_close(together.nccl);
    cuda_state()->cu->event_destroy(together.event);
    cuda_state()->cu->stream_destroy(together.stream);
    together.nccl = NULL;
}

static void follow(CuStream later, CuStream first)
{
    const CudaDriver *cu = cuda_state()->cu;
    CUDA_TRY(cu->event_record(together.event, first), "one stream of the GPU cannot wait for another");
    CUDA_TRY(cu->stream_wait(later, together.event, 0), "one stream of the GPU cannot wait for another");
}

/* Before each collective: 0, or -1 when nothing may be launched any more. */
static int depart(void)
{
    if (cuda_begin()) return -1;
    follow(together.stream, cuda_state()->stream);
    together.apart = 1;
    return cuda_failed() ? -1 : 0;
}

void cuda_settle(void)
{
    if (!together.apart) return;
    follow(cuda_state()->stream, together.stream);
    together.apart = 0;
}

#define COLLECTIVE(...)                                        \
    do {                                                       \
        Error err_;                                            \
        if (!depart() && (__VA_ARGS__)) cuda_fail_with(&err_); \
    } while (0)

void cuda_all_reduce(float *x, size_t n)
{
    COLLECTIVE(nccl_all_reduce(together.nccl, x, n, together.stream, &err_));
    cuda_settle();
}

void cuda_broadcast(void *p, size_t bytes)
{
    COLLECTIVE(nccl_broadcast(together.nccl, p, bytes, together.stream, &err_));
    cuda_settle();
}

static void clear(float *x, size_t n)
{
    CuPtr p = (CuPtr)(uintptr_t)x;
    if (n) CUDA_TRY(cuda_state()->cu->set_bytes(p, 0, n * sizeof *x, together.stream), "memory of the GPU is not set to zero");
}

void cuda_reduce_scatter(float *x, size_t each)
{
    size_t mine = together.rank * each;
    COLLECTIVE(nccl_reduce_scatter(together.nccl, x, each, together.stream, &err_));
    clear(x, mine);
    clear(x + mine + each, (together.n - 1) * each - mine);
}

void cuda_all_gather(void *p, size_t bytes) { COLLECTIVE(nccl_all_gather(together.nccl, p, bytes, together.stream, &err_)); }
