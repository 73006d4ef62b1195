/* The evaluator on a device made for the test: kernels are C functions by name, and memory is the
 * host's with guard zones. Covers each outcome that needs a device, and paired timing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "eval/judge/baseline.h"
#include "eval/judge/checks.h"
#include "eval/judge/paired_timing.h"
#include "eval/judge/predicted_timing.h"
#include "eval/judge/statistics.h"
#include "eval/judge/timing_bounds.h"

#include "tests/unit/eval/device/fake_device.h"

enum { TIMED = 40000 }; /* elements */

static TaskSet tasks;
static Cases *cases;
static Evaluator evaluator = {.machine = {&fake_ops, &fake, NULL}, .seed = 3};
static Judgement judged; /* the last one */

static int set_up(void **state)
{
    (void)state;
    Error err;
    cases = cases_new(1 << 28, &fake_ops, &fake);
    if (!taskset_load(NULL, "relu", &tasks, &err)) {
        for (int i = 0; i < tasks.tasks[0]->n_workloads;
             i++) /* small, since the host compares it hundreds of times */
            if (tasks.tasks[0]->workloads[i].role == ROLE_SIM)
                tasks.tasks[0]->workloads[i].axis[0] = TIMED;
        return 0;
    }
    fprintf(stderr, "%s\n", err.text);
    return -1;
}

static int tear_down(void **state)
{
    (void)state;
    cases_free(cases);
    taskset_release(&tasks);
    return 0;
}

static Plan plan;
static const char *buffers[2] = {"", ""}; /* the plans' buffers, by side */

static void load_as(Loaded *l, int trusted, const char *kernel, const char *arguments)
{
    static char sources[2][400]; /* a plan points into its source: the baseline's and the
                                    candidate's at the same time */
    char *source = sources[trusted];
    Fault f = {0};
    CompileResult code = fake_code(kernel);
    snprintf(source, sizeof sources[0], "%s//@ launch %s<<<1, 32>>>%s\n", buffers[trusted], kernel,
             arguments);
    plan_release(&plan);
    if (plan_parse(source, strlen(source), 0, &plan, &f)) fail_msg("%s", f.message);
    loaded_init(l, &evaluator.machine, tasks.tasks[0], trusted);
    if (loaded_open(l, &plan, &code, &f)) fail_msg("%s %s", f.message, f.error.text);
}

static void load(Loaded *l, const char *kernel, const char *arguments)
{
    load_as(l, 0, kernel, arguments);
}

static const Workload *sim_workload(void)
{
    for (int i = 0; i < tasks.tasks[0]->n_workloads; i++)
        if (tasks.tasks[0]->workloads[i].role == ROLE_SIM) return &tasks.tasks[0]->workloads[i];
    fail_msg("relu has no sim workload");
    return NULL;
}

/* Begin the judgement of a kernel that is not compiled. */
static void begin(const char *kernel, const char *arguments)
{
    evaluator.cases = cases;
    judgement_begin(&judged, &evaluator, tasks.tasks[0], kernel, strlen(kernel));
    judged.timed = judged.small = sim_workload();
    judged.fault.outcome = OUTCOME_OK;
    load(&judged.loaded, kernel, arguments);
}

static void expect_after(const char *kernel, int n_passed, Outcome want, const char *cheat,
                         const char *says)
{
    const Fault *f = &judged.fault;
    begin(kernel, "(x, y, n)");
    int rc = checks_plan(&judged.loaded, sim_workload(), &judged.fault);
    if (!rc) rc = checks_run(&judged);
    if (rc < 0) fail_msg("%s", f->error.text);
    if (rc > 0 && f->outcome != want)
        fail_msg("%s: got %s: %s", kernel, outcome_name(f->outcome), f->message);
    assert_int_equal(rc, want == OUTCOME_OK ? 0 : 1);
    if (want != OUTCOME_OK) assert_string_equal(f->cheat, cheat);
    if (want != OUTCOME_OK && !strstr(f->message, says))
        fail_msg("expected '%s' in: %s", says, f->message);
    if (want == OUTCOME_OK) assert_int_equal(judged.verdict.n_checks, n_passed);
    judgement_release(&judged);
    assert_int_equal(fake.allocated, 0);
    assert_int_equal(fake.disturbed, 0);
}

/* A correct kernel passes the workloads, the second run, the other inputs and order, and the variants. */
static void expect(const char *kernel, Outcome want, const char *cheat, const char *says)
{
    expect_after(kernel, 14, want, cheat, says);
}

