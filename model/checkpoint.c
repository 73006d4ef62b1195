/* Models and optimiser states on disk. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "model/config.h"
#include "model/safetensors.h"
#include "model/trainer.h"

enum { MAX_CONFIG = 1 << 20 };

static int read_configs(const char *dir, ModelConfig *c, Buffer *text, Error *err)
{
    char *path = memory_printf("%s/config.json", dir), *more = memory_printf("%s/generation_config.json", dir);
    int rc = file_read(path, MAX_CONFIG, text, err) || model_config_parse(text->data, text->len, path, c, err);
    if (!rc && file_exists(more)) {
        Buffer extra;
        buffer_init(&extra, MAX_CONFIG);
        rc = file_read(more, MAX_CONFIG, &extra, err) || model_config_add_eos(extra.data, extra.len, more, c, err);
        buffer_release(&extra);
    }
    free(path);
    free(more);
    return rc ? -1 : 0;
}

/* The file must hold as many numbers as the configuration claims before they are allocated. */
static int read_weights(Model *m, const char *dir, Error *err)
{
    Safetensors *st;
    if (safetensors_open(dir, &st, err)) return -1;
    size_t present = 0;
    for (size_t i = 0; i < safetensors_count(st); i++) present += safetensors_at(st, i)->elements;
    int rc = 0;
    if (present < m->parameters)
        rc = error_set(err, "%s: config.json describes %zu parameters, the weights hold %zu numbers", dir, m->parameters, present);
    if (!rc) m->data = m->ops->alloc(m->size);
    for (int i = 0; !rc && i < m->n_tensors; i++)
        rc = safetensors_read_f32(st, m->tensor[i].name, m->tensor[i].rank, m->tensor[i].shape, m->data + m->tensor[i].at, err);
    safetensors_close(st);
    return rc;
}

int model_load(const char *dir, Model **out, Error *err)
{
    ModelConfig c;
    Buffer text;
    buffer_init(&text, MAX_CONFIG);
    Model *m = NULL;
    int rc = read_configs(dir, &c, &text, err);
    if (!rc) {
        m = model_layout(&c);
        rc = read_weights(m, dir, err);
    }
    if (rc) {
        model_free(m);
        buffer_release(&text);
        return -1;
    }
    m->config_len = text.len;
    m->config_text = buffer_detach(&text);
    buffer_release(&text);
    *out = m;
    return 0;
}

int model_restore(Model *m, const char *dir, Error *err)
{
    return read_weights(m, dir, err);
}

static SafetensorsOut out_of(const Tensor *t, const char *name, const float *base)
{
    return (SafetensorsOut){.name = name, .rank = t->rank, .shape = {t->shape[0], t->shape[1]}, .data = base + t->at};
}

/* Weights first: a directory whose config.json is new has its weights. */
int model_save(const Model *m, const char *dir, Error *err)
{
    SafetensorsOut *tensors = memory_array((size_t)m->n_tensors, sizeof *tensors);
    for (int i = 0; i < m->n_tensors; i++) tensors[i] = out_of(&m->tensor[i], m->tensor[i].name, m->data);
    char *weights = memory_printf("%s/model.safetensors", dir), *config = memory_printf("%s/config.json", dir);
    Buffer text;
    buffer_init(&text, MAX_CONFIG);
    if (m->config_text) buffer_append(&text, m->config_text, m->config_len);
    else model_config_print(&m->c, &text);
    int rc = safetensors_write(weights, tensors, (size_t)m->n_tensors, ST_F32, err) ||
             file_write_atomic(config, text.data, text.len, err);
    buffer_release(&text);
    free(weights);
    free(config);
    free(tensors);
    return rc ? -1 : 0;
}

/* ---- the optimiser: m.<tensor>, v.<tensor>, and the step as a number of its own ---- */

enum { MAX_STEP = 1 << 24 }; /* whole numbers that fp32 holds */

int trainer_save(const Trainer *t, const char *path, Error *err)
{
    const Model *m = t->model;
    if (t->step > MAX_STEP) return error_set(err, "%s: step %lld is too large to store", path, (long long)t->step);
    size_t n = 2 * (size_t)m->n_tensors + 1;
    SafetensorsOut *out = memory_array(n, sizeof *out);
    char(*name)[96] = memory_array(n, sizeof *name);
    for (int i = 0; i < m->n_tensors; i++) {
        snprintf(name[2 * i], sizeof *name, "m.%s", m->tensor[i].name);
        snprintf(name[2 * i + 1], sizeof *name, "v.%s", m->tensor[i].name);
        out[2 * i] = out_of(&m->tensor[i], name[2 * i], t->m);
        out[2 * i + 1] = out_of(&m->tensor[i], name[2 * i + 1], t->v);
    }
    float step = (float)t->step;
    out[n - 1] = (SafetensorsOut){.name = "step", .rank = 1, .shape = {1}, .data = &step};
    int rc = safetensors_write(path, out, n, ST_F32, err);
    free(out);
    free(name);
    return rc;
}

/* Into new arrays: a file that turns out to be another model's leaves the trainer as it was. */
int trainer_load(Trainer *t, const char *path, Error *err)
{
    const Model *m = t->model;
    Safetensors *st;
    if (safetensors_open(path, &st, err)) return -1;
    float *state[2] = {m->ops->alloc(m->size), m->ops->alloc(m->size)}, step = 0;
    int64_t one[1] = {1};
    int rc = safetensors_read_f32(st, "step", 1, one, &step, err);
    if (!rc && !(step >= 0 && step <= MAX_STEP && floorf(step) == step))
        rc = error_set(err, "%s: step is expected to be a whole number, found %g", path, (double)step);
    for (int i = 0; !rc && i < 2 * m->n_tensors; i++) {
        const Tensor *x = &m->tensor[i / 2];
        char name[96];
        snprintf(name, sizeof name, "%c.%s", i % 2 ? 'v' : 'm', x->name);
        rc = safetensors_read_f32(st, name, x->rank, x->shape, state[i % 2] + x->at, err);
    }
    safetensors_close(st);
    if (!rc) {
        float *old[2] = {t->m, t->v};
        t->m = state[0];
        t->v = state[1];
        t->step = (int64_t)step;
        m->ops->zero(t->grad, m->size);
        state[0] = old[0];
        state[1] = old[1];
    }
    m->ops->release(state[0]);
    m->ops->release(state[1]);
    return rc;
}
