/* The noop runner tests queue and supervision without a compiler. It answers every job with the
 * fixed verdict evaluator_error "noop". The source's first line may ask for more:
 *   // selftest: sleep SECONDS    sleep first
 *   // selftest: crash | hang     end with SIGSEGV, or never answer
 *   // selftest: fail             ask for another attempt
 *   // selftest: sick FILE        the device is sick, if the file exists; it is removed
 *   // selftest: measured SECONDS UUID=SCORE ...
 *                                 after SECONDS, an ok verdict with the score of this device */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "eval/serve/runner.h"

/* Make an ok verdict with this device's score of list, "UUID=SCORE ...". Returns 0 when the list
 * lacks this device. */
static int measured(const RunnerOptions *opt, const Job *job, char *list, Record *verdict)
{
    const char *uuid = opt->uuid ? opt->uuid : "";
    Verdict v = {.outcome = OUTCOME_OK,
                 .time_us = 1,
                 .seed = job->seed,
                 .predicted = !strncmp(opt->device, "sim:", 4)};
    Digest d;
    size_t n = strlen(uuid);
    for (char *save = NULL, *p = strtok_r(list, " ", &save); n && p; p = strtok_r(NULL, " ", &save))
        if (!strncmp(p, uuid, n) && p[n] == '=') v.score = strtod(p + n + 1, NULL);
    v.speedup = v.low = v.high = v.baseline_us = v.score;
    snprintf(v.uuid, sizeof v.uuid, "%s", uuid);
    snprintf(v.device, sizeof v.device, "%s", opt->device);
    snprintf(v.task_digest, sizeof v.task_digest, "%s", job->task_digest);
    digest_of(job->source, job->source_len, &d);
    digest_hex(&d, v.source_digest);
    job_key(job, v.key);
    if (v.score > 0) verdict_record(&v, job->task, verdict);
    return v.score > 0;
}

int runner_noop(const RunnerOptions *opt, const Job *job, Record *verdict, char sick[RUNNER_SICK])
{
    char line[512], path[512];
    int list = 0;
    const char *end = memchr(job->source, '\n', job->source_len);
    size_t n = end ? (size_t)(end - job->source) : job->source_len;
    snprintf(line, sizeof line, "%.*s", (int)n, job->source);
    double seconds = 0;
    if (sscanf(line, "// selftest: sleep %lf", &seconds) == 1) clock_sleep(seconds);
    if (!strcmp(line, "// selftest: crash")) raise(SIGSEGV);
    while (!strcmp(line, "// selftest: hang")) pause();
    if (sscanf(line, "// selftest: sick %500s", path) == 1 && !unlink(path))
        snprintf(sick, RUNNER_SICK, "this GPU is out of service: it was told to be sick");
    if (sscanf(line, "// selftest: measured %lf %n", &seconds, &list) == 1 && list) {
        clock_sleep(seconds);
        if (measured(opt, job, line + list, verdict)) return 0;
    }
    job_verdict(job, OUTCOME_EVALUATOR_ERROR, "noop", verdict);
    return !strcmp(line, "// selftest: fail");
}
