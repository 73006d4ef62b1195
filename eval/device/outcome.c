/* Names and meanings, from the list in outcome.h. */
#include "eval/device/outcome.h"

#include <string.h>

static const char *const names[] = {
#define X(id, name, text) name,
    OUTCOMES(X)
#undef X
};

static const char *const meanings[] = {
#define X(id, name, text) text,
    OUTCOMES(X)
#undef X
};

const char *outcome_name(Outcome o)
{
    return (unsigned)o < OUTCOME_COUNT ? names[o] : "unknown";
}

const char *outcome_meaning(Outcome o)
{
    return (unsigned)o < OUTCOME_COUNT ? meanings[o] : "not an outcome";
}

int outcome_from_name(const char *name, Outcome *out)
{
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        if (strcmp(names[i], name)) continue;
        *out = (Outcome)i;
        return 0;
    }
    return -1;
}
