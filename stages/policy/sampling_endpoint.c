/* Sampling from an endpoint. The answers come in any order and each is in the journal before the
 * next one is taken; the artifact is in the order of (prompt, copy). */
#include "stages/policy/sampling.h"

#include <stdlib.h>
#include <string.h>

#include "artifacts/manifest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "llm/adapter.h"
#include "llm/llm.h"
#include "stages/data/batchlog.h"
#include "stages/data/promptset.h"

typedef struct {
    const SamplingOptions *o;
    const char *policy;
    const PromptSet *prompts;
    BatchLog log;  /* finished answers in order of completion */
    Record **done; /* of each row; NULL: not answered yet */
    long n_rows, answered, without_ids;
} EndpointRun;

static const PromptItem *prompt_of(const EndpointRun *r, long row, int *copy)
{
    return &r->prompts->items[promptset_row(r->prompts, row, copy)];
}

static long row_of(const EndpointRun *r, const char *id, size_t len)
{
    for (long row = 0; row < r->n_rows; row++) {
        char name[512];
        int copy;
        const PromptItem *p = prompt_of(r, row, &copy);
        int n = snprintf(name, sizeof name, "%s/%d", p->id, copy);
        if ((size_t)n == len && !memcmp(name, id, len)) return row;
    }
    return -1;
}

/* Puts an answer of the journal into its row. */
static int restore_answer(void *ctx, const void *record, size_t len, Error *err)
{
    EndpointRun *r = ctx;
    msgpack_zone zone;
    msgpack_zone_init(&zone, 8192);
    View v;
    const char *id;
    size_t n;
    int rc = -(view_decode(record, len, r->o->output, &zone, &v, err) ||
               view_text(&v, "id", &id, &n, err));
    long row = rc ? -1 : row_of(r, id, n);
    if (row >= 0 && !r->done[row]) {
        r->done[row] = record_new();
        record_copy(r->done[row], &v);
        r->answered++;
    }
    msgpack_zone_destroy(&zone);
    return rc;
}

static const char *next_prompt(void *ctx, size_t index, uint64_t *seed)
{
    EndpointRun *r = ctx;
    if (r->done[index]) return NULL;
    int copy;
    const PromptItem *p = prompt_of(r, (long)index, &copy);
    double worst = budget_cost(&r->o->price, budget_tokens(strlen(p->text)), r->o->max_new);
    if (r->o->budget && !budget_take(r->o->budget, worst)) return NULL;
    *seed = promptset_seed(p, r->o->seed, copy) >> 33;
    return p->text;
}

static int on_reply(void *ctx, const LlmReply *reply, Error *err)
{
    EndpointRun *r = ctx;
    int copy;
    const PromptItem *p = prompt_of(r, (long)reply->index, &copy);
    const char *text = reply->text ? reply->text : "";
    if (reply->error) log_warn("%s/%d: %s", p->id, copy, reply->error);
    const PromptAnswer a = {
        r->o->stage,   r->policy, copy,        promptset_seed(p, r->o->seed, copy),
        reply->finish, text,      strlen(text)};
    Record *rec = promptset_answer(p, &a);
    Record *usage = record_map(rec, "usage");
    record_int(usage, "prompt_tokens", reply->prompt_tokens);
    record_int(usage, "completion_tokens", reply->completion_tokens);
    if (reply->ids) promptset_ids(rec, "ids", reply->ids, reply->n_ids);
    if (reply->prompt_ids) promptset_ids(rec, "prompt_ids", reply->prompt_ids, reply->n_prompt_ids);
    if (reply->ids && reply->logprobs)
        record_floats(rec, "logprobs", reply->logprobs, reply->n_ids);
    r->answered += reply->text != NULL;
    r->without_ids += reply->text && !reply->ids;
    r->done[reply->index] = rec;
    if (!reply->text) return 0; /* not in the journal: a resumed run asks again */
    return -(batchlog_add(&r->log, rec, err) || batchlog_commit(&r->log, err));
}

static int write_rows(const EndpointRun *r, const ArtifactSpec *spec, Error *err)
{
    ArtifactWriter *w;
    if (artifact_create(r->o->output, spec, &w, err)) return -1;
    int rc = 0;
    for (long i = 0; !rc && i < r->n_rows; i++) rc = artifact_write(w, r->done[i], err);
    return artifact_end(w, rc, err);
}

/* Makes the adapter's name. It has the digest of the content, so a server that has the name has
 * this adapter; and a digest of the output, so no run unloads an adapter that another run uses. */
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
    if (manifest_check(path, err) || manifest_digest(path, hex, err)) return -1;
    digester_init(&g);
    digester_add_field(&g, path, strlen(path));
    digester_add_field(&g, o->output, strlen(o->output));
    digester_finish(&g, &d);
    digest_hex(&d, asker);
    snprintf(name, 64, "quern-%.12s-%.8s", hex, asker);
    return 0;
}

/* Asks under the adapter's name. A server that was restarted does not have the adapter any more: it
 * is loaded again, as long as answers have come since it was loaded last. */
static int ask_adapter(EndpointRun *r, const LlmOptions *lo, const char *name, const char *path,
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
        if (!rc || r->answered == before || err->code != ERROR_UNKNOWN_NAME) return rc;
        log_warn("%s; it is given the adapter again", err->text);
    }
}

/* Asks for all rows. The adapter, if there is one, is loaded before and unloaded after. */
static int ask(EndpointRun *r, const LlmOptions *lo, Error *err)
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

/* Says how many requests there may still be, and their cost. */
static int estimate(const EndpointRun *r, Error *err)
{
    long requests = 0;
    double tokens = 0;
    for (long i = 0; i < r->n_rows; i++) {
        int copy;
        if (r->done[i]) continue;
        requests++;
        tokens += budget_tokens(strlen(prompt_of(r, i, &copy)->text));
    }
    return r->o->budget ? budget_estimate(r->o->budget, r->policy, &r->o->price, requests, tokens,
                                          r->o->max_new, err)
                        : 0;
}

/* When every request was refused by itself, for its length for example, the settings are wrong. */
static int none_answered(const EndpointRun *r, Error *err)
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
    EndpointRun r = {.o = o, .policy = policy, .prompts = &prompts};
    r.n_rows = promptset_spread(&prompts, o->copies);
    r.done = memory_array((size_t)r.n_rows, sizeof *r.done);
    LlmOptions lo = llm_endpoint_options(policy, o->max_new, o->concurrency);
    lo.temperature = o->temperature;
    lo.top_k = o->top_k;
    lo.min_p = o->min_p;
    lo.stop = o->stop;
    lo.top_p = o->top_p < 1 ? o->top_p : 0;
    lo.sent = budget_sent;
    lo.sent_ctx = &(BudgetAccount){o->budget, policy, &o->price};
    int rc = batchlog_open(&r.log, o->output, spec, restore_answer, &r, err);
    if (!rc && (estimate(&r, err) || ask(&r, &lo, err) ||
                (o->budget && budget_check(o->budget, err)) || none_answered(&r, err))) {
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
