/* First candidates of tasks: how many launches and op lines a graph becomes, and which expression a size
 * gets. Whether they compute what they should is for tests/shell/first.t.
 * Over 800 lines: a graph of a few lines for each choice of the generator, by the same helpers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "generate/first.h"
#include "generate/index/size.h"
#include "tests/small_draft.h"

static TaskSet tasks;

static const Task *task_named(const char *name)
{
    Error err;
    int at = taskset_need(&tasks, NULL, name, &err);
    if (at < 0) fail_msg("%s", err.text);
    return tasks.tasks[at];
}

static void test_graphs_become_few_kernels(void **state)
{
    static const struct {
        const char *task;
        int kernels, lines;
    } expected[] = {{"gate_norm_silu_bf16", 1, 0},
                    {"gelu_softmax", 1, 0},
                    {"scale_bias_flip", 1, 0},
                    {"k1_35_groupnorm", 1, 0},
                    {"k1_36_rmsnorm", 1, 0},
                    {"k1_91_cumsum_reverse", 1, 0},
                    {"k1_92_cumsum_exclusive", 1, 0}, /* its zeros are a scan's, too */
                    {"k1_94_mseloss", 2, 0},
                    {"k1_42_max_pooling_2d", 1, 0},
                    {"k1_51_argmax_over_a_dimension", 1, 0},
                    {"k1_82_conv_depthwise_2d_square_input_square_kernel", 1, 0},
                    {"k3_39_gru", 6, 11},
                    {"k3_41_grubidirectional", 6, 17},
                    {"k1_1_square_matrix_multiplication", 1, 0},
                    {"k2_76_gemm_add_relu", 1, 0}, /* the rest is the product's */
                    {"k2_59_matmul_swish_scaling", 1, 0},
                    {"k2_99_matmul_gelu_softmax", 2, 0},
                    {"k2_82_conv2d_tanh_scaling_biasadd_max", 1, 0}, /* with its pool */
                    /* Grouped, transposed, and of unequal strides: as the library has it. */
                    {"k1_75_conv_transposed_2d_asymmetric_input_asymmetric_kernel_str", 0, 1},
                    /* The depthwise sums lie in memory before they get channels last. */
                    {"k3_21_efficientnetmbconv", 3, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        Generated g, again;
        Error err;
        const Task *t = task_named(expected[i].task);
        if (generate_first(t, NULL, NULL, &g, &err)) fail_msg("%s", err.text);
        if (g.n_kernels != expected[i].kernels || g.n_lines != expected[i].lines)
            fail_msg("%s: %d kernels and %d op lines", t->name, g.n_kernels, g.n_lines);
        assert_int_equal(generate_first(t, NULL, NULL, &again, &err), 0);
        assert_string_equal(g.source, again.source);
        free(g.source);
        free(again.source);
    }
}

/* What smoothed labels have for all classes is a mean: a step with the number of classes would be another one
 * at each size. */
static void test_smoothed_labels_are_kernels(void **state)
{
    static const char *const lines[] = {
        "y = aten.cross_entropy_loss.default(x, t, None, 1, -100, 0.1)"};
    Small s = {
        .axes = {{"rows", NULL, 512}, {"cols", NULL, 512}},
        .inputs = {tensor("x", DTYPE_F32, "rows", "cols"), tensor("t", DTYPE_I64, "rows", NULL)}};
    Generated g;
    Error err;
    (void)state;
    small(&s, lines, 1, 2, 2);
    Task *t = planned(&s.d);
    if (generate_first(t, NULL, NULL, &g, &err)) fail_msg("%s", err.text);
    assert_int_equal(g.n_lines, 0);
    assert_in_range(g.n_kernels, 1, 3);
    free(g.source);
    task_free(t);
}

/* What a norm and the next sum read of a sum with a product lies in memory, where the product writes it. */
static void test_the_stream_of_residuals_lies_in_memory(void **state)
{
    static const char *const lines[] = {
        "a = aten.linear.default(s, w)", "k = aten.add.Tensor(x, a)",
        "n = aten.layer_norm.default(k, [cols], g, g, 1e-05)", "m = aten.linear.default(n, w)",
        "y = aten.add.Tensor(k, m)"};
    Small s = {
        .axes = {{"rows", NULL, 8192}, {"cols", NULL, 1024}},
        .inputs = {tensor("x", DTYPE_BF16, "rows", "cols"), tensor("s", DTYPE_BF16, "rows", "cols"),
                   tensor("g", DTYPE_BF16, "cols", NULL), tensor("w", DTYPE_BF16, "cols", "cols")}};
    Generated g;
    Error err;
    (void)state;
    small(&s, lines, 5, 2, 4);
    Task *t = planned(&s.d);
    if (generate_first(t, NULL, NULL, &g, &err)) fail_msg("%s", err.text);
    if (!strstr(g.source, "//@ buffer __nv_bfloat16 k[") ||
        !strstr(g.source, ">>>(k, g, n, rows, cols)"))
        fail_msg("%s", g.source);
    assert_int_equal(g.n_lines, 0);
    assert_int_equal(g.n_kernels, 3);
    free(g.source);
    task_free(t);
}

/* The texts that a task's first kernel has, and has not. */
static void test_what_several_kernels_need_is_computed_once(void **state)
{
    static const struct {
        const char *task, *there, *missing;
    } expected[] = {
        /* Its pool has channels last, as its convolution: a norm folds it, and another kernel reads it. */
        {"k2_11_convtranspose2d_batchnorm_tanh_maxpool_groupnorm", "buffer float max_pool2d_last[",
         "conv_transpose2d_last, group_norm,"},
        /* The smallest of a row is no part of the softmax. */
        {"k2_24_conv3d_min_softmax", "softmax", "conv3d_last, softmax,"},
        {"k2_42_convtranspose2d_globalavgpool_biasadd_logsumexp_sum_multi", "_parts[features",
         "part_19"},
        /* Few rows, whose elements lie apart by the layout alone, are folded by many blocks. */
        {"k2_38_convtranspose3d_avgpool_clamp_softmax_multiply", "[inner * batch * 33]",
         "stay as they"},
        /* What is folded of a convolution alone is folded by its kernel: filters, and outputs. */
        {"k2_36_convtranspose2d_min_sum_gelu_add", "convolve_fold_filters<128, 128, 3>(",
         "buffer float conv_transpose2d["},
        {"k2_67_conv2d_gelu_globalavgpool", "convolve_fold_outputs<64, 128, 4>(",
         "buffer float conv2d["},
        /* A norm behind a convolution gets its rows' statistics from the convolution's kernel. */
        {"k2_85_conv2d_groupnorm_scale_maxpool_clamp", "convolve_statistics<64, 128, 4>(",
         "part_8, batch * 16, (features * (height - 2) * (width - 2)) / 16)"},
        /* Sigmoids of rows that are mostly needless would take longer than the pass. */
        {"k2_21_conv2d_add_scale_sigmoid_groupnorm", "kernel_2<<<batch * 8, ", "_statistics<"},
        /* The norm's rows, of width * 2 elements, have their axes: neighbouring threads read channels. */
        {"k2_34_convtranspose3d_layernorm_gelu_scaling", "kernel_3<<<ceil_div(inner, 32) * (",
         "ceil_div(inner * batch * depth * height * 4, 32)"},
        /* What a thread computes of its place, and of its image's channel, several vectors share. */
        {"k1_33_batchnorm", "<<<(channels * batch) * ceil_div(height * width, 1024), 128>>>",
         ", 256>>>"},
        /* Its vectors are stored whole. */
        {"k1_33_batchnorm", "store_words(batch_norm + ", "*(Pack<float, V> *)(batch_norm"},
        /* Three blocks of parts a multiprocessor, all at once. */
        {"k1_100_hingeloss", "<<<396, 512>>>", "__launch_bounds__(512)"},
        /* The mean and the spread lie in memory before they are split. */
        {"k2_79_conv3d_multiply_instancenorm_clamp_multiply_max", "conv3d_last, ", "stay as they"}};
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        Generated g;
        Error err;
        const Task *t = task_named(expected[i].task);
        if (generate_first(t, NULL, NULL, &g, &err)) fail_msg("%s", err.text);
        if (!strstr(g.source, expected[i].there) || strstr(g.source, expected[i].missing))
            fail_msg("%s: %s", t->name, g.source);
        free(g.source);
    }
}

