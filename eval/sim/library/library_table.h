/* Measured times of library calls, which tests/calibration/library.py measures and join.py there puts in
 * columns: a table for each GPU that was measured. They are compiled into the program. */
#ifndef EVAL_SIM_LIBRARY_LIBRARY_TABLE_H
#define EVAL_SIM_LIBRARY_LIBRARY_TABLE_H

#include "eval/sim/library/library_shape.h"

/* Kinds of operands: float32, float16, bfloat16, and float32 that is rounded to TF32. */
enum { LIBRARY_KIND_TF32 = 3, LIBRARY_KINDS };

typedef struct {
    LibraryShape shape;
    double us; /* cold, with one launch overhead */
} LibraryRow;

typedef struct {
    const char *device; /* "h100" */
    LibraryRow *rows;   /* sorted by operation, then by dtype */
    int n, cap, first[LIBRARY_OPS][LIBRARY_KINDS],
        count[LIBRARY_OPS][LIBRARY_KINDS]; /* by operation and kind */
} LibraryTable;

/* The table of a profile: its own; else an H200's for a profile with its memory, and an H100's for
 * any other. It is read at the first call, and kept. */
const LibraryTable *library_table(const char *profile);

int library_kind(const LibraryShape *s);

#endif
