/* The runner with libraries of the device "cuda:N", over a stand-in for libcuda: candidates whose plans
 * have op lines run there beside library calls, a bounded number of them in one process. */
#include "tests/unit/eval/cuda/cuda_support.h"

#include "eval/cuda/library/library_cublas.h"
#include "eval/cuda/library/library_workspace.h"
#include "eval/judge/loaded_ops.h"
#include "tests/unit/gpu/fixtures.h"

static unsigned generation(int home)
{
    return d->remotes[home].runner.pid ? d->remotes[home].runner.generation : 0;
}

/* Other code: the bytes behind an image's end belong to no section. */
static DeviceModule *load_other(int home, size_t more)
{
    DeviceModule *m = NULL;
    Fault fault;
    unsigned char *copy = memory_alloc(image.len + more);
    memcpy(copy, image.data, image.len);
    DeviceCode code = {.cubin = copy, .cubin_len = image.len + more};
    int rc = ops->load(d, &code, home, &m, &fault);
    if (rc) fail_msg("%s", rc > 0 ? fault.message : err.text);
    free(copy);
    return m;
}

static void run_ones(DeviceModule *m, DevicePtr y)
{
    Fault fault;
    DeviceLaunch l = launch(m, "ones", y, N, 0);
    if (ops->run(d, &l, 1, &fault)) fail_msg("%s", err.text);
    expect_floats(y, N, N);
    ok(ops->poison(d, y, &err));
    DeviceClock c;
    ok(clock_one(&l, 1, CLOCK_COLD, &c, &fault));
    assert_true(c.us > 0);
    ok(ops->poison(d, y, &err));
}

/* A call that contradicts itself, as the op line of a candidate whose sizes do not fit. */
static DeviceLaunch refused_call(DeviceModule *m)
{
    const uint64_t args[6] = {8, 8, 8, 4, (uint64_t)1 << 31, 4};
    DeviceLaunch l = {.module = m,
                      .kernel = "cublas.sgemm",
                      .library_args = 6,
                      .op = "aten.mm.default",
                      .op_line = 3};
    memcpy(l.params, args, sizeof args);
    return l;
}

/* What a library refuses is the candidate's fault, in the library's words and with the op's line; of a
 * baseline it is a failure. */
static void test_refused(void **state)
{
    (void)state;
    Fault fault = {0};
    DeviceModule *calls = NULL, *trusted = NULL;
    DeviceClock c;
    DevicePtr y;
    start();
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    ok(ops->load(d, NULL, HOME_LIBRARY, &calls, &fault));
    DeviceModule *own = load(HOME_LIBRARY);
    DeviceLaunch l[2] = {launch(own, "ones", y, N, 0), refused_call(calls)};
    for (int timed = 0; timed < 2; timed++) {
        fault = (Fault){0};
        int rc = timed ? clock_one(l, 2, CLOCK_COLD, &c, &fault) : ops->run(d, l, 2, &fault);
        if (rc != 1) fail_msg("%s", err.text);
        assert_int_equal(fault.outcome, OUTCOME_LAUNCH_ERROR);
        assert_int_equal(fault.launch, 1);
        loaded_ops_fault(&fault, l, 2, "check 1");
        assert_string_equal(fault.message,
                            "line 3: aten.mm.default, the library refuses this call: "
                            "cublas.sgemm: argument 5 is 2147483648; expected 1 to "
                            "2147483647 (check 1)");
        assert_int_equal(fault.line, 3);
    }
    run_ones(own, y); /* the process goes on */
    assert_int_equal(generation(HOME_LIBRARY), 1);
    ok(ops->load(d, NULL, HOME_TRUSTED, &trusted, &fault));
    DeviceLaunch of_baseline = refused_call(trusted);
    assert_int_equal(ops->run(d, &of_baseline, 1, &fault), -1);
    if (!strstr(fault.error.text, "of the harness's own launches, the library refuses this call"))
        fail_msg("%s", fault.error.text);
    ops->free(d, y);
    ops->unload(d, trusted);
    ops->unload(d, calls);
    ops->unload(d, own);
    ops->close(d);
}

/* A library call and a candidate's launch are one sequence there; a call that no library has is no fault
 * of the candidate. Homes do not mix. */
