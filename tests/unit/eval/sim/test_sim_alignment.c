/* The alignment that each kind of access needs, which is what a GPU needs: one that is aligned to so many
 * bytes passes, and one that is aligned to half of them is a fault. */
#include "tests/unit/eval/sim/sim_checks.h"

typedef struct {
    const char *kernel;
    int unit;       /* bytes */
    int stride;     /* elements of a row that pass */
    int odd_stride; /* elements of a row that do not; 0: the kernel has no rows */
} Aligned;

static const Aligned aligned[] = {
    {"half_a_shared", 16, 24, 20},
    {"half_a_global", 4, 34, 17},
    {"half_b_shared", 16, 40, 18},
    {"half_b_global", 4, 18, 21},
    {"half_wide_shared", 16, 16, 36},
    {"half_wide_global", 4, 20, 19},
    {"bf16_shared", 16, 72, 20},
    {"bf16_global", 4, 30, 23},
    {"tf32_shared", 4, 9, 0},
    {"tf32_global", 4, 13, 0},
    {"bytes_shared", 16, 48, 24},
    {"bytes_global", 4, 20, 18},
    {"bytes_across_shared", 1, 17, 0},
    {"bytes_across_global", 1, 19, 0},
    {"doubles_shared", 8, 5, 0},
    {"doubles_global", 8, 7, 0},
    {"floats", 8, 18, 17},
    {"floats_across", 4, 17, 0},
    {"floats_wide", 8, 10, 9},
    {"halves", 4, 18, 17},
    {"pairs_of_doubles", 16, 10, 9},
    {"global_v4", 16, 0, 0},
    {"constant_v2", 8, 0, 0},
    {"local_v4", 16, 1, 0},
    {"shared_v2", 8, 0, 0},
    {"load_rows", 16, 0, 0},
    {"store_rows", 16, 0, 0},
    {"copy_to", 16, 0, 0},
    {"copy_from", 8, 0, 0},
    {"barrier", 8, 0, 0},
    {"bulk_store", 16, 0, 0},
    {"add_long", 8, 0, 0},
    {"swap_short", 2, 0, 0},
    {"add_v4", 16, 0, 0},
    {"add_halves", 4, 0, 0},
};

/* Returns 1 when the access is refused since it is misaligned. */
static int is_refused(const Aligned *a, DevicePtr g, int off, int stride)
{
    int r =
        sim_try(&sim, ((Shape){.kernel = a->kernel, .block = {32}}), 3, A(g), A(off), A(stride));
    const char *why = sim.fault.message;
    if (r && sim.fault.outcome == OUTCOME_OUT_OF_BOUNDS &&
        (strstr(why, "not a multiple") || strstr(why, "misaligned")))
        return 1;
    if (r) fail_msg("%s by %d bytes, rows of %d: %s", a->kernel, off, stride, why);
    return 0;
}

static void test_alignment(void **state)
{
    (void)state;
    static const float zeros[4096];
    sim_start_cuda(&sim, fixture_text("sim/alignment.cu"));
    DevicePtr g = sim_buffer(&sim, "buffer g", zeros, sizeof zeros);
    for (size_t i = 0; i < sizeof aligned / sizeof *aligned; i++) {
        const Aligned *a = &aligned[i];
        if (is_refused(a, g, 0, a->stride) || is_refused(a, g, a->unit, a->stride))
            fail_msg("%s is refused: %s", a->kernel, sim.fault.message);
        if (a->unit > 1 && !is_refused(a, g, a->unit / 2, a->stride))
            fail_msg("%s is accepted by %d bytes", a->kernel, a->unit / 2);
        if (a->odd_stride && !is_refused(a, g, 0, a->odd_stride))
            fail_msg("%s is accepted with rows of %d elements", a->kernel, a->odd_stride);
    }
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alignment)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
