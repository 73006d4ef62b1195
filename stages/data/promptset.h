/* A prompts artifact in memory. */
#ifndef STAGES_DATA_PROMPTSET_H
#define STAGES_DATA_PROMPTSET_H

#include "artifacts/artifact.h"

typedef struct {
    char *id, *task, *split, *text;
    int contrastive; /* it shows kernels */
} PromptItem;

typedef struct {
    PromptItem *items;
    long n;
} PromptSet;

int promptset_load(const char *path, PromptSet *out, Error *err);
void promptset_release(PromptSet *p);
void promptset_remove(PromptSet *p, long i);

/* The record of one answer; the candidate is cut out of it, "" when there is none. Caller frees. */
Record *promptset_answer(const PromptItem *p, const char *stage, const char *producer, int trial,
                         uint64_t seed, const char *finish, const char *text, size_t len);

#endif
