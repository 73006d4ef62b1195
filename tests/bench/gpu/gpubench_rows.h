/* The rows of part baselines: one line of JSON a task in a file that the next call continues. Only a
 * task that was measured counts as known; one that failed is tried again, and its last row holds. */
#ifndef TESTS_BENCH_GPU_GPUBENCH_ROWS_H
#define TESTS_BENCH_GPU_GPUBENCH_ROWS_H

#include "tests/bench/gpu/gpubench.h"

typedef struct {
    char task[64], outcome[32], message[256], gpu[128];
    double us, plain_us, light_us; /* the baseline; the same as a candidate; the least possible */
    double seconds;                /* of the whole verdict */
} GpuBaselineRow;

typedef struct {
    FILE *file; /* NULL: none */
    const char *path;
    GpuBaselineRow *items;
    int n;
} GpuBaselineRows;

/* path NULL: the rows stay in memory. A torn last line is dropped; another that is no row is an
 * error. */
int gpubench_rows_open(GpuBaselineRows *r, const char *path, Error *err);
void gpubench_rows_close(GpuBaselineRows *r);
/* The row of a task that was measured, or NULL. */
const GpuBaselineRow *gpubench_rows_find(const GpuBaselineRows *r, const char *task);
int gpubench_rows_add(GpuBaselineRows *r, const GpuBaselineRow *row, Error *err);
/* Read what quern-eval --json prints. */
int gpubench_row_of_verdict(const char *text, size_t len, GpuBaselineRow *out, Error *err);

#endif
