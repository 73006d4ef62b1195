/* Symbolic sizes: the three ways in which PyTorch writes them, their texts and values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tasks/import/symbolic.h"

static Symbols symbols;

/* x is [s0, 8], y is [2*s1]. */
static int dimension(void *ctx, const char *path, int64_t d, const char **text, int64_t *number)
{
    (void)ctx;
    *text = NULL;
    *number = 8;
    if (!strcmp(path, "x") && d < 2) return d ? 0 : (*text = "Symbol('s0', integer=True)", 0);
    if (!strcmp(path, "inputs_1") && !d) return *text = "Mul(Integer(2), Symbol('s1'))", 0;
    return -1;
}

static int setup(void **state)
{
    (void)state;
    static const char *const names[] = {"s0", "s1", "s2"};
    static const char *const axes[] = {"n", "c", "h"};
    for (int i = 0; i < 3; i++) {
        int s = symbols_add(&symbols, names[i], 2, NULL);
        strcpy(symbols.list[s].axis, axes[i]);
        symbols.list[s].own = 10 + i;
        symbols.list[s].known = 1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    symbols_release(&symbols);
    return 0;
}

static void is(const char *text, const char *want, int64_t value)
{
    Symbolic e;
    Buffer b;
    SymValue v;
    Error err;
    if (symbolic_parse(text, &symbols, dimension, NULL, &e, &err))
        fail_msg("%s: %s", text, err.text);
    buffer_init(&b, 1 << 12);
    if (symbolic_text(&e, &symbols, &b, &err)) fail_msg("%s: %s", text, err.text);
    assert_string_equal(b.data, want);
    assert_int_equal(symbolic_value(&e, &symbols, NULL, &v, &err), 0);
    assert_false(v.is_real);
    assert_int_equal(v.integer, value);
    buffer_release(&b);
    symbolic_release(&e);
}

static void no_text(const char *text)
{
    Symbolic e;
    Buffer b;
    Error err;
    assert_int_equal(symbolic_parse(text, &symbols, dimension, NULL, &e, &err), 0);
    buffer_init(&b, 1 << 12);
    assert_int_equal(symbolic_text(&e, &symbols, &b, &err), -1);
    buffer_release(&b);
    symbolic_release(&e);
}

static void bad(const char *text, const char *sentence)
{
    Symbolic e;
    Error err;
    int n = symbols.n;
    assert_int_equal(symbolic_parse(text, &symbols, dimension, NULL, &e, &err), -1);
    if (!strstr(err.text, sentence)) fail_msg("%s: %s", text, err.text);
    symbols.n = n;
}

static void test_texts(void **state)
{
    (void)state;
    is("Symbol('s0', positive=True, integer=True)", "n", 10);
    is("Add(Symbol('s0'), Symbol('s1'), Integer(-3))", "n + c - 3", 18);
    is("Add(Integer(-3), Mul(Integer(-1), Symbol('s1')), Symbol('s0'))", "-c + n - 3", -4);
    is("Mul(Integer(64), Max(Integer(1), FloorDiv(Symbol('s0'), Integer(2))))",
       "64 * max(1, n / 2)", 320);
    is("Add(FloorDiv(Add(Symbol('s2'), Integer(-5)), Integer(2)), Integer(1))", "(h - 5) / 2 + 1",
       4);
    is("Pow(Symbol('s1'), Integer(2))", "c * c", 121);
    is("((s2 - 1)//2)*s0", "(h - 1) / 2 * n", 50);
    is("s0 - (s1 - s2)", "n - c + h", 11);
    is("s2 - 2*s1", "h - 2 * c", -10);
    is("s0 % 4", "n % 4", 2);
    is("2 + 3 * 4", "14", 14);
    is("TruncToInt(Mul(Float('2.0', precision=53), ToFloat(Symbol('s1'))))", "2 * c", 22);
    is("FloorToInt(Mul(Float('0.75', precision=53), ToFloat(Symbol('s1'))))", "3 * c / 4", 8);
    is("Add(Integer(1), CeilToInt(Mul(ToFloat(Add(Symbol('s0'), Symbol('s1'))), Float('0.5', "
       "precision=53))))",
       "((n + c) + 1) / 2 + 1", 12);
    no_text("FloorToInt(Mul(Float('1.3', precision=53), ToFloat(Symbol('s1'))))");
}

static void test_guards(void **state)
{
    (void)state;
    is("L['x'].size()[0] % 5 == 0", "n % 5 == 0", 1);
    is("L['x'].size()[1] == 8", "1", 1);
    is("L['inputs'][1].size()[0] >= L['x'].size()[0] + 1", "n + 1 <= 2 * c", 1);
    is("torch.sym_max(1, s0 // 3) != 3 and not s1 == 2", "max(1, n / 3) != 3 && !(c == 2)", 0);
    is("s0 == 1 or s0 == s1", "n == 1 || n == c", 0);
    bad("L['z'].size()[0] == 1", "names no dimension");
    bad("L['x'].stride()[0] == 1", "expected .size()[");
}

static void test_pins(void **state)
{
    Symbolic e;
    Error err;
    char used[SYMBOLS_MAX] = {0};
    (void)state;
    /* s2 is s0 + 2 */
    assert_int_equal(symbolic_parse("s0 + 2", &symbols, NULL, NULL, &e, &err), 0);
    assert_int_equal(symbolic_equate(&symbols, 2, &e, e.n - 1), 1);
    symbolic_release(&e);
    is("s2 * 3", "(n + 2) * 3", 36);
    /* s1 is not s0 + 5, and s0 is not s2 - 2, which depends on it */
    assert_int_equal(symbolic_parse("s0 + 5", &symbols, NULL, NULL, &e, &err), 0);
    assert_int_equal(symbolic_equate(&symbols, 1, &e, e.n - 1), 0);
    symbolic_release(&e);
    assert_int_equal(symbolic_parse("s2 - 2", &symbols, NULL, NULL, &e, &err), 0);
    assert_int_equal(symbolic_equate(&symbols, 0, &e, e.n - 1), 0);
    assert_int_equal(symbolic_uses(&e, &symbols, used), 1);
    symbolic_pin(&e, &symbols);
    symbolic_release(&e);
    is("s2 * s1", "12 * c", 132);
}

static void test_bad_expressions(void **state)
{
    char deep[400];
    (void)state;
    bad("", "expected a size");
    bad("s0 +", "expected a size");
    bad("s0 s1", "expected the end");
    bad("Unknown(s0)", "does not know");
    bad("Mod(s0)", "number of operands");
    bad("9999999999999999999", "beyond 10^18");
    bad("Symbol('s0", "not closed");
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    bad(deep, "nested too deep");
    Symbolic e;
    SymValue v;
    assert_int_equal(symbolic_parse("s0 // (s1 - 11)", &symbols, NULL, NULL, &e, NULL), 0);
    assert_int_equal(symbolic_value(&e, &symbols, NULL, &v, NULL), -1);
    symbolic_release(&e);
    assert_int_equal(symbolic_parse("s0 ** 40 * s1", &symbols, NULL, NULL, &e, NULL), 0);
    assert_int_equal(symbolic_value(&e, &symbols, NULL, &v, NULL), -1);
    symbolic_release(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_guards, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pins, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_expressions, setup, teardown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