/* Columns beside rows where sums are needed, by what a graph makes of a product h. */
static void test_triangles_leave_sums_out(void **state)
{
    static const struct {
        const char *lines[5], *bands;
        int whole; /* the schedule undoes it */
    } expected[] = {
        {{"h = aten.mm(x, w)", "y = aten.triu(h)"}, "{{-1073741824, 1073741824}, ", 1},
        {{"h = aten.mm(x, w)", "r = aten.relu(h)", "y = aten.triu(r, 1)"}, "{{1, 1073741824}, ", 0},
        {{"h = aten.mm(x, w)", "l = aten.tril(h, 5)", "u = aten.triu(l, -3)", "y = aten.exp(u)"},
         "{{-3, 5}, ",
         0},
        {{"h = aten.mm(x, w)", "o = aten.ones_like(h, dtype=torch.bool)", "t = aten.tril(o)",
          "y = aten.where.self(t, h, x)"},
         "{{-1073741824, 0}, ",
         0},
        {{"h = aten.mm(x, w)", "o = aten.ones_like(h, dtype=torch.bool)", "t = aten.tril(o)",
          "q = aten.bitwise_not(t)", "y = aten.masked_fill.Scalar(h, q, -2.0)"},
         "{{-1073741824, 0}, ",
         0},
        /* Beside the numbers of a diagonal matrix there are zeros. */
        {{"u = aten.triu(x)", "l = aten.tril(u)", "h = aten.mm(l, w)", "y = aten.exp(h)"},
         "{{-1073741824, 1073741824}, {0, 0}, ",
         0},
        /* All elements are needed beside the triangle, or in the other order. */
        {{"h = aten.mm(x, w)", "u = aten.triu(h)", "y = aten.add.Tensor(u, h)"},
         "{{-1073741824, 1073741824}, ",
         0},
        {{"l = aten.tril(x)", "v = aten.triu(w, 2)", "t = aten.t(v)", "h = aten.mm(l, t)",
          "y = aten.exp(h)"},
         "{{-1073741824, 1073741824}, {-1073741824, 0}, {-1073741824, -2}}",
         0}};
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        Small s = {.axes = {{"n", NULL, 512}},
                   .inputs = {tensor("x", DTYPE_F32, "n", "n"), tensor("w", DTYPE_F32, "n", "n")}};
        int n = 0;
        while (n < 5 && expected[i].lines[n]) n++;
        small(&s, expected[i].lines, n, 1, 2);
        Task *t = planned(&s.d);
        Genes genes = {0};
        Generated g;
        Error err;
        genes_give(&genes, "h", GENE_ROUTE, ROUTE_TENSOR);
        if (expected[i].whole) genes_give(&genes, "h", GENE_LESS, 0);
        if (generate_first(t, &genes, NULL, &g, &err)) fail_msg("%s", err.text);
        const char *bands = strstr(g.source, "Bands bands = ");
        if (!bands ||
            strncmp(bands + strlen("Bands bands = "), expected[i].bands, strlen(expected[i].bands)))
            fail_msg("%zu: %.90s", i, bands ? bands : "none");
        free(g.source);
        genes_free(&genes);
        task_free(t);
    }
}

static void test_a_task_without_a_graph_is_refused(void **state)
{
    Generated g;
    Error err;
    (void)state;
    assert_int_equal(generate_first(task_named("relu"), NULL, NULL, &g, &err), -1);
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "relu has no graph"));
}

/* Neither of two axes can have another size while the other one stays. */
static void test_axes_that_are_tied_are_no_numbers(void **state)
{
    static const char *const lines[] = {"a = aten.slice.Tensor(x, 1, 0, end=-1)",
                                        "b = aten.slice.Tensor(z, 0, 1, end=9223372036854775807)",
                                        "c = aten.exp(a)", "s = aten.mm(c, b)", "y = aten.mean(s)"};
    Small s = {.axes = {{"rows", NULL, 8}, {"cols", NULL, 64}, {"cols_1", NULL, 64}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols"),
                          tensor("z", DTYPE_F32, "cols_1", "rows")}};
    Generated g;
    Error err;
    (void)state;
    small(&s, lines, 5, 3, 2);
    Task *t = planned(&s.d);
    if (generate_first(t, NULL, NULL, &g, &err)) fail_msg("%s", err.text);
    if (!strstr(g.source, "(cols - 1)")) fail_msg("%s", g.source);
    *strstr(g.source, "extern \"C\"") = 0; /* what calls the body names the timed sizes */
    if (strstr(g.source, "63")) fail_msg("%s", g.source);
    free(g.source);
    task_free(t);
}

static void test_the_last_row_has_an_expression(void **state)
{
    static const char *const lines[] = {"s = aten.select.int(x, 0, -1)", "y = aten.relu(s)"};
    Small s = {.axes = {{"rows", NULL, 24}}, .inputs = {tensor("x", DTYPE_F32, "rows", "40")}};
    Generated g;
    Error err;
    (void)state;
    small(&s, lines, 2, 1, 1);
    Task *t = planned(&s.d);
    if (generate_first(t, NULL, NULL, &g, &err)) fail_msg("%s", err.text);
    if (g.n_kernels != 1 || !strstr(g.source, "(rows - 1) * 40")) fail_msg("%s", g.source);
    free(g.source);
    task_free(t);
}

/* The module has more rows than the timed sizes; a kernel for 16 rows reads its weights again for each 16. */
static void test_own_sizes_choose_the_schedule(void **state)
{
    const Task *t = task_named("k3_1_mlp");
    Task *own = size_own(t);
    const Task *const sizes[] = {t, own};
    static const char *const route[] = {"//@ schedule linear route=rows",
                                        "//@ schedule linear route=tensor"};
    Error err;
    (void)state;
    assert_non_null(own);
    assert_null(size_own(own));
    assert_null(size_own(task_named("relu")));
    for (int i = 0; i < 2; i++) {
        Genes genes = {0};
        Generated g;
        if (generate_first(sizes[i], &genes, NULL, &g, &err)) fail_msg("%s", err.text);
        if (!strstr(g.source, route[i])) fail_msg("%s", g.source);
        genes_free(&genes);
        free(g.source);
    }
    free(own);
}

