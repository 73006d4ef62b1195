/* Supervision of a command, its workers and a private server: one loop that polls for ended
 * children (signalfd), stop signals and the end of the parent. */
#include "queue/fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "queue/queue.h"
#include "queue/server.h"

/* ---- the guard: a small process that cleans up when the fleet is killed with SIGKILL ---- */

typedef struct {
    pid_t pid;
    int pipe; /* -1: none */
} Guard;

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

/* Returns whether the process runs. A zombie does not; kill(pid, 0) cannot tell. */
static int guard_process_runs(pid_t pid)
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

/* Start the guard. keep_fd (or -1) stays open in it, so that the directory's lock is released only
 * after the kill. The guard then unlinks remove_file and removes remove_dir; NULL: none. */
static int guard_start(Guard *g, int keep_fd, const char *remove_file, const char *remove_dir,
                       Error *err)
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

static void guard_watch(Guard *g, pid_t group)
{
    send_message(g, (Message){WATCH, group});
}

static void guard_forget(Guard *g, pid_t group)
{
    send_message(g, (Message){FORGET, group});
}

/* end the guard without a kill, and wait for it */
static void guard_end(Guard *g)
{
    if (g->pipe < 0) return;
    send_message(g, (Message){END, 0});
    close(g->pipe);
    g->pipe = -1;
    while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR) continue;
}

enum {
    DEATHS = 10, /* a process that ends more often within DEATHS_S is not started again */
    DEATHS_S = 15,
    STOP_GRACE_S = 120, /* for the command after a stop signal */
    ORPHAN_GRACE_S = 5, /* for the command after the end of the parent */
    DRAIN_S = 10,       /* for the workers at the end */
    LOCK_S = 60,        /* more than ORPHAN_GRACE_S, DRAIN_S and the server's stop together */
    ASK_S = 1           /* wait for the server; short, because this process restarts it */
};

typedef struct {
    double times[DEATHS];
    int n;
} Deaths;

typedef struct {
    pid_t pid; /* 0: not running */
    int given_up, starts;
    int unreleased;  /* the lease of the ended worker is not freed yet: no answer from the server */
    double start_at; /* when to start it again */
    char consumer[96];
    Deaths deaths;
} Slot;

typedef struct {
    const FleetOptions *opt;
    Server server;
    Deaths server_deaths;
    Guard guard;
    Queue *queue;  /* NULL without workers */
    double ask_at; /* no queue_release before this time, after one without an answer */
    const char *url;
    Slot slots[FLEET_MAX_WORKERS];
    unsigned nonce; /* in consumer names: containers may share host names and process ids */
    pid_t command;
    int command_status; /* as waitpid gives it */
    int lock, child_fd;
    int parent_fd;  /* readable when the parent has ended; -1: no parent, or it has ended */
    int forwarded;  /* signal sent to the command, or 0 */
    double kill_at; /* when a command that was asked to stop is killed */
} Fleet;

static const char *device_of(const Fleet *f, int slot)
{
    return f->opt->devices[slot % f->opt->n_devices];
}

/* Note a death. Returns 1 when there were too many within DEATHS_S. */
static int too_many(Deaths *d)
{
    double now = clock_seconds();
    double oldest = d->times[d->n % DEATHS];
    d->times[d->n % DEATHS] = now;
    d->n++;
    return d->n > DEATHS && now - oldest < DEATHS_S;
}

/* The process that holds the lock, as written into the file. Returns 0 when that process or its
 * parent has ended: then the lock is about to be released. */
static int lock_holder(int fd)
{
    char who[64] = "";
    int pid = 0, parent = 0;
    if (pread(fd, who, sizeof who - 1, 0) <= 0 || sscanf(who, "%d %d", &pid, &parent) != 2)
        return 0;
    return guard_process_runs(pid) && (!parent || guard_process_runs(parent)) ? pid : 0;
}

static int lock_dir(Fleet *f, Error *err)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/lock", f->server.dir);
    f->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (f->lock < 0) return error_errno(err, "cannot open %s", path);
    /* Wait: the guard of a fleet that was just killed may still be at work. */
    for (double end = clock_seconds() + LOCK_S; flock(f->lock, LOCK_EX | LOCK_NB);) {
        if (errno != EWOULDBLOCK && errno != EINTR) return error_errno(err, "cannot lock %s", path);
        int holder = lock_holder(f->lock);
        if (holder)
            return error_set(
                err, ERROR_INVALID,
                "%s is in use by a run that is going on (process %d): wait for it, or end it first",
                f->server.dir, holder);
        if (stop_requested())
            return error_set(err, ERROR_STOPPED, "stopped while an earlier run was still ending");
        if (clock_seconds() > end)
            return error_set(err, ERROR_IO, "%s is locked, by no process that it names",
                             f->server.dir);
        clock_sleep(0.02);
    }
    char who[64];
    int n = snprintf(who, sizeof who, "%d %d\n", (int)getpid(), f->opt->parent);
    if (ftruncate(f->lock, 0) || pwrite(f->lock, who, (size_t)n, 0) != n)
        return error_errno(err, "cannot write %s", path);
    return 0;
}

