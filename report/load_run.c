/* Reads the artifacts of a run into a Report. Stages and rounds are read in the order in which they
 * were judged, the second judgement last. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/words.h"
#include "eval/judge/verdict/verdict.h"
#include "report/report.h"
#include "stages/data/pool.h"
#include "stages/data/samples.h"

const char *const report_stage_names[REPORT_STAGES] = {"collect", "sft", "selfsup", "crl"};

static void read_counters(const View *v, const char *key, Counters *out)
{
    View map;
    if (!view_has(v, key) || view_map(v, key, &map, NULL)) return;
    out->n = 0;
    for (uint32_t i = 0; i < map.map->via.map.size && out->n < DEVICE_MAX_COUNTERS; i++) {
        const msgpack_object_str *name = &map.map->via.map.ptr[i].key.via.str;
        DeviceCounter *c = &out->v[out->n];
        snprintf(c->name, sizeof c->name, "%.*s", (int)name->size, name->ptr);
        if (!view_float(&map, c->name, &c->value, NULL)) out->n++;
    }
}

ReportTask *report_task(const Report *r, const char *name)
{
    for (int i = 0; i < r->tasks.n; i++)
        if (!strcmp(r->tasks.tasks[i]->name, name)) return &r->task[i];
    return NULL;
}

/* Counts a sample, unless it was not judged. Returns 1 for a new best. */
static int tally(Tally *t, Outcome outcome, double score)
{
    if (outcome == OUTCOME_EVALUATOR_ERROR) return 0;
    if (t->score) {
        t->score = memory_grow(t->score, (size_t)t->attempted + 1, sizeof *t->score);
        t->score[t->attempted] = outcome == OUTCOME_OK ? score : -1;
    }
    t->attempted++;
    if (outcome != OUTCOME_OK) return 0;
    t->succeeded++;
    if (score <= t->best) return 0;
    t->best = score;
    return 1;
}

static void note_judged(Report *r, Outcome outcome)
{
    r->judged++;
    r->unjudged += outcome == OUTCOME_EVALUATOR_ERROR;
}

/* ---- records in doubt ---- */

static ReportDoubt *doubt_of(Report *r, const char *task, const char *digest)
{
    for (int i = 0; i < r->n_doubts; i++)
        if (!strcmp(r->doubts[i].source_digest, digest) && !strcmp(r->doubts[i].task, task))
            return &r->doubts[i];
    return NULL;
}

/* Notes what a second device said about a record. The last "yes" or "no" on a source counts;
 * "alone" does not revoke it. "" says nothing, since a kernel is no record when its score is known
 * already. */
static void note_doubt(Report *r, const View *verdict)
{
    if (!view_has(verdict, "confirmed")) return;
    int yes = view_text_is(verdict, "confirmed", "yes"),
        no = view_text_is(verdict, "confirmed", "no");
    if (!yes && !no && !view_text_is(verdict, "confirmed", "alone")) return;
    char *digest = view_strdup(verdict, "source_digest", NULL),
         *task = view_strdup(verdict, "task", NULL);
    ReportDoubt *d = digest && task ? doubt_of(r, task, digest) : NULL;
    if (digest && task && !d) {
        r->doubts = memory_grow(r->doubts, (size_t)r->n_doubts + 1, sizeof *r->doubts);
        d = &r->doubts[r->n_doubts++];
        *d = (ReportDoubt){.task = task, .state = DOUBT_ALONE};
        snprintf(d->source_digest, sizeof d->source_digest, "%s", digest);
        task = NULL;
    }
    if (d && (yes || no)) d->state = yes ? DOUBT_NONE : DOUBT_DISPUTED;
    free(task);
    free(digest);
}

static void digest_source(const char *source, char hex[DIGEST_HEX])
{
    Digest digest;
    digest_of(source, strlen(source), &digest);
    digest_hex(&digest, hex);
}

static void doubt_best(Report *r, ReportTask *t)
{
    static const char *const words[] = {
        [DOUBT_ALONE] = "unconfirmed", [DOUBT_DISPUTED] = "disputed", [DOUBT_NONE] = ""};
    char hex[DIGEST_HEX];
    t->doubt = "";
    if (!t->source) return;
    digest_source(t->source, hex);
    const ReportDoubt *d = doubt_of(r, t->task->name, hex);
    if (d) t->doubt = words[d->state];
}

