/* Inside the model module: the layout of adapters, and their files as PEFT has them. */
#ifndef MODEL_CORE_LORA_H
#define MODEL_CORE_LORA_H

#include "model/core/transformer.h"

enum { LORA_TARGETS = 7 };
const char *lora_target(int i); /* "q_proj": bit i of LoraOptions.targets */

/* Everything but the numbers: lora.data stays NULL. */
int lora_layout(Model *m, const LoraOptions *o, Error *err);

/* adapter_config.json of dir: the options, and the base model's directory (freed by the caller).
 * What the engine cannot follow is refused by the field's name. */
int adapter_config_read(const char *dir, LoraOptions *o, char **base, Error *err);
/* adapter_model.safetensors and adapter_config.json, the latter last. */
int adapter_save(const Model *m, const char *dir, Error *err);
int adapter_restore(Model *m, const char *dir, Error *err);

#endif
