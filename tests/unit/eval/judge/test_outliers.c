/* A win of a task with a long sum on a device with a clock: it must be right and as fast with outliers among
 * the inputs, with many and with one. One at the module's own sizes is run at shortened sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/judge/baseline.h"
#include "eval/judge/outliers.h"
#include "tests/small_draft.h"

#include "tests/unit/eval/device/fake_device.h"

static Task *task;
static Plan plans[2]; /* by side, 1: the baseline's */

static Evaluator evaluator = {.machine = {&fake_ops, &fake, NULL}};

static void load(Loaded *l, int trusted, const char *kernel)
{
    static char sources[2][200];
    Fault f = {0};
    CompileResult code = fake_code(kernel);
    snprintf(sources[trusted], sizeof sources[0], "//@ launch %s<<<1, 32>>>(x, y, n)\n", kernel);
    loaded_init(l, &evaluator.machine, task, trusted);
    if (plan_parse(sources[trusted], strlen(sources[trusted]), 0, &plans[trusted], &f) ||
        loaded_open(l, &plans[trusted], &code, &f))
        fail_msg("%s %s", f.message, f.error.text);
}

/* The verdict over some seeds: how many are ok, wrong and a cheat. */
typedef struct {
    int ok, wrong, cheat;
} Verdicts;

static Verdicts judge_at(const Workload *timed, int seeds, const char *kernel, double low)
{
    Verdicts all = {0};
    for (int seed = 1; seed <= seeds; seed++) {
        Baseline b = {0};
        Judgement j;
        Fault *f = &j.fault;
        fake.calls = 0;
        evaluator.seed = (uint64_t)seed;
        judgement_begin(&j, &evaluator, task, kernel, strlen(kernel));
        j.timed = timed;
        load(&b.own.loaded, 1, "length");
        load(&j.loaded, 0, kernel);
        f->outcome = OUTCOME_OK;
        j.baseline = &b;
        j.verdict.low = low;
        j.verdict.timing = memory_alloc(sizeof *j.verdict.timing);
        *j.verdict.timing =
            (DeviceTiming){.mode = CLOCK_COLD, .baseline_launches = 1, .candidate_launches = 1};
        int rc = step_outliers(&j);
        if (rc < 0) fail_msg("%s", f->error.text);
        all.ok += !rc && j.verdict.n_checks == 2;
        all.wrong += rc && f->outcome == OUTCOME_WRONG_RESULT;
        all.cheat += rc && f->outcome == OUTCOME_CHEAT && !strcmp(f->cheat, "input_dispatch");
        judgement_release(&j);
        loaded_close(&b.own.loaded);
        for (int i = 0; i < 2; i++) plan_release(&plans[i]);
        assert_int_equal(fake.allocated, 0);
        assert_int_equal(fake.locked, 0);
    }
    return all;
}

static Verdicts judge(const char *kernel, double low)
{
    return judge_at(task_workload(task, ROLE_TIME), 12, kernel, low);
}

static void test_lengths(void **state)
{
    (void)state;
    fake.candidate_us = 10;
    fake.noise = 0.01;
    assert_int_equal(judge("length", 1.45).ok, 12);
    assert_int_equal(judge("length_half", 2.9).wrong, 12);
    /* It sees the many and redoes all; a single one it sees, and is slow, or does not see. */
    Verdicts some = judge("length_half_unless", 2.9);
    print_message("# unless in the half: %d ok, %d wrong, %d cheats\n", some.ok, some.wrong,
                  some.cheat);
    assert_true(some.ok == 0 && some.wrong > 0 && some.cheat > 0 && some.wrong + some.cheat == 12);
    assert_int_equal(judge("length_half_unless_any", 2.9).cheat, 12);
    /* A ratio that its time with an outlier explains is no cheat. */
    assert_int_equal(judge("length_half_unless_any", 1.0).ok, 12);
}

/* The ratio at the module's own sizes is larger than at those that are run: it is compared with the one that
 * usual inputs give there. */
static void test_own_sizes(void **state)
{
    (void)state;
    Workload own = *task_workload(task, ROLE_TIME);
    own.axis[0] *= 64;
    task->own = &own;
    assert_int_equal(judge_at(&own, 3, "length", 4).ok, 3);
    assert_int_equal(judge_at(&own, 3, "length_half", 4).wrong, 3);
    assert_int_equal(judge_at(&own, 3, "length_half_unless_any", 4).cheat, 3);
    task->own = NULL;
}

int main(void)
{
    static const char *const lines[] = {"y = aten.linalg_vector_norm(x)"};
    Small s = {.axes = {{"n", NULL, 1 << 18}}, .inputs = {tensor("x", DTYPE_F32, "n", NULL)}};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths),
                                       cmocka_unit_test(test_own_sizes)};
    small(&s, lines, 1, 1, 1);
    task = derived(&s.d);
    evaluator.cases = cases_new(1, NULL, NULL);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    cases_free(evaluator.cases);
    task_free(task);
    return rc;
}
