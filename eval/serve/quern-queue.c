/* quern-queue: show a queue and repair it. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/stop.h"
#include "eval/judge/verdict/verdict.h"
#include "queue/queue.h"
#include "queue/url.h"

enum { MAX_CLASSES = 256, MAX_SICK = 1024, MAX_WORKERS = 4096, MAX_HOSTS = 1024, HEARD_S = 60 };

static void print_sick(const QueueSick *sick, int n_sick)
{
    for (int i = 0; i < n_sick; i++) {
        char when[32] = "";
        time_t at = (time_t)sick[i].at;
        strftime(when, sizeof when, "%F %T UTC", gmtime(&at));
        printf("out of service since %s: %s (%s): %s\n", when, sick[i].where, sick[i].device_class,
               sick[i].reason);
    }
}

static void print_table(const QueueStatus *s, int n, const QueueSick *sick, int n_sick)
{
    printf("%-24s %9s %9s %9s %9s %9s %12s\n", "class", "waiting", "leased", "done", "dead",
           "malformed", "oldest");
    for (int i = 0; i < n; i++)
        printf("%-24s %9ld %9ld %9ld %9ld %9ld %10.1f s\n", s[i].device_class, s[i].waiting,
               s[i].leased, s[i].done, s[i].dead, s[i].malformed, s[i].oldest_s);
    print_sick(sick, n_sick);
}

static void print_json(const QueueStatus *s, int n, const QueueSick *sick, int n_sick)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f}", "class", s[i].device_class,
                            "waiting", (json_int_t)s[i].waiting, "leased", (json_int_t)s[i].leased,
                            "done", (json_int_t)s[i].done, "dead", (json_int_t)s[i].dead,
                            "malformed", (json_int_t)s[i].malformed, "oldest_s", s[i].oldest_s));
    for (int i = 0; i < n_sick; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I}", "class", sick[i].device_class,
                                              "quarantined", sick[i].where, "reason",
                                              sick[i].reason, "since", (json_int_t)sick[i].at));
    json_dumpf(list, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(list);
}

static int status(Queue *q, int as_json, Error *err)
{
    static QueueStatus s[MAX_CLASSES];
    static QueueSick sick[MAX_SICK];
    int n = queue_status(q, s, MAX_CLASSES, err),
        n_sick = n < 0 ? -1 : queue_quarantined(q, sick, MAX_SICK, err);
    if (n_sick < 0) return -1;
    if (as_json)
        print_json(s, n, sick, n_sick);
    else
        print_table(s, n, sick, n_sick);
    return 0;
}

/* ---- top ---- */

typedef struct {
    char host[64];
    int evaluators, busy;
    double idle_s; /* of the one that was heard of last */
} Host;

static Host *host_of(Host *hosts, int *n, const QueueWorker *w)
{
    size_t len = strcspn(w->name, ":");
    for (int i = 0; i < *n; i++)
        if (strlen(hosts[i].host) == len && !strncmp(hosts[i].host, w->name, len)) return &hosts[i];
    if (*n == MAX_HOSTS) return NULL;
    Host *h = &hosts[(*n)++];
    *h = (Host){.idle_s = w->idle_s};
    snprintf(h->host, sizeof h->host, "%.*s", (int)len, w->name);
    return h;
}

static void print_hosts(const Host *hosts, int n)
{
    printf("\n%-32s %10s %9s %12s\n", "host", "evaluators", "at work", "heard of");
    for (int i = 0; i < n; i++)
        printf("%-32s %10d %9d %8.1f s\n", hosts[i].host, hosts[i].evaluators, hosts[i].busy,
               hosts[i].idle_s);
}

