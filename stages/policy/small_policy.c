/* A small Qwen2 policy from scratch. */
#include "stages/policy/policy.h"

#include <stdlib.h>

#include "base/memory.h"

static const char *const specials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
enum { SPECIALS = sizeof specials / sizeof *specials };

ModelConfig small_policy_config(const SmallModel *shape, int vocab)
{
    return (ModelConfig){.model_type = "qwen2",
                         .vocab = vocab,
                         .hidden = shape->hidden,
                         .ff = shape->ff,
                         .layers = shape->layers,
                         .heads = shape->heads,
                         .kv_heads = shape->kv_heads,
                         .head_dim = shape->hidden / shape->heads,
                         .max_position = shape->max_position,
                         .rope_theta = 10000.0f,
                         .norm_eps = 1e-6f,
                         .tied = 1,
                         .qkv_bias = 1,
                         .n_eos = 1};
}

int small_policy_create(const char *dataset, const SmallModel *shape, const Ops *ops, Policy *out,
                        Error *err)
{
    *out = (Policy){0};
    ArtifactReader *r;
    if (artifact_open(dataset, "dataset", &r, err)) return -1;
    size_t count = 2 * (size_t)artifact_count(r), n = 0;
    const char **text = memory_array(count, sizeof *text);
    size_t *len = memory_array(count, sizeof *len);
    const VocabularyOptions vocabulary = {shape->vocab, 1, specials, SPECIALS};
    View v;
    int rc = 0, more = 0;
    while (!rc && (more = artifact_next(r, &v, err)) == 1) {
        rc = view_text(&v, "prompt", &text[n], &len[n], err) ||
             view_text(&v, "answer", &text[n + 1], &len[n + 1], err);
        n += 2;
    }
    rc = rc || more < 0 ||
         tokenizer_train(&(Corpus){text, len, n}, &vocabulary, &out->tokenizer, err) ||
         chat_make(out->tokenizer, CHAT_SMALL, "the new tokenizer", &out->chat, err);
    free(text);
    free(len);
    artifact_close(r);
    if (rc) {
        policy_release(out);
        return -1;
    }
    ModelConfig c = small_policy_config(shape, (tokenizer_size(out->tokenizer) + 31) / 32 * 32);
    c.eos[0] = out->chat.end;
    c.pad = tokenizer_special(out->tokenizer, "<|endoftext|>");
    if (!model_create(&c, ops, shape->seed, &out->model, err)) return 0;
    policy_release(out);
    return -1;
}
