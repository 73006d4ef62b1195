/* Timed at the module's own sizes: what repeats there, on which devices it has room, that each repetition is
 * compared, and what is timed where the baseline fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/candidate/candidate.h"
#include "eval/device/memory_shares.h"
#include "eval/judge/baseline.h"
#include "eval/judge/contents/own_sizes.h"
#include "eval/judge/workloads.h"
#include "eval/sim/sim.h"
#include "tests/unit/eval/compile/compile_support.h"
#include "tests/unit/eval/judge/kept_contents.h"

enum { ROWS = 64, TIMED_ROWS = 16, COLS = 20 };

/* The module has 64 rows, of which 16 are timed. */
static const char task_json[] =
    "{\"name\": \"rows\", \"description\": \"d\", \"op_type\": \"o\", \"tags\": [\"graph\"], "
    "\"level\": 1, \"split\": \"train\", \"axes\": {\"rows\": {\"description\": \"r\", \"own\": "
    "64}, "
    "\"cols\": {\"description\": \"c\"}}, \"inputs\": {"
    "\"x\": {\"dtype\": \"float32\", \"shape\": [\"rows\", \"cols\"], \"draw\": \"normal\"}, "
    "\"w\": {\"dtype\": \"float32\", \"shape\": [\"cols\"], \"draw\": \"normal\"}}, "
    "\"outputs\": {\"y\": {\"dtype\": \"float32\", \"shape\": [%s]}}, \"graph\": [%s], %s"
    "\"tolerance\": {\"float32\": {\"atol\": 1e-5, \"rtol\": 1e-5}}, \"workloads\": ["
    "{\"role\": \"check\", \"axes\": {\"rows\": 3, \"cols\": 5}, \"atol\": {\"y\": [1, 1, 1, 1, "
    "1]}}, "
    "{\"role\": \"time\", \"axes\": {\"rows\": 16, \"cols\": 20}, "
    "\"atol\": {\"y\": [1e-5, 1e-5, 1e-5, 1e-5, 1e-5]}}, "
    "{\"role\": \"sim\", \"axes\": {\"rows\": 4, \"cols\": 4}}]}";

#define BY_ROW "\"h = aten.add.Tensor(x, w)\", \"y = aten.softmax.int(h, -1)\""
#define ALL_ROWS "\"h = aten.mul.Tensor(x, w)\", \"y = aten.mean.default(h)\""
#define SUM_OF_ROWS "\"h = aten.mul.Tensor(x, w)\", \"y = aten.sum.default(h)\""
#define TURNS "\"turns\": \"rows\", "

static Task *parse(const char *shape, const char *graph, const char *turns)
{
    Task *t;
    Error err;
    char *text = memory_printf(task_json, shape, graph, turns);
    if (task_parse("rows", text, &t, &err)) fail_msg("%s", err.text);
    free(text);
    return t;
}

static DeviceInfo gpu(double gib, double free_gib)
{
    MemoryShares m;
    memory_shares((uint64_t)(free_gib * (1 << 30)), 132 * 2048, &m);
    return (DeviceInfo){.contents_bytes = m.kept,
                        .buffers_bytes = m.buffers,
                        .memory_bytes = m.plan,
                        .total_bytes = (size_t)(gib * (1 << 30))};
}

static void repeats(const char *shape, const char *graph, const char *turns, int expected)
{
    OwnSizes s;
    Task *t = parse(shape, graph, turns);
    assert_non_null(t->own);
    assert_int_equal(t->own->axis[0], ROWS);
    assert_int_equal(own_sizes_find(t, &s), 0);
    if ((s.axis == 0) != expected) fail_msg("%s: axis %d", graph, s.axis);
    assert_int_equal(s.part.axis[0], expected ? TIMED_ROWS : ROWS);
    assert_true(s.grown > 1 && s.grown < (*shape ? 1.2 : 5));
    assert_int_equal(s.tensors, 4 * (ROWS * COLS + COLS + (*shape ? ROWS * COLS : 1)));
    task_free(t);
}

