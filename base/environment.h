/* Variables of the environment that hold several numbers: "lease=30,retry=60". */
#ifndef BASE_ENVIRONMENT_H
#define BASE_ENVIRONMENT_H

#include "base/error.h"

typedef struct {
    const char *name;
    double low, high; /* what the number may be */
    double *value;    /* left as it is where the variable does not name it */
} EnvironmentNumber;

/* Reads the numbers of a variable; one that is not set, or is empty, names none. Another name, or a value
 * that is no number from low to high, is ERROR_USAGE. Allocates nothing. */
int environment_numbers(const char *variable, const EnvironmentNumber *table, int n, Error *err);

/* A number of $QUERN_TEST, which tests of programs set: "refuse=3" makes the third allocation fail,
 * "parts=1" compiles each kernel of an op line by itself. 0: it is not set. */
long environment_test(const char *name);

#endif
