/* Operators that compute each element of the result from the elements of up to three operands at the
 * same place, after broadcasting. A row of a family's table has the function twice: in C over doubles,
 * and as CUDA text over a, b, c (operands) and p0, p1, ... (the other arguments, in the schema's order;
 * None is NaN, a bool 0 or 1, "tanh" 1, "none" 0). */
#ifndef OPS_OP_POINTWISE_H
#define OPS_OP_POINTWISE_H

#include "ops/op.h"

typedef double PointFunction(double a, double b, double c, const double *p);
/* The dtype: promoted of all arguments; that, or float32 for integers; of argument 0; bool; promoted
 * of all arguments but the first. */
typedef enum { RESULT_PROMOTED, RESULT_FLOAT, RESULT_SELF, RESULT_BOOL, RESULT_OTHERS } ResultRule;

typedef struct {
    PointFunction *f;
    const char *cuda;
    int operands;
    ResultRule rule;
    const char *refused; /* a bool argument that must be false: active dropout */
} Pointwise;

int pointwise_infer(OpCall *c, Error *err);
int pointwise_reference(const OpCall *c, const double *const *in, double *const *out, Error *err);
int pointwise_plain(const OpCall *c, OpPlain *out, Error *err);
void pointwise_cost(const OpCall *c, OpCost *out);

double pointwise_clamp(double x, double low, double high); /* a bound of NaN is none */

#define POINT(name, expression)                                       \
    static double name(double a, double b, double c, const double *p) \
    {                                                                 \
        (void)a, (void)b, (void)c, (void)p;                           \
        return expression;                                            \
    }

#define POINTWISE(aten, schema_text, function, text, operands, rule, refused, op_flags)           \
    {                                                                                             \
        aten, schema_text, pointwise_infer, pointwise_reference, pointwise_plain, pointwise_cost, \
            op_flags, &(const Pointwise)                                                          \
        {                                                                                         \
            function, text, operands, rule, refused                                               \
        }                                                                                         \
    }

#endif
