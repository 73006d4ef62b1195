/* Training by several ranks, for the tables of the CPU and of CUDA. Each run is a process, whose
 * children are the ranks. */
#ifndef TESTS_RANKS_SUPPORT_H
#define TESTS_RANKS_SUPPORT_H

#include <math.h>
#include <sys/wait.h>

#include "base/buffer.h"
#include "base/log.h"
#include "model/core/lora.h"
#include "model/core/ranks.h"
#include "model/files/model_files.h"
#include "model/model_device.h"
#include "model/trainer_state.h"
#include "tests/unit/model/half_table.h"
#include "tests/unit/model/model_support.h"

enum { STEPS = 6, BEFORE = 3 };

typedef struct {
    double loss[STEPS], norm[STEPS], share;
    uint64_t all; /* a hash of all trained weights */
    float weights[8];
} Result;

typedef struct {
    const char *device; /* "cpu", "half" or "cuda:0" */
    /* lora: the rank of the adapter; resumed: from `dir`, at step BEFORE */
    int ranks, lora, resumed;
    int slice; /* of a piece, in units of the device's alignment; 0: the trainer's own */
    int parts; /* the calls for the sequences of a step */
    Recompute recompute;
    double lr, clip;
    const Sequence *seqs;
    int n, max_tokens;
    TokenWeights *give;
    void *ctx;
    const char *base, *dir; /* two ranks save there, at step BEFORE */
} Run;

static inline void must(int rc, const Error *err)
{
    if (rc) log_exit(4, err);
}

static inline const Ops *open_device(const Run *r)
{
    const Ops *ops = half_table();
    char name[16];
    Error err;
    if (strcmp(r->device, "half"))
        must(ranks_device(r->device, name, &err) || model_device(name, &ops, &err), &err);
    return ops;
}

/* The sequences of a part are numbered from 0. */
typedef struct {
    const Run *run;
    int first;
} Part;

static inline void part_weights(void *ctx, int sequence, const float *logp, float *weight)
{
    const Part *p = ctx;
    p->run->give(p->run->ctx, p->first + sequence, logp, weight);
}

static inline void one_rank_step(const Run *r, Trainer *t, double *loss, double *norm)
{
    const AdamW optimiser = {.lr = r->lr,
                             .beta1 = 0.9,
                             .beta2 = 0.99,
                             .eps = 1e-8,
                             .weight_decay = 0.01,
                             .clip = r->clip};
    Error err;
    int parts = r->parts ? r->parts : 1;
    *loss = 0;
    for (int i = 0; i < parts; i++) {
        Part p = {r, r->n * i / parts};
        double more;
        must(trainer_accumulate(t, r->seqs + p.first, r->n * (i + 1) / parts - p.first,
                                part_weights, &p, &more, &err),
             &err);
        *loss += more;
    }
    must(trainer_step(t, &optimiser, norm, &err), &err);
}

static inline void read_weights(const Trainer *t, Result *out)
{
    const Ops *ops = t->model->ops;
    const ParamSet *p = t->set;
    float *host = memory_array(p->size, sizeof *host),
          *dense = memory_array(p->count, sizeof *dense);
    size_t n = 0;
    ops->store(host, p->data, p->size);
    for (int i = 0; i < p->n;
         n += p->tensor[i++].count) /* the padding depends on the number of ranks */
        memcpy(dense + n, host + p->tensor[i].at, p->tensor[i].count * sizeof *host);
    out->all = random_hash(dense, n * sizeof *dense);
    for (int i = 0; i < 8; i++) out->weights[i] = host[p->tensor[p->n * i / 8].at + 2];
    free(host);
    free(dense);
}

