/* The state of the optimizer on disk: m.<tensor>, v.<tensor>, and w.<tensor> where the weights are
 * finer than the model's file stores, and the step and the tokens of a micro-batch as numbers.
 * Every rank has a slice of m, v and w; rank 0 writes the slices of all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "model/files/tensor_file.h"
#include "model/trainer_state.h"

enum { MAX_STEP = 1 << 24, NAME = 128 }; /* fp32 represents whole numbers up to MAX_STEP exactly */

typedef struct {
    char letter;
    void *data;
    int wide;  /* float, else Num */
    int whole; /* the whole set, else the slices of this rank */
} State;

/* Returns whether the model's file rounds the weights: fp32 weights in a file of 16 bits, or bf16
 * in a file of F16, whose small numbers are coarser. */
static int rounded(const Trainer *t)
{
    int wide = t->model->ops->num == sizeof(float);
    Dtype dtype = t->model->c.dtype;
    return t->set == &t->model->base && (wide ? dtype != DTYPE_F32 : dtype == DTYPE_F16);
}

/* List the stored arrays in the order of their names. Returns their number. */
static int states(const Trainer *t, State s[3])
{
    int alone = ranks_size() == 1;
    s[0] = (State){'m', t->m, !t->o.lean, alone};
    s[1] = (State){'v', t->v, !t->o.lean, alone};
    s[2] = t->master ? (State){'w', t->master, 1, alone}
                     : (State){'w', t->set->data, t->model->ops->num == sizeof(float), 1};
    return t->master || rounded(t) ? 3 : 2;
}

static size_t bytes_of(const Trainer *t, const State *s)
{
    return s->wide ? sizeof(float) : (size_t)t->model->ops->num;
}

/* The slices of all ranks, gathered into the array of gradients, which is 0 between steps. */
typedef struct {
    const Trainer *t;
    const State *now;
    Error err;
    int failed;
} Gathered;

static void gather(Gathered *g, const State *s)
{
    const Trainer *t = g->t;
    size_t bytes = bytes_of(t, s);
    char *all = (char *)t->grad;
    g->now = s;
    if (s->whole) return;
    for (size_t at = 0; at < t->set->size && !g->failed; at += t->piece) {
        Piece p = piece_at(t, at);
        t->model->ops->copy(all + p.mine * bytes, (char *)s->data + p.own * bytes, p.each * bytes);
        g->failed = ranks_all_gather(all + p.at * bytes, p.each * bytes, &g->err) != 0;
    }
    ranks_settle();
}

typedef struct {
    Gathered *g;
    const State *s;
    size_t at; /* position in the set */
} Source;

/* Tensors are written in the order of their names, so that each state is gathered once. */
static void read_state(const void *from, size_t first, size_t n, float *to)
{
    const Source *x = from;
    const State *s = x->s;
    const Ops *op = x->g->t->model->ops;
    if (x->g->now != s) gather(x->g, s);
    const char *data = s->whole ? s->data : (const void *)x->g->t->grad;
    data += (x->at + first) * bytes_of(x->g->t, s);
    if (s->wide)
        op->download(to, data, n * sizeof *to);
    else
        op->store(to, data, n);
}

static int write_file(const char *path, const State *state, int k, Gathered *g, Error *err)
{
    const Trainer *t = g->t;
    const ParamSet *p = t->set;
    size_t n = (size_t)k * (size_t)p->n + 2, at = 0;
    SafetensorsOut *out = memory_array(n, sizeof *out);
    Source *from = memory_array(n, sizeof *from);
    char(*name)[NAME] = memory_array(n, sizeof *name);
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < k; j++, at++) {
            const Tensor *x = &p->tensor[i];
            snprintf(name[at], NAME, "%c.%s", state[j].letter, x->name);
            from[at] = (Source){g, &state[j], x->at};
            out[at] = (SafetensorsOut){.name = name[at],
                                       .rank = x->rank,
                                       .shape = {x->shape[0], x->shape[1]},
                                       .read = read_state,
                                       .from = &from[at]};
        }
    float step = (float)t->step, tokens = (float)t->o.max_tokens;
    out[at++] = (SafetensorsOut){.name = "max_tokens", .rank = 1, .shape = {1}, .data = &tokens};
    out[at] = (SafetensorsOut){.name = "step", .rank = 1, .shape = {1}, .data = &step};
    int rc = safetensors_write(path, out, n, DTYPE_F32, err);
    free(out);
    free(from);
    free(name);
    return rc;
}

