/* The fields of adapter_config.json, and the tensors of adapter_model.safetensors. Every tensor of
 * the file is used, and every tensor of the adapter is in the file. */
#include "model/files/model_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "model/files/tensor_file.h"

enum { MAX_CONFIG = 1 << 20 };

static int is_empty(const json_t *v)
{
    return !v || json_is_null(v) || json_is_false(v) ||
           (json_is_object(v) && !json_object_size(v)) || (json_is_array(v) && !json_array_size(v));
}

/* Refuse PEFT fields that change the formula or the set of weights. */
static int refuse_unsupported(const json_t *o, const char *where, Error *err)
{
    static const char *const fields[] = {"use_dora",
                                         "modules_to_save",
                                         "rank_pattern",
                                         "alpha_pattern",
                                         "fan_in_fan_out",
                                         "lora_bias",
                                         "layers_to_transform",
                                         "layers_pattern",
                                         "layer_replication",
                                         "target_parameters",
                                         "trainable_token_indices",
                                         "use_qalora",
                                         "exclude_modules",
                                         "megatron_config",
                                         "alora_invocation_tokens",
                                         "arrow_config"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!is_empty(json_object_get(o, fields[i])))
            return error_set(err, ERROR_UNSUPPORTED,
                             "%s: the field \"%s\" is set: such adapters are not supported", where,
                             fields[i]);
    const json_t *bias = json_object_get(o, "bias"),
                 *init = json_object_get(o, "init_lora_weights");
    if (bias && (!json_is_string(bias) || strcmp(json_string_value(bias), "none")))
        return error_set(err, ERROR_UNSUPPORTED, "%s: bias is expected to be \"none\"", where);
    if (json_is_string(init) && strcmp(json_string_value(init), "gaussian"))
        return error_set(err, ERROR_UNSUPPORTED,
                         "%s: init_lora_weights is \"%s\": such adapters change the base model",
                         where, json_string_value(init));
    return 0;
}

static int read_targets(const json_t *o, const char *where, unsigned *targets, Error *err)
{
    const json_t *list = json_need_array(o, "target_modules", where, err), *v;
    if (!list) return -1;
    size_t i;
    *targets = 0;
    json_array_foreach(list, i, v)
    {
        const char *name = json_is_string(v) ? json_string_value(v) : "";
        int k = 0;
        while (k < LORA_TARGETS && strcmp(name, lora_target(k))) k++;
        if (k == LORA_TARGETS)
            return error_set(err, ERROR_UNSUPPORTED,
                             "%s: target_modules[%zu] is expected to be one of q_proj, k_proj, "
                             "v_proj, o_proj, gate_proj, "
                             "up_proj and down_proj, found \"%s\"",
                             where, i, name);
        *targets |= 1u << k;
    }
    return 0;
}

static int read_options(const json_t *o, const char *where, LoraOptions *out, Error *err)
{
    int64_t rank;
    const char *type = json_need_text(o, "peft_type", where, err);
    if (!type) return -1;
    if (strcmp(type, "LORA"))
        return error_set(err, ERROR_UNSUPPORTED,
                         "%s: peft_type is expected to be \"LORA\", found \"%s\"", where, type);
    *out = (LoraOptions){0};
    if (refuse_unsupported(o, where, err) || read_targets(o, where, &out->targets, err) ||
        json_need_int(o, "r", where, &rank, err) ||
        json_need_number(o, "lora_alpha", where, &out->alpha, err))
        return -1;
    if (rank < 1 || rank > 4096)
        return error_set(err, ERROR_CORRUPT, "%s: r is expected to be 1 to 4096, found %lld", where,
                         (long long)rank);
    out->rank = (int)rank;
    const json_t *rslora = json_object_get(o, "use_rslora");
    if (rslora && !json_is_null(rslora) && !json_is_boolean(rslora))
        return error_set(err, ERROR_CORRUPT,
                         "%s: the field \"use_rslora\" is expected to be true or false", where);
    out->rslora = json_is_true(rslora);
    return 0;
}

