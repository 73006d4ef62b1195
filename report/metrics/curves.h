/* Figures and tables of a run that need its steps and logs alone: curves by step and by round, and the
 * timeline. SVG with the colours of the page (report/style.c). */
#ifndef REPORT_METRICS_CURVES_H
#define REPORT_METRICS_CURVES_H

#include "base/buffer.h"
#include "report/metrics/run_numbers.h"
#include "report/run/run_logs.h"

/* Small panels: loss by step of each stage; by round success, scores, comparisons, length,
 * entropy and KL, plain and contrastive apart; by model success and best of train and of both heldout
 * splits. With
 * 95% intervals where the metrics have them. Returns the number of panels. */
int curves_write(const RunNumbers *n, Buffer *b);

/* A bar for each rule, over the seconds since the run's first. Returns 0 when there is none. */
int timeline_write(const RunRule *rules, int n, Buffer *b);

/* ---- tables: the techniques by round, and the turns of stage 3's
 * answers ---- */
/* Each returns the number of rows, 0 when the run has no such metrics: then nothing is written. */
int learned_techniques(const RunNumbers *n, Buffer *b);
int learned_turns(const RunNumbers *n, Buffer *b);

#endif
