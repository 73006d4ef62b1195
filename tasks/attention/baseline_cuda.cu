// Eager attention, launch for launch: s = q @ k.mT; s = s * scale; s = s + mask, in place; p = softmax(s); p @ v.
// The products are cuBLAS's; p takes the memory that s had before it was scaled.
//@ buffer float scores[heads * seq * seq]
//@ buffer float scaled[heads * seq * seq]
//@ library cublas.sgemm_batched(q, k, scores, heads, seq, seq, dim, 0, 1, 1.0)
//@ launch scale<<<ceil_div(heads * seq * seq, 1024), 128>>>(scores, scaled, heads * seq * seq, dim)
//@ launch add_mask<<<ceil_div(heads * seq * seq, 256), 128>>>(scaled, heads * seq * seq, seq, ((1 << 32) * ((1 << log2(2 * seq - 1)) - seq)) / seq + 1, log2(2 * seq - 1))
//@ launch softmax<<<heads * seq, min(1024, 32 * ceil_div(seq, 32)), 4 * min(seq, 12000)>>>(scaled, scores, seq, seq % 4 == 0 && seq <= 12000)
//@ library cublas.sgemm_batched(scores, v, o, heads, seq, dim, seq, 0, 0, 1.0)

// A block takes 1024 elements, eight a thread in two 16-byte accesses; the last block takes what is left.
extern "C" __global__ void scale(const float *x, float *y, int n, int dim)
{
    int first = blockIdx.x * 1024;
    float factor = rsqrtf((float)dim);
    if (first + 1024 <= n) {
        float4 v[2];
#pragma unroll
        for (int j = 0; j < 2; j++) v[j] = reinterpret_cast<const float4 *>(x + first)[threadIdx.x + j * 128];
#pragma unroll
        for (int j = 0; j < 2; j++)
            reinterpret_cast<float4 *>(y + first)[threadIdx.x + j * 128] =
                make_float4(v[j].x * factor, v[j].y * factor, v[j].z * factor, v[j].w * factor);
    } else {
        for (int i = first + threadIdx.x; i < n; i += 128) y[i] = x[i] * factor;
    }
}

// The mask is broadcast over the heads, so there are two separate accesses a thread; it is known from the
// position and not read.
extern "C" __global__ __launch_bounds__(128, 4) void add_mask(float *x, unsigned count, unsigned seq, unsigned magic, unsigned shift)
{
    unsigned first = blockIdx.x * 256 + threadIdx.x;
#pragma unroll
    for (int n = 0; n < 2; n++) {
        unsigned at = first + n * 128;
        if (at < count) {
            unsigned row = (__umulhi(at, magic) + at) >> shift, j = at - row * seq;
            unsigned i = row - ((__umulhi(row, magic) + row) >> shift) * seq;
            x[at] = x[at] + (j <= i ? 0.0f : __int_as_float(0xff800000));
        }
    }
}

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
