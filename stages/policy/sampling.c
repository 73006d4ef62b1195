#include "stages/policy/sampling.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "llm/adapter.h"
#include "model/core/ranks.h"
#include "model/sampler.h"
#include "stages/data/batchlog.h"
#include "stages/data/manifest.h"
#include "stages/data/promptset.h"
#include "stages/policy/policy.h"

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
    long first_row, last_row;   /* that this process samples */
    const long *request_prompt; /* prompt of each request of the chunk */
    const int *request_copy;    /* its first copy */
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

/* Where the stop text is in the answer: its ids are cut after the token that completes it, its text
 * before it. The engine stops by ids, which cut the same text in more than one way. Returns 1 when
 * it is there. */
static int cut_at_stop(const Chunk *c, const int32_t *ids, int *n, Buffer *text)
{
    const char *stop = c->o->stop,
               *at = stop ? memmem(text->data, text->len, stop, strlen(stop)) : NULL;
    if (!at) return 0;
    size_t keep = (size_t)(at - text->data), end = keep + strlen(stop);
    int low = 1, high = *n; /* the fewest ids whose text reaches the end of it */
    while (low < high && !c->failed) {
        int middle = (low + high) / 2;
        Buffer b;
        buffer_init(&b, MAX_ANSWER);
        int rc = tokenizer_decode(c->policy->tokenizer, ids, (size_t)middle, 0, &b, NULL);
        if (rc || b.len >= end)
            high = middle;
        else
            low = middle + 1;
        buffer_release(&b);
    }
    *n = low;
    text->len = keep;
    text->data[keep] = 0;
    return 1;
}

static void on_sample(void *ctx, int request, int copy, const int32_t *ids, const float *logp,
                      int n, int stopped)
{
    Chunk *c = ctx;
    if (c->failed) return;
    long which = c->request_prompt[request];
    const PromptItem *p = &c->prompts->items[which];
    int trial = c->request_copy[request] + copy;
    Buffer text;
    buffer_init(&text, MAX_ANSWER);
    c->failed = tokenizer_decode(c->policy->tokenizer, ids, (size_t)n, 0, &text, c->err);
    if (!c->failed) stopped |= cut_at_stop(c, ids, &n, &text);
    Record *r = promptset_answer(p, c->o->stage, "native", trial, seed_of(c->o->seed, p, trial),
                                 stopped ? "stop" : "length", text.data, text.len);
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
            req[n] =
                (SampleRequest){c->prompt_ids[p], (int)c->prompt_len[p], 0, &seeds[row - first]};
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
    long total = c->last_row - c->first_row, done = c->log->n_batches * c->o->batch;
    Progress p;
    progress_start(&p, "sample", "samples", done < total ? done : total, total);
    for (; done < total; done += c->o->batch) {
        if (stop_requested())
            return error_set(err, ERROR_INVALID,
                             "stopped after %ld of %ld samples; the same command continues", done,
                             total);
        long end = done + c->o->batch < total ? done + c->o->batch : total;
        if (run_chunk(c, c->first_row + done, c->first_row + end, so, err)) return -1;
        progress_set(&p, end);
    }
    progress_end(&p);
    return 0;
}

/* A prompt whose kernels are longer than the model can be shown is left out: the task's others go
 * on, and the pool may hold what a teacher wrote at length for as long as the run lives. */
static int encode_prompts(const Policy *policy, PromptSet *prompts, int32_t **ids, size_t *len,
                          int max_new, Error *err)
{
    int limit = model_config(policy->model)->max_position;
    long all = prompts->n;
    for (long i = 0; i < prompts->n;) {
        const PromptItem *p = &prompts->items[i];
        if (policy_encode_prompt(policy, p->text, strlen(p->text), &ids[i], &len[i], err))
            return -1;
        if ((long)len[i] + max_new <= limit) {
            i++;
            continue;
        }
        if (!p->contrastive)
            return error_set(err, ERROR_LIMIT,
                             "prompt %s has %zu tokens; with %d new ones that is more than the "
                             "model's %d positions",
                             p->id, len[i], max_new, limit);
        free(ids[i]);
        ids[i] = NULL;
        promptset_remove(prompts, i);
    }
    if (all && !prompts->n)
        return error_set(err, ERROR_LIMIT,
                         "all %ld prompts are longer than the model's %d positions with the "
                         "kernels that they show and %d new tokens: "
                         "fewer exemplars or fewer new tokens leave room",
                         all, limit, max_new);
    if (prompts->n < all)
        log_warn("%ld of %ld prompts are left out: with the kernels that they show and %d new "
                 "tokens they are longer than the model's "
                 "%d positions",
                 all - prompts->n, all, max_new, limit);
    return 0;
}

