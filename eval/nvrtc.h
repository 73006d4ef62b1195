/* NVIDIA's run-time compiler, opened with dlopen: one build runs with and without a CUDA toolkit.
 * Only quern-compile uses it; everyone else talks to that process through eval/compile.h. */
#ifndef EVAL_NVRTC_H
#define EVAL_NVRTC_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

enum {
    NVRTC_MAX_PTX = 8 << 20,
    NVRTC_MAX_CUBIN = 32 << 20,
    NVRTC_MAX_LOG = 64 << 10,
    NVRTC_MAX_REPLY = NVRTC_MAX_PTX + NVRTC_MAX_CUBIN + (1 << 20)
};

typedef struct Nvrtc Nvrtc;

/* Looks in $CUDA_HOME, /usr/local/cuda, <directory of the program>/../cuda, and where the system's
 * loader looks. */
int nvrtc_open(Nvrtc **out, Error *err);
const char *nvrtc_version(const Nvrtc *n);      /* "NVRTC 13.0" */
const char *nvrtc_include_dir(const Nvrtc *n);  /* of the same toolkit; "" when there is none */

typedef struct {
    const char *arch;                           /* "sm_90" */
    const char *source;
    int n_headers;
    const char *const *header_names, *const *header_texts;
    int n_names;
    const char *const *names;                   /* name expressions of the kernels wanted */
} NvrtcJob;

/* Compile, and write the reply (compile_wire.h) to out. */
void nvrtc_compile(Nvrtc *n, const NvrtcJob *job, Buffer *out);

/* The flags that every compilation has beside its arch: part of a cache's keys. */
void nvrtc_flags(Buffer *out);

#endif
