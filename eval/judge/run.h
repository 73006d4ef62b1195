/* One workload of a loaded candidate or baseline in the device's memory: buffers are allocated and
 * filled, the plan's launches are resolved for them, and what the launches leave is compared with
 * the reference.
 *
 * Functions with a Fault return 0, 1 or -1 as in eval/device/fault.h. The others return 0, or -1
 * for a failure of the evaluator (in *err). */
#ifndef EVAL_JUDGE_RUN_H
#define EVAL_JUDGE_RUN_H

#include "eval/judge/contents/cases.h"
#include "eval/judge/loaded.h"

typedef struct {
    Loaded *loaded;
    const Case *test;
    int64_t rotation; /* positions by which the test's contents are rotated along Task.rotates */
    int shifted;      /* run_refill_shifted */
    char where[200];  /* "check rows=7 cols=33, input scale 8" */
    PlanMemory memory;
    /* Allocated so far. The buffers are those of the plan, then the slots of its op lines. */
    int n_inputs, n_outputs, n_buffers;
    int all_buffers;
    double work;  /* the least of the workload: words of memory and flops */
    int borrowed; /* inputs and outputs belong to another run */
    size_t *buffer_bytes;
    DevicePtr *buffers;
    int *lent; /* the buffer belongs to the owner */
    DeviceLaunch *launches;
    int n_launches;
} Run;

/* The largest differences of outputs from double precision on the inputs of one workload (errors.h). */
typedef struct {
    int known;
    double of[TASK_MAX_TENSORS], /* by output */
        ulp[TASK_MAX_TENSORS];   /* half a unit in the last place of the largest element */
} Errors;

/* The bytes of the n buffers of a run at workload w: those of the plan, then the slots of its op lines. The
 * caller frees them. */
int run_buffers(Loaded *l, const Workload *w, size_t **bytes, int *n, Fault *f);

/* Allocate and fill the memory of case c, and resolve the launches. owner: NULL, or a run of the
 * same task and workload, closed after this one. This run then uses the owner's inputs and outputs,
 * and its plan's buffers of equal sizes, since the address of a buffer changes its speed. */
int run_open(Run *r, Loaded *l, const Case *c, const Run *owner, Fault *f);
void run_close(Run *r);
/* The sizes of the buffers that the open run allocated, in that order. Returns how many there are: at
 * most 2 * TASK_MAX_TENSORS + all_buffers. */
int run_sizes(const Run *r, size_t *bytes);

/* Give the run another case of the same workload, at the same addresses. rotation: 0, or less than
 * run_rotations. A run that borrows its inputs only notes the case: the owner is filled. */
int run_refill(Run *r, const Case *c, int64_t rotation, Error *err);
/* The same, but contents that repeat (Case.part) do so a few bytes early, so that no two positions are equal.
 * Nothing is known of the outputs then. */
int run_refill_shifted(Run *r, const Case *c, Error *err);
/* How many rotations give different contents for which the expected outputs follow by rotation,
 * without another run of the reference. 0 when the task has no such axis, or the device does not
 * keep contents. */
int64_t run_rotations(const Run *r);

void run_announce(const Run *r);               /* tells the device how much work the next run is */
int run_reset(Run *r, Error *err);             /* poison the outputs and the plan's buffers */
int run_reset_own_buffers(Run *r, Error *err); /* poison the plan's buffers that are not lent */
int run_resolve(Run *r, Fault *f);             /* resolve the launches again, after loaded_again */
/* Reset, launch all, then run_inspect. */
int run_launch(Run *r, Fault *f);
/* Make the device's fault of the run's launches what the verdict reports (loaded_ops_fault). */
void run_fault(const Run *r, Fault *f);
/* Check the guard zones and that the inputs are unchanged. */
int run_inspect(Run *r, Fault *f);
/* Every output with the reference: within its tolerance, or no further than the baseline's (eager_look.h). */
int run_compare(Run *r, Fault *f);
/* The differences of an output from the reference that exceed `times` tolerances, and the mean square of all
 * errors in limits, 0 without limits. Without limits square may be NULL. */
int run_differences(Run *r, int output, double times, TaskDifference *d, Error *err);
int run_square(Run *r, int output, double *square, Error *err);
int run_errors(Run *r, Errors *out, Error *err); /* of the outputs that a run has left */
/* run_compare and run_inspect with one wait for the device. Returns 0 when both pass. Returns 1
 * when one fails, or when the device cannot do this: those two functions then say which. */
int run_matches(const Run *r, Error *err);
int run_digest(Run *r, Digest *out, Error *err); /* of the bytes of all outputs */

#endif
