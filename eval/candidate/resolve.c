/* The evaluation of plans. Every sentence of a mistake names the line, the text and, where it
 * matters, the workload. */
#include "eval/candidate/resolve.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/candidate/library_arguments.h"
#include "eval/candidate/plan_ops.h"

typedef struct {
    const PlanContext *p;
    const Workload *w;
    const PlanMemory *memory;
    const PlanStep *step; /* NULL while buffers are sized */
    int64_t loop_value;
    size_t *buffer_bytes; /* of the buffers, then of the slots */
    int line;
    Error *err;
} Resolver;

#define fail(r, ...) plan_mistake((r)->err, (r)->line, __VA_ARGS__)

static int find_tensor(const TaskTensor *tensors, int n, PlanText name)
{
    for (int i = 0; i < n; i++)
        if (plan_text_is(name, tensors[i].name)) return i;
    return -1;
}

static int find_buffer(const Plan *p, PlanText name)
{
    for (int i = 0; i < p->n_buffers; i++)
        if (plan_text_is(name, p->buffers[i].name)) return i;
    return -1;
}

static int lookup(void *ctx, const char *name, size_t len, int64_t *value)
{
    Resolver *r = ctx;
    TaskScope scope = {r->p->task, r->w};
    if (r->step && r->step->loops && plan_text_is((PlanText){name, len}, r->step->var)) {
        *value = r->loop_value;
        return 0;
    }
    return task_lookup(&scope, name, len, value);
}

static void known_names(const Resolver *r, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < r->p->task->n_axes && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : "", r->p->task->axis_name[i]);
    if (r->step && r->step->loops && n < size) snprintf(out + n, size - n, ", %s", r->step->var);
}

/* what: "grid x" or "argument 2 of softmax", for the message. */
static int evaluate(Resolver *r, PlanText t, const char *what, int64_t *value)
{
    Error inner;
    char names[300];
    if (!expr_eval(t.p, t.len, lookup, r, value, &inner)) return 0;
    if (inner.code != ERROR_UNKNOWN_NAME) return fail(r, "%s: %s", what, inner.text);
    known_names(r, names, sizeof names);
    return fail(r, "%s: %s (numbers known here: %s)", what, inner.text, names);
}

/* A name of a plan's own must be no other one's. what: "buffer" */
static int check_own_name(Resolver *r, const char *what, const char *own)
{
    const Task *t = r->p->task;
    PlanText name = {own, strlen(own)};
    if (find_tensor(t->inputs, t->n_inputs, name) >= 0 ||
        find_tensor(t->outputs, t->n_outputs, name) >= 0)
        return fail(r, "%s %s has the name of a tensor of the task", what, own);
    for (int a = 0; a < t->n_axes; a++)
        if (plan_text_is(name, t->axis_name[a]))
            return fail(r, "%s %s has the name of an axis", what, own);
    return 0;
}

static int check_own_names(Resolver *r)
{
    const Plan *plan = r->p->plan;
    for (int i = 0; i < plan->n_buffers; i++) {
        r->line = plan->buffers[i].line;
        if (check_own_name(r, "buffer", plan->buffers[i].name)) return -1;
    }
    for (int i = 0; i < plan->n_maps; i++) {
        const char *name = plan->maps[i].name;
        r->line = plan->maps[i].line;
        if (check_own_name(r, "map", name)) return -1;
        if (find_buffer(plan, (PlanText){name, strlen(name)}) >= 0)
            return fail(r, "map %s has the name of a buffer", name);
    }
    return 0;
}

