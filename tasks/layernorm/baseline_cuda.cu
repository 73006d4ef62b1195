// The kernel that an eager framework launches: a block of four warps a row; every thread's mean and variance
// advance element by element (Welford), read sixteen bytes at a time where the row's alignment allows it, and are
// merged by their counts; a second pass over the row writes.
//@ launch layernorm<<<rows, 128>>>(x, gamma, beta, y, cols)
struct Moments {
    float count, mean, m2;
};

__device__ Moments advance(Moments a, float v)
{
    Moments r;
    float delta = v - a.mean;
    r.count = a.count + 1.0f;
    r.mean = a.mean + delta * (1.0f / r.count);
    r.m2 = a.m2 + delta * (v - r.mean);
    return r;
}

__device__ Moments merge(Moments a, Moments b)
{
    Moments r;
    r.count = a.count + b.count;
    float delta = b.mean - a.mean, share = r.count > 0.0f ? b.count / r.count : 0.0f;
    r.mean = a.mean + delta * share;
    r.m2 = a.m2 + b.m2 + delta * delta * a.count * share;
    return r;
}

__device__ Moments warp_merge(Moments v)
{
    for (int lane = 16; lane > 0; lane /= 2) {
        Moments other;
        other.count = __shfl_down_sync(0xffffffffu, v.count, lane);
        other.mean = __shfl_down_sync(0xffffffffu, v.mean, lane);
        other.m2 = __shfl_down_sync(0xffffffffu, v.m2, lane);
        v = merge(v, other);
    }
    return v;
}

extern "C" __global__ void layernorm(const float *x, const float *gamma, const float *beta, float *y, int cols)
{
    __shared__ Moments part[4];
    const float *row = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, fours = cols % 4 == 0 ? cols / 4 : 0;

    Moments v = {0.0f, 0.0f, 0.0f};
    for (int c = threadIdx.x; c < fours; c += 128) {
        float4 e = reinterpret_cast<const float4 *>(row)[c];
        v = advance(advance(advance(advance(v, e.x), e.y), e.z), e.w);
    }
    for (int c = fours * 4 + threadIdx.x; c < cols; c += 128) v = advance(v, row[c]);
    v = warp_merge(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = merge(merge(part[0], part[1]), merge(part[2], part[3]));
    float mean = v.mean, scale = rsqrtf(v.m2 / (float)cols + 1e-5f);
    for (int c = threadIdx.x; c < fours; c += 128) {
        float4 e = reinterpret_cast<const float4 *>(row)[c];
        float4 g = reinterpret_cast<const float4 *>(gamma)[c], b = reinterpret_cast<const float4 *>(beta)[c];
        e.x = (e.x - mean) * scale * g.x + b.x;
        e.y = (e.y - mean) * scale * g.y + b.y;
        e.z = (e.z - mean) * scale * g.z + b.z;
        e.w = (e.w - mean) * scale * g.w + b.w;
        reinterpret_cast<float4 *>(out)[c] = e;
    }
    for (int c = fours * 4 + threadIdx.x; c < cols; c += 128) out[c] = (row[c] - mean) * scale * gamma[c] + beta[c];
}
