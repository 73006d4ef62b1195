/* The folder of the cache: an entry answers for its own key alone, and what is not an entry stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/file.h"

static char dir[] = "/tmp/quern-test-XXXXXX";
static Error err;

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(dir, &err);
}

static void key_of(int n, char key[DIGEST_HEX])
{
    Digest d;
    digest_of(&n, sizeof n, &d);
    digest_hex(&d, key);
}

static void path_of(const char *key, char *out, size_t size)
{
    snprintf(out, size, "%s/%.2s/%s", dir, key, key + 2);
}

/* What stands under a key was put there under it: an entry that was copied, renamed or mixed up is
 * another's result. */
static void test_entry_of_another_key(void **state)
{
    (void)state;
    char one[DIGEST_HEX], other[DIGEST_HEX], from[4200], to[4200];
    Buffer b;
    buffer_init(&b, 1000);
    key_of(1, one);
    key_of(2, other);
    Cache *c = cache_open(dir, 1 << 20);
    cache_put(c, one, "first", 5);
    cache_put(c, other, "second", 6);
    assert_true(cache_get(c, one, 900, &b));
    assert_string_equal(b.data, "first");
    path_of(one, from, sizeof from);
    path_of(other, to, sizeof to);
    assert_int_equal(rename(from, to), 0);
    assert_false(cache_get(c, one, 900, &b));
    assert_false(cache_get(c, other, 900, &b));
    cache_put(c, other, "second", 6);
    assert_true(cache_get(c, other, 900, &b));
    assert_string_equal(b.data, "second");
    cache_close(c);
    buffer_release(&b);
}

static void put_file(const char *name, size_t bytes)
{
    char path[4200], *text = calloc(1, bytes);
    assert_non_null(text);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    *strrchr(path, '/') = 0;
    assert_int_equal(file_mkdirs(path, &err), 0);
    path[strlen(path)] = '/';
    assert_int_equal(file_write_atomic(path, text, bytes, &err), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){{1, 0}, {1, 0}}, 0), 0);
    free(text);
}

static int is_there(const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return file_exists(path);
}

/* $QUERN_CACHE may name any folder: what is oldest there, and no entry, is the user's. What a
 * killed writer left is not. */
static void test_trim_takes_entries_only(void **state)
{
    (void)state;
    char key[DIGEST_HEX], left[200];
    char *data = calloc(1, 10000);
    static const char *const users[] = {"thesis.tex",  "light-GPU.qa", "ab/notes",
                                        "ab/cd/notes", "abc/notes",    "project/src/a.c"};
    for (size_t i = 0; i < sizeof users / sizeof *users; i++) put_file(users[i], 60000);
    key_of(3, key);
    snprintf(left, sizeof left, "%.2s/%s.tmp.123", key, key + 2);
    put_file(left, 60000);
    Cache *c = cache_open(dir, 100000);
    for (int i = 10; i < 210; i++) {
        key_of(i, key);
        cache_put(c, key, data, 10000); /* the first and the 201st trim */
    }
    cache_put(c, key, data, 10000);
    cache_close(c);
    for (size_t i = 0; i < sizeof users / sizeof *users; i++)
        if (!is_there(users[i])) fail_msg("%s is gone", users[i]);
    assert_false(is_there(left));
    snprintf(left, sizeof left, "test $(find %s -type f -size +9000c -size -11000c | wc -l) -le 9",
             dir);
    assert_int_equal(system(left), 0);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_entry_of_another_key),
                                       cmocka_unit_test(test_trim_takes_entries_only)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
