/* Drives llm_run for tests/shell/llm.t: one prompt per line on stdin, one line per reply on stdout:
 *   INDEX STATUS ATTEMPTS FINISH TOKENS text|error [| reasoning]
 * Exit status 0 when llm_run returns 0, else 1 with the error on stderr. Without arguments it skips
 * as a unit test. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "llm/llm.h"

typedef struct {
    char **prompts;
    size_t n;
    int64_t stop_after, replies;
} Work;

static const char *prompt(void *ctx, size_t index, uint64_t *seed)
{
    Work *w = ctx;
    *seed = index + 100;
    return strncmp(w->prompts[index], "skip", 4) ? w->prompts[index] : NULL;
}

static int done(void *ctx, const LlmReply *r, Error *err)
{
    Work *w = ctx;
    if (w->stop_after && ++w->replies > w->stop_after)
        return error_set(err, ERROR_INVALID, "the caller's disk is full");
    printf("%zu %d %d %s %ld %s%s%s\n", r->index, r->http_status, r->attempts, r->finish,
           r->completion_tokens, r->text ? r->text : r->error, r->reasoning ? " | " : "",
           r->reasoning ? r->reasoning : "");
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    const char *api = "openai", *base = NULL, *words[1];
    int64_t concurrency = 4, tokens = 50;
    double give_up = 60, timeout = 60, connect = 30, absent = 60, temperature = 0.5;
    Work w = {0};
    const Flag flags[] = {
        {.name = "api",
         .kind = FLAG_TEXT,
         .target = &api,
         .choices = "openai|anthropic",
         .help = "the API"},
        {.name = "base", .kind = FLAG_TEXT, .target = &base, .help = "base URL"},
        {.name = "concurrency",
         .kind = FLAG_INT,
         .target = &concurrency,
         .help = "requests at once"},
        {.name = "max-new", .kind = FLAG_INT, .target = &tokens, .help = "tokens of an answer"},
        {.name = "temperature", .kind = FLAG_FLOAT, .target = &temperature, .help = "of sampling"},
        {.name = "give-up", .kind = FLAG_FLOAT, .target = &give_up, .help = "seconds"},
        {.name = "timeout", .kind = FLAG_FLOAT, .target = &timeout, .help = "seconds"},
        {.name = "connect-timeout", .kind = FLAG_FLOAT, .target = &connect, .help = "seconds"},
        {.name = "absent", .kind = FLAG_FLOAT, .target = &absent, .help = "seconds"},
        {.name = "stop-after", .kind = FLAG_INT, .target = &w.stop_after, .help = "replies"},
        {0},
    };
    const FlagSpec spec = {.program = "drive_llm",
                           .synopsis = "--base URL",
                           .about = "Drives llm_run.",
                           .flags = flags};
    log_open("drive_llm");
    stop_install();
    flags_parse(&spec, argc, argv, words);
    char *line = NULL;
    size_t cap = 0;
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        if (line[n - 1] == '\n') line[--n] = 0;
        w.prompts = memory_grow(w.prompts, w.n + 1, sizeof *w.prompts);
        w.prompts[w.n++] = memory_strdup(line);
    }
    free(line);
    LlmOptions o = {.api = *api == 'o' ? LLM_OPENAI : LLM_ANTHROPIC,
                    .model = "m",
                    .base_url = base,
                    .temperature = temperature,
                    .max_tokens = (int)tokens,
                    .concurrency = (int)concurrency,
                    .connect_timeout_s = connect,
                    .request_timeout_s = timeout,
                    .give_up_s = give_up,
                    .absent_s = absent,
                    .system = "be brief"};
    Error err;
    int rc = llm_run(&o, w.n, prompt, done, &w, &err);
    for (size_t i = 0; i < w.n; i++) free(w.prompts[i]);
    free(w.prompts);
    if (rc) log_exit(1, &err);
    return log_close(0);
}
