/* Launchers of residual.cu. */
#include "model/cuda/decode/step_kernels.h"
#include "model/cuda/launch_shape.h"
#include "model/cuda/norm.h"

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
