/* Finds operators, binds arguments by schema, and what all families share: sizes, broadcasting,
 * promotion. Every size is checked before it is multiplied. */
#include "ops/op.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/suggest.h"
#include "ops/op_convolution.h"

/* ---- argument schemas as ATen writes them, each read once: "Tensor self, int[2] stride=1, *" ---- */

/* type: "Tensor", "Operand" (a tensor or a number), "int", "float", "Scalar", "bool", "ScalarType",
 * "str", "Any", "Tensor[]", "int[]". An int[N] takes one int for all N. */
typedef struct {
    char type[16], name[24], fallback[24];
    int optional, list, count, required, keyword_only;
} SchemaParameter;

/* A schema that was read. It stays with the process; threads share it. */
typedef struct {
    const char *text;
    int n;
    SchemaParameter p[OP_MAX_ARGS];
} Schema;

static int word(const char **at, const char *stops, char *out, size_t size)
{
    size_t n = strcspn(*at, stops);
    if (!n || n >= size) return -1;
    memcpy(out, *at, n);
    out[n] = 0;
    *at += n;
    return 0;
}

/* Advances *at past one parameter. 1: one was read; 0: the end; -1: the schema is malformed. */
static int next(const char **at, int *keyword_only, SchemaParameter *p, Error *err)
{
    const char *start = *at;
    memset(p, 0, sizeof *p);
    *at += strspn(*at, ", ");
    if (**at == '*') {
        *keyword_only = 1;
        (*at)++;
        *at += strspn(*at, ", ");
    }
    if (!**at) return 0;
    if (word(at, "?[ ", p->type, sizeof p->type)) goto bad;
    if (**at == '[') {
        char *end;
        p->list = 1;
        p->count = (int)strtol(*at + 1, &end, 10);
        if (*end != ']') goto bad;
        *at = end + 1;
    }
    if (**at == '?') p->optional = 1, (*at)++;
    *at += strspn(*at, " ");
    if (word(at, ",=", p->name, sizeof p->name)) goto bad;
    p->required = **at != '=';
    if (!p->required) {
        (*at)++;
        if (**at == '[') {
            if (word(at, "]", p->fallback, sizeof p->fallback)) goto bad;
            (*at)++;
        } else if (word(at, ",", p->fallback, sizeof p->fallback)) {
            goto bad;
        }
    }
    p->keyword_only = *keyword_only;
    return 1;
bad:
    return error_set(err, ERROR_INVALID, "the schema \"%s\" is malformed at \"%.20s\"", start, *at);
}

static Schema *read_schema(const Op *op, Error *err)
{
    Schema *s = memory_alloc(sizeof *s);
    const char *at = s->text = op->schema;
    int keyword_only = 0, more;
    SchemaParameter p;
    while ((more = next(&at, &keyword_only, &p, err)) == 1) {
        if (s->n == OP_MAX_ARGS)
            more =
                error_set(err, ERROR_LIMIT, "%s: more than %d parameters", op->name, OP_MAX_ARGS);
        if (more < 0) break;
        s->p[s->n++] = p;
    }
    if (!more) return s;
    free(s);
    return NULL;
}

/* The schema of an operator; NULL: it is malformed, or has too many parameters. */
static const Schema *schema_of(const Op *op, Error *err)
{
    enum { PLACES = 1 << 12 }; /* more than there are texts in the library */
    static _Atomic(Schema *) known[PLACES];
    size_t at = (uintptr_t)op->schema % PLACES;
    for (int tries = 0; tries < PLACES; tries++, at = (at + 1) % PLACES) {
        Schema *have = atomic_load(&known[at]);
        if (!have) {
            Schema *own = read_schema(op, err);
            if (!own || atomic_compare_exchange_strong(&known[at], &have, own)) return own;
            free(own); /* another thread was faster */
        }
        if (have->text == op->schema) return have;
    }
    error_set(err, ERROR_LIMIT, "more than %d schemas", PLACES);
    return NULL;
}

