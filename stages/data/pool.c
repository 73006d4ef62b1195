/* An array of kernels, searched from its start. */
#include "stages/data/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MAX_PARENTS = 64 };

static void add_parent(PoolItem *x, const char *digest)
{
    if (x->n_parents < 0) x->n_parents = 0;
    x->parents = memory_grow(x->parents, (size_t)x->n_parents + 1, sizeof *x->parents);
    snprintf(x->parents[x->n_parents++], DIGEST_HEX, "%s", digest);
}

static int read_parents(const View *v, PoolItem *x, Error *err)
{
    char digest[DIGEST_HEX];
    const char *text;
    size_t n, len;
    if (!view_has(v, "parents")) return 0;
    if (view_count(v, "parents", &n, err)) return -1;
    if (n > MAX_PARENTS)
        return error_set(err, ERROR_CORRUPT, "%s, field parents: expected at most %d, found %zu",
                         v->where, MAX_PARENTS, n);
    x->n_parents = 0;
    for (size_t i = 0; i < n; i++) {
        if (view_text_at(v, "parents", i, &text, &len, err)) return -1;
        snprintf(digest, sizeof digest, "%.*s", (int)(len < DIGEST_HEX ? len : 0), text);
        add_parent(x, digest);
    }
    return 0;
}

static int read_item(void *ctx, const View *v, Error *err)
{
    Pool *p = ctx;
    p->items = memory_grow(p->items, (size_t)p->n + 1, sizeof *p->items);
    PoolItem *x = &p->items[p->n++];
    *x = (PoolItem){.n_parents = -1};
    const ViewText texts[] = {
        {"id", &x->id}, {"task", &x->task}, {"source", &x->source}, {"stage", &x->stage}};
    return -(view_texts(v, texts, 4, err) ||
             view_copy(v, "source_digest", x->source_digest, sizeof x->source_digest, err) ||
             view_float(v, "score", &x->score, err) || view_float(v, "speedup", &x->speedup, err) ||
             view_int(v, "round", &x->round, err) || read_parents(v, x, err));
}

int pool_load(const char *path, Pool *out, Error *err)
{
    *out = (Pool){0};
    int rc = path ? artifact_each(path, "pool", read_item, out, err) : 0;
    if (rc) pool_release(out);
    return rc;
}

void pool_release(Pool *p)
{
    for (long i = 0; i < p->n; i++) {
        free(p->items[i].id);
        free(p->items[i].task);
        free(p->items[i].source);
        free(p->items[i].stage);
        free(p->items[i].parents);
    }
    free(p->items);
    *p = (Pool){0};
}

const PoolItem *pool_find(const Pool *p, const char *task, const char *source_digest)
{
    for (long i = 0; i < p->n; i++)
        if (!strcmp(p->items[i].source_digest, source_digest) && !strcmp(p->items[i].task, task))
            return &p->items[i];
    return NULL;
}

int pool_holds(const Pool *p, const Sample *s)
{
    return pool_find(p, s->task, s->source_digest) != NULL;
}

long pool_add(Pool *p, const SampleSet *s, const char *stage, int64_t round)
{
    long added = 0;
    for (long i = 0; i < s->n; i++) {
        const Sample *x = &s->items[i];
        if (x->outcome != OUTCOME_OK || x->heldout || pool_holds(p, x)) continue;
        p->items = memory_grow(p->items, (size_t)p->n + 1, sizeof *p->items);
        PoolItem *it = &p->items[p->n++];
        *it = (PoolItem){.id = memory_strdup(x->id),
                         .task = memory_strdup(x->task),
                         .source = memory_strdup(x->source),
                         .stage = memory_strdup(stage),
                         .score = x->score,
                         .speedup = x->speedup,
                         .round = round,
                         .n_parents = -1};
        memcpy(it->source_digest, x->source_digest, sizeof it->source_digest);
        added++;
    }
    return added;
}

static const PoolItem *find_id(const Pool *p, const char *id)
{
    for (long i = 0; i < p->n; i++)
        if (!strcmp(p->items[i].id, id)) return &p->items[i];
    return NULL;
}

static const Sample *find_sample(const SampleSet *s, const char *id)
{
    for (long i = 0; id && i < s->n; i++)
        if (!strcmp(s->items[i].id, id)) return &s->items[i];
    return NULL;
}

