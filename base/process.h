/* A child process in a group of its own, with limits, its output captured and a deadline; when
 * the deadline passes or the caller is told to stop, the whole group is killed. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/digest.h"
#include "base/error.h"

typedef struct {
    double timeout_s;            /* wall clock; 0: none */
    int cpu_s;                   /* RLIMIT_CPU; 0: inherited */
    size_t memory_bytes;         /* RLIMIT_AS; 0: inherited */
    size_t file_bytes;           /* RLIMIT_FSIZE; 0: inherited */
    void (*before_exec)(void *); /* runs in the child, after the limits: sandboxes; may be NULL */
    void *before_exec_ctx;
    const void *input; /* written to the child's stdin, or NULL: /dev/null */
    size_t input_len;
} ProcessOptions;

typedef struct {
    int exit_code; /* 0..255, or -1 when it did not exit */
    int signal;    /* that ended it, or 0 */
    int timed_out;
    int output_full; /* more output than the buffer's max: the child was killed */
} ProcessResult;

/* Runs argv to its end. out and errout are cleared first; NULL is /dev/null. Returns -1 only if the
 * child cannot be started or watched, or is killed because a signal asks this process to stop. */
int process_run(const char *const argv[], const ProcessOptions *opt, Buffer *out, Buffer *errout,
                ProcessResult *result, Error *err);

/* The folder of the running executable. */
int process_self_dir(char *out, size_t size, Error *err);
/* Tells the running executable from others, and from what it is when it is built again: by its place, size
 * and time. -1: it cannot be looked at. */
int process_self_stamp(char out[DIGEST_HEX]);
/* The path of another program of Quern: beside this one, or in the build's bin folder for a test. */
int process_find_program(const char *name, char *out, size_t size, Error *err);

/* For a setting that a library reads before main: unless the variable is set, sets it and starts this
 * program again. Returns where it is set, or cannot be. Call it first in main. */
void process_again_with(const char *name, const char *value, char *const argv[]);

/* Makes this process the parent of orphans below it, since a container may have no init that reaps
 * them. */
void process_adopt(void);
/* Reaps killed children for at most `seconds`: those in a process group, or all of them for 0. */
void process_reap(int group, double seconds);

/* In a forked child: the kernel kills it when its parent ends. */
void process_die_with_parent(void);

/* Tells systemd how a service of Type=notify stands: "READY=1", "STOPPING=1". Without $NOTIFY_SOCKET
 * nothing happens. */
void process_notify(const char *state);

#endif
