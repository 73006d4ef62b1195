/* gpus_use_only picks one GPU of CUDA_VISIBLE_DEVICES. Each case runs in a child, since it cannot
 * be undone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/gpus.h"

/* In a child, after gpus_use_only(ordinal): the variable is `expected`, and cuda:`ask` has the
 * number `number`. */
static void check(const char *list, int ordinal, const char *expected, int ask, int number)
{
    pid_t child = fork();
    int status;
    if (!child) {
        setenv("CUDA_VISIBLE_DEVICES", list, 1);
        gpus_use_only(ordinal);
        _exit(strcmp(getenv("CUDA_VISIBLE_DEVICES"), expected) ? 1
              : gpus_driver_ordinal(ask) != number             ? 2
                                                               : 0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status))
        fail_msg("\"%s\", cuda:%d: %s", list, ordinal,
                 WEXITSTATUS(status) == 1 ? "another list" : "another number");
}

static void test_use_only(void **state)
{
    (void)state;
    check("0,1", 0, "0", 0, 0);
    check("0,1", 1, "1", 1, 0);
    check("0,1", 1, "1", 0, -1);
    check("3,2,GPU-5fd2", 2, "GPU-5fd2", 2, 0);
    check("GPU-1,GPU-2,GPU-3", 1, "GPU-2", 1, 0);
}

static void test_nothing_to_hide(void **state)
{
    (void)state;
    check("3", 0, "3", 0, 0);
    check("3", 1, "3", 1, 1); /* no such GPU: the driver reports it */
    check("3,4", 2, "3,4", 2, 2);
    check("", 0, "", 0, 0);
    check("3,", 1, "3,", 1, 1);
    check("3,4", -1, "3,4", -1, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_use_only),
                                       cmocka_unit_test(test_nothing_to_hide)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
