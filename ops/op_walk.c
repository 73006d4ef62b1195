/* Merges dimensions that every operand moves through evenly, and cuts rows into runs. */
#include "ops/op_walk.h"

#include <string.h>

enum { PARALLEL = 1 << 16 };

static int merges(const OpWalk *w, int last, int64_t size, const int64_t *step)
{
    for (int i = 0; i < w->n; i++)
        if (w->step[last][i] != step[i] * size) return 0;
    return 1;
}

void walk_open(OpWalk *w, int rank, const int64_t *size, const int64_t (*step)[OP_MAX_RANK], int n)
{
    memset(w, 0, sizeof *w);
    w->n = n;
    int64_t rows = 1;
    for (int d = 0; d < rank; d++) {
        int64_t own[WALK_OPERANDS] = {0};
        if (size[d] == 1) continue;
        for (int i = 0; i < n; i++) own[i] = step[i][d];
        int with_last = w->rank && merges(w, w->rank - 1, size[d], own);
        int at = with_last ? w->rank - 1 : w->rank++;
        w->size[at] = with_last ? w->size[at] * size[d] : size[d];
        memcpy(w->step[at], own, sizeof own);
    }
    if (!w->rank) w->size[w->rank++] = 1;
    for (int d = 0; d < w->rank - 1; d++) rows *= w->size[d];
    w->pieces = (w->size[w->rank - 1] + WALK_RUN - 1) / WALK_RUN;
    w->runs = rows * w->pieces;
}

OpRun walk_run(const OpWalk *w, int64_t i)
{
    int last = w->rank - 1;
    int64_t row = i / w->pieces, skipped = i % w->pieces * WALK_RUN, left = w->size[last] - skipped;
    OpRun r = {.first = row * w->size[last] + skipped,
               .n = left < WALK_RUN ? left : WALK_RUN,
               .step = w->step[last]};
    for (int k = 0; k < w->n; k++) r.at[k] = skipped * w->step[last][k];
    for (int d = last - 1; d >= 0; row /= w->size[d--])
        for (int k = 0; k < w->n; k++) r.at[k] += row % w->size[d] * w->step[d][k];
    return r;
}

static void open_one(OpWalk *w, const OpTensor *t)
{
    walk_open(w, t->rank, t->size, (const int64_t(*)[OP_MAX_RANK]) & t->stride, 1);
}

void walk_gather(const OpTensor *t, const double *memory, double *to)
{
    OpWalk w;
    open_one(&w, t);
#pragma omp parallel for if (op_elements(t) >= PARALLEL)
    for (int64_t i = 0; i < w.runs; i++) {
        OpRun r = walk_run(&w, i);
        const double *from = memory + t->offset + r.at[0];
        int64_t step = r.step[0];
        for (int64_t k = 0; k < r.n; k++) to[r.first + k] = from[k * step];
    }
}

void walk_scatter(const OpTensor *t, const double *from, double *memory)
{
    OpWalk w;
    open_one(&w, t);
    for (int64_t i = 0; i < w.runs; i++) {
        OpRun r = walk_run(&w, i);
        double *to = memory + t->offset + r.at[0];
        int64_t step = r.step[0];
        for (int64_t k = 0; k < r.n; k++) to[k * step] = from[r.first + k];
    }
}
