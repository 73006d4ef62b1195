/* quern-hacks: adds the confirmed cheats of samples to the memory of hacks; with --near it shows the
 * hacks that a source is most like. */
#include <stdio.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "stages/crl/hacks.h"
#include "stages/data/stage_config.h"

enum { MAX_SOURCE = 1 << 20, SHOWN = 3 };

static void show_nearest(const char *memory, const char *path)
{
    Error err;
    Hacks h;
    HackMatch m[SHOWN];
    Buffer source;
    buffer_init(&source, MAX_SOURCE);
    if (hacks_load(memory, &h, &err) || file_read_source(path, MAX_SOURCE, &source, &err))
        log_die(&err);
    int n = hacks_nearest(&h, source.data, m, SHOWN);
    for (int i = 0; i < n; i++)
        printf("%.3f\t%s\t%s\t%s\n", m[i].similarity, m[i].hack->cheat, m[i].hack->task,
               m[i].hack->id);
    buffer_release(&source);
    hacks_release(&h);
}

int main(int argc, char **argv)
{
    const char *memory = NULL, *samples = NULL, *verdicts = NULL, *output = NULL, *near = NULL;
    const Flag flags[] = {
        {"hacks", FLAG_TEXT, &memory, "the memory so far; left out: empty", .aside = 1},
        {"samples", FLAG_TEXT, &samples, "samples to add", .aside = 1},
        {"verdicts", FLAG_TEXT, &verdicts, "their verdicts", .aside = 1},
        {"output", FLAG_TEXT, &output, "hacks artifact to write", .aside = 1},
        {"near", FLAG_TEXT, &near, "show the three hacks that this source is most like",
         .aside = 1},
        {0}};
    const FlagSpec spec = {
        "quern-hacks", "--samples FILE --verdicts FILE --output FILE | --hacks FILE --near FILE",
        "Keep the confirmed cheats of a run, and find similar ones.", flags};
    flags_parse(&spec, argc, argv, (const char **)argv);
    if (near ? !memory || output || samples || verdicts : !output || !samples || !verdicts)
        flags_usage_error(&spec,
                          "expected --samples, --verdicts and --output, or --hacks and --near");
    stop_install();
    if (near) {
        show_nearest(memory, near);
        return log_close(0);
    }
    Error err;
    ArtifactSpec out;
    Hacks hacks;
    SampleSet set;
    artifact_spec_init(&out, "hacks", "quern-hacks");
    if ((memory && artifact_spec_input(&out, memory, &err)) ||
        artifact_spec_input(&out, samples, &err) || artifact_spec_input(&out, verdicts, &err))
        log_die(&err);
    if (artifact_same(&out, output)) return 0;
    long added = hacks_load(memory, &hacks, &err) || samples_load(samples, verdicts, &set, &err)
                     ? -1
                     : hacks_add(&hacks, &set, &err);
    if (added < 0 || hacks_write(&hacks, output, &out, &err)) log_die(&err);
    log_info("%ld new hacks, %ld in the memory", added, hacks.n);
    samples_release(&set);
    hacks_release(&hacks);
    artifact_spec_release(&out);
    return log_close(0);
}
