/* quern-selfsup: one round of stage 2. The model's own successes so far in, the updated model out. Speed is not used. */
#include <stdio.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/config.h"
#include "stages/history.h"
#include "stages/selfsup/selfsup.h"

typedef struct {
    Successes successes;
    Pool known;
} Learning;

static int add_round(void *ctx, const SampleSet *round, Error *err)
{
    Learning *l = ctx;
    return successes_add(&l->successes, round, &l->known, err);
}

int main(int argc, char **argv)
{
    const char *samples = NULL, *verdicts = NULL, *output = NULL, *base = NULL, *history = NULL, *rehearse = NULL;
    int64_t batch = 32, epochs = 1, seed = 1, micro = 8192, context = 4096;
    double lr = 3e-4;
    const Flag flags[] = {
        {"samples", FLAG_TEXT, &samples, "samples of the model in --base", .required = 1, .aside = 1},
        {"verdicts", FLAG_TEXT, &verdicts, "their verdicts", .required = 1, .aside = 1},
        {"history", FLAG_TEXT, &history, "earlier rounds, oldest first: SAMPLES:VERDICTS,...", .aside = 1},
        {"rehearse", FLAG_TEXT, &rehearse, "stage 1's dataset, learned again beside the new kernels; left out: none", .aside = 1},
        {"base", FLAG_TEXT, &base, "model directory", .required = 1, .aside = 1},
        {"output", FLAG_TEXT, &output, "model directory to write", .required = 1, .aside = 1},
        {"lr", FLAG_FLOAT, &lr, "peak learning rate", 1e-9, 1},
        {"batch", FLAG_INT, &batch, "successes a step", 1, 4096},
        {"epochs", FLAG_INT, &epochs, "passes over the successes", 1, 100},
        {"context", FLAG_INT, &context, "longest rehearsed example in tokens; longer ones are left out", 64, 131072},
        {"micro-tokens", FLAG_INT, &micro, "tokens of one micro-batch: lower it when memory is short", 256, 1e7},
        {"seed", FLAG_INT, &seed, "of the order", 0, 1e15},
        {0}};
    const FlagSpec spec = {"quern-selfsup", "--base DIR --samples FILE --verdicts FILE --output DIR",
                           "Stage 2, one round: learn from the model's own working kernels.", flags, 0, 0, 0};
    flags_parse(&spec, argc, argv, (const char **)argv);
    log_open("quern-selfsup");
    stop_install();
    Error err;
    char manifest[4096], base_manifest[4096];
    snprintf(manifest, sizeof manifest, "%s/manifest.qa", output);
    snprintf(base_manifest, sizeof base_manifest, "%s/manifest.qa", base);
    ArtifactSpec out;
    artifact_spec_init(&out, "manifest", "quern-selfsup");
    config_from_flags(&out, flags);
    if (artifact_spec_input(&out, samples, &err) || artifact_spec_input(&out, verdicts, &err) ||
        artifact_spec_input(&out, base_manifest, &err) || history_inputs(history, &out, &err) ||
        (rehearse && artifact_spec_input(&out, rehearse, &err)))
        log_die(1, &err);
    if (artifact_same(&out, manifest)) return 0;
    SampleSet set;
    Learning l = {0};
    if (samples_load(samples, verdicts, &set, &err) ||
        history_each(history, add_round, &l, &err))
        log_die(1, &err);
    long before = l.successes.n;
    if (add_round(&l, &set, &err)) log_die(1, &err);
    log_info("%ld of %ld samples are new kernels that succeeded; %ld in the stage so far", l.successes.n - before, set.n,
             l.successes.n);
    successes_balance(&l.successes);
    if (rehearse && l.successes.n && successes_rehearse(&l.successes, base, rehearse, (int)context, &err)) log_die(1, &err);
    LearnOptions o = {.base = base, .output = output, .spec = &out};
    training_defaults(&o.training);
    o.training.lr = lr, o.training.batch = (int)batch, o.training.epochs = (int)epochs;
    o.training.seed = (uint64_t)seed, o.training.max_tokens = (int)micro;
    if (learn_run(&o, l.successes.items, l.successes.n, &err)) log_die(stop_requested() ? 128 + stop_requested() : 1, &err);
    successes_release(&l.successes);
    pool_release(&l.known);
    samples_release(&set);
    artifact_spec_release(&out);
    return log_close(0);
}
