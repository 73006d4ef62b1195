/* Training by several GPUs over NCCL: the losses and norms of one GPU up to bf16 rounding, and the
 * same bits in a second run and after a resume. Sums in pieces during the backward pass, without a
 * clip, have the bits of one sum after it (of two numbers, which have no order). Skipped with fewer
 * than two GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu/gpus.h"
#include "model/cpu/ops_cpu.h"
#include "model/files/model_files.h"
#include "model/files/safetensors.h"
#include "tests/unit/model/ranks_support.h"

/* Some milliseconds per layer, so that a sum that starts too early would miss gradients. */
enum { VOCAB = 8192, MANY = 24, LONG = 512, SLICE = 2048 };
static const double limit = 1e-2;

static int gpus;
static Sequence seqs[MANY];
static int32_t ids[MANY][LONG];

/* A separate process asks the driver, which does not survive fork. */
static int count_gpus(void)
{
    int status = 0;
    pid_t pid = fork();
    if (!pid) {
        Gpu found[4];
        int n = gpus_list(found, 4, NULL);
        _exit(n < 0 ? 0 : n);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

static char *saved_base(const char *type)
{
    const ModelConfig c = {.vocab = VOCAB,
                           .hidden = 512,
                           .ff = 1408,
                           .layers = 6,
                           .heads = 8,
                           .kv_heads = 2,
                           .head_dim = 64,
                           .max_position = LONG,
                           .rope_theta = 10000,
                           .norm_eps = 1e-6f,
                           .pad = -1,
                           .dtype = DTYPE_BF16};
    Error err;
    char *dir = temp_dir();
    Model *m = random_model(&c, type, ops_cpu(), 5, 99, 0.02);
    if (model_save(m, dir, &err)) fail_msg("%s", err.text);
    model_free(m);
    return dir;
}

/* The mean over all tokens. */
static void mean_weights(void *ctx, int sequence, const float *logp, float *weight)
{
    (void)ctx, (void)logp;
    for (int t = 1; t < seqs[sequence].len; t++) weight[t] = -1.0f / (MANY * LONG);
}

static Run run_of(const char *base, int lora)
{
    Random r;
    random_init(&r, 9, 0);
    for (int i = 0; i < MANY; i++) {
        seqs[i] = (Sequence){ids[i], LONG - 7 * i};
        for (int t = 0; t < LONG; t++) ids[i][t] = (int32_t)random_below(&r, VOCAB);
    }
    return (Run){.device = "cuda:0",
                 .lora = lora,
                 .lr = 1e-4,
                 .clip = 1,
                 .seqs = seqs,
                 .n = MANY,
                 .max_tokens = 4096,
                 .give = mean_weights,
                 .slice = SLICE,
                 .base = base};
}

static void check(const char *type, int lora)
{
    char *base = saved_base(type);
    Run run = run_of(base, lora);
    check_ranks(&run, limit, gpus >= 4 ? 4 : 2);
    drop_dir(base);
}

static void all_weights(void **state)
{
    (void)state;
    check("qwen2", 0);
}

static void adapters(void **state)
{
    (void)state;
    check("qwen3", 16);
}

static void same_bits(void **state)
{
    (void)state;
    char *base = saved_base("llama"), *dir = temp_dir();
    Run run = run_of(base, 0);
    run.clip = 0;
    run.dir = dir;
    run.ranks = 2;
    Result pieces = result_of(&run);
    run.slice = 0;
    Result whole = result_of(&run);
    assert_memory_equal(pieces.loss, whole.loss, sizeof whole.loss);
    assert_true(pieces.all == whole.all && whole.all);
    drop_dir(base);
    drop_dir(dir);
}

int main(void)
{
    gpus = count_gpus();
    if (gpus < 2) {
        printf("1..0 # SKIP fewer than two GPUs\n");
        return 0;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_weights), cmocka_unit_test(adapters),
                                       cmocka_unit_test(same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
