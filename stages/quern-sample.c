/* quern-sample: prompts and a policy in, samples out. */
#include <stdio.h>
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/config.h"
#include "stages/sampling.h"

int main(int argc, char **argv)
{
    const char *policy = NULL, *prompts = NULL, *output = NULL, *stage = "sample";
    int64_t copies = 8, max_new = 900, batch = 64, seed = 1, concurrency = 16;
    double temperature = 1, top_p = 1;
    const Flag flags[] = {
        {"policy", FLAG_TEXT, &policy, "model directory, openai:MODEL or anthropic:MODEL", .required = 1, .aside = 1},
        {"prompts", FLAG_TEXT, &prompts, "prompts artifact", .required = 1, .aside = 1},
        {"output", FLAG_TEXT, &output, "samples artifact to write", .required = 1, .aside = 1},
        {"stage", FLAG_TEXT, &stage, "name in the samples"},
        {"copies", FLAG_INT, &copies, "samples a prompt: the group", 1, 4096},
        {"max-new", FLAG_INT, &max_new, "tokens of an answer", 1, 131072},
        {"temperature", FLAG_FLOAT, &temperature, "1: the model's own law, as reinforcement needs", 0, 4},
        {"top-p", FLAG_FLOAT, &top_p, "1: the model's own law", 0.01, 1},
        {"batch", FLAG_INT, &batch, "rows decoded together", 1, 4096},
        {"concurrency", FLAG_INT, &concurrency, "requests to an endpoint at once", 1, 1024, .aside = 1},
        {"seed", FLAG_INT, &seed, "of the samples", 0, 1e15},
        {0}};
    const FlagSpec spec = {"quern-sample", "--policy POLICY --prompts FILE --output FILE",
                           "Sample answers to prompts from a policy.", flags, 0, 0, 0};
    flags_parse(&spec, argc, argv, (const char **)argv);
    log_open("quern-sample");
    stop_install();
    Error err;
    int remote = !strncmp(policy, "openai:", 7) || !strncmp(policy, "anthropic:", 10);
    char manifest[4096];
    snprintf(manifest, sizeof manifest, "%s/manifest.qa", policy);
    ArtifactSpec out;
    artifact_spec_init(&out, "samples", "quern-sample");
    config_from_flags(&out, flags);
    if (remote) artifact_spec_config(&out, "policy", "%s", policy);
    if (artifact_spec_input(&out, prompts, &err) || (!remote && artifact_spec_input(&out, manifest, &err))) log_die(1, &err);
    if (artifact_same(&out, output)) return 0;
    const SamplingOptions o = {prompts, output, stage, (int)copies, (int)max_new, (int)batch, (int)concurrency,
                               temperature, top_p, (uint64_t)seed};
    if (remote ? sampling_endpoint(policy, &o, &out, &err) : sampling_native(policy, &o, &out, &err))
        log_die(stop_requested() ? 128 + stop_requested() : 1, &err);
    artifact_spec_release(&out);
    return log_close(0);
}
