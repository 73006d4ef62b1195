/* A device that runs kernels: one function table, chosen by name. "sim:PROFILE" is the PTX
 * simulator (eval/sim), "cuda:N" a GPU (eval/cuda); each registers its table before main. All host
 * memory, buffers, launches and clocks belong to the harness; a candidate is device code only. A
 * device belongs to one thread.
 *
 * A module has a home. Trusted modules (baselines) have one home, candidates another, which holds no
 * baseline and no expected output. On a simulator the two homes are one. */
#ifndef EVAL_DEVICE_DEVICE_H
#define EVAL_DEVICE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "eval/device/outcome.h"

typedef struct Device Device;
typedef struct DeviceModule DeviceModule;
typedef uint64_t DevicePtr;

typedef struct {
    char device_class[64]; /* the queue's stream: "sim:h100" or "NVIDIA H200" */
    char name[128];        /* "H100 SXM, simulated" */
    char arch[16];         /* what the compiler targets: "sm_90" */
    int predicted;         /* times come from a model, not a clock */
    int sm_count;
    int max_threads_per_block;
    size_t max_shared_per_block; /* with opt-in, dynamic + static */
    size_t memory_bytes;         /* that buffers may take */
    size_t contents_bytes; /* that contents kept on the harness's side may take (DeviceGolden) */
    double dram_bytes_per_s,
        flops_per_s; /* bounds that nothing passes: as simulated, or by clocks and widths */
    double l2_bytes; /* of an output, may stay there unwritten to DRAM; 0 when simulated */
    double light_bytes_per_s,
        light_flops_per_s[4]; /* measured on this GPU, flops by Dtype; 0: not measured */
    double launch_us;         /* least time of an empty launch, 0 when predicted */
    char driver[32];          /* "580.159" of the driver, "" when simulated */
    char uuid[48];            /* of the GPU, "" when simulated */
} DeviceInfo;

/* What the compiler made of one source. The pointers belong to the giver; load copies. */
typedef struct {
    const char *ptx; /* NUL-terminated, with .loc lines */
    size_t ptx_len;
    const void *cubin; /* ELF of the same arch */
    size_t cubin_len;
} DeviceCode;

enum { KERNEL_MAX_PARAMS = 64, KERNEL_MAX_PARAM_BYTES = 4096 };

typedef struct {
    int n_params;
    struct {
        uint32_t offset, size;
        int is_pointer; /* PTX .ptr annotation, or 8 bytes used as an address; -1 unknown */
    } params[KERNEL_MAX_PARAMS];
    uint32_t param_bytes;
    int registers; /* per thread, from the cubin */
    size_t static_shared, local_bytes;
    int max_threads; /* .maxntid / launch bounds, or the device's limit */
} KernelInfo;

/* One launch, resolved for a workload. */
typedef struct {
    DeviceModule *module;
    const char *kernel; /* lowered name */
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;                        /* dynamic */
    unsigned char params[KERNEL_MAX_PARAM_BYTES]; /* laid out by KernelInfo offsets; of a library
                                                     call: 8 bytes an argument */
    int library_args; /* > 0: `kernel` names a library call ("cublas.sgemm"), trusted modules only
                       */
} DeviceLaunch;

/* Why a launch sequence stopped: the candidate's fault, in a sentence that a model can act on. */
typedef struct {
    Outcome outcome; /* LAUNCH_ERROR OUT_OF_BOUNDS RACE TIMEOUT UNSUPPORTED */
    int launch;      /* index in the sequence */
    char kernel[256];
    int line; /* of the source, 0 unknown */
    uint32_t block[3], thread[3];
    char message[512]; /* whole sentence, with kernel, line, block and thread */
} DeviceFault;

typedef struct {
    char name[40]; /* "dram_sectors" */
    double value;
} DeviceCounter;

enum {
    DEVICE_MAX_COUNTERS = 48,
    DEVICE_MAX_SAMPLES = 1024,
    DEVICE_COPIES = 4 /* of a module without state that is loaded again and again, taken in turn */
};

/* How a launch sequence is clocked. */
typedef enum {
    CLOCK_COLD, /* L2 written over and persisting lines reset before the first launch */
    CLOCK_WARM, /* as the last run left the caches */
    CLOCK_GRAPH /* cold, the sequence replayed as one CUDA graph: no gaps between launches */
} ClockMode;

