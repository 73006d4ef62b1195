/* Runs the steps of a composed operator for one purpose: infer, reference, plain kernels or flops.
 * Between the steps the reference keeps doubles, and kernels keep scratch memory of the step's dtype.
 * The scratch memory of the last step is then replaced by the result. */
#include "ops/op_chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_text.h"

enum { MAX_VALUES = 64 };

typedef enum { INFER, REFERENCE, PLAIN, COST, VISIT } Purpose;

typedef struct {
    OpTensor tensor;
    char name[8]; /* of its memory in launches: "x0", "t1" */
    double *data; /* of the reference */
    int own;      /* data is the chain's */
} Value;

struct Chain {
    const OpCall *call;
    Purpose purpose;
    int failed, n;
    Value value[MAX_VALUES];
    const double *const *in;
    OpPlain *out;
    double flops;
    const ChainVisitor *visitor;
    Error *err;
};

int chain_fail(Chain *k, ErrorCode code, const char *text)
{
    if (!k->failed) error_set(k->err, code, "%s", text);
    k->failed = 1;
    return -1;
}

/* NULL: -1 is no value. */
static const OpTensor *tensor_of(const Chain *k, int value)
{
    return value < 0 || value >= k->n ? NULL : &k->value[value].tensor;
}

static Value *new_value(Chain *k, const OpTensor *t)
{
    if (k->failed) return NULL;
    if (k->n == MAX_VALUES) {
        chain_fail(k, ERROR_LIMIT, "the operator has too many steps");
        return NULL;
    }
    Value *v = &k->value[k->n++];
    *v = (Value){.tensor = *t};
    return v;
}

int chain_input(Chain *k, int arg)
{
    const OpTensor *t = op_tensor(k->call, arg);
    Value *v = t ? new_value(k, t) : NULL;
    if (!v) return -1;
    int64_t index = k->call->arg[arg].integer[0];
    snprintf(v->name, sizeof v->name, "x%lld", (long long)index);
    if (k->in) memcpy(&v->data, &k->in[index], sizeof v->data); /* steps read inputs only */
    if (k->purpose == VISIT)
        k->failed =
            k->visitor->see(k->visitor->of, &(ChainSeen){NULL, k->n - 1, (int)index, NULL}, k->err);
    return k->n - 1;
}

/* ---- one step ---- */

static int bind(Chain *k, OpCall *s, int n, const ChainArg *args)
{
    OpValue v[OP_MAX_ARGS];
    const char *keyword[OP_MAX_ARGS] = {0};
    memset(v, 0, sizeof v);
    for (int i = 0; i < n && i < OP_MAX_ARGS; i++) {
        const ChainArg *a = &args[i];
        v[i].kind = a->kind;
        v[i].n = a->n;
        v[i].number = a->kind == OP_INT || a->kind == OP_BOOL ? (double)a->integer[0] : a->number;
        memcpy(v[i].integer, a->integer, sizeof a->integer);
        keyword[i] = a->name;
        if (a->kind != OP_TENSOR) continue;
        const OpTensor *t = tensor_of(k, (int)a->integer[0]);
        if (!t) return error_set(k->err, ERROR_INVALID, "%s: a value is missing", s->op->name);
        if ((v[i].integer[0] = op_call_tensor(s, t, k->err)) < 0) return -1;
    }
    return op_bind(s, keyword, v, n, k->err) || op_infer(s, k->err) ? -1 : 0;
}

/* The value behind tensor t of a step. */
static Value *operand_of(Chain *k, int n, const ChainArg *args, int t)
{
    for (int i = 0; i < n; i++)
        if (args[i].kind == OP_TENSOR && !t--) return &k->value[args[i].integer[0]];
    return NULL;
}

static int run_reference(Chain *k, OpCall *s, int n, const ChainArg *args, int first)
{
    const double *in[OP_MAX_TENSORS];
    double *out[OP_MAX_RESULTS];
    for (int t = 0; t < s->n_tensors; t++) in[t] = operand_of(k, n, args, t)->data;
    for (int r = 0; r < s->n_results; r++) {
        Value *v = &k->value[first + r];
        v->own = !v->data;
        if (v->own) v->data = memory_array((size_t)op_elements(&v->tensor) + 1, sizeof(double));
        out[r] = v->data;
    }
    return s->op->reference(s, in, out, k->err);
}

