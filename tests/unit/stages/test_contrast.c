/* The arithmetic of stage 3: smoothed rewards, group advantages and the distribution of exemplars,
 * against values worked out by hand; and exemplars in a prompt. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/words.h"
#include "stages/crl/exemplar.h"
#include "stages/crl/reward.h"
#include "stages/policy/prompt.h"
#include "stages/train/loss.h"

static void advantage_of_a_group(void **state)
{
    (void)state;
    double a[4];
    const double r[4] = {1, 0, 0, 1};
    loss_advantages(LOSS_GROUP, r, 4, 0, a); /* mean 0.5, unbiased deviation sqrt(1/3) */
    for (int i = 0; i < 4; i++) assert_true(fabs(a[i] - (r[i] - 0.5) / sqrt(1.0 / 3)) < 1e-12);
    const double same[3] = {2, 2, 2};
    loss_advantages(LOSS_GROUP, same, 3, 0.1, a);
    for (int i = 0; i < 3; i++) assert_true(a[i] == 0);
    const double near_tie[2] = {1.0, 1.001};
    loss_advantages(LOSS_GROUP, near_tie, 2, 0.1, a); /* the floor keeps it small */
    assert_true(fabs(a[1]) < 0.01 && a[1] > 0);
    loss_advantages(LOSS_GROUP, r, 1, 0.1, a);
    assert_true(a[0] == 0);
}

/* The mean of max(0, r_i - max of the others) over all choices of k - 1 others, by enumeration. */
static double counted(const double *r, int n, int k, int i)
{
    double sum = 0;
    int choices = 0;
    for (unsigned set = 0; set < 1u << n; set++) {
        if (__builtin_popcount(set) != k - 1 || set >> i & 1) continue;
        double best = -1e9;
        for (int j = 0; j < n; j++)
            if (set >> j & 1) best = fmax(best, r[j]);
        sum += fmax(0, r[i] - best);
        choices++;
    }
    return sum / choices;
}

static void best_of_a_group(void **state)
{
    (void)state;
    enum { N = 9 };
    const double r[N] = {0.5, -1, 2, 2, -1, 3.5, -1, 0.25, 1};
    double out[N];
    for (int k = 2; k <= N; k++) {
        reward_best_of(r, N, k, out);
        for (int i = 0; i < N; i++) assert_true(fabs(out[i] - counted(r, N, k, i)) < 1e-12);
    }
    reward_best_of(r, N, 1, out); /* the mean: the reward itself */
    assert_memory_equal(out, r, sizeof r);
    reward_best_of(r, 2, 8, out); /* k is at most the size of the group */
    assert_true(fabs(out[0] - 1.5) < 1e-12 && out[1] == 0);
    reward_best_of(r, 1, 8, out);
    assert_true(out[0] == r[0]);
}

static void ties(void **state)
{
    (void)state;
    double score[7] = {1.5, 0, 1.0, 1.04, 0, 1.52, 1.08};
    const double low[7] = {1.45, 0, 0.97, 1.01, 0, 1.5, 1.05},
                 high[7] = {1.55, 0, 1.03, 1.07, 0, 1.6, 1.11};
    reward_ties(score, low, high, 7);
    /* 1.08 meets 1.04, which is no longer the first of its ties. */
    const double expected[7] = {1.51, 0, 1.02, 1.02, 0, 1.51, 1.08};
    for (int i = 0; i < 7; i++) assert_true(fabs(score[i] - expected[i]) < 1e-12);
}

static Sample sample(const char *task, double score)
{
    Sample s = {.task = (char *)task, .score = score, .reward = score, .outcome = OUTCOME_OK};
    return s;
}

