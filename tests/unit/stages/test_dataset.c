/* The dataset of stage 1: distinct correct kernels of train tasks, and contrastive examples, whose
 * prompt shows two slower kernels and whose answer compares them correctly, with the counters of
 * their verdicts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "eval/candidate/answer.h"
#include "stages/data/deciding.h"
#include "stages/data/round_figures.h"
#include "stages/sft/dataset.h"

enum { KERNELS = 9 };

typedef struct {
    char id[32], source[400], text[700];
} Storage;

/* Five relu kernels (the last two equal), two of row_sum, one wrong, one of a heldout task. */
static const struct {
    const char *task;
    int variant;
    Outcome outcome;
    double score;
} plan[KERNELS] = {{"relu", 0, OUTCOME_OK, 1.25},   {"relu", 1, OUTCOME_OK, 0.5},
                   {"relu", 2, OUTCOME_OK, 2.0},    {"relu", 3, OUTCOME_OK, 2.0},
                   {"relu", 3, OUTCOME_OK, 2.0},    {"row_sum", 0, OUTCOME_OK, 1.0},
                   {"row_sum", 1, OUTCOME_OK, 1.5}, {"relu", 5, OUTCOME_WRONG_RESULT, 0},
                   {"gelu", 0, OUTCOME_OK, 3.0}};

static void make_samples(Sample items[KERNELS], Storage store[KERNELS])
{
    for (int i = 0; i < KERNELS; i++) {
        Storage *s = &store[i];
        snprintf(s->id, sizeof s->id, "collect/%s/generator/%d", plan[i].task, i);
        snprintf(s->source, sizeof s->source,
                 "//@ launch k<<<ceil_div(n, %d), %d>>>(x, y, n)\n__global__ void k() {}\n",
                 64 << plan[i].variant, 64 << plan[i].variant);
        Buffer b;
        buffer_init(&b, sizeof s->text - 1);
        answer_write(&b, "Bytes decide.", "One thread an element.", s->source);
        memcpy(s->text, b.data, b.len + 1);
        buffer_release(&b);
        items[i] = (Sample){.id = s->id,
                            .task = (char *)plan[i].task,
                            .source = s->source,
                            .text = s->text,
                            .outcome = plan[i].outcome,
                            .score = plan[i].score,
                            .heldout = !strcmp(plan[i].task, "gelu")};
        Digest d;
        digest_of(s->source, strlen(s->source), &d);
        digest_hex(&d, items[i].source_digest);
    }
}

static int sample_with_source(const char *source, size_t len)
{
    Storage store[KERNELS];
    Sample items[KERNELS];
    make_samples(items, store);
    for (int i = 0; i < KERNELS; i++)
        if (strlen(items[i].source) == len && !memcmp(items[i].source, source, len)) return i;
    return -1;
}

/* Returns the kernel below "// codeK (score S)" as an index into plan, and the score that is
 * shown. */
static int shown(const char *prompt, int k, double *score)
{
    char mark[32];
    snprintf(mark, sizeof mark, "// code%d (score ", k);
    const char *at = strstr(prompt, mark);
    assert_non_null(at);
    *score = atof(at + strlen(mark));
    const char *source = strchr(at, '\n') + 1, *end = strstr(source, "// code");
    if (!end) end = strstr(source, "# Scores\n");
    return sample_with_source(source, end ? (size_t)(end - source) : strlen(source));
}

static void check_contrastive(const char *prompt, const char *answer)
{
    double s1, s2;
    size_t len;
    int a = shown(prompt, 1, &s1), b = shown(prompt, 2, &s2), winner;
    const char *code = answer_code(answer, strlen(answer), &len);
    int self = code ? sample_with_source(code, len) : -1;
    assert_true(a >= 0 && b >= 0 && self >= 0);
    assert_string_not_equal(plan[a].task, "gelu");
    assert_string_equal(plan[a].task, plan[self].task);
    assert_true(plan[a].variant != plan[b].variant && plan[a].variant != plan[self].variant &&
                plan[b].variant != plan[self].variant);
    assert_true(fabs(s1 - plan[a].score) < 0.006 && fabs(s2 - plan[b].score) < 0.006);
    static const char head[] = "## Performance Analysis\n";
    assert_memory_equal(answer, head, sizeof head - 1);
    const char *text = answer + sizeof head - 1;
    assert_true(plan[self].score > 1.02 * plan[a].score && plan[self].score > 1.02 * plan[b].score);
    assert_true(plan[a].score != plan[b].score);
    assert_int_equal(comparison_judge(prompt, answer), COMPARISON_RIGHT);
    int other;
    assert_int_equal(sscanf(text, "code%d is faster than code%d.", &winner, &other), 2);
    assert_int_equal(winner, plan[a].score > plan[b].score ? 1 : 2);
    assert_int_equal(other, 3 - winner);
    char described[40];
    snprintf(described, sizeof described,
             "\ncode%d: ", winner); /* a line about the faster one alone */
    const char *line = strstr(text, described);
    assert_non_null(line);
    snprintf(described, sizeof described, "%d threads", 64 << plan[winner == 1 ? a : b].variant);
    const char *end = strchr(line + 1, '\n'), *threads = strstr(line, described);
    assert_true(end && threads && threads < end);
}

