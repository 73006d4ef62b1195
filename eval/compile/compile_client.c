/* The client side of eval/compile/wire.h. A server that dies is started again once per request.
 * Only replies that depend on the request alone are cached. */
#include "eval/compile/compile_client.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cache.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "eval/compile/entries.h"
#include "eval/compile/nvrtc_reply.h"
#include "eval/compile/wire.h"

/* Replies of the compiler in memory, by key. The oldest go when there are too many, or too many bytes.
 * A list, the oldest first. */

typedef struct Replies Replies;

typedef struct {
    char key[DIGEST_HEX];
    char *data;
    size_t len;
} Reply;

struct Replies {
    Reply *list;
    int n, max;
    size_t bytes, max_bytes;
};

static Replies *replies_open(int max, size_t max_bytes)
{
    Replies *r = memory_alloc(sizeof *r);
    r->list = memory_array((size_t)max + 1, sizeof *r->list);
    r->max = max;
    r->max_bytes = max_bytes;
    return r;
}

static int find(const Replies *r, const char *key)
{
    for (int i = r->n - 1; i >= 0; i--)
        if (!strcmp(r->list[i].key, key)) return i;
    return -1;
}

static void drop(Replies *r, int i)
{
    r->bytes -= r->list[i].len;
    free(r->list[i].data);
    r->n--;
    memmove(&r->list[i], &r->list[i + 1], (size_t)(r->n - i) * sizeof *r->list);
}

/* NULL is allowed */
static void replies_close(Replies *r)
{
    if (!r) return;
    while (r->n) drop(r, r->n - 1);
    free(r->list);
    free(r);
}

static void replies_put(Replies *r, const char *key, const void *reply, size_t len)
{
    int old = find(r, key);
    if (old >= 0) drop(r, old);
    if (len > r->max_bytes) return;
    while (r->n == r->max || r->bytes + len > r->max_bytes) drop(r, 0);
    Reply *x = &r->list[r->n++];
    snprintf(x->key, sizeof x->key, "%s", key);
    x->data = memory_strndup(reply, len);
    x->len = len;
    r->bytes += len;
}

/* Returns 1 with the reply of a key in *out. */
static int replies_find(const Replies *r, const char *key, Buffer *out)
{
    int i = find(r, key);
    if (i < 0) return 0;
    buffer_clear(out);
    return !buffer_append(out, r->list[i].data, r->list[i].len);
}

enum { START_TIMEOUT_S = 60, DEFAULT_CPU_S = 10, MOST_CPU_S = 600, MAX_ERRORS_SHOWN = 3 };
/* A long source has more time: 99 KB of a network's generated kernels took 2.3 s of CPU time on an idle
 * machine and over 5 s on the host of an H200 beside three others (k3_19, 2026-11-30). */
enum { BYTES_A_SECOND = 16 << 10 };
enum { OFFERS = 3, KEPT = 256, KEPT_BYTES = 48 << 20 };

struct Compiler {
    Cache *cache;
    int cpu_s;
    pid_t pid; /* of quern-compile; 0: not running */
    int to, from;
    char version[64], flags[512]; /* "" until the hello was read */
    char cutlass[32];
    int folders; /* the user named folders of headers, so results depend on them */
    Buffer frame, reply;
    char key[DIGEST_HEX]; /* of the last request */
    Replies *offers, *kept;
};

/* NVRTC orders some of its work by addresses: the PTX of a large kernel differs between processes whose
 * libraries and heap lie elsewhere. Where the system refuses, sources are compiled all the same. */
static void fix_addresses(void)
{
    int now = personality(0xffffffff);
    if (now >= 0) personality((unsigned long)now | ADDR_NO_RANDOMIZE);
}

static _Noreturn void become_server(const char *path, int in, int out)
{
    process_die_with_parent();
    fix_addresses();
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || fcntl(0, F_SETFD, 0))
        _exit(127); /* F_SETFD: `in` itself is 0 when 0 was closed */
    execl(path, path, "--serve", (char *)NULL);
    _exit(127);
}

