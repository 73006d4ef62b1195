/* The right kernels that are changed: files with a line `// task: NAME`, the tasks' own kernels, and kernels
 * that the generator draws without mistakes. */
#ifndef LAB_MUTATE_ORIGINALS_H
#define LAB_MUTATE_ORIGINALS_H

#include "base/digest.h"
#include "tasks/task.h"

typedef struct {
    char *task, *label; /* label: the path below Quern's root, or "generator SEED" */
    char *text;
    char digest[DIGEST_HEX];
} Original;

typedef struct {
    Original *at;
    int n;
} Originals;

/* Add the files that a pattern of the shell names. A file without a task, or whose line `// expect:` has
 * another outcome than ok, is left out. */
int originals_glob(Originals *o, const char *pattern, Error *err);
/* The same for Quern's own: honest candidates, those written for this, and the tasks' own. */
int originals_own(Originals *o, Error *err);
/* Add `kernels` that the generator draws for each of the tasks of which it can draw some. */
int originals_teacher(Originals *o, const TaskSet *tasks, int kernels, Error *err);
/* Sort by task, then by digest, and drop what is there twice. */
void originals_sort(Originals *o);

#endif
