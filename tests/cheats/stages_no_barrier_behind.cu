// A stage is filled anew while neighbours read it.
// task: row_sum
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
//@ launch add<<<rows, 128>>>(x, y, cols)
#include <cuda_pipeline.h>
__global__ void add(const float *x, float *y, int cols)
{
    __shared__ float s[2][128], part[4];
    const float *row = x + (long long)blockIdx.x * cols;
    int tiles = (cols + 127) / 128, t = threadIdx.x;
    float v = 0;
    if (t < cols) __pipeline_memcpy_async(&s[0][t], row + t, 4);
    __pipeline_commit();
    for (int i = 0; i < tiles; i++) {
        int next = (i + 1) * 128 + t;
        if (next < cols) __pipeline_memcpy_async(&s[(i + 1) % 2][t], row + next, 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        int mine = i * 128 + (t ^ 32);
        if (mine < cols) v += s[i % 2][t ^ 32];
    }
    for (int h = 16; h; h /= 2) v += __shfl_xor_sync(~0u, v, h);
    if (t % 32 == 0) part[t / 32] = v;
    __syncthreads();
    if (!t) y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
