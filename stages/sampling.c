#include "stages/sampling.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "llm/llm.h"
#include "stages/batchlog.h"
#include "stages/policy.h"
#include "stages/promptset.h"

enum { MAX_BANNED = 65536, MAX_ANSWER = 1 << 22 };

static uint64_t seed_of(uint64_t seed, const PromptItem *p, int copy)
{
    Random r;
    random_init(&r, seed ^ random_hash(p->id, strlen(p->id)), (uint64_t)copy);
    return random_u64(&r);
}

/* ---- the native engine ---- */

typedef struct {
    const SamplingOptions *o;
    const Policy *policy;
    const PromptSet *prompts;
    BatchLog *log;
    long first_row;                /* of the chunk */
    const long *request_prompt;    /* prompt of each request of the chunk */
    const int *request_copy;       /* its first copy */
    int32_t *const *prompt_ids;
    const size_t *prompt_len;
    Error *err;
    int failed;
} Chunk;

static void record_id_list(Record *r, const char *key, const int32_t *ids, size_t n)
{
    int64_t *wide = memory_array(n, sizeof *wide);
    for (size_t i = 0; i < n; i++) wide[i] = ids[i];
    record_ints(r, key, wide, n);
    free(wide);
}

static void on_sample(void *ctx, int request, int copy, const int32_t *ids, const float *logp, int n, int stopped)
{
    Chunk *c = ctx;
    if (c->failed) return;
    long which = c->request_prompt[request];
    const PromptItem *p = &c->prompts->items[which];
    int trial = c->request_copy[request] + copy;
    Buffer text;
    buffer_init(&text, MAX_ANSWER);
    c->failed = tokenizer_decode(c->policy->tokenizer, ids, (size_t)n, 0, &text, c->err);
    Record *r = promptset_answer(p, c->o->stage, "native", trial, seed_of(c->o->seed, p, trial), stopped ? "stop" : "length",
                                 text.data, text.len);
    double *lp = memory_array((size_t)n, sizeof *lp);
    for (int i = 0; i < n; i++) lp[i] = logp[i];
    record_floats(r, "logprobs", lp, (size_t)n);
    record_id_list(r, "ids", ids, (size_t)n);
    record_id_list(r, "prompt_ids", c->prompt_ids[which], c->prompt_len[which]);
    if (!c->failed) c->failed = batchlog_add(c->log, r, c->err);
    free(lp);
    record_free(r);
    buffer_release(&text);
}

/* Rows [first, last) in the order of (prompt, copy): one batch of the journal. */
static int run_chunk(Chunk *c, long first, long last, const SampleOptions *so, Error *err)
{
    int copies = c->o->copies;
    long rows = last - first;
    SampleRequest *req = memory_array((size_t)rows, sizeof *req);
    long *prompt = memory_array((size_t)rows, sizeof *prompt);
    int *copy = memory_array((size_t)rows, sizeof *copy);
    uint64_t *seeds = memory_array((size_t)rows, sizeof *seeds);
    int n = 0;
    for (long row = first; row < last; row++) {
        long p = row / copies;
        seeds[row - first] = seed_of(c->o->seed, &c->prompts->items[p], (int)(row % copies));
        if (n == 0 || prompt[n - 1] != p) {
            prompt[n] = p;
            copy[n] = (int)(row % copies);
            req[n] = (SampleRequest){c->prompt_ids[p], (int)c->prompt_len[p], 0, &seeds[row - first]};
            n++;
        }
        req[n - 1].copies++;
    }
    c->request_prompt = prompt;
    c->request_copy = copy;
    c->err = err;
    int rc = model_sample(c->policy->model, req, n, so, on_sample, c, err);
    free(req);
    free(prompt);
    free(copy);
    free(seeds);
    return rc || c->failed ? -1 : batchlog_commit(c->log, err);
}

static int run_chunks(Chunk *c, const SampleOptions *so, Error *err)
{
    long total = c->prompts->n * c->o->copies, row = c->log->n_batches * c->o->batch;
    Progress p;
    progress_start(&p, "sample", "samples", row < total ? row : total, total);
    for (; row < total; row += c->o->batch) {
        if (stop_requested()) return error_set(err, "stopped after %ld of %ld samples; the same command continues", row, total);
        long last = row + c->o->batch < total ? row + c->o->batch : total;
        if (run_chunk(c, row, last, so, err)) return -1;
        progress_set(&p, last);
    }
    progress_end(&p);
    return 0;
}

static int encode_prompts(const Policy *policy, const PromptSet *prompts, int32_t **ids, size_t *len, int max_new, Error *err)
{
    int limit = model_config(policy->model)->max_position;
    for (long i = 0; i < prompts->n; i++) {
        const PromptItem *p = &prompts->items[i];
        if (policy_encode_prompt(policy, p->text, strlen(p->text), &ids[i], &len[i], err)) return -1;
        if ((long)len[i] + max_new > limit)
            return error_set(err, "prompt %s has %zu tokens; with %d new ones that is more than the model's %d positions", p->id,
                             len[i], max_new, limit);
    }
    return 0;
}

