// Two passes in one loop, the second with the first's mean: the compiler loads the mean before it asks which pass it is.
// task: layernorm
// expect: ok
//@ launch layernorm<<<rows, 128>>>(x, gamma, beta, y, cols)
extern "C" __global__ void layernorm(const float *x, const float *gamma, const float *beta, float *y, int cols)
{
    __shared__ float part[4], total[2];
    const float *row = x + (long long)blockIdx.x * cols;
    for (int pass = 0; pass < 2; pass++) {
        float s = 0;
        for (int c = threadIdx.x; c < cols; c += 128) s += pass ? (row[c] - total[0]) * (row[c] - total[0]) : row[c];
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
        __syncthreads();
        if (threadIdx.x == 0) total[pass] = (part[0] + part[1] + part[2] + part[3]) / cols;
        __syncthreads();
    }
    float f = rsqrtf(total[1] + 1e-5f);
    for (int c = threadIdx.x; c < cols; c += 128) y[(long long)blockIdx.x * cols + c] = (row[c] - total[0]) * f * gamma[c] + beta[c];
}
