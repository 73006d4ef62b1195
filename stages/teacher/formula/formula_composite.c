/* Folds over rows, scans, and the operators that are made of them: softmax, norms, losses. */
#include <stdio.h>
#include <string.h>

#include "stages/teacher/formula/formula_read.h"

int formula_make(FormulaReader *r, const char *name, const char *text, int a, int b, Error *err)
{
    int at = formula_add(r, VALUE_POINT, name, err);
    if (at < 0) return -1;
    const FormulaValue *x = &r->f->value[a], *y = b >= 0 ? &r->f->value[b] : x;
    int more = x->domain == PER_ELEMENT || y->domain == PER_TASK ||
               (x->domain == PER_ROW && y->domain != PER_ELEMENT);
    const FormulaValue *of = more ? x : y;
    FormulaValue *v = &r->f->value[at];
    v->domain = of->domain == PER_ROW || of->domain == PER_TASK ? of->domain : PER_ELEMENT;
    v->space = of->space;
    v->text = text;
    v->arg[0] = a;
    v->arg[1] = b;
    return at;
}

static int fold(FormulaReader *r, Fold how, const char *name, int arg, Error *err)
{
    int at = formula_add(r, VALUE_FOLD, name, err);
    if (at < 0) return -1;
    FormulaValue *v = &r->f->value[at];
    v->fold = how;
    v->arg[0] = arg;
    v->domain = PER_ROW;
    v->space = r->f->value[arg].space;
    return at;
}

static int total(FormulaReader *r, Fold how, const char *name, int arg, Error *err)
{
    int at = fold(r, how, name, arg, err);
    if (at < 0) return -1;
    r->f->value[at].kind = VALUE_TOTAL;
    r->f->value[at].domain = PER_TASK;
    return at;
}

/* Argument 0 as an operand in its own space. */
static int own(FormulaReader *r, const GraphCall *c, int arg, Error *err)
{
    const OpCall *call = &c->call;
    int value = c->in[call->arg[arg].integer[0]], from = r->of[r->b->values[value].base];
    const OpTensor *t = &call->tensor[call->arg[arg].integer[0]];
    if (from >= 0 && r->f->value[from].domain == PER_ROW) return from;
    int space = formula_space(r, t, err);
    return space < 0 ? -1 : formula_operand(r, value, t, space, err);
}

/* 1: the dimensions are the columns of x; 2: all of them; 0: others. */
static int over(const FormulaReader *r, const OpCall *call, int arg, const OpTensor *x)
{
    const OpValue *v = arg < 0 ? NULL : &call->arg[arg];
    int n = !v ? 0 : v->kind == OP_INT ? 1 : v->kind == OP_INTS ? v->n : 0;
    unsigned mask = 0;
    for (int i = 0; i < n; i++)
        mask |= 1u << (v->integer[i] < 0 ? v->integer[i] + x->rank : v->integer[i]);
    if (!n || mask == (1u << x->rank) - 1) return x->rank == 1 && n ? 1 : 2;
    return formula_is_over(r, x->rank, mask);
}

static double number(const OpCall *call, const char *name, double otherwise)
{
    int at = op_argument(call->op, name);
    return at >= 0 && call->arg[at].kind != OP_NONE ? call->arg[at].number : otherwise;
}

static int variance(FormulaReader *r, const char *name, int x, double correction, Error *err)
{
    int mean = fold(r, FOLD_MEAN, "mean", x, err);
    int at = mean < 0 ? -1 : fold(r, FOLD_VAR, name, x, err);
    if (at < 0) return -1;
    r->f->value[at].mean = mean;
    r->f->value[at].p[0] = correction;
    return at;
}

static int norm2(FormulaReader *r, const char *name, int x, Error *err)
{
    int square = formula_make(r, "square", "a * a", x, -1, err);
    int sum = square < 0 ? -1 : fold(r, FOLD_SUM, "sum", square, err);
    return sum < 0 ? -1 : formula_make(r, name, "sqrtf(a)", sum, -1, err);
}

static int reduction(FormulaReader *r, const GraphCall *c, const char *name, Error *err)
{
    const OpCall *call = &c->call;
    int x = own(r, c, 0, err),
        how = over(r, call, op_argument(call->op, "dim"), op_tensor(call, 0));
    if (x < 0) return -1;
    static const struct {
        const char *name;
        Fold fold;
    } folds[] = {{"sum", FOLD_SUM}, {"mean", FOLD_MEAN}, {"amax", FOLD_MAX}, {"amin", FOLD_MIN},
                 {"max", FOLD_MAX}, {"min", FOLD_MIN},   {"var", FOLD_VAR}};
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++) {
        if (strcmp(r->op, folds[i].name)) continue;
        if (how == 2 && folds[i].fold <= FOLD_MEAN) return total(r, folds[i].fold, name, x, err);
        if (how != 1 || r->f->value[x].domain != PER_ELEMENT) break;
        if (folds[i].fold == FOLD_VAR)
            return variance(r, name, x, number(call, "correction", number(call, "unbiased", 1)),
                            err);
        return fold(r, folds[i].fold, name, x, err);
    }
    if (how == 1 && !strcmp(r->op, "linalg_vector_norm") && number(call, "ord", 2) == 2)
        return norm2(r, name, x, err);
    return error_set(err, ERROR_UNSUPPORTED, "a fold that is not over rows or everything");
}

