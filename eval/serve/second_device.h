/* Confirmation of records by a second device. A measured score above 3, or above twice the best
 * known score of its task, is a record. Another device of the class judges the candidate once more,
 * with other inputs. The record is confirmed when the two scores agree within 10%. Predicted times
 * are never records. */
#ifndef EVAL_SERVE_SECOND_DEVICE_H
#define EVAL_SERVE_SECOND_DEVICE_H

#include "eval/serve/submitter.h"
#include "tasks/task.h"

/* Read the best score of each task from a pool artifact into best[tasks->n]; 0 where the pool has
 * none. pool NULL: all 0. */
int second_device_best_known(const char *pool, const TaskSet *tasks, double *best, Error *err);

/* Returns 1 when the verdict of job `first` is a record. *out is then the job of the second device.
 * It borrows first's source. */
int second_device_job(const Job *first, const Verdict *v, double best, Job *out);

/* Merge both verdicts into r, which may hold fields already. The result is the verdict with the
 * lower score, under the key of the first, with `confirmed` (yes, no, or alone without a second
 * verdict) and the other device's numbers in `other`. */
int second_device_merge(const View *first, const View *second, Record *r, Error *err);

/* ---- the second jobs of a submitter ---- */

typedef struct {
    Submitter *submitter;
    Queue *queue; /* set before the submitter runs */
    const TaskSet *tasks;
    double *best;  /* of each task */
    double wait_s; /* how long a record waits for a second device of its class */
    long n_first;  /* submissions before this one are no second jobs */
    double next_look;
    struct {
        long job;            /* index + 1 of the second job of this submission; 0: none */
        double absent_since; /* of a second job: when its device was first missed; 0: present */
    } * of;                  /* by submission */
} SecondDevices;

/* Call it when all first jobs are added; most as submitter_new's. The caller fills the members above
 * n_first before. */
void second_devices_init(SecondDevices *s, long most);
void second_devices_release(SecondDevices *s);
/* Add the second job, if the verdict of a submission is a record. */
void second_devices_verdict(SecondDevices *s, long index, const Verdict *v);
/* Keep each second job in the queue while another device serves its class. Without one, give the job
 * up after wait_s. Call it at every turn of the submitter. */
int second_devices_look(SecondDevices *s, Error *err);
/* The second submission of a submission, or NULL. */
const Submission *second_devices_of(const SecondDevices *s, long index);

#endif
