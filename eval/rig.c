#include "eval/rig.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void finding_set(Finding *f, Outcome outcome, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *f = (Finding){.outcome = outcome, .line = line};
    vsnprintf(f->message, sizeof f->message, fmt, ap);
    va_end(ap);
}

void finding_fault(Finding *f, const DeviceFault *fault, const char *where)
{
    finding_set(f, fault->outcome, fault->line, "%s%s%s%s", fault->message, where ? " (" : "", where ? where : "",
                where ? ")" : "");
}

/* ---- the code ---- */

static int load_module(Loaded *l, Finding *f, Error *err)
{
    DeviceFault fault = {0};
    DeviceCode code = {l->code.ptx, l->code.ptx_len, l->code.cubin, l->code.cubin_len};
    int rc = l->ops->load(l->device, &code, &l->context.module, &fault, err);
    if (rc > 0) finding_fault(f, &fault, NULL);
    return rc;
}

/* What a device cannot say of a kernel that was compiled is the source's doing: too many parameters, or a module
 * bent by inline assembler. */
static int load_kernels(Loaded *l, Finding *f)
{
    Error why;
    for (int i = 0; i < l->plan->n_kernels; i++) {
        PlanKernel *k = &l->kernels[i];
        int line = l->plan->kernel_line[i];
        k->lowered = l->code.lowered[i];
        if (l->ops->kernel(l->device, l->context.module, k->lowered, &k->info, &why)) {
            finding_set(f, OUTCOME_PLAN_ERROR, line, "line %d: %s", line, why.text);
            return 1;
        }
        plan_kernel_kinds(k, l->code.ptx);
        if (k->info.registers > l->registers) l->registers = k->info.registers;
    }
    return 0;
}

int loaded_open(Loaded *l, const DeviceOps *ops, Device *d, Task *t, const Plan *plan, CompileResult *code, Finding *f, Error *err)
{
    memset(l, 0, sizeof *l);
    l->ops = ops;
    l->device = d;
    l->task = t;
    l->plan = plan;
    l->code = *code;
    memset(code, 0, sizeof *code);
    l->context = (PlanContext){.plan = plan, .task = t, .device = ops->info(d), .kernels = l->kernels};
    int rc = load_module(l, f, err);
    return rc ? rc : load_kernels(l, f);
}

int loaded_again(Loaded *l, Finding *f, Error *err)
{
    if (l->context.module) l->ops->unload(l->device, l->context.module);
    l->context.module = NULL;
    l->runs = 0;
    return load_module(l, f, err);
}

void loaded_close(Loaded *l)
{
    if (l->context.module) l->ops->unload(l->device, l->context.module);
    compile_result_release(&l->code);
    memset(l, 0, sizeof *l);
}

/* ---- its memory ---- */

static int allocate(Rig *r, const size_t buffer_bytes[PLAN_MAX_BUFFERS], Error *err)
{
    const Loaded *l = r->loaded;
    const Task *t = l->task;
    char label[100];
    for (; r->n_inputs < t->n_inputs; r->n_inputs++) {
        snprintf(label, sizeof label, "input %s", t->inputs[r->n_inputs].name);
        if (l->ops->alloc(l->device, r->test->input_bytes[r->n_inputs], label, &r->memory.inputs[r->n_inputs], err)) return -1;
    }
    for (; r->n_outputs < t->n_outputs; r->n_outputs++) {
        snprintf(label, sizeof label, "output %s", t->outputs[r->n_outputs].name);
        if (l->ops->alloc(l->device, r->test->output_bytes[r->n_outputs], label, &r->memory.outputs[r->n_outputs], err)) return -1;
    }
    for (; r->n_buffers < l->plan->n_buffers; r->n_buffers++) {
        snprintf(label, sizeof label, "buffer %s", l->plan->buffers[r->n_buffers].name);
        if (l->ops->alloc(l->device, buffer_bytes[r->n_buffers], label, &r->memory.buffers[r->n_buffers], err)) return -1;
    }
    return 0;
}

