/* The inputs of a timed workload for a simulator, which runs a sample of its blocks. They are drawn
 * in parts where they are first read, and kept for the next candidate.
 *
 * timed_compare checks what the sampled blocks wrote. It takes a few positions along the task's
 * axis `turns` and runs the reference on the tensors gathered there, where positions along this
 * axis do not depend on one another (positions.h). It compares only written elements. It compares
 * nothing where another dimension has the axis's name, or one position costs too much. Of costly
 * positions two are compared, in the contents that all candidates share, and their outputs are
 * kept. So is the whole reference of these contents where the task has no such positions and it is
 * cheap. An output is compared where one launch wrote it, from complete contents, or where
 * its cone has made elements complete (eval/judge/timed_cone.h). */
#ifndef EVAL_JUDGE_CONTENTS_TIMED_CONTENTS_H
#define EVAL_JUDGE_CONTENTS_TIMED_CONTENTS_H

#include "eval/judge/contents/cases.h"

typedef struct TimedContents {
    Case test; /* lazy: this structure */
    Task *task;
    int by_elements;                /* they are compared, by a graph */
    struct TimedElements *elements; /* timed_elements.h; NULL: none yet */
    unsigned char *data[TASK_MAX_TENSORS];
    unsigned char *drawn[TASK_MAX_TENSORS]; /* a byte a part; NULL: all is */
    double *wide[TASK_MAX_TENSORS];         /* all of an input that is not gathered */
    int is_wide[TASK_MAX_TENSORS];          /* wide[i] is of these contents */
    int shared;                             /* by all candidates of the task */
    int64_t n_kept, kept_at[2];             /* the costly positions */
    double *kept[TASK_MAX_TENSORS];         /* their expected outputs */
    int is_whole;                           /* kept[] is of all elements */
} TimedContents;

/* The owner of the contents. */
typedef struct {
    Task *task;
    const Workload *workload;
    struct Judged *judged; /* measures tolerances; of the caller */
} TimedOf;
TimedContents *timed_contents_new(const TimedOf *of, uint64_t seed, Error *err);
/* Makes the contents those of another seed, in the same memory: its pages need not be mapped again. */
int timed_contents_renew(TimedContents *c, uint64_t seed, Error *err);
void timed_contents_free(TimedContents *c);

/* Can outputs be compared? */
int timed_is_compared(TimedContents *c);
/* The number of positions when only few of them are compared. The last written one always is. 0: most are. */
int64_t timed_costly_of(const TimedContents *c);
/* The name of the unit that timed_compare counts in: an axis, or "elements". */
const char *timed_unit(TimedContents *c);
/* Elements [from, from + n) of an input as doubles. */
int timed_fetch(TimedContents *c, int input, int64_t from, int64_t n, double *dst, Error *err);
/* Draws these elements of a float32 input in place. Others of *all, the whole input, may be undrawn. */
int timed_hold(TimedContents *c, int input, int64_t from, int64_t n, const float **all, Error *err);
/* The outputs that a run of sampled blocks leaves on a device that predicts times. */
typedef struct TimedOutputs {
    const DeviceOps *ops;
    Device *device;
    Task *task;
    const DevicePtr *outputs;
    const unsigned char *comparable; /* by output, of DeviceSample */
    const char *where;               /* the run, in words */
} TimedOutputs;

/* Compares the comparable outputs of a run on c->test. Sets *positions to those compared, by
 * timed_unit. */
int timed_compare(TimedContents *c, const TimedOutputs *r, int64_t *positions, Fault *f);
/* Does timed_compare look at every output? */
int timed_compares_all(const Task *t, const unsigned char *comparable);

/* The memory of a whole reference that is kept, and its end: it is computed again where it is
 * needed. */
size_t timed_whole_bytes(const TimedContents *c);
void timed_forget_whole(TimedContents *c);

#endif
