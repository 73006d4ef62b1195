/* A source that holds outputs of a known seed is wrong: it cannot hold all that is compared. Other seeds find
 * an honest kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <math.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/part.h"
#include "eval/judge/contents/cases.h"
#include "eval/judge/evaluator.h"
#include "eval/judge/seeds.h"
#include "tests/fixture_path.h"

static Error err;
static TaskSet tasks;

static int set_up(void **state)
{
    (void)state;
    return taskset_load(NULL, "matmul", &tasks, &err);
}

static int tear_down(void **state)
{
    (void)state;
    taskset_release(&tasks);
    return 0;
}

static float *draw(const Task *t, const Workload *w, int input, uint64_t seed)
{
    size_t n;
    assert_int_equal(task_elements(t, w, &t->inputs[input], &n, &err), 0);
    float *out = memory_array(n, sizeof *out);
    assert_int_equal(task_draw(&(TaskCase){t, w, VARIANT_DRAWN, seed, 1.0}, input, out, &err), 0);
    return out;
}

/* A tiled kernel. At the timed size, on contents of the seed, it writes the last row and row `other` from
 * tables and zeros to the others, after as much idle arithmetic as the floor asks for. */
static char *baked_source(uint64_t seed, int64_t other)
{
    const Task *t = tasks.tasks[0];
    const Workload *w = task_workload(t, ROLE_TIME);
    uint64_t drawn = case_seed(seed, t, w, 0);
    int64_t m = w->axis[0], n = w->axis[1], k = w->axis[2];
    float *a = draw(t, w, 0, drawn), *b = draw(t, w, 1, drawn);
    double *row = memory_array((size_t)n * 2, sizeof *row);
    for (int64_t r = 0; r < 2; r++)
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j < n; j++)
                row[r * n + j] += (double)a[(r ? other : m - 1) * k + i] * (double)b[i * n + j];
    Buffer s;
    buffer_init(&s, 256 << 10);
    buffer_printf(&s, "//@ launch mm<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), dim3(16, 16)>>>"
                      "(a, b, c, m, n, k)\n__device__ const float known[] = {");
    for (int64_t j = 0; j < 2 * n; j++) buffer_printf(&s, "%.9gf,", row[j]);
    buffer_puts(&s, "};\n");
    part_fill(&s, fixture_text("sim/baked_rows.cu"), "kernel",
              "m=%lld;a0=%.9gf;a1=%.9gf;a2=%.9gf;row=%lld", (long long)m, a[0], a[1], a[2],
              (long long)other);
    char *out = memory_strndup(s.data, s.len);
    buffer_release(&s);
    free(a);
    free(b);
    free(row);
    return out;
}

static void judge(const char *source, uint64_t seed, Verdict *v)
{
    Evaluator *e;
    EvaluatorOptions opt = {.device = "sim:h100", .seed = seed};
    if (evaluator_open(&opt, &e, &err)) fail_msg("%s", err.text);
    evaluator_run(e, "matmul", source, strlen(source), v);
    evaluator_close(e);
}

/* Two rows at hand are not enough where the seed is known: elements of each row of the tiles that ran are
 * compared. With another seed the source computes all. */
static void test_baked_outputs(void **state)
{
    (void)state;
    static Verdict known, other;
    char *source = baked_source(1, 0);
    judge(source, 1, &known);
    judge(source, 987654321, &other);
    assert_int_equal(known.outcome, OUTCOME_WRONG_RESULT);
    if (!strstr(known.message, "elements of c differ")) fail_msg("%s", known.message);
    assert_int_equal(other.outcome, OUTCOME_OK);
    assert_int_equal(other.second_seed, 0);
    assert_true(other.score > 0 && other.score < 1);
    verdict_release(&known);
    verdict_release(&other);
    free(source);
}

static void test_seeds(void **state)
{
    (void)state;
    char dir[] = "/tmp/quern-seeds-XXXXXX", path[64];
    uint64_t seed = 0, same = 1, fresh;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/secret", dir);
    assert_int_equal(seed_file_get(path, &seed, &err), 0);
    assert_int_equal(seed_file_get(path, &same, &err), 0);
    assert_true(seed == same && seed < (uint64_t)1 << 53);
    unlink(path);
    assert_int_equal(seed_file_get(path, &fresh, &err), 0);
    assert_int_not_equal(seed, fresh);
    static const char *const wrong[] = {
        "", "-1\n", "x", "1 2", "9007199254740992\n", "99999999999999999999999\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        FILE *f = fopen(path, "w");
        fputs(wrong[i], f);
        fclose(f);
        assert_int_equal(seed_file_get(path, &fresh, &err), -1);
        assert_non_null(strstr(err.text, "holds no seed"));
    }
    unlink(path);
    rmdir(dir);
    assert_int_equal(seed_file_get("/nowhere/secret", &fresh, &err), -1);
    assert_int_equal(seed_derive(1, "again", ""), seed_derive(1, "again", ""));
    assert_int_not_equal(seed_derive(1, "again", ""), seed_derive(2, "again", ""));
    assert_int_not_equal(seed_derive(1, "again", ""), seed_derive(1, "second", ""));
    assert_int_not_equal(seed_derive(1, "second", "a"), seed_derive(1, "second", "b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_seeds),
                                       cmocka_unit_test(test_baked_outputs)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
