/* What was derived so far, and the text of task.json. */
#ifndef TASKS_DERIVE_TASK_TEXT_H
#define TASKS_DERIVE_TASK_TEXT_H

#include "tasks/derive/derivation.h"

typedef struct {
    Role role;
    Sizes sizes;
    Sizes own;     /* that ROLE_TIME stands for: other ones, where their tensors are too large */
    double weight; /* of ROLE_TIME */
    double *atol;  /* [output][ATOL_CASES]; NULL: not measured yet */
    int finite;    /* the reference is, at these sizes */
} DescribedWorkload;

typedef struct {
    DescribedWorkload at[TASK_MAX_WORKLOADS];
    int n;
    double rtol[DTYPES];
    int blunt;        /* a tolerance that holds would tell little */
    int rotates;      /* 1 + the axis of "turns"; 0: none */
    char *exact;      /* expression; NULL: none */
    char *degenerate; /* the reason; NULL: it is not */
} Description;

void description_add(Description *d, Role role, const Sizes *s);
void description_forget(Description *d);                         /* the tolerances */
void description_keep(Description *d, const int *good);          /* by workload: 0 drops it */
void description_degenerate(Description *d, const char *reason); /* the first reason stays */
void description_release(Description *d);
char *description_text(const Derivation *v, const Description *d); /* the caller frees */

#endif