/* The schedules that were the fastest ones on a GPU at the modules' own sizes. */
static void test_measured_schedules_are_the_default(void **state)
{
    static const char *const schedule[][2] = {
        {"k1_21_sigmoid", " items=1 "},
        {"k1_27_selu", " items=2 "},
        {"k1_12_matmul_with_diagonal_matrices", " items=2 "},
        {"k1_47_sum_reduction_over_a_dimension", " lanes=16 items=4"},
        {"k1_51_argmax_over_a_dimension", " lanes=16 items=4"},
        {"k1_39_l2norm", " lanes=1024 keep=none"},
        {"k1_93_masked_cumsum", " vec=4 lanes=256 "}};
    (void)state;
    for (size_t i = 0; i < sizeof schedule / sizeof *schedule; i++) {
        const Task *t = task_named(schedule[i][0]);
        Task *own = size_own(t);
        Genes genes = {0};
        Generated g;
        Error err;
        if (generate_first(own ? own : t, &genes, NULL, &g, &err)) fail_msg("%s", err.text);
        if (!strstr(g.source, schedule[i][1])) fail_msg("%s: %s", t->name, g.source);
        genes_free(&genes);
        free(g.source);
        free(own);
    }
}

/* The timed sizes of the task have three channels, and three features of a group. */
static void test_a_part_of_an_axis_is_no_other_axis(void **state)
{
    Generated g;
    Error err;
    (void)state;
    if (generate_first(task_named("k2_23_conv3d_groupnorm_mean"), NULL, NULL, &g, &err))
        fail_msg("%s", err.text);
    char *line = strstr(g.source, ", (features) / 8, ");
    assert_non_null(line);
    while (line > g.source && line[-1] != '\n') line--;
    line[strcspn(line, "\n")] = 0;
    assert_null(strstr(line, ", channels"));
    free(g.source);
}

static char *source_of(Small *s, const char *const *lines, const int n[3])
{
    Generated g;
    Error err;
    small(s, lines, n[0], n[1], n[2]);
    Task *t = planned(&s->d);
    if (generate_first(t, NULL, NULL, &g, &err)) fail_msg("%s", err.text);
    task_free(t);
    return g.source;
}

static void expect(char *source, const char *there, const char *missing)
{
    if (!strstr(source, there) || (missing && strstr(source, missing))) fail_msg("%s", source);
    free(source);
}

/* Where there are fewer columns than its end, the slice has another size than a kernel's number. */
/* Behind five strides a dimension is 1 at some of the sizes that a graph is bound to. */
static void test_a_fold_keeps_a_dimension_that_is_one_at_some_sizes(void **state)
{
    static const char *const lines[] = {
        "a = aten.max_pool2d(x, [3, 3], stride=[2, 2], padding=[1, 1])",
        "b = aten.max_pool2d(a, [3, 3], stride=[2, 2], padding=[1, 1])",
        "c = aten.max_pool2d(b, [3, 3], stride=[2, 2], padding=[1, 1])",
        "d = aten.max_pool2d(c, [3, 3], stride=[2, 2], padding=[1, 1])",
        "e = aten.max_pool2d(d, [3, 3], stride=[2, 2], padding=[1, 1])",
        "y = aten.adaptive_avg_pool2d(e, [1, 1])"};
    Small s = {.axes = {{"batch", NULL, 4}, {"height", NULL, 64}, {"width", NULL, 64}},
               .inputs = {{.name = "x",
                           .dtype = DTYPE_F32,
                           .rank = 4,
                           .shape = {"batch", "3", "height", "width"}}}};
    Generated g;
    Error err;
    (void)state;
    small(&s, lines, 6, 3, 1);
    Task *t = planned(&s.d);
    if (generate_first(t, NULL, NULL, &g, &err)) fail_msg("%s", err.text);
    if (!strstr(g.source, "y, batch * 3, ((height - 1) / 32 + 1) * ((width - 1) / 32 + 1)"))
        fail_msg("%s", g.source);
    free(g.source);
    task_free(t);
}

static void test_classes_may_have_places(void **state)
{
    static const char *const lines[][1] = {
        {"y = aten.cross_entropy_loss(x, t, w, reduction=1, ignore_index=255)"},
        {"y = aten.cross_entropy_loss(x, t, w, reduction=1, ignore_index=255, "
         "label_smoothing=0.1)"}};
    Small s = {
        .axes = {{"batch", NULL, 4}, {"classes", NULL, 19}, {"rows", NULL, 24}, {"cols", NULL, 40}},
        .inputs = {{.name = "x",
                    .dtype = DTYPE_F32,
                    .rank = 4,
                    .shape = {"batch", "classes", "rows", "cols"}},
                   {.name = "t", .dtype = DTYPE_I64, .rank = 3, .shape = {"batch", "rows", "cols"}},
                   {.name = "w", .dtype = DTYPE_F32, .rank = 1, .shape = {"classes"}}}};
    (void)state;
    for (int i = 0; i < 2; i++)
        expect(source_of(&s, lines[i], (const int[]){1, 4, 3}), "//@ launch kernel_2<<<", "//@ op");
}

/* Elements that are two apart are read in vectors with those between them. */
static void test_neighbours_lie_two_apart(void **state)
{
    static const char *const lines[] = {
        "a = aten.slice.Tensor(x, 1, 0, end=9223372036854775807, step=2)",
        "b = aten.slice.Tensor(x, 1, 1, end=9223372036854775807, step=2)",
        "c = aten.repeat_interleave.self_int(z, 4, -1)", "d = aten.mul.Tensor(a, b)",
        "y = aten.add.Tensor(d, c)"};
    Small s = {.axes = {{"rows", NULL, 96}},
               .inputs = {tensor("x", DTYPE_BF16, "rows", "4096"),
                          tensor("z", DTYPE_BF16, "rows", "512")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){5, 1, 2}), "all.v[V == 1 ? 0 : 2 * v + (1)]",
           "//@ op");
}

/* A sum of few terms, whose number is an axis, has loops in a norm of it. */
static void test_few_terms_are_added_up_in_a_row(void **state)
{
    static const char *const lines[] = {"s = aten.sum.dim_IntList(x, [0])",
                                        "y = aten.layer_norm(s, [512])"};
    Small s = {
        .axes = {{"terms", NULL, 2}, {"rows", NULL, 96}},
        .inputs = {
            {.name = "x", .dtype = DTYPE_F32, .rank = 3, .shape = {"terms", "rows", "512"}}}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){2, 2, 1}), "< terms; of_i", "kernel_2<<<");
}

/* What takes long and is needed again stays in registers as it is computed, and coordinates have 32 bits. */
static void test_values_stay_in_registers(void **state)
{
    static const char *const lines[] = {
        "t = aten.tanh(x)", "c = aten.arange(512)", "m = aten.lt.Scalar(c, 100)",
        "f = aten.masked_fill.Scalar(t, m, -100)", "y = aten.softmax.int(f, -1)"};
    Small s = {.axes = {{"rows", NULL, 960}}, .inputs = {tensor("x", DTYPE_F16, "rows", "512")}};
    char *source;
    (void)state;
    source = source_of(&s, lines, (const int[]){5, 1, 1});
    assert_non_null(strstr(source, "[k].v[v] = t"));
    expect(source, "const int t", "const long long t");
}

