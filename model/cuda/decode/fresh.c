/* Launchers of fresh.cu. */
#include "model/cuda/decode/step_kernels.h"
#include "model/cuda/launch_shape.h"
#include "model/cuda/norm.h"

enum { THREADS = 128 }; /* as in fresh.cu */

void cuda_fresh_heads(const Fresh *f, const KvRows *rows, const Pages *pages)
{
    NormShare s = cuda_norm_share(pages->dim, 1);
    unsigned heads = (unsigned)(f->heads + 2 * pages->kv_heads),
             teams = THREADS / (unsigned)s.lanes;
    cuda_launch(KERNEL_fresh_heads, (Dim3){ceil_div(heads, teams), (unsigned)f->rows, 1},
                (Dim3){THREADS, 1, 1}, 0,
                (void *[]){(void *)(uintptr_t)f, (void *)(uintptr_t)rows, (void *)(uintptr_t)pages,
                           &s.lanes});
}
