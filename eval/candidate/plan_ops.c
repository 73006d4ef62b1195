/* Walks the plan once in order: each op line is bound to the names before it, its results get
 * memory, and its launches follow. Then results whose lives do not overlap share slots. */
#include "eval/candidate/plan_ops.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/candidate/plan_kernels.h"

enum { MAX_KERNEL_TEXT = 1 << 20 };

typedef struct {
    const Plan *plan;
    const Task *task;
    const Workload *w;
    int routes;
    PlanOps *o;
    int step, line;
    Error *err;
} Walk;

__attribute__((format(printf, 2, 3))) static int fail(Walk *k, const char *fmt, ...)
{
    char text[900];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return error_set(k->err, ERROR_INVALID, "line %d: %s", k->line, text);
}

/* The same, for a mistake that depends on the sizes. */
static int fail_here(Walk *k, const char *what, const Error *why)
{
    char at[200];
    task_workload_text(k->task, k->w, at, sizeof at);
    return fail(k, "%s%s%s (for the workload %s)", what, *what ? ": " : "", why->text, at);
}

static int same(PlanText t, const char *name)
{
    return strlen(name) == t.len && !memcmp(t.p, name, t.len);
}

const PlanTensor *plan_ops_find(const PlanOps *o, PlanText name)
{
    for (int i = o->n_tensors - 1; i >= 0; i--)
        if (o->tensors[i].name.len == name.len && !memcmp(o->tensors[i].name.p, name.p, name.len))
            return &o->tensors[i];
    return NULL;
}

static int is_contiguous(const OpTensor *t)
{
    int64_t step = 1;
    for (int d = t->rank - 1; d >= 0; step *= t->size[d--])
        if (t->size[d] != 1 && t->stride[d] != step && op_elements(t)) return 0;
    return 1;
}

static size_t bytes_of(const OpTensor *t)
{
    return (size_t)op_elements(t) * op_dtype_size(t->dtype);
}

/* ---- names and memory ---- */

static int add_storage(PlanOps *o, PlanHeld held, int index, size_t bytes, const char *label)
{
    o->storages = memory_grow(o->storages, (size_t)o->n_storages + 1, sizeof *o->storages);
    PlanStorage *s = &o->storages[o->n_storages];
    *s = (PlanStorage){held, index, bytes, -1, -1, -1, ""};
    snprintf(s->label, sizeof s->label, "tensor %s", label);
    return o->n_storages++;
}

static void use(Walk *k, int storage)
{
    PlanStorage *s = &k->o->storages[storage];
    if (s->first < 0) s->first = k->step;
    s->last = k->step;
}

static void add_tensor(Walk *k, PlanText name, const OpTensor *t, int storage, int line)
{
    PlanOps *o = k->o;
    o->tensors = memory_grow(o->tensors, (size_t)o->n_tensors + 1, sizeof *o->tensors);
    o->tensors[o->n_tensors++] = (PlanTensor){name, *t, storage, line};
}

static int op_dtype(const char *name, OpDtype *out)
{
    for (int d = 0; d < OP_DTYPES; d++)
        if (!strcmp(op_dtype_name((OpDtype)d), name)) {
            *out = (OpDtype)d;
            return 0;
        }
    return -1;
}

static int add_task_tensor(Walk *k, const TaskTensor *x, PlanHeld held, int index)
{
    OpTensor t = {.rank = x->rank};
    Error why;
    if (op_dtype(dtype_name(x->dtype), &t.dtype) || task_shape(k->task, k->w, x, t.size, &why))
        return fail(k, "tensor %s has no shape for op lines", x->name);
    op_contiguous(&t);
    add_tensor(k, (PlanText){x->name, strlen(x->name)}, &t,
               add_storage(k->o, held, index, bytes_of(&t), x->name), 0);
    return 0;
}

/* The element type of a buffer; OP_DTYPES: no operator takes it. */
static OpDtype buffer_dtype(const char *type)
{
    static const struct {
        const char *name;
        OpDtype dtype;
    } types[] = {{"float", OP_F32},    {"half", OP_F16},     {"__half", OP_F16},
                 {"double", OP_F64},   {"int", OP_I32},      {"int32_t", OP_I32},
                 {"int64_t", OP_I64},  {"long long", OP_I64}, {"bool", OP_B8},
                 {"__nv_bfloat16", OP_BF16}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, type)) return types[i].dtype;
    return OP_DTYPES;
}

