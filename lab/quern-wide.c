/* quern-wide: quern-prompt with prompts of some wide tasks behind those of the run's. */
#include "lab/wide.h"
#include "stages/crl/prompt_program.h"

static const char *names;
static int64_t ask, copies = 5;

static int open_wide(void *ctx, const char *root, const TaskSet *tasks, ArtifactSpec *spec,
                     Error *err)
{
    Wide *w = ctx;
    w->ask = (int)ask;
    w->copies = (int)copies;
    if (wide_load(root, names, tasks, w, err)) return -1;
    artifact_spec_input_digest(spec, "wide", w->tasks.digest);
    return 0;
}

int main(int argc, char **argv)
{
    static Wide wide;
    static const Flag flags[] = {
        {"wide", FLAG_TEXT, &names, "names of other tasks, of which some are asked too",
         .required = 1, .aside = 1},
        {"wide-ask", FLAG_INT, &ask, "how many of their train tasks: drawn by the seed and --stage",
         0, 100000},
        {"wide-copies", FLAG_INT, &copies, "samples of each of these prompts", 1, 4096},
        {0}};
    const PromptVariant v = {"quern-wide", "Make prompts as quern-prompt, and some of wide tasks.",
                             flags,        open_wide,
                             wide_write,   &wide};
    return prompt_program(argc, argv, &v);
}
