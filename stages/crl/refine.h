/* The prompts of a next turn: each shows an answer's kernel and its verdict, and asks for a better
 * one.
 *
 * The prompt's id is the id of the first turn's answer and "/turn-N", so that all ids of a trajectory
 * begin alike. Its answers are compared with those of the same turn to the same first prompt, or to
 * first prompts of the same text, as the plain ones of a task are: that is its group. */
#ifndef STAGES_CRL_REFINE_H
#define STAGES_CRL_REFINE_H

#include "stages/data/samples.h"
#include "stages/policy/prompt_facts.h"
#include "tasks/task.h"

/* Writes a prompt for every judged answer of the samples, which are of one turn, `turn` - 1. */
int refine_write(const SampleSet *s, const TaskSet *tasks, const PromptFacts *facts, int turn,
                 const char *path, const ArtifactSpec *spec, Error *err);

#endif
