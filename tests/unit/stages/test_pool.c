/* The pool: the distinct correct kernels of train tasks. And the examples of scored samples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stages/crl/grpo.h"
#include "stages/data/pool.h"

static Sample sample(const char *id, const char *task, const char *source, Outcome outcome,
                     double score)
{
    Sample s = {.id = (char *)id,
                .task = (char *)task,
                .source = (char *)source,
                .outcome = outcome,
                .score = score,
                .reward = score,
                .speedup = score};
    Digest d;
    digest_of(source, strlen(source), &d);
    digest_hex(&d, s.source_digest);
    return s;
}

static void what_enters(void **state)
{
    (void)state;
    Sample items[] = {sample("1", "relu", "A", OUTCOME_OK, 1.5),
                      sample("2", "relu", "A", OUTCOME_OK, 1.5),
                      sample("3", "softmax", "A", OUTCOME_OK, 0.7),
                      sample("4", "relu", "B", OUTCOME_WRONG_RESULT, 0),
                      sample("5", "gelu", "C", OUTCOME_OK, 3.0),
                      sample("6", "relu", "D", OUTCOME_OK, 2.5),
                      sample("7", "relu", "E", OUTCOME_EVALUATOR_ERROR, 0),
                      sample("8", "relu", "F", OUTCOME_OK, 2.5)};
    items[4].heldout = 1;
    SampleSet set = {.items = items, .n = 8};
    Pool p = {0}, again;
    Error err;
    assert_int_equal(pool_add(&p, &set, "selfsup", 3), 4); /* 1, 3, 6, 8 */
    assert_int_equal(pool_add(&p, &set, "crl", 4), 0);     /* nothing new */
    assert_string_equal(pool_best(&p, "relu")->id, "6");   /* 8 is as fast, but later */
    assert_string_equal(pool_best(&p, "softmax")->id, "3");
    assert_null(pool_best(&p, "gelu"));
    ArtifactSpec spec;
    artifact_spec_init(&spec, "pool", "test_pool");
    if (pool_write(&p, "pool.qa", &spec, &err) || pool_load("pool.qa", &again, &err))
        fail_msg("%s", err.text);
    assert_int_equal(again.n, p.n);
    for (long i = 0; i < p.n; i++) {
        assert_string_equal(again.items[i].id, p.items[i].id);
        assert_string_equal(again.items[i].source, p.items[i].source);
        assert_string_equal(again.items[i].source_digest, p.items[i].source_digest);
        assert_string_equal(again.items[i].stage, "selfsup");
        assert_int_equal(again.items[i].round, 3);
        assert_true(again.items[i].score == p.items[i].score);
    }
    pool_release(&p);
    pool_release(&again);
    artifact_spec_release(&spec);
    assert_int_equal(pool_load(NULL, &p, &err), 0);
    assert_int_equal(p.n, 0);
    pool_release(&p);
}

/* What a prompt showed is noted with the kernel: by the digests of the sources. Of an answer to a verdict
 * it is the judged kernel, or what led to that one. */
static void parents(void **state)
{
    (void)state;
    Sample taught[] = {sample("c/1", "relu", "A", OUTCOME_OK, 1.2),
                       sample("c/2", "relu", "B", OUTCOME_OK, 1.5)};
    Sample items[] = {sample("r/relu/1/0", "relu", "C", OUTCOME_OK, 2),
                      sample("r/relu/0/0", "relu", "D", OUTCOME_OK, 2),
                      sample("r/relu/1/1", "relu", "X", OUTCOME_WRONG_RESULT, 0),
                      sample("r/relu/1/0/turn-2/0", "relu", "E", OUTCOME_OK, 3),
                      sample("r/relu/1/1/turn-2/0", "relu", "F", OUTCOME_OK, 3),
                      sample("r/other/0", "relu", "G", OUTCOME_OK, 1)};
    static const char *const groups[] = {"r/relu/1",        "r/relu/0",        "r/relu/1",
                                         "r/relu/1/turn-2", "r/relu/1/turn-2", "r/other"};
    for (int i = 0; i < 6; i++) items[i].group = (char *)(uintptr_t)groups[i], items[i].turn = 1;
    items[3].parent = items[0].id, items[4].parent = items[2].id;
    char unknown[] = "unknown", baseline[] = "baseline", first[] = "r/relu/0", next[] = "r/relu/1";
    char *shown[] = {taught[1].id, taught[0].id, baseline, unknown};
    PromptItem p[] = {{.id = first}, {.id = next, .shown = shown, .n_shown = 4}};
    SampleSet before = {.items = taught, .n = 2}, set = {.items = items, .n = 6};
    PromptSet prompts = {p, 2};
    Pool pool = {0}, again;
    Error err;
    ArtifactSpec spec;
    pool_add(&pool, &before, "collect", 0);
    assert_int_equal(pool_add(&pool, &set, "crl", 1), 5);
    pool_note_parents(&pool, 2, &set, &prompts);
    artifact_spec_init(&spec, "pool", "test_pool");
    if (pool_write(&pool, "parents.qa", &spec, &err) || pool_load("parents.qa", &again, &err))
        fail_msg("%s", err.text);
    static const int n[] = {-1, -1, 3, 0, 1, 3, -1}; /* A B C D E F G */
    for (int i = 0; i < 7; i++) assert_int_equal(again.items[i].n_parents, n[i]);
    for (int i = 2; i < 6; i += 3) { /* C, and F, whose first turn was wrong */
        assert_string_equal(again.items[i].parents[0], taught[1].source_digest);
        assert_string_equal(again.items[i].parents[1], taught[0].source_digest);
        assert_string_equal(again.items[i].parents[2], POOL_BASELINE);
    }
    assert_string_equal(again.items[4].parents[0], items[0].source_digest); /* E is C's next turn */
    assert_ptr_equal(pool_find(&again, "relu", taught[1].source_digest), &again.items[1]);
    assert_null(pool_find(&again, "gelu", taught[1].source_digest));
    pool_release(&pool);
    pool_release(&again);
    artifact_spec_release(&spec);
}

