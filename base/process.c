/* Children run in a process group of their own, so that one signal ends all that they started. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stop.h"

void process_die_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void process_again_with(const char *name, const char *value, char *const argv[])
{
    if (getenv(name) || setenv(name, value, 1)) return;
    execv("/proc/self/exe", argv);
}

void process_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void process_reap(int group, double seconds)
{
    for (double end = clock_seconds() + seconds; clock_seconds() < end;) {
        pid_t ended = waitpid(group ? -group : -1, NULL, WNOHANG);
        if (ended < 0 && errno != EINTR) return;
        if (!ended) clock_sleep(0.002);
    }
}

int process_self_stamp(char out[DIGEST_HEX])
{
    struct stat st;
    Digest digest;
    if (stat("/proc/self/exe", &st)) return -1;
    const int64_t of[] = {(int64_t)st.st_dev, (int64_t)st.st_ino, (int64_t)st.st_size,
                          (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec};
    digest_of(of, sizeof of, &digest);
    digest_hex(&digest, out);
    return 0;
}

int process_self_dir(char *out, size_t size, Error *err)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    if (n < 0)
        return error_set(err, ERROR_IO,
                         "cannot read /proc/self/exe, by which programs find their "
                         "files: is /proc mounted?");
    out[n] = 0;
    char *slash = strrchr(out, '/');
    if (slash) *slash = 0;
    return 0;
}

int process_find_program(const char *name, char *out, size_t size, Error *err)
{
    static const char *const places[] = {"", "/../bin", "/../../bin"};
    char self[3000];
    if (process_self_dir(self, sizeof self, err)) return -1;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int n = snprintf(out, size, "%s%s/%s", self, places[i], name);
        if (n > 0 && (size_t)n < size && !access(out, X_OK)) return 0;
    }
    return error_set(err, ERROR_IO, "%s is not beside this program (%s): run make build", name,
                     self);
}

static void set_limit(int which, size_t value)
{
    if (!value) return;
    struct rlimit r = {value, value};
    setrlimit(which, &r);
}

static _Noreturn void child(const char *const argv[], const ProcessOptions *opt, int in, int out,
                            int errout)
{
    setpgid(0, 0);
    process_die_with_parent();
    signal(SIGPIPE, SIG_DFL);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(errout, 2) < 0) _exit(127);
    set_limit(RLIMIT_CPU, (size_t)opt->cpu_s);
    set_limit(RLIMIT_AS, opt->memory_bytes);
    set_limit(RLIMIT_FSIZE, opt->file_bytes);
    if (opt->before_exec) opt->before_exec(opt->before_exec_ctx);
    execvp(argv[0], (char *const *)argv);
    fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

typedef struct {
    int fd;
    Buffer *buf;
} Pipe;

/* Reads what is there. Returns 0 at end of file, -1 when the buffer is full. */
static int drain(Pipe *p)
{
    char chunk[16384];
    ssize_t n = read(p->fd, chunk, sizeof chunk);
    if (n < 0) return errno == EINTR || errno == EAGAIN ? 1 : 0;
    if (n == 0) return 0;
    if (p->buf && buffer_append(p->buf, chunk, (size_t)n)) return -1;
    return 1;
}

static void feed(int *fd, const ProcessOptions *opt, size_t *sent)
{
    ssize_t n = write(*fd, (const char *)opt->input + *sent, opt->input_len - *sent);
    if (n > 0) *sent += (size_t)n;
    if ((n < 0 && errno != EINTR && errno != EAGAIN) || *sent == opt->input_len) {
        close(*fd);
        *fd = -1;
    }
}

/* Limits of the wait for a child. */
typedef struct {
    double deadline; /* 0: none */
    ProcessResult *result;
    int stopped; /* a signal asks this process to stop */
} Bounds;

/* How long to wait before the next look, in seconds. At most 0.1, since a signal may come just before
 * the wait; 0 when a limit is reached. */
static double patience(Bounds *b)
{
    double left = b->deadline ? b->deadline - clock_seconds() : 1;
    if (b->result->output_full || b->result->timed_out) return 0;
    b->stopped = stop_requested() != 0;
    b->result->timed_out = !b->stopped && left <= 0;
    if (b->stopped || left <= 0) return 0;
    return left < 0.1 ? left : 0.1;
}

/* Reads both outputs until they are closed, the deadline passes, a buffer is full, or a signal asks
 * this process to stop. */
