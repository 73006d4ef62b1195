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
    int turned = b->stride[0] == 1 && b->stride[1] == b->size[0];
    if (!turned && (b->stride[1] != 1 || b->stride[0] != b->size[1]))
        return error_set(err, ERROR_UNSUPPORTED, "the right matrix has strides");
    int in_space = formula_space(r, a, err), space = formula_space(r, &call->result[0], err);
    int x = in_space < 0 || space < 0 ? -1 : formula_operand(r, c->in[left], a, in_space, err);
    int in_b = x < 0 ? -1 : formula_space(r, b, err);
    int y = in_b < 0 ? -1 : formula_operand(r, c->in[right], b, in_b, err);
    int at = y < 0 ? -1 : formula_add(r, VALUE_PRODUCT, name, err);
    if (at < 0) return -1;
    FormulaValue *v = &r->f->value[at];
    v->space = space;
    v->arg[0] = x;
    v->arg[1] = y;
    v->right_turned = turned != linear;
    memcpy(v->inner, r->f->space[in_space].cols, sizeof v->inner);
    return add_bias(r, c, name, at, linear ? 2 : addmm ? 0 : -1, err);
}

/* The window of one operator, or -1 when it is not one that the templates know. */
static int read_window(FormulaReader *r, const OpCall *call, FormulaWindow *w, Error *err)
{
    const OpTensor *x = op_tensor(call, 0), *y = &call->result[0];
    int conv = !strcmp(r->op, "conv2d");
    const OpTensor *weight = conv ? op_tensor(call, 1) : NULL;
    int at_stride = op_argument(call->op, "stride"), at_padding = op_argument(call->op, "padding"),
        at_dilation = op_argument(call->op, "dilation"),
        at_groups = op_argument(call->op, "groups"), at_ceil = op_argument(call->op, "ceil_mode");
    const OpValue *stride = &call->arg[at_stride], *padding = &call->arg[at_padding],
                  *size = &call->arg[1];
    if (x->rank != 4 || r->one_col || padding->kind != OP_INTS ||
        (at_ceil >= 0 && call->arg[at_ceil].integer[0]))
        return error_set(err, ERROR_UNSUPPORTED, "no such window");
    int64_t groups = at_groups < 0 ? 1 : call->arg[at_groups].integer[0];
    w->kind = !conv         ? (strstr(r->op, "max") ? WINDOW_MAX : WINDOW_MEAN)
              : groups == 1 ? WINDOW_CONV
                            : WINDOW_DEPTHWISE;
    if (conv && groups != 1 && (groups != x->size[1] || weight->size[0] != groups))
        return error_set(err, ERROR_UNSUPPORTED, "groups of channels");
    for (int i = 0; i < 2; i++) {
        w->size[i] = conv ? weight->size[2 + i] : size->integer[size->n > i ? i : 0];
        if (at_dilation >= 0 && call->arg[at_dilation].kind == OP_INTS &&
            call->arg[at_dilation].integer[0] != 1)
            return error_set(err, ERROR_UNSUPPORTED, "a dilated window");
    }
    w->stride = stride->kind == OP_INTS && stride->n ? stride->integer[0] : w->size[0];
    w->padding = padding->n ? padding->integer[0] : 0;
    for (int i = 1; i < 2; i++)
        if ((stride->n > 1 && stride->integer[1] != w->stride) ||
            (padding->n > 1 && padding->integer[1] != w->padding) || w->size[0] != w->size[1])
            return error_set(err, ERROR_UNSUPPORTED, "a window that is no square");
    if (w->kind == WINDOW_MEAN && w->padding)
        return error_set(err, ERROR_UNSUPPORTED, "a mean with padding");
    for (int d = 2; d < 4; d++) {
        char in[FORMULA_TEXT], out[2 * FORMULA_TEXT];
        int64_t less = w->size[0] - 2 * w->padding;
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
    }
    return 0;
}

int formula_window(FormulaReader *r, const GraphCall *c, const char *name, Error *err)
{
    const OpCall *call = &c->call;
    FormulaWindow *w = &r->f->window;
    const OpTensor *x = op_tensor(call, 0), *y = &call->result[0];
    if (r->f->n_windows++) return error_set(err, ERROR_UNSUPPORTED, "a second window");
    if (read_window(r, call, w, err)) return -1;
    if (formula_size_text(r, x->size[0], w->batch, err) ||
        formula_size_text(r, x->size[1], w->in_channels, err) ||
        formula_size_text(r, y->size[1], w->channels, err) ||
        formula_size_text(r, x->size[2], w->in_high, err) ||
        formula_size_text(r, x->size[3], w->in_wide, err) ||
        formula_size_text(r, y->size[2], w->high, err) ||
        formula_size_text(r, y->size[3], w->wide, err))
        return -1;
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
    r->f->value[at].space = space;
    r->f->value[at].arg[0] = in;
    r->f->value[at].arg[1] = weight;
    return add_bias(r, c, name, at, w->kind <= WINDOW_DEPTHWISE ? 2 : -1, err);
}
