/* The error that a user allows, in the words of the setting TOLERANCE:
 *
 *   2x     so many times the error of eager PyTorch itself against double precision
 *   1e-3   so much, whatever eager's is
 */
#ifndef BASE_ERROR_BUDGET_H
#define BASE_ERROR_BUDGET_H

#include "base/error.h"

typedef struct {
    double times;    /* of eager's error; 0: not given so */
    double absolute; /* 0: not given so */
} ErrorBudget;

/* Is a budget given? */
int budget_is_set(const ErrorBudget *b);

/* Reads a word. "" and "default": none is given. -1: the word is no budget. */
int budget_named(const char *word, ErrorBudget *out, Error *err);

/* Reads $TOLERANCE. Returns 1 and sets *out where it names a budget; 0 where it is not set, empty or default:
 * each task keeps its own; -1 where its text names none. */
int budget_of_run(ErrorBudget *out, Error *err);

#endif
