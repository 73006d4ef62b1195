#include "stages/policy.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

enum { MAX_FILE = 1 << 30 };

static const char *const copied[] = {"generation_config.json", "tokenizer_config.json", "chat_template.jinja",
                                     "vocab.json", "merges.txt", "special_tokens_map.json"};

int policy_load(const char *dir, Policy *out, Error *err)
{
    char path[4096];
    *out = (Policy){0};
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    if (tokenizer_load(path, &out->tokenizer, err) || model_load(dir, &out->model, err)) {
        policy_release(out);
        return -1;
    }
    out->im_start = tokenizer_special(out->tokenizer, "<|im_start|>");
    out->im_end = tokenizer_special(out->tokenizer, "<|im_end|>");
    if (out->im_start >= 0 && out->im_end >= 0) return 0;
    policy_release(out);
    return error_set(err, "%s: expected the ChatML tokens <|im_start|> and <|im_end|>, found none", path);
}

void policy_release(Policy *p)
{
    if (p->model) model_free(p->model);
    if (p->tokenizer) tokenizer_free(p->tokenizer);
    *p = (Policy){0};
}

static int copy_extras(const char *from, const char *dir, Error *err)
{
    Buffer b;
    int rc = 0;
    buffer_init(&b, MAX_FILE);
    for (size_t i = 0; !rc && i < sizeof copied / sizeof *copied; i++) {
        char src[4096], dst[4096];
        snprintf(src, sizeof src, "%s/%s", from, copied[i]);
        snprintf(dst, sizeof dst, "%s/%s", dir, copied[i]);
        if (!file_exists(src)) continue;
        rc = file_read(src, MAX_FILE, &b, err) || file_write_atomic(dst, b.data, b.len, err) ? -1 : 0;
    }
    buffer_release(&b);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the files that the manifest covers, sorted; returns how many. */
static int list_files(const char *dir, char *names[64], Error *err)
{
    DIR *d = opendir(dir);
    if (!d) return error_errno(err, "cannot open directory %s", dir);
    int n = 0;
    for (struct dirent *e; (e = readdir(d)) && n < 64;) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot && (!strcmp(dot, ".json") || !strcmp(dot, ".safetensors") || !strcmp(dot, ".jinja") || !strcmp(dot, ".txt")))
            names[n++] = memory_strdup(e->d_name);
    }
    closedir(d);
    qsort(names, (size_t)n, sizeof *names, by_name);
    return n;
}

static int write_manifest(const char *dir, const ArtifactSpec *spec, Error *err)
{
    char path[4096], hex[DIGEST_HEX];
    char *names[64];
    ArtifactWriter *w = NULL;
    int n = list_files(dir, names, err), rc = n < 0 ? -1 : 0;
    snprintf(path, sizeof path, "%s/manifest.qa", dir);
    if (!rc) rc = artifact_create(path, spec, &w, err);
    Buffer b;
    buffer_init(&b, MAX_FILE);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        if (!rc) rc = file_read(path, MAX_FILE, &b, err);
        if (!rc) {
            Digest d;
            digest_of(b.data, b.len, &d);
            digest_hex(&d, hex);
            Record *r = record_new();
            record_text(r, "name", names[i]);
            record_text(r, "digest", hex);
            record_int(r, "bytes", (int64_t)b.len);
            rc = artifact_write(w, r, err);
            record_free(r);
        }
        free(names[i]);
    }
    buffer_release(&b);
    if (rc && w) artifact_abandon(w);
    return rc ? rc : artifact_finish(w, err);
}

/* The family's own tokenizer class has another pre-tokeniser than the line rule (docs/tokenizer.md). */
static const char tokenizer_config[] =
    "{\n  \"eos_token\": \"<|im_end|>\",\n  \"pad_token\": \"<|endoftext|>\",\n"
    "  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n";

static int write_tokenizer_config(const char *dir, Error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tokenizer_config.json", dir);
    return file_write_atomic(path, tokenizer_config, sizeof tokenizer_config - 1, err);
}

int policy_save(const Policy *p, const char *dir, const char *from_dir, const ArtifactSpec *spec, Error *err)
{
    char path[4096];
    /* a manifest that stayed would vouch for files that are half of this model and half of the one before */
    snprintf(path, sizeof path, "%s/manifest.qa", dir);
    if (unlink(path) && errno != ENOENT) return error_errno(err, "cannot remove %s", path);
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    if (file_mkdirs(dir, err) || (from_dir ? copy_extras(from_dir, dir, err) : write_tokenizer_config(dir, err)) ||
        tokenizer_save(p->tokenizer, path, err) || model_save(p->model, dir, err))
        return -1;
    return write_manifest(dir, spec, err);
}

static void push(int32_t **ids, size_t *n, int32_t id)
{
    *ids = memory_grow(*ids, *n + 1, sizeof **ids);
    (*ids)[(*n)++] = id;
}

int policy_encode_prompt(const Policy *p, const char *text, size_t len, int32_t **ids, size_t *n, Error *err)
{
    static const char user[] = "user\n", assistant[] = "assistant\n";
    *ids = NULL;
    *n = 0;
    push(ids, n, p->im_start);
    if (tokenizer_encode(p->tokenizer, user, sizeof user - 1, ids, n, err)) return -1;
    if (tokenizer_encode(p->tokenizer, text, len, ids, n, err)) return -1;
    push(ids, n, p->im_end);
    if (tokenizer_encode(p->tokenizer, "\n", 1, ids, n, err)) return -1;
    push(ids, n, p->im_start);
    return tokenizer_encode(p->tokenizer, assistant, sizeof assistant - 1, ids, n, err);
}

int policy_encode_answer(const Policy *p, const char *text, size_t len, int32_t **ids, size_t *n, Error *err)
{
    *ids = NULL;
    *n = 0;
    if (tokenizer_encode(p->tokenizer, text, len, ids, n, err)) return -1;
    push(ids, n, p->im_end);
    return 0;
}

int policy_banned(const Policy *p, int *ids, int max)
{
    static const char *const specials[] = {"<|endoftext|>", "<|im_start|>"};
    int n = 0;
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        int id = tokenizer_special(p->tokenizer, specials[i]);
        if (id >= 0 && n < max) ids[n++] = id;
    }
    for (int id = tokenizer_size(p->tokenizer); id < model_config(p->model)->vocab && n < max; id++) ids[n++] = id;
    return n;
}
