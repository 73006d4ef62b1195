/* PyTorch's own times of tasks. tools/rival.py measures them by the rules of a GPU verdict's clock and keeps
 * them in tables: files rivals.tsv in the folders above those of the tasks. A row is of one task, sizes, GPU,
 * PyTorch, precision and way. A verdict of a GPU carries those of its task, so that it says what a kernel is
 * worth beside torch.compile. */
#ifndef EVAL_JUDGE_RIVALS_H
#define EVAL_JUDGE_RIVALS_H

#include "eval/judge/statistics.h"
#include "eval/judge/verdict/verdict.h"
#include "tasks/task.h"

enum { RIVALS_TEXT = 256 }; /* bytes that every rivals_text fits */

/* A row. The texts are of the line that is read. */
typedef struct {
    const char *task, *axes, *gpu, *torch, *precision, *way, *error;
    double us, low,
        high; /* the median time and its 95% interval; 0: error says why there is none */
} RivalRow;

typedef void RivalVisit(void *ctx, const RivalRow *row);
/* Give each row of the table to visit. Returns -1 with the line that is no row. */
int rivals_read(const char *path, RivalVisit *visit, void *ctx, Error *err);

/* The fields by which a verdict chooses its rows. */
typedef struct {
    const Task *task;
    const Workload *timed;
    const char *gpu, *precision; /* "NVIDIA H200"; "default", as --precision of tools/rival.py */
} RivalKey;

/* The word of tools/rival.py for a precision. */
const char *rivals_precision(const Precision *p);

/* Give v the times of the newest PyTorch from the nearest table above the task's folder that has any. v stays
 * as it is when there are none. A table that cannot be read gives -1. */
int rivals_find(const RivalKey *key, Verdict *v, Error *err);

/* The time of the way over the candidate's, with its 95% interval. way: "eager", "compile" or "max-autotune".
 * Returns 0 when it was not measured. */
int rivals_over(const Verdict *v, const char *way, Interval *out);
/* "1.21x torch.compile (1.19 to 1.23), 1.15x its max-autotune (1.14 to 1.17)", or that torch.compile was not
 * measured. */
void rivals_text(const Verdict *v, char out[RIVALS_TEXT]);

#endif
