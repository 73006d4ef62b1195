/* The work for the first candidate while the device opens gives what its verdict needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "eval/candidate/candidate.h"
#include "eval/judge/prepare.h"

static DeviceGolden *const kept = (DeviceGolden *)(uintptr_t)64;
static int uploads, broken;

static int keep(Device *d, const void *src, size_t bytes, DeviceGolden **out, Error *err)
{
    assert_non_null(d);
    assert_non_null(src);
    assert_true(bytes > 0);
    if (broken) return error_set(err, ERROR_MEMORY, "no room");
    uploads++;
    *out = kept;
    return 0;
}

static void drop(Device *d, DeviceGolden *g)
{
    assert_non_null(d);
    assert_ptr_equal(g, kept);
    uploads--;
}

static const DeviceInfo *any_info(Device *d)
{
    static const DeviceInfo info;
    (void)d;
    return &info;
}

static const DeviceOps ops = {
    .prefix = "keeps", .info = any_info, .golden = keep, .golden_free = drop};
static TaskSet tasks;
static Error err;

static int set_up(void **state)
{
    (void)state;
    return taskset_load(NULL, "relu", &tasks, &err);
}

static int tear_down(void **state)
{
    (void)state;
    taskset_release(&tasks);
    return 0;
}

static int compiled_ahead(Compiler *c, const char *source, size_t len)
{
    Candidate k;
    CompileResult r;
    Outcome outcome;
    int line;
    assert_int_equal(candidate_parse_trusted(source, len, &k, &outcome, &line, &err), 0);
    const char *name = k.plan.kernels[0];
    assert_int_equal(
        compiler_run(c, &(CompileRequest){"sm_80", k.source, k.len, 1, &name}, &r, &err), 0);
    assert_true(r.ok);
    int cached = r.cached;
    compile_result_release(&r);
    candidate_release(&k);
    return cached;
}

static void test_first_candidate(void **state)
{
    (void)state;
    Task *t = tasks.tasks[0];
    const Workload *w = &t->workloads[0];
    Cases *cases = cases_new(1 << 28, &ops, NULL);
    Compiler *compiler;
    char source[8192];
    size_t len = strlen(t->baseline_source);
    assert_true(len + 16 < sizeof source);
    memcpy(source, t->baseline_source, len);
    memcpy(source + len, "\n// another\n", 13);
    assert_int_equal(compiler_open(&(CompilerOptions){.cache_dir = NULL}, &compiler, &err), 0);
    Prepare *p = prepare_begin(&(PrepareOptions){compiler, cases, t, w, 5, t->baseline_source,
                                                 source, strlen(source), "sm_80"});
    prepare_drawn(p);
    assert_int_equal(uploads, 0);
    cases_open(cases, (Device *)(uintptr_t)64);
    broken = 1;
    assert_int_equal(prepare_contents(p, &err),
                     -1); /* the upload of the first fails; it is drawn again */
    broken = 0;
    const Case *c = cases_get(cases, t, w, VARIANT_DRAWN, case_seed(5, t, w, 0), 1.0, &err);
    assert_non_null(c);
    assert_int_equal(uploads, 2);
    assert_ptr_equal(c->golden_expected[0], kept);
    assert_null(c->inputs[0]);
    assert_ptr_equal(c, cases_get(cases, t, w, VARIANT_DRAWN, case_seed(5, t, w, 0), 1.0, &err));
    assert_int_equal(uploads, 2);
    broken = 1; /* the upload of the second fails; it is drawn again */
    assert_null(cases_get(cases, t, w, VARIANT_DRAWN, case_seed(5, t, w, 1), 1.0, &err));
    broken = 0;
    assert_non_null(cases_get(cases, t, w, VARIANT_DRAWN, case_seed(5, t, w, 1), 1.0, &err));
    assert_int_equal(uploads, 4);
    assert_int_equal(prepare_contents(p, &err), 0);
    assert_int_equal(prepare_contents(NULL, &err), 0);
    assert_int_equal(uploads, 4);
    prepare_compiled(p);
    assert_int_equal(compiled_ahead(compiler, source, strlen(source)), 1);
    assert_int_equal(compiled_ahead(compiler, t->baseline_source, len), 1);
    source[len + 4] = 'A';
    assert_int_equal(compiled_ahead(compiler, source, strlen(source)), 0);
    prepare_end(p);
    compiler_close(compiler);
    cases_free(cases);
    assert_int_equal(uploads, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_first_candidate)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
