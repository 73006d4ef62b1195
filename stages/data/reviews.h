/* The reviews of record kernels (stages/crl/review.h): which rewards are withheld. */
#ifndef STAGES_DATA_REVIEWS_H
#define STAGES_DATA_REVIEWS_H

#include "stages/data/samples.h"

/* Makes a failure of every sample whose review withholds its reward: outcome cheat, score 0. path
 * NULL: there are no reviews. Samples with the source of a withheld one, for its task, are withheld
 * too. Returns how many, or -1. */
long reviews_apply(const char *path, SampleSet *s, Error *err);

#endif
