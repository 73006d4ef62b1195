// One block a row: a pass for mean and variance, merged between threads by their counts, and a pass
// that writes. An eager framework launches this one kernel.
//@ launch layernorm<<<rows, 128>>>(x, gamma, beta, y, cols)
struct Moments {
    float count, mean, m2;
};

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
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    Moments v = {0.0f, 0.0f, 0.0f};
    for (int c = threadIdx.x; c < cols; c += 128) {
        float value = row[c], delta = value - v.mean;
        v.count += 1.0f;
        v.mean += delta / v.count;
        v.m2 += delta * (value - v.mean);
    }
    v = warp_merge(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = merge(merge(part[0], part[1]), merge(part[2], part[3]));
    float scale = rsqrtf(v.m2 / (float)cols + 1e-5f);
    for (int c = threadIdx.x; c < cols; c += 128) out[c] = (row[c] - v.mean) * scale * gamma[c] + beta[c];
}
