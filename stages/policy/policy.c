/* The manifest is removed before a file changes and written after all of them. */
#include "stages/policy/policy.h"

#include <stdlib.h>

#include "artifacts/manifest.h"
#include "base/file.h"
#include "model/cpu/ops_cpu.h"
#include "model/files/model_files.h"

enum { MAX_FILE = 1 << 30 };

static const char *const copied[] = {"generation_config.json",
                                     "tokenizer_config.json",
                                     "chat_template.jinja",
                                     "quern_chat.json",
                                     "vocab.json",
                                     "merges.txt",
                                     "special_tokens_map.json"};

/* The template of checkpoints that this process reads, or NULL: their own. */
static const char *given;

void policy_give_chat(const char *chat)
{
    given = chat && *chat ? chat : NULL;
}

int policy_tokenizer(const char *dir, Policy *out, Error *err)
{
    char path[4096];
    *out = (Policy){0};
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    if (manifest_check(dir, err) || tokenizer_load(path, &out->tokenizer, err)) return -1;
    if (!(given ? chat_given(out->tokenizer, given, &out->chat, err)
                : chat_detect(out->tokenizer, dir, &out->chat, err)))
        return 0;
    policy_release(out);
    return -1;
}

/* Checks the base model of an adapter. */
static int check_base(const char *dir, Error *err)
{
    char path[4096], *base = NULL;
    LoraOptions lora;
    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    if (!file_exists(path)) return 0;
    int rc = -(adapter_config_read(dir, &lora, &base, err) || manifest_check(base, err));
    free(base);
    return rc;
}

int policy_load(const char *dir, const Ops *ops, Policy *out, Error *err)
{
    if (policy_tokenizer(dir, out, err)) return -1;
    if (!check_base(dir, err) && !model_load(dir, ops, &out->model, err) &&
        !model_add_end(out->model, out->chat.end, err))
        return 0;
    policy_release(out);
    return -1;
}

int policy_check(const char *dir, Error *err)
{
    Policy p;
    if (policy_tokenizer(dir, &p, err)) return -1;
    policy_release(&p);
    return -(check_base(dir, err) || model_check(dir, ops_cpu(), err));
}

void policy_release(Policy *p)
{
    if (p->model) model_free(p->model);
    if (p->tokenizer) tokenizer_free(p->tokenizer);
    *p = (Policy){0};
}

int policy_extras(const char *from, const char *dir, int missing, Error *err)
{
    Buffer b;
    int rc = 0;
    buffer_init(&b, MAX_FILE);
    for (size_t i = 0; !rc && i < sizeof copied / sizeof *copied; i++) {
        char src[4096], dst[4096];
        snprintf(src, sizeof src, "%s/%s", from, copied[i]);
        snprintf(dst, sizeof dst, "%s/%s", dir, copied[i]);
        if (!file_exists(src) || (missing && file_exists(dst))) continue;
        rc = -(file_read(src, MAX_FILE, &b, err) || file_write_atomic(dst, b.data, b.len, err));
    }
    buffer_release(&b);
    return rc || !given ? rc : chat_give(given, dir, err);
}

/* The generic class: the model family's own class has another pre-tokenizer than the line rule
 * (docs/tokenizer.md). */
static const char tokenizer_config[] =
    "{\n  \"eos_token\": \"<|im_end|>\",\n  \"pad_token\": \"<|endoftext|>\",\n"
    "  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n";

static int write_tokenizer_config(const char *dir, Error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tokenizer_config.json", dir);
    return file_write_atomic(path, tokenizer_config, sizeof tokenizer_config - 1, err);
}

int policy_save(const Policy *p, const char *dir, const char *from_dir, const ArtifactSpec *spec,
                Error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    if (manifest_remove(dir, err) || file_mkdirs(dir, err) ||
        (from_dir ? policy_extras(from_dir, dir, 0, err) : write_tokenizer_config(dir, err)) ||
        tokenizer_save(p->tokenizer, path, err) || model_save(p->model, dir, err))
        return -1;
    return manifest_write(dir, spec, err);
}

int policy_banned(const Policy *p, int *ids, int max)
{
    const ModelConfig *c = model_config(p->model);
    int n = 0;
    for (int id = 0; id < c->vocab && n < max; id++) {
        int end = 0;
        for (int i = 0; i < c->n_eos; i++) end |= c->eos[i] == id;
        if (!end && !tokenizer_is_text(p->tokenizer, id)) ids[n++] = id;
    }
    return n;
}