static void test_outcomes(void **state)
{
    (void)state;
    expect("relu", OUTCOME_OK, "", "");
    expect("wrong", OUTCOME_WRONG_RESULT, "", "1 of 31 elements of y differ");
    expect("nothing", OUTCOME_WRONG_RESULT, "",
           "31 of the 31 elements of output y were never written");
    expect("once", OUTCOME_CHEAT, "stale_result", "freshly loaded");
    expect("replay", OUTCOME_CHEAT, "stale_result", "freshly loaded");
    expect("flaky", OUTCOME_NONDETERMINISTIC, "", "differ in their bytes");
    expect("mutate", OUTCOME_CHEAT, "input_mutation", "changed its input x, first at element 30");
    expect("beyond", OUTCOME_OUT_OF_BOUNDS, "", "a guard was written");
    expect("ordered", OUTCOME_RACE, "",
           "right when blocks and warps run in the order of their indices");
    expect_after("waits", 13, OUTCOME_OK, "", ""); /* a kernel that waits cannot be recognised */
    expect("slow", OUTCOME_TIMEOUT, "", "kernel slow runs too long (check n=31");
}

static void test_plan_is_checked_first(void **state)
{
    (void)state;
    Loaded l;
    Fault f;
    int before = fake.launches;
    load(&l, "relu", "(x, y)");
    assert_int_equal(checks_plan(&l, sim_workload(), &f), 1);
    assert_int_equal(f.outcome, OUTCOME_PLAN_ERROR);
    assert_int_equal(f.line, 1);
    assert_int_equal(fake.launches, before);
    loaded_close(&l);
}

/* Loads a plan of one launch, in line 2, whose kernel is refused with this outcome and sentence. */
static void expect_refused(const char *kernel, Outcome outcome, const char *says)
{
    Loaded l;
    Fault f;
    char source[100];
    snprintf(source, sizeof source, "\n//@ launch %s<<<1, 32>>>(x, y, n)\n", kernel);
    CompileResult code = {.ok = 1,
                          .n_lowered = 1,
                          .lowered = memory_array(1, sizeof *code.lowered),
                          .ptx = memory_strdup("")};
    code.lowered[0] = memory_strdup(kernel);
    plan_release(&plan);
    assert_int_equal(plan_parse(source, strlen(source), 0, &plan, &f), 0);
    loaded_init(&l, &evaluator.machine, tasks.tasks[0], 0);
    assert_int_equal(loaded_open(&l, &plan, &code, &f), 1);
    assert_int_equal(f.outcome, outcome);
    assert_int_equal(f.line, 2);
    if (!strstr(f.message, says)) fail_msg("%s", f.message);
    loaded_close(&l);
}

/* A kernel that the device cannot describe is the candidate's fault, at the line of its first launch. */
static void test_kernel_refused(void **state)
{
    (void)state;
    expect_refused("unspeakable", OUTCOME_PLAN_ERROR, "64 are allowed");
}

/* A candidate whose plan has op lines runs where libraries may be called. */
static void test_homes(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "//@ launch k<<<1, 32>>>(x, y, n)\n",
        "//@ op h = aten.relu(x)\n//@ launch k<<<1, 32>>>(h, y, n)\n"};
    static const DeviceHome homes[] = {HOME_CANDIDATE, HOME_LIBRARY};
    for (int i = 0; i < 4; i++) {
        Loaded l;
        Fault f;
        int trusted = i >= 2;
        CompileResult code = {.ok = 1, .n_lowered = 1, .ptx = memory_strdup("")};
        code.lowered = memory_array(1, sizeof *code.lowered);
        code.lowered[0] = memory_strdup("k");
        plan_release(&plan);
        assert_int_equal(plan_parse(sources[i % 2], strlen(sources[i % 2]), 0, &plan, &f), 0);
        loaded_init(&l, &evaluator.machine, tasks.tasks[0], trusted);
        assert_int_equal(loaded_open(&l, &plan, &code, &f), 0);
        assert_int_equal(l.context.module->trusted, trusted ? HOME_TRUSTED : homes[i]);
        loaded_close(&l);
    }
}

static DeviceTiming timing;
static const char *candidates_plan = "(x, y, n)";
static int claims_a_win; /* so that it runs on contents that it has not seen */

