/* Launchers of optim.cu. */
#include <math.h>

#include "model/cuda/launch_shape.h"
#include "model/cuda/table.h"

/* The layout in optim.cu. */
typedef struct {
    float beta1, beta2, rest1, rest2, scale, keep, rate, root, eps;
} Adam;

void cuda_adamw(const AdamSlice *slice, const AdamStep *s)
{
    AdamSlice x = *slice;
    Adam a = {(float)s->beta1,
              (float)s->beta2,
              (float)(1 - s->beta1),
              (float)(1 - s->beta2),
              (float)s->scale,
              (float)(1 - s->lr * s->decay),
              (float)(s->lr / s->correct1),
              (float)(1 / sqrt(s->correct2)),
              (float)s->eps};
    int aligned =
        aligned16(x.p) && aligned16(x.master) && aligned16(x.g) && aligned16(x.m) && aligned16(x.v);
    Dim3 grid = {ceil_div(x.n, 256 * 8), 1, 1}, block = {256, 1, 1};
    uint64_t seed = s->seed;
    if (s->lean)
        LAUNCH(KERNEL_adamw_lean, grid, block, 0, &x.p, &x.g, &x.m, &x.v, &x.n, &a, &seed,
               &aligned);
    else
        LAUNCH(KERNEL_adamw_master, grid, block, 0, &x.p, &x.master, &x.g, &x.m, &x.v, &x.n, &a,
               &aligned);
}
