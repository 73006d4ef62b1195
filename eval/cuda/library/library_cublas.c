/* cuBLAS and cuBLASLt, whose matrices are column-major. A row-major product is the product of the
 * transposed matrices in reverse order, c' = b' a', at no cost. */
#include "eval/cuda/library/library_cublas.h"

#include <string.h>

#include "eval/cuda/library/library_workspace.h"
#include "gpu/cublaslt_api.h"
#include "gpu/open.h"

typedef void *BlasHandle;

enum {
    BLAS_N = 0,
    BLAS_T = 1,
    BLAS_DEFAULT_MATH = 0,
    BLAS_TF32_MATH = 3,
    BLAS_TENSOR_ALGORITHM = 99
};
/* Statuses of a call that cannot be made, on any device or on this one; cuBLASLt has the same. */
enum { BLAS_INVALID_VALUE = 7, BLAS_ARCH_MISMATCH = 8, BLAS_NOT_SUPPORTED = 15 };

/* clang-format off */
#define CUBLAS_FUNCTIONS(X, TEXT)                                                                           \
    X(cublasCreate_v2, create, (BlasHandle *))                                                              \
    X(cublasSetStream_v2, set_stream, (BlasHandle, void *stream))                                           \
    X(cublasSetWorkspace_v2, set_workspace, (BlasHandle, void *p, size_t bytes))                            \
    X(cublasSetMathMode, set_math, (BlasHandle, int mode))                                                  \
    TEXT(cublasGetStatusString, status, (int))                                                              \
    X(cublasSgemm_v2, sgemm,                                                                                \
      (BlasHandle, int ta, int tb, int m, int n, int k, const float *alpha, const void *a, int lda,         \
       const void *b, int ldb, const float *beta, void *c, int ldc))                                        \
    X(cublasSgemmStridedBatched, sgemm_batched,                                                             \
      (BlasHandle, int ta, int tb, int m, int n, int k, const float *alpha, const void *a, int lda,         \
       long long stride_a, const void *b, int ldb, long long stride_b, const float *beta, void *c, int ldc, \
       long long stride_c, int batch))                                                                      \
    X(cublasGemmStridedBatchedEx, gemm,                                                                     \
      (BlasHandle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type,       \
       int lda, long long stride_a, const void *b, int b_type, int ldb, long long stride_b,                 \
       const void *beta, void *c, int c_type, int ldc, long long stride_c, int batch, int compute,          \
       int algorithm))
/* clang-format on */

static struct {
    CUBLAS_FUNCTIONS(OPEN_INT, OPEN_TEXT)
    int loaded;
    BlasHandle handle;
} blas;

/* ---- cuBLASLt ---- */

/* One shape, ready to run. */
typedef struct {
    uint64_t m, n, k;
    int dtype, tf32, transpose_b, relu;
    void *operation, *a, *b, *c;
    CublasltChoice best;
} LtPlan;

static struct {
    const CublasltApi *api;
    void *handle;
    LtPlan plans[LIBRARY_MAX_SHAPES];
    int n_plans, next, last;
} lt;

static int check(int status, const char *what, Error *err)
{
    if (!status) return 0;
    int refused = status == BLAS_INVALID_VALUE || status == BLAS_ARCH_MISMATCH ||
                  status == BLAS_NOT_SUPPORTED;
    return error_set(err, refused ? ERROR_UNSUPPORTED : ERROR_DEVICE, "%s: %s (%d)", what,
                     blas.status ? blas.status(status) : "unknown status", status);
}

int library_cublas_load(Error *err)
{
    static const char *const files[] = {"libcublas.so.13", "libcublas.so.12", NULL};
    static const char *const names[] = {CUBLAS_FUNCTIONS(OPEN_NAME, OPEN_NAME)};
    if (blas.loaded) return 0;
    if (!lt.api && !(lt.api = cublaslt_api(err))) return -1;
    if (open_library(files, OPEN_FUNCTIONS(names, &blas), err)) return -1;
    blas.loaded = 1;
    return 0;
}

