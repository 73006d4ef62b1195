/* quern-crl: one round of stage 3. It reads samples of contrastive prompts with their verdicts, and
 * the verdicts of earlier rounds for the running statistics of the reward. It writes the updated
 * model. */
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/words.h"
#include "stages/crl/grpo.h"
#include "stages/data/history.h"
#include "stages/data/samples.h"
#include "stages/data/stage_config.h"
#include "stages/data/turns.h"
#include "stages/train/learn.h"

typedef struct {
    const char *samples, *verdicts, *output, *base, *reference, *history, *reviews, *loss_name;
    int64_t batch, epochs, seed, context, best_of, longest, margin;
    double lr, clip, tie, floor_std, decay, success_worth, turn_discount;
    Loss loss;
    int overlong, keep_constant;
    EngineFlags engine;
} Options;

/* Sets the defaults of a combination (LOSS_NAMES). NULL or an unknown name changes nothing. */
static void preset(Options *o, const char *name)
{
    if (name && !loss_preset(name, &o->loss)) o->loss_name = name;
}

/* Returns the --loss of a command line that is not parsed yet, or NULL. */
static const char *loss_named(int argc, char **argv)
{
    const char *found = NULL;
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        if (!strcmp(argv[i], "--loss") && i + 1 < argc) found = argv[i + 1];
        if (!strncmp(argv[i], "--loss=", 7)) found = argv[i] + 7;
    }
    return found;
}

/* A combination without sense is a usage error. */
static void check_loss(const Options *o, const FlagSpec *spec)
{
    const Loss *l = &o->loss;
    if (l->dual_clip != 0 && l->dual_clip <= 1 + l->eps_high)
        flags_usage_error(spec, "--dual-clip expects 0 or more than 1 + --eps-high (%g), found %g",
                          1 + l->eps_high, l->dual_clip);
    if (l->correction != LOSS_CORRECT_NONE && l->ratio == LOSS_NO_RATIO) {
        size_t n;
        const char *name = word_chosen(LOSS_CORRECTIONS, (int)l->correction, &n);
        flags_usage_error(spec,
                          "--correction %.*s needs a --ratio other than none: it compares the "
                          "weights before the update with the engine that sampled",
                          (int)n, name);
    }
    if (o->overlong == OVERLONG_PENALTY && o->margin < 1)
        flags_usage_error(spec, "--overlong penalty needs --overlong-margin: how many tokens "
                                "before the limit it begins");
    if (l->kl > 0 && !o->reference) flags_usage_error(spec, "--kl above 0 needs --reference");
}

typedef struct {
    const Options *o;
    GrpoOptions grpo;
    RewardStats rewards;
} Crl;

static int inputs(void *stage, ArtifactSpec *spec, Error *err)
{
    const Options *o = ((Crl *)stage)->o;
    return -(learn_inputs(o->samples, o->verdicts, o->base, o->history, spec, err) ||
             (o->reviews && artifact_spec_input(spec, o->reviews, err)));
}

static int add_rewards(void *ctx, SampleSet *round, Error *err)
{
    Crl *c = ctx;
    return -(turns_discount(round, c->o->turn_discount, err) ||
             reward_stats_update(&c->rewards, round, c->o->decay, err));
}

static void log_round(const GrpoStats *g, const SampleSet *s)
{
    log_info("%ld samples of %ld prompts: %.0f%% succeeded, mean score %.3f; %ld prompts without a "
             "signal, %ld examples",
             s->n, g->groups, 100 * g->success, g->mean_reward, g->constant, g->used);
    if (g->judged < s->n)
        log_info("%ld of %ld samples were not judged and count for nothing", s->n - g->judged,
                 s->n);
}

