/* Plain kernels and library routes of products. */
#ifndef OPS_OP_PRODUCT_TEXT_H
#define OPS_OP_PRODUCT_TEXT_H

#include "ops/op_product.h"

/* Appends the tiled kernel; groups must be those of memory. */
int product_plain(const Product *p, const OpCall *c, OpPlain *out, Error *err);

/* As Op.route: a float32 product of dense matrices, plain or batched, and the bias as a kernel after
 * it. */
int product_route(const Product *p, const OpCall *c, OpRoute *out, Error *err);

#endif