static void start_slot(Fleet *f, int i)
{
    Slot *s = &f->slots[i];
    char host[40] = "";
    gethostname(host, sizeof host - 1);
    snprintf(s->consumer, sizeof s->consumer, "%s:fleet-%d-%08x:%d:%d", host, (int)getpid(),
             f->nonce, i, ++s->starts);
    const char *argv[] = {f->opt->worker, "--device",  device_of(f, i),
                          "--consumer",   s->consumer, NULL};
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        char text[16];
        const int threads = f->opt->threads ? f->opt->threads[i % f->opt->n_devices] : 0;
        server_child_setup(parent);
        snprintf(text, sizeof text, "%d", threads);
        if (threads) setenv("OMP_NUM_THREADS", text, 0);
        setenv("OMP_WAIT_POLICY", "passive", 0);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    if (pid < 0) {
        log_warn("cannot fork for an %s: %s", f->opt->noun, strerror(errno));
        s->start_at = clock_seconds() + 1;
        return;
    }
    setpgid(pid, pid);
    guard_watch(&f->guard, pid);
    s->pid = pid;
}

static void start_command(Fleet *f, Error *err)
{
    pid_t parent = getpid();
    sigset_t stops, before;
    sigemptyset(&stops); /* blocked until exec: our handler must not run in the child */
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGHUP);
    sigprocmask(SIG_BLOCK, &stops, &before);
    f->command = fork();
    if (f->command) sigprocmask(SIG_SETMASK, &before, NULL);
    if (f->command == 0) {
        server_child_setup(parent);
        /* The command is not in the terminal's foreground group: a read would stop it. */
        int null = isatty(STDIN_FILENO) ? open("/dev/null", O_RDONLY) : -1;
        if (null >= 0) dup2(null, STDIN_FILENO);
        execvp(f->opt->command[0], f->opt->command);
        int why = errno;
        fprintf(stderr, "quern-fleet: cannot run %s: %s\n", f->opt->command[0], strerror(why));
        _exit(why == ENOENT ? EXIT_STATUS_NO_COMMAND : EXIT_STATUS_CANNOT_RUN);
    }
    if (f->command < 0) {
        f->command = 0;
        error_errno(err, "cannot fork for %s", f->opt->command[0]);
        return;
    }
    setpgid(f->command, f->command);
    guard_watch(&f->guard, f->command);
}

static int start_server(Fleet *f, Error *err)
{
    if (server_start(&f->server, err)) return -1;
    guard_watch(&f->guard, f->server.pid);
    return 0;
}

static int one_device(const FleetOptions *o)
{
    for (int i = 1; i < o->n_devices; i++)
        if (strcmp(o->devices[i], o->devices[0])) return 0;
    return 1;
}

static int start_all(Fleet *f, Error *err)
{
    const FleetOptions *o = f->opt;
    if (o->dir && (server_prepare(&f->server, o->dir, err) || lock_dir(f, err))) return -1;
    f->url = o->redis ? o->redis : f->server.url;
    const char *short_dir = f->server.short_dir[0] ? f->server.short_dir : NULL;
    if (guard_start(&f->guard, f->lock, o->redis ? NULL : f->server.socket, short_dir, err))
        return -1;
    if (!o->redis && start_server(f, err)) return -1;
    if (setenv("QUERN_REDIS", f->url, 1)) return error_errno(err, "cannot set QUERN_REDIS");
    if ((o->workers || !o->redis) && queue_open(f->url, NULL, o->version, &f->queue, err))
        return -1;
    long stale = 0;
    /* All workers of a private server ended with the fleet before this one: free their leases. */
    if (!o->redis && queue_release(f->queue, NULL, 0, &stale, err)) return -1;
    if (f->queue) queue_set_patience(f->queue, ASK_S);
    if (stale)
        log_info("%ld job%s of an earlier run that was cut short: available again", stale,
                 stale == 1 ? "" : "s");
    for (int i = 0; i < o->workers; i++) start_slot(f, i);
    log_info("%d %s%s on %s%s, %s", o->workers, o->noun, o->workers == 1 ? "" : "s", o->devices[0],
             one_device(o) ? "" : " and others", o->redis ? "an outside queue" : f->url);
    err->text[0] = 0;
    start_command(f, err);
    return f->command ? 0 : -1;
}