static int add_buffer(Walk *k, int i)
{
    const PlanBuffer *b = &k->plan->buffers[i];
    TaskScope scope = {k->task, k->w};
    OpTensor t = {.rank = 1, .dtype = buffer_dtype(b->type)};
    Error why;
    k->line = b->line;
    if (expr_eval(b->count.p, b->count.len, task_lookup, &scope, &t.size[0], &why))
        return fail_here(k, "the buffer's size", &why);
    op_contiguous(&t);
    add_tensor(k, (PlanText){b->name, strlen(b->name)}, &t,
               add_storage(k->o, HELD_BUFFER, i, 0, b->name), 0);
    return 0;
}

static int add_given(Walk *k)
{
    const Task *t = k->task;
    int rc = 0;
    for (int i = 0; i < t->n_inputs && !rc; i++)
        rc = add_task_tensor(k, &t->inputs[i], HELD_INPUT, i);
    for (int i = 0; i < t->n_outputs && !rc; i++)
        rc = add_task_tensor(k, &t->outputs[i], HELD_OUTPUT, i);
    for (int i = 0; i < k->plan->n_buffers && !rc; i++) rc = add_buffer(k, i);
    return rc;
}

static int output_of(const Walk *k, PlanText name)
{
    for (int i = 0; i < k->task->n_outputs; i++)
        if (same(name, k->task->outputs[i].name)) return i;
    return -1;
}

static int is_unnamed(PlanText name)
{
    return same(name, "_");
}

/* A result's name is an output's, or nothing else has it. */
static int check_name(Walk *k, PlanText name)
{
    const PlanTensor *t = plan_ops_find(k->o, name);
    int n = (int)name.len;
    for (int a = 0; a < k->task->n_axes; a++)
        if (same(name, k->task->axis_name[a]))
            return fail(k, "the result %.*s has the name of an axis", n, name.p);
    if (is_unnamed(name) || !t) return 0;
    if (t->line)
        return fail(k, "%.*s is already the result of the op on line %d", n, name.p, t->line);
    PlanHeld held = k->o->storages[t->storage].held;
    if (held == HELD_INPUT) return fail(k, "the result %.*s has the name of an input", n, name.p);
    if (held == HELD_BUFFER)
        return fail(k, "the result %.*s has the name of a buffer; op lines give their results memory",
                    n, name.p);
    return 0;
}

static void shape_text(const OpTensor *t, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "%s [", op_dtype_name(t->dtype));
    for (int d = 0; d < t->rank && n < size; d++)
        n += (size_t)snprintf(out + n, size - n, "%s%lld", d ? ", " : "", (long long)t->size[d]);
    if (n < size) snprintf(out + n, size - n, "]");
}

static int check_output(Walk *k, int output, const OpTensor *t)
{
    const OpTensor *want = &k->o->tensors[k->task->n_inputs + output].tensor;
    char is[200], expected[200], at[200];
    if (t->dtype == want->dtype && t->rank == want->rank &&
        !memcmp(t->size, want->size, (size_t)t->rank * sizeof *t->size))
        return 0;
    shape_text(t, is, sizeof is);
    shape_text(want, expected, sizeof expected);
    task_workload_text(k->task, k->w, at, sizeof at);
    return fail(k, "the result is %s, but the output %s is %s (for the workload %s)", is,
                k->task->outputs[output].name, expected, at);
}

/* ---- launches ---- */

static int add_launch(Walk *k, const OpLaunch *l, const char *kernel, const PlanOpArg *x,
                      const PlanOpArg *y)
{
    PlanOps *o = k->o;
    o->launches = memory_grow(o->launches, (size_t)o->n_launches + 1, sizeof *o->launches);
    PlanOpLaunch *to = &o->launches[o->n_launches++];
    memset(to, 0, sizeof *to);
    to->step = k->step;
    to->shared = (uint32_t)l->shared;
    snprintf(to->kernel, sizeof to->kernel, "%s", kernel);
    for (int d = 0; d < 3; d++) {
        int64_t most = d ? 65535 : INT32_MAX;
        if (l->grid[d] < 1 || l->grid[d] > most)
            return fail(k, "the operator's grid has %lld blocks; expected 1 to %lld",
                        (long long)l->grid[d], (long long)most);
        to->grid[d] = (uint32_t)l->grid[d];
        to->block[d] = l->block[d] > 0 ? (uint32_t)l->block[d] : 1;
    }
    for (const char *p = l->arguments; *p;) {
        char kind = *p++, *end;
        long i = strtol(p, &end, 10);
        if (to->n_args == PLAN_OP_MAX_ARGS || end == p || (kind != 'x' && kind != 'y') ||
            i >= (kind == 'x' ? OP_MAX_TENSORS : OP_MAX_RESULTS))
            return fail(k, "the operator's launch has the arguments '%s'", l->arguments);
        to->args[to->n_args++] = kind == 'x' ? x[i] : y[i];
        p = end + strspn(end, ", ");
    }
    return 0;
}