/* The stop text's ids, by itself and after a blank: a word's first token often has the blank before
 * it. */
static int encode_stop(const Policy *policy, const char *text, StopSequence stops[2], Error *err)
{
    if (!text) return 0;
    for (int i = 0; i < 2; i++) {
        char *with = memory_printf("%s%s", i ? " " : "", text);
        int32_t *ids = NULL;
        size_t n = 0;
        int rc = tokenizer_encode(policy->tokenizer, with, strlen(with), &ids, &n, err);
        stops[i] = (StopSequence){ids, (int)n};
        free(with);
        if (rc) return -1;
    }
    return 0;
}

/* The rows of this process, into the artifact `output`. */
static int sample_rows(const char *model_dir, const SamplingOptions *o, PromptSet *prompts,
                       const char *output, const ArtifactSpec *spec, Error *err)
{
    Policy policy;
    BatchLog log;
    if (engine_policy(o->engine, model_dir, &policy, err)) return -1;
    int32_t **ids = memory_array((size_t)prompts->n, sizeof *ids);
    size_t *len = memory_array((size_t)prompts->n, sizeof *len);
    StopSequence stops[2] = {{0}};
    int *banned = memory_array(MAX_BANNED, sizeof *banned);
    Chunk c = {.o = o,
               .policy = &policy,
               .prompts = prompts,
               .log = &log,
               .prompt_ids = ids,
               .prompt_len = len};
    SampleOptions so = {.temperature = (float)o->temperature,
                        .top_p = (float)o->top_p,
                        .max_new = o->max_new,
                        .batch = o->batch,
                        .banned = banned,
                        .top_k = o->top_k,
                        .min_p = (float)o->min_p};
    so.n_banned = policy_banned(&policy, banned, MAX_BANNED);
    int rc = encode_prompts(&policy, prompts, ids, len, o->max_new, err);
    c.first_row = prompts->n * o->copies * ranks_rank() / ranks_size();
    c.last_row = prompts->n * o->copies * (ranks_rank() + 1) / ranks_size();
    if (!rc) rc = encode_stop(&policy, o->stop, stops, err);
    if (o->stop) so.stops = stops, so.n_stops = 2;
    if (!rc) rc = batchlog_open(&log, output, spec, NULL, NULL, err);
    if (!rc && run_chunks(&c, &so, err)) {
        batchlog_keep(&log, NULL);
        rc = -1;
    } else if (!rc) {
        rc = batchlog_finish(&log, err);
    }
    for (long i = 0; i < prompts->n; i++) free(ids[i]);
    free(ids);
    free(len);
    free(banned);
    for (int i = 0; i < 2; i++) free((int32_t *)(uintptr_t)stops[i].ids);
    policy_release(&policy);
    return rc;
}

/* The parts, which the processes have written, one after another. */
static int join_parts(const SamplingOptions *o, const ArtifactSpec *spec, Error *err)
{
    char path[4096];
    ArtifactWriter *w;
    View v;
    int rc = 0;
    if (artifact_create(o->output, spec, &w, err)) return -1;
    for (int part = 0; !rc && part < ranks_size(); part++) {
        ArtifactReader *r = NULL;
        const void *data;
        size_t len;
        int more = 0;
        snprintf(path, sizeof path, "%s.part-%d", o->output, part);
        rc = artifact_open(path, "samples", &r, err);
        for (long i = 0;
             !rc && (more = artifact_next(r, &v, err)) == 1 && !artifact_raw(r, i, &data, &len);
             i++)
            rc = artifact_write_encoded(w, data, len, err);
        if (more < 0) rc = -1;
        if (r) artifact_close(r);
    }
    if (rc) artifact_abandon(w);
    if (rc || artifact_finish(w, err)) return -1;
    for (int part = 0; part < ranks_size(); part++) {
        snprintf(path, sizeof path, "%s.part-%d", o->output, part);
        file_remove_tree(path, NULL);
    }
    return 0;
}

