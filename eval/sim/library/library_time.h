/* The time of a vendor library call on a GPU of a profile.
 *
 * A first-order model gives the share of light that a shape of this class reaches. The measured
 * shapes nearest to it (library_table.h) correct it: their ratios of measured to modelled time, the
 * nearer with more weight. A measured shape gets its own time on its own GPU.
 *
 * The model of a product: tiles of m x n run in waves over the SMs, each tile size at a rate of its
 * own, and with one product in a batch k may be split; the fastest choice counts. A convolution is
 * the larger of its flops and its bytes at light. */
#ifndef EVAL_SIM_LIBRARY_LIBRARY_TIME_H
#define EVAL_SIM_LIBRARY_LIBRARY_TIME_H

#include "eval/sim/library/library_shape.h"
#include "eval/sim/time/profile.h"

/* Seconds with cold caches, with one launch overhead. */
double library_seconds(const Profile *p, const LibraryShape *s);

#endif
