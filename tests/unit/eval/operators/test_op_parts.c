/* Kernels of op lines in parts: where parts end, which part each launch runs in, what two plans share,
 * and how many kernels a candidate may have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/candidate/candidate.h"
#include "eval/judge/loaded_ops.h"
#include "eval/sim/sim.h"
#include "tests/fixture_path.h"
#include "tests/unit/eval/compile/compile_support.h"

/* ---- where parts end ---- */

enum { TEXTS = 40, TEXT = 1000 };

/* Texts of 1000 bytes and two kernels; one in ten may end a part. */
static void make_texts(PlanKernelText *texts, const PlanKernelText **list)
{
    static char text[TEXT + 1];
    memset(text, ' ', TEXT);
    for (int i = 0; i < TEXTS; i++) {
        texts[i] = (PlanKernelText){.text = text, .n_kernels = 2};
        snprintf(texts[i].name, sizeof texts[i].name, "op_%x%011x", i % 10 ? 5 : 1, i);
        list[i] = &texts[i];
    }
}

static void test_ends(void **state)
{
    (void)state;
    PlanKernelText texts[TEXTS];
    const PlanKernelText *list[TEXTS];
    make_texts(texts, list);
    OpPartSize all = op_part_total(list, TEXTS);
    assert_int_equal(all.kernels, 2 * TEXTS);
    assert_int_equal(all.bytes, TEXTS * TEXT);
    assert_int_equal(op_part_end(list, TEXTS, 0, all), TEXTS);
    OpPartSize size = {100, 20 * TEXT};
    /* Beyond the half, behind a text whose digest ends a part: 20 and 30, not 10. */
    assert_int_equal(op_part_end(list, TEXTS, 0, size), 11);
    assert_int_equal(op_part_end(list, TEXTS, 1, size), 11);
    assert_int_equal(op_part_end(list, TEXTS, 2, size), 21);
    assert_int_equal(op_part_end(list, TEXTS, 11, size), 21);
    assert_int_equal(op_part_end(list, TEXTS, 31, size), TEXTS);
    /* Before the size is reached. */
    assert_int_equal(op_part_end(list, TEXTS, 0, (OpPartSize){6, 20 * TEXT}), 3);
    assert_int_equal(op_part_end(list, TEXTS, 0, (OpPartSize){7, 20 * TEXT}), 3);
    assert_int_equal(op_part_end(list, TEXTS, 2, (OpPartSize){100, 3 * TEXT}), 5);
    /* A text that is larger is a part. */
    assert_int_equal(op_part_end(list, TEXTS, 4, (OpPartSize){1, TEXT / 2}), 5);
    assert_int_equal(op_part_end(list, TEXTS, TEXTS - 1, (OpPartSize){1, TEXT / 2}), TEXTS);
}

/* Most parts of a plan that lacks one of the texts are the same. */
static void test_same_ends(void **state)
{
    (void)state;
    PlanKernelText texts[TEXTS];
    const PlanKernelText *list[TEXTS], *fewer[TEXTS - 1];
    OpPartSize size = {100, 14 * TEXT};
    int n = 0, end, others = 0;
    make_texts(texts, list);
    for (int i = 0; i < TEXTS; i++)
        if (i != 3) fewer[n++] = list[i];
    for (int from = 0; from < TEXTS; from = end) {
        end = op_part_end(list, TEXTS, from, size);
        int same = 0, other_end;
        for (int at = 0; at < n; at = other_end) {
            other_end = op_part_end(fewer, n, at, size);
            same |= other_end - at == end - from && fewer[at] == list[from];
        }
        others += !same;
    }
    assert_int_equal(others, 1);
}

/* ---- plans ---- */

static Device *device;

typedef struct {
    Candidate candidate;
    Loaded loaded;
} Plans;

static void release(Plans *p)
{
    loaded_close(&p->loaded);
    candidate_release(&p->candidate);
}

/* Returns as loaded_ops_compile does, with the workloads of `roles` (bits). */
static int compile_plan(Plans *p, Task *t, const char *source, int trusted, int roles, Fault *f)
{
    const Machine machine = {&sim_device_ops, device, compiler};
    const Workload *list[TASK_MAX_WORKLOADS];
    int n = 0;
    memset(p, 0, sizeof *p);
    loaded_init(&p->loaded, &machine, t, trusted);
    if (candidate_parse(source, strlen(source), 1, &p->candidate, f) ||
        loaded_compile(&p->loaded, &p->candidate, f))
        fail_msg("%s", f->message);
    for (int i = 0; i < t->n_workloads; i++)
        if (roles >> t->workloads[i].role & 1) list[n++] = &t->workloads[i];
    int rc = loaded_ops_compile(&p->loaded, list, n, f);
    if (rc < 0) fail_msg("%s", f->error.text);
    return rc;
}

/* Every launch for a workload has its kernel in its module. */
static void check_launches(Plans *p, const Workload *w)
{
    Loaded *l = &p->loaded;
    Fault f;
    Error err = {0};
    DeviceLaunch *launches;
    int n, kernels = 0;
    assert_int_equal(loaded_ops_at(l, w, &f), 0);
    if (plan_resolve(&l->context, w, NULL, &launches, &n, &f)) fail_msg("%s", f.message);
    assert_int_equal(n, l->context.ops->n_launches);
    for (int i = 0; i < n; i++) {
        KernelInfo info;
        assert_non_null(launches[i].module);
        if (launches[i].library_args) continue;
        if (sim_device_ops.kernel(device, launches[i].module, launches[i].kernel, &info, &err))
            fail_msg("%s", err.text);
        kernels++;
    }
    assert_true(kernels > 0);
    free(launches);
}

