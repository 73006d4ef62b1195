/* quern-selfsup: one round of stage 2. It reads the model's samples of this round and of the
 * earlier ones with their verdicts, and writes the updated model. The scores play no part. */
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/random.h"
#include "stages/data/history.h"
#include "stages/selfsup/selfsup.h"
#include "stages/train/learn.h"

typedef struct {
    const char *samples, *verdicts, *output, *base, *history, *rehearse;
    int64_t batch, epochs, seed, context;
    double lr, share;
    EngineFlags engine;
} Options;

typedef struct {
    const Options *o;
    Successes successes;
    Pool known;
    Policy tokenizer;
} Selfsup;

static int inputs(void *stage, ArtifactSpec *spec, Error *err)
{
    const Options *o = ((Selfsup *)stage)->o;
    return -(learn_inputs(o->samples, o->verdicts, o->base, o->history, spec, err) ||
             (o->rehearse && artifact_spec_input(spec, o->rehearse, err)));
}

static int add_round(void *ctx, SampleSet *round, Error *err)
{
    Selfsup *s = ctx;
    return -(learn_tokenizer(round, s->o->base, &s->tokenizer, &s->successes.policy, err) ||
             successes_add(&s->successes, round, &s->known, err));
}

/* The successes of the earlier rounds and of this one, and what is rehearsed. */
static int add_rounds(Selfsup *s, Error *err)
{
    const Options *o = s->o;
    SampleSet set;
    if (samples_load(o->samples, o->verdicts, &set, err) ||
        history_each(o->history, add_round, s, err))
        return -1;
    long before = s->successes.n;
    if (add_round(s, &set, err)) return -1;
    log_info("%ld of %ld samples are new kernels that succeeded; %ld in the stage so far",
             s->successes.n - before, set.n, s->successes.n);
    /* The first sample's id has the number of the round, so that each round draws other examples. */
    const char *id = set.n ? set.items[0].id : "";
    const Rehearsal r = {.max_len = (int)o->context,
                         .share = o->share,
                         .seed = (uint64_t)o->seed,
                         .stream = random_hash(id, strlen(id))};
    samples_release(&set);
    successes_balance(&s->successes);
    return o->rehearse && s->successes.n
               ? successes_rehearse(&s->successes, o->base, o->rehearse, &r, err)
               : 0;
}

static int make_examples(void *stage, LearnOptions *l, Example **ex, long *n, Error *err)
{
    Selfsup *s = stage;
    (void)l;
    if (add_rounds(s, err)) return -1;
    *ex = successes_take(&s->successes, n);
    pool_release(&s->known);
    policy_release(&s->tokenizer);
    return 0;
}

int main(int argc, char **argv)
{
    Options o = {.batch = 32,
                 .epochs = 1,
                 .seed = 1,
                 .context = 4096,
                 .lr = 3e-4,
                 .share = 1,
                 .engine = ENGINE_DEFAULTS};
    const Flag flags[] = {
        {"samples", FLAG_TEXT, &o.samples, "samples of the model in --base", .aside = 1},
        {"verdicts", FLAG_TEXT, &o.verdicts, "their verdicts", .aside = 1},
        {"history", FLAG_TEXT, &o.history, "earlier rounds, oldest first: SAMPLES:VERDICTS,...",
         .aside = 1},
        {"rehearse", FLAG_TEXT, &o.rehearse,
         "stage 1's dataset, learned again beside the new kernels; left out: none", .aside = 1},
        {"rehearse-share", FLAG_FLOAT, &o.share, "of its examples, drawn in each round", 0, 1,
         .aside = CONFIG_CHANGED},
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
    const FlagSpec spec = {
        "quern-selfsup", "--base DIR --samples FILE --verdicts FILE --output DIR",
        "Stage 2, one round: learn from the model's own working kernels.", flags, .checkable = 1};
    ConfigDefaults defaults;
    config_defaults(&defaults, flags);
    flags_parse(&spec, argc, argv, (const char **)argv);
    Selfsup s = {.o = &o};
    LearnOptions l = {.stage = "selfsup", .base = o.base, .output = o.output};
    training_defaults(&l.training);
    l.training.lr = o.lr, l.training.batch = (int)o.batch, l.training.epochs = (int)o.epochs;
    l.training.seed = (uint64_t)o.seed;
    const LearnProgram program = {.program = &spec,
                                  .defaults = &defaults,
                                  .engine = &o.engine,
                                  .required = "samples|verdicts|output",
                                  .stage = &s,
                                  .inputs = inputs,
                                  .examples = make_examples};
    return learn_program(&program, &l);
}