static DeviceHome candidates_home = HOME_CANDIDATE;

static int measure(const char *kernel)
{
    Baseline baseline = {0};
    random_init(&fake.drift, 3, 5);
    fake.outputs[0] = fake.outputs[1] = 0;
    fake.phases[0] = fake.phases[1] = 0;
    fake.calls = fake.alone = 0;
    fake.y[0] = fake.y[1] = NULL;
    evaluator.clock = (ClockOptions){CLOCK_COLD, 10, 3, 0};
    load_as(&baseline.own.loaded, 1, "relu", "(x, y, n)");
    Plan kept = plan;
    baseline.own.loaded.plan = baseline.own.loaded.context.plan = &kept;
    plan = (Plan){0};
    begin(kernel, candidates_plan);
    judged.baseline = &baseline;
    judged.pairs[0].timed = judged.timed;
    judged.loaded.home = candidates_home;
    int rc = paired_measure(&judged, &evaluator.clock);
    timing = *judged.verdict.timing;
    if (!rc && claims_a_win) rc = judgement_score(&judged);
    if (!rc && claims_a_win) rc = paired_unseen(&judged);
    if (rc < 0) fail_msg("%s", judged.fault.error.text);
    judgement_release(&judged);
    loaded_close(&baseline.own.loaded);
    plan_release(&kept);
    assert_int_equal(fake.allocated, 0);
    assert_int_equal(fake.locked, 0);
    return rc;
}

/* The ratio of pairs is right under a drift that both sides share. Each side uses all four sets of
 * buffers, two on a device that has room for no more, or one, and no buffer, also none of a plan, holds the
 * other side's result during a run. */
static void test_paired_timing(void **state)
{
    (void)state;
    Interval ratio;
    fake.spied = 0;
    assert_int_equal(measure("relu"), 0);
    Pairs pairs = timing_pairs(&timing);
    statistics_ratio(&pairs, 3, &ratio);
    assert_true(ratio.low > 1.48 && ratio.high < 1.52 &&
                fabs(ratio.middle - 1.5) < ratio.high - ratio.low);
    assert_true((ratio.high - ratio.low) / 2 <
                0.008 * ratio.middle); /* two estimates of the width */
    assert_int_equal(__builtin_popcountll(fake.outputs[0]), 4);
    assert_true(fake.outputs[0] == fake.outputs[1]);
    assert_int_equal(fake.spied, 0);
    assert_int_equal(fake.calls - fake.alone,
                     2); /* the first pair, which is slow and does not count */
    assert_true(fake.phases[0] > 0 &&
                fabs(fake.phases[0] - fake.phases[1]) < 1e-9); /* the same phase for both sides */
    assert_int_equal(judged.verdict.n_checks, 1);
    buffers[0] = "//@ buffer float a[n]\n//@ launch relu<<<1, 32>>>(x, a, n)\n";
    assert_int_equal(measure("relu"), 0);
    assert_int_equal(fake.spied, 0);
    buffers[0] = "";
    size_t room = fake.info.memory_bytes;
    fake.info.memory_bytes = 1;
    assert_int_equal(measure("relu"), 0);
    assert_int_equal(__builtin_popcountll(fake.outputs[0]), 2);
    fake.info.memory_bytes = room;
    fake.info.buffers_bytes = 3 * TIMED * sizeof(float); /* for one set alone */
    assert_int_equal(measure("relu"), 0);
    assert_int_equal(__builtin_popcountll(fake.outputs[0]), 1);
    fake.info.buffers_bytes = 0;
}

/* All buffers of all sets are reserved at once, in the order in which they are then allocated. */
static void test_one_piece(void **state)
{
    (void)state;
    size_t bytes = TIMED * sizeof(float);
    buffers[0] = "//@ buffer float a[n]\n//@ buffer float b[2 * n]\n";
    buffers[1] = "//@ buffer float c[3 * n]\n//@ buffer float d[n]\n";
    assert_int_equal(measure("relu"), 0);
    buffers[0] = buffers[1] = "";
    assert_int_equal(fake.n_reserved, 4 * 5);
    assert_int_equal(fake.n_placed, fake.n_reserved);
    assert_int_equal(fake.strays, 0);
    static const size_t sizes[] = {1, 1, 1, 2, 3}; /* x, y, a and d together, b, c */
    for (int i = 0; i < 4 * 5; i++) assert_int_equal(fake.reserved[i], bytes * sizes[i % 5]);
}

