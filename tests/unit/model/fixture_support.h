/* Support of test_engine_fixtures.c: the logits of sequences, and ids from a JSON file. */
#ifndef TESTS_FIXTURE_SUPPORT_H
#define TESTS_FIXTURE_SUPPORT_H

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "model/core/transformer.h"

/* Sequences of ids, and the weights of their tokens, or NULL. */
typedef struct {
    Sequence *seqs;
    int32_t **ids;
    float **weights;
    int n, rows;
} Ids;

static inline float *floats_of(const json_t *list, int n)
{
    float *x = memory_array((size_t)n, sizeof *x);
    for (int i = 0; i < n; i++) x[i] = (float)json_number_value(json_array_get(list, (size_t)i));
    return x;
}

/* Read {"sequences": [[...]], "weights": [[...]]}. */
static inline Ids ids_of(const json_t *doc)
{
    const json_t *lists = json_object_get(doc, "sequences"),
                 *weights = json_object_get(doc, "weights");
    Ids x = {.n = (int)json_array_size(lists)};
    x.seqs = memory_array((size_t)x.n, sizeof *x.seqs);
    x.ids = memory_array((size_t)x.n, sizeof *x.ids);
    x.weights = memory_array((size_t)x.n, sizeof *x.weights);
    for (int i = 0; i < x.n; i++) {
        const json_t *list = json_array_get(lists, (size_t)i);
        int len = (int)json_array_size(list);
        x.ids[i] = memory_array((size_t)len, sizeof **x.ids);
        for (int t = 0; t < len; t++)
            x.ids[i][t] = (int32_t)json_integer_value(json_array_get(list, (size_t)t));
        x.weights[i] = weights ? floats_of(json_array_get(weights, (size_t)i), len) : NULL;
        x.seqs[i] = (Sequence){x.ids[i], len};
        x.rows += len;
    }
    return x;
}

static inline void ids_release(Ids *x)
{
    for (int i = 0; i < x->n; i++) {
        free(x->ids[i]);
        free(x->weights[i]);
    }
    free(x->ids);
    free(x->weights);
    free(x->seqs);
}

/* Returns the logits [rows][vocab] of all sequences in one packed batch, which the caller frees, or
 * NULL with an error. */
static inline float *logits_of(Model *m, const Ids *x, Error *err)
{
    if (batch_check(m, x->seqs, x->n, err)) return NULL;
    Acts acts = {0};
    TokenBatch batch = {0};
    size_t count = (size_t)x->rows * (size_t)m->c.vocab;
    float *out = memory_array(count, sizeof *out);
    batch_reserve(&batch, m->ops, x->rows);
    batch_pack(&batch, m->ops, x->seqs, x->n);
    model_reserve_positions(m, batch.longest);
    acts_reserve(&acts, m, x->rows, KEEP_ONE);
    head_reserve(&acts, m, x->rows);
    forward_logp(m, &acts, &batch);
    m->ops->download(out, acts.logits, count * sizeof *out);
    int rc = m->ops->status(err);
    acts_release(&acts, m);
    batch_release(&batch, m->ops);
    if (!rc) return out;
    free(out);
    return NULL;
}

#endif
