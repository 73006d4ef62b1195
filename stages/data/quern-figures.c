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
    if (!o->w) printf("%s\t%.4f\n", name, value);
    if (!o->w || o->rc) return;
    Record *r = record_new();
    record_int(r, "step", o->round);
    record_text(r, "name", name);
    record_float(r, "value", value);
    o->rc = artifact_put(o->w, r, o->err);
}

typedef struct {
    const char *samples, *verdicts, *output, *only, *root;
    int64_t round;
} Options;

static int write_figures(const SampleSet *s, const TaskSet *tasks, const Options *o,
                         const ArtifactSpec *spec, Error *err)
{
    RoundFigures f;
    Output out = {.round = o->round, .err = err};
    round_figures(s, tasks, &f);
    if (o->output && artifact_create(o->output, spec, &out.w, err)) return -1;
    round_figures_each(&f, put, &out);
    if (!o->output) return 0;
    return artifact_end(out.w, out.rc, err);
}

/* Loads what is there to be counted and writes it. */
static void count(const Options *o, ArtifactSpec *out)
{
    Error err;
    SampleSet set;
    TaskSet tasks = {0};
    const char *const inputs[] = {o->samples, o->verdicts};
    if (config_inputs(out, inputs, 2, &err) ||
        (o->only && config_tasks(out, o->root, o->only, &tasks, &err)))
        log_die(&err);
    if (o->output && artifact_same(out, o->output)) return;
    if (samples_load(o->samples, o->verdicts, &set, &err) ||
        write_figures(&set, o->only ? &tasks : NULL, o, out, &err))
        log_die(&err);
    samples_release(&set);
    if (o->only) taskset_release(&tasks);
}

int main(int argc, char **argv)
{
    Options o = {0};
    const Flag flags[] = {
        {"samples", FLAG_TEXT, &o.samples, "samples of one round", .required = 1, .aside = 1},
        {"verdicts", FLAG_TEXT, &o.verdicts,
         "their verdicts; left out: the comparisons alone are counted", .aside = 1},
        {"output", FLAG_TEXT, &o.output, "metrics artifact to write in place of lines on stdout",
         .aside = 1},
        {"tasks", FLAG_TEXT, &o.only,
         "names, comma separated: these alone are counted, and the heldout ones are told apart by "
         "why "
         "they are held out",
         .aside = 1},
        {"task-root", FLAG_TEXT, &o.root, "folder of the tasks", .aside = 1},
        {"round", FLAG_INT, &o.round, "number of the round, the step of its metrics", 0, 1e6},
        {0}};
    const FlagSpec spec = {
        "quern-figures", "--samples FILE [--verdicts FILE] [--output FILE]",
        "Success, score, length and entropy by kind of prompt, techniques, turns, and how often "
        "comparisons are right.",
        flags};
    flags_parse(&spec, argc, argv, (const char **)argv);
    stop_install();
    ArtifactSpec out;
    config_spec(&out, "metrics", &spec, NULL);
    count(&o, &out);
    artifact_spec_release(&out);
    return log_close(0);
}
