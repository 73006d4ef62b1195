/* Read and write ModelConfig as the config.json of transformers (versions 4 and 5). */
#ifndef MODEL_FILES_CONFIG_JSON_H
#define MODEL_FILES_CONFIG_JSON_H

#include "base/buffer.h"
#include "model/core/model_config.h"

int model_config_parse(const char *text, size_t len, const char *where, ModelConfig *out,
                       Error *err);
/* Add the end tokens of a generation_config.json. Chat models have more of them than config.json
 * names. */
int model_config_add_eos(const char *text, size_t len, const char *where, ModelConfig *c,
                         Error *err);
void model_config_print(const ModelConfig *c, Buffer *out);

#endif
