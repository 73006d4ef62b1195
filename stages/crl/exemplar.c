/* All rules end in a softmax draw without replacement, or in a uniform one. */
#include "stages/crl/exemplar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { ISLANDS = 4, MAX_BUCKETS = 256 };

int exemplar_rule(const char *name, ExemplarRule *out)
{
    static const char *const names[] = {"bucket", "island", "random"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, names[i])) {
            *out = (ExemplarRule)i;
            return 0;
        }
    return -1;
}

typedef struct {
    const PoolItem **item;
    double *level; /* log2 score */
    int n;
} Members;

static Members members_of(const Pool *p, const char *task)
{
    Members m = {memory_array((size_t)p->n, sizeof *m.item),
                 memory_array((size_t)p->n, sizeof *m.level), 0};
    for (long i = 0; i < p->n; i++) {
        if (strcmp(p->items[i].task, task)) continue;
        m.item[m.n] = &p->items[i];
        m.level[m.n++] = log2(fmax(p->items[i].score, 1e-3));
    }
    return m;
}

/* Draws an index with a probability proportional to exp(level/tau), among the ones that are not
 * taken. Returns -1 when all are taken. */
static int draw_softmax(const double *level, const char *taken, int n, double tau, Random *rng)
{
    double top = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        if (!taken[i] && level[i] > top) top = level[i];
    for (int i = 0; i < n; i++)
        if (!taken[i]) sum += exp((level[i] - top) / tau);
    double x = random_uniform(rng) * sum;
    int last = -1;
    for (int i = 0; i < n; i++) {
        if (taken[i]) continue;
        last = i;
        x -= exp((level[i] - top) / tau);
        if (x < 0) break;
    }
    return last;
}

static double deviation(const double *x, int n)
{
    double mean = 0, var = 0;
    for (int i = 0; i < n; i++) mean += x[i] / n;
    for (int i = 0; i < n; i++) var += (x[i] - mean) * (x[i] - mean) / n;
    return sqrt(var);
}

typedef struct {
    long key;
    double level; /* mean log2 score of its members */
    int count;
} Bucket;

static int make_buckets(const Members *m, double width, Bucket b[MAX_BUCKETS])
{
    int n = 0;
    for (int i = 0; i < m->n; i++) {
        long key = lround(floor(m->level[i] / width));
        int k = 0;
        while (k < n && b[k].key != key) k++;
        if (k == n) {
            if (n == MAX_BUCKETS) continue;
            b[n++] = (Bucket){.key = key};
        }
        b[k].level += m->level[i];
        b[k].count++;
    }
    for (int k = 0; k < n; k++) b[k].level /= b[k].count;
    return n;
}

static int draw_buckets(const Members *m, const ExemplarOptions *opt, int n, Random *rng,
                        const PoolItem **picks)
{
    Bucket b[MAX_BUCKETS];
    double level[MAX_BUCKETS] = {0};
    char taken[MAX_BUCKETS] = {0};
    int buckets = make_buckets(m, opt->width, b), drawn = 0;
    for (int k = 0; k < buckets; k++) level[k] = b[k].level;
    double tau = fmax(opt->temperature * deviation(level, buckets), 1e-6);
    while (drawn < n && drawn < buckets) {
        int k = draw_softmax(level, taken, buckets, tau, rng);
        taken[k] = 1;
        int nth = (int)random_below(rng, (uint64_t)b[k].count);
        for (int i = 0; i < m->n; i++)
            if (lround(floor(m->level[i] / opt->width)) == b[k].key && nth-- == 0) {
                picks[drawn++] = m->item[i];
                break;
            }
    }
    return drawn;
}

static int draw_members(const Members *m, char *taken, double tau, int n, Random *rng,
                        const PoolItem **picks)
{
    int drawn = 0;
    for (int k; drawn < n && (k = draw_softmax(m->level, taken, m->n, tau, rng)) >= 0; taken[k] = 1)
        picks[drawn++] = m->item[k];
    return drawn;
}

static int draw_island(const Members *m, const ExemplarOptions *opt, int n, Random *rng,
                       const PoolItem **picks)
{
    char *taken = memory_alloc((size_t)m->n);
    int island = (int)random_below(rng, ISLANDS), left = 0;
    for (int i = 0; i < m->n; i++) {
        taken[i] = (int)(random_hash(m->item[i]->source_digest, 64) % ISLANDS) != island;
        left += !taken[i];
    }
    if (left < n) memset(taken, 0, (size_t)m->n); /* a small pool is one island */
    int drawn = draw_members(m, taken, fmax(opt->temperature * deviation(m->level, m->n), 1e-6), n,
                             rng, picks);
    free(taken);
    return drawn;
}

int exemplar_draw(const Pool *p, const char *task, const ExemplarOptions *opt, int n, Random *rng,
                  const PoolItem *picks[EXEMPLAR_MAX])
{
    Members m = members_of(p, task);
    int drawn = 0;
    if (n > EXEMPLAR_MAX) n = EXEMPLAR_MAX;
    if (m.n && opt->rule == EXEMPLAR_BUCKET) {
        drawn = draw_buckets(&m, opt, n, rng, picks);
    } else if (m.n && opt->rule == EXEMPLAR_ISLAND) {
        drawn = draw_island(&m, opt, n, rng, picks);
    } else if (m.n) {
        char *taken = memory_alloc((size_t)m.n);
        drawn = draw_members(&m, taken, 1e9, n, rng, picks); /* a high temperature: uniform */
        free(taken);
    }
    for (int i = drawn - 1; i > 0; i--) {
        int j = (int)random_below(rng, (uint64_t)i + 1);
        const PoolItem *t = picks[i];
        picks[i] = picks[j];
        picks[j] = t;
    }
    free(m.item);
    free(m.level);
    return drawn;
}
