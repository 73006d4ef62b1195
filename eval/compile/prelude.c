/* The texts are written for NVRTC. All C headers are one text. */
#include "eval/compile/prelude.h"

#include <stddef.h>
#include <string.h>

#include "base/embed.h"

EMBED(prelude_cuh, "eval/compile/prelude.cuh")
EMBED(driver_types_cuh, "eval/compile/driver_types.cuh")

static const char *const prelude_names[] = {
    "quern_prelude.h", "math.h",    "cmath",   "stdint.h", "cstdint", "float.h",
    "cfloat",          "limits.h",  "climits", "stddef.h", "cstddef", "stdio.h",
    "cstdio",          "stdlib.h",  "cstdlib", "assert.h", "cassert", "string.h",
    "cstring",         "stdbool.h", "cuda.h",  "algorithm"};

const char *prelude_name(int i)
{
    return i < (int)(sizeof prelude_names / sizeof *prelude_names) ? prelude_names[i] : NULL;
}

const char *prelude_text(const char *name)
{
    for (int i = 0; prelude_name(i); i++)
        if (!strcmp(prelude_names[i], name))
            return strcmp(name, "cuda.h") ? prelude_cuh : driver_types_cuh;
    return NULL;
}

#define STANDARD(name)                                         \
    {                                                          \
        name, "cuda/std/" name,                                \
            "#pragma once\n#include <cuda/std/" name ">\n"     \
            "namespace std { using namespace ::cuda::std; }\n" \
    }
static const PreludeStandard standards[] = {
    STANDARD("array"),  STANDARD("bit"),     STANDARD("complex"),     STANDARD("functional"),
    STANDARD("limits"), STANDARD("numeric"), STANDARD("optional"),    STANDARD("span"),
    STANDARD("tuple"),  STANDARD("utility"), STANDARD("type_traits"), STANDARD("initializer_list"),
};

const PreludeStandard *prelude_standard(const char *name)
{
    for (size_t i = 0; i < sizeof standards / sizeof *standards; i++)
        if (!strcmp(standards[i].name, name)) return &standards[i];
    return NULL;
}
