// One pass over memory, the row in registers: a block of 256 threads, up to four float4 a thread; the variance
// is that of the differences from the mean. Rows that are longer, or not a multiple of four, take the plain way.
//@ launch layernorm<<<rows, 256>>>(x, gamma, beta, y, cols)
__device__ float block_sum(float v, float *part)
{
    for (int n = 16; n > 0; n /= 2) v += __shfl_xor_sync(0xffffffffu, v, n);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int w = 1; w < 8; w++) v += part[w];
    return v;
}

__device__ void long_row(const float *row, const float *gamma, const float *beta, float *out, int cols, float *sums, float *squares)
{
    float sum = 0.0f, square = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) sum += row[c];
    float mean = block_sum(sum, sums) / (float)cols;
    for (int c = threadIdx.x; c < cols; c += 256) square += (row[c] - mean) * (row[c] - mean);
    float scale = rsqrtf(block_sum(square, squares) / (float)cols + 1e-5f);
    for (int c = threadIdx.x; c < cols; c += 256) out[c] = (row[c] - mean) * scale * gamma[c] + beta[c];
}

extern "C" __global__ __launch_bounds__(256) void layernorm(const float *__restrict__ x, const float *__restrict__ gamma,
                                                            const float *__restrict__ beta, float *__restrict__ y, int cols)
{
    __shared__ float sums[8], squares[8];
    const float *row = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    if (cols % 4 || cols > 4096) {
        long_row(row, gamma, beta, out, cols, sums, squares);
        return;
    }
    float4 v[4];
    float sum = 0.0f, square = 0.0f;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int c = threadIdx.x + j * 256;
        v[j] = c < cols / 4 ? reinterpret_cast<const float4 *>(row)[c] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
#pragma unroll
    for (int j = 0; j < 4; j++) sum += (v[j].x + v[j].y) + (v[j].z + v[j].w);
    float mean = block_sum(sum, sums) / (float)cols;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        v[j] = make_float4(v[j].x - mean, v[j].y - mean, v[j].z - mean, v[j].w - mean);
        if (threadIdx.x + j * 256 < cols / 4) square += (v[j].x * v[j].x + v[j].y * v[j].y) + (v[j].z * v[j].z + v[j].w * v[j].w);
    }
    float scale = rsqrtf(block_sum(square, squares) / (float)cols + 1e-5f);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int c = threadIdx.x + j * 256;
        if (c < cols / 4) {
            float4 g = reinterpret_cast<const float4 *>(gamma)[c], b = reinterpret_cast<const float4 *>(beta)[c];
            reinterpret_cast<float4 *>(out)[c] = make_float4(v[j].x * scale * g.x + b.x, v[j].y * scale * g.y + b.y,
                                                             v[j].z * scale * g.z + b.z, v[j].w * scale * g.w + b.w);
        }
    }
}
