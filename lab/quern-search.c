/* quern-search: answers a prompts artifact with kernels that the generator draws, whatever
 * the prompts show. It is the control of stage 3: as many evaluations without a model. */
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/data/promptset.h"
#include "stages/data/stage_config.h"
#include "stages/teacher/teacher.h"
#include "tasks/designs.h"
#include "tasks/task.h"

enum { MAX_ANSWER = 1 << 20 };

typedef struct {
    const char *stage;
    int64_t copies, seed;
    double mistakes;
    Designs without;
} Options;

typedef struct {
    const Options *o;
    const TaskSet *tasks;
    ArtifactWriter *w;
} Search;

/* A task of which no kernel can be drawn gets no answer: it is another teacher's. */
static int write_answer(const Search *s, const PromptItem *p, const Task *t, int copy, Error *err)
{
    const Options *o = s->o;
    Buffer text;
    uint64_t seed = promptset_seed(p, (uint64_t)o->seed, copy);
    const DrawOptions draw = {seed, o->mistakes, designs_of(&o->without, t->name)};
    buffer_init(&text, MAX_ANSWER);
    int rc = teacher_draw(t, &draw, &text, err);
    if (!rc) {
        const PromptAnswer a = {o->stage, "generator", copy, seed, "stop", text.data, text.len};
        Record *r = promptset_answer(p, &a);
        rc = artifact_write(s->w, r, err);
        record_free(r);
    } else if (err->code == ERROR_UNSUPPORTED) {
        rc = 0;
    }
    buffer_release(&text);
    return rc;
}

static int write_answers(Search *s, PromptSet *prompts, const char *output,
                         const ArtifactSpec *spec, Error *err)
{
    if (artifact_create(output, spec, &s->w, err)) return -1;
    int rc = 0;
    promptset_spread(prompts, (int)s->o->copies);
    for (long i = 0; !rc && i < prompts->n; i++) {
        const PromptItem *p = &prompts->items[i];
        const Task *t = taskset_find(s->tasks, p->task, strlen(p->task));
        if (!t)
            rc = error_set(err, ERROR_UNKNOWN_NAME, "prompt %s: no task is named \"%s\"", p->id,
                           p->task);
        for (int k = 0; !rc && k < p->copies; k++) rc = write_answer(s, p, t, k, err);
    }
    return artifact_end(s->w, rc, err);
}

int main(int argc, char **argv)
{
    const char *prompts = NULL, *output = NULL, *only = NULL, *root = NULL, *without = NULL,
               *ignored = NULL;
    Options o = {.stage = "search", .copies = 8, .seed = 1};
    const Flag flags[] = {
        {"prompts", FLAG_TEXT, &prompts, "prompts artifact", .required = 1, .aside = 1},
        {"output", FLAG_TEXT, &output, "samples artifact to write", .required = 1, .aside = 1},
        TASK_FLAGS(only, root),
        {"stage", FLAG_TEXT, &o.stage, "name in the samples"},
        {"copies", FLAG_INT, &o.copies, "answers a prompt", 1, 4096},
        {"mistakes", FLAG_FLOAT, &o.mistakes, "share of kernels with a beginner's mistake", 0, 1},
        {"without", FLAG_TEXT, &without, "file of genes that are not drawn, as of quern-collect",
         .aside = 1},
        /* quern-sample's, in whose place it stands */
        {"policy", FLAG_TEXT, &ignored, "ignored, as the next ones", .aside = 1},
        {"adapter", FLAG_TEXT, &ignored, "ignored", .aside = 1},
        {"engine", FLAG_TEXT, &ignored, "ignored", .aside = 1},
        {"gpus", FLAG_TEXT, &ignored, "ignored", .aside = 1},
        {"ledger", FLAG_TEXT, &ignored, "ignored", .aside = 1},
        {"budget", FLAG_TEXT, &ignored, "ignored", .aside = 1},
        {"price", FLAG_TEXT, &ignored, "ignored", .aside = 1},
        {"max-new", FLAG_TEXT, &ignored, "ignored", .aside = 1},
        {"batch", FLAG_TEXT, &ignored, "ignored", .aside = 1},
        {"seed", FLAG_INT, &o.seed, "of the answers", 0, 1e15},
        {0}};
    const FlagSpec spec = {"quern-search",
                           "--prompts FILE --output FILE",
                           "Random search with the generator, as a control of stage 3.",
                           flags,
                           0,
                           0,
                           0};
    flags_parse(&spec, argc, argv, (const char **)argv);
    stop_install();
    Error err;
    ArtifactSpec out;
    TaskSet tasks;
    PromptSet set;
    artifact_spec_init(&out, "samples", "quern-search");
    config_from_flags(&out, flags);
    if (artifact_spec_input(&out, prompts, &err) || config_tasks(&out, root, only, &tasks, &err))
        log_die(&err);
    if (without && designs_read(without, &o.without, &out, &err)) log_die(&err);
    if (artifact_same(&out, output)) return 0;
    Search s = {.o = &o, .tasks = &tasks};
    if (promptset_load(prompts, &set, &err) || write_answers(&s, &set, output, &out, &err))
        log_die(&err);
    promptset_release(&set);
    taskset_release(&tasks);
    designs_release(&o.without);
    artifact_spec_release(&out);
    return log_close(0);
}
