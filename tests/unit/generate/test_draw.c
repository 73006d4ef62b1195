/* Drawn kernels: equal seeds give equal kernels, genes and mistakes are all drawn, withheld genes are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "generate/draw/drawn_words.h"

enum { SEEDS = 60, SOURCE_LIMIT = 6000 };

static TaskSet tasks;

static int open_tasks(void **state)
{
    (void)state;
    Error err;
    if (taskset_load(NULL, "softmax,layernorm,matmul,gelu,row_sum,transpose,residual_rmsnorm",
                     &tasks, &err))
        fail_msg("%s", err.text);
    return 0;
}

static int close_tasks(void **state)
{
    (void)state;
    taskset_release(&tasks);
    return 0;
}

static const Task *task_named(const char *name)
{
    const Task *t = taskset_find(&tasks, name, strlen(name));
    assert_non_null(t);
    return t;
}

static Drawn draw(const Task *t, uint64_t seed, double mistakes, const char *without)
{
    Drawn d;
    Error err;
    if (draw_kernel(t, &(DrawOptions){seed, mistakes, without}, &d, &err)) fail_msg("%s", err.text);
    return d;
}

static void equal_seeds_give_equal_kernels(void **state)
{
    (void)state;
    for (int i = 0; i < tasks.n; i++)
        for (uint64_t seed = 0; seed < 8; seed++) {
            Drawn a = draw(tasks.tasks[i], seed, 0.5, NULL),
                  b = draw(tasks.tasks[i], seed, 0.5, NULL);
            assert_string_equal(a.source, b.source);
            assert_int_equal(a.distance, b.distance);
            assert_int_equal(a.slip, b.slip);
            draw_release(&a);
            draw_release(&b);
        }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void kernels_differ_and_are_short(void **state)
{
    (void)state;
    for (int i = 0; i < tasks.n; i++) {
        uint64_t seen[SEEDS];
        int far = 0, near = 0, distinct = 1;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            Drawn d = draw(tasks.tasks[i], seed, 0, NULL);
            assert_int_equal(d.slip, SLIP_NONE);
            assert_in_range(strlen(d.source), 200, SOURCE_LIMIT);
            assert_non_null(strstr(d.source, "//@ launch "));
            near += d.distance <= 1;
            far += d.distance >= 3;
            seen[seed] = random_hash(d.source, strlen(d.source));
            draw_release(&d);
        }
        qsort(seen, SEEDS, sizeof *seen, compare);
        for (int k = 1; k < SEEDS; k++) distinct += seen[k] != seen[k - 1];
        if (distinct < 20 || !near || (!far && tasks.tasks[i]->level > 1))
            fail_msg("%s: %d distinct kernels, %d near, %d far", tasks.tasks[i]->name, distinct,
                     near, far);
    }
}

static void each_mistake_is_made(void **state)
{
    (void)state;
    int made[SLIPS] = {0};
    for (int i = 0; i < tasks.n; i++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            Drawn good = draw(tasks.tasks[i], seed, 0, NULL),
                  bad = draw(tasks.tasks[i], seed, 1, NULL);
            assert_in_range(bad.slip, SLIP_NONE + 1, SLIPS - 1);
            assert_string_not_equal(good.source, bad.source);
            assert_int_equal(good.distance, bad.distance);
            made[bad.slip]++;
            draw_release(&good);
            draw_release(&bad);
        }
    for (int s = SLIP_NONE + 1; s < SLIPS; s++)
        if (!made[s]) fail_msg("%s was never made", slip_name((Slip)s));
}

static void some_have_mistakes(void **state)
{
    (void)state;
    int made = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        Drawn d = draw(task_named("gelu"), seed, 0.3, NULL);
        made += d.slip != SLIP_NONE;
        draw_release(&d);
    }
    assert_in_range(made, 35, 85);
}

static void withheld_genes_are_not_drawn(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        Drawn d = draw(task_named("softmax"), seed, 0, "vec=2 vec=4 softmax/pass=1 other/row=warp");
        const GenePoint *pass = genes_find(&d.genes, "y", GENE_PASS),
                        *vec = genes_find(&d.genes, "y", GENE_VEC);
        assert_true(pass && pass->value == 2);
        assert_true(vec && vec->value == 1);
        assert_null(strstr(d.source, "Pack"));
        draw_release(&d);
    }
}

/* The texts say what the genes are, and nothing of a mistake. */
static void texts_say_the_genes(void **state)
{
    (void)state;
    for (int i = 0; i < tasks.n; i++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            char analysis[DRAW_WORDS], design[DRAW_WORDS], wrong[DRAW_WORDS], vec[32] = "Scalar";
            Drawn d = draw(tasks.tasks[i], seed, 0, NULL),
                  bad = draw(tasks.tasks[i], seed, 1, NULL);
            draw_analysis(&d, analysis);
            draw_design(&d, design);
            draw_design(&bad, wrong);
            assert_string_equal(design, wrong);
            assert_true(strstr(analysis, " bound. ") && strchr("CM", *analysis));
            assert_int_equal(analysis[strlen(analysis) - 1], '.');
            assert_int_equal(design[strlen(design) - 1], '.');
            const GenePoint *p = genes_find(&d.genes, "y", GENE_VEC);
            if (p && p->value > 1) snprintf(vec, sizeof vec, "Vectors of %d elements", p->value);
            if (p && !strstr(design, vec)) fail_msg("%s: no \"%s\"", design, vec);
            const GenePoint *c = genes_find(&d.genes, "c", GENE_COPY);
            if (c) assert_int_equal(!!strstr(design, " copied async"), c->value == COPY_ASYNC);
            draw_release(&d);
            draw_release(&bad);
        }
}