static void test_a_product_of_one_term_is_pointwise(void **state)
{
    static const char *const lines[] = {"a = aten.transpose.int(x, 0, 1)",
                                        "b = aten.unsqueeze(a, -1)", "c = aten.unsqueeze(z, 1)",
                                        "d = aten.bmm(b, c)", "y = aten.cos(d)"};
    Small s = {.axes = {{"rows", NULL, 8}, {"batch", NULL, 24}, {"cols", NULL, 40}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "batch"),
                          tensor("z", DTYPE_F32, "batch", "cols")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){5, 3, 2}), "//@ launch kernel_1<<<", "//@ op");
}

/* A block that kept its row in many registers would be alone while it computes. */
static void test_a_late_pass_reads_its_row_again(void **state)
{
    static const char *const lines[][2] = {{"n = aten.layer_norm(x, [32768])", "y = aten.gelu(n)"},
                                           {"n = aten.layer_norm(x, [32768])", "y = aten.relu(n)"}};
    static const char *const text[] = {"fold<256>", "fold<1024>"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        Small s = {.axes = {{"rows", NULL, 512}},
                   .inputs = {tensor("x", DTYPE_F32, "rows", "32768")}};
        expect(source_of(&s, lines[i], (const int[]){2, 1, 1}), text[i], i ? NULL : "keep0");
    }
}

static void test_a_slice_that_may_be_shorter_stays_an_op_line(void **state)
{
    static const char *const lines[] = {"a = aten.exp(x)", "b = aten.slice.Tensor(a, 1, 0, end=8)",
                                        "c = aten.exp(b)", "y = aten.sum(c)"};
    Small s = {.axes = {{"rows", NULL, 8}, {"cols", NULL, 64}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){4, 2, 1}), "//@ op c = aten.exp(b)", "aten.exp(x)");
}

/* An operator that writes into a tensor is written as the one with a result of its own. */
static void test_what_stays_an_op_line_writes_into_no_tensor(void **state)
{
    static const char *const lines[] = {"a = aten.exp(x)", "i = aten.argmax(x, 1)",
                                        "b = aten.index_add_(a, 0, i, z)", "c = aten.exp(b)",
                                        "y = aten.add.Tensor(a, c)"};
    Small s = {
        .axes = {{"rows", NULL, 64}, {"cols", NULL, 64}},
        .inputs = {tensor("x", DTYPE_F32, "rows", "rows"), tensor("z", DTYPE_F32, "rows", "rows")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){5, 1, 2}), "//@ op b = aten.index_add(",
           "index_add_(");
}

/* Three features are equal wherever the products can be added. */
static void test_axes_that_are_equal_vary_together(void **state)
{
    static const char *const lines[] = {"a = aten.view(x, [rows, 4, cols / 4])",
                                        "b = aten.view(z, [rows, 4, cols / 4])",
                                        "c = aten.view(u, [rows, 4, cols / 4])",
                                        "d = aten.add.Tensor(a, b)",
                                        "e = aten.add.Tensor(d, c)",
                                        "y = aten.sum(e)"};
    Small s = {
        .axes = {{"rows", NULL, 8}, {"cols", NULL, 64}, {"cols_1", NULL, 64}, {"cols_2", NULL, 64}},
        .inputs = {tensor("x", DTYPE_F32, "rows", "cols"), tensor("z", DTYPE_F32, "rows", "cols_1"),
                   tensor("u", DTYPE_F32, "rows", "cols_2")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){6, 4, 3}), "rows * cols", "64");
}

/* A part of a tensor is written. */
static void test_a_graph_that_cannot_be_written_stays_as_it_is(void **state)
{
    static const char *const lines[] = {"a = aten.exp(x)", "p = aten.slice.Tensor(a, 1, 0, end=8)",
                                        "i = aten.argmax(p, 1)", "b = aten.index_add_(p, 0, i, p)",
                                        "y = aten.add.Tensor(a, x)"};
    Small s = {.axes = {{"rows", NULL, 8}, {"cols", NULL, 64}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){5, 2, 1}),
           "All operators stay as they are: ", "__global__");
}

/* As torch.eye and fill_diagonal_ do; the diagonal's step is one more than a row has. */
static void test_a_diagonal_that_is_written_is_a_choice(void **state)
{
    static const char *const lines[] = {"a = aten.exp(x)", "d = aten.diagonal(a)",
                                        "f = aten.fill_.Scalar(d, 2)", "y = aten.add.Tensor(a, x)"};
    Small s = {.axes = {{"rows", NULL, 64}}, .inputs = {tensor("x", DTYPE_F32, "rows", "rows")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){4, 1, 1}), "//@ launch", "//@ op");
}

/* As caches and encodings do: a column, every second column. */
static void test_a_part_by_ranges_that_is_written_is_a_choice(void **state)
{
    static const char *const lines[] = {
        "a = aten.exp(x)",
        "p = aten.select.int(a, 1, -1)",
        "f = aten.fill_.Scalar(p, 2)",
        "r = aten.slice.Tensor(a, 1, 0, end=9223372036854775807, step=2)",
        "h = aten.zero_(r)",
        "y = aten.add.Tensor(a, x)"};
    Small s = {.axes = {{"rows", NULL, 64}, {"cols", NULL, 64}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){6, 2, 1}), "//@ launch", "//@ op");
}

static void test_a_step_may_be_one_more_than_a_product(void **state)
{
    static const char *const lines[] = {"d = aten.diagonal(x)", "y = aten.exp(d)"};
    Small s = {.axes = {{"rows", NULL, 64}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "2 * rows")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){2, 1, 1}), "(rows * 2 + 1)", "//@ op");
}

/* Encodings by frequencies are as wide as the task says. */
static void test_a_size_of_an_input_is_an_expression_of_the_task(void **state)
{
    static const char *const lines[] = {"a = aten.sum(z)", "b = aten.mul.Tensor(x, a)",
                                        "y = aten.sum.dim_IntList(b, [1])"};
    Small s = {.axes = {{"rows", NULL, 64}, {"cols", NULL, 3}, {"inner", NULL, 6}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "2 * cols * inner + cols"),
                          tensor("z", DTYPE_F32, "cols", "inner")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){3, 3, 2}), "//@ launch", "//@ op");
}

static void test_products_are_rounded_before_folds_are_subtracted(void **state)
{
    static const char *const softmax[] = {"a = aten.mul.Tensor(x, z)",
                                          "y = aten.softmax.int(a, -1)"},
                             *const leaky[] = {"a = aten.leaky_relu(x, 0.25)",
                                               "m = aten.mean.dim(z, [1], True)",
                                               "y = aten.sub.Tensor(a, m)"},
                             *const squares[] = {"a = aten.mul.Tensor(x, z)", "y = aten.sum(a)"};
    const Small s = {
        .axes = {{"rows", NULL, 8}, {"cols", NULL, 64}},
        .inputs = {tensor("x", DTYPE_F32, "rows", "cols"), tensor("z", DTYPE_F32, "rows", "cols")}};
    Small of[] = {s, s, s};
    (void)state;
    expect(source_of(&of[0], softmax, (const int[]){2, 2, 2}), "= __fmul_rn(t0, t1);", "t0 * t1");
    expect(source_of(&of[1], leaky, (const int[]){3, 2, 2}), "> 0 ? t0 : __fmul_rn(t0, 0.25f);",
           NULL);
    expect(source_of(&of[2], squares, (const int[]){2, 2, 2}), "t0 * t1", "__fmul_rn");
}

