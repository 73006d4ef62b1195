/* quern-compare: runs side by side, as text. */
#include <stdio.h>
#include <stdlib.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "report/compare/compare.h"

int main(int argc, char **argv)
{
    const char *runs = "runs";
    const Flag flags[] = {{"runs", FLAG_TEXT, &runs, "the folder of the runs"}, {0}};
    const FlagSpec spec = {
        .program = "quern-compare",
        .synopsis = "RUN_A RUN_B [RUN...]",
        .about =
            "Compare runs with the first one: the settings that differ; each stage's success "
            "rate and speedup with the paired 95% interval of the difference; whose best kernel "
            "of a task is faster. A run that is going on is compared by what it has.",
        .flags = flags,
        .min_words = 2,
        .max_words = COMPARE_MAX_RUNS};
    const char **words = memory_array((size_t)argc, sizeof *words);
    int n = flags_parse(&spec, argc, argv, words);
    stop_install();
    Error err;
    Buffer text;
    Compare *c = memory_alloc(sizeof *c);
    if (compare_load(words, n, runs, c, &err)) log_die(&err);
    buffer_init(&text, 64 << 20);
    compare_text(c, &text);
    fputs(text.data, stdout);
    buffer_release(&text);
    compare_release(c);
    free(c);
    free(words);
    return log_close(0);
}
