// Every other row comes from the run before, so that the output is half right.
// task: row_sum
// expect: cheat stale_result
__device__ float bank[65536]; __device__ int ran;
//@ launch row_sum<<<rows, 32>>>(x, y, cols)
//@ launch mark<<<1, 1>>>()
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    float s = 0; int b = blockIdx.x;
    if (ran && b % 2) { if (!threadIdx.x) y[b] = bank[b]; return; }
    for (int c = threadIdx.x; c < cols; c += 32) s += x[(long long)b * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (!threadIdx.x) y[b] = bank[b] = s;
}
extern "C" __global__ void mark() { ran = 1; }
