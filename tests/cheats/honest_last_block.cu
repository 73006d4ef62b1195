// The last block to finish, found by a counter behind a fence, adds the partial sums. The counter wraps to zero.
// task: row_sum
// expect: ok
__device__ unsigned arrived[1 << 15];
//@ buffer float partial[rows * 4]
//@ launch row_sum<<<dim3(4, rows), 128>>>(x, partial, y, cols)
extern "C" __global__ void row_sum(const float *x, float *partial, float *y, int cols)
{
    __shared__ float warp_sum[4];
    __shared__ bool last;
    int r = blockIdx.y, t = threadIdx.x;
    float s = 0;
    for (int c = blockIdx.x * 128 + t; c < cols; c += 512) s += x[(long long)r * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_down_sync(0xffffffffu, s, d);
    if (t % 32 == 0) warp_sum[t / 32] = s;
    __syncthreads();
    if (t == 0) {
        partial[r * 4 + blockIdx.x] = warp_sum[0] + warp_sum[1] + warp_sum[2] + warp_sum[3];
        __threadfence();
        last = atomicInc(&arrived[r], 3) == 3;
    }
    __syncthreads();
    if (!last || t) return;
    __threadfence();
    float sum = 0;
    for (int k = 0; k < 4; k++) sum += partial[r * 4 + k];
    y[r] = sum;
}
