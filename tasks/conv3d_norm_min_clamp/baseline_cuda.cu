// conv3d, group_norm with one group, minimum with zero, clamp, launch for launch as they run eagerly: cuDNN's
// convolution, its bias added in place, the moments (a block a batch entry, Welford), the factors of every channel,
// the normalisation, minimum and clamp.
//@ buffer float conv[batch * cout * (d - 2) * (d - 2) * (d - 2)]
//@ buffer float mean[batch]
//@ buffer float inverse[batch]
//@ buffer float factor[batch * cout]
//@ buffer float offset[batch * cout]
//@ buffer float normed[batch * cout * (d - 2) * (d - 2) * (d - 2)]
//@ library cudnn.convolution(x, weight, conv, 0, 0, batch, cin, cout, 1, d, 3, d - 2, 1, 0, 1, d, 3, d - 2, 1, 0, 1, d, 3, d - 2, 1, 0, 1)
//@ launch add_bias<<<ceil_div(batch * cout * (d - 2) * (d - 2) * (d - 2), 256), 128>>>(conv, bias, batch * cout * (d - 2) * (d - 2) * (d - 2), (d - 2) * (d - 2) * (d - 2), cout)
//@ launch group_moments<<<batch, 512>>>(conv, mean, inverse, cout * (d - 2) * (d - 2) * (d - 2))
//@ launch channel_factors<<<ceil_div(batch * cout, 256), 256>>>(mean, inverse, gamma, beta, factor, offset, batch * cout, cout)
//@ launch normalize<<<ceil_div(batch * cout * (d - 2) * (d - 2) * (d - 2), 256), 128>>>(conv, factor, offset, normed, batch * cout * (d - 2) * (d - 2) * (d - 2), (d - 2) * (d - 2) * (d - 2))
//@ launch minimum<<<ceil_div(batch * cout * (d - 2) * (d - 2) * (d - 2), 1024), 128>>>(normed, conv, batch * cout * (d - 2) * (d - 2) * (d - 2))
//@ launch clamp<<<ceil_div(batch * cout * (d - 2) * (d - 2) * (d - 2), 1024), 128>>>(conv, y, batch * cout * (d - 2) * (d - 2) * (d - 2))

// A broadcast operand has no common stride: two separate accesses a thread.
extern "C" __global__ __launch_bounds__(128, 4) void add_bias(float *y, const float *bias, unsigned count, unsigned volume, unsigned cout)
{
    unsigned first = blockIdx.x * 256 + threadIdx.x;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        unsigned i = first + j * 128;
        if (i < count) y[i] = y[i] + bias[i / volume % cout];
    }
}

struct Moments {
    float mean, m2;
    long long count;
};

__device__ Moments merge(Moments a, Moments b)
{
    Moments r;
    r.count = a.count + b.count;
    float delta = b.mean - a.mean, share = r.count ? (float)b.count / (float)r.count : 0.0f;
    r.mean = a.mean + delta * share;
    r.m2 = a.m2 + b.m2 + delta * delta * (float)a.count * share;
    return r;
}

__device__ Moments warp_merge(Moments v)
{
    for (int lane = 16; lane > 0; lane /= 2) {
        Moments other;
        other.mean = __shfl_down_sync(0xffffffffu, v.mean, lane);
        other.m2 = __shfl_down_sync(0xffffffffu, v.m2, lane);
        other.count = __shfl_down_sync(0xffffffffu, v.count, lane);
        v = merge(v, other);
    }
    return v;
}

extern "C" __global__ void group_moments(const float *x, float *mean, float *inverse, long long count)
{
    __shared__ Moments part[16];
    const float *group = x + blockIdx.x * count;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Moments v = {0.0f, 0.0f, 0};
    for (long long i = threadIdx.x; i < count; i += blockDim.x) {
        float e = group[i], delta = e - v.mean;
        v.count++;
        v.mean += delta / (float)v.count;
        v.m2 += delta * (e - v.mean);
    }
    v = warp_merge(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    if (warp > 0) return;
    v = part[lane % 16];
    if (lane >= 16) v = {0.0f, 0.0f, 0};
    v = warp_merge(v);
    if (lane == 0) {
        mean[blockIdx.x] = v.mean;
        inverse[blockIdx.x] = rsqrtf(v.m2 / (float)v.count + 1e-5f);
    }
}

extern "C" __global__ void channel_factors(const float *mean, const float *inverse, const float *gamma, const float *beta, float *factor,
                                           float *offset, int count, int cout)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float f = inverse[i / cout] * gamma[i % cout];
    factor[i] = f;
    offset[i] = beta[i % cout] - f * mean[i / cout];
}

extern "C" __global__ __launch_bounds__(128, 4) void normalize(const float *x, const float *factor, const float *offset, float *y, unsigned count,
                                                               unsigned volume)
{
    unsigned first = blockIdx.x * 256 + threadIdx.x;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        unsigned i = first + j * 128;
        if (i < count) y[i] = factor[i / volume] * x[i] + offset[i / volume];
    }
}

__device__ float minimum_one(float x)
{
    return fminf(x, 0.0f);
}

__device__ float clamp_one(float x)
{
    return fminf(fmaxf(x, 0.0f), 1.0f);
}

// A block takes 1024 elements, eight a thread in two 16-byte accesses; the last block takes what is left.
template <float (*F)(float)> __device__ void each(const float *x, float *y, int n)
{
    int first = blockIdx.x * 1024;
    if (first + 1024 <= n) {
        float4 v[2];
#pragma unroll
        for (int j = 0; j < 2; j++) v[j] = reinterpret_cast<const float4 *>(x + first)[threadIdx.x + j * 128];
#pragma unroll
        for (int j = 0; j < 2; j++)
            reinterpret_cast<float4 *>(y + first)[threadIdx.x + j * 128] = make_float4(F(v[j].x), F(v[j].y), F(v[j].z), F(v[j].w));
    } else {
        for (int i = first + threadIdx.x; i < n; i += 128) y[i] = F(x[i]);
    }
}

extern "C" __global__ void minimum(const float *x, float *y, int n)
{
    each<minimum_one>(x, y, n);
}

extern "C" __global__ void clamp(const float *x, float *y, int n)
{
    each<clamp_one>(x, y, n);
}
