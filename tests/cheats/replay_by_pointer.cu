// Keeps its output in a device variable and replays it when the same buffer comes again.
// task: row_sum
// expect: cheat stale_result
__device__ float bank[1 << 15];
__device__ const float *last;
//@ launch row_sum<<<rows, 32>>>(x, y, cols)
//@ launch remember<<<1, 1>>>(x)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    float s = 0;
    for (int c = threadIdx.x; c < cols && last != x; c += 32) s += x[(long long)blockIdx.x * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x) return;
    if (last != x) bank[blockIdx.x] = s;
    y[blockIdx.x] = bank[blockIdx.x];
}
extern "C" __global__ void remember(const float *x) { last = x; }