/* A branch would keep the elements of a thread apart. */
static void test_calls_come_before_a_choice(void **state)
{
    static const char *const selu[] = {"y = aten.selu(x)"}, *const plain[] = {"y = aten.exp(x)"};
    const Small s = {.axes = {{"rows", NULL, 8}, {"cols", NULL, 64}},
                     .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    Small of[] = {s, s};
    (void)state;
    expect(source_of(&of[0], selu, (const int[]){1, 2, 1}), "float t1_1 = expm1(t0);",
           "f * expm1(t0)");
    expect(source_of(&of[1], plain, (const int[]){1, 2, 1}), "= exp(t0);", "asm volatile");
}

static void test_a_number_may_be_a_size(void **state)
{
    static const char *const lines[] = {"s = aten.sum.dim_IntList(x, [1], keepdim=True)",
                                        "y = aten.div.Tensor(s, cols)"},
                             *const places[] = {"i = aten.arange.default(cols, dtype=torch.int32)",
                                                "y = aten.mul.Tensor(x, i)"};
    const Small s = {.axes = {{"rows", NULL, 8}, {"cols", NULL, 64}},
                     .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    Small of[] = {s, s};
    (void)state;
    expect(source_of(&of[0], lines, (const int[]){2, 2, 1}), "(long long)cols;", "//@ op");
    expect(source_of(&of[1], places, (const int[]){2, 2, 1}), "//@ launch", "//@ op");
}

/* At every binding the sum of both may be a whole number of vectors by chance. */
static void test_a_row_of_two_axes_is_guarded(void **state)
{
    static const char *const lines[] = {"a = aten.cat.default([x, z], 1)",
                                        "y = aten.mul.Tensor(a, 2)"};
    Small s = {.axes = {{"rows", NULL, 8}, {"left", NULL, 64}, {"right", NULL, 64}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "left"),
                          tensor("z", DTYPE_F32, "rows", "right")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){2, 3, 2}), ") % 4 != 0)", NULL);
}

/* The body has sizes by name; at the timed ones it is called with numbers, but how many rows there are. */
static void test_timed_sizes_are_numbers_where_they_are_these(void **state)
{
    static const char *const lines[] = {"a = aten.transpose.int(x, 0, 1)",
                                        "y = aten.softmax.int(a, 2)"};
    Small s = {
        .axes = {{"rows", NULL, 64}, {"heads", NULL, 6}, {"cols", NULL, 48}},
        .inputs = {
            {.name = "x", .dtype = DTYPE_F32, .rank = 3, .shape = {"rows", "heads", "cols"}}}};
    char *source;
    (void)state;
    source = source_of(&s, lines, (const int[]){2, 3, 1});
    if (!strstr(source, "== 48") || strstr(source, "384")) fail_msg("%s", source);
    *strstr(source, "extern \"C\"") = 0;
    if (strstr(source, "48")) fail_msg("%s", source);
    free(source);
}

static void test_few_threads_join_exponential_sums(void **state)
{
    static const char *const sums[] = {"a = aten.log_softmax.int(x, 1)",
                                       "b = aten.mul.Tensor(a, x)",
                                       "y = aten.sum.dim_IntList(b, [1])"},
                             *const softmax[] = {"y = aten.softmax.int(x, 1)"};
    const Small s = {.axes = {{"rows", NULL, 8192}, {"cols", NULL, 512}},
                     .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    Small of[] = {s, s};
    (void)state;
    expect(source_of(&of[0], sums, (const int[]){3, 2, 1}), "ceil_div(rows, 16), 256", NULL);
    expect(source_of(&of[1], softmax, (const int[]){1, 2, 1}), "ceil_div(rows, 8), 256", NULL);
}

/* A quotient of each element may err in its last bit, unless something is rounded or compared behind it. */
static void test_quotients_are_quick_where_no_step_follows(void **state)
{
    static const char *const softmax[] = {"y = aten.softmax.int(x, 1)"},
                             *const codes[] = {"s = aten.amax(x, [1], keepdim=True)",
                                               "a = aten.div.Tensor(x, s)", "y = aten.round(a)"},
                             *const mask[] = {
                                 "s = aten.amax(x, [1], keepdim=True)", "a = aten.div.Tensor(x, s)",
                                 "m = aten.gt.Scalar(a, 0.5)", "y = aten.mul.Tensor(x, m)"};
    const Small s = {.axes = {{"rows", NULL, 64}, {"cols", NULL, 64}},
                     .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    Small of[] = {s, s, s};
    (void)state;
    expect(source_of(&of[0], softmax, (const int[]){1, 2, 1}), "= quotient(t", NULL);
    expect(source_of(&of[1], codes, (const int[]){3, 2, 1}), "= exact_quotient(t", "= quotient(t");
    expect(source_of(&of[2], mask, (const int[]){4, 2, 1}), "= exact_quotient(t", "= quotient(t");
}

static void test_tanh_of_softplus_is_that_of_mish(void **state)
{
    static const char *const lines[] = {"a = aten.softplus.default(x)", "b = aten.tanh.default(a)",
                                        "y = aten.mul.Tensor(b, x)"};
    Small s = {.axes = {{"rows", NULL, 64}, {"cols", NULL, 64}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){3, 2, 1}), "mish(t", "log1p");
}

/* What follows a product is an element's, too. It is written for four sums of a row, and once where these are
 * no vector, in a loop over rows: not for each sum that a thread has. */
static void test_what_follows_a_product_is_quick_and_short(void **state)
{
    static const char *const lines[] = {"a = aten.linear.default(x, w)",
                                        "b = aten.div.Tensor(a, 10.0)", "y = aten.mish.default(b)"};
    Small s = {
        .axes = {{"rows", NULL, 4096}, {"cols", NULL, 4096}},
        .inputs = {tensor("x", DTYPE_F32, "rows", "cols"), tensor("w", DTYPE_F32, "cols", "cols")}};
    char *source;
    int times = 0;
    (void)state;
    source = source_of(&s, lines, (const int[]){3, 2, 2});
    const char *at = strstr(source, "[&](long long row, long long column, float4 sums)");
    if (!at || !strstr(source, "= quotient(t0, 10.f);") ||
        !strstr(source, "= __fmul_rn(t1, mish(t1));"))
        fail_msg("%s", source);
    while ((at = strstr(at + 1, "value(batch"))) times++;
    assert_int_equal(times, 5);
    free(source);
}

/* What all rows would compute anew from wide words is stored once, by the kernel of its scan. */
static void test_what_many_rows_compute_is_stored(void **state)
{
    static const char *const lines[] = {"c = aten.cumsum(k, -1)", "d = aten.sub.Tensor(c, 1)",
                                        "e = aten.mul.Tensor(d, k)", "f = aten.add.Tensor(x, e)",
                                        "y = aten.softmax.int(f, -1)"};
    Small s = {.axes = {{"rows", NULL, 65536}},
               .inputs = {tensor("x", DTYPE_F16, "rows", "512"),
                          {.name = "k", .dtype = DTYPE_I64, .rank = 1, .shape = {"512"}}}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){5, 1, 2}), "(k, e)\n", "kernel_3<<<");
}