/* softmax, log_softmax and logsumexp over the columns. */
static int softmax(FormulaReader *r, const GraphCall *c, const char *name, Error *err)
{
    int x = own(r, c, 0, err);
    if (x < 0) return -1;
    if (over(r, &c->call, 1, op_tensor(&c->call, 0)) != 1 || r->f->value[x].domain != PER_ELEMENT)
        return error_set(err, ERROR_UNSUPPORTED, "not over the columns");
    int top = fold(r, FOLD_MAX, "top", x, err);
    int less = top < 0 ? -1 : formula_make(r, "less", "a - b", x, top, err);
    int e = less < 0 ? -1 : formula_make(r, "e", "$exp(a)", less, -1, err);
    int sum = e < 0 ? -1 : fold(r, FOLD_SUM, "sum", e, err);
    if (sum < 0) return -1;
    r->f->value[sum].top = top;
    if (strstr(r->op, "logsumexp")) return formula_make(r, name, "a + logf(b)", top, sum, err);
    return formula_make(r, name, strstr(r->op, "log_") ? "a - logf(b)" : "a / b",
                        strstr(r->op, "log_") ? less : e, sum, err);
}

/* x times scale, then the optional gain and bias of the arguments from `gain` on. */
static int affine(FormulaReader *r, const GraphCall *c, const char *name, int x, int gain,
                  Error *err)
{
    const OpCall *call = &c->call;
    static const char *const texts[] = {"a * b", "a + b"};
    for (int i = 0; i < 2; i++) {
        int arg = gain + i;
        if (arg >= call->n_args || call->arg[arg].kind != OP_TENSOR) continue;
        int w = formula_channel(r, c->in[call->arg[arg].integer[0]], &call->result[0],
                                r->f->value[x].space, err);
        x = w < 0 ? -1 : formula_make(r, name, texts[i], x, w, err);
        if (x < 0) return -1;
    }
    return x;
}

static int norm(FormulaReader *r, const GraphCall *c, const char *name, Error *err)
{
    const OpCall *call = &c->call;
    int x = own(r, c, 0, err), layer = !strcmp(r->op, "layer_norm");
    if (x < 0) return -1;
    const OpValue *shape = &call->arg[1];
    int rank = op_tensor(call, 0)->rank, n = shape->kind == OP_INTS ? shape->n : 0, group = 0;
    if (!strcmp(r->op, "group_norm"))
        group = r->split == SPLIT_GROUPS && shape->integer[0] == r->groups;
    else if (n < 1 || n > rank || !formula_is_over(r, rank, ((1u << n) - 1) << (rank - n)))
        return error_set(err, ERROR_UNSUPPORTED, "not over the columns");
    if (r->f->value[x].domain != PER_ELEMENT || (!n && !group))
        return error_set(err, ERROR_UNSUPPORTED, "not over the columns");
    layer |= group;
    int spread, less = x;
    if (layer) {
        spread = variance(r, "var", x, 0, err);
        less = spread < 0 ? -1 : formula_make(r, "less", "a - b", x, r->f->value[spread].mean, err);
    } else {
        int square = formula_make(r, "square", "a * a", x, -1, err);
        spread = square < 0 ? -1 : fold(r, FOLD_MEAN, "var", square, err);
    }
    if (less < 0 || spread < 0) return -1;
    int scale = formula_make(r, "scale", "rsqrtf(a + p0)", spread, -1, err);
    if (scale < 0) return -1;
    r->f->value[scale].p[0] = number(call, "eps", layer ? 1e-5 : 1.1920928955078125e-07);
    int y = formula_make(r, name, "a * b", less, scale, err);
    return y < 0 ? -1 : affine(r, c, name, y, 2, err);
}

/* A parameter with an element for each channel. */
static int channel_argument(FormulaReader *r, const GraphCall *c, const char *arg, int space,
                            Error *err)
{
    const OpValue *v = &c->call.arg[op_argument(c->call.op, arg)];
    if (v->kind != OP_TENSOR) return error_set(err, ERROR_UNSUPPORTED, "no %s", arg);
    return formula_channel(r, c->in[v->integer[0]], &c->call.result[0], space, err);
}

