/* Group-relative examples of an endpoint's answers: missing answers, and answers without token
 * ids. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/cpu/ops_cpu.h"
#include "stages/crl/grpo.h"
#include "stages/policy/policy.h"

typedef struct {
    const char *group, *prompt, *text, *finish, *outcome;
    double score;
} Row;

static Record *sample(const Row *row, const char *id)
{
    Record *r = record_new();
    const char *const fields[][2] = {{"id", id},
                                     {"task", "relu"},
                                     {"split", "train"},
                                     {"stage", "crl-1"},
                                     {"producer", "openai:m"},
                                     {"group", row->group},
                                     {"finish", row->finish},
                                     {"text", row->text},
                                     {"source", row->text},
                                     {"prompt", row->prompt}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        record_text(r, fields[i][0], fields[i][1]);
    record_int(r, "trial", 0);
    record_int(r, "seed", 0);
    return r;
}

static Record *verdict(const Row *row, const char *id)
{
    Record *r = record_new();
    const char *const fields[][2] = {{"id", id},
                                     {"task", "relu"},
                                     {"key", "k"},
                                     {"device", "sim:h100"},
                                     {"outcome", row->outcome},
                                     {"message", ""},
                                     {"source_digest", "d"},
                                     {"task_digest", "t"},
                                     {"harness", "1"},
                                     {"compiler", "c"}};
    static const char *const numbers[] = {"speedup", "low", "high", "time_us", "baseline_us"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        record_text(r, fields[i][0], fields[i][1]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        record_float(r, numbers[i], row->score);
    record_float(r, "score", row->score);
    record_int(r, "line", 0);
    record_bool(r, "predicted", 1);
    return r;
}

static void load(const Row *rows, int n, SampleSet *out)
{
    Error err = {0};
    for (int k = 0; k < 2; k++) {
        ArtifactSpec spec;
        ArtifactWriter *w;
        artifact_spec_init(&spec, k ? "verdicts" : "samples", "test_grpo");
        if (artifact_create(k ? "verdicts.qa" : "samples.qa", &spec, &w, &err))
            fail_msg("%s", err.text);
        for (int i = 0; i < n; i++) {
            char id[16];
            snprintf(id, sizeof id, "%d", i);
            Record *r = k ? verdict(&rows[i], id) : sample(&rows[i], id);
            if (artifact_write(w, r, &err)) fail_msg("%s", err.text);
            record_free(r);
        }
        if (artifact_finish(w, &err)) fail_msg("%s", err.text);
        artifact_spec_release(&spec);
    }
    if (samples_load("samples.qa", "verdicts.qa", out, &err)) fail_msg("%s", err.text);
}

/* Any tokenizer serves. */
static Policy policy;

static int setup(void **state)
{
    (void)state;
    Error err;
    ArtifactSpec spec;
    ArtifactWriter *w;
    const SmallModel shape = {300, 16, 32, 1, 2, 1, 256, 3};
    artifact_spec_init(&spec, "dataset", "test_grpo");
    if (artifact_create("dataset.qa", &spec, &w, &err)) return -1;
    Record *r = record_new();
    static const char *const fields[][2] = {{"id", "1"},
                                            {"task", "relu"},
                                            {"kind", "plain"},
                                            {"prompt", "# Task\n"},
                                            {"answer", "one"}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        record_text(r, fields[i][0], fields[i][1]);
    record_float(r, "score", 1);
    int rc = artifact_write(w, r, &err) || artifact_finish(w, &err) ||
             small_policy_create("dataset.qa", &shape, ops_cpu(), &policy, &err);
    record_free(r);
    artifact_spec_release(&spec);
    return rc ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    policy_release(&policy);
    return 0;
}

typedef struct {
    Example *ex;
    long n;
    GrpoStats g;
} Made;

static Made make(const SampleSet *set, const GrpoOptions *o)
{
    GrpoExamples made;
    Error err;
    RewardStats stats;
    reward_stats_init(&stats);
    if (reward_stats_update(&stats, set, 0.5, &err) || grpo_examples(set, &stats, o, &made, &err))
        fail_msg("%s", err.text);
    Made m = {made.items, made.n, made.stats};
    reward_stats_release(&stats);
    return m;
}

static int tokens(const char *text)
{
    TokenIds v = {0};
    Error err;
    if (chat_encode_answer(&policy.chat, text, strlen(text), &v, &err)) fail_msg("%s", err.text);
    free(v.ids);
    return (int)v.n;
}

static void near(double found, double expected)
{
    if (!(fabs(found - expected) < 1e-9)) fail_msg("found %.12g, expected %.12g", found, expected);
}

/* A sample whose endpoint failed has the verdict of an answer without code, but is no answer. */
static void failed_endpoint_is_no_answer(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"a", "p", "fast", "stop", "ok", 2},      {"a", "p", "", "error", "plan_error", 0},
        {"a", "p", "slow", "stop", "ok", 1},      {"a", "p", "", "error", "plan_error", 0},
        {"b", "q", "", "error", "plan_error", 0}, {"c", "r", "", "length", "plan_error", 0}};
    const GrpoOptions o = {
        .clip = 1.5, .floor_std = 0, .best_of = 1, .max_len = 1000, .policy = &policy};
    SampleSet set;
    load(rows, 6, &set);
    assert_int_equal(set.items[1].outcome, OUTCOME_EVALUATOR_ERROR);
    assert_int_equal(set.items[5].outcome,
                     OUTCOME_PLAN_ERROR); /* all tokens were thoughts: an answer, and a bad one */
    assert_int_equal(samples_without_ids(&set), 3);
    Made m = make(&set, &o);
    assert_int_equal(m.n, 2);
    near(m.ex[0].advantage, sqrt(0.5)); /* of two rewards, not of four */
    near(m.ex[1].advantage, -sqrt(0.5));
    assert_int_equal(m.g.groups, 3);
    assert_int_equal(m.g.constant, 2);
    assert_int_equal(m.g.judged, 3);
    near(m.g.mean_reward, 1);
    near(m.g.success, 2.0 / 3);
    examples_free(m.ex, m.n);
    RewardStats stats;
    Error err;
    reward_stats_init(&stats);
    assert_int_equal(reward_stats_update(&stats, &set, 0.5, &err), 0);
    near(stats.weight[0], 3); /* 2, 1 and 0 */
    near(stats.mean[0], 1);
    reward_stats_release(&stats);
    samples_release(&set);
}

