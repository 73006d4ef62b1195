/* quern-selfsup: one round of stage 2. Successes of the model's own samples, reward 1, all else 0, no
 * baseline: REINFORCE. Speed is not used. */
#include <stdio.h>
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "stages/config.h"
#include "stages/crl/pool.h"
#include "stages/learn.h"

/* Once each, as in stage 1: a kernel counts at most `repeat` times in a round, and not at all when the pool
 * already had it before. Samples follow the model's habits, so the common ones would drown the rare; what
 * stage 3 starts from is how many different kernels the model can write. */
static int repeated(const SampleSet *s, long i, long repeat)
{
    long seen = 0;
    for (long k = 0; k < i && seen < repeat; k++)
        seen += s->items[k].outcome == OUTCOME_OK && !strcmp(s->items[k].source_digest, s->items[i].source_digest) &&
                !strcmp(s->items[k].task, s->items[i].task);
    return seen >= repeat;
}

static long examples_of(const SampleSet *s, const Pool *known, long repeat, Example **out, Error *err)
{
    long n = 0;
    *out = memory_array((size_t)s->n, sizeof **out);
    for (long i = 0; i < s->n; i++) {
        const Sample *x = &s->items[i];
        if (x->heldout || x->outcome != OUTCOME_OK || pool_holds(known, x) || repeated(s, i, repeat)) continue;
        if (learn_example(x, 1, 0, &(*out)[n], err)) return -1;
        n++;
    }
    return n;
}

int main(int argc, char **argv)
{
    const char *samples = NULL, *verdicts = NULL, *output = NULL, *base = NULL, *pool = NULL;
    int64_t batch = 32, epochs = 1, seed = 1, repeat = 1, micro = 8192;
    double lr = 3e-4;
    const Flag flags[] = {
        {"samples", FLAG_TEXT, &samples, "samples of the model in --base", .required = 1, .aside = 1},
        {"verdicts", FLAG_TEXT, &verdicts, "their verdicts", .required = 1, .aside = 1},
        {"pool", FLAG_TEXT, &pool, "kernels known before the round, which do not count; left out: none", .aside = 1},
        {"base", FLAG_TEXT, &base, "model directory", .required = 1, .aside = 1},
        {"output", FLAG_TEXT, &output, "model directory to write", .required = 1, .aside = 1},
        {"lr", FLAG_FLOAT, &lr, "peak learning rate", 1e-9, 1},
        {"batch", FLAG_INT, &batch, "successes a step", 1, 4096},
        {"epochs", FLAG_INT, &epochs, "passes over the successes", 1, 100},
        {"repeat", FLAG_INT, &repeat, "times that one kernel counts at most", 1, 1e6},
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
        artifact_spec_input(&out, base_manifest, &err) || (pool && artifact_spec_input(&out, pool, &err)))
        log_die(1, &err);
    if (artifact_same(&out, manifest)) return 0;
    SampleSet set;
    Example *ex;
    Pool known;
    if (samples_load(samples, verdicts, &set, &err) || pool_load(pool, &known, &err)) log_die(1, &err);
    long n = examples_of(&set, &known, repeat, &ex, &err);
    if (n < 0) log_die(1, &err);
    log_info("%ld of %ld samples are new kernels that succeeded", n, set.n);
    LearnOptions o = {.base = base, .output = output, .spec = &out};
    training_defaults(&o.training);
    o.training.lr = lr, o.training.batch = (int)batch, o.training.epochs = (int)epochs;
    o.training.seed = (uint64_t)seed, o.training.max_tokens = (int)micro;
    if (learn_run(&o, ex, n, &err)) log_die(stop_requested() ? 128 + stop_requested() : 1, &err);
    examples_free(ex, n);
    pool_release(&known);
    samples_release(&set);
    artifact_spec_release(&out);
    return log_close(0);
}
