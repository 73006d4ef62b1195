/* The speed of light: bounds from attributes, ceilings, the artifact, and the kernels that measure.
 * These compile, and on the simulator they access the memory that they should and no other. */
#include "tests/unit/eval/sim/sim_support.h"

#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "eval/cuda/measure/light_code.h"
#include "eval/cuda/measure/light_measure.h"

static char dir[] = "/tmp/quern-test-XXXXXX";
static Error err;

/* ---- a driver with an H200's attributes ---- */

static int major = 9, clock_khz = 1980000;

static CuResult attribute(int *value, int which, CuDevice device)
{
    (void)device;
    switch (which) {
    case CU_ATTRIBUTE_SMS: *value = 132; break;
    case CU_ATTRIBUTE_CLOCK_KHZ: *value = clock_khz; break;
    case CU_ATTRIBUTE_MEMORY_CLOCK_KHZ: *value = 3201000; break;
    case CU_ATTRIBUTE_BUS_BITS: *value = 6144; break;
    case CU_ATTRIBUTE_L2_BYTES: *value = 60 << 20; break;
    case CU_ATTRIBUTE_MAJOR: *value = major; break;
    case CU_ATTRIBUTE_MINOR: *value = 0; break;
    default: return 1;
    }
    return CU_OK;
}

static CuResult version(int *v)
{
    *v = 13000;
    return CU_OK;
}

static const CudaDriver fake = {.device_attribute = attribute, .driver_version = version};
static const Gpu h200 = {.name = "NVIDIA H200", .uuid = "GPU-0123", .arch = "sm_90"};

static Light bounds_of_h200(void)
{
    Light l;
    if (light_bounds(&fake, &h200, &l, &err)) fail_msg("%s", err.text);
    return l;
}

static void test_bounds(void **state)
{
    (void)state;
    Light l = bounds_of_h200();
    assert_true(l.dram_bytes_per_s > 4.8e12 && l.dram_bytes_per_s < 5.0e12);
    assert_true(l.tensor16_flops > 989e12 && l.tensor16_flops < 1.1e15);
    assert_true(l.tf32_flops * 2 == l.tensor16_flops);
    assert_true(l.fp32_flops > 66e12 && l.fp32_flops < 68e12);
    assert_true(l.launch_us == 0 && l.l2_bytes == 60 << 20);
    assert_string_equal(l.device, "NVIDIA H200");
    major = 99; /* an unknown architecture may be fast */
    Light later = bounds_of_h200();
    assert_true(later.tensor16_flops > 10 * l.tensor16_flops);
    clock_khz = 0;
    assert_int_equal(light_bounds(&fake, &h200, &later, &err), -1);
    clock_khz = 1980000;
    major = 9;
}

static Light measured_light(void)
{
    return (Light){.dram_bytes_per_s = 4.4e12,
                   .fp32_flops = 60e12,
                   .tensor16_flops = 800e12,
                   .tf32_flops = 390e12,
                   .launch_us = 2.25,
                   .stall_period_us = 100.148,
                   .l2_bytes = 60 << 20,
                   .uuid = "GPU-0123",
                   .device = "NVIDIA H200",
                   .driver = "580.1"};
}

/* A product at the speed of tensor cores is no cheat when they can compute it with the accuracy of
 * the dtype; three products in TF32 have the accuracy of fp32. */
static void test_ceilings(void **state)
{
    (void)state;
    Light m = measured_light();
    assert_true(light_flops(&m, DTYPE_F32) == 130e12);
    assert_true(light_flops(&m, DTYPE_BF16) == 800e12);
    m.tf32_flops = 0;
    assert_true(light_flops(&m, DTYPE_F32) == 60e12);
}

static void test_artifact(void **state)
{
    (void)state;
    char path[4096];
    Light l = measured_light(), back;
    Gpu gpu = {0}, ninth = {.uuid = "GPU-9"};
    memcpy(gpu.uuid, l.uuid, sizeof gpu.uuid);
    assert_int_equal(light_path(l.uuid, path, sizeof path, &err), 0);
    assert_memory_equal(path, dir, strlen(dir));
    assert_int_equal(light_path("a/b", path, sizeof path, &err), -1);
    assert_int_equal(light_path(l.uuid, path, sizeof path, &err), 0);
    assert_int_equal(light_kept(path, &gpu, l.driver, &back), 0);
    if (light_save(&l, path, &err)) fail_msg("%s", err.text);
    assert_int_equal(light_kept(path, &gpu, "of tomorrow", &back), 0);
    assert_true(back.dram_bytes_per_s == 0);
    assert_int_equal(light_kept(path, &gpu, l.driver, &back), 1);
    assert_string_equal(back.uuid, l.uuid);
    assert_string_equal(back.device, l.device);
    assert_string_equal(back.driver, l.driver);
    assert_true(back.dram_bytes_per_s == l.dram_bytes_per_s && back.fp32_flops == l.fp32_flops);
    assert_true(back.tensor16_flops == l.tensor16_flops && back.tf32_flops == l.tf32_flops);
    assert_true(back.launch_us == l.launch_us && back.l2_bytes == l.l2_bytes);
    /* an artifact of another GPU, a damaged one, and one with an invalid number count as missing */
    char other[4096];
    assert_int_equal(light_path("GPU-9", other, sizeof other, &err), 0);
    assert_int_equal(light_save(&l, other, &err), 0);
    assert_int_equal(light_kept(other, &ninth, l.driver, &back), 0);
    assert_int_equal(truncate(path, 300), 0);
    assert_int_equal(light_kept(path, &gpu, l.driver, &back), 0);
    assert_true(back.dram_bytes_per_s == 0);
    l.fp32_flops = -1;
    assert_int_equal(light_save(&l, path, &err), 0);
    assert_int_equal(light_read(path, &back, &err), -1);
    assert_non_null(strstr(err.text, "fp32_flops"));
}