static int check_names(const PlanContext *p, int *line, Error *err)
{
    const Plan *plan = p->plan;
    Resolver r = {.p = p, .err = err};
    int passed[TASK_MAX_TENSORS] = {0};
    if (check_own_names(&r)) {
        *line = r.line;
        return -1;
    }
    for (int s = 0; s < plan->n_steps; s++) {
        const OpLine *op = plan->steps[s].op;
        for (int i = 0; op && i < op->n_results; i++) {
            PlanText name = {op->result[i].p, op->result[i].len};
            int o = find_tensor(p->task->outputs, p->task->n_outputs, name);
            if (o >= 0) passed[o] = 1;
        }
        for (int a = 0; a < plan->steps[s].n_args; a++) {
            PlanText name, offset;
            if (!plan_argument(plan, plan->steps[s].args[a], &name, &offset)) continue;
            int i = find_tensor(p->task->outputs, p->task->n_outputs, name);
            if (i >= 0) passed[i] = 1;
        }
    }
    *line = 0;
    for (int i = 0; i < p->task->n_outputs; i++)
        if (!passed[i])
            return error_set(err, ERROR_INVALID, "no launch takes the output %s%s",
                             p->task->outputs[i].name, plan->n_ops ? ", and no op gives it" : "");
    return 0;
}

int plan_check_names(const PlanContext *p, Fault *f)
{
    Error why;
    int line;
    return check_names(p, &line, &why) ? plan_fault(f, line, &why) : 0;
}

/* The op lines' results must fit beside the buffers, which take `total` bytes. */
static int add_slots(Resolver *r, size_t total, const char *at)
{
    const PlanOps *o = r->p->ops;
    for (int i = 0; o && i < o->n_slots; i++) {
        r->buffer_bytes[r->p->plan->n_buffers + i] = o->slots[i];
        if (o->slots[i] <= r->p->device->memory_bytes &&
            (total += o->slots[i]) <= r->p->device->memory_bytes)
            continue;
        r->line = o->n_launches ? r->p->plan->steps[o->launches[0].step].line : 0;
        return fail(r,
                    "the buffers and the results of op lines take more than the %zu MiB of the "
                    "device for the workload %s",
                    r->p->device->memory_bytes >> 20, at);
    }
    return 0;
}

static int buffer_bytes(Resolver *r)
{
    const Plan *plan = r->p->plan;
    size_t total = 0;
    char at[200];
    int n = plan->n_buffers + (r->p->ops ? r->p->ops->n_slots : 0);
    r->buffer_bytes = memory_array((size_t)n + 1, sizeof *r->buffer_bytes);
    task_workload_text(r->p->task, r->w, at, sizeof at);
    for (int i = 0; i < plan->n_buffers; i++) {
        const PlanBuffer *b = &plan->buffers[i];
        int64_t count;
        size_t bytes;
        r->line = b->line;
        if (evaluate(r, b->count, "the buffer's size", &count)) return -1;
        if (count < 1)
            return fail(r, "buffer %s has %lld elements for the workload %s; it needs at least 1",
                        b->name, (long long)count, at);
        if (__builtin_mul_overflow((size_t)count, b->type_size, &bytes) ||
            bytes > r->p->device->memory_bytes || (total += bytes) > r->p->device->memory_bytes)
            return fail(
                r,
                "buffer %s brings the buffers over the %zu MiB of the device for the workload %s",
                b->name, r->p->device->memory_bytes >> 20, at);
        r->buffer_bytes[i] = bytes;
    }
    return add_slots(r, total, at);
}

int plan_buffers(const PlanContext *p, const Workload *w, size_t **bytes, int *n, Fault *f)
{
    Error why;
    Resolver r = {.p = p, .w = w, .err = &why};
    *n = 0;
    if (buffer_bytes(&r)) {
        free(r.buffer_bytes);
        return plan_fault(f, r.line, &why);
    }
    *n = p->plan->n_buffers + (p->ops ? p->ops->n_slots : 0);
    *bytes = r.buffer_bytes;
    return 0;
}

static int resolve_dims(Resolver *r, const PlanText *dims, int n, const char *what, uint32_t out[3])
{
    static const int64_t grid_max[] = {0x7fffffff, 65535, 65535}, block_max[] = {1024, 1024, 64};
    const int64_t *max = what[0] == 'g' ? grid_max : block_max;
    char name[16], at[200];
    for (int i = 0; i < 3; i++) {
        int64_t v = 1;
        snprintf(name, sizeof name, "%s %c", what, 'x' + i);
        if (i < n && evaluate(r, dims[i], name, &v)) return -1;
        out[i] = (uint32_t)v;
        if (v >= 1 && v <= max[i]) continue;
        task_workload_text(r->p->task, r->w, at, sizeof at);
        return fail(r, "%s '%.*s' is %lld for the workload %s; expected 1 to %lld%s", name,
                    (int)dims[i].len, dims[i].p, (long long)v, at, (long long)max[i],
                    v < 1 ? " (ceil_div(a, b) rounds up)" : "");
    }
    return 0;
}

