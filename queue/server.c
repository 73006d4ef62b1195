/* Start and stop of the private redis-server. Data files are moved only when the server has refused
 * them by itself, and are moved back when it does not start without them either. */
#include "queue/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "base/stop.h"
#include "queue/connection.h"

enum { START_S = 60, STOP_S = 5, COMPACT_S = 20, COMPACT_LEAST = 256 << 10, LOG_MAX = 1000000 };

void server_child_setup(pid_t parent)
{
    setpgid(0, 0);
    process_die_with_parent();
    if (getppid() != parent) _exit(127); /* the parent died before PDEATHSIG was set */
    static const int signals[] = {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGCHLD};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], SIG_DFL);
    /* nohup has set it to be ignored, by all that it starts. */
    if (signal(SIGHUP, SIG_DFL) == SIG_IGN) signal(SIGHUP, SIG_IGN);
    sigset_t none;
    sigemptyset(&none); /* unblock last, so that pending signals act by default */
    sigprocmask(SIG_SETMASK, &none, NULL);
}

int server_prepare(Server *s, const char *dir, Error *err)
{
    *s = (Server){0};
    if (file_mkdirs(dir, err)) return -1;
    if (!realpath(dir, s->dir)) return error_errno(err, "cannot find the directory %s", dir);
    if (strchr(s->dir, '\n'))
        return error_set(err, ERROR_USAGE, "the queue's directory has a line break in its name: %s",
                         s->dir);
    const char *socket_dir = s->dir;
    if (strlen(s->dir) + strlen("/redis.sock") >= sizeof s->socket) {
        snprintf(s->short_dir, sizeof s->short_dir, "/tmp/quern-XXXXXX");
        if (!mkdtemp(s->short_dir)) {
            s->short_dir[0] = 0;
            return error_errno(err, "cannot make a directory in /tmp for the queue's socket");
        }
        socket_dir = s->short_dir;
    }
    snprintf(s->socket, sizeof s->socket, "%s/redis.sock", socket_dir);
    snprintf(s->url, sizeof s->url, "unix:%s", s->socket);
    return 0;
}

/* Writes NAME "PATH/FILE". Within quotes Redis takes a backslash before a quote and a backslash. */
static void write_path(int fd, const char *name, const char *path, const char *file)
{
    char quoted[2 * PATH_MAX];
    size_t n = 0;
    for (const char *p = path; *p && n + 2 < sizeof quoted; p++) {
        if (*p == '"' || *p == '\\') quoted[n++] = '\\';
        quoted[n++] = *p;
    }
    quoted[n] = 0;
    dprintf(fd, "%s \"%s%s\"\n", name, quoted, file);
}

/* Write the settings that the server reads from stdin ("-"). */
static void write_config(const Server *s, int fd)
{
    write_path(fd, "unixsocket", s->socket, "");
    write_path(fd, "dir", s->dir, "");
    write_path(fd, "logfile", s->dir, "/redis.log");
    dprintf(fd, "port 0\nunixsocketperm 700\ndaemonize no\n"
                "save \"\"\nappendonly yes\nappendfsync always\nno-appendfsync-on-rewrite "
                "no\naof-load-truncated yes\n"
                "maxmemory-policy noeviction\nset-proc-title no\n");
}

static _Noreturn void exec_server(const Server *s, pid_t parent, int config)
{
    server_child_setup(parent);
    char log[PATH_MAX + 16];
    snprintf(log, sizeof log, "%s/redis.log", s->dir);
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (dup2(config, 0) < 0 || (out >= 0 && (dup2(out, 1) < 0 || dup2(out, 2) < 0))) _exit(126);
    execlp("redis-server", "redis-server", "-", (char *)NULL);
    _exit(errno == ENOENT ? 127 : 126);
}

void server_bound_log(const Server *s)
{
    char log[PATH_MAX + 16], before[PATH_MAX + 20];
    struct stat st;
    snprintf(log, sizeof log, "%s/redis.log", s->dir);
    snprintf(before, sizeof before, "%s.1", log);
    if (!stat(log, &st) && st.st_size > LOG_MAX && rename(log, before))
        log_debug("cannot rename %s: %s", log, strerror(errno));
}

static int spawn(Server *s, Error *err)
{
    int config[2];
    server_bound_log(s);
    if (pipe2(config, O_CLOEXEC)) return error_errno(err, "cannot make a pipe for redis-server");
    write_config(s, config[1]); /* far smaller than a pipe's 64 KiB */
    close(config[1]);
    unlink(s->socket); /* left by a killed server; this process holds the directory's lock */
    s->spawned = 1;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) exec_server(s, parent, config[0]);
    close(config[0]);
    if (pid < 0) return error_errno(err, "cannot fork for redis-server");
    setpgid(pid, pid);
    s->pid = pid;
    return 0;
}

/* Returns 1 when the server has ended, with *status as waitpid gives it, or 0. */
static int ended(Server *s, int *status)
{
    if (!s->pid || waitpid(s->pid, status, WNOHANG) == 0) return 0;
    s->pid = 0;
    return 1;
}

