/* The losses as weights of tokens, against numbers worked out by hand, against central differences
 * of every loss (in double), and against autograd of torch (tests/fixtures/make_losses.py). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "base/words.h"
#include "stages/train/loss.h"
#include "tests/fixture_path.h"

enum { MAX = 16, ANSWERS = 4 };

/* ---- by hand ---- */

static float one(const Loss *l, const LossBatch *b, double advantage, double log_ratio)
{
    const float lp[1] = {-1}, old[1] = {(float)(-1 - log_ratio)};
    const LossAnswer a = {.n = 1, .advantage = advantage, .logp = lp, .old = old};
    float w = 99;
    LossCounts c = {0};
    loss_weights(l, b, &a, &w, &c);
    return w;
}

static void near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-6 * fmax(1e-2, fabs(expected))))
        fail_msg("found %.9g, expected %.9g", found, expected);
}

static void supervised_by_hand(void **state)
{
    (void)state;
    Loss l;
    loss_supervised(&l);
    assert_false(loss_needs_logp(&l));
    const LossBatch b = {8, 2};
    const LossAnswer a = {.n = 3, .advantage = 1}; /* without log-probabilities */
    float w[3];
    LossCounts c = {0};
    loss_weights(&l, &b, &a, w, &c);
    for (int i = 0; i < 3; i++) assert_true(w[i] == (float)(-1.0 / 8));
    const LossAnswer failed = {.n = 3,
                               .advantage = 0}; /* a failure under REINFORCE without a baseline */
    loss_weights(&l, &b, &failed, w, &c);
    for (int i = 0; i < 3; i++) assert_true(w[i] == 0);
    assert_true(c.clipped == 0 && c.kl == 0 && c.correction == 0);
}

static void ratios_by_hand(void **state)
{
    (void)state;
    Loss l;
    const LossBatch b = {10, 4};
    assert_int_equal(loss_preset("dapo", &l), 0);
    assert_true(loss_needs_logp(&l));
    near(one(&l, &b, 2, log(1.1)), -2 * 1.1 / 10);
    near(one(&l, &b, 2, log(1.27)), -2 * 1.27 / 10); /* clip-higher: 1.28, PPO: 1.2 */
    near(one(&l, &b, 2, log(1.29)), 0);
    near(one(&l, &b, 2, log(0.1)),
         -2 * 0.1 / 10); /* never clipped: a good answer that has become rare */
    near(one(&l, &b, -2, log(0.81)), 2 * 0.81 / 10);
    near(one(&l, &b, -2, log(0.79)), 0);
    near(one(&l, &b, -2, log(5.0)), 2 * 5.0 / 10);
    l.dual_clip = 3;
    near(one(&l, &b, -2, log(2.9)), 2 * 2.9 / 10);
    near(one(&l, &b, -2, log(3.1)), 0);
    near(one(&l, &b, 2, log(0.5)), -2 * 0.5 / 10); /* dual clip is for bad answers only */
    assert_int_equal(loss_preset("grpo", &l), 0);
    near(one(&l, &b, 2, log(1.19)), -2 * 1.19 / 4); /* B |y|: 4 answers, 1 token */
    near(one(&l, &b, 2, log(1.21)), 0);
    assert_int_equal(loss_preset("dr-grpo", &l), 0);
    l.longest = 50;
    near(one(&l, &b, 2, 0), -2.0 / (4 * 50));
    assert_int_equal(loss_preset("cispo", &l), 0);
    near(one(&l, &b, 2, log(3.0)), -2 * 3.0 / 10);
    near(one(&l, &b, 2, log(9.0)), -2 * 5.0 / 10); /* cut at 1 + 4, never 0 */
    near(one(&l, &b, -2, log(9.0)), 2 * 5.0 / 10);
    assert_int_equal(loss_preset("reinforce", &l), 0);
    near(one(&l, &b, 2, log(9.0)), -2.0 / 10);
    l.aggregation = LOSS_SEQUENCE_SUM;
    near(one(&l, &b, 2, 0), -2.0 / 4);
    assert_int_equal(loss_preset("ppo", &l), -1);
    assert_int_equal(loss_preset("", &l), -1);
}

