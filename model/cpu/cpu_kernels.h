/* Inside model/cpu: operations of the table with files of their own, and the kernels of the
 * decoder. */
#ifndef MODEL_CPU_CPU_KERNELS_H
#define MODEL_CPU_CPU_KERNELS_H

#include "model/core/ops.h"
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

#endif
