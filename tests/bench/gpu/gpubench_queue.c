/* Part sustained: candidates of all tasks and outcomes through a queue on a private server and one
 * evaluator process. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "eval/serve/job.h"
#include "queue/queue.h"
#include "queue/server.h"
#include "tests/bench/gpu/gpubench.h"

enum { BATCH = 128, PATIENCE_S = 180, LOG_MAX = 64 << 20 };
static const double teacher_mistakes = 0.35;

typedef struct {
    char key[DIGEST_HEX];
    int done;
    double at; /* seconds since the start */
    char outcome[32];
} Item;

typedef struct {
    GpuBench *b;
    GpuBenchList list;
    Item *items; /* one a candidate */
    int n, done;
    double start, heard;
    char dir[4096], log[4200], uuid[48];
    Server server;
    Queue *queue;
    pid_t evald;
    double gpu_sum; /* of NVML's utilisation, 0..1 */
    long gpu_samples;
} Sustained;

/* ---- the GPU's utilisation, where NVML tells it ---- */

typedef struct {
    /* rates: share of the last sampling period with kernels and with memory traffic, percent */
    int (*utilisation)(void *device, unsigned rates[2]);
    void *device;
} Meter;

/* Find the GPU by its uuid: NVML's numbers differ from CUDA's under CUDA_VISIBLE_DEVICES and
 * CUDA_DEVICE_ORDER. */
static void meter_open(Meter *m, const char *uuid)
{
    *m = (Meter){NULL, NULL};
    if (!*uuid) return;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    union {
        void *object;
        int (*init)(void);
        int (*by_uuid)(const char *uuid, void **out);
        int (*utilisation)(void *out, unsigned rates[2]);
    } init = {dlsym(library, "nvmlInit_v2")},
      by_uuid = {dlsym(library, "nvmlDeviceGetHandleByUUID")},
      rates = {dlsym(library, "nvmlDeviceGetUtilizationRates")};
    if (!init.object || !by_uuid.object || !rates.object || init.init()) return;
    if (!by_uuid.by_uuid(uuid, &m->device)) m->utilisation = rates.utilisation;
}

static void meter_read(const Meter *m, Sustained *s)
{
    unsigned rates[2];
    if (!m->utilisation || m->utilisation(m->device, rates)) return;
    s->gpu_sum += rates[0] / 100.0;
    s->gpu_samples++;
}

/* ---- the candidates ---- */

static void shuffle(GpuBenchList *l)
{
    Random r;
    random_init(&r, 3, 0);
    for (int i = l->n - 1; i > 0; i--) {
        int k = (int)random_below(&r, (uint64_t)i + 1);
        GpuBenchCandidate t = l->items[i];
        l->items[i] = l->items[k];
        l->items[k] = t;
    }
}

/* Leaves out the candidates of tasks that the evaluator does not have. */
static void drop_unknown(GpuBenchList *l, const TaskSet *tasks)
{
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        const char *task = l->items[i].task;
        if (taskset_find(tasks, task, strlen(task)))
            l->items[n++] = l->items[i];
        else
            free(l->items[i].source);
    }
    l->n = n;
}

/* Gather n candidates: the teacher's, and one in eight of the tests', which have every outcome.
 * Those of sets are the teacher's alone, task after task, as a prompt's candidates come together. */
