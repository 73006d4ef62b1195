/* config.json of the three families in both versions, refusals by the field's name, and the rotary
 * frequencies against those of transformers (written by tests/fixtures/make_engine.py). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "model/core/model_config.h"
#include "model/files/model_files.h"
#include "model/files/safetensors.h"
#include "tests/fixture_path.h"

/* The common fields, with the sizes of Qwen2.5-0.5B; the others follow. */
#define SIZES                                                                           \
    "\"vocab_size\": 151936, \"hidden_size\": 896, \"intermediate_size\": 4864, "       \
    "\"num_hidden_layers\": 24, "                                                       \
    "\"num_attention_heads\": 14, \"num_key_value_heads\": 2, \"rms_norm_eps\": 1e-6, " \
    "\"max_position_embeddings\": 32768, "                                              \
    "\"hidden_act\": \"silu\", \"use_cache\": true, \"initializer_range\": 0.02, "      \
    "\"attention_dropout\": 0.0"
#define QWEN2 "\"model_type\": \"qwen2\", \"architectures\": [\"Qwen2ForCausalLM\"], " SIZES
#define LLAMA                                                                                     \
    "\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], \"mlp_bias\": false, " \
    "\"attention_bias\": false, " SIZES
#define LLAMA3                                                               \
    "\"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, " \
    "\"original_max_position_embeddings\": 8192"

static ModelConfig parsed(const char *fields)
{
    char text[4096];
    ModelConfig c;
    Error err;
    snprintf(text, sizeof text, "{%s}", fields);
    if (model_config_parse(text, strlen(text), "config.json", &c, &err)) fail_msg("%s", err.text);
    return c;
}

static void refused(const char *fields, const char *name)
{
    char text[4096];
    ModelConfig c;
    Error err;
    snprintf(text, sizeof text, "{%s}", fields);
    if (!model_config_parse(text, strlen(text), "config.json", &c, &err))
        fail_msg("taken: %s", fields);
    if (!strstr(err.text, name)) fail_msg("\"%s\" does not name %s", err.text, name);
    if (strncmp(err.text, "config.json", 11)) fail_msg("\"%s\" does not name the file", err.text);
}

/* The same model as written by transformers 4 and 5. */
static void generations(void **state)
{
    (void)state;
    ModelConfig c = parsed(
        QWEN2
        ", \"rope_theta\": 1000000.0, \"rope_scaling\": null, \"torch_dtype\": \"bfloat16\", "
        "\"use_sliding_window\": false, \"sliding_window\": 32768, \"max_window_layers\": 21, "
        "\"bos_token_id\": 151643, \"eos_token_id\": 151645, \"tie_word_embeddings\": true");
    ModelConfig d = parsed(
        QWEN2 ", \"rope_parameters\": {\"rope_theta\": 1000000.0, \"rope_type\": \"default\"}, "
              "\"dtype\": \"bfloat16\", \"layer_types\": [\"full_attention\", \"full_attention\"], "
              "\"sliding_window\": null, \"pad_token_id\": null, \"eos_token_id\": [151645], "
              "\"tie_word_embeddings\": true");
    assert_memory_equal(&c, &d, sizeof c);
    assert_true(c.qkv_bias && !c.qk_norm && c.tied && c.rope_theta == 1e6f && c.head_dim == 64 &&
                c.dtype == DTYPE_BF16);
    assert_true(c.n_eos == 1 && c.eos[0] == 151645 && c.pad == -1 && c.rope.type == ROPE_DEFAULT);

    c = parsed(LLAMA ", \"rope_theta\": 500000.0, \"rope_scaling\": {" LLAMA3
                     ", \"rope_type\": \"llama3\"}, "
                     "\"torch_dtype\": \"bfloat16\", \"eos_token_id\": [128001, 128008, 128009], "
                     "\"pretraining_tp\": 1, \"head_dim\": 64");
    d = parsed(
        LLAMA
        ", \"rope_parameters\": {" LLAMA3 ", \"rope_theta\": 500000.0, \"rope_type\": \"llama3\"}, "
        "\"dtype\": \"bfloat16\", \"eos_token_id\": [128001, 128008, 128009], \"head_dim\": null");
    assert_memory_equal(&c, &d, sizeof c);
    assert_true(c.rope.type == ROPE_LLAMA3 && c.rope.factor == 8 && c.rope.slow == 1 &&
                c.rope.fast == 4);
    assert_true(c.rope.original == 8192 && c.n_eos == 3 && !c.tied && !c.qkv_bias && !c.qk_norm);

    c = parsed(QWEN2
               ", \"rope_theta\": 1e6, \"rope_scaling\": {\"factor\": 4.0, \"type\": \"yarn\"}");
    d = parsed(QWEN2 ", \"rope_parameters\": {\"rope_theta\": 1e6, \"factor\": 4.0, "
                     "\"original_max_position_embeddings\": 32768, "
                     "\"rope_type\": \"yarn\", \"attention_factor\": null, \"truncate\": true}");
    assert_memory_equal(&c, &d, sizeof c);
    assert_true(c.rope.type == ROPE_YARN && c.rope.slow == 1 && c.rope.fast == 32 &&
                c.dtype == DTYPE_F32);
    assert_int_equal(c.max_position, 131072); /* the purpose of the scaling */

    c = parsed(
        "\"model_type\": \"qwen3\", \"architectures\": [\"Qwen3ForCausalLM\"], \"attention_bias\": "
        "false, \"head_dim\": 128, " SIZES
        ", \"rope_theta\": 1000000, \"torch_dtype\": \"bfloat16\", \"use_sliding_window\": false");
    assert_true(c.qk_norm && !c.qkv_bias && c.head_dim == 128 && c.heads * c.head_dim != c.hidden);
    c = parsed(
        "\"model_type\": \"qwen3\", " SIZES); /* absent: the family's defaults, not a quotient */
    assert_true(c.head_dim == 128 && c.rope_theta == 10000 && !c.tied);
}

