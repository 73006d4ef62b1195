/* The pages that a learning child writes to are mapped in later children, and a child that never ends
 * holds nobody up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "eval/compile/prefault.h"

enum { PAGE = 4096, PAGES = 400, WRITTEN = 150, MAX = 200 };
static char *memory;
static int input; /* there always is some */

static void write_pages(void *of)
{
    char *p = of;
    for (int i = 0; i < WRITTEN; i++) p[(size_t)i * PAGE]++;
}

static long faults(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt;
}

/* The faults of a new child that writes the pages. */
static int faults_of_child(const Prefault *p)
{
    int status;
    pid_t pid = fork();
    if (!pid) {
        prefault_touch(p);
        long before = faults();
        write_pages(memory);
        long n = faults() - before;
        _exit(n < MAX ? (int)n : MAX);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Under ASan its shadow takes the places of all pages that are learned. */
static int is_supported(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 0;
#endif
    return !access("/proc/self/pagemap", R_OK) && !madvise(memory, PAGE, 22 /* POPULATE_READ */);
}

static void test_learns(void **state)
{
    (void)state;
    if (!is_supported()) skip();
    Prefault *p = prefault_open();
    assert_in_range(faults_of_child(p), WRITTEN - 5, MAX);
    prefault_learn(p, write_pages, memory);
    int n = MAX;
    for (double end = clock_seconds() + 60; n > 20 && clock_seconds() < end; usleep(10000)) {
        prefault_wait(p, input);
        n = faults_of_child(p);
    }
    assert_in_range(n, 0, 20);
    assert_int_equal(memory[0], 1); /* as this process set it */
    prefault_close(p);
}

static void sleep_forever(void *of)
{
    (void)of;
    for (;;) pause();
}

static void fail_at_once(void *of)
{
    (void)of;
    _exit(1);
}

static void test_child_that_tells_nothing(void **state)
{
    (void)state;
    void (*const works[])(void *) = {sleep_forever, fail_at_once};
    for (int i = 0; i < 2; i++) {
        Prefault *p = prefault_open();
        double start = clock_seconds();
        prefault_learn(p, works[i], NULL);
        for (int k = 0; k < 20; k++, usleep(5000)) prefault_wait(p, input);
        if (is_supported()) assert_in_range(faults_of_child(p), WRITTEN - 5, MAX);
        prefault_close(p);
        assert_true(clock_seconds() - start < 200);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_child_that_tells_nothing),
    };
    input = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                  -1, 0);
    if (memory == MAP_FAILED) return 1;
    (void)madvise(memory, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE);
    memset(memory, 1, (size_t)PAGES * PAGE);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
