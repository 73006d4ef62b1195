/* Inside the CPU's table: its operations that have files of their own, and the decoder's on the
 * CPU. */
#ifndef MODEL_CPU_CPU_KERNELS_H
#define MODEL_CPU_CPU_KERNELS_H

#include "model/core/ops.h"
#include "model/cpu/ops_cpu.h"

/* Keys and values of one token sequence for all layers: keys in blocks of a vector's tokens,
 * [dim][lanes], values as rows padded to a multiple of 16 floats, both read with whole vectors. */
typedef struct {
    float *k, *v;
    int len, cap; /* tokens; cap is a multiple of 16 */
} KvStore;

/* One row of decoding attends to a shared prefix and to its own continuation. */
typedef struct {
    const KvStore *prefix;
    KvStore *own;
} KvRow;

void cpu_attention(Num *out, float *lse, const Num *qkv, const BatchView *b, HeadShape s);
void cpu_attention_grad(Num *dqkv, const Num *dout, const Num *out, const float *lse,
                        const Num *qkv, const BatchView *b, HeadShape s);

/* The weights in panels of some outputs. */
void cpu_pack(Packed *p, const Num *w, int n, int k);
void cpu_matmul_packed(Num *y, const Num *x, const Packed *w, int rows, int add);
void cpu_add_bias(float *y, const float *bias, int rows, int n);
/* Store the k and v of rows of qkv at tokens at..at+rows of `to`. */
void cpu_kv_put(KvStore *to, int layer, int at, const float *qkv, int rows, HeadShape s);
/* The keys and values of the row itself are in the store already; scratch: heads/kv_heads * (both
 * caps). */
void cpu_attention_cached(float *out, const float *qkv, const KvRow *row, int rows, int layer,
                          HeadShape s, float *scratch);

#endif
