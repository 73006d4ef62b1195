/* Formulas of graphs: signs and brackets, what stands where it is used, and what has a line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tasks/graph/formula.h"

static void check(FormulaForm form, const char *const *lines, int n, size_t max,
                  const char *expected)
{
    static const char *const inputs[] = {"x", "w", "b", "z"};
    static const char *const outputs[] = {"y"};
    GraphSource s = {lines, n, inputs, 4, outputs, 1, NULL, NULL};
    Graph *g;
    Error err;
    Buffer b;
    buffer_init(&b, 1 << 16);
    if (graph_read(&s, &g, &err)) fail_msg("%s", err.text);
    graph_formula(g, form, max, &b);
    assert_string_equal(b.data, expected);
    buffer_release(&b);
    graph_free(g);
}
#define CHECK_FORM(form, expected, ...)                                                \
    do {                                                                               \
        static const char *const lines_[] = {__VA_ARGS__};                             \
        check(form, lines_, (int)(sizeof lines_ / sizeof *lines_), 1 << 12, expected); \
    } while (0)
#define CHECK(expected, ...) CHECK_FORM(FORMULA_NESTED, expected, __VA_ARGS__)

static void test_nesting(void **state)
{
    (void)state;
    CHECK("y = softmax(relu(x @ w.T + b), -1)\n", "h = aten.linear.default(x, w, b)",
          "r = aten.relu.default(h)", "y = aten.softmax.int(r, -1)");
    CHECK("y = (x + z) * w\n", "h = aten.add.Tensor(x, z)", "y = aten.mul.Tensor(h, w)");
    CHECK("y = x - (z - w)\n", "h = aten.sub.Tensor(z, w)", "y = aten.sub.Tensor(x, h)");
    CHECK("y = x * z - w\n", "h = aten.mul.Tensor(x, z)", "y = aten.sub.Tensor(h, w)");
    CHECK("y = (x + z) @ w.T @ b\n", "h = aten.add.Tensor(x, z)", "t = aten.t(w)",
          "g = aten.mm(h, t)", "y = aten.mm(g, b)");
    CHECK("y = cat([x * 2.0, w], 1)\n", "h = aten.mul.Tensor(x, 2.0)", "y = aten.cat([h, w], 1)");
    CHECK("y = relu(x + b)\n", "h = aten.add.Tensor(x, b)", "c = aten.contiguous(h)",
          "y = aten.relu(c)");
}

static void test_line_an_operator(void **state)
{
    (void)state;
    CHECK_FORM(FORMULA_LINES, "h = x @ w.T + b\nr = relu(h)\ny = softmax(r, -1)\n",
               "h = aten.linear.default(x, w, b)", "r = aten.relu.default(h)",
               "y = aten.softmax.int(r, -1)");
    CHECK_FORM(FORMULA_LINES, "h = x + b\ny = relu(h)\n", "h = aten.add.Tensor(x, b)",
               "c = aten.contiguous(h)", "y = aten.relu(c)");
}

/* What is used twice, several results of one operator, an output that is used: each has a line. */
static void test_lines(void **state)
{
    (void)state;
    CHECK("h = x @ w\ny = h * sigmoid(h)\n", "h = aten.mm(x, w)", "s = aten.sigmoid(h)",
          "y = aten.mul.Tensor(h, s)");
    CHECK("v, i = max(x, 1, True)\ny = x / v\n", "v, i = aten.max.dim(x, 1, True)",
          "y = aten.div.Tensor(x, v)");
    /* relu_ changes h, so nothing moves behind it */
    CHECK("h = x @ w\ns = sigmoid(h)\nr = relu_(h)\ny = s + r\n", "h = aten.mm(x, w)",
          "s = aten.sigmoid(h)", "r = aten.relu_(h)", "y = aten.add.Tensor(s, r)");
}

static void test_long(void **state)
{
    (void)state;
    static const char *const lines[] = {"h = aten.mm(x, w)", "g = aten.mul.Tensor(h, h)",
                                        "k = aten.mul.Tensor(g, g)", "y = aten.mul.Tensor(k, k)"};
    check(FORMULA_NESTED, lines, 4, 20, "h = x @ w\ng = h * h\n... and 2 more lines\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nesting),
                                       cmocka_unit_test(test_line_an_operator),
                                       cmocka_unit_test(test_lines), cmocka_unit_test(test_long)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
