/* The interquartile mean of ratios, its bootstrap and its standard error (Tukey and McLaughlin,
 * "Less vulnerable confidence and significance procedures", 1963). */
#include "eval/judge/statistics.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/sort.h"

enum { RESAMPLES = 2000, LOW_INDEX = RESAMPLES / 40, HIGH_INDEX = RESAMPLES - 1 - LOW_INDEX };
enum { STATISTICS_MAX = 16 }; /* statistics of one resample */

static double sorted_median(const double *v, int n)
{
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

double statistics_median(const double *v, int n)
{
    double *copy = memory_array((size_t)n, sizeof *copy);
    memcpy(copy, v, (size_t)n * sizeof *copy);
    sort_doubles(copy, (size_t)n);
    double m = sorted_median(copy, n);
    free(copy);
    return m;
}

static double *sorted_ratios(const Pairs *p)
{
    double *v = memory_array((size_t)p->n, sizeof *v);
    for (int i = 0; i < p->n; i++) v[i] = p->baseline[i] / p->candidate[i];
    sort_doubles(v, (size_t)p->n);
    return v;
}

/* How many of n samples are left out at either end. Of a few all are needed: the middle two of four would
 * have one degree of freedom. */
static int cut_of(int n)
{
    return n < 6 ? 0 : n / 4;
}

/* The mean of the middle half. It is as robust as a median, has half its noise, and is not bound to
 * the steps of the clock's resolution. */
static double sorted_midmean(const double *v, int n)
{
    double sum = 0;
    int cut = cut_of(n);
    for (int i = cut; i < n - cut; i++) sum += v[i];
    return sum / (n - 2 * cut);
}

/* The mean of the middle half of one resample. drawn counts how often each sorted ratio was drawn.
 */
static double resample_midmean(Random *r, const double *sorted, int *drawn, int n)
{
    double sum = 0;
    int cut = cut_of(n), seen = 0;
    memset(drawn, 0, (size_t)n * sizeof *drawn);
    for (int i = 0; i < n; i++) drawn[random_below(r, (uint64_t)n)]++;
    for (int i = 0; i < n; i++) {
        int from = seen > cut ? seen : cut,
            to = seen + drawn[i] < n - cut ? seen + drawn[i] : n - cut;
        if (to > from) sum += sorted[i] * (to - from);
        seen += drawn[i];
    }
    return sum / (n - 2 * cut);
}

/* The 97.5% quantile of Student's t for n degrees of freedom. A table below 5, then the expansion
 * of Cornish and Fisher, exact to 0.3%. */
static double student(int n)
{
    static const double few[] = {0, 12.706, 4.303, 3.182, 2.776};
    const double z = 1.959964, z3 = z * z * z, z5 = z3 * z * z;
    if (n < 1) return 0;
    if (n < 5) return few[n];
    return z + (z3 + z) / (4.0 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96.0 * n * n);
}

/* The factor that widens a resampled interval of n samples: Student's t over the normal quantile,
 * with the degrees of freedom of the middle half. */
static double few_samples(int n)
{
    return n < 2 ? 1 : student(n - 2 * cut_of(n) - 1) / student(1 << 20);
}

/* Fills low and high of n intervals, and mean[0..n) when it is not NULL. */
static void resample(StatisticsDraw *draw, void *ctx, uint64_t seed, int n, Interval *out,
                     double *mean)
{
    double one[STATISTICS_MAX], *all = memory_array((size_t)n * RESAMPLES, sizeof *all);
    Random r;
    assert(n <= STATISTICS_MAX);
    random_init(&r, seed, random_hash("bootstrap", 9));
    for (int k = 0; mean && k < n; k++) mean[k] = 0;
    for (int i = 0; i < RESAMPLES; i++) {
        draw(ctx, &r, one);
        for (int k = 0; k < n; k++) all[k * RESAMPLES + i] = one[k];
        for (int k = 0; mean && k < n; k++) mean[k] += one[k];
    }
    for (int k = 0; mean && k < n; k++) mean[k] /= RESAMPLES;
    for (int k = 0; k < n; k++) {
        double *v = &all[k * RESAMPLES];
        sort_doubles(v, RESAMPLES);
        out[k].low = v[LOW_INDEX];
        out[k].high = v[HIGH_INDEX];
    }
    free(all);
}

void statistics_resample(StatisticsDraw *draw, void *ctx, uint64_t seed, int n, Interval *out)
{
    resample(draw, ctx, seed, n, out, NULL);
}

void statistics_centred(StatisticsDraw *draw, void *ctx, uint64_t seed, Interval *in)
{
    double mean;
    resample(draw, ctx, seed, 1, in, &mean);
    in->low -= mean - in->middle, in->high -= mean - in->middle;
}

void statistics_widen(Interval *in, int groups, double least, double upper)
{
    double factor = student(groups - 1) / student(1 << 20);
    in->low = fmax(least, in->middle - fmax(0, in->middle - in->low) * factor);
    in->high = fmin(upper, in->middle + fmax(0, in->high - in->middle) * factor);
}

typedef struct {
    const double *sorted;
    int *drawn, n;
} Ratios;

static void draw_midmean(void *ctx, Random *r, double *out)
{
    const Ratios *v = ctx;
    *out = resample_midmean(r, v->sorted, v->drawn, v->n);
}

void statistics_ratio(const Pairs *p, uint64_t seed, Interval *out)
{
    int *drawn = memory_array((size_t)p->n, sizeof *drawn);
    double *ratios = sorted_ratios(p);
    out->middle = sorted_midmean(ratios, p->n);
    statistics_resample(draw_midmean, &(Ratios){ratios, drawn, p->n}, seed, 1, out);
    out->low = out->middle - (out->middle - out->low) * few_samples(p->n);
    out->high = out->middle + (out->high - out->middle) * few_samples(p->n);
    free(ratios);
    free(drawn);
}

double statistics_midmean(const Pairs *p)
{
    double *ratios = sorted_ratios(p), mean = sorted_midmean(ratios, p->n);
    free(ratios);
    return mean;
}

/* Clopper and Pearson's interval where all n trials came out the same. */
double statistics_none_of(long n)
{
    return n > 0 ? 1 - pow(0.025, 1.0 / (double)n) : 1;
}

/* The standard error of a trimmed mean follows from the winsorized samples: trimmed ones take the
 * value of the nearest that stays. */
double statistics_half_width(const Pairs *p)
{
    int n = p->n, cut = cut_of(n);
    double *v = sorted_ratios(p), mean = 0, squares = 0;
    for (int i = 0; i < n; i++) v[i] = v[i < cut ? cut : i < n - cut ? i : n - 1 - cut];
    for (int i = 0; i < n; i++) mean += v[i] / n;
    for (int i = 0; i < n; i++) squares += (v[i] - mean) * (v[i] - mean);
    free(v);
    if (n < 2) return 0;
    return student(n - 2 * cut - 1) * sqrt(squares / (n - 1)) / ((1 - 2.0 * cut / n) * sqrt(n));
}

/* The median lies between the ranks n/2 - z sqrt(n)/2 and n/2 + z sqrt(n)/2 with the probability of
 * z in the normal distribution. */
void statistics_median_interval(const double *v, int n, Interval *out)
{
    double *sorted = memory_array((size_t)n, sizeof *sorted), half = 1.96 * sqrt(n) / 2;
    int low = (int)floor(n / 2.0 - half) - 1, high = (int)ceil(n / 2.0 + half);
    memcpy(sorted, v, (size_t)n * sizeof *sorted);
    sort_doubles(sorted, (size_t)n);
    out->middle = sorted_median(sorted, n);
    out->low = sorted[low < 0 ? 0 : low];
    out->high = sorted[high > n - 1 ? n - 1 : high];
    free(sorted);
}

double statistics_towards_one(double v)
{
    /* A value within 1e-6 of a step is that step, but for rounding of the division. */
    double scaled = v * 1000.0, nearest = nearbyint(scaled);
    if (fabs(scaled - nearest) < 1e-6) return nearest / 1000.0;
    return (v > 1.0 ? floor(scaled) : ceil(scaled)) / 1000.0;
}
