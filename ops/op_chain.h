/* Operators that ATen composes of others: one function lists the steps, and shapes, reference, kernels
 * and flops follow from those of the steps. A value is a tensor on the way, named by a number. After
 * the first error every call returns -1 and does nothing. Steps that are views launch nothing. */
#ifndef OPS_OP_CHAIN_H
#define OPS_OP_CHAIN_H

#include "ops/op.h"

typedef struct Chain Chain;

/* The steps of a call: the value of the result, or -1. */
typedef int ChainSteps(Chain *k, const OpCall *c);

typedef struct {
    ChainSteps *steps;
} ChainDetail;

/* An argument of a step. name NULL: by position. */
typedef struct {
    const char *name;
    OpKind kind;
    int n;
    int64_t integer[OP_MAX_RANK]; /* of OP_TENSOR: a value */
    double number;
} ChainArg;

#define CHAIN_TENSOR(v) ((ChainArg){.kind = OP_TENSOR, .integer = {v}})
#define CHAIN_INT(i) ((ChainArg){.kind = OP_INT, .integer = {i}})
#define CHAIN_BOOL(i) ((ChainArg){.kind = OP_BOOL, .integer = {i}})
#define CHAIN_FLOAT(x) ((ChainArg){.kind = OP_FLOAT, .number = (x)})
#define CHAIN_NONE ((ChainArg){.kind = OP_NONE})

int chain_input(Chain *k, int arg); /* of a tensor argument; -1, which is no error: None */
int chain_fail(Chain *k, ErrorCode code, const char *text); /* -1 */

/* A step that is an operator of the library, or one of a family's own: the value of its result 0;
 * result i is i values behind. */
int chain_call(Chain *k, const char *name, int n, const ChainArg *args);
int chain_step(Chain *k, const Op *op, int n, const ChainArg *args);
/* As chain_step, but the result takes the memory of a value that no later step names, as an in-place
 * operator does. */
int chain_over(Chain *k, const char *name, int over, int n, const ChainArg *args);
/* Applies a loss's reduction, 0: none, 1: mean, 2: sum. */
int chain_reduce(Chain *k, int value, int64_t reduction);

/* Shows the steps of an inferred call in order. Values are numbered: `value` is the input with the index
 * `input` (step NULL), or the step's result 0, and result i is i values behind; operand[] are the values
 * of the step's tensors. Returns the value of the result, or -1. Not chains: -2. */
typedef struct {
    const OpCall *step;
    int value, input;
    const int *operand;
} ChainSeen;
typedef struct {
    void *of;
    int (*see)(void *of, const ChainSeen *s, Error *err);
} ChainVisitor;
int chain_visit(const OpCall *c, const ChainVisitor *v, Error *err);

int chain_infer(OpCall *c, Error *err);
int chain_reference(const OpCall *c, const double *const *in, double *const *out, Error *err);
int chain_plain(const OpCall *c, OpPlain *out, Error *err);
void chain_cost(const OpCall *c, OpCost *out);

#define CHAIN(aten, schema, function)                                           \
    {                                                                           \
        aten, schema, chain_infer, chain_reference, chain_plain, chain_cost, 0, \
            &(const ChainDetail)                                                \
        {                                                                       \
            function                                                            \
        }                                                                       \
    }

#endif
