/* What the baseline's own errors excuse where the tolerance is too small for them, and that outputs which are
 * compared on the host are compared with contents that are rotated as the inputs are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "eval/candidate/candidate.h"
#include "eval/judge/run.h"
#include "tests/unit/eval/compile/compile_support.h"
#include "tests/unit/eval/judge/kept_contents.h"

/* No order of float32 sums has so small errors. */
static const char task_json[] =
    "{\"name\": \"rows\", \"description\": \"d\", \"op_type\": \"o\", \"tags\": [\"graph\"], "
    "\"level\": 1, \"split\": \"train\", \"axes\": {\"rows\": {\"description\": \"r\"}, \"cols\": "
    "{\"description\": \"c\"}}, \"inputs\": {\"x\": {\"dtype\": \"%s\", \"shape\": [\"rows\", "
    "\"cols\"], \"draw\": \"normal\"}}, \"outputs\": {\"y\": {\"dtype\": \"%s\", \"shape\": "
    "[%s]}}, "
    "\"graph\": [%s], \"turns\": \"rows\", \"tolerance\": {\"%s\": {\"atol\": 1e-10, \"rtol\": "
    "1e-10}}, \"workloads\": [{\"role\": \"check\", \"axes\": {\"rows\": 8, \"cols\": 512}, "
    "\"atol\": {\"y\": [1e-10, 1e-10, 1e-10, 1e-10, 1e-10]}}, {\"role\": \"time\", \"axes\": "
    "{\"rows\": 8, \"cols\": 512}, \"atol\": {\"y\": [1e-10, 1e-10, 1e-10, 1e-10, 1e-10]}}, "
    "{\"role\": \"sim\", \"axes\": {\"rows\": 4, \"cols\": 4}}]}";

typedef struct {
    Task *task;
    DeviceOps ops;
    Machine m;
    Cases *cases;
    const Case *c;
} Setting;

static void open_setting(Setting *s, const char *type, const char *shape, const char *line,
                         int keeps)
{
    Error err;
    char *text = memory_printf(task_json, type, type, shape, line, type);
    if (task_parse("rows", text, &s->task, &err)) fail_msg("%s", err.text);
    free(text);
    s->ops = sim_device_ops;
    if (keeps) s->ops.golden = &kept_contents;
    s->m = (Machine){.ops = &s->ops, .compiler = compiler};
    if (s->ops.open("h100", &s->m.device, &err)) fail_msg("%s", err.text);
    s->cases = cases_new(1 << 20, &s->ops, s->m.device);
    const Workload *timed = task_workload(s->task, ROLE_TIME);
    s->c = cases_get(s->cases, s->task, timed, VARIANT_DRAWN, 7, 1, &err);
    if (!s->c) fail_msg("%s", err.text);
}

static void close_setting(Setting *s)
{
    cases_free(s->cases);
    s->ops.close(s->m.device);
    assert_int_equal(kept, 0);
    task_free(s->task);
}

/* Runs the plan on contents that are rotated, with an element made wrong. Returns what run_compare does. */
static int compared(Setting *s, const char *plan, int trusted, int64_t rotation, int spoilt)
{
    Fault f = {0};
    Candidate lines;
    Loaded l;
    Run r = {0};
    const uint32_t wrong = 0x40004000;
    loaded_init(&l, &s->m, s->task, trusted);
    if (candidate_parse(plan, strlen(plan), 1, &lines, &f) || loaded_compile(&l, &lines, &f) ||
        run_open(&r, &l, s->c, NULL, &f) || run_refill(&r, s->c, rotation, &f.error) ||
        run_launch(&r, &f))
        fail_msg("%s %s", f.message, f.error.text);
    if (spoilt && s->ops.write(s->m.device, r.memory.outputs[0], &wrong, 4, &f.error))
        fail_msg("%s", f.error.text);
    int rc = run_compare(&r, &f);
    if (rc < 0) fail_msg("%s", f.error.text);
    if (rc) assert_int_equal(f.outcome, OUTCOME_WRONG_RESULT);
    run_close(&r);
    loaded_close(&l);
    candidate_release(&lines);
    return rc;
}

#define EXP "//@ op e = aten.exp(x)\n"
static const char sum[] = EXP "//@ op y = aten.sum.dim_IntList(e, [1], False)\n";

/* In host memory, and on a device that keeps contents. */
static void test_excused(void **state)
{
    (void)state;
    for (int keeps = 0; keeps < 2; keeps++) {
        Setting s;
        open_setting(&s, "float32", "\"rows\"",
                     "\"e = aten.exp(x)\", \"y = aten.sum.dim_IntList(e, [1], False)\"", keeps);
        assert_int_equal(compared(&s, sum, 1, 0, 0), 0);
        assert_int_equal(compared(&s, sum, 1, 0, 1), 1);
        assert_int_equal(s.c->eager->state, EAGER_UNKNOWN);
        assert_int_equal(compared(&s, sum, 0, 0, 0), 0);
        assert_int_equal(s.c->eager->state, EAGER_KNOWN);
        assert_int_equal(compared(&s,
                                  EXP "//@ op a = aten.view(e, [rows, 32, cols / 32])\n"
                                      "//@ op b = aten.sum.dim_IntList(a, [2], False)\n"
                                      "//@ op y = aten.sum.dim_IntList(b, [1], False)\n",
                                  0, 0, 0),
                         0);
        assert_int_equal(compared(&s,
                                  EXP "//@ op a = aten.slice.Tensor(e, 1, 0, end=cols - 1)\n"
                                      "//@ op y = aten.sum.dim_IntList(a, [1], False)\n",
                                  0, 0, 0),
                         1);
        assert_int_equal(compared(&s,
                                  EXP "//@ op a = aten.to.dtype(e, torch.bfloat16)\n"
                                      "//@ op b = aten.to.dtype(a, torch.float32)\n"
                                      "//@ op y = aten.sum.dim_IntList(b, [1], False)\n",
                                  0, 0, 0),
                         1);
        assert_int_equal(compared(&s, sum, 0, 0, 1), 1);
        close_setting(&s);
    }
}

/* Limits of elements, which half types have, are compared on the host, whatever the device keeps. */
static void test_rotated(void **state)
{
    (void)state;
    static const char plan[] = "//@ op y = aten.relu(x)\n";
    Setting s;
    open_setting(&s, "float16", "\"rows\", \"cols\"", "\"y = aten.relu(x)\"", 1);
    assert_non_null(s.c->expected[0]);
    assert_null(s.c->inputs[0]);
    for (int64_t rotation = 0; rotation < 8; rotation += 3)
        for (int spoilt = 0; spoilt < 2; spoilt++)
            assert_int_equal(compared(&s, plan, 0, rotation, spoilt), spoilt);
    close_setting(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_excused),
                                       cmocka_unit_test(test_rotated)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("eager_look", tests, open_counted_compiler, close_compiler);
}
