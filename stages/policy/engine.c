/* Flags become options of model/; a plan reads the configuration of a model only. */
#include "stages/policy/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model/core/lora.h"
#include "model/core/ops.h"
#include "model/cpu/ops_cpu.h"
#include "model/files/model_files.h"
#include "model/memory_plan.h"
#include "model/model_device.h"

enum { MAX_CONFIG = 1 << 24, CPU_TOKENS = 8192 };

void engine_check(EngineFlags *e, const FlagSpec *spec, const char *base)
{
    if (e->trainer && !base)
        flags_usage_error(spec, "--trainer needs --base: a model that the trainer starts from");
    if (e->trainer && e->plan)
        flags_usage_error(spec,
                          "--plan is of training here; what --trainer takes is its own matter");
    if (e->rslora && !e->lora)
        flags_usage_error(spec, "--rslora needs --lora: it scales an adapter");
    if (e->lora && !base)
        flags_usage_error(spec,
                          "--lora needs --base: an adapter is trained on a model that has learned");
    if (e->lean && !strcmp(e->device, "cpu"))
        flags_usage_error(spec, "--lean needs a GPU: --engine cuda:N or auto");
    if (!e->tokens && !strcmp(e->device, "cpu")) e->tokens = CPU_TOKENS;
}

/* Returns the value of a text flag that the program has. */
static const char *text_flag(const FlagSpec *spec, const char *name, size_t len)
{
    const Flag *f = spec->flags;
    while (strlen(f->name) != len || memcmp(f->name, name, len)) f++;
    return *(const char **)f->target;
}

void engine_required(const EngineFlags *e, const FlagSpec *spec, const char *names)
{
    for (size_t len; !e->plan && !flags_checking() && *names; names += len + (names[len] == '|')) {
        len = strcspn(names, "|");
        if (!text_flag(spec, names, len))
            flags_usage_error(spec, "--%.*s is required", (int)len, names);
    }
}

void engine_config(const EngineFlags *e, ArtifactSpec *s)
{
    artifact_spec_config(s, "micro-tokens", "%lld", (long long)e->tokens);
}

LoraOptions engine_lora(const EngineFlags *e, uint64_t seed)
{
    return (LoraOptions){.rank = (int)e->lora,
                         .alpha = e->alpha,
                         .rslora = e->rslora,
                         .targets = LORA_ALL,
                         .seed = seed};
}

TrainerOptions engine_training(const EngineFlags *e, int fixed_weights)
{
    Recompute r = !strcmp(e->recompute, "on")    ? RECOMPUTE_YES
                  : !strcmp(e->recompute, "off") ? RECOMPUTE_NO
                                                 : RECOMPUTE_AUTO;
    return (TrainerOptions){.max_tokens = (int)e->tokens,
                            .recompute = r,
                            .lean = e->lean,
                            .fixed_weights = fixed_weights};
}

int engine_start(const EngineFlags *e, Error *err)
{
    return e->gpus > 1 ? ranks_start((int)e->gpus, err) : 0;
}

int engine_finish(Error *err)
{
    return ranks_finish(err);
}

int engine_ops(const EngineFlags *e, const Ops **out, Error *err)
{
    static int joined;
    char device[16];
    if (ranks_device(e->device, device, err) || model_device(device, out, err)) return -1;
    return joined++ ? 0 : ranks_join(*out, err);
}

int engine_policy(const EngineFlags *e, const char *dir, Policy *out, Error *err)
{
    const Ops *ops;
    return -(engine_ops(e, &ops, err) || policy_load(dir, ops, out, err));
}

int engine_adapter(const EngineFlags *e, uint64_t seed, Model *m, Error *err)
{
    const LoraOptions *present = model_lora(m), asked = engine_lora(e, seed);
    if (!e->lora) return 0;
    if (!present) return model_add_lora(m, &asked, err);
    if (present->rank == asked.rank) return 0;
    return error_set(err, ERROR_INVALID,
                     "--lora %d: the model to start from has an adapter of rank %d already, which "
                     "is trained further",
                     asked.rank, present->rank);
}

/* Reads the configuration of a model directory. For an adapter it is the base's, and *lora is set
 * to the adapter's options; else lora->rank is 0. */
static int read_config(const char *dir, ModelConfig *c, LoraOptions *lora, Error *err)
{
    char path[4096], *base = NULL;
    Buffer b;
    *lora = (LoraOptions){0};
    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    if (file_exists(path) && adapter_config_read(dir, lora, &base, err)) return -1;
    snprintf(path, sizeof path, "%s/config.json", base ? base : dir);
    buffer_init(&b, MAX_CONFIG);
    int rc =
        -(file_read(path, MAX_CONFIG, &b, err) || model_config_parse(b.data, b.len, path, c, err));
    buffer_release(&b);
    free(base);
    return rc;
}

/* Writes a plan to stdout and releases it. */
static void print_plan(Buffer *b)
{
    fwrite(b->data, 1, b->len, stdout);
    buffer_release(b);
}

int engine_plan(const EngineFlags *e, const char *base, const ModelConfig *small, int fixed_weights,
                Error *err)
{
    const Ops *ops;
    ModelConfig c;
    LoraOptions lora = {0};
    if (base ? read_config(base, &c, &lora, err) || policy_check(base, err) : (c = *small, 0))
        return -1;
    if (!lora.rank) lora = engine_lora(e, 0);
    TrainerOptions t = engine_training(e, fixed_weights);
    MemoryPlan p;
    if (engine_start(e, err) || engine_ops(e, &ops, err))
        return -1; /* each of several GPUs holds a slice of the optimizer's state */
    if (!t.max_tokens && ops == ops_cpu()) t.max_tokens = CPU_TOKENS;
    if (plan_training(&(PlannedModel){&c, ops, lora.rank ? &lora : NULL}, &t, &p, err)) return -1;
    Buffer b;
    buffer_init(&b, 1 << 16);
    plan_print(&p, &b);
    print_plan(&b);
    return engine_finish(err);
}

int engine_plan_sampling(const EngineFlags *e, const char *dir, int batch, int max_new, Error *err)
{
    const Ops *ops;
    ModelConfig c;
    LoraOptions lora;
    SamplingPlan p;
    if (read_config(dir, &c, &lora, err) || policy_check(dir, err) || engine_ops(e, &ops, err))
        return -1;
    if (max_new >= c.max_position)
        return error_set(err, ERROR_INVALID,
                         "--max-new is %d and %s has %d positions, which prompts need too", max_new,
                         dir, c.max_position);
    if (plan_sampling(&(PlannedModel){&c, ops, lora.rank ? &lora : NULL}, batch, max_new, &p, err))
        return -1;
    Buffer b;
    buffer_init(&b, 1 << 16);
    plan_print_sampling(&p, c.max_position, &b);
    print_plan(&b);
    return 0;
}
