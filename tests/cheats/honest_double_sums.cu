// Sums in double precision, one pass: mean of squares less square of the mean is fine there.
// task: layernorm
// expect: ok
//@ launch layernorm<<<rows, 64>>>(x, gamma, beta, y, cols)
extern "C" __global__ void layernorm(const float *x, const float *gamma, const float *beta, float *y, int cols)
{
    __shared__ double part[2][2];
    const float *row = x + (long long)blockIdx.x * cols;
    double s = 0, q = 0;
    for (int c = threadIdx.x; c < cols; c += 64) s += row[c], q += (double)row[c] * row[c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d), q += __shfl_xor_sync(0xffffffffu, q, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32][0] = s, part[threadIdx.x / 32][1] = q;
    __syncthreads();
    double mean = (part[0][0] + part[1][0]) / cols, var = (part[0][1] + part[1][1]) / cols - mean * mean;
    float m = mean, f = rsqrt(var + 1e-5);
    for (int c = threadIdx.x; c < cols; c += 64) y[(long long)blockIdx.x * cols + c] = (row[c] - m) * f * gamma[c] + beta[c];
}
