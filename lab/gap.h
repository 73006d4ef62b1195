/* How much of the gap between what the teacher has shown and what its whole range reaches a set of
 * kernels closes: log(best/teacher) / log(full/teacher). Over tasks it is the sum of the upper
 * logarithms over the sum of the lower ones, so that a task with a small gap has a small weight. */
#ifndef LAB_GAP_H
#define LAB_GAP_H

#include "eval/judge/statistics.h"
#include "stages/data/pool.h"

typedef struct {
    const char *task;                   /* borrowed */
    double teacher, full, best, closed; /* scores, and the task's own gap closed */
    double *score;                      /* of the samples; NULL: best is from a pool */
    int n;
} GapTask;

typedef struct {
    GapTask *task;
    int n;           /* train tasks where full is at least 2% above the teacher, with samples */
    Interval closed; /* by resampling the tasks and their samples; NAN where n is too small */
} Gap;

/* best: the expected best of 8 of a task's samples of the first turn, at least 0.01. */
void gap_of_samples(const SampleSet *s, const Pool *teacher, const Pool *full, Gap *out);
/* best: the best of a pool, with the teacher's own kernels if it has them. */
void gap_of_pool(const Pool *p, const Pool *teacher, const Pool *full, Gap *out);
void gap_release(Gap *g);

#endif
