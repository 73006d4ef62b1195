/* The collection of stage 1: for each task and teacher up to `trials` answers of the teacher's, until `keep`
 * distinct ones are correct (method, section 2). A wave asks for as many answers as are still
 * missing and has them judged; then the next wave begins. A journal keeps the answers for a resumed
 * run. */
#ifndef STAGES_SFT_COLLECT_H
#define STAGES_SFT_COLLECT_H

#include "artifacts/artifact.h"
#include "queue/queue.h"
#include "stages/teacher/teacher.h"

typedef struct {
    const Teacher *teachers;
    int n_teachers; /* 0: an artifact without samples */
    const char *device, *output;
    uint64_t eval_seed;
} CollectOptions;

/* Collects answers for the train tasks and writes the samples artifact o->output. A requested stop
 * is ERROR_STOPPED. */
int collect_run(const TaskSet *tasks, Queue *q, const CollectOptions *o, const ArtifactSpec *spec,
                Error *err);

#endif
