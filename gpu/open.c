/* The search for NVIDIA's libraries, and their symbols. */
#include "gpu/open.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* why: the loader's first error, about a file that exists or about the bare name. */
static void *open_first(const char *const *files, char *why, size_t size)
{
    static const char *const subdirs[] = {"lib64", "lib", "extras/CUPTI/lib64"};
    enum { SUBDIRS = sizeof subdirs / sizeof *subdirs };
    const char *home = getenv("CUDA_HOME"), *dirs[4];
    char path[4200];
    int n = 0;
    *why = 0;
    if (home && *home) dirs[n++] = home;
    dirs[n++] = "";
    dirs[n++] = "/usr/local/cuda";
    dirs[n++] = "/opt/cuda";
    for (int i = 0; i < n * SUBDIRS; i++) {
        const char *dir = dirs[i / SUBDIRS];
        if (!*dir && i % SUBDIRS) continue;
        for (int f = 0; files[f]; f++) {
            snprintf(path, sizeof path, "%.4000s%s%s%s%s", dir, *dir ? "/" : "",
                     *dir ? subdirs[i % SUBDIRS] : "", *dir ? "/" : "", files[f]);
            if (*dir && !file_exists(path)) continue;
            void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (library) return library;
            if (!*why) snprintf(why, size, "%s", dlerror());
        }
    }
    return NULL;
}

int open_functions(void *library, const char *name, const char *expected, const OpenFunctions *f,
                   Error *err)
{
    for (size_t i = 0; i < f->n; i++) {
        void *function = dlsym(library, f->names[i]);
        if (!function)
            return error_set(err, ERROR_DEVICE, "%s has no %s%s%s", name, f->names[i],
                             *expected ? ": expected " : "", expected);
        memcpy((char *)f->of + i * sizeof function, &function, sizeof function);
    }
    return 0;
}

int open_library(const char *const *files, const OpenFunctions *f, Error *err)
{
    char why[400];
    void *library = open_first(files, why, sizeof why);
    if (!library)
        return error_set(err, ERROR_DEVICE,
                         "no %s in $CUDA_HOME, on the loader's path, in /usr/local/cuda or in "
                         "/opt/cuda (%s)",
                         files[0], why);
    if (!open_functions(library, files[0], "", f, err)) return 0;
    dlclose(library);
    return -1;
}