static int resolve_config(Resolver *r, const PlanKernel *k, const char *kernel, DeviceLaunch *out)
{
    const PlanStep *s = r->step;
    const DeviceInfo *d = r->p->device;
    int64_t shared = 0;
    if (resolve_dims(r, s->grid, s->n_grid, "grid", out->grid) ||
        resolve_dims(r, s->block, s->n_block, "block", out->block))
        return -1;
    int64_t threads = (int64_t)out->block[0] * out->block[1] * out->block[2];
    int max_threads = k->info.max_threads > 0 && k->info.max_threads < d->max_threads_per_block
                          ? k->info.max_threads
                          : d->max_threads_per_block;
    if (threads > max_threads)
        return fail(r, "a block of %lld threads; %s allows at most %d%s", (long long)threads,
                    kernel, max_threads,
                    max_threads < d->max_threads_per_block ? " (its __launch_bounds__)" : "");
    if (s->shared.len && evaluate(r, s->shared, "the shared bytes", &shared)) return -1;
    if (shared < 0 || (uint64_t)shared + k->info.static_shared > d->max_shared_per_block)
        return fail(r,
                    "%lld dynamic and %zu static bytes of shared memory; a block has at most %zu",
                    (long long)shared, k->info.static_shared, d->max_shared_per_block);
    out->shared_bytes = (uint32_t)shared;
    return 0;
}

/* An argument of a launch, and the kernel's parameter that takes it. */
typedef struct {
    PlanText text;
    char what[300]; /* "argument 2 of softmax", for messages */
    KernelParam param;
    char kind; /* of PlanKernel.kind */
    unsigned char *out;
} Argument;

/* A tensor or buffer that an argument names. */
typedef struct {
    PlanText name;
    DevicePtr base;
    size_t bytes, element; /* of all, of one element */
    TensorMapType map_type;
    int rank;
    int64_t shape[TASK_MAX_RANK];
} Memory;

static void describe_parameter(const Argument *a, char *out, size_t size)
{
    unsigned n = a->param.size;
    if (a->kind == 'f')
        snprintf(out, size, "a %s", n == 8 ? "double" : "float");
    else if (a->kind == 'b')
        snprintf(out, size, "a struct or half of %u bytes", n);
    else if (a->param.is_pointer == 1)
        snprintf(out, size, "a pointer");
    else
        snprintf(out, size, n == 8 ? "a pointer or 64-bit integer" : "an integer of %u bytes", n);
}

static int store_pointer(Resolver *r, const Argument *a, const Memory *m, PlanText offset)
{
    char is[80];
    int64_t at = 0;
    describe_parameter(a, is, sizeof is);
    if (a->param.size != 8 || a->kind == 'f' || a->kind == 'b' || a->param.is_pointer == 0)
        return fail(r, "%s is %.*s, which is memory, but the kernel's parameter is %s", a->what,
                    (int)m->name.len, m->name.p, is);
    if (offset.len && evaluate(r, offset, a->what, &at)) return -1;
    if (at < 0 || (uint64_t)at > m->bytes / m->element)
        return fail(r, "%s starts at element %lld of %.*s, which has %zu", a->what, (long long)at,
                    (int)m->name.len, m->name.p, m->bytes / m->element);
    DevicePtr value = m->base + (DevicePtr)at * m->element;
    memcpy(a->out, &value, 8);
    return 0;
}

