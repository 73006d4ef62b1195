/* Op lines of a plan: where results lie, which launches they make, and the sentences for mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/candidate/plan_ops.h"
#include "eval/candidate/resolve.h"

enum { X = 0x10000, W = 0x20000, Y = 0x30000, Z = 0x40000, BUFFERS = 0x100000 };

static char rows[] = "rows", cols[] = "cols";
static TaskTensor inputs[] = {{.name = "x", .rank = 2, .shape = {rows, cols}},
                              {.name = "w", .rank = 1, .shape = {cols}}},
                  outputs[] = {{.name = "y", .rank = 2, .shape = {rows, cols}},
                               {.name = "z", .rank = 1, .shape = {cols}}};
static Task task = {.n_axes = 2,
                    .axis_name = {"rows", "cols"},
                    .n_inputs = 2,
                    .n_outputs = 2,
                    .n_workloads = 2,
                    .inputs = inputs,
                    .outputs = outputs,
                    .workloads = {{.axis = {7, 33}}, {.axis = {64, 128}}}};
static const DeviceInfo device = {
    .max_threads_per_block = 1024, .max_shared_per_block = 65536, .memory_bytes = 1 << 20};
static PlanKernel kernel = {.lowered = "f", .info = {.n_params = 2, .param_bytes = 16}};

typedef struct {
    Plan plan;
    PlanOps ops;
    DevicePtr buffers[128];
    size_t *bytes;
    DeviceLaunch *launches;
    int n, n_buffers;
} Built;

/* Returns 0, or -1 with *line and *err. */
static int build(Built *b, const char *source, Fault *f)
{
    memset(b, 0, sizeof *b);
    if (plan_parse(source, strlen(source), 0, &b->plan, f)) return -1;
    PlanContext context = {.plan = &b->plan, .task = &task, .device = &device, .kernels = &kernel};
    for (int i = 0; i < 2; i++) {
        kernel.info.params[i].offset = 8 * (uint32_t)i;
        kernel.info.params[i].size = 8;
        kernel.info.params[i].is_pointer = -1;
    }
    const Workload *w = &task.workloads[0];
    if (plan_check_names(&context, f) || plan_ops_build(&b->plan, &task, w, 0, &b->ops, f))
        return -1;
    context.ops = &b->ops;
    if (plan_buffers(&context, w, &b->bytes, &b->n_buffers, f)) return -1;
    for (int i = 0; i < b->n_buffers; i++) b->buffers[i] = BUFFERS + 0x10000 * (DevicePtr)i;
    PlanMemory memory = {.inputs = {X, W}, .outputs = {Y, Z}, .buffers = b->buffers};
    return plan_resolve(&context, w, &memory, &b->launches, &b->n, f);
}

static void release(Built *b)
{
    free(b->launches);
    free(b->bytes);
    plan_ops_release(&b->ops);
    plan_release(&b->plan);
}

static void built(Built *b, const char *source)
{
    Fault f = {0};
    if (build(b, source, &f)) fail_msg("%s", f.message);
}

static void fails(const char *source, int want_line, const char *want)
{
    Built b;
    Fault f = {0};
    if (!build(&b, source, &f)) fail_msg("built: %s", source);
    if (!strstr(f.message, want)) fail_msg("expected '%s' in: %s", want, f.message);
    assert_int_equal(f.line, want_line);
    release(&b);
}

/* The pointer that launch l passes as argument i. */
static uint64_t argument(const Built *b, int l, int i)
{
    uint64_t p;
    assert_true(l < b->n);
    memcpy(&p, b->launches[l].params + 8 * i, 8);
    return p;
}

#define Z_LINE "//@ op z = aten.relu(w)\n"

/* Tensors of the task keep their element types. */
static void test_element_types(void **state)
{
    (void)state;
    Built b;
    TaskTensor *of[] = {&inputs[0], &inputs[1], &outputs[0], &outputs[1]};
    for (int i = 0; i < 4; i++) of[i]->dtype = DTYPE_F16;
    built(&b, "//@ op h = aten.add.Tensor(x, w)\n//@ op y = aten.relu(h)\n" Z_LINE);
    assert_int_equal(b.bytes[0], 7 * 33 * 2);
    release(&b);
    for (int i = 0; i < 4; i++) of[i]->dtype = DTYPE_F32;
}

