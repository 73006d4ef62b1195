/* The speed of light of one GPU: the highest rates of its memory and its arithmetic.
 *
 * Each rate has two values. The *bound* is clocks times widths, from the driver's attributes and
 * the architecture's published throughputs, rounded up. The *measured* ceiling is the best rate of
 * kernels that do nothing else, on this GPU (quern-light); it is kept as an artifact. A kernel is
 * called faster than light only when it exceeds the greater of the two, so that no honest kernel is
 * refused. A kernel's fraction of the speed of light refers to the measured ceiling, which a real
 * kernel can reach. */
#ifndef EVAL_CUDA_MEASURE_LIGHT_H
#define EVAL_CUDA_MEASURE_LIGHT_H

#include "gpu/gpus.h"
#include "tasks/task.h"

typedef struct {
    double dram_bytes_per_s; /* the best of reads, writes and copies, whose bytes count twice */
    double fp32_flops;       /* a second, a fused multiply-add is two */
    double tensor16_flops;   /* fp16 or bf16 with fp32 sums, dense */
    double tf32_flops;
    double launch_us;       /* least time of an empty launch between two events; 0 in a bound */
    double l2_bytes;        /* size of the L2 */
    double stall_period_us; /* time between two stalls of the memory (measure/stall.h); 0: no
                               stalls, or a bound */
    char uuid[48], device[64], driver[32];
} Light;

/* The bound, from the driver's attributes. The bounds of an unknown architecture are so high that
 * no kernel exceeds them. */
int light_bounds(const CudaDriver *cu, const Gpu *gpu, Light *out, Error *err);

/* The path of the artifact: ${QUERN_CACHE:-~/.cache/quern}/light-UUID.qa, of kind `metrics`, with
 * uuid, device and driver in its configuration. */
int light_path(const char *uuid, char *out, size_t size, Error *err);
/* Creates the folder when it does not exist. */
int light_save(const Light *l, const char *path, Error *err);
int light_read(const char *path, Light *out, Error *err);
/* Returns 1 when the artifact exists and was measured on this GPU with this driver. One that cannot
 * be read is logged and counts as missing. */
int light_kept(const char *path, const Gpu *gpu, const char *driver, Light *out);
/* Read the artifact at light_path. When it is missing, run quern-light, which waits for the GPU and
 * takes some seconds. Returns 0 when that fails, with a warning in the log; the next evaluator
 * tries again. */
int light_find(const Gpu *gpu, const char *driver, Light *out);

/* The highest flops per second with the accuracy of the dtype. Three products in TF32 make one
 * product in fp32. */
double light_flops(const Light *l, Dtype dtype);

#endif
