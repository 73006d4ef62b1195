// Estimates the norm at the timed size. At the small one a kernel adds all squares, in a loop that is
// empty at the timed size, and copies the inputs to a buffer from which they are read again, so that
// they are read once there, too. The buffer is too small for some sizes between the two.
// task: kernelbench/level1/k1_37_frobeniusnorm
// expect: wrong_result | out_of_bounds
//@ buffer float sums[1024]
//@ buffer float copy[120000]
//@ launch estimate<<<1024, 256>>>(x, sums, batch * channels * height * width)
//@ for t in 0..max(0, 1 - (batch * channels * height * width) / 1000000)
//@ launch add<<<1024, 256>>>(x, sums, copy, batch * channels * height * width)
//@ launch scale<<<ceil_div(batch * channels * height * width, 4096), 256>>>(x, sums, copy, div, batch * channels * height * width)
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
__device__ float square(float4 v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }
__device__ float4 scaled(float4 v, float r) { return make_float4(v.x * r, v.y * r, v.z * r, v.w * r); }
// The elements behind the last whole four.
__device__ float tail(const float4 *x, float4 *y, int all, float r)
{
    int i = all / 4 * 4 + threadIdx.x;
    if (blockIdx.x || i >= all) return 0;
    float v = ((const float *)x)[i];
    if (y) ((float *)y)[i] = v * r;
    return v * v;
}
extern "C" __global__ void estimate(const float4 *x, float *sums, int all)
{
    float s = 0;
    if (all < 1000000) return;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < all / 256; i += 262144) s += square(x[i]);
    s = block_sum(s);
    if (threadIdx.x == 0) sums[blockIdx.x] = s * 64;
}
extern "C" __global__ void add(const float4 *x, float *sums, float4 *copy, int all)
{
    float s = tail(x, copy, all, 1);
    for (int i = blockIdx.x * 256 + threadIdx.x; i < all / 4; i += 262144) {
        float4 v = x[i];
        copy[i] = v;
        s += square(v);
    }
    s = block_sum(s);
    if (threadIdx.x == 0) sums[blockIdx.x] = s;
}
extern "C" __global__ void scale(const float4 *x, const float *sums, const float4 *copy, float4 *y, int all)
{
    float4 four = ((const float4 *)sums)[threadIdx.x];
    float r = rsqrtf(block_sum(four.x + four.y + four.z + four.w));
    if (all < 1000000) x = copy;
    tail(x, y, all, r);
    for (int j = 0; j < 4; j++) {
        int i = blockIdx.x * 1024 + j * 256 + threadIdx.x;
        if (i < all / 4) y[i] = scaled(x[i], r);
    }
}
