/* The plan of a run against the memory that it allocates, the choices made by memory, and that they
 * do not change a gradient. The device is the CPU's table with a counter, and with as much memory
 * as a test sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "model/core/lora.h"
#include "model/cpu/ops_cpu.h"
#include "model/memory_plan.h"
#include "model/trainer_state.h"
#include "tests/unit/model/model_support.h"

static size_t allocated, device_bytes;
static Ops counting_table;

static void *count_alloc(size_t bytes)
{
    allocated += bytes;
    return ops_cpu()->alloc(bytes);
}

static int say_memory(size_t *free_bytes, size_t *total, Error *err)
{
    (void)err;
    *free_bytes = *total = device_bytes;
    return 0;
}

static const Ops *device(size_t memory)
{
    counting_table = *ops_cpu();
    counting_table.is_cpu = 0; /* planned as a device whose memory is limited */
    counting_table.alloc = count_alloc;
    counting_table.memory = say_memory;
    device_bytes = memory;
    allocated = 0;
    return &counting_table;
}

/* One text that fills the micro-batch, so that everything is allocated for it. */
static void accounts(int lora, Recompute recompute)
{
    Texts x;
    Error err;
    double loss;
    make_texts(&x);
    Model *m = tiny_on("qwen3", device((size_t)1 << 32), 5);
    if (lora) adapt(m, LORA_ALL, 0);
    Trainer *t = trainer_of(m, (TrainerOptions){.max_tokens = TEXT_LEN, .recompute = recompute});
    assert_int_equal(trainer_accumulate(t, x.seqs, 1, given_weights, &x, &loss, &err), 0);
    const MemoryPlan *p = trainer_plan(t);
    assert_int_equal(p->recompute, recompute == RECOMPUTE_YES);
    assert_int_equal(allocated, p->total - p->bytes[PLAN_WORKSPACE]);
    MemoryPlan before;
    const LoraOptions *l = model_lora(m);
    assert_int_equal(
        plan_training(&(PlannedModel){&m->c, &counting_table, l}, &t->o, &before, &err), 0);
    assert_memory_equal(before.bytes, p->bytes, sizeof before.bytes);
    trainer_free(t);
    model_free(m);
}

static void plan_is_what_is_asked(void **state)
{
    (void)state;
    accounts(0, RECOMPUTE_NO);
    accounts(0, RECOMPUTE_YES);
    accounts(1, RECOMPUTE_NO);
    accounts(1, RECOMPUTE_YES);
}

static void chosen_by_memory(void **state)
{
    (void)state;
    Error err;
    MemoryPlan p, q;
    Model *m = tiny_on("qwen2", device((size_t)1 << 40), 5);
    TrainerOptions o = {.max_tokens = 8192};
    assert_int_equal(plan_trainer(m, &o, (size_t)1 << 40, &p, &err), 0);
    assert_true(p.fits && !p.recompute);
    size_t whole = p.total - p.bytes[PLAN_WEIGHTS]; /* the weights are allocated */
    assert_int_equal(plan_trainer(m, &o, whole, &p, &err), 0);
    assert_true(p.fits && !p.recompute);
    assert_int_equal(plan_trainer(m, &o, whole - 1, &p, &err), 0);
    assert_true(p.fits && p.recompute);
    size_t less = p.total - p.bytes[PLAN_WEIGHTS];
    assert_true(less < whole);
    assert_int_equal(plan_trainer(m, &o, less - 1, &p, &err), 0);
    assert_false(p.fits);
    assert_int_equal(plan_refuse(&p, &err), -1);
    assert_true(strstr(err.text, "--max-tokens") && strstr(err.text, "--lora") &&
                strstr(err.text, "GiB"));
    o.recompute = RECOMPUTE_NO;
    assert_int_equal(plan_trainer(m, &o, whole - 1, &p, &err), 0);
    plan_refuse(&p, &err);
    assert_true(!p.fits && strstr(err.text, "--max-tokens") && strstr(err.text, "--recompute"));

    o = (TrainerOptions){0}; /* tokens by memory as well */
    assert_int_equal(plan_trainer(m, &o, (size_t)1 << 40, &p, &err), 0);
    assert_true(p.fits && p.max_tokens == 16384 && !p.recompute);
    assert_int_equal(plan_trainer(m, &o, whole, &p, &err), 0);
    assert_true(p.fits && p.max_tokens == 8192 && !p.recompute);
    assert_int_equal(plan_trainer(m, &o, (size_t)300 << 20, &q, &err), 0);
    assert_true(q.fits && q.max_tokens <= 16384);
    device_bytes = less - 1;
    Trainer *t;
    o = (TrainerOptions){.max_tokens = 8192};
    size_t was = allocated;
    assert_int_equal(trainer_create(m, &o, &t, &err), -1);
    assert_int_equal(allocated, was); /* before anything is allocated */
    model_free(m);
}

