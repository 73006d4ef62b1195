/* A run for the tests of the report: a scratch folder, and samples with their verdicts in it. */
#ifndef TESTS_RUN_FIXTURE_H
#define TESTS_RUN_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "report/report.h"
#include "tests/fixture_path.h"

static char dir[64];

static inline int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/quern-report-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    Error err;
    return file_remove_tree(dir, &err);
}

static inline void near(double got, double want)
{
    if (!(fabs(got - want) < 1e-9)) fail_msg("%.12g, expected %.12g", got, want);
}

typedef struct {
    const char *task, *outcome;
    double score;
    const char *finish; /* NULL: "stop" */
} Row;

static inline void counters(Record *r, const char *key, double dram, double conflicts)
{
    Record *m = record_map(r, key);
    record_float(m, "dram_bytes", dram);
    record_float(m, "bank_conflicts", conflicts);
    record_float(m, "launches", 1);
    record_float(m, "time_dram_us", dram / 1e6);
}

static const char source[] = "//@ launch k<<<1, 32>>>(x)\nif (a < b) y = \"</pre>\"; // <b>\n";

static inline Record *verdict(const Row *row, const char *id)
{
    Record *r = record_new();
    int ok = !strcmp(row->outcome, "ok");
    static const char *const texts[] = {"id",          "task",    "outcome", "key", "source_digest",
                                        "task_digest", "harness", "compiler"};
    char digest[DIGEST_HEX];
    Digest d;
    digest_of(source, strlen(source), &d);
    digest_hex(&d, digest);
    const char *values[] = {id, row->task, row->outcome, "k", digest, "t", "1", "nvrtc"};
    record_text(r, "confirmed",
                row->score == 2   ? "alone"
                : row->score == 3 ? "no"
                : row->score == 9 ? "yes"
                                  : "");
    for (int i = 0; i < 8; i++) record_text(r, texts[i], values[i]);
    record_text(r, "device", "sim:h100");
    record_text(r, "message", ok ? "" : "index 17 of <y> is 0.5");
    record_int(r, "line", 0);
    record_float(r, "score", row->score);
    record_float(r, "speedup", row->score);
    record_float(r, "low", row->score);
    record_float(r, "high", row->score);
    record_float(r, "time_us", ok ? 12 / row->score : 0);
    record_float(r, "baseline_us", 12);
    record_bool(r, "predicted", 1);
    if (ok) {
        counters(r, "counters", 4e6, 0);
        Record *detail = record_map(r, "detail");
        record_float(detail, "error_factor", 1.4);
        counters(detail, "baseline_counters", 12e6, 640);
        if (!strcmp(row->task, "softmax")) { /* PyTorch's times are known of this task alone */
            Record *rivals = record_map(detail, "rivals");
            record_text(detail, "torch", "2.11");
            record_float(rivals, "compile_us", 18);
            record_float(rivals, "compile_low_us", 17.1);
            record_float(rivals, "compile_high_us", 18.9);
        }
    }
    return r;
}

/* Who writes the next samples; each has 1000 tokens of a prompt and 250 of an answer. */
static const char *producer = "x";

static inline Record *sample(const Row *row, const char *id)
{
    Record *r = record_new();
    static const char *const texts[] = {"stage", "producer", "group", "text", "prompt"};
    for (int i = 0; i < 5; i++) record_text(r, texts[i], i == 1 ? producer : "x");
    Record *usage = record_map(r, "usage");
    record_int(usage, "prompt_tokens", 1000);
    record_int(usage, "completion_tokens", 250);
    record_text(r, "id", id);
    record_text(r, "task", row->task);
    record_text(r, "split", !strcmp(row->task, "gelu") ? "heldout" : "train");
    record_text(r, "finish", row->finish ? row->finish : "stop");
    record_int(r, "trial", 0);
    record_int(r, "seed", 0);
    record_text(r, "source", source);
    return r;
}

/* The endpoint that the next samples come from, and whether an adapter answered; NULL: a model here. */
static const char *endpoint;
static int adapter;

/* Writes dir/NAME/samples.qa and verdicts.qa. The paths stay valid for the next four calls. */
static inline void write_pair(const char *name, const Row *rows, int n, const char **samples,
                              const char **verdicts)
{
    static char paths[16][128];
    static int used;
    Error err = {0};
    ArtifactSpec specs[2];
    ArtifactWriter *w[2];
    char *folder = paths[used++ % 16];
    snprintf(folder, 128, "%s/%s", dir, name);
    assert_int_equal(file_mkdirs(folder, &err), 0);
    for (int k = 0; k < 2; k++) {
        char *path = paths[used++ % 16];
        snprintf(path, 128, "%s/%s/%s.qa", dir, name, k ? "verdicts" : "samples");
        *(k ? verdicts : samples) = path;
        artifact_spec_init(&specs[k], k ? "verdicts" : "samples", "quern-test");
        artifact_spec_config(&specs[k], "name", "<%s>", name);
        if (!k && endpoint) {
            artifact_spec_config(&specs[k], "policy", "%s", endpoint);
            artifact_spec_input_digest(&specs[k], "prompts.qa", "p");
            if (adapter) artifact_spec_input_digest(&specs[k], "model", "m");
        }
        assert_int_equal(artifact_create(path, &specs[k], &w[k], &err), 0);
        for (int i = 0; i < n; i++) {
            char id[64];
            snprintf(id, sizeof id, "%s/%d", name, i);
            Record *r = k ? verdict(&rows[i], id) : sample(&rows[i], id);
            if (artifact_write(w[k], r, &err)) fail_msg("%s", err.text);
            record_free(r);
        }
        assert_int_equal(artifact_finish(w[k], &err), 0);
        artifact_spec_release(&specs[k]);
    }
}

/* The files of a report on some tasks, without samples yet. */
static inline ReportFiles report_files(const char *tasks)
{
    return (ReportFiles){.run = "x",
                         .profile = "y",
                         .device = "sim:h100",
                         .tasks = tasks,
                         .task_root = fixture_path("tasks")};
}

#endif