/* Several GPUs: each process samples its rows into a part of its own, with a journal of its own. */
static int sample_part(const char *model_dir, const SamplingOptions *o, PromptSet *prompts,
                       const ArtifactSpec *spec, Error *err)
{
    static char key[] = "~part";
    char path[4096], part[32];
    double together = 1;
    ArtifactSpec s = *spec;
    snprintf(path, sizeof path, "%s.part-%d", o->output, ranks_rank());
    snprintf(part, sizeof part, "%d of %d", ranks_rank(), ranks_size());
    if (s.n_config == ARTIFACT_MAX_CONFIG)
        return error_set(err, ERROR_MEMORY, "no room for the part in the header");
    s.config[s.n_config].key = key;
    s.config[s.n_config++].value = part;
    if (!artifact_same(&s, path) && sample_rows(model_dir, o, prompts, path, &s, err)) return -1;
    if (ranks_host_sum(&together, 1, err)) return -1; /* all have come so far */
    return !ranks_rank() && join_parts(o, spec, err) ? -1 : engine_finish(err);
}

int sampling_native(const char *model_dir, const SamplingOptions *o, const ArtifactSpec *spec,
                    Error *err)
{
    PromptSet prompts;
    if (promptset_load(o->prompts, &prompts, err)) return -1;
    int rc = ranks_size() > 1 ? sample_part(model_dir, o, &prompts, spec, err)
                              : sample_rows(model_dir, o, &prompts, o->output, spec, err);
    promptset_release(&prompts);
    return rc;
}

/* ---- an endpoint: answers come in any order; the artifact is in the order of (prompt, copy) ----
 */

typedef struct {
    const SamplingOptions *o;
    const char *policy;
    const PromptSet *prompts;
    BatchLog log;  /* of finished answers, in order of completion */
    Record **done; /* by row */
    long n_rows, answered, without_ids;
} Remote;

