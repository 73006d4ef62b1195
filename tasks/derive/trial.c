/* Draws inputs as a draft says, without rounding, and executes the graph on them. */
#include "tasks/derive/trial.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "tasks/derive/sizes.h"

static double drawn(const DraftTensor *x, double high, Random *r)
{
    switch (x->draw) {
    case DRAW_UNIFORM: return x->low + (high - x->low) * random_uniform(r);
    case DRAW_POSITIVE: return 0.5 + random_uniform(r);
    case DRAW_INTEGER: return x->low + (double)random_below(r, (uint64_t)(high - x->low) + 1);
    default: return x->mean + x->std * random_normal(r);
    }
}

/* As drawn gives each. high: the largest number of a uniform or integer draw. */
static void draw_all(const DraftTensor *x, double high, Random *r, double *out, int64_t n)
{
    enum { CHUNK = 512 };
    uint64_t bits[CHUNK];
    int uniform = x->draw == DRAW_UNIFORM;
    double low = uniform ? x->low : 0.5, wide = uniform ? high - x->low : 1;
    if (!uniform && x->draw != DRAW_POSITIVE) {
        for (int64_t k = 0; k < n; k++) out[k] = drawn(x, high, r);
        return;
    }
    for (int64_t k = 0; k < n; k += CHUNK) {
        int64_t count = n - k < CHUNK ? n - k : CHUNK;
        random_fill(r, bits, (size_t)count);
#pragma omp simd
        for (int64_t i = 0; i < count; i++) out[k + i] = low + wide * random_unit(bits[i]);
    }
}

/* The largest number of a uniform or integer draw. */
static double largest(const Derivation *v, const Sizes *s, const DraftTensor *x)
{
    int64_t high;
    return x->highest && !derivation_value(v, s, x->highest, &high, NULL) ? (double)high : x->high;
}

enum { WORTH_BYTES = 1 << 24 }; /* of all values: threads share the draws */

int trial_open(Trial *t, const Derivation *v, const Sizes *s, uint64_t seed, const Trial *like,
               Error *err)
{
    if (derivation_bind(v, s, &t->b, err)) return -1;
    t->n_inputs = v->draft.n_inputs, t->n_outputs = v->draft.n_outputs;
    t->in = memory_array((size_t)t->n_inputs, sizeof *t->in);
    t->out = memory_array((size_t)t->n_outputs, sizeof *t->out);
    double bytes = sizes_bytes(t->b);
#pragma omp parallel for schedule(dynamic) if (bytes > WORTH_BYTES)
    for (int i = 0; i < t->n_inputs; i++) {
        int64_t n = op_elements(&t->b->values[i].tensor);
        Random r;
        random_init(&r, seed, (uint64_t)i);
        t->in[i] = memory_grow(NULL, (size_t)n + 1, sizeof(double)); /* written whole */
        if (like)
            memcpy(t->in[i], like->in[i], (size_t)n * sizeof(double));
        else
            draw_all(&v->inputs[i], largest(v, s, &v->inputs[i]), &r, t->in[i], n);
    }
    for (int i = 0; i < t->n_outputs; i++) {
        int64_t n = op_elements(&t->b->values[v->graph->output[i]].tensor);
        t->out[i] = memory_array((size_t)n, sizeof(double));
    }
    return 0;
}

void trial_close(Trial *t)
{
    for (int i = 0; i < t->n_inputs; i++) free(t->in[i]);
    for (int i = 0; i < t->n_outputs; i++) free(t->out[i]);
    free(t->in);
    free(t->out);
    graph_bound_free(t->b);
}

int trial_run(Trial *t, const GraphHook *hook, Error *err)
{
    return graph_run(t->b, (const double *const *)t->in, t->out, hook, err);
}
