/* What all pointwise families share: types and shapes of results, the loop over elements, the kernel. */
#include "ops/op_pointwise.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/op_element.h"
#include "ops/op_strided.h"
#include "ops/op_text.h"

enum { MAX_OPERANDS = WALK_OPERANDS, WORTH_THREADS = 1 << 16 };

double pointwise_clamp(double x, double low, double high)
{
    if (isnan(x)) return x;
    x = x < low ? low : x; /* a bound of NaN is none */
    return x > high ? high : x;
}

/* Whole numbers are compared with no NaN: a bound that is None is left out. */
const char *pointwise_clamp_text(const OpCall *c)
{
    if (c->n_args > 1 && c->arg[1].kind == OP_NONE) return "a > p1 ? p1 : a";
    if (c->n_args < 3 || c->arg[2].kind == OP_NONE) return "a < p0 ? p0 : a";
    return NULL;
}

static int is_operand(const Pointwise *w, int arg)
{
    return arg < w->operands;
}

/* The place of a string among those that an operator knows; -1: it is none of them. */
static int mode_of(const Pointwise *w, const char *text)
{
    const char *modes = w->modes ? w->modes : " none tanh ";
    char word[sizeof((OpValue *)0)->text + 2];
    snprintf(word, sizeof word, " %s ", text);
    const char *found = strchr(text, ' ') ? NULL : strstr(modes, word);
    int place = 0;
    if (!found) return -1;
    for (const char *p = modes + 1; p <= found; p++) place += *p == ' ';
    return place;
}

void pointwise_parameters(const OpCall *c, double *p)
{
    const Pointwise *w = c->op->detail;
    memset(p, 0, OP_MAX_ARGS * sizeof *p);
    for (int i = w->operands; i < c->n_args; i++) {
        const OpValue *v = &c->arg[i];
        p[i - w->operands] = v->kind == OP_NONE     ? NAN
                             : v->kind == OP_STRING ? mode_of(w, v->text)
                                                    : v->number;
    }
    if (w->fill) w->fill(c, p);
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
        if (c->arg[i].kind == OP_STRING && mode_of(w, c->arg[i].text) < 0)
            return error_set(err, ERROR_INVALID, "expected one of%s, found \"%s\"",
                             w->modes ? w->modes : " none tanh", c->arg[i].text);
    return 0;
}

/* Of the arguments from `first` on. */
static Dtype promoted(const OpCall *c, int first)
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
    Dtype d = promoted(c, w->rule == RESULT_OTHERS);
    if (w->rule == RESULT_FLOAT && !dtype_is_float(d)) d = DTYPE_F32;
    if (w->rule == RESULT_SELF || c->op->flags & OP_IN_PLACE) d = t[0] ? t[0]->dtype : d;
    if (w->rule == RESULT_BOOL) d = DTYPE_B8;
    if (c->op->flags & (OP_IN_PLACE | OP_VIEW))
        return op_view(c, (int)c->arg[0].integer[0], t[0], err);
    return op_result(c, d, rank, size, err);
}

/* The loop over an operator's runs. */
typedef struct {
    const OpWalk *walk;
    PointFunction *f;
    const double *source[MAX_OPERANDS], *p;
    double *y;
} Loop;

static void loop_run(const Loop *l, int64_t i)
{
    OpRun r = walk_run(l->walk, i);
    PointRun run = {.p = l->p, .n = r.n, .y = l->y + r.first};
    for (int k = 0; k < MAX_OPERANDS; k++)
        run.x[k] = l->source[k] + r.at[k], run.step[k] = r.step[k];
    l->f(&run);
}

/* What the elements of a result are computed of. */
typedef struct {
    const double *source[MAX_OPERANDS];
    double constant[MAX_OPERANDS], p[OP_MAX_ARGS];
    OpWalk walk;
} Sources;

