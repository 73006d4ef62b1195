/* Sums of products that become products of sums: the same results as the task's own graph, at each of its
 * check sizes. Both graphs run in float64. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "generate/rewrite/less.h"
#include "tasks/task_graph.h"
#include "tests/small_draft.h"

enum { MOST = 8 };

typedef struct {
    DraftAxis axes[MOST];
    DraftTensor in[MOST], out[MOST];
    Draft d;
} Several;

/* Shapes end in NULL; the lists end in what has no name. */
static Task *task_of(Several *s, const char *const *lines)
{
    s->d = (Draft){.name = "small", .level = 1, .axes = s->axes, .inputs = s->in, .lines = lines};
    s->d.outputs = s->out;
    while (lines[s->d.n_lines]) s->d.n_lines++;
    while (s->axes[s->d.n_axes].name) s->d.n_axes++;
    for (; s->in[s->d.n_inputs].name; s->d.n_inputs++) {
        DraftTensor *x = &s->in[s->d.n_inputs];
        x->dtype = DTYPE_F32;
        while (x->shape[x->rank]) x->rank++;
    }
    for (; s->out[s->d.n_outputs].name; s->d.n_outputs++) {
        s->out[s->d.n_outputs].dtype = DTYPES;
        s->out[s->d.n_outputs].rank = -1;
    }
    return planned(&s->d);
}

typedef struct {
    GraphBound *b;
    double *out[MOST];
} Ran;

static void run(const Task *t, const Workload *w, double *const *in, Ran *r)
{
    Error err;
    if (task_graph_bind(t, w, &r->b, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < t->n_outputs; i++) {
        const OpTensor *y = &r->b->values[t->graph->output[i]].tensor;
        r->out[i] = memory_array((size_t)op_elements(y), sizeof(double));
    }
    if (graph_run(r->b, (const double *const *)in, r->out, NULL, &err)) fail_msg("%s", err.text);
}

static void compare_at(const Task *t, const Task *less, const Workload *w)
{
    Ran a, b;
    Random r;
    random_init(&r, 7, 0);
    double *in[MOST];
    for (int i = 0; i < t->n_inputs; i++) {
        size_t n;
        assert_int_equal(task_elements(t, w, &t->inputs[i], &n, NULL), 0);
        in[i] = memory_array(n, sizeof **in);
        for (size_t k = 0; k < n; k++) in[i][k] = random_normal(&r);
    }
    run(t, w, in, &a);
    run(less, w, in, &b);
    for (int i = 0; i < t->n_outputs; i++) {
        int64_t n = op_elements(&a.b->values[t->graph->output[i]].tensor);
        assert_int_equal(n, op_elements(&b.b->values[less->graph->output[i]].tensor));
        for (int64_t k = 0; k < n; k++)
            if (fabs(a.out[i][k] - b.out[i][k]) > 1e-11 * (1 + fabs(a.out[i][k])))
                fail_msg("%s[%lld] is %.17g, expected %.17g", t->outputs[i].name, (long long)k,
                         b.out[i][k], a.out[i][k]);
        free(a.out[i]);
        free(b.out[i]);
    }
    for (int i = 0; i < t->n_inputs; i++) free(in[i]);
    graph_bound_free(a.b);
    graph_bound_free(b.b);
}

/* Flops at the timed size. */
static double flops_of(const Task *t)
{
    double bytes, flops;
    assert_int_equal(task_graph_cost(t, task_workload(t, ROLE_TIME), &bytes, &flops, NULL), 0);
    return flops;
}

static void expect_less(Several *s, const char *const *lines, double share)
{
    Task *t = task_of(s, lines), *less;
    Error err;
    Genes genes = {0};
    double bytes, least;
    if (rewrite_task(t, NULL, &less, &err)) fail_msg("%s", err.text);
    assert_non_null(less);
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role == ROLE_CHECK) compare_at(t, less, &t->workloads[i]);
    if (flops_of(less) > share * flops_of(t))
        fail_msg("%g flops of %g", flops_of(less), flops_of(t));
    /* No verdict asks for more work than is left. */
    assert_int_equal(task_least_cost(t, task_workload(t, ROLE_TIME), &bytes, &least, NULL), 0);
    if (least > flops_of(less)) fail_msg("%g flops at least, %g", least, flops_of(less));
    rewrite_free(less);
    /* A schedule undoes each of them. */
    rewrite_task(t, &genes, &less, &err);
    rewrite_free(less);
    assert_true(genes.n > 0);
    for (int i = 0; i < genes.n; i++) genes_give(&genes, genes.point[i].of, GENE_LESS, 0);
    assert_int_equal(rewrite_task(t, &genes, &less, &err), 0);
    assert_null(less);
    genes_free(&genes);
    task_free(t);
}

