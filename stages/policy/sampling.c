/* Sampling by the native engine, in chunks of `batch` rows. A chunk is one batch of the journal, so
 * that a resumed run starts at a chunk and samples what an uninterrupted one would. */
#include "stages/policy/sampling.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "model/core/ranks.h"
#include "model/sampler.h"
#include "stages/data/batchlog.h"
#include "stages/data/promptset.h"
#include "stages/policy/policy.h"

enum { MAX_BANNED = 65536, MAX_ANSWER = 1 << 22 };

typedef struct {
    const SamplingOptions *o;
    const Policy *policy;
    const PromptSet *prompts;
    BatchLog *log;
    long first_row, last_row;   /* the share of this process */
    const long *request_prompt; /* the prompt of each request of the chunk */
    const int *request_copy;    /* the first copy of each */
    const TokenIds *prompt_ids;
    Error *err;
    int failed;
} Chunk;

/* Cuts an answer at its stop text: the text before it, the ids after the token that completes it.
 * Returns 1 when the answer has the stop text. The engine stops at token sequences, but the same
 * text has more than one of them. */
static int cut_at_stop(const Chunk *c, const int32_t *ids, int *n, Buffer *text)
{
    const char *stop = c->o->stop,
               *at = stop ? memmem(text->data, text->len, stop, strlen(stop)) : NULL;
    if (!at) return 0;
    size_t keep = (size_t)(at - text->data), end = keep + strlen(stop);
    int low = 1, high = *n; /* search the fewest ids whose text reaches the end of the stop text */
    while (low < high && !c->failed) {
        int middle = (low + high) / 2;
        Buffer b;
        buffer_init(&b, MAX_ANSWER);
        int rc = tokenizer_decode(c->policy->tokenizer, ids, (size_t)middle, &b, NULL);
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
    c->failed = tokenizer_decode(c->policy->tokenizer, ids, (size_t)n, &text, c->err);
    if (!c->failed) stopped |= cut_at_stop(c, ids, &n, &text);
    const PromptAnswer a = {c->o->stage,
                            "native",
                            trial,
                            promptset_seed(p, c->o->seed, trial),
                            stopped ? "stop" : "length",
                            text.data,
                            text.len};
    Record *r = promptset_answer(p, &a);
    double *lp = memory_array((size_t)n, sizeof *lp);
    for (int i = 0; i < n; i++) lp[i] = logp[i];
    record_floats(r, "logprobs", lp, (size_t)n);
    promptset_ids(r, "ids", ids, (size_t)n);
    promptset_ids(r, "prompt_ids", c->prompt_ids[which].ids, c->prompt_ids[which].n);
    if (!c->failed) c->failed = batchlog_add(c->log, r, c->err);
    free(lp);
    record_free(r);
    buffer_release(&text);
}

/* Samples the rows [first, last) in the order of (prompt, copy), as one batch of the journal. */
static int run_chunk(Chunk *c, long first, long last, const SampleOptions *so, Error *err)
{
    long rows = last - first;
    SampleRequest *req = memory_array((size_t)rows, sizeof *req);
    long *prompt = memory_array((size_t)rows, sizeof *prompt);
    int *copy = memory_array((size_t)rows, sizeof *copy);
    uint64_t *seeds = memory_array((size_t)rows, sizeof *seeds);
    int n = 0;
    for (long row = first; row < last; row++) {
        int which;
        long p = promptset_row(c->prompts, row, &which);
        seeds[row - first] = promptset_seed(&c->prompts->items[p], c->o->seed, which);
        if (n == 0 || prompt[n - 1] != p) {
            prompt[n] = p;
            copy[n] = which;
            const TokenIds *ids = &c->prompt_ids[p];
            req[n] = (SampleRequest){ids->ids, (int)ids->n, 0, &seeds[row - first]};
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
            return error_set(err, ERROR_STOPPED,
                             "stopped after %ld of %ld samples; the same command continues", done,
                             total);
        long end = done + c->o->batch < total ? done + c->o->batch : total;
        if (run_chunk(c, c->first_row + done, c->first_row + end, so, err)) return -1;
        progress_set(&p, end);
    }
    progress_end(&p);
    return 0;
}

/* Encodes the prompts. A contrastive prompt that leaves no room for max_new tokens is removed, with
 * a warning: the pool may have long kernels of a teacher, and the other prompts are still of
 * use. */
static int encode_prompts(const Policy *policy, PromptSet *prompts, TokenIds *ids, int max_new,
                          Error *err)
{
    int limit = model_config(policy->model)->max_position;
    long all = prompts->n;
    for (long i = 0; i < prompts->n;) {
        const PromptItem *p = &prompts->items[i];
        if (chat_encode_prompt(&policy->chat, p->text, strlen(p->text), &ids[i], err)) return -1;
        if ((long)ids[i].n + max_new <= limit) {
            i++;
            continue;
        }
        if (!p->contrastive)
            return error_set(err, ERROR_LIMIT,
                             "prompt %s has %zu tokens; with %d new ones that is more than the "
                             "model's %d positions",
                             p->id, ids[i].n, max_new, limit);
        free(ids[i].ids);
        ids[i] = (TokenIds){0};
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

/* Encodes the stop text by itself and after a blank: the first token of a word often includes the
 * blank. */
static int encode_stop(const Policy *policy, const char *text, StopSequence stops[2], Error *err)
{
    if (!text) return 0;
    for (int i = 0; i < 2; i++) {
        char *with = memory_printf("%s%s", i ? " " : "", text);
        TokenIds ids = {0};
        int rc = tokenizer_encode_on(policy->tokenizer, with, strlen(with), &ids, err);
        stops[i] = (StopSequence){ids.ids, (int)ids.n};
        free(with);
        if (rc) return -1;
    }
    return 0;
}

/* Samples the rows of this process into the artifact `output`. */
static int sample_rows(const char *model_dir, const SamplingOptions *o, PromptSet *prompts,
                       const char *output, const ArtifactSpec *spec, Error *err)
{
    Policy policy;
    BatchLog log;
    if (engine_policy(o->engine, model_dir, &policy, err)) return -1;
    TokenIds *ids = memory_array((size_t)prompts->n, sizeof *ids);
    StopSequence stops[2] = {{0}};
    int *banned = memory_array(MAX_BANNED, sizeof *banned);
    Chunk c = {.o = o, .policy = &policy, .prompts = prompts, .log = &log, .prompt_ids = ids};
    SampleOptions so = {.temperature = (float)o->temperature,
                        .top_p = (float)o->top_p,
                        .max_new = o->max_new,
                        .batch = o->batch,
                        .banned = banned,
                        .top_k = o->top_k,
                        .min_p = (float)o->min_p};
    so.n_banned = policy_banned(&policy, banned, MAX_BANNED);
    int rc = -(encode_prompts(&policy, prompts, ids, o->max_new, err) ||
               encode_stop(&policy, o->stop, stops, err) ||
               batchlog_open(&log, output, spec, NULL, NULL, err));
    long rows = promptset_spread(prompts, o->copies);
    c.first_row = rows * ranks_rank() / ranks_size();
    c.last_row = rows * (ranks_rank() + 1) / ranks_size();
    if (o->stop) so.stops = stops, so.n_stops = 2;
    if (!rc && run_chunks(&c, &so, err)) {
        batchlog_keep(&log, NULL);
        rc = -1;
    } else if (!rc) {
        rc = batchlog_finish(&log, err);
    }
    for (long i = 0; i < prompts->n; i++) free(ids[i].ids);
    free(ids);
    free(banned);
    for (int i = 0; i < 2; i++) free((int32_t *)(uintptr_t)stops[i].ids);
    policy_release(&policy);
    return rc;
}

/* Joins the parts that the processes have written, in their order, and removes them. */
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
    if (artifact_end(w, rc, err)) return -1;
    for (int part = 0; part < ranks_size(); part++) {
        snprintf(path, sizeof path, "%s.part-%d", o->output, part);
        file_remove_tree(path, NULL);
    }
    return 0;
}

/* Samples the share of this process, with a journal of its own, and waits for the others. */
static int sample_part(const char *model_dir, const SamplingOptions *o, PromptSet *prompts,
                       const ArtifactSpec *spec, Error *err)
{
    static char key[] = "~part";
    char path[4096], part[32];
    double barrier = 1;
    ArtifactSpec s = *spec;
    snprintf(path, sizeof path, "%s.part-%d", o->output, ranks_rank());
    snprintf(part, sizeof part, "%d of %d", ranks_rank(), ranks_size());
    if (s.n_config == ARTIFACT_MAX_CONFIG)
        return error_set(err, ERROR_LIMIT, "no room for the part in the header");
    s.config[s.n_config].key = key;
    s.config[s.n_config++].value = part;
    if (!artifact_same(&s, path) && sample_rows(model_dir, o, prompts, path, &s, err)) return -1;
    if (ranks_host_sum(&barrier, 1, err)) return -1; /* wait until all parts are written */
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