static int start_server(Compiler *c, Error *err)
{
    char path[4096];
    int in[2], out[2];
    if (process_find_program("quern-compile", path, sizeof path, err)) return -1;
    if (pipe2(in, O_CLOEXEC)) return error_errno(err, "cannot make pipes for quern-compile");
    if (pipe2(out, O_CLOEXEC)) {
        close(in[0]);
        close(in[1]);
        return error_errno(err, "cannot make pipes for quern-compile");
    }
    pid_t pid = fork();
    if (pid == 0) become_server(path, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    if (pid < 0) {
        close(in[1]);
        close(out[0]);
        return error_errno(err, "cannot fork for quern-compile");
    }
    c->pid = pid;
    c->to = in[1];
    c->from = out[0];
    return 0;
}

static void stop_server(Compiler *c)
{
    if (!c->pid) return;
    close(c->to);
    close(c->from);
    kill(c->pid, SIGKILL);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    c->pid = 0;
    c->version[0] = 0; /* the next one says hello again */
}

/* Returns the limit in CPU seconds, or -1. */
static int limit_of(const CompilerOptions *opt, Error *err)
{
    const char *text = getenv("COMPILE_S");
    char *end;
    if (opt->cpu_s || !text || !*text) return opt->cpu_s ? opt->cpu_s : DEFAULT_CPU_S;
    long s = strtol(text, &end, 10);
    if (s > 0 && s <= MOST_CPU_S && !*end) return (int)s;
    return error_set(err, ERROR_USAGE, "COMPILE_S: expected CPU seconds from 1 to %d, found \"%s\"",
                     MOST_CPU_S, text);
}

int compiler_open(const CompilerOptions *opt, Compiler **out, Error *err)
{
    int cpu_s = limit_of(opt, err);
    if (cpu_s < 0) return -1;
    Compiler *c = memory_alloc(sizeof *c);
    c->cpu_s = cpu_s;
    if (opt->cache_dir)
        c->cache =
            cache_open(opt->cache_dir, opt->cache_bytes ? opt->cache_bytes : CACHE_FOLDER_BYTES);
    buffer_init(&c->frame, 1 << 20);
    buffer_init(&c->reply, NVRTC_MAX_REPLY);
    c->offers = replies_open(OFFERS, SIZE_MAX);
    c->kept = replies_open(KEPT, KEPT_BYTES);
    signal(SIGPIPE, SIG_IGN); /* a dead compiler is then an error of write */
    if (start_server(c, err)) {
        compiler_close(c);
        return -1;
    }
    *out = c;
    return 0;
}

void compiler_close(Compiler *c)
{
    stop_server(c);
    if (c->cache) cache_close(c->cache);
    buffer_release(&c->frame);
    buffer_release(&c->reply);
    replies_close(c->offers);
    replies_close(c->kept);
    free(c);
}

static void field_text(WireCursor *cursor, char *out, size_t size)
{
    const char *p = "";
    size_t n = 0;
    if (wire_get(cursor, &p, &n)) n = 0;
    snprintf(out, size, "%.*s", (int)n, p);
}

const char *compiler_version(Compiler *c, Error *err)
{
    char status[16], text[900];
    if (c->version[0]) return c->version;
    if (!c->pid && start_server(c, err)) return NULL;
    int rc = wire_read_frame(c->from, NVRTC_MAX_REPLY, START_TIMEOUT_S, &c->reply, err);
    if (rc == 0) error_set(err, ERROR_COMPILER, "quern-compile ended before it was ready");
    if (rc > 0) {
        WireCursor cursor = {c->reply.data, c->reply.data + c->reply.len};
        field_text(&cursor, status, sizeof status);
        field_text(&cursor, text, sizeof text);
        if (!strcmp(status, "hello")) {
            snprintf(c->version, sizeof c->version, "%.60s", text);
            field_text(&cursor, c->flags, sizeof c->flags);
            field_text(&cursor, text, sizeof text);
            c->folders = *text != 0;
            field_text(&cursor, c->cutlass, sizeof c->cutlass);
            return c->version;
        }
        error_set(err, ERROR_COMPILER, "the compiler cannot start: %s", text);
    }
    stop_server(c);
    return NULL;
}

/* taken: the digest of the headers from named folders (headers_taken), "" for none. */
static void request_key(const Compiler *c, const CompileRequest *r, const char *taken,
                        char key[DIGEST_HEX])
{
    Digester d;
    Digest digest;
    digester_init(&d);
    digester_add_field(&d, c->version, strlen(c->version));
    digester_add_field(&d, c->flags, strlen(c->flags));
    digester_add_field(&d, r->arch, strlen(r->arch));
    digester_add_field(&d, r->source, r->len);
    for (int i = 0; i < r->n_names; i++) digester_add_field(&d, r->names[i], strlen(r->names[i]));
    /* The version of the rules in headers.c and source_text.c. Change it with them. */
    static const char rules[] = "headers 6";
    if (memmem(r->source, r->len, "include", 7) || memmem(r->source, r->len, "#line", 5)) {
        digester_add_field(&d, rules, strlen(rules));
        digester_add_field(&d, c->cutlass, strlen(c->cutlass));
    }
    if (*taken) {
        static const char mark[] = "taken from folders"; /* cannot be a kernel's name */
        digester_add_field(&d, mark, strlen(mark));
        digester_add_field(&d, taken, strlen(taken));
    }
    digester_finish(&d, &digest);
    digest_hex(&digest, key);
}

static int ask(Compiler *c, const CompileRequest *r, int cpu_s, Error *err)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%d", cpu_s);
    buffer_clear(&c->frame);
    int rc = wire_puts(&c->frame, digits) || wire_puts(&c->frame, r->arch) ||
             wire_put(&c->frame, r->source, r->len);
    for (int i = 0; i < r->n_names && !rc; i++) rc = wire_puts(&c->frame, r->names[i]);
    if (rc)
        return error_set(err, ERROR_LIMIT,
                         "a source of %zu bytes is too large to send to the compiler", r->len);
    if (wire_write_frame(c->to, c->frame.data, c->frame.len, err)) return -1;
    rc = wire_read_frame(c->from, NVRTC_MAX_REPLY,
                         4.0 * WIRE_CUTLASS_FACTOR * cpu_s + START_TIMEOUT_S, &c->reply, err);
    if (!rc) error_set(err, ERROR_COMPILER, "quern-compile ended without a reply");
    return rc > 0 ? 0 : -1;
}