static void test_sums_of_columns_are_products_with_summed_weights(void **state)
{
    static const char *const lines[] = {"h = aten.linear(x, w, b)",
                                        "d = aten.sub(h, v)",
                                        "e = aten.mul(d, 0.5)",
                                        "y = aten.mean.dim(e, [1], keepdim=True)",
                                        "t = aten.t(w)",
                                        "g = aten.matmul(x, t)",
                                        "i = aten.div(g, 2)",
                                        "z = aten.sum.dim_IntList(i, [-1])",
                                        "k = aten.linear(x, w, b)",
                                        "l = aten.unsqueeze(k, 1)",
                                        "q = aten.avg_pool1d(l, [4], stride=[4])",
                                        NULL};
    Several s = {.axes = {{"rows", NULL, 64}, {"cols", NULL, 256}, {"features", NULL, 250}},
                 .in = {{.name = "x", .shape = {"rows", "cols"}},
                        {.name = "w", .shape = {"features", "cols"}},
                        {.name = "b", .shape = {"features"}},
                        {.name = "v", .shape = {"features"}}},
                 .out = {{.name = "y"}, {.name = "z"}, {.name = "q"}}};
    (void)state;
    expect_less(&s, lines, 0.2);
}

/* Strides, borders and taps that are apart, in one to three dimensions, of which all or some are folded. */
static void test_sums_of_places_are_sums_over_taps(void **state)
{
    static const char *const lines[] = {
        "a = aten.conv_transpose2d.input(x, w, b, [2, 3], [1, 1], [1, 2])",
        "c = aten.mul(a, 0.5)",
        "y = aten.mean.dim(c, [2, 3], keepdim=True)",
        "d = aten.conv_transpose2d.input(x, w, b, [1, 1], [0, 2], [0, 0], 1, [1, 2])",
        "z = aten.sum.dim_IntList(d, [3])",
        "e = aten.conv2d(x, v, None, [1, 1], [1, 0], [1, 2])",
        "p = aten.sum.dim_IntList(e, [2], keepdim=True)",
        "f = aten.conv2d(x, v, None, [1, 1], [1, 0])",
        "q = aten.mean.dim(f, [2, 3])",
        NULL};
    Several s = {.axes = {{"batch", NULL, 4}, {"height", NULL, 24}, {"width", NULL, 20}},
                 .in = {{.name = "x", .shape = {"batch", "2", "height", "width"}},
                        {.name = "w", .shape = {"2", "48", "3", "3"}},
                        {.name = "v", .shape = {"48", "2", "3", "3"}},
                        {.name = "b", .shape = {"48"}}},
                 .out = {{.name = "y"}, {.name = "z"}, {.name = "p"}, {.name = "q"}}};
    (void)state;
    expect_less(&s, lines, 0.5);
}

/* Filters of one tap, with a bias, in groups, in two and three dimensions. */
static void test_averages_of_convolutions_are_convolutions_of_averages(void **state)
{
    static const char *const lines[] = {"a = aten.conv2d(x, w, b)",
                                        "y = aten.avg_pool2d(a, [2, 3], stride=[2, 3])",
                                        "c = aten.conv2d(x, v, None, [1, 1], [0, 0], [1, 1], 2)",
                                        "z = aten.avg_pool2d(c, 3, 2)",
                                        "d = aten.unsqueeze(x, 2)",
                                        "u = aten.unsqueeze(w, 2)",
                                        "e = aten.conv3d(d, u)",
                                        "p = aten.avg_pool3d(e, [1, 2, 2])",
                                        NULL};
    Several s = {.axes = {{"batch", NULL, 4}, {"height", NULL, 24}, {"width", NULL, 20}},
                 .in = {{.name = "x", .shape = {"batch", "8", "height", "width"}},
                        {.name = "w", .shape = {"48", "8", "1", "1"}},
                        {.name = "v", .shape = {"48", "4", "1", "1"}},
                        {.name = "b", .shape = {"48"}}},
                 .out = {{.name = "y"}, {.name = "z"}, {.name = "p"}}};
    (void)state;
    expect_less(&s, lines, 0.5);
}

/* The least flops of a product of n x n matrices, in n * n * n. */
static void expect_least(const char *const *lines, double share)
{
    Several s = {.axes = {{"n", NULL, 256}},
                 .in = {{.name = "x", .shape = {"n", "n"}}, {.name = "w", .shape = {"n", "n"}}},
                 .out = {{.name = "y"}}};
    Task *t = task_of(&s, lines);
    double bytes, flops;
    const double cube = 256. * 256 * 256;
    assert_int_equal(task_least_cost(t, task_workload(t, ROLE_TIME), &bytes, &flops, NULL), 0);
    if (fabs(flops / cube - share) > 0.05)
        fail_msg("%g flops of %g, expected %g", flops, cube, share);
    task_free(t);
}

