/* Status goes to stderr, results to stdout. QUERN_LOG=quiet|info|debug sets what is said. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/error.h"

void log_open(const char *program); /* the name in front of every line; once, in main */
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* With the milliseconds since log_open. */
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* main's last word: "program: text". log_die ends with the error's exit status, or with 128 plus
 * the signal that asked to stop. */
_Noreturn void log_die(const Error *err);
_Noreturn void log_exit(int status, const Error *err);

/* Progress with rate and time left: redrawn at most 6 times a second on a terminal, one line a
 * minute elsewhere, nothing under QUERN_LOG=quiet. */
typedef struct {
    const char *what; /* "evaluate" */
    const char *unit; /* "candidates" */
    long done, total;
    double start, shown;
    long first; /* done at the start: a resumed run's rate counts only new work */
} Progress;

void progress_start(Progress *p, const char *what, const char *unit, long done, long total);
void progress_set(Progress *p, long done);
void progress_end(Progress *p); /* always says the total, the time and the rate */

/* Flush stdout and report a failed write: the last act of main. Returns the exit status. */
int log_close(int status);

#endif
