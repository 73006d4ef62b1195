/* The common part of the programs of the three training stages: what follows when the flags are
 * parsed and the stage's own combinations of flags are checked. */
#ifndef STAGES_TRAIN_LEARN_PROGRAM_H
#define STAGES_TRAIN_LEARN_PROGRAM_H

#include "stages/data/stage_config.h"
#include "stages/train/learn.h"

typedef struct {
    const FlagSpec *program;
    ConfigDefaults *defaults; /* from before the flags were parsed */
    EngineFlags *engine;
    const char *required;     /* flags that only --plan can do without: "samples|output" */
    const ModelConfig *small; /* the model that --plan measures when there is no base, or NULL */
    void *stage;              /* the first argument of the two functions */
    /* Adds the inputs of the new model to its spec. */
    int (*inputs)(void *stage, ArtifactSpec *spec, Error *err);
    /* Makes the n examples. The caller frees *ex, also after an error. */
    int (*examples)(void *stage, LearnOptions *l, Example **ex, long *n, Error *err);
} LearnProgram;

/* Checks the engine's flags, then plans or trains as l says. Fills in l->spec and l->engine.
 * Returns the exit status; an error ends the program with a message. */
int learn_program(const LearnProgram *p, LearnOptions *l);

#endif
