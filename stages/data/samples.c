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

static int read_sample(void *ctx, const View *v, Error *err)
{
    SampleSet *all = ctx;
    all->items = memory_grow(all->items, (size_t)all->n + 1, sizeof *all->items);
    Sample *s = &all->items[all->n++];
    *s = (Sample){.outcome = OUTCOME_EVALUATOR_ERROR,
                  .heldout = view_text_is(v, "split", "heldout"),
                  .truncated = !view_text_is(v, "finish", "stop"),
                  .unanswered = view_text_is(v, "finish", "error")};
    const ViewText texts[] = {{"id", &s->id},         {"task", &s->task},     {"group", &s->group},
                              {"source", &s->source}, {"prompt", &s->prompt}, {"text", &s->text}};
    int64_t turn = 1;
    if (view_texts(v, texts, 6, err)) return -1;
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

Sample **samples_by_id(const SampleSet *s)
{
    Sample **index = memory_array((size_t)s->n, sizeof *index);
    for (long i = 0; i < s->n; i++) index[i] = &s->items[i];
    qsort(index, (size_t)s->n, sizeof *index, by_id);
    return index;
}

static int find_id(const void *key, const void *item)
{
    return strcmp(key, (*(Sample *const *)item)->id);
}

Sample *samples_find(const SampleSet *s, Sample **index, const char *id)
{
    Sample **hit = bsearch(id, index, (size_t)s->n, sizeof *index, find_id);
    return hit ? *hit : NULL;
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

typedef struct {
    const SampleSet *s;
    Sample **index;
} Join;

static int join_verdict(void *ctx, const View *v, Error *err)
{
    const Join *j = ctx;
    char *id = view_strdup(v, "id", err);
    Sample *hit = id ? samples_find(j->s, j->index, id) : NULL;
    int rc = !id ? -1 : hit ? read_verdict(v, hit, err) : 0;
    free(id);
    return rc;
}

static int join(SampleSet *s, const char *path, Error *err)
{
    Join x = {s, samples_by_id(s)};
    int rc = -(artifact_open(path, "verdicts", &s->verdicts, err) ||
               artifact_records(s->verdicts, join_verdict, &x, err));
    for (long i = 0; !rc && i < s->n; i++)
        if (!s->items[i].verdict.map)
            rc =
                error_set(err, ERROR_INVALID, "%s: no verdict for sample %s", path, s->items[i].id);
    free(x.index);
    return rc;
}

int samples_load(const char *samples, const char *verdicts, SampleSet *out, Error *err)
{
    *out = (SampleSet){0};
    int rc = -(artifact_each(samples, "samples", read_sample, out, err) ||
               (verdicts && join(out, verdicts, err)));
    if (rc) samples_release(out);
    return rc;
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

static void withhold(SampleSet *s, const char *id)
{
    const Sample *first = NULL;
    for (long i = 0; i < s->n && !first; i++)
        if (!strcmp(s->items[i].id, id)) first = &s->items[i];
    for (long i = 0; i < s->n && first; i++) {
        Sample *x = &s->items[i];
        if (strcmp(x->task, first->task) || strcmp(x->source_digest, first->source_digest))
            continue;
        x->outcome = OUTCOME_CHEAT;
        x->score = x->speedup = x->reward = 0;
    }
}

static int apply_review(void *ctx, const View *v, Error *err)
{
    int withheld;
    char *id = view_strdup(v, "id", err);
    int rc = -(!id || view_bool(v, "withheld", &withheld, err));
    if (!rc && withheld) withhold(ctx, id);
    free(id);
    return rc;
}

int reviews_apply(const char *path, SampleSet *s, Error *err)
{
    return path ? artifact_each(path, "reviews", apply_review, s, err) : 0;
}
