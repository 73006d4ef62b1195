/* cuBLASLt's functions through dlopen. */
#include "gpu/cublaslt_api.h"

#include "gpu/open.h"

const CublasltApi *cublaslt_api(Error *err)
{
    static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    static CublasltApi lt;
    static int loaded;
    const OpenSymbol symbols[] = {
        {"cublasLtCreate", &lt.create},
        {"cublasLtDestroy", &lt.destroy},
        {"cublasLtGetStatusString", &lt.status},
        {"cublasLtMatmulDescCreate", &lt.operation_create},
        {"cublasLtMatmulDescSetAttribute", &lt.operation_set},
        {"cublasLtMatmulDescDestroy", &lt.operation_destroy},
        {"cublasLtMatrixLayoutCreate", &lt.layout_create},
        {"cublasLtMatrixLayoutDestroy", &lt.layout_destroy},
        {"cublasLtMatmulPreferenceCreate", &lt.preference_create},
        {"cublasLtMatmulPreferenceSetAttribute", &lt.preference_set},
        {"cublasLtMatmulPreferenceDestroy", &lt.preference_destroy},
        {"cublasLtMatmulAlgoGetHeuristic", &lt.heuristic},
        {"cublasLtMatmulAlgoConfigGetAttribute", &lt.algorithm_get},
        {"cublasLtMatmul", &lt.matmul},
    };
    if (!loaded && open_library(files, symbols, sizeof symbols / sizeof *symbols, err)) return NULL;
    loaded = 1;
    return &lt;
}

int cublaslt_check(const CublasltApi *lt, int status, const char *what, Error *err)
{
    return status ? error_set(err, ERROR_DEVICE, "%s: %s (%d)", what, lt->status(status), status)
                  : 0;
}