static int make_examples(void *stage, LearnOptions *l, Example **ex, long *n, Error *err)
{
    Crl *c = stage;
    const Options *o = c->o;
    SampleSet set;
    Policy tokenizer = {0};
    GrpoExamples made;
    reward_stats_init(&c->rewards);
    if (samples_load(o->samples, o->verdicts, &set, err) || reviews_apply(o->reviews, &set, err) ||
        history_each(o->history, add_rewards, c, err) || add_rewards(c, &set, err) ||
        learn_tokenizer(&set, o->base, &tokenizer, &c->grpo.policy, err))
        return -1;
    int needed =
        c->grpo.overlong == OVERLONG_PENALTY || l->training.loss.aggregation == LOSS_CONSTANT;
    if (needed && !c->grpo.longest && samples_limit(o->samples, &c->grpo.longest, err)) return -1;
    int rc = grpo_examples(&set, &c->rewards, &c->grpo, &made, err);
    *ex = made.items;
    *n = made.n;
    if (rc) return -1;
    l->training.loss.longest = c->grpo.longest;
    log_round(&made.stats, &set);
    rc = training_dropped(made.stats.dropped, *n + made.stats.dropped, c->grpo.max_len, "CRL", err);
    samples_release(&set);
    policy_release(&tokenizer);
    reward_stats_release(&c->rewards);
    return rc;
}

/* The loss and the settings of the stage, from its flags. */
static void set_training(const Options *o, GrpoOptions *g, LearnOptions *l)
{
    TrainingOptions *t = &l->training;
    *g = (GrpoOptions){.clip = o->clip,
                       .tie = o->tie,
                       .floor_std = o->floor_std,
                       .best_of = (int)o->best_of,
                       .success_worth = o->success_worth,
                       .max_len = (int)o->context,
                       .with_old = o->loss.ratio != LOSS_NO_RATIO,
                       .advantage = o->loss.advantage,
                       .keep_constant = o->keep_constant,
                       .overlong = (Overlong)o->overlong,
                       .longest = (int)o->longest,
                       .margin = (int)o->margin};
    training_defaults(t);
    t->lr = o->lr, t->batch = (int)o->batch, t->epochs = (int)o->epochs, t->final_lr = 1.0;
    t->seed = (uint64_t)o->seed;
    t->loss = o->loss;
    if (t->loss.kl > 0) l->reference = o->reference;
    l->measured = o->reference;
}

static Options o = {.batch = 32,
                    .epochs = 1,
                    .seed = 1,
                    .context = 4096,
                    .best_of = 1,
                    .lr = 2e-4,
                    .clip = 1.5,
                    .tie = 0.02,
                    .floor_std = 0.1,
                    .decay = 0.5,
                    .turn_discount = 0.4,
                    .engine = ENGINE_DEFAULTS};

/* Of the loss most flags are in the header of an artifact only when they differ from the default. --loss
 * names a published combination, whose values become the defaults of the others. */
#define CHOICE(name, target, words, text) \
    FLAG(name, FLAG_CHOICE, &target, text, .choices = words, .aside = CONFIG_CHANGED)
