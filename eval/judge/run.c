/* The memory, launches and comparisons of a Run. Inputs are read-only for the device's kernels
 * where it can protect them; outputs and buffers are poisoned before every launch. */
#include "eval/judge/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/judge/contents/second_look.h"
#include "eval/judge/eager_look.h"
#include "eval/judge/loaded_ops.h"

enum {
    ROTATION_BYTES = 16, /* contents are rotated by multiples of this (DeviceGoldenOps.fill) */
    SHIFT = 16,          /* bytes by which shifted contents repeat early */
    COMPARED = 1 << 16   /* bytes of an input that are read back at a time: they stay in a cache */
};

/* ---- memory ---- */

/* The owner's first buffer of the same size as buffer i that no earlier buffer shares, or 0. */
static DevicePtr find_lent(const Run *r, const Run *owner, int i)
{
    for (int k = 0; owner && k < owner->n_buffers; k++) {
        int taken = owner->buffer_bytes[k] != r->buffer_bytes[i];
        for (int j = 0; j < i; j++) taken |= r->buffers[j] == owner->buffers[k];
        if (!taken) return owner->buffers[k];
    }
    return 0;
}

static int allocate_buffer(Run *r, const Run *owner, int i, Error *err)
{
    char label[100];
    if ((r->buffers[i] = find_lent(r, owner, i))) {
        r->lent[i] = 1;
        return 0;
    }
    if (i < r->loaded->plan->n_buffers)
        snprintf(label, sizeof label, "buffer %s", r->loaded->plan->buffers[i].name);
    else
        snprintf(label, sizeof label, "a result of an op line");
    const Loaded *l = r->loaded;
    if (l->ops->alloc(l->device, r->buffer_bytes[i], label, &r->buffers[i], err)) return -1;
    if (l->ops->prediction) l->ops->prediction->own(l->device, r->buffers[i]);
    return 0;
}

static int allocate(Run *r, const Run *owner, Error *err)
{
    const Loaded *l = r->loaded;
    const Task *t = l->task;
    char label[100];
    for (; r->n_inputs < t->n_inputs; r->n_inputs++) {
        snprintf(label, sizeof label, "input %s", t->inputs[r->n_inputs].name);
        if (l->ops->alloc(l->device, r->test->input_bytes[r->n_inputs], label,
                          &r->memory.inputs[r->n_inputs], err))
            return -1;
    }
    for (; r->n_outputs < t->n_outputs; r->n_outputs++) {
        snprintf(label, sizeof label, "output %s", t->outputs[r->n_outputs].name);
        if (l->ops->alloc(l->device, r->test->output_bytes[r->n_outputs], label,
                          &r->memory.outputs[r->n_outputs], err))
            return -1;
    }
    for (; r->n_buffers < r->all_buffers; r->n_buffers++)
        if (allocate_buffer(r, owner, r->n_buffers, err)) return -1;
    return 0;
}

/* Bytes of one position along the rotated axis, when that is the tensor's first dimension; else 0.
 */
static size_t position_bytes(const Run *r, const TaskTensor *x, size_t bytes)
{
    const Task *t = r->loaded->task;
    if (!task_rotates(t, x)) return 0;
    return bytes / (size_t)r->test->workload->axis[t->rotates];
}

/* The step of a rotation in positions: it moves every tensor by whole words of ROTATION_BYTES. */
static int64_t rotation_step(const Run *r)
{
    const Task *t = r->loaded->task;
    size_t all = 0;
    for (int i = 0; i < t->n_inputs; i++)
        all |= position_bytes(r, &t->inputs[i], r->test->input_bytes[i]);
    for (int i = 0; i < t->n_outputs; i++)
        all |= position_bytes(r, &t->outputs[i], r->test->output_bytes[i]);
    int64_t step = 1;
    while (all * (size_t)step % ROTATION_BYTES) step *= 2;
    return step;
}

/* The index in the unrotated contents of the first of n elements. */
static size_t rotated_elements(const Run *r, const TaskTensor *x, size_t n)
{
    if (!r->rotation) return 0;
    size_t size = dtype_size(x->dtype);
    return (size_t)r->rotation * (position_bytes(r, x, n * size) / size);
}

