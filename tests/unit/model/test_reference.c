/* Tiny models of three families against log-probabilities of transformers in fp32, from files as
 * transformers writes them (both made by tests/fixtures/make_models.py). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/memory.h"
#include "model/core/model.h"
#include "model/cpu/ops_cpu.h"
#include "model/files/model_files.h"

static void compare(const char *family)
{
    Error err;
    Model *m;
    char *dir = memory_printf("%s/tests/fixtures/models/%s",
                              getenv("QUERN_SOURCE") ? getenv("QUERN_SOURCE") : ".", family);
    char *path = memory_printf("%s/expected.json", dir);
    json_t *doc = json_read_file(path, 1 << 20, &err);
    if (!doc || model_load(dir, ops_cpu(), &m, &err)) fail_msg("%s", err.text);
    json_t *ids = json_object_get(doc, "ids"), *expected = json_object_get(doc, "logprobs");
    size_t n = json_array_size(ids);
    assert_int_equal(json_array_size(expected), n - 1);
    int32_t *row = memory_array(n, sizeof *row);
    float *lp = memory_array(n, sizeof *lp);
    for (size_t i = 0; i < n; i++) row[i] = (int32_t)json_integer_value(json_array_get(ids, i));
    const Sequence s = {row, (int)n};
    if (model_logprobs(m, &s, 1, &lp, &err)) fail_msg("%s", err.text);
    double worst = 0;
    for (size_t i = 1; i < n; i++)
        worst = fmax(worst, fabs(lp[i] - json_real_value(json_array_get(expected, i - 1))));
    printf("# %s: largest difference of %zu log-probabilities %.2g\n", family, n - 1, worst);
    assert_true(worst < 1e-4);
    free(row);
    free(lp);
    free(path);
    free(dir);
    json_decref(doc);
    model_free(m);
}

static void qwen2(void **state)
{
    (void)state;
    compare("qwen2");
}

static void qwen3(void **state)
{
    (void)state;
    compare("qwen3");
}

static void llama(void **state)
{
    (void)state;
    compare("llama");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(qwen2), cmocka_unit_test(qwen3),
                                       cmocka_unit_test(llama)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("reference", tests, NULL, NULL);
}
