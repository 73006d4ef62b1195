/* The journal: replay, a tail torn at every byte, damage, another configuration, kill -9, two
 * writers. */
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

static char dir[64], target[128], path[160];
static ArtifactSpec spec;
static Error err;

typedef struct {
    long n;
    int refuse_at;
    char last[64];
} Seen;

static int see(void *ctx, const void *payload, size_t len, Error *e)
{
    Seen *s = ctx;
    if (s->refuse_at && s->n + 1 == s->refuse_at)
        return error_set(e, ERROR_INVALID, "refused by the test");
    snprintf(s->last, sizeof s->last, "%.*s", (int)len, (const char *)payload);
    char expected[32];
    snprintf(expected, sizeof expected, "item %ld", s->n++);
    return strncmp(s->last, expected, strlen(expected))
               ? error_set(e, ERROR_INVALID, "found '%s'", s->last)
               : 0;
}

static int set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/quern-test.XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(target, sizeof target, "%s/t.qa", dir);
    snprintf(path, sizeof path, "%s.journal", target);
    artifact_spec_init(&spec, "metrics", "quern-test");
    artifact_spec_config(&spec, "seed", "1");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    artifact_spec_release(&spec);
    return file_remove_tree(dir, &err);
}

static Journal *open_seen(Seen *s)
{
    Journal *j;
    *s = (Seen){0};
    if (journal_open(target, &spec, see, s, &j, &err)) fail_msg("%s", err.text);
    return j;
}

static void append_items(Journal *j, long from, long to)
{
    for (long i = from; i < to; i++) {
        char item[32];
        int n = snprintf(item, sizeof item, "item %ld", i);
        assert_int_equal(journal_append(j, item, (size_t)n, &err), 0);
    }
}

static void write_items(long n)
{
    Seen s;
    Journal *j = open_seen(&s);
    append_items(j, s.n, n);
    assert_int_equal(journal_close(j, &err), 0);
}

static Buffer slurp(void)
{
    Buffer b;
    buffer_init(&b, 0);
    assert_int_equal(file_read(path, 1 << 20, &b, &err), 0);
    return b;
}

static void test_continue(void **state)
{
    (void)state;
    Seen s;
    Journal *j = open_seen(&s);
    assert_int_equal(s.n, 0);
    append_items(j, 0, 3);
    assert_int_equal(journal_append(j, "", 0, &err), -1);
    assert_int_equal(journal_close(j, &err), 0);
    j = open_seen(&s);
    assert_int_equal(s.n, 3);
    append_items(j, 3, 5);
    assert_int_equal(journal_close(j, &err), 0);
    j = open_seen(&s);
    assert_int_equal(s.n, 5);
    assert_int_equal(journal_remove(j, &err), 0);
    assert_false(file_exists(path));
    j = open_seen(&s);
    assert_int_equal(s.n, 0);
    assert_int_equal(journal_remove(j, &err), 0);
}

/* Nothing was done, so nothing is left: after journal_close, and after exit(). A forked child that
 * exits leaves its parent's journal. */
