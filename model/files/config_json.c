/* Fields that the engine would ignore but that change the model are errors. */
#include "model/files/model_files.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "model/core/model_config.h"
#include "model/files/safetensors.h"

static int need_int(const json_t *o, const char *key, const char *where, int *out, Error *err)
{
    int64_t v;
    if (json_need_int(o, key, where, &v, err)) return -1;
    if (v < -1 || v > INT32_MAX)
        return error_set(err, ERROR_CORRUPT, "%s: %s is out of range: %lld", where, key,
                         (long long)v);
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
    if (!json_is_boolean(v))
        return error_set(err, ERROR_CORRUPT, "%s: the field \"%s\" is expected to be true or false",
                         where, key);
    *out = json_is_true(v);
    return 0;
}

static int refuse_true(const json_t *o, const char *key, const char *why, const char *where,
                       Error *err)
{
    int on = 0;
    if (maybe_bool(o, key, where, &on, err)) return -1;
    return on ? error_set(err, ERROR_UNSUPPORTED, "%s: %s is true: %s", where, key, why) : 0;
}

static const char *const rope_name[] = {
    [ROPE_DEFAULT] = "default", [ROPE_LLAMA3] = "llama3", [ROPE_YARN] = "yarn"};
static const char *const rope_keys[] = {"rope_type",        "type",
                                        "rope_theta",       "factor",
                                        "low_freq_factor",  "high_freq_factor",
                                        "beta_slow",        "beta_fast",
                                        "attention_factor", "original_max_position_embeddings"};

static int rope_type(const json_t *r, const char *where, RopeType *out, Error *err)
{
    const json_t *v = json_object_get(r, "rope_type");
    if (!v) v = json_object_get(r, "type");
    *out = ROPE_DEFAULT;
    if (!v) return 0;
    for (int i = 0; i < 3 && json_is_string(v); i++)
        if (!strcmp(json_string_value(v), rope_name[i])) {
            *out = (RopeType)i;
            return 0;
        }
    return error_set(
        err, ERROR_UNSUPPORTED,
        "%s: rope_type is expected to be \"default\", \"llama3\" or \"yarn\", found %s", where,
        json_is_string(v) ? json_string_value(v) : "no text");
}

/* Absent or null leaves the default. */
static int maybe_number(const json_t *o, const char *key, const char *where, float *out, Error *err)
{
    const json_t *v = json_object_get(o, key);
    double x;
    if (!v || json_is_null(v)) return 0;
    if (json_need_number(o, key, where, &x, err)) return -1;
    *out = (float)x;
    return 0;
}

/* Keys that the scaling type does not use, with a value, are an error: they would change the
 * angles. */
static int rope_fields(const json_t *r, const char *where, Error *err)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)r, key, v)
    {
        size_t i = 0, n = sizeof rope_keys / sizeof *rope_keys;
        while (i < n && strcmp(key, rope_keys[i])) i++;
        int idle = json_is_null(v) ||
                   (!strcmp(key, "partial_rotary_factor") && json_number_value(v) == 1) ||
                   (!strcmp(key, "truncate") && json_is_true(v));
        if (i == n && !idle)
            return error_set(err, ERROR_UNSUPPORTED, "%s: the field \"%s\" is not supported", where,
                             key);
    }
    return 0;
}

/* The original length: from config.json itself, else from the scaling, else the current
 * positions. */
