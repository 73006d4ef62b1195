/* Each rule narrows the kernels of the task, then draws without replacement, softly or uniformly. */
#include "stages/crl/exemplar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MAX_BUCKETS = 256 };
static const double bucket_width = 0.25; /* in log2 of the score */

typedef struct {
    const PoolItem **item;
    double *level; /* log2 score */
    int n;
    Random *rng;
} Members;

static Members members_of(const Pool *p, const char *task, Random *rng)
{
    Members m = {memory_array((size_t)p->n, sizeof *m.item),
                 memory_array((size_t)p->n, sizeof *m.level), 0, rng};
    for (long i = 0; i < p->n; i++) {
        if (strcmp(p->items[i].task, task)) continue;
        m.item[m.n] = &p->items[i];
        m.level[m.n++] = log2(fmax(p->items[i].score, 1e-3));
    }
    return m;
}

static void keep_marked(Members *m, const char *in)
{
    int n = 0;
    for (int i = 0; i < m->n; i++)
        if (in[i]) m->item[n] = m->item[i], m->level[n++] = m->level[i];
    m->n = n;
}

static int count_marked(const char *in, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++) count += in[i];
    return count;
}

/* Leaves out the kernels far below the baseline, unless fewer than `least` are left. */
static void drop_slow(Members *m, double floor, int least)
{
    char *in = memory_alloc((size_t)m->n + 1);
    double best = -INFINITY;
    for (int i = 0; i < m->n; i++) best = fmax(best, m->level[i]);
    for (int i = 0; i < m->n; i++) in[i] = floor <= 0 || m->level[i] >= log2(floor) + fmin(best, 0);
    if (count_marked(in, m->n) >= least) keep_marked(m, in);
    free(in);
}