static int find_key(Compiler *c, const CompileRequest *r, Error *err);

/* Ask, and once more of a new process when that fails: the server may have been killed from
 * outside. The new server reads the headers again, and they may have changed, so the key is found
 * again. */
static int ask_twice(Compiler *c, const CompileRequest *r, int cpu_s, Error *err)
{
    if (!ask(c, r, cpu_s, err)) return 0;
    stop_server(c);
    if (!compiler_version(c, err)) return -1;
    if ((!cpu_s || !find_key(c, r, err)) && !ask(c, r, cpu_s, err)) return 0;
    stop_server(c);
    return -1;
}

/* Write the key of a request to c->key. The server is asked for the headers that it has read from
 * named folders, where there are any. */
static int find_key(Compiler *c, const CompileRequest *r, Error *err)
{
    char status[16], taken[200] = "";
    if (c->folders) {
        if (ask_twice(c, r, 0, err)) return -1;
        WireCursor cursor = {c->reply.data, c->reply.data + c->reply.len};
        field_text(&cursor, status, sizeof status);
        field_text(&cursor, taken, sizeof taken);
        if (strcmp(status, "taken"))
            return error_set(err, ERROR_COMPILER,
                             "the compiler process cannot look for headers: %s", taken);
    }
    request_key(c, r, taken, c->key);
    return 0;
}

/* The line number of "candidate.cu(12): error: ...", else 0. */
static int line_of(const char *p, const char *end)
{
    static const char prefix[] = "candidate.cu(";
    size_t n = sizeof prefix - 1;
    return (size_t)(end - p) > n && !memcmp(p, prefix, n) ? atoi(p + n) : 0;
}

static int contains(const char *p, const char *end, const char *word)
{
    return memmem(p, (size_t)(end - p), word, strlen(word)) != NULL;
}

/* Find the requested name in "...Input name expression was: " foo < 4 >"". */
static void note_bad_name(const CompileRequest *r, const char *p, const char *end,
                          CompileResult *out)
{
    static const char lead[] = "name expression was: \"";
    const char *name = memmem(p, (size_t)(end - p), lead, sizeof lead - 1);
    if (!name || out->bad_name >= 0) return;
    name += sizeof lead - 1;
    while (end > name && end[-1] != '"') end--;
    for (int i = 0; i < r->n_names && end > name; i++)
        if (entry_same_name(name, end - 1, r->names[i])) out->bad_name = i;
}

/* A message quotes the source and is shown on terminals: control characters become '?'. */
static void replace_controls(char *text)
{
    for (char *p = text; *p; p++)
        if (iscntrl((unsigned char)*p) && *p != '\n' && *p != '\t') *p = '?';
}

