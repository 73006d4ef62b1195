/* Reads a dataset artifact as training examples of stage 1, with weight (advantage) 1 each. */
#ifndef STAGES_TRAIN_DATASET_EXAMPLES_H
#define STAGES_TRAIN_DATASET_EXAMPLES_H

#include "stages/policy/policy.h"
#include "stages/train/training.h"

/* Encodes the dataset with p's tokenizer. The *plain plain examples come first, then the
 * contrastive ones, the corrections, then the drills. An example of more than max_len tokens is dropped and counted
 * in *dropped. The caller frees *out with examples_free. */
int dataset_examples(const Policy *p, const char *dataset, int max_len, Example **out, long *n,
                     long *plain, long *dropped, Error *err);

#endif
