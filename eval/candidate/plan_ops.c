/* Walks the plan once in order: each op line is bound to the names before it, its results get
 * memory, and its launches follow. Then results whose lives do not overlap share slots. */
#include "eval/candidate/plan_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/candidate/op_launches.h"

const PlanTensor *plan_ops_find(const PlanOps *o, PlanText name)
{
    for (int i = o->n_tensors - 1; i >= 0; i--)
        if (o->tensors[i].name.len == name.len && !memcmp(o->tensors[i].name.p, name.p, name.len))
            return &o->tensors[i];
    return NULL;
}

static size_t bytes_of(const OpTensor *t)
{
    return (size_t)op_elements(t) * dtype_size(t->dtype);
}

/* ---- names and memory ---- */

static void add_tensor(Walk *k, PlanText name, const OpTensor *t, int storage, int line)
{
    PlanOps *o = k->o;
    o->tensors = memory_grow(o->tensors, (size_t)o->n_tensors + 1, sizeof *o->tensors);
    o->tensors[o->n_tensors++] = (PlanTensor){name, *t, storage, line};
}

static int add_task_tensor(Walk *k, const TaskTensor *x, PlanHeld held, int index)
{
    OpTensor t = {.rank = x->rank, .dtype = x->dtype};
    Error why;
    if (task_shape(k->task, k->w, x, t.size, &why))
        return walk_fail(k, "tensor %s has no shape for op lines", x->name);
    op_contiguous(&t);
    add_tensor(k, (PlanText){x->name, strlen(x->name)}, &t,
               walk_storage(k->o, held, index, bytes_of(&t), x->name), 0);
    return 0;
}

/* The element type of a buffer; DTYPES: no operator takes it. */
static Dtype buffer_dtype(const char *type)
{
    static const char *const other[][2] = {{"half", "__half"},       {"int32_t", "int"},
                                           {"int64_t", "long long"}, {"int8_t", "signed char"},
                                           {"char", "signed char"},  {"uint8_t", "unsigned char"},
                                           {"int16_t", "short"}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (!strcmp(other[i][0], type)) type = other[i][1];
    return dtype_of_ctype(type);
}

static int add_buffer(Walk *k, int i)
{
    const PlanBuffer *b = &k->plan->buffers[i];
    TaskScope scope = {k->task, k->w};
    OpTensor t = {.rank = 1, .dtype = buffer_dtype(b->type)};
    Error why;
    k->line = b->line;
    if (expr_eval(b->count.p, b->count.len, task_lookup, &scope, &t.size[0], &why)) {
        error_prefix(&why, "the buffer's size");
        return walk_fail_here(k, &why);
    }
    op_contiguous(&t);
    add_tensor(k, (PlanText){b->name, strlen(b->name)}, &t,
               walk_storage(k->o, HELD_BUFFER, i, 0, b->name), 0);
    return 0;
}

static int add_given(Walk *k)
{
    const Task *t = k->task;
    for (int i = 0; i < t->n_inputs; i++)
        if (add_task_tensor(k, &t->inputs[i], HELD_INPUT, i)) return -1;
    for (int i = 0; i < t->n_outputs; i++)
        if (add_task_tensor(k, &t->outputs[i], HELD_OUTPUT, i)) return -1;
    for (int i = 0; i < k->plan->n_buffers; i++)
        if (add_buffer(k, i)) return -1;
    return 0;
}

static int output_of(const Walk *k, PlanText name)
{
    for (int i = 0; i < k->task->n_outputs; i++)
        if (plan_text_is(name, k->task->outputs[i].name)) return i;
    return -1;
}

static int is_unnamed(PlanText name)
{
    return plan_text_is(name, "_");
}

/* A result's name is an output's, or nothing else has it. */
static int check_name(Walk *k, PlanText name)
{
    const PlanTensor *t = plan_ops_find(k->o, name);
    int n = (int)name.len;
    for (int a = 0; a < k->task->n_axes; a++)
        if (plan_text_is(name, k->task->axis_name[a]))
            return walk_fail(k, "the result %.*s has the name of an axis", n, name.p);
    if (is_unnamed(name) || !t) return 0;
    if (t->line)
        return walk_fail(k, "%.*s is already the result of the op on line %d", n, name.p, t->line);
    PlanHeld held = k->o->storages[t->storage].held;
    if (held == HELD_INPUT)
        return walk_fail(k, "the result %.*s has the name of an input", n, name.p);
    if (held == HELD_BUFFER)
        return walk_fail(
            k, "the result %.*s has the name of a buffer; op lines give their results memory", n,
            name.p);
    return 0;
}

static void shape_text(const OpTensor *t, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "%s [", dtype_name(t->dtype));
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
    return walk_fail(k, "the result is %s, but the output %s is %s (for the workload %s)", is,
                     k->task->outputs[output].name, expected, at);
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
    if (!t || t->tensor.dtype == DTYPES) return -1;
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
    if (s->held == HELD_SLOT && o->storages[own].first < 0 && !t->offset && op_is_contiguous(t) &&
        bytes_of(t) == s->bytes) {
        s->held = HELD_OUTPUT;
        s->index = output;
        walk_use(k, own);
        add_tensor(k, name, t, storage, k->line);
        return 0;
    }
    OpTensor y = o->tensors[own].tensor;
    if (launches_of_copy(k, op, *t, storage, y, own)) return -1;
    add_tensor(k, name, &y, own, k->line);
    return 0;
}

