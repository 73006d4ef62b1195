/* Sampling: the law, the recorded log-probabilities, and that a sample depends on its prompt and
 * its seed only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "model/core/lora.h"
#include "model/cpu/cpu_kernels.h"
#include "model/cpu/ops_cpu.h"
#include "model/sampler.h"
#include "tests/unit/model/model_support.h"

enum { VOCAB = 70, NEW = 45, PROMPTS = 3, COPIES = 5, PROMPT_MAX = 40 };
#include "tests/unit/model/sampler_support.h"

static Model *small(const char *type, double spread)
{
    const ModelConfig c = {.vocab = VOCAB,
                           .hidden = 40,
                           .ff = 56,
                           .layers = 2,
                           .heads = 6,
                           .kv_heads = 2,
                           .head_dim = 12,
                           .max_position = 256,
                           .rope_theta = 10000,
                           .norm_eps = 1e-6f,
                           .eos = {5},
                           .n_eos = 1,
                           .pad = -1};
    return random_model(&c, type, ops_cpu(), 11, 1, spread);
}

static const int prompt_len[PROMPTS] = {3, 20, 37};

static void sample(Model *m, const Ask *a, const SampleOptions *opt, Result *out)
{
    Error err;
    memset(out, 0, sizeof *out);
    if (model_sample(m, a->req, PROMPTS, opt, keep, out, &err)) fail_msg("%s", err.text);
    assert_int_equal(out->done, PROMPTS * COPIES);
}

static const SampleOptions plain = {.temperature = 1, .top_p = 1, .max_new = NEW, .batch = 4};

/* The differences between a sample's recorded log-probabilities and a forward pass over the whole
 * sequence. */
static void differences(Model *m, const SampleRequest *req, const Kept *k, double *off)
{
    int len = req->prompt_len;
    int32_t all[40 + NEW];
    float logp[40 + NEW], *row = logp;
    Sequence s = {all, len + k->n};
    Error err;
    memcpy(all, req->prompt, (size_t)len * sizeof *all);
    memcpy(all + len, k->ids, (size_t)k->n * sizeof *all);
    assert_int_equal(model_logprobs(m, &s, 1, &row, &err), 0);
    for (int t = 0; t < k->n; t++) off[t] = fabs((double)logp[len + t] - (double)k->logp[t]);
}

static void decoding_equals_forward(void **state)
{
    (void)state;
    static const char *const types[] = {"qwen2", "qwen3", "llama"};
    for (int f = 0; f < 3; f++) {
        Model *m = small(types[f], 0.15);
        Ask a;
        Result r;
        make_ask(&a, prompt_len);
        sample(m, &a, &plain, &r);
        double sum = 0, worst = 0;
        int n = 0, stopped = 0;
        for (int i = 0; i < PROMPTS; i++)
            for (int c = 0; c < COPIES; c++) {
                const Kept *k = &r.sample[i][c];
                double off[NEW];
                differences(m, &a.req[i], k, off);
                for (int t = 0; t < k->n; t++, n++) {
                    sum += off[t];
                    worst = fmax(worst, off[t]);
                }
                assert_int_equal(k->stopped, k->ids[k->n - 1] == 5);
                stopped += k->stopped;
                assert_true(k->stopped || k->n == NEW);
            }
        if (n < 100 || !stopped)
            fail_msg("%s: %d tokens, %d samples ended: no test", types[f], n, stopped);
        if (!(sum / n < 1e-5 && worst < 1e-4))
            fail_msg("%s: mean |dlogp| %g, worst %g", types[f], sum / n, worst);
        model_free(m);
    }
}