/* A drill shows two scores and no source; its list has the higher one first. */
static void check_drill(const char *prompt, const char *answer)
{
    double score[COMPARISON_MAX];
    int first;
    assert_int_equal(comparison_scores(prompt, score), 2);
    assert_null(strstr(prompt, "__global__"));
    assert_int_equal(comparison_judge(prompt, answer), COMPARISON_RIGHT);
    const char *list = strstr(prompt, "# Scores\ncode");
    assert_non_null(list);
    assert_int_equal(sscanf(list, "# Scores\ncode%d ", &first), 1);
    assert_int_equal(first, score[0] > score[1] ? 1 : 2);
}

static TaskSet tasks;

static void write_dataset(const char *path, int contrastive, int drills, uint64_t seed, long *kept)
{
    Storage store[KERNELS];
    Sample items[KERNELS];
    make_samples(items, store);
    const SampleSet set = {.items = items, .n = KERNELS};
    ArtifactSpec spec;
    Error err;
    artifact_spec_init(&spec, "dataset", "test_dataset");
    const PromptFacts facts = {0};
    const DatasetOptions o = {contrastive, drills, &facts, seed};
    if (dataset_write(&set, &tasks, &o, path, &spec, kept, &err)) fail_msg("%s", err.text);
    artifact_spec_release(&spec);
}

static void examples(void **state)
{
    (void)state;
    enum { CONTRASTIVE = 6, DRILLS = 5 };
    long kept, plain = 0, contrastive = 0, drills = 0;
    write_dataset("d.qa", CONTRASTIVE, DRILLS, 7, &kept);
    assert_int_equal(kept, 6); /* 4 distinct of relu, 2 of row_sum */
    ArtifactReader *r;
    Error err;
    View v;
    assert_int_equal(artifact_open("d.qa", "dataset", &r, &err), 0);
    while (artifact_next(r, &v, &err) == 1) {
        char *task = view_strdup(&v, "task", &err), *kind = view_strdup(&v, "kind", &err);
        char *prompt = view_strdup(&v, "prompt", &err), *answer = view_strdup(&v, "answer", &err);
        assert_true(!strcmp(task, "relu") || !strcmp(task, "row_sum"));
        assert_null(strstr(prompt, "gelu"));
        if (!strcmp(kind, "plain")) {
            assert_null(strstr(prompt, "// code"));
            assert_non_null(strstr(answer, "One thread an element."));
            plain++;
        } else if (!strcmp(kind, "drill")) {
            check_drill(prompt, answer);
            drills++;
        } else {
            check_contrastive(prompt, answer);
            contrastive++;
        }
        free(task);
        free(kind);
        free(prompt);
        free(answer);
    }
    artifact_close(r);
    assert_int_equal(plain, 6);
    assert_int_equal(contrastive, 4 * CONTRASTIVE); /* row_sum has no two other kernels to show */
    assert_in_range(drills, DRILLS, 6 * DRILLS);    /* pairs of equal scores have none */
}

/* A verdict with counters, valid until the zone is destroyed. */
static View verdict_of(double low, double high, double dram, double launches, msgpack_zone *zone)
{
    Record *r = record_new(), *c = record_map(r, "counters");
    Buffer b;
    View v;
    Error err;
    record_float(r, "low", low);
    record_float(r, "high", high);
    record_float(c, "dram_bytes", dram);
    record_float(c, "launches", launches);
    record_float(c, "time_kernels_us", 90);
    record_float(c, "time_dram_us", 80);
    record_float(c, "time_launch_us", 10);
    buffer_init(&b, 1000);
    assert_int_equal(record_encode(r, &b, &err), 0);
    char *kept = msgpack_zone_malloc(zone, b.len);
    memcpy(kept, b.data, b.len);
    if (view_decode(kept, b.len, "v", zone, &v, &err)) fail_msg("%s", err.text);
    record_free(r);
    buffer_release(&b);
    return v;
}

