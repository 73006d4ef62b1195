/* Where a run stands, from a folder with settings, logs, progress and a pool: what is finished, stopped,
 * failed and going on, and how long a look at 15,000 kernels takes. */
#include "tests/unit/report/run_fixture.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "report/run/run_status.h"
#include "stages/data/pool.h"

static void put(const char *name, const char *text)
{
    char path[256];
    Error err;
    snprintf(path, sizeof path, "%s/r/%s", dir, name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    assert_int_equal(file_mkdirs(path, &err), 0);
    *slash = '/';
    assert_int_equal(file_write_atomic(path, text, strlen(text), &err), 0);
}

static void clear(void)
{
    char path[128];
    Error err;
    snprintf(path, sizeof path, "%s/r", dir);
    assert_int_equal(file_remove_tree(path, &err), 0);
    put("settings.mk",
        "# of a test\noverride RUN := a/b\noverride PROFILE := smoke\noverride POLICY := small\n"
        "override DEVICE := sim:h100\noverride SFT := --x $$1 $(hash)2\noverride EMPTY :=\n"
        "override SELFSUP_ROUNDS := 1\noverride ROUNDS := 3\noverride trained := yes\n");
}

static void put_log(const char *rule, const char *start, const char *end)
{
    char name[64], text[512];
    snprintf(name, sizeof name, "log/%s.log", rule);
    snprintf(text, sizeof text, "command: x\nstart: 2026-01-01T10:%sZ\nsaid <%s>\n%s", start, rule,
             end);
    put(name, text);
}

#define END(at, seconds, status) "end: 2026-01-01T10:" at "Z, " seconds " s, exit " status "\n"

static void put_pool(const char *name, int n)
{
    char path[128];
    Error err = {0};
    ArtifactSpec spec;
    ArtifactWriter *w;
    char *long_source = memory_alloc(2048);
    memset(long_source, 'x', 2047);
    snprintf(path, sizeof path, "%s/r/%s", dir, name);
    artifact_spec_init(&spec, "pool", "quern-test");
    assert_int_equal(artifact_create(path, &spec, &w, &err), 0);
    for (int i = 0; i < n; i++) {
        Record *r = record_new();
        char id[32];
        snprintf(id, sizeof id, "k/%d", i);
        record_text(r, "id", id);
        record_text(r, "task", i % 2 ? "relu" : "softmax");
        record_text(r, "source", long_source);
        record_text(r, "source_digest", id);
        record_float(r, "score", i < n / 2 ? 1.5 : i % 2 ? 1.25 : 2.5);
        record_float(r, "speedup", 1);
        record_text(r, "stage", i < n / 2 ? "collect" : "crl");
        record_int(r, "round", i < n / 2 ? 0 : 2);
        if (artifact_write(w, r, &err)) fail_msg("%s", err.text);
        record_free(r);
    }
    assert_int_equal(artifact_finish(w, &err), 0);
    artifact_spec_release(&spec);
    free(long_source);
}

static void look(RunStatus *s)
{
    char run[128];
    Error err = {0};
    snprintf(run, sizeof run, "%s/r", dir);
    /* 10:30:00 of that day */
    if (run_status_read(run, "runs", 1767263400, s, &err)) fail_msg("%s", err.text);
}

static void says(const RunStatus *s, const char *text)
{
    Buffer b;
    buffer_init(&b, 1 << 20);
    run_status_text(s, 0, &b);
    if (!strstr(b.data, text)) fail_msg("'%s' is not in:\n%s", text, b.data);
    assert_null(strchr(b.data, '\033'));
    buffer_release(&b);
}

static void stopped(void **state)
{
    (void)state;
    RunStatus s;
    clear();
    put_log("collect-samples", "00:00", END("01:00", "60.0", "0"));
    put_log("sft-dataset", "00:30", END("01:30", "60.0", "0"));
    put_log("sft-model-manifest", "01:30", END("01:40", "10.0", "130"));
    put("collect/verdicts.qa", "");
    look(&s);
    assert_int_equal(s.state, RUN_STOPPED);
    assert_string_equal(s.folder.name, "a/b");
    assert_string_equal(run_folder_setting(&s.folder, "SFT"), "--x $1 #2");
    assert_string_equal(run_folder_setting(&s.folder, "EMPTY"), "");
    near(s.seconds, 100); /* two rules share half a minute */
    near(s.stage[STAGE_COLLECT].seconds, 60);
    near(s.stage[STAGE_SFT].seconds, 70);
    assert_int_equal(s.stage[STAGE_COLLECT].done, 1);
    assert_int_equal(s.stage[STAGE_SFT].done, 0);
    assert_int_equal(s.stage[STAGE_CRL].planned, 3);
    says(&s, "run a/b: stopped, 1 min 40 s of work");
    says(&s, "waits");
    run_status_release(&s);
}

static void failed(void **state)
{
    (void)state;
    RunStatus s;
    clear();
    put_log("collect-samples", "00:00", END("01:00", "60.0", "3"));
    look(&s);
    assert_int_equal(s.state, RUN_FAILED);
    says(&s, "collect-samples failed with exit 3: said <collect-samples>");
    run_status_release(&s);
    /* The same rule has run again and worked. */
    put_log("collect-samples", "00:00",
            END("01:00", "60.0", "3") "start: 2026-01-01T10:02:00Z\n" END("02:05", "5.0", "0"));
    put_log("report", "03:00", END("03:01", "1.0", "0"));
    look(&s);
    assert_int_equal(s.state, RUN_FINISHED);
    near(s.rules[0].spent, 65);
    run_status_release(&s);
    /* A round more was begun after the report. */
    put_log("crl-4-samples", "05:00", END("05:01", "1.0", "143"));
    look(&s);
    assert_int_equal(s.state, RUN_STOPPED);
    run_status_release(&s);
}

static void run_going_on(void **state)
{
    (void)state;
    RunStatus s;
    char path[128];
    clear();
    put_log("crl-2-verdicts", "29:00", "");
    put_log("best-verdicts-sim-rtx3090", "29:30", "");
    put("log/crl-2-verdicts.progress", "evaluate 50 200 candidates 2.500 60          \n");
    put("queue/lock", "1 1\n");
    put("selfsup/1/pool.qa", "");
    put("selfsup/1/model/manifest.qa", "");
    put("crl/1/model/manifest.qa", "");
    put_pool("crl/1/pool.qa", 8);
    snprintf(path, sizeof path, "%s/r/queue/lock", dir);
    int fd = open(path, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    look(&s);
    assert_int_equal(s.state, RUN_GOING);
    assert_int_equal(s.stage[STAGE_SELFSUP].done, 1);
    assert_int_equal(s.stage[STAGE_CRL].rounds, 1);
    assert_string_equal(s.pool, "crl/1/pool.qa");
    assert_int_equal(s.n_tasks, 2);
    near(s.task[0].best, 1.5); /* relu: the teacher's */
    assert_string_equal(s.task[0].found, "collect");
    near(s.task[1].best, 2.5);
    near(s.task[1].teacher, 1.5);
    assert_string_equal(s.task[1].found, "crl 2");
    says(&s, "crl-2-verdicts            evaluate 50 of 200 candidates, 2.5/s, 1 min 00 s left");
    says(&s, "best-verdicts-sim-rtx3090 for 30 s"); /* one column, as wide as the longest */
    says(&s, "crl       1 of 3");
    says(&s, "The queue does not answer.");
    Buffer json;
    Error err = {0};
    buffer_init(&json, 1 << 20);
    assert_int_equal(run_status_json(&s, &json, &err), 0);
    assert_non_null(strstr(json.data, "\"left_s\": 60.0"));
    buffer_release(&json);
    run_status_release(&s);
    close(fd);
    look(&s); /* its fleet was killed */
    assert_int_equal(s.state, RUN_STOPPED);
    run_status_release(&s);
}

/* Bytes that are no log, no settings and no progress are passed over; a damaged pool is an error. */
static void foreign(void **state)
{
    (void)state;
    RunStatus s;
    Error err = {0};
    char run[128];
    clear();
    put("settings.mk", "override\noverride X\noverride Y :=\noverride Z := $(ha\n\xff\xfe :=\n");
    put("log/a.log", "start: yesterday\nend: now\n");
    put("log/b.log", "start: 2026-01-01T10:00:00Z\nend: 2026-01-01T10:00:01Z, many s, exit 0\n");
    put("log/b.progress", "evaluate x y");
    put("log/c.txt", "start: 2026-01-01T10:00:00Z\n");
    look(&s);
    assert_int_equal(s.n_rules, 1);
    assert_int_equal(s.rules[0].state, RULE_RUNNING);
    assert_string_equal(s.rules[0].what, "");
    assert_string_equal(run_folder_setting(&s.folder, "Z"), "$(ha");
    run_status_release(&s);
    put("collect/pool.qa", "no pool");
    snprintf(run, sizeof run, "%s/r", dir);
    assert_int_equal(run_status_read(run, "runs", 0, &s, &err), -1);
    assert_non_null(strstr(err.text, "collect/pool.qa"));
    run_status_release(&s);
    assert_int_equal(run_status_read("nowhere", dir, 0, &s, &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
    run_status_release(&s);
}

/* A log that was put aside, and one whose start is further from its end than most. */
static void long_logs(void **state)
{
    (void)state;
    RunStatus s;
    size_t n = 300000;
    char *text = memory_alloc(n + 200);
    clear();
    put("log/a.log.1", "start: 2026-01-01T10:00:00Z\nend: 2026-01-01T10:00:09Z, 9 s, exit 1\n");
    put("log/a.log", "start: 2026-01-01T11:00:00Z\nend: 2026-01-01T11:00:04Z, 4 s, exit 0\n");
    int at = snprintf(text, 100, "start: 2026-01-01T12:00:00Z\n");
    for (size_t i = (size_t)at; i < n; i++) text[i] = i % 50 ? 'x' : '\n';
    snprintf(text + n, 200, "\nend: 2026-01-01T12:00:05Z, 5 s, exit 0\n");
    put("log/b.log", text);
    snprintf(text + n, 200, "\nend: 2026-01-01T12:00:05Z, 5 s, exit 0\n");
    memcpy(text, "extra", 5);
    put("log/c.log", text); /* no start at all */
    look(&s);
    assert_int_equal(s.n_rules, 2);
    assert_string_equal(s.rules[0].name, "a");
    assert_true(s.rules[0].seconds == 4 && s.rules[0].spent == 13);
    assert_int_equal(s.rules[0].state, RULE_DONE);
    assert_string_equal(s.rules[1].name, "b");
    assert_true(s.rules[1].spent == 5 && s.rules[1].state == RULE_DONE);
    run_status_release(&s);
    free(text);
}

/* Writes the pool of n kernels as quern-pool does, with sources of 2 kB that differ. */
static void put_real_pool(const char *name, int n)
{
    static char text[2048];
    char path[128];
    Error err = {0};
    ArtifactSpec spec;
    Pool pool = {.n = n, .items = memory_array((size_t)n, sizeof *pool.items)};
    for (int i = 0; i < n; i++) {
        int at = 0;
        while (at < (int)sizeof text - 64)
            at += snprintf(text + at, sizeof text - (size_t)at, "y[%d * i] = x[i + %u] + %d;\n", i,
                           (unsigned)(i * 2654435761u + (unsigned)at * 40503u), at);
        PoolItem *x = &pool.items[i];
        *x = (PoolItem){.id = memory_printf("k/%d", i),
                        .task = memory_printf("task_%d", i % 12),
                        .source = memory_strdup(text),
                        .stage = memory_strdup(i < n / 2 ? "collect" : "crl"),
                        .score = 1 + (i * 37 % 100) / 10.0,
                        .round = i < n / 2 ? 0 : 1 + i % 3};
        snprintf(x->source_digest, sizeof x->source_digest, "%d", i);
    }
    snprintf(path, sizeof path, "%s/r/%s", dir, name);
    artifact_spec_init(&spec, "pool", "quern-test");
    if (pool_write(&pool, path, &spec, &err)) fail_msg("%s", err.text);
    artifact_spec_release(&spec);
    pool_release(&pool);
}

/* Writes the records of a pool without its summary, as other versions did. */
static void drop_summary(const char *name)
{
    char path[128];
    Error err = {0};
    ArtifactSpec spec;
    ArtifactReader *r;
    ArtifactWriter *w;
    View v;
    const void *data;
    size_t len;
    snprintf(path, sizeof path, "%s/r/%s", dir, name);
    artifact_spec_init(&spec, "pool", "quern-test");
    assert_int_equal(artifact_open(path, "pool", &r, &err), 0);
    assert_int_equal(artifact_create(path, &spec, &w, &err), 0);
    for (long i = 0; artifact_next(r, &v, &err) == 1; i++) {
        assert_int_equal(artifact_raw(r, i, &data, &len), 0);
        assert_int_equal(artifact_write_encoded(w, data, len, &err), 0);
    }
    assert_int_equal(artifact_finish(w, &err), 0);
    artifact_close(r);
    artifact_spec_release(&spec);
}

/* The summary of a pool says what its records say. */
static void summary(void **state)
{
    (void)state;
    RunStatus a, b;
    clear();
    put("collect/x", "");
    put_real_pool("collect/pool.qa", 500);
    look(&a);
    drop_summary("collect/pool.qa");
    look(&b);
    assert_int_equal(a.n_tasks, 12);
    assert_int_equal(b.n_tasks, 12);
    for (int i = 0; i < 12; i++) {
        assert_string_equal(a.task[i].task, b.task[i].task);
        assert_string_equal(a.task[i].found, b.task[i].found);
        assert_int_equal(a.task[i].kernels, b.task[i].kernels);
        near(a.task[i].best, b.task[i].best);
        near(a.task[i].teacher, b.task[i].teacher);
    }
    run_status_release(&a);
    run_status_release(&b);
}

/* A run of 15,000 samples, all of them correct and in the pool. */
static void large_run_is_read_quickly(void **state)
{
    (void)state;
    RunStatus s;
    double best = 1e9;
    clear();
    put("collect/x", "");
    put_real_pool("collect/pool.qa", 15000);
    for (int i = 0; i < 3; i++) {
        double start = clock_seconds();
        look(&s);
        best = fmin(best, clock_seconds() - start);
        assert_int_equal(s.task[0].kernels, 1250);
        run_status_release(&s);
    }
    print_message("# a look took %.4f s\n", best);
    assert_true(best < 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped),
        cmocka_unit_test(failed),
        cmocka_unit_test(run_going_on),
        cmocka_unit_test(foreign),
        cmocka_unit_test(long_logs),
        cmocka_unit_test(summary),
        cmocka_unit_test(large_run_is_read_quickly),
    };
    unsetenv("QUERN_REDIS");
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