/* Keeps the kernels of the prompt's island, unless fewer than `least` are left. */
static void keep_island(Members *m, const char *prompt, const ExemplarOptions *o, int least)
{
    char *in = memory_alloc((size_t)m->n + 1);
    island_members(m->item, m->n, island_of_prompt(prompt), o, in);
    if (count_marked(in, m->n) >= least) keep_marked(m, in);
    free(in);
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

static int make_buckets(const Members *m, Bucket b[MAX_BUCKETS])
{
    int n = 0;
    for (int i = 0; i < m->n; i++) {
        long key = lround(floor(m->level[i] / bucket_width));
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

static int draw_buckets(const Members *m, const ExemplarOptions *opt, int n, const PoolItem **picks)
{
    Bucket b[MAX_BUCKETS];
    double level[MAX_BUCKETS] = {0};
    char taken[MAX_BUCKETS] = {0};
    int buckets = make_buckets(m, b), drawn = 0;
    for (int k = 0; k < buckets; k++) level[k] = b[k].level;
    double tau = fmax(opt->temperature * deviation(level, buckets), 1e-6);
    while (drawn < n && drawn < buckets) {
        int k = draw_softmax(level, taken, buckets, tau, m->rng);
        taken[k] = 1;
        int nth = (int)random_below(m->rng, (uint64_t)b[k].count);
        for (int i = 0; i < m->n; i++)
            if (lround(floor(m->level[i] / bucket_width)) == b[k].key && nth-- == 0) {
                picks[drawn++] = m->item[i];
                break;
            }
    }
    return drawn;
}

static int draw_members(const Members *m, char *taken, double tau, int n, const PoolItem **picks)
{
    int drawn = 0;
    for (int k; drawn < n && (k = draw_softmax(m->level, taken, m->n, tau, m->rng)) >= 0;
         taken[k] = 1)
        picks[drawn++] = m->item[k];
    return drawn;
}

/* A temperature of 1e9 is a uniform draw. */
static int draw_softly(const Members *m, double tau, int n, const PoolItem **picks)
{
    char *taken = memory_alloc((size_t)m->n + 1);
    memset(taken, 0, (size_t)m->n);
    int drawn = draw_members(m, taken, fmax(tau, 1e-6), n, picks);
    free(taken);
    return drawn;
}

/* Puts a kernel that beats the baseline in the place of the slowest pick, where none of the picks
 * does and one of the task's does. */
static void show_winner(const Members *m, double tau, int drawn, const PoolItem **picks)
{
    char *taken = memory_alloc((size_t)m->n + 1);
    int slowest = 0, beaten = drawn > 1;
    for (int i = 0; i < drawn; i++) {
        beaten &= picks[i]->score <= 1;
        if (picks[i]->score < picks[slowest]->score) slowest = i;
    }
    for (int i = 0; i < m->n; i++) taken[i] = m->item[i]->score <= 1;
    if (beaten) draw_members(m, taken, fmax(tau, 1e-6), 1, &picks[slowest]);
    free(taken);
}

/* Draws one of the kernels whose log2 score is in [low, high] in the place of a pick. Returns 0 when
 * there is none. */
static int replace_pick(const Members *m, double low, double high, const PoolItem **pick)
{
    char *taken = memory_alloc((size_t)m->n + 1);
    for (int i = 0; i < m->n; i++) taken[i] = m->level[i] < low || m->level[i] > high;
    int drawn = draw_members(m, taken, 1e9, 1, pick);
    free(taken);
    return drawn;
}

/* Sees to it that the fastest pick is `apart` times as fast as the slowest: by a slower kernel in the
 * place of the slowest one, or else by a faster one in the place of the fastest. */
static void spread_picks(const Members *m, double apart, int drawn, const PoolItem **picks)
{
    int slow = 0, fast = 0;
    for (int i = 1; i < drawn; i++) {
        if (picks[i]->score < picks[slow]->score) slow = i;
        if (picks[i]->score > picks[fast]->score) fast = i;
    }
    double low = log2(fmax(picks[slow]->score, 1e-3)), high = log2(fmax(picks[fast]->score, 1e-3));
    if (high - low >= log2(apart)) return;
    if (!replace_pick(m, -INFINITY, high - log2(apart), &picks[slow]))
        replace_pick(m, low + log2(apart), INFINITY, &picks[fast]);
}

static int draw_by_rule(Members *m, const char *prompt, const ExemplarOptions *o, int n,
                        const PoolItem **picks)
{
    int drawn;
    if (o->rule == EXEMPLAR_RANDOM) return draw_softly(m, 1e9, n, picks);
    if (o->rule == EXEMPLAR_ISLAND) keep_island(m, prompt, o, n);
    double tau = o->temperature * deviation(m->level, m->n);
    if (o->rule == EXEMPLAR_ISLAND)
        drawn = draw_softly(m, tau, n, picks);
    else
        drawn = draw_buckets(m, o, n, picks);
    show_winner(m, tau, drawn, picks);
    if (drawn > 1 && o->apart > 1) spread_picks(m, o->apart, drawn, picks);
    return drawn;
}

int exemplar_draw(const Pool *p, const char *task, const char *prompt, const ExemplarOptions *opt,
                  int n, Random *rng, ExemplarPick out[EXEMPLAR_MAX])
{
    const PoolItem *picks[EXEMPLAR_MAX];
    int drawn = 0;
    if (n > EXEMPLAR_MAX) n = EXEMPLAR_MAX;
    if (opt->rule == EXEMPLAR_NONE) return 0;
    Members m = members_of(p, task, rng);
    if (m.n) drop_slow(&m, opt->floor, n);
    if (m.n) drawn = draw_by_rule(&m, prompt, opt, n, picks);
    for (int i = drawn - 1; i > 0; i--) {
        int j = (int)random_below(rng, (uint64_t)i + 1);
        const PoolItem *t = picks[i];
        picks[i] = picks[j];
        picks[j] = t;
    }
    for (int i = 0; i < drawn; i++) out[i] = (ExemplarPick){picks[i], picks[i]->score};
    for (int i = drawn - 1; i > 0 && opt->rule == EXEMPLAR_SHUFFLED; i--) {
        int j = (int)random_below(rng, (uint64_t)i + 1);
        double t = out[i].shown;
        out[i].shown = out[j].shown;
        out[j].shown = t;
    }
    free(m.item);
    free(m.level);
    return drawn;
}
