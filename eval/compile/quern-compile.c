/* quern-compile: the compiler process. With --serve, as compile_client.c starts it, it answers
 * requests on stdin, each in a sandboxed child. Without --serve it prints the PTX of one file. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "eval/candidate/candidate.h"
#include "eval/compile/compile_client.h"
#include "eval/compile/compile_server.h"
#include "eval/compile/heap.h"

#ifndef __SANITIZE_ADDRESS__ /* which has a heap of its own */
void *malloc(size_t bytes)
{
    return heap_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return heap_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
    return heap_realloc(p, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    return heap_aligned(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return heap_aligned(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *p = heap_aligned(alignment, bytes);
    if (p) *out = p;
    return p ? 0 : ENOMEM;
}

void free(void *p)
{
    heap_free(p);
}
#endif

/* Compiles, with the kernels that the plan names, if there is one: a template has no code otherwise. */
static int compile(Compiler *c, const char *arch, const Buffer *source, CompileResult *r,
                   Error *err)
{
    Candidate candidate;
    Fault unused;
    int named = !candidate_parse_trusted(source->data, source->len, &candidate, &unused);
    const char **names = named ? plan_kernel_names(&candidate.plan) : NULL;
    CompileRequest request = {arch, source->data, source->len, named ? candidate.plan.n_kernels : 0,
                              names};
    int rc = compiler_run(c, &request, r, err);
    free(names);
    candidate_release(&candidate);
    return rc;
}

static int print_compiled(const char *arch, const Buffer *source, Error *err)
{
    Compiler *c;
    CompileResult r;
    if (compiler_open(&(CompilerOptions){0}, &c, err)) return -1;
    int rc = compile(c, arch, source, &r, err);
    if (!rc && !r.ok) rc = error_set(err, ERROR_INVALID, "%s", r.message);
    if (!rc) fwrite(r.ptx, 1, r.ptx_len, stdout);
    compile_result_release(&r);
    compiler_close(c);
    return rc;
}

static int read_source(const char *path, Buffer *out, Error *err)
{
    if (file_read_source(path, CANDIDATE_MAX_SOURCE, out, err)) return -1;
    return memchr(out->data, 0, out->len)
               ? error_set(err, ERROR_INVALID, "%s holds a NUL byte; expected text",
                           file_label(path))
               : 0;
}

static int print_ptx(const char *arch, const char *path, Error *err)
{
    Buffer source;
    buffer_init(&source, CANDIDATE_MAX_SOURCE + 1);
    int rc = read_source(path, &source, err) || print_compiled(arch, &source, err) ? -1 : 0;
    buffer_release(&source);
    return rc;
}

int main(int argc, char **argv)
{
    int serve = 0;
    const char *arch = "sm_90", *words[2];
    Flag flags[] = {
        {"arch", FLAG_TEXT, &arch, "what to compile for"},
        {"serve", FLAG_BOOL, &serve, "answer requests on stdin: for Quern's own programs"},
        {0}};
    FlagSpec spec = {.program = "quern-compile",
                     .synopsis = "[--arch sm_90] FILE.cu",
                     .about = "Compile one candidate as the evaluator does, and print its PTX. The "
                              "file - is standard input.",
                     .flags = flags,
                     .min_words = 0,
                     .max_words = 1};
    int n = flags_parse(&spec, argc, argv, words);
    Error err;
    if (serve && (n || flags_given("arch")))
        flags_usage_error(&spec, "--serve takes no other flag and no file");
    log_open("quern-compile");
    if (serve)
        return compile_server_run(STDIN_FILENO, STDOUT_FILENO, &err) ? EXIT_STATUS_FAILED
                                                                     : EXIT_STATUS_OK;
    if (n != 1) flags_usage_error(&spec, "expected one FILE.cu");
    if (print_ptx(arch, words[0], &err)) log_die(&err);
    return log_close(0);
}