/* What is read comes in the parameters' order, and each line of the graph is a statement of its names. */
static void texts_repeat_the_graph(void **state)
{
    (void)state;
    int fused = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        Drawn d = draw(task_named("residual_rmsnorm"), seed, 0, NULL);
        assert_non_null(strstr(d.source, "float h_i = x_i + residual_i;\n"));
        assert_non_null(strstr(d.source, " * weight_i;\n"));
        assert_null(strstr(d.source, " t0"));
        assert_null(strstr(d.source, "blockIdx.x * 1"));
        if (strstr(d.source,
                   "(const float *x, const float *residual, const float *weight, float *y, "
                   "int rows, int cols)")) {
            const char *x = strstr(d.source, "float x_i = "),
                       *r = strstr(d.source, "residual_i = ");
            assert_true(x && r && x < r && r < strstr(d.source, "float h_i = "));
            fused++;
        }
        draw_release(&d);
    }
    assert_in_range(fused, SEEDS / 4, SEEDS - 1);
}

/* Half of the draws have no vectors and one element a thread, and some of these one operator a kernel. */
static void half_are_simple(void **state)
{
    (void)state;
    int simple = 0, apart = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        Drawn d = draw(task_named("residual_rmsnorm"), seed, 0, NULL);
        int is = 1;
        for (int i = 0; i < d.genes.n; i++) {
            const GenePoint *p = &d.genes.point[i];
            is &= (p->gene != GENE_VEC && p->gene != GENE_ITEMS) || p->value == 1;
        }
        simple += is;
        apart += is && strstr(d.source, "//@ buffer float h[");
        draw_release(&d);
    }
    assert_in_range(simple, 90, 140);
    assert_in_range(apart, 25, 75);
}

static void only_op_lines_are_refused(void **state)
{
    (void)state;
    Error err;
    TaskSet one = {0};
    Drawn d;
    int at = taskset_need(&one, NULL, "k1_61_conv_transposed_3d_square_input_square_kernel", &err);
    assert_true(at >= 0);
    assert_int_equal(draw_kernel(one.tasks[at], &(DrawOptions){0}, &d, &err), -1);
    assert_non_null(strstr(err.text, "every operator is an op line"));
    assert_false(draw_knows(one.tasks[at]));
    assert_true(draw_knows(task_named("matmul")));
    taskset_release(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_seeds_give_equal_kernels),
                                       cmocka_unit_test(kernels_differ_and_are_short),
                                       cmocka_unit_test(each_mistake_is_made),
                                       cmocka_unit_test(some_have_mistakes),
                                       cmocka_unit_test(withheld_genes_are_not_drawn),
                                       cmocka_unit_test(texts_say_the_genes),
                                       cmocka_unit_test(texts_repeat_the_graph),
                                       cmocka_unit_test(half_are_simple),
                                       cmocka_unit_test(only_op_lines_are_refused)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("generate/draw", tests, open_tasks, close_tasks);
}
