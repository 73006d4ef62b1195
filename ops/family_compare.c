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

POINT(f_logical_not, a == 0)
POINT(f_floor_divide, rounded_quotient(a, b, 0, p[1]))
POINT(f_div_mode, rounded_quotient(a, b, p[0], p[1]))
POINT(f_remainder, remainder_of(a, b))
POINT(f_remainder_scalar, remainder_of(a, p[0]))
POINT(f_fmod, fmod(a, b))
POINT(f_fmod_scalar, fmod(a, p[0]))
POINT(f_and, (double)((int64_t)a &(int64_t)b))
POINT(f_or, (double)((int64_t)a | (int64_t)b))
POINT(f_xor, (double)((int64_t)a ^ (int64_t)b))
POINT(f_shift_left, (double)((int64_t)a << (int64_t)b))
POINT(f_shift_right, (double)((int64_t)a >> (int64_t)b))
POINT(f_shift_left_by, b<0 || b> 63 ? 0 : (double)(int64_t)((uint64_t)(int64_t)a << (int64_t)b))
POINT(f_shift_right_by, (double)((int64_t)a >> (b < 0 || b > 63 ? 63 : (int64_t)b)))

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

/* clang-format off */
#define OPERATORS(NEW, BOTH, PLACE) \
    NEW(mul, Scalar, "Tensor self, Scalar other", 1, PROMOTED, "a * p0", a * p[0]) \
    PLACE(mul_, Tensor, BINARY, 2, "a * b", a * b) \
    NEW(add, Scalar, "Tensor self, Scalar other, Scalar alpha=1", 1, PROMOTED, "a + p1 * p0", \
      a + p[1] * p[0]) \
    NEW(sub, Scalar, "Tensor self, Scalar other, Scalar alpha=1", 1, PROMOTED, "a - p1 * p0", \
      a - p[1] * p[0]) \
    PLACE(sub_, Tensor, BINARY ", *, Scalar alpha=1", 2, "a - p0 * b", a - p[0] * b) \
    NEW(rsub, Tensor, "Tensor self, Tensor other, *, Scalar alpha=1", 2, PROMOTED, "b - p0 * a", \
      b - p[0] * a) \
    NEW(div, Scalar, "Tensor self, Scalar other", 1, FLOAT, "a / p0", a / p[0]) \
    PLACE(div_, Tensor, BINARY, 2, "a / b", a / b) \
    NEW(divide, Tensor, BINARY, 2, FLOAT, "a / b", a / b) \
    NEW(maximum, default, TENSORS, 2, PROMOTED, "a != a || a > b ? a : b", isnan(a) || a > b ? a : b) \
    NEW(minimum, default, TENSORS, 2, PROMOTED, "a != a || a < b ? a : b", isnan(a) || a < b ? a : b) \
    NEW(max, other, TENSORS, 2, PROMOTED, "a != a || a > b ? a : b", isnan(a) || a > b ? a : b) \
    NEW(pow, Tensor_Tensor, TENSORS, 2, PROMOTED, "pow(a, b)", pow(a, b)) \
    NEW(pow, Scalar, "Scalar self, Tensor exponent", 2, PROMOTED, "pow(a, b)", pow(a, b)) \
    NEW(atan2, default, TENSORS, 2, FLOAT, "atan2(a, b)", atan2(a, b)) \
    NEW(where, self, "Tensor condition, Operand self, Operand other", 3, OTHERS, "a != 0 ? b : c", \
      a != 0 ? b : c) \
    BOTH(addcmul, default, "Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1", 3, PROMOTED, \
      "a + p0 * b * c", a + p[0] * b * c) \
    BOTH(addcdiv, default, "Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1", 3, PROMOTED, \
      "a + p0 * b / c", a + p[0] * b / c) \
    BOTH(lerp, Scalar, "Tensor self, Tensor end, Scalar weight", 2, SELF, LERP_TEXT("p0"), \
      p[0] < 0.5 ? a + p[0] * (b - a) : b - (b - a) * (1 - p[0])) \
    NEW(lerp, Tensor, "Tensor self, Tensor end, Operand weight", 3, SELF, LERP_TEXT("c"), \
      c < 0.5 ? a + c * (b - a) : b - (b - a) * (1 - c)) \
    NEW(masked_fill, Tensor, "Tensor self, Tensor mask, Operand value", 3, SELF, "b != 0 ? c : a", \
      b != 0 ? c : a) \
    PLACE(zero_, default, "Tensor self", 1, "0", 0 * p[0]) \
    NEW(clamp, Tensor, "Tensor self, Tensor? min=None, Tensor? max=None", 3, PROMOTED, \
      "(a < b ? b : a) > c ? c : (a < b ? b : a)", (a < b ? b : a) > c ? c : (a < b ? b : a)) \
    PLACE(masked_fill_, Scalar, "Tensor self, Tensor mask, Scalar value", 2, "b != 0 ? p0 : a", \
      b != 0 ? p[0] : a) \
    PLACE(fill_, Scalar, "Tensor self, Scalar value", 1, "p0", p[0]) \
    NEW(eq, Tensor, TENSORS, 2, BOOL, "a == b", a == b) \
    NEW(ne, Tensor, TENSORS, 2, BOOL, "a != b", a != b) \
    NEW(lt, Tensor, TENSORS, 2, BOOL, "a < b", a < b) \
    NEW(gt, Tensor, TENSORS, 2, BOOL, "a > b", a > b) \
    NEW(le, Tensor, TENSORS, 2, BOOL, "a <= b", a <= b) \
    NEW(ge, Tensor, TENSORS, 2, BOOL, "a >= b", a >= b) \
    NEW(ne, Scalar, "Tensor self, Scalar other", 1, BOOL, "a != p0", a != p[0]) \
    NEW(lt, Scalar, "Tensor self, Scalar other", 1, BOOL, "a < p0", a < p[0]) \
    NEW(gt, Scalar, "Tensor self, Scalar other", 1, BOOL, "a > p0", a > p[0]) \
    NEW(le, Scalar, "Tensor self, Scalar other", 1, BOOL, "a <= p0", a <= p[0]) \
    NEW(ge, Scalar, "Tensor self, Scalar other", 1, BOOL, "a >= p0", a >= p[0]) \
    NEW(logical_and, default, TENSORS, 2, BOOL, "a != 0 && b != 0", a != 0 && b != 0) \
    NEW(logical_or, default, TENSORS, 2, BOOL, "a != 0 || b != 0", a != 0 || b != 0) \
    NEW(logical_xor, default, TENSORS, 2, BOOL, "(a != 0) != (b != 0)", (a != 0) != (b != 0)) \
    NEW(fmax, default, TENSORS, 2, PROMOTED, "a != a || b > a ? b : a", fmax(a, b)) \
    NEW(fmin, default, TENSORS, 2, PROMOTED, "a != a || b < a ? b : a", fmin(a, b)) \
    NEW(copysign, Tensor, TENSORS, 2, FLOAT, "copysign(a, b)", copysign(a, b)) \
    NEW(copysign, Scalar, WITH_SCALAR, 1, FLOAT, "copysign(a, p0)", copysign(a, p[0])) \
    NEW(heaviside, default, "Tensor self, Tensor values", 2, PROMOTED, "a == 0 ? b : a > 0", \
      a == 0 ? b : a > 0) \
    NEW(hypot, default, TENSORS, 2, PROMOTED, "hypot(a, b)", hypot(a, b)) \
    NEW(logaddexp, default, TENSORS, 2, PROMOTED, \
      "a == b && a - a != 0 ? a : (a > b ? a : b) + log1p(exp(a > b ? b - a : a - b))", \
      a == b && isinf(a) ? a : (a > b ? a : b) + log1p(exp(-fabs(a - b)))) \
    NEW(logical_not, default, "Tensor self", 1, BOOL, "a == 0", a == 0)
