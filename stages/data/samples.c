/* The join is a binary search of the samples, sorted by id. */
#include "stages/data/samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/judge/verdict/verdict.h"

static int read_ids(const View *v, const char *key, int32_t **out, int *n, Error *err)
{
    int64_t *wide;
    size_t count;
    *out = NULL;
    *n = 0;
    if (!view_has(v, key)) return 0;
    if (view_ints(v, key, &wide, &count, err)) return -1;
    *out = memory_array(count, sizeof **out);
    for (size_t i = 0; i < count; i++) (*out)[i] = (int32_t)wide[i];
    *n = (int)count;
    free(wide);
    return 0;
}

static int read_logprobs(const View *v, Sample *s, Error *err)
{
    double *wide;
    size_t n;
    if (!view_has(v, "logprobs")) return 0;
    if (view_floats(v, "logprobs", &wide, &n, err)) return -1;
    if ((int)n != s->n_ids) {
        free(wide);
        return error_set(err, ERROR_CORRUPT, "%s: expected %d logprobs, one an id, found %zu",
                         v->where, s->n_ids, n);
    }
    s->logprobs = memory_array(n, sizeof *s->logprobs);
    for (size_t i = 0; i < n; i++) s->logprobs[i] = (float)wide[i];
    free(wide);
    return 0;
}

static int read_sample(const View *v, Sample *s, Error *err)
{
    const char *p;
    size_t n;
    s->outcome = OUTCOME_EVALUATOR_ERROR;
    s->id = view_strdup(v, "id", err);
    s->task = view_strdup(v, "task", err);
    s->group = view_strdup(v, "group", err);
    s->source = view_strdup(v, "source", err);
    s->prompt = view_strdup(v, "prompt", err);
    s->text = view_strdup(v, "text", err);
    if (!s->id || !s->task || !s->group || !s->source || !s->prompt || !s->text) return -1;
    if (view_text(v, "split", &p, &n, err)) return -1;
    s->heldout = n == 7 && !memcmp(p, "heldout", 7);
    if (view_text(v, "finish", &p, &n, err)) return -1;
    s->truncated = !(n == 4 && !memcmp(p, "stop", 4));
    s->unanswered = n == 5 && !memcmp(p, "error", 5);
    int64_t turn = 1;
    if (view_has(v, "turn") && view_int(v, "turn", &turn, err)) return -1;
    if (turn < 1 || turn > SAMPLES_MAX_TURNS)
        return error_set(err, ERROR_CORRUPT, "%s: expected turn 1 to %d, found %lld", v->where,
                         SAMPLES_MAX_TURNS, (long long)turn);
    s->turn = (int)turn;
    if (view_has(v, "parent") && !(s->parent = view_strdup(v, "parent", err))) return -1;
    return -(read_ids(v, "ids", &s->ids, &s->n_ids, err) ||
             read_ids(v, "prompt_ids", &s->prompt_ids, &s->n_prompt, err) ||
             read_logprobs(v, s, err));
}

static int by_id(const void *a, const void *b)
{
    return strcmp((*(Sample *const *)a)->id, (*(Sample *const *)b)->id);
}

static int find_id(const void *key, const void *item)
{
    return strcmp(key, (*(Sample *const *)item)->id);
}

static int read_verdict(const View *v, Sample *s, Error *err)
{
    Verdict verdict;
    if (verdict_read(v, &verdict, err)) return -1;
    s->outcome = verdict.outcome;
    s->score = verdict.score;
    s->speedup = verdict.speedup;
    memcpy(s->source_digest, verdict.source_digest, sizeof s->source_digest);
    verdict_release(&verdict);
    if (s->unanswered) { /* the evaluator judged it as an answer without code */
        s->outcome = OUTCOME_EVALUATOR_ERROR;
        s->score = s->speedup = 0;
    }
    s->reward = s->score;
    s->verdict = *v;
    return 0;
}