/* ---- the best kernel of a task ---- */

static void note_clock(Report *r, ReportTask *t, int predicted)
{
    t->predicted = predicted;
    r->predicted |= predicted;
    r->measured |= !predicted;
}

static void take_numbers(Report *r, ReportTask *t, const Sample *s)
{
    Verdict v;
    t->score = s->score;
    if (verdict_read(&s->verdict, &v, NULL)) return; /* samples_load has read it before */
    t->time_us = v.time_us;
    t->baseline_us = v.baseline_us;
    note_clock(r, t, v.predicted);
    if (!rivals_over(&v, "compile", &t->over_compile)) t->over_compile = (Interval){0};
    rivals_text(&v, t->rivals);
    t->n_rows = v.n_rows;
    memcpy(t->rows, v.rows, sizeof t->rows);
    if (v.error_factor > r->error_factor) r->error_factor = v.error_factor;
    t->best.n = t->n_lines = 0;
    if (v.timing) {
        t->n_lines = v.timing->n_lines;
        memcpy(t->lines, v.timing->lines, sizeof t->lines);
        counters_of(v.timing->counters, v.timing->n_counters, &t->best);
        if (v.timing->n_baseline_counters)
            counters_of(v.timing->baseline_counters, v.timing->n_baseline_counters, &t->baseline);
    }
    verdict_release(&v);
}

static void take_best(Report *r, ReportTask *t, const Sample *s, char *found)
{
    free(t->source);
    free(t->found);
    t->source = memory_strdup(s->source);
    t->found = found;
    take_numbers(r, t, s);
    t->found_score = t->score;
}

/* Notes what answered, if it was an endpoint, and whether an adapter was trained for it: the model
 * that answers is then an input beside the prompts. */
static int note_policy(Report *r, const char *samples, Error *err)
{
    ArtifactReader *a;
    View config;
    size_t inputs;
    if (artifact_open(samples, "samples", &a, err)) return -1;
    const View *header = artifact_header(a);
    if (!view_map(header, "config", &config, NULL) && view_has(&config, "policy") &&
        !view_count(header, "inputs", &inputs, NULL)) {
        free(r->policy);
        r->policy = view_strdup(&config, "policy", NULL);
        r->untrained = inputs < 2;
    }
    artifact_close(a);
    return 0;
}

static int load_stage(Report *r, ReportStage stage, const char *samples, const char *verdicts,
                      Error *err)
{
    SampleSet set;
    if ((stage == REPORT_CRL && note_policy(r, samples, err)) || notes_file(r, samples, err) ||
        notes_file(r, verdicts, err) || models_load(r, samples, verdicts, 1, err) ||
        samples_load(samples, verdicts, &set, err))
        return -1;
    for (long i = 0; i < set.n; i++) {
        const Sample *s = &set.items[i];
        ReportTask *t = report_task(r, s->task);
        if (!t) continue; /* the report has no such task */
        if (!t->task->degenerate && !t->task->heldout) r->outcomes[stage][s->outcome]++;
        if (s->unanswered) {
            notes_unanswered(r);
            continue;
        }
        note_judged(r, s->outcome);
        note_doubt(r, &s->verdict);
        if (tally(&t->stage[stage], s->outcome, s->score))
            memcpy(t->stage[stage].best_digest, s->source_digest, DIGEST_HEX);
        tally(&t->run, s->outcome, s->score);
        if (s->outcome != OUTCOME_OK) notes_failure(r, s->outcome, &s->verdict);
        if (s->outcome == OUTCOME_OK && (!t->source || s->score > t->score))
            take_best(r, t, s,
                      stage == REPORT_COLLECT
                          ? memory_strdup("collect")
                          : memory_printf("the report's %s samples", report_stage_names[stage]));
    }
    samples_release(&set);
    return 0;
}

