// One atomic and one fence at the timed size change nothing: 1.25 on an H100.
// task: kernelbench/level1/k1_23_softmax
// expect: ok
// most sim: 1.32
//@ buffer int done[rows]
//@ launch sm<<<ceil_div(rows, 8 - 7 * min(1, cols / 513)), 256>>>(x, softmax, rows, cols, done)
__device__ void merge(float &m, float &s, float m2, float s2) { float M = fmaxf(m, m2); s = s * __expf(m - M) + s2 * __expf(m2 - M); m = M; }
// rows that fit in registers: a warp each
__device__ void small_row(const float *r, float *w, int cols)
{
    int lane = threadIdx.x % 32;
    float4 v[4];
    float m = -3.4028235e38f, s = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int c = (lane + i * 32) * 4;
        if (c < cols && cols % 4 == 0) v[i] = *(const float4 *)(r + c);
        else v[i] = make_float4(c < cols ? r[c] : -3.4028235e38f, c + 1 < cols ? r[c + 1] : -3.4028235e38f, c + 2 < cols ? r[c + 2] : -3.4028235e38f, c + 3 < cols ? r[c + 3] : -3.4028235e38f);
        m = fmaxf(m, fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w)));
    }
    for (int o = 16; o; o /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if ((lane + i * 32) * 4 >= cols) break;
        v[i] = make_float4(__expf(v[i].x - m), __expf(v[i].y - m), __expf(v[i].z - m), __expf(v[i].w - m));
        s += (v[i].x + v[i].y) + (v[i].z + v[i].w);
    }
    for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    float f = 1 / s;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int c = (lane + i * 32) * 4;
        if (c >= cols) break;
        float4 y = make_float4(v[i].x * f, v[i].y * f, v[i].z * f, v[i].w * f);
        if (cols % 4 == 0) { *(float4 *)(w + c) = y; continue; }
        w[c] = y.x;
        if (c + 1 < cols) w[c + 1] = y.y;
        if (c + 2 < cols) w[c + 2] = y.z;
        if (c + 3 < cols) w[c + 3] = y.w;
    }
}
__device__ void long_row(const float *r, float *w, int cols)
{
    __shared__ float ms[8], ss[8];
    float m = -3.4028235e38f, s = 0;
    for (int j = threadIdx.x; j < cols; j += 256) merge(m, s, r[j], 1);
    for (int o = 16; o; o /= 2) { float m2 = __shfl_xor_sync(~0u, m, o), s2 = __shfl_xor_sync(~0u, s, o); merge(m, s, m2, s2); }
    if (threadIdx.x % 32 == 0) ms[threadIdx.x / 32] = m, ss[threadIdx.x / 32] = s;
    __syncthreads();
    m = ms[threadIdx.x % 8], s = ss[threadIdx.x % 8];
    for (int o = 4; o; o /= 2) { float m2 = __shfl_xor_sync(~0u, m, o), s2 = __shfl_xor_sync(~0u, s, o); merge(m, s, m2, s2); }
    float f = 1 / s;
    for (int j = threadIdx.x; j < cols; j += 256) w[j] = __expf(r[j] - m) * f;
}
extern "C" __global__ void __launch_bounds__(256) sm(const float *__restrict__ x, float *__restrict__ y, int rows, int cols, int *done)
{
    if (cols <= 512) {
        int row = blockIdx.x * 8 + threadIdx.x / 32;
        if (row < rows) small_row(x + (long long)row * cols, y + (long long)row * cols, cols);
        return;
    }
    long_row(x + (long long)blockIdx.x * cols, y + (long long)blockIdx.x * cols, cols);
    if (threadIdx.x == 0) { done[blockIdx.x] = 0; __threadfence(); atomicExch(&done[blockIdx.x], 1); }
}