static const char longer[] = "a longer answer, word after word after word after word";

static void without_ids(void **state)
{
    (void)state;
    const Row rows[] = {{"a", "p", "fast", "stop", "ok", 2},
                        {"a", "p", longer, "stop", "timeout", 0}};
    SampleSet set;
    load(rows, 2, &set);
    GrpoOptions o = {.clip = 1.5, .floor_std = 0, .best_of = 1, .max_len = 1000, .policy = &policy};
    Made all = make(&set, &o);
    assert_int_equal(all.n, 2);
    assert_int_equal(all.ex[1].len - all.ex[1].prompt, tokens(longer));
    o.max_len = all.ex[1].len; /* the longest that fits */
    Made fits = make(&set, &o);
    assert_int_equal(fits.n, 2);
    o.max_len--;
    Made cut = make(&set, &o);
    assert_int_equal(cut.n, 1);
    near(cut.ex[0].advantage,
         all.ex[0].advantage); /* the dropped example still counts in the group */
    examples_free(all.ex, all.n);
    examples_free(fits.ex, fits.n);
    examples_free(cut.ex, cut.n);
    samples_release(&set);
}

static void penalised(void **state)
{
    (void)state;
    const Row rows[] = {{"a", "p", "fast", "stop", "ok", 1}, {"a", "p", longer, "stop", "ok", 1}};
    SampleSet set;
    load(rows, 2, &set);
    GrpoOptions o = {.clip = 1.5,
                     .floor_std = 0,
                     .best_of = 1,
                     .max_len = 1000,
                     .policy = &policy,
                     .overlong = OVERLONG_PENALTY,
                     .longest = tokens(longer) + 4,
                     .margin = 8,
                     .advantage = LOSS_CENTRED};
    assert_true(tokens("fast") <= o.longest - o.margin);
    Made m = make(&set, &o);
    assert_int_equal(m.n, 2); /* both are as good: they differ in length alone, the longer is in the
                                 middle of the margin */
    near(m.ex[0].advantage, 0.25);
    near(m.ex[1].advantage, -0.25);
    examples_free(m.ex, m.n);
    samples_release(&set);
}

static void grouped_by_text(void **state)
{
    (void)state;
    static const Row rows[] = {{"relu/plain-0", "p", "fast", "stop", "ok", 2},
                               {"relu/plain-1", "p", "wrong", "stop", "timeout", 0},
                               {"relu/0", "q", "other", "stop", "ok", 1}};
    const GrpoOptions o = {
        .clip = 1.5, .floor_std = 0, .best_of = 1, .max_len = 1000, .policy = &policy};
    static int32_t ids[] = {1, 2};
    SampleSet set;
    load(rows, 3, &set);
    Made m = make(&set, &o);
    assert_int_equal(m.g.groups, 2);
    assert_int_equal(m.n, 2);
    near(m.ex[0].advantage, sqrt(0.5));
    examples_free(m.ex, m.n);
    set.items[0].prompt_ids = ids, set.items[0].n_prompt = 2; /* only one of them has ids */
    m = make(&set, &o);
    assert_int_equal(m.g.groups, 2);
    examples_free(m.ex, m.n);
    set.items[0].prompt_ids = NULL;
    samples_release(&set);
}

/* Two scores that the prediction cannot tell apart give no signal; further apart they do. */
static void near_scores(void **state)
{
    (void)state;
    static const Row rows[] = {{"a", "p", "fast", "stop", "ok", 1.015},
                               {"a", "p", "other", "stop", "ok", 1}};
    GrpoOptions o = {.clip = 1.5, .best_of = 1, .max_len = 1000, .policy = &policy, .tie = 0.02};
    SampleSet set;
    load(rows, 2, &set);
    Made m = make(&set, &o);
    assert_int_equal(m.n, 0);
    assert_int_equal(m.g.constant, 1);
    examples_free(m.ex, m.n);
    o.tie = 0.01;
    m = make(&set, &o);
    assert_int_equal(m.n, 2);
    examples_free(m.ex, m.n);
    samples_release(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(failed_endpoint_is_no_answer),
                                       cmocka_unit_test(without_ids), cmocka_unit_test(penalised),
                                       cmocka_unit_test(grouped_by_text),
                                       cmocka_unit_test(near_scores)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("grpo", tests, setup, teardown);
}
