// Each of a few persistent blocks has a row of scratch in global memory that it uses for one row after another.
// task: layernorm
// expect: ok
//@ buffer float scratch[64 * cols]
//@ launch layernorm<<<64, 128>>>(x, gamma, beta, y, scratch, rows, cols)
__device__ float block_sum(float s)
{
    __shared__ float part[4];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    return part[0] + part[1] + part[2] + part[3];
}
extern "C" __global__ void layernorm(const float *x, const float *gamma, const float *beta, float *y, float *scratch, int rows, int cols)
{
    float *mine = scratch + (long long)blockIdx.x * cols;
    for (int r = blockIdx.x; r < rows; r += gridDim.x) {
        float s = 0, q = 0;
        for (int c = threadIdx.x; c < cols; c += 128) s += mine[cols - 1 - c] = x[(long long)r * cols + c];
        float mean = block_sum(s) / cols;
        for (int c = threadIdx.x; c < cols; c += 128) q += (mine[c] - mean) * (mine[c] - mean);
        float f = rsqrtf(block_sum(q) / cols + 1e-5f);
        for (int c = threadIdx.x; c < cols; c += 128)
            y[(long long)r * cols + c] = (mine[cols - 1 - c] - mean) * f * gamma[c] + beta[c];
        __syncthreads();
    }
}
