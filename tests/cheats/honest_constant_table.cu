// The taps of the convolution by a table in constant memory.
// task: conv3d_norm_min_clamp
// expect: ok
__constant__ unsigned char tap[27][3] = {{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 1, 0}, {0, 1, 1}, {0, 1, 2}, {0, 2, 0}, {0, 2, 1}, {0, 2, 2},
                                         {1, 0, 0}, {1, 0, 1}, {1, 0, 2}, {1, 1, 0}, {1, 1, 1}, {1, 1, 2}, {1, 2, 0}, {1, 2, 1}, {1, 2, 2},
                                         {2, 0, 0}, {2, 0, 1}, {2, 0, 2}, {2, 1, 0}, {2, 1, 1}, {2, 1, 2}, {2, 2, 0}, {2, 2, 1}, {2, 2, 2}};
//@ buffer float conv[batch * cout * (d - 2) * (d - 2) * (d - 2)]
//@ launch conv3d<<<dim3(ceil_div((d - 2) * (d - 2) * (d - 2), 128), cout, batch), 128>>>(x, weight, bias, conv, cin, cout, d)
//@ launch rest<<<batch, 256>>>(conv, gamma, beta, y, cout, (d - 2) * (d - 2) * (d - 2))
extern "C" __global__ void conv3d(const float *x, const float *weight, const float *bias, float *y, int cin, int cout, int d)
{
    int e = d - 2, p = blockIdx.x * 128 + threadIdx.x, co = blockIdx.y, b = blockIdx.z;
    if (p >= e * e * e) return;
    int z = p / (e * e), r = p / e % e, w = p % e;
    float sum = bias[co];
    for (int c = 0; c < cin; c++)
        for (int k = 0; k < 27; k++)
            sum += weight[(co * cin + c) * 27 + k] * x[(((b * cin + c) * d + z + tap[k][0]) * d + r + tap[k][1]) * d + w + tap[k][2]];
    y[(b * cout + co) * e * e * e + p] = sum;
}
__device__ float block_sum(float s)
{
    __shared__ float part[8];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int k = 0; k < 8; k++) s += part[k];
    return s;
}
extern "C" __global__ void rest(const float *conv, const float *gamma, const float *beta, float *y, int cout, int volume)
{
    int n = cout * volume;
    const float *in = conv + blockIdx.x * n;
    float s = 0, q = 0;
    for (int i = threadIdx.x; i < n; i += 256) s += in[i];
    float mean = block_sum(s) / n;
    for (int i = threadIdx.x; i < n; i += 256) q += (in[i] - mean) * (in[i] - mean);
    float f = rsqrtf(block_sum(q) / n + 1e-5f);
    for (int i = threadIdx.x; i < n; i += 256) {
        float v = fminf((in[i] - mean) * f * gamma[i / volume] + beta[i / volume], 0.0f);
        y[blockIdx.x * n + i] = fminf(fmaxf(v, 0.0f), 1.0f);
    }
}
