/* The gate (tasks/gate.h) on a description: which of its check workloads stay, or why it is degenerate. */
#ifndef TASKS_DERIVE_DERIVE_GATE_H
#define TASKS_DERIVE_DERIVE_GATE_H

#include "tasks/derive/honest.h"
#include "tasks/derive/task_text.h"

/* Of the check workloads: none can tell a kernel that does the work; all that stay can together, since each
 * input matters at one or more; each that stays can alone. */
enum { TELLS_NOTHING, TELLS_TOGETHER, TELLS_ALL };

/* Drops the check workloads that a null model passes, and those where an input does not matter while there
 * are others. With nothing left all stay, and the reason is given. wide: sizes that stand for the timed
 * ones, where each input must matter too if the others tell together or `cautious` is set. What the check
 * workloads tell, or -1. */
int gate_described_sizes(const Derivation *v, Description *d, const Sizes *wide, int cautious,
                         Error *err);

/* The gate is sure to give TELLS_NOTHING: with tolerances that are no larger than they will be, those of the
 * executions for rtol. */
int gate_hopeless(const Derivation *v, const Description *d, const HonestKept *kept,
                  const double *rtol);

#endif