static void smoothing(void **state)
{
    (void)state;
    Sample items[5] = {sample("a", 0), sample("a", 0), sample("a", 2), sample("a", 2),
                       sample("b", 7)};
    SampleSet set = {.items = items, .n = 5};
    RewardStats s;
    reward_stats_init(&s);
    assert_int_equal(reward_stats_update(&s, &set, 0.5, NULL), 0);
    assert_true(fabs(reward_smooth(&s, "a", 2, 1.5) - 1) < 1e-12); /* mean 1, deviation 1 */
    assert_true(fabs(reward_smooth(&s, "a", 50, 1.5) - 1.5) < 1e-12);
    assert_true(fabs(reward_smooth(&s, "a", -50, 1.5) + 1.5) < 1e-12);
    assert_true(reward_smooth(&s, "b", 9, 1.5) == 0); /* no deviation yet */
    assert_true(reward_smooth(&s, "unknown", 9, 1.5) == 0);
    /* A second round of 4s: weight 4 * 0.5 for the old, 4 for the new; mean (2*1 + 4*4)/6 = 3. */
    Sample next[4] = {sample("a", 4), sample("a", 4), sample("a", 4), sample("a", 4)};
    SampleSet round2 = {.items = next, .n = 4};
    assert_int_equal(reward_stats_update(&s, &round2, 0.5, NULL), 0);
    double var = (2 * 2.0 + 4 * 16) / 6 - 9;
    assert_true(fabs(reward_smooth(&s, "a", 4, 1.5) - 1 / sqrt(var)) < 1e-12);
    reward_stats_release(&s);
}

/* Three buckets of log2 score 0, 1, 2, two kernels each. */
static Pool make_pool(PoolItem items[6])
{
    static const double score[6] = {1, 1.01, 2, 2.02, 4, 4.04};
    static const char digest[] = "abcdef";
    for (int i = 0; i < 6; i++) {
        items[i] = (PoolItem){.id = (char *)"collect/t/x/0",
                              .stage = (char *)"collect",
                              .task = (char *)"t",
                              .score = score[i]};
        memset(items[i].source_digest, digest[i], 64);
    }
    return (Pool){items, 6};
}

static void bucket_law(void **state)
{
    (void)state;
    PoolItem items[6];
    Pool p = make_pool(items);
    const ExemplarOptions o = {EXEMPLAR_BUCKET, 1.0, 0, 0, 0, 1};
    ExemplarPick picks[EXEMPLAR_MAX];
    Random rng;
    random_init(&rng, 7, 0);
    enum { DRAWS = 20000 };
    int first[3] = {0};
    for (int i = 0; i < DRAWS; i++) {
        assert_int_equal(exemplar_draw(&p, "t", "crl-1/t/0", &o, 1, &rng, picks), 1);
        first[picks[0].item->score < 1.5 ? 0 : picks[0].item->score < 3 ? 1 : 2]++;
    }
    double mean[3] = {log2(1.01) / 2, 1 + log2(1.01) / 2, 2 + log2(1.01) / 2}, tau = sqrt(2.0 / 3),
           sum = 0;
    for (int k = 0; k < 3; k++) sum += exp(mean[k] / tau);
    for (int k = 0; k < 3; k++) {
        double expected = DRAWS * exp(mean[k] / tau) / sum, sigma = sqrt(expected);
        assert_true(fabs(first[k] - expected) < 4 * sigma);
    }
    for (int i = 0; i < 200; i++) { /* two picks are of distinct buckets */
        assert_int_equal(exemplar_draw(&p, "t", "crl-1/t/0", &o, 2, &rng, picks), 2);
        assert_true(fabs(log2(picks[0].item->score / picks[1].item->score)) > 0.5);
    }
}

