/* The decoder on the CPU; model/decoder_create.h documents the functions. */
#ifndef MODEL_CPU_DECODER_CPU_H
#define MODEL_CPU_DECODER_CPU_H

#include "model/core/decoder.h"

int decoder_create_cpu(Model *m, const DecoderPlan *plan, Decoder **out, Error *err);
void decoder_memory_cpu(const Model *m, const DecoderPlan *plan, size_t available,
                        DecoderMemory *out);

#endif