/* Fill out->message with the first errors of the log and their source lines, without warnings. */
static void digest_log(const CompileRequest *r, const char *log, size_t len, CompileResult *out)
{
    const char *p = log, *end = log + len;
    size_t used = 0;
    int errors = 0, taking = 0;
    out->bad_name = -1;
    while (p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        if (!eol) eol = end;
        size_t n = (size_t)(eol - p);
        if (contains(p, eol, "): error") || contains(p, eol, "): catastrophic error") ||
            contains(p, eol, "ptxas ")) {
            taking = errors++ < MAX_ERRORS_SHOWN;
            if (!out->line) out->line = line_of(p, eol);
            note_bad_name(r, p, eol, out);
        } else if (contains(p, eol, "): warning") ||
                   contains(p, eol, "detected in the compilation")) {
            taking = 0;
        }
        if (taking && n && used + n + 2 < sizeof out->message) {
            memcpy(out->message + used, p, n);
            used += n;
            out->message[used++] = '\n';
        }
        p = eol + 1;
    }
    if (used) used--;
    out->message[used] = 0;
    static const char hint[] =
        "\n(only device code is compiled; the headers are CUDA's own, CUTLASS's "
        "where make deps got them, the C "
        "ones, such as math.h, those in $QUERN_INCLUDE, and of the C++ "
        "library what runs on a device, <cuda/std/...> of CCCL)";
    if (strstr(out->message, "open source file") && used + sizeof hint < sizeof out->message)
        memcpy(out->message + used, hint, sizeof hint);
    if (!used)
        snprintf(out->message, sizeof out->message, "%.*s", (int)(len < 1500 ? len : 1500), log);
    replace_controls(out->message);
}

/* The message for a name expression that NVRTC refused although the source itself compiles. The
 * hint follows from NVRTC's text. */
static void explain_bad_name(const CompileRequest *r, CompileResult *out)
{
    char why[400] = "";
    if (strstr(out->message, "which instance of function template"))
        snprintf(why, sizeof why,
                 "it is a template: name it with its arguments, as in foo<float, 256>");
    else if (strstr(out->message, "overloaded"))
        snprintf(why, sizeof why, "it is overloaded: give each kernel a name of its own");
    else if (strstr(out->message, "non-__global__") ||
             strstr(out->message, "must form address of a __global__"))
        snprintf(why, sizeof why, "it is not a __global__ function");
    else
        snprintf(why, sizeof why, "the source defines no __global__ function of that name");
    snprintf(out->message, sizeof out->message, "the plan launches '%s', but %s",
             r->names[out->bad_name], why);
}

static char *field_copy(WireCursor *c, size_t *len)
{
    const char *p;
    if (wire_get(c, &p, len)) return NULL;
    char *copy = memory_alloc(*len + 1);
    memcpy(copy, p, *len);
    return copy;
}

static int read_success(WireCursor *c, const CompileRequest *r, CompileResult *out)
{
    size_t n;
    out->ptx = field_copy(c, &out->ptx_len);
    out->cubin = out->ptx ? field_copy(c, &out->cubin_len) : NULL;
    if (!out->cubin) return -1;
    out->lowered = memory_array((size_t)r->n_names + 1, sizeof *out->lowered);
    while (out->n_lowered < r->n_names) {
        if (!(out->lowered[out->n_lowered] = field_copy(c, &n))) return -1;
        out->n_lowered++;
    }
    out->ok = 1;
    return 0;
}

/* Reads the cost that follows a reply. Returns the limit of that compilation, in CPU seconds. */
static int read_cost(WireCursor *c, CompileResult *out)
{
    char seconds[32], limit[32];
    field_text(c, seconds, sizeof seconds);
    field_text(c, limit, sizeof limit);
    field_text(c, out->library, sizeof out->library);
    out->cpu_s = strtod(seconds, NULL);
    return atoi(limit);
}

/* Read c->reply into *out. *keep: the reply may be cached. A missing header depends on the toolkit,
 * too. That the CPU time was used up depends on the machine; it is kept, so that the verdict stays, but
 * not for others who ask with the whole limit. */
