// Three stages of cp.async; near the end no group is committed any more, and the wait for all but one leaves the last tile open.
// task: row_sum
// expect sim: out_of_bounds
// expect cuda: wrong_result | nondeterministic
// says sim: it is not awaited
#include <cuda_pipeline.h>
//@ launch row_sum<<<rows, 64>>>(x, y, cols)
__global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ float stage[3][64];
    __shared__ float sums[64];
    const float *row = x + (long long)blockIdx.x * cols;
    int t = threadIdx.x, tiles = (cols + 63) / 64;
    float s = 0.0f;
    auto load = [&](int k) {
        int c = k * 64 + t;
        if (c < cols) __pipeline_memcpy_async(&stage[k % 3][t], row + c, 4);
        else stage[k % 3][t] = 0.0f;
        __pipeline_commit();
    };
    load(0);
    if (tiles > 1) load(1);
    for (int k = 0; k < tiles; k++) {
        __pipeline_wait_prior(1);
        __syncthreads();
        s += stage[k % 3][(t + 1) % 64];
        if (k + 2 < tiles) load(k + 2);
    }
    sums[t] = s;
    __syncthreads();
    for (int h = 32; h > 0; h >>= 1) {
        if (t < h) sums[t] += sums[t + h];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = sums[0];
}
