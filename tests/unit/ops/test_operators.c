/* Operators found by name, arguments bound by schema, and the references of each family against
 * torch's double results in tests/fixtures/ops. SHOW_DIFFERENCES=1 prints the largest one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/ops/op_fixture.h"

static void references(void **state)
{
    (void)state;
    for (int i = 0; op_family(i).n; i++) {
        OpFamily f = op_family(i);
        double largest = fixture_family(f);
        if (getenv("SHOW_DIFFERENCES")) print_message("%s: %d, %.1e\n", f.name, f.n, largest);
    }
}

static int bind_error(const char *name, int n, const char *const *keyword, const OpValue *v,
                      Error *err)
{
    OpCall c;
    op_call_init(&c, op_find(name, NULL));
    OpTensor t = {.dtype = DTYPE_F32, .rank = 2, .size = {3, 4}};
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
    static const char *const aliases[][2] = {{"aten.absolute.default", "aten.abs.default"},
                                             {"aten.ger.default", "aten.outer.default"},
                                             {"aten.swapaxes.default", "aten.transpose.int"},
                                             {"aten.true_divide_.Tensor", "aten.div_.Tensor"}};
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        assert_non_null(op_find(aliases[i][1], NULL));
        assert_ptr_equal(op_find(aliases[i][0], NULL), op_find(aliases[i][1], NULL));
    }
    OpCall c;
    op_call_init(&c, op_find("aten.relu.default", NULL));
    OpTensor huge = {.rank = 2, .size = {INT64_C(1) << 47, 2}};
    assert_int_equal(op_call_tensor(&c, &huge, &err), -1);
    assert_int_equal(err.code, ERROR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refusals), cmocka_unit_test(references)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("operators", tests, NULL, NULL);
}
