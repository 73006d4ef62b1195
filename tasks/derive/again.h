/* Derives a part of a task.json that is there again. */
#ifndef TASKS_DERIVE_AGAIN_H
#define TASKS_DERIVE_AGAIN_H

#include "tasks/task.h"

/* Measures the timed tolerances of a task of a graph and writes them into its task.json, of which all else
 * stays. *changed: they are others than before. */
int derive_again(const Task *t, int *changed, Error *err);

#endif
