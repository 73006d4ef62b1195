/* The table of libcuda's functions, filled once per process. */
#include "gpu/driver.h"

#include <dlfcn.h>

#include "gpu/open.h"

static CudaDriver table;

static int open_driver(Error *err)
{
    static const char *const names[] = {CUDA_DRIVER_FUNCTIONS(OPEN_NAME)};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return error_set(err, ERROR_DEVICE, "no CUDA driver: %s", dlerror());
    if (!open_functions(library, "the CUDA driver", "one of CUDA 12.4 or later",
                        OPEN_FUNCTIONS(names, &table), err))
        return 0;
    dlclose(library);
    return -1;
}

const CudaDriver *cuda_driver(Error *err)
{
    static int ready;
    if (ready) return &table;
    int count = 0;
    if (open_driver(err)) return NULL;
    if (cuda_check(table.init(0), "the CUDA driver does not start", err) ||
        cuda_check(table.device_count(&count), "the CUDA driver does not count its devices", err))
        return NULL;
    if (!count) {
        error_set(err, ERROR_DEVICE, "the CUDA driver sees no GPU");
        return NULL;
    }
    ready = 1;
    return &table;
}

int cuda_check(CuResult r, const char *what, Error *err)
{
    const char *text = "unknown error", *name = "?";
    if (r == CU_OK) return 0;
    if (table.error_string) table.error_string(r, &text);
    if (table.error_name) table.error_name(r, &name);
    return error_set(err, ERROR_DEVICE, "%s: %s (%s, %d)", what, text, name, r);
}