/* in NULL: places alone. */
static void open_sources(const OpCall *c, const double *const *in, Sources *s)
{
    const Pointwise *w = c->op->detail;
    const OpTensor *y = &c->result[0];
    int64_t step[MAX_OPERANDS][OP_MAX_RANK] = {0};
    memset(s, 0, sizeof *s);
    pointwise_parameters(c, s->p);
    for (int i = 0; i < MAX_OPERANDS; i++) {
        const OpTensor *t = is_operand(w, i) ? op_tensor(c, i) : NULL;
        s->source[i] = t && in ? in[c->arg[i].integer[0]] : &s->constant[i];
        if (t) {
            OpTensor logical = *t;
            op_contiguous(&logical);
            op_steps(&logical, y->rank, step[i]);
        } else if (is_operand(w, i)) {
            s->constant[i] = operand_number(c, i);
        }
    }
    walk_open(&s->walk, y->rank, y->size, (const int64_t(*)[OP_MAX_RANK])step, MAX_OPERANDS);
}

/* Integers of less than 64 bits wrap. */
static void wrap(const OpCall *c, double *y, int64_t n)
{
    Dtype d = c->result[0].dtype;
    for (int64_t i = 0; dtype_is_small(d) && i < n; i++) y[i] = dtype_rounded(d, y[i]);
    for (int64_t i = 0; d == DTYPE_I32 && i < n; i++)
        if (fabs(y[i]) > INT32_MAX && fabs(y[i]) < 0x1p63) y[i] = (double)(int32_t)(int64_t)y[i];
}

int pointwise_reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const Pointwise *w = c->op->detail;
    Sources s;
    (void)err;
    open_sources(c, in, &s);
    Loop loop = {&s.walk, w->f, {s.source[0], s.source[1], s.source[2]}, s.p, out[0]};
    if (op_elements(&c->result[0]) < WORTH_THREADS) { /* even a team of one thread takes its time */
        for (int64_t i = 0; i < s.walk.runs; i++) loop_run(&loop, i);
    } else {
#pragma omp parallel for
        for (int64_t i = 0; i < s.walk.runs; i++) loop_run(&loop, i);
    }
    wrap(c, out[0], op_elements(&c->result[0]));
    return 0;
}

static void element_needs(const OpCall *c, const OpSome *some, const OpNeeds *out)
{
    const Pointwise *w = c->op->detail;
    Sources s;
    open_sources(c, NULL, &s);
    for (int64_t k = 0; k < some->n; k++) {
        int64_t at[WALK_OPERANDS];
        walk_place(&s.walk, some->at[k], at);
        for (int i = 0; i < w->operands; i++)
            if (op_tensor(c, i)) out->add(out->of, (int)c->arg[i].integer[0], at[i], 1, 1);
    }
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *some, double *y)
{
    enum { SOME = 64 };
    const Pointwise *w = c->op->detail;
    double x[MAX_OPERANDS][SOME];
    Sources s;
    open_sources(c, in, &s);
    for (int64_t first = 0; first < some->n; first += SOME) {
        int64_t n = some->n - first < SOME ? some->n - first : SOME;
        for (int64_t k = 0; k < n; k++) {
            int64_t at[WALK_OPERANDS];
            walk_place(&s.walk, some->at[first + k], at);
            for (int i = 0; i < MAX_OPERANDS; i++) x[i][k] = s.source[i][at[i]];
        }
        w->f(&(PointRun){{x[0], x[1], x[2]}, s.p, {1, 1, 1}, n, y + first});
        wrap(c, y + first, n);
    }
}

const OpElements pointwise_elements = {element_needs, element_compute, NULL, NULL};

const char *pointwise_text(const OpCall *c)
{
    const Pointwise *w = c->op->detail;
    const char *text = w->special ? w->special(c) : NULL;
    if (!text && w->whole && !dtype_is_float(c->result[0].dtype)) text = w->whole;
    return text ? text : w->cuda;
}