int64_t run_rotations(const Run *r)
{
    const Task *t = r->loaded->task;
    const Case *c = r->test;
    if (t->rotates < 0 || !r->loaded->ops->golden) return 0;
    for (int i = 0; i < t->n_inputs; i++)
        if (case_drawn(c, &t->inputs[i], c->input_bytes[i]) % ROTATION_BYTES) return 0;
    for (int i = 0; i < t->n_outputs; i++)
        if (case_drawn(c, &t->outputs[i], c->output_bytes[i]) % ROTATION_BYTES) return 0;
    return case_part(c)->axis[t->rotates] / rotation_step(r);
}

/* The contents of an input that the device keeps. */
static DeviceExpected input_of(const Run *r, int i)
{
    const Case *c = r->test;
    const TaskTensor *x = &r->loaded->task->inputs[i];
    size_t n = c->input_bytes[i], size = dtype_size(x->dtype), period = case_drawn(c, x, n);
    if (r->shifted && period < n && period > SHIFT) period -= SHIFT;
    return (DeviceExpected){.p = r->memory.inputs[i],
                            .golden = c->golden_inputs[i],
                            .from = rotated_elements(r, x, n / size) * size,
                            .dtype = -1,
                            .n = n,
                            .period = period};
}

static int write_inputs(Run *r, int protect, Error *err)
{
    const Loaded *l = r->loaded;
    const Case *c = r->test;
    for (int i = 0; i < r->n_inputs; i++) {
        DevicePtr p = r->memory.inputs[i];
        if (c->lazy) { /* the device protects them */
            if (l->ops->prediction->fill_lazily(l->device, p, c->fill, c->lazy, i, err)) return -1;
            continue;
        }
        if (l->ops->protect(l->device, p, 0, err)) return -1;
        const DeviceExpected x = input_of(r, i);
        if (c->golden_inputs[i] ? l->ops->golden->fill(l->device, &x, err)
                                : l->ops->write(l->device, p, c->inputs[i], c->input_bytes[i], err))
            return -1;
        if (protect && l->ops->protect(l->device, p, 1, err)) return -1;
    }
    return 0;
}

int run_reset(Run *r, Error *err)
{
    const Loaded *l = r->loaded;
    for (int i = 0; i < r->n_outputs; i++)
        if (l->ops->poison(l->device, r->memory.outputs[i], err)) return -1;
    for (int i = 0; i < r->n_buffers; i++)
        if (l->ops->poison(l->device, r->buffers[i], err)) return -1;
    return 0;
}

int run_reset_own_buffers(Run *r, Error *err)
{
    const Loaded *l = r->loaded;
    for (int i = 0; i < r->n_buffers; i++)
        if (!r->lent[i] && l->ops->poison(l->device, r->buffers[i], err)) return -1;
    return 0;
}

int run_resolve(Run *r, Fault *f)
{
    free(r->launches);
    r->launches = NULL;
    if (loaded_ops_at(r->loaded, r->test->workload, f)) return 1;
    return plan_resolve(&r->loaded->context, r->test->workload, &r->memory, &r->launches,
                        &r->n_launches, f);
}

static void describe(Run *r)
{
    case_text(r->test, r->where, sizeof r->where);
}

/* Use the owner's inputs and outputs. The owner frees them. */
static void borrow(Run *r, const Run *owner)
{
    memcpy(r->memory.inputs, owner->memory.inputs, sizeof r->memory.inputs);
    memcpy(r->memory.outputs, owner->memory.outputs, sizeof r->memory.outputs);
    r->n_inputs = owner->n_inputs;
    r->n_outputs = owner->n_outputs;
    r->borrowed = 1;
}

static double least_work(const Task *t, const Workload *w)
{
    double bytes, flops;
    return task_cost(t, w, &bytes, &flops, NULL) ? 0 : bytes / sizeof(float) + flops;
}

int run_buffers(Loaded *l, const Workload *w, size_t **bytes, int *n, Fault *f)
{
    int rc = loaded_ops_compile(l, &w, 1, f);
    if (rc || (rc = loaded_ops_at(l, w, f))) return rc;
    return plan_buffers(&l->context, w, bytes, n, f) ? 1 : 0;
}