/* A mask's sum is added up in the pass that reads the mask for larger rows. */
static void test_a_mask_is_summed_where_it_is_read(void **state)
{
    static const char *const lines[] = {
        "m = aten.to.dtype(k, torch.float32)", "w = aten.unsqueeze(m, -1)",
        "p = aten.mul.Tensor(x, w)",           "a = aten.sum.dim_IntList(p, [1])",
        "n = aten.sum.dim_IntList(w, [1])",    "y = aten.div.Tensor(a, n)"};
    Small s = {
        .axes = {{"batch", NULL, 64}, {"rows", NULL, 512}},
        .inputs = {{.name = "x", .dtype = DTYPE_F32, .rank = 3, .shape = {"batch", "rows", "768"}},
                   tensor("k", DTYPE_I64, "batch", "rows")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){6, 2, 2}), "kernel_1<<<", "kernel_2<<<");
}

/* A norm of sums and a fold of what it divides are one kernel, behind that of the sums. */
static void test_folds_of_folds_share_a_kernel(void **state)
{
    static const char *const lines[] = {
        "s = aten.sum.dim_IntList(x, [1])", "q = aten.mul.Tensor(s, s)",
        "t = aten.sum.dim_IntList(q, [0])", "n = aten.sqrt(t)",
        "d = aten.div.Tensor(s, n)",        "e = aten.mul.Tensor(d, s)",
        "u = aten.sum.dim_IntList(e, [0])", "y = aten.div.Tensor(x, u)"};
    Small s = {.axes = {{"rows", NULL, 960}, {"cols", NULL, 512}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){8, 2, 1}), "kernel_3<<<", "kernel_4<<<");
}

/* Elements and sums of their rows are results of one kernel, also where nothing else is folded. */
static void test_sums_of_a_result_share_its_kernel(void **state)
{
    static const char *const lines[] = {"y = aten.tanh(x)", "p = aten.mul.Tensor(y, x)",
                                        "z = aten.sum.dim_IntList(p, [1])"};
    DraftTensor outputs[] = {{.name = "y", .dtype = DTYPES, .rank = -1},
                             {.name = "z", .dtype = DTYPES, .rank = -1}};
    Small s = {.axes = {{"rows", NULL, 9600}, {"cols", NULL, 192}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    Generated g;
    Error err;
    (void)state;
    small(&s, lines, 3, 2, 1);
    s.d.outputs = outputs, s.d.n_outputs = 2;
    Task *t = planned(&s.d);
    if (generate_first(t, NULL, NULL, &g, &err)) fail_msg("%s", err.text);
    task_free(t);
    expect(g.source, "(x, y, z, ", "kernel_2<<<");
}

/* Neighbours that a pad shifts are read in vectors. */
static void test_shifted_rows_are_read_in_vectors(void **state)
{
    static const char *const lines[] = {"p = aten.pad(x, [1, 0])",
                                        "a = aten.slice.Tensor(p, 1, 0, end=-1)",
                                        "y = aten.add.Tensor(x, a)"};
    Small s = {.axes = {{"rows", NULL, 960}, {"cols", NULL, 512}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){3, 2, 1}), "= beside<V>(x + ", NULL);
}

/* A thread's results of dilated windows lie apart, those of windows that share elements side by side. */
static void test_dilated_windows_lie_apart(void **state)
{
    static const char *const dilated[] = {"y = aten.max_pool1d(x, [4], [1], [0], [3])"},
                             *const dense[] = {"y = aten.max_pool1d(x, [4], [1], [0], [1])"};
    const Small s = {
        .axes = {{"rows", NULL, 960}},
        .inputs = {{.name = "x", .dtype = DTYPE_F32, .rank = 3, .shape = {"rows", "8", "512"}}}};
    Small of[] = {s, s};
    (void)state;
    expect(source_of(&of[0], dilated, (const int[]){1, 1, 1}), "next = groups", NULL);
    expect(source_of(&of[1], dense, (const int[]){1, 1, 1}), "next = 1", NULL);
}

/* Tiles go on from one axis to the one before it, or have fewer elements, where they would end half empty. */
static void test_tiles_do_not_end_half_empty(void **state)
{
    static const char *const lines[] = {"a = aten.permute(x, [0, 2, 3, 1])",
                                        "b = aten.mul.Tensor(a, w)", "c = aten.exp(b)",
                                        "y = aten.clone(c)"};
    Small s = {.axes = {{"batch", NULL, 4}, {"height", NULL, 70}, {"width", NULL, 80}},
               .inputs = {{.name = "x",
                           .dtype = DTYPE_F32,
                           .rank = 4,
                           .shape = {"batch", "85", "height", "width"}},
                          tensor("w", DTYPE_F32, "width", "1")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){4, 3, 2}),
           "ceil_div(height * width, 128) * ceil_div(85, 32)", NULL);
}

/* Few channels that lie side by side have tiles of as few rows. */
static void test_few_channels_have_narrow_tiles(void **state)
{
    static const char *const lines[] = {"a = aten.permute(x, [0, 2, 1])", "y = aten.exp(a)"};
    Small s = {
        .axes = {{"rows", NULL, 64}, {"cols", NULL, 4096}},
        .inputs = {{.name = "x", .dtype = DTYPE_F32, .rank = 3, .shape = {"rows", "cols", "3"}}}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){2, 2, 1}), "ceil_div(3, 4) * ceil_div(cols, 256)",
           NULL);
}

/* A vector that is stored has 16 bytes, and the threads of a short row store whole lines. */
static void test_wide_results_have_short_vectors(void **state)
{
    static const char *const lines[] = {"s = aten.amax(x, [1], keepdim=True)",
                                        "a = aten.div.Tensor(x, s)",
                                        "y = aten.to.dtype(a, torch.float32)"};
    Small s = {.axes = {{"rows", NULL, 65536}}, .inputs = {tensor("x", DTYPE_BF16, "rows", "64")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){3, 1, 1}), "ceil_div(rows, 32), 256>>>", "body_1<8>");
}

/* Rounds of many threads keep the number of their loads, those of few may have more. */
static void test_rounds_of_many_threads_are_not_unrolled(void **state)
{
    static const char *const lines[] = {"y = aten.sum.dim_IntList(x, [1])"};
    const DraftTensor x = {
        .name = "x", .dtype = DTYPE_F32, .rank = 3, .shape = {"batch", "rows", "cols"}};
    const Small many = {.axes = {{"batch", NULL, 128}, {"rows", NULL, 4096}, {"cols", NULL, 4095}},
                        .inputs = {x}};
    Small of[] = {many, many};
    (void)state;
    of[1].axes[0].size = 2;
    expect(source_of(&of[0], lines, (const int[]){1, 3, 1}), "#pragma unroll 1\n    for (; c0",
           NULL);
    expect(source_of(&of[1], lines, (const int[]){1, 3, 1}), "for (; c0", "#pragma unroll 1\n");
}

/* Of joined tensors a block reads the one whose rows it has. */
static void test_rows_of_joined_tensors_are_read_where_they_are(void **state)
{
    static const char *const lines[] = {"a = aten.cat([x, z], 0)", "y = aten.exp(a)"};
    Small s = {.axes = {{"rows", NULL, 960}, {"rows_1", NULL, 480}, {"cols", NULL, 4096}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols"),
                          tensor("z", DTYPE_F32, "rows_1", "cols")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){2, 3, 2}), "= {};\n", NULL);
}

