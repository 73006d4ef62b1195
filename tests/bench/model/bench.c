/* Shapes of open models, random weights, and the FLOPs of a token. */
#include "tests/bench/model/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "model/core/model_config.h"
#include "model/core/transformer.h"
#include "model/files/safetensors.h"

static const struct {
    const char *name, *type;
    int vocab, hidden, ff, layers, heads, kv_heads, head_dim, tied;
} shapes[] = {
    {"tiny", "qwen2", 2048, 192, 512, 4, 6, 2, 32, 1}, /* of the default run */
    {"qwen2.5-0.5b", "qwen2", 151936, 896, 4864, 24, 14, 2, 64, 1},
    {"qwen2.5-1.5b", "qwen2", 151936, 1536, 8960, 28, 12, 2, 128, 1},
    {"qwen2.5-3b", "qwen2", 151936, 2048, 11008, 36, 16, 2, 128, 1},
    {"qwen2.5-7b", "qwen2", 152064, 3584, 18944, 28, 28, 4, 128, 0},
    {"qwen2.5-14b", "qwen2", 152064, 5120, 13824, 48, 40, 8, 128, 0},
    {"qwen2.5-32b", "qwen2", 152064, 5120, 27648, 64, 40, 8, 128, 0},
    {"qwen3-0.6b", "qwen3", 151936, 1024, 3072, 28, 16, 8, 128, 1},
    {"qwen3-1.7b", "qwen3", 151936, 2048, 6144, 28, 16, 8, 128, 1},
    {"qwen3-8b", "qwen3", 151936, 4096, 12288, 36, 32, 8, 128, 0},
    {"llama-3.2-1b", "llama", 128256, 2048, 8192, 16, 32, 8, 64, 1},
    {"llama-3.1-8b", "llama", 128256, 4096, 14336, 32, 32, 8, 128, 0},
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

const char *bench_shape_names(void)
{
    static char names[SHAPES * 20];
    size_t at = 0;
    for (int i = 0; i < SHAPES; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? "|" : "", shapes[i].name);
    return names;
}

int bench_shape(const char *name, ModelConfig *c, Error *err)
{
    int i = 0;
    while (i < SHAPES && strcmp(shapes[i].name, name)) i++;
    if (i == SHAPES)
        return error_set(err, ERROR_INVALID, "a shape is one of %s, found \"%s\"",
                         bench_shape_names(), name);
    *c = (ModelConfig){.vocab = shapes[i].vocab,
                       .hidden = shapes[i].hidden,
                       .ff = shapes[i].ff,
                       .layers = shapes[i].layers,
                       .heads = shapes[i].heads,
                       .kv_heads = shapes[i].kv_heads,
                       .head_dim = shapes[i].head_dim,
                       .max_position = 1 << 18,
                       .rope_theta = 1e6f,
                       .norm_eps = 1e-6f,
                       .tied = shapes[i].tied,
                       .pad = -1,
                       .dtype = DTYPE_BF16};
    snprintf(c->model_type, sizeof c->model_type, "%s", shapes[i].type);
    c->qkv_bias = !strcmp(shapes[i].type, "qwen2");
    c->qk_norm = !strcmp(shapes[i].type, "qwen3");
    return 0;
}

/* Fill all weights from N(0, 0.02^2), then set vectors as in a new model: norms 1, biases 0. */
static void fill(Model *m)
{
    enum { BLOCK = 1 << 20 };
    const Ops *op = m->ops;
    const ParamSet *p = &m->base;
    float *host = memory_array(BLOCK, sizeof *host);
    Random r;
    random_init(&r, 1, 0);
    for (int i = 0; i < BLOCK; i++) host[i] = (float)(0.02 * random_normal(&r));
    size_t first = p->size < BLOCK ? p->size : BLOCK;
    op->load(p->data, host, first);
    for (size_t at = first, n; at < p->size; at += n) {
        n = p->size - at < at ? p->size - at : at; /* double the filled part */
        op->copy(num_at(op, p->data, at), p->data, n * (size_t)op->num);
    }
    for (int i = 0; i < p->n; i++) {
        const Tensor *t = &p->tensor[i];
        if (t->rank > 1) continue;
        for (size_t k = 0; k < t->count; k++) host[k] = strstr(t->name, "norm.weight") ? 1 : 0;
        op->load(weight_at(m, t->at), host, t->count);
    }
    free(host);
}

int bench_model(const ModelConfig *c, const Ops *ops, Model **out, Error *err)
{
    if (model_config_check(c, "the model", err)) return -1;
    Model *m = model_layout(c, ops);
    m->base.data = ops->alloc(m->base.size * (size_t)ops->num);
    if (m->base.data) fill(m);
    if (ops->status(err)) {
        model_free(m);
        return -1;
    }
    *out = m;
    return 0;
}

double bench_peak(const Ops *ops, int side)
{
    size_t n = (size_t)side * (size_t)side;
    Num *x = ops->alloc(3 * n * (size_t)ops->num);
    Gemm g = {.a = matrix(x, side, side),
              .b = transposed(matrix(num_at(ops, x, n), side, side)),
              .alpha = 1,
              .d = num_at(ops, x, 2 * n),
              .ldd = side};
    double best = 0;
    for (int i = 0; i < 8 && x; i++) {
        enum { AT_ONCE = 4 };
        double begin = clock_seconds();
        for (int k = 0; k < AT_ONCE; k++) ops->gemm(&g);
        if (ops->status(NULL)) break;
        double rate = AT_ONCE * 2.0 * (double)n * side / (clock_seconds() - begin);
        if (rate > best) best = rate;
    }
    ops->release(x);
    return best;
}

static double weights_flops(const ModelConfig *c)
{
    double row = (c->heads + 2.0 * c->kv_heads) * c->head_dim,
           wide = (double)c->heads * c->head_dim;
    return 2 * (c->layers * (c->hidden * row + wide * c->hidden + 3.0 * c->hidden * c->ff) +
                (double)c->vocab * c->hidden);
}

static double attention_flops(const ModelConfig *c, double context)
{
    return 4.0 * c->layers * c->heads * c->head_dim * context;
}

double bench_forward_flops(const ModelConfig *c, double context)
{
    return weights_flops(c) + attention_flops(c, context);
}

double bench_training_flops(const ModelConfig *c, double context, int full)
{
    return (full ? 3 : 2) * weights_flops(c) + 3 * attention_flops(c, context);
}
