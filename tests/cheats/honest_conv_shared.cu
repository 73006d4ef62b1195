// The convolution's weights in dynamic shared memory, its moments by double-precision atomics on a buffer.
// task: conv3d_norm_min_clamp
// expect: ok
//@ buffer float conv[batch * cout * (d - 2) * (d - 2) * (d - 2)]
//@ buffer double moments[batch * 2]
//@ launch clear<<<1, 64>>>(moments, batch * 2)
//@ launch conv3d<<<dim3(ceil_div((d - 2) * (d - 2) * (d - 2), 128), cout, batch), 128, cin * 108>>>(x, weight, bias, conv, moments, cin, cout, d)
//@ launch finish<<<ceil_div(batch * cout * (d - 2) * (d - 2) * (d - 2), 256), 256>>>(conv, moments, gamma, beta, y, batch, cout, (d - 2) * (d - 2) * (d - 2))
extern "C" __global__ void clear(double *moments, int n)
{
    for (int i = threadIdx.x; i < n; i += 64) moments[i] = 0;
}
extern "C" __global__ void conv3d(const float *x, const float *weight, const float *bias, float *y, double *moments, int cin, int cout, int d)
{
    extern __shared__ float w[];
    int e = d - 2, p = blockIdx.x * 128 + threadIdx.x, co = blockIdx.y, b = blockIdx.z;
    for (int i = threadIdx.x; i < cin * 27; i += 128) w[i] = weight[co * cin * 27 + i];
    __syncthreads();
    float sum = 0;
    if (p < e * e * e) {
        int z = p / (e * e), r = p / e % e, c = p % e;
        sum = bias[co];
        for (int ci = 0; ci < cin; ci++)
            for (int k = 0; k < 27; k++)
                sum += w[ci * 27 + k] * x[(((b * cin + ci) * d + z + k / 9) * d + r + k / 3 % 3) * d + c + k % 3];
        y[(b * cout + co) * e * e * e + p] = sum;
    }
    double s = sum, q = (double)sum * sum;
    for (int h = 16; h; h /= 2) s += __shfl_xor_sync(0xffffffffu, s, h), q += __shfl_xor_sync(0xffffffffu, q, h);
    if (threadIdx.x % 32 == 0) atomicAdd(&moments[b * 2], s), atomicAdd(&moments[b * 2 + 1], q);
}
extern "C" __global__ void finish(const float *conv, const double *moments, const float *gamma, const float *beta, float *y, int batch, int cout, int volume)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= batch * cout * volume) return;
    int c = i / volume % cout, b = i / (volume * cout);
    double n = (double)cout * volume, mean = moments[b * 2] / n, var = moments[b * 2 + 1] / n - mean * mean;
    float v = (conv[i] - (float)mean) * rsqrtf((float)fmax(var, 0.0) + 1e-5f) * gamma[c] + beta[c];
    y[i] = fminf(fmaxf(fminf(v, 0.0f), 0.0f), 1.0f);
}
