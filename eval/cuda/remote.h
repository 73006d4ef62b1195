/* The runner processes of the device "cuda:N": each is brought to the state of the buffers before
 * it is called, and replaced when it has ended. */
#ifndef EVAL_CUDA_REMOTE_H
#define EVAL_CUDA_REMOTE_H

#include "eval/cuda/cuda_device.h"

/* Candidates that follow one another in one process of libraries at most (docs/trust.md). A process takes 0.3
 * to 0.6 s to begin and end on an H200 (2026-11-30), a candidate without that 0.3 to 0.5 s. */
enum { REMOTE_CANDIDATES = 16 };

/* The runner in which the module lives. */
Remote *remote_of(Device *d, const DeviceModule *m);
/* Wait until the runner is ready and has all buffers mapped; start another when there is none. */
int remote_need(Device *d, Remote *r, Error *err);
/* A candidate begins in the process of libraries: the hash of its first image names it. */
void remote_name(Remote *r, uint64_t image);
/* A call of at most limit_s seconds, with the launches that it makes, if any. */
typedef struct {
    CudaCall call;
    double limit_s;
    int fd; /* a descriptor to hand over; 0: none */
    const DeviceLaunch *launches;
    int n;
} RemoteCall;

/* Returns 0 with the answer. When the process ends, another starts: returns 1 with r->failure when
 * the launches are to blame, else -1. */
int remote_ask(Device *d, Remote *r, RemoteCall *ask, CudaAnswer *answer, Error *err);
/* Load the harness's kernels of timings there, in place of those that it has. */
int remote_stopwatch(Device *d, Remote *r, Error *err);
/* Unmap the last `extents` of the arena in both runners, before their memory is released. */
int remote_unmap(Device *d, int extents, Error *err);
/* Whether the runner that loaded the module still runs. */
int remote_has(Device *d, const DeviceModule *m);

#endif
