/* quern-metrics: the numbers of runs and of their queues, served to Prometheus. */
#include <arpa/inet.h>
#include <dirent.h>
#include <math.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/sort.h"
#include "base/stop.h"
#include "report/metrics/run_numbers.h"
#include "report/run/run_status.h"

/* The text that Prometheus reads: every number of the queue and of some runs, in the order of its
 * metrics. One function a group of metrics. All samples of a metric follow its HELP and TYPE lines. */

typedef struct {
    RunStatus status;
    RunNumbers numbers;
} WatchedRun;

typedef struct {
    double prompt_price, answer_price; /* dollars for a million tokens; 0: not told */
} Prices;

enum { MAX_NAMES = 512 };

static void head(Buffer *b, const char *name, const char *type, const char *help)
{
    buffer_printf(b, "# HELP quern_%s %s\n# TYPE quern_%s %s\n", name, help, name, type);
}

/* A label's value: backslash, quote and line break are escaped. */
static void label(Buffer *b, const char *key, const char *value, char before)
{
    buffer_printf(b, "%c%s=\"", before, key);
    for (; *value; value++) {
        if (*value == '\n')
            buffer_puts(b, "\\n");
        else if (*value == '"' || *value == '\\')
            buffer_append(b, (char[]){'\\', *value}, 2);
        else
            buffer_append(b, value, 1);
    }
    buffer_puts(b, "\"");
}

static void value(Buffer *b, double v)
{
    if (isnan(v))
        buffer_puts(b, "} NaN\n");
    else
        buffer_printf(b, "} %.10g\n", v);
}

/* Begins a sample: its name and the labels of the run. */
static void sample(Buffer *b, const char *name, const WatchedRun *r)
{
    buffer_printf(b, "quern_%s", name);
    label(b, "run", r->status.folder.name, '{');
}

static void one_label(Buffer *b, const char *name, const WatchedRun *r, const char *key,
                      const char *word, double v)
{
    sample(b, name, r);
    label(b, key, word, ',');
    value(b, v);
}

static void two_labels(Buffer *b, const char *name, const WatchedRun *r, const char *const words[4],
                       double v)
{
    sample(b, name, r);
    label(b, words[0], words[1], ',');
    label(b, words[2], words[3], ',');
    value(b, v);
}

/* ---- the queue ---- */

static void jobs(const WatchedRun *runs, int n, Buffer *b)
{
    head(b, "jobs", "gauge", "Jobs of the queue by device class and state.");
    for (int i = 0; i < n; i++)
        for (int c = 0; c < runs[i].status.n_classes; c++) {
            const QueueStatus *s = &runs[i].status.classes[c];
            const struct {
                const char *state;
                long jobs;
            } all[] = {{"waiting", s->waiting},
                       {"leased", s->leased},
                       {"done", s->done},
                       {"dead", s->dead},
                       {"malformed", s->malformed}};
            for (size_t k = 0; k < sizeof all / sizeof *all; k++)
                two_labels(b, "jobs", &runs[i],
                           (const char *[]){"class", s->device_class, "state", all[k].state},
                           (double)all[k].jobs);
        }
    head(b, "queue_oldest_seconds", "gauge", "Age of the oldest job that is not finished.");
    for (int i = 0; i < n; i++)
        for (int c = 0; c < runs[i].status.n_classes; c++)
            one_label(b, "queue_oldest_seconds", &runs[i], "class",
                      runs[i].status.classes[c].device_class, runs[i].status.classes[c].oldest_s);
}

static void evaluators(const WatchedRun *runs, int n, Buffer *b)
{
    static const char *const names[] = {"evaluators", "evaluators_busy"};
    head(b, names[0], "gauge", "Evaluators that asked for work lately.");
    for (int busy = 0; busy < 2; busy++) {
        if (busy) head(b, names[1], "gauge", "Evaluators that hold a job: a GPU's busy share.");
        for (int i = 0; i < n; i++)
            for (int c = 0; c < runs[i].status.n_classes; c++) {
                const RunStatus *s = &runs[i].status;
                long count = 0;
                for (int k = 0; k < s->n_workers; k++)
                    count += s->workers[k].device_class == c &&
                             (!busy || s->workers[k].worker.leased > 0);
                one_label(b, names[busy], &runs[i], "class", s->classes[c].device_class,
                          (double)count);
            }
    }
    head(b, "device_out_of_service", "gauge", "Devices that an evaluator found sick.");
    for (int i = 0; i < n; i++)
        for (int k = 0; k < runs[i].status.n_sick; k++)
            one_label(b, "device_out_of_service", &runs[i], "device", runs[i].status.sick[k].where,
                      1);
}

/* ---- runs ---- */