static int gather(Sustained *s, const TaskSet *tasks, int n, Error *err)
{
    GpuBenchList tests = {0};
    int failed = !s->b->sets && (gpubench_files(s->b, "tests/fixtures/kernels/*.cu", &tests, err) ||
                                 gpubench_files(s->b, "tests/cheats/*.cu", &tests, err));
    drop_unknown(&tests, tasks);
    int from_tests = tests.n < n / 8 ? tests.n : n / 8;
    shuffle(&tests);
    failed = failed || gpubench_teacher(s->b, n - from_tests, teacher_mistakes, &s->list, err);
    for (int i = 0; i < from_tests && !failed; i++) {
        s->list.items = memory_grow(s->list.items, (size_t)s->list.n + 1, sizeof *s->list.items);
        s->list.items[s->list.n] = tests.items[i];
        s->list.items[s->list.n++].source = memory_strdup(tests.items[i].source);
    }
    gpubench_list_release(&tests);
    if (!s->b->sets) shuffle(&s->list);
    for (int i = 0; i < s->list.n; i++) {
        /* 1000000: beyond the numbers of other parts. */
        char *distinct = gpubench_variant(s->list.items[i].source, 1000000 + i);
        free(s->list.items[i].source);
        s->list.items[i].source = distinct;
    }
    return failed ? -1 : 0;
}

static int enqueue(Sustained *s, const TaskSet *tasks, const char *device_class, Error *err)
{
    s->items = memory_array((size_t)s->list.n + 1, sizeof *s->items);
    while (s->n < s->list.n) {
        QueueNew jobs[BATCH];
        QueueState states[BATCH];
        Buffer bodies[BATCH];
        int n = 0, failed = 0;
        for (; n < BATCH && s->n + n < s->list.n; n++) {
            const GpuBenchCandidate *c = &s->list.items[s->n + n];
            const Task *t = taskset_find(tasks, c->task, strlen(c->task));
            Job job = {.source = c->source, .source_len = strlen(c->source), .seed = 1};
            snprintf(job.task, sizeof job.task, "%s", c->task);
            snprintf(job.task_digest, sizeof job.task_digest, "%s", t ? t->digest : "");
            snprintf(job.device, sizeof job.device, "%s", device_class);
            snprintf(job.harness, sizeof job.harness, "%s", VERDICT_HARNESS);
            char *key = s->items[s->n + n].key;
            job_key(&job, key);
            buffer_init(&bodies[n], QUEUE_MAX_BODY);
            failed |= job_encode(&job, &bodies[n], err);
            jobs[n] = (QueueNew){device_class, key, bodies[n].data, bodies[n].len, 0};
        }
        failed = failed || queue_enqueue(s->queue, jobs, (size_t)n, states, err);
        for (int i = 0; i < n; i++) buffer_release(&bodies[i]);
        if (failed) return -1;
        s->n += n;
    }
    return 0;
}

/* ---- the evaluator ---- */

