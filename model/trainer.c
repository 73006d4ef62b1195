/* Gradient accumulation over micro-batches, then one AdamW step. */
#include "model/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

int trainer_create(Model *m, int max_tokens, Trainer **out, Error *err)
{
    if (max_tokens < 1 || max_tokens > 1 << 24)
        return error_set(err, "max_tokens of a micro-batch is expected to be 1 to %d, found %d", 1 << 24, max_tokens);
    Trainer *t = memory_alloc(sizeof *t);
    t->model = m;
    t->max_tokens = max_tokens;
    t->grad = m->ops->alloc(m->size);
    t->m = m->ops->alloc(m->size);
    t->v = m->ops->alloc(m->size);
    *out = t;
    return 0;
}

void trainer_free(Trainer *t)
{
    if (!t) return;
    const Ops *op = t->model->ops;
    op->release(t->grad);
    op->release(t->m);
    op->release(t->v);
    free(t->weight);
    acts_release(&t->acts, t->model);
    grads_release(&t->grads, t->model);
    batch_release(&t->batch);
    free(t);
}

/* weight[start+t] belongs to the prediction made at row t, of token t+1. */
static double fill_weights(Trainer *t, const Sequence *seqs, int first, TokenWeights *weights, void *ctx, float *logp,
                           float *given)
{
    double loss = 0;
    for (int s = 0; s < t->batch.n; s++) {
        int len = seqs[s].len, at = t->batch.start[s];
        logp[0] = 0;
        memcpy(logp + 1, t->acts.logp + at, (size_t)(len - 1) * sizeof *logp);
        memset(given, 0, (size_t)len * sizeof *given);
        weights(ctx, first + s, logp, given);
        for (int i = 1; i < len; i++) loss += (double)given[i] * (double)logp[i];
        memcpy(t->weight + at, given + 1, (size_t)(len - 1) * sizeof *given);
        t->weight[at + len - 1] = 0;
    }
    return loss;
}

int trainer_accumulate(Trainer *t, const Sequence *seqs, int n, TokenWeights *weights, void *ctx, double *loss, Error *err)
{
    if (batch_check(t->model, seqs, n, err)) return -1;
    double sum = 0;
    for (int i = 0; i < n;) {
        int k = batch_fit(seqs + i, n - i, t->max_tokens);
        TokenBatch *b = &t->batch;
        batch_pack(b, seqs + i, k);
        int most = b->rows > t->max_tokens ? b->rows : t->max_tokens; /* reserved once, touched as needed */
        acts_reserve(&t->acts, t->model, most, 1);
        grads_reserve(&t->grads, t->model, most);
        t->weight = memory_grow(t->weight, (size_t)b->rows + 2 * (size_t)b->longest, sizeof *t->weight);
        forward_logp(t->model, &t->acts, b);
        float *scratch = t->weight + b->rows;
        sum += fill_weights(t, seqs + i, i, weights, ctx, scratch, scratch + b->longest);
        backward(t->model, &t->acts, &t->grads, b, t->weight, t->grad);
        i += k;
    }
    *loss = sum;
    return 0;
}

int trainer_step(Trainer *t, const AdamW *opt, double *norm, Error *err)
{
    Model *m = t->model;
    double length = sqrt(m->ops->sum_squares(t->grad, m->size));
    *norm = length;
    if (!isfinite(length)) { /* dropped, so that the caller may go on with other sequences */
        m->ops->zero(t->grad, m->size);
        return error_set(err, "the gradient of step %lld is not finite", (long long)t->step + 1);
    }
    t->step++;
    AdamStep s = {.lr = opt->lr, .beta1 = opt->beta1, .beta2 = opt->beta2, .eps = opt->eps, .scale = 1};
    if (opt->clip > 0 && length > opt->clip) s.scale = opt->clip / length;
    s.correct1 = 1 - pow(opt->beta1, (double)t->step);
    s.correct2 = 1 - pow(opt->beta2, (double)t->step);
    for (int i = 0; i < m->n_tensors; i++) {
        const Tensor *x = &m->tensor[i];
        s.decay = x->decay ? opt->weight_decay : 0;
        m->ops->adamw(m->data + x->at, t->grad + x->at, t->m + x->at, t->v + x->at, x->count, &s);
    }
    return 0;
}