static void states(const WatchedRun *runs, int n, Buffer *b)
{
    head(b, "run_state", "gauge", "1 for the state in which the run is.");
    for (int i = 0; i < n; i++)
        one_label(b, "run_state", &runs[i], "state", run_state_names[runs[i].status.state], 1);
    head(b, "rounds_done", "gauge", "Finished rounds of a stage.");
    for (int i = 0; i < n; i++)
        for (int s = STAGE_SELFSUP; s <= STAGE_CRL; s++)
            one_label(b, "rounds_done", &runs[i], "stage", run_stage_names[s],
                      runs[i].status.stage[s].rounds);
    head(b, "step_seconds_total", "counter", "Seconds that each rule of the run took.");
    for (int i = 0; i < n; i++)
        for (int k = 0; k < runs[i].status.n_rules; k++)
            one_label(b, "step_seconds_total", &runs[i], "step", runs[i].status.rules[k].name,
                      runs[i].status.rules[k].spent);
    head(b, "best_score", "gauge", "Score of the best kernel so far of a task.");
    for (int i = 0; i < n; i++)
        for (int k = 0; k < runs[i].status.n_tasks; k++)
            one_label(b, "best_score", &runs[i], "task", runs[i].status.task[k].task,
                      runs[i].status.task[k].best);
}

/* The files of a stage follow one another. Returns the index behind those of files[from]. */
static int stage_end(const RunNumbers *n, int from)
{
    int end = from;
    while (end < n->n && !strcmp(n->files[end].stage, n->files[from].stage)) end++;
    return end;
}

static void verdicts(const WatchedRun *r, Buffer *b, int scores)
{
    const RunNumbers *n = &r->numbers;
    for (int from = 0, end; from < n->n; from = end) {
        long by[OUTCOME_COUNT] = {0};
        double sum = 0;
        end = stage_end(n, from);
        for (int i = from; i < end; i++) {
            sum += n->files[i].scores;
            for (int o = 0; o < OUTCOME_COUNT; o++) by[o] += n->files[i].outcomes[o];
        }
        for (int o = 0; o < OUTCOME_COUNT && !scores; o++)
            if (by[o])
                two_labels(b, "verdicts_total", r,
                           (const char *[]){"stage", n->files[from].stage, "outcome",
                                            outcome_name((Outcome)o)},
                           (double)by[o]);
        if (scores && by[OUTCOME_OK])
            one_label(b, "score_sum", r, "stage", n->files[from].stage, sum);
    }
}

static void tokens(const WatchedRun *r, const Prices *p, Buffer *b, int cost)
{
    const RunNumbers *n = &r->numbers;
    for (int from = 0, end; from < n->n; from = end) {
        double prompt = 0, answer = 0;
        end = stage_end(n, from);
        for (int i = from; i < end; i++) {
            prompt += n->files[i].prompt_tokens;
            answer += n->files[i].answer_tokens;
        }
        const char *stage = n->files[from].stage;
        if (!prompt && !answer) continue;
        if (cost) {
            one_label(b, "cost_dollars_total", r, "stage", stage,
                      (prompt * p->prompt_price + answer * p->answer_price) / 1e6);
            continue;
        }
        two_labels(b, "tokens_total", r, (const char *[]){"stage", stage, "kind", "prompt"},
                   prompt);
        two_labels(b, "tokens_total", r, (const char *[]){"stage", stage, "kind", "answer"},
                   answer);
    }
}

/* Returns whether the name is among the n, and adds it where there is room. */
static int is_seen(const char **names, int *n, const char *name)
{
    for (int i = 0; i < *n; i++)
        if (!strcmp(names[i], name)) return 1;
    if (*n == MAX_NAMES) return 1;
    names[(*n)++] = name;
    return 0;
}

/* The last value of each name of a stage: loss, reward, success by round. */
static void last_values(const WatchedRun *r, Buffer *b)
{
    const char *names[MAX_NAMES];
    const RunNumbers *all = &r->numbers;
    for (int from = 0, end; from < all->n; from = end) {
        int n = 0;
        end = stage_end(all, from);
        for (int i = end - 1; i >= from; i--)
            for (int k = all->files[i].n_steps - 1; k >= 0; k--) {
                const StepValue *s = &all->files[i].steps[k];
                if (!is_seen(names, &n, s->name))
                    two_labels(b, "value", r,
                               (const char *[]){"stage", all->files[i].stage, "name", s->name},
                               s->value);
            }
    }
}

