/* A device for tests: a few blocks of host memory, kernels that are C code chosen by their names,
 * and a clock whose times a test sets. */
#ifndef TESTS_FAKE_DEVICE_H
#define TESTS_FAKE_DEVICE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "eval/compile/compile_client.h"
#include "eval/device/device.h"

enum { MAX_BLOCKS = 64, GUARD = 64 };

typedef struct {
    unsigned char *base;
    size_t bytes;
} Block;

struct Device {
    DeviceInfo info;
    Block blocks[MAX_BLOCKS];
    int allocated, loads, launches, disturbed;
    /* By side, 0 candidate and 1 baseline: */
    uint64_t outputs[2]; /* bits of the blocks that timed runs wrote to */
    double phases[2];    /* the sum of the phases, each times the number of the output's block */
    Random drift;
    float *x[2], *y[2];      /* of the last launches on two sets of buffers */
    int stashes;             /* runs of the kernel "stash" */
    float remembered[64][2]; /* the first elements of inputs that "remembers" has seen */
    int n_remembered;
    double work; /* of the last launch; an ordinary one has 1 */
    int measured, locked, spied, calls, alone /* with the lock */;
    double idle_s; /* before the lock is taken */
    /* The last reservation, how many of its buffers were allocated, and allocations unlike it. */
    size_t reserved[MAX_BLOCKS];
    int n_reserved, n_placed, strays;
    struct {
        int trusted, block;
    } began[1 << 14]; /* by call of the clock: the side, and the output's block */
    /* Time that only the host's clock shows, of the candidate's runs and of all runs. */
    double hidden_us, waits_us;
    double stall_us; /* in which the candidate's next run waits for others */
    double baseline_us, candidate_us, noise; /* of a run, in us and as a share of it */
};

struct DeviceModule {
    int trusted;
    int runs; /* a device variable, which lasts as long as the module */
    float bank[1 << 15];
};

static Device fake = {.info = {.device_class = "fake",
                               .arch = "sm_90",
                               .sm_count = 1,
                               .max_threads_per_block = 1024,
                               .max_shared_per_block = 49152,
                               .max_local_per_thread = 32768,
                               .memory_bytes = 1 << 30,
                               .dram_bytes_per_s = 1e12,
                               .flops_per_s = 1e12},
                      .idle_s = INFINITY,
                      .baseline_us = 15,
                      .candidate_us = 10,
                      .noise = 0.01};

static const DeviceInfo *fake_info(Device *d)
{
    return &d->info;
}

static int fake_load(Device *d, const DeviceCode *code, int trusted, DeviceModule **out,
                     Fault *fault)
{
    (void)code, (void)fault;
    d->loads++;
    *out = memory_alloc(sizeof **out);
    (*out)->trusted = trusted;
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
    if (!strcmp(lowered, "unspeakable"))
        return error_set(err, ERROR_INVALID,
                         "kernel unspeakable has 65 parameters; 64 are allowed");
    *out = (KernelInfo){.n_params = 3,
                        .params = {{0, 8, 1}, {8, 8, 1}, {16, 4, 0}},
                        .param_bytes = 20,
                        .registers = 16,
                        .local_bytes = 0,
                        .max_threads = 1024};
    return 0;
}

