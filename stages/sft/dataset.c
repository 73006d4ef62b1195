/* The draws depend on the seed and the id of a sample, not on the other samples' draws. */
#include "stages/sft/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "stages/data/deciding.h"
#include "stages/data/describe.h"
#include "stages/policy/feedback.h"
#include "stages/policy/prompt.h"

/* The examples of one task that are being written. */
typedef struct {
    ArtifactWriter *w;
    const SampleSet *samples;
    const Task *task;
    const DatasetOptions *o;
    PromptStyle style;
    const Sample **correct; /* distinct correct kernels, the best first */
    char **design;          /* a description of each */
    int n;
} TaskExamples;

typedef struct {
    const Sample *of; /* the answer is, or is made of, its text */
    const char *kind;
    long k; /* last part of the id */
    const Buffer *prompt;
    const char *answer;
} DatasetExample;

enum { MAX_TEXT = 1 << 20, LIKE_MAX = 4 /* kernels of the target's design to draw from */ };
#define SHOWN 0.01 /* the step of the scores in a prompt */

static int dataset_example(ArtifactWriter *w, const DatasetExample *e, Error *err)
{
    Record *r = record_new();
    char id[512];
    snprintf(id, sizeof id, "%s#%ld", e->of->id, e->k);
    record_text(r, "id", id);
    record_text(r, "task", e->of->task);
    record_text(r, "kind", e->kind);
    record_textn(r, "prompt", e->prompt->data, e->prompt->len);
    record_text(r, "answer", e->answer);
    record_float(r, "score", e->of->score);
    return artifact_put(w, r, err);
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

/* Whether a is faster than b beyond doubt: their intervals do not meet, and 2% lie between them. */
static int dataset_beats(const Sample *a, const Sample *b)
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

/* Draws for the target, correct[at], a kernel that it beats, of a like design where there is one, and
 * a second one that the first beats. The order in out is random. Returns 0 when there are none. */
static int pick_two(const TaskExamples *g, int at, Random *rng, const Sample *out[2])
{
    int *first = memory_array((size_t)g->n, sizeof *first), n = 0, best[LIKE_MAX], likes = 0;
    for (int i = at + 1; i < g->n; i++)
        if (dataset_beats(g->correct[at], g->correct[i]) &&
            dataset_beats(g->correct[i], g->correct[g->n - 1]))
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
    while (!dataset_beats(g->correct[fast], g->correct[slow]));
    int swap = (int)random_below(rng, 2);
    out[swap] = g->correct[fast];
    out[!swap] = g->correct[slow];
    return 1;
}

static int contrastive_example(const TaskExamples *x, int at, const Sample *const two[2], long k,
                               Error *err)
{
    const Sample *s = x->correct[at];
    Exemplar ex[2];
    for (int i = 0; i < 2; i++)
        ex[i] = (Exemplar){two[i]->id, two[i]->source, strlen(two[i]->source), two[i]->score};
    Buffer prompt, comparison, answer;
    buffer_init(&prompt, MAX_TEXT);
    buffer_init(&comparison, MAX_TEXT);
    buffer_init(&answer, MAX_TEXT);
    prompt_write(&prompt, x->task, ex, 2, &x->style);
    int rc = compare_text(&comparison, two, s);
    if (rc) rc = error_set(err, ERROR_LIMIT, "sample %s: cannot describe its exemplars", s->id);
    contrastive_answer(&answer, s->text, comparison.data);
    const DatasetExample e = {s, "contrastive", k, &prompt, answer.data};
    if (!rc) rc = dataset_example(x->w, &e, err);
    buffer_release(&prompt);
    buffer_release(&comparison);
    buffer_release(&answer);
    return rc;
}

/* Writes floor(n c) contrastive examples. The targets are the better half of the kernels, in turn;
 * one that nothing can be shown for is passed over. */
static int write_contrastive(const TaskExamples *x, Error *err)
{
    long needed = (long)(x->n * x->o->contrastive), made = 0;
    int rc = 0, targets = (x->n + 1) / 2;
    for (long k = 1, before = -1; !rc && made < needed && made != before; k++) {
        before = made;
        for (int i = 0; !rc && i < targets && made < needed; i++) {
            const Sample *two[2];
            const char *id = x->correct[i]->id;
            Random rng;
            random_init(&rng, x->o->seed ^ random_hash(id, strlen(id)), (uint64_t)k);
            if (!pick_two(x, i, &rng, two)) continue;
            rc = contrastive_example(x, i, two, k, err);
            made++;
        }
    }
    return rc;
}

/* Writes one drill about two kernels of the task that were drawn. */
static int write_drill(const TaskExamples *x, const int two[2], long k, Error *err)
{
    Exemplar ex[2];
    for (int i = 0; i < 2; i++)
        ex[i] = (Exemplar){x->correct[two[i]]->id, "", 0, x->correct[two[i]]->score};
    int second = ex[1].score > ex[0].score;
    Buffer prompt;
    char answer[80];
    snprintf(answer, sizeof answer, "## Performance Analysis\ncode%d is faster than code%d",
             second + 1, 2 - second);
    buffer_init(&prompt, MAX_TEXT);
    prompt_write(&prompt, x->task, ex, 2, &x->style);
    const DatasetExample e = {x->correct[two[second]], "drill", k, &prompt, answer};
    int rc = dataset_example(x->w, &e, err);
    buffer_release(&prompt);
    return rc;
}

/* Writes floor(n d) drills. Their pairs are drawn uniformly; a pair that differs by less than the
 * prompt shows is passed over. */
static int write_drills(const TaskExamples *x, Error *err)
{
    Random rng;
    const char *task = x->task->name;
    long draws = x->n > 1 ? (long)(x->n * x->o->drills) : 0;
    int rc = 0;
    random_init(&rng, x->o->seed ^ random_hash(task, strlen(task)), x->n);
    for (long k = 1; !rc && k <= draws; k++) {
        int two[2] = {(int)random_below(&rng, (uint64_t)x->n),
                      (int)random_below(&rng, (uint64_t)x->n)};
        if (fabs(x->correct[two[0]]->score - x->correct[two[1]]->score) < SHOWN) continue;
        rc = write_drill(x, two, k, err);
    }
    return rc;
}

/* ---- examples of a second turn (stages/crl/prompts.h): the prompt shows a kernel and its verdict, the
 * answer is a better kernel of the same task. Of a wrong kernel it is the correct one that differs
 * least, of a correct one the faster one that differs least. A teacher's mistake is one edit of a
 * correct kernel, so that its correction is often that kernel. Without such examples a model from
 * scratch does not know what a second turn asks for. ---- */

typedef struct {
    const Sample **items; /* distinct kernels that are not correct, in their order */
    int n;
} Wrong;

/* Returns the wrong kernels of the task. The caller frees the items. */
static Wrong wrong_of(const SampleSet *s, const char *task)
{
    Wrong out = {memory_array((size_t)s->n + 1, sizeof *out.items), 0};
    for (long i = 0; i < s->n; i++) {
        const Sample *x = &s->items[i];
        int seen = 0;
        if (x->outcome == OUTCOME_OK || x->outcome == OUTCOME_EVALUATOR_ERROR || x->heldout ||
            !*x->source || !x->verdict.map || strcmp(x->task, task))
            continue;
        for (int k = 0; k < out.n && !seen; k++) seen = !strcmp(out.items[k]->source, x->source);
        if (!seen) out.items[out.n++] = x;
    }
    return out;
}

/* The bytes of the longer source that are not in a start or an end that both have. */
static size_t difference(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), start = 0, end = 0, shorter = n < m ? n : m;
    while (start < shorter && a[start] == b[start]) start++;
    while (end < shorter - start && a[n - 1 - end] == b[m - 1 - end]) end++;
    return (n > m ? n : m) - start - end;
}

