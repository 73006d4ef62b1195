/* Batched sampling. A finished row is replaced at once by the next sample, so that no step is spent
 * on it. The bits of a row depend on its prompt, its seed and the options only, so the order of
 * work does not change results. Samples are delivered in order. */
#include "model/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "model/decoder_create.h"

typedef struct {
    int32_t *ids;
    float *logp;
    int n, stopped, finished;
} Sample;

typedef struct {
    int sample, request, copy; /* sample: index over all requests */
} Row;

typedef struct {
    const Model *m;
    const SampleRequest *req;
    const SampleOptions *opt;
    Decoder *decoder;
    int n_requests, total, rows;
    Sample *sample; /* [total] */
    Row *row;       /* [rows]: the first `active` are in flight; `work` has the same order */
    DecoderRow *work;
    int *slot, free_slots; /* the free slots */
    /* The request of the last prefill, or -1. */
    int active, next_request, next_copy, next_sample, prefilled;
    int delivered, out_request, out_copy;
} Sampler;

static int check_law(const SampleOptions *opt, Error *err)
{
    if (!(opt->temperature >= 0) || !isfinite(opt->temperature))
        return error_set(err, ERROR_INVALID,
                         "the temperature is expected to be 0 or above, found %g",
                         (double)opt->temperature);
    if (!(opt->top_p > 0 && opt->top_p <= 1))
        return error_set(err, ERROR_INVALID, "top_p is expected to be above 0, at most 1, found %g",
                         (double)opt->top_p);
    if (!(opt->min_p >= 0 && opt->min_p < 1))
        return error_set(err, ERROR_INVALID,
                         "min_p is expected to be 0 or above, below 1, found %g",
                         (double)opt->min_p);
    if (opt->top_k < 0)
        return error_set(err, ERROR_INVALID, "top_k is expected to be 0 or above, found %d",
                         opt->top_k);
    if (opt->max_new < 1 || opt->batch < 1 || opt->batch > 65536)
        return error_set(err, ERROR_INVALID,
                         "max_new %d and batch %d are expected to be at least 1", opt->max_new,
                         opt->batch);
    if (opt->cache_tokens < 0)
        return error_set(err, ERROR_INVALID,
                         "cache_tokens is expected to be 0 or above, found %lld",
                         (long long)opt->cache_tokens);
    for (int i = 0; i < opt->n_stops; i++)
        if (opt->stops[i].n < 1)
            return error_set(err, ERROR_INVALID, "stop sequence %d is empty", i);
    return 0;
}

static int check(const Model *m, const SampleRequest *req, int n, const SampleOptions *opt,
                 Error *err)
{
    if (check_law(opt, err)) return -1;
    unsigned char *banned = memory_alloc((size_t)m->c.vocab);
    int left = m->c.vocab, bad = -1;
    for (int i = 0; i < opt->n_banned; i++)
        if (opt->banned[i] < 0 || opt->banned[i] >= m->c.vocab)
            bad = i;
        else if (!banned[opt->banned[i]]++)
            left--;
    free(banned);
    if (bad >= 0)
        return error_set(err, ERROR_INVALID, "the banned id %d is not in 0..%d", opt->banned[bad],
                         m->c.vocab - 1);
    if (!left) return error_set(err, ERROR_INVALID, "every id is banned: nothing can be sampled");
    for (int i = 0; i < n; i++) {
        if (req[i].copies < 0)
            return error_set(err, ERROR_INVALID, "request %d asks for %d samples", i,
                             req[i].copies);
        Sequence s = {req[i].prompt, req[i].prompt_len};
        if (batch_check(m, &s, 1, err)) return error_prefix(err, "request %d", i);
        if (req[i].prompt_len > m->c.max_position - opt->max_new)
            return error_set(
                err, ERROR_INVALID,
                "request %d: %d tokens of prompt and %d new ones exceed the model's %d positions",
                i, req[i].prompt_len, opt->max_new, m->c.max_position);
    }
    return 0;
}