static void sequence_by_hand(void **state)
{
    (void)state;
    Loss l;
    assert_int_equal(loss_preset("gspo", &l), 0);
    const LossBatch b = {10, 4};
    const float lp[2] = {-1, -2}, old[2] = {-1.0005f, -2.0001f}, far[2] = {-1.0007f, -2.0003f};
    LossAnswer a = {.n = 2, .advantage = 3, .logp = lp, .old = old};
    float w[2];
    LossCounts c = {0};
    loss_weights(&l, &b, &a, w,
                 &c); /* s = exp(0.0003), inside 1.0004, though the first token alone is not */
    near(w[0], -3 * exp(0.0003) / (4 * 2));
    assert_true(w[0] == w[1] && c.clipped == 0);
    a.old = far;
    loss_weights(&l, &b, &a, w, &c); /* s = exp(0.0005): the whole answer is clipped */
    assert_true(w[0] == 0 && w[1] == 0 && c.clipped == 2);
}

static void corrections_by_hand(void **state)
{
    (void)state;
    Loss l;
    assert_int_equal(loss_preset("dapo", &l), 0);
    const LossBatch b = {2, 1};
    const float lp[2] = {-1, -1},
                sampler[2] = {(float)(-1 - log(3)),
                              (float)(-1 + log(2))}; /* old over sampler: 3, 1/2 */
    const LossAnswer a = {.n = 2, .advantage = 1, .logp = lp, .old = lp, .sampler = sampler};
    static const double expected[][2] = {{1, 1}, {2, 0.5}, {0, 0.5}, {1.5, 1.5}, {1.5, 1.5}};
    float w[2];
    for (int form = 0; form < 5; form++) {
        LossCounts c = {0};
        l.correction = (LossCorrection)form;
        loss_weights(&l, &b, &a, w, &c);
        for (int i = 0; i < 2; i++) near(w[i], -expected[form][i] / 2);
        near(c.correction, form ? expected[form][0] + expected[form][1] : 0);
    }
    l.cap = 1.4; /* below 3/2 of the whole answer: cut, then masked */
    LossCounts c = {0};
    l.correction = LOSS_CORRECT_SEQUENCE;
    loss_weights(&l, &b, &a, w, &c);
    near(w[1], -1.4 / 2);
    l.correction = LOSS_CORRECT_SEQUENCE_MASK;
    loss_weights(&l, &b, &a, w, &c);
    assert_true(w[0] == 0 && w[1] == 0);
}

static void kl_by_hand(void **state)
{
    (void)state;
    Loss l;
    loss_supervised(&l);
    l.kl = 0.5;
    assert_true(loss_needs_logp(&l));
    const LossBatch b = {1, 1};
    const float lp[1] = {-1}, ref[1] = {(float)(-1 + log(2))};
    const LossAnswer a = {.n = 1, .advantage = 0, .logp = lp, .ref = ref};
    static const double slope[] = {-0.69314718, -0.69314718, 1 - 2.0},
                        value[] = {-0.69314718, 0.24022651, 2 - 0.69314718 - 1};
    for (int form = 0; form < 3; form++) {
        LossCounts c = {0};
        float w;
        l.kl_form = (LossKl)form;
        l.kl_max = 0;
        loss_weights(&l, &b, &a, &w, &c);
        near(w, 0.5 * slope[form]);
        near(c.kl, value[form]);
        l.kl_max = 0.2; /* all three KL values are above it */
        loss_weights(&l, &b, &a, &w, &c);
        assert_true(w == 0);
        near(c.kl, value[form] + copysign(0.2, value[form]));
    }
}

static void advantages_by_hand(void **state)
{
    (void)state;
    const double r[4] = {4, 0, 0, 0}, same[3] = {2, 2, 2};
    double a[4];
    loss_advantages(LOSS_GROUP, r, 4, 0, a); /* mean 1, unbiased deviation 2 */
    near(a[0], 1.5);
    near(a[1], -0.5);
    loss_advantages(LOSS_GROUP, r, 4, 1, a);
    near(a[0], 1);
    loss_advantages(LOSS_CENTRED, r, 4, 1, a);
    near(a[0], 3);
    near(a[3], -1);
    loss_advantages(LOSS_LEAVE_ONE_OUT, r, 4, 1, a); /* minus the mean of the others */
    near(a[0], 4);
    near(a[1], -4.0 / 3);
    loss_advantages(LOSS_RAW, same, 3, 1, a);
    near(a[2], 2);
    for (int form = LOSS_GROUP; form < LOSS_RAW; form++) {
        loss_advantages((LossAdvantage)form, same, 3, 0.1, a);
        for (int i = 0; i < 3; i++) assert_true(a[i] == 0);
        loss_advantages((LossAdvantage)form, r, 1, 0.1, a);
        assert_true(a[0] == 0);
    }
    near(loss_overlong(80, 100, 20), 0);
    near(loss_overlong(90, 100, 20), -0.5);
    near(loss_overlong(99, 100, 20), -0.95);
    near(loss_overlong(100, 100, 20), -1);
    near(loss_overlong(500, 100, 0), -1);
    near(loss_overlong(99, 100, 0), 0);
}