static const char *kind_name(OpKind k)
{
    static const char *const names[] = {"None",           "a tensor", "a list of tensors",
                                        "an int",         "a float",  "a bool",
                                        "a list of ints", "a dtype",  "a string"};
    return names[k];
}

static int matches(const SchemaParameter *p, OpKind k)
{
    if (!strcmp(p->type, "Any")) return 1;
    if (p->list) return k == (!strcmp(p->type, "Tensor") ? OP_TENSORS : OP_INTS);
    if (!strcmp(p->type, "Tensor")) return k == OP_TENSOR;
    if (!strcmp(p->type, "Operand")) return k == OP_TENSOR || k == OP_INT || k == OP_FLOAT;
    if (!strcmp(p->type, "int")) return k == OP_INT;
    if (!strcmp(p->type, "float")) return k == OP_FLOAT || k == OP_INT;
    if (!strcmp(p->type, "Scalar")) return k == OP_FLOAT || k == OP_INT || k == OP_BOOL;
    if (!strcmp(p->type, "bool")) return k == OP_BOOL;
    if (!strcmp(p->type, "ScalarType")) return k == OP_DTYPE;
    return !strcmp(p->type, "str") && k == OP_STRING;
}

/* Checks a value against a parameter and widens it: an int for a float, one int for int[N]. */
static int schema_accept(const SchemaParameter *p, OpValue *v, Error *err)
{
    if (v->kind == OP_NONE && p->optional) return 0;
    if (v->n < 0 || v->n > OP_MAX_LIST)
        return error_set(err, ERROR_LIMIT, "%s: expected at most %d elements, found %d", p->name,
                         OP_MAX_LIST, v->n);
    if (p->list && !strcmp(p->type, "int") && v->kind == OP_INT) {
        for (int i = 1; i < p->count && i < OP_MAX_LIST; i++) v->integer[i] = v->integer[0];
        v->n = p->count ? p->count : 1;
        v->kind = OP_INTS;
    }
    if (!matches(p, v->kind))
        return error_set(err, ERROR_INVALID, "%s: expected %s%s%s, found %s", p->name, p->type,
                         p->list ? "[]" : "", p->optional ? " or None" : "", kind_name(v->kind));
    if (p->list && p->count && v->n == 1 && !strcmp(p->type, "int")) {
        for (int i = 1; i < p->count && i < OP_MAX_LIST; i++) v->integer[i] = v->integer[0];
        v->n = p->count;
    }
    if (v->kind == OP_BOOL || v->kind == OP_INT) v->number = (double)v->integer[0];
    return 0;
}

static int schema_default(const SchemaParameter *p, OpValue *v, Error *err)
{
    const char *s = p->fallback;
    memset(v, 0, sizeof *v);
    if (!strcmp(s, "None")) return 0;
    if (!strcmp(s, "True") || !strcmp(s, "False")) {
        v->kind = OP_BOOL;
        v->integer[0] = *s == 'T';
    } else if (!strcmp(p->type, "str")) {
        v->kind = OP_STRING;
        snprintf(v->text, sizeof v->text, "%s", s);
    } else if (*s == '[') {
        v->kind = OP_INTS;
        for (char *end; s[1]; s = end) {
            v->integer[v->n++] = strtoll(s + 1, &end, 10);
            if (end == s + 1 || v->n == OP_MAX_LIST)
                return error_set(err, ERROR_INVALID, "%s: the default %s is malformed", p->name,
                                 p->fallback);
        }
    } else if (strpbrk(s, ".e")) {
        v->kind = OP_FLOAT;
        v->number = strtod(s, NULL);
    } else {
        v->kind = OP_INT;
        v->integer[0] = strtoll(s, NULL, 10);
    }
    return schema_accept(p, v, err);
}

enum { MAX_OPS = 1024 };

