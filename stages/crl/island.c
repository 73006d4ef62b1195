/* The history is replayed: a kernel's id holds the prompt that it answers, and its round. */
#include "stages/crl/exemplar.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

int island_of_prompt(const char *id)
{
    return (int)(random_hash(id, strlen(id)) % ISLANDS);
}

/* Returns the round of stage 3 that a kernel is from; 0: it is from before. */
static int64_t round_of(const PoolItem *x)
{
    return !strcmp(x->stage, "crl") ? x->round : 0;
}

/* The id of an answer is its prompt's, a slash and a number; the id of a prompt of a later turn begins
 * with the first answer's id (stages/crl/prompts.h). */
static int island_of(const PoolItem *x)
{
    const char *turn = strstr(x->id, "/turn-"), *end = turn ? turn : x->id + strlen(x->id);
    while (end > x->id && *end != '/') end--;
    if (turn)
        for (end = turn - 1; end > x->id && *end != '/'; end--) {
        }
    if (!round_of(x) || *end != '/') return (int)(random_hash(x->source_digest, 64) % ISLANDS);
    return (int)(random_hash(x->id, (size_t)(end - x->id)) % ISLANDS);
}

typedef struct {
    const PoolItem *const *items;
    int n;
    char *on; /* [kernel * ISLANDS + island] */
} World;

/* Returns the best kernel of an island up to a round, the earliest of equal ones, or -1. */
static int best_of(const World *w, int island, int64_t round)
{
    int best = -1;
    for (int i = 0; i < w->n; i++)
        if (w->on[i * ISLANDS + island] && round_of(w->items[i]) <= round &&
            (best < 0 || w->items[i]->score > w->items[best]->score))
            best = i;
    return best;
}

/* Founds the two islands with the slowest best kernels again. */
static void reset_islands(World *w, int64_t round)
{
    int order[ISLANDS], best[ISLANDS];
    double score[ISLANDS];
    for (int k = 0; k < ISLANDS; k++) {
        best[k] = best_of(w, k, round);
        score[k] = best[k] < 0 ? 0 : w->items[best[k]]->score;
        int at = k;
        for (; at > 0 && score[order[at - 1]] < score[k]; at--) order[at] = order[at - 1];
        order[at] = k;
    }
    for (int k = ISLANDS / 2; k < ISLANDS; k++) {
        int island = order[k], from = order[k - ISLANDS / 2];
        if (best[from] < 0) continue;
        for (int i = 0; i < w->n; i++)
            if (round_of(w->items[i]) <= round) w->on[i * ISLANDS + island] = 0;
        w->on[best[from] * ISLANDS + island] = 1;
    }
}

static void migrate_best(World *w, int64_t round)
{
    int best[ISLANDS];
    for (int k = 0; k < ISLANDS; k++) best[k] = best_of(w, k, round);
    for (int k = 0; k < ISLANDS; k++)
        if (best[k] >= 0) w->on[best[k] * ISLANDS + (k + 1) % ISLANDS] = 1;
}

void island_members(const PoolItem *const *items, int n, int island, const ExemplarOptions *o,
                    char *in)
{
    World w = {items, n, memory_alloc((size_t)n * ISLANDS + 1)};
    int64_t last = 0;
    memset(w.on, 0, (size_t)n * ISLANDS);
    for (int i = 0; i < n; i++) {
        w.on[i * ISLANDS + island_of(items[i])] = 1;
        if (round_of(items[i]) > last) last = round_of(items[i]);
    }
    for (int64_t r = 1; r <= last; r++) {
        if (o->reset && r % o->reset == 0) reset_islands(&w, r);
        if (o->migrate && r % o->migrate == 0) migrate_best(&w, r);
    }
    for (int i = 0; i < n; i++) in[i] = w.on[i * ISLANDS + island];
    free(w.on);
}
