/* The figures of a round: parts by kind of prompt and split, entropy, and techniques. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stages/data/round_figures.h"

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

/* The mean of the best over all choices of k. */
static double counted(const double *r, int n, int k)
{
    double sum = 0;
    int choices = 0;
    for (unsigned set = 0; set < 1u << n; set++) {
        if (__builtin_popcount(set) != k) continue;
        double best = 0;
        for (int i = 0; i < n; i++)
            if (set >> i & 1) best = fmax(best, r[i]);
        sum += best;
        choices++;
    }
    return sum / choices;
}

static void best_of(void **state)
{
    (void)state;
    enum { N = 7 };
    const double score[N] = {1.5, 0, 0.25, 3, 0, 1.5, 2};
    for (int k = 1; k <= N; k++) {
        double copy[N];
        memcpy(copy, score, sizeof copy);
        assert_true(fabs(figures_best_of(copy, N, k) - counted(score, N, k)) < 1e-12);
    }
    double two[2] = {1, 2}, none[1];
    assert_true(figures_best_of(two, 2, 8) == 2);
    assert_true(figures_best_of(none, 0, 8) == 0);
}

static void parts(void **state)
{
    (void)state;
    Task composed = {.name = "c", .by_composition = 1}, other = {.name = "f", .by_family = 1},
         plain = {.name = "p"}, first = {.name = "t"}, second = {.name = "u"};
    Task *list[] = {&composed, &other, &plain, &first, &second}; /* sorted by name */
    const TaskSet tasks = {.tasks = list, .n = 5};
    Sample items[] = {sample("t", 0, 2, "//@ launch a\n//@ launch b\nfloat4 v;"),
                      sample("t", 0, 0, ""),
                      sample("u", 0, 8, "__shared__ float x;"),
                      sample("c", 1, 1, ""),
                      sample("f", 1, 0, ""),
                      sample("p", 1, 4, "")};
    const SampleSet s = {.items = items, .n = 6};
    RoundFigures f;
    round_figures(&s, &tasks, &f);
    assert_int_equal(f.plain.samples, 3);
    assert_int_equal(f.plain.tasks, 2);
    assert_true(near(f.plain.best, 1 + 3)); /* log2 of 2 and of 8: fewer than 8 count as all */
    assert_true(near(f.plain.surprise / f.plain.sampled, 2.5));
    assert_int_equal(f.heldout.samples, 3);
    assert_int_equal(f.composition.samples, 1);
    assert_int_equal(f.composition.succeeded, 1);
    assert_int_equal(f.family.samples, 1);
    assert_int_equal(f.family.succeeded, 0);
    assert_int_equal(f.correct, 2);
    assert_int_equal(f.technique[0], 1);                    /* vectors */
    assert_int_equal(f.technique[1], 1);                    /* shared memory */
    assert_int_equal(f.technique[ROUND_TECHNIQUES - 1], 1); /* two launches */
    const TaskSet fewer = {.tasks = list, .n = 4};          /* u is not counted */
    round_figures(&s, &fewer, &f);
    assert_int_equal(f.plain.samples, 2);
    assert_int_equal(f.correct, 1);
    round_figures(&s, NULL, &f);
    assert_int_equal(f.composition.samples + f.family.samples, 0);
}

/* The interval of the best of 8 holds its value and is a point where all scores are equal. */
static void intervals(void **state)
{
    (void)state;
    Sample items[40];
    for (int i = 0; i < 20; i++) items[i] = sample("t", 0, 1 + 0.1 * i, "");
    for (int i = 20; i < 40; i++) items[i] = sample("u", 0, 2, "");
    SampleSet s = {.items = items, .n = 40};
    RoundFigures f;
    round_figures(&s, NULL, &f);
    const Interval *in = &f.plain.best8;
    assert_true(in->low < in->middle - 0.01 && in->high > in->middle + 0.01);
    /* With 8 samples a resample is never above the best of all, and mostly below. */
    const SampleSet eight = {.items = items, .n = 8};
    round_figures(&eight, NULL, &f);
    assert_true(near(in->middle, 1.7) && in->low < 1.7 - 0.01 && in->high > 1.7 + 0.01);
    for (int i = 0; i < 20; i++) items[i].score = 2;
    round_figures(&s, NULL, &f);
    assert_true(near(in->low, 2) && near(in->middle, 2) && near(in->high, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(best_of), cmocka_unit_test(parts),

                                       cmocka_unit_test(intervals)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