/* Gives the launches from `from` on the names of the chain's memory. */
static int rename_arguments(Chain *k, int n, const ChainArg *args, int first, int from)
{
    for (int i = from; i < k->out->n; i++) {
        char text[sizeof k->out->launch->arguments] = "", word[16];
        size_t len = 0;
        for (const char *at = k->out->launch[i].arguments; *at; at += strspn(at, ", ")) {
            size_t w = strcspn(at, ",");
            const char *name = word;
            snprintf(word, sizeof word, "%.*s", (int)w, at);
            if (*at == 'x') name = operand_of(k, n, args, atoi(word + 1))->name;
            if (*at == 'y') name = k->value[first + atoi(word + 1)].name;
            if (len + strlen(name) + 3 > sizeof text)
                return error_set(k->err, ERROR_LIMIT, "a launch has too many arguments");
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", len ? ", " : "", name);
            at += w;
        }
        memcpy(k->out->launch[i].arguments, text, sizeof text);
    }
    return 0;
}

static int run_plain(Chain *k, OpCall *s, int n, const ChainArg *args, int first)
{
    int from = k->out->n, work = 0;
    for (int r = 0; r < s->n_results; r++) {
        Value *v = &k->value[first + r];
        if (s->view_of[r] >= 0) {
            memcpy(v->name, operand_of(k, n, args, s->view_of[r])->name, sizeof v->name);
            continue;
        }
        work |= op_elements(&v->tensor) > 0;
        if (*v->name) continue;
        int t = text_scratch(k->out, v->tensor.dtype, op_elements(&v->tensor), k->err);
        if (t < 0) return -1;
        snprintf(v->name, sizeof v->name, "t%d", t);
    }
    if (!work) return 0;
    if (!s->op->plain)
        return error_set(k->err, ERROR_UNSUPPORTED, "%s: no plain kernel is known", s->op->name);
    const OpCall *around = k->out->call;
    k->out->call = s;
    int rc = s->op->plain(s, k->out, k->err);
    k->out->call = around;
    return rc ? -1 : rename_arguments(k, n, args, first, from);
}

/* The result may have the memory of `over`. */
static int takes_over(const Chain *k, const Value *v, int over)
{
    const Value *from = over < 0 ? NULL : &k->value[over];
    return from && *from->name != 'x' && from->tensor.dtype == v->tensor.dtype &&
           op_is_contiguous(&from->tensor) && !from->tensor.offset &&
           op_elements(&from->tensor) == op_elements(&v->tensor);
}

static int add_results(Chain *k, const OpCall *s, int over)
{
    for (int r = 0; r < s->n_results; r++) {
        Value *v = new_value(k, &s->result[r]);
        if (!v) return -1;
        if (!takes_over(k, v, over)) continue;
        memcpy(v->name, k->value[over].name, sizeof v->name);
        v->data = k->value[over].own ? k->value[over].data : NULL;
    }
    return 0;
}

static int add_flops(Chain *k, const OpCall *s)
{
    double flops;
    if (op_flops(s, &flops, k->err)) return -1;
    k->flops += flops;
    return 0;
}

static int run_visit(Chain *k, const OpCall *s, int n, const ChainArg *args, int first)
{
    int operand[OP_MAX_TENSORS];
    for (int t = 0; t < s->n_tensors; t++) operand[t] = (int)(operand_of(k, n, args, t) - k->value);
    return k->visitor->see(k->visitor->of, &(ChainSeen){s, first, -1, operand}, k->err);
}

static int run_step(Chain *k, const Op *op, int over, int n, const ChainArg *args)
{
    int first = k->n;
    if (k->failed) return -1;
    OpCall *s = memory_alloc(sizeof *s);
    op_call_init(s, op);
    k->failed = bind(k, s, n, args) || add_results(k, s, over) ||
                (k->purpose == REFERENCE && run_reference(k, s, n, args, first)) ||
                (k->purpose == PLAIN && run_plain(k, s, n, args, first)) ||
                (k->purpose == COST && add_flops(k, s)) ||
                (k->purpose == VISIT && run_visit(k, s, n, args, first));
    free(s);
    return k->failed ? -1 : first;
}

int chain_step(Chain *k, const Op *op, int n, const ChainArg *args)
{
    return run_step(k, op, -1, n, args);
}

