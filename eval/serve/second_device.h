/* The second device of a record. A measured score above 3, or above twice the best known of its
 * task, is a record: it is judged once more, on other inputs, by another device of the class, and
 * believed when the two agree within 10%. Predicted times are never records. */
#ifndef EVAL_SERVE_SECOND_DEVICE_H
#define EVAL_SERVE_SECOND_DEVICE_H

#include "eval/serve/job.h"
#include "tasks/task.h"

/* The best score of each task in a pool artifact, 0 where it has none; pool NULL: of all. `best`
 * has tasks->n places. */
int second_device_best_known(const char *pool, const TaskSet *tasks, double *best, Error *err);

/* 1: the verdict of `first` is a record, and *out the job of the second device, which borrows
 * first's source. */
int second_device_job(const Job *first, const View *verdict, double best, Job *out);

/* The verdict that stands in for the second device's when there is none. */
void second_device_absent(const Job *second, Record *r);

/* The final verdict of both into r, which may hold fields already: that of the device with the
 * lower score, under the key of the first, with `confirmed` (yes no alone) and the other device's
 * numbers in `other`. */
int second_device_merge(const View *first, const View *second, Record *r, Error *err);

#endif