static int free_lease(Fleet *f, int i)
{
    Slot *s = &f->slots[i];
    long n;
    Error err;
    if (clock_seconds() < f->ask_at) return s->unreleased = 1; /* another slot waited already */
    int failed = queue_release(f->queue, s->consumer, 1, &n, &err);
    if (failed && !s->unreleased)
        log_warn("the job of %s %d is not yet free: %s", f->opt->noun, i, err.text);
    if (failed) f->ask_at = clock_seconds() + ASK_S;
    return s->unreleased = failed != 0;
}

static void start_again(Fleet *f, int i)
{
    if (f->slots[i].unreleased && free_lease(f, i))
        f->slots[i].start_at = clock_seconds() + ASK_S;
    else
        start_slot(f, i);
}

/* A worker ended: free its lease, and decide whether to start it again. A worker that exits with
 * EXIT_STATUS_USAGE or EXIT_STATUS_SICK has printed the reason, and a new start would not help. */
static int slot_ended(Fleet *f, int i, int status, Error *err)
{
    Slot *s = &f->slots[i];
    const char *noun = f->opt->noun;
    int crashed = WIFSIGNALED(status), exit_status = crashed ? -1 : WEXITSTATUS(status);
    if (crashed)
        log_warn("%s %d was ended by signal %d; starting another", noun, i, WTERMSIG(status));
    free_lease(f, i);
    int sick = exit_status == EXIT_STATUS_SICK;
    int cannot_start = sick || exit_status == EXIT_STATUS_USAGE;
    if (sick)
        log_warn("%s %d on %s left service; it is not started again, and its jobs go to the others",
                 noun, i, device_of(f, i));
    s->given_up = cannot_start || too_many(&s->deaths);
    s->start_at = clock_seconds() + (crashed ? 0.02 : 0.3);
    if (!s->given_up) return 0;
    if (!cannot_start)
        log_warn("%s %d ended %d times within %d s; it is not started again", noun, i, DEATHS,
                 DEATHS_S);
    for (int k = 0; k < f->opt->workers; k++)
        if (!f->slots[k].given_up) return 0;
    const char *slash = strrchr(f->opt->worker, '/');
    return error_set(err, ERROR_CHILD, "no %s stays up (%s --device %s); what they said is above",
                     noun, slash ? slash + 1 : f->opt->worker, f->opt->devices[0]);
}

/* redis-server ends itself when it cannot write its file of changes. */
static int disk_full(const char *dir)
{
    struct statvfs fs;
    return !statvfs(dir, &fs) && (unsigned long long)fs.f_bavail * fs.f_frsize < 256 * 1024;
}

static int server_ended(Fleet *f, pid_t pid, Error *err)
{
    guard_forget(&f->guard, pid);
    if (disk_full(f->server.dir))
        return error_set(err, ERROR_IO,
                         "the disk that holds the queue's data, %s, is full; make room, and the "
                         "same command continues",
                         f->server.dir);
    if (too_many(&f->server_deaths))
        return error_set(err, ERROR_SERVER,
                         "the private redis-server ended %d times within %d s; see %s/redis.log",
                         DEATHS, DEATHS_S, f->server.dir);
    log_warn("the private redis-server ended; starting it again");
    return start_server(f, err);
}

/* Reap all ended children. The server is handled first: slot_ended sends it commands. */
static int reap(Fleet *f, Error *err)
{
    int ended[FLEET_MAX_WORKERS], statuses[FLEET_MAX_WORKERS], n = 0, status;
    pid_t pid, server = 0;
    while (n < FLEET_MAX_WORKERS && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == f->command) {
            f->command_status = status;
            kill(-pid, SIGKILL); /* the rest of its group */
            guard_forget(&f->guard, pid);
            f->command = 0;
        } else if (pid == f->server.pid) {
            server = pid;
            f->server.pid = 0;
        }
        for (int i = 0; i < f->opt->workers; i++)
            if (f->slots[i].pid == pid) {
                kill(-pid, SIGKILL); /* children that outlive it */
                guard_forget(&f->guard, pid);
                f->slots[i].pid = 0;
                ended[n] = i;
                statuses[n++] = status;
            }
    }
    if (!f->command) return 0; /* the caller takes everything down */
    if (server && server_ended(f, server, err)) return -1;
    for (int i = 0; i < n; i++)
        if (slot_ended(f, ended[i], statuses[i], err)) return -1;
    return 0;
}

static void forward_stop(Fleet *f)
{
    int sig = stop_requested();
    double now = clock_seconds();
    if (sig && !f->forwarded) {
        f->forwarded = sig;
        f->kill_at = now + STOP_GRACE_S;
        log_info("stopping (again to end at once)");
        kill(-f->command, sig);
    } else if (f->forwarded && now > f->kill_at) {
        kill(-f->command, SIGKILL);
    }
}