/* clang-format off */
static const OpFamily *const families[] = {
    &pointwise_family,
    &math_family,
    &compare_family,
    &matmul_family,
    &convolution_family,
    &view_family,
    &layout_family,
    &reduction_family,
    &pooling_family,
    &attention_family,
    &recurrent_family,
    &embedding_family,
    &norm_family,
    &softmax_family,
    &scan_family,
    &fft_family,
    &loss_family,
    &indexing_family,
    &composed_family,
    &sort_family,
    &scatter_family,
    &resize_family,
    &columns_family,
    &grid_family,
    &extreme_family,
    &search_family,
    &select_family,
};
/* clang-format on */

OpFamily op_family(int i)
{
    return i < (int)(sizeof families / sizeof *families) ? *families[i] : (OpFamily){0};
}

/* All operators, found once. */
static const Op *all[MAX_OPS];
static int n_all;

static void find_all(void)
{
    OpFamily f;
    for (int k = 0; (f = op_family(k)).n; k++)
        for (int i = 0; i < f.n && n_all < MAX_OPS; i++) all[n_all++] = &f.ops[i];
}

static int op_count(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_all);
    return n_all;
}

const Op *op_at(int i)
{
    return i >= 0 && i < op_count() ? all[i] : NULL;
}

/* Names under which ATen has the operator of another name. */
static const char *const aliases[][2] = {
    {"aten.absolute.default", "aten.abs.default"},
    {"aten.absolute_.default", "aten.abs_.default"},
    {"aten.arccos.default", "aten.acos.default"},
    {"aten.arccosh.default", "aten.acosh.default"},
    {"aten.arcsin.default", "aten.asin.default"},
    {"aten.arcsinh.default", "aten.asinh.default"},
    {"aten.arctan.default", "aten.atan.default"},
    {"aten.arctan2.default", "aten.atan2.default"},
    {"aten.arctanh.default", "aten.atanh.default"},
    {"aten.concatenate.default", "aten.cat.default"},
    {"aten.divide.Scalar", "aten.div.Scalar"},
    {"aten.divide.Tensor_mode", "aten.div.Tensor_mode"},
    {"aten.divide_.Tensor", "aten.div_.Tensor"},
    {"aten.fix.default", "aten.trunc.default"},
    {"aten.ger.default", "aten.outer.default"},
    {"aten.greater.Scalar", "aten.gt.Scalar"},
    {"aten.greater.Tensor", "aten.gt.Tensor"},
    {"aten.greater_equal.Scalar", "aten.ge.Scalar"},
    {"aten.greater_equal.Tensor", "aten.ge.Tensor"},
    {"aten.less.Scalar", "aten.lt.Scalar"},
    {"aten.less.Tensor", "aten.lt.Tensor"},
    {"aten.less_equal.Scalar", "aten.le.Scalar"},
    {"aten.less_equal.Tensor", "aten.le.Tensor"},
    {"aten.multiply.Scalar", "aten.mul.Scalar"},
    {"aten.multiply_.Tensor", "aten.mul_.Tensor"},
    {"aten.negative.default", "aten.neg.default"},
    {"aten.negative_.default", "aten.neg_.default"},
    {"aten.not_equal.Scalar", "aten.ne.Scalar"},
    {"aten.not_equal.Tensor", "aten.ne.Tensor"},
    {"aten.sgn.default", "aten.sign.default"},
    {"aten.special_erf.default", "aten.erf.default"},
    {"aten.special_erfc.default", "aten.erfc.default"},
    {"aten.special_erfinv.default", "aten.erfinv.default"},
    {"aten.special_exp2.default", "aten.exp2.default"},
    {"aten.special_expit.default", "aten.sigmoid.default"},
    {"aten.special_expm1.default", "aten.expm1.default"},
    {"aten.special_gammaln.default", "aten.lgamma.default"},
    {"aten.special_log1p.default", "aten.log1p.default"},
    {"aten.special_logit.default", "aten.logit.default"},
    {"aten.special_sinc.default", "aten.sinc.default"},
    {"aten.special_xlogy.default", "aten.xlogy.Tensor"},
    {"aten.subtract.Scalar", "aten.sub.Scalar"},
    {"aten.subtract.Tensor", "aten.sub.Tensor"},
    {"aten.subtract_.Tensor", "aten.sub_.Tensor"},
    {"aten.swapaxes.default", "aten.transpose.int"},
    {"aten.true_divide.Scalar", "aten.div.Scalar"},
    {"aten.true_divide.Tensor", "aten.div.Tensor"},
    {"aten.true_divide_.Tensor", "aten.div_.Tensor"},
};

