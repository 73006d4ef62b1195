/* Makes a prompts artifact: for each task `groups` prompts, plain or contrastive. */
#ifndef STAGES_CRL_PROMPTS_H
#define STAGES_CRL_PROMPTS_H

#include "stages/crl/exemplar.h"
#include "stages/data/samples.h"
#include "stages/policy/prompt_facts.h"
#include "tasks/task.h"

typedef struct Prompts Prompts;
/* Writes more prompts behind the others. */
typedef int PromptMore(void *ctx, const Prompts *p, Error *err);

typedef struct {
    const char *stage; /* in the ids: "crl-3" */
    int groups;        /* prompts per task */
    int plain;         /* how many of them show no exemplars; they come first */
    int exemplars;     /* N of a contrastive prompt */
    int heldout;       /* heldout tasks too, always plain: the pool has none of their kernels */
    int only_heldout;  /* no train tasks */
    const PromptFacts *facts; /* style, device, baselines */
    ExemplarOptions draw;
    uint64_t seed;
    PromptMore *more; /* NULL: none */
    void *ctx;        /* of more */
} PromptOptions;

/* Writes the artifact. When fewer than two kernels can be drawn, a contrastive prompt shows the
 * baseline too, with score 1. */
int prompts_write(const TaskSet *tasks, const Pool *pool, const PromptOptions *o, const char *path,
                  const ArtifactSpec *spec, Error *err);

/* The artifact that is being written. */
struct Prompts {
    ArtifactWriter *w;
    const Pool *pool;
    const PromptOptions *o;
};

/* Writes the prompt of number g of a task. copies: answers that it asks for; 0: it does not say. */
int prompts_write_one(const Prompts *p, const Task *t, int g, int copies, Error *err);

/* ---- the prompts of a next turn: each shows an answer's kernel and its verdict, and asks for a better
 * one.
 *
 * The prompt's id is the id of the first turn's answer and "/turn-N", so that all ids of a trajectory
 * begin alike. Its answers are compared with those of the same turn to the same first prompt, or to
 * first prompts of the same text, as the plain ones of a task are: that is its group. ---- */
/* Writes a prompt for every judged answer of the samples, which are of one turn, `turn` - 1. */
int refine_write(const SampleSet *s, const TaskSet *tasks, const PromptFacts *facts, int turn,
                 const char *path, const ArtifactSpec *spec, Error *err);

#endif