/* Runs in every rank. */
static inline void train(const Run *r, Result *out)
{
    Error err;
    Model *m;
    Trainer *t;
    must(ranks_start(r->ranks, &err), &err);
    const Ops *ops = open_device(r);
    must(ranks_join(ops, &err), &err);
    must(model_load(r->resumed ? r->dir : r->base, ops, &m, &err), &err);
    const LoraOptions lora = {.rank = r->lora, .alpha = 5, .targets = LORA_ALL, .seed = 4};
    if (r->lora && !r->resumed) must(model_add_lora(m, &lora, &err), &err);
    const TrainerOptions o = {.max_tokens = r->max_tokens, .recompute = r->recompute};
    must(trainer_create(m, &o, &t, &err), &err);
    if (r->slice) {
        t->piece = (size_t)(r->ranks * r->slice * ops->align);
        trainer_take_weights(t);
    }
    char *opt = memory_printf("%s/optimizer.safetensors", r->dir);
    if (r->resumed) must(trainer_load(t, opt, &err), &err);
    out->share = (double)t->each / (double)t->set->size;
    for (int i = r->resumed ? BEFORE : 0; i < STEPS; i++) {
        one_rank_step(r, t, &out->loss[i], &out->norm[i]);
        if (i + 1 != BEFORE || r->ranks != 2) continue;
        if (!ranks_rank()) must(model_save(m, r->dir, &err), &err);
        must(trainer_save(t, opt, &err), &err);
    }
    read_weights(t, out);
    free(opt);
    trainer_free(t);
    model_free(m);
    must(ranks_finish(&err), &err);
}

static inline Result result_of(const Run *r)
{
    int fds[2], status = 0;
    Result out = {0};
    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        log_open("test");
        train(r, &out); /* the other ranks end inside */
        _exit(write(fds[1], &out, sizeof out) != sizeof out);
    }
    close(fds[1]);
    ssize_t got = read(fds[0], &out, sizeof out);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(got, sizeof out);
    return out;
}

/* Compare up to the rounding of sums, which may change the rounding of a 16-bit weight. */
static inline void compare_runs(const Result *a, const Result *b, int first, double limit)
{
    for (int i = first; i < STEPS; i++) {
        int norms = a->norm[i] > 0 && fabs(a->norm[i] / b->norm[i] - 1) < limit;
        int losses = a->loss[i] != 0 && fabs(a->loss[i] - b->loss[i]) < limit;
        if (!norms) fail_msg("step %d: norms %.8g and %.8g", i, a->norm[i], b->norm[i]);
        if (!losses) fail_msg("step %d: losses %.8g and %.8g", i, a->loss[i], b->loss[i]);
    }
    for (int i = 0; i < 8; i++)
        assert_true(fabs((double)a->weights[i] - (double)b->weights[i]) < limit);
}

/* Two ranks against one, and again; and the saved run continued by one to `max_ranks` ranks. */
static inline void check_ranks(const Run *run, double limit, int max_ranks)
{
    char *dir = temp_dir(), *other = temp_dir();
    Run one = *run, two = *run, again = *run;
    one.ranks = 1;
    one.dir = other;
    two.ranks = 2;
    two.dir = again.dir = dir;
    again.resumed = 1;
    Result alone = result_of(&one), pair = result_of(&two), twin = result_of(&two);
    compare_runs(&alone, &pair, 0, limit);
    assert_memory_equal(&pair, &twin, sizeof pair); /* a second run: the same bits */
    assert_true(alone.share == 1 && pair.share == 0.5);
    for (again.ranks = 1; again.ranks <= max_ranks; again.ranks++) {
        Result continued = result_of(&again);
        compare_runs(&pair, &continued, BEFORE, limit);
        if (again.ranks != 2) continue;
        assert_memory_equal(continued.loss + BEFORE, pair.loss + BEFORE,
                            (STEPS - BEFORE) * sizeof *pair.loss);
        assert_memory_equal(continued.norm + BEFORE, pair.norm + BEFORE,
                            (STEPS - BEFORE) * sizeof *pair.norm);
        assert_true(continued.all == pair.all);
    }
    drop_dir(dir);
    drop_dir(other);
}

#endif