static void test_calls(void **state)
{
    (void)state;
    Fault fault;
    DeviceModule *calls = NULL;
    DevicePtr y;
    start();
    assert_int_equal(generation(HOME_LIBRARY), 0); /* it starts when it is needed */
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    DeviceModule *own = load(HOME_LIBRARY), *plain = load(HOME_CANDIDATE);
    ok(ops->load(d, NULL, HOME_LIBRARY, &calls, &fault));
    assert_int_equal(generation(HOME_LIBRARY), 1);
    run_ones(own, y);
    DeviceLaunch l[2] = {{.module = calls, .kernel = "nobody.knows", .library_args = 2},
                         launch(own, "ones", y, N, 0)};
    assert_int_equal(ops->run(d, l, 2, &fault), -1);
    if (!strstr(fault.error.text, "no library call is named \"nobody.knows\""))
        fail_msg("%s", fault.error.text);
    l[1] = launch(plain, "ones", y, N, 0);
    assert_int_equal(ops->run(d, l, 2, &fault), -1);
    if (!strstr(fault.error.text, "has another home")) fail_msg("%s", fault.error.text);
    run_ones(plain, y);
    run_ones(own, y);
    ops->free(d, y);
    ops->unload(d, calls);
    ops->unload(d, own);
    ops->unload(d, plain);
    ops->close(d);
}

static int parked(int home)
{
    int n = 0;
    for (const DeviceModule *m = d->parked; m; m = m->next) n += m->home == home;
    return n;
}

/* A plan's candidate: its module is loaded, runs, is loaded again and runs, and goes. */
static void one_of_many(size_t more, unsigned process, int shared, DevicePtr y)
{
    DeviceModule *m = load_other(HOME_LIBRARY, more), *beside = load_other(HOME_LIBRARY, 4096);
    assert_int_equal(generation(HOME_LIBRARY), process);
    assert_int_equal(ops->clock->shared(d), shared);
    run_ones(m, y);
    run_ones(beside, y);
    ops->unload(d, m);
    ops->unload(d, beside);
    m = load_other(HOME_LIBRARY, more);
    run_ones(m, y);
    ops->unload(d, m);
    assert_int_equal(generation(HOME_LIBRARY), process);
}

/* A process serves so many candidates and no more. None finds code there that another could have changed,
 * also code of the harness. After one that has failed the next has a process of its own. */
static void test_candidates(void **state)
{
    (void)state;
    DevicePtr y;
    start();
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    for (size_t i = 0; i < REMOTE_CANDIDATES; i++) {
        one_of_many(8 * i, 1, i > 0, y);
        assert_true(parked(HOME_LIBRARY) > 0);
        DeviceModule *next =
            i + 1 < REMOTE_CANDIDATES ? load_other(HOME_LIBRARY, 8 * (i + 1)) : NULL;
        if (!next) break;
        assert_int_equal(parked(HOME_LIBRARY), 0);
        ops->unload(d, next);
    }
    one_of_many(8 * REMOTE_CANDIDATES, 2, 0, y);
    one_of_many(8, 2, 1, y);
    ok(ops->clock->renew(d, 0, &err)); /* it has failed */
    one_of_many(8, 3, 0, y);
    one_of_many(16, 3, 1, y);
    assert_int_equal(generation(HOME_CANDIDATE), 1);
    ops->free(d, y);
    ops->close(d);
}

/* The present candidate gets another process at once, and its modules with it. */
static void test_renewed(void **state)
{
    (void)state;
    DevicePtr y;
    Fault fault;
    start();
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    one_of_many(0, 1, 0, y);
    DeviceModule *m = load_other(HOME_LIBRARY, 8);
    run_ones(m, y);
    assert_int_equal(ops->clock->shared(d), 1);
    ok(ops->clock->renew(d, 1, &err));
    DeviceLaunch l = launch(m, "ones", y, N, 0);
    assert_int_equal(ops->run(d, &l, 1, &fault), -1); /* its module is gone */
    ops->unload(d, m);
    one_of_many(8, 2, 0, y);
    one_of_many(16, 2, 1, y);
    ops->free(d, y);
    ops->close(d);
}

/* The same code again is another candidate where the judge says so: it is not alone, and counts. */
static void test_same_code(void **state)
{
    (void)state;
    DevicePtr y;
    start();
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    for (int i = 0; i < REMOTE_CANDIDATES; i++) {
        ops->clock->next(d);
        one_of_many(8, 1, i > 0, y);
    }
    ops->clock->next(d);
    one_of_many(8, 2, 0, y);
    ops->free(d, y);
    ops->close(d);
}

/* What a candidate has written into memory of the process is there for itself alone: into what the flush
 * reads, which the first timing allocates, and into code, also that of the flush. */
static void test_left_behind(void **state)
{
    (void)state;
    DevicePtr y;
    Fault fault;
    start();
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    DeviceModule *m = load_other(HOME_LIBRARY, 0);
    run_ones(m, y);
    DeviceLaunch leave = launch(m, "leave", y, N, 0), find = launch(m, "find", y, N, 0);
    ok(ops->run(d, &leave, 1, &fault));
    ok(ops->run(d, &find, 1, &fault));
    expect_floats(y, N, 0);
    ops->unload(d, m);
    m = load_other(HOME_LIBRARY, 8);
    assert_int_equal(generation(HOME_LIBRARY), 1);
    find = launch(m, "find", y, N, 0);
    ok(ops->run(d, &find, 1, &fault));
    expect_floats(y, N, N);
    ops->unload(d, m);
    ops->free(d, y);
    ops->close(d);
}

