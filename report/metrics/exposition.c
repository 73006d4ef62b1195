/* One function a group of metrics. All samples of a metric follow its HELP and TYPE lines. */
#include "report/metrics/exposition.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

void exposition_write(const WatchedRun *runs, int n, int shared, const Prices *prices, Buffer *out)
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
