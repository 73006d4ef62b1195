/* A win at the module's own sizes, whose contents repeat, on a device with a clock: it must be as fast where
 * no two positions are equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/judge/baseline.h"
#include "eval/judge/paired_timing.h"
#include "tests/small_draft.h"

#include "tests/unit/eval/device/fake_device.h"
#include "tests/unit/eval/judge/kept_contents.h"

enum { TIMED = 2048, OWN = 4 * TIMED };

static Task *task;
static DeviceOps ops;
static Evaluator evaluator = {
    .machine = {&ops, &fake, NULL}, .seed = 3, .clock = {CLOCK_COLD, 10, 3, 0, 0}};
static Judgement judged; /* the last one */

static void load(Loaded *l, Plan *plan, int trusted, const char *kernel)
{
    static char sources[2][100];
    char *source = sources[trusted];
    Fault f = {0};
    CompileResult code = fake_code(kernel);
    snprintf(source, sizeof sources[0], "//@ launch %s<<<1, 32>>>(x, y, n)\n", kernel);
    loaded_init(l, &evaluator.machine, task, trusted);
    if (plan_parse(source, strlen(source), plan, &f) || loaded_open(l, plan, &code, &f))
        fail_msg("%s %s", f.message, f.error.text);
}

/* The steps from the time on, as far as they are of one win. */
static int judge(const char *kernel)
{
    static Baseline b;
    Plan plans[2] = {{0}};
    b = (Baseline){0};
    judgement_begin(&judged, &evaluator, task, kernel, strlen(kernel));
    assert_ptr_equal(judged.timed, task->own);
    judged.fault.outcome = OUTCOME_OK;
    load(&b.own.loaded, &plans[0], 1, "relu");
    load(&judged.loaded, &plans[1], 0, kernel);
    judged.baseline = &b;
    fake.calls = 0;
    int rc = paired_measure(&judged, &evaluator.clock);
    if (!rc) rc = judgement_score(&judged);
    if (!rc) assert_true(judgement_is_win(&judged));
    if (!rc) rc = paired_unseen(&judged);
    if (rc < 0) fail_msg("%s", judged.fault.error.text);
    judgement_release(&judged);
    loaded_close(&b.own.loaded);
    for (int i = 0; i < 2; i++) plan_release(&plans[i]);
    assert_int_equal(fake.allocated, 0);
    return rc;
}

static void test_copies(void **state)
{
    (void)state;
    if (judge("relu")) fail_msg("%s", judged.fault.message);
    assert_true(judged.verdict.low > 1.3);
    assert_int_equal(judge("copies"), 1);
    assert_string_equal(judged.fault.cheat, "input_dispatch");
    assert_non_null(strstr(judged.fault.message, "where no two are equal"));
    assert_int_equal(judge("wrong"), 1); /* in the second quarter */
    assert_int_equal(judged.fault.outcome, OUTCOME_WRONG_RESULT);
}

int main(void)
{
    static const char *const lines[] = {"y = aten.relu(x)"};
    Small s = {.axes = {{"n", NULL, TIMED}}, .inputs = {tensor("x", DTYPE_F32, "n", NULL)}};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies)};
    small(&s, lines, 1, 1, 1);
    task = derived(&s.d);
    task->own = memory_alloc(sizeof *task->own);
    *task->own = *task_workload(task, ROLE_TIME);
    task->own->note = NULL, task->own->atol = NULL;
    task->own->axis[0] = OWN;
    ops = fake_ops;
    ops.golden = &kept_contents;
    kept_beside = &fake_ops;
    fake.info.total_bytes = (size_t)8 << 30;
    fake.info.buffers_bytes = fake.info.contents_bytes = (size_t)1 << 30;
    evaluator.cases = cases_new(1 << 28, &ops, &fake);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    cases_free(evaluator.cases);
    task_free(task);
    return rc;
}