enum { ANSWER = 3, PROMPT = 2 };

/* A group of rewards sqrt(2), -sqrt(2), 0, 0 that is worth its expected best of two. */
static void best_of_two(const SampleSet *set, const RewardStats *stats)
{
    GrpoExamples g;
    Error err;
    const GrpoOptions best = {.clip = 1.5,
                              .floor_std = 0.1,
                              .best_of = 2,
                              .success_worth = 0.5,
                              .with_old = 1,
                              .max_len = 100};
    assert_int_equal(grpo_examples(set, stats, &best, &g, &err), 0);
    assert_int_equal(g.n, 4);
    /* Shaped rewards: 0.5 + (sqrt(2) + sqrt(2) + 2 sqrt(2))/3; 0; 0.5 + sqrt(2)/3 twice. */
    double w[4] = {0.5 + 4 * sqrt(2.0) / 3, 0, 0.5 + sqrt(2.0) / 3, 0.5 + sqrt(2.0) / 3},
           expected[4];
    loss_advantages(LOSS_GROUP, w, 4, 0.1, expected);
    for (int i = 0; i < 4; i++) assert_true(fabs(g.items[i].advantage - expected[i]) < 1e-12);
    examples_free(g.items, g.n);
}

/* Two groups of one task: scores 0, 2 and a failure of the evaluator; two equal scores. */
static void examples_of_groups(void **state)
{
    (void)state;
    static int32_t ids[ANSWER] = {5, 6, 7}, prompt[PROMPT] = {1, 2}, other[PROMPT] = {1, 3};
    static float lp[ANSWER] = {-1, -2, -3};
    Sample items[] = {
        sample("a0", "relu", "A", OUTCOME_OK, 2), sample("a1", "relu", "B", OUTCOME_TIMEOUT, 0),
        sample("a2", "relu", "C", OUTCOME_EVALUATOR_ERROR, 0),
        sample("b0", "relu", "D", OUTCOME_OK, 1), sample("b1", "relu", "E", OUTCOME_OK, 1)};
    for (int i = 0; i < 5; i++) {
        items[i].group = (char *)(i < 3 ? "a" : "b");
        items[i].ids = ids, items[i].n_ids = ANSWER, items[i].prompt_ids = i < 3 ? prompt : other,
        items[i].n_prompt = PROMPT;
        items[i].logprobs = lp;
    }
    SampleSet set = {.items = items, .n = 5};
    RewardStats stats;
    GrpoExamples g;
    Error err;
    reward_stats_init(&stats);
    assert_int_equal(reward_stats_update(&stats, &set, 0.5, &err), 0);
    /* The failure of the evaluator is no reward: 2, 0, 1, 1 have mean 1 and variance 1/2. */
    assert_true(fabs(reward_smooth(&stats, "relu", 2, 1.5) - sqrt(2.0)) < 1e-12);
    const GrpoOptions o = {
        .clip = 1.5, .floor_std = 0.1, .best_of = 1, .with_old = 1, .max_len = 100};
    assert_int_equal(grpo_examples(&set, &stats, &o, &g, &err), 0);
    assert_int_equal(g.n, 2);
    assert_int_equal(g.stats.groups, 2);
    assert_int_equal(g.stats.constant, 1);
    double a = sqrt(2.0) / (2.0 + 0.1); /* smoothed rewards +-sqrt(2), deviation 2 unbiased */
    assert_true(fabs(g.items[0].advantage - a) < 1e-12 && fabs(g.items[1].advantage + a) < 1e-12);
    assert_int_equal(g.items[0].prompt, PROMPT);
    assert_int_equal(g.items[0].len, PROMPT + ANSWER);
    assert_memory_equal(g.items[0].ids, prompt, sizeof prompt);
    assert_memory_equal(g.items[0].ids + PROMPT, ids, sizeof ids);
    assert_memory_equal(g.items[0].old_logp, lp, sizeof lp);
    examples_free(g.items, g.n);
    const GrpoOptions tight = {
        .clip = 1.5, .floor_std = 0.1, .best_of = 1, .with_old = 1, .max_len = PROMPT + ANSWER - 1};
    assert_int_equal(grpo_examples(&set, &stats, &tight, &g, &err), 0);
    assert_int_equal(g.n, 0); /* all are too long */
    examples_free(g.items, g.n);
    items[3].prompt_ids = items[4].prompt_ids =
        prompt; /* one prompt under two names is one group */
    assert_int_equal(grpo_examples(&set, &stats, &o, &g, &err), 0);
    assert_int_equal(g.stats.groups, 1);
    assert_int_equal(g.n, 2); /* rewards sqrt(2), -sqrt(2), 0, 0: the last two are the mean */
    examples_free(g.items, g.n);
    best_of_two(&set, &stats);
    items[0].ids = NULL; /* an endpoint's answer without ids */
    assert_int_equal(grpo_examples(&set, &stats, &o, &g, &err), -1);
    assert_non_null(strstr(err.text, "a0"));
    examples_free(g.items, g.n);
    reward_stats_release(&stats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_enters), cmocka_unit_test(parents),
                                       cmocka_unit_test(examples_of_groups)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
