/* The tolerance of any case of a task at judging time: also of sizes and of contents for which task.json has
 * no "atol". Where a derived task has none, honest variants are executed at the case's sizes and with its
 * contents (honest.h), by a few draws of fixed seeds, so that the tolerance does not depend on the seed of
 * the case. It is at least what the task's own check workloads have for the same case, or, with contents
 * that these do not have, for the case that needs least. */
#ifndef TASKS_DERIVE_JUDGED_H
#define TASKS_DERIVE_JUDGED_H

#include "base/cache.h"
#include "tasks/task.h"

/* What was measured, by the digest of the task, the sizes of the workload, the variant and the scale. Not for
 * several threads at once. A measurement takes some 4e7 flops, or, of a costlier graph, two to six times
 * what the reference takes. */
typedef struct Judged Judged;
Judged *judged_new(void);
void judged_free(Judged *j); /* NULL is allowed */

/* Measurements are looked for in the cache first, and put there, so that a later process of the same program
 * has them. It lives as long. */
void judged_store(Judged *j, Cache *cache);
int judged_stored(const Judged *j); /* how many measurements the cache had */

/* As task_tolerance. *usable, where it is not NULL: the reference is finite, and no honest variant
 * overflows; contents for which it is 0 say little of a kernel. */
int judged_tolerance(Judged *j, const TaskCase *c, int output, Tolerance *out, int *usable,
                     Error *err);

/* Of a case that task.json describes: task_tolerance, and what eager PyTorch errs more where the task's
 * precision lets it use TF32 (tf32.h). */
int judged_listed(Judged *j, const TaskCase *c, int output, Tolerance *out, Error *err);

/* Is the case one that is measured? Else judged_listed gives its tolerance. */
int judged_is_measured(const TaskCase *c);

#endif