int run_open(Run *r, Loaded *l, const Case *c, const Run *owner, Fault *f)
{
    memset(r, 0, sizeof *r);
    r->loaded = l;
    r->test = c;
    r->work = least_work(l->task, c->workload);
    describe(r);
    int rc = run_buffers(l, c->workload, &r->buffer_bytes, &r->all_buffers, f);
    if (rc) return rc;
    r->memory.buffers = r->buffers = memory_array((size_t)r->all_buffers + 1, sizeof *r->buffers);
    r->lent = memory_array((size_t)r->all_buffers + 1, sizeof *r->lent);
    if (owner) borrow(r, owner);
    if (allocate(r, owner, &f->error) || (!owner && write_inputs(r, 1, &f->error))) return -1;
    return run_resolve(r, f);
}

void run_close(Run *r)
{
    const Loaded *l = r->loaded;
    if (!l) return;
    for (int i = 0; i < r->n_inputs && !r->borrowed; i++)
        l->ops->free(l->device, r->memory.inputs[i]);
    for (int i = 0; i < r->n_outputs && !r->borrowed; i++)
        l->ops->free(l->device, r->memory.outputs[i]);
    for (int i = 0; i < r->n_buffers; i++)
        if (!r->lent[i]) l->ops->free(l->device, r->buffers[i]);
    free(r->buffer_bytes);
    free(r->buffers);
    free(r->lent);
    free(r->launches);
    memset(r, 0, sizeof *r);
}

int run_sizes(const Run *r, size_t *bytes)
{
    int n = 0;
    for (int i = 0; i < r->n_inputs && !r->borrowed; i++) bytes[n++] = r->test->input_bytes[i];
    for (int i = 0; i < r->n_outputs && !r->borrowed; i++) bytes[n++] = r->test->output_bytes[i];
    for (int i = 0; i < r->n_buffers; i++)
        if (!r->lent[i]) bytes[n++] = r->buffer_bytes[i];
    return n;
}

int run_refill_shifted(Run *r, const Case *c, Error *err)
{
    r->test = c;
    describe(r);
    r->rotation = 0;
    r->shifted = 1;
    return r->borrowed ? 0 : write_inputs(r, 1, err);
}

int run_refill(Run *r, const Case *c, int64_t rotation, Error *err)
{
    r->test = c;
    r->shifted = 0;
    describe(r);
    r->rotation = rotation ? rotation * rotation_step(r) : 0;
    return r->borrowed ? 0 : write_inputs(r, 1, err);
}

/* ---- launches and their results ---- */

/* Returns 1 when the input on the device differs from what was written, first at byte *at. */
static int input_changed(Run *r, int input, size_t *at, Error *err)
{
    const Loaded *l = r->loaded;
    const Case *c = r->test;
    const DeviceExpected x = input_of(r, input);
    size_t n = c->input_bytes[input];
    if (c->golden_inputs[input]) return l->ops->golden->same(l->device, &x, at, err);
    unsigned char now[COMPARED];
    const unsigned char *was = c->inputs[input];
    for (size_t from = 0; from < n; from += COMPARED) {
        size_t some = n - from < COMPARED ? n - from : COMPARED;
        if (l->ops->read(l->device, r->memory.inputs[input] + from, now, some, err)) return -1;
        if (!memcmp(now, was + from, some)) continue;
        for (*at = from; now[*at - from] == was[*at];) ++*at;
        return 1;
    }
    return 0;
}

static int inputs_unchanged(Run *r, Fault *f)
{
    const Loaded *l = r->loaded;
    for (int i = 0; i < r->n_inputs; i++) {
        size_t at;
        int rc = input_changed(r, i, &at, &f->error);
        if (rc < 0) return -1;
        if (!rc) continue;
        return fault_cheat(
            f, "input_mutation",
            "the kernel changed its input %s, first at element %zu (%s); inputs are read-only",
            l->task->inputs[i].name, at / dtype_size(l->task->inputs[i].dtype), r->where);
    }
    return 0;
}

int run_inspect(Run *r, Fault *f)
{
    int rc = r->loaded->ops->check_guards(r->loaded->device, f);
    if (rc > 0) fault_place(f, r->where);
    return rc ? rc : inputs_unchanged(r, f);
}

