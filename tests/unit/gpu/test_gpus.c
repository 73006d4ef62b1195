/* One GPU of those that CUDA_VISIBLE_DEVICES names, in a process of its own: it is for good. */
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

/* What the variable says and which number cuda:`ask` has, after gpus_use_only(ordinal) in a child. */
static void alone(const char *list, int ordinal, const char *expected, int ask, int here)
{
    pid_t child = fork();
    int status;
    if (!child) {
        setenv("CUDA_VISIBLE_DEVICES", list, 1);
        gpus_use_only(ordinal);
        _exit(strcmp(getenv("CUDA_VISIBLE_DEVICES"), expected) ? 1
              : gpus_driver_ordinal(ask) != here               ? 2
                                                               : 0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status))
        fail_msg("\"%s\", cuda:%d: %s", list, ordinal,
                 WEXITSTATUS(status) == 1 ? "another list" : "another number");
}

static void test_alone(void **state)
{
    (void)state;
    alone("0,1", 0, "0", 0, 0);
    alone("0,1", 1, "1", 1, 0);
    alone("0,1", 1, "1", 0, -1);
    alone("3,2,GPU-5fd2", 2, "GPU-5fd2", 2, 0);
    alone("GPU-1,GPU-2,GPU-3", 1, "GPU-2", 1, 0);
}

static void test_nothing_to_leave_out(void **state)
{
    (void)state;
    alone("3", 0, "3", 0, 0);
    alone("3", 1, "3", 1, 1); /* there is no such GPU, which the driver is to say */
    alone("3,4", 2, "3,4", 2, 2);
    alone("", 0, "", 0, 0);
    alone("3,", 1, "3,", 1, 1);
    alone("3,4", -1, "3,4", -1, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone),
                                       cmocka_unit_test(test_nothing_to_leave_out)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
