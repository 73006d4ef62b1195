/* Models on disk: Hugging Face and PEFT directories. */
#ifndef MODEL_FILES_MODEL_FILES_H
#define MODEL_FILES_MODEL_FILES_H

#include "model/core/model.h"

/* Hugging Face directories: config.json (kept byte for byte when it was loaded), safetensors (one
 * file or several, F32, BF16 or F16; saved as config.json says, in files of 5 GB), and what else
 * lies there (tokenizer.json, generation_config.json) copied by the caller. A model with an adapter
 * is a PEFT directory: adapter_config.json, which names its base model's directory (absolute, or
 * from where it lies), and adapter_model.safetensors. */
int model_load(const char *dir, const Ops *ops, Model **out, Error *err);
int model_save(const Model *m, const char *dir,
               Error *err); /* weights and configuration; dir exists */
int model_restore(Model *m, const char *dir,
                  Error *err); /* weights of an equal configuration into m */

#endif
