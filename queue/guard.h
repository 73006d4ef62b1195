/* The guard outlives a quern-fleet that was killed with -9: a small process that holds a pipe to
 * it, and when the pipe ends kills every process group it was told of. PDEATHSIG alone would take
 * the direct children and leave the grandchildren of the command. */
#ifndef QUEUE_GUARD_H
#define QUEUE_GUARD_H

#include <sys/types.h>

#include "base/error.h"

typedef struct {
    pid_t pid;
    int pipe; /* -1: none */
} Guard;

/* keep_fd (or -1) stays open in the guard: the directory's lock is free only when all is down.
 * remove: up to two paths to unlink or rmdir after a kill; NULL: none. */
int guard_start(Guard *g, int keep_fd, const char *remove_file, const char *remove_dir, Error *err);
void guard_watch(Guard *g, pid_t group);
void guard_forget(Guard *g, pid_t group);
void guard_end(Guard *g); /* all is down already: no kill; waits for it */

/* Does it still run? A zombie does not; kill(pid, 0) could not tell. */
int guard_process_runs(pid_t pid);

#endif
