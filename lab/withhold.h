/* The fast genes that an experiment keeps from the generator: vectors, folds in one pass, values that need
 * no launch of their own. */
#ifndef LAB_WITHHOLD_H
#define LAB_WITHHOLD_H

#include "base/buffer.h"
#include "tasks/task.h"

/* Half of the train tasks, by their names. */
int withhold_task(const Task *task);
/* Appends the file for `quern-collect --without`: a line for each of those tasks. Returns how many there
 * are. */
int withhold_write(const TaskSet *tasks, Buffer *out);
/* The same with their names alone, by comma. */
int withhold_names(const TaskSet *tasks, Buffer *out);

#endif
