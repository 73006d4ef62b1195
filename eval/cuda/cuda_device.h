/* The device "cuda:N" from inside: its parts, and what its files ask of one another. */
#ifndef EVAL_CUDA_CUDA_DEVICE_H
#define EVAL_CUDA_CUDA_DEVICE_H

#include "base/random.h"
#include "eval/cuda/context/trusted.h"
#include "eval/cuda/health/health.h"
#include "eval/cuda/memory/arena.h"
#include "eval/cuda/memory/space.h"
#include "eval/cuda/process/runner_process.h"
#include "gpu/lock.h"

/* A runner and what it was told. Modules that are trusted have one of their own, the twin: what a
 * candidate is compared with runs as the candidate does, and nothing of it is where the candidate
 * is. */
typedef struct {
    CudaRunner runner;
    unsigned set_up;                    /* the runner's generation that has the buffers' range */
    unsigned mapped[ARENA_MAX_EXTENTS]; /* the generation that has the arena's extent; 0: none */
    unsigned clocked;                   /* the generation that has clocked something */
    unsigned died;                      /* the last generation that launches took down */
    DeviceFault death;                  /* and how */
} Remote;

enum { HOME_CANDIDATE, HOME_TRUSTED, HOMES };

struct Device {
    DeviceInfo info;
    Trusted trusted;
    Space space;
    Arena arena;
    int zones_changed; /* the arena is not what trusted_set_zones was told */
    Remote remotes[HOMES];
    unsigned char *cubin; /* of the harness's kernels, for every runner */
    size_t cubin_len;
    double baseline_us;             /* of the last trusted sequence that was clocked */
    uint32_t stall_ns;              /* eval/cuda/measure/stall.h; 0: none, or not measured */
    Random copies;                  /* which of them is next */
    DeviceModule *modules, *parked; /* parked: unloaded, without state, the last first */
    GpuLock *lock;
    int sharing; /* the shared side of it is ours */
    Health *health;
};

typedef struct {
    char *name;
    uint32_t kernel; /* the executor's number */
    KernelInfo info;
} ModuleKernel;

struct DeviceModule {
    int trusted, empty;  /* empty: library calls alone */
    unsigned generation; /* of the runner that has it */
    uint32_t id;
    int parks;   /* without state: loaded again, it is taken up as it is */
    void *image; /* of one that parks or is trusted; else NULL */
    size_t image_bytes;
    int n_kernels;
    ModuleKernel *kernels; /* those that were asked for */
    DeviceModule *next;
};

/* ---- remote.c: the runners ---- */

Remote *remote_of(Device *d, const DeviceModule *m);
/* A runner that is ready, with all buffers mapped. */
int remote_need(Device *d, Remote *r, Error *err);
/* Ask it; what takes it down is remembered, and another starts. limit_s: of this call. Returns 0
 * with the answer; 1: the runner is gone, r->death says how when `launches` are to blame; -1. */
int remote_ask(Device *d, Remote *r, CudaCall *call, int fd, double limit_s,
               const DeviceLaunch *launches, int n, CudaAnswer *answer, Error *err);
/* The last `extents` of the arena are about to go. */
int remote_unmap(Device *d, int extents, Error *err);
/* Is the module where it was loaded? */
int remote_has(Device *d, const DeviceModule *m);

/* ---- modules.c ---- */
int module_load(Device *d, const DeviceCode *code, int trusted, DeviceModule **out,
                DeviceFault *fault, Error *err);
void module_unload(Device *d, DeviceModule *m);
void modules_close(Device *d);
/* A trusted module outlives its runner: it is loaded again, with the kernels that were asked for,
 * where it is not. */
int module_present(Device *d, DeviceModule *m, Error *err);
const ModuleKernel *module_kernel(Device *d, DeviceModule *m, const char *name, Error *err);

/* ---- buffers.c ---- */
int buffers_alloc(Device *d, size_t bytes, const char *label, DevicePtr *out, Error *err);
void buffers_free(Device *d, DevicePtr p);
int buffers_hold(Device *d, DevicePtr p, size_t bytes, Error *err); /* -1: not inside one */
int buffers_check_guards(Device *d, DeviceFault *fault, Error *err);
int buffers_expect(Device *d, const DeviceExpected *list, int n, int guards, Error *err);
void buffers_poison_guards(Device *d); /* whatever was written there */
void buffers_close(Device *d);

/* ---- launches.c ---- */
int launches_run(Device *d, const DeviceLaunch *launches, int n, DeviceFault *fault, Error *err);
int launches_clock(Device *d, const DeviceLaunch *launches, int n, ClockMode mode, double phase,
                   DeviceClock *out, DeviceFault *fault, Error *err);
int launches_count(Device *d, const DeviceLaunch *launches, int n, DeviceTiming *out,
                   DeviceFault *fault, Error *err);

/* ---- device.c: around everything that may give the GPU work ---- */

/* The harness's context becomes the thread's. Work that is not timing shares the GPU with all other
 * such work and waits while another process times: from here until nothing of it is left to wait
 * for. */
int device_enter(Device *d, Error *err);
int device_leave(Device *d, int rc); /* returns rc */

#endif
