/* Choose the decoder by the table of operations of the model. */
#include "model/decoder_create.h"

#include "model/cpu/cpu_kernels.h"
#include "model/cuda/decode/decoder_cuda.h"

int decoder_create(Model *m, const DecoderPlan *plan, Decoder **out, Error *err)
{
    if (decoder_check(m, err)) return -1;
    return (m->ops->is_cpu ? decoder_create_cpu : decoder_create_cuda)(m, plan, out, err);
}

int decoder_check(const Model *m, Error *err)
{
    return m->ops->is_cpu ? 0 : decoder_check_cuda(m, err);
}

void decoder_memory(const Model *m, const DecoderPlan *plan, size_t available, DecoderMemory *out)
{
    (m->ops->is_cpu ? decoder_memory_cpu : decoder_memory_cuda)(m, plan, available, out);
}
