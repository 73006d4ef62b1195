/* The windows of convolutions and pools. Along a dimension, output o and tap k of the kernel meet input
 * o * stride - padding + k * dilation; in a transposed convolution, the input i for which
 * o = i * stride - padding + k * dilation. What lies outside of [0, in) is padding. */
#ifndef OPS_OP_WINDOW_H
#define OPS_OP_WINDOW_H

#include "ops/op.h"

enum { WINDOW_DIMS = 3 };

typedef struct {
    int64_t in, out, kernel, stride, padding, dilation;
    int transposed;
} Window;

/* Dimensions that a call lacks are windows of one. */
void window_none(Window *w);

/* The input that output o and tap k meet; -1: padding, or none. */
int64_t window_input(const Window *w, int64_t o, int64_t k);

/* How many of a dimension's inputs, of its taps, and of its pairs of output and tap are used. Where
 * the pairs are too many to walk, or pairs_alone is set, inputs is a lower bound. Of a kernel of more
 * than 4096 taps all are. */
typedef struct {
    double inputs, taps, pairs;
} WindowUse;
WindowUse window_use(const Window *w, int pairs_alone);

/* Element i of a list argument of `n` ints. Bounded: sizes in [least, 2^31). */
int window_argument(const OpCall *c, const char *name, int i, int64_t least, int64_t *out,
                    Error *err);

#endif
