/* URLs of queue servers: valid ones and their fields, wrong ones and their messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "queue/url.h"

static void test_good_urls(void **state)
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

static void test_bad_urls(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good_urls),
                                       cmocka_unit_test(test_bad_urls)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
