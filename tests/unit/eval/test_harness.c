/* The harness on a device made for the test: kernels are C functions by name, memory is the host's
 * with guards. Each way to a verdict that needs a device, and the paired timing of a real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "eval/statistics.h"
#include "eval/timing.h"

enum { MAX_BLOCKS = 64, GUARD = 64 };

typedef struct {
    unsigned char *base;
    size_t bytes;
} Block;

struct Device {
    DeviceInfo info;
    Block blocks[MAX_BLOCKS];
    int allocated, loads, launches, disturbed;
    int baseline_output[8], candidate_output[8]; /* seen while timing: which block, by slot */
};

struct DeviceModule {
    int runs;                   /* a device variable: gone with the module */
    float bank[1 << 15];
};

static Device fake = {.info = {.device_class = "fake", .arch = "sm_90", .sm_count = 1, .max_threads_per_block = 1024,
                               .max_shared_per_block = 49152, .memory_bytes = 1 << 30, .dram_bytes_per_s = 1e12, .flops_per_s = 1e12}};

static const DeviceInfo *fake_info(Device *d)
{
    return &d->info;
}

static int fake_load(Device *d, const DeviceCode *code, DeviceModule **out, DeviceFault *fault, Error *err)
{
    (void)code, (void)fault, (void)err;
    d->loads++;
    *out = memory_alloc(sizeof **out);
    return 0;
}

static void fake_unload(Device *d, DeviceModule *m)
{
    (void)d;
    free(m);
}

static int fake_kernel(Device *d, DeviceModule *m, const char *lowered, KernelInfo *out, Error *err)
{
    (void)d, (void)m;
    if (!strcmp(lowered, "unspeakable")) return error_set(err, "kernel unspeakable has 65 parameters; 64 are allowed");
    *out = (KernelInfo){.n_params = 3, .params = {{0, 8, 1}, {8, 8, 1}, {16, 4, 0}}, .param_bytes = 20, .registers = 16, .max_threads = 1024};
    return 0;
}

static Block *block_of(Device *d, DevicePtr p)
{
    for (int i = 0; i < MAX_BLOCKS; i++)
        if (d->blocks[i].base && (DevicePtr)(uintptr_t)(d->blocks[i].base + GUARD) == p) return &d->blocks[i];
    fail_msg("no block at %llx", (unsigned long long)p);
    return NULL;
}

static int fake_poison(Device *d, DevicePtr p, Error *err)
{
    (void)err;
    Block *b = block_of(d, p);
    memset(b->base + GUARD, 0xff, b->bytes);
    return 0;
}

static int fake_alloc(Device *d, size_t bytes, const char *label, DevicePtr *out, Error *err)
{
    (void)label;
    for (int i = 0; i < MAX_BLOCKS; i++) {
        Block *b = &d->blocks[i];
        if (b->base) continue;
        *b = (Block){memory_alloc(bytes + 2 * GUARD), bytes};
        memset(b->base, 0xab, bytes + 2 * GUARD);
        *out = (DevicePtr)(uintptr_t)(b->base + GUARD);
        d->allocated++;
        return fake_poison(d, *out, err);
    }
    return error_set(err, "no block left");
}

static void fake_free(Device *d, DevicePtr p)
{
    Block *b = block_of(d, p);
    free(b->base);
    b->base = NULL;
    d->allocated--;
}

static int fake_write(Device *d, DevicePtr p, const void *src, size_t bytes, Error *err)
{
    (void)err;
    memcpy(block_of(d, p)->base + GUARD, src, bytes);
    return 0;
}

static int fake_read(Device *d, DevicePtr p, void *dst, size_t bytes, Error *err)
{
    (void)err;
    memcpy(dst, block_of(d, p)->base + GUARD, bytes);
    return 0;
}

static int fake_protect(Device *d, DevicePtr p, int read_only, Error *err)
{
    (void)d, (void)p, (void)read_only, (void)err; /* cannot tell */
    return 0;
}

static int fake_check_guards(Device *d, DeviceFault *fault, Error *err)
{
    (void)err;
    for (int i = 0; i < MAX_BLOCKS; i++) {
        const Block *b = &d->blocks[i];
        for (int k = 0; b->base && k < GUARD; k++) {
            if (b->base[k] == 0xab && b->base[GUARD + b->bytes + (size_t)k] == 0xab) continue;
            *fault = (DeviceFault){.outcome = OUTCOME_OUT_OF_BOUNDS, .message = "a guard was written"};
            return 1;
        }
    }
    return 0;
}