/* Of four pairs two begin with each side, and of those one with each of two sets of buffers. The next
 * four pairs use the other two sets. */
static void test_orders(void **state)
{
    (void)state;
    assert_int_equal(measure("relu"), 0);
    int pairs = timing.n, from = fake.calls - 2 * pairs, changes = 0;
    assert_true(pairs >= 24 && pairs % 4 == 0 && from > 0);
    assert_true(fake.began[0].trusted); /* its time is the limit of the candidate's first run */
    for (int k = 0; k < pairs; k += 4) {
        int seen = 0, block = fake.began[from + 2 * k].block;
        for (int i = 0; i < 4; i++) {
            int first = from + 2 * (k + i),
                order = fake.began[first].trusted + 2 * (fake.began[first].block == block);
            assert_int_equal(fake.began[first].trusted, !fake.began[first + 1].trusted);
            assert_int_equal(fake.began[first].block, fake.began[first + 1].block);
            seen |= 1 << order;
            assert_true(k < 4 || fake.began[first].block != fake.began[first - 8].block);
            changes += k && fake.began[first].trusted != fake.began[from + 2 * i].trusted;
        }
        assert_int_equal(seen, 15);
    }
    assert_true(changes > 0); /* the order changes */
}

/* Sampling stops early for a candidate that is clearly slower. The interval is as wide as the width
 * at which sampling stopped, widened by the 0.2 us of each side's launch between contexts and
 * by 0.4% between places. A candidate whose ratio that may explain is not timed to a very narrow
 * interval. How long the clocks take to rise decides which noise the pairs have: limits of noisy tries are
 * those of any noise. */
static void test_few_for_losers(void **state)
{
    (void)state;
    static const struct {
        double us, noise, width;
        int min, max;
    } tries[] = {{150, 0.001, 0.01, 4, 12},   {150, 0.01, 0.01, 4, 160},
                 {16, 0.001, 0.0035, 24, 24}, {15, 0.001, 0.0035, 24, 24},
                 {10, 0.001, 0.0035, 24, 24}, {10, 0.01, 0.0035, 24, 320}};
    Interval samples, v;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        fake.candidate_us = tries[i].us, fake.noise = tries[i].noise;
        assert_int_equal(measure("relu"), 0);
        assert_in_range(timing.n, tries[i].min, tries[i].max);
        Pairs pairs = timing_pairs(&timing);
        statistics_ratio(&pairs, 3, &samples);
        paired_ratio(&timing, 3, &v);
        assert_true(v.middle == samples.middle &&
                    samples.high - samples.low <= 2 * v.middle * tries[i].width);
        double share = PAIRED_CONTEXT_US *
                       sqrt(0.5 / (15 * 15) +
                            0.5 / (tries[i].us * tries[i].us)); /* the drift adds up to 10% */
        double samples_and_places = hypot(tries[i].width, 0.004);
        double low = (v.middle - v.low) / v.middle, high = (v.high - v.middle) / v.middle;
        assert_true(fabs(low - high) < 1e-9 && low < hypot(samples_and_places, share) * 1.0001 &&
                    low > hypot(samples_and_places, share / 1.2));
    }
    fake.candidate_us = 10, fake.noise = 0.01;
}

/* Of runs of over a millisecond four pairs are enough, where they differ little. */
static void test_few_for_long_runs(void **state)
{
    (void)state;
    fake.baseline_us = 3000, fake.candidate_us = 2000, fake.noise = 0.001;
    assert_int_equal(measure("relu"), 0);
    assert_in_range(timing.n, 4, 6);
    fake.noise = 0.01;
    assert_int_equal(measure("relu"), 0);
    assert_true(timing.n >= 12);
    fake.baseline_us = 1500, fake.candidate_us = 850, fake.noise = 0.001;
    assert_int_equal(measure("relu"), 0);
    assert_int_equal(timing.n, 24);
    Interval v;
    fake.baseline_us = 3000, fake.candidate_us = 8000,
    fake.noise = 0.0001; /* far below: two pairs */
    assert_int_equal(measure("relu"), 0);
    assert_int_equal(timing.n, 2);
    paired_ratio(&timing, 3, &v);
    assert_true(v.high - v.middle >= 0.03 * v.middle && v.high - v.middle < 0.032 * v.middle);
    fake.baseline_us = 300, fake.candidate_us = 800; /* of short runs four */
    assert_int_equal(measure("relu"), 0);
    assert_int_equal(timing.n, 4);
    fake.baseline_us = 15, fake.candidate_us = 10, fake.noise = 0.01;
}

