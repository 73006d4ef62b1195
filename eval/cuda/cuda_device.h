/* The state of the device "cuda:N". The files that work on it lie in layers, and each calls only
 * those before it: guards, remote, buffers, modules, launches, device.c. */
#ifndef EVAL_CUDA_CUDA_DEVICE_H
#define EVAL_CUDA_CUDA_DEVICE_H

#include "base/random.h"
#include "eval/cuda/context/trusted.h"
#include "eval/cuda/health/health.h"
#include "eval/cuda/memory/arena.h"
#include "eval/cuda/memory/space.h"
#include "eval/cuda/process/runner_process.h"
#include "gpu/lock.h"

/* A runner process and what it was told, one for each DeviceHome: candidates run in one, trusted modules
 * in another, so that a baseline runs under the same conditions as a candidate and shares no memory
 * with it. The third starts when the first candidate with op lines comes. A candidate could change the
 * memory of a library there: docs/trust.md says for how many candidates it stays. A field *_generation names
 * the process by CudaRunner.generation; 0: none. */
typedef struct {
    CudaRunner runner;
    unsigned setup_generation;                     /* has the buffers' range of addresses */
    unsigned mapped_generation[ARENA_MAX_EXTENTS]; /* has this extent of the arena */
    unsigned failed_generation;                    /* the last that ended by its launches' fault */
    Fault failure;                                 /* and which fault */
    unsigned warm_generation;                      /* has run launches */
    unsigned first_generation;                     /* has loaded first_image before all others */
    uint64_t first_image;                          /* of HOME_LIBRARY: its hash; 0: no code */
    int served;  /* candidates that this process has had, the present one included */
    int ended;   /* what is loaded next is another candidate's, whatever its image */
    int suspect; /* the next candidate gets another process */
    int follows; /* a process has been replaced for the next candidate */
} Remote;

struct Device {
    DeviceInfo info;
    Trusted trusted;
    Space space;
    Arena arena;
    int zones_changed; /* the arena's guard zones differ from those given to trusted_set_zones */
    Remote remotes[HOMES];
    unsigned char *cubin; /* the harness's kernels, for every runner */
    size_t cubin_len;
    double baseline_us;    /* time of the last trusted sequence */
    uint32_t stall_ns;     /* period of the memory's stalls (measure/stall.h); 0: unknown or none */
    Random copy_choice;    /* which copy of a parked module is used next */
    DeviceModule *modules; /* loaded and in use */
    DeviceModule *parked;  /* unloaded by the caller and kept for reuse, the last first */
    GpuLock *lock;
    int sharing; /* this device holds the shared side of the lock */
    Health *health;
};

typedef struct {
    char *name;
    uint32_t kernel; /* the executor's number */
    KernelInfo info;
} ModuleKernel;

struct DeviceModule {
    int home;            /* DeviceHome */
    int trusted;         /* home is HOME_TRUSTED */
    int empty;           /* no code: library calls alone */
    unsigned generation; /* of the runner that has it */
    uint32_t id;         /* the executor's number */
    int parks;           /* has no state, so that it can be reused without loading it again */
    void *image;         /* the cubin of a module that parks or is trusted, else NULL */
    size_t image_bytes;
    int n_kernels;
    ModuleKernel *kernels; /* kernels that were asked for */
    DeviceModule *next;
};

extern const DeviceOps cuda_device_ops; /* eval/cuda/device.c */

#endif