int chain_over(Chain *k, const char *name, int over, int n, const ChainArg *args)
{
    const Op *op = k->failed ? NULL : op_find(name, k->err);
    if (op) return run_step(k, op, over, n, args);
    k->failed = 1;
    return -1;
}

int chain_call(Chain *k, const char *name, int n, const ChainArg *args)
{
    return chain_over(k, name, -1, n, args);
}

int chain_reduce(Chain *k, int value, int64_t reduction)
{
    if (reduction < 0 || reduction > 2)
        return chain_fail(k, ERROR_INVALID, "expected a reduction of 0, 1 or 2");
    if (!reduction) return value;
    return chain_call(k, reduction == 1 ? "aten.mean.default" : "aten.sum.default", 1,
                      (ChainArg[]){CHAIN_TENSOR(value)});
}

/* ---- the whole ---- */

/* The value of the result, which has memory of its own in C order; -1: k->err. */
static int run(Chain *k, const OpCall *c, Purpose purpose, Error *err)
{
    const ChainDetail *d = c->op->detail;
    k->call = c;
    k->purpose = purpose;
    k->err = err;
    int y = d->steps(k, c);
    if (k->failed) return -1;
    const OpTensor *t = tensor_of(k, y);
    if (!t) return error_set(err, ERROR_INVALID, "the operator has no result");
    if (op_is_contiguous(t) && !t->offset && (purpose != PLAIN || *k->value[y].name == 't'))
        return y;
    return chain_call(k, "aten.clone.default", 1, (ChainArg[]){CHAIN_TENSOR(y)});
}

static void release(Chain *k)
{
    for (int i = 0; i < k->n; i++) {
        for (int j = i + 1; j < k->n; j++) /* memory that was taken over */
            if (k->value[j].data == k->value[i].data) k->value[j].own = 0;
        if (k->value[i].own) free(k->value[i].data);
    }
    free(k);
}

int chain_infer(OpCall *c, Error *err)
{
    Chain *k = memory_alloc(sizeof *k);
    int y = run(k, c, INFER, err), rc = -1;
    if (y >= 0) {
        const OpTensor *t = tensor_of(k, y);
        rc = op_result(c, t->dtype, t->rank, t->size, err);
    }
    release(k);
    return rc;
}

int chain_reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    Chain *k = memory_alloc(sizeof *k);
    k->in = in;
    int y = run(k, c, REFERENCE, err);
    if (y >= 0)
        memcpy(out[0], k->value[y].data, (size_t)op_elements(&k->value[y].tensor) * sizeof(double));
    release(k);
    return y < 0 ? -1 : 0;
}

int chain_visit(const OpCall *c, const ChainVisitor *v, Error *err)
{
    if (c->op->reference != chain_reference) return -2;
    Chain *k = memory_alloc(sizeof *k);
    k->visitor = v;
    int y = run(k, c, VISIT, err);
    release(k);
    return y;
}

/* The last step writes to the result: y0 is as long as its name. */
static void put_result(OpPlain *out, int from, const char *name)
{
    size_t n = strlen(name);
    for (int i = from; i < out->n; i++) {
        char text[sizeof out->launch->arguments];
        size_t len = 0;
        for (const char *at = out->launch[i].arguments; *at;) {
            size_t w = strcspn(at, ", "), gap = strspn(at + w, ", ");
            int same = w == n && !memcmp(at, name, n);
            len += (size_t)snprintf(text + len, sizeof text - len, "%.*s%.*s", same ? 2 : (int)w,
                                    same ? "y0" : at, (int)gap, at + w);
            at += w + gap;
        }
        memcpy(out->launch[i].arguments, text, len + 1);
    }
    out->scratch[atoi(name + 1)].elements = 1;
}

int chain_plain(const OpCall *c, OpPlain *out, Error *err)
{
    Chain *k = memory_alloc(sizeof *k);
    int from = out->n;
    k->out = out;
    int y = run(k, c, PLAIN, err);
    if (y >= 0) put_result(out, from, k->value[y].name);
    release(k);
    return y < 0 ? -1 : 0;
}

void chain_cost(const OpCall *c, OpCost *out)
{
    Chain *k = memory_alloc(sizeof *k);
    Error err;
    run(k, c, COST, &err);
    out->flops = k->flops;
    release(k);
}
