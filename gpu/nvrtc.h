/* NVIDIA's run-time compiler, opened with dlopen, so that one build runs with and without a CUDA
 * toolkit. Candidates are not trusted: the process quern-compile (eval/compile) compiles them. The
 * engine compiles its own kernels in its own process. */
#ifndef GPU_NVRTC_H
#define GPU_NVRTC_H

#include <stddef.h>

#include "base/error.h"

/* The first kernel of KernelBench's k3_44, 20 kernels of which most are products, has over 2 MiB of PTX
 * (2026-11-30). */
enum { NVRTC_MAX_PTX = 4 << 20, NVRTC_MAX_CUBIN = 32 << 20, NVRTC_MAX_LOG = 64 << 10 };

typedef struct Nvrtc Nvrtc;

/* Searches $CUDA_HOME, /usr/local/cuda, /opt/cuda, /usr/lib/cuda, <directory of the
 * program>/../cuda and the loader's path. */
int nvrtc_open(Nvrtc **out, Error *err);
void nvrtc_close(Nvrtc *n);                    /* the library stays loaded; NULL is allowed */
const char *nvrtc_version(const Nvrtc *n);     /* "NVRTC 13.0" */
const char *nvrtc_include_dir(const Nvrtc *n); /* of the same toolkit; "": unknown */

typedef struct {
    const char *arch; /* "sm_90"; from sm_90 on with the architecture's own instructions (sm_90a) */
    const char *name; /* the source's name in messages: "candidate.cu" */
    const char *source;
    int n_headers;
    const char *const *header_names, *const *header_texts;
    int n_options; /* without the arch; at most NVRTC_MAX_OPTIONS */
    const char *const *options;
    int n_names;
    const char *const *names; /* name expressions of kernels */
} NvrtcJob;

enum { NVRTC_MAX_OPTIONS = 15 };

typedef enum {
    NVRTC_DONE,
    NVRTC_REFUSED, /* the source has errors; log is the compiler's */
    NVRTC_LIMIT,   /* an output is too large; log is one sentence */
    NVRTC_BROKEN   /* the compiler failed; log is one sentence */
} NvrtcOutcome;

typedef struct {
    NvrtcOutcome outcome;
    char *log;         /* NUL-terminated, at most NVRTC_MAX_LOG bytes */
    char *ptx, *cubin; /* if DONE: NUL-terminated text, ELF */
    size_t ptx_len, cubin_len;
    char **lowered; /* if DONE: n_names lowered names, "" for a name that has none */
    int n_lowered;
} NvrtcOutput;

/* May run in several threads at once. The caller releases *out in all cases. */
NvrtcOutcome nvrtc_compile(const Nvrtc *n, const NvrtcJob *job, NvrtcOutput *out);
void nvrtc_output_release(NvrtcOutput *out);

/* The option for an architecture: "-arch=sm_90a" for "sm_90". */
void nvrtc_arch_option(const char *arch, char *out, size_t size);

#endif
