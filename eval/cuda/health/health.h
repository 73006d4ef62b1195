/* Is a GPU fit to judge? After an abnormal end a canary runs on it, and the driver is asked what it
 * has seen. A GPU that computes wrongly, hangs, counts uncorrected memory errors or reports an Xid
 * error that no program can cause must leave service: its verdicts would be worth nothing. */
#ifndef EVAL_CUDA_HEALTH_HEALTH_H
#define EVAL_CUDA_HEALTH_HEALTH_H

#include "eval/cuda/health/nvml.h"
#include "gpu/gpus.h"

/* How every error of health_check begins. A verdict evaluator_error whose message begins so makes
 * the worker put its job back, say the sentence, and end (eval/serve/eval_worker.h). */
#define HEALTH_SICK "this GPU is out of service: "
int health_is_sick(const char *message);

/* NULL: programs cause such an Xid error too, candidates' kernels among them. Else what it means,
 * as NVIDIA's catalogue of Xid errors has it; a number that the list below does not hold counts as
 * the hardware's. */
const char *health_xid(unsigned xid);

typedef struct Health Health;

/* The canary's kernels, extern "C", for the compiler: canary_fill(words, n), canary_sum(words, n,
 * sums). Their cubin is what health_open wants. */
extern const char health_source[];
enum { HEALTH_WORDS = 1 << 20, HEALTH_BLOCK = 256 };
/* What the sums must be for HEALTH_WORDS words, by the host. */
void health_expected(uint64_t sums[2]);

/* Watches from here on; loads the canary into the current context, in which health_check must be
 * called too. */
int health_open(const CudaDriver *cu, const Gpu *gpu, const void *cubin, Health **out, Error *err);
void health_close(Health *h); /* before the context goes; NULL is none */
Nvml *health_nvml(Health *h); /* the same watch, for telemetry */

/* At most two seconds. -1 with a sentence that begins with HEALTH_SICK; it stays so once it was so.
 */
int health_check(Health *h, Error *err);

#endif
