/* A policy is what answers prompts and learns: a model directory with its tokenizer. The
 * directory's manifest artifact, written last, names every file with its digest: it is the make
 * target, and its payload digest names the model in the inputs of what is made from it. */
#ifndef STAGES_POLICY_POLICY_H
#define STAGES_POLICY_POLICY_H

#include "artifacts/artifact.h"
#include "model/core/model.h"
#include "model/tokenizer/tokenizer.h"
#include "stages/policy/chat.h"

typedef struct {
    Model *model;
    Tokenizer *tokenizer;
    Chat chat; /* how its prompts are laid out */
} Policy;

/* The tokenizer alone: what encodes and decodes, without the weights. */
int policy_tokenizer(const char *dir, Policy *out, Error *err);
int policy_load(const char *dir, const Ops *ops, Policy *out, Error *err);
void policy_release(Policy *p);

/* Write model, tokenizer and manifest.qa into dir (created). from_dir: other files of a Hugging
 * Face directory (generation_config.json, tokenizer_config.json, chat template) are copied; may be
 * NULL. */
int policy_save(const Policy *p, const char *dir, const char *from_dir, const ArtifactSpec *spec,
                Error *err);

/* Those other files; missing: only where dir has none of its own. */
int policy_extras(const char *from, const char *dir, int missing, Error *err);

/* Ids of a prompt up to where the answer begins; caller frees *ids. Text never becomes a special
 * token. */
int policy_encode_prompt(const Policy *p, const char *text, size_t len, int32_t **ids, size_t *n,
                         Error *err);
/* Ids of an answer with its end token. */
int policy_encode_answer(const Policy *p, const char *text, size_t len, int32_t **ids, size_t *n,
                         Error *err);

/* Tokens of the vocabulary that must never be sampled: special ones that end nothing, ids without a
 * token, padding rows. */
int policy_banned(const Policy *p, int *ids, int max);

#endif