static void refusals(void **state)
{
    (void)state;
    refused("\"model_type\": \"qwen3_moe\", " SIZES, "model_type");
    refused("\"model_type\": \"qwen2_vl\", " SIZES, "model_type");
    refused("\"model_type\": \"mistral\", " SIZES, "model_type");
    refused("\"model_type\": \"gemma3\", " SIZES, "model_type");
    refused(SIZES, "model_type");
    refused("\"model_type\": \"qwen2\", \"architectures\": "
            "[\"Qwen2ForSequenceClassification\"], " SIZES,
            "architectures[0]");
    refused("\"model_type\": \"qwen2\", \"architectures\": [\"LlamaForCausalLM\"], " SIZES,
            "architectures[0]");
    refused(QWEN2 ", \"use_sliding_window\": true", "use_sliding_window");
    refused(QWEN2 ", \"layer_types\": [\"full_attention\", \"sliding_attention\"]",
            "layer_types[1]");
    refused(QWEN2 ", \"dual_chunk_attention_config\": {\"chunk_size\": 262144}",
            "dual_chunk_attention_config");
    refused(QWEN2 ", \"quantization_config\": {\"quant_method\": \"awq\"}", "quantization_config");
    refused(QWEN2 ", \"vision_config\": {}", "vision_config");
    refused(QWEN2 ", \"num_experts\": 64", "num_experts");
    refused(QWEN2 ", \"partial_rotary_factor\": 0.5", "partial_rotary_factor");
    refused(QWEN2 ", \"dtype\": \"float8_e4m3fn\"", "dtype");
    refused(QWEN2 ", \"torch_dtype\": 16", "torch_dtype");
    refused(LLAMA ", \"attention_bias\": true", "attention_bias");
    refused(LLAMA ", \"mlp_bias\": true", "mlp_bias");
    refused("\"model_type\": \"llama\", \"hidden_act\": \"gelu\"", "vocab_size");
    refused(LLAMA ", \"head_dim\": 63", "head_dim");
    refused(LLAMA ", \"head_dim\": -1", "head_dim");
    refused(LLAMA ", \"head_dim\": 0", "head_dim");
    refused(LLAMA ", \"head_dim\": -2147483647", "head_dim");
    refused("\"model_type\": \"qwen3\", \"head_dim\": -1, " SIZES, "head_dim");
    refused(LLAMA ", \"eos_token_id\": 151936", "eos_token_id");
    refused(LLAMA ", \"rope_theta\": \"1e6\"", "rope_theta");
}