static void other_rules(void **state)
{
    (void)state;
    PoolItem items[6];
    Pool p = make_pool(items);
    ExemplarPick picks[EXEMPLAR_MAX];
    ExemplarRule rule;
    Random rng;
    random_init(&rng, 7, 1);
    assert_int_equal(word_choice(EXEMPLAR_RULES, "greedy"), -1);
    for (int r = 0; r < 3; r++) {
        const char *const names[3] = {"bucket", "island", "random"};
        rule = (ExemplarRule)word_choice(EXEMPLAR_RULES, names[r]);
        const ExemplarOptions o = {rule, 1.0, 0, 0, 0, 1};
        for (int i = 0; i < 100; i++) {
            int n = exemplar_draw(&p, "t", "crl-1/t/0", &o, 2, &rng, picks);
            assert_int_equal(n, 2);
            assert_ptr_not_equal(picks[0].item, picks[1].item);
        }
        assert_int_equal(exemplar_draw(&p, "absent", "crl-1/absent/0", &o, 2, &rng, picks), 0);
        assert_int_equal(exemplar_draw(&p, "t", "crl-1/t/0", &o, EXEMPLAR_MAX, &rng, picks),
                         rule == EXEMPLAR_BUCKET ? 3 : 6);
    }
}

/* What leaves the draw, what must be in it, and the placebo's scores. */
static void floor_and_winner(void **state)
{
    (void)state;
    static const double score[6] = {0.2, 0.4, 0.6, 0.8, 0.9, 1.1};
    PoolItem items[6];
    Pool p = make_pool(items);
    ExemplarPick picks[EXEMPLAR_MAX];
    Random rng;
    random_init(&rng, 7, 2);
    for (int i = 0; i < 6; i++) items[i].score = score[i];
    for (int r = 0; r < 4; r++) {
        const ExemplarOptions o = {(ExemplarRule)r, 1.0, 0.5, 0, 0, 1};
        for (int i = 0, slow = 0; i < 200; i++, slow = 0) {
            int n = exemplar_draw(&p, "t", "crl-1/t/0", &o, 2, &rng, picks), won = 0;
            assert_int_equal(n, 2);
            for (int k = 0; k < n; k++) {
                won |= picks[k].item->score > 1;
                slow |= picks[k].item->score < 0.5;
            }
            assert_true(!slow && (won || r == EXEMPLAR_RANDOM));
        }
    }
    const ExemplarOptions high = {EXEMPLAR_BUCKET, 1.0, 1.0, 0, 0, 1};
    assert_int_equal(exemplar_draw(&p, "t", "crl-1/t/0", &high, 2, &rng, picks), 2); /* too few */
    for (int i = 0; i < 6; i++) items[i].score = score[i] / 10; /* the best is the measure */
    const ExemplarOptions o = {EXEMPLAR_RANDOM, 1.0, 0.5, 0, 0, 1};
    for (int i = 0; i < 100; i++) {
        exemplar_draw(&p, "t", "crl-1/t/0", &o, 2, &rng, picks);
        assert_true(picks[0].item->score >= 0.055 && picks[1].item->score >= 0.055);
    }
}

/* `apart` holds with every seed where the pool allows it, whether the slow or the fast kernel has to
 * change, and the placebo draws the same kernels. */
static void spread(void **state)
{
    (void)state;
    static const double score[6] = {0.6, 1.1, 1.2, 1.3, 1.4, 1.5};
    PoolItem items[6];
    Pool p = make_pool(items);
    ExemplarPick picks[EXEMPLAR_MAX], again[EXEMPLAR_MAX];
    for (int i = 0; i < 6; i++) items[i].score = score[i];
    int slowest = 0;
    for (uint64_t i = 0; i < 200; i++) {
        ExemplarOptions o = {EXEMPLAR_BUCKET, 1.0, 0, 0, 0, 2};
        Random rng;
        random_init(&rng, i, 0);
        assert_int_equal(exemplar_draw(&p, "t", "crl-1/t/0", &o, 2, &rng, picks), 2);
        double a = picks[0].item->score, b = picks[1].item->score;
        assert_true(fmax(a, b) / fmin(a, b) > 1.999); /* 1.1 gives way: none is half as fast */
        slowest += fmin(a, b) == 0.6;
        o.rule = EXEMPLAR_SHUFFLED;
        random_init(&rng, i, 0);
        exemplar_draw(&p, "t", "crl-1/t/0", &o, 2, &rng, again);
        assert_true(again[0].item == picks[0].item && again[1].item == picks[1].item);
        o = (ExemplarOptions){EXEMPLAR_BUCKET, 1.0, 0, 0, 0, 100}; /* none is so far apart */
        assert_int_equal(exemplar_draw(&p, "t", "crl-1/t/0", &o, 2, &rng, picks), 2);
        assert_ptr_not_equal(picks[0].item, picks[1].item);
    }
    assert_int_equal(slowest, 200);
}

