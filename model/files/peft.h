/* Adapters on disk: PEFT directories, adapter_config.json and adapter_model.safetensors. */
#ifndef MODEL_FILES_PEFT_H
#define MODEL_FILES_PEFT_H

#include "model/core/lora.h"

/* adapter_config.json of dir: the options, and the base model's directory (freed by the caller).
 * What the engine cannot follow is refused by the field's name. */
int adapter_config_read(const char *dir, LoraOptions *o, char **base, Error *err);
/* adapter_model.safetensors and adapter_config.json, the latter last. */
int adapter_save(const Model *m, const char *dir, Error *err);
int adapter_restore(Model *m, const char *dir, Error *err);

#endif
