/* quern-crl: one round of stage 3. Samples of contrastive prompts with their verdicts, and the verdicts of
 * earlier rounds for the running reward statistics, in; the updated model out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "stages/config.h"
#include "stages/crl/grpo.h"
#include "stages/history.h"

typedef struct {
    RewardStats stats;
    double decay;
} Rewards;

static int fold_round(void *ctx, const SampleSet *round, Error *err)
{
    Rewards *r = ctx;
    return reward_stats_update(&r->stats, round, r->decay, err);
}

static void report(const GrpoStats *g, const SampleSet *s)
{
    log_info("%ld samples of %ld prompts: %.0f%% succeeded, mean score %.3f; %ld prompts without a signal, %ld examples",
             s->n, g->groups, 100 * g->success, g->mean_reward, g->constant, g->used);
}

int main(int argc, char **argv)
{
    const char *samples = NULL, *verdicts = NULL, *output = NULL, *base = NULL, *reference = NULL, *history = NULL;
    int64_t batch = 32, epochs = 1, seed = 1, micro = 8192, context = 4096, best_of = 1;
    double lr = 2e-4, clip = 1.5, floor_std = 0.1, eps_low = 0.2, eps_high = 0.28, kl = 0, decay = 0.5, success_worth = 0;
    const Flag flags[] = {
        {"samples", FLAG_TEXT, &samples, "samples of the model in --base", .required = 1, .aside = 1},
        {"verdicts", FLAG_TEXT, &verdicts, "their verdicts", .required = 1, .aside = 1},
        {"base", FLAG_TEXT, &base, "model directory", .required = 1, .aside = 1},
        {"output", FLAG_TEXT, &output, "model directory to write", .required = 1, .aside = 1},
        {"history", FLAG_TEXT, &history, "earlier rounds, oldest first: SAMPLES:VERDICTS,...", .aside = 1},
        {"reference", FLAG_TEXT, &reference, "model directory of the KL term; needed when --kl is above 0", .aside = 1},
        {"kl", FLAG_FLOAT, &kl, "beta of the KL term; 0: none, as most such work does", 0, 100},
        {"reward-clip", FLAG_FLOAT, &clip, "k of the reward's z-score", 0.01, 100},
        {"reward-decay", FLAG_FLOAT, &decay, "weight of each earlier round's rewards in the statistics", 0, 1},
        {"best-of", FLAG_INT, &best_of, "a group is worth its expected best of so many samples; 1: their mean", 1, 4096},
        {"success-worth", FLAG_FLOAT, &success_worth, "added to a success's worth, in deviations of the reward", 0, 100},
        {"std-floor", FLAG_FLOAT, &floor_std, "added to a group's deviation: near-ties stay small", 0, 10},
        {"eps-low", FLAG_FLOAT, &eps_low, "ratio's lower clip", 0, 1},
        {"eps-high", FLAG_FLOAT, &eps_high, "ratio's upper clip", 0, 10},
        {"lr", FLAG_FLOAT, &lr, "peak learning rate", 1e-9, 1},
        {"batch", FLAG_INT, &batch, "samples a step", 1, 4096},
        {"epochs", FLAG_INT, &epochs, "passes over the samples", 1, 100},
        {"context", FLAG_INT, &context, "longest example in tokens; longer ones are left out", 64, 131072},
        {"micro-tokens", FLAG_INT, &micro, "tokens of one micro-batch: lower it when memory is short", 256, 1e7},
        {"seed", FLAG_INT, &seed, "of the order", 0, 1e15},
        {0}};
    const FlagSpec spec = {"quern-crl", "--base DIR --samples FILE --verdicts FILE --output DIR",
                           "Stage 3, one round: GRPO on samples of contrastive prompts.", flags, 0, 0, 0};
    flags_parse(&spec, argc, argv, (const char **)argv);
    if (kl > 0 && !reference) flags_usage_error(&spec, "--kl above 0 needs --reference");
    log_open("quern-crl");
    stop_install();
    Error err;
    char manifest[4096], base_manifest[4096];
    snprintf(manifest, sizeof manifest, "%s/manifest.qa", output);
    snprintf(base_manifest, sizeof base_manifest, "%s/manifest.qa", base);
    ArtifactSpec out;
    Rewards r = {.decay = decay};
    reward_stats_init(&r.stats);
    artifact_spec_init(&out, "manifest", "quern-crl");
    config_from_flags(&out, flags);
    if (artifact_spec_input(&out, samples, &err) || artifact_spec_input(&out, verdicts, &err) ||
        artifact_spec_input(&out, base_manifest, &err) || history_inputs(history, &out, &err))
        log_die(1, &err);
    if (artifact_same(&out, manifest)) return 0;
    SampleSet set;
    Example *ex;
    long n;
    GrpoStats g;
    const GrpoOptions go = {.clip = clip, .floor_std = floor_std, .best_of = (int)best_of, .success_worth = success_worth,
                            .max_len = (int)context};
    if (samples_load(samples, verdicts, &set, &err) || history_each(history, fold_round, &r, &err) ||
        fold_round(&r, &set, &err) || grpo_examples(&set, &r.stats, &go, &ex, &n, &g, &err))
        log_die(1, &err);
    report(&g, &set);
    LearnOptions o = {.base = base, .output = output, .spec = &out, .reference = kl > 0 ? reference : NULL};
    training_defaults(&o.training);
    o.training.lr = lr, o.training.batch = (int)batch, o.training.epochs = (int)epochs, o.training.kl = kl;
    o.training.eps_low = eps_low, o.training.eps_high = eps_high, o.training.final_lr = 1.0;
    o.training.seed = (uint64_t)seed, o.training.max_tokens = (int)micro;
    if (learn_run(&o, ex, n, &err)) log_die(stop_requested() ? 128 + stop_requested() : 1, &err);
    examples_free(ex, n);
    samples_release(&set);
    reward_stats_release(&r.stats);
    artifact_spec_release(&out);
    return log_close(0);
}
