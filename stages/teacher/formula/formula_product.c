/* Matrix products, convolutions and pools. */
#include <stdio.h>
#include <string.h>

#include "stages/teacher/formula/formula_read.h"

/* Adds argument `arg`, a bias, to a value. */
static int add_bias(FormulaReader *r, const GraphCall *c, const char *name, int x, int arg,
                    Error *err)
{
    const OpCall *call = &c->call;
    if (arg < 0 || call->arg[arg].kind != OP_TENSOR) return x;
    int at = c->in[call->arg[arg].integer[0]], space = r->f->value[x].space;
    int bias = formula_channel(r, at, &call->result[0], space, err);
    return bias < 0 ? -1 : formula_make(r, name, "a + b", x, bias, err);
}

/* The right matrix as it lies in memory. */
static int right_matrix(FormulaReader *r, int value, int transposed, Error *err)
{
    OpTensor *t = &r->b->values[value].tensor, kept = *t;
    if (transposed) {
        t->size[0] = kept.size[1], t->size[1] = kept.size[0];
        op_contiguous(t);
    }
    OpTensor like = *t;
    int space = formula_space(r, &like, err);
    int at = space < 0 ? -1 : formula_operand(r, value, &like, space, err);
    *t = kept;
    return at;
}

int formula_product(FormulaReader *r, const GraphCall *c, const char *name, Error *err)
{
    const OpCall *call = &c->call;
    int linear = !strcmp(r->op, "linear"), addmm = !strcmp(r->op, "addmm");
    int left = (int)call->arg[addmm].integer[0], right = (int)call->arg[addmm + 1].integer[0];
    const OpTensor *a = &call->tensor[left], *b = &call->tensor[right];
    if (a->rank < 2 || a->rank > 3 || b->rank != 2 ||
        r->b->values[c->in[right]].base >= r->f->task->n_inputs)
        return error_set(err, ERROR_UNSUPPORTED, "expected a matrix and an input that is one");
    for (int i = 3; addmm && i < call->n_args; i++)
        if (call->arg[i].number != 1) return error_set(err, ERROR_UNSUPPORTED, "a scaled product");
    int transposed = b->stride[0] == 1 && b->stride[1] == b->size[0];
    if (!transposed && (b->stride[1] != 1 || b->stride[0] != b->size[1]))
        return error_set(err, ERROR_UNSUPPORTED, "the right matrix has strides");
    int in_space = formula_space(r, a, err), space = formula_space(r, &call->result[0], err);
    int x = in_space < 0 || space < 0 ? -1 : formula_operand(r, c->in[left], a, in_space, err);
    int y = x < 0 ? -1 : right_matrix(r, c->in[right], transposed, err);
    int at = y < 0 ? -1 : formula_add(r, VALUE_PRODUCT, name, err);
    if (at < 0) return -1;
    FormulaValue *v = &r->f->value[at];
    v->space = space;
    v->arg[0] = x;
    v->arg[1] = y;
    v->right_transposed = transposed != linear;
    memcpy(v->inner, r->f->space[in_space].cols, sizeof v->inner);
    return add_bias(r, c, name, at, linear ? 2 : addmm ? 0 : -1, err);
}

