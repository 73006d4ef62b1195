/* Artifacts: round trip, equal work equal bytes, damage at every offset, "same", a full disk. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "artifacts/journal.h"
#include "base/file.h"
#include "base/log.h"

static char dir[64];
static char path[128], other[128];
static Error err;

static int set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/quern-test.XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof path, "%s/metrics.qa", dir);
    snprintf(other, sizeof other, "%s/other.qa", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(dir, &err);
}

static void write_metrics(const char *to, const ArtifactSpec *spec, int n)
{
    ArtifactWriter *w;
    assert_int_equal(artifact_create(to, spec, &w, &err), 0);
    for (int i = 0; i < n; i++) {
        Record *r = record_new();
        record_int(r, "step", i);
        record_text(r, "name", "loss");
        record_float(r, "value", 1.0 / (i + 1));
        assert_int_equal(artifact_write(w, r, &err), 0);
        record_free(r);
    }
    assert_int_equal(artifact_finish(w, &err), 0);
}

static ArtifactSpec metrics_spec(void)
{
    ArtifactSpec s;
    artifact_spec_init(&s, "metrics", "quern-test");
    artifact_spec_config(&s, "seed", "%d", 7);
    artifact_spec_config(&s, "lr", "%g", 0.1);
    return s;
}

static Buffer slurp(const char *p)
{
    Buffer b;
    buffer_init(&b, 0);
    assert_int_equal(file_read(p, 1 << 20, &b, &err), 0);
    return b;
}

static void test_round_trip(void **state)
{
    (void)state;
    ArtifactSpec s = metrics_spec();
    artifact_spec_input_digest(&s, "tasks", "abc");
    write_metrics(path, &s, 5);
    ArtifactReader *r;
    View v, config;
    int64_t step;
    double value;
    const void *raw;
    size_t len;
    assert_int_equal(artifact_open(path, "metrics", &r, &err), 0);
    assert_int_equal(artifact_count(r), 5);
    assert_int_equal(strlen(artifact_digest(r)), 64);
    assert_int_equal(view_map(artifact_header(r), "config", &config, &err), 0);
    char *seed = view_strdup(&config, "seed", &err);
    assert_string_equal(seed, "7");
    free(seed);
    assert_int_equal(artifact_raw(r, 0, &raw, &len), -1);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(artifact_next(r, &v, &err), 1);
        assert_int_equal(view_int(&v, "step", &step, &err), 0);
        assert_int_equal(view_float(&v, "value", &value, &err), 0);
        assert_true(step == i && value == 1.0 / (i + 1));
    }
    assert_int_equal(artifact_next(r, &v, &err), 0);
    /* copying the encoded records gives the same file */
    ArtifactWriter *w;
    assert_int_equal(artifact_create(other, &s, &w, &err), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(artifact_raw(r, i, &raw, &len), 0);
        assert_int_equal(artifact_write_encoded(w, raw, len, &err), 0);
    }
    assert_int_equal(artifact_write_encoded(w, raw, len - 1, &err), -1);
    assert_int_equal(artifact_finish(w, &err), 0);
    Buffer a = slurp(path), b = slurp(other);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    buffer_release(&a);
    buffer_release(&b);
    artifact_close(r);
    assert_int_equal(artifact_open(path, "samples", &r, &err), -1);
    assert_non_null(strstr(err.text, "expected an artifact of kind 'samples', found 'metrics'"));
    artifact_spec_release(&s);
}

static void test_empty_and_schema(void **state)
{
    (void)state;
    ArtifactSpec s = metrics_spec();
    write_metrics(path, &s, 0);
    ArtifactReader *r;
    View v;
    assert_int_equal(artifact_open(path, NULL, &r, &err), 0);
    assert_int_equal(artifact_next(r, &v, &err), 0);
    artifact_close(r);
    ArtifactWriter *w;
    assert_int_equal(artifact_create(other, &s, &w, &err), 0);
    Record *bad = record_new();
    record_int(bad, "step", 1);
    assert_int_equal(artifact_write(w, bad, &err), -1);
    assert_non_null(strstr(err.text, "other.qa, record 0, field name: expected a text"));
    record_free(bad);
    artifact_abandon(w);
    assert_false(file_exists(other));
    artifact_spec_release(&s);
    artifact_spec_init(&s, "nonsense", "x");
    assert_int_equal(artifact_create(other, &s, &w, &err), -1);
    s.kind = "metrics";
    assert_int_equal(artifact_create("/nowhere/at/all", &s, &w, &err), -1);
}

