#include "eval/cuda/stall.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "eval/statistics.h"

/* A load that takes this much longer than most may have met a stall. */
enum { LONGER_NS = 400, MOST_LONG = 300, LEAST_NS = 10000, MOST_NS = 1000000, LEAST_STALLS = 12, MISSED = 4 };
static const double off = 0.015, enough = 0.6;  /* of a period, by which a distance may miss it; of all time, that periods make up */

/* When loads began that took long; as many as were done at most. */
static int find_long(const uint64_t *done, int n, uint64_t *began)
{
    double *took = memory_array((size_t)n, sizeof *took);
    int found = 0;
    for (int i = 1; i < n; i++) took[i - 1] = (double)(int64_t)(done[i] - done[i - 1]);
    double most = statistics_median(took, n - 1) + LONGER_NS;
    for (int i = 1; i < n; i++)
        if (took[i - 1] > most) began[found++] = done[i - 1];
    free(took);
    return found;
}

/* How many follow one another at about one period, or a few, for strays come between stalls, and some stalls hide. Their mean
 * distance as *exact. */
static int fitting(const uint64_t *at, int n, double period, double *exact)
{
    double whole = 0, periods = 0;
    int fit = 0;
    for (int i = 0, from = 0; i < n; i++) {
        double d = (double)(at[i] - at[from]), k = nearbyint(d / period);
        int fits = k >= 1 && k <= MISSED && fabs(d - k * period) <= off * period;
        if (fits) whole += d, periods += k, fit++;
        if (fits || d > 1.5 * period) from = i; /* else it is a stray, or what it is compared with was one */
    }
    *exact = periods > 0 ? whole / periods : 0;
    return whole > enough * (double)(at[n - 1] - at[0]) ? fit : 0;
}

uint32_t stall_period(const uint64_t *done, int n)
{
    if (n < 3) return 0;
    uint64_t *at = memory_array((size_t)n, sizeof *at);
    int found = find_long(done, n, at), best = LEAST_STALLS;
    double period = 0, exact;
    for (int i = 1; i < found && found <= MOST_LONG; i++) {
        double between = (double)(at[i] - at[i - 1]);
        if (between < LEAST_NS || between > MOST_NS) continue;
        int fit = fitting(at, found, between, &exact);
        /* half of a period fits as many, twice the period half as many */
        if (10 * fit < 9 * best || (10 * fit < 11 * best && exact < period)) continue;
        if (fit > best) best = fit;
        period = exact;
    }
    free(at);
    return (uint32_t)nearbyint(period);
}