static void scalings_refused(void **state)
{
    (void)state;
    refused(LLAMA ", \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2}", "rope_type");
    refused(LLAMA ", \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}", "rope_type");
    refused(LLAMA ", \"rope_scaling\": {\"type\": 5, \"factor\": 2}", "rope_type");
    refused(LLAMA ", \"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1]}",
            "short_factor");
    refused(LLAMA ", \"rope_scaling\": []", "rope_scaling");
    refused(LLAMA ", \"rope_scaling\": {\"type\": \"llama3\"}", "factor");
    refused(LLAMA ", \"rope_scaling\": {\"type\": \"llama3\", \"factor\": 8}", "low_freq_factor");
    refused(LLAMA ", \"rope_scaling\": {\"type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": "
                  "4, \"high_freq_factor\": 4}",
            "high_freq_factor");
    refused(LLAMA ", \"rope_scaling\": {" LLAMA3 ", \"type\": \"llama3\", \"mrope_section\": [1]}",
            "mrope_section");
    refused(LLAMA ", \"rope_scaling\": {" LLAMA3
                  ", \"type\": \"llama3\"}, \"rope_parameters\": {\"rope_theta\": 1e6}",
            "rope_parameters are both given");
    refused(LLAMA ", \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 1e6}}",
            "full_attention");
    refused(QWEN2 ", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 0.5}", "factor");
    refused(QWEN2 ", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4, \"mscale\": 1.0}",
            "mscale");
    refused(QWEN2 ", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4, \"truncate\": false}",
            "truncate");
    refused(QWEN2 ", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4, \"beta_fast\": 1}",
            "beta_fast");
    refused(QWEN2
            ", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4, \"attention_factor\": -1}",
            "attention_factor");
    refused(QWEN2 ", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4, "
                  "\"original_max_position_embeddings\": 0}",
            "original_max_position_embeddings");
}

/* The printed configuration parses to the same one. */
static void prints(void **state)
{
    (void)state;
    static const char *const all[] = {
        QWEN2 ", \"dtype\": \"bfloat16\", \"pad_token_id\": 7, \"tie_word_embeddings\": true, "
              "\"eos_token_id\": [3, 4]",
        LLAMA ", \"dtype\": \"float16\", \"rope_theta\": 5e5, \"rope_scaling\": {" LLAMA3
              ", \"rope_type\": \"llama3\"}",
        QWEN2 ", \"rope_theta\": 1e6, \"rope_scaling\": {\"factor\": 4.0, \"type\": \"yarn\"}",
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ModelConfig c = parsed(all[i]), d;
        Error err;
        Buffer text;
        buffer_init(&text, 1 << 16);
        if (i == 2) c.rope.original = 8192, c.rope.attention = 1.5f, c.rope.fast = 16;
        model_config_print(&c, &text);
        if (model_config_parse(text.data, text.len, "config.json", &d, &err))
            fail_msg("%s", err.text);
        assert_memory_equal(&c, &d, sizeof c);
        buffer_release(&text);
    }
}

static void end_tokens(void **state)
{
    (void)state;
    ModelConfig c = parsed(QWEN2 ", \"eos_token_id\": 151643");
    Error err;
    const char *more = "{\"eos_token_id\": [151645, 151643], \"temperature\": 0.7}";
    assert_int_equal(model_config_add_eos(more, strlen(more), "generation_config.json", &c, &err),
                     0);
    assert_true(c.n_eos == 2 && c.eos[0] == 151643 && c.eos[1] == 151645);
    more = "{\"eos_token_id\": 200000}";
    assert_int_equal(model_config_add_eos(more, strlen(more), "generation_config.json", &c, &err),
                     -1);
    assert_non_null(strstr(err.text, "generation_config.json"));
}

static void frequencies(void **state)
{
    (void)state;
    Error err;
    json_t *docs = json_read_file(fixture_path("tests/fixtures/engine/rope.json"), 1 << 20, &err);
    if (!docs) fail_msg("%s", err.text);
    assert_true(json_array_size(docs) >= 5);
    for (size_t i = 0; i < json_array_size(docs); i++) {
        json_t *doc = json_array_get(docs, i), *inv = json_object_get(doc, "inv");
        char *text = json_dumps(json_object_get(doc, "config"), 0);
        ModelConfig c;
        if (model_config_parse(text, strlen(text), "config.json", &c, &err))
            fail_msg("%s", err.text);
        free(text);
        float got[512], scale;
        assert_int_equal(json_array_size(inv), c.head_dim / 2);
        rope_frequencies(&c, got, &scale);
        double worst = 0;
        for (int k = 0; k < c.head_dim / 2; k++) {
            double want = json_real_value(json_array_get(inv, (size_t)k));
            worst = fmax(worst, fabs((double)got[k] - want) / want);
        }
        printf("# configuration %zu: largest relative difference of %d frequencies %.2g\n", i,
               c.head_dim / 2, worst);
        assert_true(worst < 1e-6);
        assert_true(fabs((double)scale - json_number_value(json_object_get(doc, "scale"))) < 1e-6);
    }
    json_decref(docs);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generations),      cmocka_unit_test(refusals),
        cmocka_unit_test(scalings_refused), cmocka_unit_test(prints),
        cmocka_unit_test(end_tokens),       cmocka_unit_test(frequencies)};
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
