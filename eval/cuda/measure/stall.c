/* The period is found by folding the times of the longest loads over each candidate period. */
#include "eval/cuda/measure/stall.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

/* The longest loads, one in ONE_IN, are folded over each period between MIN_NS and MAX_NS. At the
 * right period, loads that met a stall fall into one or two adjacent bins; others fall anywhere.
 * Some loads that meet a stall are no longer than many that do not. */
enum {
    ONE_IN = 50,
    MIN_LONG = 12,
    BIN_BITS = 7,
    BINS = 1 << BIN_BITS,
    MIN_NS = 40000,
    MAX_NS = 1000000,
    NEAR = 8,
    FRACTION = 48
};

typedef struct {
    uint64_t *at; /* start of each long load, in ns after the first load */
    int n;
    double span;
} Long;

typedef struct {
    uint64_t frequency; /* periods per nanosecond, in units of 2^-FRACTION */
    int count, bin;     /* loads in the two adjacent bins with the most, and the first bin */
} Fold;

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void find_long(const uint64_t *done, int n, Long *out)
{
    int64_t *times = memory_array((size_t)n, sizeof *times);
    for (int i = 1; i < n; i++) times[i - 1] = (int64_t)(done[i] - done[i - 1]);
    qsort(times, (size_t)n - 1, sizeof *times, compare);
    int64_t threshold = times[n - 1 - n / ONE_IN];
    free(times);
    *out = (Long){.at = memory_array((size_t)n / ONE_IN + 1, sizeof *out->at),
                  .span = (double)(done[n - 1] - done[0])};
    for (int i = 1; i < n; i++)
        if ((int64_t)(done[i] - done[i - 1]) > threshold) out->at[out->n++] = done[i - 1] - done[0];
}

static uint64_t bins_before(const Fold *f, uint64_t at)
{
    return at * f->frequency >> (FRACTION - BIN_BITS);
}

static void fold(const Long *l, Fold *f)
{
    int counts[BINS + 1] = {0};
    for (int i = 0; i < l->n; i++) counts[bins_before(f, l->at[i]) % BINS]++;
    counts[BINS] = counts[0];
    f->count = 0;
    for (int b = 0; b < BINS; b++)
        if (counts[b] + counts[b + 1] > f->count) f->count = counts[b] + counts[b + 1], f->bin = b;
}

/* The best fold near a frequency. */
static Fold near(const Long *l, double frequency, double step)
{
    Fold best = {0};
    for (int i = -NEAR; i <= NEAR; i++) {
        Fold x = {.frequency = (uint64_t)ldexp(frequency + i * step, FRACTION)};
        fold(l, &x);
        if (x.count > best.count) best = x;
    }
    return best;
}

/* A half or a third of the period gathers as many loads, so the longest period that gathers nearly
 * the most is taken. */
static Fold best_fold(const Long *l)
{
    Fold best = {0};
    double step = 0.5 / (BINS * l->span), lowest = 1.0 / MAX_NS, highest = 1.0 / MIN_NS;
    for (double f = lowest; f < highest; f += step) {
        Fold x = {.frequency = (uint64_t)ldexp(f, FRACTION)};
        fold(l, &x);
        if (x.count > best.count) best = x;
    }
    double f = ldexp((double)best.frequency, -FRACTION);
    for (int times = (int)(f / lowest); times > 1; times--) {
        Fold x = near(l, f / times, step);
        if (4 * x.count > 3 * best.count) return x;
    }
    return near(l, f, step);
}

/* The slope of the line through the loads of the two bins: time over the number of the period.
 * *hit: the number of periods with such a load; several loads in one period are one event. */
static double exact_period(const Long *l, const Fold *f, int *hit)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, last = -1;
    *hit = 0;
    for (int i = 0; i < l->n; i++) {
        uint64_t of_all = bins_before(f, l->at[i]), first = (uint64_t)f->bin;
        if ((of_all - first) % BINS > 1) continue;
        double k = (double)((of_all + BINS - first) / BINS), at = (double)l->at[i];
        n++, x += k, y += at, xx += k * k, xy += k * at;
        *hit += k > last;
        last = k;
    }
    double of_x = n * xx - x * x;
    return of_x > 0 ? (n * xy - x * y) / of_x : 0;
}

uint32_t stall_period(const uint64_t *done, int n)
{
    if (n < ONE_IN || done[n - 1] <= done[0] || done[n - 1] - done[0] > (uint64_t)1000 * MAX_NS)
        return 0;
    Long l;
    find_long(done, n, &l);
    double period = 0;
    if (l.n >= MIN_LONG) {
        Fold best = best_fold(&l);
        double by_chance = 2.0 * l.n / BINS;
        int hit;
        period = exact_period(&l, &best, &hit);
        /* share: of the periods that are hit by chance. */
        double periods = l.span / period, share = 1 - exp(-by_chance / periods);
        if (!(hit >= periods * share + 8 * sqrt(periods * share * (1 - share)) + 4) ||
            4 * hit * period < l.span)
            period = 0;
    }
    free(l.at);
    return (uint32_t)nearbyint(period);
}
