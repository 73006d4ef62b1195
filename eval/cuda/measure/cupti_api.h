/* The functions of CUPTI that Quern calls (CUDA 12.6 and later, for the range profiler), declared
 * here so that a build needs no header of CUPTI. The first field of each structure is its size,
 * from which the library knows the fields that exist. */
#ifndef EVAL_CUDA_MEASURE_CUPTI_API_H
#define EVAL_CUDA_MEASURE_CUPTI_API_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/open.h"

typedef struct {
    size_t size;
    void *priv;
} CuptiPlain; /* cuptiProfilerInitialize, cuptiProfilerDeInitialize */

typedef struct {
    size_t size;
    void *priv;
    size_t index;
    const char *name; /* out */
} CuptiChip;

typedef struct {
    size_t size;
    void *priv, *context;
    size_t image_size; /* out when image is NULL */
    uint8_t *image;
} CuptiAvailability;

typedef struct {
    size_t size;
    void *priv;
    int type; /* 0: the range profiler */
    const char *chip;
    const uint8_t *availability;
    void *host; /* out */
} CuptiHostOpen;

typedef struct {
    size_t size;
    void *priv, *host;
} CuptiHost;

typedef struct {
    size_t size;
    void *priv, *host;
    const char **names;
    size_t n;
} CuptiHostMetrics;

typedef struct {
    size_t size;
    void *priv, *host;
    size_t image_size; /* output of the first of two calls */
    uint8_t *image;    /* only in the second */
} CuptiHostConfig;

typedef struct {
    size_t size;
    void *priv, *host;
    const uint8_t *data;
    size_t data_size, range;
    const char **names;
    size_t n;
    double *values; /* out */
} CuptiHostValues;

typedef struct {
    size_t size;
    void *priv, *context, *profiler; /* profiler: out */
} CuptiEnable;

typedef struct {
    size_t size;
    void *priv, *profiler;
} CuptiRange; /* disable, start, pop */

typedef struct {
    size_t size;
    void *priv, *profiler;
    size_t config_size;
    const uint8_t *config;
    size_t data_size;
    uint8_t *data;
    int range, replay;
    size_t max_ranges;
    uint16_t nesting_levels, min_nesting_level;
    size_t pass;
    uint16_t target_nesting_level;
} CuptiConfigure;

typedef struct {
    size_t size;
    void *priv, *profiler;
    size_t pass, nesting_level;
    uint8_t all_passes; /* out: every pass has run */
} CuptiStop;

typedef struct {
    size_t size;
    void *priv, *profiler;
    const char *name;
} CuptiPush;

typedef struct {
    size_t size;
    void *priv, *profiler;
    size_t dropped; /* out */
} CuptiDecode;

typedef struct {
    size_t size;
    void *priv, *profiler;
    const char **names;
    size_t n, max_ranges;
    uint32_t max_nodes;
    size_t data_size; /* out */
} CuptiDataSize;

typedef struct {
    size_t size;
    void *priv, *profiler;
    size_t data_size;
    uint8_t *data;
} CuptiDataStart;

/* The size of a structure up to and including the field `last`, as the library counts it: without
 * padding at the end. */
#define CUPTI_SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

enum {
    CUPTI_OK = 0,
    CUPTI_NO_PRIVILEGE = 35,
    CUPTI_NO_PRIVILEGE_VIRTUAL = 40,
    CUPTI_USER_RANGE = 2,
    CUPTI_USER_REPLAY = 3,
    CUPTI_CONCURRENT_KERNEL = 10,
    CUPTI_FLUSH_FORCED = 1
};

/* The first fields of CUpti_ActivityKernel10, which older versions of the record share. */
typedef struct {
    int kind;
    uint8_t cache, shared_config;
    uint16_t registers;
    int partitioned[2];
    uint64_t start, end, completed; /* ns */
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total, correlation;
    int64_t grid_id;
    const char *name;
} CuptiKernelRecord;

typedef void CuptiBufferRequested(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void CuptiBufferFull(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                             size_t valid);

/* clang-format off */
#define CUPTI_FUNCTIONS(X)                                                                             \
    X(cuptiGetResultString, result_string, (int result, const char **text))                            \
    X(cuptiProfilerInitialize, initialize, (CuptiPlain *))                                             \
    X(cuptiDeviceGetChipName, chip_name, (CuptiChip *))                                                \
    X(cuptiProfilerGetCounterAvailability, availability, (CuptiAvailability *))                        \
    X(cuptiProfilerHostInitialize, host_open, (CuptiHostOpen *))                                       \
    X(cuptiProfilerHostDeinitialize, host_close, (CuptiHost *))                                        \
    X(cuptiProfilerHostConfigAddMetrics, host_add, (CuptiHostMetrics *))                               \
    X(cuptiProfilerHostGetConfigImageSize, host_config_size, (CuptiHostConfig *))                      \
    X(cuptiProfilerHostGetConfigImage, host_config, (CuptiHostConfig *))                               \
    X(cuptiProfilerHostEvaluateToGpuValues, host_values, (CuptiHostValues *))                          \
    X(cuptiRangeProfilerEnable, enable, (CuptiEnable *))                                               \
    X(cuptiRangeProfilerDisable, disable, (CuptiRange *))                                              \
    X(cuptiRangeProfilerSetConfig, configure, (CuptiConfigure *))                                      \
    X(cuptiRangeProfilerStart, start, (CuptiRange *))                                                  \
    X(cuptiRangeProfilerStop, stop, (CuptiStop *))                                                     \
    X(cuptiRangeProfilerPushRange, push, (CuptiPush *))                                                \
    X(cuptiRangeProfilerPopRange, pop, (CuptiRange *))                                                 \
    X(cuptiRangeProfilerDecodeData, decode, (CuptiDecode *))                                           \
    X(cuptiRangeProfilerGetCounterDataSize, data_size, (CuptiDataSize *))                              \
    X(cuptiRangeProfilerCounterDataImageInitialize, data_start, (CuptiDataStart *))                    \
    X(cuptiActivityRegisterCallbacks, activity_callbacks, (CuptiBufferRequested *, CuptiBufferFull *)) \
    X(cuptiActivityEnable, activity_enable, (int kind))                                                \
    X(cuptiActivityDisable, activity_disable, (int kind))                                              \
    X(cuptiActivityFlushAll, activity_flush, (uint32_t flag))                                          \
    X(cuptiActivityGetNextRecord, activity_next, (uint8_t *buffer, size_t valid, void **record))
/* clang-format on */

typedef struct {
    CUPTI_FUNCTIONS(OPEN_INT)
} Cupti;

/* The table of functions; NULL: there is no CUPTI, or it is too old. The library stays open. */
const Cupti *cupti_open(Error *err);
/* Returns 0 when result is CUPTI_OK, else -1 with the library's message. */
int cupti_check(const Cupti *c, int result, const char *what, Error *err);

#endif
