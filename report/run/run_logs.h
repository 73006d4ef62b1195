/* The rules of a run as their logs tell them: when each ran, how it ended, and how far one that runs
 * has come. mk/run writes LOG and, while the rule runs, LOG's .progress (base/log.h). */
#ifndef REPORT_RUN_RUN_LOGS_H
#define REPORT_RUN_RUN_LOGS_H

#include "base/error.h"

typedef enum {
    RULE_RUNNING, /* no end is noted: it runs, or was killed with its run */
    RULE_DONE,
    RULE_STOPPED, /* by a signal */
    RULE_FAILED
} RuleState;

typedef struct {
    char name[128]; /* "crl-3-samples" */
    RuleState state;
    int exit_status;
    double start;            /* of the last time that it ran; seconds since 1970 */
    double seconds;          /* that the last time took; 0 while it runs */
    double spent;            /* of all times that the log tells of */
    char said[200];          /* its last message when it failed */
    char what[24], unit[24]; /* of the progress; "" when there is none */
    long done, total;
    double rate, left; /* units a second; seconds */
} RunRule;

/* Reads DIR/log/NAME.log of every rule, in the order in which they started. The caller frees *out. A
 * run without logs has none. */
int run_logs_read(const char *dir, RunRule **out, int *n, Error *err);

#endif