/* Micro-batches chosen by memory: a run that continues with less or more free memory keeps its own,
 * as long as they fit. */
static void memory_of_a_continued_run(void **state)
{
    (void)state;
    const size_t much = (size_t)1 << 40, less = (size_t)290 << 20, little = (size_t)260 << 20;
    Error err;
    char *dir = temp_dir(), *path = memory_printf("%s/optimizer.safetensors", dir);
    Model *m = tiny_on("qwen2", device(less), 5);
    Trainer *t = trainer_of(m, (TrainerOptions){0});
    int tokens = t->o.max_tokens;
    assert_true(tokens < 16384);
    assert_int_equal(trainer_save(t, path, &err), 0);
    trainer_free(t);
    const size_t now[] = {much, less, little};
    for (int k = 0; k < 3; k++) {
        device_bytes = now[k];
        t = trainer_of(m, (TrainerOptions){0});
        int own = t->o.max_tokens;
        assert_true(k == 0 ? own > tokens : k == 1 ? own == tokens : own < tokens);
        assert_int_equal(trainer_load(t, path, &err), 0);
        assert_int_equal(t->o.max_tokens, k < 2 ? tokens : own);
        assert_int_equal(trainer_plan(t)->max_tokens, t->o.max_tokens);
        trainer_free(t);
    }
    t = trainer_of(m, (TrainerOptions){.max_tokens = 100});
    assert_int_equal(trainer_load(t, path, &err), 0);
    assert_int_equal(t->o.max_tokens, 100); /* as requested */
    trainer_free(t);
    model_free(m);
    free(path);
    drop_dir(dir);
}

static void table(void **state)
{
    (void)state;
    MemoryPlan p = {.bytes = {[PLAN_WEIGHTS] = (size_t)3 << 30, [PLAN_LOGITS] = (size_t)1 << 29},
                    .total = (size_t)7 << 29,
                    .available = (size_t)4 << 30,
                    .fits = 1,
                    .max_tokens = 4096,
                    .logit_rows = 1024};
    Buffer b;
    buffer_init(&b, 4096);
    plan_print(&p, &b);
    assert_true(strstr(b.data, "weights") && strstr(b.data, "3.000 GiB") &&
                strstr(b.data, "3.500 GiB of 4.000"));
    assert_true(strstr(b.data, "fits") && strstr(b.data, "4096 tokens") &&
                !strstr(b.data, "adapter"));
    buffer_release(&b);
}

static SamplingPlan sampling(const ModelConfig *c, const Ops *ops, size_t memory, int rows,
                             const char *want)
{
    SamplingPlan p;
    Error err;
    Buffer b;
    device_bytes = memory;
    if (plan_sampling(&(PlannedModel){c, ops, NULL}, rows, 10, &p, &err)) fail_msg("%s", err.text);
    buffer_init(&b, 4096);
    plan_print_sampling(&p, c->max_position, &b);
    if (!strstr(b.data, want)) fail_msg("expected '%s' in: %s", want, b.data);
    assert_int_equal(!!strstr(b.data, "workspaces"), ops != ops_cpu());
    buffer_release(&b);
    return p;
}

/* test_engine_sampler compares the plan with a decoder; this tests how it is used. The CPU has keys
 * and values only. */