/* Returns the name of a round: "crl 3" for "runs/x/crl/3/verdicts.qa". */
static char *round_name(const char *path)
{
    char copy[512], *part[3] = {NULL, NULL, NULL}, *save = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *p = strtok_r(copy, "/", &save); p; p = strtok_r(NULL, "/", &save)) {
        part[0] = part[1];
        part[1] = part[2];
        part[2] = p;
    }
    return part[0] ? memory_printf("%s %s", part[0], part[1]) : memory_strdup(path);
}

/* ---- rounds: verdicts, and the ids of samples without an answer ---- */

typedef struct {
    char **id;
    long n;
} Unanswered;

/* Reads the ids of unanswered samples from the samples beside the verdicts, if they still exist: a
 * verdict does not tell. */
static int load_unanswered(Report *r, const char *verdicts, Unanswered *out, Error *err)
{
    static const char name[] = "verdicts.qa";
    size_t n = strlen(verdicts), end = sizeof name - 1;
    *out = (Unanswered){0};
    if (n < end || strcmp(verdicts + n - end, name)) return 0;
    char *path = memory_printf("%.*ssamples.qa", (int)(n - end), verdicts);
    SampleSet set = {0};
    int rc = 0;
    if (file_exists(path))
        rc = -(models_load(r, path, verdicts, 0, err) || samples_load(path, NULL, &set, err));
    for (long i = 0; i < set.n; i++) {
        if (!set.items[i].unanswered) continue;
        out->id = memory_grow(out->id, (size_t)out->n + 1, sizeof *out->id);
        out->id[out->n++] = memory_strdup(set.items[i].id);
    }
    samples_release(&set);
    if (!rc && out->n) rc = notes_file(r, path, err);
    free(path);
    return rc;
}

static int is_unanswered(const Unanswered *u, const View *v)
{
    const char *id;
    size_t n;
    if (!u->n || view_text(v, "id", &id, &n, NULL)) return 0;
    for (long i = 0; i < u->n; i++)
        if (word_is(id, n, u->id[i])) return 1;
    return 0;
}

static int load_round_verdict(Report *r, int round, const Unanswered *u, const View *v, Error *err)
{
    Verdict verdict;
    char *name = view_strdup(v, "task", err);
    int rc = -(!name || verdict_read(v, &verdict, err));
    ReportTask *t = rc ? NULL : report_task(r, name);
    if (t && is_unanswered(u, v)) {
        notes_unanswered(r);
    } else if (t) {
        note_judged(r, verdict.outcome);
        note_doubt(r, v);
        tally(&t->round[round], verdict.outcome, verdict.score);
        tally(&t->run, verdict.outcome, verdict.score);
        if (verdict.outcome != OUTCOME_OK) notes_failure(r, verdict.outcome, v);
    }
    if (!rc) verdict_release(&verdict);
    free(name);
    return rc;
}

static int load_round(Report *r, const char *path, Error *err)
{
    ArtifactReader *a;
    Unanswered u;
    View v;
    int more, rc = 0;
    if (artifact_open(path, "verdicts", &a, err)) return -1;
    notes_input(r, path, a);
    for (int i = 0; i < r->tasks.n; i++) r->task[i].round[r->n_rounds].best = 1.0;
    rc = load_unanswered(r, path, &u, err);
    while (!rc && (more = artifact_next(a, &v, err)) != 0)
        rc = more < 0 ? -1 : load_round_verdict(r, r->n_rounds, &u, &v, err);
    r->round_name[r->n_rounds++] = round_name(path);
    for (long i = 0; i < u.n; i++) free(u.id[i]);
    free(u.id);
    artifact_close(a);
    return rc;
}

static int load_rounds(Report *r, const char *list, Error *err)
{
    if (!list) return 0;
    size_t rounds = 1;
    for (const char *p = list; *p; p++) rounds += *p == ',';
    if (rounds > REPORT_MAX_ROUNDS)
        return error_set(err, ERROR_LIMIT, "expected at most %d rounds, found %zu",
                         REPORT_MAX_ROUNDS, rounds);
    r->round_name = memory_array(rounds, sizeof *r->round_name);
    for (int i = 0; i < r->tasks.n; i++)
        r->task[i].round = memory_array(rounds, sizeof *r->task[i].round);
    char *copy = memory_strdup(list), *save = NULL;
    int rc = 0;
    for (char *p = strtok_r(copy, ",", &save); p && !rc; p = strtok_r(NULL, ",", &save))
        rc = load_round(r, p, err);
    free(copy);
    return rc;
}