/* One run of a launch sequence on a device with a clock. */
typedef struct {
    double us;       /* between events around the launches */
    double host_us;  /* the host's clock around the same, the flush before it included */
    double flush_us; /* what the flush took by events, 0 when warm */
} DeviceClock;

/* What the device was doing, where it can tell: all 0 when not. */
typedef struct {
    unsigned sm_mhz, memory_mhz, temperature, power_watts;
    uint64_t throttle;   /* NVML's reasons for lower clocks, without idle */
    uint64_t ecc_errors; /* uncorrected, since the driver was loaded */
} DeviceTelemetry;

/* The timing of a pair of sides. */
typedef struct {
    int n; /* pairs taken; 1 on a simulator */
    ClockMode mode;
    int baseline_launches, candidate_launches; /* in each of a side's samples; 0 on a simulator */
    DeviceTelemetry before, after;
    double baseline_us[DEVICE_MAX_SAMPLES], candidate_us[DEVICE_MAX_SAMPLES];
    int n_counters; /* the candidate's, of one pass over its launches */
    DeviceCounter counters[DEVICE_MAX_COUNTERS];
    int n_baseline_counters;
    DeviceCounter baseline_counters[DEVICE_MAX_COUNTERS];
} DeviceTiming;

/* A tensor's contents that stay on the harness's side: an input as it was drawn, or an output as
 * expected. Never mapped where a candidate runs. */
typedef struct DeviceGolden DeviceGolden;

/* Where an output differs from what was expected, as task_compare says it. */
typedef struct {
    uint64_t wrong, unwritten;              /* elements; unwritten: still poison */
    uint64_t first, worst, first_unwritten; /* indices */
    double first_got, first_want, worst_got,
        worst_want; /* worst: by how much the tolerance is exceeded */
} DeviceDifference;

/* What a buffer ought to hold. */
typedef struct {
    DevicePtr p;
    const DeviceGolden
        *golden; /* n doubles, for n elements of dtype at p; with dtype -1 the bytes themselves */
    size_t from; /* how far it is turned: elements, or bytes */
    int dtype;
    size_t n;
    double atol, rtol;
} DeviceExpected;

/* Every entry: 0 ok, -1 the device failed (err says why). `run` and `time` may also return 1: the
 * candidate's fault, in *fault. */
