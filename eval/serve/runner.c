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

static int get_text(const View *v, const char *key, char *out, size_t size, Error *err)
{
    const char *s;
    size_t n;
    if (view_text(v, key, &s, &n, err)) return -1;
    if (n >= size) return error_set(err, ERROR_LIMIT, "the runner's %s has %zu bytes", key, n);
    memcpy(out, s, n);
    out[n] = 0;
    return 0;
}

static int read_hello(Runner *r, const Buffer *frame, Error *err)
{
    msgpack_zone zone;
    View v;
    if (!msgpack_zone_init(&zone, 1024)) return error_set(err, ERROR_MEMORY, "no memory");
    int rc = view_decode(frame->data, frame->len, "the runner's hello", &zone, &v, err);
    if (!rc && view_has(&v, "error")) {
        char text[sizeof err->text];
        int64_t code;
        if (!get_text(&v, "error", text, sizeof text, err) && !view_int(&v, "code", &code, err))
            error_set(err, code > 0 && code < ERROR_CODE_COUNT ? (ErrorCode)code : ERROR_INVALID,
                      "%s", text);
        rc = -1;
    } else if (!rc) {
        rc = get_text(&v, "class", r->device_class, sizeof r->device_class, err) ||
             get_text(&v, "arch", r->arch, sizeof r->arch, err) ||
             view_bool(&v, "predicted", &r->predicted, err) ||
             get_text(&v, "uuid", r->uuid, sizeof r->uuid, err);
    }
    msgpack_zone_destroy(&zone);
    return rc ? -1 : 0;
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
    int rc = wire_put(&frame, body->data, body->len);
    if (!rc && compiled && compiled->len && compiled->len <= RUNNER_MAX_COMPILED)
        rc = wire_puts(&frame, key) || wire_put(&frame, compiled->data, compiled->len);
    rc = rc || wire_write_frame(r->fd, frame.data, frame.len, err)
             ? error_set(err, ERROR_CHILD, "the runner takes no job")
             : 0;
    buffer_release(&frame);
    return rc;
}

int runner_answer(Runner *r, RunnerAnswer *out, Error *err)
{
    Buffer frame;
    buffer_init(&frame, FRAME_MAX);
    msgpack_zone zone;
    View v;
    const void *verdict;
    size_t len;
    if (wire_read_frame(r->fd, FRAME_MAX, FRAME_S, &frame, err) != 1) {
        buffer_release(&frame);
        return error_set(err, ERROR_CHILD, "the runner ended without an answer");
    }
    int rc = msgpack_zone_init(&zone, 1024) ? 0 : error_set(err, ERROR_MEMORY, "no memory");
    if (!rc) {
        rc = view_decode(frame.data, frame.len, "the runner's answer", &zone, &v, err) ||
             view_bool(&v, "retry", &out->retry, err) ||
             view_bytes(&v, "verdict", &verdict, &len, err) ||
             buffer_append(&out->verdict, verdict, len) ||
             (view_has(&v, "sick") && get_text(&v, "sick", out->sick, sizeof out->sick, err));
        msgpack_zone_destroy(&zone);
    }
    buffer_release(&frame);
    return rc ? -1 : 0;
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