/* Fewer pairs are not counted where a process has just timed. */
static void test_warm(void **state)
{
    (void)state;
    int uncounted[2];
    fake.baseline_us = 3000, fake.candidate_us = 2000, fake.noise = 0;
    for (int just = 0; just < 2; just++) {
        fake.idle_s = just ? 0.2 : 0.3;
        assert_int_equal(measure("relu"), 0);
        assert_int_equal(timing.n, 4);
        uncounted[just] = fake.alone / 2 - timing.n;
    }
    assert_true(uncounted[0] >= 3);
    assert_in_range(uncounted[1], 1, DEVICE_COPIES);
    fake.idle_s = INFINITY;
    fake.baseline_us = 15, fake.candidate_us = 10, fake.noise = 0.01;
}

/* What is five times slower and a millisecond is timed no further than its first pair with the lock; what is
 * 25 times slower in the pair before the lock. */
static void test_one_for_hopeless(void **state)
{
    (void)state;
    static const struct {
        double baseline, candidate;
        int once, alone;
    } tries[] = {{15, 1300, 1, 2},    {15, 900, 0, 0},     {1000, 7000, 1, 2},  {1000, 4500, 0, 0},
                 {1000, 60000, 1, 0}, {1000, 14000, 1, 2}, {1000, 600000, 1, 0}};
    Interval v;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        fake.baseline_us = tries[i].baseline, fake.candidate_us = tries[i].candidate;
        assert_int_equal(measure("relu"), 0);
        assert_int_equal(timing.n == 1, tries[i].once);
        if (tries[i].once) assert_int_equal(fake.alone, tries[i].alone);
        paired_ratio(&timing, 3, &v);
        double ratio = tries[i].baseline / tries[i].candidate, half = (v.high - v.low) / 2;
        /* Without the lock others run beside it (fake_clock). */
        assert_true(v.middle < 1.1 * ratio &&
                    v.middle > (tries[i].once && !tries[i].alone ? 0.2 : 0.9) * ratio);
        assert_true(tries[i].once ? half > 0.1 * v.middle : half < 0.05 * v.middle);
    }
    candidates_home = HOME_LIBRARY; /* its first run is no measure */
    fake.baseline_us = 1000, fake.candidate_us = 60000;
    assert_int_equal(measure("relu"), 0);
    assert_true(timing.n == 1 && fake.alone == 2);
    candidates_home = HOME_CANDIDATE;
    fake.baseline_us = 15, fake.candidate_us = 10, fake.stall_us = 90e3; /* its first run stalls */
    assert_int_equal(measure("relu"), 0);
    paired_ratio(&timing, 3, &v);
    assert_true(timing.n > 1 && v.low > 1);
}

/* One verdict of long runs: places shift all of its ratios, and each run has noise. */
static double drawn_low(Random *r, double speedup, int *pairs)
{
    static DeviceTiming t;
    double look_at = 0, place = 1 + 0.0015 * random_normal(r);
    Interval v;
    t = (DeviceTiming){.baseline_launches = 1, .candidate_launches = 1};
    do {
        t.baseline_us[t.n] = 5000 * (1 + 0.001 * random_normal(r));
        t.candidate_us[t.n++] = 5000 / (speedup * place) * (1 + 0.001 * random_normal(r));
    } while (!paired_narrow(&t, 7, &look_at));
    paired_ratio(&t, 7, &v);
    *pairs += t.n;
    return v.low;
}

/* Few pairs keep the errors of many: equal sides win less often than in one verdict of a hundred, and a
 * true 2% is found in 95. */
static void test_few_pairs_keep_errors(void **state)
{
    (void)state;
    enum { VERDICTS = 500 };
    Random r;
    int wins = 0, found = 0, pairs = 0;
    random_init(&r, 11, 13);
    for (int i = 0; i < VERDICTS; i++) wins += drawn_low(&r, 1, &pairs) > 1;
    for (int i = 0; i < VERDICTS; i++) found += drawn_low(&r, 1.02, &pairs) > 1;
    assert_true(wins < VERDICTS / 100);
    assert_true(found > VERDICTS * 95 / 100);
    assert_true(pairs < 2 * VERDICTS * 12);
}

