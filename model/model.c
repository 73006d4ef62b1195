/* Parameters: one flat array, a table of named views, and how a new model is drawn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "model/config.h"
#include "model/transformer.h"

static size_t tensor_add(Model *m, const char *name, int64_t rows, int64_t columns, int decay)
{
    m->tensor = memory_grow(m->tensor, (size_t)m->n_tensors + 1, sizeof *m->tensor);
    Tensor *t = &m->tensor[m->n_tensors++];
    *t = (Tensor){.rank = columns ? 2 : 1, .shape = {rows, columns}, .at = m->size, .decay = decay};
    snprintf(t->name, sizeof t->name, "%s", name);
    t->count = (size_t)rows * (size_t)(columns ? columns : 1);
    m->size += t->count;
    m->parameters += t->count;
    return t->at;
}

/* Groups begin at 64 bytes; the padding stays zero. */
static void align(Model *m) { m->size = (m->size + 15) & ~(size_t)15; }

static size_t layer_add(Model *m, int layer, const char *suffix, int64_t rows, int64_t columns)
{
    char name[80];
    snprintf(name, sizeof name, "model.layers.%d.%s", layer, suffix);
    return tensor_add(m, name, rows, columns, columns > 0);
}

static void layout_layer(Model *m, int i)
{
    const ModelConfig *c = &m->c;
    int64_t q = (int64_t)c->heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim;
    LayerAt *at = &m->layer[i];
    at->in_norm = layer_add(m, i, "input_layernorm.weight", c->hidden, 0);
    align(m);
    at->qkv = layer_add(m, i, "self_attn.q_proj.weight", q, c->hidden);
    layer_add(m, i, "self_attn.k_proj.weight", kv, c->hidden);
    layer_add(m, i, "self_attn.v_proj.weight", kv, c->hidden);
    align(m);
    if (c->qkv_bias) {
        at->qkv_bias = layer_add(m, i, "self_attn.q_proj.bias", q, 0);
        layer_add(m, i, "self_attn.k_proj.bias", kv, 0);
        layer_add(m, i, "self_attn.v_proj.bias", kv, 0);
        align(m);
    }
    if (c->qk_norm) {
        at->q_norm = layer_add(m, i, "self_attn.q_norm.weight", c->head_dim, 0);
        at->k_norm = layer_add(m, i, "self_attn.k_norm.weight", c->head_dim, 0);
        align(m);
    }
    at->o = layer_add(m, i, "self_attn.o_proj.weight", c->hidden, q);
    align(m);
    at->post_norm = layer_add(m, i, "post_attention_layernorm.weight", c->hidden, 0);
    align(m);
    at->gate_up = layer_add(m, i, "mlp.gate_proj.weight", c->ff, c->hidden);
    layer_add(m, i, "mlp.up_proj.weight", c->ff, c->hidden);
    align(m);
    at->down = layer_add(m, i, "mlp.down_proj.weight", c->hidden, c->ff);
    align(m);
}

Model *model_layout(const ModelConfig *c)
{
    Model *m = memory_alloc(sizeof *m);
    m->c = *c;
    m->ops = ops_cpu();
    m->shape = (HeadShape){c->heads, c->kv_heads, c->head_dim};
    m->layer = memory_array((size_t)c->layers, sizeof *m->layer);
    m->embed = m->head = tensor_add(m, "model.embed_tokens.weight", c->vocab, c->hidden, 0);
    align(m);
    for (int i = 0; i < c->layers; i++) layout_layer(m, i);
    m->norm = tensor_add(m, "model.norm.weight", c->hidden, 0, 0);
    align(m);
    if (!c->tied) {
        m->head = tensor_add(m, "lm_head.weight", c->vocab, c->hidden, 0);
        align(m);
    }
    return m;
}

static int ends_with(const char *s, const char *end)
{
    size_t a = strlen(s), b = strlen(end);
    return a >= b && !strcmp(s + a - b, end);
}

int model_create(const ModelConfig *c, uint64_t seed, Model **out, Error *err)
{
    if (model_config_check(c, "the new model", err)) return -1;
    Model *m = model_layout(c);
    m->data = m->ops->alloc(m->size);
    for (int i = 0; i < m->n_tensors; i++) {
        const Tensor *t = &m->tensor[i];
        float *w = m->data + t->at;
        if (t->rank == 1) { /* norms are 1, biases 0 */
            float fill = ends_with(t->name, "norm.weight") ? 1 : 0;
            for (size_t j = 0; j < t->count; j++) w[j] = fill;
            continue;
        }
        double std = 0.02;
        if (ends_with(t->name, "o_proj.weight") || ends_with(t->name, "down_proj.weight")) std /= sqrt(2.0 * c->layers);
        Random r;
        random_init(&r, seed, random_hash(t->name, strlen(t->name)));
        for (size_t j = 0; j < t->count; j++) w[j] = (float)(std * random_normal(&r));
    }
    *out = m;
    return 0;
}

void model_free(Model *m)
{
    if (!m) return;
    m->ops->release(m->data);
    free(m->tensor);
    free(m->layer);
    free(m->cosines);
    free(m->sines);
    free(m->config_text);
    free(m);
}

const ModelConfig *model_config(const Model *m) { return &m->c; }
size_t model_parameters(const Model *m) { return m->parameters; }

/* Angles are fp32 as the reference has them: pos * theta^(-2i/d). */
void model_reserve_positions(Model *m, int positions)
{
    if (positions <= m->rope_len) return;
    int half = m->c.head_dim / 2;
    size_t count = (size_t)positions * (size_t)half;
    m->cosines = memory_grow(m->cosines, count, sizeof *m->cosines);
    m->sines = memory_grow(m->sines, count, sizeof *m->sines);
    for (int i = 0; i < half; i++) {
        float inv = (float)(1.0 / pow((double)m->c.rope_theta, 2.0 * i / m->c.head_dim));
        for (int p = m->rope_len; p < positions; p++) {
            float angle = (float)p * inv;
            m->cosines[(size_t)p * (size_t)half + (size_t)i] = (float)cos((double)angle);
            m->sines[(size_t)p * (size_t)half + (size_t)i] = (float)sin((double)angle);
        }
    }
    m->rope_len = positions;
}
