/* The parent's side of the runner. Every read and write on the socket has a limit, so that a stuck
 * runner never blocks the parent. */
#include "eval/serve/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "artifacts/record.h"
#include "base/process.h"
#include "eval/compile/wire.h"

enum { HELLO_S = 60, FRAME_S = 10, FRAME_MAX = 4 << 20, REAP_S = 1 };

void runner_become_child(int fd, pid_t parent)
{
    setpgid(0, 0); /* its own children are killed with it */
    process_die_with_parent();
    if (getppid() != parent) _exit(1);
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE}; /* the parent handles stops */
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    if (fd != 3) dup2(fd, 3);
    close_range(4, ~0u, 0); /* only the parent uses the queue's connection */
    fcntl(3, F_SETFD, FD_CLOEXEC);
}

static int read_fields(Runner *r, const View *v, Error *err)
{
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

static int read_hello(Runner *r, const Buffer *frame, Error *err)
{
    msgpack_zone zone;
    View v;
    if (!msgpack_zone_init(&zone, 1024)) return error_set(err, ERROR_MEMORY, "no memory");
    int failed = view_decode(frame->data, frame->len, "the runner's hello", &zone, &v, err) ||
                 read_fields(r, &v, err);
    msgpack_zone_destroy(&zone);
    return failed ? -1 : 0;
}

int runner_start(Runner *r, const RunnerOptions *opt, Error *err)
{
    int fds[2];
    *r = (Runner){.fd = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return error_errno(err, "cannot make a socket pair");
    pid_t parent = getpid();
    r->pid = fork();
    if (r->pid == 0) {
        runner_become_child(fds[1], parent);
        runner_child(3, opt);
    }
    close(fds[1]);
    r->fd = fds[0];
    if (r->pid < 0) {
        error_errno(err, "cannot fork for the runner");
        close(r->fd);
        *r = (Runner){.fd = -1};
        return -1;
    }
    setpgid(r->pid, r->pid);
    struct timeval limit = {FRAME_S, 0}; /* for a runner that does not read */
    setsockopt(r->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    Buffer frame;
    buffer_init(&frame, 8192);
    int got = wire_read_frame(r->fd, 8192, HELLO_S, &frame, err);
    int rc = got == 1 ? read_hello(r, &frame, err)
                      : error_set(err, ERROR_CHILD, "the runner of %s did not start", opt->device);
    if (got == 1 && rc) rc = 1;
    buffer_release(&frame);
    if (rc) runner_kill(r);
    return rc;
}

int runner_send(Runner *r, const Buffer *body, const char *key, const Buffer *compiled, Error *err)
{
    Buffer frame;
    buffer_init(&frame, RUNNER_MAX_JOB);
    int has = compiled->len && compiled->len <= RUNNER_MAX_COMPILED;
    int failed =
        wire_put(&frame, body->data, body->len) ||
        (has && (wire_puts(&frame, key) || wire_put(&frame, compiled->data, compiled->len))) ||
        wire_write_frame(r->fd, frame.data, frame.len, err);
    buffer_release(&frame);
    return failed ? error_set(err, ERROR_CHILD, "the runner takes no job") : 0;
}

static int read_answer(const Buffer *frame, RunnerAnswer *out, Error *err)
{
    msgpack_zone zone;
    View v;
    const void *verdict;
    size_t len;
    if (!msgpack_zone_init(&zone, 1024)) return error_set(err, ERROR_MEMORY, "no memory");
    int failed = view_decode(frame->data, frame->len, "the runner's answer", &zone, &v, err) ||
                 view_bool(&v, "retry", &out->retry, err) ||
                 view_bytes(&v, "verdict", &verdict, &len, err) ||
                 buffer_append(&out->verdict, verdict, len) ||
                 (view_has(&v, "sick") && view_copy(&v, "sick", out->sick, sizeof out->sick, err));
    msgpack_zone_destroy(&zone);
    return failed ? -1 : 0;
}

int runner_answer(Runner *r, RunnerAnswer *out, Error *err)
{
    Buffer frame;
    buffer_init(&frame, FRAME_MAX);
    int rc = wire_read_frame(r->fd, FRAME_MAX, FRAME_S, &frame, err) == 1
                 ? read_answer(&frame, out, err)
                 : error_set(err, ERROR_CHILD, "the runner ended without an answer");
    buffer_release(&frame);
    return rc;
}

void runner_kill(Runner *r)
{
    if (r->fd >= 0) close(r->fd);
    if (r->pid > 0) {
        kill(-r->pid, SIGKILL);
        kill(r->pid, SIGKILL);
        while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR) continue;
        process_reap(r->pid, REAP_S);
    }
    r->pid = 0;
    r->fd = -1;
}
