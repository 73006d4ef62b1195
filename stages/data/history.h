/* Earlier rounds of a stage, as a flag names them: "SAMPLES:VERDICTS,SAMPLES:VERDICTS,...", oldest
 * first. */
#ifndef STAGES_DATA_HISTORY_H
#define STAGES_DATA_HISTORY_H

#include "stages/data/samples.h"

enum { HISTORY_MAX = 30 };

/* Make every round's verdicts an input of the spec. text NULL or "": no rounds. */
int history_inputs(const char *text, ArtifactSpec *spec, Error *err);

/* Load each round in turn and hand it over. */
typedef int HistoryRound(void *ctx, const SampleSet *round, Error *err);
int history_each(const char *text, HistoryRound *round, void *ctx, Error *err);

#endif