/* batch_norm by the running statistics, and instance_norm by those of each row. */
static int channel_norm(FormulaReader *r, const GraphCall *c, const char *name, Error *err)
{
    const OpCall *call = &c->call;
    int batch = !strcmp(r->op, "batch_norm"), rank = op_tensor(call, 0)->rank;
    const OpValue *fresh =
        &call->arg[op_argument(call->op, batch ? "training" : "use_input_stats")];
    int split = r->split == SPLIT_GROUPS || r->split == SPLIT_CHANNELS || rank == 2;
    if (fresh->integer[0] == batch || (split ? !batch : formula_cols(r, rank) < 2))
        return error_set(err, ERROR_UNSUPPORTED, "no such norm");
    int x = own(r, c, 0, err), mean, spread;
    if (x < 0) return -1;
    if (batch) {
        int space = r->f->value[x].space;
        mean = channel_argument(r, c, "running_mean", space, err);
        spread = mean < 0 ? -1 : channel_argument(r, c, "running_var", space, err);
    } else {
        spread = variance(r, "var", x, 0, err);
        mean = spread < 0 ? -1 : r->f->value[spread].mean;
    }
    int less = spread < 0 ? -1 : formula_make(r, "less", "a - b", x, mean, err);
    int scale = less < 0 ? -1 : formula_make(r, "scale", "rsqrtf(a + p0)", spread, -1, err);
    if (scale < 0) return -1;
    r->f->value[scale].p[0] = number(call, "eps", 1e-5);
    int y = formula_make(r, name, "a * b", less, scale, err);
    return y < 0 ? -1 : affine(r, c, name, y, 1, err);
}

/* The mean of each plane. */
static int global_pool(FormulaReader *r, const GraphCall *c, const char *name, Error *err)
{
    const OpCall *call = &c->call;
    const OpTensor *y = &call->result[0];
    int x = own(r, c, 0, err), cols = formula_cols(r, y->rank);
    if (x < 0) return -1;
    for (int d = y->rank - cols; d < y->rank; d++)
        if (y->size[d] != 1 || r->f->value[x].domain != PER_ELEMENT || cols < 2 ||
            r->split != SPLIT_PLANES)
            return error_set(err, ERROR_UNSUPPORTED, "more than one window");
    return fold(r, FOLD_MEAN, name, x, err);
}

static int scan(FormulaReader *r, const GraphCall *c, const char *name, Error *err)
{
    int x = own(r, c, 0, err);
    if (x < 0) return -1;
    if (over(r, &c->call, 1, op_tensor(&c->call, 0)) != 1 || r->f->value[x].domain != PER_ELEMENT ||
        r->f->space[r->f->value[x].space].n_inner > 1)
        return error_set(err, ERROR_UNSUPPORTED, "not over the last dimension");
    int at = fold(r, FOLD_SUM, name, x, err);
    if (at < 0) return -1;
    r->f->value[at].kind = VALUE_SCAN;
    r->f->value[at].domain = PER_ELEMENT;
    return at;
}

/* The mean of a function of the difference. */
static int loss(FormulaReader *r, const GraphCall *c, const char *name, Error *err)
{
    static const struct {
        const char *op, *text;
    } losses[] = {{"mse_loss", "(a - b) * (a - b)"}, {"l1_loss", "fabsf(a - b)"}};
    const OpCall *call = &c->call;
    int a = own(r, c, 0, err), b = a < 0 ? -1 : own(r, c, 1, err);
    if (b < 0) return -1;
    int how = op_argument(call->op, "reduction");
    if (how >= 0 && call->arg[how].kind == OP_INT && call->arg[how].integer[0] != 1)
        return error_set(err, ERROR_UNSUPPORTED, "a loss that is no mean");
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        if (strcmp(r->op, losses[i].op)) continue;
        int d = formula_make(r, "loss", losses[i].text, a, b, err);
        return d < 0 ? -1 : total(r, FOLD_MEAN, name, d, err);
    }
    return error_set(err, ERROR_UNSUPPORTED, "no template is known");
}

static int copy(FormulaReader *r, const GraphCall *c, const char *name, Error *err)
{
    int space = formula_space(r, &c->call.result[0], err);
    int x = space < 0 ? -1
                      : formula_operand(r, c->in[c->call.arg[0].integer[0]], &c->call.result[0],
                                        space, err);
    if (x < 0) return -1;
    int at = formula_make(r, name, "a", x, -1, err);
    if (at >= 0) r->f->value[at].domain = PER_ELEMENT, r->f->value[at].space = space;
    return at;
}

int formula_composite(FormulaReader *r, const GraphCall *c, const char *name, Error *err)
{
    static const struct {
        const char *names;
        int (*read)(FormulaReader *r, const GraphCall *c, const char *name, Error *err);
    } readers[] = {
        {" sum mean amax amin max min var linalg_vector_norm ", reduction},
        {" softmax _softmax log_softmax _log_softmax logsumexp ", softmax},
        {" layer_norm rms_norm group_norm ", norm},
        {" batch_norm instance_norm ", channel_norm},
        {" adaptive_avg_pool2d adaptive_avg_pool3d ", global_pool},
        {" cumsum ", scan},
        {" mse_loss l1_loss ", loss},
        {" clone contiguous ", copy},
        {" mm matmul linear addmm ", formula_product},
        {" conv2d max_pool2d avg_pool2d max_pool3d avg_pool3d ", formula_window},
    };
    char word[40];
    snprintf(word, sizeof word, " %s ", r->op);
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (strstr(readers[i].names, word)) return readers[i].read(r, c, name, err);
    return error_set(err, ERROR_UNSUPPORTED, "no template is known");
}
