/* Tensors of a device to and from safetensors files, in pieces of host memory. */
#include "model/files/tensor_file.h"

#include <stdlib.h>

#include "base/memory.h"

static void read_source(const void *from, size_t first, size_t n, float *to)
{
    const TensorSource *s = from;
    if (s->wide)
        s->op->download(to, (const float *)s->from + first, n * sizeof *to);
    else
        s->op->store(to, num_at(s->op, s->from, first), n);
}

SafetensorsOut tensor_out(const Tensor *t, const char *name, TensorSource *from)
{
    from->from = from->wide ? (const void *)((const float *)from->from + t->at)
                            : num_at(from->op, from->from, t->at);
    return (SafetensorsOut){.name = name,
                            .rank = t->rank,
                            .shape = {t->shape[0], t->shape[1]},
                            .read = read_source,
                            .from = from};
}

int tensor_load(const Safetensors *st, const char *name, const Tensor *t, size_t first, size_t n,
                const Ops *op, void *to, int wide, Error *err)
{
    enum { PIECE = 1 << 22 };
    const SafetensorsTensor *x = safetensors_need(st, name, t->rank, t->shape, err);
    if (!x) return -1;
    int same = !wide && op->num == 2 && x->dtype == DTYPE_BF16; /* the bytes are copied unchanged */
    float *host = same ? NULL : memory_array(n < PIECE ? n : PIECE, sizeof *host);
    for (size_t at = 0; at < n; at += PIECE) {
        size_t k = n - at < PIECE ? n - at : PIECE;
        if (host) safetensors_floats(x, first + at, k, host);
        if (same)
            op->upload(num_at(op, to, at), (const char *)x->data + 2 * (first + at), 2 * k);
        else if (wide)
            op->upload((float *)to + at, host, k * sizeof *host);
        else
            op->load(num_at(op, to, at), host, k);
    }
    free(host);
    return 0;
}
