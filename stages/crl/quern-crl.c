/* quern-crl: one round of stage 3. Samples of contrastive prompts with their verdicts, and the
 * verdicts of earlier rounds for the running reward statistics, in; the updated model out. */
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/crl/loss_flags.h"
#include "stages/data/history.h"
#include "stages/data/stage_config.h"

typedef struct {
    const char *samples, *verdicts, *output, *base, *reference, *history;
    int64_t batch, epochs, seed, context, best_of;
    double lr, clip, floor_std, decay, success_worth;
    LossFlags loss;
    EngineFlags engine;
} Options;

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
    log_info("%ld samples of %ld prompts: %.0f%% succeeded, mean score %.3f; %ld prompts without a "
             "signal, %ld examples",
             s->n, g->groups, 100 * g->success, g->mean_reward, g->constant, g->used);
    if (g->judged < s->n)
        log_info("%ld of %ld samples were not judged and count for nothing", s->n - g->judged,
                 s->n);
}

/* The samples as examples. */
static int make_examples(const Options *o, GrpoOptions *g, Example **ex, long *n, Error *err)
{
    SampleSet set;
    Policy tokenizer = {0};
    GrpoStats stats;
    Rewards r = {.decay = o->decay};
    reward_stats_init(&r.stats);
    if (samples_load(o->samples, o->verdicts, &set, err) ||
        history_each(o->history, fold_round, &r, err) || fold_round(&r, &set, err))
        return -1;
    long without = samples_without_ids(&set);
    if (without)
        log_info("%ld of %ld samples came without token ids: their texts are encoded", without,
                 set.n);
    if (without && policy_tokenizer(o->base, &tokenizer, err)) return -1;
    g->policy = without ? &tokenizer : NULL;
    int needed = g->overlong == OVERLONG_PENALTY || !strcmp(o->loss.aggregation, "constant");
    if (needed && !g->longest && samples_limit(o->samples, &g->longest, err)) return -1;
    if (grpo_examples(&set, &r.stats, g, ex, n, &stats, err)) return -1;
    report(&stats, &set);
    samples_release(&set);
    policy_release(&tokenizer);
    reward_stats_release(&r.stats);
    return 0;
}

static void learning(const Options *o, const Loss *loss, LearnOptions *l)
{
    TrainingOptions *t = &l->training;
    training_defaults(t);
    t->lr = o->lr, t->batch = (int)o->batch, t->epochs = (int)o->epochs, t->final_lr = 1.0;
    t->seed = (uint64_t)o->seed;
    t->loss = *loss;
    l->stage = "crl", l->base = o->base, l->output = o->output, l->engine = &o->engine;
    l->reference = loss->kl > 0 ? o->reference : NULL;
}

static int run(const Options *o, LearnOptions *l, GrpoOptions *g, ArtifactSpec *out, Error *err)
{
    Example *ex;
    long n;
    if (o->engine.plan)
        return engine_plan(&o->engine, o->base, NULL, !loss_needs_logp(&l->training.loss), err);
    if (learn_inputs(o->samples, o->verdicts, o->base, o->history, out, err)) return -1;
    int rc = learn_begin(l, err);
    if (rc != 1) return rc;
    if (make_examples(o, g, &ex, &n, err)) return -1;
    l->training.loss.longest = g->longest;
    rc = learn_run(l, ex, n, err);
    examples_free(ex, n);
    return rc;
}

int main(int argc, char **argv)
{
    Options o = {.batch = 32,
                 .epochs = 1,
                 .seed = 1,
                 .context = 4096,
                 .best_of = 1,
                 .lr = 2e-4,
                 .clip = 1.5,
                 .floor_std = 0.1,
                 .decay = 0.5,
                 .engine = ENGINE_DEFAULTS};
    loss_flags_preset(&o.loss, "dapo");
    const Flag flags[] = {
        {"samples", FLAG_TEXT, &o.samples, "samples of the model in --base", .aside = 1},
        {"verdicts", FLAG_TEXT, &o.verdicts, "their verdicts", .aside = 1},
        {"base", FLAG_TEXT, &o.base, "model directory", .required = 1, .aside = 1},
        {"output", FLAG_TEXT, &o.output, "model directory to write", .aside = 1},
        {"history", FLAG_TEXT, &o.history, "earlier rounds, oldest first: SAMPLES:VERDICTS,...",
         .aside = 1},
        {"reference", FLAG_TEXT, &o.reference,
         "model directory of the KL term; needed when --kl is above 0", .aside = 1},
        LOSS_FLAGS(o.loss),
        {"reward-clip", FLAG_FLOAT, &o.clip, "k of the reward's z-score", 0.01, 100},
        {"reward-decay", FLAG_FLOAT, &o.decay,
         "weight of each earlier round's rewards in the statistics", 0, 1},
        {"best-of", FLAG_INT, &o.best_of,
         "a group is worth its expected best of so many samples; 1: their mean", 1, 4096},
        {"success-worth", FLAG_FLOAT, &o.success_worth,
         "added to a success's worth, in deviations of the reward", 0, 100},
        {"std-floor", FLAG_FLOAT, &o.floor_std,
         "added to a group's deviation: near-ties stay small", 0, 10},
        {"lr", FLAG_FLOAT, &o.lr, "peak learning rate", 1e-9, 1},
        {"batch", FLAG_INT, &o.batch, "samples a step", 1, 4096},
        {"epochs", FLAG_INT, &o.epochs, "passes over the samples", 1, 100},
        {"context", FLAG_INT, &o.context, "longest example in tokens; longer ones are left out", 64,
         131072},
        {"seed", FLAG_INT, &o.seed, "of the order", 0, 1e15},
        TRAINING_FLAGS(o.engine),
        {0}};
    const FlagSpec spec = {
        "quern-crl",
        "--base DIR --samples FILE --verdicts FILE --output DIR",
        "Stage 3, one round: a group-relative loss on samples of contrastive prompts.",
        flags,
        0,
        0,
        0,
        .checkable = 1};
    ConfigDefaults defaults;
    config_defaults(&defaults, flags);
    loss_flags_preset(&o.loss, loss_flags_named(argc, argv));
    flags_parse(&spec, argc, argv, (const char **)argv);
    Loss loss;
    GrpoOptions g = {.clip = o.clip,
                     .floor_std = o.floor_std,
                     .best_of = (int)o.best_of,
                     .success_worth = o.success_worth,
                     .max_len = (int)o.context};
    loss_from_flags(&o.loss, &spec, &loss, &g);
    g.with_old = loss.ratio != LOSS_NO_RATIO;
    engine_check(&o.engine, &spec, o.base);
    if (loss.kl > 0 && !o.reference) flags_usage_error(&spec, "--kl above 0 needs --reference");
    engine_required(&o.engine, &spec, "samples|verdicts|output");
    flags_checked();
    log_open("quern-crl");
    stop_install();
    Error err;
    ArtifactSpec out;
    config_spec(&out, "manifest", &spec, &defaults);
    engine_config(&o.engine, &out);
    LearnOptions l = {.spec = &out};
    learning(&o, &loss, &l);
    if (run(&o, &l, &g, &out, &err)) log_die(&err);
    artifact_spec_release(&out);
    return log_close(0);
}