static void execute(Device *d, const DeviceLaunch *l)
{
    float *x, *y;
    int n;
    DeviceModule *m = l->module;
    const char *k = l->kernel;
    memcpy(&x, l->params, 8);
    memcpy(&y, l->params + 8, 8);
    memcpy(&n, l->params + 16, 4);
    d->launches++;
    if (!strcmp(k, "nothing") || (!strcmp(k, "once") && m->runs++)) return;
    for (int i = 0; i < n; i++) {
        float v = x[i] > 0 ? x[i] : 0;
        if (!strcmp(k, "replay") && n <= (1 << 15)) v = m->runs == n ? m->bank[i] : (m->bank[i] = v);
        y[i] = v;
    }
    if (!strcmp(k, "replay")) m->runs = n;
    for (int i = 0; !strcmp(k, "flaky") && i < n; i++) y[i] *= 1 + 1.2e-7f * (float)(m->runs % 2);
    if (!strcmp(k, "flaky")) m->runs++;
    if (!strcmp(k, "wrong") || (!strcmp(k, "ordered") && d->disturbed)) y[n / 3] += 1;
    if (!strcmp(k, "mutate")) x[n - 1] = 7;
    if (!strcmp(k, "beyond")) y[n] = 1;
}

static int fake_run(Device *d, const DeviceLaunch *launches, int n, DeviceFault *fault, Error *err)
{
    (void)err;
    for (int i = 0; i < n; i++) {
        if (!strcmp(launches[i].kernel, "slow") || (!strcmp(launches[i].kernel, "waits") && d->disturbed)) {
            *fault = (DeviceFault){.outcome = OUTCOME_TIMEOUT, .line = 4, .message = "kernel slow runs too long"};
            return 1;
        }
        execute(d, &launches[i]);
    }
    return 0;
}

static void fake_disturb(Device *d, int on)
{
    d->disturbed = on;
}

static int output_block(Device *d, const DeviceLaunch *l)
{
    DevicePtr p;
    memcpy(&p, l->params + 8, 8);
    return (int)(block_of(d, p) - d->blocks);
}

/* The candidate takes 10 us with some noise; the baseline 15. */
static int fake_time(Device *d, const DeviceSide *baseline, const DeviceSide *candidate, double budget_s, uint64_t seed,
                     DeviceTiming *out, DeviceFault *fault, Error *err)
{
    Random r;
    (void)budget_s;
    random_init(&r, seed, 5);
    for (int s = 0; s < candidate->n_slots; s++) {
        d->candidate_output[s] = output_block(d, &candidate->launches[s * candidate->n_launches]);
        if (fake_run(d, candidate->launches + s * candidate->n_launches, candidate->n_launches, fault, err)) return 1;
        if (!baseline) continue;
        d->baseline_output[s] = output_block(d, &baseline->launches[s * baseline->n_launches]);
        if (fake_run(d, baseline->launches + s * baseline->n_launches, baseline->n_launches, fault, err)) return 1;
    }
    out->n = baseline ? 100 : 1;
    for (int i = 0; i < out->n; i++) {
        double drift = 1 + 0.1 * random_uniform(&r);
        out->candidate_us[i] = 10 * drift * (1 + 0.01 * random_normal(&r));
        out->baseline_us[i] = baseline ? 15 * drift * (1 + 0.01 * random_normal(&r)) : 0;
    }
    return 0;
}

static const DeviceOps fake_ops = {
    .prefix = "fake", .info = fake_info, .load = fake_load, .unload = fake_unload, .kernel = fake_kernel, .alloc = fake_alloc,
    .free = fake_free, .write = fake_write, .read = fake_read, .poison = fake_poison, .protect = fake_protect,
    .check_guards = fake_check_guards, .run = fake_run, .disturb = fake_disturb, .time = fake_time,
};

static TaskSet tasks;
static Cases *cases;

static int set_up(void **state)
{
    (void)state;
    Error err;
    cases = cases_new(1 << 28);
    if (!taskset_load(NULL, "relu", &tasks, &err)) return 0;
    fprintf(stderr, "%s\n", err.text);
    return -1;
}

static int tear_down(void **state)
{
    (void)state;
    cases_free(cases);
    taskset_release(&tasks);
    return 0;
}

static Plan plan;