static void expect_none(Several *s, const char *const *lines)
{
    Task *t = task_of(s, lines), *less;
    Error err;
    assert_int_equal(rewrite_task(t, NULL, &less, &err), 0);
    assert_null(less);
    task_free(t);
}

/* The product and its factor are not needed, whatever they are. */
static void test_constants_choose(void **state)
{
    static const char *const lines[] = {"h = aten.linear(x, w)",
                                        "o = aten.ones_like(h, dtype=torch.bool)",
                                        "q = aten.logical_not(o)",
                                        "r = aten.exp(x)",
                                        "p = aten.where.self(q, h, r)",
                                        "y = aten.masked_fill.Scalar(p, q, 3.0)",
                                        "z = aten.where.self(o, x, r)",
                                        NULL},
                             *const varies[] = {"h = aten.linear(x, w)", "o = aten.gt.Scalar(h, 0)",
                                                "y = aten.where.self(o, h, x)", NULL},
                             *const written[] = {"o = aten.ones_like(x, dtype=torch.bool)",
                                                 "q = aten.select.int(o, 0, 0)",
                                                 "r = aten.zero_(q)",
                                                 "s = aten.linear(x, w)",
                                                 "y = aten.where.self(o, s, x)",
                                                 NULL};
    Several s = {.axes = {{"n", NULL, 256}},
                 .in = {{.name = "x", .shape = {"n", "n"}}, {.name = "w", .shape = {"n", "n"}}},
                 .out = {{.name = "y"}, {.name = "z"}}};
    Several t = {.axes = {{"n", NULL, 256}},
                 .in = {{.name = "x", .shape = {"n", "n"}}, {.name = "w", .shape = {"n", "n"}}},
                 .out = {{.name = "y"}}};
    Several u = t;
    (void)state;
    expect_less(&s, lines, 0.1);
    expect_none(&t, varies);
    expect_none(&u, written);
}

static void test_triangles_cost_what_they_leave(void **state)
{
    static const char *const upper[] = {"h = aten.mm(x, w)", "y = aten.triu(h)", NULL},
                             *const all[] = {"a = aten.tril(x)", "b = aten.tril(w)",
                                             "h = aten.mm(a, b)", "y = aten.tril(h)", NULL},
                             *const itself[] = {"s = aten.add.Tensor(x, w)", "a = aten.tril(s)",
                                                "h = aten.mm(a, a)", "y = aten.tril(h)", NULL},
                             *const none[] = {"a = aten.tril(x)", "b = aten.triu(w, 1)",
                                              "h = aten.mm(a, b)", "y = aten.relu(h)", NULL},
                             *const diagonal[] = {"a = aten.triu(x)", "b = aten.tril(a)",
                                                  "h = aten.mm(w, b)", "y = aten.relu(h)", NULL},
                             *const read[] = {"h = aten.mm(x, w)", "u = aten.triu(h)",
                                              "y = aten.add.Tensor(u, h)", NULL};
    (void)state;
    expect_least(upper, 1);
    expect_least(all, 1. / 3);
    expect_least(itself, 1. / 3);
    expect_least(none, 2. / 3);
    expect_least(diagonal, 2. / 256);
    expect_least(read, 2);
}

/* What is read elsewhere has to be computed; a maximum is no sum, a stride leaves elements out, and a
 * convolution of few filters takes less than the sums of its taps. */
static void test_other_sums_stay(void **state)
{
    static const char *const lines[] = {"h = aten.linear(x, w)",
                                        "y = aten.sum.dim_IntList(h, [1])",
                                        "z = aten.relu(h)",
                                        "g = aten.relu(z)",
                                        "p = aten.sum.dim_IntList(g, [1])",
                                        "q = aten.mean.dim(h, [0])",
                                        NULL},
                             *const strided[] = {"u = aten.unsqueeze(x, 1)",
                                                 "h = aten.conv1d(u, w, None, [2])",
                                                 "y = aten.sum.dim_IntList(h, [2])", NULL},
                             *const few[] = {"u = aten.unsqueeze(x, 1)", "h = aten.conv1d(u, w)",
                                             "y = aten.sum.dim_IntList(h, [2])", NULL};
    Several s = {
        .axes = {{"rows", NULL, 64}, {"cols", NULL, 32}},
        .in = {{.name = "x", .shape = {"rows", "cols"}}, {.name = "w", .shape = {"64", "cols"}}},
        .out = {{.name = "y"}, {.name = "z"}, {.name = "p"}, {.name = "q"}}};
    Several t = {
        .axes = {{"rows", NULL, 64}, {"cols", NULL, 32}},
        .in = {{.name = "x", .shape = {"rows", "cols"}}, {.name = "w", .shape = {"4", "1", "3"}}},
        .out = {{.name = "y"}}};
    Several u = t;
    (void)state;
    expect_none(&s, lines);
    expect_none(&t, strided);
    expect_none(&u, few);
}

