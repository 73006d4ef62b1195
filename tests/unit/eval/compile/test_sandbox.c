/* The sandbox of a compilation: what it forbids, and that a child which is ended from outside is
 * never blamed on its source. Needs NVRTC and bin/quern-compile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "eval/compile/compile_client.h"
#include "eval/compile/sandbox.h"

static const char source_plain[] = "extern \"C\" __global__ void k(float *x) { *x = 1; }\n";
/* Sixteen million classes: NVRTC does not refuse them, and never ends. */
static const char source_endless[] =
    "template <int A, int B> struct Q { typename Q<A - 1, B>::T a; typename Q<A - 1, B + (1 << "
    "A)>::T b; typedef Q T; };\n"
    "template <int B> struct Q<0, B> { typedef int T; };\n"
    "extern \"C\" __global__ void k(int *x) { *x = sizeof(Q<24, 0>); }\n";

static Error err;

static int run(Compiler *c, const char *source, CompileResult *r)
{
    return compiler_run(
        c, &(CompileRequest){.arch = "sm_90", .source = source, .len = strlen(source)}, r, &err);
}

/* What a sandboxed child can do to another process of the same user. Bit 0: signal it. Bit 1: read
 * its limits. */
static int reach(Sandbox *s, pid_t other)
{
    int fds[2], status = 0;
    char said = 'x';
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit r;
        if (sandbox_enter(s, fds[1], 5, (size_t)1 << 28, &err)) _exit(1);
        int reached = (!syscall(SYS_tgkill, other, other, SIGABRT)) |
                      (!syscall(SYS_prlimit64, other, RLIMIT_STACK, NULL, &r)) << 1;
        said = (char)('0' + reached);
        if (write(fds[1], &said, 1) != 1 || getrlimit(RLIMIT_STACK, &r)) _exit(1);
        abort(); /* the child may abort itself */
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &said, 1), 1);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    return said - '0';
}

static void test_reaches_no_process(void **state)
{
    (void)state;
    Sandbox *s;
    int status = 0;
    assert_int_equal(sandbox_open(&s, &err), 0);
    pid_t other = fork();
    if (other == 0)
        for (;;) pause();
    int reached = reach(s, other);
    kill(other, SIGKILL);
    assert_int_equal(waitpid(other, &status, 0), other);
    sandbox_close(s);
    assert_int_equal(reached, 0);
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* Send `signal_no` to the child that compiles, once it has used 0.2 s of CPU time. */
static void *signal_child(void *signal_no)
{
    char command[400];
    snprintf(command, sizeof command,
             "for i in $(seq 2000); do for s in $(pgrep -P %ld quern-compile); do "
             "for c in $(pgrep -P $s quern-compile); do t=$(cut -d' ' -f14 /proc/$c/stat); "
             "[ ${t:-0} -lt 20 ] || { kill -%d $c; exit; }; done; done; sleep 0.03; done; exit 1",
             (long)getpid(), *(int *)signal_no);
    return system(command) ? signal_no : NULL;
}

/* A child that is killed, terminated, or stopped until its time is over says nothing about the
 * source. */
static void test_ended_from_outside(void **state)
{
    (void)state;
    static int signals[] = {SIGKILL, SIGTERM, SIGSTOP};
    Compiler *c;
    CompileResult r;
    assert_int_equal(compiler_open(&(CompilerOptions){.cpu_s = 2}, &c, &err), 0);
    assert_non_null(compiler_version(c, &err));
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        pthread_t thread;
        void *failed;
        assert_int_equal(pthread_create(&thread, NULL, signal_child, &signals[i]), 0);
        int rc = run(c, source_endless, &r);
        pthread_join(thread, &failed);
        assert_null(failed);
        if (rc == 0) fail_msg("signal %d: the source is blamed: %s", signals[i], r.message);
        if (!strstr(err.text, signals[i] == SIGSTOP ? "too busy" : "from outside"))
            fail_msg("signal %d: %s", signals[i], err.text);
        compile_result_release(&r);
    }
    assert_int_equal(run(c, source_plain, &r), 0);
    assert_true(r.ok);
    compile_result_release(&r);
    compiler_close(c);
}

/* Of a source whose CPU time was used up once, the second compilation counts. */
static void test_used_up_once(void **state)
{
    (void)state;
    static int signal_no = SIGXCPU;
    static char text[200000];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "extern \"C\" __global__ void k(float *x) {\n"
                                "float a = x[0], b = a;\n");
    for (int i = 0; i < 2500; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "a = a * b + %d.5f; b += a * x[%d];\n", i,
                              i % 7);
    snprintf(text + n, sizeof text - n, "x[0] = a + b; }\n");
    Compiler *c;
    CompileResult r;
    pthread_t thread;
    void *failed;
    assert_int_equal(compiler_open(&(CompilerOptions){.cpu_s = 20}, &c, &err), 0);
    assert_non_null(compiler_version(c, &err));
    assert_int_equal(pthread_create(&thread, NULL, signal_child, &signal_no), 0);
    int rc = run(c, text, &r);
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_int_equal(rc, 0);
    if (!r.ok) fail_msg("%s", r.message);
    compile_result_release(&r);
    compiler_close(c);
}

