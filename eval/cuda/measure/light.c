/* Bounds from attributes, the artifact of the measured values, and the run of quern-light. */
#include "eval/cuda/measure/light.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "artifacts/artifact.h"
#include "base/cache.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"

/* Dense flops of one SM in one clock at full rate, from NVIDIA's architecture papers; a
 * multiply-add is two. */
typedef struct {
    int arch; /* 10 * major + minor */
    double fp32, tensor16;
} Rates;

static const Rates rates[] = {{70, 128, 1024},  {72, 128, 1024},  {75, 128, 1024},
                              {80, 128, 2048},  {86, 256, 1024},  {87, 256, 2048},
                              {89, 256, 1024},  {90, 256, 4096},  {100, 256, 8192},
                              {103, 256, 8192}, {120, 256, 2048}, {121, 256, 2048}};
static const Rates unknown = {0, 1024, 65536};

enum {
    L2_PORT_BYTES = 64, /* per clock and SM */
    MEASURE_S = 40      /* less than the time limit for opening an evaluator */
};

static const Rates *rates_of(int arch)
{
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (rates[i].arch == arch) return &rates[i];
    return &unknown;
}

int light_bounds(const CudaDriver *cu, const Gpu *gpu, Light *out, Error *err)
{
    enum { SMS, CLOCK, MEMORY_CLOCK, BUS, L2, MAJOR, MINOR, N };
    static const int attributes[N] = {
        CU_ATTRIBUTE_SMS,      CU_ATTRIBUTE_CLOCK_KHZ, CU_ATTRIBUTE_MEMORY_CLOCK_KHZ,
        CU_ATTRIBUTE_BUS_BITS, CU_ATTRIBUTE_L2_BYTES,  CU_ATTRIBUTE_MAJOR,
        CU_ATTRIBUTE_MINOR};
    int v[N];
    for (int i = 0; i < N; i++)
        if (cuda_check(cu->device_attribute(&v[i], attributes[i], gpu->device),
                       "a GPU does not say an attribute", err))
            return -1;
    if (v[SMS] <= 0 || v[CLOCK] <= 0)
        return error_set(err, ERROR_DEVICE, "%s says it has %d SMs at %d kHz", gpu->name, v[SMS],
                         v[CLOCK]);
    const Rates *r = rates_of(10 * v[MAJOR] + v[MINOR]);
    double clocks = 1e3 * v[SMS] * (double)v[CLOCK]; /* per second, of all SMs together */
    /* Two transfers per clock. Some drivers hide the memory clock or the bus width. */
    double dram = 2e3 * v[MEMORY_CLOCK] * ((double)v[BUS] / 8);
    if (!(dram > 0)) dram = L2_PORT_BYTES * clocks;
    *out = (Light){.dram_bytes_per_s = dram,
                   .fp32_flops = r->fp32 * clocks,
                   .tensor16_flops = r->tensor16 * clocks,
                   .tf32_flops = r->tensor16 / 2 * clocks,
                   .l2_bytes = v[L2]};
    snprintf(out->uuid, sizeof out->uuid, "%s", gpu->uuid);
    snprintf(out->device, sizeof out->device, "%s", gpu->name);
    gpus_driver(cu, out->driver, sizeof out->driver);
    return 0;
}

double light_flops(const Light *l, Dtype dtype)
{
    if (dtype == DTYPE_F16 || dtype == DTYPE_BF16) return fmax(l->tensor16_flops, l->fp32_flops);
    return fmax(l->fp32_flops, l->tf32_flops / 3);
}

/* ---- the artifact ---- */

typedef struct {
    const char *name;
    size_t offset;
} Measure;

#define MEASURE(name)                \
    {                                \
#name, offsetof(Light, name) \
    }
static const Measure measures[] = {
    MEASURE(dram_bytes_per_s), MEASURE(fp32_flops), MEASURE(tensor16_flops),  MEASURE(tf32_flops),
    MEASURE(launch_us),        MEASURE(l2_bytes),   MEASURE(stall_period_us),
};
#undef MEASURE
enum { N_MEASURES = sizeof measures / sizeof *measures };

static double *value_of(Light *l, int i)
{
    return (double *)(void *)((char *)l + measures[i].offset);
}

int light_path(const char *uuid, char *out, size_t size, Error *err)
{
    char folder[4096];
    if (!*uuid || strchr(uuid, '/'))
        return error_set(err, ERROR_DEVICE,
                         "a GPU's speed of light is kept by its uuid, found \"%s\"", uuid);
    if (cache_folder(folder, sizeof folder))
        return error_set(err, ERROR_LIMIT,
                         "QUERN_CACHE and HOME name no folder for a GPU's speed of light: unset, "
                         "or longer than %zu bytes",
                         sizeof folder - 1);
    int n = snprintf(out, size, "%s/light-%s.qa", folder, uuid);
    return n > 0 && (size_t)n < size
               ? 0
               : error_set(err, ERROR_LIMIT,
                           "the folder of QUERN_CACHE or HOME has a name of %d bytes", n);
}

