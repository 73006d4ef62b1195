/* A device that runs kernels: one table of functions, chosen by name. "sim:PROFILE" is the PTX
 * simulator (eval/sim), "cuda:N" is a GPU (eval/cuda). Each backend registers its table before main.
 * The harness owns all host code, buffers, launches and clocks; a candidate is device code only. One
 * thread uses a device.
 *
 * A module is loaded for one of two contexts. The trusted one is for baselines. The other one is for
 * candidates: no trusted code and no expected output is ever in it. On a simulator they are the
 * same. */
#ifndef EVAL_DEVICE_DEVICE_H
#define EVAL_DEVICE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "eval/device/fault.h"

typedef struct Device Device;
typedef struct DeviceModule DeviceModule;
typedef uint64_t DevicePtr;

typedef struct {
    char device_class[64]; /* the queue's stream: "sim:h100" or "NVIDIA H200" */
    char name[128];        /* "H100 SXM, simulated" */
    char arch[16];         /* the compiler's target: "sm_90" */
    int predicted;         /* times come from a model, not a clock */
    double error_factor;   /* of predicted speedups: 9 in 10 are right within it; 0: measured */
    int sm_count;
    int max_threads_per_block;
    size_t max_shared_per_block; /* with opt-in, dynamic + static */
    size_t max_local_per_thread; /* MemoryShares.local */
    size_t memory_bytes;         /* for the buffers of one plan */
    size_t buffers_bytes;        /* for all buffers; 0: it is not known */
    size_t contents_bytes;       /* for contents that the harness keeps (DeviceGolden) */
    size_t total_bytes;          /* of the GPU, also what others use; 0: it is not known */
    /* Upper bounds: of the simulated device, or from a GPU's clocks and widths. */
    double dram_bytes_per_s, flops_per_s;
    double l2_bytes; /* of outputs that may stay in L2 unwritten to DRAM; 0 when simulated */
    /* Ceilings: flops by Dtype with its accuracy, and of products of factors rounded to TF32. They are
     * measured on this GPU, else of its clocks and widths. */
    double light_bytes_per_s, light_flops_per_s[4], light_tf32_flops_per_s;
    double launch_us; /* minimum time of an empty launch, 0 when predicted */
    char driver[32];  /* the driver's version, "580.159"; "" when simulated */
    char uuid[48];    /* of the GPU, "" when simulated */
} DeviceInfo;

/* The compiled code of one source, borrowed: load copies it. */
typedef struct {
    const char *ptx; /* NUL-terminated, with .loc lines */
    size_t ptx_len;
    const void *cubin; /* ELF file for DeviceInfo.arch */
    size_t cubin_len;
} DeviceCode;

enum { KERNEL_MAX_PARAMS = 64, KERNEL_MAX_PARAM_BYTES = 4096 };

typedef struct {
    uint32_t offset, size;
    int is_pointer; /* by a PTX .ptr annotation or its use as an address; -1 unknown */
} KernelParam;

typedef struct {
    int n_params;
    KernelParam params[KERNEL_MAX_PARAMS];
    uint32_t param_bytes;
    int registers; /* per thread, from the cubin */
    size_t static_shared, local_bytes;
    int max_threads; /* by .maxntid (launch bounds), or the device's limit */
} KernelInfo;

/* A buffer whose contents begin with a launch: it has `bytes` bytes, of its room, and another label
 * in faults. A simulator poisons it before the launch, so that what it held is not read. */
typedef struct {
    DevicePtr p;
    size_t bytes;
    const char *label; /* borrowed */
} DeviceFresh;

enum { DEVICE_MAX_FRESH = 20, DEVICE_MAX_MAPS = 16 };
enum { DEVICE_FOLLOWS_USES = 2 }; /* DevicePrediction.follow */

/* Where code runs: candidates, the harness's own code and baselines, or a candidate whose plan has op
 * lines, which may call libraries. A launch sequence has one home. */
typedef enum { HOME_CANDIDATE, HOME_TRUSTED, HOME_LIBRARY, HOMES } DeviceHome;

/* One launch, resolved for a workload. */
typedef struct {
    DeviceModule *module;
    const char *kernel; /* lowered name */
    uint32_t grid[3], block[3];
    uint32_t shared_bytes; /* dynamic */
    int cooperative;       /* all blocks are resident at once and may wait for each other */
    /* At the offsets of KernelInfo; 8 bytes an argument for a library call. */
    unsigned char params[KERNEL_MAX_PARAM_BYTES];
    /* Where a TensorMap (tensor_map.h) stands among them in place of the CUtensorMap that a kernel takes. */
    int n_maps;
    uint32_t map_at[DEVICE_MAX_MAPS];
    /* > 0: `kernel` is a library call ("cublas.sgemm") with so many arguments. Not in
     * HOME_CANDIDATE. */
    int library_args;
    /* Of an op line of the plan: its line and its operator, "aten.relu.default". 0 and NULL: the
     * launch is of the source's own kernels. */
    int op_line;
    const char *op;
    int n_fresh;
    DeviceFresh fresh[DEVICE_MAX_FRESH];
} DeviceLaunch;

