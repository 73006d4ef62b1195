/* The tolerance of sizes that task.json does not list. To measure it takes longer than a small check
 * (tasks/derive/judged.h). The largest one of the sizes that it lists, the timed ones too, is enough
 * where it is small beside the expected outputs: no axis of drawn sizes is above its timed size. */
#ifndef EVAL_JUDGE_CONTENTS_DRAWN_TOLERANCE_H
#define EVAL_JUDGE_CONTENTS_DRAWN_TOLERANCE_H

#include "tasks/derive/judged.h"

/* The largest of the task's own, at the scale of the case. Returns -1 where the case has its own, or the
 * task lists none. */
int drawn_tolerance(Judged *j, const TaskCase *c, int output, Tolerance *out);

#endif
