/* Adapters: against merged weights, whose gradients test_gradients checks; PEFT files; exact
 * resume. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/json.h"
#include "model/core/lora.h"
#include "model/cpu/ops_cpu.h"
#include "model/files/model_files.h"
#include "model/files/safetensors.h"
#include "model/trainer_state.h"
#include "tests/unit/model/model_support.h"

static const Tensor *find(const ParamSet *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->tensor[i].name, name)) return &p->tensor[i];
    return NULL;
}

/* Find the base's matrix of the adapter's tensor i, an A, and its B. */
static int matrix_of(const Model *m, int i, const Tensor **w, const Tensor **b)
{
    char name[160];
    const char *a = m->lora.tensor[i].name, *end = strstr(a, ".lora_A.weight");
    if (!end) return 0;
    snprintf(name, sizeof name, "%.*s.weight", (int)(end - a - 17),
             a + 17); /* "base_model.model." */
    *w = find(&m->base, name);
    snprintf(name, sizeof name, "%.*s.lora_B.weight", (int)(end - a), a);
    *b = find(&m->lora, name);
    assert_true(*w && *b);
    return 1;
}

/* A second model with W + scale B A. */
static Model *merged(const Model *m, const char *type)
{
    Model *to = tiny_on(type, ops_cpu(), 5);
    assert_int_equal(to->base.size, m->base.size);
    int matrices = 0;
    for (int i = 0; i < m->lora.n; i++) {
        const Tensor *w, *b, *a = &m->lora.tensor[i];
        if (!matrix_of(m, i, &w, &b)) continue;
        size_t rank = (size_t)a->shape[0], in = (size_t)a->shape[1], out = (size_t)b->shape[0];
        const float *pa = numbers(&m->lora) + a->at, *pb = numbers(&m->lora) + b->at;
        matrices++;
        for (size_t o = 0; o < out; o++)
            for (size_t k = 0; k < in; k++)
                for (size_t r = 0; r < rank; r++)
                    numbers(&to->base)[w->at + o * in + k] +=
                        m->lora_scale * pb[o * rank + r] * pa[r * in + k];
    }
    assert_int_equal(2 * matrices, m->lora.n);
    return to;
}

static void compare(const char *name, const float *got, const double *want, size_t n)
{
    double dot = 0, a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        dot += (double)got[i] * want[i];
        a += (double)got[i] * (double)got[i];
        b += want[i] * want[i];
    }
    assert_true(b > 0);
    if (!(dot / sqrt(a * b) > 0.99999) || !(fabs(sqrt(a / b) - 1) < 1e-3))
        fail_msg("%s: cosine %.7f, norm ratio %.6f (expected over 0.99999 and 1 within 0.001)",
                 name, dot / sqrt(a * b), sqrt(a / b));
}

/* With G = dL/d(W + scale B A): dB = scale G A^T, dA = scale B^T G. */
static void check_gradients(const Model *m, const float *grad, const float *full)
{
    for (int i = 0; i < m->lora.n; i++) {
        const Tensor *w, *b, *a = &m->lora.tensor[i];
        if (!matrix_of(m, i, &w, &b)) continue;
        size_t rank = (size_t)a->shape[0], in = (size_t)a->shape[1], out = (size_t)b->shape[0];
        const float *pa = numbers(&m->lora) + a->at, *pb = numbers(&m->lora) + b->at,
                    *g = full + w->at;
        double *da = memory_array(rank * in, sizeof *da),
               *db = memory_array(out * rank, sizeof *db), s = (double)m->lora_scale;
        for (size_t o = 0; o < out; o++)
            for (size_t k = 0; k < in; k++)
                for (size_t r = 0; r < rank; r++) {
                    da[r * in + k] += s * (double)pb[o * rank + r] * (double)g[o * in + k];
                    db[o * rank + r] += s * (double)pa[r * in + k] * (double)g[o * in + k];
                }
        compare(a->name, grad + a->at, da, rank * in);
        compare(b->name, grad + b->at, db, out * rank);
        free(da);
        free(db);
    }
}

static void check_family(const char *type, unsigned targets, int rslora, Recompute recompute)
{
    Texts x;
    Error err;
    make_texts(&x);
    Model *m = tiny_on(type, ops_cpu(), 5);
    adapt(m, targets, rslora);
    Model *one = merged(m, type);
    float *before = memory_array(m->base.size, sizeof *before), lp[2][TEXT_LEN],
          *rows[2] = {lp[0], lp[1]};
    memcpy(before, m->base.data, m->base.size * sizeof *before);
    assert_true(fabs((double)m->lora_scale - (rslora ? 5 / sqrt(3) : 5 / 3.0)) < 1e-6);
    assert_int_equal(model_logprobs(m, x.seqs, 1, &rows[0], &err), 0);
    assert_int_equal(model_logprobs(one, x.seqs, 1, &rows[1], &err), 0);
    for (int t = 1; t < TEXT_LEN; t++) assert_true(fabsf(lp[0][t] - lp[1][t]) < 2e-5f);

    Trainer *t = trainer_of(m, (TrainerOptions){.max_tokens = 20, .recompute = recompute});
    Trainer *full = trainer_of(one, (TrainerOptions){.max_tokens = 20});
    assert_true(fabs(accumulate(t, &x) - accumulate(full, &x)) < 1e-4);
    check_gradients(m, t->grad, full->grad);
    double norm;
    one_step(t, &x, &norm);
    assert_memory_equal(before, m->base.data, m->base.size * sizeof *before); /* frozen */
    trainer_free(t);
    trainer_free(full);
    free(before);
    model_free(one);
    model_free(m);
}

