/* One pass over the dataset for each kind of example. */
#include "stages/train/dataset_examples.h"

#include <string.h>

#include "base/memory.h"
#include "base/random.h"

static int example_of(const Policy *p, const View *v, Example *e, Error *err)
{
    const char *prompt, *answer;
    size_t np, na;
    TokenIds ids = {0};
    *e = (Example){.advantage = 1};
    if (view_text(v, "prompt", &prompt, &np, err) || view_text(v, "answer", &answer, &na, err))
        return -1;
    int rc = chat_encode_prompt(&p->chat, prompt, np, &ids, err);
    e->prompt = (int)ids.n;
    if (!rc) rc = chat_encode_answer(&p->chat, answer, na, &ids, err);
    e->ids = ids.ids;
    e->len = (int)ids.n;
    if (rc) return -1;
    e->user = memory_strndup(prompt, np);
    e->assistant = memory_strndup(answer, na);
    return 0;
}

/* The upper bits of the name's hash as a number from 0 to 1. */
static int is_held(const char *task, size_t n, double share)
{
    return (double)(random_hash(task, n) >> 11) / 9007199254740992.0 < share;
}

/* The examples of the held tasks, or of the others. */
typedef struct {
    int held;
    Example *ex;
    long n;
} Place;

/* One pass over the dataset for the examples of a kind. */
static int read_kind(const Policy *p, const char *dataset, const char *kind, Place *to,
                     DatasetExamples *d, Error *err)
{
    ArtifactReader *r;
    if (artifact_open(dataset, "dataset", &r, err)) return -1;
    View v;
    const char *text, *task;
    size_t len, n_task;
    int rc = 0, more = 0;
    while (!rc && (!to->held || to->n < DATASET_MAX_HELD) &&
           (more = artifact_next(r, &v, err)) == 1) {
        rc = view_text(&v, "kind", &text, &len, err) || view_text(&v, "task", &task, &n_task, err);
        if (rc || len != strlen(kind) || memcmp(text, kind, len)) continue;
        if (is_held(task, n_task, d->held) != to->held) continue;
        Example *e = &to->ex[to->n];
        rc = example_of(p, &v, e, err);
        if (!rc && e->len <= d->max_len) {
            to->n++;
            continue;
        }
        example_release(e);
        d->dropped++;
    }
    artifact_close(r);
    return -(rc || more < 0);
}

int dataset_examples(const Policy *p, const char *dataset, DatasetExamples *out, Error *err)
{
    ArtifactReader *r;
    out->n = out->plain = out->dropped = out->n_val = 0;
    out->ex = out->val = NULL;
    if (artifact_open(dataset, "dataset", &r, err)) return -1;
    Place ex = {0, memory_array((size_t)artifact_count(r), sizeof *ex.ex), 0};
    Place val = {1, out->held > 0 ? memory_array(DATASET_MAX_HELD, sizeof *val.ex) : NULL, 0};
    artifact_close(r);
    int rc = val.ex ? read_kind(p, dataset, "plain", &val, out, err) : 0;
    if (!rc) rc = read_kind(p, dataset, "plain", &ex, out, err);
    out->plain = ex.n;
    static const char *const others[] = {"contrastive", "correction", "drill"};
    for (int i = 0; !rc && i < 3; i++) rc = read_kind(p, dataset, others[i], &ex, out, err);
    out->ex = ex.ex, out->n = ex.n, out->val = val.ex, out->n_val = val.n;
    if (rc) dataset_examples_release(out);
    return rc;
}

void dataset_examples_release(DatasetExamples *d)
{
    examples_free(d->ex, d->n);
    examples_free(d->val, d->n_val);
    d->ex = d->val = NULL;
    d->n = d->n_val = 0;
}
