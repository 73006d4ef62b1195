/* Launchers of paged.cu. */
#include "model/cuda/decode.h"

#include <math.h>

#include "model/cuda/launch.h"

enum { TOKENS = 64, SPLITS_MAX = 32, WARPS = 4 }; /* as in paged.cu */

typedef struct {
    const Num *q;
    float *out, *stats;
    int heads, layer;
    float scale;
} Attend;

void cuda_fresh_heads(const Fresh *f, const KvRows *rows, const Pages *pages)
{
    unsigned heads = (unsigned)(f->heads + 2 * pages->kv_heads);
    cuda_launch(KERNEL_fresh_heads, (Dim3){ceil_div(heads, WARPS), (unsigned)f->rows, 1}, (Dim3){32 * WARPS, 1, 1}, 0,
                (void *[]){(void *)(uintptr_t)f, (void *)(uintptr_t)rows, (void *)(uintptr_t)pages});
}

void cuda_store_prompt(const Pages *pages, const Num *qkv, const int32_t *table, int rows, int heads, int layer)
{
    unsigned threads = whole_warps(ceil_div((size_t)(2 * pages->kv_heads * pages->dim), 8));
    cuda_launch(KERNEL_store_prompt, (Dim3){(unsigned)rows, 1, 1}, (Dim3){threads < 256 ? threads : 256, 1, 1}, 0,
                (void *[]){(void *)(uintptr_t)pages, &qkv, &table, &heads, &layer});
}

size_t cuda_attend_scratch(int rows, int heads, int dim)
{
    return (size_t)rows * (size_t)heads * SPLITS_MAX * (size_t)(dim + 2);
}

void cuda_attend(Num *out, const Num *q, float *scratch, const KvRows *rows, const Pages *pages, int n_rows, int heads, int layer,
                 int longest)
{
    int dim = pages->dim, ld = (dim + 15) / 16 * 16 + 8;
    unsigned tiles = ceil_div((size_t)longest, TOKENS), splits = tiles < SPLITS_MAX ? tiles : SPLITS_MAX;
    Attend a = {.q = q,
                .out = scratch,
                .stats = scratch + (size_t)n_rows * (size_t)heads * SPLITS_MAX * (size_t)dim,
                .heads = heads,
                .layer = layer,
                .scale = (float)(1 / (sqrt((double)dim) * log(2)))};
    size_t shared = (size_t)((16 + 2 * TOKENS) * ld + 16 * (TOKENS + 8)) * 2 + 2 * 16 * WARPS * sizeof(float);
    CudaKernel k = dim <= 64 ? KERNEL_paged_attention64 : dim <= 128 ? KERNEL_paged_attention128 : KERNEL_paged_attention256;
    cuda_launch(k, (Dim3){splits, (unsigned)pages->kv_heads, (unsigned)n_rows}, (Dim3){32 * WARPS, 1, 1}, shared,
                (void *[]){&a, (void *)(uintptr_t)rows, (void *)(uintptr_t)pages});
    cuda_launch(KERNEL_paged_sum, (Dim3){(unsigned)heads, (unsigned)n_rows, 1}, (Dim3){whole_warps((unsigned)dim), 1, 1}, 0,
                (void *[]){&out, &a, (void *)(uintptr_t)&rows->pos, &dim});
}