/* The memory of a new result. */
static int new_result(Walk *k, PlanText name, OpTensor *t, const OpCall *call, const int *storages)
{
    int output = op_is_contiguous(t) ? output_of(k, name) : -1; /* else it becomes a copy */
    char label[PLAN_MAX_NAME];
    snprintf(label, sizeof label, "%.*s", (int)name.len, name.p);
    if (output < 0) return walk_storage(k->o, HELD_SLOT, -1, bytes_of(t), label);
    int own = k->task->n_inputs + output;
    if (check_output(k, output, t)) return -1;
    for (int i = 0; i < call->n_tensors; i++)
        if (storages[i] == own)
            return walk_fail(
                k, "%s is an argument of this op and its result; give one of them another name",
                label);
    return own;
}

static PlanText result_name(const OpLine *line, int i)
{
    return (PlanText){line->result[i].p, line->result[i].len};
}

/* An operator in place: its kernels write where the argument lies. */
static int change_in_place(Walk *k, const OpLine *line, const OpCall *call, const int *storages,
                           Places *m)
{
    int at = call->view_of[0];
    if (at < 0)
        return walk_fail(k, "%s changes its first argument, which is no tensor", call->op->name);
    if (k->o->storages[storages[at]].held == HELD_INPUT)
        return walk_fail(k,
                         "%s changes its first argument, which is memory of an input of the task",
                         call->op->name);
    m->y[0] = m->x[at];
    if (launches_of_call(k, call, m)) return -1;
    return bind_alias(k, call->op, result_name(line, 0), &call->tensor[at], storages[at]);
}

static int bind_results(Walk *k, const OpLine *line, OpCall *call, const int *storages, Places *m)
{
    int held[OP_MAX_RESULTS];
    if (call->op->flags & OP_IN_PLACE) return change_in_place(k, line, call, storages, m);
    for (int i = 0; i < call->n_results; i++) {
        if (call->view_of[i] >= 0) {
            held[i] = storages[call->view_of[i]];
        } else {
            held[i] = new_result(k, result_name(line, i), &call->result[i], call, storages);
            if (held[i] < 0) return -1;
            walk_use(k, held[i]);
        }
        m->y[i] = walk_place(held[i]);
    }
    if (launches_of_call(k, call, m)) return -1;
    for (int i = 0; i < call->n_results; i++) {
        PlanText name = result_name(line, i);
        if (call->view_of[i] >= 0 || !op_is_contiguous(&call->result[i])) {
            if (bind_alias(k, call->op, name, &call->result[i], held[i])) return -1;
        } else if (!is_unnamed(name)) {
            add_tensor(k, name, &call->result[i], held[i], k->line);
        }
    }
    return 0;
}

