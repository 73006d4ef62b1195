/* When sampling stops, and what the samples say. */
#include "eval/judge/paired_interval.h"

#include <math.h>

#include "eval/judge/timing_bounds.h"

enum {
    MIN_PAIRS = 24
}; /* of a candidate that is not clearly slower, where not both sides take long_us */

/* Half of the interval, as a share of the ratio, at which sampling stops. A ratio that lies above 1
 * and below small_win needs narrow_win: of many candidates that equal their baseline, some seem to
 * win by chance. A ratio clearly below slow needs only narrow_slow: its exact value does not
 * matter. */
static const double narrow = 0.0035;
static const double small_win = 1.03, narrow_win = 0.0015;
static const double slow = 0.9, narrow_slow = 0.01;
/* Less of one that is far below: two pairs of long runs tell it. */
static const double slower = 0.5, narrow_slower = 0.03;
enum {
    LONG_STEP = 2
}; /* of them the interval is looked at so often: an order's bias is small beside them */
/* Of a single pair. */
static const double narrow_once = 0.1;
/* On other inputs a candidate may be slower by this factor (paired_fastest). */
static const double unseen_factor = 1.15;

int paired_small_win(double ratio)
{
    return ratio > 1 && ratio < small_win;
}

/* Half of the 95% interval of the ratio by the contexts' offsets alone, as a share of the ratio. */
static double context_share(const DeviceTiming *t, double baseline_us, double candidate_us)
{
    return PAIRED_CONTEXT_US * sqrt(0.5) *
           hypot(t->baseline_launches / baseline_us, t->candidate_launches / candidate_us);
}

double paired_fastest(const DeviceTiming *launches, double baseline_us, double candidate_us)
{
    return baseline_us / candidate_us *
           (unseen_factor + 2 * context_share(launches, baseline_us, candidate_us));
}

/* Half of the 95% interval by all that the samples of one verdict cannot show. */
static double unseen_share(const DeviceTiming *t, double baseline_us, double candidate_us)
{
    return hypot(PAIRED_PLACE_SHARE, context_share(t, baseline_us, candidate_us));
}

static int is_long(const DeviceTiming *t)
{
    return statistics_median(t->baseline_us, t->n) >= PAIRED_LONG_US &&
           statistics_median(t->candidate_us, t->n) >= PAIRED_LONG_US;
}

/* The half width, as a share of the ratio, at which sampling stops. *half: the estimated half width
 * of the samples so far, as a share of the ratio. */
static double target_share(const DeviceTiming *t, double *half)
{
    Pairs pairs = timing_pairs(t);
    double baseline = statistics_median(t->baseline_us, t->n),
           candidate = statistics_median(t->candidate_us, t->n);
    double ratio = baseline / candidate;
    *half = statistics_half_width(&pairs) / ratio;
    double unknown = ratio * hypot(*half, unseen_share(t, baseline, candidate));
    if (t->n >= LONG_STEP && ratio + unknown < slower && is_long(t)) return narrow_slower;
    if (t->n < PAIRED_ORDERS) return narrow_once;
    if (ratio + unknown < slow) return narrow_slow;
    return ratio - unknown > 1 && paired_small_win(ratio) ? narrow_win : narrow;
}

/* Half of the resampled interval, as a share of the ratio. *v: the interval. */
static double resampled_share(const DeviceTiming *t, uint64_t seed, Interval *v)
{
    Pairs pairs = timing_pairs(t);
    statistics_ratio(&pairs, seed, v);
    return (v->high - v->low) / (2 * v->middle);
}

static int step_of(const DeviceTiming *t)
{
    return is_long(t) ? LONG_STEP : PAIRED_ORDERS;
}

/* Look at the estimate first, since resampling takes as long as one or two pairs. When the
 * resampled interval is too wide, wait for about as many pairs as would make it narrow enough. */
int paired_narrow(const DeviceTiming *t, uint64_t seed, double *look_at)
{
    if (t->n % step_of(t) || t->n < *look_at) return 0;
    double half, share = target_share(t, &half);
    if (half > share || (t->n < PAIRED_ORDERS && share != narrow_slower)) return 0;
    if (share < narrow_slow && !is_long(t) && t->n < MIN_PAIRS) return 0;
    Interval v;
    double more = resampled_share(t, seed, &v) / share;
    *look_at = t->n * fmin(more * more, 2);
    return more <= 1;
}

void paired_ratio(const DeviceTiming *t, uint64_t seed, Interval *out)
{
    double estimate, share = target_share(t, &estimate), half = resampled_share(t, seed, out);
    double unseen = unseen_share(t, statistics_median(t->baseline_us, t->n),
                                 statistics_median(t->candidate_us, t->n));
    double unknown = out->middle * hypot(fmax(half, share), unseen);
    out->low = fmax(out->middle - unknown, 0);
    out->high = out->middle + unknown;
}

int paired_confirms(const DeviceTiming *t, double known)
{
    int step = step_of(t), least = is_long(t) ? step : 2 * PAIRED_ORDERS;
    if (known <= small_win || t->n < least || t->n % step) return 0;
    Pairs pairs = timing_pairs(t);
    return statistics_midmean(&pairs) >= known;
}
