/* Writes a set of composed tasks: tasks to learn from, tasks that are held out by composition (each of their
 * primitives is in a task to learn from, in another combination), and tasks of families that are not. */
#ifndef TASKS_GENERATE_GENERATE_H
#define TASKS_GENERATE_GENERATE_H

#include <stdint.h>

#include "base/error.h"

enum { GENERATE_MAX = 512 };

typedef struct {
    int train, composition, family;
    uint64_t seed;
    const char *beside; /* folder of a set; NULL: none */
} GenerateSpec;

/* Writes folder/NAME/task.json for each. Equal specs give equal bytes. Compositions that derive refuses, or
 * finds degenerate, are drawn again, and so are those with the name of a task in `beside`, in any
 * precision. LIMIT: so many different ones are not to be had. */
int generate_tasks(const GenerateSpec *s, const char *folder, Error *err);

#endif