int adapter_config_read(const char *dir, LoraOptions *out, char **base, Error *err)
{
    char *path = memory_printf("%s/adapter_config.json", dir);
    json_t *o = json_read_file(path, MAX_CONFIG, err);
    int rc = !o                  ? -1
             : json_is_object(o) ? read_options(o, path, out, err)
                                 : error_set(err, ERROR_CORRUPT, "%s: an object is expected", path);
    const char *name = rc ? NULL : json_need_text(o, "base_model_name_or_path", path, err);
    if (!name) rc = -1;
    if (!rc) {
        *base = *name == '/' ? memory_strdup(name) : memory_printf("%s/%s", dir, name);
        char *config = memory_printf("%s/config.json", *base);
        if (!file_exists(config)) {
            rc = error_set(err, ERROR_CORRUPT,
                           "%s: base_model_name_or_path is expected to be a model's directory, "
                           "absolute or from %s; "
                           "found \"%s\"",
                           path, dir, name);
            free(*base);
            *base = NULL;
        }
        free(config);
    }
    json_decref(o);
    free(path);
    return rc;
}

static char *render_config(const Model *m)
{
    const LoraOptions *l = &m->lora_options;
    json_t *targets = json_array();
    for (int i = 0; i < LORA_TARGETS; i++)
        if (l->targets >> i & 1) json_array_append_new(targets, json_string(lora_target(i)));
    json_t *alpha = l->alpha == (double)(long long)l->alpha ? json_integer((long long)l->alpha)
                                                            : json_real(l->alpha);
    json_t *o = json_pack("{s{} s{} ss ss sb sb sb si so sf sn ss so ss sb sb}", "alpha_pattern",
                          "rank_pattern", "base_model_name_or_path", m->base_dir, "bias", "none",
                          "fan_in_fan_out", 0, "inference_mode", 1, "init_lora_weights", 1, "r",
                          l->rank, "lora_alpha", alpha, "lora_dropout", 0.0, "modules_to_save",
                          "peft_type", "LORA", "target_modules", targets, "task_type", "CAUSAL_LM",
                          "use_dora", 0, "use_rslora", l->rslora);
    char *text = o ? json_dumps(o, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    json_decref(o);
    return text;
}

int adapter_save(const Model *m, const char *dir, Error *err)
{
    const ParamSet *p = &m->lora;
    if (!m->base_dir)
        return error_set(
            err, ERROR_INVALID,
            "%s: an adapter names its base model's directory, and the base was not loaded from one",
            dir);
    SafetensorsOut *tensors = set_out(p, m->ops);
    char *weights = memory_printf("%s/adapter_model.safetensors", dir),
         *config = memory_printf("%s/adapter_config.json", dir);
    char *text = render_config(m);
    int rc = text ? -(safetensors_write(weights, tensors, (size_t)p->n, DTYPE_F32, err) ||
                      m->ops->status(err) || file_write_atomic(config, text, strlen(text), err))
                  : error_set(err, ERROR_INVALID,
                              "%s: the adapter's configuration cannot be written", config);
    free(text);
    free(weights);
    free(config);
    free(tensors);
    return rc;
}

static int read_adapter(Model *m, const char *path, const Safetensors *st, Error *err)
{
    const ParamSet *p = &m->lora;
    if (set_check(p, st, err)) return -1;
    for (size_t i = 0; i < safetensors_count(st) && safetensors_count(st) != (size_t)p->n; i++) {
        const char *name = safetensors_at(st, i)->name;
        int k = 0;
        while (k < p->n && strcmp(p->tensor[k].name, name)) k++;
        if (k == p->n)
            return error_set(err, ERROR_CORRUPT, "%s: the tensor %s is none of the adapter's", path,
                             name);
    }
    return set_load(p, m->ops, st, err);
}

int adapter_restore(Model *m, const char *dir, Error *err)
{
    char *path = memory_printf("%s/adapter_model.safetensors", dir);
    Safetensors *st = NULL;
    int rc = -(safetensors_open(path, &st, err) || read_adapter(m, path, st, err));
    safetensors_close(st);
    free(path);
    return rc;
}