static void test_results(void **state)
{
    (void)state;
    Built b;
    built(&b, "//@ op h = aten.add.Tensor(x, w)\n//@ op y = aten.relu(h)\n" Z_LINE);
    assert_int_equal(b.n, 3);
    assert_int_equal(b.n_buffers, 1);
    assert_int_equal(b.bytes[0], 7 * 33 * 4);
    assert_int_equal(argument(&b, 0, 0), X);
    assert_int_equal(argument(&b, 0, 1), W);
    assert_int_equal(argument(&b, 0, 2), BUFFERS);
    assert_int_equal(argument(&b, 1, 0), BUFFERS);
    assert_int_equal(argument(&b, 1, 1), Y);
    assert_int_equal(argument(&b, 2, 1), Z);
    assert_int_equal(b.launches[1].op_line, 2);
    assert_string_equal(b.launches[1].op, "aten.relu.default");
    assert_int_equal(b.launches[0].n_fresh, 1);
    assert_int_equal(b.launches[0].fresh[0].p, BUFFERS);
    assert_string_equal(b.launches[0].fresh[0].label, "tensor h");
    assert_int_equal(b.launches[1].n_fresh, 0);
    release(&b);
}

/* A view launches nothing. An output whose contents are the whole of a result is that result. */
static void test_views(void **state)
{
    (void)state;
    Built b;
    built(&b, "//@ op a = aten.add.Tensor(x, w)\n//@ op b = aten.relu_(a)\n"
              "//@ op y = aten.dropout(b, 0.5, False)\n" Z_LINE);
    assert_int_equal(b.n, 3);
    assert_int_equal(b.n_buffers, 0);
    assert_int_equal(argument(&b, 0, 2), Y);
    assert_int_equal(argument(&b, 1, 0), Y);
    assert_int_equal(argument(&b, 1, 1), Y);
    release(&b);
    /* An input is copied; so is a result of which a launch has written the output before. */
    built(&b, "//@ op y = aten.dropout(x, 0.5, False)\n" Z_LINE);
    assert_int_equal(b.n, 2);
    assert_int_equal(argument(&b, 0, 0), X);
    assert_int_equal(argument(&b, 0, 1), Y);
    release(&b);
    built(&b, "//@ op a = aten.relu(x)\n//@ launch f<<<1, 1>>>(a, y)\n"
              "//@ op y = aten.dropout(a, 0.5, False)\n" Z_LINE);
    assert_int_equal(b.n, 4);
    assert_int_equal(argument(&b, 0, 1), BUFFERS);
    assert_int_equal(argument(&b, 2, 0), BUFFERS);
    assert_int_equal(argument(&b, 2, 1), Y);
    release(&b);
}

static void test_launches_take_results(void **state)
{
    (void)state;
    Built b;
    built(&b, "//@ buffer float t[rows * cols]\n//@ op h = aten.relu(x)\n"
              "//@ launch f<<<1, 1>>>(h + cols, t)\n//@ op g = aten.relu(t)\n"
              "//@ launch f<<<1, 1>>>(g, y)\n" Z_LINE);
    assert_int_equal(b.n, 5);
    assert_int_equal(b.n_buffers, 2); /* h and g do not live together */
    assert_int_equal(argument(&b, 1, 0), b.buffers[1] + 33 * 4);
    assert_int_equal(argument(&b, 1, 1), b.buffers[0]);
    assert_int_equal(argument(&b, 2, 0), b.buffers[0]);
    assert_null(b.launches[1].op);
    release(&b);
}

