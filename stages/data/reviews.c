/* A withheld sample is found by its id, and its twins by the digest of their source. */
#include "stages/data/reviews.h"

#include <stdlib.h>
#include <string.h>

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
