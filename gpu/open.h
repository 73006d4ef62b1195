/* NVIDIA's libraries, opened at run time. One build runs with and without them, and with any
 * release that has the functions that it calls. */
#ifndef GPU_OPEN_H
#define GPU_OPEN_H

#include <stddef.h>

#include "base/error.h"

/* A library's functions are a list of X(exported, name, (arguments)), which return an int, and of TEXT(...),
 * which return a text. The list makes the first members of a structure, and their exported names. */
#define OPEN_INT(exported, name, arguments) int(*name) arguments;
#define OPEN_TEXT(exported, name, arguments) const char *(*name)arguments;
#define OPEN_NAME(exported, name, arguments) #exported,

/* The functions that a structure begins with, in the order of their names. */
typedef struct {
    const char *const *names;
    size_t n;
    void *of;
} OpenFunctions;
#define OPEN_FUNCTIONS(names, structure)               \
    &(const OpenFunctions)                             \
    {                                                  \
        names, sizeof names / sizeof *names, structure \
    }

/* Opens the first of `files` (a NULL-terminated list) that loads, from $CUDA_HOME, the loader's path,
 * /usr/local/cuda or /opt/cuda, and fills in the functions. The library stays open. */
int open_library(const char *const *files, const OpenFunctions *f, Error *err);

/* Fills in functions of a library from dlopen. For the error: `name` is the library's, `expected` the release
 * that has all of them, or "". */
int open_functions(void *library, const char *name, const char *expected, const OpenFunctions *f,
                   Error *err);

#endif
