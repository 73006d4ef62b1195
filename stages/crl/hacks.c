/* An array that is searched from its start. */
#include "stages/crl/hacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void release_hack(Hack *h)
{
    free(h->id);
    free(h->task);
    free(h->source);
    free(h->cheat);
    free(h->message);
    shingles_release(&h->shingles);
}

static int holds(const Hacks *h, const char *task, const char *digest)
{
    for (long i = 0; i < h->n; i++)
        if (!strcmp(h->items[i].task, task) && !strcmp(h->items[i].source_digest, digest)) return 1;
    return 0;
}

static int read_hack(void *ctx, const View *v, Error *err)
{
    Hacks *all = ctx;
    all->items = memory_grow(all->items, (size_t)all->n + 1, sizeof *all->items);
    Hack *h = &all->items[all->n++];
    *h = (Hack){0};
    const ViewText texts[] = {{"id", &h->id},
                              {"task", &h->task},
                              {"source", &h->source},
                              {"cheat", &h->cheat},
                              {"message", &h->message}};
    if (view_texts(v, texts, 5, err) ||
        view_copy(v, "source_digest", h->source_digest, sizeof h->source_digest, err))
        return -1;
    shingles_make(h->source, &h->shingles);
    return 0;
}

int hacks_load(const char *path, Hacks *out, Error *err)
{
    *out = (Hacks){0};
    int rc = path ? artifact_each(path, "hacks", read_hack, out, err) : 0;
    if (rc) hacks_release(out);
    return rc;
}

void hacks_release(Hacks *h)
{
    for (long i = 0; i < h->n; i++) release_hack(&h->items[i]);
    free(h->items);
    *h = (Hacks){0};
}

long hacks_add(Hacks *h, const SampleSet *s, Error *err)
{
    long added = 0;
    for (long i = 0; i < s->n; i++) {
        const Sample *x = &s->items[i];
        if (x->outcome != OUTCOME_CHEAT || holds(h, x->task, x->source_digest)) continue;
        Hack one = {.id = memory_strdup(x->id),
                    .task = memory_strdup(x->task),
                    .source = memory_strdup(x->source),
                    .message = view_strdup(&x->verdict, "message", err)};
        one.cheat = view_has(&x->verdict, "cheat") ? view_strdup(&x->verdict, "cheat", err)
                                                   : memory_strdup("");
        memcpy(one.source_digest, x->source_digest, sizeof one.source_digest);
        shingles_make(x->source, &one.shingles);
        h->items = memory_grow(h->items, (size_t)h->n + 1, sizeof *h->items);
        h->items[h->n++] = one;
        if (!one.message || !one.cheat) return -1;
        added++;
    }
    return added;
}

int hacks_write(const Hacks *h, const char *path, const ArtifactSpec *spec, Error *err)
{
    ArtifactWriter *w;
    int rc = 0;
    if (artifact_create(path, spec, &w, err)) return -1;
    for (long i = 0; !rc && i < h->n; i++) {
        const Hack *x = &h->items[i];
        Record *r = record_new();
        record_text(r, "id", x->id);
        record_text(r, "task", x->task);
        record_text(r, "source", x->source);
        record_text(r, "source_digest", x->source_digest);
        record_text(r, "cheat", x->cheat);
        record_text(r, "message", x->message);
        rc = artifact_put(w, r, err);
    }
    return artifact_end(w, rc, err);
}

int hacks_nearest(const Hacks *h, const char *source, HackMatch *out, int max)
{
    Shingles s;
    int n = 0;
    shingles_make(source, &s);
    for (long i = 0; i < h->n; i++) {
        const HackMatch m = {&h->items[i], shingles_similarity(&s, &h->items[i].shingles)};
        int at = n < max ? n : max;
        while (at > 0 && out[at - 1].similarity < m.similarity) at--;
        if (at >= max) continue;
        for (int k = n < max ? n : max - 1; k > at; k--) out[k] = out[k - 1];
        out[at] = m;
        if (n < max) n++;
    }
    shingles_release(&s);
    return n;
}
