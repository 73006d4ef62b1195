/* The device "cuda:N" over tests/fixtures/cuda/driver.c, a stand-in for libcuda: shared buffers,
 * guard zones, and runner processes that candidates make fail in every way. */
#include "tasks/task.h"
#include "tests/unit/eval/cuda/cuda_support.h"

static CudaRunner *runner_of(int home)
{
    return &d->remotes[home].runner;
}

/* A correct candidate runs in the current runner. */
static void honest(void)
{
    Fault fault;
    DeviceClock c;
    DevicePtr y;
    DeviceModule *m = load(0);
    KernelInfo info;
    ok(ops->kernel(d, m, "ones", &info, &err));
    assert_true(info.n_params == 3 && info.param_bytes == 16 && info.registers == 32);
    assert_int_equal(ops->kernel(d, m, "none", &info, &err), -1);
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    expect_floats(y, N, 0);
    DeviceLaunch l[2] = {launch(m, "ones", y, 10, 0), launch(m, "ones", y, N - 10, 10)};
    if (ops->run(d, l, 2, &fault)) fail_msg("%s", err.text);
    expect_floats(y, N, N);
    assert_int_equal(ops->check_guards(d, &fault), 0);
    ok(ops->poison(d, y, &err));
    expect_floats(y, N, 0);
    ok(clock_one(l, 2, CLOCK_COLD, &c, &fault));
    assert_true(c.us > 0 && c.flush_us > 0 && c.host_us >= c.us);
    expect_floats(y, N, N);
    ops->free(d, y);
    ops->unload(d, m);
}

/* A cooperative launch passes its parameters one by one, and its blocks must be resident at once. */
static void test_cooperative(void **state)
{
    (void)state;
    Fault fault = {0};
    DevicePtr y;
    start();
    DeviceModule *m = load(0);
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    DeviceLaunch l = launch(m, "ones", y, 10, 0);
    l.cooperative = 1;
    if (ops->run(d, &l, 1, &fault)) fail_msg("%s", err.text);
    expect_floats(y, N, 10);
    l.grid[0] = 2;
    assert_int_equal(ops->run(d, &l, 1, &fault), 1);
    assert_int_equal(fault.outcome, OUTCOME_LAUNCH_ERROR);
    assert_non_null(strstr(fault.message, "do not all fit on the device at once"));
    ops->free(d, y);
    ops->unload(d, m);
    ops->close(d);
}

static void test_honest(void **state)
{
    (void)state;
    int files = open_files();
    start();
    assert_string_equal(ops->info(d)->device_class, "Test GPU");
    assert_string_equal(ops->info(d)->arch, "sm_90");
    honest();
    pid_t pid = runner_of(HOME_CANDIDATE)->pid;
    honest();
    assert_int_equal(runner_of(HOME_CANDIDATE)->pid, pid);
    ops->close(d);
    assert_int_equal(open_files(), files);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* Buffers of many sizes make the arena grow and shrink. Both processes see the same contents. */
static void test_buffers(void **state)
{
    (void)state;
    static const size_t sizes[] = {28, 3 << 20, 4096, 70 << 20, 1, 0, 100 << 20};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    DevicePtr p[COUNT];
    Fault fault;
    unsigned char byte = 0;
    start();
    DeviceModule *m = load(0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) ok(ops->alloc(d, sizes[i], "buffer", &p[i], &err));
        DeviceLaunch l = launch(m, "ones", p[6], 1, (100 << 20) / 4 - 1);
        ok(ops->run(d, &l, 1, &fault));
        ok(ops->read(d, p[6] + ((size_t)100 << 20) - 1, &byte, 1, &err));
        assert_int_equal(byte, 0x3f);
        ok(ops->read(d, p[6] + ((size_t)100 << 20) - 5, &byte, 1, &err));
        assert_int_equal(byte, 0xff);
        assert_int_equal(ops->check_guards(d, &fault), 0);
        assert_int_equal(ops->write(d, p[0] + 1, &byte, 28, &err), -1);
        for (int i = 0; i < COUNT; i++) ops->free(d, p[i]);
        assert_true(d->arena.mapped <= (uint64_t)64 << 20);
    }
    assert_int_equal(ops->alloc(d, (size_t)1 << 40, "output y", &p[0], &err), -1);
    ops->close(d);
}

