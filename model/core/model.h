/* A decoder-only transformer (Qwen2, Qwen3 and Llama, by three switches) on a device: the CPU in
 * fp32, or a GPU in bf16. Results are bit-identical between runs on devices of the same kind. On
 * the CPU they do not depend on the number of threads (QUERN_CPU=threads=N; default: the online cores)
 * either.
 *
 * Functions that return int return 0, or -1 with an error. The caller releases what they return
 * through `out`. */
#ifndef MODEL_CORE_MODEL_H
#define MODEL_CORE_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/core/model_config.h"

typedef struct Model Model;

/* The table of operations of a device (model/core/ops.h). model/model_device.h finds it by name. */
typedef struct Ops Ops;

/* Create a model with new weights: N(0, 0.02), divided by sqrt(2 layers) for the o and down
 * projections; norms are 1 and biases 0. */
int model_create(const ModelConfig *c, const Ops *ops, uint64_t seed, Model **out, Error *err);
void model_free(Model *m);
const ModelConfig *model_config(const Model *m);
size_t model_parameters(const Model *m);
/* Add an end token, for example the end of a chat message that the configuration does not name. */
int model_add_end(Model *m, int id, Error *err);

/* One text: ids[0..len). */
typedef struct {
    const int32_t *ids;
    int len;
} Sequence;

/* Compute log-probabilities at temperature 1: logp[i][t] for t in 1..len-1. logp[i][0] is 0. */
int model_logprobs(Model *m, const Sequence *seqs, int n, float *const *logp, Error *err);

#endif
