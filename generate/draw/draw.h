/* Kernels that are drawn, for teaching: plain ones (plain.h), each gene by chance its default or another
 * value. So a pool has slow and fast ones. The distance is how many genes have other values than the first
 * candidate's. */
#ifndef GENERATE_DRAW_DRAW_H
#define GENERATE_DRAW_DRAW_H

#include "generate/first.h"

typedef struct {
    uint64_t seed;
    double mistakes;     /* the share of kernels that get one */
    const char *without; /* genes that are not drawn, as designs_of gives them; NULL: none */
} DrawOptions;

typedef struct {
    char *source;
    Genes genes; /* their points: what was drawn */
    int distance;
    int n_kernels, n_lines;
    Slip slip; /* the mistake that the source has */
} Drawn;

/* Equal arguments give equal bytes. UNSUPPORTED says what the graph has that cannot be written. The caller
 * releases *out. */
int draw_kernel(const Task *task, const DrawOptions *o, Drawn *out, Error *err);
void draw_release(Drawn *d);

/* 1: kernels can be drawn for the task. */
int draw_knows(const Task *task);

#endif
