/* quern-sample: samples answers to a prompts artifact from a model directory or an endpoint, and
 * writes a samples artifact. */
#include <string.h>

#include "artifacts/manifest.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "llm/llm.h"
#include "stages/data/stage_config.h"
#include "stages/policy/sampling.h"

typedef struct {
    const char *policy, *prompts, *output, *stage, *stop, *adapter, *budget, *ledger, *price;
    int64_t copies, max_new, batch, seed, concurrency, top_k;
    double temperature, top_p, min_p;
    EngineFlags engine;
} Options;

static int inputs(const Options *o, int remote, ArtifactSpec *out, Error *err)
{
    const char *dir = remote ? o->adapter : o->policy;
    if (remote) artifact_spec_config(out, "policy", "%s", o->policy);
    if (artifact_spec_input(out, o->prompts, err)) return -1;
    return dir ? manifest_input(dir, out, err) : 0;
}

static int run(const Options *o, int remote, Budget *budget, const BudgetPrice *price,
               ArtifactSpec *out, Error *err)
{
    if (o->engine.plan)
        return engine_plan_sampling(&o->engine, o->policy, (int)o->batch, (int)o->max_new, err);
    if (inputs(o, remote, out, err)) return -1;
    if (artifact_same(out, o->output)) return 0;
    const SamplingOptions so = {.prompts = o->prompts,
                                .output = o->output,
                                .stage = o->stage,
                                .copies = (int)o->copies,
                                .max_new = (int)o->max_new,
                                .batch = (int)o->batch,
                                .concurrency = (int)o->concurrency,
                                .temperature = o->temperature,
                                .top_p = o->top_p,
                                .seed = (uint64_t)o->seed,
                                .top_k = (int)o->top_k,
                                .min_p = o->min_p,
                                .stop = o->stop,
                                .adapter = o->adapter,
                                .engine = &o->engine,
                                .budget = budget,
                                .price = *price};
    if (budget_open(budget, o->ledger, err)) return -1;
    if (remote) return sampling_endpoint(o->policy, &so, out, err);
    return -(engine_start(&o->engine, err) || sampling_native(o->policy, &so, out, err));
}

static BudgetPrice read_spending(const Options *o, const FlagSpec *spec, Budget *budget)
{
    Error err;
    BudgetPrice price = budget_price_unknown;
    if (budget_parse(o->budget, budget, &err) ||
        (o->price && *o->price && budget_price_parse(o->price, &price, &err)))
        flags_usage_error(spec, "%s", err.text);
    return price;
}

/* Ends with a usage error when a flag is given that the kind of policy has no use for. */
static void check_effect(const Options *o, const FlagSpec *spec, int remote)
{
    static const char *const of_model[] = {"engine", "gpus", NULL};
    if (o->adapter && strncmp(o->policy, "openai:", 7))
        flags_usage_error(spec,
                          "--adapter is for --policy openai:MODEL, a server that can be given one");
    if (remote && o->engine.plan)
        flags_usage_error(spec,
                          "--plan is of a model here; what an endpoint takes is its own matter");
    for (int i = 0; remote && of_model[i]; i++)
        if (flags_given(of_model[i]))
            flags_usage_error(spec, "--%s is of a model here: an endpoint has devices of its own",
                              of_model[i]);
    if (!remote && flags_given("concurrency"))
        flags_usage_error(spec, "--concurrency is of an endpoint: a model here takes --batch");
    if (o->stop && !*o->stop) flags_usage_error(spec, "--stop expects a text, found an empty one");
}

int main(int argc, char **argv)
{
    Options o = {.stage = "sample",
                 .copies = 8,
                 .max_new = 900,
                 .batch = 64,
                 .seed = 1,
                 .concurrency = 16,
                 .temperature = 1,
                 .top_p = 1,
                 .budget = "",
                 .engine = ENGINE_DEFAULTS};
    const Flag flags[] = {
        {"policy", FLAG_TEXT, &o.policy, "model directory, openai:MODEL or anthropic:MODEL",
         .required = 1, .aside = 1},
        {"prompts", FLAG_TEXT, &o.prompts, "prompts artifact", .aside = 1},
        {"output", FLAG_TEXT, &o.output, "samples artifact to write", .aside = 1},
        {"stage", FLAG_TEXT, &o.stage, "name in the samples"},
        {"copies", FLAG_INT, &o.copies, "samples a prompt: the group", 1, 4096},
        {"max-new", FLAG_INT, &o.max_new, "tokens of an answer", 1, 131072},
        {"temperature", FLAG_FLOAT, &o.temperature,
         "1: the model's own law, as reinforcement needs", 0, 4},
        {"top-p", FLAG_FLOAT, &o.top_p, "1: the model's own law", 0.01, 1},
        {"top-k", FLAG_INT, &o.top_k, "only the likeliest so many; 0: the model's own law", 0,
         1 << 20, .aside = CONFIG_CHANGED},
        {"min-p", FLAG_FLOAT, &o.min_p,
         "only tokens with this share of the likeliest one's chance; 0: the model's own law", 0, 1,
         .aside = CONFIG_CHANGED},
        {"stop", FLAG_TEXT, &o.stop, "a text that ends an answer", .aside = CONFIG_CHANGED},
        {"batch", FLAG_INT, &o.batch, "rows decoded together", 1, 4096},
        {"concurrency", FLAG_INT, &o.concurrency, "requests to an endpoint at once", 1, 1024,
         .aside = 1},
        BUDGET_FLAGS(o.budget, o.ledger),
        {"price", FLAG_TEXT, &o.price,
         "$ for a million tokens of prompts and of answers: 0.55,2.19", .aside = 1},
        {"adapter", FLAG_TEXT, &o.adapter, "PEFT directory that the endpoint answers with",
         .aside = 1},
        {"seed", FLAG_INT, &o.seed, "of the samples", 0, 1e15},
        ENGINE_FLAGS(o.engine),
        {0}};
    const FlagSpec spec = {"quern-sample", "--policy POLICY --prompts FILE --output FILE",
                           "Sample answers to prompts from a policy.", .flags = flags,
                           .checkable = 1};
    ConfigDefaults defaults;
    config_defaults(&defaults, flags);
    flags_parse(&spec, argc, argv, (const char **)argv);
    int remote = llm_is_endpoint(o.policy);
    engine_required(&o.engine, &spec, "prompts|output");
    check_effect(&o, &spec, remote);
    Budget budget;
    const BudgetPrice price = read_spending(&o, &spec, &budget);
    flags_checked();
    stop_install();
    Error err;
    ArtifactSpec out;
    config_spec(&out, "samples", &spec, &defaults);
    if (run(&o, remote, &budget, &price, &out, &err)) log_die(&err);
    artifact_spec_release(&out);
    return log_close(0);
}