static void what_repeats(void **state)
{
    (void)state;
    repeats("\"rows\", \"cols\"", BY_ROW, TURNS, 1);
    repeats("", ALL_ROWS, "", 1);
    repeats("", SUM_OF_ROWS, "", 0);
}

/* Problems of KernelBench whose timed workloads are shortened, on a GPU of 80 GB and on a small one. */
static void where_it_fits(void **state)
{
    (void)state;
    static const struct {
        const char *task;
        int large, small;
    } list[] = {{"level1/k1_19_relu", 1, 0},
                {"level1/k1_38_l1norm", 1, 0},
                {"level1/k1_94_mseloss", 1, 0},
                {"level1/k1_33_batchnorm", 1, 0},
                {"level1/k1_37_frobeniusnorm", 0, 0}, /* its norm is of all rows */
                {"level2/k2_56_matmul_sigmoid_sum", 1, 0},
                {"level2/k2_96_convtranspose3d_multiply_max_globalavgpool_clamp", 1, 1}};
    const DeviceInfo large = gpu(79.6, 79), used = gpu(79.6, 23), small = gpu(23.6, 23);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        OwnSizes s;
        TaskSet set = {0};
        Error err;
        char *name = memory_printf("kernelbench/%s", list[i].task);
        if (taskset_load(NULL, name, &set, &err)) fail_msg("%s", err.text);
        Task *t = set.tasks[0];
        assert_int_equal(own_sizes_find(t, &s), 0);
        if (own_sizes_fit(&s, &large) != list[i].large ||
            own_sizes_fit(&s, &small) != list[i].small)
            fail_msg("%s: %d %d", list[i].task, own_sizes_fit(&s, &large),
                     own_sizes_fit(&s, &small));
        /* What others use of a GPU's memory does not change what its class times. */
        assert_int_equal(own_sizes_fit(&s, &used), list[i].large);
        assert_int_equal(own_sizes_fit_now(&s, &used), list[i].small);
        if (list[i].large) assert_int_equal(own_sizes_fit_now(&s, &large), 1);
        taskset_release(&set);
        free(name);
    }
}

/* All of KernelBench that is here: docs/gpu-verdict.md has the number. */
static void how_many(void **state)
{
    (void)state;
    enum { TASKS = 246, TIMED_SO = 240 };
    const DeviceInfo large = gpu(79.6, 79);
    TaskSet set = {0};
    Error err;
    int n = 0;
    if (taskset_load(NULL, "kernelbench/level1,kernelbench/level2,kernelbench/level3", &set, &err))
        fail_msg("%s", err.text);
    assert_int_equal(set.n, TASKS);
    for (int i = 0; i < set.n; i++) {
        OwnSizes s;
        Task *t = set.tasks[i];
        n += !t->own || (!own_sizes_find(t, &s) && own_sizes_fit(&s, &large));
    }
    assert_int_equal(n, TIMED_SO);
    taskset_release(&set);
}

/* ---- a run ---- */

static DeviceInfo roomy;
static int taken; /* other programs use its memory */

static const DeviceInfo *roomy_info(Device *d)
{
    roomy = *sim_device_ops.info(d);
    roomy.contents_bytes = roomy.buffers_bytes = (size_t)1 << 30;
    roomy.total_bytes = (size_t)4 << 30;
    roomy.predicted = 0;
    if (taken) roomy.buffers_bytes = ROWS * COLS;
    return &roomy;
}

static void open_baseline(Loaded *l, const Machine *m, Task *t, Candidate *lines)
{
    Fault f = {0};
    loaded_init(l, m, t, 1);
    if (candidate_parse(t->baseline_source, strlen(t->baseline_source), 1, lines, &f) ||
        loaded_compile(l, lines, &f))
        fail_msg("%s %s", f.message, f.error.text);
}

