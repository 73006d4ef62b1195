/* Operators that compute each element of the result from the elements of up to three operands at the
 * same place, after broadcasting. A row of the table has the function twice: in C over doubles, and
 * as CUDA text over a, b, c (operands) and p0, p1, ... (the other arguments, in the schema's order;
 * None is NaN). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/op_text.h"

typedef double PointFunction(double a, double b, double c, const double *p);
enum { MAX_OPERANDS = 3 };
typedef enum { RESULT_PROMOTED, RESULT_FLOAT, RESULT_SELF, RESULT_BOOL } ResultRule;

typedef struct {
    PointFunction *f;
    const char *cuda;
    int operands;
    ResultRule rule;
    const char *refused; /* a bool argument that must be false: active dropout */
} Pointwise;

#define POINT(name, expression)                                       \
    static double name(double a, double b, double c, const double *p) \
    {                                                                 \
        (void)a, (void)b, (void)c, (void)p;                           \
        return expression;                                            \
    }

static double clamp(double x, double low, double high)
{
    if (isnan(x)) return x;
    x = x < low ? low : x; /* a bound of NaN is none */
    return x > high ? high : x;
}

static double log1p_exp(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

POINT(f_add, a + p[0] * b)
POINT(f_sub, a - p[0] * b)
POINT(f_rsub, p[0] - p[1] * a)
POINT(f_mul, a *b)
POINT(f_div, a / b)
POINT(f_relu, a < 0 ? 0 : a)
POINT(f_sigmoid, 1 / (1 + exp(-a)))
POINT(f_tanh, tanh(a))
POINT(f_gelu_erf, 0.5 * a * erfc(-a * M_SQRT1_2))
POINT(f_gelu_tanh, 0.5 * a * (1 + tanh(M_2_SQRTPI * M_SQRT1_2 * (a + 0.044715 * a * a * a))))
POINT(f_gelu, p[0] != 0 ? f_gelu_tanh(a, b, c, p) : f_gelu_erf(a, b, c, p))
POINT(f_abs, fabs(a))
POINT(f_sqrt, sqrt(a))
POINT(f_log, log(a))
POINT(f_clamp, clamp(a, p[0], p[1]))
POINT(f_clamp_min, clamp(a, p[0], NAN))
POINT(f_leaky_relu, a > 0 ? a : a * p[0])
POINT(f_mish, a *tanh(log1p_exp(a)))
POINT(f_hardswish, a *clamp(a + 3, 0, 6) / 6)
POINT(f_hardsigmoid, clamp(a + 3, 0, 6) / 6)
POINT(f_elu, a > 0 ? a * p[1] : expm1(a * p[2]) * p[0] * p[1])
POINT(f_selu, 1.0507009873554804934193349852946 *
                  (a > 0 ? a : 1.6732632423543772848170429916717 * expm1(a)))
POINT(f_softplus, a *p[0] > p[1] ? a : log1p(exp(a * p[0])) / p[0])
POINT(f_pow, pow(a, p[0]))
POINT(f_min, isnan(a) || a < b ? a : b)
POINT(f_eq, a == p[0])
POINT(f_masked_fill, b != 0 ? p[0] : a)
POINT(f_self, a)
POINT(f_other, b)

static int is_operand(const Pointwise *w, int arg)
{
    return arg < w->operands;
}

/* The scalar arguments; "tanh" is 1, "none" 0, None NaN. */
static void parameters(const OpCall *c, double *p)
{
    const Pointwise *w = c->op->detail;
    memset(p, 0, OP_MAX_ARGS * sizeof *p);
    for (int i = w->operands; i < c->n_args; i++) {
        const OpValue *v = &c->arg[i];
        p[i - w->operands] = v->kind == OP_NONE     ? NAN
                             : v->kind == OP_STRING ? !strcmp(v->text, "tanh")
                                                    : v->number;
    }
}

static int check_arguments(const OpCall *c, Error *err)
{
    const Pointwise *w = c->op->detail;
    int active = w->refused ? op_argument(c->op, w->refused) : -1;
    if (active >= 0 && c->arg[active].integer[0])
        return error_set(err, ERROR_UNSUPPORTED,
                         "%s=True draws random numbers; only evaluation mode is supported",
                         w->refused);
    for (int i = 0; i < c->n_args; i++)
        if (c->arg[i].kind == OP_STRING && strcmp(c->arg[i].text, "tanh") &&
            strcmp(c->arg[i].text, "none"))
            return error_set(err, ERROR_INVALID, "expected \"none\" or \"tanh\", found \"%s\"",
                             c->arg[i].text);
    return 0;
}

static int infer(OpCall *c, Error *err)
{
    const Pointwise *w = c->op->detail;
    const OpTensor *t[MAX_OPERANDS] = {0};
    int64_t size[OP_MAX_RANK];
    int args[OP_MAX_ARGS], n = 0, rank;
    if (check_arguments(c, err)) return -1;
    for (int i = 0; i < w->operands; i++) t[i] = op_tensor(c, i);
    if (op_broadcast(t, w->operands, size, &rank, err)) return -1;
    if (c->op->flags & OP_IN_PLACE &&
        (!t[0] || rank != t[0]->rank || memcmp(size, t[0]->size, (size_t)rank * sizeof *size)))
        return error_set(err, ERROR_INVALID, "the result does not have the shape of self");
    for (int i = 0; i < c->n_args; i++)
        if (c->arg[i].kind != OP_STRING && c->arg[i].kind != OP_DTYPE) args[n++] = i;
    OpDtype d = op_promote(c, args, n);
    if (w->rule == RESULT_FLOAT && !op_dtype_is_float(d)) d = OP_F32;
    if (w->rule == RESULT_SELF || c->op->flags & OP_IN_PLACE) d = t[0] ? t[0]->dtype : d;
    if (w->rule == RESULT_BOOL) d = OP_B8;
    if (c->op->flags & (OP_IN_PLACE | OP_VIEW))
        return op_view(c, (int)c->arg[0].integer[0], t[0], err);
    return op_result(c, d, rank, size, err);
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const Pointwise *w = c->op->detail;
    const OpTensor *y = &c->result[0];
    int64_t n = op_elements(y), step[MAX_OPERANDS][OP_MAX_RANK] = {0};
    double p[OP_MAX_ARGS], constant[MAX_OPERANDS] = {0};
    const double *source[MAX_OPERANDS];
    (void)err;
    parameters(c, p);
    for (int i = 0; i < MAX_OPERANDS; i++) {
        const OpTensor *t = is_operand(w, i) ? op_tensor(c, i) : NULL;
        source[i] = t ? in[c->arg[i].integer[0]] : &constant[i];
        if (t) {
            OpTensor logical = *t;
            op_contiguous(&logical);
            op_steps(&logical, y->rank, step[i]);
        } else if (is_operand(w, i)) {
            constant[i] = c->arg[i].number;
        }
    }
#pragma omp parallel for if (n >= 1 << 16)
    for (int64_t flat = 0; flat < n; flat++) {
        int64_t rest = flat, at[MAX_OPERANDS] = {0};
        for (int d = y->rank - 1; d >= 0; d--) {
            int64_t index = rest % y->size[d];
            rest /= y->size[d];
            for (int i = 0; i < MAX_OPERANDS; i++) at[i] += index * step[i][d];
        }
        out[0][flat] = w->f(source[0][at[0]], source[1][at[1]], source[2][at[2]], p);
    }
    return 0;
}

/* The type of the arithmetic: of a result that is a bool, that of the operands. */
static const char *compute_type(const OpCall *c)
{
    const Pointwise *w = c->op->detail;
    int args[MAX_OPERANDS];
    for (int i = 0; i < w->operands; i++) args[i] = i;
    OpDtype d = c->result[0].dtype;
    return text_type(d == OP_B8 ? op_promote(c, args, w->operands) : d);
}

static void load(Buffer *b, const OpCall *c, int arg, const char *type)
{
    const OpTensor *t = op_tensor(c, arg), *y = &c->result[0];
    buffer_printf(b, "    const %s %c = (%s)", type, 'a' + arg, type);
    if (t) {
        buffer_printf(b, "x%lld[", (long long)c->arg[arg].integer[0]);
        text_index(b, t, y->rank, y->size, "i");
        buffer_puts(b, "]");
    } else {
        text_number(b, c->arg[arg].number);
    }
    buffer_puts(b, ";\n");
}

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    const Pointwise *w = c->op->detail;
    const OpTensor *y = &c->result[0];
    const char *type = compute_type(c);
    Buffer *b = out->source;
    double p[OP_MAX_ARGS];
    if (!text_each(out, c, "pointwise", NULL, op_elements(y), err)) return -1;
    parameters(c, p);
    for (int i = w->operands; i < c->n_args; i++) {
        buffer_printf(b, "    const %s p%d = (%s)", type, i - w->operands, type);
        text_number(b, p[i - w->operands]);
        buffer_puts(b, ";\n");
    }
    for (int i = 0; i < w->operands; i++) load(b, c, i, type);
    buffer_puts(b, "    y0[");
    text_index(b, y, y->rank, y->size, "i");
    buffer_printf(b, "] = (%s)(%s);\n", op_dtype_ctype(y->dtype), w->cuda);
    return text_each_end(out, err);
}

