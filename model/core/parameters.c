/* Parameters: one flat array, a table of named views, and the initial weights of a new model. */
#include "model/core/parameters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "model/core/halves.h"
#include "model/core/model_config.h"
#include "model/core/ranks.h"

size_t set_add(ParamSet *s, const char *name, int64_t rows, int64_t columns, int decay)
{
    s->tensor = memory_grow(s->tensor, (size_t)s->n + 1, sizeof *s->tensor);
    Tensor *t = &s->tensor[s->n++];
    *t = (Tensor){.rank = columns ? 2 : 1, .shape = {rows, columns}, .at = s->size, .decay = decay};
    snprintf(t->name, sizeof t->name, "%s", name);
    t->count = (size_t)rows * (size_t)(columns ? columns : 1);
    s->size += t->count;
    s->count += t->count;
    return t->at;
}

/* Groups begin at the alignment of the device. The padding stays zero. */
void set_align(ParamSet *s, const Ops *op)
{
    size_t mask = (size_t)op->align - 1;
    s->size = (s->size + mask) & ~mask;
}

void set_end(ParamSet *s, const Ops *op)
{
    s->size = ranks_each(s->size, (size_t)op->align) * (size_t)ranks_size();
}

static void set_release(ParamSet *s, const Ops *op)
{
    op->release(s->data);
    free(s->tensor);
    *s = (ParamSet){0};
}

static size_t layer_add(Model *m, int layer, const char *suffix, int64_t rows, int64_t columns)
{
    char name[80];
    snprintf(name, sizeof name, "model.layers.%d.%s", layer, suffix);
    return set_add(&m->base, name, rows, columns, columns > 0);
}

static size_t norm_add(Model *m, int layer, const char *suffix, int64_t n)
{
    size_t at = layer_add(m, layer, suffix, n, 0);
    set_align(&m->base, m->ops);
    return at;
}

/* The adjacent matrices of a projection, by name and number of rows. */
typedef struct {
    int n;
    const char *name[3];
    int rows[3];
} Parts;

/* A projection, and its biases. */
static Linear linear_add(Model *m, int layer, Parts part, int columns, int bias)
{
    Linear l = {.k = columns, .parts = part.n, .has_bias = bias};
    char full[64];
    for (int i = 0; i < part.n; i++) {
        snprintf(full, sizeof full, "%s.weight", part.name[i]);
        size_t at = layer_add(m, layer, full, part.rows[i], columns);
        if (!i) l.weight = at;
        l.part[i] = (LinearPart){.first = l.n, .n = part.rows[i], .u = -1};
        l.n += part.rows[i];
    }
    set_align(&m->base, m->ops);
    for (int i = 0; i < part.n && bias; i++) {
        snprintf(full, sizeof full, "%s.bias", part.name[i]);
        size_t at = layer_add(m, layer, full, part.rows[i], 0);
        if (!i) l.bias = at;
    }
    if (bias) set_align(&m->base, m->ops);
    return l;
}

