/* Normalisations, softmax, scans and losses: calls that are refused, composed operators' launches. And
 * that each operator that torch.export gives for KernelBench is in the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/ops/op_fixture.h"

/* Runs a call, with its arguments as in the fixtures, up to the reference. The error, or NULL. */
static const char *refused(const char *name, const char *args)
{
    static Error err;
    FixtureCase f;
    char text[600];
    snprintf(text, sizeof text, "{\"args\":[%s]}", args);
    json_t *j = json_loads(text, 0, NULL);
    assert_non_null(j);
    fixture_bind(&f, name, j);
    int rc = op_infer(&f.call, &err);
    for (int i = 0; i < f.call.n_results && !rc; i++)
        f.out[i] = memory_array((size_t)op_elements(&f.call.result[i]) + 1, sizeof(double));
    if (!rc) rc = f.call.op->reference(&f.call, (const double *const *)f.in, f.out, &err);
    fixture_close(&f);
    json_decref(j);
    return rc ? err.text : NULL;
}

#define X "{\"shape\":[2,6,4],\"seed\":1}"
#define SIX "{\"shape\":[6],\"seed\":1}"
#define CLASSES "{\"shape\":[2,4],\"seed\":1,\"draw\":\"index 9\"}"

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *name, *args, *error;
    } calls[] = {
        {"group_norm", X ",4", "6 channels do not divide in 4 groups"},
        {"layer_norm", X ",[6]", "expected a size of 6 at dimension 2, found 4"},
        {"layer_norm", X ",[4]," SIX, "weight does not have the shape normalized_shape"},
        {"batch_norm", X ",null,null,null,null,false,0.1,1e-5,true", "running_var are missing"},
        {"batch_norm", X ",null,null,null," SIX ",true,0.1,1e-5,true", "come together"},
        {"instance_norm", X ",{\"shape\":[5],\"seed\":1},null,null,null,true,0.1,1e-5,true",
         "weight: expected 6 elements, found 5"},
        {"batch_norm", SIX ",null,null,null,null,true,0.1,1e-5,true", "rank of 2 or more"},
        {"cumsum", X ",3", "expected a dimension in [-3, 2], found 3"},
        {"logcumsumexp", CLASSES ",0", "expected a floating dtype, found int64"},
        {"cross_entropy_loss", X "," SIX, "the input's shape without the classes"},
        {"cross_entropy_loss", X "," CLASSES, "is a target"},
        {"cross_entropy_loss", X "," X ",null,1,-100,1.5", "label_smoothing"},
        {"nll_loss_nd", X "," CLASSES "," SIX ",3", "a reduction of 0, 1 or 2, found 3"},
        {"mse_loss", X "," X ",7", "a reduction of 0, 1 or 2"},
        {"smooth_l1_loss", X "," X ",1,-1.0", "beta is negative"},
        {"huber_loss", X "," X ",1,0.0", "delta is not positive"},
        {"kl_div", X "," SIX, "do not broadcast"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char name[64];
        snprintf(name, sizeof name, "aten.%s.default", calls[i].name);
        const char *error = refused(name, calls[i].args);
        if (!error || !strstr(error, calls[i].error))
            fail_msg("%s(%s): %s", name, calls[i].args, error ? error : "not refused");
    }
    assert_non_null(strstr(refused("aten.softmax.int", CLASSES ",0"), "found int64"));
    assert_null(refused("aten.group_norm.default", X ",3"));
}

/* The kernels of a composed operator write its result last, and the scratch memory that the result
 * replaces is given up. */
static void composed(void **state)
{
    (void)state;
    FixtureCase f;
    Error err;
    Buffer source;
    OpPlain plain = {.source = &source};
    json_t *j = json_loads("{\"args\":[" X ",[1],false]}", 0, NULL);
    buffer_init(&source, 1 << 20);
    fixture_open(&f, "aten.logsumexp.default", j);
    assert_int_equal(op_plain(&f.call, &plain, &err), 0);
    static const char *const arguments[] = {
        "x0, t0",     "t0, t1", "t1, t2",     "t0, t2, t0", /* amax, abs, == inf, masked_fill */
        "x0, t0, t3", "t3, t3",                             /* x - amax, exp */
        "t3, y0",     "y0, y0", "y0, t0, y0",               /* sum, log, + amax */
    };
    assert_int_equal(plain.n, 9);
    for (int i = 0; i < plain.n; i++) assert_string_equal(plain.launch[i].arguments, arguments[i]);
    assert_int_equal(plain.scratch[3].elements, 48);
    assert_int_equal(plain.scratch[4].elements, 1);
    OpCost cost;
    assert_int_equal(op_cost(&f.call, &cost, &err), 0);
    assert_true(cost.flops == 48 * 4 + 8 * 5 && cost.bytes == (48 + 8) * 8);
    fixture_close(&f);
    json_decref(j);
    free(plain.launch);
    buffer_release(&source);
}

static void kernelbench(void **state)
{
    (void)state;
    char name[128];
    Error err;
    int n = 0;
    FILE *file = fopen(fixture_path("tests/fixtures/ops/kernelbench.txt"), "r");
    assert_non_null(file);
    for (; fscanf(file, "%127s", name) == 1; n++)
        if (!op_find(name, &err)) fail_msg("%s", err.text);
    fclose(file);
    assert_int_equal(n, 112);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refusals), cmocka_unit_test(composed),
                                       cmocka_unit_test(kernelbench)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("row_operators", tests, NULL, NULL);
}
