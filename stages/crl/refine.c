/* The prompts are in the order of the samples, so that the answers of a group are adjacent. */
#include "stages/crl/prompts.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stages/policy/feedback.h"

enum { MAX_PROMPT = 1 << 20 };

/* Returns the length of the part of an id that belongs to the first turn. */
static int root_length(const char *id)
{
    const char *turn = strstr(id, "/turn-");
    return turn ? (int)(turn - id) : (int)strlen(id);
}

/* Returns the group of the first turn: of the first sample whose prompt has the text. Later turns
 * have it in the name of their group. */
static const char *group_of(const SampleSet *s, long at)
{
    const Sample *x = &s->items[at];
    if (x->turn > 1) return x->group;
    for (long i = 0; i < at; i++)
        if (!strcmp(s->items[i].task, x->task) && !strcmp(s->items[i].prompt, x->prompt))
            return s->items[i].group;
    return x->group;
}

/* The prompts of a turn that are being written. */
typedef struct {
    ArtifactWriter *w;
    const SampleSet *s;
    const PromptFacts *facts;
    int turn;
} Refinement;

static int write_prompt(const Refinement *n, long at, const Task *t, Error *err)
{
    const Sample *x = &n->s->items[at];
    Buffer text, verdict;
    buffer_init(&text, MAX_PROMPT);
    buffer_init(&verdict, MAX_PROMPT);
    const PromptStyle style = prompt_facts_style(n->facts, t->name);
    int rc = feedback_write(x, style.full, &verdict, err);
    if (!rc) {
        const PromptAttempt a = {x->source, strlen(x->source), verdict.data, verdict.len};
        prompt_write_again(&text, t, &a, &style);
        if (text.full)
            rc = error_set(err, ERROR_LIMIT, "the prompt after %s is longer than %d bytes", x->id,
                           MAX_PROMPT);
    }
    const char *group = group_of(n->s, at);
    char *id = memory_printf("%.*s/turn-%d", root_length(x->id), x->id, n->turn),
         *name = memory_printf("%.*s/turn-%d", root_length(group), group, n->turn);
    Record *r = record_new();
    record_text(r, "id", id);
    record_text(r, "task", t->name);
    record_text(r, "split", t->heldout ? "heldout" : "train");
    record_text(r, "kind", "plain");
    record_textn(r, "text", text.data ? text.data : "", text.len);
    record_text(r, "group", name);
    record_text(r, "parent", x->id);
    record_int(r, "turn", n->turn);
    if (!rc) rc = artifact_write(n->w, r, err);
    record_free(r);
    free(id);
    free(name);
    buffer_release(&text);
    buffer_release(&verdict);
    return rc;
}

int refine_write(const SampleSet *s, const TaskSet *tasks, const PromptFacts *facts, int turn,
                 const char *path, const ArtifactSpec *spec, Error *err)
{
    Refinement n = {NULL, s, facts, turn};
    if (artifact_create(path, spec, &n.w, err)) return -1;
    int rc = 0;
    for (long i = 0; !rc && i < s->n; i++) {
        const Sample *x = &s->items[i];
        const Task *t = taskset_find(tasks, x->task, strlen(x->task));
        if (x->outcome == OUTCOME_EVALUATOR_ERROR) continue;
        if (!t)
            rc = error_set(err, ERROR_UNKNOWN_NAME, "sample %s: no task is named \"%s\"", x->id,
                           x->task);
        else if (x->turn != turn - 1)
            rc = error_set(err, ERROR_INVALID, "sample %s: expected turn %d, found %d", x->id,
                           turn - 1, x->turn);
        else
            rc = write_prompt(&n, i, t, err);
    }
    return artifact_end(n.w, rc, err);
}
