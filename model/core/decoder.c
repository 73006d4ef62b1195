/* The parts of a decoder that are the same on all devices. */
#include "model/core/decoder.h"

size_t decoder_token_bytes(const Model *m)
{
    return (size_t)m->c.layers * 2 * (size_t)m->c.kv_heads * (size_t)m->c.head_dim *
           (size_t)m->ops->num;
}

void decoder_free(Decoder *d)
{
    if (d) d->type->free(d);
}

int decoder_prefill(Decoder *d, const int32_t *ids, int len, int copies, Error *err)
{
    return d->type->prefill(d, ids, len, copies, err);
}

int decoder_attach(Decoder *d, int slot, Error *err)
{
    return d->type->attach(d, slot, err);
}
void decoder_detach(Decoder *d, int slot)
{
    d->type->detach(d, slot);
}
int decoder_first(Decoder *d, DecoderRow *rows, int n, Error *err)
{
    return d->type->first(d, rows, n, err);
}
int decoder_step(Decoder *d, DecoderRow *rows, int n, Error *err)
{
    return d->type->step(d, rows, n, err);
}

const Num *decoder_forward(Decoder *d, const int32_t *ids, int len, LayerDone *then, void *ctx)
{
    Sequence s = {ids, len};
    Model *m = d->model;
    batch_pack(&d->tokens, m->ops, &s, 1);
    acts_reserve(&d->acts, m, d->plan.prompt, KEEP_ONE);
    forward_hidden(m, &d->acts, &d->tokens, then, ctx);
    return num_at(m->ops, d->acts.normed, (size_t)(len - 1) * (size_t)m->c.hidden);
}

void decoder_release(Decoder *d)
{
    acts_release(&d->acts, d->model);
    batch_release(&d->tokens, d->model->ops);
}
