/* The derivatives by hand, one function for each factor of a term; everything in double. */
#include "stages/train/loss.h"

#include <math.h>

#include "base/words.h"

static const double max_difference = 20; /* of log-probabilities: exp of more has no meaning */

void loss_supervised(Loss *l)
{
    *l = (Loss){.advantage = LOSS_RAW,
                .ratio = LOSS_NO_RATIO,
                .aggregation = LOSS_TOKEN_MEAN,
                .kl_form = LOSS_K3};
}

int loss_preset(const char *name, Loss *out)
{
    static const Loss presets[] = {
        /* In the order of LOSS_NAMES. dapo: clip-higher, all tokens weigh the same. */
        {.advantage = LOSS_GROUP,
         .ratio = LOSS_CLIP,
         .aggregation = LOSS_TOKEN_MEAN,
         .eps_low = 0.2,
         .eps_high = 0.28},
        {.advantage = LOSS_GROUP,
         .ratio = LOSS_CLIP,
         .aggregation = LOSS_SEQUENCE_MEAN,
         .eps_low = 0.2,
         .eps_high = 0.2},
        {.advantage = LOSS_CENTRED,
         .ratio = LOSS_CLIP,
         .aggregation = LOSS_CONSTANT,
         .eps_low = 0.2,
         .eps_high = 0.2},
        {.advantage = LOSS_LEAVE_ONE_OUT,
         .ratio = LOSS_CLIP,
         .aggregation = LOSS_TOKEN_MEAN,
         .eps_low = 0.2,
         .eps_high = 0.28},
        /* gspo: a ratio of means is close to 1, and so are its bounds. */
        {.advantage = LOSS_GROUP,
         .ratio = LOSS_SEQUENCE,
         .aggregation = LOSS_SEQUENCE_MEAN,
         .eps_low = 3e-4,
         .eps_high = 4e-4},
        {.advantage = LOSS_GROUP,
         .ratio = LOSS_CISPO,
         .aggregation = LOSS_TOKEN_MEAN,
         .eps_low = 0.2,
         .eps_high = 4},
        {.advantage = LOSS_RAW,
         .ratio = LOSS_NO_RATIO,
         .aggregation = LOSS_TOKEN_MEAN,
         .eps_low = 0.2,
         .eps_high = 0.28},
    };
    int i = word_choice(LOSS_NAMES, name);
    if (i < 0) return -1;
    *out = presets[i];
    out->kl_form = LOSS_K3;
    out->cap = 2;
    return 0;
}

int loss_needs_logp(const Loss *l)
{
    return l->ratio != LOSS_NO_RATIO || l->kl != 0;
}

void loss_advantages(LossAdvantage form, const double *reward, int n, double floor_std,
                     double *advantage)
{
    double mean = 0, var = 0;
    for (int i = 0; i < n; i++) mean += reward[i] / n;
    for (int i = 0; i < n; i++)
        var += (reward[i] - mean) * (reward[i] - mean) / (n > 1 ? n - 1 : 1);
    int constant = form != LOSS_RAW && (n < 2 || var <= 1e-12);
    for (int i = 0; i < n; i++) {
        double a = reward[i] - mean;
        if (form == LOSS_GROUP) a = a / (sqrt(var) + floor_std);
        if (form == LOSS_LEAVE_ONE_OUT) a *= (double)n / (n - 1);
        if (form == LOSS_RAW) a = reward[i];
        advantage[i] = constant ? 0 : a;
    }
}

double loss_overlong(int tokens, int longest, int margin)
{
    int from = longest - margin;
    if (tokens <= from) return 0;
    return tokens >= longest ? -1 : (double)(from - tokens) / margin;
}

static double normalizer(const Loss *l, const LossBatch *b, int n)
{
    switch (l->aggregation) {
    case LOSS_TOKEN_MEAN: break;
    case LOSS_SEQUENCE_MEAN: return (double)b->sequences * n;
    case LOSS_CONSTANT: return (double)b->sequences * l->longest;
    case LOSS_SEQUENCE_SUM: return b->sequences;
    }
    return b->tokens;
}

