/* Launchers of paged.cu. */
#include "model/cuda/decode/step_kernels.h"
#include "model/cuda/launch_shape.h"
#include "model/cuda/softmax.h"

enum {
    TOKENS = 64,
    WARPS = 4,
    RECORD = 16
}; /* as in paged.cu; bytes of Weights, which hold 4 keys of a query head */

typedef struct {
    const Num *q;
    Num *out;
    float *weights;
    int tiles, heads, layer;
    float scale;
} Attend;

/* How the columns of a head are divided among blocks. It does not change the result. */
typedef struct {
    CudaKernel kernel;
    int columns, warps, depth;
} Slice;

static const Slice slices[] = {{KERNEL_paged_values128, 128, 4, 4},
                               {KERNEL_paged_values64, 64, 2, 6},
                               {KERNEL_paged_values16, 16, 1, 12}};

/* Each slice reads all weights of its heads. Take the widest slices that give most multiprocessors
 * a block and are at least half full. */
static const Slice *slice_of(int heads, int dim)
{
    const Slice *s = slices;
    while (s->columns > 16 &&
           (dim <= s->columns / 2 || (long long)heads * ceil_div((size_t)dim, (size_t)s->columns) <
                                         cuda_state()->sms * 3 / 4))
        s++;
    return s;
}

void cuda_store_prompt(const Pages *pages, const Num *qkv, const int32_t *table, int rows,
                       int heads, int layer)
{
    unsigned threads = whole_warps(ceil_div((size_t)(2 * pages->kv_heads * pages->dim), 8));
    cuda_launch(KERNEL_store_prompt, (Dim3){(unsigned)rows, 1, 1},
                (Dim3){threads < 256 ? threads : 256, 1, 1}, 0,
                (void *[]){(void *)(uintptr_t)pages, &qkv, &table, &heads, &layer});
}

size_t cuda_attend_scratch(int rows, int heads, int longest)
{
    return (size_t)rows * (size_t)heads * ceil_div((size_t)longest, TOKENS) * TOKENS / 4 * RECORD /
           sizeof(float);
}

void cuda_attend(Num *out, const Num *q, float *scratch, const KvRows *rows, const Pages *pages,
                 int n_rows, int heads, int layer, int longest)
{
    enum { BLOCKS = 4096 }; /* with more of them a block takes several tiles of keys */
    int kv_rows = n_rows * pages->kv_heads, dim = pages->dim, ld = (dim + 15) / 16 * 16 + 8,
        group = heads / pages->kv_heads;
    unsigned tiles = ceil_div((size_t)longest, TOKENS),
             share = ceil_div(BLOCKS, (size_t)(kv_rows ? kv_rows : 1));
    unsigned blocks = tiles < share ? tiles : share, kept = blocks < tiles ? 2 : 1;
    const Slice *s = slice_of(kv_rows, dim);
    Attend a = {.q = q,
                .out = out,
                .weights = scratch,
                .tiles = (int)tiles,
                .heads = heads,
                .layer = layer,
                .scale = softmax_scale(dim)};
    void *args[] = {&a, (void *)(uintptr_t)rows, (void *)(uintptr_t)pages};
    cuda_launch(KERNEL_paged_weights, (Dim3){blocks, (unsigned)pages->kv_heads, (unsigned)n_rows},
                (Dim3){32 * WARPS, 1, 1}, (size_t)(16 + kept * TOKENS) * (size_t)ld * 2, args);
    cuda_launch(s->kernel,
                (Dim3){ceil_div((size_t)dim, (size_t)s->columns), (unsigned)pages->kv_heads,
                       (unsigned)n_rows},
                (Dim3){32 * (unsigned)s->warps, 1, 1},
                (size_t)s->depth * TOKENS * (size_t)((s->columns + 8) * 2 + group * RECORD / 4),
                args);
}