/* Is it of an op line whose values follow from shapes alone (aten.zeros)? */
int device_launch_is_constant(const DeviceLaunch *l);

typedef struct {
    char name[40]; /* "dram_sectors" */
    double value;
} DeviceCounter;

enum {
    DEVICE_MAX_COUNTERS = 80,
    DEVICE_MAX_SAMPLES = 1024,
    DEVICE_COPIES = 4 /* of a module without state that is loaded repeatedly, used in rotation */
};

/* How the time of a launch sequence is measured. */
typedef enum {
    CLOCK_COLD, /* L2 is overwritten and its persisting lines are reset before the first launch */
    CLOCK_WARM, /* the caches are as the last run left them */
    CLOCK_GRAPH /* cold; the sequence is one CUDA graph, without gaps between launches */
} ClockMode;

/* One run of a launch sequence on a device with a clock. */
typedef struct {
    double us;       /* of the launches, between two events */
    double host_us;  /* of the flush and the launches, by the host's clock */
    double flush_us; /* of the flush, between two events; 0 when warm */
} DeviceClock;

/* The state of a GPU by NVML; all 0 where it is not known. */
typedef struct {
    unsigned sm_mhz, memory_mhz, temperature, power_watts;
    uint64_t throttle;   /* NVML's bits of reasons for lower clocks, without idle */
    uint64_t ecc_errors; /* uncorrected, since the driver was loaded */
} DeviceTelemetry;

/* A source line that takes much of a kernel's time, in a sentence: "line 12: 62%, DRAM: ...". */
enum { DEVICE_MAX_LINES = 5, DEVICE_LINE_TEXT = VERDICT_CHECK_TEXT };

/* The samples of a baseline and a candidate. */
typedef struct {
    int n; /* pairs of samples; 1 on a simulator */
    ClockMode mode;
    int baseline_launches, candidate_launches; /* in one sample; 0 on a simulator */
    DeviceTelemetry before, after;
    double baseline_us[DEVICE_MAX_SAMPLES], candidate_us[DEVICE_MAX_SAMPLES];
    int n_counters; /* the candidate's counters of one run */
    DeviceCounter counters[DEVICE_MAX_COUNTERS];
    int n_baseline_counters;
    DeviceCounter baseline_counters[DEVICE_MAX_COUNTERS];
    int n_lines; /* the costliest lines of the candidate, in order; 0 on a GPU */
    char lines[DEVICE_MAX_LINES][DEVICE_LINE_TEXT];
} DeviceTiming;

/* The contents of a tensor in the harness's device memory: an input as drawn, or an output as
 * expected. This memory is never mapped in the candidate's context. */
typedef struct DeviceGolden DeviceGolden;

/* The difference between an output and its expected values, as in TaskDifference. */
typedef struct {
    uint64_t wrong, unwritten;              /* numbers of elements; unwritten: still poison */
    uint64_t first, worst, first_unwritten; /* indices */
    /* The worst exceeds its tolerance by the largest amount. */
    double first_got, first_want, worst_got, worst_want;
} DeviceDifference;

/* The expected contents of a buffer. Sizes are in elements; with dtype -1 in bytes. */
typedef struct {
    DevicePtr p;
    const DeviceGolden *golden; /* doubles for elements of dtype; with dtype -1: its bytes */
    size_t from;                /* the rotation (see fill) */
    int dtype;
    size_t n;
    double atol, rtol;
    /* The number of elements that repeat, at most those of golden. 0: all of golden, or its first n elements.
     * Where bytes are rotated or repeated, `from` and `period` are multiples of 16. */
    size_t period;
} DeviceExpected;

/* Draws the bytes [from, from + bytes) of an input and writes them to dst, if that is not NULL. Returns
 * where they lie as long as the contents do, in one piece with the rest of the input, or NULL: they are
 * not there. */
typedef const void *DeviceFill(void *of, int input, size_t from, void *dst, size_t bytes);

/* Is each byte of the outputs written by the blocks of all launches, and each byte of a buffer that a later
 * launch reads? */