/* Returns whether the ids end with a stop sequence. */
static int stops(const SampleOptions *opt, const int32_t *ids, int n)
{
    for (int i = 0; i < opt->n_stops; i++) {
        const StopSequence *s = &opt->stops[i];
        if (s->n <= n && !memcmp(ids + n - s->n, s->ids, (size_t)s->n * sizeof *ids)) return 1;
    }
    return 0;
}

static double next_uniform(const Sampler *s, const Row *row)
{
    Random r;
    random_init(&r, s->req[row->request].seeds[row->copy], (uint64_t)s->sample[row->sample].n);
    return random_uniform(&r);
}

/* Append a drawn token to its sample. Logits that are not finite are an error. */
static int take_token(Sampler *s, const Row *row, const DecoderRow *drawn, Error *err)
{
    Sample *out = &s->sample[row->sample];
    int32_t id = drawn->id;
    if (!isfinite(drawn->logp))
        return error_set(err, ERROR_INVALID,
                         "request %d, copy %d: the model's logits for token %d are not finite",
                         row->request, row->copy, out->n);
    out->logp[out->n] = drawn->logp;
    out->ids[out->n++] = id;
    for (int i = 0; i < s->m->c.n_eos; i++)
        if (id == s->m->c.eos[i]) out->stopped = 1;
    out->stopped |= stops(s->opt, out->ids, out->n);
    out->finished = out->stopped || out->n == s->opt->max_new;
    return 0;
}

/* Append the tokens of rows [from, active). */
static int take_drawn(Sampler *s, int from, Error *err)
{
    for (int i = from; i < s->active; i++)
        if (take_token(s, &s->row[i], &s->work[i], err)) return -1;
    return 0;
}

/* Remove the rows of finished samples. The last row moves to the free place. */
static void retire(Sampler *s)
{
    for (int i = 0; i < s->active;) {
        Sample *x = &s->sample[s->row[i].sample];
        if (!x->finished) {
            i++;
            continue;
        }
        /* Shrink the arrays: the sample may wait long for its delivery. */
        x->ids = memory_grow(x->ids, (size_t)x->n, sizeof *x->ids);
        x->logp = memory_grow(x->logp, (size_t)x->n, sizeof *x->logp);
        decoder_detach(s->decoder, s->work[i].slot);
        s->slot[s->free_slots++] = s->work[i].slot;
        int last = --s->active;
        s->row[i] = s->row[last];
        s->work[i] = s->work[last];
    }
}

/* Attach the next sample. Returns as decoder_prefill does, and 0 also when no request is left. */
static int attach_next(Sampler *s, Error *err)
{
    while (s->next_request < s->n_requests && s->next_copy == s->req[s->next_request].copies) {
        s->next_request++;
        s->next_copy = 0;
    }
    if (s->next_request == s->n_requests) return 0;
    const SampleRequest *r = &s->req[s->next_request];
    int slot = s->slot[s->free_slots - 1], rc = 1;
    if (s->prefilled != s->next_request)
        rc = decoder_prefill(s->decoder, r->prompt, r->prompt_len, r->copies, err);
    if (rc == 1) s->prefilled = s->next_request;
    if (rc == 1) rc = decoder_attach(s->decoder, slot, err);
    if (rc != 1) return rc;
    s->free_slots--;
    s->work[s->active].slot = slot;
    Row *row = &s->row[s->active++];
    *row = (Row){s->next_sample++, s->next_request, s->next_copy++};
    Sample *out = &s->sample[row->sample];
    out->ids = memory_array((size_t)s->opt->max_new, sizeof *out->ids);
    out->logp = memory_array((size_t)s->opt->max_new, sizeof *out->logp);
    return 1;
}