/* So is the workspace that library calls share, which has whole words. */
static void test_workspace(void **state)
{
    (void)state;
    enum { BYTES = 4093 };
    void *p;
    unsigned char got[BYTES];
    start();
    CuStream stream = d->trusted.executor.stream;
    assert_int_equal(library_workspace_reset(stream), CU_OK); /* there is none yet */
    trusted_enter(&d->trusted);
    ok(library_workspace(BYTES, &p, &err));
    CuPtr at = (CuPtr)(uintptr_t)p;
    assert_int_equal(d->trusted.executor.cu->set_words(at, 0x4d4d4d4d, BYTES / 4 + 1, stream),
                     CU_OK);
    assert_int_equal(library_workspace_reset(stream), CU_OK);
    assert_int_equal(executor_wait(&d->trusted.executor), CU_OK);
    assert_int_equal(d->trusted.executor.cu->copy_to_host(got, at, BYTES), CU_OK);
    for (int i = 0; i < BYTES; i++) assert_int_equal(got[i], 0);
    ops->close(d);
}

/* A linear gets from cuBLASLt the workspace that eager PyTorch gives it, 1 MiB, whatever cuBLAS has: the
 * library chooses its algorithm by it. */
static void test_workspaces(void **state)
{
    (void)state;
    char here[2000];
    const LibraryProduct p = {
        .m = 8, .n = 128, .k = 256, .lda = 256, .ldb = 256, .ldc = 128, .batch = 1, .alpha = 1};
    assert_non_null(getcwd(here, sizeof here));
    char *home = memory_printf("%s/toolkit", here), *dir = memory_printf("%s/lib64", home),
         *said = memory_printf("%s/workspaces", here);
    Buffer text;
    setenv("CUDA_HOME", home, 1);
    setenv("TEST_BLAS_WORKSPACES", said, 1);
    assert_int_equal(fixture_build("blas_workspace.c", dir, "libcublasLt.so.13"), 0);
    assert_int_equal(fixture_build("blas_workspace.c", dir, "libcublas.so.13"), 0);
    start();
    trusted_enter(&d->trusted);
    ok(library_cublaslt_gemm_bias(&p, NULL, &err));
    ok(library_cublas_gemm(&p, NULL, &err));
    buffer_init(&text, 1000);
    ok(file_read(said, 1000, &text, &err));
    buffer_append(&text, "", 1);
    assert_string_equal((const char *)text.data,
                        "preferred 1048576\nlinear 1048576\nproduct 33554432\n");
    buffer_release(&text);
    free(said);
    free(dir);
    free(home);
    ops->close(d);
}

/* The process is not replaced while its candidate has modules, nor when one is loaded again; it is, where it
 * has run code of a candidate that did not name it. */
static void test_one_candidate(void **state)
{
    (void)state;
    DevicePtr y;
    Fault fault;
    DeviceModule *calls = NULL;
    start();
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    one_of_many(8, 1, 0, y);
    ok(ops->load(d, NULL, HOME_LIBRARY, &calls, &fault)); /* a plan of library calls alone */
    assert_int_equal(generation(HOME_LIBRARY), 1);
    /* It is killed from outside while a module without code is there; the next has run code of this one. */
    assert_int_equal(cudarunner_stop(&d->remotes[HOME_LIBRARY].runner, &err), 0);
    DeviceModule *m = load(HOME_LIBRARY);
    run_ones(m, y);
    assert_int_equal(generation(HOME_LIBRARY), 2);
    ops->unload(d, m);
    ops->unload(d, calls);
    m = load_other(HOME_LIBRARY, 8);
    assert_int_equal(generation(HOME_LIBRARY), 3);
    ops->unload(d, m);
    assert_int_equal(generation(HOME_CANDIDATE), 1);
    ops->free(d, y);
    ops->close(d);
}

static CudaRunner *libraries(void)
{
    return &d->remotes[HOME_LIBRARY].runner;
}

/* Runs until a spare process has started, which waits for the end of the last one. */
static pid_t run_until_spare(DeviceModule *m, DevicePtr y)
{
    for (int i = 0; i < 1000 && !libraries()->spare; i++) run_ones(m, y);
    return libraries()->spare;
}

/* The last candidate of a process loads its module, runs and ends. Returns its process. */
static pid_t last_candidate(size_t more, int spare, DevicePtr y)
{
    DeviceModule *m = load_other(HOME_LIBRARY, more);
    pid_t pid = libraries()->pid;
    d->remotes[HOME_LIBRARY].served = REMOTE_CANDIDATES;
    run_ones(m, y);
    if (spare) run_until_spare(m, y);
    ops->unload(d, m);
    assert_int_equal(libraries()->pid, pid);
    assert_int_equal(libraries()->ending, 0);
    return pid;
}

