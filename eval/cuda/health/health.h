/* The health of a GPU. After an abnormal end a canary runs on it, and the driver is asked for
 * errors. A GPU must leave service when it computes wrongly, hangs, counts uncorrected memory
 * errors or reports an Xid error that no program can cause, since its verdicts would be
 * worthless. */
#ifndef EVAL_CUDA_HEALTH_HEALTH_H
#define EVAL_CUDA_HEALTH_HEALTH_H

#include "eval/cuda/health/nvml.h"
#include "gpu/gpus.h"

/* The meaning of an Xid error of the hardware or the driver, from NVIDIA's catalogue of Xid errors.
 * NULL: programs can cause it, for example a candidate's kernel. An unknown number counts as the
 * hardware's. */
const char *health_xid(unsigned xid);

typedef struct Health Health;

/* The source of the canary's kernels, extern "C": canary_fill(words, n), canary_sum(words, n,
 * sums). Its cubin is given to health_open. */
char *health_source(void); /* the caller frees it */
enum { HEALTH_WORDS = 1 << 20, HEALTH_BLOCK = 256 };
/* The sums of HEALTH_WORDS words, computed by the host. */
void health_expected(uint64_t sums[2]);

/* Begin to watch for errors, and load the canary into the current context. health_check must be
 * called in the same context. */
int health_open(const CudaDriver *cu, const Gpu *gpu, const void *cubin, Health **out, Error *err);
/* To be called before the context is destroyed. NULL is allowed. */
void health_close(Health *h);
/* For telemetry. It stays owned by h. */
Nvml *health_nvml(Health *h);

/* Takes at most two seconds. Returns -1 with ERROR_DEVICE_SICK when the GPU must leave service.
 * After the first failure it always fails. */
int health_check(Health *h, Error *err);

#endif