/* Where a storage of the op lines begins. */
static DevicePtr storage_address(const Resolver *r, int storage)
{
    const PlanStorage *s = &r->p->ops->storages[storage];
    const PlanMemory *m = r->memory;
    if (!m) return 0;
    if (s->held == HELD_INPUT) return m->inputs[s->index];
    if (s->held == HELD_OUTPUT) return m->outputs[s->index];
    return m->buffers[s->held == HELD_SLOT ? r->p->plan->n_buffers + s->index : s->index];
}

static int tensor_memory(Resolver *r, const TaskTensor *x, DevicePtr base, Memory *out)
{
    size_t n;
    Error inner;
    if (task_elements(r->p->task, r->w, x, &n, &inner)) return fail(r, "%s", inner.text);
    out->base = base;
    out->element = dtype_size(x->dtype);
    out->bytes = n * out->element;
    out->map_type = tensor_map_type(x->dtype);
    out->rank = x->rank;
    task_shape(r->p->task, r->w, x, out->shape, &inner);
    return 0;
}

/* Find out->name. Returns 1, 0 when nothing has the name, -1 for a mistake. */
static int find_memory(Resolver *r, Memory *out)
{
    static const PlanMemory none;
    const PlanMemory *m = r->memory ? r->memory : &none;
    const Task *t = r->p->task;
    int i = find_buffer(r->p->plan, out->name);
    if (i >= 0) {
        out->base = m->buffers ? m->buffers[i] : 0;
        out->bytes = r->buffer_bytes[i];
        out->element = r->p->plan->buffers[i].type_size;
        out->map_type = r->p->plan->buffers[i].map_type;
        out->rank = 1;
        out->shape[0] = (int64_t)(out->bytes / out->element);
        return 1;
    }
    i = find_tensor(t->inputs, t->n_inputs, out->name);
    if (i >= 0) return tensor_memory(r, &t->inputs[i], m->inputs[i], out) ? -1 : 1;
    i = find_tensor(t->outputs, t->n_outputs, out->name);
    if (i >= 0) return tensor_memory(r, &t->outputs[i], m->outputs[i], out) ? -1 : 1;
    const PlanTensor *result = r->p->ops ? plan_ops_find(r->p->ops, out->name) : NULL;
    if (!result) return 0;
    const OpTensor *x = &result->tensor;
    out->element = dtype_size(x->dtype);
    out->base = storage_address(r, result->storage) + (DevicePtr)x->offset * out->element;
    out->bytes = (size_t)op_elements(x) * out->element;
    out->map_type = tensor_map_type(x->dtype);
    return 1; /* a map over it says the sizes, since they may follow from the sizes of a workload */
}

/* ---- maps ---- */

static int map_entry(Resolver *r, PlanText t, const char *key, int d, int64_t *value)
{
    char what[60];
    snprintf(what, sizeof what, "entry %d of %s", d + 1, key);
    return evaluate(r, t, what, value);
}

/* The sizes, the strides in elements, and the box, in the plan's order. Returns -1 with a mistake. */
static int map_lists(Resolver *r, const PlanMap *map, const Memory *of, int64_t *size,
                     int64_t *stride, int64_t *box)
{
    if (!map->size[0].len && !of->rank)
        return fail(r, "a map over %.*s, which an op line gives, needs size=[...]",
                    (int)of->name.len, of->name.p);
    if (!map->size[0].len && of->rank != map->rank)
        return fail(r,
                    "%.*s has %d dimensions, the box %d; size=[...] says how to see it otherwise",
                    (int)of->name.len, of->name.p, of->rank, map->rank);
    for (int d = map->rank - 1; d >= 0; d--) {
        size[d] = of->shape[d < of->rank ? d : 0];
        if (map->size[0].len && map_entry(r, map->size[d], "size", d, &size[d])) return -1;
        if (map_entry(r, map->box[d], "box", d, &box[d])) return -1;
        int last = d == map->rank - 1;
        if (!map->stride[0].len && last) stride[d] = 1;
        if (!map->stride[0].len && !last &&
            __builtin_mul_overflow(stride[d + 1], size[d + 1], &stride[d]))
            return fail(r, "the sizes of map %s have no product of 64 bits", map->name);
        if (map->stride[0].len && map_entry(r, map->stride[d], "stride", d, &stride[d])) return -1;
        if (size[d] < 0 || box[d] < 0 || box[d] > UINT32_MAX || stride[d] < 0)
            return fail(r, "dimension %d of map %s has size %lld, stride %lld and box %lld", d + 1,
                        map->name, (long long)size[d], (long long)stride[d], (long long)box[d]);
    }
    if (stride[map->rank - 1] == 1) return 0;
    return fail(r, "the last stride of map %s is %lld; TMA reads adjacent elements: expected 1",
                map->name, (long long)stride[map->rank - 1]);
}

