// One pass over memory, the row in registers: a block of 256 threads, up to four float4 a thread. Rows that are
// longer, or not a multiple of four, take the plain way.
//@ launch softmax<<<rows, 256>>>(x, y, cols)
__device__ float block_max(float v, float *part)
{
    for (int n = 16; n > 0; n /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, n));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int w = 1; w < 8; w++) v = fmaxf(v, part[w]);
    return v;
}

__device__ float block_sum(float v, float *part)
{
    for (int n = 16; n > 0; n /= 2) v += __shfl_xor_sync(0xffffffffu, v, n);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int w = 1; w < 8; w++) v += part[w];
    return v;
}

__device__ void long_row(const float *row, float *out, int cols, float *maxima, float *sums)
{
    float max = __int_as_float(0xff800000), sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) max = fmaxf(max, row[c]);
    max = block_max(max, maxima);
    for (int c = threadIdx.x; c < cols; c += 256) sum += expf(row[c] - max);
    sum = block_sum(sum, sums);
    for (int c = threadIdx.x; c < cols; c += 256) out[c] = expf(row[c] - max) / sum;
}

extern "C" __global__ __launch_bounds__(256) void softmax(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    __shared__ float maxima[8], sums[8];
    const float *row = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    if (cols % 4 || cols > 4096) {
        long_row(row, out, cols, maxima, sums);
        return;
    }
    const float least = __int_as_float(0xff800000);
    float4 v[4];
    float max = least, sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int c = threadIdx.x + j * 256;
        v[j] = c < cols / 4 ? reinterpret_cast<const float4 *>(row)[c] : make_float4(least, least, least, least);
    }
#pragma unroll
    for (int j = 0; j < 4; j++) max = fmaxf(max, fmaxf(fmaxf(v[j].x, v[j].y), fmaxf(v[j].z, v[j].w)));
    max = block_max(max, maxima);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        v[j] = make_float4(expf(v[j].x - max), expf(v[j].y - max), expf(v[j].z - max), expf(v[j].w - max));
        sum += (v[j].x + v[j].y) + (v[j].z + v[j].w);
    }
    float factor = 1.0f / block_sum(sum, sums);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int c = threadIdx.x + j * 256;
        if (c < cols / 4)
            reinterpret_cast<float4 *>(out)[c] = make_float4(v[j].x * factor, v[j].y * factor, v[j].z * factor, v[j].w * factor);
    }
}