int sampling_native(const char *model_dir, const SamplingOptions *o, const ArtifactSpec *spec, Error *err)
{
    PromptSet prompts;
    Policy policy;
    BatchLog log;
    if (promptset_load(o->prompts, &prompts, err)) return -1;
    if (policy_load(model_dir, &policy, err)) {
        promptset_release(&prompts);
        return -1;
    }
    int32_t **ids = memory_array((size_t)prompts.n, sizeof *ids);
    size_t *len = memory_array((size_t)prompts.n, sizeof *len);
    int *banned = memory_array(MAX_BANNED, sizeof *banned);
    Chunk c = {.o = o, .policy = &policy, .prompts = &prompts, .log = &log, .prompt_ids = ids, .prompt_len = len};
    SampleOptions so = {(float)o->temperature, (float)o->top_p, o->max_new, o->batch, banned, 0};
    so.n_banned = policy_banned(&policy, banned, MAX_BANNED);
    int rc = encode_prompts(&policy, &prompts, ids, len, o->max_new, err);
    if (!rc) rc = batchlog_open(&log, o->output, spec, NULL, NULL, err);
    if (!rc && run_chunks(&c, &so, err)) {
        batchlog_keep(&log, NULL);
        rc = -1;
    } else if (!rc) {
        rc = batchlog_finish(&log, err);
    }
    for (long i = 0; i < prompts.n; i++) free(ids[i]);
    free(ids);
    free(len);
    free(banned);
    policy_release(&policy);
    promptset_release(&prompts);
    return rc;
}

/* ---- an endpoint: answers come in any order; the artifact is in the order of (prompt, copy) ---- */

typedef struct {
    const SamplingOptions *o;
    const char *policy;
    const PromptSet *prompts;
    BatchLog log;                  /* of finished answers, in order of completion */
    Record **done;                 /* by row */
    long n_rows;
} Remote;

static long row_of(const Remote *r, const char *id, size_t len)
{
    for (long row = 0; row < r->n_rows; row++) {
        char name[512];
        int n = snprintf(name, sizeof name, "%s/%ld", r->prompts->items[row / r->o->copies].id, row % r->o->copies);
        if ((size_t)n == len && !memcmp(name, id, len)) return row;
    }
    return -1;
}

static int remember(void *ctx, const void *record, size_t len, Error *err)
{
    Remote *r = ctx;
    msgpack_zone zone;
    msgpack_zone_init(&zone, 8192);
    View v;
    const char *id;
    size_t n;
    int rc = view_decode(record, len, r->o->output, &zone, &v, err) || view_text(&v, "id", &id, &n, err);
    long row = rc ? -1 : row_of(r, id, n);
    if (row >= 0 && !r->done[row]) {
        r->done[row] = record_new();
        record_copy(r->done[row], &v);
    }
    msgpack_zone_destroy(&zone);
    return rc ? -1 : 0;
}

static const char *next_prompt(void *ctx, size_t index, uint64_t *seed)
{
    Remote *r = ctx;
    if (r->done[index]) return NULL;
    const PromptItem *p = &r->prompts->items[(long)index / r->o->copies];
    *seed = seed_of(r->o->seed, p, (int)((long)index % r->o->copies)) >> 33;
    return p->text;
}

static int on_reply(void *ctx, const LlmReply *reply, Error *err)
{
    Remote *r = ctx;
    const PromptItem *p = &r->prompts->items[(long)reply->index / r->o->copies];
    int copy = (int)((long)reply->index % r->o->copies);
    const char *text = reply->text ? reply->text : "";
    if (reply->error) log_warn("%s/%d: %s", p->id, copy, reply->error);
    Record *rec = promptset_answer(p, r->o->stage, r->policy, copy, seed_of(r->o->seed, p, copy), reply->finish, text,
                                   strlen(text));
    Record *usage = record_map(rec, "usage");
    record_int(usage, "prompt_tokens", reply->prompt_tokens);
    record_int(usage, "completion_tokens", reply->completion_tokens);
    r->done[reply->index] = rec;
    if (!reply->text) return 0; /* not journalled: a resumed run asks again */
    return batchlog_add(&r->log, rec, err) || batchlog_commit(&r->log, err) ? -1 : 0;
}

static int write_rows(const Remote *r, const ArtifactSpec *spec, Error *err)
{
    ArtifactWriter *w;
    if (artifact_create(r->o->output, spec, &w, err)) return -1;
    for (long i = 0; i < r->n_rows; i++)
        if (artifact_write(w, r->done[i], err)) {
            artifact_abandon(w);
            return -1;
        }
    return artifact_finish(w, err);
}

int sampling_endpoint(const char *policy, const SamplingOptions *o, const ArtifactSpec *spec, Error *err)
{
    PromptSet prompts;
    if (promptset_load(o->prompts, &prompts, err)) return -1;
    Remote r = {.o = o, .policy = policy, .prompts = &prompts, .n_rows = prompts.n * o->copies};
    r.done = memory_array((size_t)r.n_rows, sizeof *r.done);
    const char *model = strchr(policy, ':') + 1;
    LlmOptions lo = {.api = policy[0] == 'a' ? LLM_ANTHROPIC : LLM_OPENAI, .model = model, .temperature = o->temperature,
                     .max_tokens = o->max_new, .concurrency = o->concurrency, .connect_timeout_s = 10,
                     .request_timeout_s = 600, .give_up_s = 900};
    int rc = batchlog_open(&r.log, o->output, spec, remember, &r, err);
    if (!rc && llm_run(&lo, (size_t)r.n_rows, next_prompt, on_reply, &r, err)) {
        batchlog_keep(&r.log, NULL);
        rc = -1;
    } else if (!rc) {
        rc = write_rows(&r, spec, err);
        int closed = rc ? batchlog_keep(&r.log, NULL) : batchlog_discard(&r.log, err);
        if (!rc) rc = closed;
    }
    for (long i = 0; i < r.n_rows; i++)
        if (r.done[i]) record_free(r.done[i]);
    free(r.done);
    promptset_release(&prompts);
    return rc;
}
