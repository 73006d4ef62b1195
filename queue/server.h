/* A private redis-server: a Unix socket in a directory and no TCP port. It fsyncs every change
 * before it replies. The data stay in the directory, so the next start finds finished jobs done.
 * The server dies with the process that started it. */
#ifndef QUEUE_SERVER_H
#define QUEUE_SERVER_H

#include <limits.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct {
    pid_t pid;          /* 0: not running */
    char dir[PATH_MAX]; /* absolute */
    char short_dir[32]; /* in /tmp, when the socket's path in dir would exceed 107 bytes; else "" */
    char socket[108];
    char url[128]; /* unix:SOCKET */
    int spawned;   /* a server was started here, so the socket is ours */
} Server;

/* Choose the paths and make dir. */
int server_prepare(Server *s, const char *dir, Error *err);
/* Start the server and wait, at most 60 s, until it answers. Redis cuts a file of changes whose end
 * is torn. A file that cannot be read is renamed with a warning, and the jobs are done again. */
int server_start(Server *s, Error *err);
/* Let a running server rewrite its data without what was deleted: a tenth of the space. Gives up
 * after 20 s; the data are whole either way. */
void server_compact(const Server *s);
/* Remove the data of a server that has stopped: its jobs are as if they had never been. */
void server_forget(const char *dir);
/* Put the server's log aside, over the one before, above a megabyte. The server opens it for each line. */
void server_bound_log(const Server *s);
void server_stop(Server *s);    /* SIGTERM, after 5 s SIGKILL; waits */
void server_release(Server *s); /* stop it and remove its socket and short_dir */

/* For a forked child before exec: own process group, default signals, death with `parent`. */
void server_child_setup(pid_t parent);

#endif