void run_fault(const Run *r, Fault *f)
{
    loaded_ops_fault(f, r->launches, r->n_launches, r->where);
}

void run_announce(const Run *r)
{
    const Loaded *l = r->loaded;
    if (l->ops->prediction) l->ops->prediction->announce(l->device, r->work);
}

/* A device that protects inputs stops at the write, as an access out of bounds. Launch again
 * without the protection: when the only effect is a changed input, report input_mutation with the
 * line of the first write. first: the fault as the device has it. Returns 0 or -1. */
static int explain_protected_write(Run *r, const Fault *first, Fault *f)
{
    Fault again = {0};
    const Loaded *l = r->loaded;
    if (first->outcome != OUTCOME_OUT_OF_BOUNDS) return 0;
    if (write_inputs(r, 0, &f->error) || run_reset(r, &f->error)) return -1;
    int rc = l->ops->run(l->device, r->launches, r->n_launches, &again);
    if (rc >= 0) rc = inputs_unchanged(r, &again);
    if (rc < 0) f->error = again.error;
    if (write_inputs(r, 1, rc < 0 ? NULL : &f->error) || rc < 0) return -1;
    if (rc == 1) {
        fault_cheat(f, "input_mutation", "%s; inputs are read-only (%s)", first->message, r->where);
        f->line = first->line;
    }
    return 0;
}

int run_launch(Run *r, Fault *f)
{
    Loaded *l = r->loaded;
    if (run_reset(r, &f->error)) return -1;
    run_announce(r);
    l->runs++;
    int rc = l->ops->run(l->device, r->launches, r->n_launches, f);
    if (rc <= 0) return rc ? rc : run_inspect(r, f);
    Fault first = *f;
    run_fault(r, f);
    return explain_protected_write(r, &first, f) ? -1 : 1;
}

static int never_written(const Run *r, int output, size_t count, size_t first, Fault *f)
{
    const TaskTensor *x = &r->loaded->task->outputs[output];
    size_t n = r->test->output_bytes[output] / dtype_size(x->dtype);
    return fault_set(
        f, OUTCOME_WRONG_RESULT, 0,
        "%s: %zu of the %zu elements of output %s were never written, the first at index %zu",
        r->where, count, n, x->name, first);
}

/* Outputs are poisoned with bytes 0xFF: as a float, a NaN that no arithmetic returns. As an integer
 * it is -1, a valid result, so that integer outputs are not searched. */
static int is_poison(const unsigned char *p, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (p[i] != 0xff) return 0;
    return 1;
}

static int find_unwritten(Run *r, int output, const unsigned char *got, Fault *f)
{
    const TaskTensor *x = &r->loaded->task->outputs[output];
    size_t size = dtype_size(x->dtype), n = r->test->output_bytes[output] / size, count = 0,
           first = 0;
    if (x->dtype == DTYPE_I32) return 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_poison(got + i * size, size)) continue;
        if (!count++) first = i;
    }
    return count ? never_written(r, output, count, first, f) : 0;
}

/* As run_compare. d: what differs by more than the tolerance, of contents whose element 0 is at `from`. */
static int look_again(Run *r, int output, size_t from, const TaskDifference *d, Error *err)
{
    const TaskTensor *x = &r->loaded->task->outputs[output];
    size_t n = r->test->output_bytes[output] / dtype_size(x->dtype);
    const SecondLook look = {.of = case_of(r->test),
                             .output = output,
                             .by = r->test->tolerance[output],
                             .n = n,
                             .from = from,
                             .all = case_drawn(r->test, x, n)};
    int rc = eager_allows(r, output, d, EAGER_IF_KNOWN, err);
    if (!rc) rc = r->test->lazy ? 0 : second_look(&look, d, err);
    return rc < 0 ? -1 : !rc;
}

/* The bytes of an output that is compared on the host, in the order of the expected ones: those of rotated
 * contents are rotated back. The caller frees them. NULL: *err. */
