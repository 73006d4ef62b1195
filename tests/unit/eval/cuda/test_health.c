/* What takes a GPU out of service: Xid errors by their number, and a canary that fails, hangs or
 * computes wrongly. The canary's kernels also run on the simulator, where they must give the sums
 * that the host expects. */
#include "tests/unit/eval/sim/sim_support.h"

#include "base/clock.h"
#include "eval/cuda/health/health.h"

static Error err;

static void test_xids(void **state)
{
    (void)state;
    static const unsigned programs[] = {13, 31, 43, 45, 68},
                          hardware[] = {48, 63, 64, 74, 79, 92, 94, 95, 119, 154, 999, 0};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        assert_null(health_xid(programs[i]));
    for (size_t i = 0; i < sizeof hardware / sizeof *hardware; i++)
        assert_non_null(health_xid(hardware[i]));
    assert_string_equal(health_xid(79), "the GPU has fallen off the bus");
    assert_string_equal(health_xid(12345), "an error that no program is known to cause");
}

static void test_on_simulator(void **state)
{
    (void)state;
    const char *reason;
    Sim sim;
    uint64_t want[2], got[2] = {0, 0};
    char *source = health_source(), *ptx = cuda_to_ptx(source, &reason);
    free(source);
    if (!ptx) fail_msg("%s", reason);
    sim_start(&sim, ptx);
    free(ptx);
    DevicePtr words = sim_buffer(&sim, "words", NULL, HEALTH_WORDS * 4),
              sums = sim_buffer(&sim, "sums", got, 16);
    sim_run(&sim, ((Shape){"canary_fill", {528}, {HEALTH_BLOCK}}), 2, A(words), A(HEALTH_WORDS));
    sim_run(&sim, ((Shape){"canary_sum", {528}, {HEALTH_BLOCK}}), 3, A(words), A(HEALTH_WORDS),
            A(sums));
    sim_read(&sim, sums, got, 16);
    health_expected(want);
    assert_memory_equal(got, want, 16);
    sim_stop(&sim);
}

/* ---- a driver whose GPU can be made to fail ---- */

static struct {
    uint64_t flip; /* bits of the first sum that are wrong */
    CuResult launch, query;
    int launches, modules, events, streams, memory; /* objects that exist */
} gpu;

static CuResult get_attribute(int *value, int which, CuDevice device)
{
    (void)which, (void)device;
    *value = 132;
    return CU_OK;
}

static CuResult load(CuModule *m, const void *image)
{
    *m = (CuModule)(uintptr_t)image;
    gpu.modules++;
    return CU_OK;
}

static CuResult unload(CuModule m)
{
    (void)m;
    gpu.modules--;
    return CU_OK;
}

static CuResult find(CuFunction *f, CuModule m, const char *name)
{
    *f = (CuFunction)(uintptr_t)m;
    return !strcmp(name, "canary_fill") || !strcmp(name, "canary_sum") ? CU_OK : CU_NOT_FOUND;
}

static CuResult allocate(CuPtr *p, size_t bytes)
{
    (void)bytes;
    *p = 4096;
    gpu.memory++;
    return CU_OK;
}

static CuResult release(CuPtr p)
{
    (void)p;
    gpu.memory--;
    return CU_OK;
}

static CuResult make_stream(CuStream *s, unsigned flags)
{
    (void)flags;
    *s = (CuStream)(uintptr_t)1;
    gpu.streams++;
    return CU_OK;
}

static CuResult drop_stream(CuStream s)
{
    (void)s;
    gpu.streams--;
    return CU_OK;
}

static CuResult make_event(CuEvent *e, unsigned flags)
{
    (void)flags;
    *e = (CuEvent)(uintptr_t)1;
    gpu.events++;
    return CU_OK;
}

static CuResult drop_event(CuEvent e)
{
    (void)e;
    gpu.events--;
    return CU_OK;
}

static CuResult record(CuEvent e, CuStream s)
{
    (void)e, (void)s;
    return CU_OK;
}

static CuResult query(CuEvent e)
{
    (void)e;
    return gpu.query;
}

