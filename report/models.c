/* One row for each teacher and endpoint that answered. Samples are read field by field: a whole set would
 * hold every answer's text. A round has one policy, so that its first sample tells whose it is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/sort.h"
#include "report/report.h"

enum { MAX_MODELS = 256, MAX_LEDGER = 256 << 20 };

static ReportModel *model_of(Report *r, const char *name)
{
    for (int i = 0; i < r->n_models; i++)
        if (!strcmp(r->models[i].name, name)) return &r->models[i];
    if (r->n_models == MAX_MODELS) return NULL;
    r->models = memory_grow(r->models, (size_t)r->n_models + 1, sizeof *r->models);
    ReportModel *m = &r->models[r->n_models++];
    *m = (ReportModel){.name = memory_strdup(name),
                       .best = memory_array((size_t)r->tasks.n, sizeof *m->best)};
    return m;
}

/* A model here has the rows of the stages. */
static int is_listed(const char *producer)
{
    return strcmp(producer, "native") != 0;
}

/* ---- samples and verdicts ---- */

typedef struct {
    char *id;
    int model;
} Answer;

typedef struct {
    Answer *items;
    long n;
} Answers;

static void count_tokens(const View *v, ReportModel *m)
{
    View usage;
    int64_t prompt = 0, answer = 0;
    if (!view_has(v, "usage") || view_map(v, "usage", &usage, NULL)) return;
    if (view_has(&usage, "prompt_tokens")) view_int(&usage, "prompt_tokens", &prompt, NULL);
    if (view_has(&usage, "completion_tokens")) view_int(&usage, "completion_tokens", &answer, NULL);
    m->prompt_tokens += (double)prompt;
    m->answer_tokens += (double)answer;
}

/* Counts one sample's tokens, and keeps its id if it was answered. */
static int read_answer(Report *r, const View *v, Answers *out, int *listed, Error *err)
{
    char *producer = NULL, *finish = NULL, *id = NULL;
    const ViewText texts[] = {{"producer", &producer}, {"finish", &finish}, {"id", &id}};
    int rc = view_texts(v, texts, 3, err);
    *listed = !rc && is_listed(producer);
    ReportModel *m = *listed ? model_of(r, producer) : NULL;
    if (m) count_tokens(v, m);
    if (m && strcmp(finish, "error") != 0) {
        if (!(out->n & (out->n - 1)))
            out->items =
                memory_grow(out->items, out->n ? (size_t)out->n * 2 : 1, sizeof *out->items);
        out->items[out->n++] = (Answer){id, (int)(m - r->models)};
        id = NULL;
    }
    free(producer);
    free(finish);
    free(id);
    return rc;
}

static int read_answers(Report *r, const char *path, int whole, Answers *out, Error *err)
{
    ArtifactReader *a;
    View v;
    int more = 0, rc = 0, listed = 0;
    *out = (Answers){0};
    if (artifact_open(path, "samples", &a, err)) return -1;
    while (!rc && (more = artifact_next(a, &v, err)) == 1) {
        rc = read_answer(r, &v, out, &listed, err);
        if (!whole && !listed) break;
    }
    artifact_close(a);
    if (out->n) qsort(out->items, (size_t)out->n, sizeof *out->items, sort_by_text);
    return -(rc || more < 0); /* the caller frees them in any case */
}

/* Counts a verdict of a listed answer to a train task. */
static int read_verdict(Report *r, const View *v, const Answers *answers, Error *err)
{
    char *task = view_strdup(v, "task", err), *word = view_strdup(v, "outcome", err);
    Answer key = {view_strdup(v, "id", err), 0};
    Outcome outcome = OUTCOME_EVALUATOR_ERROR; /* an unknown one is for others to refuse */
    double score;
    int rc = task && word && key.id && !view_float(v, "score", &score, err) ? 0 : -1;
    if (!rc) outcome_from_name(word, &outcome);
    const Answer *hit = rc || !answers->n ? NULL
                                          : bsearch(&key, answers->items, (size_t)answers->n,
                                                    sizeof key, sort_by_text);
    const ReportTask *t = hit ? report_task(r, task) : NULL;
    if (t && outcome != OUTCOME_EVALUATOR_ERROR && !t->task->degenerate && !t->task->heldout) {
        ReportModel *m = &r->models[hit->model];
        int64_t at = t - r->task;
        m->attempted++;
        m->succeeded += outcome == OUTCOME_OK;
        m->best[at] = fmax(m->best[at], outcome == OUTCOME_OK ? fmax(1, score) : 1);
    }
    free(task);
    free(word);
    free(key.id);
    return rc;
}