static unsigned char *read_back(const Run *r, int output, Error *err)
{
    const Loaded *l = r->loaded;
    const TaskTensor *x = &l->task->outputs[output];
    size_t bytes = r->test->output_bytes[output], size = dtype_size(x->dtype),
           skip = bytes ? rotated_elements(r, x, bytes / size) * size % bytes : 0;
    unsigned char *got = memory_alloc(bytes);
    if (!l->ops->read(l->device, r->memory.outputs[output], got + skip, bytes - skip, err) &&
        (!skip ||
         !l->ops->read(l->device, r->memory.outputs[output] + bytes - skip, got, skip, err)))
        return got;
    free(got);
    return NULL;
}

/* As run_compare, with a message alone. */
static int look_again_on_host(Run *r, int output, const unsigned char *got, Error *message,
                              Error *err)
{
    const TaskComparison with = case_comparison(r->test, output);
    const TaskTensor *x = &r->loaded->task->outputs[output];
    const double *want = r->test->expected[output];
    TaskDifference d = {0};
    task_differences(&with, got, want, 0, r->test->output_bytes[output] / dtype_size(x->dtype), &d);
    int rc = d.bad ? look_again(r, output, 0, &d, err) : 0;
    return rc ? rc : task_is_coarse(&with, got, want, message);
}

static int compare_on_host(Run *r, int output, Fault *f)
{
    Error message;
    unsigned char *got = read_back(r, output, &f->error);
    int rc = got ? find_unwritten(r, output, got, f) : -1;
    const TaskComparison with = case_comparison(r->test, output);
    if (!rc && task_compare(&with, got, r->test->expected[output], &message)) {
        rc = look_again_on_host(r, output, got, &message, &f->error);
        if (rc > 0) fault_set(f, OUTCOME_WRONG_RESULT, 0, "%s: %s", r->where, message.text);
    }
    free(got);
    return rc;
}

/* The expected contents of an output that the device keeps. */
static DeviceExpected expected_of(const Run *r, int output)
{
    const Case *c = r->test;
    const TaskTensor *x = &r->loaded->task->outputs[output];
    size_t elements = c->output_bytes[output] / dtype_size(x->dtype);
    return (DeviceExpected){r->memory.outputs[output],
                            c->golden_expected[output],
                            rotated_elements(r, x, elements),
                            (int)x->dtype,
                            elements,
                            c->tolerance[output].atol,
                            c->tolerance[output].rtol,
                            case_drawn(c, x, elements)};
}

static int compare_on_device(Run *r, int output, Fault *f)
{
    const Loaded *l = r->loaded;
    const DeviceExpected expected = expected_of(r, output);
    const TaskComparison with = case_comparison(r->test, output);
    Error message;
    DeviceDifference d = {0};
    int rc = l->ops->golden->compare(l->device, &expected, &d, &f->error);
    if (rc <= 0) return rc;
    if (d.unwritten && expected.dtype != DTYPE_I32)
        return never_written(r, output, d.unwritten, d.first_unwritten, f);
    const TaskDifference found = {d.wrong,      d.first,     d.worst,     d.first_got,
                                  d.first_want, d.worst_got, d.worst_want};
    rc = look_again(r, output, expected.from, &found, &f->error);
    if (rc <= 0) return rc;
    task_difference_text(&with, &found, &message);
    return fault_set(f, OUTCOME_WRONG_RESULT, 0, "%s: %s", r->where, message.text);
}

int run_compare(Run *r, Fault *f)
{
    for (int i = 0; i < r->n_outputs; i++) {
        int rc =
            r->test->golden_expected[i] ? compare_on_device(r, i, f) : compare_on_host(r, i, f);
        if (rc == 1) rc = eager_excuses(r, i, f);
        if (rc) return rc;
    }
    return 0;
}

static int differences_on_host(const Run *r, int output, const TaskComparison *with,
                               TaskDifference *d, Error *err)
{
    unsigned char *got = read_back(r, output, err);
    if (!got) return -1;
    task_differences(with, got, r->test->expected[output], 0,
                     r->test->output_bytes[output] / dtype_size(with->task->outputs[output].dtype),
                     d);
    free(got);
    return 0;
}