int light_save(const Light *l, const char *path, Error *err)
{
    char dir[4096];
    ArtifactSpec spec;
    ArtifactWriter *w;
    Light copy = *l;
    snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash && slash != dir) {
        *slash = 0;
        if (file_mkdirs(dir, err)) return -1;
    }
    artifact_spec_init(&spec, "metrics", "quern-light");
    artifact_spec_config(&spec, "uuid", "%s", l->uuid);
    artifact_spec_config(&spec, "device", "%s", l->device);
    artifact_spec_config(&spec, "driver", "%s", l->driver);
    int rc = artifact_create(path, &spec, &w, err);
    for (int i = 0; i < N_MEASURES && !rc; i++) {
        Record *r = record_new();
        record_int(r, "step", 0);
        record_text(r, "name", measures[i].name);
        record_float(r, "value", *value_of(&copy, i));
        rc = artifact_write(w, r, err);
        record_free(r);
        if (rc) artifact_abandon(w);
    }
    if (!rc) rc = artifact_finish(w, err);
    artifact_spec_release(&spec);
    return rc;
}

/* An unknown name comes from a later version and is skipped. A name that is missing or whose value
 * is no number is an error. */
static int read_measures(ArtifactReader *reader, Light *out, Error *err)
{
    View v;
    unsigned seen = 0;
    int rc;
    while ((rc = artifact_next(reader, &v, err)) == 1) {
        char name[64];
        double value;
        if (view_copy(&v, "name", name, sizeof name, err) || view_float(&v, "value", &value, err))
            return -1;
        for (int i = 0; i < N_MEASURES; i++) {
            if (strcmp(name, measures[i].name)) continue;
            if (!(value >= 0) || !isfinite(value))
                return error_set(err, ERROR_CORRUPT, "%s: %s is %g", v.where, name, value);
            *value_of(out, i) = value;
            seen |= 1u << i;
        }
    }
    if (rc) return -1;
    for (int i = 0; i < N_MEASURES; i++)
        if (!(seen >> i & 1))
            return error_set(err, ERROR_CORRUPT, "%s is not there", measures[i].name);
    return 0;
}

int light_read(const char *path, Light *out, Error *err)
{
    ArtifactReader *reader;
    View config;
    *out = (Light){0};
    if (artifact_open(path, "metrics", &reader, err)) return -1;
    int rc = view_map(artifact_header(reader), "config", &config, err) ||
             view_copy(&config, "uuid", out->uuid, sizeof out->uuid, err) ||
             view_copy(&config, "device", out->device, sizeof out->device, err) ||
             view_copy(&config, "driver", out->driver, sizeof out->driver, err);
    if (!rc) rc = read_measures(reader, out, err);
    artifact_close(reader);
    return rc ? error_prefix(err, "%s is no speed of light", path) : 0;
}

int light_kept(const char *path, const Gpu *gpu, const char *driver, Light *out)
{
    Error err;
    *out = (Light){0};
    if (!file_exists(path)) return 0;
    if (light_read(path, out, &err))
        log_warn("%s", err.text);
    else if (strcmp(out->uuid, gpu->uuid))
        log_warn("%s is of another GPU, %s", path, out->uuid);
    else if (!strcmp(out->driver, driver)) {
        file_touch(path, NULL); /* the cache removes the files that were unused for longest */
        return 1;
    }
    *out = (Light){0};
    return 0;
}

static void end_with_parent(void *nothing)
{
    (void)nothing;
    process_die_with_parent();
}

/* In another process, so that its context does not stay here. */
static int run_quern_light(const Gpu *gpu, Error *err)
{
    char program[4096], device[32];
    ProcessResult r;
    Buffer said;
    if (process_find_program("quern-light", program, sizeof program, err)) return -1;
    snprintf(device, sizeof device, "cuda:%d", gpu->ordinal);
    const char *const argv[] = {program, "--device", device, NULL};
    buffer_init(&said, 65536);
    int rc =
        process_run(argv, &(ProcessOptions){.timeout_s = MEASURE_S, .before_exec = end_with_parent},
                    NULL, &said, &r, err);
    if (!rc && r.timed_out)
        rc = error_set(err, ERROR_CHILD, "not done after %d s", MEASURE_S);
    else if (!rc && r.exit_code)
        rc = error_set(err, ERROR_CHILD, "%.*s", (int)strcspn((const char *)said.data, "\n"),
                       (const char *)said.data);
    buffer_release(&said);
    return rc;
}

int light_find(const Gpu *gpu, const char *driver, Light *out)
{
    char path[4096];
    Error err = {.text = "it kept nothing"};
    *out = (Light){0};
    if (light_path(gpu->uuid, path, sizeof path, &err)) return 0;
    if (light_kept(path, gpu, driver, out)) return 1;
    log_info("%s, %s, has not been measured with driver %s yet: quern-light does, once, for some "
             "seconds",
             gpu->name, gpu->uuid, driver);
    if (!run_quern_light(gpu, &err) && light_kept(path, gpu, driver, out)) return 1;
    log_warn("the GPU's speed of light is not known: %s", err.text);
    return 0;
}
