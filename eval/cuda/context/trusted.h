/* The harness's own context: contents that are kept here, and the kernels that fill buffers,
 * compare them and check guard zones. All work goes through one stream. A function without a result
 * only enqueues its work; trusted_settle waits for it. */
#ifndef EVAL_CUDA_CONTEXT_TRUSTED_H
#define EVAL_CUDA_CONTEXT_TRUSTED_H

#include "eval/cuda/context/executor.h"
#include "eval/cuda/context/harness.h"
#include "eval/device/memory_shares.h"

enum { TRUSTED_MAX_ZONES = 8193, TRUSTED_STAGES = 2 };

typedef struct {
    Executor executor;
    CuFunction kernels[HARNESS_KERNELS];
    int sms, busy;       /* busy: work was enqueued since the last wait */
    CuPtr results;       /* table of zones, their results, and the slots of other results */
    unsigned char *host; /* the same, pinned */
    /* Pinned memory for large copies, in TRUSTED_STAGES parts; NULL before the first large copy. */
    unsigned char *stage;
    CuEvent copied[TRUSTED_STAGES]; /* the copy out of a part has ended */
    int zones_stale, n_zones;       /* stale: the table on the device must be updated */
    unsigned zone_blocks;           /* blocks for each zone */
    size_t golden_bytes;
    MemoryShares shares; /* of the memory that was free at the start */
    size_t total_bytes;  /* of the GPU */
} Trusted;

struct DeviceGolden {
    CuPtr p;
    size_t bytes;
};

/* Create the context; then load the harness's kernels. */
int trusted_open(Trusted *t, const CudaDriver *cu, int ordinal, Error *err);
int trusted_load(Trusted *t, const void *cubin, Error *err);
void trusted_close(Trusted *t);
/* Make the context current in this thread. */
void trusted_enter(Trusted *t);
/* Wait for all enqueued work. */
int trusted_settle(Trusted *t, Error *err);

int trusted_write(Trusted *t, CuPtr p, const void *src, size_t bytes, Error *err);
int trusted_read(Trusted *t, CuPtr p, void *dst, size_t bytes, Error *err);
int trusted_poison(Trusted *t, CuPtr p, size_t bytes, Error *err);

int trusted_golden(Trusted *t, const void *src, size_t bytes, DeviceGolden **out, Error *err);
/* See DeviceGoldenOps.draw. */
int trusted_draw(Trusted *t, const DeviceDraw *what, DeviceGolden **out, Error *err);
/* The same, of what a buffer holds. */
int trusted_golden_of(Trusted *t, CuPtr p, size_t bytes, DeviceGolden **out, Error *err);
void trusted_golden_free(Trusted *t, DeviceGolden *g);
/* Contents are rotated and repeated: see DeviceGoldenOps.fill. */
int trusted_fill(Trusted *t, const DeviceExpected *x, Error *err);
int trusted_same(Trusted *t, const DeviceExpected *x, size_t *first, Error *err);
int trusted_compare(Trusted *t, const DeviceExpected *with, DeviceDifference *out, Error *err);
/* Compare all, and with zones check every guard zone, in one wait. Returns 1 when something
 * differs. */
int trusted_expect(Trusted *t, const DeviceExpected *list, int n, int zones, Error *err);
int trusted_digest(Trusted *t, CuPtr p, size_t bytes, uint64_t out[2], Error *err);

/* Set the zones that trusted_zones checks, ordered by address. */
void trusted_set_zones(Trusted *t, const HarnessZone *zones, int n);
/* Returns 1 when a byte of a zone is not poison, with the first such zone and the least and
 * greatest address of such a byte in it. */
int trusted_zones(Trusted *t, int *zone, CuPtr *lowest, CuPtr *highest, Error *err);

#endif
