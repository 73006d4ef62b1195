/* The harness's own context: contents that stay on this side, and the kernels that fill, compare
 * and look. Everything goes through one stream; what gives no result is only enqueued, and
 * trusted_settle waits for it. */
#ifndef EVAL_CUDA_CONTEXT_TRUSTED_H
#define EVAL_CUDA_CONTEXT_TRUSTED_H

#include "eval/cuda/context/executor.h"
#include "eval/cuda/context/harness.h"

enum { TRUSTED_MAX_ZONES = 320, TRUSTED_STAGES = 2 };

typedef struct {
    Executor executor;
    CuFunction kernels[HARNESS_KERNELS];
    int sms, busy;       /* busy: something was enqueued since the last wait */
    CuPtr results;       /* small: zones, what was found in them, and one result */
    unsigned char *host; /* the same, pinned */
    unsigned char *
        stage; /* pinned, for what is large, in TRUSTED_STAGES parts; NULL before the first of it */
    CuEvent left[TRUSTED_STAGES]; /* a part's contents have */
    int zones_stale, n_zones;     /* the table on the device is not the one last given */
    unsigned zone_blocks;         /* that look at each */
    size_t golden_bytes, golden_limit;
} Trusted;

struct DeviceGolden {
    CuPtr p;
    size_t bytes;
};

int trusted_open(Trusted *t, const CudaDriver *cu, int ordinal, Error *err); /* the context */
int trusted_load(Trusted *t, const void *cubin, Error *err); /* the harness's kernels */
void trusted_close(Trusted *t);
void trusted_enter(Trusted *t); /* its context becomes the thread's */
int trusted_settle(Trusted *t, Error *err);

int trusted_write(Trusted *t, CuPtr p, const void *src, size_t bytes, Error *err);
int trusted_read(Trusted *t, CuPtr p, void *dst, size_t bytes, Error *err);
int trusted_poison(Trusted *t, CuPtr p, size_t bytes, Error *err);

int trusted_golden(Trusted *t, const void *src, size_t bytes, DeviceGolden **out, Error *err);
void trusted_golden_free(Trusted *t, DeviceGolden *g);
int trusted_fill(Trusted *t, CuPtr p, const DeviceGolden *g, size_t from, Error *err);
int trusted_same(Trusted *t, CuPtr p, const DeviceGolden *g, size_t from, size_t *first,
                 Error *err);
int trusted_compare(Trusted *t, CuPtr p, const DeviceGolden *expected, size_t from, int dtype,
                    size_t n, double atol, double rtol, DeviceDifference *out, Error *err);
/* All of them and, with zones, every guard zone, in one wait. 1: something is not as expected. */
int trusted_expect(Trusted *t, const DeviceExpected *list, int n, int zones, Error *err);
int trusted_digest(Trusted *t, CuPtr p, size_t bytes, uint64_t out[2], Error *err);

/* The zones that trusted_zones looks at from now on, by address; not read before that. */
void trusted_set_zones(Trusted *t, const HarnessZone *zones, int n);
/* 1: a byte of zone *zone is not poison; the first such zone, with the least and greatest such
 * address. */
int trusted_zones(Trusted *t, int *zone, CuPtr *lowest, CuPtr *highest, Error *err);

#endif
