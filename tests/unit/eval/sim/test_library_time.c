/* The predicted times of library calls: a row of the table for the very shape, neighbours for others. Every
 * task of KernelBench that is shipped has a call for each of its products and convolutions at its timed
 * size, but for depthwise convolutions, and the time of each is a fraction of light that a library
 * reaches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/candidate/candidate.h"
#include "eval/candidate/plan_ops.h"
#include "eval/sim/library/library_table.h"
#include "eval/sim/library/library_time.h"
#include "tests/fixture_path.h"

static const Profile *gpu;

static DeviceLaunch call_of(const char *name, const uint64_t *args, int n)
{
    DeviceLaunch l = {.kernel = name, .library_args = n};
    memcpy(l.params, args, (size_t)n * sizeof *args);
    return l;
}

/* The arguments of cudnn.convolution for the sizes of a row. */
static int convolution_args(const LibraryShape *s, uint64_t *args)
{
    int transposed = library_op_transposed(s->op);
    uint64_t head[] = {1, 1, 1, (uint64_t)transposed, (uint64_t)library_kind(s)};
    memcpy(args, head, sizeof head);
    for (int i = 0; i < 3; i++) args[5 + i] = (uint64_t)s->size[i];
    args[8] = (uint64_t)s->size[11];
    for (int d = 0; d < 3; d++) {
        double in = s->size[3 + d], kernel = s->size[6 + d], stride = s->size[9],
               padding = s->size[10];
        int none = in == 1 && kernel == 1;
        if (none) stride = 1, padding = 0;
        double out = transposed ? (in - 1) * stride - 2 * padding + kernel
                                : floor((in + 2 * padding - kernel) / stride) + 1;
        double each[] = {in, kernel, out, stride, padding, 1};
        for (int i = 0; i < 6; i++) args[9 + 6 * d + i] = (uint64_t)each[i];
    }
    return 27;
}

static double seconds_of(const char *name, const uint64_t *args, int n, LibraryShape *s)
{
    Error err;
    DeviceLaunch l = call_of(name, args, n);
    if (library_shape(&l, s, &err)) fail_msg("%s", err.text);
    return library_seconds(gpu, s);
}

static int same(const LibraryRow *a, const LibraryRow *b)
{
    return !memcmp(&a->shape, &b->shape, sizeof a->shape);
}

/* A measured shape has its own time by the general calls. Some were measured twice. */
static void check_rows(const char *device)
{
    const LibraryTable *t = library_table(device);
    int seen[LIBRARY_OPS] = {0};
    for (int i = 0; i < t->n; i += 7) {
        const LibraryShape *r = &t->rows[i].shape;
        uint64_t args[27] = {1, 1, 1, (uint64_t)library_kind(r), (uint64_t)r->dtype};
        const char *name = r->op == LIBRARY_GEMM    ? "cublas.gemm"
                           : library_op_last(r->op) ? "cudnn.convolution_last"
                                                    : "cudnn.convolution";
        int n = 18;
        LibraryShape s;
        if (i && same(&t->rows[i], &t->rows[i - 1])) continue;
        if (r->op == LIBRARY_GEMM) {
            uint64_t m = (uint64_t)r->size[1], columns = (uint64_t)r->size[2],
                     k = (uint64_t)r->size[3], b = (uint64_t)r->size[4];
            uint64_t more[] = {
                (uint64_t)r->size[0], m,       columns, k,           0,          b, k,
                b ? k : columns,      columns, m * k,   k * columns, m * columns};
            memcpy(args + 5, more, sizeof more);
        } else {
            n = convolution_args(r, args);
        }
        double us = 1e6 * seconds_of(name, args, n, &s);
        if (fabs(us - t->rows[i].us) > 1e-6 * t->rows[i].us)
            fail_msg("row %d: %g us, measured are %g", i, us, t->rows[i].us);
        seen[r->op]++;
    }
    for (int i = 0; i < LIBRARY_OPS; i++)
        if (!library_op_last((LibraryOp)i) || !strcmp(device, "h200")) assert_true(seen[i] > 50);
}

static void test_rows(void **state)
{
    (void)state;
    gpu = profile_find("h200", NULL);
    check_rows("h200");
    gpu = profile_find("h100", NULL);
    check_rows("h100");
}

