/* quern-sft: stage 1, supervised fine-tuning. It reads a dataset and writes a model directory. The
 * loss is the cross-entropy of the answer; the prompt has no weight. */
#include <stdio.h>

#include "artifacts/manifest.h"
#include "base/flags.h"
#include "base/log.h"
#include "stages/policy/policy.h"
#include "stages/train/dataset_examples.h"
#include "stages/train/learn.h"

static const double large_lr = 1e-3; /* a checkpoint forgets above it */

typedef struct {
    const char *dataset, *output, *base, *chat;
    int64_t vocab, hidden, ff, layers, heads, kv, context, seed, batch, epochs, plain_epochs;
    double lr, warmup, decay, every, validation;
    EngineFlags engine;
} Options;

typedef struct {
    const Options *o;
    SmallModel small;
    Policy policy;            /* a new one; with a base, only its tokenizer */
    DatasetExamples examples; /* those to validate on; the others are the caller's */
} Sft;

static void log_size(const Policy *p, const DatasetExamples *d)
{
    long tokens = 0;
    for (long i = 0; i < d->n; i++) tokens += d->ex[i].len;
    char parameters[64] = "";
    if (p->model)
        snprintf(parameters, sizeof parameters, "%zu parameters, ", model_parameters(p->model));
    log_info("%ld examples of %.0f tokens on average; %s%d tokens in the vocabulary", d->n,
             d->n ? (double)tokens / (double)d->n : 0.0, parameters, tokenizer_size(p->tokenizer));
    if (d->held > 0) log_info("%ld examples of other tasks to validate on", d->n_val);
}

static SmallModel shape_of(const Options *o)
{
    return (SmallModel){(int)o->vocab, (int)o->hidden, (int)o->ff,      (int)o->layers,
                        (int)o->heads, (int)o->kv,     (int)o->context, (uint64_t)o->seed};
}

/* A base without a manifest, such as a published checkpoint, is known by its path. */
static int inputs(void *stage, ArtifactSpec *spec, Error *err)
{
    const Options *o = ((Sft *)stage)->o;
    if (artifact_spec_input(spec, o->dataset, err)) return -1;
    if (o->base && manifest_input(o->base, spec, NULL))
        artifact_spec_config(spec, "base", "%s", o->base);
    return 0;
}

/* Loads the tokenizer of the base, or makes the new policy that the training starts from. */
static int make_policy(Sft *s, LearnOptions *l, Error *err)
{
    const Options *o = s->o;
    const Ops *ops = NULL;
    if (!o->engine.trainer && engine_ops(&o->engine, &ops, err)) return -1;
    if (o->base) return policy_tokenizer(o->base, &s->policy, err);
    if (small_policy_create(o->dataset, &s->small, ops, &s->policy, err)) return -1;
    l->start = &s->policy;
    return 0;
}

static int make_examples(void *stage, LearnOptions *l, Example **ex, long *n, Error *err)
{
    Sft *s = stage;
    const Options *o = s->o;
    DatasetExamples *d = &s->examples;
    if (o->validation > 0 && o->engine.trainer)
        return error_set(err, ERROR_INVALID, "--validation has no effect on an outside --trainer");
    *d = (DatasetExamples){.max_len = (int)o->context, .held = o->validation};
    if (make_policy(s, l, err) || dataset_examples(&s->policy, o->dataset, d, err)) return -1;
    log_size(&s->policy, d);
    if (training_dropped(d->dropped, d->n + d->n_val + d->dropped, d->max_len, "SFT", err))
        return -1;
    l->training.n_first = d->plain, l->training.val = d->val, l->training.n_val = d->n_val;
    *ex = d->ex, *n = d->n;
    d->ex = NULL, d->n = 0;
    if (o->base && o->lr > large_lr)
        log_warn("--lr %g is a small model's: a checkpoint forgets at it (1e-5 is usual, 1e-4 for "
                 "an adapter)",
                 o->lr);
    if (!l->start) policy_release(&s->policy);
    return *n || o->base ? 0 : error_set(err, ERROR_INVALID, "no examples to train on");
}

static void set_training(const Options *o, TrainingOptions *t)
{
    training_defaults(t);
    t->lr = o->lr, t->warmup = o->warmup, t->weight_decay = o->decay;
    t->batch = (int)o->batch, t->epochs = (int)o->epochs, t->first_epochs = (int)o->plain_epochs;
    t->seed = (uint64_t)o->seed, t->checkpoint_s = o->every;
}

static void check(const FlagSpec *spec, const Options *o)
{
    if (o->chat && !o->base) flags_usage_error(spec, "--chat is the template of a --base");
    policy_give_chat(o->chat);
    if (!o->base && (o->hidden % o->heads || o->heads % o->kv || (o->hidden / o->heads) % 2))
        flags_usage_error(
            spec, "heads must divide hidden (an even quotient) and kv-heads must divide heads");
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
        {"chat", FLAG_TEXT, &o.chat,
         "chat template of --base in place of its own: chatml, qwen2.5, qwen3, llama3, llama3.1, "
         "or a "
         "file that tools/chat_pieces.py wrote"},
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
        {"validation", FLAG_FLOAT, &o.validation,
         "share of the tasks to leave out and to measure the loss on after each pass", 0, 0.5},
        {"checkpoint-s", FLAG_FLOAT, &o.every, "seconds between checkpoints, 0 none", 0, 1e6,
         .aside = 1},
        {"seed", FLAG_INT, &o.seed, "of weights and order", 0, 1e15},
        TRAINING_FLAGS(o.engine),
        {0}};
    const FlagSpec spec = {"quern-sft", "--dataset FILE --output DIR",
                           "Stage 1: supervised fine-tuning on validated kernels.", .flags = flags,
                           .checkable = 1};
    ConfigDefaults defaults;
    config_defaults(&defaults, flags);
    flags_parse(&spec, argc, argv, (const char **)argv);
    check(&spec, &o);
    Sft s = {.o = &o, .small = shape_of(&o)};
    const ModelConfig config = small_policy_config(&s.small, s.small.vocab);
    LearnOptions l = {.stage = "sft", .base = o.base, .output = o.output};
    set_training(&o, &l.training);
    const LearnProgram program = {.program = &spec,
                                  .defaults = &defaults,
                                  .engine = &o.engine,
                                  .required = "dataset|output",
                                  .small = &config,
                                  .stage = &s,
                                  .inputs = inputs,
                                  .examples = make_examples};
    int status = learn_program(&program, &l);
    dataset_examples_release(&s.examples);
    return status;
}