/* Each value is computed at one place more than the one after it. */
static void test_a_kernel_of_too_many_steps_reads_what_another_stores(void **state)
{
    enum { LEVELS = 20, EACH = 3 };
    static char text[LEVELS * EACH][96];
    const char *lines[LEVELS * EACH];
    Small s = {.axes = {{"rows", NULL, 8}}, .inputs = {tensor("x", DTYPE_F32, "rows", "64")}};
    (void)state;
    for (int i = 0; i < LEVELS; i++) {
        char from[8] = "x", to[8] = "y";
        if (i) snprintf(from, sizeof from, "a%d", i);
        if (i < LEVELS - 1) snprintf(to, sizeof to, "a%d", i + 1);
        for (int k = 0; k < EACH; k++) lines[i * EACH + k] = text[i * EACH + k];
        snprintf(text[i * EACH], sizeof text[0], "l%d = aten.slice.Tensor(%s, 1, 0, end=%d)", i,
                 from, 63 - i);
        snprintf(text[i * EACH + 1], sizeof text[0], "r%d = aten.slice.Tensor(%s, 1, 1, end=%d)", i,
                 from, 64 - i);
        snprintf(text[i * EACH + 2], sizeof text[0], "%s = aten.sub.Tensor(l%d, r%d)", to, i, i);
    }
    expect(source_of(&s, lines, (const int[]){LEVELS * EACH, 1, 1}), "//@ launch kernel_2<<<",
           "stay as they");
}

/* A product of a half type is a kernel where something follows it, by tensor maps where its lines are
 * multiples of 16 bytes; alone it stays with the library, which takes as long. */
static void test_half_products_are_kernels_with_what_follows(void **state)
{
    static const char *const lines[] = {"h = aten.addmm(b, x, w)", "y = aten.gelu(h)"},
                             *const alone[] = {"y = aten.mm(x, w)"};
    Small s = {.axes = {{"n", NULL, 4096}},
               .inputs = {tensor("x", DTYPE_F16, "n", "n"), tensor("w", DTYPE_F16, "n", "n"),
                          tensor("b", DTYPE_F16, "n", NULL)}};
    char *source = source_of(&s, lines, (const int[]){2, 1, 3});
    (void)state;
    expect(source, "//@ map right_map_1 = tensor(w", "//@ op");
    expect(source_of(&s, alone, (const int[]){1, 1, 2}), "//@ op", "//@ launch");
}

/* A number for each column is no addition for each sum: sums begin with it, by a product with ones. A matrix
 * is added. */
static void test_sums_of_halves_begin_with_a_bias(void **state)
{
    static const char *const bias[] = {"h = aten.addmm(b, x, w)", "y = aten.relu(h)"},
                             *const matrix[] = {"h = aten.addmm(r, x, w)", "y = aten.relu(h)"};
    Small s = {.axes = {{"n", NULL, 4096}},
               .inputs = {tensor("x", DTYPE_F16, "n", "n"), tensor("w", DTYPE_F16, "n", "n"),
                          tensor("b", DTYPE_F16, "n", NULL)}};
    (void)state;
    expect(source_of(&s, bias, (const int[]){2, 1, 3}), "4, 1, 0>(left, right, other, work",
           "half_read(of, b");
    s.inputs[2] = tensor("r", DTYPE_F16, "n", "n");
    expect(source_of(&s, matrix, (const int[]){2, 1, 3}), "= total + half_read(of, r",
           ", 1, 0>(left, right, other");
}

/* Tiles have as many columns as make few rounds of the multiprocessors: 112 tiles of 80 columns of two
 * products, for 72 of 128. A whole tile is made apart, and a function that a half type rounds has a short
 * form. */
static void test_tiles_fill_a_round(void **state)
{
    static const char *const lines[] = {"a = aten.linear(x, g)", "b = aten.linear(x, u)",
                                        "s = aten.silu(a)", "y = aten.mul(b, s)"};
    Small s = {.axes = {{"n", NULL, 1000}, {"cols", NULL, 1112}, {"k", NULL, 2056}},
               .inputs = {tensor("x", DTYPE_BF16, "n", "k"), tensor("g", DTYPE_BF16, "cols", "k"),
                          tensor("u", DTYPE_BF16, "cols", "k")}};
    char *source = source_of(&s, lines, (const int[]){4, 3, 3});
    (void)state;
    expect(source, "half_results<160, 1>(d, own, place, work, y, even, value)", "//@ op");
    source = source_of(&s, lines, (const int[]){4, 3, 3});
    expect(source, "near_silu(t", "exp(");
}

/* Of two products each warp group makes tiles of its own, from six stages. */
static void test_two_products_are_made_in_turns(void **state)
{
    static const char *const lines[] = {"a = aten.linear(x, g)", "b = aten.linear(x, u)",
                                        "s = aten.silu(a)", "y = aten.mul(b, s)"};
    Small s = {.axes = {{"n", NULL, 4096}},
               .inputs = {tensor("x", DTYPE_F16, "n", "n"), tensor("g", DTYPE_F16, "n", "n"),
                          tensor("u", DTYPE_F16, "n", "n")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){4, 1, 3}), "128, 1, 6, 0, 1>(left, right, other",
           "//@ op");
}

/* Lines that are no multiples of 128 bytes cost more: a kernel that would be ahead by a little is not. */
static void test_uneven_lines_cost_more(void **state)
{
    static const char *const lines[] = {"h = aten.linear(x, w)", "y = aten.silu(h)"};
    Small s = {.axes = {{"n", NULL, 1000}, {"cols", NULL, 2216}, {"k", NULL, 2056}},
               .inputs = {tensor("x", DTYPE_BF16, "n", "k"), tensor("w", DTYPE_BF16, "cols", "k")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){2, 3, 2}), "//@ op h = aten.linear(x, w)",
           "half_results");
}

