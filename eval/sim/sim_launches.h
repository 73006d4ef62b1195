/* The launches of the device "sim:PROFILE": checked runs, and predictions of their time. */
#ifndef EVAL_SIM_SIM_LAUNCHES_H
#define EVAL_SIM_SIM_LAUNCHES_H

#include "eval/candidate/cubin.h"
#include "eval/sim/coverage/coverage.h"
#include "eval/sim/decode/decode.h"
#include "eval/sim/exec/launch.h"
#include "eval/sim/missing.h"
#include "eval/sim/time/profile.h"

enum { SIM_GRID_BARRIER = 64 /* bytes */ };

struct Device {
    const Profile *profile;
    DeviceInfo info;
    DevMem mem;
    Exec exec;
    int64_t limit;             /* thread-instructions of a timed run */
    double announced;          /* the least work of the next run (sim_announce) */
    int64_t used;              /* thread-instructions of the last run in the usual order */
    int64_t total;             /* of all runs of the candidate */
    SequenceWork predicted;    /* of the launches of the last predict */
    struct BlockWork *sampled; /* of the launches of the last sample */
    int n_sampled;
    int counted; /* run counts requests to global memory, too */
    DeviceModule *modules;
};

struct DeviceModule {
    Code code;
    Cubin cubin;
    DeviceModule *next;
    int trusted;
    uint64_t clock, launches; /* what its kernels read as %clock64 and %gridid */
    int n_variables;
    uint64_t *variables;   /* addresses of its .global variables, and grid_barrier */
    uint64_t grid_barrier; /* of cooperative launches; 0: the code has none */
};

/* Blocks of a launch, and thread-instructions of one. */
struct BlockWork {
    double blocks, work;
    double ran; /* what a block has taken in a cone; 0: none has run */
};

/* Runs all blocks, or those that `next` gives. Returns 0, 1 with a fault, or -1 with an Error. The counters
 * are in d->exec.counts. */
int sim_run_blocks(Device *d, const DeviceLaunch *l, ExecNext *next, void *of, Fault *fault);

/* The functions of DeviceOps with these names. */
void sim_announce(Device *d, double work);
int sim_run(Device *d, const DeviceLaunch *launches, int n, Fault *fault);
void sim_disturb(Device *d, int on);
int sim_fits(Device *d, const DeviceLaunch *launches, int n);
int sim_attempt(Device *d, const DeviceLaunch *launches, int n, Fault *fault);
int sim_cone(Device *d, const DeviceLaunch *launches, int n, DeviceCone *c, Fault *fault);
int sim_predict(Device *d, const DeviceLaunch *launches, int n, DeviceTiming *out, Fault *fault);
int sim_sample(Device *d, const DeviceLaunch *launches, int n, DeviceSample *s, DeviceTiming *out,
               Fault *fault);
void sim_unread(Device *d, const DeviceLaunch *launches, int n, DeviceUnread *u); /* unread.c */
void sim_idle(Device *d, const DeviceLaunch *launches, int n, DeviceIdle *out);   /* idle.c */

/* The kernel of a launch; NULL: it is a library call. */
const PtxFunction *sim_kernel_of(const DeviceLaunch *l);
/* Has the launch a pointer into the allocation? */
int sim_has_pointer(const DevMem *mem, const DeviceLaunch *l, int allocation);
/* Its accesses of a kind to wanted allocations, told apart by `unit` bytes. It is no library call. */
CoverageOf sim_coverage_of(const DevMem *mem, const DeviceLaunch *l, const uint8_t *wanted,
                           SliceKind kind, uint32_t unit);
/* The buffers whose contents begin with the launch. */
int sim_renew(Device *d, const DeviceLaunch *l, Error *err);

#endif
