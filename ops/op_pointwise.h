/* Operators that compute each element of the result from the elements of up to three operands at the
 * same place, after broadcasting. A row of a family's table has the function twice: in C over doubles,
 * and as CUDA text over a, b, c (operands) and p0, p1, ... (the other arguments, in the schema's order;
 * None is NaN, a bool 0 or 1, a string its place among those that it may be). */
#ifndef OPS_OP_POINTWISE_H
#define OPS_OP_POINTWISE_H

#include "ops/op.h"

/* A run of elements: operand i is read every step[i] elements, y is dense. */
typedef struct {
    const double *x[3], *p;
    int64_t step[3], n;
    double *y;
} PointRun;
typedef void PointFunction(const PointRun *r);
/* The dtype: promoted of all arguments; that, or float32 for integers; of argument 0; bool; promoted
 * of all arguments but the first. */
typedef enum { RESULT_PROMOTED, RESULT_FLOAT, RESULT_SELF, RESULT_BOOL, RESULT_OTHERS } ResultRule;

typedef struct {
    PointFunction *f;
    const char *cuda;
    int operands;
    ResultRule rule;
    const char *refused; /* a bool argument that must be false: active dropout */
    void (*fill)(const OpCall *c, double *p); /* optional: changes parameters */
    const char *modes; /* what a string may be: " one two ", by place; NULL: " none tanh " */
    const char *(*special)(const OpCall *c); /* optional: eager's text of some numbers, or NULL */
    const char *whole; /* optional: eager's text of whole numbers, which a float does not hold */
} Pointwise;

int pointwise_infer(OpCall *c, Error *err);
int pointwise_reference(const OpCall *c, const double *const *in, double *const *out, Error *err);
int pointwise_plain(const OpCall *c, OpPlain *out, Error *err);
void pointwise_parameters(const OpCall *c, double *p); /* p0, p1, ...: OP_MAX_ARGS numbers */
const char *pointwise_text(
    const OpCall *c); /* the expression of an element, as eager computes it */
void pointwise_cost(const OpCall *c, OpCost *out);
extern const OpElements pointwise_elements;

double pointwise_clamp(double x, double low, double high); /* a bound of NaN is none */
const char *pointwise_clamp_text(const OpCall *c);         /* of one bound; NULL: there are both */

/* One element, and a run: its operands are mostly dense, or one number. */
#define POINT_LOOP(name, vector, sa, sb, sc)                   \
    {                                                          \
        vector for (int64_t k = 0; k < r->n; k++) y[k] =       \
            name(a[k * (sa)], b[k * (sb)], c[k * (sc)], r->p); \
    }
#define POINT(name, expression)                                              \
    static inline double name(double a, double b, double c, const double *p) \
    {                                                                        \
        (void)a, (void)b, (void)c, (void)p;                                  \
        return expression;                                                   \
    }                                                                        \
    static void __attribute__((unused)) run_##name(const PointRun *r)        \
    {                                                                        \
        const double *a = r->x[0], *b = r->x[1], *c = r->x[2];               \
        double *restrict y = r->y;                                           \
        const int64_t *s = r->step;                                          \
        if (s[0] == 1 && !s[1] && !s[2])                                     \
            POINT_LOOP(name, _Pragma("omp simd"), 1, 0, 0)                   \
        else if (s[0] == 1 && s[1] == 1 && !s[2])                            \
            POINT_LOOP(name, _Pragma("omp simd"), 1, 1, 0)                   \
        else                                                                 \
            POINT_LOOP(name, , s[0], s[1], s[2])                             \
    }

#define POINTWISE(aten, schema_text, function, text, operands, rule, refused, op_flags)           \
    {                                                                                             \
        aten, schema_text, pointwise_infer, pointwise_reference, pointwise_plain, pointwise_cost, \
            op_flags, &(const Pointwise){run_##function, text, operands, rule, refused}, NULL,    \
            &pointwise_elements                                                                   \
    }

/* Rows of a family: NEW(name, overload, schema, operands, rule, CUDA's text, C's expression); BOTH has the
 * form in place, name_, too; PLACE, without a rule, is such a form alone. */
#define POINT_NEW(name, overload, schema, operands, rule, text, expression) \
    POINT(f_##name##_##overload, expression)
#define POINT_PLACE(name, overload, schema, operands, text, expression) \
    POINT(f_##name##_##overload, expression)
#define ROW_NEW(name, overload, schema, operands, rule, text, expression)                 \
    POINTWISE("aten." #name "." #overload, schema, f_##name##_##overload, text, operands, \
              RESULT_##rule, NULL, 0),
#define ROW_PLACE(name, overload, schema, operands, text, expression)                     \
    POINTWISE("aten." #name "." #overload, schema, f_##name##_##overload, text, operands, \
              RESULT_SELF, NULL, OP_IN_PLACE),
#define ROW_BOTH(name, overload, schema, operands, rule, text, expression)                 \
    ROW_NEW(name, overload, schema, operands, rule, text, expression)                      \
    POINTWISE("aten." #name "_." #overload, schema, f_##name##_##overload, text, operands, \
              RESULT_SELF, NULL, OP_IN_PLACE),

#define POINTWISE_CLAMP(aten, function, kind, op_flags)                           \
    {                                                                             \
        aten, "Tensor self, Scalar? min=None, Scalar? max=None", pointwise_infer, \
            pointwise_reference, pointwise_plain, pointwise_cost, op_flags,       \
            &(const Pointwise){.f = run_##function,                               \
                               .cuda = "a < p0 ? p0 : a > p1 ? p1 : a",           \
                               .operands = 1,                                     \
                               .rule = kind,                                      \
                               .special = pointwise_clamp_text},                  \
            NULL, &pointwise_elements                                             \
    }

#endif
