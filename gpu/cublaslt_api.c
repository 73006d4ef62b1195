/* cuBLASLt's functions through dlopen. */
#include "gpu/cublaslt_api.h"

const CublasltApi *cublaslt_api(Error *err)
{
    static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    static CublasltApi lt;
    static int loaded;
    static const char *const names[] = {CUBLASLT_FUNCTIONS(OPEN_NAME, OPEN_NAME)};
    if (!loaded && open_library(files, OPEN_FUNCTIONS(names, &lt), err)) return NULL;
    loaded = 1;
    return &lt;
}

int cublaslt_check(const CublasltApi *lt, int status, const char *what, Error *err)
{
    return status ? error_set(err, ERROR_DEVICE, "%s: %s (%d)", what, lt->status(status), status)
                  : 0;
}
