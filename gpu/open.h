/* NVIDIA's libraries, opened at run time. One build runs with and without them, and with any
 * release that has the functions that it calls. */
#ifndef GPU_OPEN_H
#define GPU_OPEN_H

#include <stddef.h>

#include "base/error.h"

typedef struct {
    const char *name;
    void *slot; /* a function pointer's address */
} OpenSymbol;

/* Open the first of `files` (a NULL-terminated list) that loads, from $CUDA_HOME, the loader's path
 * or /usr/local/cuda, and fill in the symbols. The library stays open. */
int open_library(const char *const *files, const OpenSymbol *symbols, size_t n, Error *err);

/* Fill in the symbols of a library from dlopen. For the error: `name` is the library's, `expected`
 * the release that has all symbols, or "". */
int open_symbols(void *library, const char *name, const char *expected, const OpenSymbol *symbols,
                 size_t n, Error *err);

#endif