/* Takes the best kernel of the pool, unless the report's samples have a better one. */
static void take_pooled(ReportTask *t, const PoolItem *best)
{
    if (best->score > t->run.best) t->run.best = best->score;
    if (t->source && (best->score < t->score || !strcmp(best->source, t->source))) return;
    free(t->source);
    free(t->found);
    t->source = memory_strdup(best->source);
    t->found = lineage_origin(best);
    t->score = t->found_score = best->score;
    t->best.n = 0;
    t->time_us = t->baseline_us = NAN;
}

/* The pool has the best kernel of all rounds. Its times and counters come from the results. */
static int load_pool(Report *r, const char *path, Error *err)
{
    Pool pool;
    if (notes_file(r, path, err) || pool_load(path, &pool, err)) return -1;
    for (int i = 0; i < r->tasks.n; i++) {
        ReportTask *t = &r->task[i];
        const PoolItem *best = pool_best(&pool, t->task->name);
        char hex[DIGEST_HEX];
        if (best) take_pooled(t, best);
        if (!t->source) continue;
        digest_source(t->source, hex);
        lineage_of(&pool, t->task->name, hex, &t->lineage);
    }
    pool_release(&pool);
    return 0;
}

static int class_index(Report *r, const char *name, Error *err)
{
    for (int i = 0; i < r->n_classes; i++)
        if (!strcmp(r->class_name[i], name)) return i;
    if (r->n_classes == REPORT_MAX_CLASSES)
        return error_set(err, ERROR_LIMIT, "expected at most %d device classes",
                         REPORT_MAX_CLASSES);
    for (int i = 0; i < r->tasks.n; i++) {
        r->task[i].class_score[r->n_classes] = NAN;
        r->task[i].class_outcome[r->n_classes] = OUTCOME_OK;
    }
    r->class_name[r->n_classes] = memory_strdup(name);
    return r->n_classes++;
}

static int load_result(void *ctx, const View *v, Error *err)
{
    Report *r = ctx;
    char *name = NULL, *device = NULL, *source = NULL, *outcome = NULL;
    const ViewText texts[] = {
        {"task", &name}, {"device", &device}, {"source", &source}, {"outcome", &outcome}};
    double score = 0, time_us, baseline_us;
    int predicted, k = -1, rc = view_texts(v, texts, 4, err);
    Outcome said = OUTCOME_OK;
    if (!rc && outcome_from_name(outcome, &said))
        error_set(err, ERROR_CORRUPT, "%s: unknown outcome '%s'", v->where, outcome);
    else if (!rc && !view_float(v, "score", &score, err) &&
             !view_float(v, "time_us", &time_us, err) &&
             !view_float(v, "baseline_us", &baseline_us, err) &&
             !view_bool(v, "predicted", &predicted, err))
        k = class_index(r, device, err);
    ReportTask *t = k < 0 ? NULL : report_task(r, name);
    if (t) {
        t->class_score[k] = said == OUTCOME_OK ? score : NAN;
        t->class_outcome[k] = said;
        r->predicted |= predicted;
        r->measured |= !predicted;
        if (!strcmp(device, r->device)) {
            read_counters(v, "baseline_counters", &t->baseline);
            if (t->source && !strcmp(t->source, source)) {
                t->time_us = time_us;
                t->baseline_us = baseline_us;
                t->predicted = predicted;
                read_counters(v, "counters", &t->best);
            }
        }
    }
    free(name);
    free(device);
    free(source);
    free(outcome);
    return k < 0 ? -1 : 0;
}

static int load_results(Report *r, const char *path, Error *err)
{
    ArtifactReader *a;
    if (artifact_open(path, "results", &a, err)) return -1;
    notes_input(r, path, a);
    int rc = artifact_records(a, load_result, r, err);
    artifact_close(a);
    return rc;
}

/* ---- the second judgement ---- */

/* Replaces the score of a kernel by the one of its second judgement, at least 1. A kernel that is
 * refused is no best kernel any more. */
