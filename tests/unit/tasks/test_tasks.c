/* The twelve tasks: they load, their shapes and costs are right, their references compute what is
 * written on the tin, and the gate tells work from no work. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tasks/gate.h"
#include "tests/fixture_path.h"

static TaskSet set;

static int load_all(void **state)
{
    (void)state;
    Error err;
    return taskset_load(fixture_path("tasks"), NULL, &set, &err);
}

static int release_all(void **state)
{
    (void)state;
    taskset_release(&set);
    return 0;
}

static Task *find(const char *name)
{
    Task *t = taskset_find(&set, name, strlen(name));
    assert_non_null(t);
    return t;
}

static void test_set(void **state)
{
    (void)state;
    int heldout[4] = {0}, level[4] = {0};
    assert_int_equal(set.n, 12);
    for (int i = 0; i < set.n; i++) {
        if (i) assert_true(strcmp(set.tasks[i - 1]->name, set.tasks[i]->name) < 0);
        level[set.tasks[i]->level]++;
        heldout[set.tasks[i]->level] += set.tasks[i]->heldout;
    }
    assert_int_equal(level[1], 8);
    assert_int_equal(level[2], 3);
    assert_int_equal(level[3], 1);
    assert_int_equal(heldout[1], 2);
    assert_int_equal(heldout[2], 1);
    assert_int_equal(heldout[3], 0);
    assert_true(find("conv3d_norm_min_clamp")->degenerate && find("diag_matmul")->degenerate);
    assert_null(taskset_find(&set, "softmaxx", 8));
    assert_ptr_equal(taskset_find(&set, "softmaxx", 7), find("softmax"));
}

static void test_named_tasks_only(void **state)
{
    (void)state;
    TaskSet two;
    Error err;
    assert_int_equal(taskset_load(fixture_path("tasks"), "softmax,relu", &two, &err), 0);
    assert_int_equal(two.n, 2);
    assert_string_equal(two.tasks[0]->name, "relu");
    assert_string_not_equal(two.digest, set.digest);
    taskset_release(&two);
    /* A folder that holds sets alone: all of its tasks. */
    assert_int_equal(taskset_load(fixture_path("tasks/kernelbench"), NULL, &two, &err), 0);
    assert_true(two.n > 200);
    taskset_release(&two);
    assert_int_equal(taskset_load(fixture_path("tasks"), "relu,nosuch", &two, &err), -1);
    assert_non_null(strstr(err.text, "no task \"nosuch\""));
}

static void test_shape_and_cost(void **state)
{
    (void)state;
    Task *t = find("conv3d_norm_min_clamp");
    Workload w = {.role = ROLE_CHECK, .axis = {2, 3, 4, 7}}; /* batch cin cout d */
    int64_t shape[TASK_MAX_RANK];
    size_t n;
    double bytes, flops;
    Error err;
    assert_int_equal(task_shape(t, &w, &t->outputs[0], shape, &err), 0);
    const int64_t expected[] = {2, 4, 5, 5, 5};
    assert_memory_equal(shape, expected, sizeof expected);
    assert_int_equal(task_elements(t, &w, &t->inputs[1], &n, &err), 0);
    assert_int_equal(n, 4 * 3 * 27);
    w.axis[3] = 2;
    assert_int_equal(task_shape(t, &w, &t->outputs[0], shape, &err), -1);
    assert_non_null(strstr(err.text, "\"d - 2\" is 0"));
    t = find("matmul");
    Workload v = {.role = ROLE_CHECK, .axis = {2, 3, 4}};
    assert_int_equal(task_cost(t, &v, &bytes, &flops, &err), 0);
    assert_true(bytes == 4 * (8 + 12 + 6) && flops == 48);
}

