/* A fault: what stopped a judgement. A function that takes a Fault returns 0 when all is well; 1
 * when the candidate is at fault, which the outcome, line and message say; and -1 when the
 * evaluator failed, which `error` says. A fault needs no release. */
#ifndef EVAL_DEVICE_FAULT_H
#define EVAL_DEVICE_FAULT_H

#include <stdint.h>

#include "base/error.h"
#include "eval/device/outcome.h"

typedef struct {
    Outcome outcome;
    int line;           /* of the source, 0 none */
    char cheat[64];     /* the cheat's name with OUTCOME_CHEAT, else "" */
    char message[2048]; /* a sentence that a model can act on */
    /* The place where a device stopped a launch sequence: the launch's index in the sequence, and the
     * kernel, block and thread. */
    int launch;
    char kernel[256];
    uint32_t block[3], thread[3];
    /* Where in the message the block is named, and where the sentence without kernel, line, block and
     * thread begins. 0: it names no block. */
    int place, what;
    Error error; /* of the evaluator */
} Fault;

/* Set outcome, line and message, and clear the rest. Returns 1. */
int fault_set(Fault *f, Outcome outcome, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same with OUTCOME_CHEAT and the cheat's name. Returns 1. */
int fault_cheat(Fault *f, const char *cheat, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* For code of the harness, whose fault is the evaluator's failure: sets *err from what a function that
 * returned rc left in *f. Returns rc 0, else -1. */
int fault_as_error(const Fault *f, int rc, Error *err);
/* Append ` (where)` to the message. */
void fault_place(Fault *f, const char *where);

#endif
