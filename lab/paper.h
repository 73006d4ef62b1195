/* A run's numbers in the form of the paper's tables. */
#ifndef LAB_PAPER_H
#define LAB_PAPER_H

#include "report/report.h"

/* Appends a heading and one HTML table: by stage, by level of KernelBench or family of tasks, by device.
 * Nothing when the run has no train task that counts. */
void paper_write(const Report *r, Buffer *b);

#endif
