/* quern-simbench: the simulator's speed in thread-instructions a second, on one core, with all
 * checks and counters. The kernels are a tiled matmul (16 x 16 tiles, one output a thread) and a
 * register-blocked one (64 x 64 tiles, 16 outputs a thread), as PTX files from NVRTC. The result is
 * checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "eval/sim/sim.h"
#include "tests/fixture_path.h"

typedef struct {
    const char *name, *file, *kernel;
    int tile;
} Case;

static const DeviceOps *const ops = &sim_device_ops;

static int wrong_outputs(const float *a, const float *b, const float *c, int n)
{
    int wrong = 0;
    for (int i = 0; i < n; i += 7)
        for (int j = 0; j < n; j += 5) {
            float sum = 0; /* exact in any order: the values are small integers */
            for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
            wrong += sum != c[i * n + j];
        }
    return wrong;
}

static int load(Device *d, const Case *c, DeviceModule **m, Error *err)
{
    Buffer text;
    char path[4096];
    Fault fault;
    buffer_init(&text, 1 << 20);
    snprintf(path, sizeof path, "%s/%s", fixture_path("tests/fixtures/ptx"), c->file);
    int r = file_read(path, 1 << 20, &text, err);
    if (!r) {
        DeviceCode code = {.ptx = text.data, .ptx_len = text.len};
        r = ops->load(d, &code, 0, m, &fault);
        if (r) r = fault_as_error(&fault, r, err);
    }
    buffer_release(&text);
    return r;
}

/* Print the best of `runs`. The first run also touches all memory. */
static int measure(Device *d, const Case *c, int n, int runs, Error *err)
{
    size_t count = (size_t)n * (size_t)n, bytes = count * sizeof(float);
    float *host[3];
    DevicePtr p[3];
    static const char *const labels[] = {"input a", "input b", "output c"};
    DeviceModule *m;
    Fault fault;
    if (load(d, c, &m, err)) return -1;
    DeviceLaunch l = {.module = m,
                      .kernel = c->kernel,
                      .grid = {(uint32_t)(n / c->tile), (uint32_t)(n / c->tile), 1},
                      .block = {16, 16, 1}};
    for (int i = 0; i < 3; i++) {
        host[i] = memory_array(count, sizeof(float));
        for (size_t k = 0; k < count; k++)
            host[i][k] = (float)((int)(k * (size_t)(7 - 2 * i) % 13) - 6);
        if (ops->alloc(d, bytes, labels[i], &p[i], err) ||
            (i < 2 && ops->write(d, p[i], host[i], bytes, err)) ||
            (i < 2 && ops->protect(d, p[i], 1, err)))
            return -1;
        memcpy(l.params + 8 * i, &p[i], 8);
    }
    memcpy(l.params + 24, &n, 4);
    double best = 1e30;
    for (int i = 0; i < runs; i++) {
        double start = clock_seconds();
        int r = ops->run(d, &l, 1, &fault);
        if (r) return fault_as_error(&fault, r, err);
        double s = clock_seconds() - start;
        best = s < best ? s : best;
    }
    if (ops->read(d, p[2], host[2], bytes, err)) return -1;
    double insts = (double)sim_last_counts(d)->thread_insts;
    int wrong = wrong_outputs(host[0], host[1], host[2], n);
    printf("%-34s %7.1f M thread-instructions in %6.3f s: %6.0f M/s%s\n", c->name, insts / 1e6,
           best, insts / best / 1e6, wrong ? "  WRONG RESULT" : "");
    for (int i = 0; i < 3; i++) {
        ops->free(d, p[i]);
        free(host[i]);
    }
    ops->unload(d, m);
    return wrong ? error_set(err, ERROR_INVALID, "%s: %d outputs are wrong", c->name, wrong) : 0;
}

int main(int argc, char **argv)
{
    static const Case cases[] = {
        {"matmul, 16 x 16 tiles", "bench_tiled.ptx", "tiled", 16},
        {"matmul, 64 x 64, 4 x 4 a thread", "bench_blocked.ptx", "blocked", 64}};
    int64_t n = 512, runs = 3;
    const Flag flags[] = {
        {"size", FLAG_INT, &n, "rows and columns, a multiple of 64", 64, 2048, NULL, 0},
        {"runs", FLAG_INT, &runs, "of which the best counts", 1, 100, NULL, 0},
        {0}};
    const FlagSpec spec = {"quern-simbench", "", "Measure the simulator's speed.", flags, 0, 0, 0};
    const char *words[1];
    Device *d;
    Error err;
    flags_parse(&spec, argc, argv, words);
    log_open("quern-simbench");
    if (n % 64) flags_usage_error(&spec, "--size %d is not a multiple of 64", (int)n);
    if (ops->open("h100", &d, &err)) log_die(&err);
    sim_set_limit(d, (int64_t)1 << 50);
    sim_count_all(d); /* as a prediction does */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (measure(d, &cases[i], (int)n, (int)runs, &err)) log_die(&err);
    ops->close(d);
    return log_close(0);
}
