/* Calls of pools, attention, recurrent networks and embeddings that ATen refuses or the library does not
 * know, as cases of a fixture (op_fixture.h), and the sentence for each; and what a pool stores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/ops/op_fixture.h"

#define T(shape) "{\"shape\":[" shape "],\"seed\":1}"
#define BIG "1099511627776" /* 2^40 */

static const struct {
    const char *name, *args, *text;
    ErrorCode code;
} calls[] = {
    {"max_pool2d.default", T("3,4,4") ",[5,5]", "a window of 5 does not fit an input of 4",
     ERROR_INVALID},
    {"max_pool2d.default", T("3,4,4") ",[2,2],[1,1],[2,2]",
     "padding: expected at most half of the kernel's 2, found 2", ERROR_INVALID},
    {"max_pool2d.default", T("4,4") ",[2,2]", "self: expected 3 or 4 dimensions, found 2",
     ERROR_INVALID},
    {"max_pool2d.default", T("3,4,4") ",[2,2,2]", "kernel_size: expected 2 sizes, found 3",
     ERROR_INVALID},
    {"max_pool2d.default", T("3,4,4") ",[0,2]",
     "kernel_size: expected a size of at least 1, found 0", ERROR_INVALID},
    {"max_pool1d.default", T("3,4") ",[2],[-1]", "stride: expected a size of at least 1, found -1",
     ERROR_INVALID},
    {"max_pool2d.default", T("3,4,4") ",[2,2],[1,1,1]", "stride: expected 2 sizes, found 3",
     ERROR_INVALID},
    {"max_pool2d.default", T("3,0,4") ",[2,2]", "a dimension of a pool has 0 elements",
     ERROR_INVALID},
    {"max_pool1d.default", "{\"shape\":[3,4],\"seed\":1,\"draw\":\"index 3\"},[2]",
     "expected a floating-point type, found int64", ERROR_UNSUPPORTED},
    {"avg_pool2d.default", T("3,4,4") ",[2,2],[2,2],[0,0],false,true,0",
     "divisor_override: expected a number other", ERROR_INVALID},
    {"adaptive_avg_pool3d.default", T("1,2,2,2") ",[2000000000,2000000000,2000000000]",
     "2^48 outputs or more", ERROR_LIMIT},
    {"scaled_dot_product_attention.default", T("2,3,4") "," T("2,5,6") "," T("2,5,6"),
     "key: expected 4 elements in a row, found 6", ERROR_INVALID},
    {"scaled_dot_product_attention.default", T("2,3,4") "," T("2,5,4") "," T("2,6,4"),
     "value: expected 5 rows, found 6", ERROR_INVALID},
    {"scaled_dot_product_attention.default", T("2,3,4") "," T("3,5,4") "," T("3,5,4"),
     "do not broadcast", ERROR_INVALID},
    {"scaled_dot_product_attention.default", T("3,4") "," T("5,4") "," T("5,4") ",null,0.5",
     "dropout_p: expected 0, found 0.5", ERROR_UNSUPPORTED},
    {"scaled_dot_product_attention.default",
     T("3,4") "," T("5,4") "," T("5,4") "," T("3,5") ",0.0,true",
     "attn_mask and is_causal exclude each other", ERROR_INVALID},
    {"scaled_dot_product_attention.default", T("3,4") "," T("5,4") "," T("5,4") "," T("2,5"),
     "attn_mask: size 2 does not broadcast to 3", ERROR_INVALID},
    {"scaled_dot_product_attention.default", T("3,4") "," T("5,4") "," T("5,4") "," T("2,3,5"),
     "attn_mask: the batch is larger than the queries'", ERROR_INVALID},
    {"gru.input",
     T("2,3,4") "," T("1,3,5") ",[" T("15,4") "," T("15,5") "],true,1,0.0,false,false,false",
     "params: expected 4 tensors (weights and biases", ERROR_UNSUPPORTED},
    {"gru.input",
     T("2,3,4") "," T("1,3,5") ",[" T("15,4") "," T("15,4") "],false,1,0.0,false,false,false",
     "params: a state's weight: expected 5 elements in dimension 1, found 4", ERROR_INVALID},
    {"gru.input",
     T("2,3,4") "," T("2,3,5") ",[" T("15,4") "," T("15,5") "],false,1,0.0,false,false,false",
     "hx: expected 1 elements in dimension 0, found 2", ERROR_INVALID},
    {"gru.input",
     T("3,4") "," T("1,3,5") ",[" T("15,4") "," T("15,5") "],false,1,0.0,false,false,false",
     "input: expected 3 dimensions, found 2", ERROR_INVALID},
    {"gru.input",
     T("2,3,4") "," T("1,3,5") ",[" T("15,4") "," T("15,5") "],false," BIG ",0.0,false,false,false",
     "num_layers: expected 1 to 64", ERROR_LIMIT},
    {"lstm.input",
     T("2,3,4") ",[" T("1,3,5") "],[" T("20,4") "," T("20,5") "],false,1,0.0,false,false,false",
     "hx: expected two tensors, found 1", ERROR_INVALID},
    {"embedding.default", T("3,4") "," T("2"), "indices: expected int32 or int64, found float64",
     ERROR_INVALID},
};