/* The kernels of a network of 253 operators at its timed size, which are not run. */
static void test_many_operators(void **state)
{
    (void)state;
    TaskSet set;
    Error err = {0};
    Fault f;
    Plans p;
    if (taskset_load(fixture_path("tasks"), "kernelbench/level3/k3_15_densenet121", &set, &err))
        fail_msg("%s", err.text);
    Task *t = set.tasks[0];
    assert_int_equal(compile_plan(&p, t, t->baseline_source, 1, 1 << ROLE_TIME, &f), 0);
    Loaded *l = &p.loaded;
    OpPartSize size = op_part_size();
    const PlanOps *ops = &l->workload_ops[0].ops;
    int least = (int)((l->op_total.bytes + size.bytes - 1) / size.bytes), texts = 0;
    print_message("# %d texts of %zu KiB are %d parts\n", ops->n_texts, l->op_total.bytes >> 10,
                  l->n_op_modules);
    assert_in_range(l->n_op_modules, least, 2 * least);
    assert_true(least > 1);
    assert_int_equal(l->n_op_texts, ops->n_texts);
    for (int m = 0, n = 0; m < l->n_op_modules; m++, texts += n, n = 0) {
        for (int i = 0; i < l->n_op_texts; i++) n += l->op_texts[i].module == m;
        assert_true(n > 0);
    }
    assert_int_equal(texts, ops->n_texts);
    check_launches(&p, task_workload(t, ROLE_TIME));
    if (loaded_ops_again(l, &f)) fail_msg("%s", f.message);
    check_launches(&p, task_workload(t, ROLE_TIME));
    release(&p);
    taskset_release(&set);
}

/* A candidate with the baseline's op lines compiles only what the baseline does not have. */
static void test_shared(void **state)
{
    (void)state;
    TaskSet set;
    Error err = {0};
    Fault f;
    Plans p;
    if (taskset_load(fixture_path("tests/fixtures/op_lines/tasks"), NULL, &set, &err))
        fail_msg("%s", err.text);
    Task *t = NULL;
    for (int i = 0; i < set.n; i++)
        if (!strcmp(set.tasks[i]->name, "op_layer")) t = set.tasks[i];
    assert_non_null(t);
    setenv("QUERN_TEST", "parts=1", 1);
    long before = compiled_so_far();
    int timed = 1 << ROLE_TIME | 1 << ROLE_SIM, all = timed | 1 << ROLE_CHECK;
    assert_int_equal(compile_plan(&p, t, t->baseline_source, 1, timed, &f), 0);
    int parts = p.loaded.n_op_modules;
    long first = compiled_so_far() - before;
    assert_true(parts > 2 && first == parts);
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role != ROLE_CHECK) check_launches(&p, &t->workloads[i]);
    release(&p);
    assert_int_equal(compile_plan(&p, t, t->baseline_source, 0, all, &f), 0);
    assert_true(p.loaded.n_op_modules > parts);
    assert_int_equal(compiled_so_far() - before, p.loaded.n_op_modules);
    for (int i = 0; i < t->n_workloads; i++) check_launches(&p, &t->workloads[i]);
    /* Nothing is compiled that is there. */
    const Workload *w = &t->workloads[0];
    parts = p.loaded.n_op_modules;
    assert_int_equal(loaded_ops_compile(&p.loaded, &w, 1, &f), 0);
    assert_int_equal(p.loaded.n_op_modules, parts);
    release(&p);
    unsetenv("QUERN_TEST");
    taskset_release(&set);
}

/* Each constant is another kernel, which the task's own operators do not need. */
static void refuse_constants(int lines, const char *message)
{
    TaskSet set;
    Error err = {0};
    Fault f;
    Plans p;
    Buffer source;
    if (taskset_load(fixture_path("tasks"), "relu", &set, &err)) fail_msg("%s", err.text);
    Task *t = set.tasks[0];
    buffer_init(&source, 1 << 20);
    for (int i = 0; i < lines; i++)
        buffer_printf(&source, "//@ op h%d = aten.add.Scalar(%s, %d.5)\n", i, t->inputs[0].name, i);
    buffer_printf(&source, "//@ op %s = aten.relu(h0)\n", t->outputs[0].name);
    long before = compiled_so_far();
    assert_int_equal(compile_plan(&p, t, source.data, 0, 1 << ROLE_TIME, &f), 1);
    assert_int_equal(f.outcome, OUTCOME_PLAN_ERROR);
    assert_string_equal(f.message, message);
    assert_int_equal(compiled_so_far(), before);
    release(&p);
    buffer_release(&source);
    taskset_release(&set);
}

/* A candidate's kernels are bounded in all, and more narrowly those of its own. */
static void test_too_many(void **state)
{
    (void)state;
    refuse_constants(2001,
                     "the op lines of the plan need more than 2000 kernels or 1500 KiB of text");
    refuse_constants(600, "the op lines of the plan need more than 192 KiB of text that the "
                          "operators of the task do not need");
}

static int open_both(void **state)
{
    Error err;
    if (open_counted_compiler(state)) return -1;
    return sim_device_ops.open("h100", &device, &err);
}

static int close_both(void **state)
{
    sim_device_ops.close(device);
    return close_compiler(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends), cmocka_unit_test(test_same_ends),
        cmocka_unit_test(test_many_operators), cmocka_unit_test(test_shared),
        cmocka_unit_test(test_too_many)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("op_parts", tests, open_both, close_both);
}