/* From the second process on, the next one is there before its first candidate comes. It takes no part
 * before, ends with the device, and another takes its place where it was killed. */
static void test_spare(void **state)
{
    (void)state;
    DevicePtr y;
    GpuLock *other;
    int files = open_files();
    start();
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    last_candidate(0, 0, y);
    assert_int_equal(libraries()->spare, 0);
    for (size_t i = 1; i < 4; i++) {
        pid_t next = libraries()->spare, now = last_candidate(8 * i, 1, y);
        if (i == 2) assert_int_equal(now, next);
        if (i == 3) assert_int_not_equal(now, next);
        next = libraries()->spare;
        assert_true(next > 0 && next != now && kill(next, 0) == 0);
        if (i == 2) end_runner(next);
    }
    ops->free(d, y);
    assert_int_equal(d->sharing, 0);
    ok(lock_open(ops->info(d)->uuid, &other, &err));
    ok(lock_exclusive(other, 10, &err)); /* it holds the lock no longer than its context takes */
    lock_close(other);
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    /* A candidate that ends its process costs the spare one nothing but its name. */
    DeviceModule *m = load_other(HOME_LIBRARY, 80);
    d->remotes[HOME_LIBRARY].served = REMOTE_CANDIDATES;
    pid_t spare = run_until_spare(m, y);
    Fault fault;
    DeviceLaunch bad = launch(m, "death", y, 1, 0);
    assert_int_equal(ops->run(d, &bad, 1, &fault), 1);
    ops->unload(d, m);
    assert_int_equal(libraries()->pid, spare);
    assert_int_equal(last_candidate(88, 1, y), spare); /* nothing ran there before */
    ops->free(d, y);
    ops->close(d);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(open_files(), files);
}

/* The parts of a plan's kernels are loaded and unloaded in turn. After a few rounds each is found among those
 * that are kept, and the driver loads none. */
static void test_many_parts(void **state)
{
    (void)state;
    enum { PARTS = 12, ROUNDS = 2 * DEVICE_COPIES };
    static const int homes[] = {HOME_LIBRARY, HOME_TRUSTED};
    DevicePtr y;
    start();
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    for (int h = 0; h < 2; h++) {
        DeviceModule *part[PARTS];
        for (size_t i = 0; i < PARTS; i++) part[i] = load_other(homes[h], 8 * i);
        for (int round = 0; round < ROUNDS; round++)
            for (size_t i = 0; i < PARTS; i++) {
                ops->unload(d, part[i]);
                part[i] = load_other(homes[h], 8 * i);
            }
        assert_int_equal(parked(homes[h]), PARTS * (DEVICE_COPIES - 1));
        for (int i = 0; i < PARTS; i++) run_ones(part[i], y);
        for (int i = 0; i < PARTS; i++) ops->unload(d, part[i]);
        assert_int_equal(generation(homes[h]), 1);
    }
    ops->free(d, y);
    ops->close(d);
}

/* A fault there is the candidate's, and costs no other runner. */
static void test_faults(void **state)
{
    (void)state;
    static const char *const ways[] = {"illegal", "trap", "death"};
    Fault fault;
    DevicePtr y;
    start();
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    for (unsigned i = 0; i < 3; i++) {
        DeviceModule *m = load(HOME_LIBRARY), *plain = load(HOME_CANDIDATE);
        DeviceLaunch bad = launch(m, ways[i], y, 1, 0);
        assert_int_equal(ops->run(d, &bad, 1, &fault), 1);
        assert_true(fault.outcome == OUTCOME_LAUNCH_ERROR ||
                    fault.outcome == OUTCOME_OUT_OF_BOUNDS);
        ops->unload(d, m);
        run_ones(plain, y);
        ops->unload(d, plain);
        m = load(HOME_LIBRARY);
        run_ones(m, y);
        ops->unload(d, m);
        assert_int_equal(generation(HOME_CANDIDATE), 1);
    }
    ops->free(d, y);
    ops->close(d);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (driver_ready(argv)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),         cmocka_unit_test(test_refused),
        cmocka_unit_test(test_candidates),    cmocka_unit_test(test_renewed),
        cmocka_unit_test(test_same_code),     cmocka_unit_test(test_left_behind),
        cmocka_unit_test(test_workspace),     cmocka_unit_test(test_workspaces),
        cmocka_unit_test(test_one_candidate), cmocka_unit_test(test_spare),
        cmocka_unit_test(test_many_parts),    cmocka_unit_test(test_faults)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