static void test_guards(void **state)
{
    (void)state;
    Fault fault;
    DevicePtr x, y;
    start();
    DeviceModule *m = load(0);
    ok(ops->alloc(d, 400, "input x", &x, &err));
    ok(ops->alloc(d, 400, "output y", &y, &err));
    DeviceLaunch after = launch(m, "ones", y, 101, 0), before = launch(m, "ones", y, 1, -1),
                 far = launch(m, "ones", y, 1, 5000000);
    ok(ops->run(d, &after, 1, &fault));
    assert_int_equal(ops->check_guards(d, &fault), 1);
    assert_int_equal(fault.outcome, OUTCOME_OUT_OF_BOUNDS);
    if (!strstr(fault.message, "byte 1 after the end of output y")) fail_msg("%s", fault.message);
    assert_int_equal(ops->check_guards(d, &fault), 0); /* reported once */
    ok(ops->run(d, &before, 1, &fault));
    assert_int_equal(ops->check_guards(d, &fault), 1);
    if (!strstr(fault.message, "byte 1 before the start of output y"))
        fail_msg("%s", fault.message);
    ok(ops->run(d, &far, 1, &fault)); /* memory outside of every buffer */
    assert_int_equal(ops->check_guards(d, &fault), 1);
    /* These are not checked: the next job must not be blamed for them. */
    DeviceLaunch both[2] = {after, launch(m, "refused", y, 1, 0)};
    assert_int_equal(ops->run(d, both, 2, &fault), 1);
    assert_int_equal(fault.outcome, OUTCOME_LAUNCH_ERROR);
    ops->free(d, x);
    ops->free(d, y);
    ok(ops->alloc(d, 400, "input x", &x, &err));
    assert_int_equal(ops->check_guards(d, &fault), 0);
    ops->free(d, x);
    ops->close(d);
}

/* Numbers that the device draws are kept where they begin as the host's do, and else nothing is. */
static void test_draw(void **state)
{
    (void)state;
    enum { MANY = TASK_STREAM + 10 };
    static char elements[] = "1048577";
    static float want[MANY], got[MANY];
    TaskTensor x = {.dtype = DTYPE_F32,
                    .rank = 1,
                    .shape = {elements},
                    .draw = DRAW_UNIFORM,
                    .low = -1,
                    .high = 3,
                    .distinct = -1};
    Task t = {.n_inputs = 1, .inputs = &x};
    Workload w = {.axis = {0}};
    const TaskCase c = {&t, &w, VARIANT_DRAWN, 5, 1};
    TaskStreams s;
    DeviceGolden *g = NULL;
    DevicePtr p;
    start();
    assert_int_equal(task_draw_streams(&c, 0, TASK_LARGE + 1, &s), 1);
    ok(task_draw_part(&c, 0, 0, MANY, want, &err));
    s.n = MANY;
    ok(ops->golden->draw(d, &(DeviceDraw){&s, want, TASK_STREAM}, &g, &err));
    ok(ops->alloc(d, sizeof got, "input x", &p, &err));
    ok(ops->golden->fill(d, &(DeviceExpected){p, g, 0, -1}, &err));
    ok(ops->read(d, p, got, sizeof got, &err));
    assert_memory_equal(got, want, sizeof got);
    ops->golden->free(d, g);
    size_t kept = d->trusted.golden_bytes;
    want[7] += 1;
    assert_int_equal(ops->golden->draw(d, &(DeviceDraw){&s, want, TASK_STREAM}, &g, &err), 1);
    assert_null(g);
    assert_int_equal(d->trusted.golden_bytes, kept);
    free(s.state);
    ops->free(d, p);
    ops->close(d);
}

/* After its job an idle evaluator does not hold the lock. */
static void test_idle_holds_nothing(void **state)
{
    (void)state;
    start();
    honest();
    assert_int_equal(d->sharing, 0);
    assert_true(ops->info(d)->contents_bytes > 0 &&
                ops->info(d)->contents_bytes < d->trusted.shares.contents);
    assert_true(ops->info(d)->max_local_per_thread > 0);
    ops->close(d);
}

/* Many comparisons in one wait, more than there are slots; then one wrong byte, one wrong element,
 * and a written guard zone. */
