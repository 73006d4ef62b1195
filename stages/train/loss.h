/* Every loss of the stages as one weight per answer token, w_t = dL/dlp_t, where lp_t is the
 * token's log-probability now (reference: training, section 5). With rho_t = exp(lp_t - old_t), A
 * the answer's advantage and Z the normaliser:
 *
 *   ratio      term of a token, before 1/Z              w_t Z
 *   none       -A lp_t                                  -A                              REINFORCE,
 * SFT (A = 1) clip       -min(rho A, clip(rho, 1-lo, 1+hi) A)     -A rho_t, or 0 where it clips
 * PPO, GRPO, DAPO, Dr.GRPO cispo      -sg(min(rho, 1+hi)) A lp_t               -A min(rho_t, 1+hi)
 *   sequence   as clip, of s = exp(mean_t(lp-old))      -A s, or 0 where it clips       GSPO
 *
 * dual_clip c > 1: for A < 0, 0 where rho > c as well. KL adds beta times the derivative of k1 = lp
 * - ref, k2 = (lp - ref)^2/2 or k3 = exp(ref-lp) - (ref-lp) - 1. Truncated importance sampling
 * multiplies the term (not the KL) by a constant made of old - sampler: where the answers were
 * drawn by another engine than the one that trains.
 *
 *   aggregation     Z, with B answers in the step and T tokens in them
 *   token-mean      T                        a long answer weighs more than a short one
 *   sequence-mean   B |y_i|                  every answer weighs the same
 *   constant        B L_max                  neither: no reward for length
 *   sequence-sum    B
 *
 * Differences of log-probabilities are held within +-20 before exp; outside their derivative is 0.
 */
#ifndef STAGES_TRAIN_LOSS_H
#define STAGES_TRAIN_LOSS_H

/* The names in the order of the values: for flags. */
#define LOSS_NAMES "dapo|grpo|dr-grpo|rloo|gspo|cispo|reinforce"
#define LOSS_ADVANTAGES "group|centred|leave-one-out|raw"
#define LOSS_RATIOS "none|clip|cispo|sequence"
#define LOSS_AGGREGATIONS "token-mean|sequence-mean|constant|sequence-sum"
#define LOSS_KLS "k1|k2|k3"
#define LOSS_CORRECTIONS "none|token|token-mask|sequence|sequence-mask"

typedef enum { LOSS_GROUP, LOSS_CENTRED, LOSS_LEAVE_ONE_OUT, LOSS_RAW } LossAdvantage;
typedef enum { LOSS_NO_RATIO, LOSS_CLIP, LOSS_CISPO, LOSS_SEQUENCE } LossRatio;
typedef enum {
    LOSS_TOKEN_MEAN,
    LOSS_SEQUENCE_MEAN,
    LOSS_CONSTANT,
    LOSS_SEQUENCE_SUM
} LossAggregation;
typedef enum { LOSS_K1, LOSS_K2, LOSS_K3 } LossKl;
typedef enum {
    LOSS_UNCORRECTED,
    LOSS_TOKEN,
    LOSS_TOKEN_MASK,
    LOSS_WHOLE,
    LOSS_WHOLE_MASK
} LossCorrection;

typedef struct {
    LossAdvantage advantage;
    LossRatio ratio;
    LossAggregation aggregation;
    LossKl kl_form;
    LossCorrection correction;           /* of old over sampler, cut or dropped above cap */
    double eps_low, eps_high, dual_clip; /* dual_clip 0: none */
    double kl, kl_max;                   /* beta; a token's KL is held within +-kl_max, 0: not */
    double cap;
    int longest; /* L_max of LOSS_CONSTANT, tokens */
} Loss;

/* Supervised fine-tuning: -lp_t, token-mean. */
void loss_supervised(Loss *l);
/* The published combinations by name (LOSS_NAMES); everything may be changed after. -1: no such
 * name. */
int loss_preset(const char *name, Loss *out);
/* Place of name in one of the lists above, or -1. */
int loss_choice(const char *names, const char *name);
/* Does w_t depend on lp_t at all? If not, the weights are known before the forward pass. */
int loss_needs_logp(const Loss *l);

/* Advantages of a group's n rewards:
 *   group          (r - mean)/(std + floor), std unbiased: GRPO; the floor keeps near-ties small
 *   centred        r - mean: Dr.GRPO
 *   leave-one-out  n/(n-1) (r - mean), which is r minus the mean of the others: RLOO
 *   raw            r itself
 * but for raw all 0 when n < 2 or when every reward is the same. */
void loss_advantages(LossAdvantage form, const double *reward, int n, double floor_std,
                     double *advantage);

/* DAPO's penalty for length: 0 up to longest - margin tokens, then linearly down to -1 at longest.
 */
double loss_overlong(int tokens, int longest, int margin);

/* What the normaliser is made of: all answers of one optimiser step. */
typedef struct {
    double tokens;
    int sequences;
} LossBatch;

/* One answer: n tokens; old, ref and sampler may be NULL (old: needed by every ratio but none;
 * without sampler nothing is corrected). */
typedef struct {
    int n;
    double advantage;
    const float *logp, *old, *ref, *sampler;
} LossAnswer;

/* Sums over the tokens seen: how many were clipped, their KL, their importance weights. */
typedef struct {
    double clipped, kl, correction;
} LossCounts;

/* weight[0..n) is written, counts are added to. logp may be NULL where loss_needs_logp says no. */
void loss_weights(const Loss *l, const LossBatch *b, const LossAnswer *a, float *weight,
                  LossCounts *counts);

#endif
