/* The figures of one round's samples, for curves and controls. */
#ifndef STAGES_DATA_ROUND_FIGURES_H
#define STAGES_DATA_ROUND_FIGURES_H

#include "stages/data/turns.h"

/* Samples of train tasks whose prompts show no kernels, or some. Unjudged ones are not counted. */
typedef struct {
    long samples, succeeded;
    double score, tokens; /* sums over the samples; tokens of answers whose ids are known */
    long with_ids;
} RoundPart;

typedef struct {
    RoundPart plain, contrastive, heldout;
    long compared;                   /* answers to prompts with two kernels or more */
    long right, wrong, tied, silent; /* stages/data/comparison.h */
    TurnFigures turn[SAMPLES_MAX_TURNS];
    int turns;
} RoundFigures;

void round_figures(const SampleSet *s, RoundFigures *out);
/* Calls put with each figure's name and value, in one order: "plain.success", "comparison.right".
 * A share without samples is left out. */
void round_figures_each(const RoundFigures *f, void (*put)(void *ctx, const char *name, double v),
                        void *ctx);

#endif
