/* The layout of adapters, and their initial values. */
#include "model/core/lora.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "model/core/parameters.h"

static const struct {
    const char *name, *path;
} projection[LORA_TARGETS] = {
    {"q_proj", "self_attn"}, {"k_proj", "self_attn"}, {"v_proj", "self_attn"},
    {"o_proj", "self_attn"}, {"gate_proj", "mlp"},    {"up_proj", "mlp"},
    {"down_proj", "mlp"},
};

const char *lora_target(int i)
{
    return projection[i].name;
}

static size_t matrix_add(Model *m, int layer, int target, const char *which, int rows, int columns)
{
    char name[120];
    snprintf(name, sizeof name, "base_model.model.model.layers.%d.%s.%s.lora_%s.weight", layer,
             projection[target].path, projection[target].name, which);
    return set_add(&m->lora, name, rows, columns, 1);
}

/* The matrices A of the parts of a projection are adjacent, so that u is one product. */
static void linear_adapt(Model *m, int layer, Linear *l, int target)
{
    int rank = m->lora_options.rank;
    unsigned targets = m->lora_options.targets;
    for (int i = 0; i < l->parts; i++) {
        if (!(targets >> (target + i) & 1)) continue;
        size_t at = matrix_add(m, layer, target + i, "A", rank, l->k);
        if (!l->u) l->a = at;
        l->part[i].u = l->u;
        l->u += rank;
    }
    set_align(&m->lora, m->ops);
    for (int i = 0; i < l->parts; i++) {
        if (l->part[i].u < 0) continue;
        l->part[i].b = matrix_add(m, layer, target + i, "B", l->part[i].n, rank);
        set_align(&m->lora, m->ops);
    }
}

int lora_layout(Model *m, const LoraOptions *o, Error *err)
{
    if (o->rank < 1 || o->rank > 4096)
        return error_set(err, ERROR_INVALID,
                         "an adapter's rank is expected to be 1 to 4096, found %d", o->rank);
    if (!(o->alpha > 0) || !isfinite(o->alpha))
        return error_set(err, ERROR_INVALID,
                         "an adapter's alpha is expected to be above 0, found %g", o->alpha);
    if (!o->targets || o->targets > LORA_ALL)
        return error_set(err, ERROR_INVALID, "an adapter without target projections");
    if (m->lora.size) return error_set(err, ERROR_INVALID, "the model has an adapter already");
    m->lora_options = *o;
    m->lora_scale = (float)(o->alpha / (o->rslora ? sqrt((double)o->rank) : (double)o->rank));
    for (int i = 0; i < m->c.layers; i++) {
        LayerAt *at = &m->layer[i];
        linear_adapt(m, i, &at->qkv, 0);
        linear_adapt(m, i, &at->o, 3);
        linear_adapt(m, i, &at->gate_up, 4);
        linear_adapt(m, i, &at->down, 6);
    }
    set_end(&m->lora, m->ops);
    return 0;
}

static void draw_a(Model *m, const Tensor *t)
{
    float *host = memory_array(t->count, sizeof *host);
    double bound = 1 / sqrt((double)t->shape[1]);
    Random r;
    random_init(&r, m->lora_options.seed, random_hash(t->name, strlen(t->name)));
    for (size_t i = 0; i < t->count; i++) host[i] = (float)(bound * (2 * random_uniform(&r) - 1));
    m->ops->load(num_at(m->ops, m->lora.data, t->at), host, t->count);
    free(host);
}

int model_add_lora(Model *m, const LoraOptions *o, Error *err)
{
    if (lora_layout(m, o, err)) return -1;
    m->lora.data = m->ops->alloc(m->lora.size * (size_t)m->ops->num);
    for (int i = 0; i < m->lora.n && m->lora.data; i++)
        if (strstr(m->lora.tensor[i].name, ".lora_A.")) draw_a(m, &m->lora.tensor[i]);
    return m->ops->status(err);
}

const LoraOptions *model_lora(const Model *m)
{
    return m->lora.size ? &m->lora_options : NULL;
}