static void against_merged(void **state)
{
    (void)state;
    check_family("qwen2", LORA_ALL, 0, RECOMPUTE_NO);
    check_family("qwen3", LORA_ALL, 1, RECOMPUTE_NO);
    check_family("llama", LORA_ALL, 0, RECOMPUTE_YES);
    check_family("qwen2", LORA_Q | LORA_V, 0, RECOMPUTE_NO);
    check_family("qwen3", LORA_K | LORA_UP | LORA_DOWN, 1, RECOMPUTE_YES);
    check_family("llama", LORA_O | LORA_GATE, 0, RECOMPUTE_NO);
}

static void starts_as_the_base(void **state)
{
    (void)state;
    Texts x;
    Error err;
    make_texts(&x);
    Model *m = tiny_on("qwen2", ops_cpu(), 5);
    float lp[2][TEXT_LEN], *rows[2] = {lp[0], lp[1]};
    assert_int_equal(model_logprobs(m, x.seqs, 1, &rows[0], &err), 0);
    LoraOptions o = {.rank = 4, .alpha = 8, .targets = LORA_ALL, .seed = 1};
    assert_null(model_lora(m));
    assert_int_equal(model_add_lora(m, &o, &err), 0);
    assert_int_equal(model_lora(m)->rank, 4);
    assert_int_equal(model_logprobs(m, x.seqs, 1, &rows[1], &err), 0);
    assert_memory_equal(lp[0] + 1, lp[1] + 1, (TEXT_LEN - 1) * sizeof(float)); /* B is 0 */
    double square = 0;
    size_t n = 0;
    for (int i = 0; i < m->lora.n; i++) {
        const Tensor *t = &m->lora.tensor[i];
        for (size_t k = t->at; k < t->at + t->count; k++) {
            double scaled = (double)numbers(&m->lora)[k] * sqrt((double)t->shape[1]);
            if (strstr(t->name, "lora_B"))
                assert_true(scaled == 0);
            else
                assert_true(fabs(scaled) <= 1.000001), square += scaled * scaled, n++;
        }
    }
    assert_true(fabs(square / (double)n - 1.0 / 3) < 0.03); /* of a uniform distribution */
    assert_int_equal(model_add_lora(m, &o, &err), -1);
    assert_non_null(strstr(err.text, "already"));
    model_free(m);
}

