/* Plain kernels and library routes of products. */
#ifndef OPS_OP_PRODUCT_TEXT_H
#define OPS_OP_PRODUCT_TEXT_H

#include "ops/op_product.h"

/* Appends the tiled kernel; groups must be those of memory. */
int product_plain(const Product *p, OpPlain *out, Error *err);

/* As Op.route: a product of cuBLAS, or of cuBLASLt with a bias. Operands that it cannot read are copied
 * before it, and another addend is added by a kernel after it. 0: it is in double, or c is not dense. */
int product_route(const Product *p, const OpCall *c, OpRoute *out, Error *err);

#endif
