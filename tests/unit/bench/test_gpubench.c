/* The kernels of quern-gpubench are distinct, and differ between runs, so no cache holds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "tests/bench/gpu/gpubench.h"

static char dir[] = "/tmp/quern-test-XXXXXX";
static Error err;

/* Make the same variant in another process. */
static void variant_elsewhere(char *out, size_t size)
{
    int fds[2], status;
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        char *v = gpubench_variant("kernel", 7);
        _exit(write(fds[1], v, strlen(v)) < 0);
    }
    close(fds[1]);
    ssize_t n = read(fds[0], out, size - 1);
    close(fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    out[n > 0 ? n : 0] = 0;
}

static void test_variants(void **state)
{
    (void)state;
    char one[200], two[200];
    variant_elsewhere(one, sizeof one);
    variant_elsewhere(two, sizeof two);
    assert_memory_equal(one, "kernel\n//", 9);
    assert_string_not_equal(one, two);
    char *a = gpubench_variant("kernel", 7), *b = gpubench_variant("kernel", 7),
         *c = gpubench_variant("kernel", 8);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    free(a);
    free(b);
    free(c);
}

static void test_teacher(void **state)
{
    (void)state;
    enum { N = 300 };
    GpuBenchList l = {0};
    const GpuBench b = {.device = "sim:h100", .work = dir};
    if (gpubench_teacher(&b, N, 0.35, &l, &err)) fail_msg("%s", err.text);
    assert_int_equal(l.n, N);
    for (int i = 0; i < l.n; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(l.items[i].source, l.items[k].source))
                fail_msg("numbers %d and %d, of %s, are the same", k, i, l.items[i].task);
    gpubench_list_release(&l);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_variants),
                                       cmocka_unit_test(test_teacher)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