/* shared: runs[n] has the queue of a server that several runs share, under the name "". */
static void exposition_write(const WatchedRun *runs, int n, int shared, const Prices *prices,
                             Buffer *out)
{
    jobs(runs, n + (shared != 0), out);
    evaluators(runs, n + (shared != 0), out);
    states(runs, n, out);
    head(out, "verdicts_total", "counter", "Verdicts by stage and outcome.");
    for (int i = 0; i < n; i++) verdicts(&runs[i], out, 0);
    head(out, "score_sum", "counter", "Sum of the scores of correct kernels.");
    for (int i = 0; i < n; i++) verdicts(&runs[i], out, 1);
    head(out, "tokens_total", "counter", "Tokens of prompts and answers.");
    for (int i = 0; i < n; i++) tokens(&runs[i], prices, out, 0);
    if (prices->prompt_price > 0 || prices->answer_price > 0) {
        head(out, "cost_dollars_total", "counter", "Tokens at the given prices.");
        for (int i = 0; i < n; i++) tokens(&runs[i], prices, out, 1);
    }
    head(out, "value", "gauge", "Last value of each figure of training and rounds.");
    for (int i = 0; i < n; i++) last_values(&runs[i], out);
}

enum { MAX_RUNS = 64, MAX_TEXT = 32 << 20 };

static struct {
    const char *runs, *address;
    int64_t port;
    double every_s;
    Prices prices;
    int once, steps;
} args = {.runs = "runs", .address = "127.0.0.1", .port = 9464, .every_s = 5};

static const Flag flags[] = {
    {"runs", FLAG_TEXT, &args.runs, "the folder of the runs"},
    {"address", FLAG_TEXT, &args.address, "the IPv4 address to listen on; 0.0.0.0: all"},
    {"port", FLAG_INT, &args.port, "the port to listen on; 0: any free one", 0, 65535},
    {"every", FLAG_FLOAT, &args.every_s, "seconds between two readings; a scrape gets the last one",
     0.2, 3600},
    {"prompt-price", FLAG_FLOAT, &args.prices.prompt_price,
     "dollars for a million tokens of prompts", 0, 1e6},
    {"answer-price", FLAG_FLOAT, &args.prices.answer_price,
     "dollars for a million tokens of answers", 0, 1e6},
    {"once", FLAG_BOOL, &args.once, "print the numbers on stdout and end"},
    {"steps", FLAG_BOOL, &args.steps,
     "write the metrics of each step as JSON lines and as TensorBoard event files below "
     "RUN/metrics, and end"},
    {0}};
static const FlagSpec spec = {
    .program = "quern-metrics",
    .synopsis = "[RUN...] [--once | --steps]",
    .about = "Serves GET /metrics for Prometheus: jobs by state, evaluators, verdicts by outcome, "
             "seconds by step, tokens, rewards and losses, of the named runs or of all. The queue "
             "belongs to a run that is going on, or is $QUERN_REDIS.",
    .flags = flags,
    .max_words = -1};

/* The answer with the last reading. All scrapes until the next one are given it. */
static struct {
    pthread_mutex_t lock;
    struct MHD_Response *answer;
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    char *name;
    RunNumbers numbers;
} watched[MAX_RUNS];
static int n_watched;

static void watch(const char *name)
{
    for (int i = 0; i < n_watched; i++)
        if (!strcmp(watched[i].name, name)) return;
    if (n_watched < MAX_RUNS) watched[n_watched++].name = memory_strdup(name);
}

/* Adds the runs below the folder that are not watched yet. */
static void find_runs(void)
{
    char *names[1024];
    int n = 0;
    DIR *d = opendir(args.runs);
    for (struct dirent *e; d && n < 1024 && (e = readdir(d));)
        if (e->d_name[0] != '.') names[n++] = memory_strdup(e->d_name);
    if (d) closedir(d);
    sort_texts(names, (size_t)n);
    for (int i = 0; i < n; i++) {
        char *settings = memory_printf("%s/%s/settings.mk", args.runs, names[i]);
        if (!access(settings, R_OK)) watch(names[i]);
        free(settings);
        free(names[i]);
    }
}

/* Reads everything into a new text. A run that cannot be read is left out. */
static void read_all(Buffer *out)
{
    WatchedRun *runs = memory_array(MAX_RUNS + 1, sizeof *runs);
    int n = 0, at[MAX_RUNS + 1];
    Error err;
    const char *outside = getenv("QUERN_REDIS");
    int shared = outside && *outside;
    for (int i = 0; i < n_watched; i++) {
        WatchedRun *r = &runs[n];
        if (run_status_read(watched[i].name, args.runs, clock_unix(), &r->status, &err)) {
            log_debug("%s", err.text);
            run_status_release(&r->status);
            continue;
        }
        if (shared) r->status.n_classes = r->status.n_sick = 0; /* they follow once */
        run_numbers_read(&r->status.folder, 0, &watched[i].numbers);
        r->numbers = watched[i].numbers;
        at[n++] = i;
    }
    if (shared) {
        runs[n].status.folder.name = memory_strdup("");
        run_status_queue(&runs[n].status, outside);
    }
    exposition_write(runs, n, shared, &args.prices, out);
    if (shared) run_status_release(&runs[n].status);
    for (int i = 0; i < n; i++) {
        watched[at[i]].numbers = runs[i].numbers;
        run_status_release(&runs[i].status);
    }
    free(runs);
}

