/* Attention in graphs: which of them become one kernel, and which stay op lines. Whether they compute what
 * they should is for tests/shell/attended.t. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "generate/first.h"
#include "tests/small_draft.h"

static DraftTensor heads(const char *name, const char *lines, const char *n)
{
    return (DraftTensor){
        .name = name, .dtype = DTYPE_F32, .rank = 4, .shape = {"batch", n, lines, "64"}};
}

/* The source for lines over q, k, v and m. */
static char *source_of(const char *const *lines, int n, DraftTensor m, const char *schedule,
                       int heads_of_keys)
{
    const char *const keys = heads_of_keys == 8 ? "8" : "2";
    Small s = {
        .axes = {{"batch", NULL, 4}, {"rows", NULL, 512}, {"cols", NULL, 512}},
        .inputs = {heads("q", "rows", "8"), heads("k", "cols", keys), heads("v", "cols", keys), m}};
    Genes genes = {0};
    Generated g;
    Error err;
    small(&s, lines, n, 3, m.name ? 4 : 3);
    Task *t = planned(&s.d);
    if (genes_read(&genes, schedule, strlen(schedule), &err)) fail_msg("%s", err.text);
    if (generate_first(t, &genes, NULL, &g, &err)) fail_msg("%s", err.text);
    genes_free(&genes);
    task_free(t);
    return g.source;
}

static int has(const char *source, const char *text)
{
    return strstr(source, text) != NULL;
}

static void test_an_op_line_becomes_one_kernel(void **state)
{
    static const char *const causal[] = {
        "y = aten.scaled_dot_product_attention(q, k, v, is_causal=True)"};
    static const char *const grouped[] = {
        "y = aten.scaled_dot_product_attention(q, k, v, m, enable_gqa=True)"};
    (void)state;
    char *s = source_of(causal, 1, (DraftTensor){0}, "", 8);
    assert_false(has(s, "//@ op"));
    assert_true(
        has(s, ">::run(from_queries, from_keys, from_values, tile, piece, end, value, put)"));
    free(s);
    s = source_of(grouped, 1, tensor("m", DTYPE_B8, "rows", "cols"), "", 2);
    assert_false(has(s, "//@ op"));
    assert_true(has(s, "const bool *__restrict__ m"));
    assert_true(has(s, "batch / 4 * ")); /* of 4 heads of queries, one of keys */
    free(s);
    s = source_of(causal, 1, (DraftTensor){0}, "//@ schedule y fuse=no", 8);
    assert_true(has(s, "//@ op y = aten.scaled_dot_product_attention(q, k, v"));
    free(s);
}

/* The scale follows from the length of a head, where that is an axis. */
static void test_heads_of_any_length(void **state)
{
    static const char *const lines[] = {"y = aten.scaled_dot_product_attention(q, k, v)"};
    Small s = {.axes = {{"rows", NULL, 512}, {"cols", NULL, 512}, {"dim", NULL, 64}},
               .inputs = {tensor("q", DTYPE_F32, "rows", "dim"),
                          tensor("k", DTYPE_F32, "cols", "dim"),
                          tensor("v", DTYPE_F32, "cols", "dim")}};
    Genes genes = {0};
    Generated g;
    Error err;
    (void)state;
    small(&s, lines, 1, 3, 3);
    Task *t = planned(&s.d);
    genes_give(&genes, "y", GENE_FUSE, 1);
    if (generate_first(t, &genes, NULL, &g, &err)) fail_msg("%s", err.text);
    assert_true(has(g.source, "from_depth = 1 / sqrtf((float)dim)"));
    free(g.source);
    genes_free(&genes);
    task_free(t);
}

static void test_two_products_become_one_kernel(void **state)
{
    static const char *const lines[] = {"t = aten.transpose.int(k, -2, -1)",
                                        "s = aten.matmul(q, t)",
                                        "u = aten.mul.Tensor(s, 0.125)",
                                        "w = aten.add.Tensor(u, m)",
                                        "p = aten.softmax.int(w, -1)",
                                        "d = aten.dropout(p, 0.1, False)",
                                        "y = aten.matmul(d, v)"};
    (void)state;
    char *s = source_of(lines, 7, tensor("m", DTYPE_F32, "rows", "cols"), "", 8);
    assert_false(has(s, "//@ op"));
    assert_true(has(s, "flash::Attend"));
    free(s);
}

static void test_hidden_columns_are_left_out(void **state)
{
    static const char *const below[] = {"f = aten.full([rows, cols], 1.0, dtype=torch.float32)",
                                        "l = aten.tril(f)",
                                        "e = aten.eq.Scalar(l, 0)",
                                        "t = aten.transpose.int(k, -2, -1)",
                                        "s = aten.matmul(q, t)",
                                        "w = aten.masked_fill.Scalar(s, e, value=-inf)",
                                        "p = aten.softmax.int(w, -1)",
                                        "y = aten.matmul(p, v)"};
    static const char *const finite[] = {"f = aten.full([rows, cols], 1.0, dtype=torch.float32)",
                                         "l = aten.tril(f)",
                                         "e = aten.eq.Scalar(l, 0)",
                                         "t = aten.transpose.int(k, -2, -1)",
                                         "s = aten.matmul(q, t)",
                                         "w = aten.masked_fill.Scalar(s, e, value=-4)",
                                         "p = aten.softmax.int(w, -1)",
                                         "y = aten.matmul(p, v)"};
    (void)state;
    char *s = source_of(below, 8, (DraftTensor){0}, "", 8);
    assert_true(has(s, "flash::Attend") && has(s, "const long long seen"));
    free(s);
    s = source_of(finite, 8, (DraftTensor){0}, "", 8);
    assert_true(has(s, "flash::Attend") && !has(s, "const long long seen"));
    free(s);
}

/* The weights are read by something else, too, or are no softmax over the keys. */
static void test_other_graphs_stay_op_lines(void **state)
{
    static const char *const shared[] = {
        "t = aten.transpose.int(k, -2, -1)", "s = aten.matmul(q, t)",
        "p = aten.softmax.int(s, -1)",       "a = aten.matmul(p, v)",
        "m = aten.amax(p, [-1], True)",      "y = aten.mul.Tensor(a, m)"};
    static const char *const down[] = {"t = aten.transpose.int(k, -2, -1)", "s = aten.matmul(q, t)",
                                       "p = aten.softmax.int(s, -2)", "y = aten.matmul(p, v)"};
    (void)state;
    char *s = source_of(shared, 6, (DraftTensor){0}, "", 8);
    assert_false(has(s, "flash::"));
    free(s);
    s = source_of(down, 4, (DraftTensor){0}, "", 8);
    assert_false(has(s, "flash::"));
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_op_line_becomes_one_kernel),
        cmocka_unit_test(test_heads_of_any_length),
        cmocka_unit_test(test_two_products_become_one_kernel),
        cmocka_unit_test(test_hidden_columns_are_left_out),
        cmocka_unit_test(test_other_graphs_stay_op_lines),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