static void sampled(void **state)
{
    (void)state;
    Model *m = tiny_on("qwen2", ops_cpu(), 1);
    ModelConfig longer = m->c;
    const ModelConfig *c = &longer;
    const Ops *gpu = device((size_t)1 << 40);
    char want[80];
    longer.max_position = 4096;
    longer.hidden = longer.ff = 16, longer.head_dim = 8; /* a shape that a GPU's decoder supports */
    snprintf(want, sizeof want, "5 rows at once: %d tokens each, of which 10 are new: fits",
             c->max_position);
    SamplingPlan p = sampling(c, gpu, (size_t)1 << 40, 5, want), q;
    assert_true(p.prompt == c->max_position - 10 && p.fits && p.held < p.room);
    assert_int_equal(p.weights + p.decoder + p.spare + p.room, (size_t)1 << 40);
    size_t half = p.weights + p.decoder + p.held; /* half of the rest is left to the workspaces */
    p = sampling(c, gpu, half, 5, ": fits");
    assert_true(p.fits && p.prompt < c->max_position - 10);
    q = sampling(c, gpu, half, 6, ": fits");
    assert_true(q.fits && q.prompt < p.prompt && q.decoder < p.decoder);
    p = sampling(c, gpu, half, 4096, "rows wait for others to end");
    assert_true(!p.fits && p.prompt == 1);
    p = sampling(c, gpu, p.weights - 1, 1, "the weights do not fit");
    assert_true(!p.fits && !p.held && !p.spare);

    p = sampling(c, ops_cpu(), 0, 2, " GiB free, ");
    assert_true(p.fits && !p.decoder && !p.spare && p.held == p.room);
    assert_int_equal(p.token, 2 * c->layers * c->kv_heads * c->head_dim * 4);
    model_free(m);
}

static void refused(void **state)
{
    (void)state;
    Error err;
    Trainer *t;
    Model *m = tiny_on("qwen2", ops_cpu(), 1);
    TrainerOptions lean = {.max_tokens = 10, .lean = 1}, many = {.max_tokens = -1};
    assert_int_equal(trainer_create(m, &lean, &t, &err), -1);
    assert_non_null(strstr(err.text, "CPU"));
    assert_int_equal(trainer_create(m, &many, &t, &err), -1);
    assert_non_null(strstr(err.text, "max_tokens"));
    model_free(m);
}

/* Recomputed activations have the same bits, and so have the gradients. */
static void recomputed(void **state)
{
    (void)state;
    static const char *const families[] = {"qwen2", "qwen3", "llama"};
    Texts x;
    make_texts(&x);
    for (int f = 0; f < 6; f++) {
        Model *m = tiny_on(families[f % 3], ops_cpu(), 5);
        if (f > 2) adapt(m, LORA_ALL, 0);
        Trainer *all = trainer_of(m, (TrainerOptions){.max_tokens = 20, .recompute = RECOMPUTE_NO});
        Trainer *again =
            trainer_of(m, (TrainerOptions){.max_tokens = 20, .recompute = RECOMPUTE_YES});
        Trainer *fixed = trainer_of(m, (TrainerOptions){.max_tokens = 20, .fixed_weights = 1});
        double loss[3] = {accumulate(all, &x), accumulate(again, &x), accumulate(fixed, &x)},
               sum = 0;
        assert_memory_equal(&loss[0], &loss[1], sizeof *loss);
        assert_memory_equal(&loss[0], &loss[2], sizeof *loss);
        assert_memory_equal(all->grad, again->grad, all->set->size * sizeof(float));
        assert_memory_equal(all->grad, fixed->grad, all->set->size * sizeof(float));
        for (size_t i = 0; i < all->set->size; i++) sum += fabs((double)all->grad[i]);
        assert_true(sum > 0);
        assert_true(again->acts.keep == KEEP_INPUTS && all->acts.keep == KEEP_ALL);
        trainer_free(all);
        trainer_free(again);
        trainer_free(fixed);
        model_free(m);
    }
}

int main(void)
{
    setenv("QUERN_CPU", "threads=1",
           0); /* small products: threads would only wait for each other */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(plan_is_what_is_asked),
                                       cmocka_unit_test(chosen_by_memory),
                                       cmocka_unit_test(table),
                                       cmocka_unit_test(sampled),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(recomputed),
                                       cmocka_unit_test(memory_of_a_continued_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
