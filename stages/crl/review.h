/* The review of records: a kernel that beats the best of its task so far is compared with the memory
 * of hacks, shown with the three most similar ones to a judge, and judged again where there is a
 * suspicion.
 *
 * A suspicion is the judge's word "cheat"; or, without a judge's word, a hack at least `near` alike.
 * The re-check is a new verdict on inputs of another seed. Only a re-check that is not ok withholds
 * the reward: a word alone does not. */
#ifndef STAGES_CRL_REVIEW_H
#define STAGES_CRL_REVIEW_H

#include "queue/queue.h"
#include "stages/crl/hacks.h"
#include "stages/data/pool.h"
#include "stages/policy/budget.h"
#include "tasks/task.h"

enum { REVIEW_SIMILAR = 3, REVIEW_RECORDS = 3 /* of a task in one round, the best ones */ };

typedef struct {
    const Pool *best; /* the pool before these samples */
    const Hacks *hacks;
    Queue *queue;      /* NULL when there is nothing to judge again: then a suspicion is an error */
    const char *judge; /* "openai:MODEL", "anthropic:MODEL"; NULL: none */
    int max_tokens, concurrency;
    double near;
    const char *device;
    uint64_t eval_seed; /* of the verdicts under review */
    Budget *budget;
    BudgetPrice price;
} ReviewOptions;

/* Writes a review of each record. */
int review_write(const SampleSet *s, const TaskSet *tasks, const ReviewOptions *o, const char *path,
                 const ArtifactSpec *spec, Error *err);

/* Reads a judge's answer: "cheat", "honest", or "" when its first word is neither. */
const char *review_word(const char *answer);

#endif