static int add_plain(Walk *k, const Op *op, const OpPlain *plain, const PlanOpArg *x,
                     const PlanOpArg *y)
{
    int text = plan_kernels_add(k->o, op, plain), rc = 0;
    for (int i = 0; i < plain->n && !rc; i++)
        rc = add_launch(k, &plain->launch[i], k->o->texts[text].kernels[i], x, y);
    return rc;
}

static PlanOpArg place(const OpTensor *t, int storage)
{
    return (PlanOpArg){storage, (uint64_t)t->offset * op_dtype_size(t->dtype)};
}

/* Copies tensor x into y, which has its shape. */
static int add_copy(Walk *k, const Op *op, OpTensor x, int from, OpTensor y, int to)
{
    Buffer text;
    OpPlain plain = {.source = &text};
    Error why;
    PlanOpArg a = place(&x, from), b = place(&y, to);
    if (!op_elements(&x)) return 0;
    use(k, from);
    use(k, to);
    buffer_init(&text, MAX_KERNEL_TEXT);
    int rc = plan_kernels_copy(&x, &y, &plain, &why) ? fail_here(k, "", &why)
                                                     : add_plain(k, op, &plain, &a, &b);
    buffer_release(&text);
    return rc;
}

/* The launches of a call on tensors that lie at x and results that lie at y. The kernels get
 * addresses that include the offsets. */
static int add_call(Walk *k, const OpCall *call, const PlanOpArg *x, const PlanOpArg *y)
{
    Buffer text;
    OpPlain plain = {.source = &text};
    OpCall *moved = memory_alloc(sizeof *moved);
    Error why;
    int rc = 0, empty = 1;
    for (int i = 0; i < call->n_results; i++) empty &= !op_elements(&call->result[i]);
    *moved = *call;
    for (int i = 0; i < moved->n_tensors; i++) moved->tensor[i].offset = 0;
    for (int i = 0; i < moved->n_results; i++) moved->result[i].offset = 0;
    buffer_init(&text, MAX_KERNEL_TEXT);
    if (empty)
        rc = 0; /* nothing to compute */
    else if (!call->op->plain)
        rc = fail(k, "%s has no kernel on a device", call->op->name);
    else if (call->op->plain(moved, &plain, &why))
        rc = fail_here(k, call->op->name, &why);
    else
        rc = add_plain(k, call->op, &plain, x, y);
    buffer_release(&text);
    free(moved);
    return rc;
}

/* ---- op lines ---- */

static int scope_axis(void *of, const char *name, size_t len, int64_t *value)
{
    const Walk *k = of;
    TaskScope scope = {k->task, k->w};
    return task_lookup(&scope, name, len, value);
}

static int scope_tensor(void *of, const char *name, size_t len, OpTensor *out)
{
    const Walk *k = of;
    const PlanTensor *t = plan_ops_find(k->o, (PlanText){name, len});
    if (!t || t->tensor.dtype == OP_DTYPES) return -1;
    *out = t->tensor;
    return (int)(t - k->o->tensors);
}

/* The name means memory that a storage has. An output that nothing used before takes over a result
 * that is stored whole; else it gets a copy. */
static int bind_alias(Walk *k, const Op *op, PlanText name, const OpTensor *t, int storage)
{
    PlanOps *o = k->o;
    int output = output_of(k, name);
    if (output < 0) {
        if (!is_unnamed(name)) add_tensor(k, name, t, storage, k->line);
        return 0;
    }
    int own = k->task->n_inputs + output;
    if (check_output(k, output, t)) return -1;
    PlanStorage *s = &o->storages[storage];
    if (s->held == HELD_SLOT && o->storages[own].first < 0 && !t->offset && is_contiguous(t) &&
        bytes_of(t) == s->bytes) {
        s->held = HELD_OUTPUT;
        s->index = output;
        use(k, own);
        add_tensor(k, name, t, storage, k->line);
        return 0;
    }
    OpTensor y = o->tensors[own].tensor;
    if (add_copy(k, op, *t, storage, y, own)) return -1;
    add_tensor(k, name, &y, own, k->line);
    return 0;
}