/* clang-format on */

OPERATORS(POINT_NEW, POINT_NEW, POINT_PLACE)

static const Op table[] = {
    OPERATORS(ROW_NEW, ROW_BOTH, ROW_PLACE) REST("remainder.Tensor", TENSORS, f_remainder, 2,
                                                 REMAINDER_TEXT("b"), WHOLE_REMAINDER("b")),
    REST("remainder.Scalar", WITH_SCALAR, f_remainder_scalar, 1, REMAINDER_TEXT("p0"),
         WHOLE_REMAINDER("p0")),
    REST("fmod.Tensor", TENSORS, f_fmod, 2, FMOD_TEXT("b"), "a % b"),
    REST("fmod.Scalar", WITH_SCALAR, f_fmod_scalar, 1, FMOD_TEXT("p0"), "a % p0"),
    DIVISION("floor_divide.default", BINARY, floor_division),
    DIVISION("floor_divide.Scalar", WITH_SCALAR, floor_division),
    DIVISION("div.Tensor_mode", BINARY ", *, str? rounding_mode", rounded_division),
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
    {"aten.bitwise_not.default", "Tensor self", infer_bitwise_not, pointwise_reference,
     pointwise_plain, pointwise_cost, 0, &bitwise_not, NULL, &pointwise_elements},
};

const OpFamily compare_family = {"compare", table, sizeof table / sizeof *table};
