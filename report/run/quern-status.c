/* quern-status: where a run stands, once, for people or as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "report/run/run_status.h"

int main(int argc, char **argv)
{
    const char *runs = "runs";
    int as_json = 0;
    const Flag flags[] = {{"runs", FLAG_TEXT, &runs, "the folder of the runs"},
                          {"json", FLAG_BOOL, &as_json, "as JSON"},
                          {0}};
    const FlagSpec spec = {
        .program = "quern-status",
        .synopsis = "RUN [--json]",
        .about = "Show where a run stands: its stages and rounds, what its programs have done and "
                 "when they will be ready, the queue and its evaluators, what failed, and the best "
                 "kernel so far of each task.",
        .flags = flags,
        .min_words = 1,
        .max_words = 1};
    const char **words = memory_array((size_t)argc, sizeof *words);
    flags_parse(&spec, argc, argv, words);
    stop_install();
    Error err;
    RunStatus s;
    Buffer text;
    buffer_init(&text, 16 << 20);
    if (run_status_read(words[0], runs, clock_unix(), &s, &err)) log_die(&err);
    if (!as_json)
        run_status_text(&s, isatty(STDOUT_FILENO) && run_status_colours(), &text);
    else if (run_status_json(&s, &text, &err))
        log_die(&err);
    fputs(text.data, stdout);
    buffer_release(&text);
    run_status_release(&s);
    free(words);
    return log_close(0);
}
