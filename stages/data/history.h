/* The earlier rounds of a stage, as a flag lists them: "SAMPLES:VERDICTS,SAMPLES:VERDICTS,...", the
 * oldest first. A list of another form is ERROR_USAGE. */
#ifndef STAGES_DATA_HISTORY_H
#define STAGES_DATA_HISTORY_H

#include "stages/data/samples.h"

enum { HISTORY_MAX = 30 };

/* Adds the verdicts of every round to the inputs of spec. text NULL or "" lists no rounds. */
int history_inputs(const char *text, ArtifactSpec *spec, Error *err);

/* Called with one round, which is released after the call. */
typedef int HistoryRound(void *ctx, SampleSet *round, Error *err);
/* Loads the rounds one after another and calls round for each, until it returns -1. */
int history_each(const char *text, HistoryRound *round, void *ctx, Error *err);

#endif