/* The last element that the map reaches must be one of the tensor. at: the element where the map begins. */
static int map_within(Resolver *r, const PlanMap *map, const Memory *of, int64_t at,
                      const int64_t *size, const int64_t *stride)
{
    int64_t last = at, step, n = (int64_t)(of->bytes / of->element);
    for (int d = 0; d < map->rank; d++)
        if (size[d] > 0 && (__builtin_mul_overflow(size[d] - 1, stride[d], &step) ||
                            __builtin_add_overflow(last, step, &last)))
            last = INT64_MAX;
    if (at >= 0 && last < n) return 0;
    return fail(r, "map %s covers elements %lld to %lld of %.*s, which has %lld", map->name,
                (long long)at, (long long)last, (int)of->name.len, of->name.p, (long long)n);
}

/* Fills in *out, with sizes and strides in the driver's order. */
static int map_tensor(Resolver *r, const PlanMap *map, TensorMap *out)
{
    int64_t size[TENSOR_MAP_RANK], stride[TENSOR_MAP_RANK], box[TENSOR_MAP_RANK], at = 0;
    PlanText offset;
    Memory of = {0};
    Error why;
    if (!plan_text_pointer(map->of, &of.name, &offset)) return -1;
    int found = find_memory(r, &of);
    if (found < 0) return -1;
    if (!found)
        return fail(r, "map %s: '%.*s' is no tensor of the task and no buffer", map->name,
                    (int)of.name.len, of.name.p);
    if (of.map_type == TENSOR_MAP_NONE)
        return fail(r,
                    "map %s: elements of %zu bytes are vectors, which TMA does not have; declare "
                    "the buffer by its scalar type",
                    map->name, of.element);
    if (offset.len && evaluate(r, offset, "the map's start", &at)) return -1;
    if (map_lists(r, map, &of, size, stride, box) || map_within(r, map, &of, at, size, stride))
        return -1;
    *out = (TensorMap){.base = of.base + (DevicePtr)at * of.element,
                       .type = (int16_t)of.map_type,
                       .rank = (uint8_t)map->rank,
                       .swizzle = (uint8_t)map->swizzle};
    for (int i = 0; i < map->rank; i++) {
        int d = map->rank - 1 - i;
        out->size[i] = (uint64_t)size[d];
        out->box[i] = (uint32_t)box[d];
        if (i) out->stride[i - 1] = (uint64_t)stride[d] * of.element;
    }
    return tensor_map_check(out, &why) ? fail(r, "map %s: %s", map->name, why.text) : 0;
}

/* A map's own line has no variable of a for. */
static int store_map(Resolver *r, const Argument *a, const PlanMap *map, DeviceLaunch *out)
{
    char is[80];
    TensorMap m;
    const PlanStep *step = r->step;
    int line = r->line;
    describe_parameter(a, is, sizeof is);
    if ((a->kind && a->kind != 'b') || a->param.size != TENSOR_MAP_BYTES)
        return fail(r,
                    "%s is the tensor map %s, but the kernel's parameter is %s; expected const "
                    "__grid_constant__ CUtensorMap",
                    a->what, map->name, is);
    if (out->n_maps == DEVICE_MAX_MAPS)
        return fail(r, "more than %d maps in a launch", DEVICE_MAX_MAPS);
    r->step = NULL;
    r->line = map->line;
    if (map_tensor(r, map, &m)) return -1;
    r->step = step;
    r->line = line;
    memset(a->out, 0, TENSOR_MAP_BYTES);
    memcpy(a->out, &m, sizeof m);
    out->map_at[out->n_maps++] = a->param.offset;
    return 0;
}

