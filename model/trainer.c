/* Gradient accumulation over micro-batches, then one AdamW step. The same sequences give the same
 * bits. */
#include "model/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "model/trainer_state.h"

void trainer_take_weights(Trainer *t)
{
    enum { CHUNK = 1 << 20 };
    if (!t->master) return;
    const Ops *op = t->model->ops;
    float *host = memory_array(CHUNK, sizeof *host);
    for (size_t at = 0; at < t->set->size; at += t->piece) {
        Piece p = piece_at(t, at);
        for (size_t done = 0; done < p.each; done += CHUNK) {
            size_t n = p.each - done < CHUNK ? p.each - done : CHUNK;
            op->store(host, num_at(op, t->set->data, p.mine + done), n);
            op->upload(t->master + p.own + done, host, n * sizeof *host);
        }
    }
    free(host);
}

/* On GPUs the exchange between ranks runs in parallel to the rest, in pieces. Pieces are small
 * enough that most are exchanged before the last gradients are computed, and large enough for
 * NVLink. One rank, and the CPU, use one piece. */
static size_t piece_size(const ParamSet *set, const Ops *op)
{
    enum { LEAST = 32 << 20, PIECES = 32 };
    size_t n = (size_t)ranks_size(), want = set->size / PIECES > LEAST ? set->size / PIECES : LEAST;
    size_t size = n * ranks_each(want, (size_t)op->align);
    return n == 1 || op->is_cpu || size > set->size ? set->size : size;
}

int trainer_create(Model *m, const TrainerOptions *o, Trainer **out, Error *err)
{
    const Ops *op = m->ops;
    MemoryPlan plan;
    size_t available, total;
    if (op->memory(&available, &total, err) || plan_trainer(m, o, available, &plan, err)) return -1;
    if (!plan.fits && !op->is_cpu)
        return plan_refuse(&plan, err); /* the CPU commits memory when it is first used */
    Trainer *t = memory_alloc(sizeof *t);
    t->model = m;
    t->set = m->lora.size ? &m->lora : &m->base;
    t->o = *o;
    t->o.max_tokens = plan.max_tokens;
    t->plan = plan;
    t->available = available;
    t->by_memory = !o->max_tokens;
    t->each = t->set->size / (size_t)ranks_size();
    t->piece = piece_size(t->set, op);
    t->summed = t->set->size;
    t->grad = op->alloc(t->set->size * sizeof *t->grad);
    t->m = op->alloc(t->each * moment_size(t));
    t->v = op->alloc(t->each * moment_size(t));
    if (op->num != sizeof(float) && !o->lean) t->master = op->alloc(t->each * sizeof *t->master);
    trainer_take_weights(t);
    if (op->status(err)) {
        trainer_free(t);
        return -1;
    }
    *out = t;
    return 0;
}

void trainer_free(Trainer *t)
{
    if (!t) return;
    const Ops *op = t->model->ops;
    op->release(t->grad);
    op->release(t->master);
    op->release(t->m);
    op->release(t->v);
    free(t->weight);
    free(t->logp);
    free(t->given);
    acts_release(&t->acts, t->model);
    grads_release(&t->grads, t->model);
    batch_release(&t->batch, op);
    free(t);
}

const MemoryPlan *trainer_plan(const Trainer *t)
{
    return &t->plan;
}

/* Allocate memory for the batch: once for max_tokens, and again for a longer sequence. The rows of
 * logits at a time, which determine the order of sums, depend on the batch only. */
static void reserve(Trainer *t)
{
    Model *m = t->model;
    int longer = t->batch.rows > t->o.max_tokens, rows = longer ? t->batch.rows : t->o.max_tokens;
    model_reserve_positions(m, rows < m->c.max_position ? rows : m->c.max_position);
    acts_reserve(&t->acts, m, rows, t->plan.recompute ? KEEP_INPUTS : KEEP_ALL);
    HeadUse use = t->o.fixed_weights ? HEAD_ONCE : HEAD_TWICE;
    head_reserve(&t->acts, m, longer ? head_rows(m, rows, use) : t->plan.logit_rows);
    grads_reserve(&t->grads, m, rows);
    if (rows <= t->weight_cap) return;
    t->weight_cap = rows;
    t->weight = memory_grow(t->weight, (size_t)rows, sizeof *t->weight);
    t->logp = memory_grow(t->logp, 2 * (size_t)rows, sizeof *t->logp);
    t->given = memory_grow(t->given, (size_t)rows, sizeof *t->given);
}