typedef struct {
    enum { WRITTEN_ALL, WRITTEN_NOT, WRITTEN_UNKNOWN } state;
    /* NOT, UNKNOWN: the first buffer of which it is not so; of NOT the bytes that are missing and where they
     * begin. */
    char label[64];
    int output; /* its number; -1: it is a buffer of the plan */
    uint64_t holes, first;
    int launch;    /* the one that reads, or the last that writes to an output; -1: none does */
    char why[128]; /* UNKNOWN: what hides it, behind "the kernel has" */
} DeviceWritten;

/* A prediction from a sample of the blocks of each launch. */
typedef struct {
    /* The work of these launches, divided by the work of the last predicted ones. growth is the larger
     * quotient of bytes and of flops, least_growth the smaller one. flops_growth: of flops alone.
     * tensor_growth: of the elements of the tensor that grows least. */
    double growth, least_growth, flops_growth, tensor_growth;
    double own_flops; /* the least that the plan's own launches compute; INFINITY: unknown */
    double own_bytes; /* the least that they move; 0: it is not known */
    int compared;     /* the caller compares the outputs if they are comparable */
    int64_t position; /* of so many, the last and another one alone are compared; 0: most are */
    uint64_t seed;    /* by which blocks are drawn */
    const DevicePtr *outputs; /* n_outputs buffers */
    int n_outputs;
    unsigned char *comparable; /* by output, is set: one launch wrote it, from complete contents */
    DeviceWritten *written;    /* is set; NULL: it is not wanted */
    double win_us;   /* a plan that takes less is worth a longer look at what it writes; 0: none */
    const char *why; /* is set: an output is not comparable because ...; NULL: all are */
    uint64_t blocks, sampled; /* of all launches */
    int scaled;               /* launches whose counters are those of the last predicted ones */
    int held; /* not to be compared, and longer since they do less work than there */
} DeviceSample;

/* The part of a run that some bytes of its outputs need: the blocks that write them, and those of earlier
 * launches that write what these read. */
typedef struct {
    DevicePtr p;
    size_t from, bytes;
} DeviceSpan;

typedef struct {
    const DeviceSpan *spans; /* of outputs */
    int n_spans;
    double budget; /* thread-instructions */
    double enough; /* it ends where it surely takes more, and fits the budget; 0: it does not */
    double used;   /* is set */
    int is_dear;   /* is set: it has ended so */
    char why[128]; /* is set: not empty: the part is not known, or takes too long */
} DeviceCone;

/* The bytes of a plan's tensors that no launch reads. A tensor is an input, the result of an op line, or what
 * launches write to a buffer. Three kinds are left out: outputs, tensors that no launch reads at all, and
 * tensors of which an access is not known. */
enum { DEVICE_MAX_UNREAD = 24 };
typedef struct {
    const DevicePtr *outputs; /* n_outputs */
    int n_outputs;
    int n; /* is set, as are: */
    struct {
        char label[64];
        int is_given; /* an input, or what an op line gives */
        uint64_t bytes, all;
    } of[DEVICE_MAX_UNREAD];
} DeviceUnread;

/* Elements of some tensors of float32 that blocks of a plan's own launches read, and of these: those that
 * change nothing of what the block writes, whatever they are. */
enum { DEVICE_MAX_IDLE = 64 };
typedef struct {
    uint64_t seed; /* by which blocks and elements are drawn */
    double budget; /* thread-instructions */
    int n;
    struct {
        DevicePtr p;
        int tried, idle; /* are added to */
    } of[DEVICE_MAX_IDLE];
} DeviceIdle;

/* Every function returns 0, or -1 when the device failed (in *err, or in the Fault's error). Those
 * with a Fault return 1 for a fault of the candidate. */

