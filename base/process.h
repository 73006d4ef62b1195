/* A child process in a group of its own, with limits, its output captured and a deadline; when
 * the deadline passes or the caller is told to stop, the whole group is killed. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stddef.h>

#include "base/buffer.h"
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

/* Run argv to its end. out and errout may be NULL (then /dev/null) and are cleared first.
 * Returns -1 only when the child could not be started or watched, or was killed since this process
 * is told to stop. */
int process_run(const char *const argv[], const ProcessOptions *opt, Buffer *out, Buffer *errout,
                ProcessResult *result, Error *err);

/* Directory of the running executable, to find the other programs beside it. */
int process_self_dir(char *out, size_t size, Error *err);
/* The path of another program of Quern: beside this one, or in the bin folder of the build that a
 * test runs from. */
int process_find_program(const char *name, char *out, size_t size, Error *err);

/* For a program whose process takes long to end although its work is done, by a device's driver for
 * one. Returns in a child, which does the work; this process waits until the child says
 * process_answered, or ends, and then ends as the child does. Before any thread is there. -1: no
 * child could be had, and the caller goes on by itself, where process_answered does nothing. */
int process_answer_early(void);
/* Ends this process; the other one has said `status` to who waits for it, and left its standard
 * files, before that. */
_Noreturn void process_answered(int status);

/* What a child leaves behind becomes this process's own child: a container may have no other that
 * would reap it. */
void process_adopt(void);
/* Waits for what has been killed: the children in a process group, or with 0 all of them, at most
 * so many seconds. */
void process_reap(int group, double seconds);

/* In a child just forked: die when the parent does. */
void process_die_with_parent(void);

#endif
