/* The stand-ins for NVIDIA's libraries in tests/fixtures/cuda, compiled into the test's folder. */
#ifndef TESTS_GPU_FIXTURES_H
#define TESTS_GPU_FIXTURES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "tests/fixture_path.h"

/* Compile tests/fixtures/cuda/SOURCE to DIR/NAME and load it, so that the loader finds it by its
 * name. Returns 0 or -1. */
static inline int fixture_build(const char *source, const char *dir, const char *name)
{
    const char *cc = getenv("QUERN_CC");
    if (file_mkdirs(dir, NULL)) return -1;
    char *command = memory_printf(
        "%s -std=c11 -D_GNU_SOURCE -w -O1 -fPIC -shared -Wl,-soname,%s '-I%s' -o '%s/%s' "
        "'%s/tests/fixtures/cuda/%s'",
        cc && *cc ? cc : "gcc", name, fixture_path("."), dir, name, fixture_path("."), source);
    int rc = system(command);
    free(command);
    return rc ? -1 : 0;
}

#endif