/* In a program without standard files the compiler's pipe is descriptor 0. */
static void test_standard_files_closed(void **state)
{
    (void)state;
    for (int n = 1; n <= 3; n++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            Compiler *c;
            CompileResult r;
            for (int fd = 0; fd < n; fd++) close(fd);
            if (compiler_open(&(CompilerOptions){.cpu_s = 5}, &c, &err) || run(c, source_plain, &r))
                _exit(1);
            _exit(r.ok ? 0 : 2);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status) fail_msg("%d closed: status %x", n, status);
    }
}

/* One compilation with CUDA_HOME = toolkit. Returns as compiler_run does. */
static int run_in(const char *toolkit, const char *cache, const char *source, CompileResult *r)
{
    Compiler *c;
    const char *home = getenv("CUDA_HOME");
    char kept[4096] = "";
    if (home) snprintf(kept, sizeof kept, "%s", home);
    if (toolkit) setenv("CUDA_HOME", toolkit, 1);
    assert_int_equal(compiler_open(&(CompilerOptions){.cache_dir = cache}, &c, &err), 0);
    int rc = run(c, source, r);
    if (home)
        setenv("CUDA_HOME", kept, 1);
    else
        unsetenv("CUDA_HOME");
    compiler_close(c);
    return rc;
}

/* A toolkit without its headers is an error of the compiler. A refusal by a toolkit with some of
 * its headers is not cached. */
static void test_toolkit_without_headers(void **state)
{
    (void)state;
    static const char uses[] =
        "#include <math_constants.h>\n__global__ void k(float *x) { *x = CUDART_PI_F; }\n";
    char dir[] = "/tmp/quern-test-XXXXXX", path[100], cache[100], lib[4200];
    const char *home = getenv("CUDA_HOME");
    CompileResult r;
    snprintf(lib, sizeof lib, "%s/lib64", home && *home ? home : "/usr/local/cuda");
    if (!file_exists(lib)) skip();
    assert_non_null(mkdtemp(dir));
    snprintf(cache, sizeof cache, "%s/cache", dir);
    snprintf(path, sizeof path, "%s/lib64", dir);
    assert_int_equal(symlink(lib, path), 0);
    if (!run_in(dir, cache, uses, &r)) fail_msg("the source is blamed: %s", r.message);
    assert_non_null(strstr(err.text, "/include/cuda_fp16.h"));
    snprintf(path, sizeof path, "%s/include", dir);
    assert_int_equal(file_mkdirs(path, &err), 0);
    strcat(path, "/cuda_fp16.h");
    assert_int_equal(file_write_atomic(path, "", 0, &err), 0);
    assert_int_equal(run_in(dir, cache, uses, &r), 0);
    assert_false(r.ok);
    compile_result_release(&r);
    assert_int_equal(run_in(NULL, cache, uses, &r), 0);
    if (!r.ok) fail_msg("%s", r.message);
    compile_result_release(&r);
    assert_int_equal(file_remove_tree(dir, &err), 0);
}

/* No control character of the source reaches a message. */
static void test_message_is_plain_text(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "__global__ void k(float *x) {\tundeclared; } // \x1b]0;title\x07\x1b[2J\x7f\n",
        "#line 7 \"\x1b[31m\"\n__global__ void k(float *x) { undeclared; }\n",
        "#error \x1b[2J\n",
    };
    Compiler *c;
    CompileResult r;
    assert_int_equal(compiler_open(&(CompilerOptions){.cpu_s = 5}, &c, &err), 0);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        assert_int_equal(run(c, sources[i], &r), 0);
        assert_false(r.ok);
        for (const char *p = r.message; *p; p++)
            if ((unsigned char)*p < ' ' ? *p != '\n' && *p != '\t' : *p == 127)
                fail_msg("source %zu: byte %d", i, *p);
        compile_result_release(&r);
    }
    compiler_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reaches_no_process),
        cmocka_unit_test(test_ended_from_outside),
        cmocka_unit_test(test_used_up_once),
        cmocka_unit_test(test_standard_files_closed),
        cmocka_unit_test(test_toolkit_without_headers),
        cmocka_unit_test(test_message_is_plain_text),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
