/* The decoder on a GPU: pages of keys and values, and one graph per step of all rows.
 * model/decoder_create.h documents the functions. */
#ifndef MODEL_CUDA_DECODE_DECODER_CUDA_H
#define MODEL_CUDA_DECODE_DECODER_CUDA_H

#include "model/core/decoder.h"

int decoder_create_cuda(Model *m, const DecoderPlan *plan, Decoder **out, Error *err);
int decoder_check_cuda(const Model *m, Error *err);
void decoder_memory_cuda(const Model *m, const DecoderPlan *plan, size_t available,
                         DecoderMemory *out);

#endif
