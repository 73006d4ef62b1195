/* quern-light: measure a GPU's speed of light once and keep it. */
#include <stdio.h>
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "eval/cuda/measure/light_measure.h"
#include "gpu/lock.h"

enum { LOCK_WAIT_S = 300 };

static void print_row(const char *what, double measured, double bound, double unit,
                      const char *name)
{
    if (measured > 0)
        printf("  %-34s %9.2f", what, measured / unit);
    else
        printf("  %-34s %9s", what, "-");
    if (bound > 0)
        printf(" of %9.2f %-8s %5.1f%%\n", bound / unit, name, 100 * measured / bound);
    else
        printf("    %9s %-8s\n", "", name);
}

static void print(const Light *l, const Light *bounds, const char *path)
{
    printf("%s, %s, driver %s; measured, of what clocks and widths allow\n", l->device, l->uuid,
           l->driver);
    print_row("DRAM", l->dram_bytes_per_s, bounds->dram_bytes_per_s, 1e9, "GB/s");
    print_row("fp32 multiply-add", l->fp32_flops, bounds->fp32_flops, 1e12, "Tflop/s");
    print_row("fp16 or bf16 to fp32, tensor cores", l->tensor16_flops, bounds->tensor16_flops, 1e12,
              "Tflop/s");
    print_row("tf32, tensor cores", l->tf32_flops, bounds->tf32_flops, 1e12, "Tflop/s");
    print_row("empty launch", l->launch_us, 0, 1, "us");
    if (l->stall_period_us > 0)
        print_row("memory answers late every", l->stall_period_us, 0, 1, "us");
    printf("  %s\n", path);
}

typedef struct {
    const CudaDriver *cu;
    Gpu gpu;
    Light bounds;
    char path[4096];
    int again;
} Job;

static int kept(const Job *j, Light *out)
{
    return !j->again && light_kept(j->path, &j->gpu, j->bounds.driver, out);
}

/* Measure in a new context, with the GPU's lock held exclusively. Another process may have measured
 * while this one waited for the lock. */
static int measure(const Job *j, Compiler *compiler, Light *out, Error *err)
{
    GpuLock *lock = NULL;
    CuContext context = NULL;
    int rc = lock_open(j->gpu.uuid, &lock, err) || lock_exclusive(lock, LOCK_WAIT_S, err);
    if (!rc && !kept(j, out))
        rc = cuda_check(j->cu->context_create(&context, 0, j->gpu.device),
                        "the GPU gives no context", err) ||
             light_measure(j->cu, &j->gpu, compiler, out, err) || light_save(out, j->path, err);
    if (context) j->cu->context_destroy(context);
    lock_close(lock);
    return rc ? -1 : 0;
}

static int measure_device(const CudaDriver *cu, int ordinal, Compiler *compiler, const char *output,
                          int again, Error *err)
{
    Job j = {.cu = cu, .again = again};
    Light light;
    if (gpus_get(cu, ordinal, &j.gpu, err) || light_bounds(cu, &j.gpu, &j.bounds, err)) return -1;
    if (output)
        snprintf(j.path, sizeof j.path, "%s", output);
    else if (light_path(j.gpu.uuid, j.path, sizeof j.path, err))
        return -1;
    if (kept(&j, &light))
        log_info("cuda:%d was measured with this driver already; --again measures it again",
                 ordinal);
    else if (measure(&j, compiler, &light, err))
        return -1;
    print(&light, &j.bounds, j.path);
    return 0;
}

int main(int argc, char **argv)
{
    const char *device = "all", *output = NULL, *words[1];
    int again = 0, ordinal = -1, count = 0, used = 0;
    const Flag flags[] = {{"device", FLAG_TEXT, &device, "which GPU: cuda:0, or all"},
                          {"output", FLAG_TEXT, &output,
                           "the artifact, if not light-UUID.qa in $QUERN_CACHE, else in "
                           "~/.cache/quern, where evaluators look for it"},
                          {"again", FLAG_BOOL, &again, "also when this driver was measured before"},
                          {0}};
    const FlagSpec spec = {.program = "quern-light",
                           .synopsis = "[--device cuda:N]",
                           .about = "Measures what a GPU can do at most: DRAM's bandwidth, "
                                    "arithmetic with and without tensor cores, the "
                                    "least time of a launch, and how often the memory answers "
                                    "late. Evaluators tell each kernel's time as a "
                                    "fraction of it and begin their runs in step with the memory; "
                                    "where nothing is kept of a GPU, they run "
                                    "this. Takes some seconds a GPU, alone on it.",
                           .flags = flags};
    flags_parse(&spec, argc, argv, words);
    int all = !strcmp(device, "all");
    if (!all && (sscanf(device, "cuda:%d%n", &ordinal, &used) != 1 || device[used] || ordinal < 0))
        flags_usage_error(&spec, "--device %s: expected cuda:N or all", device);
    if (all && output) flags_usage_error(&spec, "--output is for one GPU: name it with --device");
    log_open("quern-light");
    Error err;
    Compiler *compiler;
    const CudaDriver *cu = cuda_driver(&err);
    if (!cu ||
        cuda_check(cu->device_count(&count), "the CUDA driver does not count its devices", &err) ||
        compiler_open(&(CompilerOptions){0}, &compiler, &err))
        log_die(&err);
    for (int i = all ? 0 : ordinal; i < (all ? count : ordinal + 1); i++)
        if (measure_device(cu, i, compiler, output, again, &err)) log_die(&err);
    compiler_close(compiler);
    return log_close(0);
}
