/* Batched sampling. Rows are refilled as samples end, so that no step is spent on a finished one; a
 * row's bits depend on its prompt, its seed and the options alone, never on what is decoded beside
 * it, so the order of work cannot be seen in the results. They are handed over in order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "model/decoder.h"
#include "model/draw.h"

/* The keys and values of one prompt, shared by its copies; its last logits start each of them. */
typedef struct {
    KvStore kv;
    float *logits;
    int users;
} Prefix;

typedef struct {
    int32_t *ids;
    float *logp;
    int n, stopped, finished;
} Sample;

typedef struct {
    int sample, request, copy;     /* sample: number over all requests */
    Prefix *prefix;
    KvStore own;
} Row;

typedef struct {
    Model *m;
    const SampleRequest *req;
    const SampleOptions *opt;
    DrawLaw law;
    int n_requests, total, longest_prompt;
    Prefix *prefix;                /* [n_requests] */
    Sample *sample;                /* [total] */
    Row *row;                      /* the first `active` are in work */
    int active, next_request, next_copy, next_sample;
    int delivered, out_request, out_copy;
    KvRow *view;
    int32_t *last;
    float *probs;                  /* [batch][vocab] */
    DrawCandidate *order;          /* [batch][vocab], for top_p < 1 */
    Decoder decoder;
    Acts acts;
    TokenBatch tokens;
} Sampler;

static int check(const Model *m, const SampleRequest *req, int n, const SampleOptions *opt, Error *err)
{
    if (!(opt->temperature >= 0) || !isfinite(opt->temperature))
        return error_set(err, "the temperature is expected to be 0 or above, found %g", (double)opt->temperature);
    if (!(opt->top_p > 0 && opt->top_p <= 1))
        return error_set(err, "top_p is expected to be above 0, at most 1, found %g", (double)opt->top_p);
    if (opt->max_new < 1 || opt->batch < 1 || opt->batch > 65536)
        return error_set(err, "max_new %d and batch %d are expected to be at least 1", opt->max_new, opt->batch);
    unsigned char *banned = memory_alloc((size_t)m->c.vocab);
    int left = m->c.vocab, bad = -1;
    for (int i = 0; i < opt->n_banned; i++)
        if (opt->banned[i] < 0 || opt->banned[i] >= m->c.vocab) bad = i;
        else if (!banned[opt->banned[i]]++) left--;
    free(banned);
    if (bad >= 0) return error_set(err, "the banned id %d is not in 0..%d", opt->banned[bad], m->c.vocab - 1);
    if (!left) return error_set(err, "every id is banned: nothing can be sampled");
    for (int i = 0; i < n; i++) {
        if (req[i].copies < 0) return error_set(err, "request %d asks for %d samples", i, req[i].copies);
        Sequence s = {req[i].prompt, req[i].prompt_len};
        if (batch_check(m, &s, 1, err)) return error_prefix(err, "request %d", i);
        if (req[i].prompt_len > m->c.max_position - opt->max_new)
            return error_set(err, "request %d: %d tokens of prompt and %d new ones exceed the model's %d positions", i,
                             req[i].prompt_len, opt->max_new, m->c.max_position);
    }
    return 0;
}

/* One prompt at a time: the shapes of its products, and so its bits, are its own. */
static void prefill(Sampler *s, int request)
{
    const SampleRequest *r = &s->req[request];
    Prefix *p = &s->prefix[request];
    Sequence seq = {r->prompt, r->prompt_len};
    batch_pack(&s->tokens, &seq, 1);
    acts_reserve(&s->acts, s->m, s->longest_prompt, 0);
    kv_create(&p->kv, s->m, r->prompt_len);
    forward_hidden(s->m, &s->acts, &s->tokens, &p->kv);
    p->kv.len = r->prompt_len;
    p->users = r->copies;
    size_t vocab = (size_t)s->m->c.vocab;
    decoder_logits(&s->decoder, s->acts.normed + (size_t)(r->prompt_len - 1) * (size_t)s->m->c.hidden, 1);
    p->logits = memory_array(vocab, sizeof *p->logits);
    memcpy(p->logits, s->decoder.logits, vocab * sizeof *p->logits);
}

static void drop_prefix(Sampler *s, Prefix *p)
{
    if (--p->users) return;
    kv_release(&p->kv, s->m);
    free(p->logits);
    p->logits = NULL;
}

static void draw(Sampler *s, int at, const float *logits)
{
    const Row *row = &s->row[at];
    Sample *out = &s->sample[row->sample];
    size_t vocab = (size_t)s->m->c.vocab;
    Random r;
    random_init(&r, s->req[row->request].seeds[row->copy], (uint64_t)out->n);
    int32_t id = draw_token(&s->law, logits, random_uniform(&r), s->probs + (size_t)at * vocab,
                            s->order ? s->order + (size_t)at * vocab : NULL, &out->logp[out->n]);
    out->ids[out->n++] = id;
    s->last[at] = id;
    for (int i = 0; i < s->m->c.n_eos; i++)
        if (id == s->m->c.eos[i]) out->stopped = 1;
    out->finished = out->stopped || out->n == s->opt->max_new;
}

