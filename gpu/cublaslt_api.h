/* The functions and constants of cuBLASLt (opened at run time) that Quern uses. Its matrices are
 * column-major: a row-major product is the product of the transposed matrices in reverse order,
 * d' = b' a'. */
#ifndef GPU_CUBLASLT_API_H
#define GPU_CUBLASLT_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "gpu/open.h"

enum {
    LT_32F = 0,
    LT_16F = 2,
    LT_16BF = 14,
    LT_COMPUTE_32F = 68,
    LT_COMPUTE_32F_FAST_TF32 = 77,
    LT_OP_N = 0,
    LT_OP_T = 1,
    LT_NOT_SUPPORTED = 15,
    LT_DESC_TRANSA = 3,
    LT_DESC_TRANSB = 4,
    LT_DESC_EPILOGUE = 7,
    LT_DESC_BIAS_POINTER = 8,
    LT_EPILOGUE_BIAS = 4,
    LT_EPILOGUE_RELU_BIAS = 6,
    LT_PREFERENCE_WORKSPACE = 1,
    LT_PREFERENCE_REDUCTION = 3,
    LT_PREFERENCE_ALIGNMENT_A = 5,
    LT_REDUCTION_NONE = 0,
    LT_REDUCTION_COMPUTE_TYPE = 2,
    LT_ALGORITHM_TILE = 1,
    LT_ALGORITHM_SPLITS = 2,
    LT_TILE_UNDEFINED = 0
};

typedef struct {
    uint64_t data[8];
} CublasltAlgorithm;

/* cublasLtMatmulHeuristicResult_t */
typedef struct {
    CublasltAlgorithm algorithm;
    size_t workspace;
    int state; /* 0: it can run */
    float waves;
    int reserved[4];
} CublasltChoice;

/* Those that return an int return a cublasStatus_t, 0 for success. void * is a handle or a descriptor. */
/* clang-format off */
#define CUBLASLT_FUNCTIONS(X, TEXT)                                                                      \
    X(cublasLtCreate, create, (void **))                                                                 \
    X(cublasLtDestroy, destroy, (void *))                                                                \
    TEXT(cublasLtGetStatusString, status, (int))                                                         \
    X(cublasLtMatmulDescCreate, operation_create, (void **, int compute, int scale))                     \
    X(cublasLtMatmulDescSetAttribute, operation_set,                                                     \
      (void *, int attribute, const void *value, size_t bytes))                                          \
    X(cublasLtMatmulDescDestroy, operation_destroy, (void *))                                            \
    X(cublasLtMatrixLayoutCreate, layout_create,                                                         \
      (void **, int type, uint64_t rows, uint64_t cols, int64_t ld))                                     \
    X(cublasLtMatrixLayoutDestroy, layout_destroy, (void *))                                             \
    X(cublasLtMatmulPreferenceCreate, preference_create, (void **))                                      \
    X(cublasLtMatmulPreferenceSetAttribute, preference_set,                                              \
      (void *, int attribute, const void *value, size_t bytes))                                          \
    X(cublasLtMatmulPreferenceDestroy, preference_destroy, (void *))                                     \
    X(cublasLtMatmulAlgoGetHeuristic, heuristic,                                                         \
      (void *, void *operation, void *a, void *b, void *c, void *d, void *preference, int max,           \
       CublasltChoice *out, int *n))                                                                     \
    X(cublasLtMatmulAlgoConfigGetAttribute, algorithm_get,                                               \
      (const CublasltAlgorithm *, int attribute, void *value, size_t bytes, size_t *written))            \
    X(cublasLtMatmul, matmul,                                                                            \
      (void *, void *operation, const void *alpha, const void *a, void *la, const void *b, void *lb,     \
       const void *beta, const void *c, void *lc, void *d, void *ld, const CublasltAlgorithm *algorithm, \
       void *workspace, size_t bytes, void *stream))
/* clang-format on */

typedef struct {
    CUBLASLT_FUNCTIONS(OPEN_INT, OPEN_TEXT)
} CublasltApi;

/* NULL: there is no cuBLASLt. The library stays open. */
const CublasltApi *cublaslt_api(Error *err);

/* Returns 0 when status is 0, else -1 with `what` and the library's name of the status. */
int cublaslt_check(const CublasltApi *lt, int status, const char *what, Error *err);

#endif
