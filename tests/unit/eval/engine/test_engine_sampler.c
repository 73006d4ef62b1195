/* The whole GPU decoder on the simulator: prompts, pages, graphs, drawing and adapters, through
 * model_sample. engine_table.h computes the matrix products of the full pass on the host;
 * everything else is the engine's code. */
#include "tests/unit/eval/engine/engine_table.h"

#include <math.h>

#include "base/random.h"
#include "model/core/decoder.h"
#include "model/core/lora.h"
#include "model/core/transformer.h"
#include "model/decoder_create.h"
#include "model/memory_plan.h"
#include "model/sampler.h"

#ifdef __SANITIZE_ADDRESS__ /* a simulated decoder then takes half a minute: one of each kind */
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* ---- models and requests ---- */

enum { VOCAB = 70, NEW = 21, PROMPTS = 3, COPIES = 2, PROMPT_MAX = 64, END = 5 };
#include "tests/unit/model/model_support.h"
#include "tests/unit/model/sampler_support.h"

static void spread(const ParamSet *s, double by, uint64_t seed)
{
    Random r;
    random_init(&r, seed, 1);
    for (int i = 0; i < s->n; i++) {
        float *v = floats_at(num_at(&table, s->data, s->tensor[i].at), s->tensor[i].count);
        for (size_t j = 0; j < s->tensor[i].count; j++) v[j] += (float)(by * random_normal(&r));
        cuda_load(num_at(&table, s->data, s->tensor[i].at), v, s->tensor[i].count);
        free(v);
    }
}

static ModelConfig shape(const char *type)
{
    ModelConfig c = {.vocab = VOCAB,
                     .hidden = 64,
                     .ff = 72,
                     .layers = 2,
                     .heads = 6,
                     .kv_heads = 2,
                     .head_dim = 16,
                     .max_position = 256,
                     .rope_theta = 10000,
                     .norm_eps = 1e-6f,
                     .eos = {END},
                     .n_eos = 1,
                     .pad = -1};
    set_family(&c, type);
    return c;
}

static Model *small(const char *type)
{
    ModelConfig c = shape(type);
    Error err;
    Model *m;
    if (model_create(&c, &table, 11, &m, &err)) fail_msg("%s", err.text);
    spread(&m->base, 0.1, 11);
    return m;
}

static const int prompt_len[PROMPTS] = {3, 32, 45}; /* less than a page, a page, more than a page */

/* Compare the recorded log-probabilities with a full pass over the same ids. Both have the same
 * sums in the same order, except the last one, over the vocabulary. A different rounding would give
 * differences of 0.001, a wrong kernel 0.1 and more. */
static void against_forward(Model *m, const Ask *a, const Result *r, double mean)
{
    Distance d = forward_distance(m, a, r);
    for (int i = 0; i < PROMPTS; i++)
        for (int c = 0; c < COPIES; c++) {
            const Kept *k = &r->sample[i][c];
            assert_int_equal(k->stopped, k->ids[k->n - 1] == END);
        }
    printf("# %s%s: mean |dlogp| %.2g, worst %.2g, over %d tokens\n", m->c.model_type,
           m->lora.size ? " with an adapter" : "", d.mean, d.worst, d.tokens);
    assert_true(d.tokens > 60);
    if (!(d.mean < mean && d.worst < 10 * mean))
        fail_msg("%s: mean |dlogp| %g, worst %g over %d tokens", m->c.model_type, d.mean, d.worst,
                 d.tokens);
}

static int setup(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    fake.memory = (size_t)1 << 30;
    engine_start("sm_90");
    engine.state.cu = &driver;
    return 0;
}

static void decoding_equals_forward(void **state)
{
    (void)state;
    static const char *const types[] = {"qwen2", "qwen3", "llama"};
    for (int f = 0; f < (SANITIZED ? 1 : 3); f++) {
        Model *m = small(types[f]);
        Ask a;
        Result r;
        make_ask(&a, prompt_len);
        sample_all(m, &a, 9, 0, &r);
        against_forward(m, &a, &r, 1e-6);
        model_free(m);
    }
}

/* Adapters on all projections, and on some parts of one. */
static void adapted(void **state)
{
    (void)state;
    static const unsigned targets[] = {LORA_ALL, LORA_ALL & ~LORA_K};
    Result plain;
    for (int i = SANITIZED; i < 2; i++) {
        Model *m = small("qwen2"); /* the same base each time */
        Ask a;
        Result r;
        Error err;
        make_ask(&a, prompt_len);
        if (i == SANITIZED) sample_all(m, &a, 9, 0, &plain);
        LoraOptions o = {.rank = 3, .alpha = 5, .targets = targets[i], .seed = 4};
        if (model_add_lora(m, &o, &err)) fail_msg("%s", err.text);
        spread(&m->lora, 0.1, 3);
        sample_all(m, &a, 9, 0, &r);
        against_forward(m, &a, &r, 1e-6);
        assert_true(memcmp(&plain, &r, sizeof r) != 0);
        model_free(m);
    }
}

/* The bits of a sample depend neither on the other rows, nor on the number of refills, nor on a
 * lack of pages that makes rows wait. It is an error if one row does not fit. */
