/* Operators found by name, arguments bound by schema, and pointwise references against torch's
 * double results in tests/fixtures/ops (made by tools/ops_fixtures.py). */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ops/op.h"
#include "tests/fixture_path.h"

/* splitmix64 of (seed, index), 24 bits to [-2, 2): tools/ops_fixtures.py draws the same. */
static double drawn(uint64_t seed, uint64_t i)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + (i + 1) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)(z >> 40) * 0x1p-22 - 2;
}

static OpValue value_of(OpCall *c, const json_t *j, double **in)
{
    OpValue v = {0};
    if (json_is_object(j)) {
        const json_t *shape = json_object_get(j, "shape");
        OpTensor t = {.dtype = OP_F64, .rank = (int)json_array_size(shape)};
        for (int d = 0; d < t.rank; d++)
            t.size[d] = json_integer_value(json_array_get(shape, (size_t)d));
        op_contiguous(&t);
        const char *draw = json_string_value(json_object_get(j, "draw"));
        if (!strcmp(draw, "mask")) t.dtype = OP_B8;
        uint64_t seed = (uint64_t)json_integer_value(json_object_get(j, "seed"));
        v.kind = OP_TENSOR;
        v.integer[0] = op_call_tensor(c, &t, NULL);
        assert_true(v.integer[0] >= 0);
        int64_t n = op_elements(&t);
        in[v.integer[0]] = malloc((size_t)(n ? n : 1) * sizeof(double));
        for (int64_t i = 0; i < n; i++) {
            double x = drawn(seed, (uint64_t)i);
            if (!strcmp(draw, "positive")) x = fabs(x) + 0.125;
            if (!strcmp(draw, "mask")) x = x > 0;
            in[v.integer[0]][i] = x;
        }
    } else if (json_is_string(j)) {
        v.kind = OP_STRING;
        strncpy(v.text, json_string_value(j), sizeof v.text - 1);
    } else if (json_is_boolean(j)) {
        v.kind = OP_BOOL;
        v.integer[0] = json_is_true(j);
    } else if (json_is_integer(j)) {
        v.kind = OP_INT;
        v.integer[0] = json_integer_value(j);
    } else if (json_is_real(j)) {
        v.kind = OP_FLOAT;
        v.number = json_real_value(j);
    }
    return v;
}

/* One case: its results have the shape, and sampled elements the values, that torch gave. */
static void check_case(const char *name, const json_t *j, double limit)
{
    Error err;
    const Op *op = op_find(name, &err);
    if (!op) fail_msg("%s", err.text);
    OpCall c;
    op_call_init(&c, op);
    double *in[OP_MAX_TENSORS] = {0};
    OpValue values[OP_MAX_ARGS];
    const char *keyword[OP_MAX_ARGS] = {0}, *key;
    const json_t *args = json_object_get(j, "args");
    json_t *kwargs = json_object_get(j, "kwargs"), *item;
    int n = 0;
    for (; n < (int)json_array_size(args); n++)
        values[n] = value_of(&c, json_array_get(args, (size_t)n), in);
    json_object_foreach(kwargs, key, item)
    {
        keyword[n] = key;
        values[n++] = value_of(&c, item, in);
    }
    if (op_bind(&c, keyword, values, n, &err) || op_infer(&c, &err)) fail_msg("%s", err.text);
    const OpTensor *y = &c.result[0];
    const json_t *shape = json_object_get(j, "shape"), *at = json_object_get(j, "at"),
                 *want = json_object_get(j, "want");
    assert_int_equal(y->rank, json_array_size(shape));
    for (int d = 0; d < y->rank; d++)
        assert_int_equal(y->size[d], json_integer_value(json_array_get(shape, (size_t)d)));
    assert_string_equal(op_dtype_name(y->dtype), json_string_value(json_object_get(j, "dtype")));
    double *out = malloc((size_t)(op_elements(y) + 1) * sizeof *out);
    if (op->reference(&c, (const double *const *)in, &out, &err)) fail_msg("%s", err.text);
    for (size_t i = 0; i < json_array_size(at); i++) {
        double g = out[json_integer_value(json_array_get(at, i))];
        double w = json_number_value(json_array_get(want, i));
        if (!(fabs(g - w) <= limit * fabs(w) + 1e-300))
            fail_msg("%s: element %lld is %.17g, torch has %.17g", name,
                     (long long)json_integer_value(json_array_get(at, i)), g, w);
    }
    free(out);
    for (int i = 0; i < OP_MAX_TENSORS; i++) free(in[i]);
}

static void fixtures(void **state)
{
    (void)state;
    json_error_t e;
    json_t *all = json_load_file(fixture_path("tests/fixtures/ops/pointwise.json"), 0, &e), *op;
    const char *name;
    if (!all) fail_msg("%s", e.text);
    assert_int_equal(json_object_size(all), pointwise_family().n);
    json_object_foreach(all, name, op)
    {
        const json_t *cases = json_object_get(op, "cases");
        double limit = json_is_true(json_object_get(op, "transcendental")) ? 1e-10 : 1e-12;
        assert_int_equal(json_array_size(cases), 50);
        for (size_t i = 0; i < 50; i++) check_case(name, json_array_get(cases, i), limit);
    }
    json_decref(all);
}

static int bind_error(const char *name, int n, const char *const *keyword, const OpValue *v,
                      Error *err)
{
    OpCall c;
    op_call_init(&c, op_find(name, NULL));
    OpTensor t = {.dtype = OP_F32, .rank = 2, .size = {3, 4}};
    op_contiguous(&t);
    assert_int_equal(op_call_tensor(&c, &t, err), 0);
    return op_bind(&c, keyword, v, n, err) || op_infer(&c, err);
}

static void refusals(void **state)
{
    (void)state;
    Error err;
    const OpValue x = {.kind = OP_TENSOR}, one = {.kind = OP_INT, .integer = {1}},
                  yes = {.kind = OP_BOOL, .integer = {1}}, dangling = {OP_TENSOR, 0, {7}};
    assert_null(op_find("aten.ad.Tensor", &err));
    assert_non_null(strstr(err.text, "did you mean aten.add.Tensor?"));
    assert_int_not_equal(bind_error("aten.mul.Tensor", 1, NULL, &x, &err), 0);
    assert_string_equal(err.text, "aten.mul.Tensor: other is missing");
    assert_int_not_equal(bind_error("aten.relu.default", 2, NULL, (OpValue[]){x, one}, &err), 0);
    assert_int_not_equal(bind_error("aten.relu.default", 1, NULL, &one, &err), 0);
    assert_string_equal(err.text, "aten.relu.default: self: expected Tensor, found an int");
    assert_int_not_equal(bind_error("aten.relu.default", 1, NULL, &dangling, &err), 0);
    assert_int_not_equal(
        bind_error("aten.dropout.default", 3, NULL, (OpValue[]){x, one, yes}, &err), 0);
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    const char *keyword[] = {NULL, NULL, "other"};
    assert_int_not_equal(bind_error("aten.add.Tensor", 3, keyword, (OpValue[]){x, x, x}, &err), 0);
    assert_string_equal(err.text, "aten.add.Tensor: other is given twice");
    OpCall c;
    op_call_init(&c, op_find("aten.relu.default", NULL));
    OpTensor huge = {.rank = 2, .size = {INT64_C(1) << 47, 2}};
    assert_int_equal(op_call_tensor(&c, &huge, &err), -1);
    assert_int_equal(err.code, ERROR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fixtures), cmocka_unit_test(refusals)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("pointwise", tests, NULL, NULL);
}