static void plan_destroy(LtPlan *p)
{
    if (p->operation) lt.api->operation_destroy(p->operation);
    if (p->a) lt.api->layout_destroy(p->a);
    if (p->b) lt.api->layout_destroy(p->b);
    if (p->c) lt.api->layout_destroy(p->c);
    memset(p, 0, sizeof *p);
}

/* Prepare the handle for this stream. cublasSetStream resets the workspace, so it is set each
 * time. As PyTorch, TF32 is a mode of the handle. */
static int use_blas(int tf32, void *stream, Error *err)
{
    void *workspace;
    if (library_cublas_load(err)) return -1;
    if (!blas.handle && check(blas.create(&blas.handle), "cublasCreate", err)) return -1;
    if (check(blas.set_math(blas.handle, tf32 ? BLAS_TF32_MATH : BLAS_DEFAULT_MATH),
              "cublasSetMathMode", err))
        return -1;
    if (library_workspace(LIBRARY_GEMM_WORKSPACE, &workspace, err)) return -1;
    if (check(blas.set_stream(blas.handle, stream), "cublasSetStream", err)) return -1;
    return check(blas.set_workspace(blas.handle, workspace, LIBRARY_GEMM_WORKSPACE),
                 "cublasSetWorkspace", err);
}

/* cudaDataType of float32, float16 and bfloat16 */
static const int data_types[] = {LT_32F, LT_16F, LT_16BF};

int library_cublas_gemm(const LibraryProduct *p, void *stream, Error *err)
{
    const float zero = 0, alpha = (float)p->alpha;
    int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = (int)p->lda, ldb = (int)p->ldb,
        ldc = (int)p->ldc, ta = p->transpose_a ? BLAS_T : BLAS_N,
        tb = p->transpose_b ? BLAS_T : BLAS_N, type = data_types[p->dtype];
    void *a = library_pointer(p->a), *b = library_pointer(p->b), *c = library_pointer(p->c);
    if (use_blas(p->tf32, stream, err)) return -1;
    if (p->dtype)
        return check(blas.gemm(blas.handle, tb, ta, n, m, k, &alpha, b, type, ldb, p->apart_b, a,
                               type, lda, p->apart_a, &zero, c, data_types[p->c_dtype], ldc,
                               p->apart_c, (int)p->batch, LT_COMPUTE_32F, BLAS_TENSOR_ALGORITHM),
                     "cublasGemmStridedBatchedEx", err);
    if (p->batch == 1)
        return check(
            blas.sgemm(blas.handle, tb, ta, n, m, k, &alpha, b, ldb, a, lda, &zero, c, ldc),
            "cublasSgemm", err);
    return check(blas.sgemm_batched(blas.handle, tb, ta, n, m, k, &alpha, b, ldb, p->apart_b, a,
                                    lda, p->apart_a, &zero, c, ldc, p->apart_c, (int)p->batch),
                 "cublasSgemmStridedBatched", err);
}

/* ---- the fused product ---- */

static int choose_algorithm(LtPlan *p, Error *err)
{
    void *preference = NULL;
    size_t bytes = LIBRARY_LT_WORKSPACE;
    int found = 0;
    if (check(lt.api->preference_create(&preference), "cublasLtMatmulPreferenceCreate", err))
        return -1;
    int rc =
        check(lt.api->preference_set(preference, LT_PREFERENCE_WORKSPACE, &bytes, sizeof bytes),
              "cublasLtMatmulPreferenceSetAttribute", err);
    if (!rc)
        rc = check(lt.api->heuristic(lt.handle, p->operation, p->a, p->b, p->c, p->c, preference, 1,
                                     &p->best, &found),
                   "cublasLtMatmulAlgoGetHeuristic", err);
    if (!rc && (!found || p->best.state))
        rc =
            error_set(err, ERROR_UNSUPPORTED, "cublasLt has no algorithm for %llu x %llu x %llu",
                      (unsigned long long)p->m, (unsigned long long)p->n, (unsigned long long)p->k);
    lt.api->preference_destroy(preference);
    return rc;
}