static void draw_rows(void *ctx, int first, int rows)
{
    Sampler *s = ctx;
    for (int r = first; r < first + rows; r++) draw(s, r, s->decoder.logits + (size_t)r * (size_t)s->m->c.vocab);
}

/* Samples that ended leave; the last row takes their place. */
static void retire(Sampler *s)
{
    for (int i = 0; i < s->active;) {
        if (!s->sample[s->row[i].sample].finished) {
            i++;
            continue;
        }
        Sample *x = &s->sample[s->row[i].sample]; /* may wait long for its turn: no more than it needs */
        x->ids = memory_grow(x->ids, (size_t)x->n, sizeof *x->ids);
        x->logp = memory_grow(x->logp, (size_t)x->n, sizeof *x->logp);
        drop_prefix(s, s->row[i].prefix);
        Row gone = s->row[i];
        int last = --s->active;
        s->row[i] = s->row[last];
        s->row[last] = gone; /* keeps its memory for the next sample */
        s->last[i] = s->last[last];
    }
}

static int admit(Sampler *s)
{
    while (s->next_request < s->n_requests && s->next_copy == s->req[s->next_request].copies) {
        s->next_request++;
        s->next_copy = 0;
    }
    if (s->next_request == s->n_requests) return 0;
    if (!s->next_copy) prefill(s, s->next_request);
    int at = s->active++;
    Row *row = &s->row[at];
    row->request = s->next_request;
    row->copy = s->next_copy++;
    row->sample = s->next_sample++;
    row->prefix = &s->prefix[row->request];
    if (!row->own.k) kv_create(&row->own, s->m, s->opt->max_new);
    row->own.len = 0;
    Sample *out = &s->sample[row->sample];
    out->ids = memory_array((size_t)s->opt->max_new, sizeof *out->ids);
    out->logp = memory_array((size_t)s->opt->max_new, sizeof *out->logp);
    draw(s, at, row->prefix->logits);
    return 1;
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
    for (int i = 0; i < s->opt->batch && i < s->total; i++) kv_release(&s->row[i].own, s->m);
    for (int i = 0; i < s->n_requests; i++) {
        kv_release(&s->prefix[i].kv, s->m);
        free(s->prefix[i].logits);
    }
    for (int i = 0; i < s->total; i++) {
        free(s->sample[i].ids);
        free(s->sample[i].logp);
    }
    decoder_release(&s->decoder);
    acts_release(&s->acts, s->m);
    batch_release(&s->tokens);
    free(s->prefix);
    free(s->sample);
    free(s->row);
    free(s->view);
    free(s->last);
    free(s->probs);
    free(s->order);
}

static int run(Sampler *s, SampleDone *done, void *ctx, Error *err)
{
    int rows = s->opt->batch < s->total ? s->opt->batch : s->total;
    while (s->delivered < s->total) {
        if (stop_requested()) return error_set(err, "sampling was stopped by signal %d", stop_requested());
        while (s->active < rows && admit(s)) {}
        retire(s); /* a first token may end a sample */
        deliver(s, done, ctx);
        for (int i = 0; i < s->active; i++) s->view[i] = (KvRow){&s->row[i].prefix->kv, &s->row[i].own};
        if (s->active) decoder_step(&s->decoder, s->last, s->view, s->active, draw_rows, s);
        retire(s);
        deliver(s, done, ctx);
    }
    return 0;
}

int model_sample(Model *m, const SampleRequest *req, int n, const SampleOptions *opt, SampleDone *done, void *ctx,
                 Error *err)
{
    if (check(m, req, n, opt, err)) return -1;
    int64_t total = 0;
    int longest = 0;
    for (int i = 0; i < n; i++) {
        total += req[i].copies;
        if (req[i].prompt_len > longest) longest = req[i].prompt_len;
    }
    if (total > INT32_MAX) return error_set(err, "%lld samples are too many for one call", (long long)total);
    if (!total) return 0;
    int rows = opt->batch < total ? opt->batch : (int)total;
    size_t wide = (size_t)rows, vocab = (size_t)m->c.vocab;
    Sampler s = {.m = m, .req = req, .opt = opt, .n_requests = n, .total = (int)total, .longest_prompt = longest};
    s.law = (DrawLaw){opt->temperature, opt->top_p, m->c.vocab, opt->banned, opt->n_banned};
    s.prefix = memory_array((size_t)n, sizeof *s.prefix);
    s.sample = memory_array((size_t)total, sizeof *s.sample);
    s.row = memory_array(wide, sizeof *s.row);
    s.view = memory_array(wide, sizeof *s.view);
    s.last = memory_array(wide, sizeof *s.last);
    s.probs = memory_array(wide * vocab, sizeof *s.probs);
    if (opt->top_p < 1) s.order = memory_array(wide * vocab, sizeof *s.order);
    decoder_create(&s.decoder, m, rows, longest + opt->max_new);
    int rc = run(&s, done, ctx, err);
    release(&s);
    return rc;
}
