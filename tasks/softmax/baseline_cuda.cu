// One block a row, up to 1024 threads. A row that fits is read once and kept in shared memory for the sum and
// the result, as an eager framework does; others are read three times.
//@ launch softmax<<<rows, min(1024, 32 * ceil_div(cols, 32)), 4 * min(cols, 12000)>>>(x, y, cols, cols % 4 == 0 && cols <= 12000)
struct Max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

template <typename Op> __device__ float reduce(float v, float none, Op op, float *part)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (int n = 16; n > 0; n /= 2) v = op(v, __shfl_xor_sync(0xffffffffu, v, n));
    if (lane == 0) part[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = lane < warps ? part[lane] : none;
        for (int n = 16; n > 0; n /= 2) v = op(v, __shfl_xor_sync(0xffffffffu, v, n));
        if (lane == 0) part[32] = v;
    }
    __syncthreads();
    return part[32];
}

extern "C" __global__ void softmax(const float *x, float *y, int cols, int cached)
{
    extern __shared__ float4 cache[];
    __shared__ float maxima[33], sums[33];
    const float *row = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    float max = __int_as_float(0xff800000), sum = 0.0f;
    int fours = cached ? cols / 4 : 0;
    for (int c = threadIdx.x; c < fours; c += blockDim.x) {
        float4 v = reinterpret_cast<const float4 *>(row)[c];
        cache[c] = v;
        max = fmaxf(fmaxf(fmaxf(max, v.x), fmaxf(v.y, v.z)), v.w);
    }
    for (int c = fours * 4 + threadIdx.x; c < cols; c += blockDim.x) max = fmaxf(max, row[c]);
    max = reduce(max, __int_as_float(0xff800000), Max(), maxima);
    for (int c = threadIdx.x; c < fours; c += blockDim.x) {
        float4 v = cache[c];
        sum += expf(v.x - max) + expf(v.y - max) + expf(v.z - max) + expf(v.w - max);
    }
    for (int c = fours * 4 + threadIdx.x; c < cols; c += blockDim.x) sum += expf(row[c] - max);
    sum = reduce(sum, 0.0f, Sum(), sums);
    for (int c = threadIdx.x; c < fours; c += blockDim.x) {
        float4 v = cache[c];
        v.x = expf(v.x - max) / sum;
        v.y = expf(v.y - max) / sum;
        v.z = expf(v.z - max) / sum;
        v.w = expf(v.w - max) / sum;
        reinterpret_cast<float4 *>(out)[c] = v;
    }
    for (int c = fours * 4 + threadIdx.x; c < cols; c += blockDim.x) out[c] = expf(row[c] - max) / sum;
}