/* The parent was killed. Stop the command, so that a new run can have the directory. */
static void parent_ended(Fleet *f)
{
    log_warn("process %d has ended; ending the command too", f->opt->parent);
    close(f->parent_fd);
    f->parent_fd = -1;
    if (!f->forwarded) kill(-f->command, SIGTERM);
    f->forwarded = SIGTERM;
    f->kill_at = clock_seconds() + ORPHAN_GRACE_S;
}

static int supervise(Fleet *f, Error *err)
{
    while (f->command) {
        int stop = f->forwarded ? -1 : stop_fd();
        struct pollfd fds[3] = {
            {f->child_fd, POLLIN, 0}, {stop, POLLIN, 0}, {f->parent_fd, POLLIN, 0}};
        if (poll(fds, 3, 100) < 0 && errno != EINTR)
            return error_errno(err, "cannot wait for processes");
        if (f->parent_fd >= 0 && fds[2].revents) parent_ended(f);
        struct signalfd_siginfo info;
        while (read(f->child_fd, &info, sizeof info) > 0) continue;
        if (reap(f, err)) return -1;
        if (!f->command) break;
        forward_stop(f);
        if (f->server.pid) server_bound_log(&f->server);
        for (int i = 0; i < f->opt->workers; i++)
            if (!f->slots[i].pid && !f->slots[i].given_up &&
                clock_seconds() >= f->slots[i].start_at)
                start_again(f, i);
    }
    return 0;
}

/* Wait for a child that leads a process group until `end`, then kill the group. */
static void wait_or_kill(pid_t pid, double end)
{
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (clock_seconds() > end) {
            kill(-pid, SIGKILL);
            while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
            break;
        }
        clock_sleep(0.003);
    }
    kill(-pid, SIGKILL);
}

/* Dead jobs are kept, for quern-queue retry, and so are the names of devices out of service. */
static int has_kept(Queue *q)
{
    enum { MAX_CLASSES = 64 };
    QueueStatus s[MAX_CLASSES];
    QueueSick sick;
    int n = queue_status(q, s, MAX_CLASSES, NULL);
    for (int i = 0; i < n; i++)
        if (s[i].dead) return 1;
    return n < 0 || n == MAX_CLASSES || queue_quarantined(q, &sick, 1, NULL);
}

/* in_order: the command ended by itself, so there is time to compact the queue's data. */
static void take_down(Fleet *f, int in_order)
{
    int forget = in_order && f->opt->forget && f->server.spawned && !f->command_status &&
                 !has_kept(f->queue);
    double end = clock_seconds() + DRAIN_S;
    if (f->command) {
        kill(-f->command, SIGTERM);
        wait_or_kill(f->command, end);
    }
    for (int i = 0; i < f->opt->workers; i++)
        if (f->slots[i].pid) kill(f->slots[i].pid, SIGTERM);
    for (int i = 0; i < f->opt->workers; i++)
        if (f->slots[i].pid) wait_or_kill(f->slots[i].pid, end);
    queue_close(f->queue);
    if (in_order && !forget) server_compact(&f->server);
    server_release(&f->server);
    if (forget) server_forget(f->opt->dir);
    guard_end(&f->guard);
    if (f->lock >= 0) close(f->lock);
    if (f->child_fd >= 0) close(f->child_fd);
    if (f->parent_fd >= 0) close(f->parent_fd);
}

/* Watch for ended children, and for the end of the parent. */
static int open_watch(Fleet *f, Error *err)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    f->child_fd = signalfd(-1, &children, SFD_NONBLOCK | SFD_CLOEXEC);
    if (f->child_fd < 0) return error_errno(err, "cannot watch for ended processes");
    if (!f->opt->parent) return 0;
    f->parent_fd = pidfd_open(f->opt->parent, 0);
    if (f->parent_fd < 0) return error_errno(err, "cannot watch process %d", f->opt->parent);
    return 0;
}

int fleet_run(const FleetOptions *opt, int *status, Error *err)
{
    Fleet *f = memory_alloc(sizeof *f);
    *f = (Fleet){.opt = opt, .lock = -1, .child_fd = -1, .parent_fd = -1, .guard = {.pipe = -1}};
    if (getrandom(&f->nonce, sizeof f->nonce, 0) < 0) f->nonce = 0;
    int failed = open_watch(f, err) || start_all(f, err) || supervise(f, err);
    int s = f->command_status;
    take_down(f, !failed && WIFEXITED(s) && !stop_requested());
    free(f);
    *status = WIFSIGNALED(s) ? 128 + WTERMSIG(s) : WEXITSTATUS(s);
    return failed ? -1 : 0;
}
