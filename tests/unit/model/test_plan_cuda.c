/* On a GPU: the memory of a decoder by model/core/decoder.h against the driver's free memory, with
 * much memory and with so little that it decides. The driver allocates blocks of 2 MiB, which the
 * plan does not include. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/decoder.h"
#include "model/core/lora.h"
#include "model/cpu/ops_cpu.h"
#include "model/decoder_create.h"
#include "model/model_device.h"

enum { SLACK = 16 << 20 };

static const Ops *gpu;

static size_t available(void)
{
    size_t free_bytes, total;
    Error err;
    if (gpu->status(&err) || gpu->memory(&free_bytes, &total, &err)) fail_msg("%s", err.text);
    return free_bytes;
}

static void near(const char *what, size_t got, size_t want)
{
    printf("# %s: %.1f MiB, planned %.1f\n", what, (double)got / 1048576, (double)want / 1048576);
    if (got > want + SLACK || want > got + SLACK)
        fail_msg("%s: %zu bytes, planned %zu", what, got, want);
}

static void one_decoder(Model *m, const DecoderPlan *plan, int all_fit)
{
    DecoderMemory memory;
    Decoder *d;
    Error err;
    size_t before = available();
    decoder_memory(m, plan, before, &memory);
    if (decoder_create(m, plan, &d, &err)) fail_msg("%s", err.text);
    near("a decoder", before - available(), memory.own + memory.held);
    assert_int_equal(memory.all_fit, all_fit);
    decoder_free(d);
}

/* leave: free bytes when the decoder is created, or 0 for all. First with pages for few tokens,
 * which shows the rest; then with all pages that fit. */
static void taken_as_planned(int rows, int prompt, int max_new, int rank, size_t leave)
{
    ModelConfig c = {.model_type = "qwen2",
                     .vocab = 32000,
                     .hidden = 512,
                     .ff = 1536,
                     .layers = 4,
                     .heads = 8,
                     .kv_heads = 2,
                     .head_dim = 64,
                     .max_position = 8192,
                     .rope_theta = 10000,
                     .norm_eps = 1e-6f,
                     .tied = 1,
                     .pad = -1,
                     .qkv_bias = 1};
    DecoderPlan plan = {.rows = rows,
                        .prompt = prompt,
                        .max_new = max_new,
                        .cache_tokens = prompt + max_new,
                        .law = {.vocab = c.vocab, .temperature = 1, .top_p = 1}};
    LoraOptions lora = {.rank = rank, .alpha = 16, .targets = LORA_ALL, .seed = 1};
    Model *m;
    Error err;
    if (model_create(&c, gpu, 1, &m, &err) || (rank && model_add_lora(m, &lora, &err)))
        fail_msg("%s", err.text);
    void *rest = leave ? gpu->alloc(available() - leave) : NULL;
    printf("# %d rows, prompts of %d, rank %d, %.1f MiB free\n", rows, prompt, rank,
           (double)available() / 1048576);
    one_decoder(m, &plan, 0);
    plan.cache_tokens = 0;
    one_decoder(m, &plan, leave == 0); /* memory decides if little is left */
    gpu->release(rest);
    model_free(m);
}

static void plan_with_much_memory(void **state)
{
    (void)state;
    taken_as_planned(512, 512, 512, 0, 0);
    taken_as_planned(5, 2000, 100, 16, 0);
}

static void plan_with_little_memory(void **state)
{
    (void)state;
    taken_as_planned(1000, 2000, 2000, 0, (size_t)3 << 30);
    taken_as_planned(300, 4000, 4000, 16, (size_t)2 << 30);
}

int main(void)
{
    Error err;
    const char *device = getenv("QUERN_TEST_DEVICE");
    if (model_device(device && *device ? device : "auto", &gpu, &err)) {
        printf("1..1\nnot ok 1 - the GPU cannot be used: %s\n", err.text);
        return 1;
    }
    if (gpu == ops_cpu()) {
        printf("1..0 # SKIP no GPU\n");
        return 0;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(plan_with_much_memory),
                                       cmocka_unit_test(plan_with_little_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