static void expect_all(DevicePtr p, DeviceGolden *bytes)
{
    enum { MANY = 40 };
    double ones[N];
    DeviceGolden *g;
    DevicePtr y;
    Fault fault;
    DeviceExpected list[MANY];
    float two = 2, one = 1;
    unsigned char was, wrong = 0xee, poison = 0xff;
    for (int i = 0; i < N; i++) ones[i] = 1;
    ok(ops->golden->keep(d, ones, sizeof ones, &g, &err));
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    for (int i = 0; i < N; i++) ok(ops->write(d, y + (DevicePtr)i * 4, &one, 4, &err));
    ok(ops->golden->fill(d, &(DeviceExpected){p, bytes, 32, -1}, &err));
    for (int i = 0; i < MANY; i++)
        list[i] = i % 2 ? (DeviceExpected){p, bytes, 32, -1, 0, 0, 0}
                        : (DeviceExpected){y, g, (size_t)i % 5, 0, N, 0, 0};
    for (int n = 0; n <= MANY; n += 8)
        assert_int_equal(ops->golden->expect(d, list, n, n > 16, &err), 0);
    ok(ops->read(d, p + 50, &was, 1, &err));
    ok(ops->write(d, p + 50, &wrong, 1, &err));
    assert_int_equal(ops->golden->expect(d, list, 1, 1, &err), 0);
    assert_int_equal(ops->golden->expect(d, list, 2, 0, &err), 1);
    assert_int_equal(ops->golden->expect(d, list + MANY - 1, 1, 0, &err), 1);
    ok(ops->write(d, p + 50, &was, 1, &err));
    ok(ops->write(d, y + (N - 1) * 4, &two, 4, &err));
    for (int at = 0; at < MANY; at += 18) {
        DeviceExpected other = list[1], last[MANY];
        for (int i = 0; i < MANY; i++) last[i] = i == at ? list[0] : other;
        assert_int_equal(ops->golden->expect(d, last, MANY, 0, &err), 1);
    }
    ok(ops->write(d, y + (N - 1) * 4, &one, 4, &err));
    ok(trusted_write(&d->trusted, y + N * 4, &wrong, 1, &err));
    assert_int_equal(ops->golden->expect(d, list, 3, 0, &err), 0);
    assert_int_equal(ops->golden->expect(d, list, 3, 1, &err), 1);
    assert_int_equal(ops->check_guards(d, &fault),
                     1); /* it reports the zone and poisons it again */
    assert_int_equal(ops->golden->expect(d, list, 0, 1, &err), 0);
    ok(trusted_write(&d->trusted, y + N * 4, &poison, 1, &err));
    list[2].from = N;
    assert_int_equal(ops->golden->expect(d, list, 3, 0, &err), -1);
    ops->free(d, y);
    ops->golden->free(d, g);
}

/* 80 of the 96 kept bytes fill 200 ones from byte 32 on, and so do doubles a buffer of floats. */
static void repeated(DeviceGolden *g)
{
    enum { BYTES = 200, PERIOD = 80, FEW = 5 };
    unsigned char got[BYTES];
    double three[] = {0, 1, 2};
    float five[] = {1, 2, 0, 1, 2}, wrong = 7;
    DevicePtr p, y;
    DeviceGolden *numbers;
    DeviceDifference differs;
    size_t first = 0;
    ok(ops->alloc(d, BYTES, "input x", &p, &err));
    ok(ops->alloc(d, sizeof five, "output y", &y, &err));
    ok(ops->golden->keep(d, three, sizeof three, &numbers, &err));
    const DeviceExpected list[] = {{p, g, 32, -1, BYTES, .period = PERIOD},
                                   {y, numbers, 1, 0, FEW, .period = 3}};
    ok(ops->golden->fill(d, &list[0], &err));
    ok(ops->write(d, y, five, sizeof five, &err));
    ok(ops->read(d, p, got, BYTES, &err));
    for (size_t i = 0; i < BYTES; i++) assert_int_equal(got[i], (i + 32) % PERIOD);
    assert_int_equal(ops->golden->expect(d, list, 2, 1, &err), 0);
    ok(ops->write(d, p + 190, &wrong, 1, &err));
    assert_int_equal(ops->golden->same(d, &list[0], &first, &err), 1);
    assert_int_equal(first, 190);
    ok(ops->write(d, y + 16, &wrong, sizeof wrong, &err));
    assert_int_equal(ops->golden->compare(d, &list[1], &differs, &err), 1);
    assert_int_equal(differs.first, 4);
    assert_true(differs.first_want == 2);
    const DeviceExpected more = {p, g, 0, -1, BYTES}, odd = {p, g, 0, -1, BYTES, .period = 40};
    assert_int_equal(ops->golden->fill(d, &more, &err), -1); /* nothing is said to repeat */
    assert_int_equal(ops->golden->fill(d, &odd, &err), -1);
    ops->golden->free(d, numbers);
    ops->free(d, p);
    ops->free(d, y);
}

