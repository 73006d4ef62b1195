/* The draws depend on the seed and the id of a sample, not on the other samples' draws. */
#include "stages/sft/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "stages/policy/prompt.h"
#include "stages/teacher/describe.h"

enum { MAX_TEXT = 1 << 20 };

static int write_example(ArtifactWriter *w, const Sample *s, const char *kind, long k,
                         const Buffer *prompt, const char *answer, Error *err)
{
    Record *r = record_new();
    char id[512];
    snprintf(id, sizeof id, "%s#%ld", s->id, k);
    record_text(r, "id", id);
    record_text(r, "task", s->task);
    record_text(r, "kind", kind);
    record_textn(r, "prompt", prompt->data, prompt->len);
    record_text(r, "answer", answer);
    record_float(r, "score", s->score);
    int rc = artifact_write(w, r, err);
    record_free(r);
    return rc;
}

/* Writes "code2 is faster than code1." and a description of the faster one. */
static int compare_text(Buffer *out, const Sample *a, const Sample *b)
{
    int second = b->score > a->score;
    const Sample *fast = second ? b : a;
    if (fabs(a->score - b->score) < 0.005)
        buffer_puts(out, "code1 and code2 are equally fast.\n");
    else
        buffer_printf(out, "code%d is faster than code%d.\n", second ? 2 : 1, second ? 1 : 2);
    buffer_printf(out, "code%d: ", second ? 2 : 1);
    if (describe_source(fast->source, strlen(fast->source), out)) return -1;
    return buffer_puts(out, "\n");
}

/* Writes the teacher's answer with the comparison at the start of its analysis. */
static void contrastive_answer(Buffer *out, const char *answer, const char *comparison)
{
    static const char heading[] = "## Performance Analysis\n";
    const char *at = strstr(answer, heading);
    size_t head = at ? (size_t)(at - answer) + sizeof heading - 1 : 0;
    if (!at) buffer_puts(out, heading);
    buffer_append(out, answer, head);
    buffer_puts(out, comparison);
    buffer_puts(out, answer + head);
}

typedef struct {
    const Sample **items;
    int n;
} Group;

/* Draws two distinct kernels of the group other than `self`. Returns 0 when there are not two. */
static int pick_two(const Group *g, const Sample *self, Random *rng, const Sample *out[2])
{
    if (g->n < 3) return 0;
    for (int k = 0; k < 2;) {
        const Sample *s = g->items[random_below(rng, (uint64_t)g->n)];
        if (s == self || (k && s == out[0])) continue;
        out[k++] = s;
    }
    return 1;
}

static int contrastive_example(ArtifactWriter *w, const Sample *s, const Task *t, const Group *g,
                               const DatasetOptions *o, long k, Error *err)
{
    Random rng;
    random_init(&rng, o->seed ^ random_hash(s->id, strlen(s->id)), (uint64_t)k);
    const Sample *two[2];
    if (!pick_two(g, s, &rng, two)) return 0;
    Exemplar ex[2];
    for (int i = 0; i < 2; i++)
        ex[i] = (Exemplar){two[i]->id, two[i]->source, strlen(two[i]->source), two[i]->score};
    Buffer prompt, comparison, answer;
    buffer_init(&prompt, MAX_TEXT);
    buffer_init(&comparison, MAX_TEXT);
    buffer_init(&answer, MAX_TEXT);
    const PromptStyle style = prompt_facts_style(o->facts, t->name);
    prompt_write(&prompt, t, ex, 2, &style);
    int rc = compare_text(&comparison, two[0], two[1]);
    if (rc) rc = error_set(err, ERROR_LIMIT, "sample %s: cannot describe its exemplars", s->id);
    contrastive_answer(&answer, s->text, comparison.data);
    if (!rc) rc = write_example(w, s, "contrastive", k, &prompt, answer.data, err);
    buffer_release(&prompt);
    buffer_release(&comparison);
    buffer_release(&answer);
    return rc;
}

/* Returns the distinct correct samples of one task, in their order. The caller frees items. */
static Group successes(const SampleSet *s, const char *task)
{
    Group g = {memory_array((size_t)s->n, sizeof *g.items), 0};
    for (long i = 0; i < s->n; i++) {
        const Sample *x = &s->items[i];
        if (x->outcome != OUTCOME_OK || x->heldout || strcmp(x->task, task)) continue;
        int seen = 0;
        for (int k = 0; k < g.n && !seen; k++)
            seen = !strcmp(g.items[k]->source_digest, x->source_digest);
        if (!seen) g.items[g.n++] = x;
    }
    return g;
}

static int write_task(ArtifactWriter *w, const SampleSet *s, const Task *t, const DatasetOptions *o,
                      long *kept, Error *err)
{
    Group g = successes(s, t->name);
    Buffer prompt;
    buffer_init(&prompt, MAX_TEXT);
    const PromptStyle style = prompt_facts_style(o->facts, t->name);
    prompt_write(&prompt, t, NULL, 0, &style);
    int rc = 0;
    for (int i = 0; !rc && i < g.n; i++) {
        rc = write_example(w, g.items[i], "plain", 0, &prompt, g.items[i]->text, err);
        /* Spread c contrastive examples per kernel evenly: floor((i+1)c) - floor(ic) for this
         * one. */
        long more = (long)((i + 1) * o->contrastive) - (long)(i * o->contrastive);
        for (long k = 0; !rc && k < more; k++)
            rc = contrastive_example(w, g.items[i], t, &g, o, k + 1, err);
    }
    *kept += g.n;
    buffer_release(&prompt);
    free(g.items);
    return rc;
}

int dataset_write(const SampleSet *s, const TaskSet *tasks, const DatasetOptions *o,
                  const char *path, const ArtifactSpec *spec, long *kept, Error *err)
{
    ArtifactWriter *w;
    *kept = 0;
    if (artifact_create(path, spec, &w, err)) return -1;
    int rc = 0;
    for (int i = 0; !rc && i < tasks->n; i++)
        if (!tasks->tasks[i]->heldout) rc = write_task(w, s, tasks->tasks[i], o, kept, err);
    if (!rc && *kept == 0)
        rc = error_set(err, ERROR_INVALID,
                       "no sample of a train task was correct: nothing to learn from");
    if (rc) {
        artifact_abandon(w);
        return -1;
    }
    return artifact_finish(w, err);
}
