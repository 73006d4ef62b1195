/* Reads a dataset artifact as training examples of stage 1, with weight (advantage) 1 each. */
#ifndef STAGES_TRAIN_DATASET_EXAMPLES_H
#define STAGES_TRAIN_DATASET_EXAMPLES_H

#include "stages/policy/policy.h"
#include "stages/train/training.h"

/* The most examples that a validation looks at: it takes the time of a few steps. */
enum { DATASET_MAX_HELD = 256 };

typedef struct {
    int max_len; /* in tokens; a longer example is dropped and counted */
    double held; /* share of the tasks to validate on; 0: none */
    Example *ex; /* plain examples first, then contrastive ones, corrections, drills */
    long n, plain, dropped;
    Example *val; /* plain examples of the held tasks, which ex has nothing of */
    long n_val;
} DatasetExamples;

/* Encodes the dataset with p's tokenizer. max_len and held are given. Which tasks are held follows
 * from their names alone. The caller frees out with dataset_examples_release, or takes its arrays,
 * also after an error. */
int dataset_examples(const Policy *p, const char *dataset, DatasetExamples *out, Error *err);
void dataset_examples_release(DatasetExamples *d);

#endif
