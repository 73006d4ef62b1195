/* Puts together where a run stands. A queue that does not answer at once is left out. */
#include "report/run/run_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifacts/artifact.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/words.h"
#include "eval/judge/verdict/verdict.h"
#include "queue/connection.h"

const char *const run_state_names[] = {"going on", "finished", "stopped", "failed"};
const char *const run_stage_names[STAGES] = {"collect", "sft", "selfsup", "crl", "report"};

enum { WORKER_IDLE_S = 60, MAX_SICK = 256 };

/* ---- rules and stages ---- */

static StageId stage_of(const char *rule)
{
    for (int s = 0; s < STAGE_REPORT; s++) {
        size_t n = strlen(run_stage_names[s]);
        if (!strncmp(rule, run_stage_names[s], n) && rule[n] == '-') return (StageId)s;
    }
    return STAGE_REPORT;
}

/* The seconds during which a rule of the stage ran; STAGES: of any stage. Rules are in order of their
 * starts. */
static double seconds_of(const RunStatus *s, StageId stage)
{
    double sum = 0, until = 0;
    for (int i = 0; i < s->n_rules; i++) {
        const RunRule *r = &s->rules[i];
        if (stage != STAGES && stage_of(r->name) != stage) continue;
        double end = r->state != RULE_RUNNING ? r->start + r->seconds
                     : s->state == RUN_GOING  ? s->now
                                              : r->start;
        double from = r->start > until ? r->start : until;
        if (end > from) sum += end - from;
        if (end > until) until = end;
    }
    return sum;
}

static const RunRule *rule_of(const RunStatus *s, const char *name)
{
    for (int i = 0; i < s->n_rules; i++)
        if (!strcmp(s->rules[i].name, name)) return &s->rules[i];
    return NULL;
}

/* A run is finished when the report was made after every other rule. */
static RunState state_of(const RunStatus *s)
{
    const RunRule *report = rule_of(s, "report");
    int failed = 0, last = report && report->state == RULE_DONE;
    if (run_folder_is_live(&s->folder)) return RUN_GOING;
    for (int i = 0; i < s->n_rules; i++) {
        failed |= s->rules[i].state == RULE_FAILED;
        if (last && s->rules[i].start > report->start + report->seconds + 1) last = 0;
    }
    return last ? RUN_FINISHED : failed ? RUN_FAILED : RUN_STOPPED;
}

static int is_done(const RunStatus *s, StageId stage)
{
    const RunFolder *f = &s->folder;
    const StageStatus *k = &s->stage[stage];
    switch (stage) {
    case STAGE_COLLECT: return run_folder_holds(f, "collect/verdicts.qa");
    case STAGE_SFT:
        return run_folder_holds(f, run_folder_has(f, "trained") ? "sft/model/manifest.qa"
                                                                : "sft/dataset.qa");
    case STAGE_SELFSUP:
    case STAGE_CRL: return k->rounds == k->planned;
    default: return s->state == RUN_FINISHED;
    }
}

static void fill_stages(RunStatus *s)
{
    for (int i = 0; i < s->n_rules; i++) {
        StageStatus *k = &s->stage[stage_of(s->rules[i].name)];
        k->rules++;
        k->failed += s->rules[i].state == RULE_FAILED;
        k->running += s->rules[i].state == RULE_RUNNING && s->state == RUN_GOING;
    }
    for (int i = 0; i < STAGES; i++) {
        StageStatus *k = &s->stage[i];
        if (i == STAGE_SELFSUP || i == STAGE_CRL) {
            k->planned = run_folder_rounds(&s->folder, run_stage_names[i]);
            k->rounds = run_folder_rounds_done(&s->folder, run_stage_names[i]);
        }
        k->done = is_done(s, (StageId)i);
        k->seconds = seconds_of(s, (StageId)i);
    }
}

/* ---- the best of each task ---- */

static TaskStatus *task_of(RunStatus *s, const char *name, size_t n)
{
    for (int i = 0; i < s->n_tasks; i++)
        if (word_is(name, n, s->task[i].task)) return &s->task[i];
    if (s->n_tasks == STATUS_MAX_TASKS || n >= sizeof s->task->task) return NULL;
    s->task = memory_grow(s->task, (size_t)s->n_tasks + 1, sizeof *s->task);
    TaskStatus *t = &s->task[s->n_tasks++];
    *t = (TaskStatus){0};
    memcpy(t->task, name, n);
    return t;
}

static int note_best(TaskStatus *t, const View *v, const char *score_key, Error *err)
{
    const char *stage;
    size_t len;
    double score;
    int64_t round;
    if (view_text(v, "stage", &stage, &len, err) || view_float(v, score_key, &score, err) ||
        view_int(v, "round", &round, err))
        return -1;
    if (len == 7 && !memcmp(stage, "collect", 7) && score > t->teacher) t->teacher = score;
    if (score <= t->best) return 0;
    t->best = score;
    if (round)
        snprintf(t->found, sizeof t->found, "%.*s %lld", (int)len, stage, (long long)round);
    else
        snprintf(t->found, sizeof t->found, "%.*s", (int)len, stage);
    return 0;
}