/* Bit-identical for any batch size, in a separate call, and in a second run. */
static void only_prompt_and_seed(void **state)
{
    (void)state;
    Model *m = small("qwen2", 0.15);
    Ask a;
    Result one, other;
    make_ask(&a, prompt_len);
    sample(m, &a, &plain, &one);
    for (int batch = 1; batch <= 16; batch++) {
        SampleOptions opt = plain;
        opt.batch = batch;
        sample(m, &a, &opt, &other);
        assert_memory_equal(&one, &other, sizeof one);
    }
    Ask swapped = a; /* the copies of prompt 1 in another order */
    for (int c = 0; c < COPIES; c++) swapped.seed[1][c] = a.seed[1][COPIES - 1 - c];
    for (int i = 0; i < PROMPTS; i++) swapped.req[i].seeds = swapped.seed[i];
    sample(m, &swapped, &plain, &other);
    for (int c = 0; c < COPIES; c++)
        assert_memory_equal(&one.sample[1][c], &other.sample[1][COPIES - 1 - c], sizeof(Kept));
    assert_true(memcmp(&one.sample[0][0], &one.sample[0][1], sizeof(Kept)) != 0);
    model_free(m);
}

typedef struct {
    int count[VOCAB], n;
} Tally;

static void tally(void *ctx, int request, int copy, const int32_t *ids, const float *logp, int n,
                  int stopped)
{
    (void)request, (void)copy, (void)logp, (void)stopped;
    assert_int_equal(n, 1);
    ((Tally *)ctx)->count[ids[0]]++;
    ((Tally *)ctx)->n++;
}

enum { DRAWS = 20000 };

static void first_tokens(Model *m, const SampleOptions *opt, Tally *out)
{
    int32_t prompt[2] = {3, 8};
    uint64_t *seeds = memory_array(DRAWS, sizeof *seeds);
    for (int i = 0; i < DRAWS; i++) seeds[i] = (uint64_t)i;
    SampleRequest req = {prompt, 2, DRAWS, seeds};
    Error err;
    *out = (Tally){0};
    if (model_sample(m, &req, 1, opt, tally, out, &err)) fail_msg("%s", err.text);
    assert_int_equal(out->n, DRAWS);
    free(seeds);
}

static void law(Model *m, float temperature, double *p)
{
    int32_t ids[3] = {3, 8, 0};
    double sum = 0;
    for (int i = 0; i < VOCAB; i++) {
        float logp[3], *row = logp;
        ids[2] = i;
        Sequence s = {ids, 3};
        Error err;
        assert_int_equal(model_logprobs(m, &s, 1, &row, &err), 0);
        sum += p[i] = exp((double)logp[2] / (double)temperature);
    }
    for (int i = 0; i < VOCAB; i++) p[i] /= sum;
}

/* Pearson's statistic over cells that expect at least 10. Mean: cells - 1; variance: twice that. */
static void check_law(const Tally *t, const double *p)
{
    double chi = 0, rest = 0;
    int cells = 0, rest_count = 0;
    for (int i = 0; i < VOCAB; i++) {
        double want = p[i] * DRAWS;
        if (want < 10) {
            rest += want;
            rest_count += t->count[i];
            if (p[i] == 0) assert_int_equal(t->count[i], 0);
        } else {
            chi += (t->count[i] - want) * (t->count[i] - want) / want;
            cells++;
        }
    }
    if (rest >= 10) {
        chi += (rest_count - rest) * (rest_count - rest) / rest;
        cells++;
    }
    assert_true(cells > 3);
    if (!(chi < cells + 5 * sqrt(2.0 * cells))) fail_msg("chi-square %g over %d cells", chi, cells);
}

static void sampling_law(void **state)
{
    (void)state;
    Model *m = small("qwen2", 0.15);
    SampleOptions opt = {.temperature = 1, .top_p = 1, .max_new = 1, .batch = 512};
    Tally t;
    double p[VOCAB];
    law(m, 1, p);
    first_tokens(m, &opt, &t);
    check_law(&t, p);

    opt.temperature = 0.5f;
    law(m, 0.5f, p);
    first_tokens(m, &opt, &t);
    check_law(&t, p);

    int banned[2] = {0, 0}; /* the two most probable ids */
    for (int i = 0; i < VOCAB; i++)
        if (p[i] > p[banned[0]]) banned[0] = i;
    banned[1] = !banned[0];
    for (int i = 0; i < VOCAB; i++)
        if (i != banned[0] && p[i] > p[banned[1]]) banned[1] = i;
    opt.banned = banned;
    opt.n_banned = 2;
    double left = 1 - p[banned[0]] - p[banned[1]];
    p[banned[0]] = p[banned[1]] = 0;
    for (int i = 0; i < VOCAB; i++) p[i] /= left;
    first_tokens(m, &opt, &t);
    check_law(&t, p);

    opt.n_banned = 0;
    opt.temperature = 1;
    opt.top_p = 0.6f;
    law(m, 1, p);
    double q[VOCAB] = {0}, mass = 0;
    while (mass < 0.6) {
        int best = -1;
        for (int i = 0; i < VOCAB; i++)
            if (q[i] == 0 && (best < 0 || p[i] > p[best])) best = i;
        mass += q[best] = p[best];
    }
    for (int i = 0; i < VOCAB; i++) q[i] /= mass;
    first_tokens(m, &opt, &t);
    check_law(&t, q);
    model_free(m);
}

