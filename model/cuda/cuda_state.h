/* Inside model/cuda: the one GPU that this process computes on, its stream, its kernels, and how
 * they are launched. Everything runs in one stream, in order; collectives of several ranks have a
 * second one. The first failure is kept for `status`; after it nothing is launched.
 *
 * The GPU is shared with evaluators that time kernels on it (gpu/lock.h): the first launch after a
 * wait takes the shared side of its lock, a wait gives it back, and in between it is given to a
 * process that wants to be alone as soon as that is noticed, a few milliseconds later: then the
 * launches so far are waited for and the next ones wait for the lock. */
#ifndef MODEL_CUDA_CUDA_STATE_H
#define MODEL_CUDA_CUDA_STATE_H

#include "gpu/driver.h"
#include "model/core/ops.h"
#include "model/cuda/kernels.h"

typedef struct {
    unsigned x, y, z;
} Dim3;

typedef struct {
    const CudaDriver *cu;
    CuDevice device;
    CuContext context; /* the device's primary one, which NVIDIA's libraries use */
    CuStream stream;
    int ordinal, sms, arch; /* arch: 90 for sm_90 */
    size_t shared_max;      /* dynamic shared memory that a block may ask for */
} CudaState;

const CudaState *cuda_state(void);

/* Launch a kernel of kernels.h; args: addresses of the arguments, as cuLaunchKernel wants them.
 * Shared memory above 48 KiB is asked for by itself. An empty grid launches nothing. */
void cuda_launch(CudaKernel k, Dim3 grid, Dim3 block, size_t shared, void **args);
#define LAUNCH(kernel, grid, block, shared, ...) \
    cuda_launch(kernel, grid, block, shared, (void *[]){__VA_ARGS__})

/* on: from now on each kernel may start while the one before it ends, and waits for that itself
 * before it touches what the other writes or reads (previous_done of overlap.cuh). On GPUs since
 * sm_90; elsewhere it changes nothing. */
void cuda_overlap(int on);

/* To be asked before work is put into the stream by any other way than cuda_launch and the members
 * of Ops: takes the lock. 0, or -1 when nothing may be launched any more. */
int cuda_begin(void);
/* Wait for all work so far, and give the lock back. 0, or -1: it failed, and the failure is kept.
 */
int cuda_wait(void);

/* The second stream, for what may run beside the engine's. It goes first where both have blocks to
 * place: NCCL's wait for one another across the GPUs, and the sooner all have a place, the sooner
 * they give it back. */
int cuda_beside_open(Error *err);
void cuda_beside_close(void);
/* It, to put work into: that comes after the engine's so far, and runs beside what the engine does
 * later, until cuda_settle or a wait. NULL when nothing may be launched any more. */
CuStream cuda_beside(void);
/* The engine's stream waits for the second one's work so far; every wait for it begins so. */
void cuda_settle(void);

/* Device memory that stays valid and unshared until the next call of cuda_scratch: of one
 * operation, never of two. NULL after a failure. */
void *cuda_scratch(size_t bytes);

/* Keep `what` and the driver's words as the failure, unless there is one already. */
void cuda_fail(CuResult r, const char *what);
/* Keep a sentence of another library. */
void cuda_fail_with(const Error *err);
int cuda_failed(void);
#define CUDA_TRY(call, what)                      \
    do {                                          \
        CuResult r_ = cuda_failed() ? 0 : (call); \
        if (r_) cuda_fail(r_, what);              \
    } while (0)

/* For the files of this folder alone: opened by ops_cuda, before anything else. */
int cuda_open(int ordinal, Error *err);
/* The failure that is kept, and forget it: 1 when there was one. */
int cuda_take_failure(Error *err);
/* Memory of the GPU as it comes, not zeroed; NULL after a failure, which says what is full and what
 * to change. */
void *cuda_device_alloc(size_t bytes);
void cuda_device_free(void *p); /* waits for the GPU, as the driver does; NULL is none */

#endif