static void layout_layer(Model *m, int i)
{
    const ModelConfig *c = &m->c;
    int q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    Parts qkv = {3, {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, {q, kv, kv}};
    Parts gate_up = {2, {"mlp.gate_proj", "mlp.up_proj"}, {c->ff, c->ff}};
    LayerAt *at = &m->layer[i];
    at->in_norm = norm_add(m, i, "input_layernorm.weight", c->hidden);
    at->qkv = linear_add(m, i, qkv, c->hidden, c->qkv_bias);
    if (c->qk_norm) {
        at->q_norm = layer_add(m, i, "self_attn.q_norm.weight", c->head_dim, 0);
        at->k_norm = norm_add(m, i, "self_attn.k_norm.weight", c->head_dim);
    }
    at->o = linear_add(m, i, (Parts){1, {"self_attn.o_proj"}, {c->hidden}}, q, 0);
    at->post_norm = norm_add(m, i, "post_attention_layernorm.weight", c->hidden);
    at->gate_up = linear_add(m, i, gate_up, c->hidden, 0);
    at->down = linear_add(m, i, (Parts){1, {"mlp.down_proj"}, {c->hidden}}, c->ff, 0);
}

Model *model_layout(const ModelConfig *c, const Ops *ops)
{
    Model *m = memory_alloc(sizeof *m);
    m->c = *c;
    m->ops = ops;
    m->shape = (HeadShape){c->heads, c->kv_heads, c->head_dim};
    m->layer = memory_array((size_t)c->layers, sizeof *m->layer);
    m->embed = m->head = set_add(&m->base, "model.embed_tokens.weight", c->vocab, c->hidden, 0);
    set_align(&m->base, ops);
    for (int i = 0; i < c->layers; i++) layout_layer(m, i);
    m->norm = set_add(&m->base, "model.norm.weight", c->hidden, 0, 0);
    set_align(&m->base, ops);
    if (!c->tied) {
        m->head = set_add(&m->base, "lm_head.weight", c->vocab, c->hidden, 0);
        set_align(&m->base, ops);
    }
    set_end(&m->base, ops);
    return m;
}

static int ends_with(const char *s, const char *end)
{
    size_t a = strlen(s), b = strlen(end);
    return a >= b && !strcmp(s + a - b, end);
}

/* Norms are 1, biases 0 and matrices random. They are made in pieces, so that no whole tensor is in
 * host memory. */
static void draw_tensor(Model *m, const Tensor *t, uint64_t seed)
{
    enum { PIECE = 1 << 16 };
    float *host = memory_array(t->count < PIECE ? t->count : PIECE, sizeof *host);
    float fill = ends_with(t->name, "norm.weight") ? 1 : 0;
    double std = 0.02;
    if (ends_with(t->name, "o_proj.weight") || ends_with(t->name, "down_proj.weight"))
        std /= sqrt(2.0 * m->c.layers);
    Random r;
    random_init(&r, seed, random_hash(t->name, strlen(t->name)));
    for (size_t at = 0; at < t->count; at += PIECE) {
        size_t n = t->count - at < PIECE ? t->count - at : PIECE;
        for (size_t i = 0; i < n; i++)
            host[i] = t->rank == 1 ? fill : (float)(std * random_normal(&r));
        m->ops->load(weight_at(m, t->at + at), host, n);
    }
    free(host);
}

int model_create(const ModelConfig *c, const Ops *ops, uint64_t seed, Model **out, Error *err)
{
    if (model_config_check(c, "the new model", err)) return -1;
    Model *m = model_layout(c, ops);
    m->base.data = ops->alloc(m->base.size * (size_t)ops->num);
    for (int i = 0; i < m->base.n && m->base.data; i++) draw_tensor(m, &m->base.tensor[i], seed);
    if (ops->status(err)) {
        model_free(m);
        return -1;
    }
    *out = m;
    return 0;
}

void model_free(Model *m)
{
    if (!m) return;
    set_release(&m->base, m->ops);
    set_release(&m->lora, m->ops);
    m->ops->release(m->cosines);
    m->ops->release(m->sines);
    free(m->layer);
    free(m->base_dir);
    free(m->config_text);
    free(m);
}

const ModelConfig *model_config(const Model *m)
{
    return &m->c;
}
size_t model_parameters(const Model *m)
{
    return m->base.count;
}

int model_add_end(Model *m, int id, Error *err)
{
    ModelConfig *c = &m->c;
    for (int i = 0; i < c->n_eos; i++)
        if (c->eos[i] == id) return 0;
    if (c->n_eos == 8 || id < 0 || id >= c->vocab)
        return error_set(err, ERROR_LIMIT,
                         "the end token %d: expected one of the %d ids of the vocabulary, and 8 "
                         "end tokens at most",
                         id, c->vocab);
    c->eos[c->n_eos++] = id;
    return 0;
}

size_t model_position_bytes(const Model *m, int positions)
{
    return (size_t)positions * (size_t)m->c.head_dim * sizeof(float);
}

/* transformers rounds cosines and sines to the type of the activations. */
static float as_activation(const Ops *op, float x)
{
    return op->num == 2 ? bf16_to_float(float_to_bf16(x)) : x;
}

/* Angles are fp32 as in the reference. The table grows by doubling. */
void model_reserve_positions(Model *m, int positions)
{
    if (positions <= m->rope_len) return;
    const Ops *op = m->ops;
    if (positions < 2 * m->rope_len) positions = 2 * m->rope_len;
    int half = m->c.head_dim / 2;
    size_t count = (size_t)positions * (size_t)half;
    float *host = memory_array(2 * count, sizeof *host),
          *inv = memory_array((size_t)half, sizeof *inv), scale;
    rope_frequencies(&m->c, inv, &scale);
    for (int p = 0; p < positions; p++)
        for (int i = 0; i < half; i++) {
            float angle = (float)p * inv[i];
            size_t at = (size_t)p * (size_t)half + (size_t)i;
            host[at] = as_activation(op, (float)cos((double)angle) * scale);
            host[count + at] = as_activation(op, (float)sin((double)angle) * scale);
        }
    op->release(m->cosines);
    op->release(m->sines);
    m->cosines = op->alloc(count * sizeof *host);
    m->sines = op->alloc(count * sizeof *host);
    op->upload(m->cosines, host, count * sizeof *host);
    op->upload(m->sines, host + count, count * sizeof *host);
    free(host);
    free(inv);
    m->rope_len = positions;
}
