/* One pass over the dataset for each kind of example. */
#include "stages/train/dataset_examples.h"

#include <string.h>

#include "base/memory.h"

static int example_of(const Policy *p, const View *v, Example *e, Error *err)
{
    const char *prompt, *answer;
    size_t np, na, n_prompt, n_answer;
    int32_t *a = NULL;
    *e = (Example){.advantage = 1};
    if (view_text(v, "prompt", &prompt, &np, err) || view_text(v, "answer", &answer, &na, err))
        return -1;
    int rc = policy_encode_prompt(p, prompt, np, &e->ids, &n_prompt, err) ||
             policy_encode_answer(p, answer, na, &a, &n_answer, err);
    if (!rc) {
        e->ids = memory_grow(e->ids, n_prompt + n_answer, sizeof *e->ids);
        memcpy(e->ids + n_prompt, a, n_answer * sizeof *a);
        e->prompt = (int)n_prompt;
        e->len = (int)(n_prompt + n_answer);
        e->user = memory_strndup(prompt, np);
        e->assistant = memory_strndup(answer, na);
    }
    free(a);
    return rc ? -1 : 0;
}

/* One pass over the dataset for the examples of a kind. */
static int read_kind(const Policy *p, const char *dataset, const char *kind, int max_len,
                     Example *out, long *n, long *dropped, Error *err)
{
    ArtifactReader *r;
    if (artifact_open(dataset, "dataset", &r, err)) return -1;
    View v;
    const char *text;
    size_t len;
    int rc = 0, more = 0;
    while (!rc && (more = artifact_next(r, &v, err)) == 1) {
        rc = view_text(&v, "kind", &text, &len, err);
        if (rc || len != strlen(kind) || memcmp(text, kind, len)) continue;
        Example *e = &out[*n];
        rc = example_of(p, &v, e, err);
        if (!rc && e->len <= max_len) {
            (*n)++;
            continue;
        }
        example_release(e);
        (*dropped)++;
    }
    artifact_close(r);
    return rc || more < 0 ? -1 : 0;
}

int dataset_examples(const Policy *p, const char *dataset, int max_len, Example **out, long *n,
                     long *plain, long *dropped, Error *err)
{
    ArtifactReader *r;
    *n = *dropped = 0;
    if (artifact_open(dataset, "dataset", &r, err)) return -1;
    *out = memory_array((size_t)artifact_count(r), sizeof **out);
    artifact_close(r);
    int rc = read_kind(p, dataset, "plain", max_len, *out, n, dropped, err);
    *plain = *n;
    if (!rc) rc = read_kind(p, dataset, "contrastive", max_len, *out, n, dropped, err);
    if (!rc) rc = read_kind(p, dataset, "correction", max_len, *out, n, dropped, err);
    if (!rc) rc = read_kind(p, dataset, "drill", max_len, *out, n, dropped, err);
    if (!rc) return 0;
    examples_free(*out, *n);
    *out = NULL;
    *n = 0;
    return -1;
}
