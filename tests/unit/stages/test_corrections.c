/* Corrections of stage 1: a wrong kernel and its verdict, answered by the correct kernel that differs
 * least; a slow one, answered by a faster one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stages/sft/dataset.h"

enum { KERNELS = 6 };

static const char *const sources[KERNELS] = {
    "//@ launch k<<<ceil_div(n, 64), 64>>>(x, y, n)\nif (i < n) y[i] = a;\n",
    "//@ launch k<<<ceil_div(n, 64), 64>>>(x, y, n)\nif (i <= n) y[i] = a;\n", /* of the one above */
    "//@ launch vectors<<<ceil_div(n, 256), 256>>>(x, y, n)\nfloat4 v = x4[i];\n",
    "//@ launch vectors<<<n / 256, 256>>>(x, y, n)\nfloat4 v = x4[i];\n", /* of the one above */
    "", /* an answer without code */
    "//@ launch lost<<<1, 1>>>(x)\n" /* the evaluator failed */};
static const Outcome outcomes[KERNELS] = {OUTCOME_OK,         OUTCOME_OUT_OF_BOUNDS,
                                          OUTCOME_OK,         OUTCOME_UNINITIALISED,
                                          OUTCOME_PLAN_ERROR, OUTCOME_EVALUATOR_ERROR};
static const double scores[KERNELS] = {1.25, 0, 2.5, 0, 0, 0};

static msgpack_zone zone;
static TaskSet tasks;

static View verdict_of(int i)
{
    Record *r = record_new();
    Buffer b;
    View v;
    Error err;
    record_text(r, "message", outcomes[i] == OUTCOME_OK ? "" : "element 64 is wrong");
    record_int(r, "line", outcomes[i] == OUTCOME_OK ? 0 : 2);
    record_float(r, "low", scores[i]);
    record_float(r, "high", scores[i]);
    record_float(r, "time_us", 8);
    buffer_init(&b, 4096);
    assert_int_equal(record_encode(r, &b, &err), 0);
    char *kept = msgpack_zone_malloc(&zone, b.len);
    memcpy(kept, b.data, b.len);
    if (view_decode(kept, b.len, "v", &zone, &v, &err)) fail_msg("%s", err.text);
    record_free(r);
    buffer_release(&b);
    return v;
}

static void write_dataset(const char *path, double corrections)
{
    static char ids[KERNELS][32], texts[KERNELS][400];
    Sample items[KERNELS];
    for (int i = 0; i < KERNELS; i++) {
        Digest d;
        snprintf(ids[i], sizeof ids[i], "collect/relu/generator/%d", i);
        snprintf(texts[i], sizeof texts[i], "answer %d\n```cuda\n%s```\n", i, sources[i]);
        items[i] = (Sample){.id = ids[i],
                            .task = (char *)(uintptr_t) "relu",
                            .source = (char *)(uintptr_t)sources[i],
                            .text = texts[i],
                            .outcome = outcomes[i],
                            .score = scores[i],
                            .turn = 1,
                            .verdict = verdict_of(i)};
        digest_of(sources[i], strlen(sources[i]), &d);
        digest_hex(&d, items[i].source_digest);
    }
    const SampleSet set = {.items = items, .n = KERNELS};
    const PromptFacts facts = {0};
    const DatasetOptions o = {
        .contrastive = 0, .drills = 0, .facts = &facts, .seed = 3, .corrections = corrections};
    ArtifactSpec spec;
    Error err;
    long kept;
    artifact_spec_init(&spec, "dataset", "test_corrections");
    if (dataset_write(&set, &tasks, &o, path, &spec, &kept, &err)) fail_msg("%s", err.text);
    assert_int_equal(kept, 2);
    artifact_spec_release(&spec);
}

/* The kernel that the prompt shows, as an index. */
static int shown(const char *prompt)
{
    for (int i = 0; i < KERNELS; i++)
        if (*sources[i] && strstr(prompt, sources[i])) return i;
    return -1;
}

static void check_correction(const char *prompt, const char *answer, int *of_wrong, int *of_slow)
{
    int from = shown(prompt), to;
    assert_int_equal(sscanf(answer, "answer %d\n", &to), 1);
    assert_true(from >= 0 && outcomes[from] != OUTCOME_EVALUATOR_ERROR);
    assert_non_null(strstr(prompt, "# Answer\n"));
    assert_non_null(strstr(prompt, "# Verdict\n"));
    if (outcomes[from] == OUTCOME_OK) {
        assert_int_equal(from, 0);
        assert_int_equal(to, 2); /* the faster one */
        assert_non_null(strstr(prompt, "score 1.25"));
        ++*of_slow;
    } else {
        assert_int_equal(to, from - 1); /* the kernel that it is one edit away from */
        assert_non_null(strstr(prompt, "line 2: element 64 is wrong"));
        ++*of_wrong;
    }
}

static void corrections(void **state)
{
    (void)state;
    ArtifactReader *r;
    Error err;
    View v;
    int of_wrong = 0, of_slow = 0, plain = 0;
    write_dataset("c.qa", 16);
    assert_int_equal(artifact_open("c.qa", "dataset", &r, &err), 0);
    while (artifact_next(r, &v, &err) == 1) {
        char *kind = view_strdup(&v, "kind", &err), *prompt = view_strdup(&v, "prompt", &err),
             *answer = view_strdup(&v, "answer", &err);
        if (!strcmp(kind, "correction"))
            check_correction(prompt, answer, &of_wrong, &of_slow);
        else
            plain += !strcmp(kind, "plain");
        free(kind);
        free(prompt);
        free(answer);
    }
    artifact_close(r);
    assert_int_equal(plain, 2);
    assert_int_equal(of_wrong, 16);  /* every second one of floor(2 * 16) */
    assert_in_range(of_slow, 1, 15); /* the fastest kernel has no better one */
}

static void none_by_default(void **state)
{
    (void)state;
    ArtifactReader *r;
    Error err;
    write_dataset("n.qa", 0);
    assert_int_equal(artifact_open("n.qa", "dataset", &r, &err), 0);
    assert_int_equal(artifact_count(r), 2);
    artifact_close(r);
}

static int load_tasks(void **state)
{
    (void)state;
    Error err;
    msgpack_zone_init(&zone, 8192);
    return taskset_load(NULL, "relu", &tasks, &err);
}

static int release_tasks(void **state)
{
    (void)state;
    taskset_release(&tasks);
    msgpack_zone_destroy(&zone);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corrections),
                                       cmocka_unit_test(none_by_default)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("corrections", tests, load_tasks, release_tasks);
}
