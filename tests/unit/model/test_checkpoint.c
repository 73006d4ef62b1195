/* Models on disk: several files, 16-bit numbers, ignored and refused tensors, and exact resume from
 * rounded files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/buffer.h"
#include "base/json.h"
#include "model/core/halves.h"
#include "model/cpu/ops_cpu.h"
#include "model/files/model_files.h"
#include "model/files/tensor_file.h"
#include "model/trainer_state.h"
#include "tests/unit/model/model_support.h"

static int count_files(const char *dir, const char *pattern)
{
    char *command = memory_printf("ls %s | grep -c -- '%s'", dir, pattern), text[32] = "";
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    pclose(f);
    free(command);
    return atoi(text);
}

/* Write the weights of m in files of at most `bytes`. */
static void write_in_files(const Model *m, const char *dir, Dtype stored, size_t bytes)
{
    Error err;
    SafetensorsOut *out = set_out(&m->base, m->ops);
    if (safetensors_write_model(dir, out, (size_t)m->base.n, stored, bytes, &err))
        fail_msg("%s", err.text);
    free(out);
}

static void in_several_files(void **state)
{
    (void)state;
    Error err;
    char *dir = temp_dir(), *index = memory_printf("%s/model.safetensors.index.json", dir);
    Model *m = tiny_on("llama", ops_cpu(), 5), *again;
    if (model_save(m, dir, &err)) fail_msg("%s", err.text);
    assert_int_equal(count_files(dir, "^model.safetensors$"), 1);
    write_in_files(m, dir, DTYPE_F32, 4000);
    int files = count_files(dir, "^model-0000.-of-0000.\\.safetensors$");
    assert_true(files > 2 && files < 10);
    assert_int_equal(count_files(dir, "^model.safetensors$"), 0); /* the single file is removed */
    json_t *doc = json_read_file(index, 1 << 20, &err);
    assert_non_null(doc);
    assert_int_equal(json_object_size(json_object_get(doc, "weight_map")), m->base.n);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(doc, "metadata"), "total_size")),
        4 * m->base.count);
    json_decref(doc);
    if (model_load(dir, ops_cpu(), &again, &err)) fail_msg("%s", err.text);
    assert_memory_equal(again->base.data, m->base.data, m->base.size * sizeof(float));
    model_free(again);
    write_in_files(m, dir, DTYPE_F32, 8000); /* fewer files: the old ones are removed */
    int fewer = count_files(dir, "^model-0000.-of-0000.\\.safetensors$");
    assert_true(fewer > 1 && fewer < files);
    if (model_load(dir, ops_cpu(), &again, &err)) fail_msg("%s", err.text);
    assert_memory_equal(again->base.data, m->base.data, m->base.size * sizeof(float));
    assert_int_equal(model_save(again, dir, &err), 0);
    assert_false(file_exists(index));
    assert_int_equal(count_files(dir, "safetensors"), 1);
    assert_int_equal(model_restore(m, dir, &err), 0);
    model_free(again);
    model_free(m);
    free(index);
    drop_dir(dir);
}

/* Set one field in the text of the configuration, as in a checkpoint of another type. */
static void set_dtype(const char *dir, const char *dtype)
{
    Error err;
    char *path = memory_printf("%s/config.json", dir);
    json_t *o = json_read_file(path, 1 << 20, &err);
    assert_non_null(o);
    json_object_set_new(o, "torch_dtype", json_string(dtype));
    char *text = json_dumps(o, 0);
    assert_int_equal(file_write_atomic(path, text, strlen(text), &err), 0);
    free(text);
    free(path);
    json_decref(o);
}

