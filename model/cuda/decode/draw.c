/* Launchers of draw.cu. */
#include "model/cuda/decode/step_kernels.h"
#include "model/cuda/launch_shape.h"

enum { CHUNK = 4096, THREADS = 256, CUT_THREADS = 1024, SUMS_BYTES = 24 }; /* as in draw.cu */

static size_t chunks_of(int vocab)
{
    return ceil_div((size_t)vocab, CHUNK);
}

size_t cuda_draw_scratch(int rows, int vocab)
{
    return 2 * (size_t)rows * chunks_of(vocab) * SUMS_BYTES;
}

void cuda_draw(int32_t *ids, float *logp, const DrawRows *law, const double *u, void *scratch,
               int rows)
{
    unsigned chunks = (unsigned)chunks_of(law->vocab);
    char *first = scratch, *kept = first + (size_t)rows * chunks * SUMS_BYTES, *none = NULL;
    void *whole = (void *)(uintptr_t)law;
    Dim3 all = {chunks, (unsigned)rows, 1}, each = {(unsigned)rows, 1, 1},
         threads = {THREADS, 1, 1};
    int cuts = !law->greedy && (law->top_k || law->top_p < 1);
    LAUNCH(KERNEL_draw_chunks, all, threads, 0, &first, whole, &none);
    if (cuts) LAUNCH(KERNEL_draw_cut, each, ((Dim3){CUT_THREADS, 1, 1}), 0, &first, whole);
    if (cuts || (!law->greedy && law->min_p > 0))
        LAUNCH(KERNEL_draw_chunks, all, threads, 0, &kept, whole, &first);
    else
        kept = first;
    LAUNCH(KERNEL_draw_token, each, threads, chunks * sizeof(float), &ids, &logp, &kept, whole, &u);
}