/* A second timing ends after two pairs of long runs, two blocks of orders of short ones, when it leaves
 * the score as it is. It does not where its ratio is lower, nor where the first is about 1. */
static void test_confirmed(void **state)
{
    (void)state;
    static const struct {
        int n;
        double us, ratio, known;
        int confirms;
    } tries[] = {{2, 2000, 1.5, 1.49, 1}, {2, 2000, 1.5, 1.51, 0}, {3, 2000, 1.5, 1.2, 0},
                 {6, 2000, 1.5, 1.2, 1},  {4, 20, 1.5, 1.49, 0},   {8, 20, 1.5, 1.49, 1},
                 {8, 20, 2.5, 1.49, 1},   {8, 20, 1.05, 1.02, 0},  {8, 20, 1.5, 0, 0}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        static DeviceTiming t;
        t = (DeviceTiming){.n = tries[i].n};
        for (int k = 0; k < t.n; k++) {
            t.candidate_us[k] = tries[i].us;
            t.baseline_us[k] = tries[i].us * tries[i].ratio;
        }
        assert_int_equal(paired_confirms(&t, tries[i].known), tries[i].confirms);
    }
    claims_a_win = 1;
    fake.baseline_us = 6000, fake.candidate_us = 4000;
    int rc = measure("relu");
    if (rc) fail_msg("%s", judged.fault.message);
    int timings = 0;
    for (int i = 0; i < judged.verdict.n_checks; i++)
        timings += strstr(judged.verdict.checks[i], "timed runs") != NULL;
    assert_int_equal(timings, 2);
    claims_a_win = 0;
    fake.baseline_us = 15, fake.candidate_us = 10;
}

/* The first run of all also measures the candidate's errors. */
static void test_errors_of_first_run(void **state)
{
    (void)state;
    assert_int_equal(measure("relu"), 0);
    assert_int_equal(judged.errors.known, 1);
    assert_true(judged.errors.of[0] < 1e-6 && judged.errors.ulp[0] > 0);
}

/* The deviation between contexts counts once for each launch of each side. */
static void test_unknown_by_launch(void **state)
{
    (void)state;
    Interval one, three;
    fake.noise = 0.0001;
    candidates_plan =
        "(x, y, n)\n//@ launch relu<<<1, 32>>>(x, y, n)\n//@ launch relu<<<1, 32>>>(x, y, n)";
    assert_int_equal(measure("relu"), 0);
    assert_int_equal(timing.baseline_launches, 1);
    assert_int_equal(timing.candidate_launches, 3);
    paired_ratio(&timing, 3, &three);
    timing.candidate_launches = 1;
    paired_ratio(&timing, 3, &one);
    double baseline = statistics_median(timing.baseline_us, timing.n),
           candidate = statistics_median(timing.candidate_us, timing.n);
    double half[2] = {one.high / one.middle - 1, three.high / three.middle - 1},
           more = 0.5 * (9 - 1) / (candidate * candidate);
    assert_true(fabs(half[1] * half[1] - half[0] * half[0] -
                     PAIRED_CONTEXT_US * PAIRED_CONTEXT_US * more) < 1e-9);
    assert_true(half[0] > PAIRED_CONTEXT_US * sqrt(0.5) * hypot(1 / baseline, 1 / candidate) &&
                half[1] < 0.055);
    candidates_plan = "(x, y, n)";
    fake.noise = 0.01;
}

/* The address of a buffer changes the time: both sides share the plans' buffers of equal sizes, and
 * the others belong to one side. */
