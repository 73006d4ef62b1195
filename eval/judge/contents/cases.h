/* A case: the inputs drawn for one workload, variant, seed and scale, and the outputs that the
 * double-precision reference computes from them, on the host or elsewhere (cases_reference). Every
 * candidate of a task is tested with the same cases, so a cache keeps the last ones. */
#ifndef EVAL_JUDGE_CONTENTS_CASES_H
#define EVAL_JUDGE_CONTENTS_CASES_H

#include "base/cache.h"
#include "eval/device/device.h"
#include "tasks/derive/judged.h"
#include "tasks/task.h"

/* How many elements of an output differ from the reference by more than 2^(k - 2) tolerances, and the mean
 * square of all errors in limits (task_mean_square; 0 without limits). */
enum { CASE_TAIL = 24 };
typedef struct {
    uint64_t above[CASE_TAIL];
    double square;
} CaseTail;

/* Those of the task's baseline on the contents of a case (eager_look.h), by output, in units of `by`. */
typedef struct {
    enum { EAGER_UNKNOWN, EAGER_NONE, EAGER_KNOWN } state; /* NONE: the baseline says nothing */
    struct {
        Tolerance by;
        CaseTail tail;
    } of[];
} CaseEager;

typedef struct {
    const Task *task;
    const Workload *workload;
    /* Of the module's own sizes: contents are those of part, and repeat along an axis (own_sizes.h).
     * NULL: contents are of the workload. */
    const Workload *part;
    int repeats;  /* the axis */
    double grown; /* of own sizes: OwnSizes.grown; 0 of others */
    uint64_t seed;
    Variant variant;
    double scale; /* factor of drawn inputs; 1 for the other variants */
    void *inputs[TASK_MAX_TENSORS];
    size_t input_bytes[TASK_MAX_TENSORS];
    double *expected[TASK_MAX_TENSORS]; /* by output, as many elements */
    size_t output_bytes[TASK_MAX_TENSORS];
    Tolerance tolerance[TASK_MAX_TENSORS];   /* by output, as judged_tolerance gives it */
    ElementLimits *limits[TASK_MAX_TENSORS]; /* as well: those of the tolerance, or NULL */
    int usable;                              /* as well: of all outputs */
    CaseEager *eager;                        /* NULL: the baseline is not asked */
    int lenient; /* the tolerance is a bound (drawn_tolerance), and `usable` not known */
    /* On a device that keeps contents; inputs and expected are then NULL. */
    DeviceGolden *golden_inputs[TASK_MAX_TENSORS], *golden_expected[TASK_MAX_TENSORS];
    /* Contents that the device asks for; inputs and expected are then NULL (timed_contents.h). */
    DeviceFill *fill;
    void *lazy;
} Case;

typedef struct Cases Cases;

/* ops NULL: everything stays in host memory. max_bytes: the bound of the contents, in the memory
 * that holds them, where the device has room for so much. */
Cases *cases_new(size_t max_bytes, const DeviceOps *ops, Device *device);
void cases_free(Cases *c);

/* Tolerances that are measured are kept in the cache, which lives as long (judged_store). */
void cases_store(Cases *c, Cache *cache);

/* Sets a function that computes the expected outputs of some cases in place of the host. It returns
 * 0, or another number when the host must. What it gives is in expected, or in golden_expected. */
typedef int CasesReference(void *of, Case *c);
void cases_reference(Cases *c, CasesReference *f, void *of);
/* The case, drawn where it is not kept. NULL: the task or the device failed. It stays valid for at
 * least two further calls, or until cases_free. */
const Case *cases_get(Cases *c, Task *t, const Workload *w, Variant v, uint64_t seed, double scale,
                      Error *err);

/* Multiply the tolerances of drawn contents of a task, at every scale, by n_outputs factors from now on, and
 * those of cases that are there. cases_loosened: has it been done? */
void cases_loosen(Cases *c, const Task *t, const double *by);
int cases_loosened(const Cases *c, const Task *t);

/* Before a case that is lenient makes a candidate wrong: measure its tolerances, and whether it is usable. */
int cases_measure(Cases *c, const Case *drawn, Error *err);

/* Forget a case that is for one candidate. The next draw gets its memory, pages and all. */
void cases_drop(Cases *c, const Case *drawn);

/* The lazy case of a workload and seed, which stays valid until the next call for the same task. */
struct TimedContents *cases_timed(Cases *c, Task *t, const Workload *w, uint64_t seed, Error *err);
/* As above, for one candidate, in memory that is kept for the next one of the task. Valid until the
 * next call. */
struct TimedContents *cases_timed_once(Cases *c, Task *t, const Workload *w, uint64_t seed,
                                       Error *err);

/* Whether the device times the task at its module's own sizes (own_sizes.h). */
int cases_take_own(Cases *c, Task *t);
/* It does so no more, for the reason `why`. NULL: it does again. */
void cases_leave_own(Cases *c, Task *t, const char *why);
/* Why this device does not, though its class has room. NULL: no reason is known. */
const char *cases_left_own(Cases *c, Task *t);

/* The timed workload made short (shortened.h) along number `which` of its axes, by the seed of its
 * contents. It stays valid until the next call for the same task with another seed. NULL: it cannot
 * be. */
const Workload *cases_shortened(Cases *c, const Task *t, const Workload *timed, int which,
                                uint64_t seed);

/* The sizes of a task that a seed draws (drawn_sizes.h). Valid until the next call for the same task with
 * another seed. */
struct DrawnSizes *cases_drawn_sizes(Cases *c, const Task *t, uint64_t seed);
/* A copy of sizes that task.json does not list, the same for equal sizes, so that candidates share cases. It
 * stays valid for many more sizes than one candidate has. */
const Workload *cases_sizes(Cases *c, const Task *t, const Workload *w);

/* Memory of zeros, for free(). Large tensors are in huge pages: page faults take half the time of
 * the first touch. */
void *cases_tensor(size_t n, size_t size);

/* The draw of the case's inputs, and the comparison of one of its outputs. */
TaskCase case_of(const Case *c);
/* The workload of the contents. */
const Workload *case_part(const Case *c);
/* Of n bytes or elements of a tensor: those of the contents, which repeat. */
size_t case_drawn(const Case *c, const TaskTensor *x, size_t n);
TaskComparison case_comparison(const Case *c, int output);

/* "check rows=7 cols=33, input scale 8" or "check rows=7 cols=33, needles" */
void case_text(const Case *c, char *out, size_t size);

/* The seed of draw number `trial`, a digest of the evaluator's seed, the task and the workload. */
uint64_t case_seed(uint64_t evaluator_seed, const Task *t, const Workload *w, int trial);

/* The tolerance of sizes that task.json does not list, at the scale of the case. To measure it takes longer
 * than a small check (tasks/derive/judged.h). The largest one of the sizes that it lists, the timed ones too,
 * is enough where it is small beside the expected outputs: no axis of drawn sizes is above its timed size.
 * Returns -1 where the case has its own, or the task lists none. */
int drawn_tolerance(Judged *j, const TaskCase *c, int output, Tolerance *out);

#endif
