/* quern-results: joins the best kernels and the baselines of a run with their verdicts on each
 * device class. It writes one record for each task and class. */
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "eval/judge/verdict/verdict.h"
#include "stages/data/samples.h"
#include "stages/data/stage_config.h"
#include "tasks/task.h"

enum { MAX_CLASSES = 64 };

static const Sample *find(const SampleSet *s, const char *prefix, const char *task)
{
    for (long i = 0; i < s->n; i++)
        if (!strncmp(s->items[i].id, prefix, strlen(prefix)) && !strcmp(s->items[i].task, task))
            return &s->items[i];
    return NULL;
}

static void copy_counters(Record *r, const char *key, const Sample *s)
{
    View counters;
    if (!s || !view_has(&s->verdict, "counters") ||
        view_map(&s->verdict, "counters", &counters, NULL))
        return;
    record_copy(record_map(r, key), &counters);
}

/* Writes the record of a task. Without a correct kernel it shows the baseline, with score 1. */
static int write_task(ArtifactWriter *w, const SampleSet *s, const Task *t, Error *err)
{
    const Sample *base = find(s, "baseline/", t->name), *best = find(s, "best/", t->name);
    if (!base) return error_set(err, ERROR_INVALID, "no sample baseline/%s", t->name);
    const Sample *shown = best ? best : base;
    Verdict v;
    if (verdict_read(&shown->verdict, &v, err)) return -1;
    Record *r = record_new();
    record_text(r, "task", t->name);
    record_text(r, "split", t->heldout ? "heldout" : "train");
    record_int(r, "level", t->level);
    record_bool(r, "degenerate", t->degenerate);
    record_text(r, "device", v.device);
    record_bool(r, "predicted", v.predicted);
    record_float(r, "score", best ? best->score : 1.0);
    record_text(r, "outcome", outcome_name(shown->outcome));
    record_text(r, "source", shown->source);
    record_text(r, "baseline_source", base->source);
    record_float(r, "time_us", v.time_us);
    record_float(r, "baseline_us", v.baseline_us);
    copy_counters(r, "counters", shown);
    copy_counters(r, "baseline_counters", base);
    int rc = artifact_put(w, r, err);
    verdict_release(&v);
    return rc;
}

int main(int argc, char **argv)
{
    const char *samples = NULL, *output = NULL, *only = NULL, *root = NULL, *words[MAX_CLASSES + 8];
    const Flag flags[] = {
        {"samples", FLAG_TEXT, &samples, "of quern-pool --best", .required = 1, .aside = 1},
        {"output", FLAG_TEXT, &output, "results artifact to write", .required = 1, .aside = 1},
        TASK_FLAGS(only, root),
        {0}};
    const FlagSpec spec = {"quern-results",
                           "--samples FILE --output FILE VERDICTS...",
                           "Put the best kernels' verdicts on every device class side by side.",
                           flags,
                           1,
                           MAX_CLASSES,
                           0};
    if (argc > MAX_CLASSES + 8) flags_usage_error(&spec, "at most %d verdict files", MAX_CLASSES);
    int n = flags_parse(&spec, argc, argv, words);
    stop_install();
    Error err;
    ArtifactSpec out;
    TaskSet tasks;
    config_spec(&out, "results", &spec, NULL);
    if (taskset_load(root, only, &tasks, &err) || artifact_spec_input(&out, samples, &err))
        log_die(&err);
    artifact_spec_input_digest(&out, "tasks", tasks.digest);
    if (config_inputs(&out, words, n, &err)) log_die(&err);
    if (artifact_same(&out, output)) return 0;
    ArtifactWriter *w;
    if (artifact_create(output, &out, &w, &err)) log_die(&err);
    for (int i = 0; i < n; i++) {
        SampleSet s;
        if (samples_load(samples, words[i], &s, &err)) log_die(&err);
        for (int k = 0; k < tasks.n; k++)
            if (write_task(w, &s, tasks.tasks[k], &err)) log_die(&err);
        samples_release(&s);
    }
    if (artifact_finish(w, &err)) log_die(&err);
    taskset_release(&tasks);
    artifact_spec_release(&out);
    return log_close(0);
}
