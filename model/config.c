#include "model/config.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

static const struct {
    const char *type, *architecture;
    int qkv_bias, qk_norm;
} family[] = {
    {"qwen2", "Qwen2ForCausalLM", 1, 0},
    {"qwen3", "Qwen3ForCausalLM", 0, 1},
    {"llama", "LlamaForCausalLM", 0, 0},
};

static int find_family(const char *type)
{
    for (int i = 0; i < (int)(sizeof family / sizeof *family); i++)
        if (!strcmp(type, family[i].type)) return i;
    return -1;
}

static int in_range(int value, int min, int max, const char *field, const char *where, Error *err)
{
    if (value >= min && value <= max) return 0;
    return error_set(err, "%s: %s is expected to be %d to %d, found %d", where, field, min, max, value);
}

int model_config_check(const ModelConfig *c, const char *where, Error *err)
{
    int f = find_family(c->model_type);
    if (f < 0) return error_set(err, "%s: model_type is expected to be qwen2, qwen3 or llama, found \"%s\"", where, c->model_type);
    if (c->qkv_bias != family[f].qkv_bias || c->qk_norm != family[f].qk_norm)
        return error_set(err, "%s: %s models have qkv_bias %d and qk_norm %d", where, c->model_type, family[f].qkv_bias,
                         family[f].qk_norm);
    if (in_range(c->vocab, 2, 1 << 20, "vocab_size", where, err) || in_range(c->hidden, 2, 1 << 16, "hidden_size", where, err) ||
        in_range(c->ff, 1, 1 << 18, "intermediate_size", where, err) ||
        in_range(c->layers, 1, 512, "num_hidden_layers", where, err) ||
        in_range(c->heads, 1, 1024, "num_attention_heads", where, err) ||
        in_range(c->kv_heads, 1, c->heads, "num_key_value_heads", where, err) ||
        in_range(c->head_dim, 2, 1024, "head_dim", where, err) ||
        in_range(c->max_position, 1, 1 << 24, "max_position_embeddings", where, err) ||
        in_range(c->n_eos, 0, 8, "eos_token_id (number of)", where, err) || in_range(c->pad, -1, c->vocab - 1, "pad_token_id", where, err))
        return -1;
    for (int i = 0; i < c->n_eos; i++)
        if (in_range(c->eos[i], 0, c->vocab - 1, "eos_token_id", where, err)) return -1;
    if (c->heads % c->kv_heads)
        return error_set(err, "%s: num_attention_heads %d is not a multiple of num_key_value_heads %d", where, c->heads, c->kv_heads);
    if (c->head_dim % 2) return error_set(err, "%s: head_dim is expected to be even, found %d", where, c->head_dim);
    if (!(c->rope_theta > 1) || !isfinite(c->rope_theta))
        return error_set(err, "%s: rope_theta is expected to be above 1, found %g", where, (double)c->rope_theta);
    if (!(c->norm_eps >= 0) || !(c->norm_eps < 1))
        return error_set(err, "%s: rms_norm_eps is expected to be 0 to 1, found %g", where, (double)c->norm_eps);
    return 0;
}

static int need_int(const json_t *o, const char *key, const char *where, int *out, Error *err)
{
    int64_t v;
    if (json_need_int(o, key, where, &v, err)) return -1;
    if (v < -1 || v > INT32_MAX) return error_set(err, "%s: %s is out of range: %lld", where, key, (long long)v);
    *out = (int)v;
    return 0;
}

/* Absent or null leaves the default. */
static int maybe_int(const json_t *o, const char *key, const char *where, int *out, Error *err)
{
    const json_t *v = json_object_get(o, key);
    return !v || json_is_null(v) ? 0 : need_int(o, key, where, out, err);
}

static int maybe_bool(const json_t *o, const char *key, const char *where, int *out, Error *err)
{
    const json_t *v = json_object_get(o, key);
    if (!v || json_is_null(v)) return 0;
    if (!json_is_boolean(v)) return error_set(err, "%s: the field \"%s\" is expected to be true or false", where, key);
    *out = json_is_true(v);
    return 0;
}

