/* Stage 2's examples: which successes count, and what each weighs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "stages/selfsup/selfsup.h"

static int32_t prompt[2] = {1, 2}, answer[3] = {3, 4, 5};

static Sample sample(const char *task, char digest, Outcome outcome, int heldout)
{
    Sample s = {.id = (char *)"id", .task = (char *)task, .source = (char *)"", .outcome = outcome, .heldout = heldout,
                .ids = answer, .n_ids = 3, .prompt_ids = prompt, .n_prompt = 2};
    memset(s.source_digest, digest, 64);
    return s;
}

static void once_each(void **state)
{
    (void)state;
    Error err;
    Successes s = {0};
    Pool known = {0};
    Sample teacher[1] = {sample("a", 'x', OUTCOME_OK, 0)};
    const SampleSet taught = {.items = teacher, .n = 1};
    assert_int_equal(pool_add(&known, &taught, "collect", 0), 1);
    Sample first[6] = {sample("a", 'x', OUTCOME_OK, 0),           /* the teacher's */
                       sample("a", 'y', OUTCOME_OK, 0), sample("a", 'y', OUTCOME_OK, 0), /* twice */
                       sample("a", 'z', OUTCOME_WRONG_RESULT, 0), sample("h", 'y', OUTCOME_OK, 1),
                       sample("b", 'y', OUTCOME_OK, 0)};          /* the same text for another task */
    const SampleSet round1 = {.items = first, .n = 6};
    assert_int_equal(successes_add(&s, &round1, &known, &err), 0);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.task[0], "a");
    assert_string_equal(s.task[1], "b");
    assert_int_equal(s.items[0].len, 5);
    assert_int_equal(s.items[0].prompt, 2);
    assert_int_equal(s.items[0].ids[4], 5);
    assert_null(s.items[0].old_logp); /* no ratio: plain REINFORCE */
    Sample second[2] = {sample("a", 'y', OUTCOME_OK, 0), sample("a", 'w', OUTCOME_OK, 0)};
    const SampleSet round2 = {.items = second, .n = 2};
    assert_int_equal(successes_add(&s, &round2, &known, &err), 0);
    assert_int_equal(s.n, 3); /* 'y' was the first round's */
    successes_release(&s);
    pool_release(&known);
}

static void tasks_weigh_the_same(void **state)
{
    (void)state;
    Error err;
    Successes s = {0};
    Pool known = {0};
    Sample items[5];
    for (int i = 0; i < 5; i++) items[i] = sample(i < 4 ? "easy" : "hard", (char)('a' + i), OUTCOME_OK, 0);
    const SampleSet round = {.items = items, .n = 5};
    assert_int_equal(successes_add(&s, &round, &known, &err), 0);
    successes_balance(&s);
    double sum = 0;
    for (int i = 0; i < 5; i++) sum += s.items[i].advantage;
    assert_true(fabs(sum - 5) < 1e-12);                        /* mean 1 */
    assert_true(fabs(s.items[4].advantage - 2.5) < 1e-12);     /* 5 / 2 tasks / 1 */
    assert_true(fabs(s.items[0].advantage - 0.625) < 1e-12);   /* 5 / 2 tasks / 4 */
    successes_release(&s);
    pool_release(&known);
}

static void no_ids(void **state)
{
    (void)state;
    Error err;
    Successes s = {0};
    Pool known = {0};
    Sample one[1] = {sample("a", 'a', OUTCOME_OK, 0)};
    one[0].ids = NULL;
    const SampleSet round = {.items = one, .n = 1};
    assert_int_equal(successes_add(&s, &round, &known, &err), -1); /* an endpoint's answer trains nothing */
    assert_non_null(strstr(err.text, "no token ids"));
    successes_release(&s);
    pool_release(&known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(once_each), cmocka_unit_test(tasks_weigh_the_same),
                                       cmocka_unit_test(no_ids)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("selfsup", tests, NULL, NULL);
}
