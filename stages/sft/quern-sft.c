/* quern-sft: dataset in, model directory out. */
#include <stdio.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/config.h"
#include "stages/sft/sft.h"

static void say_size(const Policy *p, const Example *ex, long n, long dropped, long long context)
{
    long tokens = 0;
    for (long i = 0; i < n; i++) tokens += ex[i].len;
    log_info("%ld examples of %.0f tokens on average, %ld dropped as longer than %lld; %zu parameters, %d tokens in the vocabulary",
             n, n ? (double)tokens / (double)n : 0.0, dropped, context, model_parameters(p->model), tokenizer_size(p->tokenizer));
}

int main(int argc, char **argv)
{
    const char *dataset = NULL, *output = NULL, *base = NULL;
    int64_t vocab = 2048, hidden = 192, ff = 512, layers = 4, heads = 6, kv = 2, context = 2048, seed = 1, batch = 32,
            epochs = 3, plain_epochs = 0, micro = 8192;
    double lr = 2e-3, warmup = 0.05, decay = 0.05, every = 60;
    const Flag flags[] = {
        {"dataset", FLAG_TEXT, &dataset, "dataset artifact", .required = 1, .aside = 1},
        {"output", FLAG_TEXT, &output, "model directory to write", .required = 1, .aside = 1},
        {"base", FLAG_TEXT, &base, "model directory to start from; left out: a small model from scratch", .aside = 1},
        {"vocab", FLAG_INT, &vocab, "of the small model", 300, 65536},
        {"hidden", FLAG_INT, &hidden, "of the small model", 16, 8192},
        {"ff", FLAG_INT, &ff, "of the small model", 16, 32768},
        {"layers", FLAG_INT, &layers, "of the small model", 1, 128},
        {"heads", FLAG_INT, &heads, "of the small model; divides hidden", 1, 128},
        {"kv-heads", FLAG_INT, &kv, "of the small model; divides heads", 1, 128},
        {"context", FLAG_INT, &context, "longest example in tokens", 64, 131072},
        {"epochs", FLAG_INT, &epochs, "passes over the dataset", 1, 1000},
        {"plain-epochs", FLAG_INT, &plain_epochs, "before them, over the plain examples alone: they are short", 0, 1000},
        {"batch", FLAG_INT, &batch, "examples a step", 1, 4096},
        {"micro-tokens", FLAG_INT, &micro, "tokens of one micro-batch: lower it when memory is short", 256, 1e7},
        {"lr", FLAG_FLOAT, &lr, "peak learning rate", 1e-9, 1},
        {"warmup", FLAG_FLOAT, &warmup, "share of the steps", 0, 1},
        {"weight-decay", FLAG_FLOAT, &decay, "on matrices", 0, 1},
        {"checkpoint-s", FLAG_FLOAT, &every, "seconds between checkpoints, 0 none", 0, 1e6, .aside = 1},
        {"seed", FLAG_INT, &seed, "of weights and order", 0, 1e15},
        {0}};
    const FlagSpec spec = {"quern-sft", "--dataset FILE --output DIR",
                           "Stage 1: supervised fine-tuning on validated kernels.", flags, 0, 0, 0};
    flags_parse(&spec, argc, argv, (const char **)argv);
    if (!base && (hidden % heads || heads % kv || (hidden / heads) % 2))
        flags_usage_error(&spec, "heads must divide hidden (an even quotient) and kv-heads must divide heads");
    log_open("quern-sft");
    stop_install();
    Error err;
    char manifest[4096], metrics[4096], checkpoint[4096], base_manifest[4096];
    snprintf(manifest, sizeof manifest, "%s/manifest.qa", output);
    snprintf(metrics, sizeof metrics, "%s/metrics.qa", output);
    snprintf(checkpoint, sizeof checkpoint, "%s.checkpoint", output);
    ArtifactSpec out;
    artifact_spec_init(&out, "manifest", "quern-sft");
    config_from_flags(&out, flags);
    if (artifact_spec_input(&out, dataset, &err)) log_die(1, &err);
    snprintf(base_manifest, sizeof base_manifest, "%s/manifest.qa", base ? base : "");
    if (base && artifact_spec_input(&out, base_manifest, NULL)) artifact_spec_config(&out, "base", "%s", base);
    if (artifact_same(&out, manifest)) return 0;
    const SmallModel shape = {(int)vocab, (int)hidden, (int)ff, (int)layers, (int)heads, (int)kv, (int)context, (uint64_t)seed};
    TrainingOptions o;
    training_defaults(&o);
    o.lr = lr, o.warmup = warmup, o.weight_decay = decay, o.batch = (int)batch, o.epochs = (int)epochs;
    o.max_tokens = (int)micro, o.seed = (uint64_t)seed, o.checkpoint = checkpoint, o.checkpoint_s = every, o.spec = &out;
    o.first_epochs = (int)plain_epochs;
    Policy p;
    Example *ex;
    long n, plain, dropped;
    if ((base ? policy_load(base, &p, &err) : sft_new_policy(dataset, &shape, &p, &err)) ||
        sft_examples(&p, dataset, (int)context, &ex, &n, &plain, &dropped, &err))
        log_die(1, &err);
    o.n_first = plain;
    say_size(&p, ex, n, dropped, context);
    if (file_mkdirs(output, &err)) log_die(1, &err);
    if (training_run(p.model, ex, n, &o, metrics, &err)) log_die(stop_requested() ? 128 + stop_requested() : 1, &err);
    if (policy_save(&p, output, base, &out, &err)) log_die(1, &err);
    training_forget(&o);
    examples_free(ex, n);
    policy_release(&p);
    artifact_spec_release(&out);
    return log_close(0);
}
