/* quern-prompt, and variants of it that write more prompts. */
#ifndef STAGES_CRL_PROMPT_PROGRAM_H
#define STAGES_CRL_PROMPT_PROGRAM_H

#include "base/flags.h"
#include "stages/crl/prompts.h"

typedef struct {
    const char *program, *about;
    const Flag *flags; /* beside quern-prompt's own, at most 12; a row without a name ends them */
    /* After the flags are read: loads what it needs, and adds inputs to the artifact. root: --task-root. */
    int (*open)(void *ctx, const char *root, const TaskSet *tasks, ArtifactSpec *spec, Error *err);
    PromptMore *write;
    void *ctx;
} PromptVariant;

/* The whole program; v NULL: quern-prompt itself. Returns the exit status. */
int prompt_program(int argc, char **argv, const PromptVariant *v);

#endif
