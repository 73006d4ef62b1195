/* Arithmetic of two and three operands, comparisons, selection. */
#include <math.h>

#include "ops/op_pointwise.h"

POINT(f_mul_scalar, a *p[0])
POINT(f_mul_tensor, a *b)
POINT(f_add_scalar, a + p[1] * p[0])
POINT(f_sub_scalar, a - p[1] * p[0])
POINT(f_sub_tensor, a - p[0] * b)
POINT(f_rsub_tensor, b - p[0] * a)
POINT(f_div_scalar, a / p[0])
POINT(f_div_tensor, a / b)
POINT(f_maximum, isnan(a) || a > b ? a : b)
POINT(f_minimum, isnan(a) || a < b ? a : b)
POINT(f_pow_tensor_tensor, pow(a, b))
POINT(f_atan2, atan2(a, b))
POINT(f_where_self, a != 0 ? b : c)
POINT(f_addcmul, a + p[0] * b * c)
POINT(f_addcdiv, a + p[0] * b / c)
POINT(f_lerp_scalar, p[0] < 0.5 ? a + p[0] * (b - a) : b - (b - a) * (1 - p[0]))
POINT(f_clamp_tensor, (a < b ? b : a) > c ? c : (a < b ? b : a))
POINT(f_masked_fill_scalar, b != 0 ? p[0] : a)
POINT(f_fill_scalar, p[0])
POINT(f_eq_tensor, a == b)
POINT(f_ne_tensor, a != b)
POINT(f_lt_tensor, a < b)
POINT(f_gt_tensor, a > b)
POINT(f_le_tensor, a <= b)
POINT(f_ge_tensor, a >= b)
POINT(f_ne_scalar, a != p[0])
POINT(f_lt_scalar, a < p[0])
POINT(f_gt_scalar, a > p[0])
POINT(f_le_scalar, a <= p[0])
POINT(f_ge_scalar, a >= p[0])
POINT(f_logical_and, a != 0 && b != 0)
POINT(f_logical_or, a != 0 || b != 0)
POINT(f_logical_not, a == 0)

/* Of numbers it would be another operation. */
static int infer_bitwise_not(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    if (x && x->dtype != OP_B8)
        return error_set(err, ERROR_UNSUPPORTED, "expected bool, found %s",
                         op_dtype_name(x->dtype));
    return pointwise_infer(c, err);
}

static const Pointwise bitwise_not = {run_f_logical_not, "a == 0", 1, RESULT_BOOL, NULL};

#define ROW(aten, ...) POINTWISE("aten." aten, __VA_ARGS__)
#define BINARY "Operand self, Operand other"
#define TENSORS "Tensor self, Tensor other"