static int store_float(Resolver *r, const Argument *a, double v)
{
    char is[80];
    float single = (float)v;
    describe_parameter(a, is, sizeof is);
    if (a->kind && a->kind != 'f')
        return fail(r, "%s is the float %.*s, but the kernel's parameter is %s", a->what,
                    (int)a->text.len, a->text.p, is);
    if (a->param.size != 4 && a->param.size != 8)
        return fail(r, "%s is the float %.*s, but the kernel's parameter has %u bytes", a->what,
                    (int)a->text.len, a->text.p, a->param.size);
    memcpy(a->out, a->param.size == 4 ? (void *)&single : (void *)&v, a->param.size);
    return 0;
}

static int store_integer(Resolver *r, const Argument *a, int64_t v)
{
    char is[80];
    unsigned size = a->param.size;
    describe_parameter(a, is, sizeof is);
    if (a->kind == 'f') return store_float(r, a, (double)v);
    if (a->kind == 'b' || (size != 1 && size != 2 && size != 4 && size != 8) ||
        a->param.is_pointer == 1)
        return fail(r, "%s is the integer '%.*s', but the kernel's parameter is %s", a->what,
                    (int)a->text.len, a->text.p, is);
    /* Whether the parameter is signed is not known: the value must fit one of the two. */
    if (size < 8 && (v < -((int64_t)1 << (8 * size - 1)) || v >= (int64_t)1 << (8 * size)))
        return fail(r, "%s '%.*s' is %lld, which does not fit the kernel's parameter, %s", a->what,
                    (int)a->text.len, a->text.p, (long long)v, is);
    memcpy(a->out, &v, size);
    return 0;
}

static int resolve_argument(Resolver *r, const PlanKernel *k, const char *kernel, int i,
                            DeviceLaunch *out)
{
    Argument a = {.text = r->step->args[i],
                  .param = k->info.params[i],
                  .kind = k->kind[i],
                  .out = out->params + k->info.params[i].offset};
    Memory m = {0};
    PlanText offset;
    double number;
    int64_t v;
    snprintf(a.what, sizeof a.what, "argument %d of %s", i + 1, kernel);
    const PlanMap *map = plan_map(r->p->plan, a.text);
    if (map) return store_map(r, &a, map, out);
    int found = plan_text_pointer(a.text, &m.name, &offset) ? find_memory(r, &m) : 0;
    if (found) return found < 0 ? -1 : store_pointer(r, &a, &m, offset);
    if (plan_text_float(a.text, &number)) return store_float(r, &a, number);
    return evaluate(r, a.text, a.what, &v) ? -1 : store_integer(r, &a, v);
}

/* A library call is like a kernel whose parameters have 8 bytes each. */
static int resolve_library(Resolver *r, DeviceLaunch *out)
{
    const PlanStep *s = r->step;
    PlanKernel k = {.lowered = s->library, .info = {.n_params = s->n_args}};
    r->line = s->line;
    memset(out, 0, sizeof *out);
    out->module = r->p->module;
    out->kernel = s->library;
    out->library_args = s->n_args;
    for (int i = 0; i < s->n_args; i++) {
        k.info.params[i].offset = 8 * (uint32_t)i;
        k.info.params[i].size = 8;
        k.info.params[i].is_pointer = s->kinds[i] == 'p';
        k.kind[i] = s->kinds[i] == 'd' ? 'f' : 'i';
        if (resolve_argument(r, &k, s->library, i, out)) return -1;
    }
    const LibrarySignature *call = library_signature(s->library);
    uint64_t dtype;
    memcpy(&dtype, out->params + 8 * (size_t)call->dtype, sizeof dtype);
    library_let_tf32(call, r->p->task->tf32, &dtype);
    memcpy(out->params + 8 * (size_t)call->dtype, &dtype, sizeof dtype);
    return 0;
}

