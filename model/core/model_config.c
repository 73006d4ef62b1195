/* The families of models, and the limits of the engine. */
#include "model/core/model_config.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const ModelFamily families[] = {
    {"qwen2", "Qwen2ForCausalLM", 1, 0},
    {"qwen3", "Qwen3ForCausalLM", 0, 1},
    {"llama", "LlamaForCausalLM", 0, 0},
};

const ModelFamily *model_family(const char *type)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (!strcmp(type, families[i].type)) return &families[i];
    return NULL;
}

typedef struct {
    const char *field;
    int value, min, max;
} Range;

static int in_range(Range r, const char *where, Error *err)
{
    if (r.value >= r.min && r.value <= r.max) return 0;
    return error_set(err, ERROR_CORRUPT, "%s: %s is expected to be %d to %d, found %d", where,
                     r.field, r.min, r.max, r.value);
}

static int check_scaling(const ModelConfig *c, const char *where, Error *err)
{
    const RopeScaling *r = &c->rope;
    if (r->type == ROPE_DEFAULT) return 0;
    if (!(r->factor >= 1) || !(r->factor <= 1024))
        return error_set(err, ERROR_CORRUPT,
                         "%s: factor of the rotary scaling is expected to be 1 to 1024, found %g",
                         where, (double)r->factor);
    if (!(r->slow > 0) || !(r->fast > r->slow) || !isfinite(r->fast))
        return error_set(err, ERROR_CORRUPT, "%s: %s is expected to be above %s, found %g and %g",
                         where, r->type == ROPE_LLAMA3 ? "high_freq_factor" : "beta_fast",
                         r->type == ROPE_LLAMA3 ? "low_freq_factor" : "beta_slow", (double)r->fast,
                         (double)r->slow);
    if (!(r->attention > 0) || !(r->attention <= 16))
        return error_set(err, ERROR_CORRUPT,
                         "%s: attention_factor is expected to be above 0, 16 at most, found %g",
                         where, (double)r->attention);
    return in_range((Range){"original_max_position_embeddings", r->original, 1, 1 << 24}, where,
                    err);
}

int model_config_check(const ModelConfig *c, const char *where, Error *err)
{
    const ModelFamily *family = model_family(c->model_type);
    if (!family)
        return error_set(err, ERROR_UNSUPPORTED,
                         "%s: model_type is expected to be qwen2, qwen3 or llama, found \"%s\"",
                         where, c->model_type);
    if (c->qkv_bias != family->qkv_bias || c->qk_norm != family->qk_norm)
        return error_set(err, ERROR_CORRUPT, "%s: %s models have qkv_bias %d and qk_norm %d", where,
                         c->model_type, family->qkv_bias, family->qk_norm);
    const Range ranges[] = {{"vocab_size", c->vocab, 2, 1 << 20},
                            {"hidden_size", c->hidden, 2, 1 << 16},
                            {"intermediate_size", c->ff, 1, 1 << 18},
                            {"num_hidden_layers", c->layers, 1, 512},
                            {"num_attention_heads", c->heads, 1, 1024},
                            {"num_key_value_heads", c->kv_heads, 1, c->heads},
                            {"head_dim", c->head_dim, 2, 1024},
                            {"max_position_embeddings", c->max_position, 1, 1 << 24},
                            {"eos_token_id (number of)", c->n_eos, 0, 8},
                            {"pad_token_id", c->pad, -1, c->vocab - 1}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (in_range(ranges[i], where, err)) return -1;
    for (int i = 0; i < c->n_eos; i++)
        if (in_range((Range){"eos_token_id", c->eos[i], 0, c->vocab - 1}, where, err)) return -1;
    if (c->heads % c->kv_heads)
        return error_set(err, ERROR_CORRUPT,
                         "%s: num_attention_heads %d is not a multiple of num_key_value_heads %d",
                         where, c->heads, c->kv_heads);
    if (c->head_dim % 2)
        return error_set(err, ERROR_CORRUPT, "%s: head_dim is expected to be even, found %d", where,
                         c->head_dim);
    if (!(c->rope_theta > 1) || !isfinite(c->rope_theta))
        return error_set(err, ERROR_CORRUPT, "%s: rope_theta is expected to be above 1, found %g",
                         where, (double)c->rope_theta);
    if (check_scaling(c, where, err)) return -1;
    if (!(c->norm_eps >= 0) || !(c->norm_eps < 1))
        return error_set(err, ERROR_CORRUPT, "%s: rms_norm_eps is expected to be 0 to 1, found %g",
                         where, (double)c->norm_eps);
    return 0;
}
