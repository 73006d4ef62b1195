/* CUPTI, opened at run time. */
#include "eval/cuda/measure/cupti_api.h"

int cupti_check(const Cupti *c, int result, const char *what, Error *err)
{
    const char *text = NULL;
    if (result == CUPTI_OK) return 0;
    if (c->result_string(result, &text) || !text) text = "unknown error";
    return error_set(err, ERROR_DEVICE, "%s: %s (CUPTI %d)%s", what, text, result,
                     result == CUPTI_NO_PRIVILEGE || result == CUPTI_NO_PRIVILEGE_VIRTUAL
                         ? ": the driver lets only root count (its option "
                           "NVreg_RestrictProfilingToAdminUsers=0 lets everybody)"
                         : "");
}

const Cupti *cupti_open(Error *err)
{
    static const char *const files[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so", NULL},
                             *const names[] = {CUPTI_FUNCTIONS(OPEN_NAME)};
    static Cupti table;
    static int ready;
    if (!ready && open_library(files, OPEN_FUNCTIONS(names, &table), err)) {
        error_prefix(err, "no CUPTI of CUDA 12.6 or later, which counts");
        return NULL;
    }
    ready = 1;
    return &table;
}