static int walk_call(Walk *k, const OpLine *line, OpCall *call)
{
    OpScope scope = {k, scope_axis, scope_tensor};
    int id[OP_MAX_TENSORS], storages[OP_MAX_TENSORS];
    double flops = 0;
    Places m = {0};
    Error why;
    for (int i = 0; i < line->n_results; i++)
        if (check_name(k, result_name(line, i))) return -1;
    if (op_line_call(line, &scope, call, id, &why)) return walk_fail_here(k, &why);
    op_layout(call);
    for (int i = 0; i < call->n_tensors; i++) {
        storages[i] = k->o->tensors[id[i]].storage;
        walk_use(k, storages[i]);
        m.x[i] = walk_place(storages[i]);
    }
    if (op_flops(call, &flops, &why)) return walk_fail_here(k, &why);
    k->o->flops += flops;
    if (bind_results(k, line, call, storages, &m)) return -1;
    return k->o->n_launches > PLAN_MAX_LAUNCHES
               ? walk_fail(k, "the plan makes more than %d launches", PLAN_MAX_LAUNCHES)
               : 0;
}

static int walk_op(Walk *k, const OpLine *line)
{
    OpCall *call = memory_alloc(sizeof *call);
    int rc = walk_call(k, line, call);
    free(call);
    return rc;
}

/* ---- launches of the plan's own ---- */

static int given_later(const Walk *k, PlanText name)
{
    for (int s = k->step + 1; s < k->plan->n_steps; s++) {
        const PlanStep *step = &k->plan->steps[s];
        const OpLine *line = step->op;
        if (line && plan_takes(k->plan, k->task, k->w, step, NULL) != 1) continue;
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
        if (!plan_argument(k->plan, s->args[a], &name, &offset)) continue;
        const PlanTensor *t = plan_ops_find(k->o, name);
        int n = (int)name.len;
        if (!t && given_later(k, name))
            return walk_fail(k, "%.*s is used here, and the op on line %d gives it", n, name.p,
                             given_later(k, name));
        if (!t) continue; /* a number, or a mistake that the resolver reports */
        walk_use(k, t->storage);
        if (!op_is_contiguous(&t->tensor))
            return walk_fail(
                k,
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
                   Fault *f)
{
    Error why;
    Walk k = {.plan = plan, .task = t, .w = w, .routes = routes, .o = out, .err = &why};
    memset(out, 0, sizeof *out);
    k.line = plan->n_steps ? plan->steps[0].line : 0;
    int rc = add_given(&k);
    for (k.step = 0; k.step < plan->n_steps && !rc; k.step++) {
        const PlanStep *s = &plan->steps[k.step];
        k.line = s->line;
        int taken = plan_takes(plan, t, w, s, &why);
        if (taken < 0) k.line = plan->branches[s->branch].line;
        rc = taken < 1 ? taken : s->op ? walk_op(&k, s->op) : walk_launch(&k, s);
    }
    if (rc) return plan_fault(f, k.line, &why);
    assign_slots(out, plan->n_steps);
    find_begins(out);
    return 0;
}

int plan_ops_vary(const PlanOps *o)
{
    enum { TRANSPOSED = 3 }; /* the argument (eval/cuda/library/library.h) */
    for (int i = 0; i < o->n_launches; i++) {
        const PlanOpLaunch *l = &o->launches[i];
        if (l->library && !strncmp(l->kernel, "cudnn.convolution", 17) && l->n_args > TRANSPOSED &&
            o->args[l->first_arg + TRANSPOSED].value)
            return 1;
    }
    return 0;
}

void plan_ops_release(PlanOps *o)
{
    for (int i = 0; i < o->n_texts; i++) {
        free(o->texts[i].kernels);
        free(o->texts[i].text);
        free(o->texts[i].includes);
    }
    free(o->storages);
    free(o->tensors);
    free(o->launches);
    free(o->args);
    free(o->slots);
    free(o->texts);
    memset(o, 0, sizeof *o);
}

/* ---- branches ---- */

int plan_takes(const Plan *p, const Task *t, const Workload *w, const PlanStep *s, Error *err)
{
    Error why;
    TaskScope scope = {t, w};
    int64_t holds;
    if (s->branch < 0) return 1;
    const PlanBranch *b = &p->branches[s->branch];
    if (!expr_eval(b->taken, strlen(b->taken), task_lookup, &scope, &holds, &why))
        return holds != 0;
    return error_set(err, ERROR_INVALID, "line %d: the condition %s: %s", b->line, b->taken,
                     why.text);
}