static int join(SampleSet *s, const char *path, Error *err)
{
    Sample **index = memory_array((size_t)s->n, sizeof *index);
    for (long i = 0; i < s->n; i++) index[i] = &s->items[i];
    qsort(index, (size_t)s->n, sizeof *index, by_id);
    View v;
    int rc = artifact_open(path, "verdicts", &s->verdicts, err), more = 0;
    while (!rc && (more = artifact_next(s->verdicts, &v, err)) == 1) {
        char *id = view_strdup(&v, "id", err);
        Sample **hit = id ? bsearch(id, index, (size_t)s->n, sizeof *index, find_id) : NULL;
        if (!id)
            rc = -1;
        else if (hit)
            rc = read_verdict(&v, *hit, err);
        free(id);
    }
    if (more < 0) rc = -1;
    for (long i = 0; !rc && i < s->n; i++)
        if (!s->items[i].verdict.map)
            rc =
                error_set(err, ERROR_INVALID, "%s: no verdict for sample %s", path, s->items[i].id);
    free(index);
    return rc;
}

int samples_load(const char *samples, const char *verdicts, SampleSet *out, Error *err)
{
    *out = (SampleSet){0};
    ArtifactReader *r;
    if (artifact_open(samples, "samples", &r, err)) return -1;
    out->items = memory_array((size_t)artifact_count(r), sizeof *out->items);
    View v;
    int rc = 0, more = 0;
    while (!rc && (more = artifact_next(r, &v, err)) == 1)
        rc = read_sample(&v, &out->items[out->n++], err);
    artifact_close(r);
    if (!rc && more == 0 && verdicts) rc = join(out, verdicts, err);
    if (!rc && more == 0) return 0;
    samples_release(out);
    return -1;
}

void samples_release(SampleSet *s)
{
    for (long i = 0; i < s->n; i++) {
        Sample *x = &s->items[i];
        free(x->id);
        free(x->task);
        free(x->group);
        free(x->source);
        free(x->prompt);
        free(x->text);
        free(x->parent);
        free(x->ids);
        free(x->prompt_ids);
        free(x->logprobs);
    }
    free(s->items);
    if (s->verdicts) artifact_close(s->verdicts);
    *s = (SampleSet){0};
}

long samples_without_ids(const SampleSet *s)
{
    long n = 0;
    for (long i = 0; i < s->n; i++)
        n += !s->items[i].unanswered && (!s->items[i].ids || !s->items[i].prompt_ids);
    return n;
}

int samples_limit(const char *samples, int *out, Error *err)
{
    ArtifactReader *r;
    View config;
    if (artifact_open(samples, "samples", &r, err)) return -1;
    char *text = view_map(artifact_header(r), "config", &config, err)
                     ? NULL
                     : view_strdup(&config, "max-new", err),
         *rest = NULL;
    long n = text ? strtol(text, &rest, 10) : 0;
    int rc = n >= 1 && n <= 1 << 20 && !*rest ? 0 : -1;
    if (rc)
        error_set(err, ERROR_INVALID, "%s: expected the configuration's max-new, found %s", samples,
                  text ? text : "none");
    *out = (int)n;
    free(text);
    artifact_close(r);
    return rc;
}

/* ---- reviews: a withheld sample is found by its id, and its twins by the digest of their source ---- */

static long withhold(SampleSet *s, const char *id)
{
    const Sample *first = NULL;
    long n = 0;
    for (long i = 0; i < s->n && !first; i++)
        if (!strcmp(s->items[i].id, id)) first = &s->items[i];
    for (long i = 0; i < s->n && first; i++) {
        Sample *x = &s->items[i];
        if (strcmp(x->task, first->task) || strcmp(x->source_digest, first->source_digest))
            continue;
        x->outcome = OUTCOME_CHEAT;
        x->score = x->speedup = x->reward = 0;
        n++;
    }
    return n;
}

long reviews_apply(const char *path, SampleSet *s, Error *err)
{
    ArtifactReader *r;
    View v;
    long n = 0;
    int more;
    if (!path) return 0;
    if (artifact_open(path, "reviews", &r, err)) return -1;
    while ((more = artifact_next(r, &v, err)) == 1) {
        int withheld;
        char *id = view_strdup(&v, "id", err);
        if (!id || view_bool(&v, "withheld", &withheld, err)) {
            free(id);
            more = -1;
            break;
        }
        if (withheld) n += withhold(s, id);
        free(id);
    }
    artifact_close(r);
    return more < 0 ? -1 : n;
}