/* Of zeros around them, of another divisor, of borders, of strides of 1, of an input, of results that are
 * read twice. */
static void test_other_averages_stay(void **state)
{
    static const char *const lines[][4] = {
        {"a = aten.conv2d(x, w, b)", "y = aten.avg_pool2d(a, [2, 2], [2, 2], [1, 1])"},
        {"a = aten.conv2d(x, w, b)",
         "y = aten.avg_pool2d(a, [2, 2], [2, 2], [0, 0], False, True, 3)"},
        {"a = aten.conv2d(x, w, b)", "y = aten.avg_pool2d(a, [2, 2], [2, 2], [0, 0], True)"},
        {"a = aten.conv2d(x, w, b)", "y = aten.avg_pool2d(a, [2, 2], [1, 1])"},
        {"a = aten.conv2d(x, w, b, [1, 1], [1, 1])", "y = aten.avg_pool2d(a, [2, 2])"},
        {"a = aten.avg_pool2d(x, [2, 2])", "y = aten.conv2d(a, w, b)"},
        {"a = aten.conv2d(x, w, b)", "c = aten.avg_pool2d(a, [2, 2])",
         "d = aten.sum.dim_IntList(a, [2, 3], keepdim=True)", "y = aten.mul(c, d)"}};
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *text[5] = {lines[i][0], lines[i][1], lines[i][2], lines[i][3], NULL};
        Several s = {.axes = {{"batch", NULL, 4}, {"height", NULL, 24}, {"width", NULL, 20}},
                     .in = {{.name = "x", .shape = {"batch", "8", "height", "width"}},
                            {.name = "w", .shape = {"6", "8", "1", "1"}},
                            {.name = "b", .shape = {"6"}}},
                     .out = {{.name = "y"}}};
        expect_none(&s, text);
    }
}

/* Neither a product nor a convolution is left, and a kernel for the sums is followed by one. */
static void test_first_kernels_have_no_products(void **state)
{
    static const char *const names[] = {
        "k2_14_gemm_divide_sum_scaling",
        "k2_44_convtranspose2d_multiply_globalavgpool_globalavgpool_mean"};
    const int kernels[] = {2, 3}; /* the latter stores which places are inside of the border */
    TaskSet tasks = {0};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Generated g;
        Error err;
        int at = taskset_need(&tasks, NULL, names[i], &err);
        if (at < 0 || generate_least(tasks.tasks[at], NULL, NULL, &g, &err))
            fail_msg("%s", err.text);
        assert_int_equal(g.n_kernels, kernels[i]);
        assert_int_equal(g.n_lines, 0);
        free(g.source);
    }
    taskset_release(&tasks);
}

/* A number of the largest column that two results need: an element of the second one would find it anew. */
static void test_the_model_stores_what_two_kernels_need(void **state)
{
    static const char *const lines[] = {"largest = aten.argmax(x, -1)",
                                        "y = aten.embedding(table, largest)",
                                        "z = aten.to.dtype(largest, torch.int32)", NULL};
    static const char *const asked[] = {"", "//@ schedule largest store=no"};
    Several s = {.axes = {{"rows", NULL, 16384}, {"codes", NULL, 1024}, {"width", NULL, 64}},
                 .in = {{.name = "x", .shape = {"rows", "codes"}},
                        {.name = "table", .shape = {"codes", "width"}}},
                 .out = {{.name = "y"}, {.name = "z"}}};
    Task *t = task_of(&s, lines);
    (void)state;
    for (int i = 0; i < 2; i++) {
        Genes genes = {0};
        Generated g;
        Error err;
        int rc = genes_read(&genes, asked[i], strlen(asked[i]), &err);
        if (rc || generate_least(t, &genes, NULL, &g, &err)) fail_msg("%s", err.text);
        const GenePoint *p = genes_find(&genes, "largest", GENE_STORE);
        assert_non_null(p);
        assert_int_equal(p->value, !i);
        assert_null(genes_unused(&genes));
        free(g.source);
        genes_free(&genes);
    }
    task_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_of_columns_are_products_with_summed_weights),
        cmocka_unit_test(test_sums_of_places_are_sums_over_taps),
        cmocka_unit_test(test_averages_of_convolutions_are_convolutions_of_averages),
        cmocka_unit_test(test_constants_choose),
        cmocka_unit_test(test_triangles_cost_what_they_leave),
        cmocka_unit_test(test_other_sums_stay),
        cmocka_unit_test(test_other_averages_stay),
        cmocka_unit_test(test_first_kernels_have_no_products),
        cmocka_unit_test(test_the_model_stores_what_two_kernels_need),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
