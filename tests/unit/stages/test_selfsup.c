/* The examples of stage 2: the successes that count, and their weights. */
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
#include "stages/policy/policy.h"
#include "stages/selfsup/selfsup.h"

static int32_t prompt[2] = {1, 2}, answer[3] = {3, 4, 5};

static Sample sample(const char *task, char digest, Outcome outcome, int heldout)
{
    Sample s = {.id = (char *)"id",
                .task = (char *)task,
                .source = (char *)"",
                .outcome = outcome,
                .heldout = heldout,
                .ids = answer,
                .n_ids = 3,
                .prompt_ids = prompt,
                .n_prompt = 2};
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
    Sample first[6] = {sample("a", 'x', OUTCOME_OK, 0), /* known, from the teacher */
                       sample("a", 'y', OUTCOME_OK, 0),
                       sample("a", 'y', OUTCOME_OK, 0), /* twice */
                       sample("a", 'z', OUTCOME_WRONG_RESULT, 0),
                       sample("h", 'y', OUTCOME_OK, 1),
                       sample("b", 'y', OUTCOME_OK, 0)}; /* the same text for another task */
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
    assert_int_equal(s.n, 3); /* 'y' is known from the first round */
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
    for (int i = 0; i < 5; i++)
        items[i] = sample(i < 4 ? "easy" : "hard", (char)('a' + i), OUTCOME_OK, 0);
    const SampleSet round = {.items = items, .n = 5};
    assert_int_equal(successes_add(&s, &round, &known, &err), 0);
    successes_balance(&s);
    double sum = 0;
    for (int i = 0; i < 5; i++) sum += s.items[i].advantage;
    assert_true(fabs(sum - 5) < 1e-12);                      /* mean 1 */
    assert_true(fabs(s.items[4].advantage - 2.5) < 1e-12);   /* 5 / 2 tasks / 1 */
    assert_true(fabs(s.items[0].advantage - 0.625) < 1e-12); /* 5 / 2 tasks / 4 */
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
    assert_int_equal(successes_add(&s, &round, &known, &err),
                     -1); /* an answer without ids needs a tokenizer */
    assert_non_null(strstr(err.text, "no token ids"));
    successes_release(&s);
    pool_release(&known);
}

static int write_dataset(const char *path, Error *err)
{
    static const char *const answers[3] = {
        "one", "two", "a longer answer than max_len lets in, word after word after word"};
    ArtifactSpec spec;
    ArtifactWriter *w;
    artifact_spec_init(&spec, "dataset", "test_selfsup");
    if (artifact_create(path, &spec, &w, err)) return -1;
    for (int i = 0; i < 3; i++) {
        Record *r = record_new();
        record_text(r, "id", answers[i]);
        record_text(r, "task", "a");
        record_float(r, "score", 1);
        record_text(r, "kind", i ? "contrastive" : "plain");
        record_text(r, "prompt", "# Task a\n");
        record_text(r, "answer", answers[i]);
        if (artifact_write(w, r, err)) return -1;
        record_free(r);
    }
    int rc = artifact_finish(w, err);
    artifact_spec_release(&spec);
    return rc;
}

/* The examples of stage 1 are added with weight 1 and masked prompts; the own ones do not
 * change. */
static void rehearsal(void **state)
{
    (void)state;
    Error err;
    Policy p;
    Successes s = {0};
    Pool known = {0};
    const SmallModel shape = {300, 16, 32, 1, 2, 1, 256, 3};
    ArtifactSpec spec;
    artifact_spec_init(&spec, "manifest", "test_selfsup");
    if (write_dataset("dataset.qa", &err) ||
        small_policy_create("dataset.qa", &shape, ops_cpu(), &p, &err) ||
        policy_save(&p, "model", NULL, &spec, &err))
        fail_msg("%s", err.text);
    Sample own[3] = {sample("a", 'x', OUTCOME_OK, 0), sample("a", 'y', OUTCOME_OK, 0),
                     sample("b", 'z', OUTCOME_OK, 0)};
    const SampleSet round = {.items = own, .n = 3};
    assert_int_equal(successes_add(&s, &round, &known, &err), 0);
    successes_balance(&s);
    TokenIds begin = {0};
    assert_int_equal(chat_encode_prompt(&p.chat, "# Task a\n", 9, &begin, &err), 0);
    int32_t *ids = begin.ids;
    size_t n_prompt = begin.n;
    Rehearsal all = {.max_len = (int)n_prompt + 20, .share = 1, .seed = 1};
    assert_int_equal(successes_rehearse(&s, "model", "dataset.qa", &all, &err), 0);
    assert_int_equal(s.own, 3);
    assert_int_equal(s.n, 5); /* the third is too long */
    assert_true(fabs(s.items[2].advantage - 1.5) < 1e-12);
    for (int i = 3; i < 5; i++) {
        assert_true(s.items[i].advantage == 1);
        assert_null(s.items[i].old_logp);
        assert_int_equal(s.items[i].prompt, n_prompt);
        assert_memory_equal(s.items[i].ids, ids, n_prompt * sizeof *ids);
        assert_int_equal(s.items[i].ids[s.items[i].len - 1], p.chat.end);
    }
    assert_int_equal(successes_rehearse(&s, "model", "absent.qa", &all, &err), -1);
    assert_int_equal(s.n, 5);
    all.share = 0;
    assert_int_equal(successes_rehearse(&s, "model", "dataset.qa", &all, &err), 0);
    assert_int_equal(s.n, 5);
    all.share = 0.5; /* 40 rounds of two examples each give about 40, often one of the two */
    int ones = 0;
    for (int draw = 0; draw < 40; draw++) {
        long before = s.n;
        all.stream = (uint64_t)draw;
        assert_int_equal(successes_rehearse(&s, "model", "dataset.qa", &all, &err), 0);
        ones += s.n - before == 1;
    }
    assert_true(s.n > 5 + 20 && s.n < 5 + 60 && ones > 8);
    free(ids);
    successes_release(&s);
    pool_release(&known);
    policy_release(&p);
    artifact_spec_release(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(once_each),
                                       cmocka_unit_test(tasks_weigh_the_same),
                                       cmocka_unit_test(no_ids), cmocka_unit_test(rehearsal)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("selfsup", tests, NULL, NULL);
}