static void golden(void)
{
    unsigned char bytes[96], got[96];
    DeviceGolden *g;
    DevicePtr p;
    size_t first = 0;
    for (int i = 0; i < 96; i++) bytes[i] = (unsigned char)i;
    ok(ops->golden->keep(d, bytes, sizeof bytes, &g, &err));
    ok(ops->alloc(d, sizeof bytes, "input x", &p, &err));
    for (size_t from = 0; from < sizeof bytes; from += 32) {
        const DeviceExpected x = {p, g, from, -1};
        ok(ops->golden->fill(d, &x, &err));
        ok(ops->read(d, p, got, sizeof got, &err));
        for (size_t i = 0; i < sizeof got; i++) assert_int_equal(got[i], (i + from) % sizeof got);
        assert_int_equal(ops->golden->same(d, &x, &first, &err), 0);
        ok(ops->write(d, p + 70, bytes + 20, 2, &err));
        assert_int_equal(ops->golden->same(d, &x, &first, &err), 1);
        assert_int_equal(first, 70);
    }
    expect_all(p, g);
    const DeviceExpected odd = {p, g, 8, -1}, beyond = {p, g, 96, -1};
    assert_int_equal(ops->golden->fill(d, &odd, &err), -1);
    assert_int_equal(ops->golden->fill(d, &beyond, &err), -1);
    ops->free(d, p);
    repeated(g);
    ops->golden->free(d, g);
}

/* Every way to end a runner gives its outcome and a sentence, and the same again for the lost
 * module. The next candidate is not affected. */
static void test_failures(void **state)
{
    (void)state;
    static const struct {
        const char *kernel, *word;
        Outcome outcome;
        int ends_runner;
    } ways[] = {
        {"illegal", "launch 2 of 3", OUTCOME_OUT_OF_BOUNDS, 1},
        {"trap", "exception", OUTCOME_LAUNCH_ERROR, 1},
        {"death", "signal 6", OUTCOME_LAUNCH_ERROR, 1},
        {"refused", "cannot be launched", OUTCOME_LAUNCH_ERROR, 0},
        {"endless", "did not end within", OUTCOME_TIMEOUT, 1},
    };
    int files = open_files();
    start();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        Fault fault = {0}, again = {0};
        DeviceClock c;
        DevicePtr y;
        DeviceModule *m = load(0);
        unsigned generation = runner_of(HOME_CANDIDATE)->generation;
        ok(ops->alloc(d, N * 4, "output y", &y, &err));
        DeviceLaunch l[3] = {launch(m, "ones", y, 1, 0), launch(m, ways[i].kernel, y, 1, 0),
                             launch(m, "ones", y, 1, 1)};
        assert_int_equal(ops->run(d, l, 3, &fault), 1);
        assert_int_equal(fault.outcome, ways[i].outcome);
        if (!strstr(fault.message, ways[i].word)) fail_msg("%s", fault.message);
        assert_int_equal(runner_of(HOME_CANDIDATE)->generation - generation, ways[i].ends_runner);
        if (ways[i].ends_runner) {
            assert_int_equal(ops->run(d, l, 3, &again), 1);
            assert_string_equal(again.message, fault.message);
            assert_int_equal(clock_one(l, 1, CLOCK_WARM, &c, &again), 1);
        }
        golden();
        ops->free(d, y);
        ops->unload(d, m);
        honest();
    }
    ops->close(d);
    assert_int_equal(open_files(), files);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* Broken memory and a runner that was killed from outside are errors of the evaluator. */
static void test_not_the_candidates(void **state)
{
    (void)state;
    Fault fault;
    DevicePtr y;
    start();
    DeviceModule *m = load(0);
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    DeviceLaunch l = launch(m, "ecc", y, 1, 0);
    assert_int_equal(ops->run(d, &l, 1, &fault), -1);
    assert_int_equal(ops->run(d, &l, 1, &fault), -1);
    ops->unload(d, m);
    honest();
    m = load(0);
    l = launch(m, "ones", y, 1, 0);
    end_runner(runner_of(HOME_CANDIDATE)->pid);
    assert_int_equal(ops->run(d, &l, 1, &fault), -1);
    ops->unload(d, m);
    honest();
    ops->close(d);
}