static void deciding(void **state)
{
    (void)state;
    msgpack_zone zone;
    msgpack_zone_init(&zone, 4096);
    Deciding d;
    View a = verdict_of(1, 1, 100, 1, &zone), b = verdict_of(1, 1, 200, 3, &zone),
         c = verdict_of(1, 1, 105, 4, &zone), none = {0};
    assert_int_equal(deciding_counter(&a, &b, &d), 1); /* most of the time is DRAM's */
    assert_string_equal(d.name, "dram_bytes");
    assert_true(d.fast == 100 && d.slow == 200);
    assert_int_equal(deciding_counter(&a, &c, &d), 1); /* 5% are no difference */
    assert_string_equal(d.name, "launches");
    assert_int_equal(deciding_counter(&b, &a, &d), 0);
    assert_int_equal(deciding_counter(&a, &none, &d), 0);
    msgpack_zone_destroy(&zone);
}

static void comparisons(void **state)
{
    (void)state;
    static const char prompt[] = "# Task t\n// code1 (score 1.25)\nint x; // code2 (score 9)\n"
                                 "// code2 (score 0.50)\nint y;\n// code3 (score 1.25)\n",
                      one[] = "# Task t\n// code1 (score 1.25)\n";
    double score[COMPARISON_MAX];
    assert_int_equal(comparison_scores(prompt, score), 3);
    assert_true(score[0] == 1.25 && score[1] == 0.5 && score[2] == 1.25);
    static const struct {
        const char *answer;
        Comparison is;
    } cases[] = {{"## A\ncode1 is faster than code2.", COMPARISON_RIGHT},
                 {"code2 is faster than code1", COMPARISON_WRONG},
                 {"code1 is short. code3 is faster than code1", COMPARISON_TIE},
                 {"code4 is faster than code1", COMPARISON_SILENT},
                 {"code1 is faster than code1", COMPARISON_SILENT},
                 {"code1 is fast", COMPARISON_SILENT},
                 {"", COMPARISON_SILENT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(comparison_judge(prompt, cases[i].answer), cases[i].is);
    assert_int_equal(comparison_judge(one, "code1 is faster than code2"), COMPARISON_NONE);
    assert_int_equal(comparison_judge("", ""), COMPARISON_NONE);
}

static void repeats(void **state)
{
    (void)state;
    long kept;
    char *digest[3];
    static const uint64_t seeds[3] = {7, 7, 8};
    for (int i = 0; i < 3; i++) {
        ArtifactReader *r;
        Error err;
        write_dataset("r.qa", 2, 1, seeds[i], &kept);
        assert_int_equal(artifact_open("r.qa", "dataset", &r, &err), 0);
        digest[i] = memory_strdup(artifact_digest(r));
        artifact_close(r);
    }
    assert_string_equal(digest[0], digest[1]);
    assert_string_not_equal(digest[0], digest[2]);
    for (int i = 0; i < 3; i++) free(digest[i]);
}

static void nothing_correct(void **state)
{
    (void)state;
    Storage store[KERNELS];
    Sample items[KERNELS];
    make_samples(items, store);
    const SampleSet set = {.items = items + 7, .n = 2}; /* a wrong one, and one of a heldout task */
    ArtifactSpec spec;
    Error err;
    long kept;
    artifact_spec_init(&spec, "dataset", "test_dataset");
    const PromptFacts facts = {0};
    const DatasetOptions o = {2, 0, &facts, 1};
    assert_int_equal(dataset_write(&set, &tasks, &o, "none.qa", &spec, &kept, &err), -1);
    assert_non_null(strstr(err.text, "nothing to learn from"));
    assert_int_equal(fopen("none.qa", "r") == NULL, 1);
    artifact_spec_release(&spec);
}

static int load_tasks(void **state)
{
    (void)state;
    Error err;
    return taskset_load(NULL, "relu,row_sum,gelu", &tasks, &err);
}

static int release_tasks(void **state)
{
    (void)state;
    taskset_release(&tasks);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples), cmocka_unit_test(repeats),
                                       cmocka_unit_test(nothing_correct),
                                       cmocka_unit_test(deciding), cmocka_unit_test(comparisons)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("dataset", tests, load_tasks, release_tasks);
}