/* Returns the correct kernel that differs least from x, the fastest of equal ones, or NULL. If x is
 * correct, it is one that beats x. */
static const Sample *correction_of(const TaskExamples *all, const Sample *x)
{
    const Sample *best = NULL;
    size_t least = SIZE_MAX;
    for (int i = 0; i < all->n; i++) {
        if (x->outcome == OUTCOME_OK && !dataset_beats(all->correct[i], x)) continue;
        size_t d = difference(x->source, all->correct[i]->source);
        if (d < least) least = d, best = all->correct[i];
    }
    return best;
}

static int write_one(const TaskExamples *all, const Sample *x, const Sample *answer, long k,
                     Error *err)
{
    Buffer prompt, verdict;
    buffer_init(&prompt, MAX_TEXT);
    buffer_init(&verdict, MAX_TEXT);
    int rc = feedback_write(x, all->style.full, &verdict, err);
    if (!rc) {
        const PromptAttempt a = {x->source, strlen(x->source), verdict.data, verdict.len};
        prompt_write_again(&prompt, all->task, &a, &all->style);
        const DatasetExample e = {answer, "correction", k, &prompt, answer->text};
        rc = dataset_example(all->w, &e, err);
    }
    buffer_release(&prompt);
    buffer_release(&verdict);
    return rc;
}

