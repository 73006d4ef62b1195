/* Status goes to stderr, results to stdout. QUERN_LOG=quiet|info|debug sets the level. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/error.h"

void log_open(const char *program); /* sets the name in front of every line; main calls it once */
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Adds the milliseconds since log_open. */
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Print "program: text" and exit. log_die exits with the status of the error's code, or with 128 plus
 * the number of the signal that asked to stop. For main only. */
_Noreturn void log_die(const Error *err);
_Noreturn void log_exit(int status, const Error *err);

/* Progress with rate and time left. A terminal is redrawn at most 6 times a second; a log gets one
 * line a minute. QUERN_LOG=quiet prints none. mk/run gives QUERN_PROGRESS, a file that quern-status
 * reads: "WHAT DONE TOTAL UNIT RATE LEFT", rate in units a second, the time left in seconds. In front of
 * the file is "FD:", the descriptor of a terminal, where stderr is none. */
typedef struct {
    const char *what; /* "evaluate" */
    const char *unit; /* "candidates" */
    long done, total;
    double start, shown, logged;
    long first; /* done at the start, which the rate leaves out */
} Progress;

void progress_start(Progress *p, const char *what, const char *unit, long done, long total);
void progress_set(Progress *p, long done);
void progress_end(Progress *p); /* prints the total, the time and the rate */

/* Flushes stdout and reports a failed write; a pipe whose reader has left is SIGPIPE, without a word.
 * main returns its result as the exit status. */
int log_close(int status);

#endif
