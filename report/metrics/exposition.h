/* The text that Prometheus reads: every number of the queue and of some runs, in the order of its
 * metrics. */
#ifndef REPORT_METRICS_EXPOSITION_H
#define REPORT_METRICS_EXPOSITION_H

#include "base/buffer.h"
#include "report/metrics/run_numbers.h"
#include "report/run/run_status.h"

typedef struct {
    RunStatus status;
    RunNumbers numbers;
} WatchedRun;

typedef struct {
    double prompt_price, answer_price; /* dollars for a million tokens; 0: not told */
} Prices;

/* shared: runs[n] has the queue of a server that several runs share, under the name "". */
void exposition_write(const WatchedRun *runs, int n, int shared, const Prices *prices, Buffer *out);

#endif
