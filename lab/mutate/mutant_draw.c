/* The stream of an original's draw is its digest, so that other originals do not change it. */
#include "lab/mutate/mutant_draw.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

typedef struct {
    int first, n, next; /* originals of one task */
} Group;

static int group_tasks(const Originals *o, Group *groups)
{
    int n = 0;
    for (int i = 0; i < o->n; i++) {
        if (i && !strcmp(o->at[i].task, o->at[i - 1].task))
            groups[n - 1].n++;
        else
            groups[n++] = (Group){.first = i, .n = 1};
    }
    return n;
}

/* Give the next original of the group that has mutations left one more. 0: none has. */
static int take_one(Group *g, const int *at, int *how_many)
{
    for (int k = 0; k < g->n; k++) {
        int i = g->first + g->next++ % g->n;
        if (how_many[i] >= at[i]) continue;
        how_many[i]++;
        return 1;
    }
    return 0;
}

void mutants_share(const MutantDraw *d, const Originals *o, const int *at, int *how_many)
{
    Random rng;
    Group *groups = memory_array((size_t)o->n + 1, sizeof *groups);
    int n = group_tasks(o, groups), left = d->count, taken = 1;
    random_init(&rng, d->seed, random_hash("share", 5));
    for (int i = 0; i < n; i++) { /* a shuffle: the last ones may get one less */
        int k = i + (int)random_below(&rng, (uint64_t)(n - i));
        Group other = groups[i];
        groups[i] = groups[k];
        groups[k] = other;
        groups[i].next = (int)random_below(&rng, (uint64_t)groups[i].n);
    }
    memset(how_many, 0, (size_t)o->n * sizeof *how_many);
    while (left && taken) {
        taken = 0;
        for (int i = 0; i < n && left; i++)
            if (take_one(&groups[i], at, how_many)) {
                left--;
                taken++;
            }
    }
    for (int i = 0; i < o->n; i++)
        if (d->parts && i % d->parts != d->part) how_many[i] = 0;
    free(groups);
}

typedef struct {
    int index, rank; /* rank: how many of its kind come before it */
    uint64_t key;
} Drawn;

static int by_key(const void *a, const void *b)
{
    const Drawn *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static int by_rank(const void *a, const void *b)
{
    const Drawn *x = a, *y = b;
    return x->rank != y->rank ? x->rank - y->rank : by_key(a, b);
}

void mutants_order(uint64_t seed, const Original *o, const Mutations *m, int *order)
{
    Random rng;
    Drawn *drawn = memory_array((size_t)m->n + 1, sizeof *drawn);
    random_init(&rng, seed, random_hash(o->digest, strlen(o->digest)));
    for (int i = 0; i < m->n; i++) drawn[i] = (Drawn){.index = i, .key = random_u64(&rng)};
    qsort(drawn, (size_t)m->n, sizeof *drawn, by_key);
    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < i; k++)
            drawn[i].rank += !strcmp(m->at[drawn[k].index].kind, m->at[drawn[i].index].kind);
    qsort(drawn, (size_t)m->n, sizeof *drawn, by_rank);
    for (int i = 0; i < m->n; i++) order[i] = drawn[i].index;
    free(drawn);
}
