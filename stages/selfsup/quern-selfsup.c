/* quern-selfsup: one round of stage 2. The model's own successes so far in, the updated model out.
 * Speed is not used. */
#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/data/history.h"
#include "stages/data/stage_config.h"
#include "stages/selfsup/selfsup.h"

typedef struct {
    const char *samples, *verdicts, *output, *base, *history, *rehearse;
    int64_t batch, epochs, seed, context;
    double lr;
    EngineFlags engine;
} Options;

typedef struct {
    Successes successes;
    Pool known;
    Policy tokenizer;
    const char *base;
} Learning;

static int add_round(void *ctx, const SampleSet *round, Error *err)
{
    Learning *l = ctx;
    long without = samples_without_ids(round);
    if (without)
        log_info("%ld of %ld samples came without token ids: their texts are encoded", without,
                 round->n);
    if (without && !l->tokenizer.tokenizer && policy_tokenizer(l->base, &l->tokenizer, err))
        return -1;
    l->successes.policy = without ? &l->tokenizer : NULL;
    return successes_add(&l->successes, round, &l->known, err);
}

static int make_examples(const Options *o, Learning *l, Error *err)
{
    SampleSet set;
    if (samples_load(o->samples, o->verdicts, &set, err) ||
        history_each(o->history, add_round, l, err))
        return -1;
    long before = l->successes.n;
    if (add_round(l, &set, err)) return -1;
    log_info("%ld of %ld samples are new kernels that succeeded; %ld in the stage so far",
             l->successes.n - before, set.n, l->successes.n);
    samples_release(&set);
    successes_balance(&l->successes);
    return o->rehearse && l->successes.n
               ? successes_rehearse(&l->successes, o->base, o->rehearse, (int)o->context, err)
               : 0;
}

static int run(const Options *o, LearnOptions *lo, ArtifactSpec *out, Error *err)
{
    Learning l = {.base = o->base};
    if (o->engine.plan)
        return engine_plan(&o->engine, o->base, NULL, !loss_needs_logp(&lo->training.loss), err);
    if (learn_inputs(o->samples, o->verdicts, o->base, o->history, out, err) ||
        (o->rehearse && artifact_spec_input(out, o->rehearse, err)))
        return -1;
    int rc = learn_begin(lo, err);
    if (rc != 1) return rc;
    rc = make_examples(o, &l, err) || learn_run(lo, l.successes.items, l.successes.n, err) ? -1 : 0;
    successes_release(&l.successes);
    pool_release(&l.known);
    policy_release(&l.tokenizer);
    return rc;
}

int main(int argc, char **argv)
{
    Options o = {.batch = 32,
                 .epochs = 1,
                 .seed = 1,
                 .context = 4096,
                 .lr = 3e-4,
                 .engine = ENGINE_DEFAULTS};
    const Flag flags[] = {
        {"samples", FLAG_TEXT, &o.samples, "samples of the model in --base", .aside = 1},
        {"verdicts", FLAG_TEXT, &o.verdicts, "their verdicts", .aside = 1},
        {"history", FLAG_TEXT, &o.history, "earlier rounds, oldest first: SAMPLES:VERDICTS,...",
         .aside = 1},
        {"rehearse", FLAG_TEXT, &o.rehearse,
         "stage 1's dataset, learned again beside the new kernels; left out: none", .aside = 1},
        {"base", FLAG_TEXT, &o.base, "model directory", .required = 1, .aside = 1},
        {"output", FLAG_TEXT, &o.output, "model directory to write", .aside = 1},
        {"lr", FLAG_FLOAT, &o.lr, "peak learning rate", 1e-9, 1},
        {"batch", FLAG_INT, &o.batch, "successes a step", 1, 4096},
        {"epochs", FLAG_INT, &o.epochs, "passes over the successes", 1, 100},
        {"context", FLAG_INT, &o.context,
         "longest rehearsed example in tokens; longer ones are left out", 64, 131072},
        {"seed", FLAG_INT, &o.seed, "of the order", 0, 1e15},
        TRAINING_FLAGS(o.engine),
        {0}};
    const FlagSpec spec = {"quern-selfsup",
                           "--base DIR --samples FILE --verdicts FILE --output DIR",
                           "Stage 2, one round: learn from the model's own working kernels.",
                           flags,
                           0,
                           0,
                           0,
                           .checkable = 1};
    ConfigDefaults defaults;
    config_defaults(&defaults, flags);
    flags_parse(&spec, argc, argv, (const char **)argv);
    engine_check(&o.engine, &spec, o.base);
    engine_required(&o.engine, &spec, "samples|verdicts|output");
    flags_checked();
    log_open("quern-selfsup");
    stop_install();
    Error err;
    ArtifactSpec out;
    config_spec(&out, "manifest", &spec, &defaults);
    engine_config(&o.engine, &out);
    LearnOptions lo = {
        .stage = "selfsup", .base = o.base, .output = o.output, .engine = &o.engine, .spec = &out};
    training_defaults(&lo.training);
    lo.training.lr = o.lr, lo.training.batch = (int)o.batch, lo.training.epochs = (int)o.epochs;
    lo.training.seed = (uint64_t)o.seed;
    if (run(&o, &lo, &out, &err)) log_die(&err);
    artifact_spec_release(&out);
    return log_close(0);
}
