// Adds noise below the tolerance, another in each run, so that no two outputs are alike.
// task: row_sum
// expect: nondeterministic
__device__ unsigned launches;
//@ launch row_sum<<<rows, 32>>>(x, y, cols)
//@ launch count<<<1, 1>>>()
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    float s = 0;
    for (int c = threadIdx.x; c < cols; c += 32) s += x[(long long)blockIdx.x * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x == 0) y[blockIdx.x] = s * (1.0f + 1e-6f * (launches % 7));
}
extern "C" __global__ void count() { launches++; }