static void placebo(void **state)
{
    (void)state;
    PoolItem items[6];
    Pool p = make_pool(items);
    ExemplarPick picks[EXEMPLAR_MAX];
    Random rng;
    random_init(&rng, 7, 3);
    const ExemplarOptions o = {EXEMPLAR_SHUFFLED, 1.0, 0, 0, 0, 1},
                          none = {EXEMPLAR_NONE, 1.0, 0, 0, 0, 1};
    int true_order = 0;
    enum { DRAWS = 2000 };
    for (int i = 0; i < DRAWS; i++) {
        assert_int_equal(exemplar_draw(&p, "t", "crl-1/t/0", &o, 2, &rng, picks), 2);
        assert_true(fabs(picks[0].shown + picks[1].shown - picks[0].item->score -
                         picks[1].item->score) < 1e-12);
        true_order += picks[0].shown == picks[0].item->score;
    }
    assert_true(abs(true_order - DRAWS / 2) < 4 * sqrt(DRAWS) / 2);
    assert_int_equal(exemplar_draw(&p, "t", "crl-1/t/0", &none, 2, &rng, picks), 0);
}

/* Kernels whose prompts are on known islands, from rounds 1 to 4. */
static void islands(void **state)
{
    (void)state;
    enum { N = 16 };
    char id[N][40];
    PoolItem items[N] = {{0}};
    const PoolItem *list[N];
    char in[N];
    int home[N], count[ISLANDS] = {0};
    for (int i = 0; i < N; i++) {
        snprintf(id[i], sizeof id[i], "crl-%d/t/%d", i / 4 + 1, i % 4);
        home[i] = island_of_prompt(id[i]);
        snprintf(id[i] + strlen(id[i]), 8, "/%d", i);
        items[i] = (PoolItem){.id = id[i],
                              .stage = (char *)"crl",
                              .task = (char *)"t",
                              .round = i / 4 + 1,
                              .score = 1 + 0.01 * i};
        list[i] = &items[i];
        count[home[i]]++;
    }
    for (int k = 0; k < ISLANDS; k++) { /* the answers to a prompt are on its island */
        island_members(list, N, k, &(ExemplarOptions){0}, in);
        for (int i = 0; i < N; i++) assert_int_equal(in[i], home[i] == k);
    }
    for (int k = 0; k < ISLANDS; k++) { /* the neighbour's best comes with each migration */
        int before = (k + ISLANDS - 1) % ISLANDS, best = -1, more = 0;
        island_members(list, N, k, &(ExemplarOptions){.migrate = 4}, in);
        for (int i = 0; i < N; i++) {
            if (home[i] == before) best = i;
            more += in[i] && home[i] != k;
        }
        assert_int_equal(more, best >= 0);
        if (best >= 0) assert_int_equal(in[best], 1);
    }
    int founded = 0;
    for (int k = 0; k < ISLANDS; k++) { /* after the reset two islands have one kernel each */
        int members = 0, own = 0;
        island_members(list, N, k, &(ExemplarOptions){.reset = 4}, in);
        for (int i = 0; i < N; i++) members += in[i], own += in[i] && home[i] == k;
        if (own == count[k] && count[k]) continue;
        assert_int_equal(members, 1);
        founded++;
    }
    assert_int_equal(founded, 2);
}