static int write_inputs(Rig *r, int protect, Error *err)
{
    const Loaded *l = r->loaded;
    for (int i = 0; i < r->n_inputs; i++) {
        DevicePtr p = r->memory.inputs[i];
        if (l->ops->protect(l->device, p, 0, err) || l->ops->write(l->device, p, r->test->inputs[i], r->test->input_bytes[i], err) ||
            (protect && l->ops->protect(l->device, p, 1, err)))
            return -1;
    }
    return 0;
}

int rig_reset(Rig *r, Error *err)
{
    const Loaded *l = r->loaded;
    for (int i = 0; i < r->n_outputs; i++)
        if (l->ops->poison(l->device, r->memory.outputs[i], err)) return -1;
    for (int i = 0; i < r->n_buffers; i++)
        if (l->ops->poison(l->device, r->memory.buffers[i], err)) return -1;
    return 0;
}

int rig_resolve(Rig *r, Finding *f)
{
    Error text;
    int line;
    free(r->launches);
    r->launches = NULL;
    if (!plan_resolve(&r->loaded->context, r->test->workload, &r->memory, &r->launches, &r->n_launches, &line, &text)) return 0;
    finding_set(f, OUTCOME_PLAN_ERROR, line, "%s", text.text);
    return 1;
}

static void describe(Rig *r)
{
    char text[150];
    task_workload_text(r->loaded->task, r->test->workload, text, sizeof text);
    snprintf(r->where, sizeof r->where, "%s, input scale %g", text, r->test->scale);
}

int rig_open(Rig *r, Loaded *l, const Case *c, Finding *f, Error *err)
{
    size_t bytes[PLAN_MAX_BUFFERS];
    Error text;
    int line;
    memset(r, 0, sizeof *r);
    r->loaded = l;
    r->test = c;
    describe(r);
    if (plan_buffer_bytes(&l->context, c->workload, bytes, &line, &text)) {
        finding_set(f, OUTCOME_PLAN_ERROR, line, "%s", text.text);
        return 1;
    }
    if (allocate(r, bytes, err) || write_inputs(r, 1, err)) return -1;
    return rig_resolve(r, f);
}

void rig_close(Rig *r)
{
    const Loaded *l = r->loaded;
    if (!l) return;
    for (int i = 0; i < r->n_inputs; i++) l->ops->free(l->device, r->memory.inputs[i]);
    for (int i = 0; i < r->n_outputs; i++) l->ops->free(l->device, r->memory.outputs[i]);
    for (int i = 0; i < r->n_buffers; i++) l->ops->free(l->device, r->memory.buffers[i]);
    free(r->launches);
    memset(r, 0, sizeof *r);
}

int rig_refill(Rig *r, const Case *c, Error *err)
{
    r->test = c;
    describe(r);
    return write_inputs(r, 1, err);
}

/* ---- launches and what they left ---- */

static int inputs_unchanged(Rig *r, Finding *f, Error *err)
{
    const Loaded *l = r->loaded;
    for (int i = 0; i < r->n_inputs; i++) {
        size_t n = r->test->input_bytes[i], at = 0;
        unsigned char *now = memory_alloc(n);
        const unsigned char *was = r->test->inputs[i];
        int rc = l->ops->read(l->device, r->memory.inputs[i], now, n, err);
        while (!rc && at < n && now[at] == was[at]) at++;
        free(now);
        if (rc) return -1;
        if (at == n) continue;
        finding_set(f, OUTCOME_CHEAT, 0, "the kernel changed its input %s, first at element %zu (%s); inputs are read-only",
                    l->task->inputs[i].name, at / dtype_size(l->task->inputs[i].dtype), r->where);
        snprintf(f->cheat, sizeof f->cheat, "input_mutation");
        return 1;
    }
    return 0;
}

int rig_inspect(Rig *r, Finding *f, Error *err)
{
    DeviceFault fault = {0};
    int rc = r->loaded->ops->check_guards(r->loaded->device, &fault, err);
    if (rc > 0) finding_fault(f, &fault, r->where);
    return rc ? rc : inputs_unchanged(r, f, err);
}

