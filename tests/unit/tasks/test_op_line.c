/* Operator calls as text: what each kind of argument becomes, how an overload is found, and what is
 * refused with which column. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tasks/graph/op_line.h"

static int axis(void *ctx, const char *name, size_t len, int64_t *value)
{
    (void)ctx;
    if (len != 1 || (*name != 'n' && *name != 'c')) return -1;
    *value = *name == 'n' ? 6 : 4;
    return 0;
}

/* x: [6, 4], y: [4], m: a mask of [6, 4]. */
static int tensor(void *ctx, const char *name, size_t len, OpTensor *out)
{
    (void)ctx;
    if (len != 1 || !strchr("xym", *name)) return -1;
    *out = (OpTensor){.rank = 2, .size = {6, 4}};
    if (*name == 'y') *out = (OpTensor){.rank = 1, .size = {4}};
    if (*name == 'm') out->dtype = DTYPE_B8;
    op_contiguous(out);
    return *name;
}

static const OpScope scope = {.axis = axis, .tensor = tensor};

static int call(const char *text, OpCall *c, int *id, Error *err)
{
    /* a copy of the exact length, so that a sanitizer sees a read past the end */
    size_t len = strlen(text);
    char *line = malloc(len ? len : 1);
    OpLine l;
    memcpy(line, text, len);
    int rc = op_line_parse(line, len, &l, err);
    if (!rc) rc = op_line_call(&l, &scope, c, id, err);
    free(line);
    return rc;
}

static void good(const char *text, OpCall *c, int *id)
{
    Error err;
    if (call(text, c, id, &err)) fail_msg("%s: %s", text, err.text);
}

static void bad(const char *text, const char *sentence)
{
    OpCall c;
    Error err;
    int id[OP_MAX_TENSORS];
    if (!call(text, &c, id, &err)) fail_msg("%s: was read", text);
    if (!strstr(err.text, sentence)) fail_msg("%s: %s", text, err.text);
}

static void arguments(void **state)
{
    (void)state;
    OpCall c;
    int id[OP_MAX_TENSORS];
    good("h = aten.add.Tensor(x, y, alpha=n - c)", &c, id);
    assert_int_equal(c.n_tensors, 2);
    assert_true(id[0] == 'x' && id[1] == 'y');
    assert_int_equal(c.arg[2].integer[0], 2);
    assert_true(c.result[0].rank == 2 && c.result[0].size[0] == 6 && c.result[0].size[1] == 4);
    good("h=aten.mul.Tensor( x ,x )", &c, id); /* one tensor, named twice */
    assert_int_equal(c.n_tensors, 1);
    assert_true(!c.arg[0].integer[0] && !c.arg[1].integer[0]);
    good("h = aten.leaky_relu.default(x, 1e-2)", &c, id);
    assert_true(c.arg[1].kind == OP_FLOAT && c.arg[1].number == 0.01);
    good("h = aten.clamp.default(x, None, -inf)", &c, id);
    assert_true(c.arg[1].kind == OP_NONE && c.arg[2].number == -INFINITY);
    good("h = aten.clamp.default(x, max=n == 6 ? c : 0)", &c, id);
    assert_true(c.arg[1].kind == OP_NONE && c.arg[2].integer[0] == 4);
    good("h = aten.gelu.default(x, approximate='tanh')", &c, id);
    assert_string_equal(c.arg[1].text, "tanh");
    good("h = aten.dropout.default(x, 0.5, False)", &c, id);
    assert_true(c.arg[2].kind == OP_BOOL && !c.arg[2].integer[0]);
    good("h = aten.masked_fill.Scalar(x, m, -3.5)", &c, id);
    assert_true(c.arg[2].number == -3.5 && id[1] == 'm');
}

static void overloads(void **state)
{
    (void)state;
    OpLine l;
    Error err;
    assert_int_equal(op_line_parse("y = aten.relu(x)", 16, &l, &err), 0);
    assert_string_equal(l.op->name, "aten.relu.default");
    assert_int_equal(op_line_parse("y = aten.add(x)", 15, &l, &err), 0);
    assert_string_equal(l.op->name, "aten.add.Tensor");
    assert_int_equal(op_line_parse("a, b = aten.add(x)", 18, &l, &err), 0);
    assert_int_equal(l.n_results, 2);
}

static void refused(void **state)
{
    (void)state;
    char list[OP_MAX_ARGS * 4 + 64];
    bad("", "column 1: expected the name of a result");
    bad("h aten.relu(x)", "column 3: expected '='");
    bad("h = relu(x)", "column 5: operator relu is not in the library");
    bad("h = aten.rellu.default(x)", "did you mean aten.relu.default?");
    bad("h = aten.relu(x", "expected ',' or ')'");
    bad("h = aten.relu(x) + 1", "column 18: expected the end of the line");
    bad("h = aten.relu([x", "column 15: a bracket is not closed");
    bad("h = aten.gelu(x, approximate='tanh)", "no closing quote");
    char text[sizeof((OpValue *)0)->text + 64];
    snprintf(text, sizeof text, "h = aten.gelu(x, approximate='%0*d')",
             (int)sizeof((OpValue *)0)->text, 0);
    bad(text, "expected a text of at most");
    bad("h = aten.relu(z)", "unknown name 'z'");
    bad("h = aten.relu(n)", "expected Tensor, found an int");
    bad("h = aten.relu(x, y)", "fit no parameter");
    bad("h = aten.relu(self=x, self=x)", "is given twice");
    bad("h = aten.add(alpha=1, x)", "a positional argument follows");
    bad("h = aten.add(x, y, a_name_longer_than_any_parameter=1)", "has no parameter");
    bad("h, h = aten.relu(x)", "two results have this name");
    bad("h, k = aten.relu(x)", "gives 1 tensors, 2 are named");
    bad("h = aten.relu(torch.float31)", "is no element type");
    bad("h = aten.add(x, [x, 1])", "is no tensor, unlike");
    bad("h = aten.add(x, 9999999999999999999)", "integer literal");
    bad("h = aten.add(x, )", "expected an argument");
    strcpy(list, "h = aten.relu(x");
    for (int i = 0; i < OP_MAX_ARGS; i++) strcat(list, ", 1");
    bad(strcat(list, ")"), "more than 16 arguments");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(arguments), cmocka_unit_test(overloads),
                                       cmocka_unit_test(refused)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