/* Timing at a phase of the memory's stalls; a sequence with two homes, and one that fails while it
 * is timed. */
static void test_clock(void **state)
{
    (void)state;
    Fault fault;
    DeviceClock c;
    DevicePtr y;
    start();
    DeviceModule *m = load(0), *trusted = load(1);
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    DeviceLaunch l[2] = {launch(m, "ones", y, 10, 0), launch(m, "ones", y, 5, 10)};
    assert_int_equal(d->stall_ns, 100148);
    for (double phase = 0; phase < 1; phase += 0.24999) {
        ok(ops->clock->time(d, l, 2, CLOCK_COLD, phase, &c, &fault));
        assert_true(c.us > 0 && c.flush_us > 0 && c.host_us >= c.us);
    }
    expect_floats(y, N, 15);
    l[1].module = trusted;
    assert_int_equal(clock_one(l, 2, CLOCK_COLD, &c, &fault), -1);
    assert_int_equal(clock_one(l, 0, CLOCK_COLD, &c, &fault), -1);
    l[1] = launch(m, "trap", y, 5, 10);
    assert_int_equal(clock_one(l, 2, CLOCK_COLD, &c, &fault), 1);
    assert_int_equal(fault.outcome, OUTCOME_LAUNCH_ERROR);
    ops->free(d, y);
    ops->unload(d, m);
    ops->unload(d, trusted);
    honest();
    ops->close(d);
}

static const char flush_name[] = "harness_flush ";

static int is_flush(const char *name)
{
    return !strncmp(name, flush_name, sizeof flush_name - 1);
}

/* Passes of the flush in the file "launches", which has one launch of it for each of so many timings. */
static int count_passes(int timings)
{
    Buffer launches;
    int n = 0, found = 0;
    buffer_init(&launches, 1 << 20);
    ok(file_read("launches", 1 << 20, &launches, &err));
    for (char *name = strtok(launches.data, "\n"); name; name = strtok(NULL, "\n"))
        if (is_flush(name)) {
            n += atoi(name + sizeof flush_name - 1);
            found++;
        }
    assert_int_equal(found, timings);
    buffer_release(&launches);
    unlink("launches");
    return n;
}

/* While the host enqueues what takes it long, the flush goes on: the time is the GPU's. */
static void test_hides_enqueuing(void **state)
{
    (void)state;
    enum { LATE = 3, /* a millisecond each */ TIMINGS = 8 };
    Fault fault;
    DeviceClock c;
    DevicePtr y;
    DeviceLaunch l[LATE];
    setenv("TEST_LAUNCHES", "launches", 1);
    start();
    DeviceModule *m = load(0);
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    for (int i = 0; i < LATE; i++) l[i] = launch(m, "late", y, N, 0);
    unlink("launches");
    ok(clock_one(l, LATE, CLOCK_COLD, &c, &fault));
    assert_int_equal(count_passes(1), 1);
    for (int i = 0; i < TIMINGS; i++) ok(clock_one(l, LATE, CLOCK_COLD, &c, &fault));
    assert_true(count_passes(TIMINGS) > 2 * TIMINGS);
    ok(clock_one(l, 1, CLOCK_COLD, &c, &fault)); /* another sequence */
    assert_int_equal(count_passes(1), 1);
    unsetenv("TEST_LAUNCHES");
    ops->free(d, y);
    ops->unload(d, m);
    ops->close(d);
}

/* A timing begins after 0 to 7 empty launches (eval/cuda/measure/stopwatch.c). */
static void test_begins_anywhere(void **state)
{
    (void)state;
    enum { TIMINGS = 100 };
    Fault fault;
    DeviceClock c;
    DevicePtr y;
    Buffer launches;
    int idle = 0, least = 8, max = 0, timings = 0;
    setenv("TEST_LAUNCHES", "launches", 1);
    start();
    DeviceModule *m = load(0);
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    DeviceLaunch l = launch(m, "ones", y, N, 0);
    unlink("launches");
    for (int i = 0; i < TIMINGS; i++)
        ok(clock_one(&l, 1, CLOCK_COLD, &c, &fault)); /* no phase: no wait for it */
    ok(clock_one(&l, 1, CLOCK_WARM, &c, &fault));
    unsetenv("TEST_LAUNCHES");
    buffer_init(&launches, 1 << 20);
    ok(file_read("launches", 1 << 20, &launches, &err));
    for (char *name = strtok(launches.data, "\n"); name; name = strtok(NULL, "\n")) {
        if (!strcmp(name, "harness_wait")) {
            idle++;
        } else if (is_flush(name)) {
            timings++;
            if (idle < least) least = idle;
            if (idle > max) max = idle;
            idle = 0;
        }
    }
    assert_int_equal(timings, TIMINGS);
    assert_int_equal(idle, 0); /* a warm timing has no empty launches */
    assert_int_equal(least, 0);
    assert_int_equal(max, 7);
    buffer_release(&launches);
    ops->free(d, y);
    ops->unload(d, m);
    ops->close(d);
}

