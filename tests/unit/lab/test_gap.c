/* The gap closed by samples and by a pool, and which designs are withheld. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/gap.h"
#include "lab/withhold.h"

static float logprobs[4] = {-1, -2, -3, -4};
static int32_t ids[4];

static Sample sample(const char *task, int heldout, double score, const char *source)
{
    return (Sample){.id = (char *)"s",
                    .task = (char *)task,
                    .heldout = heldout,
                    .prompt = (char *)"# Task",
                    .text = (char *)"",
                    .source = (char *)source,
                    .turn = 1,
                    .ids = ids,
                    .n_ids = 4,
                    .logprobs = logprobs,
                    .outcome = score > 0 ? OUTCOME_OK : OUTCOME_WRONG_RESULT,
                    .score = score};
}

static int near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

static PoolItem kernel(const char *task, double score)
{
    return (PoolItem){.task = (char *)task, .score = score};
}

static void gaps(void **state)
{
    (void)state;
    Sample items[] = {sample("t", 0, 2, ""), sample("u", 0, 1, ""), sample("v", 0, 5, ""),
                      sample("w", 0, 9, ""), sample("u", 1, 9, "")};
    const SampleSet s = {.items = items, .n = 5};
    PoolItem low[] = {kernel("t", 1), kernel("u", 2), kernel("v", 5)},
             high[] = {kernel("t", 4), kernel("t", 3), kernel("u", 8), kernel("v", 5.05),
                       kernel("w", 9)};
    const Pool teacher = {low, 3}, full = {high, 5};
    Gap g;
    /* t: half of it; u: log(1/2)/log(4) = -0.5; v: there is no gap; w: the teacher has none. */
    gap_of_samples(&s, &teacher, &full, &g);
    assert_int_equal(g.n, 2);
    assert_true(near(g.closed.middle, 0));
    assert_true(near(g.task[0].closed, 0.5) && near(g.task[1].closed, -0.5));
    assert_true(g.closed.low < 0 && g.closed.high > 0);
    gap_release(&g);
    items[1].score = 8;
    gap_of_samples(&s, &teacher, &full, &g);
    assert_true(near(g.closed.middle, 0.75));
    gap_release(&g);
    /* A task with a tenth of the gap has a tenth of the weight. */
    high[2].score = 2 * exp2(0.2);
    items[1].score = 2;
    gap_of_samples(&s, &teacher, &full, &g);
    assert_true(near(g.closed.middle, 1 / 2.2));
    gap_release(&g);
    gap_of_samples(&s, &full, &full, &g);
    assert_int_equal(g.n, 0);
    assert_true(isnan(g.closed.middle));
    gap_release(&g);
}

static void gap_of_a_pool(void **state)
{
    (void)state;
    PoolItem low[] = {kernel("t", 1), kernel("u", 2)}, high[] = {kernel("t", 4), kernel("u", 8)},
             run[] = {kernel("t", 1), kernel("u", 3), kernel("t", 4)};
    const Pool teacher = {low, 2}, full = {high, 2}, pool = {run, 3};
    Gap g;
    gap_of_pool(&pool, &teacher, &full, &g);
    assert_int_equal(g.n, 2);
    assert_true(near(g.closed.middle, (2 + log2(1.5)) / 4));
    gap_release(&g);
}

static void withheld(void **state)
{
    (void)state;
    enum { N = 64 };
    static Task task[N];
    Task *list[N];
    int expected = 0;
    for (int i = 0; i < N; i++) {
        snprintf(task[i].name, sizeof task[i].name, "task_%d", i);
        task[i].heldout = i < 8;
        list[i] = &task[i];
        expected += withhold_task(&task[i]);
        assert_true(i >= 8 || !withhold_task(&task[i]));
    }
    assert_true(expected > 8 && expected < N - 16);
    const TaskSet tasks = {.tasks = list, .n = N};
    Buffer b;
    buffer_init(&b, 1 << 16);
    assert_int_equal(withhold_write(&tasks, &b), expected);
    assert_int_equal(strncmp(b.data, "task_", 5), 0);
    assert_non_null(strstr(b.data, " pass=1 "));
    assert_non_null(strstr(b.data, " vec=2 "));
    assert_non_null(strstr(b.data, " store=no\n"));
    buffer_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gaps), cmocka_unit_test(gap_of_a_pool),
                                       cmocka_unit_test(withheld)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