/* The type of the arithmetic. Where the result is a bool, it is the arguments' type. */
static const char *compute_type(const OpCall *c)
{
    Dtype d = c->result[0].dtype;
    return text_type(d == DTYPE_B8 ? promoted(c, 0) : d);
}

/* The expression; in double precision its constants are doubles too: 0.5 for 0.5f. */
static void expression(Buffer *b, const char *text, int wide)
{
    for (const char *at = text; *at; at++)
        if (!wide || *at != 'f' || at == text || !isdigit(at[-1]) || isalnum(at[1]))
            buffer_append(b, at, 1);
}

static void constants(Buffer *b, const OpCall *c, const char *type)
{
    const Pointwise *w = c->op->detail;
    double p[OP_MAX_ARGS];
    pointwise_parameters(c, p);
    for (int i = w->operands; i < c->n_args; i++) {
        buffer_printf(b, "    const %s p%d = (%s)", type, i - w->operands, type);
        text_number(b, p[i - w->operands]);
        buffer_puts(b, ";\n");
    }
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

static void result(Buffer *b, const OpCall *c, const char *type)
{
    buffer_printf(b, " = (%s)(", dtype_ctype(c->result[0].dtype));
    expression(b, pointwise_text(c), !strcmp(type, "double"));
    buffer_puts(b, ");\n");
}

/* ---- dense tensors: four elements a thread, as eager PyTorch reads and writes them ---- */

enum { LANES = 4, LANE_THREADS = 128 };

/* 1: its elements are at the places of y's. One element for all of y's is not dense: eager PyTorch
 * then walks by strides. */
static int lies_dense(const OpTensor *t, const OpTensor *y)
{
    int64_t step[OP_MAX_RANK], n[OP_MAX_RANK], s[OP_MAX_RANK];
    op_steps(t, y->rank, step);
    int r = op_merge(y->rank, y->size, step, n, s);
    return r == 1 && s[0] == 1 && t->offset % LANES == 0;
}

static int is_dense(const OpCall *c)
{
    const Pointwise *w = c->op->detail;
    const OpTensor *y = &c->result[0];
    int dense = op_elements(y) % LANES == 0 && op_elements(y) && lies_dense(y, y);
    for (int i = 0; i < w->operands && dense; i++)
        dense = !op_tensor(c, i) || lies_dense(op_tensor(c, i), y);
    return dense;
}

/* 1: an operand is converted as it is read. */
static int is_mixed(const OpCall *c)
{
    const Pointwise *w = c->op->detail;
    const OpTensor *a = op_tensor(c, 0), *b = w->operands == 2 ? op_tensor(c, 1) : NULL;
    return (w->rule == RESULT_PROMOTED || w->rule == RESULT_FLOAT) && a && b &&
           a->dtype != b->dtype;
}

static void at_lane(Buffer *b, int64_t offset)
{
    buffer_puts(b, " + i");
    if (offset) buffer_printf(b, " + %lldLL", (long long)offset);
    buffer_puts(b, ")");
}

static int dense_plain(const OpCall *c, OpPlain *out, Error *err)
{
    const Pointwise *w = c->op->detail;
    const OpTensor *y = &c->result[0];
    const char *type = compute_type(c), *element = dtype_ctype(y->dtype);
    int64_t n = op_elements(y), block = LANES * LANE_THREADS;
    Buffer *b = out->source;
    buffer_puts(b, "#ifndef OP_LANES\n#define OP_LANES\n"
                   "template <typename T> struct __align__(4 * sizeof(T)) op_lanes { T v[4]; };\n"
                   "#endif\n");
    if (!text_begin(out, &(TextHead){"pointwise", NULL, (n + block - 1) / block, LANE_THREADS},
                    err))
        return -1;
    buffer_printf(b,
                  "    const long long i = ((long long)blockIdx.x * %d + threadIdx.x) * %d;\n"
                  "    if (i >= %lld) return;\n",
                  LANE_THREADS, LANES, (long long)n);
    constants(b, c, type);
    for (int k = 0; k < w->operands; k++) {
        if (!op_tensor(c, k)) {
            load(b, c, k, type);
            continue;
        }
        const char *own = dtype_ctype(op_tensor(c, k)->dtype);
        buffer_printf(b, "    const op_lanes<%s> in_%c = *(const op_lanes<%s> *)(x%lld", own,
                      'a' + k, own, (long long)c->arg[k].integer[0]);
        at_lane(b, op_tensor(c, k)->offset);
        buffer_puts(b, ";\n");
    }
    buffer_printf(b, "    op_lanes<%s> to;\n    for (int k = 0; k < %d; k++) {\n", element, LANES);
    for (int k = 0; k < w->operands; k++)
        if (op_tensor(c, k))
            buffer_printf(b, "    const %s %c = (%s)in_%c.v[k];\n", type, 'a' + k, type, 'a' + k);
    buffer_puts(b, "    to.v[k]");
    result(b, c, type);
    buffer_printf(b, "    }\n    *(op_lanes<%s> *)(y0", element);
    at_lane(b, y->offset);
    buffer_puts(b, " = to;\n");
    return text_end(out, err);
}

/* Of two types: four elements of a thread lie 128 apart, and all are read before one is written. */
static int mixed_plain(const OpCall *c, OpPlain *out, Error *err)
{
    const char *type = compute_type(c);
    int64_t n = op_elements(&c->result[0]), block = LANES * LANE_THREADS;
    Buffer *b = out->source;
    if (!text_begin(out, &(TextHead){"pointwise", NULL, (n + block - 1) / block, LANE_THREADS},
                    err))
        return -1;
    constants(b, c, type);
    buffer_printf(b,
                  "    const long long first = blockIdx.x * %lldLL + threadIdx.x;\n"
                  "    %s in_a[%d], in_b[%d];\n"
                  "#pragma unroll\n"
                  "    for (int k = 0; k < %d; k++) {\n"
                  "        const long long i = first + k * %d;\n"
                  "        if (i >= %lld) break;\n",
                  (long long)block, type, LANES, LANES, LANES, LANE_THREADS, (long long)n);
    for (int k = 0; k < 2; k++)
        buffer_printf(b, "        in_%c[k] = (%s)x%lld[i + %lldLL];\n", 'a' + k, type,
                      (long long)c->arg[k].integer[0], (long long)op_tensor(c, k)->offset);
    buffer_printf(b,
                  "    }\n"
                  "#pragma unroll\n"
                  "    for (int k = 0; k < %d; k++) {\n"
                  "        const long long i = first + k * %d;\n"
                  "        if (i >= %lld) break;\n"
                  "        const %s a = in_a[k], b = in_b[k];\n"
                  "        y0[i + %lldLL]",
                  LANES, LANE_THREADS, (long long)n, type, (long long)c->result[0].offset);
    result(b, c, type);
    buffer_puts(b, "    }\n");
    return text_end(out, err);
}

int pointwise_plain(const OpCall *c, OpPlain *out, Error *err)
{
    const Pointwise *w = c->op->detail;
    const OpTensor *y = &c->result[0];
    const char *type = compute_type(c);
    Buffer *b = out->source;
    if (is_dense(c)) return is_mixed(c) ? mixed_plain(c, out, err) : dense_plain(c, out, err);
    if (!text_walk(out, "pointwise", NULL, op_elements(y), err)) return -1;
    constants(b, c, type);
    for (int i = 0; i < w->operands; i++) load(b, c, i, type);
    buffer_puts(b, "    y0[");
    text_index(b, y, y->rank, y->size, "i");
    buffer_puts(b, "]");
    result(b, c, type);
    return text_each_end(out, err);
}

/* An operator that only writes to argument 0 does not name it in its text. */
void pointwise_cost(const OpCall *c, OpCost *out)
{
    out->flops = (double)op_elements(&c->result[0]);
    if (!strchr(pointwise_text(c), 'a')) out->bytes -= op_bytes(op_tensor(c, 0));
}
