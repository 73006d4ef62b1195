// Flash attention in float32: a block holds 128 queries of a head and goes over the keys up to the last query's, 64
// at a time; scores and probabilities stay on chip, the running maximum and sum are corrected at each step. A
// thread has 8 queries by 4 keys, then by 4 elements of the head. Heads of at most 64 elements.
//@ launch attention<<<dim3(heads, ceil_div(seq, 128)), 256, 4 * (64 * 132 + 64 * 68 + 64 * 64 + 64 * 132)>>>(q, k, v, o, seq, dim)
enum { QUERIES = 128, KEYS = 64, DIM = 64, QUERY_STRIDE = 132, KEY_STRIDE = 68 };

__device__ float4 load_four(const float *x, int row, int rows, int e, int dim)
{
    const float *p = x + (long long)row * dim + e;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row >= rows) return v;
    if (dim % 4 == 0 && e < dim) return *reinterpret_cast<const float4 *>(p);
    if (e < dim) v.x = p[0];
    if (e + 1 < dim) v.y = p[1];
    if (e + 2 < dim) v.z = p[2];
    if (e + 3 < dim) v.w = p[3];
    return v;
}

__device__ void store_column(float *to, int stride, float4 v)
{
    to[0] = v.x;
    to[stride] = v.y;
    to[2 * stride] = v.z;
    to[3 * stride] = v.w;
}

// acc[a][b] += left[l][8 rows of this thread] * right[l][4 columns of this thread], over 64 l
__device__ __forceinline__ void multiply(float (&acc)[8][4], const float *left, const float *right, int right_stride)
{
#pragma unroll 8
    for (int l = 0; l < 64; l++) {
        float4 a0 = *reinterpret_cast<const float4 *>(left + l * QUERY_STRIDE), a1 = *reinterpret_cast<const float4 *>(left + l * QUERY_STRIDE + 4);
        float4 b4 = *reinterpret_cast<const float4 *>(right + l * right_stride);
        float a[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w}, b[4] = {b4.x, b4.y, b4.z, b4.w};
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) acc[i][j] += a[i] * b[j];
    }
}

extern "C" __global__ __launch_bounds__(256) void attention(const float *__restrict__ q, const float *__restrict__ k,
                                                            const float *__restrict__ v, float *__restrict__ o, int seq, int dim)
{
    extern __shared__ float4 memory[];
    float *qs = reinterpret_cast<float *>(memory), *ks = qs + DIM * QUERY_STRIDE, *vs = ks + DIM * KEY_STRIDE, *ps = vs + KEYS * DIM;
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    int start = (gridDim.y - 1 - blockIdx.y) * QUERIES; // the longest first
    long long head = (long long)blockIdx.x * seq * dim;
    const float scale = rsqrtf((float)dim) * 1.44269504088896341f, least = __int_as_float(0xff800000);
    q += head;
    k += head;
    v += head;
    o += head;
    for (int n = threadIdx.x; n < QUERIES * DIM / 4; n += 256) {
        int i = n % QUERIES, e = n / QUERIES * 4;
        float4 x = load_four(q, start + i, seq, e, dim);
        store_column(qs + e * QUERY_STRIDE + i, QUERY_STRIDE, make_float4(x.x * scale, x.y * scale, x.z * scale, x.w * scale));
    }
    float out[8][4] = {}, max[8], sum[8] = {};
    for (int i = 0; i < 8; i++) max[i] = least;
    int last = min(start + QUERIES, seq);
    for (int first = 0; first < last; first += KEYS) {
        __syncthreads(); // the last step's keys and values have been used
        for (int n = threadIdx.x; n < KEYS * DIM / 4; n += 256) {
            int j = n % KEYS, e = n / KEYS * 4;
            store_column(ks + e * KEY_STRIDE + j, KEY_STRIDE, load_four(k, first + j, seq, e, dim));
        }
        for (int n = threadIdx.x; n < KEYS * DIM / 4; n += 256)
            reinterpret_cast<float4 *>(vs)[n] = load_four(v, first + n / (DIM / 4), seq, n % (DIM / 4) * 4, dim);
        __syncthreads();
        float s[8][4] = {};
        multiply(s, qs + ty * 8, ks + tx * 4, KEY_STRIDE);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int row = start + ty * 8 + i, col = first + tx * 4;
            float most = max[i], part = 0.0f;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (col + j > row) s[i][j] = least;
                most = fmaxf(most, s[i][j]);
            }
            for (int lane = 8; lane > 0; lane /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, lane));
            float correction = exp2f(max[i] - most); // key 0 is every query's: most is finite from the first step on
#pragma unroll
            for (int j = 0; j < 4; j++) {
                s[i][j] = exp2f(s[i][j] - most);
                part += s[i][j];
                out[i][j] *= correction;
            }
            sum[i] = sum[i] * correction + part; // of this thread's keys
            max[i] = most;
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float4 *to = reinterpret_cast<float4 *>(ps + (tx * 4 + j) * QUERY_STRIDE + ty * 8);
            to[0] = make_float4(s[0][j], s[1][j], s[2][j], s[3][j]);
            to[1] = make_float4(s[4][j], s[5][j], s[6][j], s[7][j]);
        }
        __syncwarp(); // a warp reads the probabilities of its own queries only
        multiply(out, ps + ty * 8, vs + tx * 4, DIM);
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        for (int lane = 8; lane > 0; lane /= 2) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], lane);
        int row = start + ty * 8 + i;
        float factor = 1.0f / sum[i];
        if (row >= seq) continue;
        for (int j = 0; j < 4; j++)
            if (tx * 4 + j < dim) o[(long long)row * dim + tx * 4 + j] = out[i][j] * factor;
    }
}