/* Twice the status with a window between gives the rates. */
static int top(Queue *q, double window_s, Error *err)
{
    static QueueStatus before[MAX_CLASSES], s[MAX_CLASSES];
    static QueueSick sick[MAX_SICK];
    static QueueWorker workers[MAX_WORKERS];
    static Host hosts[MAX_HOSTS];
    double began = clock_seconds();
    int n_before = queue_status(q, before, MAX_CLASSES, err), n_hosts = 0;
    if (n_before < 0) return -1;
    clock_sleep(window_s);
    double minutes = (clock_seconds() - began) / 60;
    int n = queue_status(q, s, MAX_CLASSES, err),
        n_sick = n < 0 ? -1 : queue_quarantined(q, sick, MAX_SICK, err);
    if (n_sick < 0) return -1;
    printf("%-24s %9s %9s %9s %9s %12s\n", "class", "waiting", "leased", "done", "dead",
           "jobs a min");
    for (int i = 0; i < n; i++) {
        long done = s[i].done;
        for (int k = 0; k < n_before; k++)
            if (!strcmp(before[k].device_class, s[i].device_class)) done -= before[k].done;
        printf("%-24s %9ld %9ld %9ld %9ld %12.1f\n", s[i].device_class, s[i].waiting, s[i].leased,
               s[i].done, s[i].dead, (double)done / minutes);
        int n_workers = queue_workers(q, s[i].device_class, HEARD_S, workers, MAX_WORKERS, err);
        if (n_workers < 0) return -1;
        for (int k = 0; k < n_workers; k++) {
            Host *h = host_of(hosts, &n_hosts, &workers[k]);
            if (!h) continue;
            h->evaluators++;
            h->busy += workers[k].leased > 0;
            if (workers[k].idle_s < h->idle_s) h->idle_s = workers[k].idle_s;
        }
    }
    print_hosts(hosts, n_hosts);
    print_sick(sick, n_sick);
    return 0;
}

static int act(Queue *q, const char *verb, int as_json, double window_s, Error *err)
{
    long revived = 0;
    if (!strcmp(verb, "status")) return status(q, as_json, err);
    if (!strcmp(verb, "top")) return top(q, window_s, err);
    if (!strcmp(verb, "purge")) return queue_purge(q, err);
    if (strcmp(verb, "retry")) return queue_pause(q, !strcmp(verb, "pause"), err);
    if (queue_retry(q, &revived, err)) return -1;
    printf("%ld dead job%s put back\n", revived, revived == 1 ? "" : "s");
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const verbs[] = {"status", "top", "retry", "purge", "pause", "resume"};
    const char *redis = NULL, *name = NULL;
    int as_json = 0;
    double window_s = 2;
    const Flag flags[] = {{"redis", FLAG_TEXT, &redis, "the queue's server instead of QUERN_REDIS"},
                          {"queue", FLAG_TEXT, &name, "the queue's name, if not quern"},
                          {"json", FLAG_BOOL, &as_json, "status as JSON"},
                          {"window", FLAG_FLOAT, &window_s,
                           "seconds over which top counts finished jobs", .min = 0.1, .max = 600},
                          {0}};
    const FlagSpec spec = {
        .program = "quern-queue",
        .synopsis = "status|top|retry|purge|pause|resume [--redis URL] [--queue NAME] [--json]",
        .about = "status: jobs waiting, leased, done and dead by device class, the age of the "
                 "oldest, and devices "
                 "out of service. top: jobs a minute, and evaluators by host. retry: puts dead "
                 "jobs back. purge: forgets the queue, results "
                 "too. pause, resume: "
                 "whether evaluators take jobs.",
        .flags = flags,
        .min_words = 1,
        .max_words = 1};
    const char **words = (const char **)argv;
    flags_parse(&spec, argc, argv, words);
    const char *verb = words[0];
    queue_url_check_flag(&spec, redis);
    int known = 0;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) known |= !strcmp(verb, verbs[i]);
    if (!known)
        flags_usage_error(&spec, "expected status, top, retry, purge, pause or resume, found '%s'",
                          verb);
    log_open("quern-queue");
    stop_install();
    Error err = {0};
    Queue *q = NULL;
    const char *server = redis && *redis ? redis : getenv("QUERN_REDIS");
    if (!server || !*server) {
        error_set(&err, ERROR_USAGE,
                  "there is no queue: QUERN_REDIS names no server. A run that is going on has one: "
                  "--redis "
                  "unix:$PWD/runs/RUN/queue/redis.sock (its first line names the socket). With "
                  "none going on, put "
                  "`quern-fleet run --dir runs/RUN/queue --workers 0 --` in front of the command");
        log_die(&err);
    }
    if (queue_open(redis, name, VERDICT_HARNESS, &q, &err) || act(q, verb, as_json, window_s, &err))
        log_die(&err);
    queue_close(q);
    return log_close(0);
}