int run_differences(Run *r, int output, double times, TaskDifference *d, Error *err)
{
    DeviceDifference found = {0};
    TaskComparison with = case_comparison(r->test, output);
    with.times = times;
    *d = (TaskDifference){0};
    if (!r->test->golden_expected[output]) return differences_on_host(r, output, &with, d, err);
    DeviceExpected scaled = expected_of(r, output);
    scaled.atol *= times, scaled.rtol *= times;
    int rc = r->loaded->ops->golden->compare(r->loaded->device, &scaled, &found, err);
    *d = (TaskDifference){found.wrong,      found.first,     found.worst,     found.first_got,
                          found.first_want, found.worst_got, found.worst_want};
    return rc < 0 ? -1 : 0;
}

int run_square(Run *r, int output, double *square, Error *err)
{
    const ElementLimits *e = r->test->tolerance[output].elements;
    *square = 0;
    if (!e || isnan(e->most)) return 0;
    unsigned char *got = read_back(r, output, err);
    if (!got) return -1;
    *square =
        task_mean_square(e, r->loaded->task->outputs[output].dtype, got, r->test->expected[output]);
    free(got);
    return 0;
}

/* The element of an output that differs most from the reference; equal where none does. */
static int worst_of(Run *r, int output, double *got, double *want, Error *err)
{
    DeviceDifference on_device = {0};
    TaskDifference d = {0};
    const Loaded *l = r->loaded;
    if (r->test->golden_expected[output]) {
        DeviceExpected exactly = expected_of(r, output);
        exactly.atol = exactly.rtol = 0;
        if (l->ops->golden->compare(l->device, &exactly, &on_device, err) < 0) return -1;
        *got = on_device.worst_got, *want = on_device.worst_want;
        return 0;
    }
    const TaskComparison with = {.task = l->task, .workload = r->test->workload, .output = output};
    if (differences_on_host(r, output, &with, &d, err)) return -1;
    *got = d.worst_got, *want = d.worst_want;
    return 0;
}

/* Half of a unit in the last place. */
static double half_ulp(Dtype type, double x)
{
    static const int bits[DTYPES] = {[DTYPE_F32] = 24, [DTYPE_F16] = 11, [DTYPE_BF16] = 8};
    int exponent;
    if (!dtype_is_float(type) || !isfinite(x)) return 0;
    frexp(x, &exponent);
    return ldexp(0.5, exponent - bits[type]);
}

int run_errors(Run *r, Errors *out, Error *err)
{
    const Task *t = r->loaded->task;
    for (int i = 0; i < t->n_outputs; i++) {
        double got, want;
        if (worst_of(r, i, &got, &want, err)) return -1;
        out->of[i] = fabs(got - want);
        out->ulp[i] = half_ulp(t->outputs[i].dtype, want);
        if (!isfinite(out->of[i])) out->of[i] = 0; /* equal infinities, or NaN as expected */
    }
    out->known = 1;
    return 0;
}

int run_matches(const Run *r, Error *err)
{
    DeviceExpected list[2 * TASK_MAX_TENSORS];
    const Loaded *l = r->loaded;
    const Case *c = r->test;
    int count = 0;
    if (!l->ops->golden) return 1;
    for (int i = 0; i < r->n_outputs; i++) {
        if (!c->golden_expected[i]) return 1;
        list[count++] = expected_of(r, i);
    }
    for (int i = 0; i < r->n_inputs; i++) {
        if (!c->golden_inputs[i]) return 1;
        list[count++] = input_of(r, i);
    }
    return l->ops->golden->expect(l->device, list, count, 1, err);
}

static int digest_output(Run *r, int output, Digester *d, Error *err)
{
    const Loaded *l = r->loaded;
    size_t n = r->test->output_bytes[output];
    if (l->ops->golden) {
        uint64_t words[2];
        if (l->ops->golden->digest(l->device, r->memory.outputs[output], n, words, err)) return -1;
        digester_add_field(d, words, sizeof words);
        return 0;
    }
    unsigned char *got = memory_alloc(n);
    int rc = l->ops->read(l->device, r->memory.outputs[output], got, n, err);
    if (!rc) digester_add_field(d, got, n);
    free(got);
    return rc;
}

int run_digest(Run *r, Digest *out, Error *err)
{
    Digester d;
    int rc = 0;
    digester_init(&d);
    for (int i = 0; i < r->n_outputs && !rc; i++) rc = digest_output(r, i, &d, err);
    digester_finish(&d, out);
    return rc;
}
