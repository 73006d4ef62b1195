/* The texts are written for NVRTC. All C headers are one text. */
#include "eval/compile/prelude.h"

#include <stddef.h>
#include <string.h>

/* Declarations that nvcc provides and NVRTC does not. */
static const char prelude[] =
    "#ifndef QUERN_PRELUDE\n"
    "#define QUERN_PRELUDE\n"
    "using int8_t = signed char; using uint8_t = unsigned char;\n"
    "using int16_t = signed short; using uint16_t = unsigned short;\n"
    "using int32_t = signed int; using uint32_t = unsigned int;\n"
    "using int64_t = signed long long; using uint64_t = unsigned long long;\n"
    "using uchar = unsigned char; using ushort = unsigned short; using uint = unsigned int;\n"
    "using ulong = unsigned long; using intptr_t = int64_t; using uintptr_t = uint64_t;\n"
    "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif\n"
    "#ifndef NAN\n#define NAN __int_as_float(0x7fffffff)\n#endif\n"
    "#ifndef FLT_MAX\n#define FLT_MAX 3.402823466e+38f\n#define FLT_MIN 1.175494351e-38f\n"
    "#define FLT_EPSILON 1.192092896e-07f\n#endif\n"
    "#ifndef M_PI\n#define M_PI 3.14159265358979323846\n#define M_SQRT1_2 0.70710678118654752440\n"
    "#define M_SQRT2 1.41421356237309504880\n#define M_2_SQRTPI 1.12837916709551257390\n#define "
    "M_LOG2E "
    "1.4426950408889634074\n#endif\n"
    "#ifndef INT_MAX\n#define INT_MAX 2147483647\n#define INT_MIN (-2147483647 - 1)\n#define "
    "UINT_MAX 4294967295u\n"
    "#endif\n"
    "#endif\n";

/* Instead of the driver's interface, whose functions a device does not have. */
static const char driver_types[] =
    "#ifndef QUERN_DRIVER_TYPES\n#define QUERN_DRIVER_TYPES\n"
    "typedef unsigned long long CUdeviceptr;\n"
    "typedef struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; } CUtensorMap;\n"
    "#endif\n";

static const char *const prelude_names[] = {
    "quern_prelude.h", "math.h",   "cmath",    "stdint.h", "cstdint", "float.h",   "cfloat",
    "limits.h",        "climits",  "stddef.h", "cstddef",  "stdio.h", "cstdio",    "stdlib.h",
    "cstdlib",         "assert.h", "cassert",  "string.h", "cstring", "stdbool.h", "cuda.h"};

const char *prelude_name(int i)
{
    return i < (int)(sizeof prelude_names / sizeof *prelude_names) ? prelude_names[i] : NULL;
}

const char *prelude_text(const char *name)
{
    for (int i = 0; prelude_name(i); i++)
        if (!strcmp(prelude_names[i], name)) return strcmp(name, "cuda.h") ? prelude : driver_types;
    return NULL;
}
