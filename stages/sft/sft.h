/* Stage 1: supervised fine-tuning on the dataset, cross-entropy on the answer, prompt masked.
 * Without a base model a small Qwen2 is made from scratch: its vocabulary is learned from the
 * dataset's texts. */
#ifndef STAGES_SFT_SFT_H
#define STAGES_SFT_SFT_H

#include "stages/policy/policy.h"
#include "stages/train/training.h"

typedef struct {
    int vocab, hidden, ff, layers, heads, kv_heads, max_position;
    uint64_t seed;
} SmallModel;

/* Its configuration, but for the special ids. */
ModelConfig sft_config(const SmallModel *shape, int vocab);
/* A new policy whose tokenizer is trained on the dataset. */
int sft_new_policy(const char *dataset, const SmallModel *shape, const Ops *ops, Policy *out,
                   Error *err);

/* The dataset as examples, the *plain plain ones first, none longer than max_len tokens (longer
 * ones are dropped and counted). */
int sft_examples(const Policy *p, const char *dataset, int max_len, Example **out, long *n,
                 long *plain, long *dropped, Error *err);

#endif
