/* A run's status for people and as JSON. A line has at most 100 columns. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/run/run_status.h"

static const char *const bold[2] = {"", "\033[1m"}, *const red[2] = {"", "\033[31m"},
                         *const green[2] = {"", "\033[32m"}, *const faint[2] = {"", "\033[2m"},
                         *const plain[2] = {"", "\033[0m"};

const char *run_status_duration(double seconds, char out[32])
{
    long s = lround(seconds < 0 ? 0 : seconds);
    if (s < 60)
        snprintf(out, 32, "%ld s", s);
    else if (s < 3600)
        snprintf(out, 32, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(out, 32, "%ld h %02ld min", s / 3600, s / 60 % 60);
    return out;
}

static void put_head(const RunStatus *s, int c, Buffer *b)
{
    char elapsed[32];
    const RunFolder *f = &s->folder;
    const char *policy = run_folder_setting(f, "POLICY");
    buffer_printf(b, "%srun %s%s: %s%s%s", bold[c], f->name, plain[c],
                  s->state == RUN_FAILED    ? red[c]
                  : s->state == RUN_STOPPED ? ""
                                            : green[c],
                  run_state_names[s->state], plain[c]);
    if (s->n_rules) buffer_printf(b, ", %s of work", run_status_duration(s->seconds, elapsed));
    buffer_printf(b, "\nprofile %s, model %s%s, judged on %s\n", run_folder_setting(f, "PROFILE"),
                  policy, run_folder_has(f, "trained") ? "" : " (its weights are not trained)",
                  run_folder_setting(f, "DEVICE"));
}

static void put_progress(const RunRule *r, Buffer *b)
{
    char left[32];
    buffer_printf(b, "%s %ld of %ld %s", r->what, r->done, r->total, r->unit);
    if (r->rate > 0)
        buffer_printf(b, ", %.1f/s, %s left", r->rate, run_status_duration(r->left, left));
}

static void put_stages(const RunStatus *s, int c, Buffer *b)
{
    char elapsed[32];
    buffer_printf(b, "\n%s%-9s %-12s %-12s%s\n", faint[c], "stage", "rounds", "time", plain[c]);
    for (int i = 0; i < STAGES; i++) {
        const StageStatus *k = &s->stage[i];
        char rounds[32] = "";
        if (k->planned) snprintf(rounds, sizeof rounds, "%d of %d", k->rounds, k->planned);
        buffer_printf(b, "%-9s %-12s %-12s %s%s%s\n", run_stage_names[i], rounds,
                      k->rules ? run_status_duration(k->seconds, elapsed) : "",
                      k->failed ? red[c]
                      : k->done ? green[c]
                                : "",
                      k->failed    ? "failed"
                      : k->done    ? "done"
                      : !k->rules  ? "waits"
                      : k->running ? "under way"
                                   : "begun",
                      plain[c]);
    }
}

static void put_rules(const RunStatus *s, int c, Buffer *b)
{
    char time[32];
    int n = 0, width = 22;
    for (int i = 0; i < s->n_rules; i++)
        if (s->rules[i].state == RULE_RUNNING && (int)strlen(s->rules[i].name) > width)
            width = (int)strlen(s->rules[i].name);
    for (int i = 0; i < s->n_rules; i++) {
        const RunRule *r = &s->rules[i];
        if (r->state != RULE_RUNNING || s->state != RUN_GOING) continue;
        buffer_printf(b, "%s%-*s ", n++ ? "" : "\n", width, r->name);
        if (r->what[0])
            put_progress(r, b);
        else
            buffer_printf(b, "for %s", run_status_duration(s->now - r->start, time));
        buffer_puts(b, "\n");
    }
    for (int i = 0; i < s->n_rules; i++) {
        const RunRule *r = &s->rules[i];
        if (r->state != RULE_FAILED) continue;
        buffer_printf(b, "%s%s failed with exit %d:%s %.150s\n", red[c], r->name, r->exit_status,
                      plain[c], r->said);
    }
}

static void put_queue(const RunStatus *s, int c, Buffer *b)
{
    if (s->state != RUN_GOING) return;
    if (!s->has_queue) {
        buffer_puts(b, "\nThe queue does not answer.\n");
        return;
    }
    buffer_puts(b, s->n_classes ? "\n" : "");
    for (int i = 0; i < s->n_classes; i++) {
        const QueueStatus *q = &s->classes[i];
        int workers = 0, busy = 0;
        for (int k = 0; k < s->n_workers; k++) {
            if (s->workers[k].device_class != i) continue;
            workers++;
            busy += s->workers[k].worker.leased > 0;
        }
        buffer_printf(b, "%-14s %d evaluator%s, %d at work; %ld wait, %ld done", q->device_class,
                      workers, workers == 1 ? "" : "s", busy, q->waiting, q->done);
        if (q->dead) buffer_printf(b, ", %s%ld dead%s", red[c], q->dead, plain[c]);
        buffer_puts(b, "\n");
    }
    for (int i = 0; i < s->n_sick; i++)
        buffer_printf(b, "%sout of service:%s %s: %.120s\n", red[c], plain[c], s->sick[i].where,
                      s->sick[i].reason);
}

static void put_tasks(const RunStatus *s, int c, Buffer *b)
{
    if (!s->n_tasks) return;
    buffer_printf(b, "\n%s%-26s %9s %9s %9s  found in (%s)%s\n", faint[c], "best so far", "score",
                  "teacher", "kernels", s->pool, plain[c]);
    for (int i = 0; i < s->n_tasks; i++) {
        const TaskStatus *t = &s->task[i];
        char teacher[16] = "-";
        int beaten = t->best > 1.01 * (t->teacher > 1 ? t->teacher : 1);
        if (t->teacher > 0) snprintf(teacher, sizeof teacher, "%.2fx", t->teacher);
        buffer_printf(b, "%-26s %s%8.2fx%s %9s %9ld  %s\n", t->task, beaten ? green[c] : "",
                      t->best, plain[c], teacher, t->kernels, t->found);
    }
}

int run_status_colours(void)
{
    const char *no = getenv("NO_COLOR");
    return !no || !*no;
}

void run_status_text(const RunStatus *s, int colours, Buffer *out)
{
    int c = colours != 0;
    put_head(s, c, out);
    put_stages(s, c, out);
    put_rules(s, c, out);
    put_queue(s, c, out);
    put_tasks(s, c, out);
}

/* ---- JSON ---- */

