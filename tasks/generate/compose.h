/* Draws compositions of operators: a core (a fold, a softmax, a product, ...) with pointwise operators
 * before and after it. Equal random numbers give equal compositions. */
#ifndef TASKS_GENERATE_COMPOSE_H
#define TASKS_GENERATE_COMPOSE_H

#include "base/random.h"
#include "tasks/derive/derive.h"

enum {
    COMPOSE_AXES = 6,
    COMPOSE_INPUTS = 8,
    COMPOSE_LINES = 10,
    COMPOSE_PARTS = 8, /* primitives of one composition */
    COMPOSE_TEXT = 160
};

/* A composition and the texts that its draft names; it must not be moved. */
typedef struct {
    Draft draft;
    char name[64];
    int n_parts;
    const char *part[COMPOSE_PARTS]; /* in order: "add_bias", "softmax", "relu" */
    DraftAxis axes[COMPOSE_AXES];
    DraftTensor inputs[COMPOSE_INPUTS], output;
    char line[COMPOSE_LINES][COMPOSE_TEXT];
    const char *lines[COMPOSE_LINES], *tags[COMPOSE_PARTS + 4];
    Dtype dtype;
} Composition;

/* The families that tasks to learn from have, and those that only the held-out family split has. */
int compose_families(void);
int compose_other_families(void);

/* Draws one of family 0 to n - 1; other: of the other families. */
void compose(Random *random, int family, int other, Composition *out);

#endif
