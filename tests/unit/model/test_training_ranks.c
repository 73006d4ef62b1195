/* Training by several ranks on the CPU: the losses and weights of one process to the rounding of sums in another order, with
 * a slice of the optimiser in each; what two ranks saved, two continue bit for bit, one and three to that rounding. In fp32, and
 * in bf16 with masters. Every run is a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <sys/wait.h>

#include "base/buffer.h"
#include "base/log.h"
#include "model/ranks.h"
#include "tests/unit/model/half_table.h"
#include "tests/unit/model/model_support.h"

enum { STEPS = 6, BEFORE = 3 };

typedef struct {
    double loss[STEPS], norm[STEPS], slice;
    float weights[8];
} Result;

typedef struct {
    int ranks, lora, half, resumed; /* resumed: from `dir`, at step BEFORE */
    Recompute recompute;
    const char *base, *dir;
} Run;

static void must(int rc, const Error *err)
{
    if (rc) log_die(4, err);
}

/* In every rank. */
static void train(const Run *r, Result *out)
{
    static const AdamW optimiser = {.lr = 3e-3, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.01, .clip = 1};
    Texts x;
    Error err;
    Model *m;
    Trainer *t;
    make_texts(&x);
    must(ranks_start(r->ranks, &err), &err);
    const Ops *ops = r->half ? half_table() : ops_cpu();
    must(ranks_join(ops, &err), &err);
    must(model_load(r->resumed ? r->dir : r->base, ops, &m, &err), &err);
    const LoraOptions lora = {.rank = 3, .alpha = 5, .targets = LORA_ALL, .seed = 4};
    if (r->lora && !r->resumed) must(model_add_lora(m, &lora, &err), &err);
    const TrainerOptions o = {.max_tokens = 20, .recompute = r->recompute};
    must(trainer_create(m, &o, &t, &err), &err);
    char *opt = memory_printf("%s/optimizer.safetensors", r->dir);
    if (r->resumed) must(trainer_load(t, opt, &err), &err);
    out->slice = (double)t->each / (double)t->set->size;
    for (int i = r->resumed ? BEFORE : 0; i < STEPS; i++) {
        must(trainer_accumulate(t, x.seqs, TEXTS, given_weights, &x, &out->loss[i], &err), &err);
        must(trainer_step(t, &optimiser, &out->norm[i], &err), &err);
        if (i + 1 != BEFORE || r->ranks != 2) continue;
        if (!ranks_rank()) must(model_save(m, r->dir, &err), &err);
        must(trainer_save(t, opt, &err), &err);
    }
    for (int i = 0; i < 8; i++) ops->store(&out->weights[i], num_at(ops, t->set->data, t->set->tensor[t->set->n * i / 8].at + 2), 1);
    free(opt);
    trainer_free(t);
    model_free(m);
    must(ranks_finish(&err), &err);
}

static Result result_of(const Run *r)
{
    int fds[2], status = 0;
    Result out = {0};
    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        log_open("test");
        train(r, &out); /* the other ranks end inside */
        _exit(write(fds[1], &out, sizeof out) != sizeof out);
    }
    close(fds[1]);
    ssize_t got = read(fds[0], &out, sizeof out);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(got, sizeof out);
    return out;
}

static void compare(const Result *a, const Result *b, int first, int half)
{
    double limit = half ? 1e-2 : 1e-4; /* a sum's rounding may turn that of a bf16 weight */
    for (int i = first; i < STEPS; i++) {
        assert_true(a->norm[i] > 0 && fabs(a->norm[i] / b->norm[i] - 1) < limit);
        assert_true(a->loss[i] != 0 && fabs(a->loss[i] - b->loss[i]) < limit);
    }
    for (int i = 0; i < 8; i++) assert_true(fabs((double)a->weights[i] - (double)b->weights[i]) < limit);
}

static void check(int lora, int half, Recompute recompute)
{
    Error err;
    char *base = temp_dir(), *dir = temp_dir(), *other = temp_dir();
    Model *m = tiny_on("qwen3", ops_cpu(), 5);
    if (model_save(m, base, &err)) fail_msg("%s", err.text);
    model_free(m);
    const Run run = {.ranks = 1, .lora = lora, .half = half, .recompute = recompute, .base = base, .dir = other};
    Run two = run, again = run;
    two.ranks = 2;
    two.dir = again.dir = dir;
    again.resumed = 1;
    Result alone = result_of(&run), pair = result_of(&two), twin = result_of(&two);
    compare(&alone, &pair, 0, half);
    assert_memory_equal(&pair, &twin, sizeof pair); /* a second run: the same bits */
    assert_true(alone.slice == 1 && pair.slice == 0.5);
    for (again.ranks = 1; again.ranks <= 3; again.ranks++) {
        Result continued = result_of(&again);
        compare(&pair, &continued, BEFORE, half);
        if (again.ranks != 2) continue;
        assert_memory_equal(continued.loss + BEFORE, pair.loss + BEFORE, (STEPS - BEFORE) * sizeof *pair.loss);
        assert_memory_equal(continued.norm + BEFORE, pair.norm + BEFORE, (STEPS - BEFORE) * sizeof *pair.norm);
        assert_memory_equal(continued.weights, pair.weights, sizeof pair.weights);
    }
    drop_dir(base);
    drop_dir(dir);
    drop_dir(other);
}

static void all_weights(void **state)
{
    (void)state;
    check(0, 0, RECOMPUTE_NO);
}

static void adapters(void **state)
{
    (void)state;
    check(1, 0, RECOMPUTE_YES);
}

static void masters(void **state)
{
    (void)state;
    check(0, 1, RECOMPUTE_NO);
    check(1, 1, RECOMPUTE_NO);
}

int main(void)
{
    setenv("QUERN_THREADS", "1", 0); /* for each of the ranks */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_weights), cmocka_unit_test(adapters), cmocka_unit_test(masters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
