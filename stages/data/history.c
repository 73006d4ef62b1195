/* One round is in memory at a time. */
#include "stages/data/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef int Pair(void *ctx, const char *samples, const char *verdicts, Error *err);

static int each_pair(const char *text, Pair *pair, void *ctx, Error *err)
{
    char *list = memory_strdup(text ? text : ""), *save = NULL;
    int rc = 0, n = 0;
    for (char *p = strtok_r(list, ",", &save); !rc && p; p = strtok_r(NULL, ",", &save)) {
        char *colon = strchr(p, ':');
        if (!colon || ++n > HISTORY_MAX) {
            rc = error_set(err, ERROR_USAGE,
                           "--history expects at most %d pairs SAMPLES:VERDICTS, found '%s'",
                           HISTORY_MAX, p);
            break;
        }
        *colon = 0;
        rc = pair(ctx, p, colon + 1, err);
    }
    free(list);
    return rc;
}

static int add_input(void *ctx, const char *samples, const char *verdicts, Error *err)
{
    (void)samples; /* the verdicts name them among their inputs */
    return artifact_spec_input(ctx, verdicts, err);
}

int history_inputs(const char *text, ArtifactSpec *spec, Error *err)
{
    return each_pair(text, add_input, spec, err);
}

typedef struct {
    HistoryRound *round;
    void *ctx;
} Each;

static int load_round(void *ctx, const char *samples, const char *verdicts, Error *err)
{
    const Each *e = ctx;
    SampleSet s;
    if (samples_load(samples, verdicts, &s, err)) return -1;
    int rc = e->round(e->ctx, &s, err);
    samples_release(&s);
    return rc;
}

int history_each(const char *text, HistoryRound *round, void *ctx, Error *err)
{
    Each e = {round, ctx};
    return each_pair(text, load_round, &e, err);
}