static void refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char text[600], name[80];
        Error err;
        FixtureCase f;
        snprintf(text, sizeof text, "{\"args\":[%s]}", calls[i].args);
        snprintf(name, sizeof name, "aten.%s", calls[i].name);
        json_t *j = json_loads(text, 0, NULL);
        assert_non_null(j);
        fixture_bind(&f, name, j);
        if (!op_infer(&f.call, &err)) fail_msg("%s(%s) is accepted", name, calls[i].args);
        if (!strstr(err.text, calls[i].text))
            fail_msg("expected '%s' in: %s", calls[i].text, err.text);
        assert_int_equal(err.code, calls[i].code);
        fixture_close(&f);
        json_decref(j);
    }
}

/* A number that is no row fails in the reference. */
static void index_of_no_row(void **state)
{
    (void)state;
    Error err;
    FixtureCase f;
    json_t *j = json_loads(
        "{\"args\":[" T("3,4") ",{\"shape\":[9],\"seed\":1,\"draw\":\"index 8\"}]}", 0, NULL);
    fixture_bind(&f, "aten.embedding.default", j);
    assert_int_equal(op_infer(&f.call, &err), 0);
    f.out[0] = memory_array(36, sizeof(double));
    assert_int_equal(f.call.op->reference(&f.call, (const double *const *)f.in, f.out, &err), -1);
    assert_non_null(strstr(err.text, "is no row of 3"));
    fixture_close(&f);
    json_decref(j);
}

/* The places of the largest values are stored where a device has the memory. */
static int scratch_of(int64_t planes)
{
    Error err;
    FixtureCase f;
    Buffer text;
    OpPlain plain = {.source = &text};
    json_t *j = json_loads("{\"args\":[" T("1,2,8,8") ",[2,2]]}", 0, NULL);
    fixture_bind(&f, "aten.max_pool2d.default", j);
    f.call.tensor[0].size[0] = planes;
    op_contiguous(&f.call.tensor[0]);
    buffer_init(&text, 1 << 16);
    assert_int_equal(op_infer(&f.call, &err), 0);
    assert_int_equal(op_plain(&f.call, &plain, &err), 0);
    assert_int_equal(plain.n, 1);
    free(plain.launch);
    buffer_release(&text);
    fixture_close(&f);
    json_decref(j);
    return plain.n_scratch;
}

static void places(void **state)
{
    (void)state;
    assert_int_equal(scratch_of(1 << 10), 1);
    assert_int_equal(scratch_of(1 << 23), 1);
    assert_int_equal(scratch_of(1 << 24), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refusals),
                                       cmocka_unit_test(index_of_no_row), cmocka_unit_test(places)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("op_refusals", tests, NULL, NULL);
}
