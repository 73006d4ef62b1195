/* Launchers of draw.cu, fresh.cu and residual.cu. */
#include "model/cuda/decode/step_kernels.h"

#include "model/cuda/launch_shape.h"
#include "model/cuda/norm.h"

enum { CHUNK = 4096, DRAW_THREADS = 256, CUT_THREADS = 1024, SUMS_BYTES = 24 }; /* as in draw.cu */

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
         threads = {DRAW_THREADS, 1, 1};
    int cuts = !law->greedy && (law->top_k || law->top_p < 1);
    LAUNCH(KERNEL_draw_chunks, all, threads, 0, &first, whole, &none);
    if (cuts) LAUNCH(KERNEL_draw_cut, each, ((Dim3){CUT_THREADS, 1, 1}), 0, &first, whole);
    if (cuts || (!law->greedy && law->min_p > 0))
        LAUNCH(KERNEL_draw_chunks, all, threads, 0, &kept, whole, &first);
    else
        kept = first;
    LAUNCH(KERNEL_draw_token, each, threads, chunks * sizeof(float), &ids, &logp, &kept, whole, &u);
}

enum { FRESH_THREADS = 128 }; /* as in fresh.cu */

void cuda_fresh_heads(const Fresh *f, const KvRows *rows, const Pages *pages)
{
    NormShare s = cuda_norm_share(pages->dim, 1);
    unsigned heads = (unsigned)(f->heads + 2 * pages->kv_heads),
             teams = FRESH_THREADS / (unsigned)s.lanes;
    cuda_launch(KERNEL_fresh_heads, (Dim3){ceil_div(heads, teams), (unsigned)f->rows, 1},
                (Dim3){FRESH_THREADS, 1, 1}, 0,
                (void *[]){(void *)(uintptr_t)f, (void *)(uintptr_t)rows, (void *)(uintptr_t)pages,
                           &s.lanes});
}

void cuda_residual_norm(const Residual *r)
{
    if (cuda_norm_too_long(r->n, 1)) return;
    NormShare s = cuda_norm_share(r->n, 1);
    Dim3 rows = {(unsigned)r->rows, 1, 1};
    void *residual = (void *)(uintptr_t)r;
    if (s.lanes)
        cuda_launch(KERNEL_residual_norm_team, rows, (Dim3){32, 1, 1}, 0,
                    (void *[]){residual, &s.lanes});
    else
        cuda_launch(KERNEL_residual_norm_block, rows, (Dim3){s.threads, 1, 1}, 0,
                    (void *[]){residual});
}