static void kept_dtype(Dtype stored, const char *name)
{
    Texts x;
    Error err;
    make_texts(&x);
    char *dir = temp_dir(), *file = memory_printf("%s/model.safetensors", dir);
    char *opt = memory_printf("%s/optimizer.safetensors", dir);
    Model *m = tiny_on("qwen2", ops_cpu(), 5), *again, *third;
    if (model_save(m, dir, &err)) fail_msg("%s", err.text);
    write_in_files(m, dir, stored, 1 << 30);
    set_dtype(dir, name);
    if (model_load(dir, ops_cpu(), &again, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < m->base.n; i++) { /* rounded once */
        const Tensor *t = &m->base.tensor[i];
        for (size_t j = t->at; j < t->at + t->count; j++) {
            float w = numbers(&m->base)[j];
            float once = stored == DTYPE_BF16 ? bf16_to_float(float_to_bf16(w))
                                              : f16_to_float(float_to_f16(w));
            assert_true(numbers(&again->base)[j] == once);
        }
    }
    double norm, losses[3];
    Trainer *t = trainer_of(again, (TrainerOptions){.max_tokens = 20}), *u;
    one_step(t, &x, &norm);
    if (model_save(again, dir, &err) || trainer_save(t, opt, &err)) fail_msg("%s", err.text);
    Safetensors *st;
    assert_int_equal(safetensors_open(file, &st, &err), 0);
    assert_int_equal(safetensors_at(st, 0)->dtype, stored); /* as it was */
    safetensors_close(st);
    for (int i = 0; i < 3; i++) losses[i] = one_step(t, &x, &norm);
    if (model_load(dir, ops_cpu(), &third, &err)) fail_msg("%s", err.text);
    u = trainer_of(third, (TrainerOptions){.max_tokens = 20});
    if (trainer_load(u, opt, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < 3;
         /* The weights as they were, not as the model's file rounds them. */
         i++) {
        double loss = one_step(u, &x, &norm);
        assert_memory_equal(&loss, &losses[i], sizeof loss);
    }
    assert_memory_equal(third->base.data, again->base.data, again->base.size * sizeof(float));
    trainer_free(t);
    trainer_free(u);
    model_free(third);
    model_free(again);
    model_free(m);
    free(file);
    free(opt);
    drop_dir(dir);
}

static void sixteen_bits(void **state)
{
    (void)state;
    kept_dtype(DTYPE_BF16, "bfloat16");
    kept_dtype(DTYPE_F16, "float16");
}

static void halves(void **state)
{
    (void)state;
    /* all numbers, and the midpoints where the rounding changes */
    for (unsigned h = 0; h < 65536; h++) {
        float f = f16_to_float((uint16_t)h), next = f16_to_float((uint16_t)(h + 1));
        if (isnan(f)) {
            assert_true(isnan(f16_to_float(float_to_f16(f))));
            continue;
        }
        assert_int_equal(float_to_f16(f), h);
        if ((h & 0x7FFF) >= 0x7BFF) continue; /* the next one is not a number */
        float middle = (f + next) / 2;        /* exact in fp32 */
        assert_int_equal(float_to_f16(middle), h & 1 ? h + 1 : h);
        assert_int_equal(float_to_f16(nextafterf(middle, f)), h);
        assert_int_equal(float_to_f16(nextafterf(middle, next)), h + 1);
    }
    assert_int_equal(float_to_f16(65519.996f), 0x7BFF);
    assert_int_equal(float_to_f16(65520.0f), 0x7C00);
    assert_int_equal(float_to_f16(-1e10f), 0xFC00);
}

/* Load a model with one additional tensor, whose name decides the result. */
static int load_with(const char *name, int like_embedding, Error *err)
{
    static const float zeros[WORDS * 12];
    char *dir = temp_dir();
    Model *m = tiny_on("qwen2", ops_cpu(), 5), *again = NULL;
    SafetensorsOut *out = memory_array((size_t)m->base.n + 1, sizeof *out);
    if (model_save(m, dir, err)) fail_msg("%s", err->text);
    for (int i = 0; i < m->base.n; i++) {
        const Tensor *t = &m->base.tensor[i];
        out[i] = (SafetensorsOut){.name = t->name,
                                  .rank = t->rank,
                                  .shape = {t->shape[0], t->shape[1]},
                                  .data = numbers(&m->base) + t->at};
    }
    out[m->base.n] = (SafetensorsOut){.name = name,
                                      .rank = 2,
                                      .shape = {WORDS, 12},
                                      .data = like_embedding ? numbers(&m->base) : zeros};
    if (safetensors_write_model(dir, out, (size_t)m->base.n + 1, DTYPE_F32, 1 << 30, err))
        fail_msg("%s", err->text);
    int rc = model_load(dir, ops_cpu(), &again, err);
    assert_int_equal(model_check(dir, ops_cpu(), err), rc);
    if (!rc && !again->c.tied) { /* the head follows the other tensors */
        const float *head = numbers(&again->base) + again->base.tensor[again->base.n - 1].at;
        for (int i = 0; i < WORDS * 12; i++) assert_true(head[i] == 0);
        rc = 1;
    }
    if (!rc) assert_memory_equal(again->base.data, m->base.data, m->base.size * sizeof(float));
    model_free(again);
    model_free(m);
    free(out);
    drop_dir(dir);
    return rc;
}

static void other_tensors(void **state)
{
    (void)state;
    Error err;
    assert_int_equal(load_with("lm_head.weight", 1, &err), 0); /* tied: redundant */
    assert_int_equal(load_with("lm_head.weight", 0, &err), 1); /* of its own: used */
    assert_int_equal(load_with("model.layers.1.self_attn.rotary_emb.inv_freq", 0, &err), 0);
    assert_int_equal(load_with("model.layers.1.self_attn.o_proj.bias", 0, &err), -1);
    assert_non_null(strstr(err.text, "model.layers.1.self_attn.o_proj.bias"));
}

int main(void)
{
    setenv("QUERN_CPU", "threads=1",
           0); /* small products: threads would only wait for each other */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_several_files),
                                       cmocka_unit_test(sixteen_bits), cmocka_unit_test(halves),
                                       cmocka_unit_test(other_tensors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
