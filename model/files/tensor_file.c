/* Tensors of a device to and from safetensors files, in pieces of host memory. */
#include "model/files/tensor_file.h"

#include <stdlib.h>

#include "base/memory.h"

static void read_numbers(const void *from, size_t first, size_t n, float *to)
{
    const DeviceArray *a = from;
    a->op->store(to, num_at(a->op, a->at, first), n);
}

SafetensorsOut *set_out(const ParamSet *s, const Ops *op)
{
    size_t n = (size_t)s->n;
    SafetensorsOut *out = memory_array(n, sizeof *out + sizeof(DeviceArray));
    DeviceArray *from = (DeviceArray *)(out + n);
    for (size_t i = 0; i < n; i++) {
        const Tensor *t = &s->tensor[i];
        from[i] = (DeviceArray){op, num_at(op, s->data, t->at), 0};
        out[i] = (SafetensorsOut){.name = t->name,
                                  .rank = t->rank,
                                  .shape = {t->shape[0], t->shape[1]},
                                  .read = read_numbers,
                                  .from = &from[i]};
    }
    return out;
}

int tensor_load(const Safetensors *st, const TensorSlice *slice, DeviceArray to, Error *err)
{
    enum { PIECE = 1 << 22 };
    const Ops *op = to.op;
    size_t first = slice->first, n = slice->n;
    const SafetensorsTensor *x =
        safetensors_need(st, slice->name, slice->t->rank, slice->t->shape, err);
    if (!x) return -1;
    /* the bytes are copied unchanged */
    int same = !to.wide && op->num == 2 && x->dtype == DTYPE_BF16;
    float *host = same ? NULL : memory_array(n < PIECE ? n : PIECE, sizeof *host);
    for (size_t at = 0; at < n; at += PIECE) {
        size_t k = n - at < PIECE ? n - at : PIECE;
        if (host) safetensors_floats(x, first + at, k, host);
        if (same)
            op->upload(num_at(op, to.at, at), (const char *)x->data + 2 * (first + at), 2 * k);
        else if (to.wide)
            op->upload((float *)to.at + at, host, k * sizeof *host);
        else
            op->load(num_at(op, to.at, at), host, k);
    }
    free(host);
    return 0;
}

int set_check(const ParamSet *s, const Safetensors *st, Error *err)
{
    for (int i = 0; i < s->n; i++)
        if (!safetensors_need(st, s->tensor[i].name, s->tensor[i].rank, s->tensor[i].shape, err))
            return -1;
    return 0;
}

int set_load(const ParamSet *s, const Ops *op, const Safetensors *st, Error *err)
{
    for (int i = 0; i < s->n; i++) {
        const Tensor *t = &s->tensor[i];
        const DeviceArray to = {op, num_at(op, s->data, t->at), 0};
        if (tensor_load(st, &(TensorSlice){t->name, t, 0, t->count}, to, err)) return -1;
    }
    return op->status(err);
}