/* One element of the last repetition, and one byte of an input's. */
static void spoil(Run *r, size_t row)
{
    Fault f = {0};
    float value = 7;
    DevicePtr x = r->memory.inputs[0], y = r->memory.outputs[0];
    const DeviceOps *ops = r->loaded->ops;
    if (run_compare(r, &f) || run_inspect(r, &f)) fail_msg("%s %s", f.message, f.error.text);
    if (ops->write(r->loaded->device, y + row * COLS * 4, &value, 4, &f.error))
        fail_msg("%s", f.error.text);
    assert_int_equal(run_compare(r, &f), 1);
    if (!strstr(f.message, "1 of ")) fail_msg("%s", f.message);
    if (ops->protect(r->loaded->device, x, 0, &f.error) ||
        ops->write(r->loaded->device, x + (ROWS - 1) * COLS * 4, &value, 4, &f.error))
        fail_msg("%s", f.error.text);
    assert_int_equal(run_inspect(r, &f), 1);
}

/* Shifted contents have no two equal rows, and are those that the inputs are compared with. */
static void shift(Run *r, const Case *c)
{
    Fault f = {0};
    static float x[ROWS][COLS];
    for (int shifted = 0; shifted < 2; shifted++) {
        int equal = 0;
        if (shifted ? run_refill_shifted(r, c, &f.error) : run_refill(r, c, 0, &f.error))
            fail_msg("%s", f.error.text);
        if (r->loaded->ops->read(r->loaded->device, r->memory.inputs[0], x, sizeof x, &f.error))
            fail_msg("%s", f.error.text);
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < i; k++) equal += !memcmp(x[i], x[k], sizeof x[i]);
        assert_int_equal(equal != 0, !shifted);
        assert_int_equal(run_inspect(r, &f), 0);
    }
}

static void run_at_own_sizes(const char *shape, const char *graph, const char *turns, size_t row)
{
    Task *t = parse(shape, graph, turns);
    Fault f = {0};
    Error err;
    DeviceOps ops = sim_device_ops;
    Candidate lines;
    Loaded l;
    Run r = {0};
    ops.golden = &kept_contents;
    ops.info = roomy_info;
    Machine m = {.ops = &ops, .compiler = compiler};
    if (ops.open("h100", &m.device, &err)) fail_msg("%s", err.text);
    Cases *cases = cases_new(1 << 20, &ops, m.device);
    assert_int_equal(cases_take_own(cases, t), 1);
    const Case *c = cases_get(cases, t, t->own, VARIANT_DRAWN, 7, 1, &err);
    if (!c) fail_msg("%s", err.text);
    assert_int_equal(c->input_bytes[0], ROWS * COLS * 4);
    assert_int_equal(case_part(c)->axis[0], TIMED_ROWS);
    assert_true(c->tolerance[0].atol > 1e-5 && c->tolerance[0].atol < (*shape ? 1.2e-5 : 5e-5));
    open_baseline(&l, &m, t, &lines);
    if (run_open(&r, &l, c, NULL, &f)) fail_msg("%s %s", f.message, f.error.text);
    for (int64_t rotation = 0; rotation < (*turns ? 2 : 1); rotation++) {
        if (run_refill(&r, c, rotation, &err) || run_launch(&r, &f))
            fail_msg("%s %s", f.message, f.error.text);
        spoil(&r, row);
    }
    shift(&r, c);
    run_close(&r);
    loaded_close(&l);
    candidate_release(&lines);
    cases_free(cases);
    ops.close(m.device);
    assert_int_equal(kept, 0);
    task_free(t);
}

static void each_repetition_is_compared(void **state)
{
    (void)state;
    run_at_own_sizes("\"rows\", \"cols\"", BY_ROW, TURNS, ROWS - 1);
    run_at_own_sizes("", ALL_ROWS, "", 0);
}

/* ---- where the baseline fails ---- */

/* What large buffers meet: no room, also only once the baseline has run, or a library that refuses; or the
 * device fails at all sizes. */
enum { NOTHING, NO_ROOM, REFUSED, NO_SET, BROKEN };
static int failing, large, tries;

