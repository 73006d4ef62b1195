#include "eval/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

enum { RESAMPLES = 2000, LOW_INDEX = RESAMPLES / 40, HIGH_INDEX = RESAMPLES - 1 - LOW_INDEX };

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sorted_median(const double *v, int n)
{
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

double statistics_median(const double *v, int n)
{
    double *copy = memory_array((size_t)n, sizeof *copy);
    memcpy(copy, v, (size_t)n * sizeof *copy);
    qsort(copy, (size_t)n, sizeof *copy, compare_doubles);
    double m = sorted_median(copy, n);
    free(copy);
    return m;
}

/* The median of one resample: how often each sorted value was drawn says where the middle is. */
static double resample_median(Random *r, const double *sorted, int *drawn, int n)
{
    memset(drawn, 0, (size_t)n * sizeof *drawn);
    for (int i = 0; i < n; i++) drawn[random_below(r, (uint64_t)n)]++;
    int lower_rank = (n - 1) / 2, upper_rank = n / 2, seen = 0, lower = -1;
    for (int i = 0; i < n; i++) {
        seen += drawn[i];
        if (lower < 0 && seen > lower_rank) lower = i;
        if (seen > upper_rank) return 0.5 * (sorted[lower] + sorted[i]);
    }
    return sorted[n - 1];
}

void statistics_ratio(const double *baseline, const double *candidate, int n, uint64_t seed, Interval *out)
{
    double *ratios = memory_array((size_t)n, sizeof *ratios), *medians = memory_array(RESAMPLES, sizeof *medians);
    int *drawn = memory_array((size_t)n, sizeof *drawn);
    Random r;
    for (int i = 0; i < n; i++) ratios[i] = baseline[i] / candidate[i];
    qsort(ratios, (size_t)n, sizeof *ratios, compare_doubles);
    out->median = sorted_median(ratios, n);
    random_init(&r, seed, random_hash("bootstrap", 9));
    for (int i = 0; i < RESAMPLES; i++) medians[i] = resample_median(&r, ratios, drawn, n);
    qsort(medians, RESAMPLES, sizeof *medians, compare_doubles);
    out->low = medians[LOW_INDEX];
    out->high = medians[HIGH_INDEX];
    free(ratios);
    free(medians);
    free(drawn);
}

double statistics_towards_one(double v)
{
    /* The last digits of v*1000 are rounding of the division, not of the measurement. */
    double scaled = v * 1000.0, nearest = nearbyint(scaled);
    if (fabs(scaled - nearest) < 1e-6) return nearest / 1000.0;
    return (v > 1.0 ? floor(scaled) : ceil(scaled)) / 1000.0;
}
