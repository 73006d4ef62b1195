/* Convolutions of float32 tensors, where PyTorch may use TF32, as products: filters by what they read. */
#ifndef GENERATE_CONVOLVE_H
#define GENERATE_CONVOLVE_H

#include "generate/product_text.h"

/* 1: a kept node is a convolution that a kernel can compute, as a product: rows are filters, columns the
 * outputs of an image. */
int convolve_read(const Nodes *n, int node, MatrixProduct *out);
/* As product_choose. */
void convolve_choose(const Nodes *n, const char *key, MatrixProduct *m);
/* Microseconds by the timed sizes. */
double convolve_us(const Nodes *n, const MatrixProduct *m);
/* As product_write. */
int convolve_write(ProductWriter *w);

#endif