/* A device that protects inputs stops at the write itself, which says where it is. Without the
 * protection the same launches tell whether that write was the whole fault. */
static int explain_protected_write(Rig *r, const DeviceFault *first, Finding *f, Error *err)
{
    DeviceFault fault = {0};
    Finding change;
    const Loaded *l = r->loaded;
    if (first->outcome != OUTCOME_OUT_OF_BOUNDS) return 0;
    if (write_inputs(r, 0, err) || rig_reset(r, err)) return -1;
    int rc = l->ops->run(l->device, r->launches, r->n_launches, &fault, err);
    if (rc >= 0) rc = inputs_unchanged(r, &change, err);
    if (write_inputs(r, 1, err) || rc < 0) return -1;
    if (rc == 1) {
        finding_set(f, OUTCOME_CHEAT, first->line, "%s; inputs are read-only (%s)", first->message, r->where);
        snprintf(f->cheat, sizeof f->cheat, "input_mutation");
    }
    return 0;
}

int rig_run(Rig *r, Finding *f, Error *err)
{
    Loaded *l = r->loaded;
    DeviceFault fault = {0};
    if (rig_reset(r, err)) return -1;
    l->runs++;
    int rc = l->ops->run(l->device, r->launches, r->n_launches, &fault, err);
    if (rc < 0) return -1;
    if (rc == 0) return rig_inspect(r, f, err);
    finding_fault(f, &fault, r->where);
    return explain_protected_write(r, &fault, f, err) ? -1 : 1;
}

/* Outputs are poisoned with bytes 0xFF, a NaN that no arithmetic makes; -1 is a fine integer. */
static int find_unwritten(Rig *r, int output, const unsigned char *got, Finding *f)
{
    static const unsigned char poison[16] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    const TaskTensor *x = &r->loaded->task->outputs[output];
    size_t size = dtype_size(x->dtype), n = r->test->output_bytes[output] / size, count = 0, first = 0;
    if (x->dtype == DTYPE_I32) return 0;
    for (size_t i = 0; i < n; i++) {
        if (memcmp(got + i * size, poison, size)) continue;
        if (!count++) first = i;
    }
    if (!count) return 0;
    finding_set(f, OUTCOME_WRONG_RESULT, 0, "%s: %zu of the %zu elements of output %s were never written, the first at index %zu",
                r->where, count, n, x->name, first);
    return 1;
}

int rig_compare(Rig *r, Finding *f, Error *err)
{
    const Loaded *l = r->loaded;
    Error message;
    for (int i = 0; i < r->n_outputs; i++) {
        unsigned char *got = memory_alloc(r->test->output_bytes[i]);
        int rc = l->ops->read(l->device, r->memory.outputs[i], got, r->test->output_bytes[i], err);
        if (!rc) rc = find_unwritten(r, i, got, f);
        if (!rc && task_compare(l->task, r->test->workload, i, got, r->test->expected[i], r->test->scale, &message)) {
            finding_set(f, OUTCOME_WRONG_RESULT, 0, "%s: %s", r->where, message.text);
            rc = 1;
        }
        free(got);
        if (rc) return rc;
    }
    return 0;
}

void rig_exchange(Rig *a, Rig *b)
{
    PlanMemory was = a->memory;
    memcpy(a->memory.inputs, b->memory.inputs, sizeof was.inputs);
    memcpy(a->memory.outputs, b->memory.outputs, sizeof was.outputs);
    memcpy(b->memory.inputs, was.inputs, sizeof was.inputs);
    memcpy(b->memory.outputs, was.outputs, sizeof was.outputs);
}

int rig_digest(Rig *r, Digest *out, Error *err)
{
    const Loaded *l = r->loaded;
    Digester d;
    int rc = 0;
    digester_init(&d);
    for (int i = 0; i < r->n_outputs; i++) {
        size_t n = r->test->output_bytes[i];
        unsigned char *got = memory_alloc(n);
        if (!rc) rc = l->ops->read(l->device, r->memory.outputs[i], got, n, err);
        digester_add_field(&d, got, n);
        free(got);
    }
    digester_finish(&d, out);
    return rc;
}
