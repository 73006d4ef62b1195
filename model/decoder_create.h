/* Create the decoder of the model's device, and compute its memory in advance. */
#ifndef MODEL_DECODER_CREATE_H
#define MODEL_DECODER_CREATE_H

#include "model/core/decoder.h"

int decoder_create(Model *m, const DecoderPlan *plan, Decoder **out, Error *err);

/* Returns 0, or -1 when the decoder of the device does not support the shape of the model. */
int decoder_check(const Model *m, Error *err);

/* available: bytes that are free before the decoder is created. The model has not been used yet, or
 * is a layout without memory. */
void decoder_memory(const Model *m, const DecoderPlan *plan, size_t available, DecoderMemory *out);

#endif