/* Loading a module without variables many times gives one of a few copies, each equally often and
 * none twice in a row. After a runner's end the copies are new. */
static void test_copies(void **state)
{
    (void)state;
    enum { TIMES = 100 * DEVICE_COPIES };
    start();
    for (int trusted = 0; trusted < 2; trusted++) {
        DeviceModule *seen[DEVICE_COPIES] = {NULL}, *last = NULL;
        int times[DEVICE_COPIES] = {0}, follows[DEVICE_COPIES] = {0};
        for (int i = 0; i < TIMES; i++) {
            DeviceModule *m = load(trusted);
            int k = 0;
            assert_int_equal(m->parks, 1);
            assert_ptr_not_equal(m, last);
            while (k < DEVICE_COPIES && seen[k] && seen[k] != m) k++;
            assert_in_range(k, i < DEVICE_COPIES ? i : 0, DEVICE_COPIES - 1);
            if (last == seen[0] && i >= DEVICE_COPIES) follows[k]++;
            seen[k] = last = m;
            times[k]++;
            ops->unload(d, m);
        }
        for (int k = 0; k < DEVICE_COPIES; k++) {
            assert_in_range(times[k], TIMES / DEVICE_COPIES * 3 / 4, TIMES / DEVICE_COPIES * 5 / 4);
            assert_in_range(follows[k], k ? 5 : 0, k ? TIMES : 0);
        }
    }
    end_runner(runner_of(HOME_CANDIDATE)->pid);
    honest();
    ops->close(d);
}

static void test_trusted(void **state)
{
    (void)state;
    Fault fault;
    DeviceClock c;
    double idle_s;
    DevicePtr y;
    start();
    DeviceModule *m = load(1);
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    DeviceLaunch l = launch(m, "ones", y, N, 0);
    ok(ops->clock->lock(d, &idle_s, &err));
    assert_true(idle_s >= 0);
    ok(ops->run(d, &l, 1, &fault));
    expect_floats(y, N, N);
    ok(clock_one(&l, 1, CLOCK_COLD, &c, &fault));
    assert_true(c.us > 0 && c.flush_us > 0);
    ok(ops->clock->lock(d, NULL, &err));
    assert_int_equal(lock_held(d->lock), GPU_FREE);
    l.kernel = "refused";
    assert_int_equal(ops->run(d, &l, 1, &fault), -1); /* a baseline's failure is an error */
    ops->unload(d, m);
    ops->close(d);
}

/* Trusted code writes ones, then a candidate does, each in its own process. */
static void alternate(DeviceModule *trusted, DeviceModule *candidate, DevicePtr y)
{
    Fault fault;
    DeviceClock c;
    DeviceModule *modules[2] = {trusted, candidate};
    for (int i = 0; i < 2; i++) {
        DeviceLaunch l[2] = {launch(modules[i], "ones", y, 10, 0),
                             launch(modules[i], "ones", y, N - 10, 10)};
        ok(ops->poison(d, y, &err));
        int rc = ops->run(d, l, 2, &fault);
        if (rc) fail_msg("%s", rc > 0 ? fault.message : err.text);
        expect_floats(y, N, N);
        ok(ops->poison(d, y, &err));
        rc = clock_one(l, 2, CLOCK_COLD, &c, &fault);
        if (rc) fail_msg("%s", rc > 0 ? fault.message : err.text);
        assert_true(c.us > 0 && c.flush_us > 0);
        expect_floats(y, N, N);
    }
}

/* When the trusted runner is killed between two calls, it is replaced without an error, with its
 * modules. The candidates' runner is not affected. */