static void test_buffers_are_shared(void **state)
{
    (void)state;
    Loaded candidate, baseline;
    Run owner, r;
    Fault f;
    Error err = {0};
    buffers[0] = "//@ buffer float a[n]\n//@ buffer float b[2 * n]\n//@ buffer float c[5 * n]\n";
    buffers[1] = "//@ buffer float d[2 * n]\n//@ buffer float e[3 * n]\n//@ buffer float f[2 * "
                 "n]\n//@ buffer float g[n]\n";
    load_as(&baseline, 1, "relu", "(x, y, n)");
    Plan kept = plan;
    baseline.plan = baseline.context.plan = &kept;
    plan = (Plan){0};
    load(&candidate, "relu", "(x, y, n)");
    const Case *c = cases_get(cases, tasks.tasks[0], sim_workload(), VARIANT_DRAWN, 1, 1.0, &err);
    assert_non_null(c);
    assert_int_equal(run_open(&owner, &candidate, c, NULL, &f), 0);
    assert_int_equal(run_open(&r, &baseline, c, &owner, &f), 0);
    assert_int_equal(fake.allocated, 2 + 3 + 2);
    assert_int_equal(r.memory.outputs[0], owner.memory.outputs[0]);
    assert_int_equal(r.memory.buffers[0], owner.memory.buffers[1]);
    assert_int_equal(r.memory.buffers[3], owner.memory.buffers[0]);
    for (int i = 1; i < 3; i++)
        for (int k = 0; k < 3; k++)
            assert_int_not_equal(r.memory.buffers[i], owner.memory.buffers[k]);
    assert_int_not_equal(r.memory.buffers[1], r.memory.buffers[2]);
    static const float zero;
    float seen[7];
    for (int i = 0; i < 7; i++)
        assert_int_equal(fake_write(&fake,
                                    i < 4 ? r.memory.buffers[i] : owner.memory.buffers[i - 4],
                                    &zero, 4, &err),
                         0);
    assert_int_equal(run_reset_own_buffers(&r, &err), 0);
    for (int i = 0; i < 4; i++) fake_read(&fake, r.memory.buffers[i], &seen[i], 4, &err);
    assert_true(seen[0] == 0 && seen[3] == 0 && isnan(seen[1]) && isnan(seen[2]));
    assert_int_equal(run_reset(&r, &err), 0);
    for (int i = 0; i < 7; i++)
        fake_read(&fake, i < 4 ? r.memory.buffers[i] : owner.memory.buffers[i - 4], &seen[i], 4,
                  &err);
    assert_true(isnan(seen[0]) && isnan(seen[3]) && isnan(seen[4]) && isnan(seen[5]) &&
                seen[6] == 0);
    run_close(&r);
    assert_int_equal(fake.allocated, 2 + 3);
    run_close(&owner);
    buffers[0] = buffers[1] = "";
    loaded_close(&candidate);
    loaded_close(&baseline);
    plan_release(&kept);
    assert_int_equal(fake.allocated, 0);
}

/* Every timed output is compared, also after the checks have passed. */
static void test_cheats_when_timed(void **state)
{
    (void)state;
    assert_int_equal(measure("nothing"), 1);
    if (judged.fault.outcome != OUTCOME_WRONG_RESULT) fail_msg("%s", judged.fault.message);
    assert_int_equal(measure("beyond"), 1);
    assert_int_equal(judged.fault.outcome, OUTCOME_OUT_OF_BOUNDS);
    assert_int_equal(measure("stash"), 1);
    assert_int_equal(judged.fault.outcome, OUTCOME_OUT_OF_BOUNDS);
    assert_int_equal(measure("mutate"), 1);
    assert_string_equal(judged.fault.cheat, "input_mutation");
    fake.hidden_us = 5000;
    int rc = measure("relu");
    fake.hidden_us = 0;
    assert_int_equal(rc, 1);
    assert_string_equal(judged.fault.cheat, "hidden_work");
    fake.waits_us = 5000; /* a busy host is no cheat */
    rc = measure("relu");
    fake.waits_us = 0;
    if (rc) fail_msg("%s", judged.fault.message);
}

/* A candidate that does the work of two runs in one gains nothing. */
static void test_two_in_one(void **state)
{
    (void)state;
    Interval v;
    int rc = measure("both");
    if (rc) fail_msg("%s", judged.fault.message);
    paired_ratio(&timing, 3, &v);
    assert_true(v.high < 0.8 && v.low > 0.7); /* 15 us to 20 */
}

/* A candidate that wins runs on contents that it has not seen: it must be correct and as fast
 * there. */
static void test_unseen(void **state)
{
    (void)state;
    claims_a_win = 1;
    fake.noise = 0.03;
    int rc = measure("relu");
    if (rc) fail_msg("%s", judged.fault.message);
    assert_true(judged.verdict.n_checks >= 5);
    assert_non_null(strstr(judged.verdict.checks[1], "input scale 8"));
    assert_true(fake.calls - fake.alone >=
                4); /* others may time beside all contents but the first */
    assert_int_equal(measure("remembers"), 1);
    assert_string_equal(judged.fault.cheat, "replay");
    assert_int_equal(measure("clamps"), 1);
    assert_int_equal(judged.fault.outcome, OUTCOME_WRONG_RESULT);
    Cases *many = cases;
    cases = cases_new(0, &fake_ops, &fake); /* unused contents are dropped */
    rc = measure("relu");
    cases_free(cases);
    cases = many;
    if (rc) fail_msg("%s", judged.fault.message);
    claims_a_win = 0;
    fake.noise = 0.01;
}