static int refuse_true(const json_t *o, const char *key, const char *why, const char *where, Error *err)
{
    int on = 0;
    if (maybe_bool(o, key, where, &on, err)) return -1;
    return on ? error_set(err, "%s: %s is true: %s", where, key, why) : 0;
}

/* rope_theta beside an optional rope_scaling (version 4), or both in rope_parameters (version 5). */
static int read_rope(const json_t *o, const char *where, ModelConfig *c, Error *err)
{
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    const json_t *theta = json_object_get(o, "rope_theta");
    for (int i = 0; i < 2; i++) {
        const json_t *r = json_object_get(o, keys[i]);
        if (!r || json_is_null(r)) continue;
        if (!json_is_object(r)) return error_set(err, "%s: the field \"%s\" is expected to be an object", where, keys[i]);
        const json_t *type = json_object_get(r, "rope_type");
        if (!type) type = json_object_get(r, "type");
        if (type && (!json_is_string(type) || strcmp(json_string_value(type), "default")))
            return error_set(err, "%s: %s.rope_type is expected to be \"default\", found %s", where, keys[i],
                             json_is_string(type) ? json_string_value(type) : "no text");
        if (!theta) theta = json_object_get(r, "rope_theta");
    }
    if (theta && !json_is_number(theta)) return error_set(err, "%s: the field \"rope_theta\" is expected to be a number", where);
    c->rope_theta = theta ? (float)json_number_value(theta) : 10000.0f;
    return 0;
}

static int read_eos(const json_t *o, const char *where, ModelConfig *c, Error *err)
{
    const json_t *eos = json_object_get(o, "eos_token_id");
    if (!eos || json_is_null(eos)) return 0;
    size_t n = json_is_array(eos) ? json_array_size(eos) : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_is_array(eos) ? json_array_get(eos, i) : eos;
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > INT32_MAX)
            return error_set(err, "%s: eos_token_id is expected to hold ids", where);
        int id = (int)json_integer_value(v), known = 0;
        for (int j = 0; j < c->n_eos; j++) known |= c->eos[j] == id;
        if (known) continue;
        if (c->n_eos == 8) return error_set(err, "%s: eos_token_id: more than 8 end tokens", where);
        c->eos[c->n_eos++] = id;
    }
    return 0;
}

static int refuse_unsupported(const json_t *o, const char *where, Error *err)
{
    const json_t *act = json_object_get(o, "hidden_act"), *types = json_object_get(o, "layer_types"), *t;
    if (act && (!json_is_string(act) || strcmp(json_string_value(act), "silu")))
        return error_set(err, "%s: hidden_act is expected to be \"silu\"", where);
    size_t i;
    json_array_foreach(types, i, t)
        if (!json_is_string(t) || strcmp(json_string_value(t), "full_attention"))
            return error_set(err, "%s: layer_types[%zu] is expected to be \"full_attention\"", where, i);
    if (json_object_get(o, "quantization_config"))
        return error_set(err, "%s: quantization_config: quantised weights are not read", where);
    return refuse_true(o, "use_sliding_window", "only full attention is supported", where, err) ||
                   refuse_true(o, "attention_bias", "a bias of the output projection is not supported", where, err) ||
                   refuse_true(o, "mlp_bias", "a bias in the MLP is not supported", where, err)
               ? -1
               : 0;
}