static int resolve_launch(Resolver *r, DeviceLaunch *out)
{
    const PlanStep *s = r->step;
    const PlanKernel *k = &r->p->kernels[s->kernel];
    const char *kernel = r->p->plan->kernels[s->kernel];
    r->line = s->line;
    if (k->info.n_params != s->n_args)
        return fail(r, "kernel %s has %d parameter%s, the plan passes %d", kernel, k->info.n_params,
                    k->info.n_params == 1 ? "" : "s", s->n_args);
    if (k->info.param_bytes > KERNEL_MAX_PARAM_BYTES)
        return fail(r, "kernel %s takes %u bytes of parameters; at most %d", kernel,
                    k->info.param_bytes, KERNEL_MAX_PARAM_BYTES);
    memset(out, 0, sizeof *out);
    out->module = r->p->module;
    out->kernel = k->lowered;
    out->cooperative = s->cooperative;
    if (resolve_config(r, k, kernel, out)) return -1;
    for (int i = 0; i < s->n_args; i++)
        if (resolve_argument(r, k, kernel, i, out)) return -1;
    return 0;
}

/* Room for one more launch. */
static int grow_launches(Resolver *r, DeviceLaunch **launches, int n)
{
    r->line = r->step->line;
    if (n == PLAN_MAX_LAUNCHES)
        return fail(r, "the plan makes more than %d launches", PLAN_MAX_LAUNCHES);
    if ((n & (n - 1)) == 0)
        *launches = memory_grow(*launches, n ? 2 * (size_t)n : 1, sizeof **launches);
    return 0;
}

static void resolve_op_launch(const Resolver *r, int l, DeviceLaunch *out)
{
    const PlanOps *o = r->p->ops;
    const PlanOpLaunch *from = &o->launches[l];
    memset(out, 0, sizeof *out);
    out->module = from->library      ? r->p->calls_module
                  : r->p->op_modules ? r->p->op_modules[from->text]
                                     : NULL;
    out->kernel = from->kernel;
    memcpy(out->grid, from->grid, sizeof out->grid);
    memcpy(out->block, from->block, sizeof out->block);
    out->shared_bytes = from->shared;
    out->library_args = from->library ? from->n_args : 0;
    out->op_line = r->step->line;
    out->op = r->step->op->op->name;
    for (int i = 0; i < from->n_args; i++) {
        const PlanOpArg *a = &o->args[from->first_arg + i];
        uint64_t v = a->storage < 0 ? a->value : storage_address(r, a->storage) + a->value;
        memcpy(out->params + 8 * i, &v, 8);
    }
    for (int i = 0; i < o->n_storages; i++) {
        const PlanStorage *s = &o->storages[i];
        if (s->held != HELD_SLOT || s->begins != l || out->n_fresh == DEVICE_MAX_FRESH) continue;
        out->fresh[out->n_fresh++] =
            (DeviceFresh){storage_address(r, i), s->bytes ? s->bytes : 1, s->label};
    }
}

static int resolve_op(Resolver *r, DeviceLaunch **launches, int *n)
{
    const PlanOps *o = r->p->ops;
    for (int l = 0; l < o->n_launches; l++) {
        if (&r->p->plan->steps[o->launches[l].step] != r->step) continue;
        if (grow_launches(r, launches, *n)) return -1;
        resolve_op_launch(r, l, *launches + *n);
        ++*n;
    }
    return 0;
}

/* The range of a step's variable; one launch without one. It cannot use its own variable. */
static int resolve_range(Resolver *r, int64_t *from, int64_t *to)
{
    const PlanStep *s = r->step;
    *from = 0;
    *to = 1;
    if (!s->loops) return 0;
    r->line = s->loop_line;
    r->step = NULL;
    int rc = evaluate(r, s->from, "the range's start", from) ||
             evaluate(r, s->to, "the range's end", to);
    r->step = s;
    return rc ? -1 : 0;
}

int64_t plan_trips(const PlanContext *p, const Workload *w, const PlanStep *step)
{
    Error ignored;
    Resolver r = {.p = p, .w = w, .step = step, .err = &ignored};
    int64_t from, to;
    if (plan_takes(p->plan, p->task, w, step, &ignored) != 1) return 0;
    return resolve_range(&r, &from, &to) || to < from ? 0 : to - from;
}

