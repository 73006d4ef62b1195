/* Fourier transforms as plain sums in float32, whose errors honest kernels may have. */
#ifndef OPS_ROW_OP_FFT_H
#define OPS_ROW_OP_FFT_H

#include "ops/op.h"

/* Puts sums of n products in one running sum of floats in the place of some elements of a right result of an
 * inferred call, of which some `products` are computed in all. */
void fft_direct(const OpCall *c, const double *x, double *y, int64_t products);

#endif
