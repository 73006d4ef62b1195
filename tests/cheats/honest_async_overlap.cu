// Two tiles that come by cp.async share a row, which both bring from the same place: in whatever order copies
// land, it is the same. The tiles come again into the same place, once the copies before are awaited.
// task: relu
// expect: ok
#include <cuda_pipeline.h>
//@ launch relu<<<ceil_div(n, 1024), 32>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float s[16 * 32];
    int t = threadIdx.x;
    for (int part = 0; part < 2; part++) {
        int first = blockIdx.x * 1024 + part * 512 + t;
        for (int half = 0; half < 2; half++)
            for (int row = 0; row < 9 - half; row++) {
                int i = first + half * 256 + row * 32;
                if (i < n) __pipeline_memcpy_async(&s[half * 256 + row * 32 + t], &x[i], 4);
            }
        __pipeline_commit();
        __pipeline_wait_prior(0);
        for (int row = 0; row < 16; row++)
            if (first + row * 32 < n) y[first + row * 32] = fmaxf(s[row * 32 + t], 0.0f);
    }
}
