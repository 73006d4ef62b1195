/* Scaled dot product attention as two products, with a softmax between them. */
#ifndef OPS_NN_OP_ATTENTION_H
#define OPS_NN_OP_ATTENTION_H

#include "ops/op_product.h"

enum { ATTENTION_QUERY, ATTENTION_KEY, ATTENTION_VALUE, ATTENTION_MASK, ATTENTION_OPERANDS };

/* The operands have the batch's dimensions and two more, with steps of 0 where they are repeated. With
 * grouped heads the last dimension of the batch is split in two: heads of the key, and queries a head. */
typedef struct {
    OpTensor t[ATTENTION_OPERANDS], y;
    int index[ATTENTION_OPERANDS], masked, causal, lead; /* lead: dimensions of the batch */
    int64_t batch, rows, keys, depth, width;             /* depth: of q and k; width: of v */
    double scale;
} Attention;

/* The products and what lies between them: scores in scratch memory, and for a route their softmax in
 * the operands' dtype. Pointers in it are to itself. */
typedef struct {
    Attention a;
    Product first, second;
    OpTensor scores, weights;
    int t, to;
} AttentionSteps;

/* Fills all but t and to, for an inferred call. 0: it is no attention. */
int attention_of_call(const OpCall *c, AttentionSteps *out);

#endif
