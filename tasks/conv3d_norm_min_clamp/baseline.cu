// One kernel per operator: direct convolution with bias (one output a thread; a vendor library's is
// faster), moments of the group norm, normalisation, minimum, clamp.
//@ buffer float conv[batch * cout * (d - 2) * (d - 2) * (d - 2)]
//@ buffer float moments[batch * 2]
//@ buffer float normed[batch * cout * (d - 2) * (d - 2) * (d - 2)]
//@ buffer float least[batch * cout * (d - 2) * (d - 2) * (d - 2)]
//@ launch conv3d<<<dim3(ceil_div((d - 2) * (d - 2) * (d - 2), 128), cout, batch), 128>>>(x, weight, bias, conv, cin, cout, d)
//@ launch group_moments<<<batch, 256>>>(conv, moments, cout * (d - 2) * (d - 2) * (d - 2))
//@ launch normalize<<<ceil_div(batch * cout * (d - 2) * (d - 2) * (d - 2), 128), 128>>>(conv, moments, gamma, beta, normed, batch, cout, (d - 2) * (d - 2) * (d - 2))
//@ launch minimum<<<ceil_div(batch * cout * (d - 2) * (d - 2) * (d - 2), 512), 128>>>(normed, least, batch * cout * (d - 2) * (d - 2) * (d - 2))
//@ launch clamp<<<ceil_div(batch * cout * (d - 2) * (d - 2) * (d - 2), 512), 128>>>(least, y, batch * cout * (d - 2) * (d - 2) * (d - 2))
extern "C" __global__ void conv3d(const float *x, const float *weight, const float *bias, float *y, int cin, int cout, int d)
{
    int e = d - 2, p = blockIdx.x * blockDim.x + threadIdx.x, co = blockIdx.y, b = blockIdx.z;
    if (p >= e * e * e) return;
    int z = p / (e * e), r = p / e % e, w = p % e;
    float sum = bias[co];
    for (int c = 0; c < cin; c++) {
        const float *in = x + (((b * cin + c) * d + z) * d + r) * d + w;
        const float *k = weight + (co * cin + c) * 27;
        for (int dz = 0; dz < 3; dz++)
            for (int dy = 0; dy < 3; dy++)
                for (int dw = 0; dw < 3; dw++) sum += k[dz * 9 + dy * 3 + dw] * in[(dz * d + dy) * d + dw];
    }
    y[(b * cout + co) * e * e * e + p] = sum;
}

extern "C" __global__ void group_moments(const float *x, float *moments, int count)
{
    __shared__ float part[256];
    const float *group = x + blockIdx.x * count;
    float sum = 0.0f, mean;
    for (int pass = 0; pass < 2; pass++) {
        mean = pass ? part[0] / (float)count : 0.0f;
        __syncthreads();
        sum = 0.0f;
        for (int i = threadIdx.x; i < count; i += 256) sum += pass ? (group[i] - mean) * (group[i] - mean) : group[i];
        part[threadIdx.x] = sum;
        __syncthreads();
        for (int half = 128; half > 0; half /= 2) {
            if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
            __syncthreads();
        }
    }
    if (threadIdx.x == 0) {
        moments[blockIdx.x * 2] = mean;
        moments[blockIdx.x * 2 + 1] = rsqrtf(part[0] / (float)count + 1e-5f);
    }
}

extern "C" __global__ void normalize(const float *x, const float *moments, const float *gamma, const float *beta, float *y,
                                     int batch, int cout, int volume)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * cout * volume) return;
    int c = i / volume % cout, b = i / (cout * volume);
    y[i] = (x[i] - moments[b * 2]) * moments[b * 2 + 1] * gamma[c] + beta[c];
}

extern "C" __global__ void minimum(const float *x, float *y, int n)
{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i + 3 < n) {
        float4 v = *reinterpret_cast<const float4 *>(x + i);
        *reinterpret_cast<float4 *>(y + i) = make_float4(fminf(v.x, 0.0f), fminf(v.y, 0.0f), fminf(v.z, 0.0f), fminf(v.w, 0.0f));
    } else {
        for (; i < n; i++) y[i] = fminf(x[i], 0.0f);
    }
}

__device__ float clamp_one(float x)
{
    return fminf(fmaxf(x, 0.0f), 1.0f);
}

extern "C" __global__ void clamp(const float *x, float *y, int n)
{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i + 3 < n) {
        float4 v = *reinterpret_cast<const float4 *>(x + i);
        *reinterpret_cast<float4 *>(y + i) = make_float4(clamp_one(v.x), clamp_one(v.y), clamp_one(v.z), clamp_one(v.w));
    } else {
        for (; i < n; i++) y[i] = clamp_one(x[i]);
    }
}