const Op *op_find(const char *name, Error *err)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (!strcmp(name, aliases[i][0])) name = aliases[i][1];
    const char *names[MAX_OPS];
    int n = 0;
    const Op *op;
    for (int i = 0; (op = op_at(i)); i++) {
        if (!strcmp(op->name, name)) return op;
        names[n++] = op->name;
    }
    if (!err) return NULL;
    const char *near = suggest_name(name, names, n);
    error_set(err, ERROR_UNKNOWN_NAME, "operator %.80s is not in the library%s%s%s", name,
              near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return NULL;
}

/* Tensors, arguments and results are written whole when they are added: 20 KB need no clearing. */
void op_call_init(OpCall *c, const Op *op)
{
    c->op = op;
    c->n_tensors = c->n_args = c->n_results = 0;
    for (int i = 0; i < OP_MAX_ARGS; i++) c->arg[i].kind = OP_NONE, c->arg[i].n = 0;
}

int64_t op_elements(const OpTensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= t->size[i];
    return n;
}

void op_contiguous(OpTensor *t)
{
    int64_t step = 1;
    t->offset = 0;
    for (int i = t->rank - 1; i >= 0; i--) {
        t->stride[i] = step;
        step *= t->size[i] > 0 ? t->size[i] : 1;
    }
}

static int sizes_ok(int rank, const int64_t *size, Error *err)
{
    int64_t n = 1;
    if (rank < 0 || rank > OP_MAX_RANK)
        return error_set(err, ERROR_LIMIT, "expected a rank of at most %d, found %d", OP_MAX_RANK,
                         rank);
    for (int i = 0; i < rank; i++) {
        int64_t factor = size[i] > 0 ? size[i] : 1;
        if (size[i] < 0)
            return error_set(err, ERROR_INVALID, "size %lld of dimension %d is negative",
                             (long long)size[i], i);
        if (factor >= (INT64_C(1) << 48) / n)
            return error_set(err, ERROR_LIMIT, "a tensor has 2^48 elements or more");
        n *= factor;
    }
    return 0;
}

int op_call_tensor(OpCall *c, const OpTensor *t, Error *err)
{
    if (sizes_ok(t->rank, t->size, err)) return -1;
    if (c->n_tensors == OP_MAX_TENSORS)
        return error_set(err, ERROR_LIMIT, "an operator takes at most %d tensors", OP_MAX_TENSORS);
    c->tensor[c->n_tensors] = *t;
    return c->n_tensors++;
}

int op_result(OpCall *c, Dtype dtype, int rank, const int64_t *size, Error *err)
{
    if (sizes_ok(rank, size, err)) return -1;
    if (c->n_results == OP_MAX_RESULTS)
        return error_set(err, ERROR_LIMIT, "an operator gives at most %d tensors", OP_MAX_RESULTS);
    c->view_of[c->n_results] = -1;
    OpTensor *y = &c->result[c->n_results++];
    *y = (OpTensor){.dtype = dtype, .rank = rank};
    memcpy(y->size, size, (size_t)rank * sizeof *size);
    op_contiguous(y);
    return 0;
}

int op_view(OpCall *c, int input, const OpTensor *t, Error *err)
{
    OpTensor view = *t; /* t may be a result */
    if (op_result(c, t->dtype, t->rank, t->size, err)) return -1;
    c->view_of[c->n_results - 1] = input;
    c->result[c->n_results - 1] = view;
    return 0;
}

int op_is_contiguous(const OpTensor *t)
{
    int64_t step = 1;
    for (int i = t->rank - 1; i >= 0; step *= t->size[i--])
        if (t->size[i] != 1 && t->stride[i] != step) return op_elements(t) == 0;
    return 1;
}