static void load(Loaded *l, const char *kernel, const char *arguments)
{
    static char source[200];
    Finding f;
    Error err = {""};
    int line;
    CompileResult code = {.ok = 1, .n_lowered = 1};
    code.lowered = memory_array(1, sizeof *code.lowered);
    code.lowered[0] = memory_strdup(kernel);
    code.ptx = memory_printf(".entry %s(\n.param .u64 a,\n.param .u64 b,\n.param .u32 c\n)\n", kernel);
    snprintf(source, sizeof source, "//@ launch %s<<<1, 32>>>%s\n", kernel, arguments);
    plan_release(&plan);
    if (plan_parse(source, strlen(source), &plan, &line, &err)) fail_msg("%s", err.text);
    if (loaded_open(l, &fake_ops, &fake, tasks.tasks[0], &plan, &code, &f, &err)) fail_msg("%s %s", f.message, err.text);
}

static const Workload *sim_workload(void)
{
    for (int i = 0; i < tasks.tasks[0]->n_workloads; i++)
        if (tasks.tasks[0]->workloads[i].role == ROLE_SIM) return &tasks.tasks[0]->workloads[i];
    fail_msg("relu has no sim workload");
    return NULL;
}

static void expect_after(const char *kernel, int n_passed, Outcome want, const char *cheat, const char *says)
{
    Loaded l;
    Finding f = {.outcome = OUTCOME_OK};
    Error err = {""};
    ChecksPassed passed = {0};
    load(&l, kernel, "(x, y, n)");
    int rc = checks_plan(&l, sim_workload(), &f);
    if (!rc) rc = checks_run(&l, cases, 3, &passed, &f, &err);
    if (rc < 0) fail_msg("%s", err.text);
    if (f.outcome != want) fail_msg("%s: got %s: %s", kernel, outcome_name(f.outcome), f.message);
    assert_int_equal(rc, want == OUTCOME_OK ? 0 : 1);
    if (want != OUTCOME_OK) assert_string_equal(f.cheat, cheat);
    if (want != OUTCOME_OK && !strstr(f.message, says)) fail_msg("expected '%s' in: %s", says, f.message);
    if (want == OUTCOME_OK) assert_int_equal(passed.n, n_passed);
    loaded_close(&l);
    assert_int_equal(fake.allocated, 0);
    assert_int_equal(fake.disturbed, 0);
}

/* Passed by the good ones: seven workloads, the second run, the other inputs, the other order. */
static void expect(const char *kernel, Outcome want, const char *cheat, const char *says)
{
    expect_after(kernel, 10, want, cheat, says);
}

static void test_outcomes(void **state)
{
    (void)state;
    expect("relu", OUTCOME_OK, "", "");
    expect("wrong", OUTCOME_WRONG_RESULT, "", "1 of 31 elements of y differ");
    expect("nothing", OUTCOME_WRONG_RESULT, "", "31 of the 31 elements of output y were never written");
    expect("once", OUTCOME_CHEAT, "stale_result", "freshly loaded");
    expect("replay", OUTCOME_CHEAT, "stale_result", "freshly loaded");
    expect("flaky", OUTCOME_NONDETERMINISTIC, "", "differ in their bytes");
    expect("mutate", OUTCOME_CHEAT, "input_mutation", "changed its input x, first at element 30");
    expect("beyond", OUTCOME_OUT_OF_BOUNDS, "", "a guard was written");
    expect("ordered", OUTCOME_RACE, "", "right when blocks and warps run in the order of their indices");
    expect_after("waits", 9, OUTCOME_OK, "", ""); /* cannot be told, and is not held against it */
    expect("slow", OUTCOME_TIMEOUT, "", "kernel slow runs too long (check n=31");
}

static void test_plan_is_checked_first(void **state)
{
    (void)state;
    Loaded l;
    Finding f;
    int before = fake.launches;
    load(&l, "relu", "(x, y)");
    assert_int_equal(checks_plan(&l, sim_workload(), &f), 1);
    assert_int_equal(f.outcome, OUTCOME_PLAN_ERROR);
    assert_int_equal(f.line, 1);
    assert_int_equal(fake.launches, before);
    loaded_close(&l);
}

