/* A device that runs kernels: one function table, chosen by name. "sim:PROFILE" is the PTX
 * simulator (eval/sim), "cuda:N" the real one. All host memory, buffers, launches and clocks are
 * the harness's; a candidate is device code only. A device belongs to one thread. */
#ifndef EVAL_DEVICE_H
#define EVAL_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "eval/outcome.h"

typedef struct Device Device;
typedef struct DeviceModule DeviceModule;
typedef uint64_t DevicePtr;

typedef struct {
    char device_class[64];      /* the queue's stream: "sim:h100" or "NVIDIA H200" */
    char name[128];             /* "H100 SXM, simulated" */
    char arch[16];              /* what the compiler targets: "sm_90" */
    int predicted;              /* times come from a model, not a clock */
    int sm_count;
    int max_threads_per_block;
    size_t max_shared_per_block;/* with opt-in, dynamic + static */
    size_t memory_bytes;        /* that buffers may take */
    double dram_bytes_per_s, flops_per_s; /* ceilings of what is simulated or measured */
} DeviceInfo;

/* What the compiler made of one source. The pointers belong to the giver; load copies. */
typedef struct {
    const char *ptx;            /* NUL-terminated, with .loc lines */
    size_t ptx_len;
    const void *cubin;          /* ELF of the same arch */
    size_t cubin_len;
} DeviceCode;

enum { KERNEL_MAX_PARAMS = 64, KERNEL_MAX_PARAM_BYTES = 4096 };

typedef struct {
    int n_params;
    struct {
        uint32_t offset, size;
        int is_pointer;         /* PTX .ptr annotation, or 8 bytes used as an address; -1 unknown */
    } params[KERNEL_MAX_PARAMS];
    uint32_t param_bytes;
    int registers;              /* per thread, from the cubin */
    size_t static_shared, local_bytes;
    int max_threads;            /* .maxntid / launch bounds, or the device's limit */
} KernelInfo;

/* One launch, resolved for a workload. */
typedef struct {
    DeviceModule *module;
    const char *kernel;         /* lowered name */
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;      /* dynamic */
    unsigned char params[KERNEL_MAX_PARAM_BYTES]; /* laid out by KernelInfo offsets */
} DeviceLaunch;

/* Why a launch sequence stopped: the candidate's fault, in a sentence that a model can act on. */
typedef struct {
    Outcome outcome;            /* LAUNCH_ERROR OUT_OF_BOUNDS RACE TIMEOUT UNSUPPORTED */
    int launch;                 /* index in the sequence */
    char kernel[256];
    int line;                   /* of the source, 0 unknown */
    uint32_t block[3], thread[3];
    char message[512];          /* whole sentence, with kernel, line, block and thread */
} DeviceFault;

typedef struct {
    char name[40];              /* "dram_sectors" */
    double value;
} DeviceCounter;

enum { DEVICE_MAX_COUNTERS = 48, DEVICE_MAX_SAMPLES = 4096 };

/* The timing of one side, or of a pair. */
typedef struct {
    int n;                      /* pairs taken; 1 on a simulator */
    double baseline_us[DEVICE_MAX_SAMPLES], candidate_us[DEVICE_MAX_SAMPLES];
    int n_counters;             /* the candidate's, of one pass over its launches */
    DeviceCounter counters[DEVICE_MAX_COUNTERS];
    int n_baseline_counters;
    DeviceCounter baseline_counters[DEVICE_MAX_COUNTERS];
} DeviceTiming;

/* A launch sequence to be timed. slots > 1: equal sequences over distinct buffers, taken in turn. */
typedef struct {
    const DeviceLaunch *launches; /* n_launches * n_slots, slot after slot */
    int n_launches, n_slots;
} DeviceSide;

/* Every entry: 0 ok, -1 the device failed (err says why). `run` and `time` may also return 1: the
 * candidate's fault, in *fault. */
typedef struct {
    const char *prefix;         /* "sim" */
    int (*open)(const char *arg, Device **out, Error *err);   /* arg: what follows "sim:" */
    void (*close)(Device *d);
    const DeviceInfo *(*info)(Device *d);
    /* fault (outcome UNSUPPORTED or LAUNCH_ERROR) when the code cannot be loaded: returns 1 */
    int (*load)(Device *d, const DeviceCode *code, DeviceModule **out, DeviceFault *fault, Error *err);
    void (*unload)(Device *d, DeviceModule *m);
    /* -1: no such kernel in the module */
    int (*kernel)(Device *d, DeviceModule *m, const char *lowered, KernelInfo *out, Error *err);
    /* Guarded on both sides, contents undefined (poisoned; reads before writes are found where the
     * device can). label names it in faults: "output y". Alignment 256. */
    int (*alloc)(Device *d, size_t bytes, const char *label, DevicePtr *out, Error *err);
    void (*free)(Device *d, DevicePtr p);
    int (*write)(Device *d, DevicePtr p, const void *src, size_t bytes, Error *err);
    int (*read)(Device *d, DevicePtr p, void *dst, size_t bytes, Error *err);   /* unwritten bytes read as the poison 0xFF */
    int (*poison)(Device *d, DevicePtr p, Error *err);                          /* undefined again */
    /* Read-only for the kernels that follow; a write is OUT_OF_BOUNDS where the device can tell. */
    int (*protect)(Device *d, DevicePtr p, int read_only, Error *err);
    /* Guard zones intact? 1 with a fault when a write was found there. */
    int (*check_guards)(Device *d, DeviceFault *fault, Error *err);
    /* Run in order, with all checks, under a limit of instructions or seconds by the device. */
    int (*run)(Device *d, const DeviceLaunch *launches, int n, DeviceFault *fault, Error *err);
    /* From now on `run` takes blocks and warps in another order than usual, under a limit of a few times
     * the last usual run; 0: as usual again. NULL: the order is the hardware's own. */
    void (*disturb)(Device *d, int on);
    /* baseline may be NULL: only the candidate's times are filled (a simulator's caller caches). */
    int (*time)(Device *d, const DeviceSide *baseline, const DeviceSide *candidate, double budget_s, uint64_t seed,
                DeviceTiming *out, DeviceFault *fault, Error *err);
} DeviceOps;

/* "sim:h100" to its table and argument; NULL with a sentence that lists what there is. */
const DeviceOps *device_find(const char *name, const char **arg, Error *err);

extern const DeviceOps sim_device_ops; /* eval/sim/device.c */

#endif
