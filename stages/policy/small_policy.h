/* A policy from scratch: a small Qwen2 with random weights, whose vocabulary is learned from the
 * texts of a dataset. Stage 1 starts from it when there is no base model. */
#ifndef STAGES_POLICY_SMALL_POLICY_H
#define STAGES_POLICY_SMALL_POLICY_H

#include "stages/policy/policy.h"

typedef struct {
    int vocab, hidden, ff, layers, heads, kv_heads, max_position;
    uint64_t seed; /* of the weights */
} SmallModel;

/* The model's configuration without its special ids. */
ModelConfig small_policy_config(const SmallModel *shape, int vocab);

/* Trains a tokenizer of at most shape->vocab tokens on the prompts and answers of the dataset, and
 * makes a model of that vocabulary, rounded up to a multiple of 32. The caller releases *out. */
int small_policy_create(const char *dataset, const SmallModel *shape, const Ops *ops, Policy *out,
                        Error *err);

#endif
