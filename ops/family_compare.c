/* Arithmetic of two and three operands, comparisons, selection. */
#include <math.h>

#include "ops/op_pointwise.h"

/* With the sign of the divisor. */
static double remainder_of(double a, double b)
{
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* single: the type is float or shorter. The floor is exact; the truncation rounds the quotient to the type
 * first. */
static double rounded_quotient(double a, double b, double truncated, double single)
{
    if (single != 0) a = (double)(float)a, b = (double)(float)b;
    if (truncated == 0) return floor(a / b);
    return trunc(single != 0 ? (double)((float)a / (float)b) : a / b);
}

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
POINT(f_lerp_tensor, c < 0.5 ? a + c * (b - a) : b - (b - a) * (1 - c))
POINT(f_lerp_scalar, p[0] < 0.5 ? a + p[0] * (b - a) : b - (b - a) * (1 - p[0]))
POINT(f_clamp_tensor, (a < b ? b : a) > c ? c : (a < b ? b : a))
POINT(f_masked_fill_scalar, b != 0 ? p[0] : a)
POINT(f_masked_fill_tensor, b != 0 ? c : a)
POINT(f_fill_scalar, p[0])
POINT(f_zero, 0 * p[0])
POINT(f_logical_xor, (a != 0) != (b != 0))
POINT(f_remainder, remainder_of(a, b))
POINT(f_remainder_scalar, remainder_of(a, p[0]))
POINT(f_fmod, fmod(a, b))
POINT(f_fmod_scalar, fmod(a, p[0]))
POINT(f_floor_divide, rounded_quotient(a, b, 0, p[1]))
POINT(f_hypot, hypot(a, b))
POINT(f_fmax, fmax(a, b))
POINT(f_fmin, fmin(a, b))
POINT(f_copysign, copysign(a, b))
POINT(f_copysign_scalar, copysign(a, p[0]))
POINT(f_heaviside, a == 0 ? b : a > 0)
POINT(f_div_mode, rounded_quotient(a, b, p[0], p[1]))
POINT(f_logaddexp, a == b && isinf(a) ? a : (a > b ? a : b) + log1p(exp(-fabs(a - b))))
POINT(f_and, (double)((int64_t)a &(int64_t)b))
POINT(f_or, (double)((int64_t)a | (int64_t)b))
POINT(f_xor, (double)((int64_t)a ^ (int64_t)b))
POINT(f_shift_left, (double)((int64_t)a << (int64_t)b))
POINT(f_shift_right, (double)((int64_t)a >> (int64_t)b))
POINT(f_shift_left_by, b<0 || b> 63 ? 0 : (double)(int64_t)((uint64_t)(int64_t)a << (int64_t)b))
POINT(f_shift_right_by, (double)((int64_t)a >> (b < 0 || b > 63 ? 63 : (int64_t)b)))
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
    if (x && x->dtype != DTYPE_B8)
        return error_set(err, ERROR_UNSUPPORTED, "expected bool, found %s", dtype_name(x->dtype));
    return pointwise_infer(c, err);
}

static const Pointwise bitwise_not = {run_f_logical_not, "a == 0", 1, RESULT_BOOL, NULL};

/* Of whole numbers: others have no bits in ATen. */
static int infer_bits(OpCall *c, Error *err)
{
    for (int i = 0; i < 2; i++) {
        const OpTensor *x = op_tensor(c, i);
        if (x ? dtype_is_float(x->dtype) : c->arg[i].kind == OP_FLOAT)
            return error_set(err, ERROR_INVALID, "expected whole numbers, found %s",
                             x ? dtype_name(x->dtype) : "a float");
    }
    return pointwise_infer(c, err);
}

/* A shift by more bits than a number has is another one on each device. */
static int infer_shift(OpCall *c, Error *err)
{
    if (op_tensor(c, 0)->dtype == DTYPE_B8)
        return error_set(err, ERROR_UNSUPPORTED, "a shift of bool is not supported");
    if (c->arg[1].number < 0 || c->arg[1].number > 31)
        return error_set(err, ERROR_UNSUPPORTED, "expected a shift by 0 to 31 bits, found %g",
                         c->arg[1].number);
    return infer_bits(c, err);
}

/* By amounts that a tensor has. */
static int infer_shift_by(OpCall *c, Error *err)
{
    if (op_tensor(c, 0)->dtype == DTYPE_B8)
        return error_set(err, ERROR_UNSUPPORTED, "a shift of bool is not supported");
    return infer_bits(c, err);
}

#define ROW(aten, ...) POINTWISE("aten." aten, __VA_ARGS__)
#define BINARY "Operand self, Operand other"
#define TENSORS "Tensor self, Tensor other"

