/* NVIDIA's run-time compiler, opened with dlopen: one build runs with and without a CUDA toolkit.
 * Candidates, which are not trusted, are compiled by the process quern-compile (eval/); the engine
 * compiles its own kernels itself. */
#ifndef GPU_NVRTC_H
#define GPU_NVRTC_H

#include <stddef.h>

#include "base/error.h"

enum { NVRTC_MAX_PTX = 8 << 20, NVRTC_MAX_CUBIN = 32 << 20, NVRTC_MAX_LOG = 64 << 10 };

typedef struct Nvrtc Nvrtc;

/* Looks in $CUDA_HOME, /usr/local/cuda, <directory of the program>/../cuda, and where the system's
 * loader looks. */
int nvrtc_open(Nvrtc **out, Error *err);
void nvrtc_close(Nvrtc *n);                    /* the library stays loaded; NULL is none */
const char *nvrtc_version(const Nvrtc *n);     /* "NVRTC 13.0" */
const char *nvrtc_include_dir(const Nvrtc *n); /* of the same toolkit; "" when there is none */

typedef struct {
    const char *arch; /* "sm_90"; from there on with the architecture's own instructions (sm_90a) */
    const char *name; /* of the source, in messages: "candidate.cu" */
    const char *source;
    int n_headers;
    const char *const *header_names, *const *header_texts;
    int n_options; /* beside the arch; at most NVRTC_MAX_OPTIONS */
    const char *const *options;
    int n_names;
    const char *const *names; /* name expressions of the kernels wanted */
} NvrtcJob;

enum { NVRTC_MAX_OPTIONS = 15 };

typedef enum {
    NVRTC_DONE,
    NVRTC_REFUSED, /* the source is wrong: log says where */
    NVRTC_LIMIT,   /* too large: log is one sentence */
    NVRTC_BROKEN   /* the compiler failed: log is one sentence */
} NvrtcOutcome;

typedef struct {
    NvrtcOutcome outcome;
    char *log;         /* NUL-terminated, at most NVRTC_MAX_LOG bytes */
    char *ptx, *cubin; /* DONE: NUL-terminated text, ELF */
    size_t ptx_len, cubin_len;
    char **lowered; /* DONE: n_names of them, "" for a name that has none */
    int n_lowered;
} NvrtcOutput;

/* May run in several threads at once. Release in all cases. */
NvrtcOutcome nvrtc_compile(const Nvrtc *n, const NvrtcJob *job, NvrtcOutput *out);
void nvrtc_output_release(NvrtcOutput *out);

/* "-arch=sm_90a" of "sm_90": the option that a job's arch becomes. */
void nvrtc_arch_option(const char *arch, char *out, size_t size);

#endif
