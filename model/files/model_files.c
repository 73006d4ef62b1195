/* Models on disk: the configuration, then the weights, checked against each other. */
#include "model/files/model_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "model/files/tensor_file.h"

enum { MAX_CONFIG = 1 << 20 };

/* Maximal bytes of one file, as in the reference. */
static const size_t FILE_BYTES = 5000000000u;

static int read_configs(const char *dir, ModelConfig *c, Buffer *text, Error *err)
{
    char *path = memory_printf("%s/config.json", dir),
         *more = memory_printf("%s/generation_config.json", dir);
    int rc = -(file_read(path, MAX_CONFIG, text, err) ||
               model_config_parse(text->data, text->len, path, c, err));
    if (!rc && file_exists(more)) {
        Buffer extra;
        buffer_init(&extra, MAX_CONFIG);
        rc = -(file_read(more, MAX_CONFIG, &extra, err) ||
               model_config_add_eos(extra.data, extra.len, more, c, err));
        buffer_release(&extra);
    }
    free(path);
    free(more);
    return rc;
}

/* Whether the files hold a head of their own, which differs from the embedding. */
static int has_own_head(const char *dir, Error *err)
{
    Safetensors *st;
    if (safetensors_open(dir, &st, err)) return -1;
    const SafetensorsTensor *head = safetensors_find(st, "lm_head.weight"),
                            *embed = safetensors_find(st, "model.embed_tokens.weight");
    int own = head && embed &&
              (head->dtype != embed->dtype || head->bytes != embed->bytes ||
               memcmp(head->data, embed->data, head->bytes) != 0);
    safetensors_close(st);
    return own;
}

/* Reads the configuration as the weights have it: a head of its own is used, whatever
 * tie_word_embeddings says, as transformers does. */
static int read_whole_config(const char *dir, ModelConfig *c, Buffer *text, Error *err)
{
    if (read_configs(dir, c, text, err)) return -1;
    int own = c->tied ? has_own_head(dir, err) : 0;
    if (own <= 0) return own;
    log_warn("%s has an lm_head of its own, which is used, though config.json says "
             "tie_word_embeddings",
             dir);
    c->tied = 0;
    return 0;
}

static int is_part(const Model *m, const char *name)
{
    /* Buffers of old versions, which are computed instead. */
    static const char inv_freq[] = ".rotary_emb.inv_freq";
    size_t n = strlen(name), k = sizeof inv_freq - 1;
    if ((n > k && !strcmp(name + n - k, inv_freq)) ||
        (m->c.tied && !strcmp(name, "lm_head.weight")))
        return 1;
    for (int i = 0; i < m->base.n; i++)
        if (!strcmp(m->base.tensor[i].name, name)) return 1;
    return 0;
}

/* The files must hold the tensors that the configuration claims, and no others. They are checked
 * before anything is allocated. */
static int check_weights(const Model *m, const char *dir, const Safetensors *st, Error *err)
{
    size_t present = 0;
    for (size_t i = 0; i < safetensors_count(st); i++) {
        const SafetensorsTensor *t = safetensors_at(st, i);
        if (!is_part(m, t->name))
            return error_set(err, ERROR_CORRUPT, "%s: the tensor %s is no part of a %s model", dir,
                             t->name, m->c.model_type);
        present += t->elements;
    }
    if (present < m->base.count)
        return error_set(err, ERROR_CORRUPT,
                         "%s: config.json describes %zu parameters, the weights hold %zu numbers",
                         dir, m->base.count, present);
    return set_check(&m->base, st, err);
}

static int read_weights(Model *m, const char *dir, Error *err)
{
    Safetensors *st;
    if (safetensors_open(dir, &st, err)) return -1;
    int rc = check_weights(m, dir, st, err);
    if (!rc && !m->base.data) m->base.data = m->ops->alloc(m->base.size * (size_t)m->ops->num);
    rc = -(rc || m->ops->status(err) || set_load(&m->base, m->ops, st, err));
    safetensors_close(st);
    return rc;
}

static int load_base(const char *dir, const Ops *ops, Model **out, Error *err)
{
    ModelConfig c;
    Buffer text;
    buffer_init(&text, MAX_CONFIG);
    Model *m = NULL;
    if (read_whole_config(dir, &c, &text, err) ||
        read_weights(m = model_layout(&c, ops), dir, err)) {
        model_free(m);
        buffer_release(&text);
        return -1;
    }
    m->base_dir = realpath(dir, NULL);
    m->config_len = text.len;
    m->config_text = buffer_detach(&text);
    buffer_release(&text);
    *out = m;
    return 0;
}

static int check_base(const char *dir, const Ops *ops, Error *err)
{
    ModelConfig c;
    Buffer text;
    Safetensors *st = NULL;
    Model *m = NULL;
    buffer_init(&text, MAX_CONFIG);
    int rc = -(read_whole_config(dir, &c, &text, err) || safetensors_open(dir, &st, err));
    if (!rc) rc = check_weights(m = model_layout(&c, ops), dir, st, err);
    if (st) safetensors_close(st);
    model_free(m);
    buffer_release(&text);
    return rc;
}

int model_check(const char *dir, const Ops *ops, Error *err)
{
    LoraOptions lora;
    char *config = memory_printf("%s/adapter_config.json", dir), *base = NULL;
    int rc = file_exists(config) ? adapter_config_read(dir, &lora, &base, err) : 0;
    free(config);
    if (!rc) rc = check_base(base ? base : dir, ops, err);
    free(base);
    return rc;
}

int model_load(const char *dir, const Ops *ops, Model **out, Error *err)
{
    LoraOptions lora;
    char *config = memory_printf("%s/adapter_config.json", dir), *base = NULL;
    int adapter = file_exists(config);
    free(config);
    if (!adapter) return load_base(dir, ops, out, err);
    Model *m = NULL;
    int rc = -(adapter_config_read(dir, &lora, &base, err) || load_base(base, ops, &m, err) ||
               model_add_lora(m, &lora, err) || adapter_restore(m, dir, err));
    free(base);
    if (rc)
        model_free(m);
    else
        *out = m;
    return rc;
}

int model_restore(Model *m, const char *dir, Error *err)
{
    return m->lora.size ? adapter_restore(m, dir, err) : read_weights(m, dir, err);
}

/* The weights are written first: a directory with the new config.json has its weights. */
int model_save(const Model *m, const char *dir, Error *err)
{
    if (m->lora.size) return adapter_save(m, dir, err);
    const ParamSet *p = &m->base;
    SafetensorsOut *tensors = set_out(p, m->ops);
    char *config = memory_printf("%s/config.json", dir);
    Buffer text;
    buffer_init(&text, MAX_CONFIG);
    if (m->config_text)
        buffer_append(&text, m->config_text, m->config_len);
    else
        model_config_print(&m->c, &text);
    int rc = -(safetensors_write_model(dir, tensors, (size_t)p->n, m->c.dtype, FILE_BYTES, err) ||
               m->ops->status(err) || file_write_atomic(config, text.data, text.len, err));
    buffer_release(&text);
    free(config);
    free(tensors);
    return rc;
}