/* A result's memory is used again after its last use, also when that is a launch. */
static void test_memory_is_shared(void **state)
{
    (void)state;
    Built b;
    built(&b, "//@ op a = aten.relu(x)\n//@ op b = aten.relu(a)\n//@ op c = aten.relu(b)\n"
              "//@ op d = aten.relu(c)\n//@ op y = aten.relu(d)\n" Z_LINE);
    assert_int_equal(b.n_buffers, 2);
    assert_int_equal(argument(&b, 2, 1), argument(&b, 0, 1));
    assert_int_equal(argument(&b, 3, 1), argument(&b, 1, 1));
    assert_string_equal(b.launches[2].fresh[0].label, "tensor c");
    assert_string_equal(b.launches[3].fresh[0].label, "tensor d");
    release(&b);
    built(&b, "//@ op a = aten.relu(x)\n//@ op b = aten.relu(a)\n//@ op c = aten.relu(b)\n"
              "//@ op d = aten.relu(c)\n//@ launch f<<<1, 1>>>(a, y)\n"
              "//@ op y = aten.relu(d)\n" Z_LINE);
    assert_int_equal(b.n_buffers, 3);
    release(&b);
    /* The use of a view is a use of its base. */
    built(&b, "//@ op a = aten.relu(x)\n//@ op v = aten.dropout(a, 0.5, False)\n"
              "//@ op b = aten.relu(x)\n//@ op y = aten.add.Tensor(v, b)\n" Z_LINE);
    assert_int_equal(b.n_buffers, 2);
    assert_int_not_equal(argument(&b, 2, 0), argument(&b, 2, 1));
    release(&b);
    /* A larger result grows the slot; a smaller one says its own size. */
    built(&b, "//@ op a = aten.relu(w)\n//@ op z = aten.relu(a)\n//@ op b = aten.relu(x)\n"
              "//@ op y = aten.relu(b)\n//@ op c = aten.relu(w)\n"
              "//@ launch f<<<1, 1>>>(c, y)\n");
    assert_int_equal(b.n_buffers, 1);
    assert_int_equal(b.bytes[0], 7 * 33 * 4);
    assert_int_equal(b.launches[0].fresh[0].bytes, 33 * 4);
    assert_int_equal(b.launches[2].fresh[0].bytes, 7 * 33 * 4);
    assert_int_equal(b.launches[4].fresh[0].bytes, 33 * 4);
    release(&b);
}

/* Equal kernels are compiled once; each text has a namespace of its own. */
static void test_source(void **state)
{
    (void)state;
    const char *source = "//@ op a = aten.relu(x)\n//@ op y = aten.relu(a)\n" Z_LINE;
    Plan plan;
    PlanOps ops[2];
    const PlanOps *all[] = {&ops[0], &ops[1], &ops[0]};
    const PlanKernelText **texts;
    Fault f = {0};
    Buffer text;
    char **names = NULL;
    int n = 0;
    assert_int_equal(plan_parse(source, strlen(source), 0, &plan, &f), 0);
    for (int i = 0; i < 2; i++)
        if (plan_ops_build(&plan, &task, &task.workloads[i], 0, &ops[i], &f))
            fail_msg("%s", f.message);
    assert_int_equal(ops[0].n_texts, 2);
    assert_string_equal(ops[0].launches[0].kernel, ops[0].launches[1].kernel);
    assert_string_not_equal(ops[0].launches[0].kernel, ops[0].launches[2].kernel);
    buffer_init(&text, 1 << 20);
    int n_texts = plan_ops_texts(all, 3, &texts);
    assert_int_equal(n_texts, 4);
    assert_int_equal(plan_ops_source(texts, n_texts, &text, &names, &n), 0);
    free(texts);
    assert_int_equal(n, 4);
    for (int i = 0; i < n; i++) {
        const char *own = strstr(names[i], "::") + 2, *at = strstr(text.data, own);
        assert_non_null(at);
        assert_null(strstr(at + 1, own));
        free(names[i]);
    }
    assert_null(strstr(text.data, "#include")); /* nothing needs a header */
    free(names);
    buffer_release(&text);
    for (int i = 0; i < 2; i++) plan_ops_release(&ops[i]);
    plan_release(&plan);
}

/* A kernel takes 64 pointers: 63 tensors and the result, or half of 64 each. */
static void test_long_lists(void **state)
{
    (void)state;
    for (int tensors = 63; tensors <= 64; tensors++) {
        Buffer source;
        Built b;
        buffer_init(&source, 1 << 16);
        for (int i = 0; i < tensors; i++) buffer_printf(&source, "//@ op h%d = aten.relu(x)\n", i);
        buffer_puts(&source, "//@ op c = aten.cat([");
        for (int i = 0; i < tensors; i++) buffer_printf(&source, "%sh%d", i ? ", " : "", i);
        buffer_puts(&source, "])\n//@ op y = aten.relu(x)\n" Z_LINE);
        built(&b, source.data);
        assert_int_equal(b.n, tensors + 2 + (tensors == 64 ? 2 : 1));
        for (int i = tensors; i < b.n - 2; i++) {
            const PlanOpLaunch *l = &b.ops.launches[i];
            int own = tensors == 64 ? 32 : 63;
            assert_int_equal(l->n_args, own + 1);
            assert_int_equal(l->grid[1], own);
            for (int k = 0; k < own; k++)
                assert_int_equal(argument(&b, i, k), argument(&b, (i - tensors) * own + k, 1));
            assert_int_equal(argument(&b, i, own), argument(&b, b.n - 3, own));
        }
        release(&b);
        buffer_release(&source);
    }
}

