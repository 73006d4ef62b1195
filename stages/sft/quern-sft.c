/* quern-sft: dataset in, model directory out. */
#include <stdio.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/data/manifest.h"
#include "stages/data/stage_config.h"
#include "stages/sft/sft.h"
#include "stages/train/learn.h"

static const double large_lr = 1e-3;

typedef struct {
    const char *dataset, *output, *base;
    int64_t vocab, hidden, ff, layers, heads, kv, context, seed, batch, epochs, plain_epochs;
    double lr, warmup, decay, every;
    EngineFlags engine;
} Options;

static void say_size(const Policy *p, const Example *ex, long n, long dropped, long long context)
{
    long tokens = 0;
    for (long i = 0; i < n; i++) tokens += ex[i].len;
    char parameters[64] = "";
    if (p->model)
        snprintf(parameters, sizeof parameters, "%zu parameters, ", model_parameters(p->model));
    log_info("%ld examples of %.0f tokens on average, %ld dropped as longer than %lld; %s%d tokens "
             "in the vocabulary",
             n, n ? (double)tokens / (double)n : 0.0, dropped, context, parameters,
             tokenizer_size(p->tokenizer));
}

static SmallModel shape_of(const Options *o)
{
    return (SmallModel){(int)o->vocab, (int)o->hidden, (int)o->ff,      (int)o->layers,
                        (int)o->heads, (int)o->kv,     (int)o->context, (uint64_t)o->seed};
}

static int inputs(const Options *o, ArtifactSpec *out, Error *err)
{
    if (artifact_spec_input(out, o->dataset, err)) return -1;
    if (o->base && manifest_input(o->base, out, NULL))
        artifact_spec_config(out, "base", "%s", o->base);
    return 0;
}

/* The examples, with the tokenizer of base or a new policy's; small is that policy's shape. */
static int make_examples(const Options *o, LearnOptions *l, const SmallModel *small, Policy *p,
                         Example **ex, long *n, Error *err)
{
    const Ops *ops = NULL;
    long dropped;
    if (!o->engine.trainer && engine_ops(&o->engine, &ops, err)) return -1;
    if ((o->base ? policy_tokenizer(o->base, p, err)
                 : sft_new_policy(o->dataset, small, ops, p, err)) ||
        sft_examples(p, o->dataset, (int)o->context, ex, n, &l->training.n_first, &dropped, err))
        return -1;
    say_size(p, *ex, *n, dropped, (long long)o->context);
    if (o->base && o->lr > large_lr)
        log_warn("--lr %g is a small model's: a checkpoint forgets at it (1e-5 is usual, 1e-4 for "
                 "an adapter)",
                 o->lr);
    return *n ? 0 : error_set(err, ERROR_INVALID, "no examples to train on");
}

static int run(const Options *o, LearnOptions *l, ArtifactSpec *out, Error *err)
{
    const SmallModel small = shape_of(o);
    const ModelConfig config = sft_config(&small, small.vocab);
    Policy p = {0};
    Example *ex = NULL;
    long n = 0;
    if (o->engine.plan)
        return engine_plan(&o->engine, o->base, &config, !loss_needs_logp(&l->training.loss), err);
    if (inputs(o, out, err)) return -1;
    int rc = learn_begin(l, err);
    if (rc != 1) return rc;
    rc = make_examples(o, l, &small, &p, &ex, &n, err);
    if (!rc) {
        l->start = o->base ? NULL : &p; /* which learn_run releases */
        rc = learn_run(l, ex, n, err);
    }
    if (!l->start) policy_release(&p);
    examples_free(ex, n);
    return rc;
}

static void learning(const Options *o, LearnOptions *l)
{
    TrainingOptions *t = &l->training;
    training_defaults(t);
    t->lr = o->lr, t->warmup = o->warmup, t->weight_decay = o->decay, t->batch = (int)o->batch,
    t->epochs = (int)o->epochs;
    t->seed = (uint64_t)o->seed, t->checkpoint_s = o->every;
    t->first_epochs = (int)o->plain_epochs;
    l->stage = "sft", l->base = o->base, l->output = o->output, l->engine = &o->engine;
}

int main(int argc, char **argv)
{
    Options o = {.vocab = 2048,
                 .hidden = 192,
                 .ff = 512,
                 .layers = 4,
                 .heads = 6,
                 .kv = 2,
                 .context = 2048,
                 .seed = 1,
                 .batch = 32,
                 .epochs = 3,
                 .lr = 2e-3,
                 .warmup = 0.05,
                 .decay = 0.05,
                 .every = 60,
                 .engine = ENGINE_DEFAULTS};
    const Flag flags[] = {
        {"dataset", FLAG_TEXT, &o.dataset, "dataset artifact", .aside = 1},
        {"output", FLAG_TEXT, &o.output, "model directory to write", .aside = 1},
        {"base", FLAG_TEXT, &o.base,
         "model directory to start from; left out: a small model from scratch", .aside = 1},
        {"vocab", FLAG_INT, &o.vocab, "of the small model", 300, 65536},
        {"hidden", FLAG_INT, &o.hidden, "of the small model", 16, 8192},
        {"ff", FLAG_INT, &o.ff, "of the small model", 16, 32768},
        {"layers", FLAG_INT, &o.layers, "of the small model", 1, 128},
        {"heads", FLAG_INT, &o.heads, "of the small model; divides hidden", 1, 128},
        {"kv-heads", FLAG_INT, &o.kv, "of the small model; divides heads", 1, 128},
        {"context", FLAG_INT, &o.context, "longest example in tokens", 64, 131072},
        {"epochs", FLAG_INT, &o.epochs, "passes over the dataset", 1, 1000},
        {"plain-epochs", FLAG_INT, &o.plain_epochs,
         "before them, over the plain examples alone: they are short", 0, 1000},
        {"batch", FLAG_INT, &o.batch, "examples a step", 1, 4096},
        {"lr", FLAG_FLOAT, &o.lr, "peak learning rate", 1e-9, 1},
        {"warmup", FLAG_FLOAT, &o.warmup, "share of the steps", 0, 1},
        {"weight-decay", FLAG_FLOAT, &o.decay, "on matrices", 0, 1},
        {"checkpoint-s", FLAG_FLOAT, &o.every, "seconds between checkpoints, 0 none", 0, 1e6,
         .aside = 1},
        {"seed", FLAG_INT, &o.seed, "of weights and order", 0, 1e15},
        TRAINING_FLAGS(o.engine),
        {0}};
    const FlagSpec spec = {"quern-sft",
                           "--dataset FILE --output DIR",
                           "Stage 1: supervised fine-tuning on validated kernels.",
                           flags,
                           0,
                           0,
                           0,
                           .checkable = 1};
    ConfigDefaults defaults;
    config_defaults(&defaults, flags);
    flags_parse(&spec, argc, argv, (const char **)argv);
    engine_check(&o.engine, &spec, o.base);
    engine_required(&o.engine, &spec, "dataset|output");
    if (!o.base && (o.hidden % o.heads || o.heads % o.kv || (o.hidden / o.heads) % 2))
        flags_usage_error(
            &spec, "heads must divide hidden (an even quotient) and kv-heads must divide heads");
    flags_checked();
    log_open("quern-sft");
    stop_install();
    Error err;
    ArtifactSpec out;
    config_spec(&out, "manifest", &spec, &defaults);
    engine_config(&o.engine, &out);
    LearnOptions l = {.spec = &out};
    learning(&o, &l);
    if (run(&o, &l, &out, &err)) log_die(&err);
    artifact_spec_release(&out);
    return log_close(0);
}