/* The functions of a device that predicts times: it checks and counts more than others do. */
typedef struct {
    /* The candidate's kernels alone use the buffer: they may leave there what nobody reads. */
    void (*own)(Device *d, DevicePtr p);
    /* The least work of what run gets from now on, in words moved and flops: a limit of
     * instructions allows for it. */
    void (*announce)(Device *d, double work);
    /* on: from now on `run` takes blocks and warps in another order, under a limit of a few times
     * the instructions of the last usual run. 0: the usual order. */
    void (*disturb)(Device *d, int on);
    /* on: returns 1 when a run stopped at a value that need not matter, and such values are not
     * followed yet: a load that races or lies beyond shared memory, a shuffle from a lane that
     * takes no part. Modules that are loaded from then on follow these values, which are a fault
     * only where they matter. DEVICE_FOLLOWS_USES: the same, where the run stopped at what
     * unwritten shared or local memory gave to arithmetic: its fault stays the verdict when there
     * is one again, but for a race. Otherwise 0. on 0: they are not followed; the next candidate begins. */
    int (*follow)(Device *d, int on);
    /* Number i of the values that were found since and did not matter, as a fault, or NULL. */
    const Fault *(*warning)(Device *d, int i);
    /* Launch and predict the time: fills candidate_us[0], n = 1 and the counters. out NULL: launch
     * under the same limit, without a prediction. */
    int (*predict)(Device *d, const DeviceLaunch *launches, int n, DeviceTiming *out, Fault *fault);
    /* Predict the time from a sample of the blocks, which run with all checks (eval/sim/sample.h).
     * It follows a predict of the same plan at a smaller size. Buffers that other blocks would
     * have written read as zeros. */
    int (*sample)(Device *d, const DeviceLaunch *launches, int n, DeviceSample *s,
                  DeviceTiming *out, Fault *fault);
    /* Gives a poisoned buffer contents that `fill` draws where they are first read. It is read-only
     * from then on. */
    int (*fill_lazily)(Device *d, DevicePtr p, DeviceFill *fill, void *of, int input, Error *err);
    /* The first run of written bytes at or after *from and before limit: [*from, *end). Returns 0
     * when there is none. */
    int (*written)(Device *d, DevicePtr p, size_t limit, size_t *from, size_t *end);
    /* After sample, and at other sizes: 0 where the work of the launches is surely more than the
     * limit of attempt, which does as run and counts for nothing else. */
    int (*fits)(Device *d, const DeviceLaunch *launches, int n);
    int (*attempt)(Device *d, const DeviceLaunch *launches, int n, Fault *fault);
    /* After a sample of the same launches: runs the cone of c->spans on poisoned buffers, all its reads
     * complete. Those bytes of the outputs are written afterwards that no other block changes; where c->why
     * is set, none is to be read. It counts for nothing else. */
    int (*cone)(Device *d, const DeviceLaunch *launches, int n, DeviceCone *c, Fault *fault);
    /* Without running anything: fills in *u. */
    void (*unread)(Device *d, const DeviceLaunch *launches, int n, DeviceUnread *u);
    /* Runs some blocks alone: fills in *idle. What buffers hold is lost. */
    void (*idle)(Device *d, const DeviceLaunch *launches, int n, DeviceIdle *idle);
} DevicePrediction;

/* The functions of a device that measures times. */
typedef struct {
    /* The next n buffers have these sizes: lay them in one piece of memory, so that their place, on
     * which speed depends, repeats. Without effect while there are buffers. */
    int (*reserve)(Device *d, const size_t *bytes, int n, Error *err);
    /* Launch in order in the module's context and measure the time, without checks other than
     * faults and the limit. phase: where the run begins in the period of the memory's stalls (0 to
     * 1), so that both sides of a pair meet the same stalls; below 0: anywhere. */
    int (*time)(Device *d, const DeviceLaunch *launches, int n, ClockMode mode, double phase,
                DeviceClock *out, Fault *fault);
    int (*telemetry)(Device *d, DeviceTelemetry *out, Error *err);
    /* Take the GPU's timing lock, which one process holds at a time, or release it: idle_s NULL. Waits for
     * it. Work other than timing shares the GPU. *idle_s: seconds since any process released it. */
    int (*lock)(Device *d, double *idle_s, Error *err);
    /* Check after an abnormal end that the GPU still computes. -1: it does not and must leave
     * service. */
    int (*canary)(Device *d, Error *err);
    /* Begins a candidate. The candidate's code may equal the code of the candidate before. */
    void (*next)(Device *d);
    /* Whether code of another candidate has run in the process of HOME_LIBRARY that the present one has. */
    int (*shared)(Device *d);
    /* 1: the present candidate's process of HOME_LIBRARY is replaced, and its modules must be loaded
     * again. 0: the next candidate gets another one, since this one has failed. */
    int (*renew)(Device *d, int now, Error *err);
    /* Launch once and read hardware counters (CUPTI) into *out, for quern-eval --profile. */
    int (*counters)(Device *d, const DeviceLaunch *launches, int n, DeviceTiming *out,
                    Fault *fault);
} DeviceClockOps;

/* Numbers that a device draws as a host does. */
typedef struct {
    const struct TaskStreams *streams; /* tasks/task.h */
    const float *first;                /* what a host draws of the beginning */
    size_t n_first;
} DeviceDraw;

