/* The harness's own kernels: their source, and the cubin for this GPU. The compilation runs while
 * the driver starts, and its result is kept in the compile cache. */
#ifndef EVAL_CUDA_CONTEXT_HARNESS_H
#define EVAL_CUDA_CONTEXT_HARNESS_H

#include <stddef.h>

#include "base/error.h"
#include "tasks/task.h"

/* The structures of the kernels in eval/cuda/context/harness.cu. */
typedef struct {
    unsigned long long start, end;
} HarnessZone;
typedef struct {
    unsigned long long lowest, highest;
} HarnessZoneBad;
typedef struct {
    unsigned long long wrong, unwritten, first, first_unwritten, worst;
} HarnessDifference;

/* How the numbers of a stream are drawn one after another. */
enum { HARNESS_EVEN, HARNESS_NEEDLES, HARNESS_POSITIVE_NEEDLES, HARNESS_SPECIAL };

/* Before the streams' numbers, in HARNESS_HEAD words. */
typedef struct {
    double low, wide, mean, std, scale;
    unsigned long long n, mixed, kind; /* one of HARNESS_EVEN..., and Task.special from bit 8 on */
} HarnessNumbers;

enum { HARNESS_HEAD = 8 };
HarnessNumbers harness_numbers(const TaskStreams *x);

typedef enum {
    HARNESS_ZONES,
    HARNESS_COMPARE,
    HARNESS_SAME,
    HARNESS_DIGEST,
    HARNESS_DRAW_BY_INDEX,
    HARNESS_DRAW,
    HARNESS_NOTHING,
    HARNESS_FLUSH,
    HARNESS_WAIT,
    HARNESS_KERNELS
} HarnessKernel;

extern const char *const harness_names[HARNESS_KERNELS];
/* The source of these kernels and of the canary (eval/cuda/health/health.h), for one cubin. The
 * caller frees it. */
char *harness_source(void);

typedef struct Harness Harness;

/* Look up the code of device `arg` in the cache. When it is not there, start a compiler without
 * waiting for it. */
int harness_begin(const char *arg, Harness **out, Error *err);
/* To be called when the architecture is known. Starts the compilation in a thread when the cache
 * did not have the code. */
void harness_arch(Harness *h, const char *arch);
/* Wait for the cubin. It stays valid until harness_end. */
int harness_cubin(Harness *h, const void **cubin, size_t *len, Error *err);
void harness_end(Harness *h); /* NULL is allowed */

#endif
