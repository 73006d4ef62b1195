/* Training by several ranks on the CPU. Losses and weights equal those of one process up to the
 * order of sums, with a slice of the optimizer's state per rank. A run saved by two ranks continues
 * bit-identically with two, and up to the order of sums with one and three. In fp32, and in bf16
 * with masters. Sums in pieces during the backward pass, each once and after its last write, give
 * the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/core/lora.h"
#include "model/cpu/ops_cpu.h"
#include "model/files/model_files.h"
#include "model/memory_plan.h"
#include "tests/unit/model/ranks_support.h"

static Texts texts;

static char *saved_base(const char *type)
{
    Error err;
    char *dir = temp_dir();
    Model *m = tiny_on(type, ops_cpu(), 5);
    if (model_save(m, dir, &err)) fail_msg("%s", err.text);
    model_free(m);
    return dir;
}

static Run run_of(const char *base, const char *device, int lora)
{
    make_texts(&texts);
    return (Run){.device = device,
                 .lora = lora,
                 .lr = 3e-3,
                 .clip = 1,
                 .seqs = texts.seqs,
                 .n = TEXTS,
                 .max_tokens = 20,
                 .give = given_weights,
                 .ctx = &texts,
                 .base = base};
}

static void check(int lora, const char *device, Recompute recompute, int slice)
{
    char *base = saved_base("qwen3");
    Run run = run_of(base, device, lora);
    run.recompute = recompute;
    run.slice = slice;
    check_ranks(&run, strcmp(device, "cpu") ? 1e-2 : 1e-4, 3);
    drop_dir(base);
}

static void all_weights(void **state)
{
    (void)state;
    check(0, "cpu", RECOMPUTE_NO, 0);
}

static void adapters(void **state)
{
    (void)state;
    check(3, "cpu", RECOMPUTE_YES, 0);
}

static void masters(void **state)
{
    (void)state;
    check(0, "half", RECOMPUTE_NO, 0);
    check(3, "half", RECOMPUTE_NO, 0);
}

static void in_pieces(void **state)
{
    (void)state;
    check(0, "cpu", RECOMPUTE_YES, 3);
    check(3, "half", RECOMPUTE_NO, 1);
}

/* Nothing is clipped, so that no bit depends on the order of the norm's sum. With one sequence most
 * ranks have none. */
static void same_bits(void **state)
{
    (void)state;
    static const char *const types[] = {"llama", "qwen2", "qwen3"};
    for (int i = 0; i < 6; i++) {
        char *base = saved_base(types[i % 3]), *dir = temp_dir();
        Run run = run_of(base, i % 2 ? "half" : "cpu", i < 3 ? 0 : 2);
        run.clip = 0;
        run.dir = dir;
        run.ranks = 2 + i % 2;
        if (i % 3 == 1) run.n = 1;
        Result whole = result_of(&run);
        for (run.slice = 1; run.slice <= 4; run.slice += 3) {
            Result pieces = result_of(&run);
            assert_true(pieces.all == whole.all && whole.all);
            assert_memory_equal(pieces.loss, whole.loss, sizeof whole.loss);
        }
        drop_dir(base);
        drop_dir(dir);
    }
}

/* The sequences of a step in two calls are summed twice, and none is lost or counted twice. */
static void two_calls(void **state)
{
    (void)state;
    char *base = saved_base("llama"), *dir = temp_dir();
    Run run = run_of(base, "cpu", 0), twice;
    run.dir = dir;
    run.ranks = 1;
    twice = run;
    twice.parts = twice.ranks = 2;
    Result alone = result_of(&run);
    for (; twice.slice <= 4; twice.slice += 4) {
        Result pair = result_of(&twice);
        compare_runs(&alone, &pair, 0, 1e-4);
    }
    drop_dir(base);
    drop_dir(dir);
}

/* ---- the reports of the backward pass ---- */

typedef struct {
    const ParamSet *set;
    const float *grad;
    float *seen; /* the gradients when they were reported complete */
    size_t from;
    int layer;
} Seen;

static size_t first_of_layer(const ParamSet *p, int layer)
{
    char part[40];
    size_t at = p->size;
    snprintf(part, sizeof part, "layers.%d.", layer);
    for (int i = 0; i < p->n; i++)
        if (strstr(p->tensor[i].name, part) && p->tensor[i].at < at) at = p->tensor[i].at;
    return at;
}

static void see(void *ctx, size_t from)
{
    Seen *s = ctx;
    assert_true(from == (s->layer < 0 ? 0 : first_of_layer(s->set, s->layer)));
    assert_true(from <= s->from);
    memcpy(s->seen + from, s->grad + from, (s->from - from) * sizeof *s->grad);
    s->from = from;
    s->layer--;
}

static void done_of(const char *type, unsigned targets, KeepActs keep)
{
    Texts x;
    TokenBatch b = {0};
    Acts a = {0};
    Grads g = {0};
    float weight[TEXTS * TEXT_LEN];
    make_texts(&x);
    for (int i = 0; i < TEXTS * TEXT_LEN; i++) weight[i] = 0.01f * (float)(i % 7 + 1);
    Model *m = tiny_on(type, ops_cpu(), 5);
    if (targets) adapt(m, targets, 0);
    const ParamSet *set = targets ? &m->lora : &m->base;
    float *grad = memory_array(set->size, sizeof *grad),
          *seen = memory_array(set->size, sizeof *seen);
    model_reserve_positions(m, TEXT_LEN);
    batch_pack(&b, ops_cpu(), x.seqs, TEXTS);
    acts_reserve(&a, m, b.rows, keep);
    head_reserve(&a, m, b.rows);
    grads_reserve(&g, m, b.rows);
    forward_hidden(m, &a, &b, NULL, NULL);
    head_logp(m, &a, &b);
    BackwardPass pass = {m, &a, &g, &b, grad};
    head_backward(&pass, weight, 0);
    Seen s = {set, grad, seen, set->size, m->c.layers - 1};
    backward(&pass, see, &s);
    assert_true(s.from == 0 && s.layer == -2);
    assert_memory_equal(seen, grad, set->size * sizeof *grad);
    /* every tensor has a gradient, so that an early report would be detected */
    for (int i = 0; i < set->n; i++) {
        double sum = 0;
        for (size_t k = 0; k < set->tensor[i].count; k++)
            sum += fabs((double)grad[set->tensor[i].at + k]);
        if (!(sum > 0)) fail_msg("%s has no gradient", set->tensor[i].name);
    }
    free(grad), free(seen);
    acts_release(&a, m);
    grads_release(&g, m);
    batch_release(&b, ops_cpu());
    model_free(m);
}

static void done_once(void **state)
{
    (void)state;
    static const char *const types[] = {"llama", "qwen2", "qwen3"};
    static const unsigned targets[] = {0,         LORA_ALL, LORA_V | LORA_DOWN, LORA_O | LORA_UP,
                                       LORA_GATE, LORA_DOWN};
    for (int i = 0; i < 3; i++)
        for (size_t k = 0; k < sizeof targets / sizeof *targets; k++)
            done_of(types[i], targets[k], k % 2 ? KEEP_INPUTS : KEEP_ALL);
}

int main(void)
{
    setenv("QUERN_CPU", "threads=1", 0); /* for each of the ranks */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_weights), cmocka_unit_test(adapters),
                                       cmocka_unit_test(masters),     cmocka_unit_test(in_pieces),
                                       cmocka_unit_test(same_bits),   cmocka_unit_test(two_calls),
                                       cmocka_unit_test(done_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
