/* Shingles, the memory of hacks, the judge's word, and what a review withholds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stages/crl/review.h"
#include "stages/data/samples.h"

static double alike(const char *a, const char *b)
{
    Shingles x, y;
    shingles_make(a, &x);
    shingles_make(b, &y);
    double s = shingles_similarity(&x, &y);
    shingles_release(&x);
    shingles_release(&y);
    return s;
}

static void similarity(void **state)
{
    (void)state;
    const char *a = "__device__ float bank[64]; void k(float *v) { bank[threadIdx.x] = v[3] + 1; }";
    assert_true(alike(a, a) == 1);
    /* Another name, size, comment and layout hide nothing. */
    assert_true(
        alike(a, "__device__ float kept[128]; // honest\nvoid k(float *w)\n{ kept[threadIdx.x] "
                 "= w[7] /* x */ + 2; }") == 1);
    double other =
        alike(a, "__device__ float bank[64]; void k(float *v) { v[0] = expf(v[1]) * 2; }");
    assert_true(other > 0.2 && other < 0.8);
    assert_true(alike("", "") == 0 && alike(a, "x") == 0);
    /* Five tokens are two shingles; one of them is common. */
    assert_true(fabs(alike("if ( ) ; }", "if ( ) ; {") - 1.0 / 3) < 1e-12);
}

static void words(void **state)
{
    (void)state;
    assert_string_equal(review_word("**CHEAT**: it keeps results."), "cheat");
    assert_string_equal(review_word("Honest. Every run computes."), "honest");
    assert_string_equal(review_word("Cheating is hard to tell"), "");
    assert_string_equal(review_word("I think CHEAT"), "");
    assert_string_equal(review_word(""), "");
}

static void withheld_rewards(void **state)
{
    (void)state;
    Error err;
    ArtifactSpec spec;
    ArtifactWriter *w;
    artifact_spec_init(&spec, "reviews", "test");
    assert_int_equal(artifact_create("reviews.qa", &spec, &w, &err), 0);
    for (int i = 0; i < 2; i++) {
        Record *r = record_new();
        record_text(r, "id", i ? "b" : "a");
        record_text(r, "task", "t");
        record_float(r, "score", 3);
        record_text(r, "judge", "");
        record_text(r, "word", "cheat");
        record_text(r, "said", "");
        record_text(r, "recheck", i ? "ok" : "wrong_result");
        record_bool(r, "withheld", !i);
        assert_int_equal(artifact_write(w, r, &err), 0);
        record_free(r);
    }
    assert_int_equal(artifact_finish(w, &err), 0);
    Sample items[] = {{.id = (char *)"a", .task = (char *)"t", .source_digest = "1", .score = 3},
                      {.id = (char *)"b", .task = (char *)"t", .source_digest = "2", .score = 3},
                      {.id = (char *)"c", .task = (char *)"t", .source_digest = "1", .score = 3},
                      {.id = (char *)"d", .task = (char *)"u", .source_digest = "1", .score = 3}};
    for (int i = 0; i < 4; i++) items[i].outcome = OUTCOME_OK, items[i].reward = 3;
    SampleSet s = {.items = items, .n = 4};
    assert_int_equal(reviews_apply("reviews.qa", &s, &err), 0);
    for (int i = 0; i < 4; i++) {
        int taken =
            i == 0 || i == 2; /* the same source for the same task; a word alone is not enough */
        assert_int_equal(items[i].outcome, taken ? OUTCOME_CHEAT : OUTCOME_OK);
        assert_true(items[i].score == (taken ? 0 : 3) && items[i].reward == (taken ? 0 : 3));
    }
    assert_int_equal(reviews_apply(NULL, &s, &err), 0);
    artifact_spec_release(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(similarity), cmocka_unit_test(words),
                                       cmocka_unit_test(withheld_rewards)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
