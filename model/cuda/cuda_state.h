/* Inside model/cuda: the GPU of this process, its stream, its kernels, and their launches. All work
 * runs in one stream, in order; the collectives of several ranks have a second stream. The first
 * failure is kept for `status`, and nothing is launched after it.
 *
 * The GPU is shared with evaluators that time kernels on it (gpu/lock.h). The first launch after a
 * wait takes the shared lock, and a wait releases it. A process that asks for the exclusive lock in
 * between gets it within a few milliseconds: the engine waits for its launches, releases the lock,
 * and takes it again for the next launch. */
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
    CuContext context; /* the device's primary context, which NVIDIA's libraries use */
    CuStream stream;
    int ordinal, sms, arch; /* arch: 90 for sm_90 */
    size_t shared_max;      /* dynamic shared memory of a block, at most */
} CudaState;

const CudaState *cuda_state(void);

/* Launch a kernel of kernels.h. args holds the addresses of the arguments, as for cuLaunchKernel.
 * More than 48 KiB of shared memory is enabled automatically. An empty grid launches nothing. */
void cuda_launch(CudaKernel k, Dim3 grid, Dim3 block, size_t shared, void **args);
#define LAUNCH(kernel, grid, block, shared, ...) \
    cuda_launch(kernel, grid, block, shared, (void *[]){__VA_ARGS__})

/* on: each later kernel may start while the previous one ends. It waits itself before it uses data
 * of the previous kernel (previous_done of overlap.cuh). It has an effect on sm_90 and later. */
void cuda_overlap(int on);

/* Take the lock. Call it before work is put into the stream other than by cuda_launch and the
 * members of Ops. Returns 0, or -1 after a failure. */
int cuda_begin(void);
/* Wait for all work, and release the lock. Returns 0, or -1 after a failure, which is kept. */
int cuda_wait(void);

/* The second stream, for work in parallel to the engine's. Its blocks have priority: NCCL's blocks
 * wait for each other across GPUs, so they finish sooner if all of them start soon. */
int cuda_second_open(Error *err);
void cuda_second_close(void);
/* Returns the second stream for new work. The work starts after the engine's earlier work and runs
 * in parallel to its later work, until cuda_settle or a wait. NULL after a failure. */
CuStream cuda_second_stream(void);
/* Make the engine's stream wait for the second one. Every wait for the engine's stream calls it. */
void cuda_settle(void);

/* Returns device memory that is valid until the next call of cuda_scratch. Two operations never
 * share it. NULL after a failure. */
void *cuda_scratch(size_t bytes);

/* Keep `what` and the driver's message as the failure, unless there is one already. */
void cuda_fail(CuResult r, const char *what);
/* Keep the message of another library. */
void cuda_fail_with(const Error *err);
int cuda_failed(void);
#define CUDA_TRY(call, what)                      \
    do {                                          \
        CuResult r_ = cuda_failed() ? 0 : (call); \
        if (r_) cuda_fail(r_, what);              \
    } while (0)

/* For this folder only: ops_cuda calls it first. */
int cuda_open(int ordinal, Error *err);
/* Move the kept failure to err. Returns 1 if there was one. */
int cuda_take_failure(Error *err);
/* Allocate device memory, not zeroed. NULL after a failure, whose message says what is full and
 * what to change. */
void *cuda_device_alloc(size_t bytes);
void cuda_device_free(void *p); /* waits for the GPU, as the driver does; NULL is allowed */

#endif
