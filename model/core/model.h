/* A decoder-only transformer (Qwen2, Qwen3 and Llama by three switches) on a device: the CPU in
 * fp32, or a GPU in bf16. Results repeat bit for bit on a device of the same kind; on the CPU they
 * do not depend on the number of threads (QUERN_THREADS; default: the online cores) either.
 * Functions that return int: 0, or -1 with an error; what they give out is the caller's to free. */
#ifndef MODEL_CORE_MODEL_H
#define MODEL_CORE_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/core/model_config.h"

typedef struct Model Model;

/* The table of operations of a device (model/core/ops.h; model/model_device.h has it by name). */
typedef struct Ops Ops;

/* New weights: N(0, 0.02), those of o and down divided by sqrt(2 layers); norms 1, biases 0. */
int model_create(const ModelConfig *c, const Ops *ops, uint64_t seed, Model **out, Error *err);
void model_free(Model *m);
const ModelConfig *model_config(const Model *m);
size_t model_parameters(const Model *m);
/* Samples end at this token too: a chat's end that the configuration does not name. */
int model_add_end(Model *m, int id, Error *err);

/* One text: ids[0..len). */
typedef struct {
    const int32_t *ids;
    int len;
} Sequence;

/* Log-probabilities under the model at temperature 1: logp[i][t] for t in 1..len-1 (logp[i][0] =
 * 0). */
int model_logprobs(Model *m, const Sequence *seqs, int n, float *const *logp, Error *err);

#endif
