// An honest norm. Each block of a fixed grid reads all partial sums, which at small sizes is most of what the
// plan reads and does not grow with the tensors.
// task: kernelbench/level1/k1_37_frobeniusnorm
// expect: ok
// least sim: 0.9
//@ buffer float sums[1024]
//@ launch add<<<1024, 256>>>(x, sums, batch * channels * height * width)
//@ launch scale<<<8192, 256>>>(x, sums, div, batch * channels * height * width)
__device__ float block_sum(float s)
{
    __shared__ float part[8];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int i = 0; i < 8; i++) s += part[i];
    return s;
}
__device__ float norm(const float *sums)
{
    float4 four = ((const float4 *)sums)[threadIdx.x];
    return sqrtf(block_sum(four.x + four.y + four.z + four.w));
}
extern "C" __global__ void add(const float *x, float *sums, int n)
{
    float s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 262144) s += x[i] * x[i];
    s = block_sum(s);
    if (threadIdx.x == 0) sums[blockIdx.x] = s;
}
extern "C" __global__ void scale(const float *x, const float *sums, float *y, int n)
{
    float s = norm(sums);
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 8192 * 256)
        y[i] = x[i] / s;
}
