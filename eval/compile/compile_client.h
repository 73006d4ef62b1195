/* Compiling candidates: a client of quern-compile, a process of its own that holds NVRTC and
 * compiles each source in a caged child, and a cache of what came out, by content. */
#ifndef EVAL_COMPILE_COMPILE_CLIENT_H
#define EVAL_COMPILE_COMPILE_CLIENT_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct Compiler Compiler;

typedef struct {
    const char *cache_dir; /* NULL: no cache */
    size_t cache_bytes;    /* bound of its size; 0: 1 GiB */
    int cpu_s;             /* limit of one compilation; 0: 30 */
} CompilerOptions;

/* Starts quern-compile without waiting until it is ready. */
int compiler_open(const CompilerOptions *opt, Compiler **out, Error *err);
void compiler_close(Compiler *c);
/* "NVRTC 13.0"; waits until the compiler is ready. NULL: it could not start. */
const char *compiler_version(Compiler *c, Error *err);

typedef struct {
    const char *arch; /* "sm_90" */
    const char *source;
    size_t len;
    int n_names;
    const char *const *names; /* kernels wanted, as C++ names them: "foo<float, 256>" */
} CompileRequest;

typedef struct {
    int ok;
    int bad_name;       /* not ok because names[bad_name] is no kernel of the source; else -1 */
    char message[1600]; /* not ok: why, for a model to read */
    int line;           /* of the first error, 0 unknown */
    int cached;
    char *ptx;
    size_t ptx_len;
    char *cubin;
    size_t cubin_len;
    char **lowered; /* n_names of them */
    int n_lowered;
} CompileResult;

/* 0 with a result, good or bad; -1: the compiler itself failed. Release in both cases. */
int compiler_run(Compiler *c, const CompileRequest *r, CompileResult *out, Error *err);
void compile_result_release(CompileResult *r);

/* Compiled in one process, used in another: the reply behind the last compiler_run that returned 0,
 * with the digest of all that decides it; and an offer of such a reply to the next compiler_run,
 * which takes it when it is what is asked for. */
const Buffer *compiler_reply(const Compiler *c, const char **key);
void compiler_offer(Compiler *c, const char *key, const void *reply, size_t len);

#endif