/* Get t->weight from the caller. The weight at start + t belongs to row t, which predicts token t +
 * 1. */
static void collect_weights(Trainer *t, const Sequence *seqs, int first, TokenWeights *weights,
                            void *ctx)
{
    float *all = t->logp, *logp = t->logp + t->batch.rows;
    if (!t->o.fixed_weights)
        t->model->ops->download(all, t->acts.logp, (size_t)t->batch.rows * sizeof *all);
    for (int s = 0; s < t->batch.n; s++) {
        int len = seqs[s].len, at = t->batch.start[s];
        logp[0] = 0;
        if (!t->o.fixed_weights) memcpy(logp + 1, all + at, (size_t)(len - 1) * sizeof *logp);
        memset(t->given, 0, (size_t)len * sizeof *t->given);
        weights(ctx, first + s, t->o.fixed_weights ? NULL : logp, t->given);
        memcpy(t->weight + at, t->given + 1, (size_t)(len - 1) * sizeof *t->given);
        t->weight[at + len - 1] = 0;
    }
}

/* Log-probabilities with weight 0 may not have been computed. */
static double sum_loss(Trainer *t)
{
    double loss = 0;
    t->model->ops->download(t->logp, t->acts.logp, (size_t)t->batch.rows * sizeof *t->logp);
    for (int r = 0; r < t->batch.rows; r++)
        if (t->weight[r] != 0) loss += (double)t->weight[r] * (double)t->logp[r];
    return loss;
}

/* Sum the gradients at `from` and above over the ranks, in whole pieces, if they are not summed
 * yet. */
static int sum_from(Trainer *t, size_t from, Error *err)
{
    while (t->summed > from) {
        Piece p = piece_at(t, (t->summed - 1) / t->piece * t->piece);
        if (p.at < from) break;
        if (ranks_reduce_scatter(t->grad + p.at, p.each, err)) return -1;
        t->summed = p.at;
    }
    return 0;
}

/* sum_from during the backward pass. The failure is reported after it. */
typedef struct {
    Trainer *t;
    Error *err;
    int failed;
} Summing;

static void sum_done(void *ctx, size_t from)
{
    Summing *s = ctx;
    if (!s->failed) s->failed = sum_from(s->t, from, s->err) != 0;
}

/* summing: for the last micro-batch, else NULL. */
static double micro_batch(Trainer *t, const Sequence *seqs, int first, TokenWeights *weights,
                          void *ctx, Summing *summing)
{
    Model *m = t->model;
    TokenBatch *b = &t->batch;
    reserve(t);
    if (t->o.fixed_weights) collect_weights(t, seqs, first, weights, ctx);
    forward_hidden(m, &t->acts, b, NULL, NULL);
    int fused = t->o.fixed_weights && t->acts.logit_rows < b->rows;
    if (!fused) head_logp(m, &t->acts, b);
    if (!t->o.fixed_weights) collect_weights(t, seqs, first, weights, ctx);
    BackwardPass pass = {m, &t->acts, &t->grads, b, t->grad};
    head_backward(&pass, t->weight, fused);
    backward(&pass, summing ? sum_done : NULL, summing);
    return sum_loss(t);
}

/* The sequences of this rank, [*first, *last): about as many tokens as the other ranks have. */
static void share_sequences(const Sequence *seqs, int n, int *first, int *last)
{
    int64_t total = 0, before = 0;
    for (int i = 0; i < n; i++) total += seqs[i].len;
    *first = *last = 0;
    for (int i = 0; i < n; i++) {
        /* by its middle token */
        int rank = (int)((2 * before + seqs[i].len) * ranks_size() / (2 * total));
        before += seqs[i].len;
        *first += rank < ranks_rank();
        *last += rank <= ranks_rank();
    }
}