/* Every truncation and every flipped byte is refused: nothing of a damaged file is believed. */
static void test_damage(void **state)
{
    (void)state;
    ArtifactSpec s = metrics_spec();
    artifact_spec_input_digest(&s, "tasks", "abc");
    write_metrics(path, &s, 3);
    Buffer b = slurp(path);
    ArtifactReader *r;
    for (size_t n = 0; n < b.len; n++) {
        assert_int_equal(file_write_atomic(other, b.data, n, &err), 0);
        assert_int_equal(artifact_open(other, NULL, &r, &err), -1);
        assert_non_null(strstr(err.text, "other.qa"));
    }
    size_t payload = 0; /* the header's own texts are not under the digest, the payload is */
    for (size_t i = 0; i + 4 < b.len && !payload; i++)
        if (!memcmp(b.data + i, "\x83\xa4name", 6)) payload = i;
    assert_true(payload > 0);
    for (size_t i = payload; i < b.len; i++) {
        b.data[i] ^= 0x40;
        assert_int_equal(file_write_atomic(other, b.data, b.len, &err), 0);
        assert_int_equal(artifact_open(other, NULL, &r, &err), -1);
        b.data[i] ^= 0x40;
    }
    buffer_append(&b, "\x80", 1);
    assert_int_equal(file_write_atomic(other, b.data, b.len, &err), 0);
    assert_int_equal(artifact_open(other, NULL, &r, &err), -1);
    assert_non_null(strstr(err.text, "1 bytes follow the last of 3 records"));
    buffer_release(&b);
    artifact_spec_release(&s);
}

static void test_input_digest(void **state)
{
    (void)state;
    ArtifactSpec s = metrics_spec(), t;
    write_metrics(path, &s, 3);
    artifact_spec_init(&t, "metrics", "quern-test");
    assert_int_equal(artifact_spec_input(&t, path, &err), 0);
    ArtifactReader *r;
    assert_int_equal(artifact_open(path, NULL, &r, &err), 0);
    assert_string_equal(t.inputs[0].digest, artifact_digest(r));
    artifact_close(r);
    assert_int_equal(artifact_spec_input(&t, "/nowhere", &err), -1);
    artifact_spec_release(&s);
    artifact_spec_release(&t);
}

/* Repeating records are packed; the digest is that of the records as they are. A changed byte, or a
 * size that the bytes cannot hold, is refused. */
static void test_packed(void **state)
{
    (void)state;
    ArtifactSpec s = metrics_spec();
    ArtifactReader *r;
    View v;
    double last = 0;
    write_metrics(path, &s, 20000);
    Buffer b = slurp(path);
    assert_true(b.len < 20000 * 30 / 2);
    assert_int_equal(artifact_open(path, "metrics", &r, &err), 0);
    assert_int_equal(artifact_count(r), 20000);
    while (artifact_next(r, &v, &err) == 1)
        assert_int_equal(view_float(&v, "value", &last, &err), 0);
    assert_true(last == 1.0 / 20000);
    artifact_close(r);
    for (size_t at = b.len - 100000; at < b.len; at += 9973) {
        b.data[at] ^= 4;
        assert_int_equal(file_write_atomic(path, b.data, b.len, &err), 0);
        assert_int_equal(artifact_open(path, "metrics", &r, &err), -1);
        b.data[at] ^= 4;
    }
    char *claim = memmem(b.data, b.len, "packed", 6);
    assert_non_null(claim);
    claim[7] = 0x7f; /* the first byte of the size, after that of its type */
    assert_int_equal(file_write_atomic(path, b.data, b.len, &err), 0);
    assert_int_equal(artifact_open(path, "metrics", &r, &err), -1);
    assert_non_null(strstr(err.text, "packed bytes cannot hold"));
    buffer_release(&b);
    artifact_spec_release(&s);
}

static void test_same_artifact(void **state)
{
    (void)state;
    ArtifactSpec s = metrics_spec();
    artifact_spec_input_digest(&s, "in.qa", "0123");
    assert_int_equal(artifact_same(&s, path), 0);
    write_metrics(path, &s, 3);
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(0, path, old, 0), 0);
    struct stat st;
    assert_int_equal(artifact_same(&s, path), 1);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_mtime > 1000);
    /* the order of configuration calls and the input's path do not count; values and digests do */
    ArtifactSpec t;
    artifact_spec_init(&t, "metrics", "quern-test");
    artifact_spec_config(&t, "lr", "%g", 0.1);
    artifact_spec_config(&t, "seed", "%d", 7);
    artifact_spec_input_digest(&t, "elsewhere/in.qa", "0123");
    Buffer kept, fresh; /* what is the same is as if it were made again, with the spec's path */
    buffer_init(&kept, 1 << 16);
    buffer_init(&fresh, 1 << 16);
    assert_int_equal(artifact_same(&t, path), 1);
    assert_int_equal(file_read(path, 1 << 16, &kept, &err), 0);
    write_metrics(path, &t, 3);
    assert_int_equal(file_read(path, 1 << 16, &fresh, &err), 0);
    assert_int_equal(kept.len, fresh.len);
    assert_memory_equal(kept.data, fresh.data, fresh.len);
    buffer_release(&kept);
    buffer_release(&fresh);
    free(t.config[1].value);
    t.config[1].value = strdup("8");
    assert_int_equal(artifact_same(&t, path), 0);
    artifact_spec_release(&t);
    strcpy(s.inputs[0].digest, "0124");
    assert_int_equal(artifact_same(&s, path), 0);
    strcpy(s.inputs[0].digest, "0123");
    s.producer = "quern-other";
    assert_int_equal(artifact_same(&s, path), 0);
    s.producer = "quern-test";
    assert_int_equal(artifact_same(&s, path), 1);
    artifact_spec_config(&s, "more", "1");
    assert_int_equal(artifact_same(&s, path), 0);
    artifact_spec_release(&s);
    s = metrics_spec();
    artifact_spec_input_digest(&s, "in.qa", "0123");
    assert_int_equal(truncate(path, 150), 0);
    assert_int_equal(artifact_same(&s, path), 0);
    artifact_spec_release(&s);
}