double op_bytes(const OpTensor *t)
{
    double n = (double)dtype_size(t->dtype);
    for (int i = 0; i < t->rank; i++) n *= t->size[i] && !t->stride[i] ? 1 : (double)t->size[i];
    return n;
}

const OpTensor *op_tensor(const OpCall *c, int arg)
{
    const OpValue *v = &c->arg[arg];
    return v->kind == OP_TENSOR ? &c->tensor[v->integer[0]] : NULL;
}

int op_argument(const Op *op, const char *name)
{
    const Schema *s = schema_of(op, NULL);
    for (int i = 0; s && i < s->n; i++)
        if (!strcmp(s->p[i].name, name)) return i;
    return -1;
}

int op_is_of(const Op *op, const OpFamily *f)
{
    return op >= f->ops && op < f->ops + f->n;
}

int op_is_product(const Op *op)
{
    return op_is_of(op, &matmul_family) || op_is_of(op, &convolution_family);
}

static int names_tensors(const OpCall *c, const OpValue *v, Error *err)
{
    if (v->kind != OP_TENSOR && v->kind != OP_TENSORS) return 0;
    for (int i = 0; i < (v->kind == OP_TENSOR ? 1 : v->n); i++)
        if (v->integer[i] < 0 || v->integer[i] >= c->n_tensors)
            return error_set(err, ERROR_INVALID, "tensor %lld of %d is named",
                             (long long)v->integer[i], c->n_tensors);
    return 0;
}

/* The value for the parameter at `position`: its index in values, -1 for none, -2 for two. */
static int given(const SchemaParameter *p, int position, const char *const *keyword, int n)
{
    int found = -1;
    for (int i = 0; i < n; i++) {
        const char *k = keyword ? keyword[i] : NULL;
        if (k ? strcmp(k, p->name) != 0 : i != position || p->keyword_only) continue;
        found = found == -1 ? i : -2;
    }
    return found;
}

int op_bind(OpCall *c, const char *const *keyword, const OpValue *values, int n, Error *err)
{
    const Schema *s = schema_of(c->op, err);
    int used = 0;
    if (!s) return -1;
    for (c->n_args = 0; c->n_args < s->n; c->n_args++) {
        const SchemaParameter *p = &s->p[c->n_args];
        OpValue *v = &c->arg[c->n_args];
        int i = given(p, c->n_args, keyword, n);
        if (i == -2)
            return error_set(err, ERROR_INVALID, "%s: %s is given twice", c->op->name, p->name);
        if (i == -1 && p->required)
            return error_set(err, ERROR_INVALID, "%s: %s is missing", c->op->name, p->name);
        if (i >= 0) *v = values[i];
        used += i >= 0;
        if (i >= 0 ? schema_accept(p, v, err) : schema_default(p, v, err))
            return error_prefix(err, "%s", c->op->name);
        if (names_tensors(c, v, err)) return error_prefix(err, "%s: %s", c->op->name, p->name);
    }
    if (used != n)
        return error_set(err, ERROR_INVALID, "%s: %d of %d arguments fit no parameter of (%s)",
                         c->op->name, n - used, n, c->op->schema);
    return 0;
}

/* Operators that copy elements, and conversions. */
static int is_mover(const Op *op)
{
    static const char *const names[] = {"aten.to.",           "aten._to_copy.", "aten.clone.",
                                        "aten.copy_.",        "aten.cat.",      "aten.stack.",
                                        "aten.index_select.", "aten.type_as."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(op->name, names[i], strlen(names[i]))) return 1;
    return (op->flags & (OP_VIEW | OP_IN_PLACE)) == OP_VIEW;
}

