// Eager attention, launch for launch: s = q @ k.mT; s = s * scale; s = s + mask, in place; p = softmax(s); p @ v.
// The products are cuBLAS's; p takes the memory that s had before it was scaled.
//@ buffer float scores[heads * seq * seq]
//@ buffer float scaled[heads * seq * seq]
//@ library cublas.gemm(q, k, scores, 0, 0, heads, seq, seq, dim, 0, 1, dim, dim, seq, seq * dim, seq * dim, seq * seq, 1.0)
//@ launch scale<<<ceil_div(heads * seq * seq, 1024), 128>>>(scores, scaled, heads * seq * seq, dim)
//@ launch add_mask<<<ceil_div(heads * seq * seq, 1024), 128>>>(scaled, heads * seq * seq, seq, ((1 << 32) * ((1 << log2(2 * seq - 1)) - seq)) / seq + 1, log2(2 * seq - 1))
//@ launch softmax<<<heads * seq, 256>>>(scaled, scores, seq)
//@ library cublas.gemm(scores, v, o, 0, 0, heads, seq, dim, seq, 0, 0, seq, dim, dim, seq * seq, seq * dim, seq * dim, 1.0)

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

// The mask is known from the position and not read. Row and column come from one division a group of four elements, which
// lie in one row where rows are whole groups, by multiplying with `magic`.
__device__ float masked(float x, unsigned j, unsigned i)
{
    return x + (j <= i ? 0.0f : __int_as_float(0xff800000));
}

extern "C" __global__ void add_mask(float *x, unsigned count, unsigned seq, unsigned magic, unsigned shift)
{
    unsigned first = blockIdx.x * 1024;
    if (first + 1024 <= count && seq % 4 == 0) {
        float4 v[2];
#pragma unroll
        for (int n = 0; n < 2; n++) v[n] = reinterpret_cast<const float4 *>(x + first)[threadIdx.x + n * 128];
#pragma unroll
        for (int n = 0; n < 2; n++) {
            unsigned at = first + (threadIdx.x + n * 128) * 4, row = (__umulhi(at, magic) + at) >> shift, j = at - row * seq;
            unsigned i = row - ((__umulhi(row, magic) + row) >> shift) * seq;
            reinterpret_cast<float4 *>(x + first)[threadIdx.x + n * 128] =
                make_float4(masked(v[n].x, j, i), masked(v[n].y, j + 1, i), masked(v[n].z, j + 2, i), masked(v[n].w, j + 3, i));
        }
    } else {
        for (unsigned at = first + threadIdx.x; at < first + 1024 && at < count; at += 128) {
            unsigned row = (__umulhi(at, magic) + at) >> shift, j = at - row * seq;
            x[at] = masked(x[at], j, row - ((__umulhi(row, magic) + row) >> shift) * seq);
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

// A row of 256 threads that keep it in registers; one that does not fit, or is not made of whole groups of four, is read
// three times.
enum { THREADS = 256, FOURS = 4 };

__device__ void softmax_kept(const float4 *row, float4 *out, int fours, float *maxima, float *sums)
{
    float4 v[FOURS];
    float max = __int_as_float(0xff800000), sum = 0.0f;
#pragma unroll
    for (int n = 0; n < FOURS; n++) {
        int c = threadIdx.x + n * THREADS;
        if (c >= fours) break;
        v[n] = row[c];
    }
#pragma unroll
    for (int n = 0; n < FOURS; n++) {
        if (threadIdx.x + n * THREADS >= fours) break;
        max = fmaxf(fmaxf(fmaxf(max, v[n].x), fmaxf(v[n].y, v[n].z)), v[n].w);
    }
    max = reduce(max, __int_as_float(0xff800000), Max(), maxima);
#pragma unroll
    for (int n = 0; n < FOURS; n++) {
        if (threadIdx.x + n * THREADS >= fours) break;
        v[n] = make_float4(expf(v[n].x - max), expf(v[n].y - max), expf(v[n].z - max), expf(v[n].w - max));
        sum += v[n].x + v[n].y + v[n].z + v[n].w;
    }
    sum = reduce(sum, 0.0f, Sum(), sums);
#pragma unroll
    for (int n = 0; n < FOURS; n++) {
        int c = threadIdx.x + n * THREADS;
        if (c >= fours) break;
        out[c] = make_float4(v[n].x / sum, v[n].y / sum, v[n].z / sum, v[n].w / sum);
    }
}

extern "C" __global__ __launch_bounds__(THREADS) void softmax(const float *x, float *y, int cols)
{
    __shared__ float maxima[33], sums[33];
    const float *row = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    if (cols % 4 == 0 && cols <= THREADS * FOURS * 4) {
        softmax_kept(reinterpret_cast<const float4 *>(row), reinterpret_cast<float4 *>(out), cols / 4, maxima, sums);
        return;
    }
    float max = __int_as_float(0xff800000), sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += THREADS) max = fmaxf(max, row[c]);
    max = reduce(max, __int_as_float(0xff800000), Max(), maxima);
    for (int c = threadIdx.x; c < cols; c += THREADS) sum += expf(row[c] - max);
    sum = reduce(sum, 0.0f, Sum(), sums);
    for (int c = threadIdx.x; c < cols; c += THREADS) out[c] = expf(row[c] - max) / sum;
}