#define BITS(aten, schema, infer, function, text)                                             \
    {                                                                                         \
        "aten." aten, schema, infer, pointwise_reference, pointwise_plain, pointwise_cost, 0, \
            &(const Pointwise){run_##function, text, 2, RESULT_PROMOTED, NULL}, NULL,         \
            &pointwise_elements                                                               \
    }
#define LOGIC(aten, function, text)                            \
    BITS(aten ".Tensor", TENSORS, infer_bits, function, text), \
        BITS(aten ".Scalar", WITH_SCALAR, infer_bits, function, text)
#define SHIFT(aten, function, text) BITS(aten, WITH_SCALAR, infer_shift, function, text)
#define SHIFT_BY(aten, function, text) BITS(aten, TENSORS, infer_shift_by, function, text)
#define WITH_SCALAR "Tensor self, Scalar other"
#define AND_TEXT "(long long)a & (long long)b"
#define OR_TEXT "(long long)a | (long long)b"
#define XOR_TEXT "(long long)a ^ (long long)b"
#define LEFT_TEXT "(long long)a << (int)b"
#define RIGHT_TEXT "(long long)a >> (int)b"
/* By too many bits nothing or the sign is left. */
#define LEFT_BY_TEXT "b < 0 || b > 63 ? 0 : (long long)((unsigned long long)a << (int)b)"
#define RIGHT_BY_TEXT "(long long)a >> (b < 0 || b > 63 ? 63 : (int)b)"
/* A factor of 1.0f makes whole numbers floating-point ones, of which fmod is not ambiguous. */
#define FMOD_TEXT(b) "fmod(a, 1.0f * " b ")"
#define REMAINDER_TEXT(b) \
    FMOD_TEXT(b)          \
    " != 0 && (" FMOD_TEXT(b) " < 0) != (" b " < 0) ? " FMOD_TEXT(b) " + " b " : " FMOD_TEXT(b)
/* The remainder is subtracted before the division, as in eager PyTorch, so that the quotient is whole. */
#define FLOOR_TEXT "b == 0 ? a / (b + 0.0f) : rint((a - (" REMAINDER_TEXT("b") ")) / (b + 0.0f))"
#define DIV_TEXT "p0 != 0 ? trunc(a / (b + 0.0f)) : " FLOOR_TEXT
#define WHOLE_REMAINDER(b) \
    "a % " b " != 0 && (a % " b " < 0) != (" b " < 0) ? a % " b " + " b " : a % " b
#define WHOLE_FLOOR "(a - (" WHOLE_REMAINDER("b") ")) / b"
#define REST(aten, schema, function, n_operands, text, whole_text)                   \
    {                                                                                \
        "aten." aten, schema, pointwise_infer, pointwise_reference, pointwise_plain, \
            pointwise_cost, 0,                                                       \
            &(const Pointwise){.f = run_##function,                                  \
                               .cuda = text,                                         \
                               .operands = n_operands,                               \
                               .rule = RESULT_PROMOTED,                              \
                               .whole = whole_text},                                 \
            NULL, &pointwise_elements                                                \
    }
#define DIVISION(aten, schema, detail)                                                             \
    {                                                                                              \
        "aten." aten, schema, infer_rounded, pointwise_reference, pointwise_plain, pointwise_cost, \
            0, &detail, NULL, &pointwise_elements                                                  \
    }
#define LERP_TEXT(w) w " < 0.5f ? a + " w " * (b - a) : b - (b - a) * (1 - " w ")"

/* Rounded divisions jump, so numbers are those of the arithmetic's type. A mode comes first. */
static void round_numbers(const OpCall *c, double *p)
{
    p[1] = c->result[0].dtype != DTYPE_F64;
}

/* Without a mode it is a division, which has another type. */
static int infer_rounded(OpCall *c, Error *err)
{
    if (c->n_args > 2 && c->arg[2].kind == OP_NONE)
        return error_set(err, ERROR_UNSUPPORTED, "a division without rounding is aten.div.Tensor");
    return pointwise_infer(c, err);
}

static const Pointwise floor_division = {.f = run_f_floor_divide,
                                         .cuda = FLOOR_TEXT,
                                         .operands = 2,
                                         .rule = RESULT_PROMOTED,
                                         .fill = round_numbers,
                                         .whole = WHOLE_FLOOR},
                       rounded_division = {.f = run_f_div_mode,
                                           .cuda = DIV_TEXT,
                                           .operands = 2,
                                           .rule = RESULT_PROMOTED,
                                           .fill = round_numbers,
                                           .modes = " floor trunc ",
                                           .whole = "p0 != 0 ? a / b : " WHOLE_FLOOR};

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
    ROW("lerp.Scalar", "Tensor self, Tensor end, Scalar weight", f_lerp_scalar, LERP_TEXT("p0"), 2,
        RESULT_SELF, NULL, 0),
    ROW("lerp.Tensor", "Tensor self, Tensor end, Operand weight", f_lerp_tensor, LERP_TEXT("c"), 3,
        RESULT_SELF, NULL, 0),
    ROW("lerp_.Scalar", "Tensor self, Tensor end, Scalar weight", f_lerp_scalar, LERP_TEXT("p0"), 2,
        RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("addcmul_.default", "Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1",
        f_addcmul, "a + p0 * b * c", 3, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("addcdiv_.default", "Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1",
        f_addcdiv, "a + p0 * b / c", 3, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("masked_fill.Tensor", "Tensor self, Tensor mask, Operand value", f_masked_fill_tensor,
        "b != 0 ? c : a", 3, RESULT_SELF, NULL, 0),
    ROW("zero_.default", "Tensor self", f_zero, "0", 1, RESULT_SELF, NULL, OP_IN_PLACE),
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
    ROW("logical_xor.default", TENSORS, f_logical_xor, "(a != 0) != (b != 0)", 2, RESULT_BOOL, NULL,
        0),
    REST("remainder.Tensor", TENSORS, f_remainder, 2, REMAINDER_TEXT("b"), WHOLE_REMAINDER("b")),
    REST("remainder.Scalar", WITH_SCALAR, f_remainder_scalar, 1, REMAINDER_TEXT("p0"),
         WHOLE_REMAINDER("p0")),
    REST("fmod.Tensor", TENSORS, f_fmod, 2, FMOD_TEXT("b"), "a % b"),
    REST("fmod.Scalar", WITH_SCALAR, f_fmod_scalar, 1, FMOD_TEXT("p0"), "a % p0"),
    DIVISION("floor_divide.default", BINARY, floor_division),
    DIVISION("floor_divide.Scalar", WITH_SCALAR, floor_division),
    ROW("fmax.default", TENSORS, f_fmax, "a != a || b > a ? b : a", 2, RESULT_PROMOTED, NULL, 0),
    ROW("fmin.default", TENSORS, f_fmin, "a != a || b < a ? b : a", 2, RESULT_PROMOTED, NULL, 0),
    ROW("copysign.Tensor", TENSORS, f_copysign, "copysign(a, b)", 2, RESULT_FLOAT, NULL, 0),
    ROW("copysign.Scalar", WITH_SCALAR, f_copysign_scalar, "copysign(a, p0)", 1, RESULT_FLOAT, NULL,
        0),
    ROW("heaviside.default", "Tensor self, Tensor values", f_heaviside, "a == 0 ? b : a > 0", 2,
        RESULT_PROMOTED, NULL, 0),
    DIVISION("div.Tensor_mode", BINARY ", *, str? rounding_mode", rounded_division),
    ROW("hypot.default", TENSORS, f_hypot, "hypot(a, b)", 2, RESULT_PROMOTED, NULL, 0),
    ROW("logaddexp.default", TENSORS, f_logaddexp,
        "a == b && a - a != 0 ? a : (a > b ? a : b) + log1p(exp(a > b ? b - a : a - b))", 2,
        RESULT_PROMOTED, NULL, 0),
    LOGIC("bitwise_and", f_and, AND_TEXT),
    LOGIC("bitwise_or", f_or, OR_TEXT),
    LOGIC("bitwise_xor", f_xor, XOR_TEXT),
    LOGIC("__and__", f_and, AND_TEXT),
    LOGIC("__or__", f_or, OR_TEXT),
    LOGIC("__xor__", f_xor, XOR_TEXT),
    SHIFT("bitwise_left_shift.Tensor_Scalar", f_shift_left, LEFT_TEXT),
    SHIFT("bitwise_right_shift.Tensor_Scalar", f_shift_right, RIGHT_TEXT),
    SHIFT("__lshift__.Scalar", f_shift_left, LEFT_TEXT),
    SHIFT("__rshift__.Scalar", f_shift_right, RIGHT_TEXT),
    SHIFT_BY("bitwise_left_shift.Tensor", f_shift_left_by, LEFT_BY_TEXT),
    SHIFT_BY("bitwise_right_shift.Tensor", f_shift_right_by, RIGHT_BY_TEXT),
    SHIFT_BY("__lshift__.Tensor", f_shift_left_by, LEFT_BY_TEXT),
    SHIFT_BY("__rshift__.Tensor", f_shift_right_by, RIGHT_BY_TEXT),
    ROW("logical_not.default", "Tensor self", f_logical_not, "a == 0", 1, RESULT_BOOL, NULL, 0),
    {"aten.bitwise_not.default", "Tensor self", infer_bitwise_not, pointwise_reference,
     pointwise_plain, pointwise_cost, 0, &bitwise_not, NULL, &pointwise_elements},
};

const OpFamily compare_family = {"compare", table, sizeof table / sizeof *table};