int trainer_accumulate(Trainer *t, const Sequence *seqs, int n, TokenWeights *weights, void *ctx,
                       double *loss, Error *err)
{
    if (batch_check(t->model, seqs, n, err)) return -1;
    const Ops *op = t->model->ops;
    Summing summing = {t, err, 0};
    int first, last, in_pieces = t->piece < t->set->size;
    *loss = 0;
    /* The sums of an earlier call are in one rank's slice, and the others have 0 there, so that
     * summing again keeps them. */
    t->summed = t->set->size;
    share_sequences(seqs, n, &first, &last);
    batch_reserve(&t->batch, op, t->o.max_tokens);
    while (first < last) {
        int k = batch_fit(seqs + first, last - first, t->o.max_tokens);
        batch_pack(&t->batch, op, seqs + first, k);
        *loss += micro_batch(t, seqs + first, first, weights, ctx,
                             in_pieces && first + k == last ? &summing : NULL);
        if (summing.failed) return -1;
        if (op->status(err)) return error_prefix(err, "a micro-batch of %d tokens", t->batch.rows);
        first += k;
    }
    if (in_pieces && sum_from(t, 0, err)) return -1; /* for a rank without sequences */
    ranks_settle();
    return ranks_host_sum(loss, 1, err);
}

/* Update this rank's slice of a piece, with one call for adjacent tensors of equal decay. The
 * padding is 0 and stays 0. */
static void update(Trainer *t, const Piece *p, AdamStep *s, double decay)
{
    const Ops *op = t->model->ops;
    const ParamSet *set = t->set;
    for (int i = 0, k; i < set->n; i = k) {
        const Tensor *x = &set->tensor[i];
        for (k = i + 1; k < set->n && set->tensor[k].decay == x->decay;) k++;
        size_t begin = x->at, end = k < set->n ? set->tensor[k].at : set->size;
        if (begin < p->mine) begin = p->mine;
        if (end > p->mine + p->each) end = p->mine + p->each;
        if (begin >= end) continue;
        const uint64_t name[2] = {(uint64_t)t->step, begin};
        size_t at = p->own + begin - p->mine;
        s->decay = x->decay ? decay : 0;
        s->seed = random_hash(name, sizeof name);
        const AdamSlice slice = {.p = num_at(op, set->data, begin),
                                 .master = t->master ? t->master + at : NULL,
                                 .g = t->grad + begin,
                                 .m = (char *)t->m + at * moment_size(t),
                                 .v = (char *)t->v + at * moment_size(t),
                                 .n = end - begin};
        op->adamw(&slice, s);
    }
}

/* Compute the global norm. Each rank has the sum of all gradients in its slices, and 0 in the other
 * slices. */
static int reduce(Trainer *t, double *norm, Error *err)
{
    const Ops *op = t->model->ops;
    double squares = 0;
    if (sum_from(t, 0, err)) return -1;
    ranks_settle();
    t->summed = t->set->size;
    for (size_t at = 0; at < t->set->size; at += t->piece) {
        Piece p = piece_at(t, at);
        squares += op->sum_squares(t->grad + p.mine, p.each);
    }
    if (op->status(err) || ranks_host_sum(&squares, 1, err)) return -1;
    *norm = sqrt(squares);
    return 0;
}

int trainer_step(Trainer *t, const AdamW *opt, double *norm, Error *err)
{
    const Ops *op = t->model->ops;
    if (reduce(t, norm, err)) return -1;
    if (!isfinite(*norm)) { /* dropped, so that the caller can continue with other sequences */
        op->zero(t->grad, t->set->size * sizeof *t->grad);
        return error_set(err, ERROR_INVALID, "the gradient of step %lld is not finite",
                         (long long)t->step + 1);
    }
    t->step++;
    AdamStep s = {.lr = opt->lr,
                  .beta1 = opt->beta1,
                  .beta2 = opt->beta2,
                  .eps = opt->eps,
                  .scale = 1,
                  .lean = t->o.lean};
    if (opt->clip > 0 && *norm > opt->clip) s.scale = opt->clip / *norm;
    s.correct1 = 1 - pow(opt->beta1, (double)t->step);
    s.correct2 = 1 - pow(opt->beta2, (double)t->step);
    for (size_t at = 0; at < t->set->size;
         /* The weights of a piece are sent while the next piece is updated. */
         at += t->piece) {
        Piece p = piece_at(t, at);
        update(t, &p, &s, opt->weight_decay);
        if (ranks_all_gather(num_at(op, t->set->data, p.at), p.each * (size_t)op->num, err))
            return -1;
    }
    ranks_settle();
    return op->status(err);
}
