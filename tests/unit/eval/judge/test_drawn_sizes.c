/* Sizes that the judge draws, over all tasks of KernelBench: what they keep to and what they cover. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "eval/judge/contents/cases.h"
#include "eval/judge/contents/drawn_sizes.h"
#include "tests/fixture_path.h"
#include "tests/small_draft.h"

enum { SEED = 7 };

static TaskSet tasks_of(const char *words)
{
    TaskSet all;
    Error err;
    if (taskset_load(fixture_path("tasks"), words, &all, &err)) fail_msg("%s", err.text);
    return all;
}

static void keeps_to_task(const Task *t, const Workload *w)
{
    const Workload *timed = task_workload(t, ROLE_TIME);
    Error err;
    if (task_allows(t, w, &err)) fail_msg("%s: %s", t->name, err.text);
    assert_true(isfinite(drawn_sizes_work(t, w)));
    assert_int_equal(w->role, ROLE_CHECK);
    for (int i = 0; i < t->n_axes; i++) assert_in_range(w->axis[i], 1, timed->axis[i]);
}

/* The largest size of an axis that some check has, of the task or drawn. */
static int64_t widest(const Task *t, DrawnSizes *d, int axis)
{
    int64_t most = 0;
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role == ROLE_CHECK && t->workloads[i].axis[axis] > most)
            most = t->workloads[i].axis[axis];
    for (int i = 0; i < drawn_sizes_directions(d); i++) {
        const Workload *w = drawn_sizes_at(d, i, 0);
        if (w && w->axis[axis] > most) most = w->axis[axis];
    }
    return most;
}

/* Some axis of at least `timed` has no check above `least`. */
static int is_narrow(const Task *t, DrawnSizes *d, int64_t timed, int64_t least)
{
    const Workload *w = task_workload(t, ROLE_TIME);
    for (int i = 0; i < t->n_axes; i++)
        if (w->axis[i] >= timed && widest(t, d, i) <= least) {
            printf("# %s: %s of %lld has no check above %lld\n", t->name, t->axis_name[i],
                   (long long)w->axis[i], (long long)least);
            return 1;
        }
    return 0;
}

static int has_drawn(const Task *t, DrawnSizes *d)
{
    int n = 0;
    for (int i = 0; i < drawn_sizes_directions(d); i++) {
        const Workload *w = drawn_sizes_at(d, i, 0);
        if (w) keeps_to_task(t, w);
        n += w != NULL;
    }
    return n > 0;
}

static void no_task_of_kernelbench_has_an_axis_that_stays_narrow(void **state)
{
    (void)state;
    TaskSet all = tasks_of("kernelbench/level1,kernelbench/level2,kernelbench/level3");
    int of_32 = 0, of_128 = 0, drawn = 0;
    for (int i = 0; i < all.n; i++) {
        DrawnSizes *d = drawn_sizes_new(all.tasks[i], SEED);
        drawn += has_drawn(all.tasks[i], d);
        of_32 += is_narrow(all.tasks[i], d, 32, 3);
        of_128 += is_narrow(all.tasks[i], d, 128, 40);
        drawn_sizes_free(d);
    }
    printf("# %d tasks, %d with drawn sizes; an axis of 32 or more stays below 4 in %d, one of 128 "
           "or more "
           "below 41 in %d\n",
           all.n, drawn, of_32, of_128);
    assert_int_equal(of_32, 0);
    assert_int_equal(of_128, 0);
    taskset_release(&all);
}

static void levels_grow_and_repeat_by_seed(void **state)
{
    (void)state;
    TaskSet all = tasks_of("softmax,conv3d_norm_min_clamp,kernelbench/level1/k1_42*");
    for (int i = 0; i < all.n; i++) {
        Task *t = all.tasks[i];
        DrawnSizes *d = drawn_sizes_new(t, SEED), *same = drawn_sizes_new(t, SEED),
                   *other = drawn_sizes_new(t, SEED + 1);
        int differ = 0;
        for (int a = 0; a < drawn_sizes_directions(d); a++) {
            const Workload *last = NULL, *w;
            for (int k = 0; k < DRAWN_LEVELS && (w = drawn_sizes_at(d, a, k)); last = w, k++) {
                const Workload *o = drawn_sizes_at(other, a, k);
                keeps_to_task(t, w);
                assert_memory_equal(w->axis, drawn_sizes_at(same, a, k)->axis, sizeof w->axis);
                differ |= !o || memcmp(w->axis, o->axis, sizeof w->axis);
                if (last) assert_true(drawn_sizes_width(d, a, w) > drawn_sizes_width(d, a, last));
                assert_true(drawn_sizes_has(d, w) && !drawn_sizes_has(same, w));
            }
        }
        assert_true(differ);
        drawn_sizes_free(d);
        drawn_sizes_free(same);
        drawn_sizes_free(other);
    }
    taskset_release(&all);
}

