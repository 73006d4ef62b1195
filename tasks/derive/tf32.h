/* What the rounding of factors to TF32 adds to the errors of honest kernels, where the precision of a task
 * lets eager PyTorch round (Task.tf32). The tolerances in task.json are those of float32 arithmetic. The
 * graph is executed in double precision, with the factors of each such product or convolution rounded: to
 * the nearest number of 10 bits, as cuBLAS and cuDNN do, or towards zero, as tensor cores read float32.
 * Half of the error is relative, and what is left of the largest one is absolute. Where sums are made
 * shorter, what they give is made as large as at the case's own sizes: errors grow through layers as the
 * signals do. */
#ifndef TASKS_DERIVE_TF32_H
#define TASKS_DERIVE_TF32_H

#include <string.h>

#include "tasks/task.h"

/* What it adds to atol, and the least rtol. */
typedef struct {
    double atol[GRAPH_MAX_OUTPUTS], rtol[GRAPH_MAX_OUTPUTS];
} Tf32Error;

/* Of the case, with contents of a fixed seed. Large sizes are made smaller along axes that no such product
 * sums over, and the errors grow with the number of outputs. A measurement takes some 2e7 flops, or, where
 * the sums themselves are costlier, 3 times what the reference takes at the smaller sizes. All is zero where
 * Task.tf32 is. */
int tf32_measure(const TaskCase *c, Tf32Error *out, Error *err);

/* By output: the root mean square of the errors of factors that are rounded to the nearest number, and the
 * error of each element with factors that are cut off, which the caller frees. */
typedef struct {
    double rms[GRAPH_MAX_OUTPUTS], *drift[GRAPH_MAX_OUTPUTS];
} Tf32Spread;

/* On the inputs of the case, of which the reference has `want`. 1: it costs more than a judge has, or
 * Task.tf32 is 0. */
int tf32_spread(const TaskCase *c, const double *const *in, const double *const *want,
                Tf32Spread *out, Error *err);

/* By output: the largest error of the two roundings on the inputs of one case, with the margin of honest
 * kernels, and the largest result. */
typedef struct {
    double error[GRAPH_MAX_OUTPUTS], size[GRAPH_MAX_OUTPUTS];
} Tf32Own;

/* Draws the inputs of the case. Where all signals of the contents that tf32_measure draws die behind a layer,
 * those of the case may not. 1: it costs more than a judge has, or Task.tf32 is 0. */
int tf32_own(const TaskCase *c, Tf32Own *out, Error *err);

/* Rounds a float32 number to TF32: adds `half` before the bits that it lacks are cut off. */
static inline float tf32_rounded(float f, uint32_t half)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    uint32_t cut = (bits + half) & ~0x1fffu;
    bits = (bits & 0x7f800000u) == 0x7f800000u ? bits : cut;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline float tf32_nearest_float(float f)
{
    return tf32_rounded(f, 0x1000);
}

double tf32_nearest(double x);
double tf32_truncated(double x);
/* As tf32_nearest of n floats, which need not be aligned. */
void tf32_nearest_floats(const void *floats, int64_t n, double *out);

#endif
