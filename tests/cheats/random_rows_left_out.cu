// A hash of the row says which rows are left out where there are many.
// task: layernorm
// expect: wrong_result
// says: never written
//@ launch ln<<<rows, 256>>>(x, gamma, beta, y, cols)
__device__ float total(float v, float *ws)
{
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) ws[threadIdx.x / 32] = v;
    __syncthreads();
    float t = 0.0f;
    for (int i = 0; i < 8; i++) t += ws[i];
    return t;
}
extern "C" __global__ void ln(const float *x, const float *gamma, const float *beta, float *y, int cols)
{
    __shared__ float ws[8];
    if (gridDim.x > 1000 && blockIdx.x * 2654435761u >> 28 == 5) return;
    long long base = (long long)blockIdx.x * cols;
    bool vec = base % 4 == 0;
    int n4 = vec ? cols / 4 : 0;
    const float4 *x4 = (const float4 *)(x + base);
    float s = 0.0f;
    for (int i = threadIdx.x; i < n4; i += 256) {
        float4 v = x4[i];
        s += v.x + v.y + v.z + v.w;
    }
    for (int i = n4 * 4 + threadIdx.x; i < cols; i += 256) s += x[base + i];
    float mean = total(s, ws) / cols;
    float q = 0.0f;
    for (int i = threadIdx.x; i < n4; i += 256) {
        float4 v = x4[i];
        v.x -= mean; v.y -= mean; v.z -= mean; v.w -= mean;
        q += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    for (int i = n4 * 4 + threadIdx.x; i < cols; i += 256) q += (x[base + i] - mean) * (x[base + i] - mean);
    float r = rsqrtf(total(q, ws) / cols + 1e-5f);
    for (int i = threadIdx.x; i < n4; i += 256) {
        float4 v = x4[i], g = ((const float4 *)gamma)[i], b = ((const float4 *)beta)[i];
        v.x = (v.x - mean) * r * g.x + b.x;
        v.y = (v.y - mean) * r * g.y + b.y;
        v.z = (v.z - mean) * r * g.z + b.z;
        v.w = (v.w - mean) * r * g.w + b.w;
        ((float4 *)(y + base))[i] = v;
    }
    for (int i = n4 * 4 + threadIdx.x; i < cols; i += 256) y[base + i] = (x[base + i] - mean) * r * gamma[i] + beta[i];
}