static long row_of(const Remote *r, const char *id, size_t len)
{
    for (long row = 0; row < r->n_rows; row++) {
        char name[512];
        int n = snprintf(name, sizeof name, "%s/%ld", r->prompts->items[row / r->o->copies].id,
                         row % r->o->copies);
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
    int rc =
        view_decode(record, len, r->o->output, &zone, &v, err) || view_text(&v, "id", &id, &n, err);
    long row = rc ? -1 : row_of(r, id, n);
    if (row >= 0 && !r->done[row]) {
        r->done[row] = record_new();
        record_copy(r->done[row], &v);
        r->answered++;
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
    Record *rec = promptset_answer(p, r->o->stage, r->policy, copy, seed_of(r->o->seed, p, copy),
                                   reply->finish, text, strlen(text));
    Record *usage = record_map(rec, "usage");
    record_int(usage, "prompt_tokens", reply->prompt_tokens);
    record_int(usage, "completion_tokens", reply->completion_tokens);
    if (reply->ids) record_id_list(rec, "ids", reply->ids, reply->n_ids);
    if (reply->prompt_ids)
        record_id_list(rec, "prompt_ids", reply->prompt_ids, reply->n_prompt_ids);
    if (reply->ids && reply->logprobs)
        record_floats(rec, "logprobs", reply->logprobs, reply->n_ids);
    r->answered += reply->text != NULL;
    r->without_ids += reply->text && !reply->ids;
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

/* The adapter's name: of its content, so that what a server has loaded under it is this one; and of
 * who asks, so that none unloads what another still uses. */
static int adapter_name(const SamplingOptions *o, char name[64], char path[4096], Error *err)
{
    char hex[DIGEST_HEX], asker[DIGEST_HEX], config[4096];
    Digester g;
    Digest d;
    snprintf(config, sizeof config, "%s/adapter_config.json", o->adapter);
    if (!file_exists(config))
        return error_set(err, ERROR_INVALID,
                         "%s holds whole weights, not an adapter: an endpoint can be given "
                         "adapters only (LORA=16)",
                         o->adapter);
    if (!realpath(o->adapter, path)) return error_errno(err, "cannot find %s", o->adapter);
    if (manifest_digest(path, hex, err)) return -1;
    digester_init(&g);
    digester_add_field(&g, path, strlen(path));
    digester_add_field(&g, o->output, strlen(o->output));
    digester_finish(&g, &d);
    digest_hex(&d, asker);
    snprintf(name, 64, "quern-%.12s-%.8s", hex, asker);
    return 0;
}

/* Asked under the adapter's name. A server that was started again has lost it: its refusal names
 * it, and it is given anew, as long as answers came since the last time. */
static int ask_adapter(Remote *r, const LlmOptions *lo, const char *name, const char *path,
                       LlmAdapter *adapter, Error *err)
{
    LlmOptions with = *lo;
    with.model = adapter->model;
    with.want_ids = 1;
    for (;;) {
        long before = r->answered;
        if (llm_adapter_load(lo, name, path, adapter, err)) return -1;
        log_info("the endpoint answers with the adapter %s, %s", name, path);
        int rc = llm_run(&with, (size_t)r->n_rows, next_prompt, on_reply, r, err);
        if (!rc || r->answered == before || !strstr(err->text, name)) return rc;
        log_warn("%s; it is given the adapter again", err->text);
    }
}

/* All rows, with the adapter loaded for as long as it takes. */
static int ask(Remote *r, const LlmOptions *lo, Error *err)
{
    char name[64], path[4096];
    LlmAdapter adapter = {0};
    Error later;
    if (!r->o->adapter) return llm_run(lo, (size_t)r->n_rows, next_prompt, on_reply, r, err);
    if (adapter_name(r->o, name, path, err)) return -1;
    int rc = ask_adapter(r, lo, name, path, &adapter, err);
    if (*adapter.model && llm_adapter_unload(lo, &adapter, name, &later))
        log_warn("%s", later.text);
    if (!rc && r->without_ids)
        log_warn("%ld answers came without token ids: what learns from them encodes their text, "
                 "which may cut it into "
                 "other tokens than were sampled",
                 r->without_ids);
    return rc;
}

/* Each was refused by itself, for its length say: the settings are wrong, not a prompt. */
static int none_answered(const Remote *r, Error *err)
{
    return !r->n_rows || r->answered
               ? 0
               : error_set(err, ERROR_INVALID, "none of %ld requests was answered", r->n_rows);
}

int sampling_endpoint(const char *policy, const SamplingOptions *o, const ArtifactSpec *spec,
                      Error *err)
{
    PromptSet prompts;
    if (promptset_load(o->prompts, &prompts, err)) return -1;
    Remote r = {.o = o, .policy = policy, .prompts = &prompts, .n_rows = prompts.n * o->copies};
    r.done = memory_array((size_t)r.n_rows, sizeof *r.done);
    const char *model = strchr(policy, ':') + 1;
    LlmOptions lo = {.api = policy[0] == 'a' ? LLM_ANTHROPIC : LLM_OPENAI,
                     .model = model,
                     .temperature = o->temperature,
                     .top_k = o->top_k,
                     .min_p = o->min_p,
                     .stop = o->stop,
                     .top_p = o->top_p < 1 ? o->top_p : 0,
                     .max_tokens = o->max_new,
                     .concurrency = o->concurrency,
                     .connect_timeout_s = 10,
                     .request_timeout_s = 600};
    int rc = batchlog_open(&r.log, o->output, spec, remember, &r, err);
    if (!rc && (ask(&r, &lo, err) || none_answered(&r, err))) {
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