static void test_empty_is_removed(void **state)
{
    (void)state;
    Seen s;
    int status;
    assert_int_equal(journal_close(open_seen(&s), &err), 0);
    assert_false(file_exists(path));
    pid_t pid = fork();
    if (pid == 0) {
        open_seen(&s);
        exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_false(file_exists(path));
    Journal *j = open_seen(&s);
    pid = fork();
    if (pid == 0) exit(0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(file_exists(path));
    append_items(j, 0, 1);
    assert_int_equal(journal_close(j, &err), 0);
    assert_true(file_exists(path));
}

/* Cut at every byte: the whole records before the cut come back, and appending goes on after them.
 */
static void test_torn_at_every_byte(void **state)
{
    (void)state;
    write_items(6);
    Buffer b = slurp();
    long before = 0;
    for (size_t n = 0; n <= b.len; n++) {
        Seen s;
        assert_int_equal(file_write_atomic(path, b.data, n, &err), 0);
        Journal *j = open_seen(&s);
        long whole =
            n < 40 ? 0 : (long)((n - 40) / 14); /* 32 + 8 for the digest, 6 + 8 for each item */
        assert_int_equal(s.n, whole);
        assert_true(s.n >= before);
        before = s.n;
        append_items(j, s.n, 7);
        assert_int_equal(journal_close(j, &err), 0);
        j = open_seen(&s);
        assert_int_equal(s.n, 7);
        assert_int_equal(journal_close(j, &err), 0);
    }
    buffer_release(&b);
}

static void test_every_flipped_byte(void **state)
{
    (void)state;
    write_items(4);
    Buffer b = slurp();
    for (size_t i = 0; i < b.len; i++) {
        Seen s;
        b.data[i] ^= 0x10;
        assert_int_equal(file_write_atomic(path, b.data, b.len, &err), 0);
        Journal *j = open_seen(&s);
        assert_int_equal(s.n, i < 40 ? 0 : (long)((i - 40) / 14));
        assert_int_equal(journal_close(j, &err), 0);
        b.data[i] ^= 0x10;
    }
    buffer_release(&b);
}

/* What a file system may show after a power loss: the length grew, the data did not arrive. */
static void test_tail_of_zeros(void **state)
{
    (void)state;
    write_items(2);
    Buffer b = slurp();
    char zeros[5000] = {0};
    buffer_append(&b, zeros, sizeof zeros);
    assert_int_equal(file_write_atomic(path, b.data, b.len, &err), 0);
    Seen s;
    Journal *j = open_seen(&s);
    assert_int_equal(s.n, 2);
    assert_int_equal(journal_close(j, &err), 0);
    buffer_release(&b);
}

static void test_changed_configuration(void **state)
{
    (void)state;
    write_items(3);
    artifact_spec_config(&spec, "lr", "2");
    Seen s;
    Journal *j = open_seen(&s);
    assert_int_equal(s.n, 0);
    append_items(j, 0, 1);
    assert_int_equal(journal_close(j, &err), 0);
    artifact_spec_input_digest(&spec, "in", "aa");
    j = open_seen(&s);
    assert_int_equal(s.n, 0);
    assert_int_equal(journal_close(j, &err), 0);
}

static void test_refusing_replay(void **state)
{
    (void)state;
    write_items(3);
    Seen s = {.refuse_at = 2};
    Journal *j;
    assert_int_equal(journal_open(target, &spec, see, &s, &j, &err), -1);
    assert_non_null(strstr(err.text, "t.qa.journal, record 1: refused by the test"));
}

static long journal_size(void)
{
    struct stat st;
    return stat(path, &st) ? 0 : (long)st.st_size;
}

/* A writer killed at any moment: what comes back is a run of items from 0, each once, none half. */
static void test_kill_9(void **state)
{
    (void)state;
    Seen s = {0};
    for (int round = 0; round < 8; round++) {
        long had = s.n, size = journal_size();
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            Seen mine = {0};
            Journal *j;
            Error e;
            if (journal_open(target, &spec, see, &mine, &j, &e)) _exit(1);
            for (long i = mine.n;; i++) {
                char item[300];
                memset(item, '.', sizeof item);
                int n = snprintf(item, sizeof item, "item %ld", i);
                item[n] = '.';
                if (journal_append(j, item, sizeof item, &e)) _exit(1);
            }
        }
        for (int ms = 0; ms < 60000 && journal_size() < size + 1000; ms++)
            usleep(1000); /* it writes */
        usleep(3000 * (unsigned)round);
        int status;
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        Journal *j = open_seen(&s);
        assert_true(s.n > had);
        assert_int_equal(journal_close(j, &err), 0);
    }
}

static void test_second_writer_waits(void **state)
{
    (void)state;
    Seen s;
    Journal *j = open_seen(&s);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        Seen mine = {0};
        Journal *k;
        Error e;
        if (write(ready[1], "x", 1) != 1 || journal_open(target, &spec, see, &mine, &k, &e))
            _exit(1);
        if (journal_close(k, &e)) _exit(2);
        _exit(mine.n == 3 ? 0 : 3);
    }
    char c;
    assert_int_equal(read(ready[0], &c, 1), 1);
    usleep(50000);
    append_items(j, 0, 3);
    assert_int_equal(journal_close(j, &err), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ready[0]);
    close(ready[1]);
}

/* A full disk: the append fails with a sentence and the journal keeps its whole records. */
static void test_disk_full(void **state)
{
    (void)state;
    write_items(2);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit l = {100, 100};
        Seen mine = {0};
        Journal *j;
        Error e = {0};
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &l) || journal_open(target, &spec, see, &mine, &j, &e))
            _exit(1);
        if (journal_append(j, "item 2", 6, &e)) _exit(2); /* 68 + 14 = 82 bytes */
        if (journal_append(j, "item 3 is longer", 16, &e) != -1)
            _exit(3); /* 106: above the limit */
        if (!strstr(e.text, "cannot write")) _exit(4);
        if (journal_append(j, "item 3", 6, &e)) _exit(5); /* 96: room again */
        _exit(journal_close(j, &e) ? 6 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    Seen s;
    Journal *j = open_seen(&s);
    assert_int_equal(s.n, 4);
    assert_string_equal(s.last, "item 3");
    assert_int_equal(journal_close(j, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_continue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_empty_is_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_torn_at_every_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_flipped_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tail_of_zeros, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_changed_configuration, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusing_replay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_kill_9, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_second_writer_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_disk_full, set_up, tear_down),
    };
    setenv("QUERN_LOG", "quiet", 1);
    log_open("test_journal");
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