static const Flag flags[] = {
    {"samples", FLAG_TEXT, &o.samples, "samples of the model in --base", .aside = 1},
    {"verdicts", FLAG_TEXT, &o.verdicts, "their verdicts", .aside = 1},
    {"base", FLAG_TEXT, &o.base, "model directory", .required = 1, .aside = 1},
    {"output", FLAG_TEXT, &o.output, "model directory to write", .aside = 1},
    {"history", FLAG_TEXT, &o.history, "earlier rounds, oldest first: SAMPLES:VERDICTS,...",
     .aside = 1},
    {"reviews", FLAG_TEXT, &o.reviews, "of the samples, which may withhold rewards", .aside = 1},
    {"reference", FLAG_TEXT, &o.reference, "model whose divergence is noted; the KL term needs it",
     .aside = 1},
    {"loss", FLAG_TEXT, &o.loss_name, "whose values are the defaults of the next ones",
     .choices = LOSS_NAMES, .aside = CONFIG_CHANGED},
    CHOICE("advantage", o.loss.advantage, LOSS_ADVANTAGES, "of an answer in its group"),
    CHOICE("ratio", o.loss.ratio, LOSS_RATIOS, "to the weights before the update"),
    CHOICE("aggregation", o.loss.aggregation, LOSS_AGGREGATIONS, "of the tokens' losses"),
    {"eps-low", FLAG_FLOAT, &o.loss.eps_low, "ratio's lower clip", 0, 1},
    {"eps-high", FLAG_FLOAT, &o.loss.eps_high, "ratio's upper clip", 0, 10},
    {"dual-clip", FLAG_FLOAT, &o.loss.dual_clip,
     "for bad answers no pull beyond this ratio, above 1; 0: none", 0, 100,
     .aside = CONFIG_CHANGED},
    {"kl", FLAG_FLOAT, &o.loss.kl, "beta of the KL term; 0: none, as most such work does", 0, 100},
    CHOICE("kl-form", o.loss.kl_form, LOSS_KLS, "its estimate"),
    {"kl-max", FLAG_FLOAT, &o.loss.kl_max, "a token's KL is held below it; 0: not", 0, 1000,
     .aside = CONFIG_CHANGED},
    CHOICE("correction", o.loss.correction, LOSS_CORRECTIONS,
           "importance weights, where another engine sampled"),
    {"correction-cap", FLAG_FLOAT, &o.loss.cap, "above it they are cut, or masked", 1, 1000,
     .aside = CONFIG_CHANGED},
    {"longest", FLAG_INT, &o.longest,
     "tokens of the longest answer; 0: what the samples were allowed", 0, 131072,
     .aside = CONFIG_CHANGED},
    CHOICE("overlong", o.overlong, GRPO_OVERLONG, "answers that the limit cut"),
    {"overlong-margin", FLAG_INT, &o.margin, "tokens before the limit where the penalty begins", 0,
     131072, .aside = CONFIG_CHANGED},
    CHOICE("constant-groups", o.keep_constant, "drop|keep", "groups with one reward"),
    {"reward-clip", FLAG_FLOAT, &o.clip, "k of the reward's z-score", 0.01, 100},
    {"tie", FLAG_FLOAT, &o.tie, "predicted scores nearer than this share have one reward", 0, 1},
    {"reward-decay", FLAG_FLOAT, &o.decay,
     "weight of each earlier round's rewards in the statistics", 0, 1},
    {"best-of", FLAG_INT, &o.best_of,
     "a group is worth its expected best of so many samples; 1: their mean", 1, 4096},
    {"success-worth", FLAG_FLOAT, &o.success_worth,
     "added to a success's worth, in deviations of the reward", 0, 100},
    {"turn-discount", FLAG_FLOAT, &o.turn_discount,
     "an answer is worth this share of the one after its verdict, where that is more", 0, 1},
    {"std-floor", FLAG_FLOAT, &o.floor_std, "added to a group's deviation: near-ties stay small", 0,
     10},
    {"lr", FLAG_FLOAT, &o.lr, "peak learning rate", 1e-9, 1},
    {"batch", FLAG_INT, &o.batch, "samples a step", 1, 4096},
    {"epochs", FLAG_INT, &o.epochs, "passes over the samples", 1, 100},
    {"context", FLAG_INT, &o.context, "longest example in tokens; longer ones are left out", 64,
     131072},
    {"seed", FLAG_INT, &o.seed, "of the order", 0, 1e15},
    TRAINING_FLAGS(o.engine),
    {0}};

int main(int argc, char **argv)
{
    const FlagSpec spec = {
        "quern-crl", "--base DIR --samples FILE --verdicts FILE --output DIR",
        "Stage 3, one round: a group-relative loss on samples of contrastive prompts.",
        .flags = flags, .checkable = 1};
    ConfigDefaults defaults;
    preset(&o, "dapo");
    config_defaults(&defaults, flags);
    preset(&o, loss_named(argc, argv));
    flags_parse(&spec, argc, argv, (const char **)argv);
    check_loss(&o, &spec);
    Crl c = {.o = &o};
    LearnOptions l = {.stage = "crl", .base = o.base, .output = o.output};
    set_training(&o, &c.grpo, &l);
    const LearnProgram program = {.program = &spec,
                                  .defaults = &defaults,
                                  .engine = &o.engine,
                                  .required = "samples|verdicts|output",
                                  .stage = &c,
                                  .inputs = inputs,
                                  .examples = make_examples};
    return learn_program(&program, &l);
}