typedef struct {
    const char *prefix;  /* "sim" */
    const char *form;    /* "sim:PROFILE" */
    const char *meaning; /* of the form, for an error: "where PROFILE is ..." */
    const char *example; /* "sim:h100" */
    int (*open)(const char *arg, Device **out, Error *err); /* arg: what follows "sim:" */
    /* This process will open this device and no other. To be called before there are threads. NULL:
     * it makes no difference. */
    void (*use_only)(const char *arg);
    /* What info's arch will be, as far as it is known without opening; -1: it is not. NULL: opening
     * takes no time. */
    int (*expected_arch)(const char *arg, char out[16]);
    void (*close)(Device *d);
    const DeviceInfo *(*info)(Device *d);
    /* fault (outcome UNSUPPORTED or LAUNCH_ERROR) when the code cannot be loaded: returns 1. code
     * NULL and trusted: a module of library calls alone. */
    int (*load)(Device *d, const DeviceCode *code, int trusted, DeviceModule **out,
                DeviceFault *fault, Error *err);
    void (*unload)(Device *d, DeviceModule *m);
    /* -1: no such kernel in the module */
    int (*kernel)(Device *d, DeviceModule *m, const char *lowered, KernelInfo *out, Error *err);
    /* Guarded on both sides, contents undefined (poisoned; reads before writes are found where the
     * device can). label names it in faults: "output y". Alignment 256. */
    int (*alloc)(Device *d, size_t bytes, const char *label, DevicePtr *out, Error *err);
    void (*free)(Device *d, DevicePtr p);
    int (*write)(Device *d, DevicePtr p, const void *src, size_t bytes, Error *err);
    int (*read)(Device *d, DevicePtr p, void *dst, size_t bytes,
                Error *err);                           /* unwritten bytes read as the poison 0xFF */
    int (*poison)(Device *d, DevicePtr p, Error *err); /* undefined again */
    /* Read-only for the kernels that follow; a write is OUT_OF_BOUNDS where the device can tell. */
    int (*protect)(Device *d, DevicePtr p, int read_only, Error *err);
    /* Guard zones intact? 1 with a fault when a write was found there. */
    int (*check_guards)(Device *d, DeviceFault *fault, Error *err);
    /* Run in order, with all checks, under a limit of instructions or seconds by the device. */
    int (*run)(Device *d, const DeviceLaunch *launches, int n, DeviceFault *fault, Error *err);
    /* From now on `run` takes blocks and warps in another order than usual, under a limit of a few
     * times the last usual run; 0: as usual again. NULL: the order is the hardware's own. */
    void (*disturb)(Device *d, int on);
    /* Predicted time and counters of one launch sequence; n is 1. NULL: the device has a clock. */
    int (*predict)(Device *d, const DeviceLaunch *launches, int n, DeviceTiming *out,
                   DeviceFault *fault, Error *err);

    /* ---- devices with a clock; NULL on a simulator ---- */

    /* Run in order in the module's home and clock it. No check beside faults and the limit. What
     * comes again and again in the device's own time, and would meet one run and not another, it
     * meets at `phase` of its period, in [0, 1); below 0: anywhere. */
    int (*clock)(Device *d, const DeviceLaunch *launches, int n, ClockMode mode, double phase,
                 DeviceClock *out, DeviceFault *fault, Error *err);
    int (*telemetry)(Device *d, DeviceTelemetry *out, Error *err);
    /* The GPU's timing lock, held by one process at a time; waits. Everything but timing shares the
     * GPU. */
    int (*lock)(Device *d, int on, Error *err);
    /* After an abnormal end: does the GPU still compute? -1: no, and why; such a device must leave
     * service. */
    int (*canary)(Device *d, Error *err);
    /* Hardware counters of one run of the sequence (CUPTI), for quern-eval --profile. */
    int (*counters)(Device *d, const DeviceLaunch *launches, int n, DeviceTiming *out,
                    DeviceFault *fault, Error *err);

    /* ---- contents kept on the harness's side; NULL: the caller keeps and compares them in host
     * memory ---- */

    int (*golden)(Device *d, const void *src, size_t bytes, DeviceGolden **out, Error *err);
    void (*golden_free)(Device *d, DeviceGolden *g);
    /* Below, contents may be turned: p's first byte (element) is that of g at `from`, and after g's
     * last comes its first. from: a multiple of 16 bytes, and when it is not 0 so is the size of g.
     */
    int (*fill)(Device *d, DevicePtr p, const DeviceGolden *g, size_t from,
                Error *err); /* p's bytes become g's */
    /* 1: differs from g, first at byte *first of p */
    int (*same)(Device *d, DevicePtr p, const DeviceGolden *g, size_t from, size_t *first,
                Error *err);
    /* p holds n elements of `dtype` (a Dtype of tasks/task.h), expected holds n doubles; equality
     * as in task_compare: |got - want| <= atol + rtol*|want|, NaN only with NaN, an infinity only
     * with itself. 1: differs */
    int (*compare)(Device *d, DevicePtr p, const DeviceGolden *expected, size_t from, int dtype,
                   size_t n, double atol, double rtol, DeviceDifference *out, Error *err);
    /* Many of same and compare in one wait, and check_guards with guards != 0. 1: something is not
     * as it should be; what, those say one by one. */
    int (*expect)(Device *d, const DeviceExpected *list, int n, int guards, Error *err);
    int (*digest)(Device *d, DevicePtr p, size_t bytes, uint64_t out[2],
                  Error *err); /* of p's bytes; equal bytes, equal digest */
} DeviceOps;

/* The name as in the source of a kernel's lowered (mangled) name: "_Z3addPf" gives "add". */
void device_kernel_name(const char *lowered, char *out, size_t size);

/* Make a table known to device_find. Backends call it from a constructor function, so that every
 * program that links a backend has its devices. The table must outlive the program. */
void device_register(const DeviceOps *ops);

/* The table of "sim:h100", and its argument "h100". NULL, with an error that lists the registered
 * forms, when no backend has this name. */
const DeviceOps *device_find(const char *name, const char **arg, Error *err);

#endif