int plan_shape(const PlanContext *p, const Workload *w, const PlanStep *step, PlanShape *out)
{
    Error ignored;
    Resolver r = {.p = p, .w = w, .step = step, .err = &ignored};
    int64_t to;
    if (plan_takes(p->plan, p->task, w, step, &ignored) != 1) return -1;
    return resolve_range(&r, &r.loop_value, &to) || to <= r.loop_value ||
           resolve_dims(&r, step->grid, step->n_grid, "grid", out->grid) ||
           resolve_dims(&r, step->block, step->n_block, "block", out->block);
}

static int resolve_step(Resolver *r, DeviceLaunch **launches, int *n)
{
    const PlanStep *s = r->step;
    int64_t from, to;
    int taken = plan_takes(r->p->plan, r->p->task, r->w, s, r->err);
    if (taken < 0) r->line = r->p->plan->branches[s->branch].line;
    if (taken < 1) return taken;
    if (s->op) return resolve_op(r, launches, n);
    r->line = s->loop_line;
    if (resolve_range(r, &from, &to)) return -1;
    for (int64_t i = from; i < to; i++) {
        if (grow_launches(r, launches, *n)) return -1;
        r->loop_value = i;
        if (s->library ? resolve_library(r, *launches + *n) : resolve_launch(r, *launches + *n))
            return -1;
        ++*n;
    }
    return 0;
}

static int resolve_steps(Resolver *r, DeviceLaunch **launches, int *n)
{
    if (buffer_bytes(r)) return -1;
    for (int s = 0; s < r->p->plan->n_steps; s++) {
        r->step = &r->p->plan->steps[s];
        if (resolve_step(r, launches, n)) return -1;
    }
    r->line = 0;
    return *n ? 0
              : error_set(r->err, ERROR_INVALID,
                          "no launch is left: every for of the plan has an empty range, or no "
                          "branch is taken");
}

int plan_resolve(const PlanContext *p, const Workload *w, const PlanMemory *memory,
                 DeviceLaunch **out, int *n, Fault *f)
{
    Error why;
    Resolver r = {.p = p, .w = w, .memory = memory, .err = &why};
    DeviceLaunch *launches = NULL;
    *n = 0;
    if (p->plan->n_ops && !p->ops)
        return fault_set(f, OUTCOME_PLAN_ERROR, 0, "the op lines of the plan are not built");
    int rc = resolve_steps(&r, &launches, n);
    free(r.buffer_bytes);
    if (rc) {
        free(launches);
        return plan_fault(f, r.line, &why);
    }
    *out = launches;
    return 0;
}

/* The declaration is ".entry NAME(" and then lines ".param [.align N] .TYPE NAME[[BYTES]]". */
void plan_kernel_kinds(PlanKernel *k, const char *ptx)
{
    size_t n = strlen(k->lowered);
    const char *p = ptx;
    memset(k->kind, 0, sizeof k->kind);
    while ((p = strstr(p, ".entry "))) {
        p += 7;
        if (!strncmp(p, k->lowered, n) && (p[n] == '(' || isspace((unsigned char)p[n]))) break;
    }
    if (!p || !(p = strchr(p, '('))) return;
    const char *end = strchr(p, ')');
    if (!end) return;
    int i = 0;
    while (i < k->info.n_params && i < KERNEL_MAX_PARAMS && (p = strstr(p, ".param ")) && p < end) {
        p += 7;
        const char *comma = strchr(p, ',');
        const char *stop = comma && comma < end ? comma : end;
        int array = memchr(p, '[', (size_t)(stop - p)) != NULL;
        int real =
            memmem(p, (size_t)(stop - p), ".f32 ", 5) || memmem(p, (size_t)(stop - p), ".f64 ", 5);
        k->kind[i++] = array ? 'b' : real ? 'f' : 'i';
        p = stop;
    }
    if (i != k->info.n_params) memset(k->kind, 0, sizeof k->kind);
}