static void reference(const char *name, const int64_t *axis, const double *const *in, double *out)
{
    Task *t = find(name);
    Workload w = {.role = ROLE_CHECK};
    Error err;
    for (int i = 0; i < t->n_axes; i++) w.axis[i] = axis[i];
    if (task_reference(t, &w, in, &out, &err)) fail_msg("%s", err.text);
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12 * (1 + fabs(want))))
        fail_msg("%.17g, expected %.17g", got, want);
}

/* Values worked out by hand. */
static void test_references(void **state)
{
    (void)state;
    double x[] = {1, -2, 3, 4, 5, -6}, w[] = {2, 0.5, -1}, b[] = {1, 0, 2}, out[8];
    const double *in[5] = {x, w, b};
    reference("relu", (int64_t[]){6}, in, out);
    near(out[1], 0), near(out[4], 5);
    reference("gelu", (int64_t[]){6}, in, out);
    near(out[0], 0.84134474606854293), near(out[1], -0.045500263896358413);
    reference("row_sum", (int64_t[]){2, 3}, in, out);
    near(out[0], 2), near(out[1], 3);
    reference("softmax", (int64_t[]){3, 2}, in, out); /* rows (1,-2) (3,4) (5,-6) */
    near(out[0], 1 / (1 + exp(-3))), near(out[2], 1 / (1 + exp(1))),
        near(out[3], 1 / (1 + exp(-1)));
    reference("transpose", (int64_t[]){2, 3}, in, out);
    near(out[1], 4), near(out[2], -2), near(out[4], 3);
    reference("layernorm", (int64_t[]){2, 3}, in, out); /* row 0: mean 2/3, var 38/9 */
    near(out[0], (1 - 2.0 / 3) / sqrt(38.0 / 9 + 1e-5) * 2 + 1);
    near(out[2], (3 - 2.0 / 3) / sqrt(38.0 / 9 + 1e-5) * -1 + 2);
    const double *mm[3] = {x, w, b};
    reference("matmul", (int64_t[]){2, 1, 3}, mm,
              out); /* (1 -2 3) . (2 .5 -1) = -2; (4 5 -6) . w = 16.5 */
    near(out[0], -2), near(out[1], 16.5);
    reference("matmul_bias_relu", (int64_t[]){2, 1, 3}, mm, out);
    near(out[0], 0), near(out[1], 17.5);
    const double *diag[2] = {w, x};
    reference("diag_matmul", (int64_t[]){3, 2}, diag, out);
    near(out[1], -4), near(out[2], 1.5), near(out[5], 6);
    const double *norm[3] = {x, b, w};
    reference("residual_rmsnorm", (int64_t[]){1, 3}, norm, out); /* h = 2 -2 5 */
    near(out[2], 5 / sqrt(33.0 / 3 + 1e-6) * -1);
}

static void test_attention(void **state)
{
    (void)state;
    /* one head, two positions, two elements: position 0 sees itself alone */
    double q[] = {1, 0, 0, 2}, k[] = {1, 1, 3, 1}, v[] = {1, 2, 5, 6}, o[4];
    const double *in[] = {q, k, v};
    reference("attention", (int64_t[]){1, 2, 2}, in, o);
    near(o[0], 1), near(o[1], 2);
    near(o[2], 3), near(o[3], 4); /* q1.k0 = q1.k1 = 2: equal weights */
    double steep[] = {1, 0, 2, 0};
    in[0] = steep;
    reference("attention", (int64_t[]){1, 2, 2}, in, o); /* q1.k0 = 2, q1.k1 = 6, over sqrt(2) */
    double p1 = 1 / (1 + exp(-4 / sqrt(2.0)));
    near(o[2], 1 + 4 * p1), near(o[3], 2 + 4 * p1);
}