static void compiles(Compiler *c, const char *arch, const LightCode *l)
{
    CompileRequest request = {arch, l->source, strlen(l->source), l->n, l->names};
    CompileResult code;
    if (compiler_run(c, &request, &code, &err)) fail_msg("%s", err.text);
    if (!code.ok) fail_msg("%s: %s", arch, code.message);
    assert_int_equal(code.n_lowered, l->n);
    for (int i = 0; i < l->n; i++) assert_true(code.lowered[i][0]);
    assert_true(code.cubin_len > 0);
    compile_result_release(&code);
}

static void test_kernels(void **state)
{
    (void)state;
    Compiler *c;
    if (compiler_open(&(CompilerOptions){0}, &c, &err)) fail_msg("%s", err.text);
    if (!compiler_version(c, &err)) fail_msg("%s", err.text);
    static const char *const archs[] = {"sm_80", "sm_90"};
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        compiles(c, archs[i], &light_memory);
        compiles(c, archs[i], &light_arithmetic);
        compiles(c, archs[i], &light_warp);
    }
    compiles(c, "sm_90a", &light_group);
    compiler_close(c);
}

/* ---- the kernels, run ---- */

static void simulate(Sim *sim, const char *source)
{
    const char *reason;
    char *ptx = cuda_to_ptx(source, &reason);
    if (!ptx) fail_msg("%s", reason);
    sim_start(sim, ptx);
    free(ptx);
}

static void test_memory_kernels(void **state)
{
    (void)state;
    enum { BLOCK = 64, VECTORS = 3 * BLOCK * 8, TILES4 = VECTORS / (BLOCK * 4), TILES8 = 3 };
    static uint32_t from[VECTORS * 4], to[VECTORS * 4];
    Sim sim;
    char *source =
        memory_printf("%stemplate __global__ void read_tiles<8>(const uint4 *, uint4 *, Long);"
                      "template __global__ void write_tiles<8>(const uint4 *, uint4 *, Long);"
                      "template __global__ void copy_tiles<4>(const uint4 *, uint4 *, Long);",
                      light_memory.source);
    simulate(&sim, source);
    free(source);
    DevicePtr x = sim_buffer(&sim, "x", NULL, sizeof from),
              y = sim_buffer(&sim, "y", NULL, sizeof to);
    sim_run(&sim, ((Shape){"fill", {2}, {BLOCK}}), 2, A(x), A(VECTORS));
    sim_run(&sim, ((Shape){"nothing", {1}, {32}}), 0, A(0));
    /* here a read of an undefined element and an access outside are faults */
    sim_run(&sim, ((Shape){"_Z10read_tilesILi8EEvPK5uint4PS0_y", {2}, {BLOCK}}), 3, A(x), A(y),
            A(TILES8));
    sim_run(&sim, ((Shape){"_Z10copy_tilesILi4EEvPK5uint4PS0_y", {TILES4}, {BLOCK}}), 3, A(x), A(y),
            A(TILES4));
    sim_read(&sim, x, from, sizeof from);
    sim_read(&sim, y, to, sizeof to);
    assert_memory_equal(from, to, sizeof to);
    for (int i = 4; i < VECTORS * 4; i++) assert_int_not_equal(from[i], from[i - 4]);
    uint32_t words = VECTORS * 4, jump = words / 1000 * 618 | 1, loads = 100;
    uint64_t done[100] = {0};
    DevicePtr when = sim_buffer(&sim, "when", done, sizeof done);
    sim_run(&sim, ((Shape){"watch", {1}, {1}}), 5, A(x), A(words), A(jump), A(loads), A(when));
    sim_read(&sim, when, done, sizeof done);
    for (int i = 1; i < 100; i++) assert_true(done[i] >= done[i - 1]);
    assert_true(done[0] > 0 && done[99] > done[0]);
    sim_run(&sim, ((Shape){"_Z11write_tilesILi8EEvPK5uint4PS0_y", {2}, {BLOCK}}), 3, A(x), A(y),
            A(TILES8));
    sim_read(&sim, y, to, sizeof to);
    for (int i = 3; i < VECTORS * 4; i += 4) assert_int_equal(to[i], 7);
    sim_stop(&sim);
}

static void test_arithmetic_kernels(void **state)
{
    (void)state;
    float a = 0.999f, b = 0.001f, out[1024] = {0};
    uint32_t bits[2];
    Sim sim;
    memcpy(bits, (float[]){a, b}, 8);
    simulate(&sim, light_arithmetic.source);
    DevicePtr y = sim_buffer(&sim, "y", out, sizeof out);
    sim_run(&sim, ((Shape){"fma32", {1}, {64}}), 4, A(y), A(bits[0]), A(bits[1]), A(2));
    sim_stop(&sim);
    simulate(&sim, light_warp.source);
    y = sim_buffer(&sim, "y", out, sizeof out);
    for (int i = 0; i < 3; i++)
        sim_run(&sim, ((Shape){light_warp.names[i], {1}, {256}}), 3, A(y), A(1), A(2));
    sim_stop(&sim);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(dir) && !setenv("QUERN_CACHE", dir, 1) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(dir, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),         cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_artifact),       cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_memory_kernels), cmocka_unit_test(test_arithmetic_kernels)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