static void test_trusted_runner(void **state)
{
    (void)state;
    Fault fault;
    DevicePtr y, z;
    KernelInfo info;
    int files = open_files();
    start();
    DeviceModule *trusted = load(1), *candidate = load(0);
    CudaRunner *trusted_runner = runner_of(HOME_TRUSTED), *runner = runner_of(HOME_CANDIDATE);
    ok(ops->kernel(d, trusted, "ones", &info, &err));
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    alternate(trusted, candidate, y);
    assert_true(trusted_runner->pid && runner->pid && trusted_runner->pid != runner->pid);
    pid_t pid = runner->pid;
    for (unsigned round = 0; round < 3; round++) {
        kill(trusted_runner->pid, SIGKILL);
        if (round) end_runner(trusted_runner->pid); /* so that it has ended before the next call */
        DeviceLaunch l = launch(trusted, "ones", y, N, 0);
        if (!round && ops->run(d, &l, 1, &fault))
            assert_non_null(strstr(fault.error.text, "runner"));
        alternate(trusted, candidate, y);
        assert_int_equal(trusted_runner->generation, round + 2);
        /* The next runner maps it too. */
        if (round == 1) ok(ops->alloc(d, (size_t)100 << 20, "output z", &z, &err));
    }
    end_runner(trusted_runner->pid);
    ok(ops->kernel(d, trusted, "illegal", &info,
                   &err)); /* a kernel that was not asked for before */
    ops->free(d, z);
    alternate(trusted, candidate, y);
    assert_true(runner->pid == pid && runner->generation == 1);
    ops->free(d, y);
    ops->unload(d, candidate);
    ops->unload(d, trusted);
    honest();
    ops->close(d);
    assert_int_equal(open_files(), files);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* A candidate's failure does not affect the trusted runner. A failure of trusted code is an error
 * of the evaluator and ends the trusted runner only. */
static void test_trusted_runner_faults(void **state)
{
    (void)state;
    Fault fault;
    DevicePtr y;
    static const char *const ways[] = {"illegal", "trap", "death"};
    start();
    DeviceModule *trusted = load(1);
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    for (int i = 0; i < 3; i++) {
        DeviceModule *candidate = load(0);
        alternate(trusted, candidate, y);
        unsigned trusted_runner = runner_of(HOME_TRUSTED)->generation,
                 runner = runner_of(HOME_CANDIDATE)->generation;
        DeviceLaunch bad = launch(candidate, ways[i], y, 1, 0);
        assert_int_equal(ops->run(d, &bad, 1, &fault), 1);
        assert_int_equal(runner_of(HOME_CANDIDATE)->generation, runner + 1);
        assert_int_equal(runner_of(HOME_TRUSTED)->generation, trusted_runner);
        ops->unload(d, candidate);
        candidate = load(0);
        alternate(trusted, candidate, y);
        bad = launch(trusted, ways[i], y, 1, 0);
        assert_int_equal(ops->run(d, &bad, 1, &fault), -1);
        if (!strstr(fault.error.text, ways[i])) fail_msg("%s", fault.error.text);
        assert_int_equal(runner_of(HOME_CANDIDATE)->generation, runner + 1);
        assert_int_equal(runner_of(HOME_TRUSTED)->generation, trusted_runner + 1);
        alternate(trusted, candidate, y);
        ops->unload(d, candidate);
    }
    ops->unload(d, trusted);
    ops->close(d);
}

/* A library is called in the trusted runner. The candidates' runner refuses such a call. */
static void test_library(void **state)
{
    (void)state;
    Fault fault;
    DeviceModule *trusted = NULL;
    CudaAnswer a;
    size_t used = 0;
    start();
    ok(ops->load(d, NULL, 1, &trusted, &fault));
    assert_int_equal(ops->load(d, NULL, 0, &trusted, &fault), -1);
    DeviceModule *candidate = load(0);
    DeviceLaunch l = {.module = trusted, .kernel = "nobody.knows", .library_args = 2};
    assert_int_equal(ops->run(d, &l, 1, &fault), -1);
    if (!strstr(fault.error.text, "no library call is named \"nobody.knows\""))
        fail_msg("%s", fault.error.text);
    l.module = candidate;
    assert_int_equal(ops->run(d, &l, 1, &fault), -1);
    Remote *r = &d->remotes[HOME_CANDIDATE];
    assert_int_equal(launch_encode(&l, 0, 0, r->runner.mailbox, PROTOCOL_MAILBOX, &used), 0);
    RemoteCall ask = {.call = {.kind = CALL_RUN, .bytes = used, .launches = 1}, .limit_s = 10};
    ok(remote_ask(d, r, &ask, &a, &err));
    assert_int_equal(a.end.step, END_HARNESS);
    assert_string_equal(a.end.text, "a library call outside the harness");
    ops->unload(d, trusted);
    ops->unload(d, candidate);
    ops->close(d);
}

static void test_other_addresses(void **state)
{
    (void)state;
    setenv("TEST_TAKEN", "200000000000", 1);
    start();
    honest();
    DeviceModule *trusted = load(1), *candidate = load(0);
    DevicePtr y;
    ok(ops->alloc(d, N * 4, "output y", &y, &err));
    alternate(trusted, candidate, y);
    assert_int_equal(d->space.base, 0x300000000000);
    ops->close(d);
    unsetenv("TEST_TAKEN");
}

/* A map is encoded for the memory that it is bound to, in each launch. */
static void test_tensor_maps(void **state)
{
    (void)state;
    Fault fault;
    DevicePtr p[2];
    start();
    DeviceModule *m = load(0);
    DeviceLaunch l[2];
    for (int i = 0; i < 2; i++) {
        ok(ops->alloc(d, N * 4, "output y", &p[i], &err));
        TensorMap map = {
            .base = p[i], .size = {500}, .box = {64}, .type = TENSOR_MAP_F32, .rank = 1};
        l[i] = (DeviceLaunch){
            .module = m, .kernel = "mapped", .grid = {1, 1, 1}, .block = {32, 1, 1}, .n_maps = 1};
        memcpy(l[i].params, &map, sizeof map);
    }
    for (int run = 0; run < 2; run++) {
        ok(ops->run(d, l, 2, &fault));
        for (int i = 0; i < 2; i++) expect_floats(p[i], N, 500);
        for (int i = 0; i < 2; i++) ok(ops->poison(d, p[i], &err));
    }
    DeviceClock clock;
    ok(clock_one(l, 1, CLOCK_GRAPH, &clock, &fault));
    expect_floats(p[0], N, 500);
    TensorMap other = {.base = p[0], .size = {500}, .box = {2}, .type = TENSOR_MAP_F32, .rank = 1};
    memcpy(l[0].params, &other, sizeof other); /* the driver takes whole words of 16 bytes */
    assert_int_equal(ops->run(d, l, 1, &fault), 1);
    assert_int_equal(fault.outcome, OUTCOME_LAUNCH_ERROR);
    assert_non_null(strstr(fault.message, "refuses a tensor map"));
    l[0].n_maps = 0; /* the kernel gets no map */
    assert_int_equal(ops->run(d, l, 1, &fault), 1);
    ops->close(d);
}

static void test_refused_names(void **state)
{
    (void)state;
    assert_int_equal(ops->open("x", &d, &err), -1);
    assert_int_equal(ops->open("-1", &d, &err), -1);
    assert_int_equal(ops->open("7", &d, &err), -1);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* When quern-light cannot measure, the evaluator uses the bounds, and tries again when it is opened
 * the next time. */
static void test_unmeasured(void **state)
{
    (void)state;
    char path[4096];
    ok(keep_light(path));
    start();
    double bound = d->info.dram_bytes_per_s;
    assert_true(d->info.light_bytes_per_s > 0);
    ops->close(d);
    unlink(path);
    start();
    assert_int_equal(d->stall_ns, 0);
    assert_true(d->info.light_bytes_per_s == 0 && d->info.dram_bytes_per_s == bound);
    honest();
    ops->close(d);
    ok(keep_light(path));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_honest),
                                       cmocka_unit_test(test_cooperative),
                                       cmocka_unit_test(test_buffers),
                                       cmocka_unit_test(test_guards),
                                       cmocka_unit_test(test_draw),
                                       cmocka_unit_test(test_idle_holds_nothing),
                                       cmocka_unit_test(test_failures),
                                       cmocka_unit_test(test_not_the_candidates),
                                       cmocka_unit_test(test_trusted),
                                       cmocka_unit_test(test_clock),
                                       cmocka_unit_test(test_hides_enqueuing),
                                       cmocka_unit_test(test_begins_anywhere),
                                       cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_trusted_runner),
                                       cmocka_unit_test(test_trusted_runner_faults),
                                       cmocka_unit_test(test_library),
                                       cmocka_unit_test(test_other_addresses),
                                       cmocka_unit_test(test_unmeasured),
                                       cmocka_unit_test(test_tensor_maps),
                                       cmocka_unit_test(test_refused_names)};
    (void)argc;
    if (driver_ready(argv)) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