static CuResult clear(CuPtr p, unsigned char value, size_t count, CuStream s)
{
    (void)p, (void)value, (void)count, (void)s;
    return CU_OK;
}

static CuResult start(CuFunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, CuStream s, void **params, void **extra)
{
    (void)f, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)s, (void)params,
        (void)extra;
    assert_true(gx >= 132); /* every SM */
    gpu.launches++;
    return gpu.launch;
}

static CuResult copy(void *to, CuPtr from, size_t bytes)
{
    uint64_t sums[2];
    assert_int_equal(from, 4096 + HEALTH_WORDS * 4);
    assert_int_equal(bytes, 16);
    health_expected(sums);
    sums[0] ^= gpu.flip;
    memcpy(to, sums, 16);
    return CU_OK;
}

static const CudaDriver driver = {.device_attribute = get_attribute,
                                  .module_load = load,
                                  .module_unload = unload,
                                  .module_function = find,
                                  .memory_alloc = allocate,
                                  .memory_free = release,
                                  .stream_create = make_stream,
                                  .stream_destroy = drop_stream,
                                  .event_create = make_event,
                                  .event_destroy = drop_event,
                                  .event_record = record,
                                  .event_query = query,
                                  .set_bytes = clear,
                                  .launch = start,
                                  .copy_to_host = copy};

static Health *open_health(void)
{
    Health *h;
    memset(&gpu, 0, sizeof gpu);
    const Gpu which = {.name = "NVIDIA H200", .uuid = "GPU-of-no-machine", .pci = "ffff:ff:1f.0"};
    if (health_open(&driver, &which, "cubin", &h, &err)) fail_msg("%s", err.text);
    return h;
}

static void close_health(Health *h)
{
    health_close(h);
    assert_int_equal(gpu.modules, 0);
    assert_int_equal(gpu.memory, 0);
    assert_int_equal(gpu.streams, 0);
    assert_int_equal(gpu.events, 0);
}

static void test_canary(void **state)
{
    (void)state;
    Health *h = open_health();
    assert_int_equal(health_check(h, &err), 0);
    assert_int_equal(health_check(h, &err), 0);
    assert_int_equal(gpu.launches, 4);
    gpu.flip = 1; /* one bit */
    assert_int_equal(health_check(h, &err), -1);
    assert_int_equal(err.code, ERROR_DEVICE_SICK);
    assert_non_null(strstr(err.text, "NVIDIA H200, GPU-of-no-machine: the canary computed"));
    gpu.flip = 0; /* a GPU that was wrong once stays out of service */
    assert_int_equal(health_check(h, &err), -1);
    assert_int_equal(gpu.launches, 6);
    close_health(h);
}

static void test_failures(void **state)
{
    (void)state;
    Health *h = open_health();
    gpu.launch = CU_LAUNCH_FAILED;
    assert_int_equal(health_check(h, &err), -1);
    assert_int_equal(err.code, ERROR_DEVICE_SICK);
    close_health(h);
    h = open_health();
    gpu.query = CU_NOT_READY;
    double begin = clock_seconds();
    assert_int_equal(health_check(h, &err), -1);
    assert_true(clock_seconds() - begin < 200);
    assert_non_null(strstr(err.text, "did not end within"));
    close_health(h);
}

/* Without NVML, or when it does not know the GPU, all values are 0. */
static void test_no_nvml(void **state)
{
    (void)state;
    DeviceTelemetry t = {.sm_mhz = 1, .ecc_errors = 1};
    unsigned xids[4];
    Nvml *n = nvml_open("GPU-of-no-machine", "ffff:ff:1f.0");
    assert_non_null(n);
    nvml_telemetry(n, &t);
    assert_true(!t.sm_mhz && !t.memory_mhz && !t.temperature && !t.power_watts && !t.throttle &&
                !t.ecc_errors);
    assert_int_equal(nvml_xids(n, xids, 4), -1);
    nvml_close(n);
    n = nvml_open(NULL, "");
    nvml_telemetry(n, &t);
    assert_true(!t.sm_mhz && !t.ecc_errors);
    nvml_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xids), cmocka_unit_test(test_on_simulator),
        cmocka_unit_test(test_canary), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_no_nvml)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