/* PyTorch has no arithmetic of 8-bit floats, nor products of small integers, on a GPU. */
static int has_operator(const OpCall *c, Error *err)
{
    for (int i = 0; i < c->n_tensors; i++) {
        Dtype d = c->tensor[i].dtype;
        if (dtype_is_float8(d) && !is_mover(c->op))
            return error_set(err, ERROR_UNSUPPORTED,
                             "PyTorch has it of no %s tensor; convert it before", dtype_name(d));
        if (dtype_is_small(d) && op_is_product(c->op))
            return error_set(err, ERROR_UNSUPPORTED,
                             "PyTorch has it of no %s tensor on a GPU; convert it before",
                             dtype_name(d));
    }
    return 0;
}

int op_infer(OpCall *c, Error *err)
{
    c->n_results = 0;
    if (has_operator(c, err)) return error_prefix(err, "%s", c->op->name);
    return c->op->infer(c, err) ? error_prefix(err, "%s", c->op->name) : 0;
}

static int is_view(const OpCall *c, int result)
{
    return c->view_of[result] >= 0 && !(c->op->flags & OP_IN_PLACE);
}

int op_is_view(const OpCall *c)
{
    return c->n_results > 0 && is_view(c, 0);
}

void op_cost_elements(const OpCall *c, OpCost *out)
{
    out->flops = (double)op_elements(op_tensor(c, 0));
}

static int cost_of(const OpCall *c, OpCost *out, Error *err)
{
    if (!c->n_results && !(c->op->flags & OP_VIEW))
        return error_set(err, ERROR_INVALID, "%s: results are not inferred", c->op->name);
    int own = 0;
    for (int i = 0; i < c->n_results; i++) own += !is_view(c, i);
    if (!own) return 0;
    for (int i = 0; i < c->n_tensors; i++) out->bytes += op_bytes(&c->tensor[i]);
    for (int i = 0; i < c->n_results; i++)
        if (!is_view(c, i)) out->bytes += op_bytes(&c->result[i]);
    if (c->op->cost) c->op->cost(c, out);
    return 0;
}

int op_cost(const OpCall *c, OpCost *out, Error *err)
{
    *out = (OpCost){0};
    return cost_of(c, out, err);
}

int op_flops(const OpCall *c, double *out, Error *err)
{
    OpCost cost = {.flops_alone = 1};
    int rc = cost_of(c, &cost, err);
    *out = cost.flops;
    return rc;
}

int op_plain(const OpCall *c, OpPlain *out, Error *err)
{
    int own = 0;
    for (int i = 0; i < c->n_results; i++) own += !is_view(c, i) && op_elements(&c->result[i]);
    out->n_scratch = 0;
    if (!own) return 0;
    if (!c->op->plain)
        return error_set(err, ERROR_UNSUPPORTED, "%s: no plain kernel is known", c->op->name);
    const OpCall *around = out->call;
    out->call = c;
    int rc = c->op->plain(c, out, err) ? error_prefix(err, "%s", c->op->name) : 0;
    out->call = around;
    return rc;
}

int op_factors(const OpCall *c)
{
    return c->op->flags & OP_CUBLAS && strstr(c->op->name, "add") != NULL;
}

unsigned op_tf32(const OpCall *c)
{
    unsigned by = c->op->flags & (OP_CUBLAS | OP_CUDNN);
    int first = op_factors(c);
    if (!by || first + 2 > c->n_tensors) return 0;
    for (int i = first; i < first + 2; i++)
        if (c->tensor[i].dtype != DTYPE_F32 || c->tensor[i].rank < 2) return 0;
    if (by & OP_CUBLAS) return TF32_CUBLAS;
    return convolution_is_depthwise(c) ? 0 : TF32_CUDNN;
}

void op_layout(OpCall *c)
{
    if (c->op->layout) c->op->layout(c);
}

int op_route(const OpCall *c, OpRoute *out, Error *err)
{
    int rc = 0;
    out->n = 0;
    out->kernels->n_scratch = 0;
    out->kernels->call = c;
    for (int i = 0; i < c->n_results; i++) rc |= op_elements(&c->result[i]) != 0;
    if (rc && c->op->route)
        rc = c->op->route(c, out, err);
    else
        rc = 0;
    return rc < 0 ? error_prefix(err, "%s", c->op->name) : rc;
}