/* Add rows while there is room, and draw their first tokens, for all rows of a prompt at once. */
static int admit(Sampler *s, Error *err)
{
    int rc = 1;
    while (rc == 1 && s->active < s->rows) {
        int from = s->active;
        do rc = attach_next(s, err);
        while (rc == 1 && s->active < s->rows && s->next_copy < s->req[s->next_request].copies);
        for (int i = from; i < s->active; i++) s->work[i].u = next_uniform(s, &s->row[i]);
        if (rc >= 0 && s->active > from &&
            decoder_first(s->decoder, s->work + from, s->active - from, err))
            return -1;
        if (rc >= 0 && take_drawn(s, from, err)) return -1;
    }
    return rc < 0 ? -1 : 0;
}

static int step(Sampler *s, Error *err)
{
    for (int i = 0; i < s->active; i++) s->work[i].u = next_uniform(s, &s->row[i]);
    return -(decoder_step(s->decoder, s->work, s->active, err) || take_drawn(s, 0, err));
}

static void deliver(Sampler *s, SampleDone *done, void *ctx)
{
    while (s->delivered < s->total && s->sample[s->delivered].finished) {
        while (s->out_copy == s->req[s->out_request].copies) {
            s->out_request++;
            s->out_copy = 0;
        }
        Sample *x = &s->sample[s->delivered++];
        done(ctx, s->out_request, s->out_copy++, x->ids, x->logp, x->n, x->stopped);
        free(x->ids);
        free(x->logp);
        x->ids = NULL;
        x->logp = NULL;
    }
}

static void release(Sampler *s)
{
    for (int i = 0; i < s->total; i++) {
        free(s->sample[i].ids);
        free(s->sample[i].logp);
    }
    decoder_free(s->decoder);
    free(s->sample);
    free(s->row);
    free(s->work);
    free(s->slot);
}

static int run(Sampler *s, SampleDone *done, void *ctx, Error *err)
{
    while (s->delivered < s->total) {
        if (stop_requested())
            return error_set(err, ERROR_STOPPED, "sampling was stopped by signal %d",
                             stop_requested());
        if (admit(s, err)) return -1;
        if (!s->active)
            return error_set(err, ERROR_MEMORY,
                             "there is no room for the keys and values of one sample");
        retire(s); /* the first token may end a sample */
        deliver(s, done, ctx);
        if (s->active && step(s, err)) return -1;
        retire(s);
        deliver(s, done, ctx);
    }
    return 0;
}

int model_sample(Model *m, const SampleRequest *req, int n, const SampleOptions *opt,
                 SampleDone *done, void *ctx, Error *err)
{
    if (check(m, req, n, opt, err)) return -1;
    int64_t total = 0;
    DecoderPlan plan = {.max_new = opt->max_new, .cache_tokens = opt->cache_tokens};
    for (int i = 0; i < n; i++) {
        total += req[i].copies;
        if (req[i].prompt_len > plan.prompt) plan.prompt = req[i].prompt_len;
    }
    if (total > INT32_MAX)
        return error_set(err, ERROR_LIMIT, "%lld samples are too many for one call",
                         (long long)total);
    if (!total) return 0;
    plan.rows = opt->batch < total ? opt->batch : (int)total;
    plan.law = (DrawLaw){opt->temperature, opt->top_p, m->c.vocab, opt->banned,
                         opt->n_banned,    opt->top_k, opt->min_p};
    Sampler s = {.m = m,
                 .req = req,
                 .opt = opt,
                 .n_requests = n,
                 .total = (int)total,
                 .rows = plan.rows,
                 .prefilled = -1};
    s.sample = memory_array((size_t)total, sizeof *s.sample);
    s.row = memory_array((size_t)plan.rows, sizeof *s.row);
    s.work = memory_array((size_t)plan.rows, sizeof *s.work);
    s.slot = memory_array((size_t)plan.rows, sizeof *s.slot);
    for (int i = 0; i < plan.rows; i++) s.slot[s.free_slots++] = plan.rows - 1 - i;
    int rc = decoder_create(m, &plan, &s.decoder, err);
    if (!rc) rc = run(&s, done, ctx, err);
    release(&s);
    return rc;
}
