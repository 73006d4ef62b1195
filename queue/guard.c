/* The guard process. Messages are far smaller than PIPE_BUF, so each read gets a whole one. */
#include "queue/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { GUARD_MAX = 1024, GONE_S = 10 };

typedef struct {
    enum { WATCH, FORGET, END } what;
    pid_t group;
} Message;

static void close_others(int a, int b)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    for (int fd = 3; fd < 1024; fd++)
        if (fd != a && fd != b) close(fd);
}

int guard_process_runs(pid_t pid)
{
    char path[32], stat[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0) return 0;
    ssize_t n = read(fd, stat, sizeof stat - 1);
    close(fd);
    stat[n > 0 ? n : 0] = 0;
    const char *state = strrchr(stat, ')'); /* "pid (name) S ...": the name may hold ')' */
    return state && state[1] && state[2] != 'Z' && state[2] != 'X';
}

static int alive(const pid_t *groups, int n)
{
    for (int i = 0; i < n; i++)
        if (guard_process_runs(groups[i])) return 1;
    return 0;
}

static _Noreturn void guard(int fd, int keep_fd, const char *remove_file, const char *remove_dir)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
    setpgid(0, 0);
    close_others(fd, keep_fd);
    pid_t groups[GUARD_MAX];
    int n = 0;
    Message m;
    for (;;) {
        ssize_t got = read(fd, &m, sizeof m);
        if (got < 0 && errno == EINTR) continue;
        if (got != (ssize_t)sizeof m) break;
        if (m.what == END) _exit(0);
        if (m.what == WATCH && n < GUARD_MAX) groups[n++] = m.group;
        for (int i = 0; m.what == FORGET && i < n; i++)
            if (groups[i] == m.group) groups[i--] = groups[--n];
    }
    for (int i = 0; i < n; i++) kill(-groups[i], SIGKILL);
    for (double end = clock_seconds() + GONE_S; alive(groups, n) && clock_seconds() < end;)
        clock_sleep(0.005);
    if (remove_file) unlink(remove_file);
    if (remove_dir) rmdir(remove_dir);
    _exit(0);
}

int guard_start(Guard *g, int keep_fd, const char *remove_file, const char *remove_dir, Error *err)
{
    int fds[2];
    g->pipe = -1;
    if (pipe2(fds, O_CLOEXEC)) return error_errno(err, "cannot make a pipe");
    g->pid = fork();
    if (g->pid == 0) {
        close(fds[1]);
        guard(fds[0], keep_fd, remove_file, remove_dir);
    }
    close(fds[0]);
    if (g->pid < 0) {
        close(fds[1]);
        return error_errno(err, "cannot fork");
    }
    g->pipe = fds[1];
    return 0;
}

static void send_message(Guard *g, Message m)
{
    while (g->pipe >= 0 && write(g->pipe, &m, sizeof m) < 0 && errno == EINTR) continue;
}

void guard_watch(Guard *g, pid_t group)
{
    send_message(g, (Message){WATCH, group});
}

void guard_forget(Guard *g, pid_t group)
{
    send_message(g, (Message){FORGET, group});
}

void guard_end(Guard *g)
{
    if (g->pipe < 0) return;
    send_message(g, (Message){END, 0});
    close(g->pipe);
    g->pipe = -1;
    while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR) continue;
}