/* q becomes the distribution over the k most probable ids of p. */
static void likeliest(const double *p, int k, double *q)
{
    double mass = 0;
    memset(q, 0, VOCAB * sizeof *q);
    for (int i = 0; i < k; i++) {
        int best = -1;
        for (int j = 0; j < VOCAB; j++)
            if (q[j] == 0 && (best < 0 || p[j] > p[best])) best = j;
        mass += q[best] = p[best];
    }
    for (int i = 0; i < VOCAB; i++) q[i] /= mass;
}

/* top_k, min_p, and all three: top_p applies to what top_k leaves, min_p to what both leave. */
static void cut_laws(void **state)
{
    (void)state;
    Model *m = small("qwen2", 0.15);
    SampleOptions opt = {.temperature = 1, .top_p = 1, .max_new = 1, .batch = 512, .top_k = 9};
    Tally t;
    double p[VOCAB], q[VOCAB];
    law(m, 1, p);
    likeliest(p, 9, q);
    first_tokens(m, &opt, &t);
    check_law(&t, q);

    opt.top_k = 0;
    opt.min_p = 0.2f;
    double top = 0;
    int n = 0;
    for (int i = 0; i < VOCAB; i++) top = p[i] > top ? p[i] : top;
    for (int i = 0; i < VOCAB; i++) n += p[i] >= 0.2 * top;
    assert_in_range(n, 4, VOCAB - 1);
    likeliest(p, n, q);
    first_tokens(m, &opt, &t);
    check_law(&t, q);

    opt.top_k = 12;
    opt.top_p = 0.7f;
    opt.min_p = 0.01f;
    double mass = 0, last = 1;
    likeliest(p, 12, q);
    for (n = 0; mass < 0.7; n++) {
        double best = 0;
        for (int i = 0; i < VOCAB; i++)
            if (q[i] > best && q[i] < last) best = q[i];
        mass += last = best;
    }
    assert_in_range(n, 4, 11);
    likeliest(p, n, q);
    first_tokens(m, &opt, &t);
    check_law(&t, q);

    opt.top_k = 1;
    opt.top_p = 1;
    opt.min_p = 0;
    first_tokens(m, &opt, &t);
    for (int i = 0; i < VOCAB; i++)
        assert_true(!t.count[i] || (t.count[i] == DRAWS && p[i] == top));
    model_free(m);
}

/* A sample ends with its first stop sequence, and is otherwise unchanged. */
static void stop_sequences(void **state)
{
    (void)state;
    Model *m = small("llama", 0.15);
    Ask a;
    Result whole, cut;
    make_ask(&a, prompt_len);
    sample(m, &a, &plain, &whole);
    const Kept *k = &whole.sample[1][2];
    assert_true(k->n > 20);
    int32_t long_one[3] = {k->ids[10], k->ids[11], k->ids[12]}, short_one[1] = {k->ids[17]};
    StopSequence stops[2] = {{short_one, 1}, {long_one, 3}};
    SampleOptions opt = plain;
    opt.stops = stops;
    opt.n_stops = 2;
    sample(m, &a, &opt, &cut);
    int ended = 0;
    for (int i = 0; i < PROMPTS; i++)
        for (int c = 0; c < COPIES; c++) {
            const Kept *x = &whole.sample[i][c], *y = &cut.sample[i][c];
            int n = 0, here = 0;
            while (n < x->n && !here) {
                n++;
                here = x->ids[n - 1] == short_one[0] ||
                       (n >= 3 && !memcmp(x->ids + n - 3, long_one, sizeof long_one));
            }
            assert_int_equal(y->n, n);
            assert_int_equal(y->stopped, here || x->stopped);
            assert_memory_equal(x->ids, y->ids, (size_t)n * sizeof *x->ids);
            assert_memory_equal(x->logp, y->logp, (size_t)n * sizeof *x->logp);
            ended += here;
        }
    assert_true(ended > 1);
    model_free(m);
}