static enum MHD_Result answer(void *unused, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **state)
{
    static const char no[] = "quern-metrics: only GET /metrics is here\n";
    (void)unused, (void)version, (void)data;
    if (!*state || *size) { /* an answer before the request's end would end the connection */
        *state = (void *)(uintptr_t)no;
        *size = 0;
        return MHD_YES;
    }
    if (!strcmp(method, "GET") && !strcmp(url, "/metrics")) {
        pthread_mutex_lock(&last.lock);
        enum MHD_Result rc = MHD_queue_response(c, 200, last.answer);
        pthread_mutex_unlock(&last.lock);
        return rc;
    }
    struct MHD_Response *r = MHD_create_response_from_buffer(sizeof no - 1, (void *)(uintptr_t)no,
                                                             MHD_RESPMEM_PERSISTENT);
    if (!r) return MHD_NO;
    MHD_add_response_header(r, "Content-Type", "text/plain");
    enum MHD_Result rc = MHD_queue_response(c, 404, r);
    MHD_destroy_response(r);
    return rc;
}

static void read_text(int all, Buffer *b)
{
    buffer_init(b, MAX_TEXT);
    if (all) find_runs();
    read_all(b);
}

/* Reads everything again. Connections that still send the old answer keep it. */
static int refresh(int all, Error *err)
{
    Buffer b;
    read_text(all, &b);
    size_t len = b.len;
    struct MHD_Response *r =
        MHD_create_response_from_buffer(len, buffer_detach(&b), MHD_RESPMEM_MUST_FREE);
    if (!r) return error_set(err, ERROR_MEMORY, "no memory for an answer of %zu bytes", len);
    MHD_add_response_header(r, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    pthread_mutex_lock(&last.lock);
    struct MHD_Response *old = last.answer;
    last.answer = r;
    pthread_mutex_unlock(&last.lock);
    if (old) MHD_destroy_response(old);
    return 0;
}

static int serve(int all, Error *err)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)args.port)};
    if (inet_pton(AF_INET, args.address, &to.sin_addr) != 1)
        flags_usage_error(&spec, "--address expects an IPv4 address, found '%s'", args.address);
    if (refresh(all, err)) return -1;
    struct MHD_Daemon *d = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL, (uint16_t)args.port, NULL, NULL, answer,
        NULL, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&to, MHD_OPTION_CONNECTION_LIMIT, 128u,
        MHD_OPTION_CONNECTION_TIMEOUT, 10u, MHD_OPTION_END);
    if (!d) return error_errno(err, "cannot listen on %s port %d", args.address, (int)args.port);
    process_notify("READY=1");
    const union MHD_DaemonInfo *bound = MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT);
    log_info("serving http://%s:%d/metrics", args.address, bound ? bound->port : (int)args.port);
    int rc = 0;
    for (double next = clock_seconds(); !rc && !stop_requested(); clock_sleep(0.05)) {
        if (clock_seconds() < next + args.every_s) continue;
        next = clock_seconds();
        rc = refresh(all, err);
    }
    MHD_stop_daemon(d);
    MHD_destroy_response(last.answer);
    return rc;
}

static int write_steps(Error *err)
{
    for (int i = 0; i < n_watched; i++) {
        RunFolder f;
        RunNumbers n = {0};
        int rc = run_folder_open(watched[i].name, args.runs, &f, err);
        if (!rc) {
            run_numbers_read(&f, 1, &n);
            rc = steps_write(&f, &n, err);
        }
        run_numbers_release(&n);
        run_folder_release(&f);
        if (rc) return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    Error err;
    RunFolder f;
    const char **words = memory_array((size_t)argc, sizeof *words);
    int n = flags_parse(&spec, argc, argv, words), rc = 0;
    stop_install();
    if (args.once && args.steps) flags_usage_error(&spec, "--once and --steps exclude each other");
    for (int i = 0; i < n; i++) {
        if (run_folder_open(words[i], args.runs, &f, &err)) log_die(&err);
        run_folder_release(&f);
        watch(words[i]);
    }
    if (!n) find_runs();
    if (args.steps) {
        rc = write_steps(&err);
    } else if (args.once) {
        Buffer b;
        read_text(!n, &b);
        fwrite(b.data, 1, b.len, stdout);
        buffer_release(&b);
    } else {
        rc = serve(!n, &err);
    }
    if (rc) log_die(&err);
    for (int i = 0; i < n_watched; i++) {
        run_numbers_release(&watched[i].numbers);
        free(watched[i].name);
    }
    free(words);
    return log_close(EXIT_STATUS_OK);
}
