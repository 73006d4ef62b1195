/* The harness's own kernels: their source, and the cubin for this GPU, compiled beside the start of
 * the driver and kept in the compile cache. */
#ifndef EVAL_CUDA_CONTEXT_HARNESS_H
#define EVAL_CUDA_CONTEXT_HARNESS_H

#include <stddef.h>

#include "base/error.h"

/* As the kernels in eval/cuda/context/harness.cu.h have them. */
typedef struct {
    unsigned long long start, end;
} HarnessZone;
typedef struct {
    unsigned long long lowest, highest;
} HarnessZoneBad;
typedef struct {
    unsigned long long wrong, unwritten, first, first_unwritten, worst;
} HarnessDifference;

typedef enum {
    HARNESS_ZONES,
    HARNESS_COMPARE,
    HARNESS_SAME,
    HARNESS_DIGEST,
    HARNESS_NOTHING,
    HARNESS_FLUSH,
    HARNESS_WAIT,
    HARNESS_KERNELS
} HarnessKernel;

extern const char *const harness_names[HARNESS_KERNELS];
/* These kernels and the canary's of eval/cuda/health/health.h, for one cubin. The caller frees it.
 */
char *harness_source(void);

typedef struct Harness Harness;

/* The architecture that device `arg` had when its code was put into the cache; -1: never. */
int harness_expected_arch(const char *arg, char out[16]);

/* Looks into the cache; when the code for device `arg` ("0") is not there, starts a compiler and
 * does not wait for it. */
int harness_begin(const char *arg, Harness **out, Error *err);
/* The architecture is known: compile, on a thread of its own, when that is needed. */
void harness_arch(Harness *h, const char *arch);
/* The cubin, once it is there; it lives until harness_end. */
int harness_cubin(Harness *h, const void **cubin, size_t *len, Error *err);
void harness_end(Harness *h); /* NULL is none */

#endif