static json_t *stages_json(const RunStatus *s)
{
    json_t *list = json_array();
    for (int i = 0; i < STAGES; i++) {
        const StageStatus *k = &s->stage[i];
        json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:b, s:i, s:f}", "stage",
                                              run_stage_names[i], "rounds", k->rounds, "planned",
                                              k->planned, "done", k->done, "failed", k->failed,
                                              "seconds", k->seconds));
    }
    return list;
}

static json_t *rules_json(const RunStatus *s)
{
    static const char *const states[] = {"running", "done", "stopped", "failed"};
    json_t *list = json_array();
    for (int i = 0; i < s->n_rules; i++) {
        const RunRule *r = &s->rules[i];
        json_t *o = json_pack("{s:s, s:s, s:f, s:f}", "rule", r->name, "state", states[r->state],
                              "start", r->start, "seconds", r->seconds);
        if (r->what[0])
            json_object_update_new(o, json_pack("{s:s, s:I, s:I, s:s, s:f, s:f}", "what", r->what,
                                                "done", (json_int_t)r->done, "total",
                                                (json_int_t)r->total, "unit", r->unit, "rate",
                                                r->rate, "left_s", r->left));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *queue_json(const RunStatus *s)
{
    json_t *list = json_array();
    for (int i = 0; i < s->n_classes; i++) {
        const QueueStatus *q = &s->classes[i];
        int workers = 0;
        for (int k = 0; k < s->n_workers; k++) workers += s->workers[k].device_class == i;
        json_array_append_new(list,
                              json_pack("{s:s, s:i, s:I, s:I, s:I, s:I}", "class", q->device_class,
                                        "evaluators", workers, "waiting", (json_int_t)q->waiting,
                                        "leased", (json_int_t)q->leased, "done",
                                        (json_int_t)q->done, "dead", (json_int_t)q->dead));
    }
    return list;
}

static json_t *tasks_json(const RunStatus *s)
{
    json_t *list = json_array();
    for (int i = 0; i < s->n_tasks; i++) {
        const TaskStatus *t = &s->task[i];
        json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:I, s:s}", "task", t->task, "best",
                                              t->best, "teacher", t->teacher, "kernels",
                                              (json_int_t)t->kernels, "found", t->found));
    }
    return list;
}

int run_status_json(const RunStatus *s, Buffer *out, Error *err)
{
    json_t *o =
        json_pack("{s:s, s:s, s:f, s:o, s:o, s:o, s:o}", "run", s->folder.name, "state",
                  run_state_names[s->state], "seconds", s->seconds, "stages", stages_json(s),
                  "rules", rules_json(s), "queue", queue_json(s), "tasks", tasks_json(s));
    char *text = o ? json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(o);
    if (!text) return error_set(err, ERROR_INVALID, "the status of %s is not text", s->folder.name);
    buffer_puts(out, text);
    buffer_puts(out, "\n");
    free(text);
    return 0;
}