static Block *block_of(Device *d, DevicePtr p)
{
    for (int i = 0; i < MAX_BLOCKS; i++)
        if (d->blocks[i].base && (DevicePtr)(uintptr_t)(d->blocks[i].base + GUARD) == p)
            return &d->blocks[i];
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

static int fake_reserve(Device *d, const size_t *bytes, int n, Error *err)
{
    (void)err;
    d->strays += d->allocated || n > MAX_BLOCKS;
    d->n_reserved = n;
    d->n_placed = 0;
    memcpy(d->reserved, bytes, (size_t)n * sizeof *bytes);
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
        d->strays += d->n_placed < d->n_reserved && d->reserved[d->n_placed] != bytes;
        d->n_placed++;
        return fake_poison(d, *out, err);
    }
    return error_set(err, ERROR_INVALID, "no block left");
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

/* p may be inside a buffer. */
static int fake_read(Device *d, DevicePtr p, void *dst, size_t bytes, Error *err)
{
    (void)err;
    for (int i = 0; i < MAX_BLOCKS; i++) {
        const Block *b = &d->blocks[i];
        DevicePtr begin = (DevicePtr)(uintptr_t)(b->base + GUARD);
        if (!b->base || p < begin || p + bytes > begin + b->bytes) continue;
        memcpy(dst, b->base + GUARD + (p - begin), bytes);
        return 0;
    }
    fail_msg("no block holds %zu bytes at %llx", bytes, (unsigned long long)p);
    return -1;
}

static int fake_protect(Device *d, DevicePtr p, int read_only, Error *err)
{
    (void)d, (void)p, (void)read_only, (void)err; /* this device cannot protect memory */
    return 0;
}

static int fake_check_guards(Device *d, Fault *fault)
{
    for (int i = 0; i < MAX_BLOCKS; i++) {
        const Block *b = &d->blocks[i];
        for (int k = 0; b->base && k < GUARD; k++) {
            if (b->base[k] == 0xab && b->base[GUARD + b->bytes + (size_t)k] == 0xab) continue;
            *fault = (Fault){.outcome = OUTCOME_OUT_OF_BOUNDS, .message = "a guard was written"};
            return 1;
        }
    }
    return 0;
}

static int is_relu(const float *x, const float *y, int n)
{
    for (int i = 0; i < n; i++)
        if (y[i] != (x[i] > 0 ? x[i] : 0)) return 0;
    return 1;
}

/* The kernel "remembers" does half of the work for inputs that it has seen. */
static double remembers(Device *d, const float *x)
{
    for (int i = 0; i < d->n_remembered; i++)
        if (!memcmp(d->remembered[i], x, sizeof d->remembered[0])) return 0.5;
    memcpy(d->remembered[d->n_remembered++ % 64], x, sizeof d->remembered[0]);
    return 1;
}

/* The kernel "both" does the work for both sets of buffers in one run. Returns 1 when an earlier
 * run has done the work of this one. */
static int does_both(Device *d, float *x, float *y, int n)
{
    if (is_relu(x, y, n)) {
        d->work = 0.01;
        return 1;
    }
    int own = d->y[0] && d->y[0] != y, other = !own;
    d->x[own] = x;
    d->y[own] = y;
    if (!d->y[other]) return 0;
    for (int i = 0; i < n; i++) d->y[other][i] = d->x[other][i] > 0 ? d->x[other][i] : 0;
    d->work = 2;
    return 0;
}

/* The kernel "copies" does half of the work where the four quarters of its input are equal. */
static double copies(const float *x, int n)
{
    return n >= 4 && !memcmp(x, x + n / 4, (size_t)(n - n / 4) * sizeof *x) ? 0.5 : 1;
}

/* The kernels "length..." give y[0], the root of the sum of the squares: of all, of an estimate by a half,
 * and of such an estimate unless an outlier is seen, in the half or in any place. */
static void length(Device *d, const char *kernel, const float *x, float *y, int n)
{
    int half = !!strstr(kernel, "half"), seen = 0;
    double sum = 0, all = 0;
    for (int i = 0; i < n; i++) {
        all += (double)x[i] * (double)x[i];
        if (!half || i < n / 2) sum += (double)x[i] * (double)x[i];
        if (strstr(kernel, "unless") && (i < n / 2 || strstr(kernel, "any")))
            seen |= fabsf(x[i]) > 1000;
    }
    d->work = seen ? 1.5 : half ? 0.5 : 1;
    y[0] = (float)sqrt(seen ? all : half ? 2 * sum : sum);
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
    d->work = 1;
    if (!strncmp(k, "length", 6)) {
        length(d, k, x, y, n);
        return;
    }
    if (!strcmp(k, "nothing") || (!strcmp(k, "once") && m->runs++)) return;
    if (!strcmp(k, "remembers")) d->work = remembers(d, x);
    if (!strcmp(k, "copies")) d->work = copies(x, n);
    if (!strcmp(k, "both") && does_both(d, x, y, n)) return;
    for (int i = 0; i < n; i++) {
        float v = x[i] > 0 ? x[i] : 0;
        if (!strcmp(k, "replay") && n <= (1 << 15))
            v = m->runs == n ? m->bank[i] : (m->bank[i] = v);
        y[i] = v;
    }
    if (!strcmp(k, "replay")) m->runs = n;
    for (int i = 0; !strcmp(k, "flaky") && i < n; i++) y[i] *= 1 + 1.2e-7f * (float)(m->runs % 2);
    if (!strcmp(k, "flaky")) m->runs++;
    if (!strcmp(k, "wrong") || (!strcmp(k, "ordered") && d->disturbed)) y[n / 3] += 1;
    if (!strcmp(k, "mutate")) x[n - 1] = 7;
    for (int i = 0; !strcmp(k, "clamps") && i < n; i++) y[i] = fminf(y[i], 500);
    if (!strcmp(k, "beyond")) y[n] = 1;
    /* Every other run of "stash" restores the guard zone that the one before has written. */
    if (!strcmp(k, "stash")) memset(y + n, d->stashes++ % 2 ? 0xab : 1, 4);
}

static int fake_run(Device *d, const DeviceLaunch *launches, int n, Fault *fault)
{
    for (int i = 0; i < n; i++) {
        if (!strcmp(launches[i].kernel, "slow") ||
            (!strcmp(launches[i].kernel, "waits") && d->disturbed)) {
            *fault = (Fault){
                .outcome = OUTCOME_TIMEOUT, .line = 4, .message = "kernel slow runs too long"};
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

/* 1: a buffer holds the result of this launch before it runs. */
static int sees_result(Device *d, const DeviceLaunch *l)
{
    float *x;
    memcpy(&x, l->params, 8);
    for (int i = 0; i < MAX_BLOCKS; i++) {
        const Block *b = &d->blocks[i];
        const float *v = (const float *)(b->base + GUARD);
        if (!b->base) continue;
        int k = 0;
        while (k < 100 && v[k] == (x[k] > 0 ? x[k] : 0)) k++;
        if (k == 100) return 1;
    }
    return 0;
}

/* A candidate takes candidate_us, a baseline baseline_us, both with the same drift and with noise. */
static int fake_clock(Device *d, const DeviceLaunch *launches, int n, ClockMode mode, double phase,
                      DeviceClock *out, Fault *fault)
{
    DevicePtr y;
    int trusted = launches[0].module->trusted == HOME_TRUSTED;
    assert_int_equal(mode, CLOCK_COLD);
    memcpy(&y, launches[0].params + 8, 8);
    int block = (int)(block_of(d, y) - d->blocks);
    d->outputs[trusted] |= 1ull << block;
    assert_true(phase >= 0 && phase < 1 && d->calls < 1 << 14);
    d->phases[trusted] += phase * (1 + block);
    d->began[d->calls].trusted = trusted;
    d->began[d->calls++].block = block;
    d->spied |= sees_result(d, &launches[0]);
    if (fake_run(d, launches, n, fault)) return 1;
    double drift = 1 + 0.1 * (d->measured++ % 1000) / 1000;
    out->us = (trusted ? d->baseline_us : d->candidate_us * d->work) * drift *
              (1 + d->noise * random_normal(&d->drift));
    if (!d->locked) out->us *= trusted ? 1 : 3; /* others run beside it */
    if (!trusted) out->us += d->stall_us, d->stall_us = 0;
    d->alone += d->locked;
    out->flush_us = 30;
    out->host_us = out->us + out->flush_us + 20 + d->waits_us + (trusted ? 0 : d->hidden_us);
    return 0;
}

static int fake_lock(Device *d, double *idle_s, Error *err)
{
    (void)err;
    assert_int_equal(d->locked, !idle_s);
    d->locked = idle_s != NULL;
    if (idle_s) *idle_s = d->idle_s;
    return 0;
}

static int fake_predict(Device *d, const DeviceLaunch *launches, int n, DeviceTiming *out,
                        Fault *fault)
{
    out->n = 1;
    out->candidate_us[0] = 10;
    return fake_run(d, launches, n, fault);
}

/* The code of a kernel of two pointers and a number, with a variable. */
static inline CompileResult fake_code(const char *kernel)
{
    CompileResult code = {.ok = 1, .n_lowered = 1};
    code.lowered = memory_array(1, sizeof *code.lowered);
    code.lowered[0] = memory_strdup(kernel);
    code.ptx = memory_printf(
        ".global .b8 bank[4];\n.entry %s(\n.param .u64 a,\n.param .u64 b,\n.param .u32 c\n)\n",
        kernel);
    return code;
}

static void fake_own(Device *d, DevicePtr p)
{
    (void)d, (void)p;
}

static void fake_announce(Device *d, double work)
{
    (void)d, (void)work;
}

static int fake_follow(Device *d, int on)
{
    (void)d, (void)on;
    return 0;
}

static int fake_telemetry(Device *d, DeviceTelemetry *out, Error *err)
{
    (void)d, (void)out, (void)err;
    return 0;
}

static int fake_canary(Device *d, Error *err)
{
    (void)d, (void)err;
    return 0;
}

static const DevicePrediction fake_prediction = {.own = fake_own,
                                                 .announce = fake_announce,
                                                 .disturb = fake_disturb,
                                                 .follow = fake_follow,
                                                 .predict = fake_predict};

static const DeviceClockOps fake_clock_ops = {.reserve = fake_reserve,
                                              .time = fake_clock,
                                              .telemetry = fake_telemetry,
                                              .lock = fake_lock,
                                              .canary = fake_canary};

static const DeviceOps fake_ops = {
    .prefix = "fake",
    .info = fake_info,
    .load = fake_load,
    .unload = fake_unload,
    .kernel = fake_kernel,
    .alloc = fake_alloc,
    .free = fake_free,
    .write = fake_write,
    .read = fake_read,
    .poison = fake_poison,
    .protect = fake_protect,
    .check_guards = fake_check_guards,
    .run = fake_run,
    .prediction = &fake_prediction,
    .clock = &fake_clock_ops,
};

#endif
