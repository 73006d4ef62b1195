/* Compile candidates: a client of the process quern-compile, which holds NVRTC and compiles each
 * source in a sandboxed child, and a cache of its replies by content. */
#ifndef EVAL_COMPILE_COMPILE_CLIENT_H
#define EVAL_COMPILE_COMPILE_CLIENT_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct Compiler Compiler;

typedef struct {
    const char *cache_dir; /* NULL: no cache */
    size_t cache_bytes;    /* bound of the cache's size; 0: 1 GiB */
    int cpu_s; /* limit of one compilation in CPU seconds; 0: $COMPILE_S, else 10; one more
                              for each 16 KiB of the source; three times that with CUTLASS; one that
                              uses it up is compiled again, within 0.7 of it */
} CompilerOptions;

/* Start quern-compile without waiting until it is ready. */
int compiler_open(const CompilerOptions *opt, Compiler **out, Error *err);
void compiler_close(Compiler *c);
/* "NVRTC 13.0". Waits until the compiler is ready; NULL when it cannot start. */
const char *compiler_version(Compiler *c, Error *err);

typedef struct {
    const char *arch; /* "sm_90" */
    const char *source;
    size_t len;
    int n_names;
    const char *const *names; /* of the requested kernels, in C++: "foo<float, 256>" */
    int half;                 /* of the limit is allowed: op lines take the rest */
    int keep;                 /* the reply in memory, where there is no cache: others ask for it */
} CompileRequest;

typedef struct {
    int ok;
    int bad_name;       /* not ok, because names[bad_name] is no kernel of the source; else -1 */
    char message[1600]; /* when not ok: the reason, for a model to read */
    int line;           /* of the first error, 0 unknown */
    int limited;        /* not ok, because a limit was reached */
    int cached;         /* the reply was not compiled now */
    double cpu_s;       /* CPU seconds that the compilation took, when it was made */
    char library[32];   /* "CUTLASS 4.2.0", which the source includes; else "" */
    char *ptx;
    size_t ptx_len;
    char *cubin;
    size_t cubin_len;
    char **lowered; /* the mangled names, in the order of the request */
    int n_lowered;
} CompileResult;

/* Returns 0 with a result, ok or not; -1 when the compiler process failed, which says nothing about
 * the source. Release in both cases. */
int compiler_run(Compiler *c, const CompileRequest *r, CompileResult *out, Error *err);
void compile_result_release(CompileResult *r);

/* Move a reply from one process to another. compiler_reply: the reply of the last compiler_run that
 * returned 0, with the digest of everything that decides it. compiler_offer: give such a reply to
 * the next compiler_run, which uses it when its request has the same digest. */
const Buffer *compiler_reply(const Compiler *c, const char **key);
void compiler_offer(Compiler *c, const char *key, const void *reply, size_t len);

#endif
