/* Timing of a decoder: prompts, then steps of all rows. */
#include "tests/bench/model/bench_decode.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "model/core/decoder.h"
#include "model/decoder_create.h"

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The bytes that a step must read: all weights once, and the keys and values of every row. */
static double step_bytes(const Model *m, int rows, double context)
{
    const ModelConfig *c = &m->c;
    double num = m->ops->num, embedding = (double)c->vocab * c->hidden;
    double weights = (double)m->base.count + (double)m->lora.count - (c->tied ? 0 : embedding);
    return num * (weights + rows * context * 2.0 * c->layers * c->kv_heads * c->head_dim);
}

static int start_rows(Decoder *d, const BenchDecode *b, DecoderRow *rows, double *seconds,
                      Error *err)
{
    Random r;
    int32_t *ids = memory_array((size_t)b->prompt, sizeof *ids);
    int rc = 1;
    random_init(&r, 2, 0);
    *seconds = 0;
    for (int i = 0; i < b->batch && rc == 1; i++) {
        for (int t = 0; t < b->prompt; t++)
            ids[t] = (int32_t)random_below(&r, (uint64_t)d->model->c.vocab);
        double begin = clock_seconds();
        rows[i].slot = i;
        rows[i].u = random_uniform(&r);
        rc = decoder_prefill(d, ids, b->prompt, 1, err);
        if (rc == 1) rc = decoder_attach(d, i, err);
        if (rc == 1 && decoder_first(d, &rows[i], 1, err)) rc = -1;
        if (i) *seconds += clock_seconds() - begin; /* the first opens libraries */
    }
    free(ids);
    return rc == 1 ? 0
           : rc    ? -1
                   : error_set(err, ERROR_MEMORY, "there is no room for %d rows of %d tokens",
                               b->batch, b->prompt + b->new_tokens);
}

static void print_steps(const Model *m, const BenchDecode *b, double *step, int n, double prompts)
{
    double sum = 0, bytes = step_bytes(m, b->batch, b->prompt + b->new_tokens / 2.0);
    for (int i = 0; i < n; i++) sum += step[i];
    qsort(step, (size_t)n, sizeof *step, by_time);
    printf("decoding: %.0f tokens/s, batch %d, prompts of %d tokens, %d new; a step %.3f ms (least "
           "%.3f, median %.3f), "
           "%.2f TB/s of weights, keys and values",
           b->batch * n / sum, b->batch, b->prompt, b->new_tokens, 1e3 * sum / n, 1e3 * step[0],
           1e3 * step[n / 2], bytes * n / sum / 1e12);
    if (b->bandwidth > 0)
        printf(", %.0f%% of %.2f", 100 * bytes * n / sum / b->bandwidth, b->bandwidth / 1e12);
    if (b->batch > 1) printf("; prompts %.0f tokens/s", (b->batch - 1.0) * b->prompt / prompts);
    putchar('\n');
}

int bench_decode(Model *m, const BenchDecode *b, Error *err)
{
    DecoderPlan plan = {.rows = b->batch,
                        .prompt = b->prompt,
                        .max_new = b->new_tokens,
                        .law = {.temperature = 1, .top_p = 1, .vocab = m->c.vocab}};
    Decoder *d = NULL;
    DecoderRow *rows = memory_array((size_t)b->batch, sizeof *rows);
    double *step = memory_array((size_t)b->new_tokens, sizeof *step), prompts = 0;
    Random r;
    random_init(&r, 3, 0);
    int rc = decoder_create(m, &plan, &d, err), n = 0;
    if (!rc) rc = start_rows(d, b, rows, &prompts, err);
    for (int i = 1; i < b->new_tokens && !rc; i++) {
        for (int j = 0; j < b->batch; j++) rows[j].u = random_uniform(&r);
        double begin = clock_seconds();
        rc = decoder_step(d, rows, b->batch, err);
        if (i > 1) step[n++] = clock_seconds() - begin; /* the first records the graph */
    }
    if (!rc && n) print_steps(m, b, step, n, prompts);
    decoder_free(d);
    free(rows);
    free(step);
    return rc;
}
