/* Adapters on disk: PEFT directories, adapter_config.json and adapter_model.safetensors. */
#ifndef MODEL_FILES_PEFT_H
#define MODEL_FILES_PEFT_H

#include "model/core/lora.h"

/* Read adapter_config.json of dir: the options, and the base model's directory, which the caller
 * frees. The error names a field that the engine does not support. */
int adapter_config_read(const char *dir, LoraOptions *o, char **base, Error *err);
/* Write adapter_model.safetensors, then adapter_config.json. */
int adapter_save(const Model *m, const char *dir, Error *err);
int adapter_restore(Model *m, const char *dir, Error *err);

#endif
