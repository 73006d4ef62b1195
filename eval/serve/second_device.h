/* Confirmation of records by a second device. A measured score above 3, or above twice the best
 * known score of its task, is a record. Another device of the class judges the candidate once more,
 * with other inputs. The record is confirmed when the two scores agree within 10%. Predicted times
 * are never records. */
#ifndef EVAL_SERVE_SECOND_DEVICE_H
#define EVAL_SERVE_SECOND_DEVICE_H

#include "eval/serve/job.h"
#include "tasks/task.h"

/* Read the best score of each task from a pool artifact into best[tasks->n]; 0 where the pool has
 * none. pool NULL: all 0. */
int second_device_best_known(const char *pool, const TaskSet *tasks, double *best, Error *err);

/* Returns 1 when the verdict of job `first` is a record. *out is then the job of the second device.
 * It borrows first's source. */
int second_device_job(const Job *first, const View *verdict, double best, Job *out);

/* Write the verdict that replaces the second one when the class has no other device. */
void second_device_absent(const Job *second, Record *r);

/* Merge both verdicts into r, which may hold fields already. The result is the verdict with the
 * lower score, under the key of the first, with `confirmed` (yes, no, or alone without a second
 * verdict) and the other device's numbers in `other`. */
int second_device_merge(const View *first, const View *second, Record *r, Error *err);

#endif
