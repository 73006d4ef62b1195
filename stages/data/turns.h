/* Turns: an answer to a prompt, then answers to the verdict on the one before
 * (stages/crl/prompts.h). */
#ifndef STAGES_DATA_TURNS_H
#define STAGES_DATA_TURNS_H

#include "stages/data/samples.h"

/* Sets the reward of each answer: the highest of its score and discount times the reward of the
 * answer that follows it. So an answer is worth the best kernel that it leads to, less for each turn
 * in between. A failure of the evaluator leads to nothing. A parent stands before its children; one
 * that is not in the set is ERROR_INVALID. */
int turns_discount(SampleSet *s, double discount, Error *err);

typedef struct {
    long samples, succeeded;
    long mended;  /* correct, and the parent was not */
    long faster;  /* correct, and faster than a correct parent */
    long broken;  /* not correct, and the parent was */
    double score; /* sum */
    double best;  /* sum over the trajectories that reached the turn of their best score so far */
} TurnFigures;

/* Counts the judged answers of each turn; out[t] is turn t + 1. Returns the number of turns. */
int turns_figures(const SampleSet *s, TurnFigures out[SAMPLES_MAX_TURNS]);

#endif
