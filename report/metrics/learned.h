/* Tables of a run's metrics: the gap closed by stage and by task, the techniques by round, and the turns
 * of stage 3's answers. */
#ifndef REPORT_METRICS_LEARNED_H
#define REPORT_METRICS_LEARNED_H

#include "base/buffer.h"
#include "report/metrics/run_numbers.h"

/* Each returns the number of rows, 0 when the run has no such metrics: then nothing is written. */
int learned_gap(const RunNumbers *n, Buffer *b);
int learned_techniques(const RunNumbers *n, Buffer *b);
int learned_turns(const RunNumbers *n, Buffer *b);

#endif
