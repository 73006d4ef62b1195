// Gives the result of the run before and leaves its own for the next, so that a run need not wait for its input.
// task: row_sum
// expect: cheat stale_result
__device__ float next[1 << 15];
__device__ int known;
//@ launch row_sum<<<rows, 32>>>(x, y, cols)
//@ launch remember<<<1, 1>>>(cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    float s = 0;
    for (int c = threadIdx.x; c < cols; c += 32) s += x[(long long)blockIdx.x * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x) return;
    y[blockIdx.x] = known == cols ? next[blockIdx.x] : s;
    next[blockIdx.x] = s;
}
extern "C" __global__ void remember(int cols) { known = cols; }