static int read_scaling(const json_t *o, const json_t *r, const char *where, ModelConfig *c,
                        Error *err)
{
    RopeScaling s = {.original = c->max_position};
    if (rope_fields(r, where, err) || rope_type(r, where, &s.type, err) ||
        maybe_number(r, "rope_theta", where, &c->rope_theta, err))
        return -1;
    if (s.type == ROPE_DEFAULT) return 0;
    double factor, slow, fast;
    if (json_need_number(r, "factor", where, &factor, err) ||
        maybe_int(r, "original_max_position_embeddings", where, &s.original, err) ||
        maybe_int(o, "original_max_position_embeddings", where, &s.original, err))
        return -1;
    s.factor = (float)factor;
    s.attention = 1;
    if (s.type == ROPE_LLAMA3) {
        if (json_need_number(r, "low_freq_factor", where, &slow, err) ||
            json_need_number(r, "high_freq_factor", where, &fast, err))
            return -1;
        s.slow = (float)slow;
        s.fast = (float)fast;
    } else {
        s.slow = 1;
        s.fast = 32;
        s.attention = rope_attention_factor(s.factor);
        if (maybe_number(r, "beta_slow", where, &s.slow, err) ||
            maybe_number(r, "beta_fast", where, &s.fast, err) ||
            maybe_number(r, "attention_factor", where, &s.attention, err))
            return -1;
        /* Texts may be as long as the scaling allows, whatever
         * max_position_embeddings says. */
        double reach = (double)s.factor * s.original;
        if (reach > c->max_position && reach < 1 << 24) c->max_position = (int)reach;
    }
    c->rope = s;
    return 0;
}

/* Read rope_theta beside an optional rope_scaling (version 4), or both in rope_parameters (version
 * 5). */
static int read_rope(const json_t *o, const char *where, ModelConfig *c, Error *err)
{
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    const json_t *found = NULL;
    c->rope_theta = 10000.0f;
    if (maybe_number(o, "rope_theta", where, &c->rope_theta, err)) return -1;
    for (int i = 0; i < 2; i++) {
        const json_t *r = json_object_get(o, keys[i]);
        if (!r || json_is_null(r)) continue;
        if (!json_is_object(r))
            return error_set(err, ERROR_CORRUPT, "%s: the field \"%s\" is expected to be an object",
                             where, keys[i]);
        if (found)
            return error_set(err, ERROR_CORRUPT,
                             "%s: rope_scaling and rope_parameters are both given, expected one",
                             where);
        found = r;
        char *inside = memory_printf("%s, %s", where, keys[i]);
        int rc = read_scaling(o, r, inside, c, err);
        free(inside);
        if (rc) return -1;
    }
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
            return error_set(err, ERROR_CORRUPT, "%s: eos_token_id is expected to hold ids", where);
        int id = (int)json_integer_value(v), known = 0;
        for (int j = 0; j < c->n_eos; j++) known |= c->eos[j] == id;
        if (known) continue;
        if (c->n_eos == 8)
            return error_set(err, ERROR_LIMIT, "%s: eos_token_id: more than 8 end tokens", where);
        c->eos[c->n_eos++] = id;
    }
    return 0;
}

static int read_dtype(const json_t *o, const char *where, ModelConfig *c, Error *err)
{
    static const char *const keys[] = {"torch_dtype", "dtype"};
    for (int i = 0; i < 2; i++) {
        const json_t *v = json_object_get(o, keys[i]);
        if (!v || json_is_null(v)) continue;
        const char *text = json_is_string(v) ? json_string_value(v) : "no text";
        c->dtype = dtype_named(text, strlen(text));
        if (c->dtype != DTYPE_F32 && c->dtype != DTYPE_BF16 && c->dtype != DTYPE_F16)
            return error_set(
                err, ERROR_UNSUPPORTED,
                "%s: %s is expected to be \"float32\", \"bfloat16\" or \"float16\", found %.40s",
                where, keys[i], text);
    }
    return 0;
}