/* A kernel that the device cannot describe is the candidate's, with the line of its first launch. */
static void test_kernel_refused(void **state)
{
    (void)state;
    static const char source[] = "\n//@ launch unspeakable<<<1, 32>>>(x, y, n)\n";
    Loaded l;
    Finding f;
    Error err = {""};
    int line;
    CompileResult code = {.ok = 1, .n_lowered = 1, .lowered = memory_array(1, sizeof *code.lowered), .ptx = memory_strdup("")};
    code.lowered[0] = memory_strdup("unspeakable");
    plan_release(&plan);
    assert_int_equal(plan_parse(source, sizeof source - 1, &plan, &line, &err), 0);
    assert_int_equal(loaded_open(&l, &fake_ops, &fake, tasks.tasks[0], &plan, &code, &f, &err), 1);
    assert_int_equal(f.outcome, OUTCOME_PLAN_ERROR);
    assert_int_equal(f.line, 2);
    assert_non_null(strstr(f.message, "64 are allowed"));
    loaded_close(&l);
}

/* Pairs: the ratio is found through a drift that both sides share, and each side had both buffers. */
static void test_paired_timing(void **state)
{
    (void)state;
    static DeviceTiming timing;
    Loaded baseline, candidate;
    Finding f;
    Error err = {""};
    ChecksPassed passed = {0};
    Interval ratio;
    load(&baseline, "relu", "(x, y, n)");
    Plan kept = plan;
    baseline.plan = baseline.context.plan = &kept;
    plan = (Plan){0};
    load(&candidate, "relu", "(x, y, n)");
    if (timing_measure(&baseline, &candidate, cases, sim_workload(), 3, 1, &timing, &passed, &f, &err)) fail_msg("%s%s", err.text, f.message);
    statistics_ratio(timing.baseline_us, timing.candidate_us, timing.n, 3, &ratio);
    assert_true(ratio.low > 1.48 && ratio.low < 1.5 && ratio.high > 1.5 && ratio.high < 1.52);
    /* Blocks are numbered as allocated, the baseline's of a slot before the candidate's. */
    assert_true(fake.baseline_output[0] < fake.candidate_output[0]);
    assert_true(fake.baseline_output[1] > fake.candidate_output[1]);
    assert_int_equal(passed.n, 2); /* the outputs after timing, and in another order */
    loaded_close(&candidate);
    loaded_close(&baseline);
    plan_release(&kept);
    assert_int_equal(fake.allocated, 0);
}

/* Right in every check, nothing done when timed. */
static void test_outputs_are_compared_after_timing(void **state)
{
    (void)state;
    static DeviceTiming timing;
    Loaded l;
    Finding f;
    Error err = {""};
    ChecksPassed passed = {0};
    load(&l, "nothing", "(x, y, n)");
    assert_int_equal(timing_measure(NULL, &l, cases, sim_workload(), 3, 1, &timing, &passed, &f, &err), 1);
    assert_int_equal(f.outcome, OUTCOME_WRONG_RESULT);
    loaded_close(&l);
    assert_int_equal(fake.allocated, 0);
}

static void test_cases(void **state)
{
    (void)state;
    Task *t = tasks.tasks[0];
    Error err;
    const Workload *w = &t->workloads[0];
    uint64_t seed = case_seed(1, t, w, 0);
    assert_true(seed != case_seed(2, t, w, 0) && seed != case_seed(1, t, w, 1) && seed != case_seed(1, t, w + 1, 0));
    const Case *a = cases_get(cases, t, w, seed, 8.0, &err);
    assert_ptr_equal(a, cases_get(cases, t, w, seed, 8.0, &err));
    const float *x = a->inputs[0];
    for (size_t i = 0; i < a->output_bytes[0] / 4; i++) assert_true(a->expected[0][i] == (x[i] > 0 ? (double)x[i] : 0));
    /* A bound of nothing keeps the last ones only. */
    Cases *small = cases_new(0);
    for (int i = 0; i < 10; i++) assert_non_null(cases_get(small, t, w, (uint64_t)i, 1.0, &err));
    cases_free(small);
}

static void test_light(void **state)
{
    (void)state;
    double us;
    Error err;
    const Workload *w = sim_workload();
    assert_int_equal(timing_light_us(tasks.tasks[0], w, &fake.info, &us, &err), 0);
    assert_true(us > 0.999 * 8e-6 * (double)w->axis[0] && us < 1.001 * 8e-6 * (double)w->axis[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_plan_is_checked_first),
        cmocka_unit_test(test_kernel_refused),
        cmocka_unit_test(test_paired_timing),
        cmocka_unit_test(test_outputs_are_compared_after_timing),
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_light),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int rc = cmocka_run_group_tests(tests, set_up, tear_down);
    plan_release(&plan);
    return rc;
}
