/* A prompts artifact in memory, and the records of the answers to its prompts. */
#ifndef STAGES_DATA_PROMPTSET_H
#define STAGES_DATA_PROMPTSET_H

#include "artifacts/artifact.h"

typedef struct {
    char *id, *task, *split, *text;
    char *group;     /* of its answers; NULL: the id */
    char *parent;    /* the sample whose verdict it shows; NULL: none */
    int64_t turn;    /* 1: it shows no verdict */
    int contrastive; /* the prompt shows kernels */
    int copies;      /* answers that it asks for; 0: as many as the sampler gives a prompt */
    long first_row;  /* of its answers, set by promptset_spread */
    char **shown;    /* ids of the kernels that it shows */
    int n_shown;
} PromptItem;

typedef struct {
    PromptItem *items;
    long n;
} PromptSet;

enum { PROMPT_MAX_COPIES = 4096 };

int promptset_load(const char *path, PromptSet *out, Error *err);
void promptset_release(PromptSet *p);
/* Removes prompt i; the later ones move up. */
void promptset_remove(PromptSet *p, long i);

/* Numbers the answers in the order of (prompt, copy); a prompt that does not say how many it asks for
 * gets `copies`. Returns how many there are. Prompts are removed before, not after. */
long promptset_spread(PromptSet *p, int copies);
/* Returns the index of the prompt of answer `row`, and sets its copy. */
long promptset_row(const PromptSet *p, long row, int *copy);

/* The seed of answer number `trial` to a prompt, made of the prompt's id and the run's seed. */
uint64_t promptset_seed(const PromptItem *p, uint64_t seed, int trial);

/* The sample record of an answer. Its candidate is the code in the text; it is "" when the text has
 * none, or when finish is not "stop". The caller frees the record. */
typedef struct {
    const char *stage, *producer;
    int trial;
    uint64_t seed;
    const char *finish; /* "stop", "length" */
    const char *text;
    size_t len;
} PromptAnswer;
Record *promptset_answer(const PromptItem *p, const PromptAnswer *a);
/* Sets a field of n token ids. */
void promptset_ids(Record *r, const char *key, const int32_t *ids, size_t n);

#endif