/* Bytes and flops at light: what no library is below. */
static double light_seconds(const LibraryShape *s)
{
    LibraryWork w = library_work(s);
    double size = s->dtype ? 2 : 4, cycle = s->dtype  ? gpu->tensor_flops
                                            : s->tf32 ? gpu->tensor_flops / 2.0
                                                      : 2.0 * gpu->fp32_lanes;
    return fmax(w.flops / (cycle * gpu->sm_count * gpu->clock_hz),
                size * (w.in + w.weights + w.out) / gpu->dram_bytes_per_s);
}

/* Dilated and uneven convolutions have no row of their own; their work follows from their outputs. */
static void test_uneven(void **state)
{
    (void)state;
    LibraryShape s, plain;
    uint64_t args[27] = {1, 1,   1, 0,   0, 16, 64, 128, 1, 1,   1, 1, 1, 0,
                         1, 256, 3, 254, 1, 0,  1,  256, 3, 254, 1, 0, 1};
    double even = seconds_of("cudnn.convolution", args, 27, &plain);
    assert_true(plain.out[0] == 0 && plain.size[9] == 1);
    args[17] = 127, args[18] = 2; /* rows in steps of two */
    double uneven = seconds_of("cudnn.convolution", args, 27, &s);
    assert_true(s.out[1] == 127 && s.out[2] == 254);
    assert_true(library_work(&s).flops * 2 == library_work(&plain).flops);
    assert_true(uneven < even && uneven > even / 8);
    args[17] = 250, args[18] = 1, args[20] = 3; /* dilated */
    uneven = seconds_of("cudnn.convolution", args, 27, &s);
    assert_true(s.out[1] == 250 && uneven > even / 4 && uneven < 4 * even);
}

/* ---- the shipped tasks ---- */

typedef struct {
    int calls, uncalled, tasks;
} Count;

static void check_call(const Task *t, const PlanOps *o, const PlanOpLaunch *l)
{
    uint64_t args[64];
    LibraryShape s;
    for (int i = 0; i < l->n_args; i++) {
        const PlanOpArg *a = &o->args[l->first_arg + i];
        args[i] = a->storage >= 0 ? 256 : a->value;
    }
    double seconds = seconds_of(l->kernel, args, l->n_args, &s), light = light_seconds(&s);
    if (seconds > 3e-5 && (light / seconds > 1.1 || light / seconds < 0.002))
        fail_msg("%s: %s takes %g us, light %g us", t->name, l->kernel, 1e6 * seconds, 1e6 * light);
}

/* Op lines of a text that begin with a name of the operators. */
static int lines_of(const char *text, const char *operator)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, operator)); at += strlen(operator)) n++;
    return n;
}

static void check_task(const Task *t, Count *count)
{
    const Workload *w = task_workload(t, ROLE_TIME);
    Candidate c;
    Fault f = {0};
    PlanOps ops;
    int calls = 0;
    const char *source = t->baseline_source;
    if (candidate_parse(source, strlen(source), 1, &c, &f) ||
        plan_ops_build(&c.plan, t, w, 1, &ops, &f))
        fail_msg("%s: %s", t->name, f.message);
    for (int i = 0; i < ops.n_launches; i++) {
        if (!ops.launches[i].library) continue;
        check_call(t, &ops, &ops.launches[i]);
        calls++;
    }
    int needed = lines_of(source, "aten.conv") + lines_of(source, "aten.linear") +
                 lines_of(source, "aten.matmul") + lines_of(source, "aten.bmm");
    if (calls < needed) {
        print_message("# %s: %d of %d products and convolutions are calls\n", t->name, calls,
                      needed);
        count->uncalled += needed - calls;
    }
    count->calls += calls;
    count->tasks++;
    plan_ops_release(&ops);
    candidate_release(&c);
}

static void test_tasks(void **state)
{
    (void)state;
    TaskSet set;
    Error err = {0};
    Count count = {0};
    if (taskset_load(fixture_path("tasks"), "kernelbench", &set, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < set.n; i++) check_task(set.tasks[i], &count);
    print_message("# %d tasks, %d calls, %d without\n", count.tasks, count.calls, count.uncalled);
    assert_true(count.tasks > 0 && count.calls > 0);
    assert_true(count.uncalled <= count.calls / 8); /* depthwise ones, gradients of grouped ones */
    taskset_release(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_uneven),
                                       cmocka_unit_test(test_tasks)};
    gpu = profile_find("h100", NULL);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("library_time", tests, NULL, NULL);
}
