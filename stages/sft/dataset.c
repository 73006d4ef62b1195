/* The draws depend on the seed and the id of a sample, not on the other samples' draws. */
#include "stages/sft/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "stages/data/deciding.h"
#include "stages/data/describe.h"
#include "stages/policy/prompt.h"
#include "stages/sft/corrections.h"

enum { MAX_TEXT = 1 << 20, LIKE_MAX = 4 /* kernels of the target's design to draw from */ };
#define SHOWN 0.01 /* the step of the scores in a prompt */

int dataset_example(ArtifactWriter *w, const Sample *s, const char *kind, long k,
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

/* Writes "code2 is faster than code1: DRAM traffic decides.", a description of the faster one, and
 * what the target does better than it. */
static int compare_text(Buffer *out, const Sample *const two[2], const Sample *target)
{
    int second = two[1]->score > two[0]->score;
    const Sample *fast = two[second], *slow = two[!second];
    Deciding d;
    buffer_printf(out, "code%d is faster than code%d", second + 1, 2 - second);
    if (deciding_counter(&fast->verdict, &slow->verdict, &d))
        buffer_printf(out, ": %s decides", d.label);
    buffer_printf(out, ".\ncode%d: ", second + 1);
    if (describe_source(fast->source, strlen(fast->source), out)) return -1;
    if (deciding_counter(&target->verdict, &fast->verdict, &d))
        buffer_printf(out, "\nA better one %s.", d.change);
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

/* ---- which kernels a target is shown beside ---- */

int dataset_beats(const Sample *a, const Sample *b)
{
    double low = a->score, high = b->score;
    Error err;
    if (a->verdict.map && b->verdict.map && !view_float(&a->verdict, "low", &low, &err))
        view_float(&b->verdict, "high", &high, &err);
    return low > 1.02 * high && a->score > 1.02 * b->score;
}

/* Returns the share of the phrases of a's description that are in b's. */
static double likeness(const char *a, const char *b)
{
    int all = 0, common = 0;
    for (const char *p = a; *p;) {
        size_t n = strcspn(p, ",");
        char *phrase = memory_strndup(p, n);
        all++;
        common += strstr(b, phrase) != NULL;
        free(phrase);
        p += n;
        p += strspn(p, ", ");
    }
    return all ? (double)common / all : 0;
}

typedef struct {
    const Sample **items; /* distinct correct kernels of a task, the best first */
    char **design;        /* a description of each */
    int n;
} Group;

/* Draws for the target, items[at], a kernel that it beats, of a like design where there is one, and
 * a second one that the first beats. The order in out is random. Returns 0 when there are none. */
static int pick_two(const Group *g, int at, Random *rng, const Sample *out[2])
{
    int *first = memory_array((size_t)g->n, sizeof *first), n = 0, best[LIKE_MAX], likes = 0;
    for (int i = at + 1; i < g->n; i++)
        if (dataset_beats(g->items[at], g->items[i]) &&
            dataset_beats(g->items[i], g->items[g->n - 1]))
            first[n++] = i;
    for (; likes < LIKE_MAX && likes < n; likes++) { /* the most alike, the faster of equal ones */
        int top = -1;
        double largest = -1;
        for (int k = 0; k < n; k++) {
            double like = first[k] < 0 ? -1 : likeness(g->design[first[k]], g->design[at]);
            if (like > largest) largest = like, top = k;
        }
        best[likes] = first[top];
        first[top] = -1;
    }
    free(first);
    if (!likes) return 0;
    int fast = best[random_below(rng, (uint64_t)likes)], slow;
    do slow = fast + 1 + (int)random_below(rng, (uint64_t)(g->n - fast - 1));
    while (!dataset_beats(g->items[fast], g->items[slow]));
    int swap = (int)random_below(rng, 2);
    out[swap] = g->items[fast];
    out[!swap] = g->items[slow];
    return 1;
}

static int contrastive_example(ArtifactWriter *w, const Task *t, const Group *g, int at,
                               const Sample *const two[2], const DatasetOptions *o, long k,
                               Error *err)
{
    const Sample *s = g->items[at];
    Exemplar ex[2];
    for (int i = 0; i < 2; i++)
        ex[i] = (Exemplar){two[i]->id, two[i]->source, strlen(two[i]->source), two[i]->score};
    Buffer prompt, comparison, answer;
    buffer_init(&prompt, MAX_TEXT);
    buffer_init(&comparison, MAX_TEXT);
    buffer_init(&answer, MAX_TEXT);
    const PromptStyle style = prompt_facts_style(o->facts, t->name);
    prompt_write(&prompt, t, ex, 2, &style);
    int rc = compare_text(&comparison, two, s);
    if (rc) rc = error_set(err, ERROR_LIMIT, "sample %s: cannot describe its exemplars", s->id);
    contrastive_answer(&answer, s->text, comparison.data);
    if (!rc) rc = dataset_example(w, s, "contrastive", k, &prompt, answer.data, err);
    buffer_release(&prompt);
    buffer_release(&comparison);
    buffer_release(&answer);
    return rc;
}

/* Writes floor(n c) contrastive examples. The targets are the better half of the kernels, in turn;
 * one that nothing can be shown for is passed over. */
static int write_contrastive(ArtifactWriter *w, const Task *t, const Group *g,
                             const DatasetOptions *o, Error *err)
{
    long needed = (long)(g->n * o->contrastive), made = 0;
    int rc = 0, targets = (g->n + 1) / 2;
    for (long k = 1, before = -1; !rc && made < needed && made != before; k++) {
        before = made;
        for (int i = 0; !rc && i < targets && made < needed; i++) {
            const Sample *two[2];
            Random rng;
            random_init(&rng, o->seed ^ random_hash(g->items[i]->id, strlen(g->items[i]->id)),
                        (uint64_t)k);
            if (!pick_two(g, i, &rng, two)) continue;
            rc = contrastive_example(w, t, g, i, two, o, k, err);
            made++;
        }
    }
    return rc;
}

/* Writes one drill about two kernels of the group that were drawn. */
static int write_drill(ArtifactWriter *w, const Task *t, const Group *g, const int two[2],
                       const DatasetOptions *o, long k, Error *err)
{
    Exemplar ex[2];
    for (int i = 0; i < 2; i++)
        ex[i] = (Exemplar){g->items[two[i]]->id, "", 0, g->items[two[i]]->score};
    int second = ex[1].score > ex[0].score;
    Buffer prompt;
    char answer[80];
    snprintf(answer, sizeof answer, "## Performance Analysis\ncode%d is faster than code%d",
             second + 1, 2 - second);
    buffer_init(&prompt, MAX_TEXT);
    const PromptStyle style = prompt_facts_style(o->facts, t->name);
    prompt_write(&prompt, t, ex, 2, &style);
    int rc = dataset_example(w, g->items[two[second]], "drill", k, &prompt, answer, err);
    buffer_release(&prompt);
    return rc;
}

/* Writes floor(n d) drills. Their pairs are drawn uniformly; a pair that differs by less than the
 * prompt shows is passed over. */
static int write_drills(ArtifactWriter *w, const Task *t, const Group *g, const DatasetOptions *o,
                        Error *err)
{
    Random rng;
    long draws = g->n > 1 ? (long)(g->n * o->drills) : 0;
    int rc = 0;
    random_init(&rng, o->seed ^ random_hash(t->name, strlen(t->name)), g->n);
    for (long k = 1; !rc && k <= draws; k++) {
        int two[2] = {(int)random_below(&rng, (uint64_t)g->n),
                      (int)random_below(&rng, (uint64_t)g->n)};
        if (fabs(g->items[two[0]]->score - g->items[two[1]]->score) < SHOWN) continue;
        rc = write_drill(w, t, g, two, o, k, err);
    }
    return rc;
}

static int by_score(const void *a, const void *b)
{
    const Sample *x = *(const Sample *const *)a, *y = *(const Sample *const *)b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return strcmp(x->id, y->id);
}

/* Makes the distinct correct samples of one task, in their order. The caller releases them. */
static Group successes(const SampleSet *s, const char *task)
{
    Group g = {memory_array((size_t)s->n, sizeof *g.items), NULL, 0};
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

/* Sorts the group, the best first, and describes its kernels. */
static int describe_group(Group *g, Error *err)
{
    qsort(g->items, (size_t)g->n, sizeof *g->items, by_score);
    g->design = memory_array((size_t)g->n, sizeof *g->design);
    for (int i = 0; i < g->n; i++) {
        Buffer b;
        buffer_init(&b, MAX_TEXT);
        int rc = describe_source(g->items[i]->source, strlen(g->items[i]->source), &b);
        g->design[i] = buffer_detach(&b);
        buffer_release(&b);
        if (rc) return error_set(err, ERROR_LIMIT, "cannot describe sample %s", g->items[i]->id);
    }
    return 0;
}

static void group_release(Group *g)
{
    for (int i = 0; g->design && i < g->n; i++) free(g->design[i]);
    free(g->design);
    free(g->items);
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
    for (int i = 0; !rc && i < g.n; i++)
        rc = dataset_example(w, g.items[i], "plain", 0, &prompt, g.items[i]->text, err);
    if (!rc) rc = describe_group(&g, err);
    if (!rc) rc = write_contrastive(w, t, &g, o, err);
    if (!rc) rc = write_drills(w, t, &g, o, err);
    if (!rc) rc = corrections_write(w, s, t, g.items, g.n, o, err);
    *kept += g.n;
    buffer_release(&prompt);
    group_release(&g);
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
    if (!rc && *kept == 0 && !o->empty)
        rc = error_set(err, ERROR_INVALID,
                       "no sample of a train task was correct: nothing to learn from");
    if (rc) {
        artifact_abandon(w);
        return -1;
    }
    return artifact_finish(w, err);
}
