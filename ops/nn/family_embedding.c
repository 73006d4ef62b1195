/* Rows of a table by their numbers. The reference refuses a number that is no row; a kernel does not look. */
#include <string.h>

#include "ops/op_element.h"
#include "ops/op_text.h"

static int infer(OpCall *c, Error *err)
{
    const OpTensor *table = op_tensor(c, 0), *at = op_tensor(c, 1);
    int64_t size[OP_MAX_RANK];
    if (table->rank != 2)
        return error_set(err, ERROR_INVALID, "weight: expected 2 dimensions, found %d",
                         table->rank);
    if (at->dtype != DTYPE_I64 && at->dtype != DTYPE_I32)
        return error_set(err, ERROR_INVALID, "indices: expected int32 or int64, found %s",
                         dtype_name(at->dtype));
    if (at->rank == OP_MAX_RANK)
        return error_set(err, ERROR_LIMIT, "indices: expected at most %d dimensions",
                         OP_MAX_RANK - 1);
    memcpy(size, at->size, sizeof size);
    size[at->rank] = table->size[1];
    return op_result(c, table->dtype, at->rank + 1, size, err);
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const OpTensor *table = op_tensor(c, 0);
    const double *rows = in[c->arg[0].integer[0]], *at = in[c->arg[1].integer[0]];
    int64_t n = op_elements(op_tensor(c, 1)), width = table->size[1];
    for (int64_t i = 0; i < n; i++) {
        if (!(at[i] >= 0 && at[i] < (double)table->size[0]))
            return error_set(err, ERROR_INVALID, "indices: %g is no row of %lld", at[i],
                             (long long)table->size[0]);
        memcpy(out[0] + i * width, rows + (int64_t)at[i] * width, (size_t)width * sizeof **out);
    }
    return 0;
}

/* Where the numbers are not known, each of a column's elements may be needed. */
static void element_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    const OpTensor *table = op_tensor(c, 0);
    const int rows = (int)c->arg[0].integer[0], numbers = (int)c->arg[1].integer[0];
    const double *known = out->known[numbers];
    int64_t width = table->size[1];
    for (int64_t k = 0; k < s->n; k++) {
        int64_t column = s->at[k] % width, row = s->at[k] / width;
        out->add(out->of, numbers, row, 1, 1);
        if (!known)
            out->add(out->of, rows, column, width, table->size[0]);
        else if (known[row] >= 0 && known[row] < (double)table->size[0])
            out->add(out->of, rows, (int64_t)known[row] * width + column, 1, 1);
    }
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    const OpTensor *table = op_tensor(c, 0);
    int64_t width = table->size[1];
    for (int64_t k = 0; k < s->n; k++) {
        double row = in[c->arg[1].integer[0]][s->at[k] / width];
        int inside = row >= 0 && row < (double)table->size[0];
        y[k] = inside ? in[c->arg[0].integer[0]][(int64_t)row * width + s->at[k] % width] : 0;
    }
}

static const OpElements elements = {element_needs, element_compute, NULL};

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *table = op_tensor(c, 0), *at = op_tensor(c, 1), *y = &c->result[0];
    int t = (int)c->arg[0].integer[0], i = (int)c->arg[1].integer[0];
    if (!text_each(out, "embedding", NULL, op_elements(y), err)) return -1;
    Buffer *b = out->source;
    buffer_printf(b, "    const long long row = i / %lld, at = x%d[", (long long)table->size[1], i);
    text_index(b, at, at->rank, at->size, "row");
    buffer_printf(b, "];\n    y0[i] = x%d[%lld + at * %lldLL + i %% %lld * %lldLL];\n", t,
                  (long long)table->offset, (long long)table->stride[0], (long long)table->size[1],
                  (long long)table->stride[1]);
    return text_each_end(out, err);
}

/* All numbers may name one row. */
static void cost(const OpCall *c, OpCost *out)
{
    const OpTensor *table = op_tensor(c, 0), *y = &c->result[0];
    double row = (double)(table->size[1] * (int64_t)dtype_size(table->dtype));
    out->bytes = op_bytes(op_tensor(c, 1)) + op_bytes(y) + (op_elements(y) ? row : 0);
}

static const Op table[] = {
    {.name = "aten.embedding.default",
     .schema = "Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, "
               "bool sparse=False",
     .infer = infer,
     .reference = reference,
     .plain = plain,
     .cost = cost,
     .elements = &elements},
};

OpFamily embedding_family(void)
{
    return (OpFamily){"embedding", table, (int)(sizeof table / sizeof *table)};
}