/* The memory of a new result. */
static int new_result(Walk *k, PlanText name, OpTensor *t, const OpCall *call, const int *storages)
{
    int output = output_of(k, name);
    char label[PLAN_MAX_NAME];
    if (!is_contiguous(t)) op_contiguous(t);
    snprintf(label, sizeof label, "%.*s", (int)name.len, name.p);
    if (output < 0) return add_storage(k->o, HELD_SLOT, -1, bytes_of(t), label);
    int own = k->task->n_inputs + output;
    if (check_output(k, output, t)) return -1;
    for (int i = 0; i < call->n_tensors; i++)
        if (storages[i] == own)
            return fail(k, "%s is an argument of this op and its result; give one of them another name",
                        label);
    return own;
}

/* An operator in place. Its kernels write in C order: where the argument has other strides, they
 * write elsewhere and a copy follows. */
static int change_in_place(Walk *k, const OpLine *line, const OpCall *call, const PlanOpArg *x,
                           const int *storages)
{
    int at = call->arg[0].kind == OP_TENSOR ? (int)call->arg[0].integer[0] : -1;
    if (at < 0) return fail(k, "%s changes its first argument, which is no tensor", call->op->name);
    const OpTensor *t = &call->tensor[at];
    PlanOpArg y[OP_MAX_RESULTS] = {x[at]};
    if (k->o->storages[storages[at]].held == HELD_INPUT)
        return fail(k, "%s changes its first argument, which is memory of an input of the task",
                    call->op->name);
    int spare = -1;
    if (!is_contiguous(t)) {
        spare = add_storage(k->o, HELD_SLOT, -1, bytes_of(t), "of an operator in place");
        use(k, spare);
        y[0] = (PlanOpArg){spare, 0};
    }
    if (add_call(k, call, x, y)) return -1;
    if (spare >= 0 && add_copy(k, call->op, call->result[0], spare, *t, storages[at])) return -1;
    return bind_alias(k, call->op, (PlanText){line->result[0].p, line->result[0].len}, t,
                      storages[at]);
}

static int is_view(const OpCall *call)
{
    return (call->op->flags & OP_VIEW) != 0;
}

static int bind_results(Walk *k, const OpLine *line, OpCall *call, const int *storages,
                        const PlanOpArg *x)
{
    PlanOpArg y[OP_MAX_RESULTS];
    int held[OP_MAX_RESULTS];
    if (call->op->flags & OP_IN_PLACE) return change_in_place(k, line, call, x, storages);
    if (is_view(call)) {
        int at = call->arg[0].kind == OP_TENSOR ? (int)call->arg[0].integer[0] : 0;
        for (int i = 0; i < call->n_results; i++)
            if (bind_alias(k, call->op, (PlanText){line->result[i].p, line->result[i].len},
                           &call->result[i], storages[at]))
                return -1;
        return 0;
    }
    for (int i = 0; i < call->n_results; i++) {
        PlanText name = {line->result[i].p, line->result[i].len};
        if ((held[i] = new_result(k, name, &call->result[i], call, storages)) < 0) return -1;
        y[i] = (PlanOpArg){held[i], 0};
        use(k, held[i]);
    }
    if (add_call(k, call, x, y)) return -1;
    for (int i = 0; i < call->n_results; i++) {
        PlanText name = {line->result[i].p, line->result[i].len};
        if (!is_unnamed(name)) add_tensor(k, name, &call->result[i], held[i], k->line);
    }
    return 0;
}

static int walk_op(Walk *k, const OpLine *line)
{
    OpScope scope = {k, scope_axis, scope_tensor};
    OpCall *call = memory_alloc(sizeof *call);
    int id[OP_MAX_TENSORS], storages[OP_MAX_TENSORS], rc = 0;
    PlanOpArg x[OP_MAX_TENSORS];
    Error why;
    for (int i = 0; i < line->n_results && !rc; i++)
        rc = check_name(k, (PlanText){line->result[i].p, line->result[i].len});
    if (!rc && op_line_call(line, &scope, call, id, &why)) rc = fail_here(k, "", &why);
    for (int i = 0; i < call->n_tensors && !rc; i++) {
        storages[i] = k->o->tensors[id[i]].storage;
        use(k, storages[i]);
        x[i] = place(&call->tensor[i], storages[i]);
    }
    if (!rc) rc = bind_results(k, line, call, storages, x);
    free(call);
    return rc;
}