static int read_reply(Compiler *c, const CompileRequest *r, CompileResult *out, int *keep,
                      Error *err)
{
    WireCursor cursor = {c->reply.data, c->reply.data + c->reply.len};
    char status[16];
    const char *log = "";
    size_t len = 0;
    field_text(&cursor, status, sizeof status);
    if (wire_get(&cursor, &log, &len))
        return error_set(err, ERROR_COMPILER, "a torn reply from quern-compile");
    *keep = !strcmp(status, "ok") || !strcmp(status, "limit") ||
            (!strcmp(status, "time") && !r->half) ||
            (!strcmp(status, "refused") && !contains(log, log + len, "open source file"));
    if (!strcmp(status, "failed"))
        return error_set(err, ERROR_COMPILER, "the compiler process failed: %.*s", (int)len, log);
    if (!strcmp(status, "ok") && read_success(&cursor, r, out))
        return error_set(err, ERROR_COMPILER, "a torn reply from quern-compile");
    read_cost(&cursor, out);
    if (out->ok) return 0;
    out->limited = !strcmp(status, "limit") || !strcmp(status, "time");
    digest_log(r, log, len, out);
    if (out->bad_name >= 0 && !out->line) explain_bad_name(r, out);
    return 0;
}

const Buffer *compiler_reply(const Compiler *c, const char **key)
{
    *key = c->key;
    return &c->reply;
}

void compiler_offer(Compiler *c, const char *key, const void *reply, size_t len)
{
    replies_put(c->offers, key, reply, len);
}

/* Returns 1 with c->reply from memory or the cache. */
static int have_reply(Compiler *c)
{
    if (replies_find(c->offers, c->key, &c->reply) || replies_find(c->kept, c->key, &c->reply))
        return 1;
    return c->cache && cache_get(c->cache, c->key, NVRTC_MAX_REPLY, &c->reply);
}

/* A source that uses up the CPU time is compiled once more: a busy machine makes it take half as much
 * again. One that is near the limit without that is refused, so that both together stay bounded. */
static int cpu_limit(const Compiler *c, const CompileRequest *r)
{
    return (r->half ? (c->cpu_s + 1) / 2 : c->cpu_s) + (int)(r->len / BYTES_A_SECOND);
}

static int again_limit(const Compiler *c, const CompileRequest *r)
{
    return (7 * cpu_limit(c, r) + 9) / 10;
}

/* Was a compilation ended within a limit that is lower than today's? */
static int had_less_time(const Compiler *c, const CompileRequest *r)
{
    WireCursor cursor = {c->reply.data, c->reply.data + c->reply.len};
    char status[16], text[16];
    CompileResult cost;
    field_text(&cursor, status, sizeof status);
    field_text(&cursor, text, sizeof text);
    if (strcmp(status, "time")) return 0;
    int limit = read_cost(&cursor, &cost);
    return limit < again_limit(c, r) * (*cost.library ? WIRE_CUTLASS_FACTOR : 1);
}

static int took_too_long(const Compiler *c)
{
    WireCursor cursor = {c->reply.data, c->reply.data + c->reply.len};
    char status[16];
    field_text(&cursor, status, sizeof status);
    return !strcmp(status, "time");
}

/* Take the reply, which is whole, and keep it. */
static int take_reply(Compiler *c, const CompileRequest *r, CompileResult *out, Error *err)
{
    int keep = 0;
    if (took_too_long(c) && ask_twice(c, r, again_limit(c, r), err)) return -1;
    if (read_reply(c, r, out, &keep, err)) return -1;
    if (c->cache && keep) cache_put(c->cache, c->key, c->reply.data, c->reply.len);
    if (!c->cache && keep && r->keep) replies_put(c->kept, c->key, c->reply.data, c->reply.len);
    return 0;
}

int compiler_run(Compiler *c, const CompileRequest *r, CompileResult *out, Error *err)
{
    int unused;
    memset(out, 0, sizeof *out);
    out->bad_name = -1;
    if (!compiler_version(c, err) || find_key(c, r, err)) return -1;
    if (have_reply(c) && !had_less_time(c, r)) {
        if (!read_reply(c, r, out, &unused, NULL)) {
            out->cached = 1;
            log_debug("%.12s was compiled before", c->key);
            return 0;
        }
        compile_result_release(out);
    }
    return ask_twice(c, r, cpu_limit(c, r), err) || take_reply(c, r, out, err) ? -1 : 0;
}

void compile_result_release(CompileResult *r)
{
    free(r->ptx);
    free(r->cubin);
    for (int i = 0; i < r->n_lowered; i++) free(r->lowered[i]);
    free(r->lowered);
    memset(r, 0, sizeof *r);
}