/* Decoding with an adapter against the full pass with it. */
static void adapters(void **state)
{
    (void)state;
    Model *m = small("qwen2", 0.15);
    Ask a;
    Result plain_result, r;
    Error err;
    Random random;
    make_ask(&a, prompt_len);
    sample(m, &a, &plain, &plain_result);
    LoraOptions o = {.rank = 3, .alpha = 5, .targets = LORA_ALL & ~LORA_K, .seed = 4};
    if (model_add_lora(m, &o, &err)) fail_msg("%s", err.text);
    random_init(&random, 3, 0);
    for (size_t i = 0; i < m->lora.size; i++)
        ((float *)m->lora.data)[i] = (float)(0.2 * random_normal(&random));
    sample(m, &a, &plain, &r);
    double worst = 0;
    for (int i = 0; i < PROMPTS; i++)
        for (int c = 0; c < COPIES; c++) {
            double off[NEW];
            differences(m, &a.req[i], &r.sample[i][c], off);
            for (int t = 0; t < r.sample[i][c].n; t++) worst = fmax(worst, off[t]);
        }
    if (!(worst < 2e-4)) fail_msg("worst |dlogp| %g", worst);
    assert_true(memcmp(&plain_result, &r, sizeof r) != 0);
    model_free(m);
}

static void greedy(void **state)
{
    (void)state;
    Model *m = small("llama", 0.15);
    Ask a;
    Result r;
    make_ask(&a, prompt_len);
    SampleOptions opt = plain;
    opt.temperature = 0;
    sample(m, &a, &opt, &r);
    for (int i = 0; i < PROMPTS; i++)
        for (int c = 1; c < COPIES; c++)
            assert_memory_equal(&r.sample[i][0], &r.sample[i][c], sizeof(Kept));
    const Kept *k = &r.sample[1][0];
    int32_t all[40];
    float logp[40], *row = logp;
    memcpy(all, a.prompt[1], (size_t)a.req[1].prompt_len * sizeof *all);
    for (int i = 0; i < VOCAB; i++) {
        Error err;
        all[a.req[1].prompt_len] = i;
        Sequence s = {all, a.req[1].prompt_len + 1};
        assert_int_equal(model_logprobs(m, &s, 1, &row, &err), 0);
        assert_true(logp[s.len - 1] <= k->logp[0] + 1e-5f);
    }
    model_free(m);
}

/* u at both ends, one remaining id, and a row whose mass is in one id. */
static void draw_edges(void **state)
{
    (void)state;
    float z[VOCAB], probs[VOCAB], logp;
    DrawCandidate order[VOCAB];
    int banned[VOCAB];
    for (int i = 0; i < VOCAB; i++) z[i] = i == 42 ? 200.0f : -200.0f;
    DrawLaw one = {1, 1, VOCAB, banned, 0};
    const double almost = 1 - 0x1p-53;
    assert_int_equal(draw_token(&one, z, 0, probs, order, &logp), 42);
    assert_int_equal(draw_token(&one, z, almost, probs, order, &logp), 42);
    assert_true(logp == 0);
    one.top_p = 0.01f;
    assert_int_equal(draw_token(&one, z, almost, probs, order, &logp), 42);
    for (int i = 0; i < VOCAB; i++) z[i] = 0;
    for (int i = 0; i < VOCAB - 1; i++) banned[i] = i < 7 ? i : i + 1;
    DrawLaw left = {1, 1, VOCAB, banned, VOCAB - 1};
    assert_int_equal(draw_token(&left, z, 0, probs, order, &logp), 7);
    assert_int_equal(draw_token(&left, z, almost, probs, order, &logp), 7);
    assert_true(fabs((double)logp + log(VOCAB)) < 1e-5); /* of the full softmax */
    DrawLaw all = {1, 1, VOCAB, NULL, 0};
    assert_int_equal(draw_token(&all, z, 0, probs, order, &logp), 0);
    assert_int_equal(draw_token(&all, z, almost, probs, order, &logp), VOCAB - 1);
}

