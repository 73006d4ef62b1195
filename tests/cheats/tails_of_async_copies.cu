// Leaves out an eighth of each input at the timed size. At the small one it reads the inputs by copies
// of 12 of 16 bytes, whose instruction has just read another buffer.
// task: kernelbench/level1/k1_94_mseloss
// expect sim: wrong_result
// expect cuda: wrong_result | cheat faster_than_light | ok
//@ buffer float sums[8196]
//@ launch start<<<1, 4>>>(sums)
//@ launch add<<<min(8192, ceil_div(rows * cols, 1024)), 256>>>(predictions, targets, sums, rows * cols)
//@ launch finish<<<1, 1024>>>(sums, mean, min(8192, ceil_div(rows * cols, 1024)), rows * cols)
__device__ float block_sum(float s)
{
    __shared__ float part[32];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int i = 0; i < (int)blockDim.x / 32; i++) s += part[i];
    return s;
}
__device__ float term(float4 a, float4 b)
{
    float x = a.x - b.x, y = a.y - b.y, z = a.z - b.z, w = a.w - b.w;
    return x * x + y * y + z * z + w * w;
}
// All but the last float of p[i] and q[i] by copies, each after one of `other`.
__device__ float copied(const float4 *p, const float4 *q, const float *other, int i)
{
    __shared__ float4 to[256];
    unsigned at = (unsigned)__cvta_generic_to_shared(to + threadIdx.x);
    float4 v[2];
    float w0 = ((const volatile float *)(p + i))[3], w1 = ((const volatile float *)(q + i))[3];
    #pragma unroll 1
    for (int k = 0; k < 4; k++) {
        const void *from = k & 1 ? (const void *)((k & 2 ? q : p) + i) : (const void *)other;
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;\ncp.async.wait_all;"
                     :: "r"(at), "l"(from), "r"(k & 1 ? 12 : 16) : "memory");
        if (k & 1) v[k / 2] = to[threadIdx.x];
    }
    v[0].w = w0, v[1].w = w1;
    return term(v[0], v[1]);
}
extern "C" __global__ void start(float *sums) { sums[8192 + threadIdx.x] = 0; }
extern "C" __global__ void add(const float4 *p, const float4 *q, float *sums, int all)
{
    int n = all / 4, each = (n + gridDim.x - 1) / gridDim.x, from = blockIdx.x * each;
    float s = 0;
    if (all <= 1000000)
        for (int i = from + threadIdx.x; i < min(n, from + each); i += 256) s += copied(p, q, sums + 8192, i);
    else
        for (int i = threadIdx.x; i < each; i += 256) {
            int k = from + (i < each * 7 / 8 ? i : i - each / 8);
            s += term(p[k], q[k]);
        }
    if (blockIdx.x == 0 && threadIdx.x < all % 4) {
        int i = 4 * n + threadIdx.x;
        float d = ((const float *)p)[i] - ((const float *)q)[i];
        s += d * d;
    }
    s = block_sum(s);
    if (threadIdx.x == 0) sums[blockIdx.x] = s;
}
extern "C" __global__ void finish(const float *sums, float *y, int n, int all)
{
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 1024) s += sums[i];
    s = block_sum(s);
    if (threadIdx.x == 0) *y = s / all;
}
