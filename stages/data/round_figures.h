/* The figures of one round's samples, for curves and controls. */
#ifndef STAGES_DATA_ROUND_FIGURES_H
#define STAGES_DATA_ROUND_FIGURES_H

#include "eval/judge/statistics.h"
#include "stages/data/turns.h"
#include "tasks/task.h"

/* ---- the sentence with which an answer to a contrastive prompt begins: "code2 is faster than code1". It
 * is held against the scores that the prompt shows. ---- */
/* NONE: the prompt shows fewer than two kernels. SILENT: the answer has no such sentence, or it
 * names a kernel that is not shown. TIE: the two have the same score as shown. */
typedef enum {
    COMPARISON_NONE,
    COMPARISON_SILENT,
    COMPARISON_TIE,
    COMPARISON_RIGHT,
    COMPARISON_WRONG
} Comparison;

enum { COMPARISON_MAX = 8 }; /* kernels of a prompt that are read */

/* Reads the titles "// codeN (score S)" of a prompt. Returns how many there are, at most
 * COMPARISON_MAX; score[i] belongs to code i + 1. */
int comparison_scores(const char *prompt, double score[COMPARISON_MAX]);
/* Judges the first such sentence of an answer. */
Comparison comparison_judge(const char *prompt, const char *answer);

/* A part of a round's samples of the first turn. Unjudged ones are not counted. */
typedef struct {
    long samples, succeeded;
    double score, square, tokens; /* sums over the samples: scores, their squares, and the tokens of
                                     answers whose ids are known */
    long with_ids;
    double surprise, sampled; /* sum of -log p of tokens as sampled, and how many */
    double best;              /* sum over the tasks of log2 of the expected best of 8 scores */
    Interval best8; /* exp2 of its mean, by resampling each task's samples; the tasks stay */
    int tasks;
} RoundPart;

enum { ROUND_TECHNIQUES = 9 };

typedef struct {
    RoundPart plain, contrastive; /* of train tasks: prompts that show no kernels, or some */
    RoundPart heldout, composition,
        family; /* all heldout tasks; those of a known and of a new family */
    long technique[ROUND_TECHNIQUES],
        correct;                     /* correct kernels of train tasks, and what they use */
    long compared;                   /* answers to prompts with two kernels or more */
    long right, wrong, tied, silent; /* stages/data/round_figures.h */
    TurnFigures turn[SAMPLES_MAX_TURNS];
    int turns;
} RoundFigures;

/* tasks: those that are counted, which tell the two kinds of heldout tasks apart. NULL: all are counted, and
 * the kinds are not told apart. */
void round_figures(const SampleSet *s, const TaskSet *tasks, RoundFigures *out);

/* Calls put with each figure's name and value, in one order: "plain.success", "comparison.right".
 * A share without samples is left out. */
void round_figures_each(const RoundFigures *f, void (*put)(void *ctx, const char *name, double v),
                        void *ctx);

/* The expected best of k of the n scores, drawn without replacement. Sorts the scores. */
double figures_best_of(double *score, int n, int k);

#endif