/* Each step reads the one before it twice: 30 of them have a thousand million paths. */
static void test_steps_are_looked_at_once(void **state)
{
    enum { STEPS = 30 };
    char text[STEPS + 1][64];
    const char *lines[STEPS + 1];
    Small s = {.axes = {{"rows", NULL, 64}, {"cols", NULL, 64}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    Generated g;
    Error err;
    (void)state;
    for (int i = 0; i <= STEPS; i++) lines[i] = text[i];
    snprintf(text[0], sizeof text[0], "a0 = aten.maximum(x, x)");
    for (int i = 1; i < STEPS; i++)
        snprintf(text[i], sizeof text[i], "a%d = aten.maximum(a%d, a%d)", i, i - 1, i - 1);
    snprintf(text[STEPS], sizeof text[STEPS], "y = aten.sum.dim_IntList(a%d, [1], False)",
             STEPS - 1);
    small(&s, lines, STEPS + 1, 2, 1);
    Task *t = planned(&s.d);
    if (generate_first(t, NULL, NULL, &g, &err)) fail_msg("%s", err.text);
    assert_int_equal(g.n_kernels, 1);
    free(g.source);
    task_free(t);
}

/* Also where a step reads two that read one, and where these are the scores of an attention. */
static void test_branches_that_meet_are_looked_at_once(void **state)
{
    enum { STEPS = 26, LINES = 3 * STEPS + 5 };
    static char text[LINES][64];
    const char *lines[LINES];
    Generated g;
    Error err;
    Small s = {.axes = {{"rows", NULL, 64}}};
    (void)state;
    for (int i = 0; i < 3; i++)
        s.inputs[i] = (DraftTensor){.name = (const char *[]){"q", "k", "v"}[i],
                                    .dtype = DTYPE_F32,
                                    .rank = 3,
                                    .shape = {"2", "rows", "16"}};
    snprintf(text[0], sizeof text[0], "kt = aten.permute(k, [0, 2, 1])");
    snprintf(text[1], sizeof text[1], "c0 = aten.bmm(q, kt)");
    for (int i = 0; i < STEPS; i++) {
        snprintf(text[3 * i + 2], sizeof *text, "a%d = aten.sigmoid(c%d)", i, i);
        snprintf(text[3 * i + 3], sizeof *text, "b%d = aten.tanh(c%d)", i, i);
        snprintf(text[3 * i + 4], sizeof *text, "c%d = aten.mul.Tensor(a%d, b%d)", i + 1, i, i);
    }
    snprintf(text[LINES - 3], sizeof *text, "s = aten.softmax.int(c%d, 2)", STEPS);
    snprintf(text[LINES - 2], sizeof *text, "h = aten.bmm(s, v)");
    snprintf(text[LINES - 1], sizeof *text, "y = aten.tanh(h)");
    for (int i = 0; i < LINES; i++) lines[i] = text[i];
    small(&s, lines, LINES, 1, 3);
    Task *t = planned(&s.d);
    if (generate_first(t, NULL, NULL, &g, &err)) fail_msg("%s", err.text);
    assert_non_null(strstr(g.source, "tanh"));
    free(g.source);
    task_free(t);
}

/* What others need of the largest element and the sum of exponentials is one value of a row. */
static void test_a_logarithm_of_a_sum_is_one_launch(void **state)
{
    static const char *const lines[] = {
        "a = aten.logsumexp(x, [1], True)", "b = aten.sub.Tensor(x, a)",
        "c = aten.logsumexp(b, [0], True)", "y = aten.sub.Tensor(b, c)"};
    Small s = {.axes = {{"rows", NULL, 8192}, {"cols", NULL, 8192}},
               .inputs = {tensor("x", DTYPE_F32, "rows", "cols")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){4, 2, 1}), "kernel_2<<<", "kernel_3<<<");
}

/* Windows that lie within a padded row as a whole ask at no element whether it is there. */
static void test_windows_inside_ask_nothing(void **state)
{
    static const char *const lines[] = {"y = aten.max_pool1d(x, [4], [1], [2], [3])"};
    Small s = {
        .axes = {{"rows", NULL, 96}},
        .inputs = {{.name = "x", .dtype = DTYPE_F32, .rank = 3, .shape = {"rows", "4", "8192"}}}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){1, 1, 1}), "if (interior) {", NULL);
}

/* The largest of a few neighbours is a loop in the norm's kernel. */
static void test_few_terms_in_a_norm_are_a_loop(void **state)
{
    static const char *const lines[] = {"v = aten.view(x, [rows, 256, 4])",
                                        "a = aten.amax(v, [-1])",
                                        "y = aten.layer_norm(a, [256], None, None, 1e-05)"};
    Small s = {.axes = {{"rows", NULL, 4096}}, .inputs = {tensor("x", DTYPE_F32, "rows", "1024")}};
    (void)state;
    expect(source_of(&s, lines, (const int[]){3, 1, 1}), "kernel_1<<<", "kernel_2<<<");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs_become_few_kernels),
        cmocka_unit_test(test_smoothed_labels_are_kernels),
        cmocka_unit_test(test_the_stream_of_residuals_lies_in_memory),
        cmocka_unit_test(test_what_several_kernels_need_is_computed_once),
        cmocka_unit_test(test_triangles_leave_sums_out),
        cmocka_unit_test(test_a_task_without_a_graph_is_refused),
        cmocka_unit_test(test_axes_that_are_tied_are_no_numbers),
        cmocka_unit_test(test_the_last_row_has_an_expression),
        cmocka_unit_test(test_own_sizes_choose_the_schedule),
        cmocka_unit_test(test_measured_schedules_are_the_default),
        cmocka_unit_test(test_a_product_of_one_term_is_pointwise),
        cmocka_unit_test(test_classes_may_have_places),
        cmocka_unit_test(test_neighbours_lie_two_apart),
        cmocka_unit_test(test_few_terms_are_added_up_in_a_row),
        cmocka_unit_test(test_values_stay_in_registers),
        cmocka_unit_test(test_a_late_pass_reads_its_row_again),
        cmocka_unit_test(test_a_part_of_an_axis_is_no_other_axis),
        cmocka_unit_test(test_a_fold_keeps_a_dimension_that_is_one_at_some_sizes),
        cmocka_unit_test(test_a_slice_that_may_be_shorter_stays_an_op_line),
        cmocka_unit_test(test_what_stays_an_op_line_writes_into_no_tensor),
        cmocka_unit_test(test_axes_that_are_equal_vary_together),
        cmocka_unit_test(test_a_graph_that_cannot_be_written_stays_as_it_is),
        cmocka_unit_test(test_a_diagonal_that_is_written_is_a_choice),
        cmocka_unit_test(test_a_part_by_ranges_that_is_written_is_a_choice),
        cmocka_unit_test(test_a_step_may_be_one_more_than_a_product),
        cmocka_unit_test(test_a_size_of_an_input_is_an_expression_of_the_task),
        cmocka_unit_test(test_products_are_rounded_before_folds_are_subtracted),
        cmocka_unit_test(test_calls_come_before_a_choice),
        cmocka_unit_test(test_a_number_may_be_a_size),
        cmocka_unit_test(test_a_row_of_two_axes_is_guarded),
        cmocka_unit_test(test_timed_sizes_are_numbers_where_they_are_these),
        cmocka_unit_test(test_few_threads_join_exponential_sums),
        cmocka_unit_test(test_quotients_are_quick_where_no_step_follows),
        cmocka_unit_test(test_what_follows_a_product_is_quick_and_short),
        cmocka_unit_test(test_tanh_of_softplus_is_that_of_mish),
        cmocka_unit_test(test_what_many_rows_compute_is_stored),
        cmocka_unit_test(test_a_mask_is_summed_where_it_is_read),
        cmocka_unit_test(test_folds_of_folds_share_a_kernel),
        cmocka_unit_test(test_sums_of_a_result_share_its_kernel),
        cmocka_unit_test(test_shifted_rows_are_read_in_vectors),
        cmocka_unit_test(test_dilated_windows_lie_apart),
        cmocka_unit_test(test_tiles_do_not_end_half_empty),
        cmocka_unit_test(test_few_channels_have_narrow_tiles),
        cmocka_unit_test(test_wide_results_have_short_vectors),
        cmocka_unit_test(test_rounds_of_many_threads_are_not_unrolled),
        cmocka_unit_test(test_rows_of_joined_tensors_are_read_where_they_are),
        cmocka_unit_test(test_a_kernel_of_too_many_steps_reads_what_another_stores),
        cmocka_unit_test(test_half_products_are_kernels_with_what_follows),
        cmocka_unit_test(test_sums_of_halves_begin_with_a_bias),
        cmocka_unit_test(test_two_products_are_made_in_turns),
        cmocka_unit_test(test_tiles_fill_a_round),
        cmocka_unit_test(test_uneven_lines_cost_more),
        cmocka_unit_test(test_steps_are_looked_at_once),
        cmocka_unit_test(test_branches_that_meet_are_looked_at_once),
        cmocka_unit_test(test_a_logarithm_of_a_sum_is_one_launch),
        cmocka_unit_test(test_few_terms_in_a_norm_are_a_loop),
        cmocka_unit_test(test_windows_inside_ask_nothing),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    taskset_release(&tasks);
    return failed;
}
