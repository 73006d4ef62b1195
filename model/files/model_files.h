/* Models on disk: Hugging Face and PEFT directories. */
#ifndef MODEL_FILES_MODEL_FILES_H
#define MODEL_FILES_MODEL_FILES_H

#include "model/core/model.h"

/* Hugging Face directories: config.json (kept byte for byte after a load), safetensors (one file or
 * several; F32, BF16 or F16; saved in the type of config.json, in files of 5 GB). The caller copies
 * the other files (tokenizer.json, generation_config.json).
 *
 * A model with an adapter is a PEFT directory: adapter_model.safetensors, and adapter_config.json,
 * which names the directory of the base model, absolute or relative to its own. */
int model_load(const char *dir, const Ops *ops, Model **out, Error *err);
/* Save weights and configuration. The directory exists. */
int model_save(const Model *m, const char *dir, Error *err);
/* Load the weights of an equal configuration into m. */
int model_restore(Model *m, const char *dir, Error *err);

#endif