/* A candidate that is right in every check and does nothing when timed. */
static void test_outputs_are_compared_after_prediction(void **state)
{
    (void)state;
    begin("nothing", "(x, y, n)");
    assert_int_equal(predicted_measure(&judged), 1);
    assert_int_equal(judged.fault.outcome, OUTCOME_WRONG_RESULT);
    judgement_release(&judged);
    assert_int_equal(fake.allocated, 0);
}

static void test_cases(void **state)
{
    (void)state;
    Task *t = tasks.tasks[0];
    Error err;
    const Workload *w = &t->workloads[0];
    uint64_t seed = case_seed(1, t, w, 0);
    assert_true(seed != case_seed(2, t, w, 0) && seed != case_seed(1, t, w, 1) &&
                seed != case_seed(1, t, w + 1, 0));
    const Case *a = cases_get(cases, t, w, VARIANT_DRAWN, seed, 8.0, &err);
    assert_ptr_equal(a, cases_get(cases, t, w, VARIANT_DRAWN, seed, 8.0, &err));
    const float *x = a->inputs[0];
    for (size_t i = 0; i < a->output_bytes[0] / 4; i++)
        assert_true(a->expected[0][i] == (x[i] > 0 ? (double)x[i] : 0));
    /* With a bound of 0 only the last contents are kept. */
    Cases *small = cases_new(0, NULL, NULL);
    for (int i = 0; i < 10; i++)
        assert_non_null(cases_get(small, t, w, VARIANT_DRAWN, (uint64_t)i, 1.0, &err));
    cases_free(small);
}

static void test_light(void **state)
{
    (void)state;
    double us;
    Error err;
    const Workload *w = sim_workload();
    assert_int_equal(timing_light_us(tasks.tasks[0], w, &fake.info, &us, NULL, &err), 0);
    assert_true(us > 0.999 * 8e-6 * (double)w->axis[0] && us < 1.001 * 8e-6 * (double)w->axis[0]);
}

/* The floor of a time: in a cold run only the output may stay in the L2. */
static void test_floor(void **state)
{
    (void)state;
    Error err;
    double us, n = (double)sim_workload()->axis[0], own = fake.info.l2_bytes;
    static const struct {
        double l2;
        ClockMode mode;
        double bytes; /* per element that must move */
    } tries[] = {{0, CLOCK_COLD, 8},
                 {2, CLOCK_COLD, 6},
                 {100, CLOCK_COLD, 4},
                 {2, CLOCK_WARM, 4},
                 {100, CLOCK_WARM, 0}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        fake.info.l2_bytes = tries[i].l2 * n;
        assert_int_equal(
            timing_floor_us(tasks.tasks[0], sim_workload(), &fake.info, tries[i].mode, &us, &err),
            0);
        assert_true(fabs(us - 1e-6 * fmax(tries[i].bytes * n, n)) <
                    1e-9 * n); /* one flop per element, at the same rate */
    }
    fake.info.l2_bytes = own;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_plan_is_checked_first),
        cmocka_unit_test(test_kernel_refused),
        cmocka_unit_test(test_homes),
        cmocka_unit_test(test_paired_timing),
        cmocka_unit_test(test_confirmed),
        cmocka_unit_test(test_errors_of_first_run),
        cmocka_unit_test(test_one_piece),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_few_for_losers),
        cmocka_unit_test(test_few_for_long_runs),
        cmocka_unit_test(test_warm),
        cmocka_unit_test(test_one_for_hopeless),
        cmocka_unit_test(test_few_pairs_keep_errors),
        cmocka_unit_test(test_unknown_by_launch),
        cmocka_unit_test(test_buffers_are_shared),
        cmocka_unit_test(test_cheats_when_timed),
        cmocka_unit_test(test_two_in_one),
        cmocka_unit_test(test_unseen),
        cmocka_unit_test(test_outputs_are_compared_after_prediction),
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_light),
        cmocka_unit_test(test_floor),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int rc = cmocka_run_group_tests(tests, set_up, tear_down);
    plan_release(&plan);
    return rc;
}