/* A banned id so far above the others that their weights are 0 at this temperature. */
static void far_above(void **state)
{
    (void)state;
    const float temperature[] = {0, 0.01f, 0.025f};
    float z[VOCAB], probs[VOCAB], logp;
    DrawCandidate order[VOCAB];
    int banned[] = {0, VOCAB - 1};
    for (int i = 0; i < VOCAB; i++) z[i] = i ? -3 : 100;
    z[5] = z[9] = -1;
    for (int k = 0; k < 3; k++)
        for (int top_k = 0; top_k < 4; top_k += 3) {
            DrawLaw law = {temperature[k], 1, VOCAB, banned, 2, top_k, 0};
            assert_int_equal(draw_token(&law, z, 0.25, probs, order, &logp), 5);
            assert_true(fabs((double)logp + 101 / (k ? (double)temperature[k] : 1)) < 1e-2);
            assert_int_equal(draw_token(&law, z, 0.75, probs, order, &logp), k ? 9 : 5);
        }
}

static void refused(Model *m, const SampleRequest *req, const SampleOptions *opt, const char *word)
{
    Error err = {0};
    Tally t = {0};
    assert_int_equal(model_sample(m, req, 1, opt, tally, &t, &err), -1);
    if (!strstr(err.text, word)) fail_msg("\"%s\" does not say %s", err.text, word);
}

static void bad_requests(void **state)
{
    (void)state;
    Model *m = small("qwen2", 0.1);
    int32_t prompt[2] = {1, 2}, outside[1] = {VOCAB};
    uint64_t seed = 1;
    int every[VOCAB];
    for (int i = 0; i < VOCAB; i++) every[i] = i;
    SampleRequest ok = {prompt, 2, 1, &seed}, bad = {outside, 1, 1, &seed},
                  none = {prompt, 0, 1, &seed};
    SampleOptions opt = plain, hot = plain, wide = plain, no = plain, far = plain;
    hot.temperature = -1;
    wide.top_p = 1.5f;
    no.banned = every;
    no.n_banned = VOCAB;
    far.max_new = 255;
    SampleOptions few = plain, likely = plain, empty = plain;
    StopSequence nothing = {prompt, 0};
    few.top_k = -1;
    likely.min_p = 1;
    empty.stops = &nothing;
    empty.n_stops = 1;
    refused(m, &bad, &opt, "request 0");
    refused(m, &none, &opt, "request 0");
    refused(m, &ok, &hot, "temperature");
    refused(m, &ok, &wide, "top_p");
    refused(m, &ok, &few, "top_k");
    refused(m, &ok, &likely, "min_p");
    refused(m, &ok, &empty, "stop sequence");
    refused(m, &ok, &no, "banned");
    refused(m, &ok, &far, "256 positions");
    model_free(m);
}

/* A weight that is not a number is an error: there is no distribution to draw from. */
static void not_finite(void **state)
{
    (void)state;
    Model *m = small("qwen2", 0.1);
    int32_t prompt[2] = {1, 2};
    uint64_t seed = 1;
    SampleRequest ok = {prompt, 2, 1, &seed};
    SampleOptions likeliest = plain;
    likeliest.temperature = 0;
    ((float *)weight_at(m, m->layer[0].down.weight))[7] = NAN;
    refused(m, &ok, &plain, "request 0, copy 0: the model's logits for token 0 are not finite");
    refused(m, &ok, &likeliest, "not finite");
    model_free(m);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(decoding_equals_forward),
                                       cmocka_unit_test(only_prompt_and_seed),
                                       cmocka_unit_test(sampling_law),
                                       cmocka_unit_test(greedy),
                                       cmocka_unit_test(cut_laws),
                                       cmocka_unit_test(stop_sequences),
                                       cmocka_unit_test(adapters),
                                       cmocka_unit_test(draw_edges),
                                       cmocka_unit_test(far_above),
                                       cmocka_unit_test(bad_requests),
                                       cmocka_unit_test(not_finite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