static void leave_journal(const char *target, const ArtifactSpec *s)
{
    Journal *j;
    assert_int_equal(journal_open(target, s, NULL, NULL, &j, &err), 0);
    assert_int_equal(journal_append(j, "done", 4, &err), 0);
    assert_int_equal(journal_close(j, &err), 0);
}

/* What is left beside a target that is the same: this work's journal goes, unless it is being
 * written; another's stays. */
static void test_left_journal(void **state)
{
    (void)state;
    ArtifactSpec s = metrics_spec(), another = metrics_spec();
    Journal *j;
    char journal[160];
    int ready[2], go[2], status;
    char byte;
    snprintf(journal, sizeof journal, "%s.journal", path);
    artifact_spec_config(&another, "more", "1");
    write_metrics(path, &s, 3);
    leave_journal(path, &another);
    assert_int_equal(artifact_same(&s, path), 1);
    assert_true(file_exists(journal));
    leave_journal(path, &s); /* starts it over */
    assert_int_equal(pipe(ready) || pipe(go), 0);
    pid_t writer = fork();
    if (writer == 0) {
        if (journal_open(path, &s, NULL, NULL, &j, &err) || write(ready[1], "x", 1) != 1 ||
            read(go[0], &byte, 1) != 1)
            _exit(1);
        _exit(journal_close(j, &err) ? 2 : 0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(artifact_same(&s, path), 1);
    assert_true(file_exists(journal));
    assert_int_equal(write(go[1], "x", 1), 1);
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(status, 0);
    assert_int_equal(artifact_same(&another, path), 0); /* work to do: nothing is touched */
    assert_true(file_exists(journal));
    assert_int_equal(artifact_same(&s, path), 1);
    assert_false(file_exists(journal));
    assert_int_equal(file_write_atomic(journal, "torn", 4, &err), 0); /* nobody's */
    assert_int_equal(artifact_same(&s, path), 1);
    assert_true(file_exists(journal));
    for (int i = 0; i < 2; i++) close(ready[i]), close(go[i]);
    artifact_spec_release(&s);
    artifact_spec_release(&another);
}

/* A limit on the file size stands for a full disk: the old target stays, no temporary file is left.
 */
static void test_disk_full(void **state)
{
    (void)state;
    ArtifactSpec s = metrics_spec();
    write_metrics(path, &s, 3);
    Buffer before = slurp(path);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit l = {300, 300};
        ArtifactWriter *w;
        Error e = {0};
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &l) || artifact_create(path, &s, &w, &e)) _exit(2);
        for (int i = 0; i < 1000; i++) {
            Record *r = record_new();
            record_int(r, "step", i);
            record_text(r, "name", "x");
            record_float(r, "value", i);
            if (artifact_write(w, r, &e)) _exit(3);
            record_free(r);
        }
        if (artifact_finish(w, &e) != -1) _exit(4);
        _exit(strstr(e.text, "cannot write") ? 0 : 5);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    Buffer after = slurp(path);
    assert_int_equal(after.len, before.len);
    assert_memory_equal(after.data, before.data, before.len);
    char temp[160];
    snprintf(temp, sizeof temp, "%s.tmp.%ld", path, (long)child);
    assert_false(file_exists(temp));
    buffer_release(&before);
    buffer_release(&after);
    artifact_spec_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_empty_and_schema, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damage, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_input_digest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_packed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_same_artifact, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_left_journal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_disk_full, set_up, tear_down),
    };
    setenv("QUERN_LOG", "quiet", 1);
    log_open("test_artifact");
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("artifact", tests, NULL, NULL);
}