static void test_gate(void **state)
{
    (void)state;
    for (int i = 0; i < set.n; i++) {
        GateResult r;
        Error err;
        if (task_gate(set.tasks[i], &r, &err)) fail_msg("%s", err.text);
        if (r.refused) fail_msg("%s: %s", set.tasks[i]->name, r.reason);
    }
    GateResult r;
    Error err;
    Task *conv = find("conv3d_norm_min_clamp");
    task_gate(conv, &r, &err);
    assert_non_null(strstr(r.reason, "zeros"));
    conv->degenerate = 0; /* the same task without its tag */
    task_gate(conv, &r, &err);
    assert_int_equal(r.refused, 1);
    conv->degenerate = 1;
    Task *relu = find("relu");
    relu->atol[DTYPE_F32] = 0.9; /* a tolerance that swallows the work */
    Workload saved = relu->workloads[0];
    relu->workloads[0].axis[0] = 2;
    task_gate(relu, &r, &err);
    assert_int_equal(r.refused, 1);
    relu->atol[DTYPE_F32] = 0;
    relu->workloads[0] = saved;
}

/* A norm of groups of one channel, of which an embedding is no part, and of two. */
static void test_gate_input(void **state)
{
    (void)state;
    static const char text[] =
        "{\"name\": \"groups\", \"description\": \"d\", \"op_type\": \"norm\", \"tags\": "
        "[\"graph\"],"
        "\"level\": 1, \"split\": \"train\", \"axes\": {\"b\": {\"description\": \"d\"}, \"c\": "
        "{\"description\": \"d\"}, \"n\": {\"description\": \"d\"}}, \"inputs\": {"
        "\"x\": {\"dtype\": \"float32\", \"shape\": [\"b\", \"c\", \"n\"], \"draw\": \"normal\"},"
        "\"t\": {\"dtype\": \"float32\", \"shape\": [\"b\", \"c\", \"1\"], \"draw\": \"normal\"}},"
        "\"outputs\": {\"y\": {\"dtype\": \"float32\", \"shape\": [\"b\", \"c\", \"n\"]}},"
        "\"graph\": [\"h = aten.add.Tensor(x, t)\", \"y = aten.group_norm(h, 4)\"],"
        "\"tolerance\": {\"float32\": {\"atol\": 1e-5, \"rtol\": 1e-5}}, \"workloads\": ["
        "{\"role\": \"check\", \"axes\": {\"b\": 2, \"c\": 4, \"n\": 7}},"
        "{\"role\": \"check\", \"axes\": {\"b\": 3, \"c\": 8, \"n\": 5}},"
        "{\"role\": \"time\", \"axes\": {\"b\": 8, \"c\": 64, \"n\": 64}},"
        "{\"role\": \"sim\", \"axes\": {\"b\": 8, \"c\": 64, \"n\": 64}}]}";
    Task *t;
    Error err;
    GateResult r;
    GateFound f;
    if (task_parse("groups", text, &t, &err)) fail_msg("%s", err.text);
    if (task_gate(t, &r, &err)) fail_msg("%s", err.text);
    assert_int_equal(r.refused, 0); /* the second size refuses what ignores t */
    task_gate_workload(t, &t->workloads[0], &f, &err);
    assert_true(f.soft.refused && !f.null.refused);
    assert_int_equal(f.input[0], GATE_MOVES);
    assert_int_equal(f.input[1], GATE_STILL);
    task_gate_zeroed(t, &t->workloads[0], &r, &err);
    assert_non_null(strstr(r.reason, "takes the input t for zeros"));
    task_gate_zeroed(t, &t->workloads[1], &r, &err);
    assert_int_equal(r.refused, 0);
    t->workloads[1].axis[1] = 4; /* no size is left that does */
    task_gate(t, &r, &err);
    assert_int_equal(r.refused, 1);
    assert_non_null(strstr(r.reason, "other values of the input t move no output"));
    task_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_set),
                                       cmocka_unit_test(test_named_tasks_only),
                                       cmocka_unit_test(test_shape_and_cost),
                                       cmocka_unit_test(test_references),
                                       cmocka_unit_test(test_attention),
                                       cmocka_unit_test(test_gate),
                                       cmocka_unit_test(test_gate_input)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, load_all, release_all);
}