static int start_evald(Sustained *s, Error *err)
{
    char program[4096], compilers[16];
    const char *argv[] = {program,   "--device",    s->b->device,  "--consumer", "bench",
                          "--redis", s->server.url, "--compilers", compilers,    NULL};
    snprintf(program, sizeof program, "%s/quern-evald", s->b->bin);
    snprintf(compilers, sizeof compilers, "%d", (int)s->b->compilers);
    int log = open(s->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (log < 0) return error_errno(err, "cannot create %s", s->log);
    pid_t parent = getpid();
    s->evald = fork();
    if (s->evald == 0) {
        server_child_setup(parent);
        setenv("QUERN_LOG", "debug", 1); /* prints the time of each step */
        if (dup2(log, 2) < 0) _exit(127);
        execv(program, (char *const *)argv);
        _exit(127);
    }
    close(log);
    return s->evald < 0 ? error_errno(err, "cannot fork for quern-evald") : 0;
}

static void stop_evald(Sustained *s)
{
    if (s->evald <= 0) return;
    kill(s->evald, SIGTERM);
    for (double end = clock_seconds() + 15; waitpid(s->evald, NULL, WNOHANG) == 0;
         clock_sleep(0.02))
        if (clock_seconds() > end) {
            kill(-s->evald, SIGKILL);
            while (waitpid(s->evald, NULL, 0) < 0 && errno == EINTR) continue;
            break;
        }
    s->evald = 0;
}

static int take_result(Sustained *s, Item *item, const QueueResult *result, Error *err)
{
    msgpack_zone zone;
    View v;
    const char *text = "";
    size_t n = 0;
    if (result->state != QUEUE_DONE && result->state != QUEUE_DEAD) return 0;
    if (!msgpack_zone_init(&zone, 4096)) return error_set(err, ERROR_MEMORY, "no memory");
    int failed = view_decode(result->data, result->len, "a verdict", &zone, &v, err) ||
                 view_text(&v, "outcome", &text, &n, err);
    if (!failed) {
        snprintf(item->outcome, sizeof item->outcome, "%.*s", (int)n, text);
        item->done = 1;
        item->at = s->heard = clock_seconds() - s->start;
        s->done++;
        gpubench_raw(s->b, "sustained", item->outcome, item->at, "s");
    }
    msgpack_zone_destroy(&zone);
    return failed ? -1 : 0;
}

static int poll_results(Sustained *s, Error *err)
{
    const char **keys = memory_array((size_t)s->n, sizeof *keys);
    QueueResult *results = memory_array((size_t)s->n, sizeof *results);
    Item **items = memory_array((size_t)s->n, sizeof(Item *));
    size_t n = 0;
    for (int i = 0; i < s->n; i++)
        if (!s->items[i].done) {
            items[n] = &s->items[i];
            keys[n++] = s->items[i].key;
        }
    int failed = queue_poll(s->queue, keys, n, results, err);
    for (size_t i = 0; i < n && !failed; i++) failed = take_result(s, items[i], &results[i], err);
    queue_results_release(results, n);
    free(keys);
    free(results);
    free(items);
    return failed;
}

static int wait_for_all(Sustained *s, Error *err)
{
    Meter meter;
    meter_open(&meter, s->uuid);
    double next_poll = 0;
    while (s->done < s->n && !gpubench_over(s->b)) {
        clock_sleep(0.1);
        meter_read(&meter, s);
        double now = clock_seconds() - s->start;
        if (now < next_poll) continue;
        next_poll = now + 0.5;
        if (poll_results(s, err)) return -1;
        int status;
        if (waitpid(s->evald, &status, WNOHANG) == s->evald) {
            s->evald = 0;
            return error_set(err, ERROR_CHILD, "quern-evald ended; its messages are in %s", s->log);
        }
        if (now - s->heard > PATIENCE_S)
            return error_set(err, ERROR_INVALID,
                             "nothing was judged for %d s; the evaluator's messages are in %s",
                             PATIENCE_S, s->log);
    }
    return poll_results(s, err);
}

/* ---- results ---- */

/* Sum the seconds that the evaluator's log reports for a step. Returns -1 when it reports none. */
static double logged_seconds(const char *text, const char *step)
{
    char lead[40];
    double sum = 0;
    int found = 0;
    size_t n = (size_t)snprintf(lead, sizeof lead, " %s ", step);
    for (const char *p = text; (p = strstr(p, lead)); p += n) {
        char *end;
        double ms = strtod(p + n, &end);
        if (strncmp(end, " ms", 3)) continue;
        sum += ms / 1e3;
        found = 1;
    }
    return found ? sum : -1;
}

static void print_busy(Sustained *s, double wall)
{
    Buffer text;
    Error err;
    buffer_init(&text, LOG_MAX);
    if (file_read(s->log, LOG_MAX, &text, &err)) {
        log_warn("sustained: the device's share is not known: %s", err.text);
    } else {
        double checks = logged_seconds(text.data, "checks"),
               timing = logged_seconds(text.data, "timing");
        double compile = logged_seconds(text.data, "load");
        if (checks >= 0 && timing >= 0) {
            gpubench_row(s->b, "sustained",
                         "the device's share: checks and timing, of the wall time",
                         100 * (checks + timing) / wall, "%", ">70");
            gpubench_row(s->b, "sustained", "of it timing", 100 * timing / wall, "%", "");
            gpubench_row(s->b, "sustained", "compiling and loading on the device's path",
                         100 * compile / wall, "%", "");
        }
    }
    if (s->gpu_samples)
        gpubench_row(s->b, "sustained", "kernels running, by NVML at 10 Hz",
                     100 * s->gpu_sum / (double)s->gpu_samples, "%", ">70");
    buffer_release(&text);
}

static int compare_times(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    if (x->done != y->done) return y->done - x->done;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void print_rates(Sustained *s, double wall)
{
    static const char *const names[] = {
#define X(id, name, text) name,
        OUTCOMES(X)
#undef X
    };
    qsort(s->items, (size_t)s->n, sizeof *s->items, compare_times);
    int tenth = s->done / 10;
    double settled = tenth > 0 ? s->items[tenth - 1].at : 0;
    gpubench_row(s->b, "sustained", "distinct candidates judged", s->done, "", ">2000");
    gpubench_row(s->b, "sustained", "candidates an hour", 3600.0 * s->done / wall, "an hour",
                 ">12000");
    if (s->done > tenth && wall > settled)
        gpubench_row(s->b, "sustained", "the same after the first tenth (every task prepared)",
                     3600.0 * (s->done - tenth) / (wall - settled), "an hour", "");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char what[64];
        int n = 0;
        for (int i = 0; i < s->n; i++)
            n += s->items[i].done && !strcmp(s->items[i].outcome, names[k]);
        snprintf(what, sizeof what, "outcome %s", names[k]);
        if (n) gpubench_row(s->b, "sustained", what, n, "", "");
    }
}

/* Find the device's class, under which its jobs are queued, and its uuid. */
static int ask_device(Sustained *s, char *class, size_t size, Error *err)
{
    Evaluator *e;
    if (evaluator_open(&(EvaluatorOptions){.device = s->b->device, .seed = 1}, &e, err)) return -1;
    snprintf(class, size, "%s", evaluator_device(e)->device_class);
    snprintf(s->uuid, sizeof s->uuid, "%s", evaluator_device(e)->uuid);
    evaluator_close(e);
    return 0;
}

static int run(Sustained *s, Error *err)
{
    char class[64];
    TaskSet tasks;
    if (ask_device(s, class, sizeof class, err) || taskset_load(NULL, s->b->sets, &tasks, err))
        return -1;
    int failed = gather(s, &tasks, (int)s->b->sustained, err) ||
                 server_prepare(&s->server, s->dir, err) || server_start(&s->server, err) ||
                 queue_open(s->server.url, NULL, VERDICT_HARNESS, &s->queue, err) ||
                 enqueue(s, &tasks, class, err);
    taskset_release(&tasks);
    if (failed) return -1;
    /* The time limit starts after the generation of candidates. */
    if (s->b->until > 0) s->b->until = clock_seconds() + s->b->limit_s;
    s->start = clock_seconds();
    failed = start_evald(s, err) || wait_for_all(s, err);
    double wall = clock_seconds() - s->start;
    stop_evald(s);
    if (s->done) {
        if (s->done == s->n) wall = s->heard; /* without the evaluator's end */
        print_rates(s, wall);
        print_busy(s, wall);
    } else if (!failed) {
        return error_set(err, ERROR_INVALID, "nothing was judged");
    }
    return failed ? -1 : 0;
}

int gpubench_sustained(GpuBench *b, Error *err)
{
    Sustained *s = memory_alloc(sizeof *s);
    s->b = b;
    gpubench_begin(b, "Sustained: distinct candidates of all tasks and outcomes through the queue, "
                      "one evaluator");
    snprintf(s->log, sizeof s->log, "%s/evald.log", b->work);
    int rc = gpubench_folder(b, "queue", s->dir, sizeof s->dir, err) ? -1 : run(s, err);
    stop_evald(s);
    queue_close(s->queue);
    if (s->server.dir[0]) server_release(&s->server);
    gpubench_list_release(&s->list);
    free(s->items);
    free(s);
    return rc;
}
