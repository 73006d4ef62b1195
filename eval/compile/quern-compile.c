/* quern-compile: the compiler process. With --serve, as compile_client.c starts it, it answers
 * requests on stdin, each in a sandboxed child. Without --serve it prints the PTX of one file. */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "eval/candidate/candidate.h"
#include "eval/compile/compile_client.h"
#include "eval/compile/headers.h"
#include "eval/compile/heap.h"
#include "eval/compile/nvrtc_reply.h"
#include "eval/compile/sandbox.h"
#include "eval/compile/source_text.h"
#include "eval/compile/wire.h"

/* The compile server, quern-compile --serve: it loads NVRTC once, warms up with one kernel before the
 * first request that compiles, and serves each in a sandboxed child. The server's loop, and its
 * judgement of how a child ended. Nothing but a reply comes out of a child, and a child that was ended
 * from outside is never blamed on its source. */

enum { MAX_NAMES = 2048, MAX_REQUEST = 1 << 20, WALL_FACTOR = 3, WALL_EXTRA_S = 20 };
static const size_t memory_limit = (size_t)2 << 30;

typedef struct {
    Nvrtc *nvrtc;
    Headers *headers;
    Sandbox *sandbox;
    int warm; /* NVRTC has compiled in this process */
} Server;

typedef struct {
    char arch[32];
    char *source; /* NUL-terminated */
    char *names[MAX_NAMES];
    int n_names, cpu_s; /* 0 s: asks only for headers_taken */
} Request;

static void request_release(Request *r)
{
    free(r->source);
    for (int i = 0; i < r->n_names; i++) free(r->names[i]);
}

static int request_parse(const Buffer *b, Request *r, Error *err)
{
    WireCursor c = {b->data, b->data + b->len};
    const char *cpu, *arch, *text;
    size_t n_cpu, n_arch, n;
    memset(r, 0, sizeof *r);
    if (wire_get(&c, &cpu, &n_cpu) || wire_get(&c, &arch, &n_arch) || wire_get(&c, &text, &n))
        return error_set(err, ERROR_CORRUPT, "a torn request: expected cpu seconds, arch, source");
    char digits[16];
    snprintf(digits, sizeof digits, "%.*s", (int)n_cpu, cpu);
    r->cpu_s = atoi(digits);
    if (r->cpu_s < 0 || n_arch >= sizeof r->arch)
        return error_set(err, ERROR_CORRUPT, "a request with cpu limit \"%s\"", digits);
    memcpy(r->arch, arch, n_arch);
    r->source = memory_strndup(text, n);
    source_text_prepare(r->source, n);
    while (!wire_get(&c, &text, &n)) {
        if (r->n_names == MAX_NAMES)
            return error_set(err, ERROR_LIMIT, "a request for more than %d kernels", MAX_NAMES);
        r->names[r->n_names++] = memory_strndup(text, n);
    }
    return 0;
}

static void say(Buffer *out, const char *status, const char *sentence)
{
    buffer_clear(out);
    wire_puts(out, status);
    wire_puts(out, sentence);
}

/* The job for NVRTC, with the headers that the source includes. */
static NvrtcJob make_job(Server *s, const Request *r)
{
    NvrtcJob job = {.arch = r->arch,
                    .source = r->source,
                    .n_names = r->n_names,
                    .names = (const char *const *)r->names};
    job.n_headers = headers_collect(s->headers, r->source, strlen(r->source), &job.header_names,
                                    &job.header_texts);
    return job;
}

static _Noreturn void reply_and_end(const Buffer *out, int fd)
{
    size_t done = 0;
    while (done < out->len) {
        ssize_t n = write(fd, out->data + done, out->len - done);
        if (n <= 0 && errno != EINTR) break;
        if (n > 0) done += (size_t)n;
    }
    _exit(done < out->len);
}

/* In a child: compile in the sandbox, and write the reply to fd. */
static _Noreturn void compile_and_end(Server *s, const NvrtcJob *job, int cpu_s, int fd)
{
    Buffer out;
    Error err;
    size_t beyond = memory_limit - heap_room(); /* the range is mapped already */
    process_die_with_parent();
    int rc = sandbox_enter(s->sandbox, fd, cpu_s, beyond, &err);
    heap_begin();
    buffer_init(&out, NVRTC_MAX_REPLY);
    if (rc)
        say(&out, "failed", err.text);
    else
        nvrtc_reply(s->nvrtc, job, headers_none(s->headers), &out);
    reply_and_end(&out, fd);
}