/* Returns an exemplar as a prompt shows it; valid until the next call. */
static const char *as_shown(const char *source, int full)
{
    static char text[2000];
    static const char mark[] = "// code1 (score 1.50)\n",
                      after[] = "\n# Requirements and Restrictions\n";
    Task task = {.name = "t", .description = (char *)"d", .reference_source = (char *)"r\n"};
    Exemplar ex = {.source = source, .len = strlen(source), .score = 1.5};
    Buffer b;
    buffer_init(&b, 10000);
    prompt_write(&b, &task, &ex, 1, &(PromptStyle){.full = full});
    const char *at = strstr(b.data, mark);
    assert_non_null(at);
    at += sizeof mark - 1;
    const char *end = full ? strstr(at, after) : b.data + b.len;
    assert_non_null(end);
    snprintf(text, sizeof text, "%.*s", (int)(end - at), at);
    buffer_release(&b);
    return text;
}

/* Kernels are shown byte for byte, except for lines that look like a part of the prompt. */
static void shown_kernels(void **state)
{
    (void)state;
    static const char *const ordinary[] = {
        "",
        "\n",
        "#include <x.h>\n#define A(x) x##1\n  # define B #x\n#\n# pragma unroll\n\t#if "
        "0\n#elif(1)\n#else\n#endif\n# 7 \"f\"\r\n#ifdef C\n",
        "//@ launch k<<<1, 1>>>(x)\n// code path (score of it)\n// code 2\n// code2 scores\n// "
        "decode1 (score 2)\n/* code1 (score 2) */\n// `x` ``y``\n",
        "int x; // code2 (score 40.00)\nint y; // # Task ```\n#define S(x) \\\n    f(x) \\\n    "
        "g\n/// code\n//\n/\n",
    };
    static const struct {
        const char *source, *shown;
    } forged[] = {
        {"int x;\n// code2 (score 40.00)\nint y;\n", "int x;\n//............. 40.00)\nint y;\n"},
        {" \t///CODE 12(Score: 3) */ int y;\n", " \t///.............: 3) */ int y;\n"},
        {"/*\n# Requirements and Restrictions\n */\n",
         "/*\n. Requirements and Restrictions\n */\n"},
        {"#if 0\n  #Task\n## Code Implementation\n ##\n ```cuda\n````\n#endif\n",
         "#if 0\n  .Task\n.. Code Implementation\n ..\n ...cuda\n....\n#endif\n"},
        {"/*\r# Previous\r\n# Previous*/\r\n", "/*\r. Previous\r\n. Previous*/\r\n"},
        {"// a \\\n# Previous\n", "// a # Previous\n"},
        {"#define CAT(a, b) a \\\n    ## b \\\n    # c\nint z;\n",
         "#define CAT(a, b) a     ## b     # c\nint z;\n"},
        {"// code1 (score 1)\\\n# Previous", "//............. 1)# Previous\n"},
        {"# # Task", ". # Task\n"},
        {"```", "...\n"},
    };
    for (int full = 0; full < 2; full++) {
        for (size_t i = 0; i < sizeof ordinary / sizeof *ordinary; i++)
            assert_string_equal(as_shown(ordinary[i], full), ordinary[i]);
        for (size_t i = 0; i < sizeof forged / sizeof *forged; i++)
            assert_string_equal(as_shown(forged[i].source, full), forged[i].shown);
        assert_string_equal(as_shown("int x;", full), "int x;\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(advantage_of_a_group),
                                       cmocka_unit_test(best_of_a_group),
                                       cmocka_unit_test(ties),
                                       cmocka_unit_test(smoothing),
                                       cmocka_unit_test(bucket_law),
                                       cmocka_unit_test(other_rules),
                                       cmocka_unit_test(floor_and_winner),
                                       cmocka_unit_test(spread),
                                       cmocka_unit_test(placebo),
                                       cmocka_unit_test(islands),
                                       cmocka_unit_test(shown_kernels)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("contrast", tests, NULL, NULL);
}