#define ROW(aten, schema_text, function, text, operands, rule, refused, op_flags)              \
    {                                                                                          \
        "aten." aten, schema_text, infer, reference, plain, NULL, op_flags, &(const Pointwise) \
        {                                                                                      \
            function, text, operands, rule, refused                                            \
        }                                                                                      \
    }

#define BINARY "Operand self, Operand other"
#define ALPHA BINARY ", *, Scalar alpha=1"
#define UNARY "Tensor self"
#define CLAMP_TEXT "a < p0 ? p0 : a > p1 ? p1 : a"
#define TANH_TEXT "0.5f * a * (1 + tanh(0.7978845608028654f * (a + 0.044715f * a * a * a)))"
#define SOFTPLUS_TEXT "(a > 0 ? a : 0) + log1p(exp(-fabs(a)))"

static const Op table[] = {
    ROW("add.Tensor", ALPHA, f_add, "a + p0 * b", 2, RESULT_PROMOTED, NULL, 0),
    ROW("add_.Tensor", ALPHA, f_add, "a + p0 * b", 2, RESULT_PROMOTED, NULL, OP_IN_PLACE),
    ROW("sub.Tensor", ALPHA, f_sub, "a - p0 * b", 2, RESULT_PROMOTED, NULL, 0),
    ROW("rsub.Scalar", "Tensor self, Scalar other, Scalar alpha=1", f_rsub, "p0 - p1 * a", 1,
        RESULT_PROMOTED, NULL, 0),
    ROW("mul.Tensor", BINARY, f_mul, "a * b", 2, RESULT_PROMOTED, NULL, 0),
    ROW("multiply.Tensor", BINARY, f_mul, "a * b", 2, RESULT_PROMOTED, NULL, 0),
    ROW("div.Tensor", BINARY, f_div, "a / b", 2, RESULT_FLOAT, NULL, 0),
    ROW("relu.default", UNARY, f_relu, "a < 0 ? 0 : a", 1, RESULT_SELF, NULL, 0),
    ROW("relu_.default", UNARY, f_relu, "a < 0 ? 0 : a", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("sigmoid.default", UNARY, f_sigmoid, "1 / (1 + exp(-a))", 1, RESULT_FLOAT, NULL, 0),
    ROW("tanh.default", UNARY, f_tanh, "tanh(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("gelu.default", "Tensor self, *, str approximate=none", f_gelu,
        "p0 != 0 ? " TANH_TEXT " : 0.5f * a * (1 + erf(a * 0.7071067811865476f))", 1, RESULT_SELF,
        NULL, 0),
    ROW("abs.default", UNARY, f_abs, "a < 0 ? -a : a", 1, RESULT_SELF, NULL, 0),
    ROW("sqrt.default", UNARY, f_sqrt, "sqrt(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("log.default", UNARY, f_log, "log(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("clamp.default", "Tensor self, Scalar? min=None, Scalar? max=None", f_clamp, CLAMP_TEXT, 1,
        RESULT_PROMOTED, NULL, 0),
    ROW("clamp_min.default", "Tensor self, Scalar min", f_clamp_min, "a < p0 ? p0 : a", 1,
        RESULT_PROMOTED, NULL, 0),
    ROW("leaky_relu.default", "Tensor self, Scalar negative_slope=0.01", f_leaky_relu,
        "a > 0 ? a : a * p0", 1, RESULT_SELF, NULL, 0),
    ROW("mish.default", UNARY, f_mish, "a * tanh(" SOFTPLUS_TEXT ")", 1, RESULT_SELF, NULL, 0),
    ROW("hardtanh.default", "Tensor self, Scalar min_val=-1, Scalar max_val=1", f_clamp, CLAMP_TEXT,
        1, RESULT_SELF, NULL, 0),
    ROW("hardtanh_.default", "Tensor self, Scalar min_val=-1, Scalar max_val=1", f_clamp,
        CLAMP_TEXT, 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("hardswish.default", UNARY, f_hardswish, "a * (a < -3 ? 0 : a > 3 ? 6 : a + 3) / 6", 1,
        RESULT_SELF, NULL, 0),
    ROW("hardsigmoid.default", UNARY, f_hardsigmoid, "(a < -3 ? 0 : a > 3 ? 6 : a + 3) / 6", 1,
        RESULT_SELF, NULL, 0),
    ROW("elu.default",
        "Tensor self, Scalar alpha=1, Scalar scale=1, "
        "Scalar input_scale=1",
        f_elu, "a > 0 ? a * p1 : expm1(a * p2) * p0 * p1", 1, RESULT_SELF, NULL, 0),
    ROW("selu.default", UNARY, f_selu,
        "1.0507009873554805f * (a > 0 ? a : "
        "1.6732632423543772f * expm1(a))",
        1, RESULT_SELF, NULL, 0),
    ROW("softplus.default", "Tensor self, Scalar beta=1, Scalar threshold=20", f_softplus,
        "a * p0 > p1 ? a : log1p(exp(a * p0)) / p0", 1, RESULT_SELF, NULL, 0),
    ROW("pow.Tensor_Scalar", "Tensor self, Scalar exponent", f_pow, "pow(a, p0)", 1,
        RESULT_PROMOTED, NULL, 0),
    ROW("min.other", "Tensor self, Tensor other", f_min, "a != a || a < b ? a : b", 2,
        RESULT_PROMOTED, NULL, 0),
    ROW("eq.Scalar", "Tensor self, Scalar other", f_eq, "a == p0", 1, RESULT_BOOL, NULL, 0),
    ROW("masked_fill.Scalar", "Tensor self, Tensor mask, Scalar value", f_masked_fill,
        "b != 0 ? p0 : a", 2, RESULT_SELF, NULL, 0),
    ROW("dropout.default", "Tensor input, float p, bool train", f_self, "a", 1, RESULT_SELF,
        "train", OP_VIEW),
    ROW("copy_.default", "Tensor self, Tensor src, bool non_blocking=False", f_other, "b", 2,
        RESULT_SELF, NULL, OP_IN_PLACE),
};

OpFamily pointwise_family(void)
{
    return (OpFamily){table, (int)(sizeof table / sizeof *table)};
}
