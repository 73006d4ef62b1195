/* What is known of mutants that the judge takes: a file of lines
 *     TASK <tab> DIGEST <tab> KIND <tab> PLACE <tab> CLASS <tab> REASON
 * in which DIGEST begins the original's, and CLASS is one of
 *     equivalent  the mutant computes what the original does, at every size and for all contents
 *     permitted   it differs by less than the documented tolerance, or where the task says nothing
 *     wrong       the judge should have refused it
 * Lines that begin with '#' and empty lines say nothing. */
#ifndef LAB_MUTATE_SURVIVORS_H
#define LAB_MUTATE_SURVIVORS_H

#include "base/error.h"

enum { SURVIVOR_DIGEST = 12 };

typedef enum {
    SURVIVOR_NEW,
    SURVIVOR_EQUIVALENT,
    SURVIVOR_PERMITTED,
    SURVIVOR_WRONG
} SurvivorClass;
const char *survivor_class_name(SurvivorClass c);

typedef struct {
    const char *task, *digest, *kind, *place,
        *reason; /* digest: of SURVIVOR_DIGEST digits at least */
    SurvivorClass class;
} Survivor;

typedef struct {
    Survivor *at;
    int n;
    char *text; /* what they point to */
} Survivors;

/* Errors name file and line. Release in every case. */
int survivors_read(const char *path, Survivors *out, Error *err);
/* The class of a mutant; SURVIVOR_NEW: there is no line of it. */
SurvivorClass survivors_class(const Survivors *s, const Survivor *mutant);
void survivors_release(Survivors *s);

#endif
