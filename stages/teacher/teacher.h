/* Where stage 1's samples come from. A teacher is named by a text:
 *   template               the built-in grammar of kernels
 *   openai:MODEL, anthropic:MODEL   an endpoint
 *   dir:PATH               sources on disk: PATH/<task>/NAME.cu, in the order of their names
 */
#ifndef STAGES_TEACHER_TEACHER_H
#define STAGES_TEACHER_TEACHER_H

#include "artifacts/artifact.h"
#include "tasks/task.h"

/* One answer that is wanted, and the record that came (NULL: the teacher has no more of it). */
typedef struct {
    const Task *task;
    int trial;
    Record *record;
} TeacherRequest;

typedef struct {
    const char *name;            /* as above */
    double mistakes;             /* of the template teacher: share of kernels with one */
    int max_tokens, concurrency; /* of an endpoint */
    uint64_t seed;
} Teacher;

/* -1 with a sentence when the name is none of the above. */
int teacher_check(const char *name, Error *err);

/* What the answers to these tasks come from beside the settings, as an input of the artifact: a
 * folder's sources, whose numbers are the trials. A file more or less moves them, so nothing begun
 * with other sources may be continued. A folder without a source for any train task of these is
 * refused; what else there is never read is warned of. */
int teacher_input(const Teacher *t, const TaskSet *tasks, ArtifactSpec *out, Error *err);

/* Called for each answer as it comes; persist before returning. */
typedef int TeacherDone(void *ctx, TeacherRequest *r, Error *err);
int teacher_ask(const Teacher *t, TeacherRequest *req, size_t n, TeacherDone *done, void *ctx,
                Error *err);

/* "collect/<task>/<teacher>/<trial>" */
void teacher_sample_id(const Teacher *t, const Task *task, int trial, char *out, size_t size);

#endif