/* ---- every combination against central differences ---- */

typedef struct {
    int n;
    double advantage;
    float logp[MAX], old[MAX], ref[MAX], sampler[MAX];
} Answer;

typedef struct {
    Answer items[ANSWERS];
    int n;
} Batch;

static double held(double d)
{
    return fmax(-20, fmin(20, d));
}

static double clipped(const Loss *l, double ratio, double a)
{
    double inside = fmin(fmax(ratio, 1 - l->eps_low), 1 + l->eps_high),
           loss = -fmin(ratio * a, inside * a);
    return l->dual_clip > 0 && a < 0 ? fmin(loss, -l->dual_clip * a) : loss;
}

/* The loss of one token at x. Terms without a gradient use the answer's log-probabilities. */
static double token_loss(const Loss *l, const Answer *a, const double *x, int t)
{
    double loss = 0, shift = 0, c = 1, whole = 0;
    /* With a constant per token, the ratio of the answer is a term of each token, as in verl. */
    int own = l->correction == LOSS_CORRECT_TOKEN || l->correction == LOSS_CORRECT_TOKEN_MASK;
    for (int i = 0; i < a->n; i++) {
        shift += ((own ? (double)a->logp[i] : x[i]) - (double)a->old[i]) / a->n;
        whole += (double)a->old[i] - (double)a->sampler[i];
    }
    if (own) shift += x[t] - (double)a->logp[t];
    switch (l->ratio) {
    case LOSS_NO_RATIO: loss = -a->advantage * x[t]; break;
    case LOSS_CLIP: loss = clipped(l, exp(held(x[t] - (double)a->old[t])), a->advantage); break;
    case LOSS_CISPO:
        loss = -a->advantage *
               fmin(exp(held((double)a->logp[t] - (double)a->old[t])), 1 + l->eps_high) * x[t];
        break;
    case LOSS_SEQUENCE: loss = clipped(l, exp(held(shift)), a->advantage); break;
    }
    int sums =
        l->correction == LOSS_CORRECT_SEQUENCE || l->correction == LOSS_CORRECT_SEQUENCE_MASK;
    double r = exp(held(sums ? whole : (double)a->old[t] - (double)a->sampler[t]));
    if (l->correction == LOSS_CORRECT_TOKEN || l->correction == LOSS_CORRECT_SEQUENCE)
        c = fmin(r, l->cap);
    if (l->correction == LOSS_CORRECT_TOKEN_MASK || l->correction == LOSS_CORRECT_SEQUENCE_MASK)
        c = r > l->cap ? 0 : r;
    double d = held((double)a->ref[t] - x[t]),
           kl = l->kl_form == LOSS_K2 ? d * d / 2 : exp(d) - d - 1;
    if (l->kl_form == LOSS_K1) { /* a reward */
        double k1 = held((double)a->logp[t] - (double)a->ref[t]);
        kl = l->kl_max > 0 && fabs(k1) > l->kl_max ? 0 : k1 * x[t];
    } else if (l->kl_max > 0)
        kl = fmax(-l->kl_max, fmin(l->kl_max, kl));
    return c * loss + l->kl * kl;
}

static double batch_loss(const Loss *l, const Batch *b, const double x[ANSWERS][MAX])
{
    double sum = 0, tokens = 0;
    for (int i = 0; i < b->n; i++) {
        const Answer *a = &b->items[i];
        double of_answer = 0;
        for (int t = 0; t < a->n; t++) of_answer += token_loss(l, a, x[i], t);
        tokens += a->n;
        sum += l->aggregation == LOSS_SEQUENCE_MEAN ? of_answer / a->n : of_answer;
    }
    if (l->aggregation == LOSS_TOKEN_MEAN) return sum / tokens;
    return l->aggregation == LOSS_CONSTANT ? sum / (b->n * l->longest) : sum / b->n;
}