/* Writes up to floor(n c) examples; c is o->corrections. Wrong kernels and correct ones take turns. */
static int corrections_write(const TaskExamples *x, Error *err)
{
    const char *task = x->task->name;
    Wrong wrong = wrong_of(x->samples, task);
    Random rng;
    int rc = 0;
    random_init(&rng, x->o->seed ^ random_hash(task, strlen(task)), 1);
    for (long k = 1; !rc && k <= (long)(x->n * x->o->corrections); k++) {
        int pick_wrong = wrong.n && (k % 2 || x->n < 2);
        const Sample *from = pick_wrong ? wrong.items[random_below(&rng, (uint64_t)wrong.n)]
                                        : x->correct[random_below(&rng, (uint64_t)x->n)];
        const Sample *answer = correction_of(x, from);
        if (answer) rc = write_one(x, from, answer, k, err);
    }
    free(wrong.items);
    return rc;
}

static int by_score(const void *a, const void *b)
{
    const Sample *x = *(const Sample *const *)a, *y = *(const Sample *const *)b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return strcmp(x->id, y->id);
}

/* Lists the distinct correct samples of the task, in their order. */
static void list_correct(TaskExamples *x)
{
    x->correct = memory_array((size_t)x->samples->n, sizeof *x->correct);
    for (long i = 0; i < x->samples->n; i++) {
        const Sample *one = &x->samples->items[i];
        if (one->outcome != OUTCOME_OK || one->heldout || strcmp(one->task, x->task->name))
            continue;
        int seen = 0;
        for (int k = 0; k < x->n && !seen; k++)
            seen = !strcmp(x->correct[k]->source_digest, one->source_digest);
        if (!seen) x->correct[x->n++] = one;
    }
}

/* Writes the plain examples, in the order of the samples. */
static int write_plain(const TaskExamples *x, Error *err)
{
    Buffer prompt;
    buffer_init(&prompt, MAX_TEXT);
    prompt_write(&prompt, x->task, NULL, 0, &x->style);
    int rc = 0;
    for (int i = 0; !rc && i < x->n; i++) {
        const DatasetExample e = {x->correct[i], "plain", 0, &prompt, x->correct[i]->text};
        rc = dataset_example(x->w, &e, err);
    }
    buffer_release(&prompt);
    return rc;
}

/* Sorts the correct kernels, the best first, and describes them. */
static int describe_correct(TaskExamples *x, Error *err)
{
    qsort(x->correct, (size_t)x->n, sizeof *x->correct, by_score);
    x->design = memory_array((size_t)x->n, sizeof *x->design);
    for (int i = 0; i < x->n; i++) {
        const Sample *s = x->correct[i];
        Buffer b;
        buffer_init(&b, MAX_TEXT);
        int rc = describe_source(s->source, strlen(s->source), &b);
        x->design[i] = buffer_detach(&b);
        buffer_release(&b);
        if (rc) return error_set(err, ERROR_LIMIT, "cannot describe sample %s", s->id);
    }
    return 0;
}

static int write_task(TaskExamples x, long *kept, Error *err)
{
    x.style = prompt_facts_style(x.o->facts, x.task->name);
    list_correct(&x);
    int rc = -(write_plain(&x, err) || describe_correct(&x, err) || write_contrastive(&x, err) ||
               write_drills(&x, err) || corrections_write(&x, err));
    *kept += x.n;
    for (int i = 0; x.design && i < x.n; i++) free(x.design[i]);
    free(x.design);
    free(x.correct);
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
        if (!tasks->tasks[i]->heldout)
            rc = write_task((TaskExamples){w, s, tasks->tasks[i], o}, kept, err);
    long unjudged = 0;
    for (long i = 0; i < s->n; i++) unjudged += s->items[i].outcome == OUTCOME_EVALUATOR_ERROR;
    if (!rc && *kept == 0 && !o->empty && unjudged)
        rc = error_set(
            err, ERROR_INVALID,
            "%ld of %ld samples have no verdict, since the evaluator failed, and no other of "
            "a train task was correct: nothing to learn from",
            unjudged, s->n);
    else if (!rc && *kept == 0 && !o->empty)
        rc = error_set(err, ERROR_INVALID,
                       "no sample of a train task was correct: nothing to learn from");
    return artifact_end(w, rc, err);
}
