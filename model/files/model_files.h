/* Models on disk: Hugging Face and PEFT directories. */
#ifndef MODEL_FILES_MODEL_FILES_H
#define MODEL_FILES_MODEL_FILES_H

#include "base/buffer.h"
#include "model/core/lora.h"
#include "model/core/model.h"
#include "model/core/model_config.h"

/* Hugging Face directories: config.json (kept byte for byte after a load), safetensors (one file or
 * several; F32, BF16 or F16; saved in the type of config.json, in files of 5 GB). The caller copies
 * the other files (tokenizer.json, generation_config.json). A head of its own is used, and said, where
 * tie_word_embeddings is set.
 *
 * A model with an adapter is a PEFT directory: adapter_model.safetensors, and adapter_config.json,
 * which names the directory of the base model, absolute or relative to its own. */
int model_load(const char *dir, const Ops *ops, Model **out, Error *err);
/* Check what loading checks, but an adapter's own weights: configuration, names and shapes. Nothing is
 * loaded. */
int model_check(const char *dir, const Ops *ops, Error *err);
/* Save weights and configuration. The directory exists. */
int model_save(const Model *m, const char *dir, Error *err);
/* Load the weights of an equal configuration into m. */
int model_restore(Model *m, const char *dir, Error *err);

/* ---- ModelConfig as the config.json of transformers (versions 4 and 5) ---- */
int model_config_parse(const char *text, size_t len, const char *where, ModelConfig *out,
                       Error *err);
/* Add the end tokens of a generation_config.json. Chat models have more of them than config.json
 * names. */
int model_config_add_eos(const char *text, size_t len, const char *where, ModelConfig *c,
                         Error *err);
void model_config_print(const ModelConfig *c, Buffer *out);

/* ---- adapters: adapter_config.json and adapter_model.safetensors ---- */
/* Read adapter_config.json of dir: the options, and the base model's directory, which the caller
 * frees. The error names a field that the engine does not support. */
int adapter_config_read(const char *dir, LoraOptions *o, char **base, Error *err);
/* Write adapter_model.safetensors, then adapter_config.json. */
int adapter_save(const Model *m, const char *dir, Error *err);
int adapter_restore(Model *m, const char *dir, Error *err);

#endif