static const Op table[] = {
    ROW("mul.Scalar", "Tensor self, Scalar other", f_mul_scalar, "a * p0", 1, RESULT_PROMOTED, NULL,
        0),
    ROW("mul_.Tensor", BINARY, f_mul_tensor, "a * b", 2, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("add.Scalar", "Tensor self, Scalar other, Scalar alpha=1", f_add_scalar, "a + p1 * p0", 1,
        RESULT_PROMOTED, NULL, 0),
    ROW("sub.Scalar", "Tensor self, Scalar other, Scalar alpha=1", f_sub_scalar, "a - p1 * p0", 1,
        RESULT_PROMOTED, NULL, 0),
    ROW("sub_.Tensor", BINARY ", *, Scalar alpha=1", f_sub_tensor, "a - p0 * b", 2, RESULT_SELF,
        NULL, OP_IN_PLACE),
    ROW("rsub.Tensor", "Tensor self, Tensor other, *, Scalar alpha=1", f_rsub_tensor, "b - p0 * a",
        2, RESULT_PROMOTED, NULL, 0),
    ROW("div.Scalar", "Tensor self, Scalar other", f_div_scalar, "a / p0", 1, RESULT_FLOAT, NULL,
        0),
    ROW("div_.Tensor", BINARY, f_div_tensor, "a / b", 2, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("divide.Tensor", BINARY, f_div_tensor, "a / b", 2, RESULT_FLOAT, NULL, 0),
    ROW("maximum.default", TENSORS, f_maximum, "a != a || a > b ? a : b", 2, RESULT_PROMOTED, NULL,
        0),
    ROW("minimum.default", TENSORS, f_minimum, "a != a || a < b ? a : b", 2, RESULT_PROMOTED, NULL,
        0),
    ROW("max.other", TENSORS, f_maximum, "a != a || a > b ? a : b", 2, RESULT_PROMOTED, NULL, 0),
    ROW("pow.Tensor_Tensor", TENSORS, f_pow_tensor_tensor, "pow(a, b)", 2, RESULT_PROMOTED, NULL,
        0),
    ROW("pow.Scalar", "Scalar self, Tensor exponent", f_pow_tensor_tensor, "pow(a, b)", 2,
        RESULT_PROMOTED, NULL, 0),
    ROW("atan2.default", TENSORS, f_atan2, "atan2(a, b)", 2, RESULT_FLOAT, NULL, 0),
    ROW("where.self", "Tensor condition, Operand self, Operand other", f_where_self,
        "a != 0 ? b : c", 3, RESULT_OTHERS, NULL, 0),
    ROW("addcmul.default", "Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1",
        f_addcmul, "a + p0 * b * c", 3, RESULT_PROMOTED, NULL, 0),
    ROW("addcdiv.default", "Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1",
        f_addcdiv, "a + p0 * b / c", 3, RESULT_PROMOTED, NULL, 0),
    ROW("lerp.Scalar", "Tensor self, Tensor end, Scalar weight", f_lerp_scalar,
        "p0 < 0.5f ? a + p0 * (b - a) : b - (b - a) * (1 - p0)", 2, RESULT_SELF, NULL, 0),
    ROW("clamp.Tensor", "Tensor self, Tensor? min=None, Tensor? max=None", f_clamp_tensor,
        "(a < b ? b : a) > c ? c : (a < b ? b : a)", 3, RESULT_PROMOTED, NULL, 0),
    ROW("masked_fill_.Scalar", "Tensor self, Tensor mask, Scalar value", f_masked_fill_scalar,
        "b != 0 ? p0 : a", 2, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("fill_.Scalar", "Tensor self, Scalar value", f_fill_scalar, "p0", 1, RESULT_SELF, NULL,
        OP_IN_PLACE),
    ROW("eq.Tensor", TENSORS, f_eq_tensor, "a == b", 2, RESULT_BOOL, NULL, 0),
    ROW("ne.Tensor", TENSORS, f_ne_tensor, "a != b", 2, RESULT_BOOL, NULL, 0),
    ROW("lt.Tensor", TENSORS, f_lt_tensor, "a < b", 2, RESULT_BOOL, NULL, 0),
    ROW("gt.Tensor", TENSORS, f_gt_tensor, "a > b", 2, RESULT_BOOL, NULL, 0),
    ROW("le.Tensor", TENSORS, f_le_tensor, "a <= b", 2, RESULT_BOOL, NULL, 0),
    ROW("ge.Tensor", TENSORS, f_ge_tensor, "a >= b", 2, RESULT_BOOL, NULL, 0),
    ROW("ne.Scalar", "Tensor self, Scalar other", f_ne_scalar, "a != p0", 1, RESULT_BOOL, NULL, 0),
    ROW("lt.Scalar", "Tensor self, Scalar other", f_lt_scalar, "a < p0", 1, RESULT_BOOL, NULL, 0),
    ROW("gt.Scalar", "Tensor self, Scalar other", f_gt_scalar, "a > p0", 1, RESULT_BOOL, NULL, 0),
    ROW("le.Scalar", "Tensor self, Scalar other", f_le_scalar, "a <= p0", 1, RESULT_BOOL, NULL, 0),
    ROW("ge.Scalar", "Tensor self, Scalar other", f_ge_scalar, "a >= p0", 1, RESULT_BOOL, NULL, 0),
    ROW("logical_and.default", TENSORS, f_logical_and, "a != 0 && b != 0", 2, RESULT_BOOL, NULL, 0),
    ROW("logical_or.default", TENSORS, f_logical_or, "a != 0 || b != 0", 2, RESULT_BOOL, NULL, 0),
    ROW("logical_not.default", "Tensor self", f_logical_not, "a == 0", 1, RESULT_BOOL, NULL, 0),
    {"aten.bitwise_not.default", "Tensor self", infer_bitwise_not, pointwise_reference,
     pointwise_plain, pointwise_cost, 0, &bitwise_not, NULL},
};

OpFamily compare_family(void)
{
    return (OpFamily){"compare", table, (int)(sizeof table / sizeof *table)};
}