static int limited_alloc(Device *d, size_t bytes, const char *label, DevicePtr *out, Error *err)
{
    if (!strcmp(label, "input x")) large = bytes == ROWS * COLS * sizeof(float), tries += large;
    if (failing == BROKEN || (large && (failing == NO_ROOM || (failing == NO_SET && tries > 1))))
        return error_set(err, ERROR_LIMIT, "no room for %zu bytes", bytes);
    return sim_device_ops.alloc(d, bytes, label, out, err);
}

static int limited_run(Device *d, const DeviceLaunch *launches, int n, Fault *f)
{
    if (large && failing == REFUSED)
        return fault_set(f, OUTCOME_LAUNCH_ERROR, 0, "the library refuses these sizes");
    return sim_device_ops.run(d, launches, n, f);
}

static int no_reserve(Device *d, const size_t *bytes, int n, Error *err)
{
    (void)d, (void)bytes, (void)n, (void)err;
    return 0;
}

static int no_canary(Device *d, Error *err)
{
    (void)d, (void)err;
    return 0;
}

static const DeviceClockOps no_clock = {.reserve = no_reserve, .canary = no_canary};

static int begins(Judgement *j, Evaluator *e, Task *t)
{
    large = 0;
    judgement_begin(j, e, t, t->baseline_source, strlen(t->baseline_source));
    return j->timed == t->own;
}

/* Two candidates of a task: both are timed at the same sizes, and the baseline ran at the module's own once.
 * says: what the verdict says of that; NULL: they are timed at the module's own. */
static void two_candidates(Evaluator *e, Task *t, const char *says, char key[DIGEST_HEX])
{
    Judgement *j = memory_alloc(sizeof *j);
    tries = 0;
    for (int i = 0; i < 2; i++) {
        int own = begins(j, e, t);
        if (i || taken) assert_int_equal(own, !says);
        if (step_sizes(j)) fail_msg("%s", j->fault.error.text);
        assert_ptr_equal(j->timed, says ? task_workload(t, ROLE_TIME) : t->own);
        if (j->baseline) assert_ptr_equal(j->baseline->own.timed, j->timed);
        assert_int_equal(j->verdict.n_checks, says != NULL);
        if (says && (!strstr(j->verdict.checks[0], says) ||
                     strncmp(j->verdict.checks[0], "time rows=16 cols=20 in place of ", 33)))
            fail_msg("%s", j->verdict.checks[0]);
        if (i) assert_string_equal(key, j->verdict.key);
        memcpy(key, j->verdict.key, DIGEST_HEX);
        judgement_release(j);
    }
    assert_int_equal(tries > 0, !taken);
    assert_true(says == NULL || tries <= 1 + (failing == NO_SET));
    free(j);
}

static void begin_evaluator(Evaluator *e, DeviceOps *ops, Task **t)
{
    Error err;
    *ops = sim_device_ops;
    ops->golden = &kept_contents;
    ops->info = roomy_info;
    ops->alloc = limited_alloc;
    ops->run = limited_run;
    ops->clock = &no_clock;
    *e = (Evaluator){
        .machine = {.ops = ops, .compiler = compiler}, .seed = 7, .tasks = {.tasks = t, .n = 1}};
    e->baselines = memory_array(1, sizeof *e->baselines);
    if (ops->open("h100", &e->machine.device, &err)) fail_msg("%s", err.text);
    e->cases = cases_new(1 << 20, ops, e->machine.device);
}

static void end_evaluator(Evaluator *e)
{
    baselines_free(e->baselines[0]);
    free(e->baselines);
    cases_free(e->cases);
    e->machine.ops->close(e->machine.device);
    assert_int_equal(kept, 0);
}

