/* The compile server: its processes, and what happens when they are killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"

#include "tests/unit/eval/compile/compile_support.h"

/* The number of quern-compile processes that are children of `parent`; *newest: the youngest. */
static int children_of(pid_t parent, pid_t *newest)
{
    char command[100];
    long pid = 0;
    int n = 0;
    snprintf(command, sizeof command,
             "pgrep -c -P %ld quern-compile; pgrep -n -P %ld quern-compile", (long)parent,
             (long)parent);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    int fields = fscanf(f, "%d %ld", &n, &pid);
    pclose(f);
    *newest = (pid_t)pid;
    return fields == 2 ? n : 0;
}

/* A compiler and the process of its server. */
static Compiler *open_cached(int cpu_s, const char *cache, pid_t *server)
{
    Compiler *c;
    Error err = {0};
    if (compiler_open(&(CompilerOptions){.cpu_s = cpu_s, .cache_dir = cache}, &c, &err) ||
        !compiler_version(c, &err))
        fail_msg("%s", err.text);
    assert_true(children_of(getpid(), server) > 0);
    return c;
}

static Compiler *open_server(int cpu_s, pid_t *server)
{
    return open_cached(cpu_s, NULL, server);
}

static int has_ended(pid_t pid)
{
    return kill(pid, 0) && errno == ESRCH;
}

/* A server that is killed between two requests is started again, and the second request succeeds.
 */
static void test_server_killed(void **state)
{
    (void)state;
    char command[200];
    CompileResult r;
    compile(source_templates, 0, NULL, &r);
    compile_result_release(&r);
    snprintf(command, sizeof command, "kill -9 $(pgrep -P %ld quern-compile)", (long)getpid());
    assert_int_equal(system(command), 0);
    compile(source_templates, 0, NULL, &r);
    assert_true(r.ok);
    compile_result_release(&r);
}

/* Each request compiles its own source and sees no macro or error of the one before. */
static void test_many_in_a_row(void **state)
{
    (void)state;
    char source[300], number[20];
    for (int i = 0; i < 30; i++) {
        CompileResult r;
        snprintf(number, sizeof number, "%d", 770000 + i);
        snprintf(source, sizeof source,
                 "%s#ifdef LEFT\n#error left\n#endif\n#define LEFT\n__global__ void k(int *x) { *x "
                 "= %s%s; }\n",
                 i % 5 == 3 ? "#include <cuda_fp16.h>\n" : "", number,
                 i % 5 == 1 ? " + undeclared" : "");
        compile(source, 0, NULL, &r);
        if (i % 5 == 1) {
            assert_false(r.ok);
            assert_non_null(strstr(r.message, "undeclared"));
        } else {
            if (!r.ok) fail_msg("%d: %s", i, r.message);
            assert_non_null(strstr(r.ptx, number));
        }
        compile_result_release(&r);
    }
}

/* A source of more bytes than a pipe holds. */
static void test_large_source(void **state)
{
    (void)state;
    char *large = memory_alloc(200001);
    memset(large, '\n', 200000);
    memcpy(large, source_templates, sizeof source_templates - 1);
    expect_compiles(compiler, large, 0);
    free(large);
}

/* A child obeys the request's CPU limit, which is 1 s more for 16 KiB of source, none is left, and the next
 * request succeeds. */
static void test_limit(void **state)
{
    (void)state;
    pid_t server, child;
    CompileResult r;
    Compiler *c = open_server(1, &server);
    char *longer = memory_alloc((16 << 10) + 1);
    memset(longer, '\n', 16 << 10);
    memcpy(longer, source_endless, strlen(source_endless));
    double start = clock_seconds();
    run_source(c, longer, &r);
    free(longer);
    double elapsed = clock_seconds() - start;
    assert_false(r.ok);
    assert_string_equal(r.message, "compiling took more than 2 s of CPU time or too much output");
    assert_true(elapsed > 1.8 && elapsed < 150); /* twice */
    compile_result_release(&r);
    assert_int_equal(children_of(server, &child), 0);
    expect_compiles(c, source_templates, 0);
    compiler_close(c);
}

/* No process stays behind when a server is killed or its input ends. */
static void test_nothing_is_left(void **state)
{
    (void)state;
    pid_t server, newest;
    char command[5000], program[4096];
    Error err = {0};
    process_adopt(); /* what a server leaves becomes this process's child */
    int before = children_of(getpid(), &newest);
    Compiler *c = open_server(5, &server);
    expect_compiles(c, source_templates, 0);
    compiler_close(c);
    process_reap(server, 200); /* the group: it ends by itself */
    assert_true(has_ended(-server));
    assert_int_equal(process_find_program("quern-compile", program, sizeof program, &err), 0);
    snprintf(command, sizeof command, "'%s' --serve </dev/null >/dev/null", program);
    assert_int_equal(system(command), 0);
    assert_int_equal(children_of(getpid(), &newest), before);
}

/* The CPU time of a process so far, in seconds. */
static double cpu_of(pid_t pid)
{
    char path[64];
    long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    int n =
        fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system);
    fclose(f);
    assert_int_equal(n, 2);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* A server warms up for the first request that compiles: not for a client whose results are cached. */
static void test_warms_up_late(void **state)
{
    (void)state;
    pid_t server;
    CompileResult r;
    double cpu[2];
    for (int cached = 0; cached < 2; cached++) { /* the first fills the cache */
        Compiler *c = open_cached(5, "cache", &server);
        run_source(c, source_templates, &r);
        assert_int_equal(r.cached, cached);
        compile_result_release(&r);
        cpu[cached] = cpu_of(server);
        compiler_close(c);
    }
    printf("# CPU time of a server: %.2f s to compile, %.2f s for a cached result\n", cpu[0],
           cpu[1]);
    assert_true(cpu[1] < cpu[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_server_killed),   cmocka_unit_test(test_many_in_a_row),
        cmocka_unit_test(test_large_source),    cmocka_unit_test(test_limit),
        cmocka_unit_test(test_nothing_is_left), cmocka_unit_test(test_warms_up_late),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_compiler, close_compiler);
}