/* Contents in the harness's device memory. */
typedef struct {
    int (*keep)(Device *d, const void *src, size_t bytes, DeviceGolden **out, Error *err);
    /* Keep float32 numbers that the device draws (DeviceDraw). Returns 1, and keeps nothing, where the
     * first differ from the caller's. */
    int (*draw)(Device *d, const DeviceDraw *what, DeviceGolden **out, Error *err);
    /* Keep the first bytes of a buffer. */
    int (*keep_of)(Device *d, DevicePtr p, size_t bytes, DeviceGolden **out, Error *err);
    void (*free)(Device *d, DeviceGolden *g);
    /* Copy contents (of dtype -1) to their buffer, rotated and repeated: byte i is byte (from + i) mod
     * `period` of golden. same, compare and expect rotate and repeat in the same way. */
    int (*fill)(Device *d, const DeviceExpected *x, Error *err);
    /* Returns 1 when the buffer differs, first at byte *first of it. */
    int (*same)(Device *d, const DeviceExpected *x, size_t *first, Error *err);
    /* Compare a buffer with its expected doubles, as task_compare does: |got - want| <= atol +
     * rtol*|want|; a NaN equals only a NaN, an infinity only itself. Returns 1 when an element
     * differs. */
    int (*compare)(Device *d, const DeviceExpected *with, DeviceDifference *out, Error *err);
    /* same or compare for each of the list, and check_guards when guards != 0, with one wait for
     * the device. Returns 1 when one of them fails; those functions then say which. */
    int (*expect)(Device *d, const DeviceExpected *list, int n, int guards, Error *err);
    /* A digest of the bytes at p: equal bytes give equal digests. */
    int (*digest)(Device *d, DevicePtr p, size_t bytes, uint64_t out[2], Error *err);
} DeviceGoldenOps;

typedef struct {
    const char *prefix;  /* "sim" */
    const char *form;    /* "sim:PROFILE" */
    const char *meaning; /* of the form, for an error: "where PROFILE is ..." */
    const char *example; /* "sim:h100" */
    /* Announces that this process opens only this device. It is called before threads start, and
     * may set the process's environment. NULL: not needed. */
    void (*use_only)(const char *arg);
    /* arg: the text after "sim:". */
    int (*open)(const char *arg, Device **out, Error *err);
    void (*close)(Device *d);
    const DeviceInfo *(*info)(Device *d);
    /* Load code into one of the contexts (DeviceHome). Returns 1 with UNSUPPORTED or LAUNCH_ERROR
     * when the code cannot be loaded. code NULL, not in HOME_CANDIDATE: a module of library calls
     * only. */
    int (*load)(Device *d, const DeviceCode *code, int home, DeviceModule **out, Fault *fault);
    void (*unload)(Device *d, DeviceModule *m);
    /* The attributes of a kernel by its lowered name; -1 when the module has no such kernel. */
    int (*kernel)(Device *d, DeviceModule *m, const char *lowered, KernelInfo *out, Error *err);
    /* A buffer of 256-byte alignment with guard zones on both sides. It is poisoned: the simulator
     * reports a read before the first write. label names it in faults: "output y". */
    int (*alloc)(Device *d, size_t bytes, const char *label, DevicePtr *out, Error *err);
    void (*free)(Device *d, DevicePtr p);
    int (*write)(Device *d, DevicePtr p, const void *src, size_t bytes, Error *err);
    /* Unwritten bytes read as the poison, 0xFF. */
    int (*read)(Device *d, DevicePtr p, void *dst, size_t bytes, Error *err);
    int (*poison)(Device *d, DevicePtr p, Error *err); /* the whole buffer */
    /* Make the buffer read-only for kernels, or writable. On a simulator a write is
     * OUT_OF_BOUNDS. */
    int (*protect)(Device *d, DevicePtr p, int read_only, Error *err);
    /* Returns 1 when a guard zone was written. */
    int (*check_guards)(Device *d, Fault *fault);
    /* Launch in order with all checks, under the device's limit of instructions or seconds. */
    int (*run)(Device *d, const DeviceLaunch *launches, int n, Fault *fault);
    const DevicePrediction *prediction; /* NULL: the device measures times */
    const DeviceClockOps *clock;        /* NULL: it predicts them */
    const DeviceGoldenOps *golden; /* NULL: the caller keeps and compares contents in host memory */
} DeviceOps;

/* The name in the source of a lowered (mangled) kernel name: "_Z3addPf" gives "add". */
void device_kernel_name(const char *lowered, char *out, size_t size);

/* Make a table known to device_find. Backends call it from a constructor function, so that every
 * program that links a backend has its devices. The table must outlive the program. */
void device_register(const DeviceOps *ops);

/* The table of "sim:h100", and its argument "h100". NULL, with an error that lists the registered
 * forms, when no backend has this name. */
const DeviceOps *device_find(const char *name, const char **arg, Error *err);

#endif