static void falls_back(void **state)
{
    (void)state;
    static const char *const says[] = {NULL, "no room for 5120 bytes", "library refuses",
                                       "no room for 5120 bytes"};
    static char keys[BROKEN + 1][DIGEST_HEX];
    Task *t = parse("\"rows\", \"cols\"", BY_ROW, TURNS);
    Evaluator e;
    DeviceOps ops;
    for (failing = NOTHING; failing < BROKEN; failing++) {
        begin_evaluator(&e, &ops, &t);
        two_candidates(&e, t, says[failing], keys[failing]);
        end_evaluator(&e);
    }
    failing = NOTHING, taken = 1;
    begin_evaluator(&e, &ops, &t);
    two_candidates(&e, t, "memory was free", keys[BROKEN]);
    end_evaluator(&e);
    taken = 0;
    assert_string_not_equal(keys[0], keys[1]);
    for (int i = 2; i <= BROKEN; i++) assert_string_equal(keys[1], keys[i]);
    task_free(t);
}

/* Of several shapes the first alone has other sizes of its own, and its weight. */
static void several_shapes(void **state)
{
    (void)state;
    static const char more[] =
        "{\"role\": \"time\", \"axes\": {\"rows\": 2, \"cols\": 20}, \"weight\": 3.0, "
        "\"atol\": {\"y\": [1e-5, 1e-5, 1e-5, 1e-5, 1e-5]}}, "
        "{\"role\": \"sim\", \"axes\": {\"rows\": 4, \"cols\": 4}}, "
        "{\"role\": \"sim\", \"axes\": {\"rows\": 2, \"cols\": 4}}]}";
    Task *t;
    Error err;
    Evaluator e;
    DeviceOps ops;
    Judgement *j = memory_alloc(sizeof *j);
    char *one = memory_printf(task_json, "\"rows\", \"cols\"", BY_ROW, TURNS);
    *strstr(one, "{\"role\": \"sim\"") = 0;
    char *text = memory_printf("%s%s", one, more);
    if (task_parse("rows", text, &t, &err)) fail_msg("%s", err.text);
    for (failing = NOTHING; failing <= NO_ROOM; failing++) {
        begin_evaluator(&e, &ops, &t);
        tries = 0;
        begins(j, &e, t);
        assert_int_equal(step_sizes(j), 0);
        assert_int_equal(j->n_pairs, 2);
        assert_ptr_equal(j->pairs[0].timed, failing ? task_workload(t, ROLE_TIME) : t->own);
        assert_int_equal(j->pairs[0].timed->axis[0], failing ? TIMED_ROWS : ROWS);
        assert_int_equal(j->pairs[1].timed->axis[0], 2);
        assert_int_equal(j->pairs[0].timed->weight == 1 && j->pairs[1].timed->weight == 3, 1);
        assert_int_equal(j->verdict.left_own, failing == NO_ROOM);
        judgement_release(j);
        end_evaluator(&e);
    }
    failing = NOTHING;
    task_free(t);
    free(text);
    free(one);
    free(j);
}

/* A baseline that fails at all sizes decides nothing. */
static void fails_at_all_sizes(void **state)
{
    (void)state;
    Task *t = parse("\"rows\", \"cols\"", BY_ROW, TURNS);
    Evaluator e;
    DeviceOps ops;
    Judgement *j = memory_alloc(sizeof *j);
    begin_evaluator(&e, &ops, &t);
    failing = BROKEN;
    begins(j, &e, t);
    assert_int_equal(step_sizes(j), -1);
    judgement_release(j);
    failing = NOTHING;
    assert_int_equal(begins(j, &e, t), 1);
    assert_int_equal(step_sizes(j), 0);
    assert_ptr_equal(j->timed, t->own);
    judgement_release(j);
    end_evaluator(&e);
    task_free(t);
    free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_repeats),      cmocka_unit_test(where_it_fits),
        cmocka_unit_test(how_many),          cmocka_unit_test(each_repetition_is_compared),
        cmocka_unit_test(falls_back),        cmocka_unit_test(several_shapes),
        cmocka_unit_test(fails_at_all_sizes)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("own_sizes", tests, open_counted_compiler, close_compiler);
}
