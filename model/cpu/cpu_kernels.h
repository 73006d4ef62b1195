/* Inside model/cpu: operations of the table with files of their own, and the kernels of the
 * decoder. */
#ifndef MODEL_CPU_CPU_KERNELS_H
#define MODEL_CPU_CPU_KERNELS_H

#include <stdint.h>

#include "model/core/decoder.h"
#include "model/cpu/ops_cpu.h"

/* Keys and values of one token sequence for all layers. Keys are in blocks of LANES tokens,
 * [dim][lanes]. Values are rows padded to a multiple of 16 floats. Both are read with whole
 * vectors. */
typedef struct {
    float *k, *v;
    int len, cap; /* tokens; cap is a multiple of 16 */
} KvStore;

/* A row of decoding attends to a shared prefix and to its own continuation. */
typedef struct {
    const KvStore *prefix;
    KvStore *own;
} KvRow;

void cpu_attention(Num *out, float *lse, const Num *qkv, const BatchView *b, HeadShape s);
void cpu_attention_grad(Num *dqkv, const Num *dout, const Attended *a, const BatchView *b,
                        HeadShape s);

/* Pack the weights in panels of some outputs each. */
void cpu_pack(Packed *p, const Num *w, int n, int k);
void cpu_matmul_packed(Num *y, const Num *x, const Packed *w, int rows, int add);
void cpu_add_bias(float *y, const float *bias, int rows, int n);

/* The cached attention of a layer. */
typedef struct {
    int layer;
    HeadShape s;
    float *scores; /* scratch: heads/kv_heads * (both caps of a KvRow) floats */
} CachedLayer;

/* Store k and v of the rows of qkv as tokens at..at+rows of `to`. */
void cpu_kv_put(KvStore *to, const CachedLayer *l, int at, const float *qkv, int rows);
/* The stores already hold the keys and values of the new tokens. */
void cpu_attention_cached(float *out, const float *qkv, const KvRow *row, int rows,
                          const CachedLayer *l);

/* The decoder; model/decoder_create.h documents the functions. */
int decoder_create_cpu(Model *m, const DecoderPlan *plan, Decoder **out, Error *err);
void decoder_memory_cpu(const Model *m, const DecoderPlan *plan, size_t available,
                        DecoderMemory *out);

/* ---- draw one token from a row of logits ---- */
typedef struct {
    float weight;
    int32_t id;
} DrawCandidate;

/* Returns whether draw_token needs `order`. */
int draw_sorts(const DrawLaw *law);

/* u is in [0, 1). probs and order are scratch of vocab entries. *logp is the log-probability under
 * the full softmax at the temperature, including ids that the law leaves out, as the trainer
 * computes it. */
int32_t draw_token(const DrawLaw *law, const float *logits, double u, float *probs,
                   DrawCandidate *order, float *logp);

#endif
