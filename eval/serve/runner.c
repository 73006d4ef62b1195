/* Forked children, and the parent's side of the runner. Every read and write on the socket has a limit,
 * so that a stuck child never blocks the parent. */
#include "eval/serve/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "artifacts/record.h"
#include "base/process.h"
#include "eval/compile/wire.h"

enum { HELLO_S = 60, FRAME_S = 10, WRITE_S = 10, FRAME_MAX = 4 << 20, REAP_S = 1 };

/* ---- a forked child ---- */

static void become_child(int fd, pid_t parent)
{
    setpgid(0, 0); /* its own children are killed with it */
    process_die_with_parent();
    if (getppid() != parent) _exit(1);
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    if (fd != FORKED_FD) dup2(fd, FORKED_FD);
    close_range(FORKED_FD + 1, ~0u, 0); /* only the parent uses the queue's connection */
    fcntl(FORKED_FD, F_SETFD, FD_CLOEXEC);
}

int runner_fork(Forked *c, void (*serve)(const void *ctx), const void *ctx, Error *err)
{
    int fds[2];
    struct timeval limit = {WRITE_S, 0};
    *c = (Forked){.fd = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return error_errno(err, "cannot make a socket pair");
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        become_child(fds[1], parent);
        serve(ctx);
        _exit(1);
    }
    close(fds[1]);
    if (pid < 0) {
        error_errno(err, "cannot fork for a process that serves");
        close(fds[0]);
        return -1;
    }
    setpgid(pid, pid);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    *c = (Forked){pid, fds[0]};
    return 0;
}

void runner_kill(Forked *c)
{
    if (c->fd >= 0) close(c->fd);
    if (c->pid > 0) {
        kill(-c->pid, SIGKILL);
        kill(c->pid, SIGKILL);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) continue;
        process_reap(c->pid, REAP_S);
    }
    *c = (Forked){.fd = -1};
}

/* ---- the runner ---- */

static int read_hello(const View *v, void *runner, Error *err)
{
    Runner *r = runner;
    char text[sizeof err->text];
    int64_t code;
    if (!view_has(v, "error"))
        return view_copy(v, "class", r->device_class, sizeof r->device_class, err) ||
               view_copy(v, "arch", r->arch, sizeof r->arch, err) ||
               view_bool(v, "predicted", &r->predicted, err) ||
               view_copy(v, "uuid", r->uuid, sizeof r->uuid, err);
    if (view_copy(v, "error", text, sizeof text, err) || view_int(v, "code", &code, err)) return -1;
    return error_set(err, code > 0 && code < ERROR_CODE_COUNT ? (ErrorCode)code : ERROR_INVALID,
                     "%s", text);
}

static void serve(const void *ctx)
{
    runner_child(FORKED_FD, ctx);
}

int runner_start(Runner *r, const RunnerOptions *opt, Error *err)
{
    Buffer frame;
    *r = (Runner){.child = {.fd = -1}};
    if (runner_fork(&r->child, serve, opt, err)) return -1;
    buffer_init(&frame, 8192);
    int got = wire_read_frame(r->child.fd, 8192, HELLO_S, &frame, err) == 1;
    int failed = got ? view_read(frame.data, frame.len, "the runner's hello", read_hello, r, err)
                     : error_set(err, ERROR_CHILD, "the runner of %s did not start", opt->device);
    buffer_release(&frame);
    if (!failed) return 0;
    runner_kill(&r->child);
    return got ? 1 : -1;
}

int runner_send(Runner *r, const Buffer *body, const char *key, const Buffer *compiled, Error *err)
{
    Buffer frame;
    buffer_init(&frame, RUNNER_MAX_JOB);
    int has = compiled->len && compiled->len <= RUNNER_MAX_COMPILED;
    int failed =
        wire_put(&frame, body->data, body->len) ||
        (has && (wire_puts(&frame, key) || wire_put(&frame, compiled->data, compiled->len))) ||
        wire_write_frame(r->child.fd, frame.data, frame.len, err);
    buffer_release(&frame);
    return failed ? error_set(err, ERROR_CHILD, "the runner takes no job") : 0;
}

static int read_answer(const View *v, void *answer, Error *err)
{
    RunnerAnswer *out = answer;
    const void *verdict;
    size_t len;
    return view_bool(v, "brief", &out->brief, err) || view_bool(v, "retry", &out->retry, err) ||
                   view_bytes(v, "verdict", &verdict, &len, err) ||
                   buffer_append(&out->verdict, verdict, len) ||
                   (view_has(v, "sick") && view_copy(v, "sick", out->sick, sizeof out->sick, err))
               ? -1
               : 0;
}

int runner_answer(Runner *r, RunnerAnswer *out, Error *err)
{
    Buffer frame;
    buffer_init(&frame, FRAME_MAX);
    int rc = wire_read_frame(r->child.fd, FRAME_MAX, FRAME_S, &frame, err) == 1
                 ? view_read(frame.data, frame.len, "the runner's answer", read_answer, out, err)
                 : error_set(err, ERROR_CHILD, "the runner ended without an answer");
    buffer_release(&frame);
    return rc;
}
