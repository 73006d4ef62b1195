/* Examples of a second turn for stage 1 (stages/crl/refine.h): the prompt shows a kernel and its verdict,
 * the answer is a better kernel of the same task. Of a wrong kernel it is the correct one that differs
 * least, of a correct one the faster one that differs least. A teacher's mistake is one edit of a correct
 * kernel, so that its correction is often that kernel. Without such examples a model from scratch does
 * not know what a second turn asks for. */
#ifndef STAGES_SFT_CORRECTIONS_H
#define STAGES_SFT_CORRECTIONS_H

#include "stages/sft/dataset.h"

/* Writes up to floor(n c) examples for a task with n distinct correct kernels, the best first; c is
 * o->corrections. Wrong kernels and correct ones take turns. */
int corrections_write(ArtifactWriter *w, const SampleSet *s, const Task *t,
                      const Sample *const *correct, int n, const DatasetOptions *o, Error *err);

#endif