/* Refuse fields that describe a model outside of the three families, whatever model_type says. */
static int refuse_fields(const json_t *o, const char *where, Error *err)
{
    static const struct {
        const char *field, *why;
    } others[] = {
        {"quantization_config", "quantised weights are not read"},
        {"compression_config", "quantised weights are not read"},
        {"vision_config", "models with a vision part are not supported"},
        {"audio_config", "models with an audio part are not supported"},
        {"text_config", "models with several parts are not supported"},
        {"num_experts", "mixtures of experts are not supported"},
        {"num_local_experts", "mixtures of experts are not supported"},
        {"n_routed_experts", "mixtures of experts are not supported"},
        {"dual_chunk_attention_config", "only full attention is supported"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const json_t *v = json_object_get(o, others[i].field);
        if (v && !json_is_null(v))
            return error_set(err, ERROR_UNSUPPORTED, "%s: %s: %s", where, others[i].field,
                             others[i].why);
    }
    float partial = 1;
    if (maybe_number(o, "partial_rotary_factor", where, &partial, err)) return -1;
    if (partial < 1 || partial > 1)
        return error_set(err, ERROR_UNSUPPORTED,
                         "%s: partial_rotary_factor is expected to be 1, found %g", where,
                         (double)partial);
    return -(refuse_true(o, "use_sliding_window", "only full attention is supported", where, err) ||
             refuse_true(o, "attention_bias", "a bias of the output projection is not supported",
                         where, err) ||
             refuse_true(o, "mlp_bias", "a bias in the MLP is not supported", where, err));
}

static int refuse_unsupported(const json_t *o, const char *architecture, const char *where,
                              Error *err)
{
    const json_t *act = json_object_get(o, "hidden_act"),
                 *types = json_object_get(o, "layer_types"), *t;
    if (act && (!json_is_string(act) || strcmp(json_string_value(act), "silu")))
        return error_set(err, ERROR_UNSUPPORTED, "%s: hidden_act is expected to be \"silu\"",
                         where);
    size_t i;
    json_array_foreach(
        types, i,
        t) if (!json_is_string(t) ||
               strcmp(json_string_value(t),
                      "full_attention")) return error_set(err, ERROR_UNSUPPORTED,
                                                          "%s: layer_types[%zu] is expected to be "
                                                          "\"full_attention\"",
                                                          where, i);
    json_array_foreach(json_object_get(o, "architectures"), i, t) if (
        !json_is_string(t) ||
        strcmp(json_string_value(t),
               architecture)) return error_set(err, ERROR_UNSUPPORTED,
                                               "%s: architectures[%zu] is expected to be \"%s\"",
                                               where, i, architecture);
    return refuse_fields(o, where, err);
}

enum { NO_HEAD_DIM = INT_MIN }; /* until the field is read; a given -1 is refused */

static int read_config(const json_t *o, const char *where, ModelConfig *c, Error *err)
{
    const char *type = json_need_text(o, "model_type", where, err);
    if (!type) return -1;
    const ModelFamily *family = model_family(type);
    if (!family)
        return error_set(err, ERROR_UNSUPPORTED,
                         "%s: model_type is expected to be qwen2, qwen3 or llama, found \"%s\"",
                         where, type);
    *c = (ModelConfig){.qkv_bias = family->qkv_bias,
                       .qk_norm = family->qk_norm,
                       .pad = -1,
                       .head_dim = NO_HEAD_DIM};
    strcpy(c->model_type, family->type);
    double eps;
    if (need_int(o, "vocab_size", where, &c->vocab, err) ||
        need_int(o, "hidden_size", where, &c->hidden, err) ||
        need_int(o, "intermediate_size", where, &c->ff, err) ||
        need_int(o, "num_hidden_layers", where, &c->layers, err) ||
        need_int(o, "num_attention_heads", where, &c->heads, err))
        return -1;
    c->kv_heads = c->heads;
    if (maybe_int(o, "num_key_value_heads", where, &c->kv_heads, err) ||
        maybe_int(o, "head_dim", where, &c->head_dim, err) ||
        need_int(o, "max_position_embeddings", where, &c->max_position, err) ||
        maybe_int(o, "pad_token_id", where, &c->pad, err) ||
        maybe_bool(o, "tie_word_embeddings", where, &c->tied, err) ||
        json_need_number(o, "rms_norm_eps", where, &eps, err) || read_eos(o, where, c, err) ||
        read_rope(o, where, c, err) || refuse_unsupported(o, family->architecture, where, err) ||
        read_dtype(o, where, c, err))
        return -1;
    c->norm_eps = (float)eps;
    if (c->head_dim == NO_HEAD_DIM && c->qk_norm)
        c->head_dim = 128; /* the default of Qwen3, for all sizes */
    if (c->head_dim == NO_HEAD_DIM && c->heads > 0) {
        if (c->hidden % c->heads)
            return error_set(err, ERROR_CORRUPT,
                             "%s: hidden_size %d is not a multiple of num_attention_heads %d, and "
                             "head_dim is absent",
                             where, c->hidden, c->heads);
        c->head_dim = c->hidden / c->heads;
    }
    return model_config_check(c, where, err);
}

int model_config_parse(const char *text, size_t len, const char *where, ModelConfig *out,
                       Error *err)
{
    json_t *o = json_read_text(text, len, where, err);
    if (!o) return -1;
    int rc = json_is_object(o) ? read_config(o, where, out, err)
                               : error_set(err, ERROR_CORRUPT, "%s: an object is expected", where);
    json_decref(o);
    return rc;
}

int model_config_add_eos(const char *text, size_t len, const char *where, ModelConfig *c,
                         Error *err)
{
    json_t *o = json_read_text(text, len, where, err);
    if (!o) return -1;
    int rc = json_is_object(o) ? read_eos(o, where, c, err)
                               : error_set(err, ERROR_CORRUPT, "%s: an object is expected", where);
    json_decref(o);
    return rc ? rc : model_config_check(c, where, err);
}

static void print_scaling(const RopeScaling *r, Buffer *out)
{
    if (r->type == ROPE_DEFAULT) return;
    int llama3 = r->type == ROPE_LLAMA3;
    buffer_puts(out, "  \"rope_scaling\": {\n");
    if (!llama3) buffer_printf(out, "    \"attention_factor\": %.9g,\n", (double)r->attention);
    buffer_printf(out, "    \"%s\": %.9g,\n    \"%s\": %.9g,\n    \"factor\": %.9g,\n",
                  llama3 ? "high_freq_factor" : "beta_fast", (double)r->fast,
                  llama3 ? "low_freq_factor" : "beta_slow", (double)r->slow, (double)r->factor);
    buffer_printf(
        out, "    \"original_max_position_embeddings\": %d,\n    \"rope_type\": \"%s\"\n  },\n",
        r->original, rope_name[r->type]);
}

void model_config_print(const ModelConfig *c, Buffer *out)
{
    buffer_printf(out, "{\n  \"architectures\": [\"%s\"],\n  \"attention_dropout\": 0.0,\n",
                  model_family(c->model_type)->architecture);
    if (strcmp(c->model_type, "qwen2")) buffer_puts(out, "  \"attention_bias\": false,\n");
    if (c->n_eos == 1) buffer_printf(out, "  \"eos_token_id\": %d,\n", c->eos[0]);
    if (c->n_eos > 1) {
        for (int i = 0; i < c->n_eos; i++)
            buffer_printf(out, "%s%d", i ? ", " : "  \"eos_token_id\": [", c->eos[i]);
        buffer_puts(out, "],\n");
    }
    if (strcmp(c->model_type, "qwen2") || c->heads * c->head_dim != c->hidden)
        buffer_printf(out, "  \"head_dim\": %d,\n", c->head_dim);
    buffer_printf(
        out,
        "  \"hidden_act\": \"silu\",\n  \"hidden_size\": %d,\n  \"initializer_range\": 0.02,\n"
        "  \"intermediate_size\": %d,\n  \"max_position_embeddings\": %d,\n  \"model_type\": "
        "\"%s\",\n"
        "  \"num_attention_heads\": %d,\n  \"num_hidden_layers\": %d,\n  \"num_key_value_heads\": "
        "%d,\n",
        c->hidden, c->ff, c->max_position, c->model_type, c->heads, c->layers, c->kv_heads);
    if (c->pad >= 0) buffer_printf(out, "  \"pad_token_id\": %d,\n", c->pad);
    buffer_printf(out, "  \"rms_norm_eps\": %.9g,\n", (double)c->norm_eps);
    print_scaling(&c->rope, out);
    buffer_printf(out,
                  "  \"rope_theta\": %.9g,\n  \"tie_word_embeddings\": %s,\n"
                  "  \"torch_dtype\": \"%s\",\n  \"use_cache\": true,\n  \"vocab_size\": %d\n}\n",
                  (double)c->rope_theta, c->tied ? "true" : "false", dtype_name(c->dtype),
                  c->vocab);
}
