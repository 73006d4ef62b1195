/* The server's loop, and its judgement of how a child ended. Nothing but a reply comes out of a
 * child, and a child that was ended from outside is never blamed on its source. */
#include "eval/compile/compile_server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "eval/compile/headers.h"
#include "eval/compile/heap.h"
#include "eval/compile/nvrtc_reply.h"
#include "eval/compile/prefault.h"
#include "eval/compile/prefork.h"
#include "eval/compile/sandbox.h"
#include "eval/compile/source_text.h"
#include "eval/compile/wire.h"

enum { MAX_NAMES = 2048, MAX_REQUEST = 1 << 20, WALL_FACTOR = 3, WALL_EXTRA_S = 20 };
enum { IDLE_MS = 1000 };  /* without a request, after which the server warms up */
enum { LEARN_AFTER = 3 }; /* compilations: a server of a few needs no prefault */
static const size_t memory_limit = (size_t)2 << 30;

typedef struct {
    Nvrtc *nvrtc;
    Headers *headers;
    Sandbox *sandbox;
    Prefork *prefork; /* NULL: not warm */
    Prefault *prefault;
    int served;      /* compilations */
    int tells_early; /* NVRTC gave the PTX early when it warmed up */
    int to;          /* the client's end */
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

static int write_whole(const Buffer *out, int fd)
{
    size_t done = 0;
    while (done < out->len) {
        ssize_t n = write(fd, out->data + done, out->len - done);
        if (n <= 0 && errno != EINTR) break;
        if (n > 0) done += (size_t)n;
    }
    return done == out->len ? 0 : -1;
}

static _Noreturn void reply_and_end(const Buffer *out, int fd)
{
    _exit(write_whole(out, fd) ? 1 : 0);
}

/* of: the descriptor of the reply, which follows. */
static void write_early(void *of, const char *ptx, size_t len)
{
    Buffer out;
    buffer_init(&out, NVRTC_MAX_REPLY);
    if (wire_puts(&out, "ptx") || wire_put(&out, ptx, len) || write_whole(&out, *(int *)of))
        _exit(1);
    buffer_release(&out);
}

/* Enter the sandbox, or end with a reply that says why not. */
static void enter_sandbox(Server *s, int cpu_s, int fd)
{
    Buffer out;
    Error err;
    size_t beyond = memory_limit - heap_room(); /* the range is mapped already */
    if (!sandbox_enter(s->sandbox, fd, cpu_s, beyond, &err)) return;
    buffer_init(&out, NVRTC_MAX_REPLY);
    say(&out, "failed", err.text);
    reply_and_end(&out, fd);
}

static _Noreturn void compile_and_end(Server *s, const NvrtcJob *job, int fd)
{
    Buffer out;
    NvrtcJob told = *job;
    told.on_ptx = s->tells_early ? write_early : NULL;
    told.of = &fd;
    heap_begin();
    buffer_init(&out, NVRTC_MAX_REPLY);
    nvrtc_reply(s->nvrtc, &told, headers_none(s->headers), &out);
    reply_and_end(&out, fd);
}

/* Compile in a preforked child. Its CPU limit is raised by the time that it has used before.
 * Headers are collected inside the sandbox, where none can be read: the server found none for this
 * source. */
static void prefork_child(void *context, const Buffer *frame, double used_s, int fd)
{
    Server *s = context;
    Request r;
    if (request_parse(frame, &r, NULL)) _exit(1);
    enter_sandbox(s, r.cpu_s + (int)(used_s + 0.5), fd);
    NvrtcJob job = make_job(s, &r);
    compile_and_end(s, &job, fd);
}

/* The length of a complete early message at the beginning of what a child has written; 0: there is
 * none, or not all of it. *begun: the beginning of one. */
static size_t early_length(const Buffer *out, int *begun)
{
    WireCursor c = {out->data, out->data + out->len};
    const char *word, *ptx;
    size_t n;
    *begun = !wire_get(&c, &word, &n) && n == 3 && !memcmp(word, "ptx", 3);
    return *begun && !wire_get(&c, &ptx, &n) ? (size_t)(c.p - out->data) : 0;
}

/* Leave the reply alone in `out`. */
static void drop_early(Buffer *out)
{
    int begun;
    size_t n = early_length(out, &begun);
    if (!begun) return;
    if (!n) n = out->len;
    memmove(out->data, out->data + n, out->len - n);
    out->len -= n;
    out->full |= out->len > NVRTC_MAX_REPLY;
}

/* Read what the child writes, and send an early message on at once. Returns 1 when the deadline passed
 * or the reply is too large. A client that does not read meets that again with the reply. */
static int collect(int fd, int client, double deadline, Buffer *out)
{
    char chunk[65536];
    for (int sent = 0, begun;;) {
        size_t early = sent ? 0 : early_length(out, &begun);
        if (early) {
            wire_write_frame(client, out->data, early, NULL);
            sent = 1;
        }
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

/* Wait for the end of a child, and note its CPU time. */
static void await(pid_t pid, End *e)
{
    struct rusage u = {0};
    while (wait4(pid, &e->status, 0, &u) < 0 && errno == EINTR) {
    }
    e->used_s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Fork a child for this request. Returns its pid; its reply comes from *fd. */
static pid_t fork_child(Server *s, const Request *r, const NvrtcJob *job, int *fd, Error *err)
{
    int fds[2];
    if (pipe(fds)) return error_errno(err, "cannot make a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        process_die_with_parent();
        enter_sandbox(s, r->cpu_s, fds[1]);
        compile_and_end(s, job, fds[1]);
    }
    close(fds[1]);
    *fd = fds[0];
    if (pid > 0) return pid;
    close(fds[0]);
    return error_errno(err, "cannot fork");
}

static int compile_sandboxed(Server *s, const Request *r, const Buffer *frame, Buffer *out,
                             Error *err)
{
    int fd;
    End end = {0};
    NvrtcJob job = make_job(s, r);
    pid_t pid = headers_none(s->headers) ? prefork_take(s->prefork, frame, &fd) : 0;
    if (!pid) pid = fork_child(s, r, &job, &fd, err);
    if (pid < 0) return -1;
    buffer_clear(out);
    end.overdue = collect(fd, s->to, clock_seconds() + WALL_FACTOR * r->cpu_s + WALL_EXTRA_S, out);
    close(fd);
    drop_early(out);
    s->served++;
    if (end.overdue) kill(pid, SIGKILL);
    await(pid, &end);
    reply_for_end(&end, r->cpu_s, out);
    return 0;
}

/* Reply with headers_taken of the source, a part of the key of its result. */
static void say_taken(Server *s, const Request *r, Buffer *out)
{
    const char *const *names, *const *texts;
    headers_collect(s->headers, r->source, strlen(r->source), &names, &texts);
    say(out, "taken", headers_taken(s->headers));
}

static void note_early(void *of, const char *ptx, size_t len)
{
    buffer_append(of, ptx, len);
}

/* The reply has the PTX that was told early. */
static int is_as_told(const Buffer *reply, const Buffer *early)
{
    WireCursor c = {reply->data, reply->data + reply->len};
    const char *field = NULL;
    size_t n = 0;
    for (int i = 0; i < 3; i++) /* status, log, PTX */
        if (wire_get(&c, &field, &n)) return 0;
    return n && n == early->len && !memcmp(field, early->data, n);
}

/* Compile a source of the server's own in this process, whose kernel is `warm`. */
static void compile_own(Server *s, const char *source, Buffer *out, Buffer *early)
{
    const char *const *names, *const *texts, *kernel = "warm";
    int n = headers_collect(s->headers, source, strlen(source), &names, &texts);
    NvrtcJob job = {.arch = "sm_90",
                    .source = source,
                    .n_headers = n,
                    .header_names = names,
                    .header_texts = texts,
                    .n_names = 1,
                    .names = &kernel,
                    .on_ptx = note_early,
                    .of = early};
    nvrtc_reply(s->nvrtc, &job, headers_none(s->headers), out);
}

/* A common kernel: a reduction by a block. */
static void compile_common(void *of)
{
    static const char source[] =
        "__global__ void warm(const float *x, float *y, int n)\n{\n"
        "    __shared__ float part[32];\n    float sum = 0.0f;\n"
        "    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(x[i]) / (1 + x[i]);\n"
        "    for (int k = 16; k; k /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, k);\n"
        "    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;\n    __syncthreads();\n"
        "    sum = part[threadIdx.x % 32];\n"
        "    float4 v = reinterpret_cast<const float4 *>(x)[threadIdx.x];\n"
        "    y[threadIdx.x] = sum + v.x * v.y + v.z * v.w;\n}\n";
    Buffer out, early;
    buffer_init(&out, NVRTC_MAX_REPLY);
    buffer_init(&early, NVRTC_MAX_PTX);
    compile_own(of, source, &out, &early);
    buffer_release(&out);
    buffer_release(&early);
}

/* In a child that waits for its request. */
static void touch_pages(void *of)
{
    const Server *s = of;
    prefault_touch(s->prefault);
}

/* Compile once in this process: NVRTC then has loaded all its libraries before children are forked.
 */
static int warm_up(Server *s, Error *err)
{
    static const char source[] =
        "__global__ void warm(float *x) { x[threadIdx.x] = expf(x[threadIdx.x]); }\n";
    const char *status = "";
    size_t len = 0;
    Buffer out, early;
    buffer_init(&out, NVRTC_MAX_REPLY);
    buffer_init(&early, NVRTC_MAX_PTX);
    compile_own(s, source, &out, &early);
    s->tells_early = is_as_told(&out, &early);
    WireCursor c = {out.data, out.data + out.len};
    int rc = 0;
    if (wire_get(&c, &status, &len) || len != 2 || memcmp(status, "ok", 2)) {
        const char *log = "";
        wire_get(&c, &log, &len);
        rc = error_set(err, ERROR_COMPILER, "%s cannot compile a kernel of one line: %.*s",
                       nvrtc_version(s->nvrtc), (int)len, log);
    }
    buffer_release(&out);
    buffer_release(&early);
    return rc;
}

static int start(Server *s, Error *err)
{
    if (nvrtc_open(&s->nvrtc, err)) return -1;
    const char *folders = getenv("QUERN_INCLUDE");
    if (headers_open(nvrtc_include_dir(s->nvrtc), folders ? folders : "", &s->headers, err))
        return -1;
    return sandbox_open(&s->sandbox, err);
}

/* A client that finds all its results in a cache never needs this. */
static int be_warm(Server *s, Error *err)
{
    if (s->prefork) return 0;
    if (warm_up(s, err)) return -1;
    heap_map();
    s->prefault = prefault_open();
    s->prefork = prefork_open(prefork_child, touch_pages, s);
    return 0;
}

/* Use the time before the first request, when it is long, and before each later one. A failure is
 * the reply to the request that meets it again. */
static void prepare(Server *s, int in)
{
    struct pollfd p = {in, POLLIN, 0};
    if (!s->prefork && !poll(&p, 1, IDLE_MS)) be_warm(s, NULL);
    if (!s->prefork) return;
    if (s->served == LEARN_AFTER) {
        s->served++;
        prefault_learn(s->prefault, compile_common, s);
    }
    prefork_fork(s->prefork);
    prefault_wait(s->prefault, in);
}

static int answer(Server *s, const Buffer *frame, int out, Buffer *reply, Error *err)
{
    Request r;
    int rc = request_parse(frame, &r, err);
    if (!rc && !r.cpu_s)
        say_taken(s, &r, reply);
    else if (!rc && !(rc = be_warm(s, err)))
        rc = compile_sandboxed(s, &r, frame, reply, err);
    request_release(&r);
    if (rc) say(reply, "failed", err->text);
    return wire_write_frame(out, reply->data, reply->len, err);
}

int compile_server_run(int in, int out, Error *err)
{
    Server s = {.to = out};
    Buffer frame, reply, flags;
    buffer_init(&frame, MAX_REQUEST);
    buffer_init(&reply, NVRTC_MAX_REPLY + NVRTC_MAX_PTX); /* with an early message */
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
    if (wire_write_frame(out, reply.data, reply.len, err)) rc = -1;
    int more = 1;
    while (!rc && more > 0) {
        prepare(&s, in); /* while the client handles the reply */
        more = wire_read_frame(in, MAX_REQUEST, 0, &frame, err);
        if (more > 0) rc = answer(&s, &frame, out, &reply, err);
    }
    if (s.prefork) prefork_close(s.prefork);
    if (s.prefault) prefault_close(s.prefault);
    if (s.headers) headers_close(s.headers);
    if (s.sandbox) sandbox_close(s.sandbox);
    free(s.nvrtc);
    buffer_release(&frame);
    buffer_release(&reply);
    buffer_release(&flags);
    return rc || more < 0 ? -1 : 0;
}
