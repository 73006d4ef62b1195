/* What all pointwise families share: types and shapes of results, the loop over elements, the kernel. */
#include "ops/op_pointwise.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "ops/op_text.h"

enum { MAX_OPERANDS = 3 };

double pointwise_clamp(double x, double low, double high)
{
    if (isnan(x)) return x;
    x = x < low ? low : x; /* a bound of NaN is none */
    return x > high ? high : x;
}

static int is_operand(const Pointwise *w, int arg)
{
    return arg < w->operands;
}

/* The scalar arguments; "tanh" is 1, "none" 0, None NaN. */
static void parameters(const OpCall *c, double *p)
{
    const Pointwise *w = c->op->detail;
    memset(p, 0, OP_MAX_ARGS * sizeof *p);
    for (int i = w->operands; i < c->n_args; i++) {
        const OpValue *v = &c->arg[i];
        p[i - w->operands] = v->kind == OP_NONE     ? NAN
                             : v->kind == OP_STRING ? !strcmp(v->text, "tanh")
                                                    : v->number;
    }
}

/* An operand that is no tensor; None is NaN. */
static double operand_number(const OpCall *c, int arg)
{
    return c->arg[arg].kind == OP_NONE ? NAN : c->arg[arg].number;
}

static int check_arguments(const OpCall *c, Error *err)
{
    const Pointwise *w = c->op->detail;
    int active = w->refused ? op_argument(c->op, w->refused) : -1;
    if (active >= 0 && c->arg[active].integer[0])
        return error_set(err, ERROR_UNSUPPORTED,
                         "%s=True draws random numbers; only evaluation mode is supported",
                         w->refused);
    for (int i = 0; i < c->n_args; i++)
        if (c->arg[i].kind == OP_STRING && strcmp(c->arg[i].text, "tanh") &&
            strcmp(c->arg[i].text, "none"))
            return error_set(err, ERROR_INVALID, "expected \"none\" or \"tanh\", found \"%s\"",
                             c->arg[i].text);
    return 0;
}

/* Of the arguments from `first` on. */
static OpDtype promoted(const OpCall *c, int first)
{
    int args[OP_MAX_ARGS], n = 0;
    for (int i = first; i < c->n_args; i++)
        if (c->arg[i].kind != OP_STRING && c->arg[i].kind != OP_DTYPE) args[n++] = i;
    return op_promote(c, args, n);
}

int pointwise_infer(OpCall *c, Error *err)
{
    const Pointwise *w = c->op->detail;
    const OpTensor *t[MAX_OPERANDS] = {0};
    int64_t size[OP_MAX_RANK];
    int rank;
    if (check_arguments(c, err)) return -1;
    for (int i = 0; i < w->operands; i++) t[i] = op_tensor(c, i);
    if (op_broadcast(t, w->operands, size, &rank, err)) return -1;
    if (c->op->flags & OP_IN_PLACE &&
        (!t[0] || rank != t[0]->rank || memcmp(size, t[0]->size, (size_t)rank * sizeof *size)))
        return error_set(err, ERROR_INVALID, "the result does not have the shape of self");
    OpDtype d = promoted(c, w->rule == RESULT_OTHERS);
    if (w->rule == RESULT_FLOAT && !op_dtype_is_float(d)) d = OP_F32;
    if (w->rule == RESULT_SELF || c->op->flags & OP_IN_PLACE) d = t[0] ? t[0]->dtype : d;
    if (w->rule == RESULT_BOOL) d = OP_B8;
    if (c->op->flags & (OP_IN_PLACE | OP_VIEW))
        return op_view(c, (int)c->arg[0].integer[0], t[0], err);
    return op_result(c, d, rank, size, err);
}

int pointwise_reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const Pointwise *w = c->op->detail;
    const OpTensor *y = &c->result[0];
    int64_t n = op_elements(y), step[MAX_OPERANDS][OP_MAX_RANK] = {0};
    double p[OP_MAX_ARGS], constant[MAX_OPERANDS] = {0};
    const double *source[MAX_OPERANDS];
    (void)err;
    parameters(c, p);
    for (int i = 0; i < MAX_OPERANDS; i++) {
        const OpTensor *t = is_operand(w, i) ? op_tensor(c, i) : NULL;
        source[i] = t ? in[c->arg[i].integer[0]] : &constant[i];
        if (t) {
            OpTensor logical = *t;
            op_contiguous(&logical);
            op_steps(&logical, y->rank, step[i]);
        } else if (is_operand(w, i)) {
            constant[i] = operand_number(c, i);
        }
    }
#pragma omp parallel for if (n >= 1 << 16)
    for (int64_t flat = 0; flat < n; flat++) {
        int64_t rest = flat, at[MAX_OPERANDS] = {0};
        for (int d = y->rank - 1; d >= 0; d--) {
            int64_t index = rest % y->size[d];
            rest /= y->size[d];
            for (int i = 0; i < MAX_OPERANDS; i++) at[i] += index * step[i][d];
        }
        out[0][flat] = w->f(source[0][at[0]], source[1][at[1]], source[2][at[2]], p);
    }
    return 0;
}

/* The type of the arithmetic: of a result that is a bool, that of the arguments. */
static const char *compute_type(const OpCall *c)
{
    OpDtype d = c->result[0].dtype;
    return text_type(d == OP_B8 ? promoted(c, 0) : d);
}

static void load(Buffer *b, const OpCall *c, int arg, const char *type)
{
    const OpTensor *t = op_tensor(c, arg), *y = &c->result[0];
    buffer_printf(b, "    const %s %c = (%s)", type, 'a' + arg, type);
    if (t) {
        buffer_printf(b, "x%lld[", (long long)c->arg[arg].integer[0]);
        text_index(b, t, y->rank, y->size, "i");
        buffer_puts(b, "]");
    } else {
        text_number(b, operand_number(c, arg));
    }
    buffer_puts(b, ";\n");
}

/* The expression; in double precision its constants are doubles too: 0.5 for 0.5f. */
static void expression(Buffer *b, const char *text, int wide)
{
    for (const char *at = text; *at; at++)
        if (!wide || *at != 'f' || at == text || !isdigit(at[-1]) || isalnum(at[1]))
            buffer_append(b, at, 1);
}

int pointwise_plain(const OpCall *c, OpPlain *out, Error *err)
{
    const Pointwise *w = c->op->detail;
    const OpTensor *y = &c->result[0];
    const char *type = compute_type(c);
    Buffer *b = out->source;
    double p[OP_MAX_ARGS];
    if (!text_each(out, c, "pointwise", NULL, op_elements(y), err)) return -1;
    parameters(c, p);
    for (int i = w->operands; i < c->n_args; i++) {
        buffer_printf(b, "    const %s p%d = (%s)", type, i - w->operands, type);
        text_number(b, p[i - w->operands]);
        buffer_puts(b, ";\n");
    }
    for (int i = 0; i < w->operands; i++) load(b, c, i, type);
    buffer_puts(b, "    y0[");
    text_index(b, y, y->rank, y->size, "i");
    buffer_printf(b, "] = (%s)(", op_dtype_ctype(y->dtype));
    expression(b, w->cuda, !strcmp(type, "double"));
    buffer_puts(b, ");\n");
    return text_each_end(out, err);
}

/* An operator that only writes to argument 0 does not name it in its text. */
void pointwise_cost(const OpCall *c, OpCost *out)
{
    const Pointwise *w = c->op->detail;
    out->flops = (double)op_elements(&c->result[0]);
    if (!strchr(w->cuda, 'a')) out->bytes -= op_bytes(op_tensor(c, 0));
}
