/* The losses of the stages, each as one weight per answer token, w_t = dL/dlp_t. lp_t is the
 * token's log-probability under the current weights (reference: training, section 5). With rho_t =
 * exp(lp_t - old_t), A the answer's advantage and Z the normalizer:
 *
 *   ratio     term of a token, before 1/Z            w_t Z                     used by
 *   none      -A lp_t                                -A                        REINFORCE, SFT
 *   clip      -min(rho A, clip(rho, 1-lo, 1+hi) A)   -A rho_t, 0 if clipped    PPO, GRPO, DAPO
 *   cispo     -sg(min(rho, 1+hi)) A lp_t             -A min(rho_t, 1+hi)       CISPO
 *   sequence  as clip, with s = exp(mean_t(lp-old))  -A s, 0 if clipped        GSPO
 *
 * A = 1 in SFT; sg is stop-gradient. dual_clip c > 1: for A < 0 the weight is 0 also when rho > c.
 * The KL term adds beta times the derivative of k2 = (lp - ref)^2/2 or k3 = exp(ref-lp) - (ref-lp) - 1.
 * k1 = lp - ref estimates the divergence without bias, but its derivative, 1, is 0 in expectation: its
 * term is that of a reward -k1, sg(lp - ref) lp. Truncated importance sampling multiplies the term, but not
 * the KL, by a constant made of old - sampler; it is for answers that another engine has sampled than the
 * one that trains.
 *
 *   aggregation     Z, with B answers and T of their tokens in the step
 *   token-mean      T           a long answer weighs more than a short one
 *   sequence-mean   B |y_i|     every answer weighs the same
 *   constant        B L_max     the length of an answer does not change a token's weight
 *   sequence-sum    B
 *
 * A difference of log-probabilities is clamped to +-20 before exp; outside, its derivative is 0. */
#ifndef STAGES_TRAIN_LOSS_H
#define STAGES_TRAIN_LOSS_H

/* Names in the order of the enums' values, for flags. */
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
    LOSS_CORRECT_NONE,
    LOSS_CORRECT_TOKEN,
    LOSS_CORRECT_TOKEN_MASK,
    LOSS_CORRECT_SEQUENCE,
    LOSS_CORRECT_SEQUENCE_MASK
} LossCorrection;

typedef struct {
    LossAdvantage advantage;
    LossRatio ratio;
    LossAggregation aggregation;
    LossKl kl_form;
    LossCorrection correction;           /* importance weight of old over sampler */
    double eps_low, eps_high, dual_clip; /* dual_clip 0: none */
    double kl, kl_max;                   /* beta; bound on a token's KL, 0: none */
    double cap;                          /* a larger importance weight is cut, or masked */
    int longest;                         /* L_max of LOSS_CONSTANT, tokens */
} Loss;

/* Sets supervised fine-tuning: -lp_t, token-mean. */
void loss_supervised(Loss *l);
/* Sets a published combination by its name (LOSS_NAMES). Returns -1 for an unknown name. */
int loss_preset(const char *name, Loss *out);
/* Whether w_t depends on lp_t. If not, the weights are known before the forward pass. */
int loss_needs_logp(const Loss *l);

/* Computes the advantages of the n rewards of a group:
 *   group          (r - mean)/(std + floor_std), std unbiased: GRPO; near-ties stay small
 *   centred        r - mean: Dr.GRPO
 *   leave-one-out  n/(n-1) (r - mean), which is r minus the mean of the others: RLOO
 *   raw            r
 * Except for raw, all are 0 when n < 2 or when the rewards are equal. */
void loss_advantages(LossAdvantage form, const double *reward, int n, double floor_std,
                     double *advantage);

/* DAPO's soft overlong punishment: 0 up to longest - margin tokens, then linear to -1 at
 * longest. */
double loss_overlong(int tokens, int longest, int margin);

/* All answers of one optimizer step, for the normalizer. */
typedef struct {
    double tokens;
    int sequences;
} LossBatch;

/* One answer of n tokens with their log-probabilities. old may be NULL for the ratio `none`, ref
 * without a KL term, sampler without a correction. */
typedef struct {
    int n;
    double advantage;
    const float *logp, *old, *ref, *sampler;
} LossAnswer;

/* Sums over tokens: the clipped ones, their KL, their importance weights. */
typedef struct {
    double clipped, kl, correction;
} LossCounts;

/* Writes weight[0..n) and adds to counts. logp may be NULL when loss_needs_logp is 0. */
void loss_weights(const Loss *l, const LossBatch *b, const LossAnswer *a, float *weight,
                  LossCounts *counts);

#endif