int models_load(Report *r, const char *samples, const char *verdicts, int whole, Error *err)
{
    ArtifactReader *a;
    Answers answers;
    View v;
    int more = 0, rc = read_answers(r, samples, whole, &answers, err);
    if (!rc && answers.n) rc = notes_file(r, samples, err);
    if (!rc && answers.n && !(rc = artifact_open(verdicts, "verdicts", &a, err))) {
        while (!rc && (more = artifact_next(a, &v, err)) == 1)
            rc = read_verdict(r, &v, &answers, err);
        if (more < 0) rc = -1;
        artifact_close(a);
    }
    for (long i = 0; i < answers.n; i++) free(answers.items[i].id);
    free(answers.items);
    return rc;
}

/* ---- what they cost ---- */

/* A line of stages/policy/budget.h: seconds, model, tokens, tokens, dollars. One that is torn or is
 * another text counts nothing. */
static void read_line(Report *r, const char *line, size_t n)
{
    char text[512], name[160];
    double usd;
    if (n >= sizeof text) return;
    memcpy(text, line, n);
    text[n] = 0;
    if (sscanf(text, "%*d\t%159[^\t]\t%*d\t%*d\t%lf", name, &usd) != 2 || !isfinite(usd)) return;
    ReportModel *m = model_of(r, name);
    if (!m) return;
    m->paid++;
    m->usd += usd;
}

int models_ledger(Report *r, const char *path, Error *err)
{
    Buffer text;
    if (!path || !file_exists(path)) return 0;
    buffer_init(&text, MAX_LEDGER);
    int rc = file_read(path, MAX_LEDGER, &text, err);
    for (size_t at = 0; !rc && at < text.len;) {
        const char *p = text.data + at, *end = memchr(p, '\n', text.len - at);
        size_t n = end ? (size_t)(end - p) : text.len - at;
        if (end) read_line(r, p, n);
        at += n + 1;
    }
    buffer_release(&text);
    return rc;
}

void models_release(Report *r)
{
    for (int i = 0; i < r->n_models; i++) {
        free(r->models[i].name);
        free(r->models[i].best);
    }
    free(r->models);
}

/* ---- in the page ---- */

static void put_row(const Report *r, const ReportModel *m, Buffer *b)
{
    double sum = 0, best = 0;
    int tasks = 0, at = 0;
    for (int i = 0; i < r->tasks.n; i++) {
        if (m->best[i] <= 0) continue;
        tasks++;
        sum += m->best[i];
        if (m->best[i] > best) best = m->best[i], at = i;
    }
    buffer_puts(b, "<tr><td>");
    html_text(b, m->name);
    buffer_printf(b, "<td>%ld<td>%ld<td>", m->attempted, m->succeeded);
    if (m->attempted)
        buffer_printf(b, "%.3g%%", 100 * (double)m->succeeded / (double)m->attempted);
    else
        buffer_puts(b, "–");
    buffer_printf(b, "<td>%d<td>", tasks);
    html_factor(b, tasks ? sum / tasks : NAN);
    buffer_puts(b, "<td>");
    html_factor(b, m->succeeded ? best : NAN);
    if (m->succeeded) {
        buffer_puts(b, " <small>");
        html_text(b, r->tasks.tasks[at]->name);
        buffer_puts(b, "</small>");
    }
    if (m->prompt_tokens + m->answer_tokens > 0)
        buffer_printf(b, "<td>%.4g k<td>%.4g k", m->prompt_tokens / 1e3, m->answer_tokens / 1e3);
    else
        buffer_puts(b, "<td>–<td>–");
    if (m->usd >= 0.01)
        buffer_printf(b, "<td>$%.2f</tr>\n", m->usd);
    else if (m->usd > 0)
        buffer_puts(b, "<td>under $0.01</tr>\n");
    else
        buffer_puts(b, "<td>–</tr>\n");
}

int models_write(const Report *r, Buffer *b)
{
    int asked = 0;
    for (int i = 0; i < r->n_models; i++)
        asked |= r->models[i].paid > 0 || strcmp(r->models[i].name, "generator") != 0;
    if (!asked) return 0;
    buffer_puts(b, "<h2 id=\"models\">Teachers and endpoints</h2>\n<p>Their answers to train tasks "
                   "in the whole run. The mean is over the tasks that each was asked for, of its "
                   "best kernel as first judged, 1.0 where none is better than the baseline. "
                   "Tokens and price are of all its answers; – is not known.</p>\n<div "
                   "class=\"scroll\"><table><tr><th>who<th>samples<th>correct<th>rate<th>tasks"
                   "<th>mean<th>best<th>prompt tokens<th>answer tokens<th>price</tr>\n");
    for (int i = 0; i < r->n_models; i++) put_row(r, &r->models[i], b);
    buffer_puts(b, "</table></div>\n");
    return r->n_models;
}