/* The kind, size, stride and padding of a window that the templates know: equal along its dimensions. */
static int read_window(FormulaReader *r, const OpCall *call, FormulaWindow *w, Error *err)
{
    const OpTensor *x = op_tensor(call, 0);
    int conv = !strcmp(r->op, "conv2d"), dims = strstr(r->op, "3d") ? 3 : 2;
    const OpTensor *weight = conv ? op_tensor(call, 1) : NULL;
    static const char *const ones[] = {"dilation", "ceil_mode", "divisor_override", "groups"};
    const OpValue *stride = &call->arg[op_argument(call->op, "stride")],
                  *padding = &call->arg[op_argument(call->op, "padding")], *size = &call->arg[1];
    int64_t other[4] = {1, 0, 0, 1};
    for (int i = 0; i < 4; i++) {
        int at = op_argument(call->op, ones[i]);
        const OpValue *v = at < 0 ? NULL : &call->arg[at];
        for (int d = 0; v && v->kind != OP_NONE && d < (v->kind == OP_INTS ? v->n : 1); d++)
            if (v->integer[d] != other[i]) other[i] = i == 3 ? v->integer[d] : -1;
    }
    if (x->rank != 2 + dims || r->split != SPLIT_PLANES || padding->kind != OP_INTS ||
        other[0] != 1 || other[1] || other[2])
        return error_set(err, ERROR_UNSUPPORTED, "no such window");
    w->dims = dims;
    w->kind = !conv           ? (strstr(r->op, "max") ? WINDOW_MAX : WINDOW_MEAN)
              : other[3] == 1 ? WINDOW_CONV
                              : WINDOW_DEPTHWISE;
    if (conv && other[3] != 1 && (other[3] != x->size[1] || weight->size[0] != other[3]))
        return error_set(err, ERROR_UNSUPPORTED, "groups of channels");
    w->size = conv ? weight->size[2] : size->integer[0];
    w->stride = stride->kind == OP_INTS && stride->n ? stride->integer[0] : w->size;
    w->padding = padding->n ? padding->integer[0] : 0;
    for (int i = 1; i < dims; i++)
        if ((stride->kind == OP_INTS && stride->n > i && stride->integer[i] != w->stride) ||
            (padding->n > i && padding->integer[i] != w->padding) ||
            (conv ? weight->size[2 + i] : size->integer[size->n > i ? i : 0]) != w->size)
            return error_set(err, ERROR_UNSUPPORTED, "a window that is no square");
    if (w->kind == WINDOW_MEAN && w->padding)
        return error_set(err, ERROR_UNSUPPORTED, "a mean with padding");
    return 0;
}

/* Makes the texts of the result's sizes. Each follows from a size of the argument. */
static int window_sizes(FormulaReader *r, const OpTensor *x, const OpTensor *y, FormulaWindow *w,
                        Error *err)
{
    int64_t less = w->size - 2 * w->padding;
    if (formula_size_text(r, x->size[0], w->batch, err) ||
        formula_size_text(r, x->size[1], w->in_channels, err) ||
        formula_size_text(r, y->size[1], w->channels, err))
        return -1;
    for (int d = 2; d < x->rank; d++) {
        char *in = w->in[d - x->rank + 3], out[2 * FORMULA_TEXT];
        if (formula_size_text(r, x->size[d], in, err)) return -1;
        if (w->stride == 1 && less == 1)
            snprintf(out, sizeof out, "%s", in);
        else if (w->stride == 1)
            snprintf(out, sizeof out, "(%s - %lld)", in, (long long)less - 1);
        else
            snprintf(out, sizeof out, "((%s - %lld) / %lld + 1)", in, (long long)less,
                     (long long)w->stride);
        if (strlen(out) >= FORMULA_TEXT) return error_set(err, ERROR_UNSUPPORTED, "a long size");
        formula_size(r, y->size[d], out);
        if (formula_size_text(r, y->size[d], w->out[d - x->rank + 3], err)) return -1;
    }
    return 0;
}

int formula_window(FormulaReader *r, const GraphCall *c, const char *name, Error *err)
{
    const OpCall *call = &c->call;
    const OpTensor *x = op_tensor(call, 0), *y = &call->result[0];
    int number = r->f->n_windows++;
    if (number >= (r->sizes ? FORMULA_WINDOWS : 1))
        return error_set(err, ERROR_UNSUPPORTED, "too many windows");
    FormulaWindow *w = &r->f->window[number];
    if (read_window(r, call, w, err) || window_sizes(r, x, y, w, err)) return -1;
    int in_space = formula_space(r, x, err), space = formula_space(r, y, err), weight = -1;
    int in = in_space < 0 || space < 0
                 ? -1
                 : formula_operand(r, c->in[call->arg[0].integer[0]], x, in_space, err);
    if (in < 0) return -1;
    if (w->kind <= WINDOW_DEPTHWISE) {
        const OpTensor *t = op_tensor(call, 1);
        int in_w = formula_space(r, t, err);
        weight = in_w < 0 ? -1 : formula_operand(r, c->in[call->arg[1].integer[0]], t, in_w, err);
        if (weight < 0) return -1;
    }
    int at = formula_add(r, VALUE_WINDOW, name, err);
    if (at < 0) return -1;
    r->f->value[at].window = number;
    r->f->value[at].space = space;
    r->f->value[at].arg[0] = in;
    r->f->value[at].arg[1] = weight;
    return add_bias(r, c, name, at, w->kind <= WINDOW_DEPTHWISE ? 2 : -1, err);
}