/* Read what the child writes. Returns 1 when the deadline passed or the reply is too large. */
static int collect(int fd, double deadline, Buffer *out)
{
    char chunk[65536];
    for (;;) {
        double left = deadline - clock_seconds();
        struct pollfd p = {fd, POLLIN, 0};
        int ready = left > 0 ? poll(&p, 1, (int)(left * 1000) + 1) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return 1;
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        if (buffer_append(out, chunk, (size_t)n)) return 1;
    }
}

typedef struct {
    int status, overdue;
    double used_s; /* of CPU time */
} End;

/* The signals by which a broken compiler ends itself. */
static int is_crash(int signal_no)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        if (crashes[i] == signal_no) return 1;
    return 0;
}

/* Make a reply of an end without one. The source is blamed for a limit only when the child has used
 * its CPU time; the client then asks once more. A child that was killed earlier, or that a busy
 * machine did not let run, says nothing about the source. */
static void reply_for_end(const End *e, int cpu_s, Buffer *out)
{
    char text[200];
    int signal_no = WIFSIGNALED(e->status) ? WTERMSIG(e->status) : 0;
    int killed = e->overdue || (signal_no && !is_crash(signal_no));
    int late = signal_no == SIGXCPU || e->used_s >= cpu_s, full = out->full,
        blamed = !killed || full || late;
    if (WIFEXITED(e->status) && WEXITSTATUS(e->status) == 0 && out->len && !e->overdue) return;
    if (!blamed && e->overdue)
        snprintf(text, sizeof text, "it had %.1f s of CPU time in %d s: this machine is too busy",
                 e->used_s, WALL_FACTOR * cpu_s + WALL_EXTRA_S);
    else if (!blamed)
        snprintf(text, sizeof text,
                 "it was ended from outside by signal %d, after %.1f s of CPU time", signal_no,
                 e->used_s);
    else if (killed)
        snprintf(text, sizeof text, "compiling took more than %d s of CPU time or too much output",
                 cpu_s);
    else
        snprintf(text, sizeof text,
                 "the compiler crashed or needed more than %zu GiB of memory (%s %d)",
                 memory_limit >> 30, signal_no ? "signal" : "exit status",
                 signal_no ? signal_no : WEXITSTATUS(e->status));
    say(out, !blamed ? "failed" : killed && late && !full ? "time" : "limit", text);
}

/* Append what the compilation took. */
static void say_cost(const Server *s, const End *e, int cpu_s, Buffer *out)
{
    char text[32];
    snprintf(text, sizeof text, "%.2f", e->used_s);
    wire_puts(out, text);
    snprintf(text, sizeof text, "%d", cpu_s);
    wire_puts(out, text);
    wire_puts(out, headers_takes_cutlass(s->headers) ? headers_cutlass(s->headers) : "");
}

