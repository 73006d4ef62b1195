/* How much two kernels differ is measured by the bytes between their common start and their common end:
 * one edit in one place is small by this measure, whatever else the sources hold. */
#include "stages/sft/dataset.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "stages/policy/feedback.h"
#include "stages/policy/prompt.h"

enum { MAX_TEXT = 1 << 20 };

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

int corrections_write(const TaskExamples *x, Error *err)
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
