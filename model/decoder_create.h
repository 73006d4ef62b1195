/* The decoder of a model's device. */
#ifndef MODEL_DECODER_CREATE_H
#define MODEL_DECODER_CREATE_H

#include "model/core/decoder.h"

int decoder_create(Model *m, const DecoderPlan *plan, Decoder **out, Error *err);

/* 0, or -1: the decoders of its device do not take the model's shape. */
int decoder_check(const Model *m, Error *err);

/* available: bytes that are free before it is created. Of a model that was not used yet, or is a
 * layout alone. */
void decoder_memory(const Model *m, const DecoderPlan *plan, size_t available, DecoderMemory *out);

#endif