/* Computes the weights of answer i of the batch. */
static void weights_of(const Loss *l, const Batch *b, int i, float *w)
{
    LossBatch size = {0};
    LossCounts counts = {0};
    for (int k = 0; k < b->n; k++) size.tokens += b->items[k].n, size.sequences++;
    const Answer *a = &b->items[i];
    const LossAnswer in = {a->n, a->advantage, a->logp, a->old, a->ref, a->sampler};
    loss_weights(l, &size, &in, w, &counts);
}

/* Returns how many weights are not 0. */
static int check_slopes(const Loss *l, const Batch *b)
{
    const double h = 1e-6;
    double x[ANSWERS][MAX];
    int alive = 0;
    for (int i = 0; i < b->n; i++)
        for (int t = 0; t < b->items[i].n; t++) x[i][t] = (double)b->items[i].logp[t];
    for (int i = 0; i < b->n; i++) {
        float w[MAX];
        weights_of(l, b, i, w);
        for (int t = 0; t < b->items[i].n; t++) {
            double at = x[i][t];
            x[i][t] = at + h;
            double up = batch_loss(l, b, x);
            x[i][t] = at - h;
            double slope = (up - batch_loss(l, b, x)) / (2 * h);
            x[i][t] = at;
            if (!(fabs((double)w[t] - slope) <= 1e-5 * fmax(1e-3, fabs(slope))))
                fail_msg("answer %d, token %d: weight %.9g, central difference %.9g", i, t,
                         (double)w[t], slope);
            alive += w[t] != 0;
        }
    }
    return alive;
}

static void draw(Random *r, Batch *b, double spread)
{
    static const int length[ANSWERS] = {3, 7, 1, 5};
    b->n = ANSWERS;
    for (int i = 0; i < ANSWERS; i++) {
        Answer *a = &b->items[i];
        a->n = length[i];
        a->advantage = (i % 2 ? 1 : -1) * (0.2 + random_uniform(r));
        for (int t = 0; t < a->n; t++) {
            a->logp[t] = (float)(-4 * random_uniform(r));
            a->old[t] = a->logp[t] + (float)(spread * (2 * random_uniform(r) - 1));
            a->ref[t] = a->logp[t] + (float)(random_uniform(r) - 0.5);
            a->sampler[t] = a->old[t] + (float)(random_uniform(r) - 0.5);
        }
    }
}

static void central_differences(void **state)
{
    (void)state;
    Random r;
    random_init(&r, 3, 0);
    int checked = 0, alive = 0;
    for (int ratio = 0; ratio < 4; ratio++)
        for (int how = 0; how < 4; how++)
            for (int form = 0; form < 3; form++)
                for (int correction = 0; correction < 5; correction++)
                    for (int variant = 0; variant < 4; variant++) {
                        Loss l = {.ratio = (LossRatio)ratio,
                                  .aggregation = (LossAggregation)how,
                                  .kl_form = (LossKl)form,
                                  .correction = (LossCorrection)correction,
                                  .eps_low = 0.2,
                                  .eps_high = 0.28,
                                  .longest = 9,
                                  .cap = 1.2,
                                  .kl = variant & 1 ? 0.1 : 0,
                                  .kl_max = variant & 1 ? 0.05 : 0,
                                  .dual_clip = variant & 2 ? 1.5 : 0};
                        Batch b;
                        draw(&r, &b, variant & 2 ? 1 : 0.4);
                        alive += check_slopes(&l, &b);
                        checked += 16;
                    }
    assert_true(alive > checked / 3 &&
                alive < checked); /* some tokens are clipped, and some are not */
}

/* ---- against torch ---- */

static void floats_of(const json_t *obj, const char *key, float *out, int *n)
{
    const json_t *list = json_object_get(obj, key);
    *n = (int)json_array_size(list);
    assert_in_range(*n, 1, MAX);
    for (int i = 0; i < *n; i++) out[i] = (float)json_number_value(json_array_get(list, (size_t)i));
}