int op_dim(int64_t dim, int rank, int *out, Error *err)
{
    int64_t r = rank ? rank : 1;
    if (dim < -r || dim >= r)
        return error_set(err, ERROR_INVALID, "expected a dimension in [%lld, %lld], found %lld",
                         (long long)-r, (long long)r - 1, (long long)dim);
    *out = (int)(dim < 0 ? dim + r : dim);
    return 0;
}

int op_rows(const OpTensor *x, int64_t dim, int64_t *rows, int64_t *n, int64_t *inner, Error *err)
{
    int at = 0;
    if (op_dim(dim, x->rank, &at, err)) return -1;
    *inner = 1;
    for (int d = at + 1; d < x->rank; d++) *inner *= x->size[d];
    *n = x->rank ? x->size[at] : 1;
    *rows = *n ? op_elements(x) / *n : 0;
    return 0;
}

int op_broadcast(const OpTensor *const *t, int n, int64_t *size, int *rank, Error *err)
{
    *rank = 0;
    for (int i = 0; i < n; i++)
        if (t[i] && t[i]->rank > *rank) *rank = t[i]->rank;
    for (int d = 0; d < *rank; d++) size[d] = 1;
    for (int i = 0; i < n; i++)
        for (int d = 0; t[i] && d < t[i]->rank; d++) {
            int64_t *s = &size[*rank - t[i]->rank + d], have = t[i]->size[d];
            if (*s == 1) *s = have;
            if (have != 1 && have != *s)
                return error_set(err, ERROR_INVALID,
                                 "sizes %lld and %lld do not broadcast at dimension %d",
                                 (long long)*s, (long long)have, *rank - t[i]->rank + d);
        }
    return sizes_ok(*rank, size, err);
}

static Dtype wider(Dtype a, Dtype b)
{
    if (dtype_kind(a) != dtype_kind(b)) return dtype_kind(a) > dtype_kind(b) ? a : b;
    if (a == b) return a;
    if (a == DTYPE_F64 || b == DTYPE_F64) return DTYPE_F64;
    if (dtype_kind(a) == KIND_FLOAT) return DTYPE_F32;
    if (dtype_size(a) == dtype_size(b)) return DTYPE_I16; /* of int8 and uint8 */
    return dtype_size(a) > dtype_size(b) ? a : b;
}

typedef struct {
    int have[3];
    Dtype level[3];
} Promotion;

static void promote(Promotion *p, int at, Dtype d)
{
    p->level[at] = p->have[at] ? wider(p->level[at], d) : d;
    p->have[at] = 1;
}

/* Tensors with dimensions decide before those without, and those before numbers, unless the category
 * is higher. */
static Dtype promoted(const Promotion *p)
{
    Dtype r = p->have[0] ? p->level[0] : p->have[1] ? p->level[1] : p->level[2];
    for (int i = 1; i < 3; i++)
        if (p->have[i] && dtype_kind(p->level[i]) > dtype_kind(r)) r = p->level[i];
    return r;
}

Dtype op_promote(const OpCall *c, const int *args, int n)
{
    Promotion p = {.level = {DTYPE_B8, DTYPE_B8, DTYPE_B8}};
    for (int i = 0; i < n; i++) {
        const OpTensor *t = op_tensor(c, args[i]);
        OpKind k = c->arg[args[i]].kind;
        if (k == OP_NONE) continue;
        promote(&p, t ? !t->rank : 2,
                t               ? t->dtype
                : k == OP_FLOAT ? DTYPE_F32
                : k == OP_INT   ? DTYPE_I64
                                : DTYPE_B8);
    }
    return promoted(&p);
}

Dtype op_promote_list(const OpCall *c, const OpValue *list)
{
    Promotion p = {.level = {DTYPE_B8, DTYPE_B8, DTYPE_B8}};
    for (int i = 0; i < list->n; i++) {
        const OpTensor *t = &c->tensor[list->integer[i]];
        promote(&p, !t->rank, t->dtype);
    }
    return promoted(&p);
}