static void exact_resume(void **state)
{
    (void)state;
    enum { BEFORE = 3, AFTER = 3 };
    Texts x;
    Error err;
    make_texts(&x);
    char *base = temp_dir(), *dir = temp_dir(),
         *opt = memory_printf("%s/optimizer.safetensors", dir);
    Model *m = tiny_on("qwen3", ops_cpu(), 2), *again;
    if (model_save(m, base, &err)) fail_msg("%s", err.text);
    model_free(m);
    if (model_load(base, ops_cpu(), &m, &err)) fail_msg("%s", err.text);
    adapt(m, LORA_ALL, 1);
    Trainer *t = trainer_of(m, (TrainerOptions){.max_tokens = 20}), *u;
    double norm, losses[AFTER], norms[AFTER];
    for (int i = 0; i < BEFORE; i++) one_step(t, &x, &norm);
    if (model_save(m, dir, &err) || trainer_save(t, opt, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < AFTER; i++) losses[i] = one_step(t, &x, &norms[i]);

    if (model_load(dir, ops_cpu(), &again, &err)) fail_msg("%s", err.text);
    assert_int_equal(again->lora_options.rslora, 1);
    assert_true(again->lora_scale == m->lora_scale);
    u = trainer_of(again, (TrainerOptions){.max_tokens = 20, .recompute = RECOMPUTE_YES});
    for (int round = 0; round < 2; round++) { /* and again, restored in place */
        if (round && model_restore(again, dir, &err)) fail_msg("%s", err.text);
        if (trainer_load(u, opt, &err)) fail_msg("%s", err.text);
        for (int i = 0; i < AFTER; i++) {
            double loss = one_step(u, &x, &norm);
            assert_memory_equal(&loss, &losses[i], sizeof loss);
            assert_memory_equal(&norm, &norms[i], sizeof norm);
        }
        assert_memory_equal(again->lora.data, m->lora.data, m->lora.size * sizeof(float));
    }
    assert_int_equal(trainer_load(u, "/nonexistent", &err), -1);
    trainer_free(u);
    trainer_free(t);
    model_free(again);
    model_free(m);
    free(opt);
    drop_dir(base);
    drop_dir(dir);
}

static void rewrite(const char *dir, const char *field, json_t *value)
{
    Error err;
    char *path = memory_printf("%s/adapter_config.json", dir);
    json_t *o = json_read_file(path, 1 << 20, &err);
    assert_non_null(o);
    if (value)
        json_object_set_new(o, field, value);
    else
        json_object_del(o, field);
    char *text = json_dumps(o, 0);
    assert_int_equal(file_write_atomic(path, text, strlen(text), &err), 0);
    free(text);
    free(path);
    json_decref(o);
}

/* Check that the field with this value is refused by its name, then set it back. */
static void refuse(const char *dir, const char *field, json_t *value, json_t *good)
{
    Error err;
    Model *m;
    rewrite(dir, field, value);
    assert_int_equal(model_load(dir, ops_cpu(), &m, &err), -1);
    if (!strstr(err.text, field)) fail_msg("\"%s\" does not name %s", err.text, field);
    rewrite(dir, field, good);
}

static void files(void **state)
{
    (void)state;
    Error err;
    char *base = temp_dir(), *dir = temp_dir(),
         *path = memory_printf("%s/adapter_model.safetensors", dir);
    Model *m = tiny_on("llama", ops_cpu(), 2), *again;
    adapt(m, LORA_Q | LORA_DOWN, 0);
    /* the base has no directory that could be named */
    assert_int_equal(model_save(m, dir, &err), -1);
    model_free(m);
    m = tiny_on("llama", ops_cpu(), 2);
    assert_int_equal(model_save(m, base, &err), 0);
    model_free(m);
    assert_int_equal(model_load(base, ops_cpu(), &m, &err), 0);
    adapt(m, LORA_Q | LORA_DOWN, 0);
    if (model_save(m, dir, &err)) fail_msg("%s", err.text);

    Safetensors *st;
    assert_int_equal(safetensors_open(path, &st, &err), 0);
    assert_int_equal(safetensors_count(st), 3 * 2 * 2);
    const int64_t a[2] = {3, 17}, b[2] = {12, 3};
    assert_non_null(safetensors_need(
        st, "base_model.model.model.layers.2.mlp.down_proj.lora_A.weight", 2, a, &err));
    assert_non_null(safetensors_need(
        st, "base_model.model.model.layers.2.mlp.down_proj.lora_B.weight", 2, b, &err));
    assert_non_null(
        safetensors_find(st, "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"));
    assert_int_equal(safetensors_at(st, 0)->dtype, DTYPE_F32);
    safetensors_close(st);
    if (model_load(dir, ops_cpu(), &again, &err)) fail_msg("%s", err.text);
    assert_memory_equal(again->lora.data, m->lora.data, m->lora.size * sizeof(float));
    model_free(again);

    const char *slash = strrchr(base, '/');
    char *relative = memory_printf("..%s", slash);
    rewrite(dir, "base_model_name_or_path", json_string(relative));
    assert_int_equal(model_load(dir, ops_cpu(), &again, &err), 0);
    model_free(again);
    free(relative);
    json_t *two = json_pack("[ss]", "q_proj", "down_proj");
    refuse(dir, "use_dora", json_true(), json_false());
    refuse(dir, "bias", json_string("all"), json_string("none"));
    refuse(dir, "modules_to_save", json_pack("[s]", "lm_head"), json_null());
    refuse(dir, "rank_pattern", json_pack("{si}", "q_proj", 4), json_object());
    refuse(dir, "alpha_pattern", json_pack("{si}", "q_proj", 4), json_object());
    refuse(dir, "init_lora_weights", json_string("pissa"), json_true());
    refuse(dir, "peft_type", json_string("LOHA"), json_string("LORA"));
    refuse(dir, "target_modules", json_pack("[ss]", "q_proj", "lm_head"), json_incref(two));
    refuse(dir, "target_modules", json_string("all-linear"), json_incref(two));
    refuse(dir, "base_model_name_or_path", json_string("Qwen/Qwen2.5-0.5B"), json_string(base));
    refuse(dir, "r", NULL, json_integer(3));
    rewrite(dir, "target_modules", json_pack("[sss]", "q_proj", "k_proj", "down_proj"));
    assert_int_equal(model_load(dir, ops_cpu(), &again, &err), -1);
    assert_non_null(strstr(err.text, "k_proj"));
    rewrite(dir, "target_modules", json_pack("[s]", "q_proj"));
    assert_int_equal(model_load(dir, ops_cpu(), &again, &err), -1);
    assert_non_null(strstr(err.text, "down_proj"));
    rewrite(dir, "target_modules", two);
    assert_int_equal(model_load(dir, ops_cpu(), &again, &err), 0);
    model_free(again);
    model_free(m);
    free(path);
    drop_dir(base);
    drop_dir(dir);
}

int main(void)
{
    setenv("QUERN_CPU", "threads=1",
           0); /* small products: threads would only wait for each other */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_merged),
                                       cmocka_unit_test(starts_as_the_base),
                                       cmocka_unit_test(exact_resume), cmocka_unit_test(files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
