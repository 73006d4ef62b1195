/* quern-figures: the figures of one round's samples, as a metrics artifact and on stdout. */
#include <stdio.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/data/round_figures.h"
#include "stages/data/stage_config.h"

typedef struct {
    ArtifactWriter *w;
    int64_t round;
    Error *err;
    int rc;
} Output;

static void put(void *ctx, const char *name, double value)
{
    Output *o = ctx;
    printf("%s\t%.4f\n", name, value);
    if (!o->w || o->rc) return;
    Record *r = record_new();
    record_int(r, "step", o->round);
    record_text(r, "name", name);
    record_float(r, "value", value);
    o->rc = artifact_write(o->w, r, o->err);
    record_free(r);
}

static int write_figures(const SampleSet *s, const char *path, const ArtifactSpec *spec,
                         int64_t round, Error *err)
{
    RoundFigures f;
    Output o = {.round = round, .err = err};
    round_figures(s, &f);
    if (path && artifact_create(path, spec, &o.w, err)) return -1;
    round_figures_each(&f, put, &o);
    if (!path || !o.rc) return path ? artifact_finish(o.w, err) : 0;
    artifact_abandon(o.w);
    return -1;
}

int main(int argc, char **argv)
{
    const char *samples = NULL, *verdicts = NULL, *output = NULL;
    int64_t round = 0;
    const Flag flags[] = {
        {"samples", FLAG_TEXT, &samples, "samples of one round", .required = 1, .aside = 1},
        {"verdicts", FLAG_TEXT, &verdicts,
         "their verdicts; left out: the comparisons alone are counted", .aside = 1},
        {"output", FLAG_TEXT, &output, "metrics artifact to write, beside stdout", .aside = 1},
        {"round", FLAG_INT, &round, "number of the round, the step of its metrics", 0, 1e6},
        {0}};
    const FlagSpec spec = {
        "quern-figures",
        "--samples FILE [--verdicts FILE] [--output FILE]",
        "Success, score and length by kind of prompt, and how often comparisons are right.",
        flags,
        0,
        0,
        0};
    flags_parse(&spec, argc, argv, (const char **)argv);
    log_open("quern-figures");
    stop_install();
    Error err;
    ArtifactSpec out;
    SampleSet set;
    artifact_spec_init(&out, "metrics", "quern-figures");
    config_from_flags(&out, flags);
    if (artifact_spec_input(&out, samples, &err) ||
        (verdicts && artifact_spec_input(&out, verdicts, &err)))
        log_die(&err);
    if (output && artifact_same(&out, output)) return 0;
    if (samples_load(samples, verdicts, &set, &err) ||
        write_figures(&set, output, &out, round, &err))
        log_die(&err);
    samples_release(&set);
    artifact_spec_release(&out);
    return log_close(0);
}