/* Column-major: a is the row-major b, transposed where that one is not, and b is a. */
static int plan_make(LtPlan *p, const void *bias, Error *err)
{
    const uint32_t epilogue = p->relu ? LT_EPILOGUE_RELU_BIAS : LT_EPILOGUE_BIAS;
    const int type = data_types[p->dtype], transpose = p->transpose_b ? LT_OP_T : LT_OP_N;
    const uint64_t rows = p->transpose_b ? p->k : p->n, columns = p->transpose_b ? p->n : p->k;
    if (check(lt.api->operation_create(&p->operation,
                                       p->tf32 ? LT_COMPUTE_32F_FAST_TF32 : LT_COMPUTE_32F, LT_32F),
              "cublasLtMatmulDescCreate", err) ||
        check(lt.api->operation_set(p->operation, LT_DESC_TRANSA, &transpose, sizeof transpose),
              "the transposition", err) ||
        check(lt.api->operation_set(p->operation, LT_DESC_EPILOGUE, &epilogue, sizeof epilogue),
              "the epilogue", err) ||
        check(lt.api->operation_set(p->operation, LT_DESC_BIAS_POINTER, &bias, sizeof bias),
              "the bias", err) ||
        check(lt.api->layout_create(&p->a, type, rows, columns, (int64_t)rows), "the layout of b",
              err) ||
        check(lt.api->layout_create(&p->b, type, p->k, p->m, (int64_t)p->k), "the layout of a",
              err) ||
        check(lt.api->layout_create(&p->c, type, p->n, p->m, (int64_t)p->n), "the layout of c",
              err))
        return -1;
    return choose_algorithm(p, err);
}

static int same_plan(const LtPlan *p, const LtPlan *q)
{
    return p->m == q->m && p->n == q->n && p->k == q->k && p->dtype == q->dtype &&
           p->tf32 == q->tf32 && p->transpose_b == q->transpose_b && p->relu == q->relu;
}

static int find_plan(const LibraryProduct *of, const void *bias, LtPlan **out, Error *err)
{
    LtPlan made = {.m = (uint64_t)of->m,
                   .n = (uint64_t)of->n,
                   .k = (uint64_t)of->k,
                   .dtype = of->dtype,
                   .tf32 = of->tf32,
                   .transpose_b = of->transpose_b,
                   .relu = of->relu};
    for (int i = 0, last = lt.last; i < lt.n_plans; i++) {
        lt.last = library_kept(last, i, lt.n_plans);
        *out = &lt.plans[lt.last];
        if (same_plan(*out, &made)) return 0;
    }
    if (plan_make(&made, bias, err)) {
        plan_destroy(&made);
        return -1;
    }
    if (lt.n_plans < LIBRARY_MAX_SHAPES) {
        *out = &lt.plans[lt.n_plans++];
    } else {
        *out = &lt.plans[lt.next];
        lt.next = (lt.next + 1) % LIBRARY_MAX_SHAPES;
        plan_destroy(*out);
    }
    **out = made;
    lt.last = (int)(*out - lt.plans);
    return 0;
}

int library_cublaslt_gemm_bias(const LibraryProduct *of, void *stream, Error *err)
{
    const float one = 1, zero = 0;
    const void *bias = library_pointer(of->bias);
    void *workspace, *c = library_pointer(of->c);
    LtPlan *p;
    if (library_cublas_load(err)) return -1; /* cuBLAS has the names of a status */
    if (!lt.handle && check(lt.api->create(&lt.handle), "cublasLtCreate", err)) return -1;
    if (library_workspace(LIBRARY_LT_WORKSPACE, &workspace, err) || find_plan(of, bias, &p, err))
        return -1;
    if (check(lt.api->operation_set(p->operation, LT_DESC_BIAS_POINTER, &bias, sizeof bias),
              "the bias", err))
        return -1;
    return check(lt.api->matmul(lt.handle, p->operation, &one, library_pointer(of->b), p->a,
                                library_pointer(of->a), p->b, &zero, c, p->c, c, p->c,
                                &p->best.algorithm, workspace, LIBRARY_LT_WORKSPACE, stream),
                 "cublasLtMatmul", err);
}
