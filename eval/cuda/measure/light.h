/* The speed of light of one GPU: what its memory and its arithmetic can do at most.
 *
 * Two numbers for everything. The *bound* is arithmetic: clocks times widths, from the driver's
 * attributes and, where it has none, from the architecture's published throughputs, rounded up. The
 * *measured* ceiling is the best that kernels written for nothing else reached on this very GPU
 * (quern-light), and is kept as an artifact. A time is called a cheat only against the greater of
 * the two, so that no honest kernel is refused; how near to the light a kernel came is told against
 * the measured ceiling, which a real kernel can reach. */
#ifndef EVAL_CUDA_MEASURE_LIGHT_H
#define EVAL_CUDA_MEASURE_LIGHT_H

#include "gpu/gpus.h"
#include "tasks/task.h"

typedef struct {
    double read_bytes_per_s, write_bytes_per_s,
        copy_bytes_per_s;          /* of DRAM; a copy's bytes count twice */
    double l2_bytes_per_s;         /* read from a working set that fits L2 */
    double fp32_flops, fp64_flops; /* a second, fused multiply-add as two; fp64 with tensor cores
                                      where there are */
    double tensor16_flops;         /* fp16 or bf16 with fp32 sums, dense */
    double tf32_flops;
    double launch_us;       /* least time of an empty launch between two events; a bound has 0 */
    double l2_bytes;        /* its size */
    double stall_period_us; /* between two stalls of the memory (eval/cuda/measure/stall.h); 0: it
                               has none; a bound has 0 */
    char uuid[48], device[64], driver[32];
} Light;

/* From attributes. What an unknown architecture can do is bounded so high that nothing is refused
 * by it. */
int light_bounds(const CudaDriver *cu, const Gpu *gpu, Light *out, Error *err);

/* ${QUERN_CACHE:-~/.cache/quern}/light-UUID.qa: a `metrics` artifact, uuid, device and driver in
 * its configuration. */
int light_path(const char *uuid, char *out, size_t size, Error *err);
int light_save(const Light *l, const char *path, Error *err); /* makes the folder */
int light_read(const char *path, Light *out, Error *err);     /* -1 also when it is not there */
/* Whether there is one that was measured on this GPU with this driver. What cannot be read is none;
 * it is logged. */
int light_kept(const char *path, const Gpu *gpu, const char *driver, Light *out);
/* That of light_path; where there is none, quern-light is run, which waits for the GPU and takes
 * some seconds. 0: it could not, which is logged; the next evaluator tries again. */
int light_once(const Gpu *gpu, const char *driver, Light *out);

/* Flops a second that a kernel which keeps the accuracy of the dtype can have: three products of
 * TF32 make one of fp32. */
double light_flops(const Light *l, Dtype dtype);
double light_dram(const Light *l); /* the best of read, write, copy */

#endif