static double number(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);
    if (!json_is_number(v)) fail_msg("losses.json: %s is no number", key);
    return json_number_value(v);
}

static int choice(const json_t *obj, const char *key, const char *names)
{
    const char *text = json_string_value(json_object_get(obj, key));
    int i = text ? word_choice(names, text) : -1;
    if (i < 0)
        fail_msg("losses.json: %s is '%s', expected one of %s", key, text ? text : "", names);
    return i;
}

static void one_case(const json_t *c)
{
    const json_t *o = json_object_get(c, "loss"), *answers = json_object_get(c, "answers"), *item;
    const Loss l = {.ratio = (LossRatio)choice(o, "ratio", LOSS_RATIOS),
                    .aggregation = (LossAggregation)choice(o, "aggregation", LOSS_AGGREGATIONS),
                    .kl_form = (LossKl)choice(o, "kl_form", LOSS_KLS),
                    .correction = (LossCorrection)choice(o, "correction", LOSS_CORRECTIONS),
                    .eps_low = number(o, "eps_low"),
                    .eps_high = number(o, "eps_high"),
                    .dual_clip = number(o, "dual_clip"),
                    .kl = number(o, "kl"),
                    .kl_max = number(o, "kl_max"),
                    .cap = number(o, "cap"),
                    .longest = (int)number(o, "longest")};
    Batch b = {.n = (int)json_array_size(answers)};
    float expected[ANSWERS][MAX], w[MAX];
    size_t k;
    assert_int_equal(b.n, ANSWERS);
    json_array_foreach(answers, k, item)
    {
        Answer *a = &b.items[k];
        a->advantage = number(item, "advantage");
        floats_of(item, "logp", a->logp, &a->n);
        floats_of(item, "old", a->old, &a->n);
        floats_of(item, "ref", a->ref, &a->n);
        floats_of(item, "sampler", a->sampler, &a->n);
        floats_of(item, "weights", expected[k], &a->n);
    }
    for (int i = 0; i < b.n; i++) {
        weights_of(&l, &b, i, w);
        for (int t = 0; t < b.items[i].n; t++)
            if (!(fabs((double)w[t] - (double)expected[i][t]) <=
                  1e-5 * fmax(1e-2, fabs((double)expected[i][t]))))
                fail_msg("%s, answer %d, token %d: weight %.9g, torch %.9g",
                         json_string_value(json_object_get(c, "name")), i, t, (double)w[t],
                         (double)expected[i][t]);
    }
}

static void autograd(void **state)
{
    (void)state;
    const char *path = fixture_path("tests/fixtures/losses/losses.json");
    Error err;
    if (!file_exists(path)) {
        print_message("# tests/fixtures/losses/losses.json is not there: make_losses.py makes it "
                      "where torch is\n");
        return;
    }
    json_t *j = json_read_file(path, 1 << 24, &err), *item;
    if (!j) fail_msg("%s", err.text);
    size_t i;
    assert_true(json_array_size(json_object_get(j, "cases")) >= 30);
    json_array_foreach(json_object_get(j, "cases"), i, item) one_case(item);
    assert_true(json_array_size(json_object_get(j, "advantages")) >= 12);
    json_array_foreach(json_object_get(j, "advantages"), i, item)
    {
        const json_t *rewards = json_object_get(item, "rewards"),
                     *expected = json_object_get(item, "advantages");
        double r[MAX], a[MAX];
        int n = (int)json_array_size(rewards);
        assert_in_range(n, 1, MAX);
        for (int k = 0; k < n; k++) r[k] = json_number_value(json_array_get(rewards, (size_t)k));
        loss_advantages((LossAdvantage)choice(item, "form", LOSS_ADVANTAGES), r, n,
                        number(item, "floor"), a);
        for (int k = 0; k < n; k++)
            assert_true(fabs(a[k] - json_number_value(json_array_get(expected, (size_t)k))) < 1e-9);
    }
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(supervised_by_hand),  cmocka_unit_test(ratios_by_hand),
        cmocka_unit_test(sequence_by_hand),    cmocka_unit_test(corrections_by_hand),
        cmocka_unit_test(kl_by_hand),          cmocka_unit_test(advantages_by_hand),
        cmocka_unit_test(central_differences), cmocka_unit_test(autograd)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
