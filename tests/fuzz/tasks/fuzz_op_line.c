/* Each line of the input is an operator call over three tensors and two axes. */
#include <string.h>

#include "tasks/graph/op_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int axis(void *ctx, const char *name, size_t len, int64_t *value)
{
    (void)ctx;
    *value = *name == 'n' ? 6 : 4;
    return len == 1 && strchr("nc", *name) ? 0 : -1;
}

static int tensor(void *ctx, const char *name, size_t len, OpTensor *out)
{
    (void)ctx;
    if (len != 1 || !*name || !strchr("xyzm", *name)) return -1;
    *out = (OpTensor){.rank = 4, .size = {2, 4, 6, 6}};
    if (*name == 'y') *out = (OpTensor){.rank = 2, .size = {6, 4}};
    if (*name == 'z') *out = (OpTensor){.rank = 1, .size = {4}};
    if (*name == 'm') out->dtype = DTYPE_B8;
    op_contiguous(out);
    return *name;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const OpScope scope = {.axis = axis, .tensor = tensor};
    const char *p = (const char *)data, *end = p + size;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((stop ? stop : end) - p);
        int id[OP_MAX_TENSORS];
        OpLine l;
        OpCall c;
        OpCost cost;
        Error err;
        if (!op_line_parse(p, len, &l, &err) && !op_line_call(&l, &scope, &c, id, &err))
            op_cost(&c, &cost, &err);
        p += len + 1;
    }
    return 0;
}