/* Kernels that ask for a multiple of 2, 4 or 8 elements meet each, and no more. */
static void elements_are_multiples_of_each_power(void **state)
{
    (void)state;
    TaskSet all = tasks_of("composed/hswish_gate_relu,kernelbench/level2/k2_86*");
    for (int i = 0; i < all.n; i++) {
        const Task *t = all.tasks[i];
        DrawnSizes *d = drawn_sizes_new(t, SEED);
        int seen = 0;
        for (int k = -t->n_workloads; k < drawn_sizes_directions(d); k++) {
            const Workload *w = k < 0 ? &t->workloads[-k - 1] : drawn_sizes_at(d, k, 0);
            size_t n;
            if (!w || w->role != ROLE_CHECK || task_elements(t, w, &t->outputs[0], &n, NULL))
                continue;
            seen |= (int)(n & (0 - n) & 7);
        }
        assert_int_equal(seen, 7);
        drawn_sizes_free(d);
    }
    taskset_release(&all);
}

/* Of a group of channels, by the remainder modulo 4 of its size. */
static void note_group(const Task *t, const Workload *w, int *seen)
{
    size_t n;
    Error err;
    if (task_elements(t, w, &t->inputs[0], &n, &err)) fail_msg("%s", err.text);
    for (int k = 0; k < t->n_axes; k++)
        if (!strcmp(t->axis_name[k], "batch")) n /= (size_t)w->axis[k];
    seen[n / 8 % 4] = 1;
}

static void groups_of_channels_have_all_remainders(void **state)
{
    (void)state;
    TaskSet all = tasks_of("kernelbench/level1/k1_35*");
    const Task *t = all.tasks[0];
    for (uint64_t seed = 0; seed < 20; seed++) {
        DrawnSizes *d = drawn_sizes_new(t, seed);
        int seen[4] = {0};
        for (int i = 0; i < t->n_workloads; i++)
            if (t->workloads[i].role == ROLE_CHECK) note_group(t, &t->workloads[i], seen);
        for (int i = 0; i < drawn_sizes_directions(d); i++)
            if (drawn_sizes_at(d, i, 0)) note_group(t, drawn_sizes_at(d, i, 0), seen);
        assert_int_equal(seen[0] + seen[1] + seen[2] + seen[3], 4);
        drawn_sizes_free(d);
    }
    taskset_release(&all);
}

static void sizes_without_a_graph_are_not_below_those_of_the_checks(void **state)
{
    (void)state;
    TaskSet all = tasks_of("layernorm");
    for (uint64_t seed = 0; seed < 20; seed++) {
        DrawnSizes *d = drawn_sizes_new(all.tasks[0], seed);
        for (int i = 0; i < drawn_sizes_directions(d); i++)
            assert_true(drawn_sizes_at(d, i, 0)->axis[1] >= 19);
        drawn_sizes_free(d);
    }
    taskset_release(&all);
}

static int above(void *limit, const Workload *w)
{
    return w->axis[0] * w->axis[1] > *(int64_t *)limit;
}

static void sizes_of_a_condition_are_small_and_aligned(void **state)
{
    (void)state;
    TaskSet all = tasks_of("softmax");
    int64_t limit = 100000, never = INT64_MAX / 2;
    const DrawnCondition c = {above, &limit}, none = {above, &never};
    Workload w;
    for (uint64_t seed = 0; seed < 20; seed++) {
        assert_int_equal(drawn_sizes_where(all.tasks[0], seed, &c, 4e7, &w), 0);
        keeps_to_task(all.tasks[0], &w);
        assert_in_range(w.axis[0] * w.axis[1], limit + 1, 2 * limit);
        assert_int_equal(w.axis[0] % 16 + w.axis[1] % 16, 0);
    }
    assert_int_equal(drawn_sizes_where(all.tasks[0], 1, &none, 4e7, &w), -1);
    assert_int_equal(drawn_sizes_where(all.tasks[0], 1, &c, 1e4, &w), -1);
    taskset_release(&all);
}

