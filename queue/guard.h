/* The guard: a small process that cleans up when the fleet is killed with SIGKILL. It holds the
 * read end of a pipe to the fleet. When the pipe ends, it kills every process group that it
 * watches. PDEATHSIG alone would kill the direct children and leave the command's grandchildren. */
#ifndef QUEUE_GUARD_H
#define QUEUE_GUARD_H

#include <sys/types.h>

#include "base/error.h"

typedef struct {
    pid_t pid;
    int pipe; /* -1: none */
} Guard;

/* Start the guard. keep_fd (or -1) stays open in it, so that the directory's lock is released only
 * after the kill. The guard then unlinks remove_file and removes remove_dir; NULL: none. */
int guard_start(Guard *g, int keep_fd, const char *remove_file, const char *remove_dir, Error *err);
void guard_watch(Guard *g, pid_t group);
void guard_forget(Guard *g, pid_t group);
void guard_end(Guard *g); /* end the guard without a kill, and wait for it */

/* Returns whether the process runs. A zombie does not; kill(pid, 0) cannot tell. */
int guard_process_runs(pid_t pid);

#endif
