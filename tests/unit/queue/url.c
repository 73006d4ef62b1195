/* URLs of servers, and the names of jobs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "queue/job.h"
#include "queue/url.h"

static void test_good(void **state)
{
    (void)state;
    Error err;
    QueueUrl u;
    assert_int_equal(queue_url_parse("redis://host", &u, &err), 0);
    assert_string_equal(u.host, "host");
    assert_int_equal(u.port, 6379);
    assert_int_equal(u.db, 0);
    assert_null(u.password);
    queue_url_release(&u);
    assert_int_equal(queue_url_parse("redis://me:p%40ss:w@[::1]:7000/3", &u, &err), 0);
    assert_string_equal(u.user, "me");
    assert_string_equal(u.password, "p@ss:w");
    assert_string_equal(u.host, "::1");
    assert_int_equal(u.port, 7000);
    assert_int_equal(u.db, 3);
    assert_string_equal(u.shown, "redis://[::1]:7000/3");
    queue_url_release(&u);
    assert_int_equal(queue_url_parse("redis://:secret@h/", &u, &err), 0);
    assert_null(u.user);
    assert_string_equal(u.password, "secret");
    queue_url_release(&u);
    assert_int_equal(queue_url_parse("unix:/a b/redis.sock", &u, &err), 0);
    assert_string_equal(u.unix_path, "/a b/redis.sock");
    queue_url_release(&u);
}

static void test_bad(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "host:6379",
                                      "http://h",
                                      "rediss://:secret@h",
                                      "redis://",
                                      "redis://:secret@",
                                      "redis://h:0",
                                      "redis://h:65536",
                                      "redis://h:",
                                      "redis://h/x",
                                      "redis://h/-1",
                                      "redis://[::1",
                                      "redis://[::1]7",
                                      "redis://secret@h",
                                      "redis://:secret%@h",
                                      "redis://:secret%4@h",
                                      "redis://:secret%00@h",
                                      "unix:"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        QueueUrl u;
        Error err = {0};
        if (!queue_url_parse(bad[i], &u, &err)) fail_msg("'%s' was taken", bad[i]);
        assert_true(err.text[0]);
        if (strstr(err.text, "secret")) fail_msg("a message tells the password: %s", err.text);
    }
    char long_path[256] = "unix:/";
    memset(long_path + 6, 'x', 110);
    QueueUrl u;
    Error err;
    assert_int_equal(queue_url_parse(long_path, &u, &err), -1);
}

static void test_job(void **state)
{
    (void)state;
    Error err = {0};
    Job job = {.task = "relu", .task_digest = "abc", .device = "sim:h100", .harness = JOB_HARNESS, .source = "a\0b", .source_len = 3, .seed = 7};
    Job second = job;
    snprintf(second.not_on, sizeof second.not_on, "GPU-1");
    Job back;
    Buffer b;
    buffer_init(&b, 4096);
    assert_int_equal(job_encode(&job, &b, &err), 0);
    assert_int_equal(job_decode(b.data, b.len, &back, &err), 0);
    assert_string_equal(back.task, "relu");
    assert_int_equal(back.source_len, 3);
    assert_memory_equal(back.source, "a\0b", 3);
    assert_int_equal(back.seed, 7);
    assert_string_equal(back.not_on, "");
    for (size_t n = 0; n < b.len; n++) assert_int_equal(job_decode(b.data, n, &back, &err), -1);
    buffer_clear(&b);
    assert_int_equal(job_encode(&second, &b, &err), 0);
    assert_int_equal(job_decode(b.data, b.len, &back, &err), 0);
    assert_string_equal(back.not_on, "GPU-1");
    buffer_release(&b);
    /* each part of the key counts, and parts do not run into one another */
    static const Job jobs[] = {{.source = "ab", .source_len = 2, .task_digest = "c", .device = "d", .seed = 1},
                               {.source = "a", .source_len = 1, .task_digest = "bc", .device = "d", .seed = 1},
                               {.source = "ab", .source_len = 2, .task_digest = "cd", .seed = 1},
                               {.source = "ab", .source_len = 2, .task_digest = "c", .device = "e", .seed = 1},
                               {.source = "ab", .source_len = 2, .task_digest = "c", .device = "d", .seed = 2},
                               {.source = "ac", .source_len = 2, .task_digest = "c", .device = "d", .seed = 1},
                               {.source = "ab", .source_len = 2, .task_digest = "c", .device = "d", .seed = 1, .not_on = "e"}};
    enum { JOBS = sizeof jobs / sizeof *jobs };
    char keys[JOBS][DIGEST_HEX];
    for (int i = 0; i < JOBS; i++) job_key(&jobs[i], keys[i]);
    for (int i = 0; i < JOBS; i++)
        for (int k = 0; k < i; k++) assert_string_not_equal(keys[i], keys[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad), cmocka_unit_test(test_job)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
