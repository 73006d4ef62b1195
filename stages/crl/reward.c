/* Running statistics by task, and the best-of-k reward in closed form. */
#include "stages/crl/reward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void reward_stats_init(RewardStats *s)
{
    memset(s, 0, sizeof *s);
}

void reward_stats_release(RewardStats *s)
{
    for (int i = 0; i < s->n; i++) free(s->task[i]);
    s->n = 0;
}

static int slot(RewardStats *s, const char *task, Error *err)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->task[i], task)) return i;
    if (s->n == REWARD_MAX_TASKS)
        return error_set(err, ERROR_LIMIT, "more than %d tasks in one run", REWARD_MAX_TASKS);
    s->task[s->n] = memory_strdup(task);
    return s->n++;
}

int reward_stats_update(RewardStats *s, const SampleSet *set, double decay, Error *err)
{
    for (int i = 0; i < s->n; i++) s->weight[i] *= decay;
    for (long i = 0; i < set->n; i++) {
        if (set->items[i].outcome == OUTCOME_EVALUATOR_ERROR) continue;
        int k = slot(s, set->items[i].task, err);
        if (k < 0) return -1;
        double r = set->items[i].reward, w = s->weight[k] + 1;
        s->mean[k] += (r - s->mean[k]) / w;
        s->square[k] += (r * r - s->square[k]) / w;
        s->weight[k] = w;
    }
    return 0;
}

double reward_smooth(const RewardStats *s, const char *task, double raw, double k)
{
    for (int i = 0; i < s->n; i++) {
        if (strcmp(s->task[i], task)) continue;
        double var = s->square[i] - s->mean[i] * s->mean[i];
        if (var <= 1e-12) return 0;
        return fmax(-k, fmin(k, (raw - s->mean[i]) / sqrt(var)));
    }
    return 0;
}

typedef struct {
    double value;
    int at;
} Ranked;

static int by_value(const void *a, const void *b)
{
    double x = ((const Ranked *)a)->value, y = ((const Ranked *)b)->value;
    return (x > y) - (x < y);
}

void reward_ties(double *score, const double *low, const double *high, int n)
{
    Ranked *r = memory_array((size_t)n, sizeof *r);
    for (int i = 0; i < n; i++) r[i] = (Ranked){score[i], i};
    qsort(r, (size_t)n, sizeof *r, by_value);
    for (int first = 0, end; first < n; first = end) {
        double sum = 0;
        for (end = first; end < n; end++) {
            if (end > first && (r[first].value <= 0 || low[r[end].at] > high[r[first].at])) break;
            sum += r[end].value;
        }
        for (int i = first; i < end; i++) score[r[i].at] = sum / (end - first);
    }
    free(r);
}

/* With the rewards in ascending order, the j-th is the best of the k - 1 others with probability
 * C(j, k-2)/C(n-1, k-1), since j rewards are below it. Only j < i has a positive difference. The
 * probability is a product of quotients, because the binomials overflow. */
void reward_best_of(const double *reward, int n, int k, double *out)
{
    if (k > n) k = n;
    if (k <= 1) {
        for (int i = 0; i < n; i++) out[i] = reward[i];
        return;
    }
    Ranked *r = memory_array((size_t)n, sizeof *r);
    for (int i = 0; i < n; i++) r[i] = (Ranked){reward[i], i};
    qsort(r, (size_t)n, sizeof *r, by_value);
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = k - 2; j < i; j++) {
            double chance =
                (double)(k - 1) / (n - 1); /* the j-th is drawn, and the rest below it */
            for (int t = 0; t < k - 2; t++) chance *= (double)(j - t) / (n - 2 - t);
            sum += chance * (r[i].value - r[j].value);
        }
        out[r[i].at] = sum;
    }
    free(r);
}