static void test_mistakes(void **state)
{
    (void)state;
    fails("//@ op y = aten.rleu(x)\n" Z_LINE, 1, "operator aten.rleu is not in the library");
    fails("//@ op y aten.relu(x)\n" Z_LINE, 1, "expected '='");
    fails("//@ op y = aten.relu(x, 1)\n" Z_LINE, 1, "1 of 2 arguments fit no parameter");
    fails("//@ op y = aten.relu(q)\n" Z_LINE, 1, "unknown name 'q'");
    fails("//@ op y = aten.relu(y)\n" Z_LINE, 1, "y is an argument of this op and its result");
    fails("//@ op y = aten.relu(w)\n" Z_LINE, 1,
          "the result is float32 [33], but the output y is float32 [7, 33] (for the workload check "
          "rows=7 cols=33)");
    fails("//@ op y = aten.dropout(w, 0.5, False)\n" Z_LINE, 1, "the result is float32 [33]");
    fails("//@ op y = aten.eq.Scalar(x, 0)\n" Z_LINE, 1, "the result is bool [7, 33]");
    fails("//@ op x = aten.relu(w)\n//@ op y = aten.relu(x)\n" Z_LINE, 1,
          "the result x has the name of an input");
    fails("//@ op cols = aten.relu(w)\n//@ op y = aten.relu(x)\n" Z_LINE, 1,
          "the result cols has the name of an axis");
    fails("//@ buffer float t[4]\n//@ op t = aten.relu(w)\n//@ op y = aten.relu(x)\n" Z_LINE, 2,
          "the result t has the name of a buffer");
    fails("//@ op h = aten.relu(w)\n//@ op h = aten.relu(x)\n//@ op y = aten.relu(x)\n" Z_LINE, 2,
          "h is already the result of the op on line 1");
    fails("//@ op h = aten.relu_(x)\n//@ op y = aten.relu(h)\n" Z_LINE, 1,
          "changes its first argument, which is memory of an input");
    fails("//@ op v = aten.dropout(x, 0.5, False)\n//@ op h = aten.relu_(v)\n"
          "//@ op y = aten.relu(h)\n" Z_LINE,
          2, "changes its first argument, which is memory of an input");
    fails("//@ launch f<<<1, 1>>>(h, y)\n//@ op h = aten.relu(x)\n" Z_LINE, 1,
          "h is used here, and the op on line 2 gives it");
    fails("//@ op y = aten.add.Tensor(x, h)\n//@ op h = aten.relu(x)\n" Z_LINE, 1,
          "unknown name 'h'");
    fails("//@ for t in 0..3\n//@ op y = aten.relu(x)\n" Z_LINE, 2, "repeats the launch");
    fails("//@ op h = aten.relu(x)\n", 0, "no launch takes the output y, and no op gives it");
    fails("//@ op max = aten.relu(x)\n", 1, "is a word of the plan");
    fails("//@ op y = aten.dropout(x, 0.5, True)\n" Z_LINE, 1, "only evaluation mode");
    fails("//@ buffer unsigned t[4]\n//@ op h = aten.relu(t)\n", 0, "no launch takes the output");
}

/* Only a library's transposed convolution, not the plain kernel that stands for it. */
static int varies(const char *source, int routes)
{
    Plan plan;
    PlanOps ops;
    Fault f = {0};
    if (plan_parse(source, strlen(source), 0, &plan, &f) ||
        plan_ops_build(&plan, &task, &task.workloads[0], routes, &ops, &f))
        fail_msg("%s", f.message);
    int vary = plan_ops_vary(&ops);
    plan_ops_release(&ops);
    plan_release(&plan);
    return vary;
}

static void test_vary(void **state)
{
    (void)state;
    const char *plain = "//@ op v = aten.view(x, [11, 7, 3])\n//@ op h = aten.conv1d(x, v)\n",
               *transposed = "//@ op v = aten.view(x, [7, 11, 3])\n"
                             "//@ op h = aten.conv_transpose1d(x, v)\n";
    assert_int_equal(varies(plain, 1), 0);
    assert_int_equal(varies(transposed, 1), 1);
    assert_int_equal(varies(transposed, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_element_types),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_launches_take_results),
        cmocka_unit_test(test_memory_is_shared),
        cmocka_unit_test(test_source),
        cmocka_unit_test(test_long_lists),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_vary),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("plan_ops", tests, NULL, NULL);
}