/* Returns exp(d) of the clamped d and sets *slope to its derivative by d. */
static double bounded_exp(double d, double *slope)
{
    double e = exp(fmax(-max_difference, fmin(max_difference, d)));
    *slope = fabs(d) > max_difference ? 0 : e;
    return e;
}

/* Returns dL/dlp of a token's term with a ratio; d is log rho. */
static double clipped_term(const Loss *l, double advantage, double d, LossCounts *counts)
{
    double slope, rho = bounded_exp(d, &slope);
    if (l->ratio == LOSS_CISPO) {
        counts->clipped += rho > 1 + l->eps_high;
        return -advantage * fmin(rho, 1 + l->eps_high);
    }
    int outside = advantage > 0 ? rho > 1 + l->eps_high : rho < 1 - l->eps_low;
    if (advantage < 0 && l->dual_clip > 0 && rho > l->dual_clip) outside = 1;
    counts->clipped += outside;
    return outside ? 0 : -advantage * slope;
}

/* Returns dKL/dlp of a token; x is ref - lp. */
static double kl_term(const Loss *l, double x, LossCounts *counts)
{
    double d = fmax(-max_difference, fmin(max_difference, x)), value, slope;
    switch (l->kl_form) {
    case LOSS_K1: value = slope = -d; break;
    case LOSS_K2: value = d * d / 2, slope = -d; break;
    default: value = exp(d) - d - 1, slope = 1 - exp(d); break;
    }
    if (fabs(x) > max_difference) slope = 0;
    if (l->kl_max > 0 && fabs(value) > l->kl_max) {
        value = copysign(l->kl_max, value);
        slope = 0;
    }
    counts->kl += value;
    return slope;
}

static double mean_shift(const float *a, const float *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)a[i] - (double)b[i];
    return n ? sum / n : 0;
}

/* Returns the importance weight of log-ratio d: above the cap it is cut to it, or 0 (masked). */
static double importance_weight(const Loss *l, double d)
{
    double unused, r = bounded_exp(d, &unused);
    int drop =
        l->correction == LOSS_CORRECT_TOKEN_MASK || l->correction == LOSS_CORRECT_SEQUENCE_MASK;
    return r <= l->cap ? r : drop ? 0 : l->cap;
}

void loss_weights(const Loss *l, const LossBatch *b, const LossAnswer *a, float *weight,
                  LossCounts *counts)
{
    double z = normalizer(l, b, a->n), sequence_shift = 0, sequence_weight = 1;
    int correct = l->correction != LOSS_CORRECT_NONE && a->sampler && a->old;
    int by_sequence =
        l->correction == LOSS_CORRECT_SEQUENCE || l->correction == LOSS_CORRECT_SEQUENCE_MASK;
    if (l->ratio == LOSS_SEQUENCE && a->old) sequence_shift = mean_shift(a->logp, a->old, a->n);
    if (correct && by_sequence)
        sequence_weight = importance_weight(l, mean_shift(a->old, a->sampler, a->n) * a->n);
    for (int i = 0; i < a->n; i++) {
        double w = -a->advantage;
        if (l->ratio != LOSS_NO_RATIO && a->old) {
            double d =
                l->ratio == LOSS_SEQUENCE ? sequence_shift : (double)a->logp[i] - (double)a->old[i];
            w = clipped_term(l, a->advantage, d, counts);
        }
        if (correct) {
            double c = by_sequence
                           ? sequence_weight
                           : importance_weight(l, (double)a->old[i] - (double)a->sampler[i]);
            counts->correction += c;
            w *= c;
        }
        if (l->kl != 0 && a->ref)
            w += l->kl * kl_term(l, (double)a->ref[i] - (double)a->logp[i], counts);
        weight[i] = (float)(w / z);
    }
}