/* Wait for the end of a child, and note its CPU time. */
static void await(pid_t pid, End *e)
{
    struct rusage u = {0};
    while (wait4(pid, &e->status, 0, &u) < 0 && errno == EINTR) {
    }
    e->used_s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Fork a child for this job. Returns its pid; its reply comes from *fd. */
static pid_t fork_child(Server *s, const NvrtcJob *job, int cpu_s, int *fd, Error *err)
{
    int fds[2];
    if (pipe(fds)) return error_errno(err, "cannot make a pipe");
    pid_t pid = fork();
    if (pid == 0) compile_and_end(s, job, cpu_s, fds[1]);
    close(fds[1]);
    *fd = fds[0];
    if (pid > 0) return pid;
    close(fds[0]);
    return error_errno(err, "cannot fork");
}

static int compile_sandboxed(Server *s, const Request *r, Buffer *out, Error *err)
{
    int fd = -1;
    End end = {0};
    NvrtcJob job = make_job(s, r);
    int cpu_s = r->cpu_s * (headers_takes_cutlass(s->headers) ? WIRE_CUTLASS_FACTOR : 1);
    pid_t pid = fork_child(s, &job, cpu_s, &fd, err);
    if (pid < 0) return -1;
    buffer_clear(out);
    end.overdue = collect(fd, clock_seconds() + WALL_FACTOR * cpu_s + WALL_EXTRA_S, out);
    close(fd);
    if (end.overdue) kill(pid, SIGKILL);
    await(pid, &end);
    reply_for_end(&end, cpu_s, out);
    say_cost(s, &end, cpu_s, out);
    return 0;
}

/* Reply with headers_taken of the source, a part of the key of its result. */
static void say_taken(Server *s, const Request *r, Buffer *out)
{
    const char *const *names, *const *texts;
    headers_collect(s->headers, r->source, strlen(r->source), &names, &texts);
    say(out, "taken", headers_taken(s->headers));
}

/* Compile once in this process: NVRTC then has loaded all its libraries before children are forked. A
 * client that finds all its results in a cache never needs this. */
static int warm_up(Server *s, Error *err)
{
    char source[] = "__global__ void warm(float *x) { x[threadIdx.x] = expf(x[threadIdx.x]); }\n",
         kernel[] = "warm";
    Request own = {.arch = "sm_90", .source = source, .names = {kernel}, .n_names = 1};
    const char *status = "", *log = "";
    size_t len = 0;
    Buffer out;
    if (s->warm) return 0;
    buffer_init(&out, NVRTC_MAX_REPLY);
    NvrtcJob job = make_job(s, &own);
    nvrtc_reply(s->nvrtc, &job, headers_none(s->headers), &out);
    WireCursor c = {out.data, out.data + out.len};
    int rc = 0;
    s->warm = !wire_get(&c, &status, &len) && len == 2 && !memcmp(status, "ok", 2);
    if (!s->warm && !wire_get(&c, &log, &len))
        rc = error_set(err, ERROR_COMPILER, "%s cannot compile a kernel of one line: %.*s",
                       nvrtc_version(s->nvrtc), (int)len, log);
    buffer_release(&out);
    if (s->warm) heap_map();
    return rc;
}

static int start(Server *s, Error *err)
{
    if (nvrtc_open(&s->nvrtc, err)) return -1;
    const char *folders = getenv("QUERN_INCLUDE");
    char self[3000], cutlass[3100] = "";
    if (!process_self_dir(self, sizeof self, NULL))
        snprintf(cutlass, sizeof cutlass, "%s/../cutlass/include", self);
    if (headers_open(nvrtc_include_dir(s->nvrtc), folders ? folders : "", cutlass, &s->headers,
                     err))
        return -1;
    return sandbox_open(&s->sandbox, err);
}

static int answer(Server *s, const Buffer *frame, int out, Buffer *reply, Error *err)
{
    Request r;
    int rc = request_parse(frame, &r, err);
    if (!rc && !r.cpu_s)
        say_taken(s, &r, reply);
    else if (!rc)
        rc = warm_up(s, err) || compile_sandboxed(s, &r, reply, err) ? -1 : 0;
    request_release(&r);
    if (rc) say(reply, "failed", err->text);
    return wire_write_frame(out, reply->data, reply->len, err);
}

/* Serve until `in` ends. A failure to start is also sent to the client, in place of the hello. */
static int compile_server_run(int in, int out, Error *err)
{
    Server s = {0};
    Buffer frame, reply, flags;
    buffer_init(&frame, MAX_REQUEST);
    buffer_init(&reply, NVRTC_MAX_REPLY);
    buffer_init(&flags, 4096);
    setpgid(0, 0); /* Ctrl-C reaches only the client, which then closes the input */
    process_die_with_parent();
    signal(SIGPIPE, SIG_IGN);
    /* File names in PTX must not depend on the client's folder. */
    int rc = chdir("/") ? error_errno(err, "cannot change to /") : start(&s, err);
    say(&reply, rc ? "failed" : "hello", rc ? err->text : nvrtc_version(s.nvrtc));
    nvrtc_flags(&flags);
    wire_puts(&reply, flags.data);
    wire_puts(&reply, !rc && headers_named_folders(s.headers) ? "folders" : "");
    wire_puts(&reply, rc ? "" : headers_cutlass(s.headers));
    if (wire_write_frame(out, reply.data, reply.len, err)) rc = -1;
    int more = 1;
    while (!rc && more > 0) {
        more = wire_read_frame(in, MAX_REQUEST, 0, &frame, err);
        if (more > 0) rc = answer(&s, &frame, out, &reply, err);
    }
    if (s.headers) headers_close(s.headers);
    if (s.sandbox) sandbox_close(s.sandbox);
    free(s.nvrtc);
    buffer_release(&frame);
    buffer_release(&reply);
    buffer_release(&flags);
    return rc || more < 0 ? -1 : 0;
}

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
    int named = !candidate_parse(source->data, source->len, 1, &candidate, &unused);
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