static int read_kernel(void *ctx, const View *v, Error *err)
{
    RunStatus *s = ctx;
    const char *task;
    size_t n;
    TaskStatus *t, unused = {0};
    if (view_text(v, "task", &task, &n, err)) return -1;
    t = task_of(s, task, n);
    if (t) t->kernels++;
    return note_best(t ? t : &unused, v, "score", err);
}

/* Reads the summary in a pool's header. *found is 0 when there is none. */
static int read_summary(RunStatus *s, const char *path, int *found, Error *err)
{
    ArtifactReader *a;
    View all, v;
    if (artifact_peek(path, "pool", &a, err)) return -1;
    int rc = 0;
    *found = view_has(artifact_header(a), "summary");
    if (*found) rc = view_map(artifact_header(a), "summary", &all, err);
    for (uint32_t i = 0; !rc && *found && i < all.map->via.map.size; i++) {
        const msgpack_object_str *name = &all.map->via.map.ptr[i].key.via.str;
        int64_t kernels;
        TaskStatus *t = task_of(s, name->ptr, name->size);
        if (!t) continue;
        rc = -(view_map(&all, t->task, &v, err) || view_int(&v, "kernels", &kernels, err) ||
               view_float(&v, "teacher", &t->teacher, err) || note_best(t, &v, "best", err));
        if (!rc) t->kernels = (int)kernels;
    }
    artifact_close(a);
    return rc;
}

static int read_pool(RunStatus *s, Error *err)
{
    char *path = run_folder_last_pool(&s->folder);
    int found; /* a pool without a summary is read whole */
    if (!path) return 0;
    snprintf(s->pool, sizeof s->pool, "%s", path + strlen(s->folder.dir) + 1);
    int rc = -(read_summary(s, path, &found, err) ||
               (!found && artifact_each(path, "pool", read_kernel, s, err)));
    free(path);
    if (s->n_tasks) qsort(s->task, (size_t)s->n_tasks, sizeof *s->task, sort_by_name);
    return rc;
}

/* ---- the queue ---- */

static void read_workers(RunStatus *s, Queue *q)
{
    static QueueWorker found[STATUS_MAX_WORKERS];
    for (int c = 0; c < s->n_classes; c++) {
        int n = queue_workers(q, s->classes[c].device_class, WORKER_IDLE_S, found,
                              STATUS_MAX_WORKERS, NULL);
        if (n < 0) return;
        s->workers = memory_grow(s->workers, (size_t)(s->n_workers + n) + 1, sizeof *s->workers);
        for (int i = 0; i < n; i++) {
            s->workers[s->n_workers].worker = found[i];
            s->workers[s->n_workers++].device_class = c;
        }
    }
}

int run_status_queue(RunStatus *s, const char *url)
{
    Queue *q;
    /* One try: queue_open waits for a server. */
    if (!connection_answers(url, NULL) || queue_open(url, NULL, VERDICT_HARNESS, &q, NULL))
        return 0;
    queue_set_patience(q, 1);
    s->sick = memory_array(MAX_SICK, sizeof *s->sick);
    int classes = queue_status(q, s->classes, STATUS_MAX_CLASSES, NULL),
        sick = queue_quarantined(q, s->sick, MAX_SICK, NULL);
    s->has_queue = classes >= 0 && sick >= 0;
    s->n_classes = s->has_queue ? classes : 0;
    s->n_sick = s->has_queue ? sick : 0;
    if (s->has_queue) read_workers(s, q);
    queue_close(q);
    return s->has_queue;
}

static void read_queue(RunStatus *s)
{
    const char *outside = getenv("QUERN_REDIS");
    char *socket_path = run_folder_path(&s->folder, "queue/redis.sock");
    char *url =
        outside && *outside ? memory_strdup(outside) : memory_printf("unix:%s", socket_path);
    if (s->state == RUN_GOING) run_status_queue(s, url);
    free(url);
    free(socket_path);
}

int run_status_read(const char *run, const char *runs, double now, RunStatus *out, Error *err)
{
    *out = (RunStatus){.now = now};
    if (run_folder_open(run, runs, &out->folder, err) ||
        run_logs_read(out->folder.dir, &out->rules, &out->n_rules, err))
        return -1;
    out->state = state_of(out);
    if (out->n_rules) out->began = out->rules[0].start;
    out->seconds = seconds_of(out, STAGES);
    fill_stages(out);
    read_queue(out);
    return read_pool(out, err);
}

void run_status_release(RunStatus *s)
{
    run_folder_release(&s->folder);
    free(s->rules);
    free(s->task);
    free(s->workers);
    free(s->sick);
}
