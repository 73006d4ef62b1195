/* A policy: a model with its tokenizer and its chat template. On disk it is a model directory
 * (Hugging Face's layout) with a manifest (artifacts/manifest.h). */
#ifndef STAGES_POLICY_POLICY_H
#define STAGES_POLICY_POLICY_H

#include "artifacts/artifact.h"
#include "model/core/model.h"
#include "model/tokenizer/tokenizer.h"
#include "stages/policy/chat.h"

typedef struct {
    Model *model;
    Tokenizer *tokenizer;
    Chat chat;
} Policy;

/* Loads the tokenizer and the chat template without the weights; model stays NULL. A directory that
 * is not what its manifest says is refused (ERROR_CORRUPT), its weights included. */
int policy_tokenizer(const char *dir, Policy *out, Error *err);
/* Sets the chat template of the checkpoints that this process opens, which the models that it writes keep:
 * the text of CHAT, which outlives them. NULL or "": their own. */
void policy_give_chat(const char *chat);
int policy_load(const char *dir, const Ops *ops, Policy *out, Error *err);
/* Checks a checkpoint before a run pays for anything: manifest, tokenizer, chat template,
 * configuration, shapes. */
int policy_check(const char *dir, Error *err);
void policy_release(Policy *p);

/* Writes model, tokenizer and manifest into dir, which is made if needed. The other files of a
 * Hugging Face directory (generation_config.json, tokenizer_config.json, chat template, ...) are
 * copied from from_dir, unless it is NULL. */
int policy_save(const Policy *p, const char *dir, const char *from_dir, const ArtifactSpec *spec,
                Error *err);

/* Copies these other files. missing: only the ones that dir does not have. */
int policy_extras(const char *from, const char *dir, int missing, Error *err);

/* Lists the ids that must never be sampled: special tokens other than end tokens, ids without a
 * token, padding rows of the vocabulary. Returns how many, at most max. */
int policy_banned(const Policy *p, int *ids, int max);

/* ---- a small policy from scratch ---- */
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
