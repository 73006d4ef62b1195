// One pass over memory, the row in registers: a block of 256 threads, up to four float4 a thread. Rows that are
// longer, or not a multiple of four, take the plain way.
//@ launch rmsnorm<<<rows, 256>>>(x, residual, weight, y, cols)
__device__ float block_sum(float v, float *part)
{
    for (int n = 16; n > 0; n /= 2) v += __shfl_xor_sync(0xffffffffu, v, n);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int w = 1; w < 8; w++) v += part[w];
    return v;
}

extern "C" __global__ __launch_bounds__(256) void rmsnorm(const float *__restrict__ x, const float *__restrict__ residual,
                                                          const float *__restrict__ weight, float *__restrict__ y, int cols)
{
    __shared__ float part[8];
    long long start = (long long)blockIdx.x * cols;
    float squares = 0.0f;
    if (cols % 4 || cols > 4096) {
        for (int c = threadIdx.x; c < cols; c += 256) {
            float h = x[start + c] + residual[start + c];
            squares += h * h;
        }
        float factor = rsqrtf(block_sum(squares, part) / (float)cols + 1e-6f);
        for (int c = threadIdx.x; c < cols; c += 256) y[start + c] = (x[start + c] + residual[start + c]) * factor * weight[c];
        return;
    }
    float4 h[4], r[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int c = threadIdx.x + j * 256;
        h[j] = r[j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (c < cols / 4) {
            h[j] = reinterpret_cast<const float4 *>(x + start)[c];
            r[j] = reinterpret_cast<const float4 *>(residual + start)[c];
        }
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
        h[j] = make_float4(h[j].x + r[j].x, h[j].y + r[j].y, h[j].z + r[j].z, h[j].w + r[j].w);
        squares += (h[j].x * h[j].x + h[j].y * h[j].y) + (h[j].z * h[j].z + h[j].w * h[j].w);
    }
    float factor = rsqrtf(block_sum(squares, part) / (float)cols + 1e-6f);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int c = threadIdx.x + j * 256;
        if (c < cols / 4) {
            float4 w = reinterpret_cast<const float4 *>(weight)[c];
            reinterpret_cast<float4 *>(y + start)[c] =
                make_float4(h[j].x * factor * w.x, h[j].y * factor * w.y, h[j].z * factor * w.z, h[j].w * factor * w.w);
        }
    }
}
