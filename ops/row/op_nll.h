/* The negative log-likelihood of classes: of log-probabilities [N, C, ...] and classes [N, ...], or of
 * [C] and a class. Operators whose name has "forward" also give the sum of the weights. */
#ifndef OPS_ROW_OP_NLL_H
#define OPS_ROW_OP_NLL_H

#include "ops/op.h"

extern const Op nll_op; /* self, target, weight, reduction, ignore_index: loss and sum of weights */

int nll_infer(OpCall *c, Error *err);
int nll_reference(const OpCall *c, const double *const *in, double *const *out, Error *err);
int nll_plain(const OpCall *c, OpPlain *out, Error *err);
void nll_cost(const OpCall *c, OpCost *out);
extern const OpElements nll_elements;

#endif