static int read_config(const json_t *o, const char *where, ModelConfig *c, Error *err)
{
    const char *type = json_need_text(o, "model_type", where, err);
    if (!type) return -1;
    int f = find_family(type);
    if (f < 0) return error_set(err, "%s: model_type is expected to be qwen2, qwen3 or llama, found \"%s\"", where, type);
    *c = (ModelConfig){.qkv_bias = family[f].qkv_bias, .qk_norm = family[f].qk_norm, .pad = -1, .head_dim = -1};
    strcpy(c->model_type, family[f].type);
    double eps;
    if (need_int(o, "vocab_size", where, &c->vocab, err) || need_int(o, "hidden_size", where, &c->hidden, err) ||
        need_int(o, "intermediate_size", where, &c->ff, err) || need_int(o, "num_hidden_layers", where, &c->layers, err) ||
        need_int(o, "num_attention_heads", where, &c->heads, err))
        return -1;
    c->kv_heads = c->heads;
    if (maybe_int(o, "num_key_value_heads", where, &c->kv_heads, err) || maybe_int(o, "head_dim", where, &c->head_dim, err) ||
        need_int(o, "max_position_embeddings", where, &c->max_position, err) ||
        maybe_int(o, "pad_token_id", where, &c->pad, err) || maybe_bool(o, "tie_word_embeddings", where, &c->tied, err) ||
        json_need_number(o, "rms_norm_eps", where, &eps, err) || read_eos(o, where, c, err) || read_rope(o, where, c, err) ||
        refuse_unsupported(o, where, err))
        return -1;
    c->norm_eps = (float)eps;
    if (c->head_dim < 0 && c->heads > 0) {
        if (c->hidden % c->heads)
            return error_set(err, "%s: hidden_size %d is not a multiple of num_attention_heads %d, and head_dim is absent", where,
                             c->hidden, c->heads);
        c->head_dim = c->hidden / c->heads;
    }
    return model_config_check(c, where, err);
}

int model_config_parse(const char *text, size_t len, const char *where, ModelConfig *out, Error *err)
{
    json_t *o = json_read_text(text, len, where, err);
    if (!o) return -1;
    int rc = json_is_object(o) ? read_config(o, where, out, err) : error_set(err, "%s: an object is expected", where);
    json_decref(o);
    return rc;
}

int model_config_add_eos(const char *text, size_t len, const char *where, ModelConfig *c, Error *err)
{
    json_t *o = json_read_text(text, len, where, err);
    if (!o) return -1;
    int rc = json_is_object(o) ? read_eos(o, where, c, err) : error_set(err, "%s: an object is expected", where);
    json_decref(o);
    return rc ? rc : model_config_check(c, where, err);
}

void model_config_print(const ModelConfig *c, Buffer *out)
{
    int f = find_family(c->model_type);
    buffer_printf(out, "{\n  \"architectures\": [\"%s\"],\n  \"attention_dropout\": 0.0,\n", family[f].architecture);
    if (strcmp(c->model_type, "qwen2")) buffer_puts(out, "  \"attention_bias\": false,\n");
    if (c->n_eos == 1) buffer_printf(out, "  \"eos_token_id\": %d,\n", c->eos[0]);
    if (c->n_eos > 1) {
        for (int i = 0; i < c->n_eos; i++) buffer_printf(out, "%s%d", i ? ", " : "  \"eos_token_id\": [", c->eos[i]);
        buffer_puts(out, "],\n");
    }
    if (strcmp(c->model_type, "qwen2") || c->heads * c->head_dim != c->hidden)
        buffer_printf(out, "  \"head_dim\": %d,\n", c->head_dim);
    buffer_printf(out,
                  "  \"hidden_act\": \"silu\",\n  \"hidden_size\": %d,\n  \"initializer_range\": 0.02,\n"
                  "  \"intermediate_size\": %d,\n  \"max_position_embeddings\": %d,\n  \"model_type\": \"%s\",\n"
                  "  \"num_attention_heads\": %d,\n  \"num_hidden_layers\": %d,\n  \"num_key_value_heads\": %d,\n",
                  c->hidden, c->ff, c->max_position, c->model_type, c->heads, c->layers, c->kv_heads);
    if (c->pad >= 0) buffer_printf(out, "  \"pad_token_id\": %d,\n", c->pad);
    buffer_printf(out,
                  "  \"rms_norm_eps\": %.9g,\n  \"rope_theta\": %.9g,\n  \"tie_word_embeddings\": %s,\n"
                  "  \"torch_dtype\": \"float32\",\n  \"use_cache\": true,\n  \"vocab_size\": %d\n}\n",
                  (double)c->norm_eps, (double)c->rope_theta, c->tied ? "true" : "false", c->vocab);
}