/* Returns 0 when the server answers, 1 when it ended by itself, -1 on any other failure. */
static int wait_until_it_answers(Server *s, Error *err)
{
    double deadline = clock_seconds() + START_S;
    err->text[0] = 0;
    while (clock_seconds() < deadline) {
        int status = 0;
        if (ended(s, &status)) {
            if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
                return error_set(err, ERROR_SERVER,
                                 "there is no redis-server in PATH (Debian: apt-get install "
                                 "redis-server); install it, "
                                 "or let QUERN_REDIS name a server");
            /* Ended from outside: this says nothing about its data. */
            int stopped =
                WIFEXITED(status) ? WEXITSTATUS(status) != 1 : WTERMSIG(status) == SIGKILL;
            error_set(err, ERROR_SERVER, "redis-server %s as it started; %s/redis.log says why",
                      stopped ? "was ended" : "ended", s->dir);
            return stopped ? -1 : 1;
        }
        if (stop_requested())
            return error_set(err, ERROR_STOPPED, "stopped while redis-server was starting");
        struct stat st;
        if (!stat(s->socket, &st) && connection_answers(s->url, err)) return 0;
        clock_sleep(0.005);
    }
    if (!err->text[0]) error_set(err, ERROR_SERVER, "it made no socket");
    return error_prefix(err, "redis-server in %s did not answer for %d s", s->dir, START_S);
}

typedef struct {
    char from[PATH_MAX + 32], to[PATH_MAX + 64]; /* to "": nothing was renamed */
} Aside;

/* Rename data that the server may have refused. */
static int put_data_aside(const Server *s, Aside *a, Error *err)
{
    snprintf(a->from, sizeof a->from, "%s/appendonlydir", s->dir);
    if (!file_exists(a->from)) return -1;
    for (int i = 1; i < 1000; i++) {
        snprintf(a->to, sizeof a->to, "%s.damaged-%d", a->from, i);
        if (file_exists(a->to)) continue;
        if (!rename(a->from, a->to)) return 0;
        a->to[0] = 0;
        return error_errno(err, "cannot rename %s", a->from);
    }
    a->to[0] = 0;
    return error_set(err, ERROR_CORRUPT, "%s holds a thousand damaged queues; remove them", s->dir);
}

/* The server does not start without the data either: rename them back. */
static void put_data_back(const Aside *a)
{
    Error err;
    if (!a->to[0]) return;
    if (file_exists(a->from) && file_remove_tree(a->from, &err)) log_warn("%s", err.text);
    if (rename(a->to, a->from))
        log_warn("the queue's data are left as %s: %s", a->to, strerror(errno));
}

int server_start(Server *s, Error *err)
{
    Aside aside = {.to = ""};
    for (int tries = 0; tries < 2; tries++) {
        int rc = spawn(s, err) ? -1 : wait_until_it_answers(s, err);
        if (!rc && aside.to[0])
            log_warn("the queue's data could not be read; they are kept as %s and the jobs are "
                     "done again",
                     aside.to);
        if (!rc) return 0;
        server_stop(s);
        if (rc < 0 || tries || put_data_aside(s, &aside, err)) break;
    }
    put_data_back(&aside);
    return -1;
}

/* Returns a number of INFO persistence, or -1. */
static long long persistence(Connection *c, const char *name)
{
    Command info = {0};
    command_texts(&info, "INFO", "persistence", NULL);
    redisReply *r = connection_ask(c, &info);
    const char *at = r ? strstr(reply_text(r), name) : NULL;
    long long v = at ? strtoll(at + strlen(name), NULL, 10) : -1;
    if (r) freeReplyObject(r);
    return v;
}

void server_compact(const Server *s)
{
    Connection *c;
    Command rewrite = {0};
    redisReply *r = NULL;
    double deadline = clock_seconds() + COMPACT_S;
    if (!s->pid || connection_open(s->url, &c, NULL)) return;
    command_text(&rewrite, "BGREWRITEAOF");
    if (persistence(c, "aof_current_size:") >= COMPACT_LEAST) r = connection_ask(c, &rewrite);
    while (r && clock_seconds() < deadline && !stop_requested() &&
           (persistence(c, "aof_rewrite_in_progress:") > 0 ||
            persistence(c, "aof_rewrite_scheduled:") > 0))
        clock_sleep(0.01);
    if (r) freeReplyObject(r);
    connection_close(c);
}

void server_forget(const char *dir)
{
    char data[PATH_MAX + 32], gone[PATH_MAX + 32];
    Error err;
    snprintf(data, sizeof data, "%s/appendonlydir", dir);
    snprintf(gone, sizeof gone, "%s/forgotten", dir);
    /* Renamed first: a server does not start on a part of its data. */
    if (file_remove_tree(gone, &err) || (file_exists(data) && rename(data, gone)) ||
        file_remove_tree(gone, &err))
        log_warn("the queue's data in %s stay", dir);
}

void server_stop(Server *s)
{
    if (!s->pid) return;
    double deadline = clock_seconds() + STOP_S;
    int status;
    kill(s->pid, SIGTERM);
    while (clock_seconds() < deadline) {
        if (ended(s, &status)) return;
        clock_sleep(0.002);
    }
    kill(s->pid, SIGKILL);
    while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR) continue;
    s->pid = 0;
}

void server_release(Server *s)
{
    server_stop(s);
    if (s->spawned) unlink(s->socket); /* else the socket belongs to another run */
    if (s->short_dir[0]) rmdir(s->short_dir);
    s->short_dir[0] = s->socket[0] = 0;
}