/* ---- launches of the plan's own ---- */

static int given_later(const Walk *k, PlanText name)
{
    for (int s = k->step + 1; s < k->plan->n_steps; s++) {
        const OpLine *line = k->plan->steps[s].op;
        for (int i = 0; line && i < line->n_results; i++)
            if (line->result[i].len == name.len && !memcmp(line->result[i].p, name.p, name.len))
                return k->plan->steps[s].line;
    }
    return 0;
}

static int walk_launch(Walk *k, const PlanStep *s)
{
    for (int a = 0; a < s->n_args; a++) {
        PlanText name, offset;
        if (!plan_text_pointer(s->args[a], &name, &offset)) continue;
        const PlanTensor *t = plan_ops_find(k->o, name);
        int n = (int)name.len;
        if (!t && given_later(k, name))
            return fail(k, "%.*s is used here, and the op on line %d gives it", n, name.p,
                        given_later(k, name));
        if (!t) continue; /* a number, or a mistake that the resolver reports */
        use(k, t->storage);
        if (!is_contiguous(&t->tensor))
            return fail(k,
                        "%.*s is a view whose elements do not lie one after another; pass the result "
                        "of aten.contiguous(%.*s)",
                        n, name.p, n, name.p);
    }
    return 0;
}

/* ---- slots ---- */

/* A free slot for so many bytes: the smallest that has room, else the largest, which grows; -1: no
 * slot is free. */
static int free_slot(const PlanOps *o, const int *taken, size_t bytes)
{
    int best = -1;
    for (int i = 0; i < o->n_slots; i++) {
        if (taken[i]) continue;
        int fits = o->slots[i] >= bytes, best_fits = best >= 0 && o->slots[best] >= bytes;
        if (best < 0 || (fits && (!best_fits || o->slots[i] < o->slots[best])) ||
            (!fits && !best_fits && o->slots[i] > o->slots[best]))
            best = i;
    }
    return best;
}

static void assign_slots(PlanOps *o, int n_steps)
{
    int *taken = memory_array((size_t)o->n_storages + 1, sizeof *taken);
    for (int step = 0; step < n_steps; step++) {
        for (int i = 0; i < o->n_storages; i++) {
            PlanStorage *s = &o->storages[i];
            if (s->held != HELD_SLOT || s->first != step) continue;
            s->index = free_slot(o, taken, s->bytes);
            if (s->index < 0) {
                s->index = o->n_slots++;
                o->slots = memory_grow(o->slots, (size_t)o->n_slots, sizeof *o->slots);
                o->slots[s->index] = 1;
            }
            if (o->slots[s->index] < s->bytes) o->slots[s->index] = s->bytes;
            taken[s->index] = 1;
        }
        for (int i = 0; i < o->n_storages; i++)
            if (o->storages[i].held == HELD_SLOT && o->storages[i].last == step)
                taken[o->storages[i].index] = 0;
    }
    free(taken);
}

/* Find the launch with which each slot's contents begin. */
static void find_begins(PlanOps *o)
{
    for (int i = 0; i < o->n_storages; i++) {
        PlanStorage *s = &o->storages[i];
        for (int l = 0; s->held == HELD_SLOT && l < o->n_launches && s->begins < 0; l++)
            if (o->launches[l].step == s->first) s->begins = l;
    }
}

int plan_ops_build(const Plan *plan, const Task *t, const Workload *w, int routes, PlanOps *out,
                   int *line, Error *err)
{
    Walk k = {.plan = plan, .task = t, .w = w, .routes = routes, .o = out, .err = err};
    memset(out, 0, sizeof *out);
    k.line = plan->n_steps ? plan->steps[0].line : 0;
    int rc = add_given(&k);
    for (k.step = 0; k.step < plan->n_steps && !rc; k.step++) {
        const PlanStep *s = &plan->steps[k.step];
        k.line = s->line;
        rc = s->op ? walk_op(&k, s->op) : walk_launch(&k, s);
    }
    *line = rc ? k.line : 0;
    if (rc) return -1;
    assign_slots(out, plan->n_steps);
    find_begins(out);
    return 0;
}

void plan_ops_release(PlanOps *o)
{
    for (int i = 0; i < o->n_texts; i++) {
        free(o->texts[i].text);
        free(o->texts[i].includes);
    }
    free(o->storages);
    free(o->tensors);
    free(o->launches);
    free(o->slots);
    free(o->texts);
    memset(o, 0, sizeof *o);
}