static void only_prompt_and_seed(void **state)
{
    (void)state;
    Model *m = small("llama");
    Ask a;
    Result one, other;
    make_ask(&a, prompt_len);
    int before = fake.launches;
    sample_all(m, &a, 9, 0, &one);
    int launches = fake.launches - before;
    static const int batches[] = {1, 4, 12};
    for (int i = 0; i < (SANITIZED ? 1 : 3); i++) {
        fake.graphs = 0;
        sample_all(m, &a, batches[i], 0, &other);
        assert_memory_equal(&one, &other, sizeof one);
        assert_in_range(fake.graphs, 1, 4); /* one graph per bucket, not per step */
    }
    before = fake.launches;
    sample_all(m, &a, 9, 6 * 32, &other);
    assert_memory_equal(&one, &other, sizeof one);
    assert_true(fake.launches - before > launches); /* some rows waited */
    SampleOptions opt = {
        .temperature = 1, .top_p = 1, .max_new = NEW, .batch = 9, .cache_tokens = 2 * 32};
    Error err;
    memset(&other, 0, sizeof other);
    assert_int_equal(model_sample(m, a.req, PROMPTS, &opt, keep, &other, &err), -1);
    if (!strstr(err.text, "45 tokens")) fail_msg("%s", err.text);
    assert_true(other.done > 0 &&
                other.done < PROMPTS * COPIES); /* the samples that fit were delivered */
    model_free(m);
}

/* Returns how many rows fit at the same time, each with its own prompt of the plan's length. */
static int rows_together(Decoder *d, const DecoderPlan *plan)
{
    int32_t *ids = memory_array((size_t)plan->prompt, sizeof *ids);
    int rows = 0, rc = 1;
    Error err;
    while (rows < plan->rows && rc == 1) {
        rc = decoder_prefill(d, ids, plan->prompt, 1, &err);
        if (rc == 1) rc = decoder_attach(d, rows, &err);
        rows += rc == 1;
    }
    free(ids);
    return rows;
}

/* The plan of `quern-sample --plan` equals the memory of the decoder, byte for byte: what it takes,
 * what it leaves, and the longest prompt with which all rows fit. */
static void taken_as_planned(void **state)
{
    enum { ROWS = 3, PAGES = 6 };
    static const LoraOptions adapter = {
        .rank = 3, .alpha = 5, .targets = LORA_ALL & ~LORA_K, .seed = 4};
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *type = i ? "qwen3" : "qwen2";
        const LoraOptions *lora = i ? &adapter : NULL;
        ModelConfig c = shape(type);
        SamplingPlan p;
        Error err;
        if (plan_sampling(&(PlannedModel){&c, &table, lora}, ROWS, NEW, &p, &err))
            fail_msg("%s", err.text);
        assert_true(p.fits && p.prompt == c.max_position - NEW); /* with much memory */
        fake.memory = p.weights + 200000 + 2 * PAGES * 32 * p.token;
        if (plan_sampling(&(PlannedModel){&c, &table, lora}, ROWS, NEW, &p, &err))
            fail_msg("%s", err.text);
        assert_true(p.fits && p.prompt < c.max_position - NEW && p.prompt > 1);
        for (int longer = 0; longer < 2; longer++) {
            DecoderPlan plan = {.rows = ROWS,
                                .prompt = p.prompt + longer,
                                .max_new = NEW,
                                .law = {.vocab = VOCAB, .temperature = 1, .top_p = 1}};
            DecoderMemory memory;
            Decoder *d;
            Model *m = small(type);
            if (lora && model_add_lora(m, lora, &err)) fail_msg("%s", err.text);
            assert_int_equal(taken(), p.weights);
            decoder_memory(m, &plan, fake.memory - taken(), &memory);
            if (decoder_create(m, &plan, &d, &err)) fail_msg("%s", err.text);
            printf("# %s%s: prompts of %d, %zu bytes, and %zu of %zu for %lld tokens\n", type,
                   lora ? " with an adapter" : "", plan.prompt, memory.own, memory.held,
                   memory.room, (long long)memory.tokens);
            assert_int_equal(taken(), p.weights + memory.own + memory.held);
            assert_int_equal(memory.all_fit, !longer);
            assert_int_equal(rows_together(d, &plan) == ROWS, !longer);
            if (!longer)
                assert_true(memory.own == p.decoder && memory.spare == p.spare &&
                            memory.held == p.held);
            decoder_free(d);
            model_free(m);
            assert_int_equal(taken(), 0);
        }
        fake.memory = (size_t)1 << 30;
    }
}

/* A shape that the decoder refuses has no plan either. */
static void not_planned(void **state)
{
    (void)state;
    SamplingPlan p;
    Error err;
    Model *m = small("qwen2");
    ModelConfig c = m->c;
    model_free(m);
    c.ff += 4;
    assert_int_equal(plan_sampling(&(PlannedModel){&c, &table, NULL}, 2, 4, &p, &err), -1);
    assert_non_null(strstr(err.text, "multiples of 8"));
    assert_int_equal(taken(), 0);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(decoding_equals_forward, setup, engine_teardown),
        cmocka_unit_test_setup_teardown(adapted, setup, engine_teardown),
        cmocka_unit_test_setup_teardown(only_prompt_and_seed, setup, engine_teardown),
        cmocka_unit_test_setup_teardown(taken_as_planned, setup, engine_teardown),
        cmocka_unit_test_setup_teardown(not_planned, setup, engine_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