/* The prompt of the first turn that this sample answers, or NULL. */
static const PromptItem *prompt_of(const PromptSet *prompts, const Sample *x)
{
    for (long i = 0; i < prompts->n; i++)
        if (!strcmp(prompts->items[i].id, x->group)) return &prompts->items[i];
    return NULL;
}

static void note_parents(const Pool *p, PoolItem *it, const Sample *x, const SampleSet *s,
                         const PromptSet *prompts)
{
    const Sample *before = x;
    for (int turn = 1; x->parent && turn < SAMPLES_MAX_TURNS; turn++) {
        if (!(before = find_sample(s, x->parent))) return;
        if (before->outcome == OUTCOME_OK) {
            add_parent(it, before->source_digest);
            return;
        }
        x = before;
    }
    const PromptItem *prompt = prompt_of(prompts, before);
    if (!prompt) return;
    it->n_parents = 0;
    for (int i = 0; i < prompt->n_shown; i++) {
        const PoolItem *shown = find_id(p, prompt->shown[i]);
        if (shown)
            add_parent(it, shown->source_digest);
        else if (!strcmp(prompt->shown[i], POOL_BASELINE))
            add_parent(it, POOL_BASELINE);
    }
}

void pool_note_parents(Pool *p, long first, const SampleSet *s, const PromptSet *prompts)
{
    for (long i = first; i < p->n; i++) {
        const Sample *x = find_sample(s, p->items[i].id);
        if (x) note_parents(p, &p->items[i], x, s, prompts);
    }
}

static int by_task(const void *a, const void *b)
{
    const PoolItem *x = *(const PoolItem *const *)a, *y = *(const PoolItem *const *)b;
    int c = strcmp(x->task, y->task);
    return c ? c : (x > y) - (x < y); /* in the pool's order */
}

/* The best of each task, its teachers' best, and how many kernels there are. */
static void summarize(const Pool *p, Record *summary)
{
    const PoolItem **order = memory_array((size_t)p->n + 1, sizeof *order);
    for (long i = 0; i < p->n; i++) order[i] = &p->items[i];
    if (p->n) qsort(order, (size_t)p->n, sizeof *order, by_task);
    for (long from = 0, i; from < p->n; from = i) {
        const PoolItem *best = order[from];
        double teacher = 0;
        for (i = from; i < p->n && !strcmp(order[i]->task, best->task); i++) {
            if (order[i]->score > best->score) best = order[i];
            if (!strcmp(order[i]->stage, "collect") && order[i]->score > teacher)
                teacher = order[i]->score;
        }
        Record *task = record_map(summary, best->task);
        record_float(task, "best", best->score);
        record_int(task, "kernels", i - from);
        record_int(task, "round", best->round);
        record_text(task, "stage", best->stage);
        record_float(task, "teacher", teacher);
    }
    free(order);
}

static void put_parents(Record *r, const PoolItem *x)
{
    const char *digest[MAX_PARENTS];
    int n = x->n_parents < MAX_PARENTS ? x->n_parents : MAX_PARENTS;
    for (int i = 0; i < n; i++) digest[i] = x->parents[i];
    if (n >= 0) record_texts(r, "parents", digest, (size_t)n);
}

int pool_write(const Pool *p, const char *path, const ArtifactSpec *spec, Error *err)
{
    ArtifactWriter *w;
    if (artifact_create(path, spec, &w, err)) return -1;
    summarize(p, artifact_summary(w));
    int rc = 0;
    for (long i = 0; !rc && i < p->n; i++) {
        const PoolItem *x = &p->items[i];
        Record *r = record_new();
        record_text(r, "id", x->id);
        record_text(r, "task", x->task);
        record_text(r, "source", x->source);
        record_text(r, "source_digest", x->source_digest);
        record_text(r, "stage", x->stage);
        record_float(r, "score", x->score);
        record_float(r, "speedup", x->speedup);
        record_int(r, "round", x->round);
        put_parents(r, x);
        rc = artifact_put(w, r, err);
    }
    return artifact_end(w, rc, err);
}

const PoolItem *pool_best(const Pool *p, const char *task)
{
    const PoolItem *best = NULL;
    for (long i = 0; i < p->n; i++)
        if (!strcmp(p->items[i].task, task) && (!best || p->items[i].score > best->score))
            best = &p->items[i];
    return best;
}
