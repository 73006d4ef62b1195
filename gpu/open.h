/* NVIDIA's libraries, opened at run time: one build runs with and without them, and with any
 * release that has the functions it calls. */
#ifndef GPU_OPEN_H
#define GPU_OPEN_H

#include <stddef.h>

#include "base/error.h"

typedef struct {
    const char *name;
    void *slot; /* a function pointer's address */
} OpenSymbol;

/* Open the first of `files` (NULL-terminated) that loads, looking in $CUDA_HOME, on the loader's
 * path and in /usr/local/cuda, and fill in its symbols. It stays open. */
int open_library(const char *const *files, const OpenSymbol *symbols, size_t n, Error *err);

/* Fill in the symbols of a library of dlopen; `name` and `expected` (what has them all) for the
 * error. */
int open_symbols(void *library, const char *name, const char *expected, const OpenSymbol *symbols,
                 size_t n, Error *err);

#endif
