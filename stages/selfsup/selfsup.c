/* The weight of an example is its advantage. */
#include "stages/selfsup/selfsup.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "stages/train/dataset_examples.h"

int successes_add(Successes *s, const SampleSet *round, Pool *known, Error *err)
{
    s->items = memory_grow(s->items, (size_t)(s->n + round->n), sizeof *s->items);
    s->task = memory_grow(s->task, (size_t)(s->n + round->n), sizeof *s->task);
    for (long i = 0; i < round->n; i++) {
        const Sample *x = &round->items[i];
        if (x->heldout || x->outcome != OUTCOME_OK || pool_holds(known, x)) continue;
        const SampleSet one = {.items = &round->items[i], .n = 1};
        if (learn_example(s->policy, x, 0, &s->items[s->n], err)) return -1;
        s->items[s->n].advantage = 1;
        s->task[s->n++] = memory_strdup(x->task);
        s->own = s->n;
        pool_add(known, &one, "selfsup", 0);
    }
    return 0;
}

static long count_of(const Successes *s, const char *task)
{
    long n = 0;
    for (long i = 0; i < s->n; i++) n += !strcmp(s->task[i], task);
    return n;
}

void successes_balance(Successes *s)
{
    double inverse = 0; /* the sum of 1/n over the examples, which is the number of tasks */
    for (long i = 0; i < s->n; i++) inverse += 1.0 / (double)count_of(s, s->task[i]);
    for (long i = 0; i < s->n; i++)
        s->items[i].advantage = (double)s->n / inverse / (double)count_of(s, s->task[i]);
}

int successes_rehearse(Successes *s, const char *model_dir, const char *dataset, const Rehearsal *r,
                       Error *err)
{
    Policy p;
    Random rng;
    DatasetExamples d = {.max_len = r->max_len};
    if (policy_tokenizer(model_dir, &p, err)) return -1;
    int rc = dataset_examples(&p, dataset, &d, err);
    policy_release(&p);
    if (!rc && training_dropped(d.dropped, d.n + d.dropped, d.max_len, "SELFSUP", err)) {
        dataset_examples_release(&d);
        rc = -1;
    }
    if (rc) return -1;
    s->items = memory_grow(s->items, (size_t)(s->n + d.n), sizeof *s->items);
    random_init(&rng, r->seed, r->stream);
    for (long i = 0; i < d.n; i++) {
        if (random_uniform(&rng) < r->share)
            s->items[s->n++] = d.ex[i];
        else
            example_release(&d.ex[i]);
    }
    free(d.ex);
    return 0;
}

Example *successes_take(Successes *s, long *n)
{
    Example *ex = s->items;
    *n = s->n;
    s->items = NULL;
    s->n = 0;
    successes_release(s);
    return ex;
}

void successes_release(Successes *s)
{
    for (long i = 0; i < s->own; i++) free(s->task[i]);
    free(s->task);
    examples_free(s->items, s->n);
    *s = (Successes){0};
}
