/* Stage 1's collection: for each task and teacher up to `trials` answers, until `keep` distinct
 * ones were correct (method, section 2). Answers come in waves of as many as are still wanted; each
 * wave is judged. */
#ifndef STAGES_SFT_COLLECT_H
#define STAGES_SFT_COLLECT_H

#include "artifacts/artifact.h"
#include "queue/queue.h"
#include "stages/teacher/teacher.h"

typedef struct {
    const Teacher *teachers;
    int n_teachers, trials, keep;
    const char *device, *output;
    uint64_t eval_seed;
} CollectOptions;

int collect_run(const TaskSet *tasks, Queue *q, const CollectOptions *o, const ArtifactSpec *spec,
                Error *err);

#endif