static void watch(const ProcessOptions *opt, int in, Pipe pipes[2], Bounds *b)
{
    size_t sent = 0;
    int open_pipes = 2;
    while (open_pipes) {
        struct pollfd fds[3] = {
            {pipes[0].fd, POLLIN, 0}, {pipes[1].fd, POLLIN, 0}, {in, POLLOUT, 0}};
        double seconds = patience(b);
        if (seconds <= 0) break;
        int n = poll(fds, 3, (int)(seconds * 1000) + 1);
        if (n < 0 && errno != EINTR) break;
        if (n <= 0) continue;
        if (fds[2].revents) feed(&in, opt, &sent);
        for (int i = 0; i < 2; i++) {
            if (!fds[i].revents) continue;
            int rc = drain(&pipes[i]);
            if (rc < 0) b->result->output_full = 1;
            if (rc > 0) continue;
            close(pipes[i].fd);
            pipes[i].fd = -1;
            open_pipes--;
        }
    }
    if (in >= 0) close(in);
    for (int i = 0; i < 2; i++)
        if (pipes[i].fd >= 0) close(pipes[i].fd);
}

static int open_pipes(int in[2], int out[2], int errout[2], int wants_input, Error *err)
{
    in[0] = in[1] = out[0] = out[1] = errout[0] = errout[1] = -1;
    int ok = pipe2(out, O_CLOEXEC) == 0 && pipe2(errout, O_CLOEXEC) == 0;
    if (ok && wants_input) {
        ok = pipe2(in, O_CLOEXEC) == 0;
    } else if (ok) {
        in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        ok = in[0] >= 0;
    }
    if (ok) return 0;
    error_errno(err, "cannot make pipes for a child process");
    for (int i = 0; i < 2; i++) {
        if (in[i] >= 0) close(in[i]);
        if (out[i] >= 0) close(out[i]);
        if (errout[i] >= 0) close(errout[i]);
    }
    return -1;
}

/* Waits for the end of the child, within the limits. A child may close its outputs before it ends. */
static int wait_for(pid_t pid, Bounds *b, int *status)
{
    double seconds, pause = 0.0005;
    pid_t ended;
    while (!(ended = waitpid(pid, status, WNOHANG)) && (seconds = patience(b)) > 0) {
        pause =
            pause < 0.05 ? 2 * pause : 0.05; /* most children end when they close their outputs */
        clock_sleep(seconds < pause ? seconds : pause);
    }
    if (!ended) kill(-pid, SIGKILL);
    while (!ended || (ended < 0 && errno == EINTR)) ended = waitpid(pid, status, 0);
    return ended < 0 ? -1 : 0;
}

int process_run(const char *const argv[], const ProcessOptions *opt, Buffer *out, Buffer *errout,
                ProcessResult *result, Error *err)
{
    int pin[2], pout[2], perr[2];
    *result = (ProcessResult){.exit_code = -1};
    if (out) buffer_clear(out);
    if (errout) buffer_clear(errout);
    if (open_pipes(pin, pout, perr, opt->input != NULL, err)) return -1;
    pid_t pid = fork();
    if (pid == 0) child(argv, opt, pin[0], pout[1], perr[1]);
    int fork_errno = errno;
    close(pin[0]);
    close(pout[1]);
    close(perr[1]);
    if (pid < 0) {
        if (pin[1] >= 0) close(pin[1]);
        close(pout[0]);
        close(perr[0]);
        errno = fork_errno;
        return error_errno(err, "cannot fork for %s", argv[0]);
    }
    setpgid(pid, pid);
    if (pin[1] >= 0) fcntl(pin[1], F_SETFL, O_NONBLOCK);
    Pipe pipes[2] = {{pout[0], out}, {perr[0], errout}};
    Bounds bounds = {.deadline = opt->timeout_s > 0 ? clock_seconds() + opt->timeout_s : 0,
                     .result = result};
    watch(opt, pin[1], pipes, &bounds);
    int status = 0;
    if (wait_for(pid, &bounds, &status)) return error_errno(err, "cannot wait for %s", argv[0]);
    kill(-pid, SIGKILL); /* the child's own children */
    if (bounds.stopped)
        return error_set(err, ERROR_IO, "%s was killed: stopped by signal %d", argv[0],
                         stop_requested());
    if (WIFEXITED(status)) result->exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result->signal = WTERMSIG(status);
    return 0;
}

void process_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof to.sun_path) return;
    strcpy(to.sun_path, path);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (*path == '@') to.sun_path[0] = 0; /* an abstract name */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, len);
    close(fd);
}
