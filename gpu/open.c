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
    static const char *const subdirs[] = {"lib64", "lib"};
    const char *home = getenv("CUDA_HOME"), *dirs[3];
    char path[4200];
    int n = 0;
    *why = 0;
    if (home && *home) dirs[n++] = home;
    dirs[n++] = "";
    dirs[n++] = "/usr/local/cuda";
    for (int i = 0; i < n * 2; i++) {
        const char *dir = dirs[i / 2];
        if (!*dir && i % 2) continue;
        for (int f = 0; files[f]; f++) {
            snprintf(path, sizeof path, "%.4000s%s%s%s%s", dir, *dir ? "/" : "",
                     *dir ? subdirs[i % 2] : "", *dir ? "/" : "", files[f]);
            if (*dir && !file_exists(path)) continue;
            void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (library) return library;
            if (!*why) snprintf(why, size, "%s", dlerror());
        }
    }
    return NULL;
}

int open_symbols(void *library, const char *name, const char *expected, const OpenSymbol *symbols,
                 size_t n, Error *err)
{
    for (size_t i = 0; i < n; i++) {
        void *f = dlsym(library, symbols[i].name);
        if (!f)
            return error_set(err, ERROR_DEVICE, "%s has no %s%s%s", name, symbols[i].name,
                             *expected ? ": expected " : "", expected);
        memcpy(symbols[i].slot, &f, sizeof f);
    }
    return 0;
}

int open_library(const char *const *files, const OpenSymbol *symbols, size_t n, Error *err)
{
    char why[400];
    void *library = open_first(files, why, sizeof why);
    if (!library)
        return error_set(err, ERROR_DEVICE,
                         "no %s in $CUDA_HOME, on the loader's path or in /usr/local/cuda (%s)",
                         files[0], why);
    if (!open_symbols(library, files[0], "", symbols, n, err)) return 0;
    dlclose(library);
    return -1;
}
