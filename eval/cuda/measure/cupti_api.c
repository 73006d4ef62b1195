/* CUPTI, opened at run time from $CUDA_HOME, the loader's path or /usr/local/cuda. */
#include "eval/cuda/measure/cupti_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void *open_library(Error *err)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/",
                                          "/usr/local/cuda/extras/CUPTI/lib64/", "/opt/cuda/lib64/",
                                          "/opt/cuda/extras/CUPTI/lib64/"};
    const char *home = getenv("CUDA_HOME");
    char path[4096];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library;
        snprintf(path, sizeof path, "%s/lib64/%s", home ? home : "", names[i]);
        if (home && *home && (library = dlopen(path, RTLD_NOW | RTLD_LOCAL))) return library;
        for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
            snprintf(path, sizeof path, "%s%s", folders[k], names[i]);
            if ((library = dlopen(path, RTLD_NOW | RTLD_LOCAL))) return library;
        }
    }
    error_set(err, ERROR_DEVICE,
              "no CUPTI, which counts: libcupti.so is not on the loader's path, in "
              "$CUDA_HOME/lib64 or in /usr/local/cuda");
    return NULL;
}

const Cupti *cupti_open(Error *err)
{
    static Cupti table;
    static int ready;
    union {
        void *object;
        void (*function)(void);
    } symbol;
    if (ready) return &table;
    void *library = open_library(err);
    if (!library) return NULL;
#define X(exported, name, args)                                                                   \
    symbol.object = dlsym(library, #exported);                                                    \
    if (!symbol.object) {                                                                         \
        dlclose(library);                                                                         \
        error_set(err, ERROR_DEVICE, "CUPTI has no %s; CUDA 12.6 or later is needed", #exported); \
        return NULL;                                                                              \
    }                                                                                             \
    memcpy(&table.name, &symbol, sizeof table.name);
    CUPTI_FUNCTIONS(X)
#undef X
    ready = 1;
    return &table;
}