int trainer_save(const Trainer *t, const char *path, Error *err)
{
    const Ops *op = t->model->ops;
    if (t->step > MAX_STEP)
        return error_set(err, ERROR_LIMIT, "%s: step %lld is too large to store", path,
                         (long long)t->step);
    State state[3];
    Gathered g = {.t = t};
    int k = states(t, state), rc = 0;
    if (!ranks_rank())
        rc = write_file(path, state, k, &g, err);
    else
        for (int i = 0; i < k; i++) gather(&g, &state[i]);
    if (!rc && g.failed) {
        if (err) *err = g.err;
        rc = -1;
    }
    if (ranks_size() > 1) op->zero(t->grad, t->set->size * sizeof *t->grad);
    return rc ? -1 : op->status(err);
}

/* Load the part of a tensor that this rank holds of a state. */
static int load_part(const Trainer *t, const Safetensors *st, const TensorSlice *whole,
                     const State *s, Error *err)
{
    const Tensor *x = whole->t;
    for (size_t at = 0; at < t->set->size; at += s->whole ? t->set->size : t->piece) {
        Piece p = s->whole ? (Piece){.each = t->set->size} : piece_at(t, at);
        size_t begin = x->at, end = x->at + x->count;
        if (begin < p.mine) begin = p.mine;
        if (end > p.mine + p.each) end = p.mine + p.each;
        if (begin >= end) continue;
        const TensorSlice part = {whole->name, x, begin - x->at, end - begin};
        char *to = (char *)s->data + (p.own + begin - p.mine) * bytes_of(t, s);
        if (tensor_load(st, &part, (DeviceArray){t->model->ops, to, s->wide}, err)) return -1;
    }
    return 0;
}

/* Load a state of a tensor; where it is a master, round the weights from it. */
static int load_state(const Trainer *t, const Safetensors *st, const TensorSlice *whole,
                      const State *s, Error *err)
{
    const Ops *op = t->model->ops;
    if (load_part(t, st, whole, s, err)) return -1;
    if (s->data != t->master || !rounded(t)) return 0;
    return tensor_load(st, whole, (DeviceArray){op, num_at(op, t->set->data, whole->t->at), 0},
                       err);
}

/* Read a whole number of at most MAX_STEP. */
static int read_number(const Safetensors *st, const char *path, const char *name, float *out,
                       Error *err)
{
    int64_t one[1] = {1};
    if (safetensors_read_f32(st, name, 1, one, out, err)) return -1;
    if (*out >= 0 && *out <= MAX_STEP && floorf(*out) == *out) return 0;
    return error_set(err, ERROR_CORRUPT, "%s: %s is expected to be a whole number, found %g", path,
                     name, (double)*out);
}

/* Micro-batches whose size was chosen by the free memory keep the size of the continued run,
 * because it determines the order of its sums. */
static int same_tokens(Trainer *t, int tokens, Error *err)
{
    MemoryPlan plan;
    TrainerOptions o = t->o;
    o.max_tokens = tokens;
    if (!t->by_memory || !tokens || tokens == t->o.max_tokens) return 0;
    if (plan_trainer(t->model, &o, t->available, &plan, err)) return -1;
    if (!plan.fits) {
        log_warn("micro-batches are of %d tokens now, not of %d as before, for which too little "
                 "memory is free: sums have another "
                 "order",
                 t->o.max_tokens, tokens);
        return 0;
    }
    t->o.max_tokens = tokens;
    t->plan = plan;
    return 0;
}

/* All tensors are checked before anything changes, so that the file of another model leaves the
 * trainer as it was. */
int trainer_load(Trainer *t, const char *path, Error *err)
{
    const Ops *op = t->model->ops;
    const ParamSet *p = t->set;
    State state[3];
    int k = states(t, state);
    Safetensors *st;
    if (safetensors_open(path, &st, err)) return -1;
    float step = 0, tokens = 0;
    int rc = read_number(st, path, "step", &step, err);
    if (!rc && safetensors_find(st, "max_tokens"))
        rc = read_number(st, path, "max_tokens", &tokens, err);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; !rc && i < k * p->n; i++) {
            const Tensor *x = &p->tensor[i / k];
            const State *s = &state[i % k];
            char name[NAME];
            const TensorSlice whole = {name, x, 0, x->count};
            snprintf(name, sizeof name, "%c.%s", s->letter, x->name);
            if (pass)
                rc = load_state(t, st, &whole, s, err);
            else
                rc = safetensors_need(st, name, x->rank, x->shape, err) ? 0 : -1;
        }
    if (!rc) rc = same_tokens(t, (int)tokens, err);
    safetensors_close(st);
    if (rc) return -1;
    op->zero(t->grad, p->size * sizeof *t->grad);
    t->step = (int64_t)step;
    return op->status(err);
}
