/* Teachers write the samples of stage 1. A teacher has a name:
 *   generator                       kernels that the generator draws (generate/draw/draw.h)
 *   openai:MODEL, anthropic:MODEL   an endpoint
 *   file:PATH                       a file of teachers (stages/teacher/teacher.h)
 *   dir:PATH                        the sources PATH/<task>/NAME.cu, in the order of their names
 */
#ifndef STAGES_TEACHER_TEACHER_H
#define STAGES_TEACHER_TEACHER_H

#include "artifacts/artifact.h"
#include "generate/draw/draw.h"
#include "stages/policy/budget.h"
#include "stages/policy/prompt_facts.h"
#include "tasks/designs.h"
#include "tasks/task.h"

/* A request for one answer, and its sample record (NULL: the teacher has no more answers). */
typedef struct {
    const Task *task;
    int trial;
    Record *record;
} TeacherRequest;

typedef struct {
    const char *name;            /* as above; an entry of a file may have another one */
    const char *endpoint;        /* "openai:MODEL"; NULL: the name */
    const char *url, *key_env;   /* endpoint; NULL: as llm/endpoint.h has it */
    double mistakes;             /* generator: share of kernels with a mistake */
    const Designs *without;      /* the same: genes that are not drawn; NULL: none */
    int trials, keep;            /* answers at most for a task; enough correct ones */
    int max_tokens, concurrency; /* endpoint */
    BudgetPrice price;           /* endpoint */
    Budget *budget;              /* endpoint: of the run; NULL: none */
    int *in_row;                 /* endpoint: requests given up in a row, of all calls; or NULL */
    uint64_t seed;
    const PromptFacts *facts; /* endpoint: what its prompts say of device and baselines */
} Teacher;

/* Returns -1 and ERROR_USAGE when the name is none of these. */
int teacher_check(const char *name, Error *err);

/* Adds the sources of a dir: teacher to the inputs of the artifact; other teachers have none. The
 * n-th source is the answer of trial n, so a file that is added or removed changes the answers and
 * the work starts over. It is an error when the folder has no source for any train task. A warning
 * names files and folders there that are not used. */
int teacher_input(const Teacher *t, const TaskSet *tasks, ArtifactSpec *out, Error *err);

/* Called for each answer when it arrives; takes over r->record. It must store the answer before it
 * returns. */
typedef int TeacherDone(void *ctx, TeacherRequest *r, Error *err);
typedef struct {
    TeacherRequest *req;
    size_t n;
    TeacherDone *done;
    void *ctx;
} TeacherRequests;
/* Asks for all answers; an endpoint's arrive in any order. */
int teacher_ask(const Teacher *t, const TeacherRequests *q, Error *err);

int teacher_is_endpoint(const Teacher *t);
/* Appends the answer that the generator draws: two texts and the source. UNSUPPORTED: as of draw_kernel. */
int teacher_draw(const Task *task, const DrawOptions *o, Buffer *out, Error *err);
/* About how many tokens an endpoint's prompt for the task has. */
double teacher_prompt_tokens(const Teacher *t, const Task *task);

/* Writes the id of an answer, "collect/<task>/<teacher>/<trial>". */
void teacher_sample_id(const Teacher *t, const Task *task, int trial, char *out, size_t size);

/* ---- the list of teachers of stage 1: names by comma, and files of endpoints.
 *
 * "file:PATH" is a JSON file {"teachers": [ENTRY, ...]}. An entry is a name, as in the list, or an
 * object: "api" ("openai" or "anthropic") and "model"; and where they differ from the defaults
 * "name" (of the teacher, in its samples), "url", "key" (the variable of the environment that holds
 * the key), "trials", "keep", "tokens" (of an answer), "concurrency" and "price", an object with
 * "input" and "output": dollars for a million tokens. Other fields are refused. ---- */
enum { TEACHERS_MAX = 64 };

typedef struct {
    Teacher items[TEACHERS_MAX];
    int n;
    char **texts; /* what the items point to */
    int n_texts;
} Teachers;

/* Reads a list. Every teacher has the settings of `common` where its entry has no other. Two of one
 * name are an error. The caller releases *out in any case. */
int teachers_read(const char *list, const Teacher *common, Teachers *out, Error *err);
void teachers_release(Teachers *t);

#endif