static void a_bound_of_the_tolerance_tells_or_does_not(void **state)
{
    (void)state;
    static const double spread[] = {1, -1, 3, -3}, equal[] = {5, 5, 5}, endless[] = {1, INFINITY};
    const Tolerance by = {1e-3, 0};
    assert_true(task_tolerance_tells(by.atol, spread, 4));
    assert_false(task_tolerance_tells(by.atol, equal, 3));
    assert_true(task_tolerance_tells(by.atol, equal, 1));
    assert_false(task_tolerance_tells(by.atol, endless, 2));
    assert_false(task_tolerance_tells(0.1, spread, 4));
}

/* Rows of a convolution's planes are short and planes are not, where one check has both axes wide. */
static void planes_are_wide_in_both_axes(void **state)
{
    (void)state;
    TaskSet all = tasks_of("kernelbench/level2/k2_17_conv2d_instancenorm_divide,relu");
    for (int k = 0; k < all.n; k++) {
        const Task *t = all.tasks[k];
        DrawnSizes *d = drawn_sizes_new(t, SEED);
        int64_t most = 0, product;
        for (int i = 0; i < drawn_sizes_directions(d) - 1; i++) {
            const Workload *w = drawn_sizes_at(d, i, 0);
            product = w && t->n_axes > 1 ? w->axis[2] * w->axis[3] : 0;
            if (product > most && w->axis[2] > 12 && w->axis[3] > 12) {
                most = product;
                assert_int_equal(drawn_sizes_width(d, i, w), product);
                assert_true(drawn_sizes_work(t, w) <= 1e6);
            }
        }
        assert_true(t->n_axes > 1 ? most >= 300 : !most);
        drawn_sizes_free(d);
    }
    taskset_release(&all);
}

/* The mean of a volume takes several trips of a block, where its planes are as large and it is deep. */
static void volumes_are_large(void **state)
{
    (void)state;
    TaskSet all =
        tasks_of("kernelbench/level2/k2_96_convtranspose3d_multiply_max_globalavgpool_clamp");
    for (uint64_t seed = 1; seed <= 4; seed++) {
        DrawnSizes *d = drawn_sizes_new(all.tasks[0], seed);
        const Workload *w = drawn_sizes_at(d, drawn_sizes_directions(d) - 2, 0);
        assert_true(w && w->axis[3] * w->axis[4] * w->axis[5] > 2048);
        drawn_sizes_free(d);
    }
    taskset_release(&all);
}

static void slices_keep_elements(void **state)
{
    (void)state;
    static const char *const lines[] = {"v = aten.slice.Tensor(x, 0, 1, None, 3)",
                                        "y = aten.sum.dim_IntList(v, [0])"};
    Small s;
    small(&s, lines, 2, 2, 1);
    s.axes[0] = (DraftAxis){.name = "rows", .size = 8};
    s.axes[1] = (DraftAxis){.name = "cols", .size = 192};
    s.inputs[0] = tensor("x", DTYPE_F32, "rows", "cols");
    Task *t = derived(&s.d);
    int drawn = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        DrawnSizes *d = drawn_sizes_new(t, seed);
        for (int i = 0; i < drawn_sizes_directions(d); i++) {
            const Workload *w = drawn_sizes_at(d, i, 0);
            drawn += w != NULL;
            assert_true(!w || w->axis[0] > 1);
        }
        drawn_sizes_free(d);
    }
    assert_true(drawn > 0);
    task_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_task_of_kernelbench_has_an_axis_that_stays_narrow),
        cmocka_unit_test(levels_grow_and_repeat_by_seed),
        cmocka_unit_test(elements_are_multiples_of_each_power),
        cmocka_unit_test(groups_of_channels_have_all_remainders),
        cmocka_unit_test(planes_are_wide_in_both_axes),
        cmocka_unit_test(volumes_are_large),
        cmocka_unit_test(slices_keep_elements),
        cmocka_unit_test(sizes_without_a_graph_are_not_below_those_of_the_checks),
        cmocka_unit_test(sizes_of_a_condition_are_small_and_aligned),
        cmocka_unit_test(a_bound_of_the_tolerance_tells_or_does_not)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
