/* A private redis-server: a Unix socket in a directory, no TCP port, every change fsynced before
 * its reply. The data stay in the directory, so the next start finds finished jobs done. It dies
 * with the process that started it. */
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
    int spawned;   /* one was started here, so that the socket is ours */
} Server;

/* Choose the paths, making dir. */
int server_prepare(Server *s, const char *dir, Error *err);
/* Start it and wait, at most 60 s, until it answers. A file of changes that a kill left
 * half-written is cut; one that cannot be read is put aside (the jobs are done again) and that is
 * said. */
int server_start(Server *s, Error *err);
void server_stop(Server *s);    /* SIGTERM, after 5 s SIGKILL; waits */
void server_release(Server *s); /* stops it and removes what was made here: the socket, short_dir */

/* In a child just forked, before exec: own process group, default signals, dies with `parent`. */
void server_child_setup(pid_t parent);

#endif