static void judged_again(Report *r, ReportTask *t, const Sample *s)
{
    double score = s->outcome == OUTCOME_OK ? fmax(1, s->score) : 1;
    for (int k = REPORT_SFT; k < REPORT_STAGES; k++)
        if (!strcmp(t->stage[k].best_digest, s->source_digest)) t->stage[k].best = score;
    if (!t->source || strcmp(t->source, s->source)) return;
    t->run.best = score;
    if (s->outcome == OUTCOME_OK) {
        take_numbers(r, t, s);
        return;
    }
    char *message = view_strdup(&s->verdict, "message", NULL);
    t->refused = memory_printf("%s: %s", outcome_name(s->outcome), message ? message : "");
    free(message);
    free(t->source);
    t->source = NULL;
    t->score = 0;
    t->best.n = 0;
}

static int load_again(Report *r, const char *samples, const char *verdicts, Error *err)
{
    SampleSet set;
    if (notes_file(r, verdicts, err) || samples_load(samples, verdicts, &set, err)) return -1;
    r->judged_again = 1;
    for (long i = 0; i < set.n; i++) {
        ReportTask *t = report_task(r, set.items[i].task);
        if (!t || set.items[i].outcome == OUTCOME_EVALUATOR_ERROR) continue;
        note_doubt(r, &set.items[i].verdict);
        judged_again(r, t, &set.items[i]);
    }
    samples_release(&set);
    return 0;
}

int report_load(const ReportFiles *f, Report *out, Error *err)
{
    Report *r = out;
    *r = (Report){.run = f->run,
                  .profile = f->profile,
                  .device = f->device,
                  .own_predicted = !strncmp(f->device, "sim:", 4)};
    if (taskset_load(f->task_root, f->tasks, &r->tasks, err)) return -1;
    r->task = memory_array((size_t)r->tasks.n, sizeof *r->task);
    for (int i = 0; i < r->tasks.n; i++) {
        r->task[i].task = r->tasks.tasks[i];
        r->task[i].run.best = 1.0;
        r->task[i].predicted = r->own_predicted;
        for (int s = 0; s < REPORT_STAGES; s++)
            r->task[i].stage[s] = (Tally){.best = 1.0, .score = memory_alloc(sizeof(double))};
    }
    int rc = 0;
    for (int s = 0; s < REPORT_STAGES && !rc; s++)
        rc = (f->samples[s] && load_stage(r, (ReportStage)s, f->samples[s], f->verdicts[s], err)) ||
             (s == REPORT_COLLECT && load_rounds(r, f->rounds, err));
    rc = -(rc || (f->pool && load_pool(r, f->pool, err)) ||
           (f->results && load_results(r, f->results, err)) || models_ledger(r, f->ledger, err) ||
           (f->again_samples && load_again(r, f->again_samples, f->again_verdicts, err)));
    for (int i = 0; i < r->tasks.n; i++) doubt_best(r, &r->task[i]);
    notes_sort(r);
    return rc;
}

void report_release(Report *r)
{
    for (int i = 0; i < r->tasks.n && r->task; i++) {
        free(r->task[i].source);
        free(r->task[i].found);
        free(r->task[i].refused);
        lineage_release(&r->task[i].lineage);
        free(r->task[i].round);
        for (int s = 0; s < REPORT_STAGES; s++) free(r->task[i].stage[s].score);
    }
    for (int i = 0; i < r->n_rounds; i++) free(r->round_name[i]);
    free(r->round_name);
    for (int i = 0; i < r->n_classes; i++) free(r->class_name[i]);
    for (int i = 0; i < r->n_messages; i++) {
        free(r->messages[i].text);
        free(r->messages[i].key);
    }
    for (int i = 0; i < r->n_inputs; i++) {
        free(r->inputs[i].path);
        free(r->inputs[i].text);
        free(r->inputs[i].config);
    }
    for (int i = 0; i < r->n_doubts; i++) free(r->doubts[i].task);
    free(r->doubts);
    models_release(r);
    free(r->policy);
    free(r->messages);
    free(r->inputs);
    free(r->task);
    taskset_release(&r->tasks);
}
