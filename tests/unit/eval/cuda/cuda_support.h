/* Support for tests of the device "cuda:N" over tests/fixtures/cuda/driver.c, a stand-in for
 * libcuda. */
#ifndef TESTS_CUDA_SUPPORT_H
#define TESTS_CUDA_SUPPORT_H

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "eval/cuda/cuda_device.h"
#include "eval/cuda/measure/light.h"
#include "eval/cuda/remote.h"
#include "eval/device/tensor_map.h"
#include "tests/fixture_path.h"

enum { N = 1000 };

static const DeviceOps *const ops = &cuda_device_ops;
static Device *d;
static Error err;
static Buffer image;

static void ok(int rc)
{
    if (rc) fail_msg("%s", err.text);
}

static void start(void)
{
    ok(ops->open("0", &d, &err));
}

static DeviceModule *load(int trusted)
{
    DeviceCode code = {.cubin = image.data, .cubin_len = image.len};
    DeviceModule *m = NULL;
    Fault fault;
    int rc = ops->load(d, &code, trusted, &m, &fault);
    if (rc) fail_msg("%s", rc > 0 ? fault.message : fault.error.text);
    return m;
}

static int clock_one(const DeviceLaunch *launches, int n, ClockMode mode, DeviceClock *out,
                     Fault *fault)
{
    return ops->clock->time(d, launches, n, mode, -1, out, fault);
}

/* The number of open descriptors; a device that was closed leaves none, and no child. */
static inline int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

/* Kills a runner and waits for its end, which the device has yet to see. */
static inline void end_runner(pid_t pid)
{
    siginfo_t ended;
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
}

static DeviceLaunch launch(DeviceModule *m, const char *kernel, DevicePtr p, int count, int first)
{
    DeviceLaunch l = {.module = m, .kernel = kernel, .grid = {1, 1, 1}, .block = {32, 1, 1}};
    memcpy(l.params, &p, 8);
    memcpy(l.params + 8, &count, 4);
    memcpy(l.params + 12, &first, 4);
    return l;
}

static void expect_floats(DevicePtr p, int n, int written)
{
    static uint32_t got[N];
    ok(ops->read(d, p, got, (size_t)n * 4, &err));
    for (int i = 0; i < n; i++) assert_int_equal(got[i], i < written ? 0x3f800000 : 0xffffffff);
}

/* Write the GPU's speed of light as quern-light does. */
static int keep_light(char path[4096])
{
    Gpu gpu;
    Light light;
    const CudaDriver *cu = cuda_driver(&err);
    if (!cu || gpus_get(cu, 0, &gpu, &err) || light_bounds(cu, &gpu, &light, &err) ||
        light_path(gpu.uuid, path, 4096, &err))
        return -1;
    light.stall_period_us = 100.148;
    return light_save(&light, path, &err);
}

/* Compile the stand-in, and start this program again with a path on which the loader finds it: the
 * loader reads the environment only at a program's start. */
static int with_driver(char **argv)
{
    char here[3000], *command, *old = getenv("LD_LIBRARY_PATH");
    const char *cc = getenv("QUERN_CC");
    if (getenv("TEST_DRIVER")) return 0;
    if (!getcwd(here, sizeof here)) return -1;
    command = memory_printf("%s -std=c11 -D_GNU_SOURCE -w -O1 -fPIC -shared '-I%s' -o libcuda.so.1 "
                            "'%s/tests/fixtures/cuda/driver.c'",
                            cc ? cc : "gcc", fixture_path("."), fixture_path("."));
    if (system(command)) return -1;
    setenv("LD_LIBRARY_PATH", memory_printf("%s%s%s", here, old ? ":" : "", old ? old : ""), 1);
    setenv("QUERN_LOCK_DIR", here, 1);
    setenv("QUERN_CACHE", memory_printf("%s/cache", here), 1);
    setenv("TEST_DRIVER", "1", 1);
    execv("/proc/self/exe", argv);
    return -1;
}

/* To be called first by main. Returns 0 when the tests can run. */
static int driver_ready(char **argv)
{
    char path[4096];
    buffer_init(&image, 1 << 20);
    if (file_read(fixture_path("tests/fixtures/cubin/sm_90.cubin"), 1 << 20, &image, &err))
        return -1;
    if (!with_driver(argv) && !keep_light(path)) return 0;
    fprintf(stderr, "the test's driver cannot be made, or its light not kept: %s\n", err.text);
    return -1;
}

#endif
